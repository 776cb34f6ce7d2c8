/* exact_products.c: compares products that need no rounding (tensor_core/exact_products.c) with the rule of
 * the tensor cores: small whole numbers, fractions, numbers of any size, and accumulators of every
 * kind.
 *
 *   exact_products [SEED] */
#include "tensor_core/exact_products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16, PRODUCTS = 20000, KINDS = 6, LEAST_EXACT = PRODUCTS / 8 };

static uint64_t state;
static uint32_t random_below(uint32_t most) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)((state >> 33) % most);
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* A float as a number of the format: its lower bits are cut off. */
static uint32_t narrowed(NumberFormat format, float value) {
  const uint32_t bits = bits_of(value);
  if (format == NUMBER_BF16) return bits >> 16;
  if (format == NUMBER_TF32) return bits;
  const _Float16 half = (_Float16)value;
  uint16_t narrow;
  memcpy(&narrow, &half, sizeof narrow);
  return narrow;
}

static float random_number(uint32_t kind) {
  const float whole = (float)random_below(7) - 3.0f;
  if (kind == 0) return (float)random_below(3);
  if (kind == 1) return whole;
  if (kind == 2) return whole / 8.0f;
  if (kind == 3) return whole * (float)(1u << random_below(8));
  if (kind == 4) return random_below(64) ? whole : -0.0f;
  return (float)random_below(1u << 24) / (float)(1u << random_below(40) / 2);
}

static uint32_t random_accumulator(uint32_t kind) {
  static const uint32_t special[] = {0,           0x80000000u, 0x7f800000u, 0x7fc00000u,
                                     0xff800000u, 1,           0x00800000u, 0x4b000001u};
  if (random_below(2000) == 0) return special[random_below(8)];
  if (kind == 0) return bits_of((float)random_below(5) * 1.0909091f);
  if (kind == 1) return bits_of((float)random_below(40000) * 1.0909091f - 5000.0f);
  return bits_of((float)random_below(3000) - 1500.0f);
}

/* True: the product needs no rounding. */
static bool try_product(bool *alike) {
  static const NumberFormat formats[] = {NUMBER_F16, NUMBER_BF16, NUMBER_TF32};
  static const int steps[] = {4, 8, 16}, widths[] = {8, 16, 32};
  static ExactMatrix a, b;
  const NumberFormat format = formats[random_below(3)];
  const int step = steps[random_below(3)], columns = widths[random_below(3)];
  const int rows = columns == 32 ? ROWS / 2 : ROWS, depth = step == 4 ? 8 : step;
  const uint32_t kind = random_below(KINDS), accumulator_kind = random_below(3);
  uint32_t left[ROWS * 16], right[16 * 32], exact[EXACT_RESULTS], expected[EXACT_RESULTS];
  float values[2][EXACT_NUMBERS];
  int16_t exponents[2][EXACT_NUMBERS];
  const size_t a_count = (size_t)(rows * depth), b_count = (size_t)(depth * columns);
  for (size_t i = 0; i < a_count; i++) left[i] = narrowed(format, random_number(kind));
  for (size_t i = 0; i < b_count; i++) right[i] = narrowed(format, random_number(kind));
  for (int i = 0; i < rows * columns; i++) expected[i] = random_accumulator(accumulator_kind);
  memcpy(exact, expected, sizeof exact);
  exact_read(format, left, a_count, &a);
  exact_read(format, right, b_count, &b);
  if (!exact_multiply(step, rows, columns, depth, &a, &b, exact)) {
    *alike = !memcmp(exact, expected, (size_t)(rows * columns) * sizeof *exact);
    return false;
  }
  const FloatMatrix a_matrix = {values[0], exponents[0], (size_t)depth};
  const FloatMatrix b_matrix = {values[1], exponents[1], (size_t)columns};
  const FloatRule rule = {25, step, false, false};
  read_numbers(format, false, left, a_matrix, a_count);
  read_numbers(format, false, right, b_matrix, b_count);
  multiply_floats(&rule, rows, columns, depth, a_matrix, b_matrix, expected, (size_t)columns);
  *alike = !memcmp(exact, expected, (size_t)(rows * columns) * sizeof *exact);
  return true;
}

int main(int argc, char **argv) {
  int without_rounding = 0;
  state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  for (int i = 0; i < PRODUCTS; i++) {
    bool alike;
    without_rounding += try_product(&alike);
    if (!alike) return printf("product %d differs\n", i), 1;
  }
  if (without_rounding < LEAST_EXACT)
    return printf("only %d without rounding\n", without_rounding), 1;
  printf("exact_products: %d products, %d of them without rounding, all alike\n", PRODUCTS,
         without_rounding);
  return 0;
}
