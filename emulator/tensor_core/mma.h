/* mma.h: mma.sync as a function of register columns, apart from warps and text (mma.c). */
#pragma once

#include "base/warp.h"
#include "tensor_core/tensor_math.h"

typedef enum { RESULT_F32, RESULT_F16, RESULT_S32 } ResultFormat;

typedef struct {
  int columns, depth; /* n and k; m is 16 */
  NumberFormat a, b;
  ResultFormat c, d;
  bool saturate;
  int a_registers, b_registers, c_registers, d_registers;
  FloatRule rule;
} MmaForm;

bool read_number_format(const char *word, NumberFormat *format); /* "bf16" ... */
bool read_result_format(const char *word, ResultFormat *format); /* "f32" ... */

/* Reads the modifiers after "mma". Returns NULL or an error message. */
const char *mma_read_form(const char *const *modifiers, int count, MmaForm *form);

/* Columns: 32 lanes of uint32_t each. d may be the same columns as c. */
void mma_compute(const MmaForm *form, const void *const *a, const void *const *b,
                 const void *const *c, void *const *d);
