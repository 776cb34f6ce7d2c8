/* alu_float.c: f32 and f64 arithmetic: add sub mul fma mad div abs neg min max testp copysign.
 *
 * The host does rounding to nearest even, and a NaN is replaced by the GPU's NaN. The directed
 * roundings are rare. They switch the host's rounding mode for one instruction, with volatile
 * operands so that the compiler moves nothing across the switch. */
#include "arithmetic/alu_float.h"

#include <fenv.h>

/* ---- To nearest even ---- */

/* HANDLERs of f32 with and without .ftz and .sat; x, y, z are the sources as floats. */
#define WITH_FLOATS2(read, expression)    \
  ({                                      \
    const float x = read(a), y = read(b); \
    (expression);                         \
  })
#define WITH_FLOATS3(read, expression)                 \
  ({                                                   \
    const float x = read(a), y = read(b), z = read(c); \
    (expression);                                      \
  })
#define FLOAT2(name, expression, exact)                                                     \
  HANDLER2(name##_f32, 32, 32, 32, float_result(WITH_FLOATS2(float_of, expression)))        \
  HANDLER2(name##_f32_ftz, 32, 32, 32,                                                      \
           WITH_FLOATS2(flushed, flush_result(float_result(expression), exact)))            \
  HANDLER2(name##_f32_sat, 32, 32, 32, float_saturated(WITH_FLOATS2(float_of, expression))) \
  HANDLER2(name##_f32_ftz_sat, 32, 32, 32,                                                  \
           WITH_FLOATS2(flushed, flush_result(float_saturated(expression), exact)))         \
  static const Execute name##_f32_table[4] = {name##_f32, name##_f32_ftz, name##_f32_sat,   \
                                              name##_f32_ftz_sat};
#define FLOAT3(name, expression, exact)                                                         \
  HANDLER3(name##_f32, 32, 32, 32, 32, float_result(WITH_FLOATS3(float_of, expression)))        \
  HANDLER3(name##_f32_ftz, 32, 32, 32, 32,                                                      \
           WITH_FLOATS3(flushed, flush_result(float_result(expression), exact)))                \
  HANDLER3(name##_f32_sat, 32, 32, 32, 32, float_saturated(WITH_FLOATS3(float_of, expression))) \
  HANDLER3(name##_f32_ftz_sat, 32, 32, 32, 32,                                                  \
           WITH_FLOATS3(flushed, flush_result(float_saturated(expression), exact)))             \
  static const Execute name##_f32_table[4] = {name##_f32, name##_f32_ftz, name##_f32_sat,       \
                                              name##_f32_ftz_sat};
FLOAT2(add, x + y, x + y) /* subnormal sums are exact */
FLOAT2(sub, x - y, x - y)
FLOAT2(mul, x *y, (double)x *(double)y)
FLOAT2(div, x / y, (double)x / (double)y)
FLOAT3(fma, __builtin_fmaf(x, y, z), (double)x *(double)y + (double)z)

HANDLER2(add_f64, 64, 64, 64, double_result2(double_of(a) + double_of(b), a, b))
HANDLER2(sub_f64, 64, 64, 64, double_result2(double_of(a) - double_of(b), a, b))
HANDLER2(mul_f64, 64, 64, 64, double_result2(double_of(a) * double_of(b), a, b))
HANDLER2(div_f64, 64, 64, 64, double_result2(double_of(a) / double_of(b), b, a))
HANDLER3(fma_f64, 64, 64, 64, 64,
         double_result3(__builtin_fma(double_of(a), double_of(b), double_of(c)), a, b, c))

/* ---- Directed roundings ---- */
static const int host_roundings[] = {[ROUND_RN] = FE_TONEAREST,
                                     [ROUND_RZ] = FE_TOWARDZERO,
                                     [ROUND_RM] = FE_DOWNWARD,
                                     [ROUND_RP] = FE_UPWARD};

#define COMPUTE(name, number, multiply_add, root)                                      \
  static number name(FloatOperation operation, volatile number *x, volatile number *y, \
                     volatile number *z) {                                             \
    switch (operation) {                                                               \
      case FLOAT_ADD:                                                                  \
        return *x + *y;                                                                \
      case FLOAT_SUB:                                                                  \
        return *x - *y;                                                                \
      case FLOAT_MUL:                                                                  \
        return *x * *y;                                                                \
      case FLOAT_DIV:                                                                  \
        return *x / *y;                                                                \
      case FLOAT_FMA:                                                                  \
        return multiply_add(*x, *y, *z);                                               \
      default:                                                                         \
        return root(*x);                                                               \
    }                                                                                  \
  }
COMPUTE(compute_float, float, __builtin_fmaf, __builtin_sqrtf)
COMPUTE(compute_double, double, __builtin_fma, __builtin_sqrt)
/* The result before rounding to f32, precise enough for .ftz. */
static double compute_exactly(FloatOperation operation, volatile float *x, volatile float *y,
                              volatile float *z) {
  switch (operation) {
    case FLOAT_MUL:
      return (double)*x * (double)*y;
    case FLOAT_DIV:
      return (double)*x / (double)*y;
    case FLOAT_FMA:
      return (double)*x * (double)*y + (double)*z;
    default:
      return compute_float(operation, x, y, z);
  }
}

static StepResult directed_f32(Warp *warp, const Instruction *in, LaneMask mask) {
  const Directed *directed = in->decoded;
  LANE_ARRAY uint32_t result[LANES];
  const uint32_t *a = column_u32(warp, in->a), *b = column_u32(warp, in->b),
                 *c = column_u32(warp, in->c);
  volatile float x, y, z, answer;
  int before = fegetround();
  fesetround(host_roundings[directed->rounding]);
  for (int lane = 0; lane < LANES; lane++) {
    x = directed->flush ? flushed(a[lane]) : float_of(a[lane]);
    y = directed->flush ? flushed(b[lane]) : float_of(b[lane]);
    z = directed->flush ? flushed(c[lane]) : float_of(c[lane]);
    answer = compute_float(directed->operation, &x, &y, &z);
    result[lane] = directed->saturate ? float_saturated(answer) : float_result(answer);
    if (directed->flush) {
      volatile double exact = compute_exactly(directed->operation, &x, &y, &z);
      result[lane] = flush_result(result[lane], exact);
    }
  }
  fesetround(before);
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

static StepResult directed_f64(Warp *warp, const Instruction *in, LaneMask mask) {
  const Directed *directed = in->decoded;
  LANE_ARRAY uint64_t result[LANES];
  const uint64_t *a = column_u64(warp, in->a), *b = column_u64(warp, in->b),
                 *c = column_u64(warp, in->c);
  volatile double x, y, z, answer;
  int before = fegetround();
  fesetround(host_roundings[directed->rounding]);
  for (int lane = 0; lane < LANES; lane++) {
    x = double_of(a[lane]), y = double_of(b[lane]), z = double_of(c[lane]);
    answer = compute_double(directed->operation, &x, &y, &z);
    uint64_t first = a[lane], second = b[lane]; /* of two NaNs the second wins, in div the first */
    if (directed->operation == FLOAT_DIV) first = b[lane], second = a[lane];
    result[lane] = directed->operation == FLOAT_FMA ? double_result3(answer, first, second, c[lane])
                                                    : double_result2(answer, first, second);
  }
  fesetround(before);
  store_u64(warp, in->d, mask, result);
  return STEP_NEXT;
}

bool directed_end(Form *form, FloatOperation operation, Type type, Rounding rounding, bool flush_,
                  bool saturate, int sources) {
  Directed *directed = decoder_allocate(form->decoder, sizeof *directed);
  *directed = (Directed){operation, rounding, flush_, saturate};
  form->out->decoded = directed;
  if (sources < 2) form->out->b = form->out->a;
  if (sources < 3) form->out->c = form->out->a;
  return form_end(form, type == TYPE_F64 ? directed_f64 : directed_f32);
}

Rounding form_rounding(Form *form) {
  static const char *const names[] = {"rn", "rz", "rm", "rp", NULL};
  int found = form_choose(form, names);
  return found < 0 ? ROUND_NONE : (Rounding)(ROUND_RN + found);
}

static bool float_decode(Form *form, Type type, FloatOperation operation, const Execute *narrow,
                         Execute wide, int sources) {
  Rounding rounding = form_rounding(form);
  bool flush_ = form_take(form, "ftz"), saturate = form_take(form, "sat");
  if (type == TYPE_F64 && (flush_ || saturate)) return form_fail(form, ".ftz and .sat go with f32");
  if (operation == FLOAT_DIV && saturate) return form_fail(form, "div has no .sat");
  if ((operation == FLOAT_FMA || operation == FLOAT_DIV) && rounding == ROUND_NONE)
    return form_fail(form, "this instruction names its rounding");
  if (!form_columns(form, type, type, type, sources > 2 ? type : TYPE_NONE)) return false;
  if (rounding > ROUND_RN)
    return directed_end(form, operation, type, rounding, flush_, saturate, sources);
  return form_end(form, type == TYPE_F64 ? wide : narrow[flush_ + 2 * saturate]);
}

bool float_add(Form *form, Type type) {
  return float_decode(form, type, FLOAT_ADD, add_f32_table, add_f64, 2);
}
bool float_sub(Form *form, Type type) {
  return float_decode(form, type, FLOAT_SUB, sub_f32_table, sub_f64, 2);
}
bool float_mul(Form *form, Type type) {
  return float_decode(form, type, FLOAT_MUL, mul_f32_table, mul_f64, 2);
}
bool float_fma(Form *form, Type type) {
  return float_decode(form, type, FLOAT_FMA, fma_f32_table, fma_f64, 3);
}

/* ---- div ---- */
#define DIVIDE(name, full, flush)                                                      \
  HANDLER_BEGIN(name)                                                                  \
  LANE_ARRAY uint32_t result[LANES];                                                   \
  divide_lanes(column_u32(warp, in->a), column_u32(warp, in->b), full, flush, result); \
  HANDLER_END(32)
DIVIDE(div_approx, false, false)
DIVIDE(div_approx_ftz, false, true)
DIVIDE(div_full, true, false)
DIVIDE(div_full_ftz, true, true)

bool float_div(Form *form, Type type) {
  bool approx = form_take(form, "approx"), full = form_take(form, "full");
  if (!approx && !full) return float_decode(form, type, FLOAT_DIV, div_f32_table, div_f64, 2);
  bool flush_ = form_take(form, "ftz");
  if (type != TYPE_F32) return form_fail(form, ".approx and .full go with f32");
  if (!form_columns(form, type, type, type, TYPE_NONE)) return false;
  if (approx) return form_end(form, flush_ ? div_approx_ftz : div_approx);
  return form_end(form, flush_ ? div_full_ftz : div_full);
}

/* ---- abs, neg, min, max ---- */
static inline uint32_t not_nan(uint32_t bits) {
  return (bits & 0x7fffffffu) > 0x7f800000u ? CANONICAL_NAN : bits;
}
HANDLER1(abs_f32, 32, 32, not_nan(a & 0x7fffffffu))
HANDLER1(abs_f32_ftz, 32, 32, flush(not_nan(a & 0x7fffffffu)))
HANDLER1(abs_f64, 64, 64, nan_f64(a) ? a | QUIET_BIT_F64 : a & 0x7fffffffffffffffull)
HANDLER1(neg_f32, 32, 32, not_nan(a ^ 0x80000000u))
HANDLER1(neg_f32_ftz, 32, 32, flush(not_nan(a ^ 0x80000000u)))
HANDLER1(neg_f64, 64, 64, nan_f64(a) ? a | QUIET_BIT_F64 : a ^ 0x8000000000000000ull)

static bool sign_decode(Form *form, Type type, Execute narrow, Execute narrow_ftz, Execute wide) {
  bool flush_ = form_take(form, "ftz");
  if (flush_ && type == TYPE_F64) return form_fail(form, ".ftz goes with f32");
  if (!form_columns(form, type, type, TYPE_NONE, TYPE_NONE)) return false;
  return form_end(form, type == TYPE_F64 ? wide : flush_ ? narrow_ftz : narrow);
}
bool float_abs(Form *form, Type type) {
  return sign_decode(form, type, abs_f32, abs_f32_ftz, abs_f64);
}
bool float_neg(Form *form, Type type) {
  return sign_decode(form, type, neg_f32, neg_f32_ftz, neg_f64);
}

/* Two's complement order of sign and magnitude: -0 lies below +0. */
static inline int32_t order_f32(uint32_t bits) {
  return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) >> 1));
}
static inline int64_t order_f64(uint64_t bits) {
  return (int64_t)(bits ^ ((uint64_t)((int64_t)bits >> 63) >> 1));
}
static inline bool is_nan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }
static inline uint32_t extreme_f32(uint32_t a, uint32_t b, bool larger, bool keep_nan) {
  bool first = (order_f32(a) > order_f32(b)) == larger;
  uint32_t chosen = first ? a : b;
  bool nan_a = is_nan(a), nan_b = is_nan(b);
  chosen = nan_a ? b : chosen;
  chosen = nan_b ? a : chosen;
  return (nan_a & nan_b) | (keep_nan & (nan_a | nan_b)) ? CANONICAL_NAN : chosen;
}
/* .xorsign.abs: min or max of the magnitudes, with the sign of the product. */
static inline uint32_t extreme_xorsign(uint32_t a, uint32_t b, bool larger, bool keep_nan) {
  uint32_t chosen = extreme_f32(a & 0x7fffffffu, b & 0x7fffffffu, larger, keep_nan);
  return chosen == CANONICAL_NAN ? chosen : chosen | ((a ^ b) & 0x80000000u);
}
static inline uint64_t extreme_f64(uint64_t a, uint64_t b, bool larger) {
  if (nan_f64(a)) return nan_f64(b) ? b | QUIET_BIT_F64 : b;
  if (nan_f64(b)) return a;
  return (order_f64(a) > order_f64(b)) == larger ? a : b;
}

#define EXTREMES(name, larger)                                                                    \
  HANDLER2(name##_f32, 32, 32, 32, extreme_f32(a, b, larger, false))                              \
  HANDLER2(name##_f32_nan, 32, 32, 32, extreme_f32(a, b, larger, true))                           \
  HANDLER2(name##_f32_ftz, 32, 32, 32, extreme_f32(flush(a), flush(b), larger, false))            \
  HANDLER2(name##_f32_ftz_nan, 32, 32, 32, extreme_f32(flush(a), flush(b), larger, true))         \
  HANDLER2(name##_f32_xor, 32, 32, 32, extreme_xorsign(a, b, larger, false))                      \
  HANDLER2(name##_f32_xor_nan, 32, 32, 32, extreme_xorsign(a, b, larger, true))                   \
  HANDLER2(name##_f32_xor_ftz, 32, 32, 32, extreme_xorsign(flush(a), flush(b), larger, false))    \
  HANDLER2(name##_f32_xor_ftz_nan, 32, 32, 32, extreme_xorsign(flush(a), flush(b), larger, true)) \
  HANDLER2(name##_f64, 64, 64, 64, extreme_f64(a, b, larger))                                     \
  bool float_##name(Form *form, Type type) {                                                      \
    static const Execute table[8] = {                                                             \
        name##_f32,     name##_f32_nan,     name##_f32_ftz,     name##_f32_ftz_nan,               \
        name##_f32_xor, name##_f32_xor_nan, name##_f32_xor_ftz, name##_f32_xor_ftz_nan};          \
    return extremes_decode(form, type, table, name##_f64);                                        \
  }
static bool extremes_decode(Form *form, Type type, const Execute *table, Execute wide) {
  bool flush_ = form_take(form, "ftz"), nan = form_take(form, "NaN");
  bool xorsign = form_take(form, "xorsign");
  if (xorsign && !form_take(form, "abs")) return form_fail(form, ".xorsign goes with .abs");
  if (type == TYPE_F64 && (flush_ || nan || xorsign))
    return form_fail(form, ".ftz, .NaN and .xorsign.abs go with f32");
  if (!form_columns(form, type, type, type, TYPE_NONE)) return false;
  return form_end(form, type == TYPE_F64 ? wide : table[nan + 2 * flush_ + 4 * xorsign]);
}
EXTREMES(min, false)
EXTREMES(max, true)

/* ---- testp, copysign ---- */
typedef enum {
  TEST_FINITE,
  TEST_INFINITE,
  TEST_NUMBER,
  TEST_NAN,
  TEST_NORMAL,
  TEST_SUBNORMAL
} FloatTest;

static bool test_float(FloatTest which, uint64_t exponent, uint64_t all_ones, uint64_t fraction) {
  switch (which) {
    case TEST_FINITE:
      return exponent != all_ones;
    case TEST_INFINITE:
      return exponent == all_ones && fraction == 0;
    case TEST_NUMBER:
      return exponent != all_ones || fraction == 0;
    case TEST_NAN:
      return exponent == all_ones && fraction != 0;
    case TEST_NORMAL:
      return exponent != all_ones && (exponent != 0 || fraction == 0); /* 0 too */
    default:
      return exponent == 0 && fraction != 0;
  }
}
static StepResult testp_any(Warp *warp, const Instruction *in, LaneMask mask) {
  LaneMask lanes = 0;
  bool wide = in->c;
  for (int lane = 0; lane < LANES; lane++) {
    uint64_t bits = wide ? column_u64(warp, in->a)[lane] : column_u32(warp, in->a)[lane];
    bool yes =
        wide ? test_float((FloatTest)in->b, (bits >> 52) & 0x7ff, 0x7ff, bits & 0xfffffffffffffull)
             : test_float((FloatTest)in->b, (bits >> 23) & 0xff, 0xff, bits & 0x7fffffu);
    lanes |= (LaneMask)yes << lane;
  }
  store_predicate(warp, &in->operand[0], mask, lanes);
  return STEP_NEXT;
}
FORM_DECODER(decode_testp, 1) {
  static const char *const tests[] = {"finite", "infinite",  "number", "notanumber",
                                      "normal", "subnormal", NULL};
  int which = form_choose(&form, tests);
  Type type = form_type(&form);
  if (which < 0 || (type != TYPE_F32 && type != TYPE_F64))
    return form_fail(&form, "testp names a test and f32 or f64");
  if (!form_operands(&form, 2, 2)) return false;
  form_predicate_destination(&form, 0);
  out->a = form_source(&form, 1, type);
  out->b = (uint16_t)which;
  out->c = type == TYPE_F64;
  return form_end(&form, testp_any);
}

HANDLER2(copysign_f32, 32, 32, 32, (a & 0x80000000u) | (b & 0x7fffffffu))
HANDLER2(copysign_f64, 64, 64, 64, (a & (1ull << 63)) | (b & ~(1ull << 63)))
FORM_DECODER(decode_copysign, 1) {
  static HandlerByType handlers = {[TYPE_F32] = copysign_f32, [TYPE_F64] = copysign_f64};
  return form_end_uniform(&form, handlers, form_type(&form), 2);
}
