/* alu_half.c: f16, bf16 and their pairs: add sub mul fma abs neg min max.
 *
 * Sums and products are formed in a wider type and rounded once: a float holds the exact product of
 * two halves, and their sum accurately enough that rounding again is harmless. fma uses double, and
 * keeps what the double loses as a sticky last bit. */
#include "arithmetic/alu_float.h"

typedef enum {
  HALF_ADD,
  HALF_SUB,
  HALF_MUL,
  HALF_FMA,
  HALF_MIN,
  HALF_MAX,
  HALF_ABS,
  HALF_NEG
} HalfOperation;
typedef struct {
  HalfOperation operation;
  bool bfloat, packed, flush, saturate, relu, keep_nan, xorsign, oob;
} Half;
/* the only NaN, for both types, that .oob recognises */
enum { HALVES = 2 * LANES, OOB_NAN = 0x7ff7 };

static inline uint32_t half_flush(uint32_t half) {
  return (half & 0x7c00u) == 0 ? half & 0x8000u : half;
}

/* The low halves, then the high ones. */
static void split_halves(const Warp *warp, unsigned slot, const Half *half, uint16_t *halves) {
  const uint32_t *column = column_u32(warp, slot);
  for (int lane = 0; lane < LANES; lane++) halves[lane] = (uint16_t)column[lane];
  for (int lane = 0; lane < LANES; lane++) halves[LANES + lane] = (uint16_t)(column[lane] >> 16);
  if (half->flush)
    for (int i = 0; i < HALVES; i++) halves[i] = (uint16_t)half_flush(halves[i]);
}
static void widen_halves(const uint16_t *halves, bool bfloat, float *floats) {
  if (bfloat)
    for (int i = 0; i < HALVES; i++) floats[i] = float_of_bfloat(halves[i]);
  else
    for (int i = 0; i < HALVES; i++) floats[i] = float_of_half(halves[i]);
}
static void narrow_floats(const float *floats, bool bfloat, uint16_t *halves) {
  if (bfloat)
    for (int i = 0; i < HALVES; i++) halves[i] = bfloat_of_float(floats[i]);
  else
    for (int i = 0; i < HALVES; i++) halves[i] = half_of_float(floats[i]);
}
static void store_halves(Warp *warp, const Instruction *in, LaneMask mask, const Half *half,
                         const uint16_t *halves) {
  LANE_ARRAY uint32_t result[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t high = half->packed ? halves[LANES + lane] : 0u;
    result[lane] = halves[lane] | high << 16;
  }
  store_u32(warp, in->d, mask, result);
}

/* Toward zero, the last bit set if anything was lost: rounding this further is rounding x. */
static inline float narrow_sticky(double x) {
  float rounded = (float)x;
  if ((double)rounded == x || x != x) return rounded;
  uint32_t bits = bits_of_float(rounded);
  if (__builtin_fabs((double)rounded) > __builtin_fabs(x)) bits--;
  return float_of(bits | 1u);
}
static inline float fma_sticky(float a, float b, float c) {
  double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
  if (!(__builtin_fabs(sum) < __builtin_inf())) return (float)sum;
  double part = sum - product;
  double lost = (product - (sum - part)) + (addend - part);
  if (lost != 0) {
    uint64_t bits = bits_of_double(sum);
    if ((lost < 0) != (sum < 0)) bits--;
    sum = double_of(bits | 1u);
  }
  return narrow_sticky(sum);
}

static StepResult half_arithmetic(Warp *warp, const Instruction *in, LaneMask mask) {
  const Half *half = in->decoded;
  LANE_ARRAY uint16_t a[HALVES], b[HALVES], c[HALVES];
  LANE_ARRAY float x[HALVES], y[HALVES], z[HALVES];
  split_halves(warp, in->a, half, a);
  split_halves(warp, in->b, half, b);
  widen_halves(a, half->bfloat, x);
  widen_halves(b, half->bfloat, y);
  switch (half->operation) {
    case HALF_ADD:
      for (int i = 0; i < HALVES; i++) x[i] = x[i] + y[i];
      break;
    case HALF_SUB:
      for (int i = 0; i < HALVES; i++) x[i] = x[i] - y[i];
      break;
    case HALF_MUL:
      if (half->bfloat) /* a float loses bits of products below its normal range */
        for (int i = 0; i < HALVES; i++) x[i] = narrow_sticky((double)x[i] * (double)y[i]);
      else
        for (int i = 0; i < HALVES; i++) x[i] = x[i] * y[i];
      break;
    default:
      split_halves(warp, in->c, half, c);
      widen_halves(c, half->bfloat, z);
      for (int i = 0; i < HALVES; i++) x[i] = fma_sticky(x[i], y[i], z[i]);
  }
  if (half->saturate)
    for (int i = 0; i < HALVES; i++) x[i] = float_of(float_saturated(x[i]));
  if (half->relu)
    for (int i = 0; i < HALVES; i++) x[i] = x[i] > 0 || x[i] != x[i] ? x[i] : 0.0f;
  if (half->flush) /* flush what would be subnormal after rounding with an unbounded exponent */
    for (int i = 0; i < HALVES; i++) {
      bool small = __builtin_fabsf(x[i]) < 0x1p-10f;
      float rounded = float_of_half(half_of_float(small ? x[i] * 0x1p8f : 1.0f));
      x[i] = __builtin_fabsf(rounded) < 0x1p-6f ? x[i] * 0.0f : x[i];
    }
  LANE_ARRAY uint16_t result[HALVES];
  narrow_floats(x, half->bfloat, result);
  if (half->oob) /* the NaN that marks out-of-bounds elements makes the result zero */
    for (int i = 0; i < HALVES; i++)
      if ((a[i] & 0x7fffu) == OOB_NAN || (b[i] & 0x7fffu) == OOB_NAN) result[i] = 0;
  store_halves(warp, in, mask, half, result);
  return STEP_NEXT;
}

static inline bool nan_bits(uint32_t half, bool bfloat) {
  return (half & 0x7fffu) > (bfloat ? 0x7f80u : 0x7c00u);
}
static inline int32_t half_order(uint32_t half) {
  return (half & 0x8000u) ? -(int32_t)(half & 0x7fffu) - 1 : (int32_t)half;
}
static inline uint16_t half_extreme(const Half *half, uint32_t a, uint32_t b) {
  uint32_t sign = (a ^ b) & 0x8000u;
  if (half->xorsign) a &= 0x7fffu, b &= 0x7fffu;
  bool nan_a = nan_bits(a, half->bfloat), nan_b = nan_bits(b, half->bfloat);
  bool larger = half->operation == HALF_MAX;
  uint32_t chosen = (half_order(a) > half_order(b)) == larger ? a : b;
  chosen = nan_a ? b : nan_b ? a : chosen;
  if ((nan_a && nan_b) || (half->keep_nan && (nan_a || nan_b))) return 0x7fffu;
  return (uint16_t)(half->xorsign ? chosen | sign : chosen);
}
static StepResult half_bitwise(Warp *warp, const Instruction *in, LaneMask mask) {
  const Half *half = in->decoded;
  LANE_ARRAY uint16_t a[HALVES], b[HALVES];
  split_halves(warp, in->a, half, a);
  switch (half->operation) {
    case HALF_ABS:
      for (int i = 0; i < HALVES; i++)
        a[i] = nan_bits(a[i], half->bfloat) ? 0x7fffu : a[i] & 0x7fffu;
      break;
    case HALF_NEG:
      for (int i = 0; i < HALVES; i++)
        a[i] = nan_bits(a[i], half->bfloat) ? 0x7fffu : a[i] ^ 0x8000u;
      break;
    default:
      split_halves(warp, in->b, half, b);
      for (int i = 0; i < HALVES; i++) a[i] = half_extreme(half, a[i], b[i]);
  }
  store_halves(warp, in, mask, half, a);
  return STEP_NEXT;
}

static bool half_decode(Form *form, Type type, HalfOperation operation, int sources) {
  Half *half = decoder_allocate(form->decoder, sizeof *half);
  half->operation = operation;
  half->bfloat = type == TYPE_BF16 || type == TYPE_BF16X2;
  half->packed = type == TYPE_F16X2 || type == TYPE_BF16X2;
  bool extreme = operation == HALF_MIN || operation == HALF_MAX;
  bool arithmetic = operation <= HALF_FMA;
  if (arithmetic) {
    bool rounded = form_take(form, "rn");
    if (operation == HALF_FMA && !rounded) return form_fail(form, "fma names its rounding, .rn");
    half->saturate = !half->bfloat && form_take(form, "sat");
  }
  if (operation == HALF_FMA) {
    half->oob = form_take(form, "oob");
    half->relu = form_take(form, "relu");
  }
  if (extreme) {
    half->keep_nan = form_take(form, "NaN");
    half->xorsign = form_take(form, "xorsign");
    if (half->xorsign && !form_take(form, "abs")) return form_fail(form, ".xorsign goes with .abs");
  }
  half->flush = !half->bfloat && form_take(form, "ftz");
  if (half->relu && half->saturate) return form_fail(form, ".relu and .sat exclude each other");
  if (!form_columns(form, type, type, sources > 1 ? type : TYPE_NONE,
                    sources > 2 ? type : TYPE_NONE))
    return false;
  form->out->decoded = half;
  return form_end(form, arithmetic ? half_arithmetic : half_bitwise);
}
bool half_add(Form *form, Type type) { return half_decode(form, type, HALF_ADD, 2); }
bool half_sub(Form *form, Type type) { return half_decode(form, type, HALF_SUB, 2); }
bool half_mul(Form *form, Type type) { return half_decode(form, type, HALF_MUL, 2); }
bool half_fma(Form *form, Type type) { return half_decode(form, type, HALF_FMA, 3); }
bool half_min(Form *form, Type type) { return half_decode(form, type, HALF_MIN, 2); }
bool half_max(Form *form, Type type) { return half_decode(form, type, HALF_MAX, 2); }
bool half_abs(Form *form, Type type) { return half_decode(form, type, HALF_ABS, 1); }
bool half_neg(Form *form, Type type) { return half_decode(form, type, HALF_NEG, 1); }
