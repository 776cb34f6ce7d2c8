/* approximate.h: the GPU's unit for special functions, the MUFU instructions, of a warp's lanes at
 * once. What ptxas puts around them for an .approx instruction is in alu_special.c. */
#pragma once

#include "arithmetic/alu_float.h"

/* f32: x and results may be the same array. Subnormal arguments count as zeros, subnormal results
 * become zeros, except in tanh. sin and cos take turns. */
typedef void OfLanes(const uint32_t *x, uint32_t *results);
OfLanes mufu_rcp, mufu_rsq, mufu_sqrt, mufu_ex2, mufu_lg2, mufu_sin, mufu_cos, mufu_tanh;
/* The upper words of f64. */
OfLanes mufu_rcp64h, mufu_rsq64h;
