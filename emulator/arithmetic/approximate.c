/* approximate.c: the GPU's unit for special functions, bit for bit (approximate.h).
 *
 * The unit was published in outline (S. Oberman and M. Siu, "A high-performance area-efficient
 * multifunction interpolator", 2005), its tables and widths were not. Those here reproduce every
 * result of an H100 (emulator/tests/approximate_values.cu, emulator/tests/long/approximate_tables). Each
 * function has segments of its argument, selected by the leading bits, and in each a parabola of
 * the 17 bits d that follow:
 *
 *   start * 2^14 + constant + (slope * d + bend * square(d)) * 2^scale      in units of 2^-40
 *
 * All products and sums are exact. Only two things are cut: square() leaves out the partial
 * products below 2^19, and the sum is truncated to the 24 bits of the result. */
/* Otherwise gcc leaves the loops scalar; clang takes this for granted. Nobody reads the host's exceptions. */
#ifndef __clang__
#pragma GCC optimize("-fno-trapping-math")
#endif

#include "arithmetic/approximate.h"

#include <math.h>

#include "arithmetic/approximate_tables.h"

enum {
  FRACTION = 0x7fffff,
  ONE = 0x3f800000,
  INFINITE = 0x7f800000,
  SIGN = (int)0x80000000,
  REST = 0x1ffff, /* the 17 bits of d */
  UNITS = 40
};

/* ---- The interpolator ---- */
/* The pairs of bits i < j of d with i + j >= 18, in units of 2^19, and the squares of bits 10 to 16.
 * The bits from 9 up have all pairs, but not the square of bit 9: it is the half that >> 1 cuts. */
static inline uint32_t square(uint32_t d) {
  uint32_t high = d >> 9, sum = high * high >> 1;
  for (uint32_t i = 2; i < 9; i++) sum += d & 1u << i ? d >> (18 - i) : 0;
  return sum;
}
/* Exact here, whether the product is rounded or not. */
static inline double product_and(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/* The parabolas' values as doubles, which hold them exactly, in units of 2^-40. */
static inline void interpolate(const uint32_t *row, const uint32_t *d, double constant,
                               double *value) {
  LANE_ARRAY uint64_t found[LANES];
  gather_wide(found, ROWS, row);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t start = (uint32_t)found[lane], parabola = (uint32_t)(found[lane] >> 32);
    int32_t slope = (int32_t)parabola >> 15, bend = (int32_t)(parabola << 17) >> 17;
    double scale = double_of((uint64_t)((start >> 27) + 1023) << 52);
    double sum = product_and((double)bend, (double)(int32_t)square(d[lane]),
                             (double)slope * (double)(int32_t)d[lane]);
    double level = product_and((double)(int32_t)(start & 0x7ffffffu), 0x1p14, constant);
    value[lane] = product_and(sum, scale, level);
  }
}
/* f32, or the upper word of f64, whose results are by the tables of f32. */
typedef struct {
  uint32_t fraction_bits, bias;
} Format;
static const Format F32 = {23, 127}, F64 = {20, 1023};
/* A value in the format, truncated; its exponent may be less than 1. */
static inline uint32_t truncated(Format format, double value) {
  return (uint32_t)(bits_of_double(value) >> (52 - format.fraction_bits)) -
         ((1023u - format.bias + UNITS) << format.fraction_bits);
}
static inline uint32_t infinite(Format format) {
  return (2 * format.bias + 1) << format.fraction_bits;
}
static inline bool is_nan(Format format, uint32_t bits) {
  return (bits & ~(uint32_t)SIGN) > infinite(format);
}
static inline uint32_t exponent_of(Format format, uint32_t bits) {
  return bits >> format.fraction_bits & (2 * format.bias + 1);
}
static inline uint32_t choose(bool which, uint32_t yes, uint32_t no) { return which ? yes : no; }

/* The segment is selected by the first bits of the fraction. Two binades' rows follow each other, first those of even
 * exponents. */
static inline void interpolate_fraction(Format format, const uint32_t *x, uint32_t first,
                                        uint32_t binades, uint32_t segment_bits, double constant,
                                        double *value) {
  LANE_ARRAY uint32_t row[LANES], d[LANES];
  const uint32_t rest_bits = format.fraction_bits - segment_bits;
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t segment = x[lane] >> rest_bits & ((binades << segment_bits) - 1);
    row[lane] = first + (segment ^ (binades - 1) << segment_bits);
    d[lane] = x[lane] << (17 - rest_bits) & REST;
  }
  interpolate(row, d, constant, value);
}

/* ---- f32, and the upper word of f64 ---- */
static inline void reciprocal(Format format, const uint32_t *x, uint32_t *result) {
  LANE_ARRAY double value[LANES];
  interpolate_fraction(format, x, RCP_ROWS, 1, 7, RCP_CONSTANT, value);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t exponent = exponent_of(format, x[lane]), sign = x[lane] & (uint32_t)SIGN;
    uint32_t power = (exponent - format.bias) << format.fraction_bits;
    uint32_t size = truncated(format, value[lane]) - power;
    size = choose((int32_t)size < 1 << format.fraction_bits, 0, size);
    size = choose(exponent == 0, infinite(format), size);
    size = choose(exponent == 2 * format.bias + 1, 0, size);
    result[lane] = choose(is_nan(format, x[lane]), CANONICAL_NAN, size | sign);
  }
}
void mufu_rcp(const uint32_t *x, uint32_t *result) { reciprocal(F32, x, result); }
void mufu_rcp64h(const uint32_t *x, uint32_t *result) { reciprocal(F64, x, result); }

static inline void reciprocal_root(Format format, const uint32_t *x, uint32_t *result) {
  LANE_ARRAY double value[LANES];
  const uint32_t least = 1u << format.fraction_bits;
  interpolate_fraction(format, x, RSQ_ROWS, 2, 6, RSQ_CONSTANT, value);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t exponent = exponent_of(format, x[lane]), sign = x[lane] & (uint32_t)SIGN;
    uint32_t half = (uint32_t)((int32_t)(exponent - format.bias) >> 1) << format.fraction_bits;
    bool power_of_four = (x[lane] & (2 * least - 1)) == least; /* exact, not by the table */
    uint32_t one = format.bias << format.fraction_bits;
    uint32_t size = choose(power_of_four, one, truncated(format, value[lane])) - half;
    size = choose(exponent == 2 * format.bias + 1, 0, size);
    size = choose((sign != 0) | is_nan(format, x[lane]), CANONICAL_NAN, size);
    result[lane] = choose(exponent == 0, infinite(format) | sign, size);
  }
}
void mufu_rsq(const uint32_t *x, uint32_t *result) { reciprocal_root(F32, x, result); }
void mufu_rsq64h(const uint32_t *x, uint32_t *result) { reciprocal_root(F64, x, result); }

/* ---- f32 alone ---- */
void mufu_sqrt(const uint32_t *x, uint32_t *result) {
  LANE_ARRAY double value[LANES];
  interpolate_fraction(F32, x, SQRT_ROWS, 2, 6, SQRT_CONSTANT, value);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t exponent = exponent_of(F32, x[lane]), sign = x[lane] & (uint32_t)SIGN;
    uint32_t half = (uint32_t)((int32_t)(exponent - 127) >> 1) << 23;
    uint32_t size = choose(exponent == 255, INFINITE, truncated(F32, value[lane]) + half);
    size = choose((sign != 0) | is_nan(F32, x[lane]), CANONICAL_NAN, size);
    result[lane] = choose(exponent == 0, sign, size);
  }
}

/* The argument is cut to 23 fraction bits. A negative one, unless a whole number is left, is negated
 * by its ones' complement. */
void mufu_ex2(const uint32_t *x, uint32_t *result) {
  LANE_ARRAY uint32_t row[LANES], d[LANES];
  LANE_ARRAY int32_t whole[LANES];
  LANE_ARRAY double value[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    float size = float_of(x[lane] & ~(uint32_t)SIGN);
    int32_t fixed = (int32_t)((size < 200.0f ? size : 200.0f) * 0x1p23f);
    int32_t negative = ~fixed + ((fixed & FRACTION) == 0);
    fixed = x[lane] >> 31 ? negative : fixed;
    whole[lane] = fixed >> 23;
    row[lane] = EX2_ROWS + ((uint32_t)fixed >> 17 & 0x3f);
    d[lane] = (uint32_t)fixed & REST;
  }
  interpolate(row, d, EX2_CONSTANT, value);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t size = truncated(F32, value[lane]) + ((uint32_t)whole[lane] << 23);
    size = choose(whole[lane] < -126, 0, size);
    size = choose(whole[lane] > 127, INFINITE, size);
    result[lane] = choose(is_nan(F32, x[lane]), CANONICAL_NAN, size);
  }
}

/* The sum with the exponent has 36 fraction bits. A negative one is negated by its ones'
 * complement. */
void mufu_lg2(const uint32_t *x, uint32_t *result) {
  LANE_ARRAY double value[LANES];
  interpolate_fraction(F32, x, LG2_ROWS, 1, 6, LG2_CONSTANT, value);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t exponent = exponent_of(F32, x[lane]);
    double sum = value[lane] + (double)((int32_t)exponent - 127) * 0x1p40;
    bool below = sum < 0;
    double size = trunc((below ? -1.0 - sum : sum) * 0x1p-4) * 0x1p4;
    uint32_t bits = truncated(F32, size) | choose(below, (uint32_t)SIGN, 0);
    bits = choose(x[lane] == ONE, 0, bits);
    bits = choose(exponent == 255, INFINITE, bits);
    bits = choose((x[lane] >> 31) | is_nan(F32, x[lane]), CANONICAL_NAN, bits);
    result[lane] = choose(exponent == 0, INFINITE | (uint32_t)SIGN, bits);
  }
}

/* The fraction of the turns is cut to 25 bits: two for the quadrant, 23 in it. Where the sine
 * falls, the ones' complement stands for the rest of the quadrant. */
static inline void sine_from_quadrant(const uint32_t *x, uint32_t first_quadrant, bool odd,
                                      uint32_t *result) {
  LANE_ARRAY uint32_t row[LANES], d[LANES], sign[LANES];
  LANE_ARRAY double value[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    bool finite = exponent_of(F32, x[lane]) != 255;
    double turns = (double)float_of(choose(finite, x[lane] & ~(uint32_t)SIGN, 0));
    uint32_t phase = (uint32_t)(int32_t)((turns - trunc(turns)) * 0x1p25);
    phase += first_quadrant << 23;
    uint32_t part = (phase ^ (0u - (phase >> 23 & 1))) & FRACTION;
    sign[lane] = (phase << 7 ^ (odd ? x[lane] : 0)) & (uint32_t)SIGN;
    row[lane] = SIN_ROWS + (part >> 17);
    d[lane] = part & REST;
  }
  interpolate(row, d, SIN_CONSTANT, value);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t size = choose(value[lane] == 0, 0, truncated(F32, value[lane]));
    result[lane] = choose(exponent_of(F32, x[lane]) == 255, CANONICAL_NAN, size | sign[lane]);
  }
}
void mufu_sin(const uint32_t *x, uint32_t *result) { sine_from_quadrant(x, 0, true, result); }
void mufu_cos(const uint32_t *x, uint32_t *result) { sine_from_quadrant(x, 1, false, result); }

/* The binades from 2^-8 to 4 have 1 to 16 segments. Below is x, above is 1. */
void mufu_tanh(const uint32_t *x, uint32_t *result) {
  static const uint32_t first_row[] = {0, 1, 2, 3, 5, 7, 11, 15, 19, 27, 43};
  static const uint32_t segment_bits[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3};
  enum { LEAST = 127 - 8, MOST = 127 + 2 };
  LANE_ARRAY uint32_t binade[LANES], row[LANES], d[LANES], bits[LANES];
  LANE_ARRAY double value[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t exponent = exponent_of(F32, x[lane]);
    exponent = exponent < LEAST ? LEAST : exponent > MOST ? MOST : exponent;
    binade[lane] = exponent - LEAST;
  }
  gather_words(row, first_row, binade);
  gather_words(bits, segment_bits, binade);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t fraction = x[lane] & FRACTION;
    row[lane] += TANH_ROWS + (fraction >> (23 - bits[lane]));
    d[lane] = (fraction << bits[lane]) >> 6 & REST;
  }
  interpolate(row, d, TANH_CONSTANT, value);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t size = x[lane] & ~(uint32_t)SIGN, exponent = exponent_of(F32, x[lane]);
    uint32_t curve = choose(exponent > MOST, ONE, truncated(F32, value[lane]));
    size = choose(exponent < LEAST, size, curve);
    result[lane] = choose(is_nan(F32, x[lane]), CANONICAL_NAN, size | (x[lane] & (uint32_t)SIGN));
  }
}
