/* tensor_math.c: the arithmetic of the tensor cores (see tensor_math.h for the rule). */
#include "tensor_core/tensor_math.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "tensor_core/host_vectors.h"

/* Values that are not real exponents. They keep their order when two are added. */
enum {
  EXPONENT_ZERO = -0x400,
  EXPONENT_INFINITY = 0x1000,
  EXPONENT_NAN = 0x2000,
  EXPONENT_SPECIAL = 0x800 /* a larger sum involves an infinity or a NaN */
};

uint32_t number_bits(NumberFormat format) {
  return format == NUMBER_TF32 ? 32 : format == NUMBER_F16 || format == NUMBER_BF16 ? 16 : 8;
}

/* ---- One result at a time: the rule as it is written, for every value there is ---- */

typedef struct {
  int exponent;
  int64_t significand; /* with 23 (f32) or 10 (f16) fraction bits */
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

/* sum * 2^scale as f32, rounded toward zero. */
static uint32_t settle_float(int64_t sum, int scale, bool short_result) {
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0u;
  const uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
  const int exponent = 63 - __builtin_clzll(magnitude) + scale;
  if (exponent > 127) return sign | 0x7f800000u;
  const int unit = exponent < -126 ? -149 : exponent - 23; /* exponent of the last mantissa bit */
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
  /* Rounding up may carry into the exponent, up to infinity. The encoding makes this correct. */
  if (exponent < -14) return mantissa == 0 ? 0 : sign | (uint32_t)mantissa;
  return sign | (uint32_t)(((uint64_t)(exponent + 14) << 10) + mantissa);
}

/* Rounded toward zero. */
static int64_t shifted(int64_t value, int right) {
  const uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
  const uint64_t cut = right > 63 ? 0 : right >= 0 ? magnitude >> right : magnitude << -right;
  return value < 0 ? -(int64_t)cut : (int64_t)cut;
}

static double power_of_two(int exponent) { return double_of((uint64_t)(exponent + 1023) << 52); }

/* One row of A, a column of B. */
static uint32_t add_products(const FloatRule *rule, const float *a, const int16_t *a_exponents,
                             FloatMatrix b, uint32_t accumulator) {
  const Accumulator c = read_accumulator(rule->half_result, accumulator);
  const uint32_t infinity = rule->half_result ? 0x7c00u : 0x7f800000u;
  const uint32_t minus = rule->half_result ? 0x8000u : 0x80000000u;
  int largest = c.exponent;
  bool nan = c.exponent == EXPONENT_NAN;
  bool positive = c.exponent == EXPONENT_INFINITY && c.significand > 0;
  bool negative = c.exponent == EXPONENT_INFINITY && c.significand < 0;
  for (int k = 0; k < rule->step; k++) {
    const int x = a_exponents[k], y = b.exponents[(size_t)k * b.pitch];
    if (x + y > EXPONENT_SPECIAL) {
      if (x == EXPONENT_NAN || y == EXPONENT_NAN || x == EXPONENT_ZERO || y == EXPONENT_ZERO)
        nan = true;
      else if (signbit(a[k]) != signbit(b.values[(size_t)k * b.pitch]))
        negative = true;
      else
        positive = true;
    }
    if (x + y > largest) largest = x + y;
  }
  if (nan || (positive && negative)) return rule->half_result ? 0x7fffu : 0x7fffffffu;
  if (positive) return infinity;
  if (negative) return minus | infinity;
  const int c_place = rule->half_result ? 10 : 23;
  int64_t sum = shifted(c.significand, largest - c.exponent + c_place - rule->fraction_bits);
  /* Only zeros have such a small exponent. */
  const double scale = largest < -900 ? 0 : power_of_two(rule->fraction_bits - largest);
  for (int k = 0; k < rule->step; k++)
    sum += (int64_t)((double)a[k] * (double)b.values[(size_t)k * b.pitch] * scale);
  return rule->half_result ? settle_half(sum, largest - rule->fraction_bits)
                           : settle_float(sum, largest - rule->fraction_bits, rule->short_result);
}

/* ---- Many results at a time ----
 *
 * The same rule over vectors of columns. A product of two numbers is exact in a float. Multiplying
 * by 2^(fraction_bits - largest exponent) is exact as well, and the conversion to an integer
 * truncates toward zero. Half of the products of a step sum to less than 2^30, so a 32-bit sum
 * holds them. The sum of both halves and the accumulator may overflow, but this is very rare. Such
 * results, infinities, NaNs and results near the limits of f32's range go to add_products. */

typedef int16_t Shorts __attribute__((vector_size(VECTOR_BYTES)));
typedef int16_t HalfOfShorts __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef int32_t FourInts __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Longs __attribute__((vector_size(32)));
typedef float FourFloats __attribute__((vector_size(16)));

static inline Ints load_operand(const void *from) {
  Ints value;
  memcpy(&value, from, sizeof value);
  return value;
}
static inline Ints splat(int32_t value) { return (Ints){0} + value; }
static inline Floats floats_of(Ints value) { return __builtin_convertvector(value, Floats); }
static inline Ints truncate_floats(Floats value) { return __builtin_convertvector(value, Ints); }
/* Rounded toward zero; without AVX-512 in this mode only. */
static inline Floats truncated_floats(Ints value) {
#ifdef __AVX512BW__
  return (Floats)_mm512_cvt_roundepi32_ps((__m512i)value, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  return floats_of(value);
#endif
}

#if defined(__AVX512BW__)
static inline Ints larger(Ints a, Ints b) { return (Ints)_mm512_max_epi32((__m512i)a, (__m512i)b); }
static inline Shorts larger_shorts(Shorts a, Shorts b) {
  return (Shorts)_mm512_max_epi16((__m512i)a, (__m512i)b);
}
static inline bool any_negative(Ints a) {
  return _mm512_cmplt_epi32_mask((__m512i)a, _mm512_setzero_si512()) != 0;
}
#elif defined(__AVX2__)
static inline Ints larger(Ints a, Ints b) { return (Ints)_mm256_max_epi32((__m256i)a, (__m256i)b); }
static inline Shorts larger_shorts(Shorts a, Shorts b) {
  return (Shorts)_mm256_max_epi16((__m256i)a, (__m256i)b);
}
static inline bool any_negative(Ints a) { return _mm256_movemask_ps((__m256)a) != 0; }
#else
static inline Ints larger(Ints a, Ints b) {
  const Ints first = a > b;
  return (first & a) | (~first & b);
}
static inline Shorts larger_shorts(Shorts a, Shorts b) {
  const Shorts first = a > b;
  return (first & a) | (~first & b);
}
static inline bool any_negative(Ints a) {
  int32_t found = 0;
  for (int i = 0; i < WIDTH; i++) found |= a[i];
  return found < 0;
}
#endif

/* ---- Numbers as floats and exponents ---- */

/* `spare`: bits of the container below the number (tf32 uses the upper 19 bits of 32; the rest is
 * ignored). */
typedef struct {
  int exponent_bits, mantissa_bits, spare;
  bool has_infinity, negate;
} NumberLayout;

__attribute__((always_inline)) static inline void read_vector(NumberLayout layout, Ints numbers,
                                                              float *values, int16_t *exponents) {
  const int mantissa_bits = layout.mantissa_bits, width = layout.exponent_bits + mantissa_bits;
  const int32_t top = (1 << layout.exponent_bits) - 1, mantissa_mask = (1 << mantissa_bits) - 1;
  const Ints number = (Ints)((Unsigneds)numbers >> layout.spare);
  const Ints field = (number >> mantissa_bits) & top, mantissa = number & mantissa_mask;
  const Ints sign = ((number >> width) ^ (layout.negate ? 1 : 0)) << 31;
  const Ints subnormal = field == 0;
  const Ints exponent = field - subnormal - (top >> 1);
  Ints full = field == top, value;
  if (!layout.has_infinity) full &= mantissa == mantissa_mask;
  if (layout.exponent_bits == 8) { /* the upper part of a float */
    value = (number & ((1 << width) - 1)) << (23 - mantissa_bits);
  } else {
    const Ints significand = mantissa | (~subnormal & (mantissa_mask + 1));
    value = (Ints)(floats_of(significand) * (Floats)((exponent - mantissa_bits + 127) << 23));
  }
  const Ints zero = subnormal & (mantissa == 0);
  const Ints infinite = mantissa == (layout.has_infinity ? 0 : -1);
  const Ints special = EXPONENT_NAN + (infinite & (EXPONENT_INFINITY - EXPONENT_NAN));
  const Ints finite = (zero & EXPONENT_ZERO) | (~zero & exponent);
  const HalfOfShorts narrow =
      __builtin_convertvector((full & special) | (~full & finite), HalfOfShorts);
  value = (value & ~full) | sign;
  memcpy(values, &value, sizeof value);
  memcpy(exponents, &narrow, sizeof narrow);
}

__attribute__((always_inline)) static inline void read_layout(NumberLayout layout,
                                                              const uint32_t *numbers,
                                                              FloatMatrix matrix, size_t count) {
  size_t i = 0;
  for (; i + WIDTH <= count; i += WIDTH)
    read_vector(layout, load_operand(numbers + i), matrix.values + i, matrix.exponents + i);
  if (i == count) return;
  uint32_t last[WIDTH] = {0};
  float values[WIDTH];
  int16_t exponents[WIDTH];
  memcpy(last, numbers + i, (count - i) * sizeof *last);
  read_vector(layout, load_operand(last), values, exponents);
  memcpy(matrix.values + i, values, (count - i) * sizeof *values);
  memcpy(matrix.exponents + i, exponents, (count - i) * sizeof *exponents);
}

void read_numbers(NumberFormat format, bool negate, const uint32_t *numbers, FloatMatrix matrix,
                  size_t count) {
  switch (format) { /* constant widths make better code */
    case NUMBER_F16:
      read_layout((NumberLayout){5, 10, 0, true, negate}, numbers, matrix, count);
      break;
    case NUMBER_BF16:
      read_layout((NumberLayout){8, 7, 0, true, negate}, numbers, matrix, count);
      break;
    case NUMBER_TF32:
      read_layout((NumberLayout){8, 10, 13, true, negate}, numbers, matrix, count);
      break;
    case NUMBER_E4M3:
      read_layout((NumberLayout){4, 3, 0, false, negate}, numbers, matrix, count);
      break;
    default:
      read_layout((NumberLayout){5, 2, 0, true, negate}, numbers, matrix, count);
      break;
  }
}

/* ---- Sums ---- */

/* For f32, a zero gets nearly the exponent of a subnormal, and an infinity or NaN gets 128. Such
 * extreme results are left to add_products anyway. (Always inline: a host without AVX cannot pass
 * such a vector.) */
__attribute__((always_inline)) static inline Ints accumulator_exponents(bool half, Ints bits) {
  if (!half) return ((bits >> 23) & 255) - 127;
  const Ints field = (bits >> 10) & 31, nothing = (bits & 0x7fff) == 0;
  const Ints exponent = field - (field == 0) - 15;
  return (nothing & EXPONENT_ZERO) | ((field == 31) & EXPONENT_INFINITY) |
         (~nothing & (field != 31) & exponent);
}

static inline Floats accumulator_values(bool half, Ints bits) {
  if (!half) return (Floats)bits;
  const Floats shifted = (Floats)((bits & 0x7fff) << 13); /* its exponent is 112 too small */
  return (Floats)((Ints)(shifted * 0x1p112f) | (bits & 0x8000) << 16);
}

/* To nearest even, in units of the last mantissa bit of an f16 number of this size. */
static inline Doubles rounded_to_half(Doubles value) {
  const Longs field = ((Longs)value >> 52) & 0x7ff;
  const Longs least = (Longs){0} + (1023 - 14);
  const Longs small = field < least;
  const Longs unit = ((small & least) | (~small & field)) - 10;
  const Doubles magic = (Doubles)(((unit + 52) << 52) | 0x0008000000000000ll);
  return (value + magic) - magic;
}

/* sums * 2^exponents as f16. */
static inline void settle_halves(Ints sums, Ints exponents, uint32_t *results) {
  for (int i = 0; i < WIDTH; i += 4) {
    FourInts sum, exponent;
    memcpy(&sum, (const char *)&sums + 4 * i, sizeof sum);
    memcpy(&exponent, (const char *)&exponents + 4 * i, sizeof exponent);
    const Doubles scale = (Doubles)((__builtin_convertvector(exponent, Longs) + 1023) << 52);
    const Doubles value = rounded_to_half(__builtin_convertvector(sum, Doubles) * scale);
    const FourFloats narrow = __builtin_convertvector(value, FourFloats);
    for (int k = 0; k < 4; k++) {
      const uint32_t bits = half_of_float(narrow[k]);
      results[i + k] = (bits & 0x7fffu) != 0 ? bits : 0;
    }
  }
}

/* One row of A at the depths of a step, ready to be broadcast to vectors. */
typedef struct {
  const float *values;
  const int32_t *exponents; /* each in both halves */
} RowOfA;

/* B's numbers at one depth, for all columns that are multiplied together. */
enum { BLOCK = 2 * WIDTH };
typedef struct {
  _Alignas(VECTOR_BYTES) float values[BLOCK];
  int16_t exponents[BLOCK];
} NumbersOfB;

/* One row's next `step` products for a block. Returns a bit mask of the vectors whose columns
 * add_products must compute. With width 1 only the first vector is computed. */
static inline __attribute__((always_inline)) unsigned add_products_wide(const FloatRule *rule,
                                                                        bool half, int step,
                                                                        int width, RowOfA a,
                                                                        const NumbersOfB *b,
                                                                        uint32_t *results) {
  enum { LEAST = -100, MOST = 119 }; /* between 2^-100 and 2^119 nothing can exceed f32's range */
  Shorts largest = (Shorts)splat((int32_t)0x80008000u);
  for (int k = 0; k < step; k++)
    largest = larger_shorts(largest,
                            (Shorts)load_operand(b[k].exponents) + (Shorts)splat(a.exponents[k]));
  unsigned left_out = 0;
  for (int w = 0; w < width; w++) {
    HalfOfShorts part;
    memcpy(&part, (const char *)&largest + w * (int)sizeof part, sizeof part);
    const Ints of_products = __builtin_convertvector(part, Ints);
    const Ints c = load_operand(results + WIDTH * w);
    const Ints top = larger(of_products, accumulator_exponents(half, c));
    const Ints far = (top - LEAST) | (MOST - top);
    if (any_negative(far)) {
      /* A sum of only zeros is a positive zero. */
      const Ints nothing = ((c << (half ? 17 : 1)) == 0) & (of_products < EXPONENT_ZERO + 0x100);
      if (any_negative(far & ~nothing)) {
        left_out |= 1u << w;
        continue;
      }
    }
    const Ints exponents = larger(top, splat(LEAST)) - rule->fraction_bits;
    const Floats scale = (Floats)((127 - exponents) << 23);
    Unsigneds first = {0}, second = (Unsigneds)truncate_floats(accumulator_values(half, c) * scale);
    for (int k = 0; k < step; k++) {
      const Floats right = (Floats)load_operand(b[k].values + WIDTH * w);
      const Unsigneds product = (Unsigneds)truncate_floats(right * a.values[k] * scale);
      if (k < step / 2)
        first += product;
      else
        second += product;
    }
    const Unsigneds sum = first + second;
    if (any_negative((Ints)((first ^ sum) & (second ^ sum)))) { /* an overflow */
      left_out |= 1u << w;
    } else if (half) {
      settle_halves((Ints)sum, exponents, results + WIDTH * w);
    } else {
      Ints bits = (Ints)(truncated_floats((Ints)sum) * (Floats)((exponents + 127) << 23));
      if (rule->short_result) bits &= ~0x3ff;
      memcpy(results + WIDTH * w, &bits, sizeof bits);
    }
  }
  return left_out;
}

/* `columns` numbers in blocks of BLOCK; a constant count compiles to vector moves. */
__attribute__((always_inline)) static inline void take_block(const float *values,
                                                             const int16_t *exponents, size_t count,
                                                             NumbersOfB *block) {
  memcpy(block->values, values, count * sizeof *values);
  memcpy(block->exponents, exponents, count * sizeof *exponents);
}

/* One step's numbers of B for the columns from `column` on. */
static inline __attribute__((always_inline)) void take_blocks(FloatMatrix b, int step, int first,
                                                              size_t column, size_t count,
                                                              NumbersOfB *blocks) {
  for (int k = 0; k < step; k++) {
    const size_t at = (size_t)(first + k) * b.pitch + column;
    const float *values = b.values + at;
    const int16_t *exponents = b.exponents + at;
    if (count == BLOCK)
      take_block(values, exponents, BLOCK, &blocks[k]);
    else if (count == WIDTH)
      take_block(values, exponents, WIDTH, &blocks[k]);
    else if (count == 8)
      take_block(values, exponents, 8, &blocks[k]);
    else
      take_block(values, exponents, count, &blocks[k]);
  }
}

/* What add_products_wide has left out. */
__attribute__((noinline)) static void add_left_out(const FloatRule *rule, unsigned left_out,
                                                   size_t count, const float *a,
                                                   const int16_t *a_exponents, FloatMatrix b,
                                                   uint32_t *results) {
  for (size_t i = 0; i < count; i++)
    if (left_out >> i / WIDTH & 1u)
      results[i] = add_products(rule, a, a_exponents,
                                (FloatMatrix){b.values + i, b.exponents + i, b.pitch}, results[i]);
}

static inline __attribute__((always_inline)) void multiply_step(
    const FloatRule *rule, bool half, int step, int rows, int columns, int depth, FloatMatrix a,
    FloatMatrix b, uint32_t *accumulators, size_t accumulator_pitch) {
  enum { MOST_ROWS = 16, MOST_STEP = 64 };
  int32_t left[MOST_ROWS * MOST_STEP];
  NumbersOfB right[MOST_STEP];
  uint32_t part[BLOCK] = {0}; /* for the last columns, where a full vector would not fit */
  if (columns % BLOCK) memset(right, 0, (size_t)step * sizeof *right);
  for (int first = 0; first < depth; first += step) {
    for (int row = 0; row < rows; row++)
      for (int k = 0; k < step; k++) {
        const uint16_t exponent =
            (uint16_t)a.exponents[(size_t)row * a.pitch + (size_t)(first + k)];
        left[row * step + k] = (int32_t)(exponent * 0x10001u);
      }
    for (int column = 0; column < columns; column += BLOCK) {
      const size_t count = (size_t)(columns - column < BLOCK ? columns - column : BLOCK);
      const size_t block = (size_t)first * b.pitch + (size_t)column;
      take_blocks(b, step, first, (size_t)column, count, right);
      for (int row = 0; row < rows; row++) {
        uint32_t *results = &accumulators[(size_t)row * accumulator_pitch + (size_t)column];
        uint32_t *target = count % WIDTH ? memcpy(part, results, count * 4) : results;
        const size_t from = (size_t)row * a.pitch + (size_t)first;
        const RowOfA numbers = {a.values + from, left + row * step};
        const unsigned left_out =
            count > WIDTH ? add_products_wide(rule, half, step, 2, numbers, right, target)
                          : add_products_wide(rule, half, step, 1, numbers, right, target);
        if (count % WIDTH) memcpy(results, part, count * 4);
        if (left_out)
          add_left_out(rule, left_out, count, a.values + from, a.exponents + from,
                       (FloatMatrix){b.values + block, b.exponents + block, b.pitch}, results);
      }
    }
  }
}

/* For f32, sums are truncated, not rounded, when converted to floats. Without AVX-512 the mode says so;
 * everything else here is exact in either mode. */
#ifdef __AVX512BW__
static int truncate_sums(void) { return 0; }
static void round_sums(int mode) { (void)mode; }
#else
static int truncate_sums(void) {
  const int mode = fegetround();
  fesetround(FE_TOWARDZERO);
  return mode;
}
static void round_sums(int mode) { fesetround(mode); }
#endif

void multiply_floats(const FloatRule *rule, int rows, int columns, int depth, FloatMatrix a,
                     FloatMatrix b, uint32_t *accumulators, size_t accumulator_pitch) {
#define STEP(half, count) \
  multiply_step(rule, half, count, rows, columns, depth, a, b, accumulators, accumulator_pitch)
  if (rule->half_result) {
    if (rule->step == 16) /* constant counts make better code */
      STEP(true, 16);
    else
      STEP(true, rule->step);
    return;
  }
  const int mode = truncate_sums();
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
  round_sums(mode);
#undef STEP
}

/* ---- Integers ---- */

int16_t extend_integer(NumberFormat format, uint32_t bits) {
  return format == NUMBER_S8 ? (int8_t)bits : (uint8_t)bits;
}

void extend_integers(NumberFormat format, const uint32_t *bits, int16_t *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) numbers[i] = extend_integer(format, bits[i]);
}

/* The sums of the products of two 16-bit numbers in each place. */
#if defined(__AVX512BW__)
static inline Ints products_of_pairs(Ints a, Ints b) {
  return (Ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
static inline Ints products_of_pairs(Ints a, Ints b) {
  return (Ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}
#else
__attribute__((always_inline)) static inline Ints products_of_pairs(Ints a, Ints b) {
  return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
}
#endif

/* B's numbers of up to WIDTH columns, two of each column side by side. */
enum { MOST_DEPTH = 32 };
typedef struct {
  Ints pairs[MOST_DEPTH / 2];
} PairsOfB;

__attribute__((always_inline)) static inline void take_pairs(const int16_t *b, size_t pitch,
                                                             int depth, size_t count,
                                                             PairsOfB *taken) {
  for (int k = 0; k < depth; k += 2) {
    HalfOfShorts first = {0}, second = {0};
    memcpy(&first, b + (size_t)k * pitch, count * sizeof *b);
    memcpy(&second, b + (size_t)(k + 1) * pitch, count * sizeof *b);
    taken->pairs[k / 2] = (__builtin_convertvector(first, Ints) & 0xffff) |
                          __builtin_convertvector(second, Ints) << 16;
  }
}

/* results += sums; INT32_MAX or INT32_MIN where that does not fit. */
__attribute__((always_inline)) static inline Ints saturated_sum(Ints results, Ints sums) {
  const Ints sum = (Ints)((Unsigneds)results + (Unsigneds)sums);
  const Ints overflow = ((results ^ sum) & (sums ^ sum)) >> 31;
  return (sum & ~overflow) | (((sum >> 31) ^ INT32_MIN) & overflow);
}

void multiply_integers(bool saturate, int rows, int columns, int depth, const int16_t *a,
                       size_t a_pitch, const int16_t *b, size_t b_pitch, uint32_t *accumulators,
                       size_t accumulator_pitch) {
  for (int first = 0; first < columns; first += WIDTH) {
    const size_t count = (size_t)(columns - first < WIDTH ? columns - first : WIDTH);
    PairsOfB right;
    if (count == WIDTH) /* a constant count compiles to vector moves */
      take_pairs(b + first, b_pitch, depth, WIDTH, &right);
    else
      take_pairs(b + first, b_pitch, depth, count, &right);
    for (int row = 0; row < rows; row++) {
      uint32_t *results = &accumulators[(size_t)row * accumulator_pitch + (size_t)first];
      uint32_t part[WIDTH] = {0};
      Ints sums = {0}; /* at most 32 products of 18 bits: no overflow */
      for (int k = 0; k < depth; k += 2) {
        int32_t pair;
        memcpy(&pair, &a[(size_t)row * a_pitch + (size_t)k], sizeof pair);
        sums += products_of_pairs(splat(pair), right.pairs[k / 2]);
      }
      uint32_t *target = count < WIDTH ? memcpy(part, results, count * 4) : results;
      const Ints before = load_operand(target);
      const Ints after =
          saturate ? saturated_sum(before, sums) : (Ints)((Unsigneds)before + (Unsigneds)sums);
      memcpy(target, &after, sizeof after);
      if (count < WIDTH) memcpy(results, part, count * 4);
    }
  }
}
