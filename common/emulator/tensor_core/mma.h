/* mma.h: mma.sync as a function of register columns, apart from warps and text (mma.c). */
#ifndef EMULATOR_MMA_H
#define EMULATOR_MMA_H

#include "base/warp.h"
#include "tensor_core/tensor_math.h"

typedef enum { RESULT_F32, RESULT_F16, RESULT_S32, RESULT_F64 } ResultFormat;

typedef struct {
  int rows, columns, depth; /* m, n, k */
  NumberFormat a, b;
  ResultFormat c, d;
  bool a_column_major, b_row_major; /* m8n8k4 only */
  bool saturate;
  bool exclusive_or; /* b1: xor instead of and */
  bool sparse;
  int selector;
  int a_registers, b_registers, c_registers, d_registers;
  FloatRule rule;
} MmaForm;

bool read_number_format(const char *word, NumberFormat *format); /* "bf16" ... */
bool read_result_format(const char *word, ResultFormat *format); /* "f32" ... */

/* Reads the modifiers after "mma" or "mma.sp". Returns NULL or an error message. */
const char *mma_read_form(const char *const *modifiers, int count, bool sparse, MmaForm *form);

/* Columns: 32 lanes of uint32_t each (f64: of uint64_t). d may be the same columns as c. */
void mma_compute(const MmaForm *form, const void *const *a, const void *const *b,
                 const void *const *c, const uint32_t *metadata, void *const *d);

/* The dense position 0..depth-1 of the compressed number `index` of a row, from the 32 lanes'
 * metadata of a 16-row tile. bits: the width of the numbers. */
int sparse_position(const uint32_t *metadata, uint32_t bits, int depth, int selector, int row,
                    int index);

#endif
