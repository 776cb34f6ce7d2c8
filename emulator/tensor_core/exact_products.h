/* exact_products.h: products of matrices of f16, bf16 or tf32 that need no rounding.
 *
 * Programs are often tried with small whole numbers. The sum of all products of a step then fits into 24
 * bits, so f32 arithmetic computes it exactly in any order. If neither these products nor the
 * accumulator lose bits when they are aligned, all that is left of the tensor cores' rule
 * (tensor_math.h) is one addition that rounds toward zero. */
#pragma once

#include "tensor_core/tensor_math.h"

enum { EXACT_NUMBERS = 512, EXACT_RESULTS = 256, EXACT_COLUMNS = 32 };

/* A matrix, and which bits its numbers have. */
typedef struct {
  _Alignas(64) float values[EXACT_NUMBERS];
  uint32_t ones; /* all magnitudes in units of 2^-16, one over the other */
  bool fits;     /* each is a multiple of that, and not too large */
} ExactMatrix;

/* `count` numbers, given one per uint32_t: f16, bf16 or tf32. */
void exact_read(NumberFormat format, const uint32_t *numbers, size_t count, ExactMatrix *matrix);

/* accumulators[row][column] += sum over k of a[row][k] * b[k][column], as multiply_floats with f32 results.
 * False: nothing was done, because something may have to be cut off. `columns` is at most
 * EXACT_COLUMNS, and rows follow each other without gaps. */
bool exact_multiply(int step, int rows, int columns, int depth, const ExactMatrix *a,
                    const ExactMatrix *b, uint32_t *accumulators);
