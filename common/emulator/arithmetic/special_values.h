/* special_values.h: sin, cos and ex2 of f32, of one value and of a warp's at once. */
#ifndef EMULATOR_SPECIAL_VALUES_H
#define EMULATOR_SPECIAL_VALUES_H

#include "arithmetic/alu_float.h"

float approximate_sin(float x);
float approximate_cos(float x);
float approximate_ex2(float x);

/* The same values of all lanes' `x`, as float_result returns them. Lanes that are not wanted may get any value. */
void sin_of_lanes(const float *x, LaneMask wanted, uint32_t *result);
void cos_of_lanes(const float *x, LaneMask wanted, uint32_t *result);
void ex2_of_lanes(const float *x, LaneMask wanted, uint32_t *result);

#endif
