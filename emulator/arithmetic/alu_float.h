/* alu_float.h: shared by the floating-point instructions. */
#pragma once

#include "arithmetic/alu.h"

/* f32 arithmetic always returns this NaN. f64 arithmetic returns its NaN operand, made quiet, and
 * for new NaNs the second constant. */
#define CANONICAL_NAN 0x7fffffffu
#define DEFAULT_NAN_F64 0xfff8000000000000ull
#define QUIET_BIT_F64 0x0008000000000000ull

static inline uint32_t flush(uint32_t bits) {
  return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}
static inline float flushed(uint32_t bits) { return float_of(flush(bits)); }
static inline uint32_t float_result(float value) {
  return value != value ? CANONICAL_NAN : bits_of_float(value);
}
static inline bool nan_f64(uint64_t bits) {
  return (bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
}
static inline uint64_t double_result1(double value, uint64_t a) {
  uint64_t nan = nan_f64(a) ? a | QUIET_BIT_F64 : DEFAULT_NAN_F64;
  return value != value ? nan : bits_of_double(value);
}
static inline uint64_t double_result2(double value, uint64_t a, uint64_t b) {
  uint64_t nan = nan_f64(b) ? b | QUIET_BIT_F64 : nan_f64(a) ? a | QUIET_BIT_F64 : DEFAULT_NAN_F64;
  return value != value ? nan : bits_of_double(value);
}
static inline uint64_t double_result3(double value, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t nan = nan_f64(c) ? c | QUIET_BIT_F64 : double_result2(value, a, b);
  return value != value ? nan : bits_of_double(value);
}
/* .ftz of a result flushes what would be subnormal with an unbounded exponent. `exact` is the
 * result before rounding to f32. The host's rounding mode is the instruction's. */
static inline uint32_t flush_result(uint32_t rounded, double exact) {
  bool tiny = __builtin_fabsf((float)(exact * 0x1p64)) < 0x1p-62f;
  return tiny || (rounded & 0x7f800000u) == 0 ? rounded & 0x80000000u : rounded;
}
/* .sat: clamps to [0, 1]. NaN and -0 become +0. */
static inline uint32_t float_saturated(float value) {
  float low = value > 0.0f ? value : 0.0f;
  return bits_of_float(low < 1.0f ? low : 1.0f);
}

typedef enum { ROUND_NONE, ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA } Rounding;
Rounding form_rounding(Form *form); /* takes .rn .rz .rm .rp */

typedef enum { FLOAT_ADD, FLOAT_SUB, FLOAT_MUL, FLOAT_DIV, FLOAT_FMA, FLOAT_SQRT } FloatOperation;
typedef struct {
  FloatOperation operation;
  Rounding rounding;
  bool flush, saturate;
} Directed;
bool directed_end(Form *form, FloatOperation operation, Type type, Rounding rounding, bool flush_,
                  bool saturate, int sources);

/* alu_special.c: .approx or .full */
void divide_lanes(const uint32_t *a, const uint32_t *b, bool full, bool flush_, uint32_t *result);
