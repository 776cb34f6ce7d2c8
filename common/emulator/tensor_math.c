/* tensor_math.c: the arithmetic of the tensor cores (see tensor_math.h for the rule). */
#include "tensor_math.h"

#include <string.h>

#include "half.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Exponents that are none: each kind keeps its order when two are added. */
enum {
  EXPONENT_ZERO = -0x400,
  EXPONENT_INFINITY = 0x1000,
  EXPONENT_NAN = 0x2000,
  EXPONENT_SPECIAL = 0x800 /* a sum above this has an infinity or a NaN in it */
};

const Packed absent_number = -0x4000 * 0x10000;

static const struct {
  uint8_t bits, exponent_bits, mantissa_bits;
  bool is_signed;
} formats[] = {
    [NUMBER_F16] = {16, 5, 10, true},  [NUMBER_BF16] = {16, 8, 7, true},
    [NUMBER_TF32] = {32, 8, 10, true}, [NUMBER_E4M3] = {8, 4, 3, true},
    [NUMBER_E5M2] = {8, 5, 2, true},   [NUMBER_S8] = {8, 0, 0, true},
    [NUMBER_U8] = {8, 0, 0, false},    [NUMBER_S4] = {4, 0, 0, true},
    [NUMBER_U4] = {4, 0, 0, false},    [NUMBER_B1] = {1, 0, 0, false},
    [NUMBER_F64] = {64, 11, 52, true},
};

uint32_t number_bits(NumberFormat format) { return formats[format].bits; }

static inline Packed pack(int exponent, int significand) {
  return (Packed)(((uint32_t)exponent << 16) | ((uint32_t)significand & 0xffffu));
}
static inline int packed_exponent(Packed packed) { return packed >> 16; }
static inline int packed_significand(Packed packed) { return (int16_t)packed; }

/* Branch-free, so that the loop over a tile vectorises. `spare`: bits of the container below the
 * number (tf32 lies in the upper 19 bits of 32; the rest is not looked at). */
static inline __attribute__((always_inline)) void pack_format(
    int exponent_bits, int mantissa_bits, int spare, bool has_infinity, int shift, bool negate,
    const uint32_t *restrict numbers, Packed *restrict packed, size_t count) {
  const uint32_t top = (1u << exponent_bits) - 1u, mantissa_mask = (1u << mantissa_bits) - 1u;
  const int bias = (int)(top >> 1);
  for (size_t i = 0; i < count; i++) {
    const uint32_t number = numbers[i] >> spare;
    const uint32_t field = (number >> mantissa_bits) & top;
    const uint32_t mantissa = number & mantissa_mask;
    const int sign =
        -(int)(((number >> (exponent_bits + mantissa_bits)) & 1u) ^ (negate ? 1u : 0u));
    const int magnitude = (int)((mantissa | (field != 0 ? mantissa_mask + 1u : 0u)) << shift);
    const int significand = (magnitude ^ sign) - sign;
    int exponent = (field != 0 ? (int)field : 1) - bias;
    exponent = (field | mantissa) == 0 ? EXPONENT_ZERO : exponent;
    if (has_infinity) {
      const int special = mantissa == 0 ? EXPONENT_INFINITY : EXPONENT_NAN;
      exponent = field == top ? special : exponent;
    } else {
      exponent = (number & (top << mantissa_bits | mantissa_mask)) ==
                         (top << mantissa_bits | mantissa_mask)
                     ? EXPONENT_NAN
                     : exponent;
    }
    packed[i] = pack(exponent, significand);
  }
}

void pack_numbers(const FloatRule *rule, NumberFormat format, Side side, bool negate,
                  const uint32_t *numbers, Packed *packed, size_t count) {
  const int half = rule->fraction_bits / 2;
  const int place = side == SIDE_A ? half : rule->fraction_bits - half;
  const int shift = place - formats[format].mantissa_bits;
  switch (format) { /* known numbers of bits make vector code */
    case NUMBER_F16:
      pack_format(5, 10, 0, true, shift, negate, numbers, packed, count);
      break;
    case NUMBER_BF16:
      pack_format(8, 7, 0, true, shift, negate, numbers, packed, count);
      break;
    case NUMBER_TF32:
      pack_format(8, 10, 13, true, shift, negate, numbers, packed, count);
      break;
    case NUMBER_E4M3:
      pack_format(4, 3, 0, false, shift, negate, numbers, packed, count);
      break;
    default:
      pack_format(5, 2, 0, true, shift, negate, numbers, packed, count);
      break;
  }
}

/* ---- One result at a time: the rule as it is written, for every value there is ---- */

typedef struct {
  int exponent;
  int64_t significand; /* with 23 bits (f32) or 10 bits (f16) behind the point */
} Accumulator;

static Accumulator read_accumulator(bool half, uint32_t bits) {
  const int mantissa_bits = half ? 10 : 23;
  const uint32_t top = half ? 31u : 255u;
  const uint32_t field = (bits >> mantissa_bits) & top;
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1u);
  const bool negative = (bits >> (half ? 15 : 31)) & 1u;
  Accumulator result;
  result.significand = (int64_t)(mantissa | (field != 0 ? 1u << mantissa_bits : 0u));
  if (negative) result.significand = -result.significand;
  result.exponent = (field != 0 ? (int)field : 1) - (int)(top >> 1);
  if ((field | mantissa) == 0) result.exponent = EXPONENT_ZERO;
  if (field == top) result.exponent = mantissa != 0 ? EXPONENT_NAN : EXPONENT_INFINITY;
  return result;
}

/* sum * 2^scale as f32, cut toward zero. */
static uint32_t settle_float(int64_t sum, int scale, bool short_result) {
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0u;
  const uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
  const int exponent = 63 - __builtin_clzll(magnitude) + scale;
  if (exponent > 127) return sign | 0x7f800000u;
  const int unit = exponent < -126 ? -149 : exponent - 23; /* what the last mantissa bit is worth */
  const int shift = unit - scale;
  const uint64_t mantissa = shift > 63 ? 0 : shift >= 0 ? magnitude >> shift : magnitude << -shift;
  uint32_t bits = exponent < -126
                      ? (uint32_t)mantissa
                      : ((uint32_t)(exponent + 127) << 23) | ((uint32_t)mantissa & 0x7fffffu);
  if (short_result) bits &= ~0x3ffu;
  return bits == 0 ? 0 : sign | bits; /* never a negative zero */
}

/* sum * 2^scale as f16, to nearest even. */
static uint32_t settle_half(int64_t sum, int scale) {
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x8000u : 0u;
  const uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
  const int exponent = 63 - __builtin_clzll(magnitude) + scale;
  if (exponent > 15) return sign | 0x7c00u;
  const int unit = exponent < -14 ? -24 : exponent - 10;
  const int shift = unit - scale;
  uint64_t mantissa;
  if (shift > 62) {
    mantissa = 0;
  } else if (shift > 0) {
    const uint64_t rest = magnitude & ((1ull << shift) - 1u), tie = 1ull << (shift - 1);
    mantissa = magnitude >> shift;
    if (rest > tie || (rest == tie && (mantissa & 1u))) mantissa++;
  } else {
    mantissa = magnitude << -shift;
  }
  /* Rounding up may carry into the exponent, up to infinity: the encoding is made for that. */
  if (exponent < -14) return mantissa == 0 ? 0 : sign | (uint32_t)mantissa;
  return sign | (uint32_t)(((uint64_t)(exponent + 14) << 10) + mantissa);
}

/* Cut toward zero. */
static int64_t shifted(int64_t value, int right) {
  const uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
  const uint64_t cut = right > 63 ? 0 : right >= 0 ? magnitude >> right : magnitude << -right;
  return value < 0 ? -(int64_t)cut : (int64_t)cut;
}

static uint32_t add_products(const FloatRule *rule, const Packed *a, const Packed *b,
                             size_t b_pitch, uint32_t accumulator) {
  const Accumulator c = read_accumulator(rule->half_result, accumulator);
  const uint32_t infinity = rule->half_result ? 0x7c00u : 0x7f800000u;
  const uint32_t minus = rule->half_result ? 0x8000u : 0x80000000u;
  int largest = c.exponent;
  bool nan = c.exponent == EXPONENT_NAN;
  bool positive = c.exponent == EXPONENT_INFINITY && c.significand > 0;
  bool negative = c.exponent == EXPONENT_INFINITY && c.significand < 0;
  for (int k = 0; k < rule->step; k++) {
    const Packed x = a[k], y = b[(size_t)k * b_pitch];
    const int exponent = packed_exponent(x) + packed_exponent(y);
    if (exponent > EXPONENT_SPECIAL) {
      const bool zero = packed_exponent(x) == EXPONENT_ZERO || packed_exponent(y) == EXPONENT_ZERO;
      if (packed_exponent(x) == EXPONENT_NAN || packed_exponent(y) == EXPONENT_NAN || zero)
        nan = true;
      else if ((packed_significand(x) < 0) != (packed_significand(y) < 0))
        negative = true;
      else
        positive = true;
    }
    if (exponent > largest) largest = exponent;
  }
  if (nan || (positive && negative)) return rule->half_result ? 0x7fffu : 0x7fffffffu;
  if (positive) return infinity;
  if (negative) return minus | infinity;
  const int c_place = rule->half_result ? 10 : 23;
  int64_t sum = shifted(c.significand, largest - c.exponent + c_place - rule->fraction_bits);
  for (int k = 0; k < rule->step; k++) {
    const Packed x = a[k], y = b[(size_t)k * b_pitch];
    const int64_t product = (int64_t)packed_significand(x) * packed_significand(y);
    sum += shifted(product, largest - packed_exponent(x) - packed_exponent(y));
  }
  return rule->half_result ? settle_half(sum, largest - rule->fraction_bits)
                           : settle_float(sum, largest - rule->fraction_bits, rule->short_result);
}

/* ---- Eight results at a time ----
 *
 * The same rule over vectors of eight columns. Two sums of at most 33 terms below 2^27 each cannot
 * overflow 31 bits; their own sum is exact in a double, where it is cut (or rounded to f16).
 * Infinities, NaNs and results near the ends of f32's range go to add_products. */

/* The functions below never leave this file: how vectors would be passed does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"
typedef int32_t Ints __attribute__((vector_size(32)));
typedef uint32_t Unsigneds __attribute__((vector_size(32)));
typedef int16_t Shorts __attribute__((vector_size(32)));
typedef uint16_t UnsignedShorts __attribute__((vector_size(32)));
typedef int32_t FourInts __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Longs __attribute__((vector_size(32)));
typedef float FourFloats __attribute__((vector_size(16)));
enum { WIDTH = 8 };

static inline Ints load(const void *from) {
  Ints value;
  memcpy(&value, from, sizeof value);
  return value;
}
static inline Ints all(int32_t value) { return (Ints){0} + value; }
static inline Ints choose(Ints condition, Ints yes, Ints no) {
  return (condition & yes) | (~condition & no);
}

#ifdef __AVX2__
static inline Ints larger(Ints a, Ints b) { return (Ints)_mm256_max_epi32((__m256i)a, (__m256i)b); }
static inline Shorts larger_shorts(Shorts a, Shorts b) {
  return (Shorts)_mm256_max_epi16((__m256i)a, (__m256i)b);
}
static inline Ints magnitude_of(Ints a) { return (Ints)_mm256_abs_epi32((__m256i)a); }
static inline Ints with_sign(Ints a, Ints sign) {
  return (Ints)_mm256_sign_epi32((__m256i)a, (__m256i)sign);
}
static inline Ints shifted_right(Ints a, Ints by) { /* by 32 and more: 0 */
  return (Ints)_mm256_srlv_epi32((__m256i)a, (__m256i)by);
}
/* Lower half times lower half plus upper half times upper half. */
static inline Ints product(Ints a, Ints b) {
  return (Ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}
static inline bool any(Ints condition) { return _mm256_movemask_epi8((__m256i)condition) != 0; }
#else
static inline Ints larger(Ints a, Ints b) { return choose(a > b, a, b); }
static inline Shorts larger_shorts(Shorts a, Shorts b) {
  const Shorts first = a > b;
  return (first & a) | (~first & b);
}
static inline Ints magnitude_of(Ints a) { return choose(a < 0, -a, a); }
static inline Ints with_sign(Ints a, Ints sign) { return choose(sign < 0, -a, a); }
static inline Ints shifted_right(Ints a, Ints by) {
  return choose(by > 31, all(0), (Ints)((Unsigneds)a >> (Unsigneds)(by & 31)));
}
static inline Ints product(Ints a, Ints b) {
  return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
}
static inline bool any(Ints condition) {
  int32_t found = 0;
  for (int i = 0; i < WIDTH; i++) found |= condition[i];
  return found != 0;
}
#endif

typedef struct {
  Ints exponent, magnitude, sign; /* sign: negative, zero or positive */
} Accumulators;

/* Of f32 a zero has the exponent of a subnormal, an infinity or NaN 128: finish leaves results that
 * far out to add_products anyway. */
static inline Accumulators read_accumulators(bool half, Ints bits) {
  const int mantissa_bits = half ? 10 : 23, top = half ? 31 : 255;
  const Ints field = (bits >> mantissa_bits) & top;
  const Ints subnormal = field == 0;
  Accumulators result;
  result.magnitude = (bits & ((1 << mantissa_bits) - 1)) | (~subnormal & (1 << mantissa_bits));
  result.exponent = field - subnormal - (top >> 1);
  result.sign = half ? bits << 16 : bits;
  if (half) {
    result.exponent = choose(result.magnitude == 0, all(EXPONENT_ZERO), result.exponent);
    result.exponent = choose(field == top, all(EXPONENT_INFINITY), result.exponent);
  }
  return result;
}

/* (first + second) * 2^scale for four of the eight. */
static inline Doubles exact_sum(Ints first, Ints second, int from) {
  FourInts x, y;
  memcpy(&x, (const char *)&first + 4 * from, sizeof x);
  memcpy(&y, (const char *)&second + 4 * from, sizeof y);
  return __builtin_convertvector(x, Doubles) + __builtin_convertvector(y, Doubles);
}
static inline Doubles power_of_two(Ints exponent, int from) {
  FourInts four;
  memcpy(&four, (const char *)&exponent + 4 * from, sizeof four);
  return (Doubles)((__builtin_convertvector(four, Longs) + 1023) << 52);
}

/* To nearest even, in units of the last mantissa bit that f16 has for a number of this size. */
static inline Doubles rounded_to_half(Doubles value) {
  const Longs field = ((Longs)value >> 52) & 0x7ff;
  const Longs least = (Longs){0} + (1023 - 14);
  const Longs small = field < least;
  const Longs unit = ((small & least) | (~small & field)) - 10;
  const Doubles magic = (Doubles)(((unit + 52) << 52) | 0x0008000000000000ll);
  return (value + magic) - magic;
}

/* Adds the accumulators and rounds; false: add_products must do it. `of_products` is the largest
 * exponent of the products alone. */
static inline __attribute__((always_inline)) bool finish(const FloatRule *rule, bool half,
                                                         Accumulators c, Ints of_products, Ints top,
                                                         Ints even, Ints odd, uint32_t *results) {
  const int left = rule->fraction_bits - (half ? 10 : 23);
  const Ints by = top - c.exponent + (left < 0 ? -left : 0); /* by more than 31 nothing is left */
  even += with_sign(shifted_right(c.magnitude << (left > 0 ? left : 0), by), c.sign);
  if (half) {
    if (any(top > EXPONENT_SPECIAL)) return false;
    const Ints exponent = larger(top, all(-126)) - rule->fraction_bits;
    for (int i = 0; i < WIDTH; i += 4) {
      const Doubles value = rounded_to_half(exact_sum(even, odd, i) * power_of_two(exponent, i));
      const FourFloats narrow = __builtin_convertvector(value, FourFloats);
      for (int k = 0; k < 4; k++) {
        const uint32_t bits = half_of_float(narrow[k]);
        results[i + k] = (bits & 0x7fffu) != 0 ? bits : 0;
      }
    }
    return true;
  }
  /* Between 2^-100 and 2^119 nothing can leave f32's range; a plain zero is as good. */
  enum { LEAST = -100, MOST = 119 };
  const Ints far = magnitude_of(top - (LEAST + MOST) / 2) > (MOST - LEAST) / 2;
  if (any(far)) {
    const Ints nothing = ((even + odd) == 0) & (of_products < EXPONENT_ZERO + 0x100) & (top < 0);
    if (any(far & ~nothing)) return false;
  }
  const int64_t cut_off = rule->short_result ? (1ll << 39) - 1 : (1ll << 29) - 1;
  const Longs kept = (Longs){~cut_off, ~cut_off, ~cut_off, ~cut_off};
  const Ints scale = (larger(top, all(LEAST)) + (127 - rule->fraction_bits)) << 23;
  for (int i = 0; i < WIDTH; i += 4) {
    const Doubles cut = (Doubles)((Longs)exact_sum(even, odd, i) & kept);
    FourFloats factor;
    memcpy(&factor, (const char *)&scale + 4 * i, sizeof factor);
    const FourFloats narrow = __builtin_convertvector(cut, FourFloats) * factor;
    memcpy(results + i, &narrow, sizeof narrow);
  }
  return true;
}

/* B's numbers of one depth in sixteen columns: column i in the lower half of int i, column 8 + i in
 * the upper half. The exponents of both are added, compared and subtracted in one go, and a product
 * picks its half by where A's significand stands. */
typedef struct {
  Ints significands;
  Shorts exponents;
} PairsOfB;
typedef struct {
  int32_t lower, upper; /* the significand, in the lower or in the upper half */
  int32_t exponent;     /* in both halves */
} NumberOfA;

/* One row's next `step` products for sixteen columns; `done` has a flag for each eight, false when
 * add_products must do them. With width 1 only the first eight are wanted. */
static inline __attribute__((always_inline)) void add_products_wide(const FloatRule *rule,
                                                                    bool half, int step, int width,
                                                                    const NumberOfA *a,
                                                                    const PairsOfB *b,
                                                                    uint32_t *results, bool *done) {
  Shorts largest = (Shorts)all((int32_t)0x80008000u);
  for (int k = 0; k < step; k++)
    largest = larger_shorts(largest, b[k].exponents + (Shorts)all(a[k].exponent));
  const Ints of_products[2] = {((Ints)largest << 16) >> 16, (Ints)largest >> 16};
  Accumulators c[2];
  Ints top[2];
  for (int w = 0; w < 2; w++) {
    c[w] = read_accumulators(half, load(results + (w < width ? WIDTH * w : 0)));
    top[w] = larger(of_products[w], c[w].exponent);
  }
  const Shorts tops = (Shorts)((top[0] & 0xffff) | (top[1] << 16));
  Ints sums[2][2] = {{all(0), all(0)}, {all(0), all(0)}};
  for (int k = 0; k < step; k += 2)
    for (int odd = 0; odd < 2; odd++) {
      const PairsOfB *pairs = &b[k + odd];
      const NumberOfA *number = &a[k + odd];
      const Shorts exponents = pairs->exponents + (Shorts)all(number->exponent);
      const Ints by = (Ints)((UnsignedShorts)tops - (UnsignedShorts)exponents);
      const Ints first = product(pairs->significands, all(number->lower));
      const Ints second = product(pairs->significands, all(number->upper));
      sums[0][odd] += with_sign(shifted_right(magnitude_of(first), by & 0xffff), first);
      sums[1][odd] +=
          with_sign(shifted_right(magnitude_of(second), (Ints)((Unsigneds)by >> 16)), second);
    }
  for (int w = 0; w < width; w++)
    done[w] = finish(rule, half, c[w], of_products[w], top[w], sums[w][0], sums[w][1],
                     results + WIDTH * w);
}

static inline __attribute__((always_inline)) void multiply_step(
    const FloatRule *rule, bool half, int step, int rows, int columns, int depth, const Packed *a,
    size_t a_pitch, const Packed *b, size_t b_pitch, uint32_t *accumulators,
    size_t accumulator_pitch) {
  enum { MOST_ROWS = 16, MOST_STEP = 64 };
  NumberOfA left[MOST_ROWS * MOST_STEP];
  PairsOfB right[MOST_STEP];
  for (int first = 0; first < depth; first += step) {
    for (int row = 0; row < rows; row++)
      for (int k = 0; k < step; k++) {
        const uint32_t number = (uint32_t)a[(size_t)row * a_pitch + (size_t)(first + k)];
        left[row * step + k] = (NumberOfA){(int32_t)(number & 0xffffu), (int32_t)(number << 16),
                                           (int32_t)(number >> 16 | (number & 0xffff0000u))};
      }
    for (int column = 0; column < columns; column += 2 * WIDTH) {
      const int width = columns - column > WIDTH ? 2 : 1;
      const Packed *block = b + (size_t)first * b_pitch + column;
      for (int k = 0; k < step; k++) {
        const Ints low = load(block + (size_t)k * b_pitch);
        const Ints high =
            width == 2 ? load(block + (size_t)k * b_pitch + WIDTH) : all(absent_number);
        right[k].significands = (low & 0xffff) | (high << 16);
        right[k].exponents = (Shorts)((Ints)((Unsigneds)low >> 16) | (high & (int32_t)0xffff0000u));
      }
      for (int row = 0; row < rows; row++) {
        uint32_t *results = &accumulators[(size_t)row * accumulator_pitch + (size_t)column];
        bool done[2] = {true, true};
        if (width == 2)
          add_products_wide(rule, half, step, 2, left + row * step, right, results, done);
        else
          add_products_wide(rule, half, step, 1, left + row * step, right, results, done);
        for (int i = 0; i < WIDTH * width; i++)
          if (!done[i / WIDTH])
            results[i] = add_products(rule, a + (size_t)row * a_pitch + first, block + i, b_pitch,
                                      results[i]);
      }
    }
  }
}

void multiply_floats(const FloatRule *rule, int rows, int columns, int depth, const Packed *a,
                     size_t a_pitch, const Packed *b, size_t b_pitch, uint32_t *accumulators,
                     size_t accumulator_pitch) {
#define STEP(half, count)                                                                      \
  multiply_step(rule, half, count, rows, columns, depth, a, a_pitch, b, b_pitch, accumulators, \
                accumulator_pitch)
  if (rule->half_result && rule->step == 16) { /* known counts make better code */
    STEP(true, 16);
  } else if (rule->half_result) {
    STEP(true, rule->step);
  } else {
    switch (rule->step) {
      case 8:
        STEP(false, 8);
        break;
      case 16:
        STEP(false, 16);
        break;
      case 32:
        STEP(false, 32);
        break;
      default:
        STEP(false, rule->step);
        break;
    }
  }
#undef STEP
}

/* ---- Integers ---- */

int16_t extend_integer(NumberFormat format, uint32_t bits) {
  switch (format) {
    case NUMBER_S8:
      return (int8_t)bits;
    case NUMBER_U8:
      return (int16_t)(bits & 0xffu);
    case NUMBER_S4:
      return (int16_t)((int)((bits & 0xfu) ^ 8u) - 8);
    default:
      return (int16_t)(bits & 0xfu);
  }
}

void multiply_integers(bool saturate, int rows, int columns, int depth, const int16_t *a,
                       size_t a_pitch, const int16_t *b, size_t b_pitch, uint32_t *accumulators,
                       size_t accumulator_pitch) {
  for (int row = 0; row < rows; row++)
    for (int first = 0; first < columns; first += 32) {
      const int count = columns - first < 32 ? columns - first : 32;
      int32_t sums[32] = {0}; /* at most 128 products of 16 bits: no overflow */
      for (int k = 0; k < depth; k++) {
        const int32_t x = a[(size_t)row * a_pitch + (size_t)k];
        const int16_t *y = &b[(size_t)k * b_pitch + (size_t)first];
        if (count == 32)
          for (int i = 0; i < 32; i++) sums[i] += x * y[i];
        else
          for (int i = 0; i < count; i++) sums[i] += x * y[i];
      }
      uint32_t *results = &accumulators[(size_t)row * accumulator_pitch + (size_t)first];
      for (int i = 0; i < count; i++) {
        const int64_t exact = (int64_t)(int32_t)results[i] + sums[i];
        const int64_t bounded = exact > INT32_MAX   ? INT32_MAX
                                : exact < INT32_MIN ? INT32_MIN
                                                    : exact;
        results[i] = (uint32_t)(saturate ? bounded : exact);
      }
    }
}

/* ---- Doubles ---- */

static bool is_nan(uint64_t bits) { return (bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull; }

uint64_t multiply_add_double(uint64_t a, uint64_t b, uint64_t c) {
  /* A NaN comes out as it went in, made quiet; of several, b's goes before c's before a's. */
  const uint64_t quiet = 0x0008000000000000ull;
  if (is_nan(b)) return b | quiet;
  if (is_nan(c)) return c | quiet;
  if (is_nan(a)) return a | quiet;
  double x, y, z;
  memcpy(&x, &a, 8);
  memcpy(&y, &b, 8);
  memcpy(&z, &c, 8);
  const double result = __builtin_fma(x, y, z);
  uint64_t bits;
  memcpy(&bits, &result, 8);
  return is_nan(bits) ? 0xfff8000000000000ull : bits;
}

/* ---- Plain float arithmetic, for EMULATOR_MATH=fast ---- */

static float widen(NumberFormat format, uint32_t bits) {
  switch (format) {
    case NUMBER_F16:
      return float_of_half((uint16_t)bits);
    case NUMBER_BF16:
      return half_float(bits << 16);
    case NUMBER_TF32:
      return half_float(bits & 0xffffe000u);
    case NUMBER_E5M2:
      return float_of_half((uint16_t)(bits << 8));
    default: {
      /* e4m3 in f16's places has an exponent 8 too small: 2^8 puts it right, subnormals too. */
      const uint32_t half = (bits & 0x80u) << 8 | (bits & 0x7fu) << 7;
      return (bits & 0x7fu) == 0x7fu ? half_float(0x7fffffffu)
                                     : float_of_half((uint16_t)half) * 256.0f;
    }
  }
}

void widen_numbers(NumberFormat format, bool negate, const uint32_t *numbers, float *floats,
                   size_t count) {
  for (size_t i = 0; i < count; i++)
    floats[i] = negate ? -widen(format, numbers[i]) : widen(format, numbers[i]);
}

void multiply_floats_fast(bool half_result, int rows, int columns, int depth, const float *a,
                          size_t a_pitch, const float *b, size_t b_pitch, uint32_t *accumulators,
                          size_t accumulator_pitch) {
  for (int row = 0; row < rows; row++) {
    uint32_t *results = &accumulators[(size_t)row * accumulator_pitch];
    for (int first = 0; first < columns; first += 32) {
      const int count = columns - first < 32 ? columns - first : 32;
      float sums[32];
      for (int i = 0; i < count; i++)
        sums[i] = half_result ? float_of_half((uint16_t)results[first + i])
                              : half_float(results[first + i]);
      for (int k = 0; k < depth; k++) {
        const float x = a[(size_t)row * a_pitch + (size_t)k];
        const float *y = &b[(size_t)k * b_pitch + (size_t)first];
        if (count == 32)
          for (int i = 0; i < 32; i++) sums[i] = __builtin_fmaf(x, y[i], sums[i]);
        else
          for (int i = 0; i < count; i++) sums[i] = __builtin_fmaf(x, y[i], sums[i]);
      }
      for (int i = 0; i < count; i++)
        results[first + i] = half_result ? half_of_float(sums[i]) : half_bits(sums[i]);
    }
  }
}
