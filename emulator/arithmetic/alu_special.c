/* alu_special.c: rcp sqrt rsqrt sin cos lg2 ex2 tanh, and the approximate divisions.
 *
 * The rounded forms are exact. The .approx forms do what ptxas makes of them for sm_90: the unit
 * for special functions (approximate.h), and a few instructions around it, which keep subnormal
 * arguments and results when there is no .ftz. */
#include <math.h>

#include "arithmetic/alu_float.h"
#include "arithmetic/approximate.h"

/* ---- The approximations, f32 ---- */
/* With .ftz the unit alone. Without, `before` is its argument and `after` the result, where x is
 * the operand and y the unit's answer. */
#define APPROXIMATE_FTZ(name, unit)      \
  HANDLER_BEGIN(name##_f32_ftz)          \
  LANE_ARRAY uint32_t result[LANES];     \
  unit(column_u32(warp, in->a), result); \
  HANDLER_END(32)
#define APPROXIMATE(name, unit, before, after)                          \
  HANDLER_BEGIN(name##_f32)                                             \
  LANE_ARRAY uint32_t argument[LANES], result[LANES];                   \
  const uint32_t *column = column_u32(warp, in->a);                     \
  for (int lane = 0; lane < LANES; lane++) {                            \
    const float x = float_of(column[lane]);                             \
    argument[lane] = bits_of_float(before);                             \
  }                                                                     \
  unit(argument, result);                                               \
  for (int lane = 0; lane < LANES; lane++) {                            \
    const float x = float_of(column[lane]), y = float_of(result[lane]); \
    result[lane] = float_result(after);                                 \
  }                                                                     \
  HANDLER_END(32)                                                       \
  APPROXIMATE_FTZ(name, unit)

static inline bool is_small(float x) { return fabsf(x) < 0x1p-126f; }
/* The reciprocal of x times this is neither infinite nor flushed for being subnormal. */
static inline float reciprocal_scale(float x) {
  return is_small(x) ? 0x1p24f : fabsf(x) > 0x1p126f ? 0.25f : 1.0f;
}
APPROXIMATE(rcp, mufu_rcp, x *reciprocal_scale(x), y *reciprocal_scale(x))
APPROXIMATE(sqrt, mufu_sqrt, is_small(x) ? x * 0x1p24f : x, is_small(x) ? y * 0x1p-12f : y)
APPROXIMATE(rsqrt, mufu_rsq, is_small(x) ? x * 0x1p24f : x, is_small(x) ? y * 0x1p12f : y)
APPROXIMATE(lg2, mufu_lg2, is_small(x) ? x * 0x1p24f : x, is_small(x) ? y - 24.0f : y)
APPROXIMATE(ex2, mufu_ex2, x < -126.0f ? x * 0.5f : x, x < -126.0f ? y * y : y)

/* Angles become turns: times 1/(2 pi), rounded toward zero. */
static inline void turns_of_lanes(const uint32_t *x, uint32_t *result) {
  for (int lane = 0; lane < LANES; lane++) {
    double product = (double)float_of(x[lane]) * (double)0x1.45f306p-3f;
    uint32_t turned = bits_of_float((float)product);
    result[lane] = turned - (fabs((double)float_of(turned)) > fabs(product));
  }
}
static inline void sin_of_lanes(const uint32_t *x, uint32_t *result) {
  LANE_ARRAY uint32_t turns[LANES];
  turns_of_lanes(x, turns);
  mufu_sin(turns, result);
}
static inline void cos_of_lanes(const uint32_t *x, uint32_t *result) {
  LANE_ARRAY uint32_t turns[LANES];
  turns_of_lanes(x, turns);
  mufu_cos(turns, result);
}
APPROXIMATE_FTZ(sin, sin_of_lanes)
APPROXIMATE_FTZ(cos, cos_of_lanes)
APPROXIMATE_FTZ(tanh, mufu_tanh)

/* a / b as a times the reciprocal of b, which .full keeps from being flushed for a huge b. */
void divide_lanes(const uint32_t *a, const uint32_t *b, bool full, bool flush_, uint32_t *result) {
  LANE_ARRAY float x[LANES], y[LANES];
  LANE_ARRAY uint32_t reciprocal[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    x[lane] = flush_ ? flushed(a[lane]) : float_of(a[lane]);
    y[lane] = flush_ ? flushed(b[lane]) : float_of(b[lane]);
    float scale = reciprocal_scale(y[lane]);
    scale = ((scale < 1.0f) & !full) | ((scale > 1.0f) & flush_) ? 1.0f : scale;
    x[lane] *= scale;
    reciprocal[lane] = bits_of_float(y[lane] * scale);
  }
  mufu_rcp(reciprocal, reciprocal);
  for (int lane = 0; lane < LANES; lane++) {
    float factor = float_of(reciprocal[lane]);
    uint32_t quotient = float_result(x[lane] * factor);
    double exact = (double)x[lane] * (double)factor;
    result[lane] = flush_ ? flush_result(quotient, exact) : quotient;
  }
}

/* ---- f64: the unit reads and answers the upper 32 bits only ---- */
static inline void upper_words(const uint64_t *x, OfLanes *unit, uint32_t *result) {
  LANE_ARRAY uint32_t upper[LANES];
  for (int lane = 0; lane < LANES; lane++) upper[lane] = (uint32_t)(x[lane] >> 32);
  unit(upper, result);
}
#define APPROXIMATE_F64(name, unit)                                                    \
  HANDLER_BEGIN(name)                                                                  \
  LANE_ARRAY uint32_t upper[LANES];                                                    \
  LANE_ARRAY uint64_t result[LANES];                                                   \
  upper_words(column_u64(warp, in->a), unit, upper);                                   \
  for (int lane = 0; lane < LANES; lane++) result[lane] = (uint64_t)upper[lane] << 32; \
  HANDLER_END(64)
APPROXIMATE_F64(rcp_approx_f64, mufu_rcp64h)
APPROXIMATE_F64(rsqrt_approx_f64, mufu_rsq64h)

/* Without .ftz: the same, and a step of third order towards the root. */
HANDLER_BEGIN(rsqrt_f64)
LANE_ARRAY uint64_t scaled[LANES], result[LANES];
LANE_ARRAY uint32_t upper[LANES];
const uint64_t *column = column_u64(warp, in->a);
for (int lane = 0; lane < LANES; lane++) {
  bool small = (column[lane] & 0x7ff0000000000000ull) == 0;
  scaled[lane] = small ? bits_of_double(double_of(column[lane]) * 0x1p54) : column[lane];
}
upper_words(scaled, mufu_rsq64h, upper);
for (int lane = 0; lane < LANES; lane++) {
  uint64_t a = column[lane];
  double x = double_of(scaled[lane]), y = double_of((uint64_t)upper[lane] << 32);
  double rest = __builtin_fma(x, -(y * y), 1.0);
  double root = __builtin_fma(__builtin_fma(rest, 0.375, 0.5), y * rest, y);
  if (scaled[lane] != a) root *= 0x1p27;
  if (double_of(a) == 0) root = copysign((double)INFINITY, double_of(a));
  if (double_of(a) == (double)INFINITY) root = 0;
  if (!(double_of(a) >= 0)) root = (double)NAN;
  result[lane] = double_result1(root, a);
}
HANDLER_END(64)

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

FORM_DECODER(decode_rcp, 1) {
  static const Execute approximate[2] = {rcp_f32, rcp_f32_ftz};
  static const Execute nearest[2] = {rcp_rn_f32, rcp_rn_f32_ftz};
  return rounded_or_approximate(&form, form_type(&form), FLOAT_DIV, approximate, rcp_approx_f64,
                                nearest, rcp_rn_f64);
}
FORM_DECODER(decode_sqrt, 1) {
  static const Execute approximate[2] = {sqrt_f32, sqrt_f32_ftz};
  static const Execute nearest[2] = {sqrt_rn_f32, sqrt_rn_f32_ftz};
  return rounded_or_approximate(&form, form_type(&form), FLOAT_SQRT, approximate, NULL, nearest,
                                sqrt_rn_f64);
}
FORM_DECODER(decode_rsqrt, 1) {
  static HandlerByType handlers[] = {{[TYPE_F32] = rsqrt_f32, [TYPE_F64] = rsqrt_f64},
                                     {[TYPE_F32] = rsqrt_f32_ftz, [TYPE_F64] = rsqrt_approx_f64}};
  if (!form_take(&form, "approx")) return form_fail(&form, "rsqrt is .approx");
  bool flush_ = form_take(&form, "ftz");
  return form_end_uniform(&form, handlers[flush_], form_type(&form), 1);
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
DECODER(decode_sin) { return approximate_f32(decoder, statement, out, sin_f32_ftz, sin_f32_ftz); }
DECODER(decode_cos) { return approximate_f32(decoder, statement, out, cos_f32_ftz, cos_f32_ftz); }
DECODER(decode_lg2) { return approximate_f32(decoder, statement, out, lg2_f32, lg2_f32_ftz); }

/* ---- ex2 and tanh of halves ---- */
/* These truncate the f32 result. */
static inline uint32_t half_cut(uint32_t bits) {
  float value = float_of(bits);
  uint32_t half = half_of_float(value);
  bool overflow = fabsf(value) >= 65536.0f;
  if (!overflow && fabsf(float_of_half((uint16_t)half)) > fabsf(value)) half--;
  return half;
}
static inline uint32_t bfloat_cut(uint32_t bits) { return bits >> 16; }
static inline uint32_t half_widened(uint32_t half) {
  return bits_of_float(float_of_half((uint16_t)half));
}
static inline uint32_t bfloat_widened(uint32_t bfloat) { return bfloat << 16; }
#define HALVES(name, unit, widened, cut)                                             \
  static inline void name(const uint32_t *x, int shift, uint32_t *result) {          \
    LANE_ARRAY uint32_t wide[LANES];                                                 \
    for (int lane = 0; lane < LANES; lane++) wide[lane] = widened(x[lane] >> shift); \
    unit(wide, wide);                                                                \
    for (int lane = 0; lane < LANES; lane++) result[lane] = cut(wide[lane]);         \
  }                                                                                  \
  HANDLER_BEGIN(name##_one)                                                          \
  LANE_ARRAY uint32_t result[LANES];                                                 \
  name(column_u32(warp, in->a), 0, result);                                          \
  HANDLER_END(32)                                                                    \
  HANDLER_BEGIN(name##_two)                                                          \
  LANE_ARRAY uint32_t result[LANES], high[LANES];                                    \
  name(column_u32(warp, in->a), 0, result);                                          \
  name(column_u32(warp, in->a), 16, high);                                           \
  for (int lane = 0; lane < LANES; lane++) result[lane] |= high[lane] << 16;         \
  HANDLER_END(32)
HALVES(half_ex2, mufu_ex2, half_widened, half_cut)
HALVES(half_tanh, mufu_tanh, half_widened, half_cut)
HALVES(bfloat_ex2, mufu_ex2, bfloat_widened, bfloat_cut)
HALVES(bfloat_tanh, mufu_tanh, bfloat_widened, bfloat_cut)

FORM_DECODER(decode_ex2, 1) {
  static HandlerByType handlers[] = {
      {[TYPE_F32] = ex2_f32, [TYPE_F16] = half_ex2_one, [TYPE_F16X2] = half_ex2_two},
      {[TYPE_F32] = ex2_f32_ftz, [TYPE_BF16] = bfloat_ex2_one, [TYPE_BF16X2] = bfloat_ex2_two}};
  if (!form_take(&form, "approx")) return form_fail(&form, "ex2 is .approx");
  bool flush_ = form_take(&form, "ftz");
  return form_end_uniform(&form, handlers[flush_], form_type(&form), 1);
}
FORM_DECODER(decode_tanh, 1) {
  static HandlerByType handlers = {[TYPE_F32] = tanh_f32_ftz,
                                   [TYPE_F16] = half_tanh_one,
                                   [TYPE_F16X2] = half_tanh_two,
                                   [TYPE_BF16] = bfloat_tanh_one,
                                   [TYPE_BF16X2] = bfloat_tanh_two};
  if (!form_take(&form, "approx")) return form_fail(&form, "tanh is .approx");
  return form_end_uniform(&form, handlers, form_type(&form), 1);
}
