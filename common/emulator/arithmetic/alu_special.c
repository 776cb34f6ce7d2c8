/* alu_special.c: rcp sqrt rsqrt sin cos lg2 ex2 tanh, and the approximate divisions.
 *
 * The rounded forms are exact. The .approx forms use unpublished tables in the GPU. Here they
 * return the exact result, rounded, and follow the GPU where its method is known: special values,
 * flushes, the argument of ex2 truncated to 23 fraction bits, the argument of sin and cos converted
 * to turns, and the half-precision results of ex2 and tanh truncated instead of rounded. Against an
 * H200 (all significands tried, f32): rcp, sqrt, ex2 and lg2 (arguments from 2 to 4) differ by at
 * most 1 unit in the last place and mostly not at all, rsqrt by at most 2, tanh by at most 114, sin
 * and cos by 3.3e-7 in the value, lg2 near 1 by about 1e-7 in the value. */
#include <math.h>

#include "arithmetic/alu_float.h"
#include "arithmetic/special_values.h"
#include "base/half.h"

/* ---- The approximations, f32 ---- */
static float approximate_rcp(float x) { return (float)(1.0 / (double)x); }
static float approximate_sqrt(float x) { return __builtin_sqrtf(x); }
static float approximate_rsqrt(float x) {
  if (x == 0) return copysignf(HUGE_VALF, x);
  return x < 0 ? NAN : (float)(1.0 / sqrt((double)x));
}
static float approximate_lg2(float x) { return x < 0 ? NAN : (float)log2((double)x); }
static float approximate_tanh(float x) { return fabsf(x) < 0x1p-8f ? x : (float)tanh((double)x); }

#define SPECIAL(name)                                                         \
  HANDLER1(name##_f32, 32, 32, float_result(approximate_##name(float_of(a)))) \
  HANDLER1(name##_f32_ftz, 32, 32, flush(float_result(approximate_##name(flushed(a)))))
SPECIAL(rcp)
SPECIAL(sqrt)
SPECIAL(rsqrt)
SPECIAL(lg2)
#define SPECIAL_OF_LANES(name)                                                         \
  HANDLER_BEGIN(name##_f32)                                                            \
  LANE_ARRAY uint32_t result[LANES];                                                   \
  name##_of_lanes((const float *)(const void *)column_u32(warp, in->a), mask, result); \
  HANDLER_END(32)                                                                      \
  HANDLER_BEGIN(name##_f32_ftz)                                                        \
  LANE_ARRAY uint32_t result[LANES];                                                   \
  LANE_ARRAY float x[LANES];                                                           \
  const uint32_t *column = column_u32(warp, in->a);                                    \
  for (int lane = 0; lane < LANES; lane++) x[lane] = flushed(column[lane]);            \
  name##_of_lanes(x, mask, result);                                                    \
  for (int lane = 0; lane < LANES; lane++) result[lane] = flush(result[lane]);         \
  HANDLER_END(32)
SPECIAL_OF_LANES(sin)
SPECIAL_OF_LANES(cos)
SPECIAL_OF_LANES(ex2)
HANDLER1(tanh_f32, 32, 32, float_result(approximate_tanh(float_of(a))))

/* a / b as a times the reciprocal of b, where a subnormal reciprocal is flushed to 0. */
uint32_t divide_approximately(uint32_t a, uint32_t b, bool flush_inputs) {
  float x = flush_inputs ? flushed(a) : float_of(a), y = flush_inputs ? flushed(b) : float_of(b);
  if (!flush_inputs && fabsf(y) < 0x1p-126f) x *= 0x1p24f, y *= 0x1p24f;
  uint32_t result = float_result(x * flushed(bits_of_float(approximate_rcp(y))));
  return flush_inputs ? flush(result) : result;
}
/* The same, with a and b scaled so that the reciprocal neither overflows nor vanishes. */
uint32_t divide_fully(uint32_t a, uint32_t b, bool flush_inputs) {
  float x = flush_inputs ? flushed(a) : float_of(a), y = flush_inputs ? flushed(b) : float_of(b);
  float size = fabsf(y), scale = size > 0x1p126f ? 0.25f : size < 0x1p-126f ? 16777216.0f : 1.0f;
  uint32_t result = float_result(x * scale * approximate_rcp(y * scale));
  return flush_inputs ? flush(result) : result;
}

/* ---- f64: the approximations answer with the upper 32 bits only ---- */
static inline uint64_t upper_word(double value) {
  return value != value ? 0x7fffffff00000000ull
                        : (bits_of_double(value) + 0x80000000u) & 0xffffffff00000000ull;
}
static inline uint64_t flush_f64(uint64_t bits) {
  return (bits & 0x7ff0000000000000ull) == 0 ? bits & (1ull << 63) : bits;
}
static double rsqrt_double(double x) {
  if (x == 0) return copysign(HUGE_VAL, x);
  return x < 0 ? (double)NAN : 1.0 / sqrt(x);
}
HANDLER1(rcp_approx_f64, 64, 64,
         flush_f64(upper_word(1.0 / double_of(flush_f64(a) & 0xffffffff00000000ull))))
HANDLER1(rsqrt_approx_f64, 64, 64,
         flush_f64(upper_word(rsqrt_double(double_of(flush_f64(a) & 0xffffffff00000000ull)))))
HANDLER1(rsqrt_f64, 64, 64, double_result1(rsqrt_double(double_of(a)), a))
HANDLER1(rcp_rn_f32, 32, 32, float_result(1.0f / float_of(a)))
HANDLER1(rcp_rn_f32_ftz, 32, 32,
         flush_result(float_result(1.0f / flushed(a)), 1.0 / (double)flushed(a)))
HANDLER1(rcp_rn_f64, 64, 64, double_result1(1.0 / double_of(a), a))
HANDLER1(sqrt_rn_f32, 32, 32, float_result(__builtin_sqrtf(float_of(a))))
HANDLER1(sqrt_rn_f32_ftz, 32, 32, flush(float_result(__builtin_sqrtf(flushed(a)))))
HANDLER1(sqrt_rn_f64, 64, 64, double_result1(__builtin_sqrt(double_of(a)), a))

/* rcp and sqrt: .approx{.ftz}, or rounded. */
static bool rounded_or_approximate(Form *form, Type type, FloatOperation operation,
                                   const Execute *approximate, Execute approximate_f64,
                                   const Execute *nearest, Execute nearest_f64) {
  bool approx = form_take(form, "approx"), flush_ = form_take(form, "ftz");
  Rounding rounding = approx ? ROUND_NONE : form_rounding(form);
  if (type != TYPE_F32 && type != TYPE_F64) return form_fail(form, "the type is f32 or f64");
  if (!approx && rounding == ROUND_NONE)
    return form_fail(form, "the instruction is .approx or names its rounding");
  bool ignored =
      operation == FLOAT_DIV && flush_ && !approx; /* ptxas: rcp.rn.ftz.f64 is rcp.rn.f64 */
  if (type == TYPE_F64 && flush_ != approx && !ignored)
    return form_fail(form, "f64 is .approx.ftz or rounded");
  if (type == TYPE_F64) flush_ = approx;
  if (!form_columns(form, type, type, TYPE_NONE, TYPE_NONE)) return false;
  if (approx) return form_end(form, type == TYPE_F64 ? approximate_f64 : approximate[flush_]);
  if (rounding == ROUND_RN) return form_end(form, type == TYPE_F64 ? nearest_f64 : nearest[flush_]);
  if (operation == FLOAT_DIV) { /* 1 / a */
    uint64_t one = type == TYPE_F64 ? 0x3ff0000000000000ull : 0x3f800000u;
    form->out->b = form->out->a;
    form->out->a = decoder_constant(form->decoder, one, type_bytes(type));
    return directed_end(form, operation, type, rounding, flush_, false, 2);
  }
  return directed_end(form, operation, type, rounding, flush_, false, 1);
}

bool decode_rcp(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const Execute approximate[2] = {rcp_f32, rcp_f32_ftz};
  static const Execute nearest[2] = {rcp_rn_f32, rcp_rn_f32_ftz};
  Form form = form_begin(decoder, statement, out, 1);
  return rounded_or_approximate(&form, form_type(&form), FLOAT_DIV, approximate, rcp_approx_f64,
                                nearest, rcp_rn_f64);
}
bool decode_sqrt(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const Execute approximate[2] = {sqrt_f32, sqrt_f32_ftz};
  static const Execute nearest[2] = {sqrt_rn_f32, sqrt_rn_f32_ftz};
  Form form = form_begin(decoder, statement, out, 1);
  return rounded_or_approximate(&form, form_type(&form), FLOAT_SQRT, approximate, NULL, nearest,
                                sqrt_rn_f64);
}
bool decode_rsqrt(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 1);
  bool approx = form_take(&form, "approx"), flush_ = form_take(&form, "ftz");
  Type type = form_type(&form);
  if (!approx || (type != TYPE_F32 && type != TYPE_F64))
    return form_fail(&form, "rsqrt is .approx, of f32 or f64");
  if (!form_columns(&form, type, type, TYPE_NONE, TYPE_NONE)) return false;
  if (type == TYPE_F64) return form_end(&form, flush_ ? rsqrt_approx_f64 : rsqrt_f64);
  return form_end(&form, flush_ ? rsqrt_f32_ftz : rsqrt_f32);
}

static bool approximate_f32(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                            Execute plain, Execute flushing) {
  Form form = form_begin(decoder, statement, out, 1);
  bool approx = form_take(&form, "approx"), flush_ = form_take(&form, "ftz");
  if (!approx || form_type(&form) != TYPE_F32)
    return form_fail(&form, "this instruction is .approx, of f32");
  if (!form_columns(&form, TYPE_F32, TYPE_F32, TYPE_NONE, TYPE_NONE)) return false;
  return form_end(&form, flush_ ? flushing : plain);
}
bool decode_sin(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return approximate_f32(decoder, statement, out, sin_f32, sin_f32_ftz);
}
bool decode_cos(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return approximate_f32(decoder, statement, out, cos_f32, cos_f32_ftz);
}
bool decode_lg2(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return approximate_f32(decoder, statement, out, lg2_f32, lg2_f32_ftz);
}

/* ---- ex2 and tanh of halves ---- */
/* These truncate the f32 result. */
static inline uint32_t half_cut(float value) {
  uint32_t half = half_of_float(value);
  bool overflow = fabsf(value) >= 65536.0f;
  if (!overflow && fabsf(float_of_half((uint16_t)half)) > fabsf(value)) half--;
  return half;
}
static inline uint32_t bfloat_cut(float value) {
  return value == value ? bits_of_float(value) >> 16 : 0x7fffu;
}
static inline uint32_t half_ex2(uint32_t half) {
  return half_cut(approximate_ex2(float_of_half((uint16_t)half)));
}
static inline uint32_t half_tanh(uint32_t half) {
  return half_cut(approximate_tanh(float_of_half((uint16_t)half)));
}
static inline uint32_t bfloat_ex2(uint32_t bfloat) {
  float result = flushed(bits_of_float(approximate_ex2(flushed(bfloat << 16))));
  return bfloat_cut(result);
}
static inline uint32_t bfloat_tanh(uint32_t bfloat) {
  return bfloat_cut(approximate_tanh(float_of_bfloat((uint16_t)bfloat)));
}
#define OF_HALVES(name)                           \
  HANDLER1(name##_one, 32, 32, name(a & 0xffffu)) \
  HANDLER1(name##_two, 32, 32, name(a & 0xffffu) | name(a >> 16) << 16)
OF_HALVES(half_ex2)
OF_HALVES(half_tanh)
OF_HALVES(bfloat_ex2)
OF_HALVES(bfloat_tanh)

bool decode_ex2(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 1);
  bool approx = form_take(&form, "approx"), flush_ = form_take(&form, "ftz");
  Type type = form_type(&form);
  if (!approx) return form_fail(&form, "ex2 is .approx");
  if (!form_columns(&form, type, type, TYPE_NONE, TYPE_NONE)) return false;
  switch (type) {
    case TYPE_F32:
      return form_end(&form, flush_ ? ex2_f32_ftz : ex2_f32);
    case TYPE_F16:
      return form_end(&form, flush_ ? NULL : half_ex2_one);
    case TYPE_F16X2:
      return form_end(&form, flush_ ? NULL : half_ex2_two);
    case TYPE_BF16:
      return form_end(&form, flush_ ? bfloat_ex2_one : NULL);
    case TYPE_BF16X2:
      return form_end(&form, flush_ ? bfloat_ex2_two : NULL);
    default:
      return form_end(&form, NULL);
  }
}
bool decode_tanh(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 1);
  bool approx = form_take(&form, "approx");
  Type type = form_type(&form);
  if (!approx) return form_fail(&form, "tanh is .approx");
  if (!form_columns(&form, type, type, TYPE_NONE, TYPE_NONE)) return false;
  switch (type) {
    case TYPE_F32:
      return form_end(&form, tanh_f32);
    case TYPE_F16:
      return form_end(&form, half_tanh_one);
    case TYPE_F16X2:
      return form_end(&form, half_tanh_two);
    case TYPE_BF16:
      return form_end(&form, bfloat_tanh_one);
    case TYPE_BF16X2:
      return form_end(&form, bfloat_tanh_two);
    default:
      return form_end(&form, NULL);
  }
}
