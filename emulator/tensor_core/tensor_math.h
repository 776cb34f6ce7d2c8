/* tensor_math.h: what the tensor cores compute, bit for bit.
 *
 * A tensor core does not add products one by one. It takes `step` products and the accumulator,
 * aligns them all to the largest exponent among them, truncates each toward zero `fraction_bits`
 * bits below it, adds exactly, and rounds once. emulator/tests/mma_cases.cu compares this with an
 * H200.
 *
 * Every number is stored with its exponent: the alignment uses the sum of two exponents, which is
 * not always the exponent of the product. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  NUMBER_F16,
  NUMBER_BF16,
  NUMBER_TF32,
  NUMBER_E4M3,
  NUMBER_E5M2,
  NUMBER_S8,
  NUMBER_U8
} NumberFormat;

uint32_t number_bits(NumberFormat format);

/* How one instruction rounds its sums. */
typedef struct {
  int fraction_bits; /* bits kept below the largest exponent */
  int step;          /* products added at once */
  /* accumulators are f16, rounded to nearest even; else f32, rounded toward zero */
  bool half_result;
  bool short_result; /* f32 accumulators keep 13 mantissa bits */
} FloatRule;

/* Numbers in the form used for multiplication. Infinities and NaNs are marked by their exponents
 * and have the value zero (with a sign). */
typedef struct {
  float *values;
  int16_t *exponents;
  size_t pitch; /* from row to row */
} FloatMatrix;
/* Writes `count` numbers, given one per uint32_t, from *matrix on. */
void read_numbers(NumberFormat format, bool negate, const uint32_t *numbers, FloatMatrix matrix,
                  size_t count);

/* accumulators[row][column] += sum over k of a[row][k] * b[k][column]; accumulators are f32 bits,
 * or f16 bits in the lower half when rule->half_result. `columns` is a multiple of 8. */
void multiply_floats(const FloatRule *rule, int rows, int columns, int depth, FloatMatrix a,
                     FloatMatrix b, uint32_t *accumulators, size_t accumulator_pitch);
/* Integers wrap around, or saturate to 32 bits. a and b hold sign- or zero-extended numbers. */
void multiply_integers(bool saturate, int rows, int columns, int depth, const int16_t *a,
                       size_t a_pitch, const int16_t *b, size_t b_pitch, uint32_t *accumulators,
                       size_t accumulator_pitch);
int16_t extend_integer(NumberFormat format, uint32_t bits);
void extend_integers(NumberFormat format, const uint32_t *bits, int16_t *numbers, size_t count);
