/* exact_products.c: sums of products that are exact in f32 (see exact_products.h). */
#include "tensor_core/exact_products.h"

#include <fenv.h>
#include <string.h>

#include "tensor_core/host_vectors.h"

enum {
  UNIT_BITS = 16,        /* below the point */
  SIGNIFICAND_BITS = 24, /* of f32 */
  EXPONENT_BIAS = 127,
  FRACTION_BITS = 25 /* that are kept below the largest exponent */
};

__attribute__((always_inline)) static inline Ints load_ints(const void *from) {
  Ints value;
  memcpy(&value, from, sizeof value);
  return value;
}
__attribute__((always_inline)) static inline Floats multiply_add(Floats a, Floats b, Floats c) {
#if defined(__AVX512BW__)
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c; /* exact, too */
#endif
}
/* Of what does not fit into 32 bits x86 makes INT_MIN, and ARM the nearest that does: neither
 * has few enough bits. */
__attribute__((always_inline)) static inline Floats whole_part(Floats value, Ints *as_integer) {
  *as_integer = __builtin_convertvector(value, Ints);
  return __builtin_convertvector(*as_integer, Floats);
}
__attribute__((always_inline)) static inline int32_t any_lane(Ints value) {
  int32_t any = 0;
  for (int i = 0; i < WIDTH; i++) any |= value[i];
  return any;
}

/* An infinity or a NaN becomes a number that does not fit. */
__attribute__((always_inline)) static inline Floats widen_numbers(NumberFormat format,
                                                                  Ints numbers) {
  if (format == NUMBER_BF16) return (Floats)(numbers << 16);
  if (format == NUMBER_TF32) return (Floats)(numbers & ~0x1fff);
  const Floats shifted = (Floats)((numbers & 0x7fff) << 13); /* its exponent is 112 too small */
  return (Floats)((Ints)(shifted * 0x1p112f) | (numbers & 0x8000) << 16);
}

__attribute__((always_inline)) static inline void read_as(NumberFormat format,
                                                          const uint32_t *numbers, size_t count,
                                                          ExactMatrix *matrix) {
  Ints ones = {0}, differing = {0};
  for (size_t i = 0; i < count; i += WIDTH) {
    uint32_t part[WIDTH] = {0};
    if (count - i < WIDTH) memcpy(part, numbers + i, (count - i) * sizeof *part);
    const Floats value = widen_numbers(format, load_ints(count - i < WIDTH ? part : numbers + i));
    const Floats scaled = (Floats)((Ints)value & 0x7fffffff) * (float)(1 << UNIT_BITS);
    Ints units;
    differing |= whole_part(scaled, &units) != scaled;
    ones |= units;
    memcpy(matrix->values + i, &value, sizeof value);
  }
  matrix->ones = (uint32_t)any_lane(ones);
  matrix->fits = !any_lane(differing) && matrix->ones != 0 && !(matrix->ones >> 31);
}

void exact_read(NumberFormat format, const uint32_t *numbers, size_t count, ExactMatrix *matrix) {
  if (format == NUMBER_BF16)
    read_as(NUMBER_BF16, numbers, count, matrix);
  else if (format == NUMBER_TF32)
    read_as(NUMBER_TF32, numbers, count, matrix);
  else
    read_as(NUMBER_F16, numbers, count, matrix);
}

static int lowest_bit(uint32_t ones) { return __builtin_ctz(ones); }
static int highest_bit(uint32_t ones) { return 31 - __builtin_clz(ones); }

/* Rounded toward zero; without AVX-512 in this mode only. */
__attribute__((always_inline)) static inline Floats add_truncating(Floats a, Floats b) {
#if defined(__AVX512BW__)
  return (Floats)_mm512_add_round_ps((__m512)a, (__m512)b, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  return a + b;
#endif
}

/* The exponents, in the form of f32, between which no bit of an accumulator or of a product is cut off. */
typedef struct {
  uint32_t least, most;
} Exponents;

/* Not zero where an accumulator is outside of them. Zero has no bits. */
__attribute__((always_inline)) static inline Ints outside(Exponents exponents, Ints accumulator) {
  const Unsigneds magnitude = (Unsigneds)accumulator & 0x7fffffffu;
  return (Ints)(magnitude - (exponents.least << 23) >= (exponents.most + 1 - exponents.least)
                                                           << 23) &
         (Ints)(magnitude != 0);
}

typedef struct {
  int step, columns, depth;
  Exponents exponents;
} ExactForm;

/* Returns what is not zero if something is cut off. */
__attribute__((always_inline)) static inline Ints multiply_row(int vectors, ExactForm form,
                                                               const float *a, const float *b,
                                                               uint32_t *results) {
  Ints wrong = {0}, sums[EXACT_COLUMNS / WIDTH];
  for (int v = 0; v < vectors; v++) sums[v] = load_ints(results + v * WIDTH);
  for (int first = 0; first < form.depth; first += form.step) {
    Floats products[EXACT_COLUMNS / WIDTH] = {{0}};
    for (int k = first; k < first + form.step; k++) {
      const Floats left = (Floats){0} + a[k];
      for (int v = 0; v < vectors; v++)
        products[v] =
            multiply_add(left, (Floats)load_ints(b + k * form.columns + v * WIDTH), products[v]);
    }
    for (int v = 0; v < vectors; v++) {
      wrong |= outside(form.exponents, sums[v]);
      sums[v] = (Ints)add_truncating((Floats)sums[v], products[v]);
    }
  }
  for (int v = 0; v < vectors; v++) memcpy(results + v * WIDTH, &sums[v], sizeof sums[v]);
  return wrong;
}

__attribute__((noinline)) static bool multiply_rows(int rows, ExactForm form, const float *a,
                                                    const float *b, uint32_t *results) {
  Ints wrong = {0};
  for (int row = 0; row < rows; row++, a += form.depth, results += form.columns) {
    if (form.columns == WIDTH && form.depth == 16 && form.step == 16) /* constants: better code */
      wrong |= multiply_row(1, (ExactForm){16, WIDTH, 16, form.exponents}, a, b, results);
    else if (form.columns == WIDTH && form.depth == 8 && form.step == 4)
      wrong |= multiply_row(1, (ExactForm){4, WIDTH, 8, form.exponents}, a, b, results);
    else
      wrong |= multiply_row(form.columns / WIDTH, form, a, b, results);
  }
  return !any_lane(wrong);
}

bool exact_multiply(int step, int rows, int columns, int depth, const ExactMatrix *a,
                    const ExactMatrix *b, uint32_t *accumulators) {
  _Alignas(64) uint32_t results[EXACT_RESULTS];
  if (!a->fits || !b->fits || columns % WIDTH || rows * columns > EXACT_RESULTS) return false;
  const int low = lowest_bit(a->ones) + lowest_bit(b->ones) - 2 * UNIT_BITS;
  const int high = highest_bit(a->ones) + highest_bit(b->ones) - 2 * UNIT_BITS;
  const int sum_bits = 2 + 32 - __builtin_clz((uint32_t)step); /* above a product's exponent */
  if (high + sum_bits - low > SIGNIFICAND_BITS) return false;
  const Exponents exponents = {
      (uint32_t)(high + SIGNIFICAND_BITS - 1 - FRACTION_BITS + EXPONENT_BIAS),
      (uint32_t)(low + FRACTION_BITS + EXPONENT_BIAS)};
  const ExactForm form = {step, columns, depth, exponents};
  memcpy(results, accumulators, (size_t)(rows * columns) * sizeof *results);
#ifndef __AVX512BW__
  const int mode = fegetround();
  fesetround(FE_TOWARDZERO);
#endif
  const bool exact = multiply_rows(rows, form, a->values, b->values, results);
#ifndef __AVX512BW__
  fesetround(mode);
#endif
  if (exact) memcpy(accumulators, results, (size_t)(rows * columns) * sizeof *results);
  return exact;
}
