/* alu_integer.c: integer arithmetic: add sub mul mad div rem abs neg min max sad mul24 mad24 dp4a
 * dp2a vabsdiff2 vabsdiff4 and the extended-precision forms with a carry. */
#include "arithmetic/alu.h"

/* The low bits do not depend on the sign, so one handler serves both. */
#define SAME_FOR_SIGNS(name)                                                                      \
  [TYPE_U16] = name##_16, [TYPE_S16] = name##_16, [TYPE_U32] = name##_32, [TYPE_S32] = name##_32, \
  [TYPE_U64] = name##_64, [TYPE_S64] = name##_64
#define BY_SIGN(name)                                                        \
  [TYPE_U16] = name##_u16, [TYPE_S16] = name##_s16, [TYPE_U32] = name##_u32, \
  [TYPE_S32] = name##_s32, [TYPE_U64] = name##_u64, [TYPE_S64] = name##_s64
/* A carry of 16 bits is only read, not written. */
#define CARRY_SAME_FOR_SIGNS(name) \
  [TYPE_U32] = name##_32, [TYPE_S32] = name##_32, [TYPE_U64] = name##_64, [TYPE_S64] = name##_64
#define CARRY_BY_SIGN(name) \
  [TYPE_U32] = name##_u32, [TYPE_S32] = name##_s32, [TYPE_U64] = name##_u64, [TYPE_S64] = name##_s64

/* ---- add, sub ---- */
HANDLER2(add_16, 32, 32, 32, (a + b) & 0xffffu)
HANDLER2(add_32, 32, 32, 32, a + b)
HANDLER2(add_64, 64, 64, 64, a + b)
HANDLER2(sub_16, 32, 32, 32, (a - b) & 0xffffu)
HANDLER2(sub_32, 32, 32, 32, a - b)
HANDLER2(sub_64, 64, 64, 64, a - b)
HANDLER2(add_16x2, 32, 32, 32, ((a + b) & 0xffffu) | ((a & 0xffff0000u) + (b & 0xffff0000u)))

/* Overflow is where both inputs differ in sign from the sum; the result is then the largest or
 * smallest value. */
static inline uint32_t add_saturated(uint32_t a, uint32_t b) {
  uint32_t sum = a + b, overflow = (a ^ sum) & (b ^ sum);
  return (int32_t)overflow < 0 ? 0x80000000u - ((a >> 31) ^ 1u) : sum;
}
static inline uint32_t sub_saturated(uint32_t a, uint32_t b) {
  uint32_t difference = a - b, overflow = (a ^ b) & (a ^ difference);
  return (int32_t)overflow < 0 ? 0x80000000u - ((a >> 31) ^ 1u) : difference;
}
HANDLER2(add_saturating, 32, 32, 32, add_saturated(a, b))
HANDLER2(sub_saturating, 32, 32, 32, sub_saturated(a, b))

/* ---- The carry: add.cc addc sub.cc subc mad.cc madc -----
 *
 * Warp.carry holds the condition code of each lane as the chip does: the carry of an addition; a
 * subtraction adds the complement, so after a subtraction, a set carry means no borrow. */
#define HANDLER_CARRY(name, width, sources, expression, out)                            \
  HANDLER_BEGIN(name)                                                                   \
  LANE_ARRAY uint##width##_t result[LANES];                                             \
  const uint##width##_t *column_a = column_u##width(warp, in->a);                       \
  const uint##width##_t *column_b = column_u##width(warp, in->b);                       \
  const uint##width##_t *column_c = column_u##width(warp, sources > 2 ? in->c : in->a); \
  LaneMask carry_in = warp->carry, carry_out = 0;                                       \
  for (int lane = 0; lane < LANES; lane++) {                                            \
    const uint##width##_t a = column_a[lane], b = column_b[lane], c = column_c[lane];   \
    const uint##width##_t carry = (carry_in >> lane) & 1u;                              \
    (void)c, (void)carry;                                                               \
    const uint##width##_t d = (expression);                                             \
    carry_out |= (LaneMask)((out) ? 1u : 0u) << lane;                                   \
    result[lane] = d;                                                                   \
  }                                                                                     \
  if (in->writes_carry) warp->carry = (carry_in & ~mask) | (carry_out & mask);          \
  HANDLER_END(width)
typedef unsigned __int128 Wide;
HANDLER_CARRY(add_cc_32, 32, 2, a + b, d < a)
HANDLER_CARRY(add_cc_64, 64, 2, a + b, d < a)
HANDLER_CARRY(addc_32, 32, 2, a + b + carry, carry ? d <= a : d < a)
HANDLER_CARRY(addc_64, 64, 2, a + b + carry, carry ? d <= a : d < a)
HANDLER_CARRY(sub_cc_32, 32, 2, a - b, a >= b)
HANDLER_CARRY(sub_cc_64, 64, 2, a - b, a >= b)
HANDLER_CARRY(subc_32, 32, 2, a - b - 1u + carry, carry ? a >= b : a > b)
HANDLER_CARRY(subc_64, 64, 2, a - b - 1u + carry, carry ? a >= b : a > b)
#define HIGH_U16(a, b) ((((a)&0xffffu) * ((b)&0xffffu)) >> 16)
#define HIGH_S16(a, b) ((uint32_t)((int16_t)(a) * (int16_t)(b)) >> 16)
#define HIGH_U32(a, b) ((uint32_t)(((uint64_t)(a) * (b)) >> 32))
#define HIGH_S32(a, b) ((uint32_t)(((int64_t)(int32_t)(a) * (int32_t)(b)) >> 32))
#define HIGH_U64(a, b) ((uint64_t)(((Wide)(a) * (b)) >> 64))
#define HIGH_S64(a, b) ((uint64_t)(((__int128)(int64_t)(a) * (int64_t)(b)) >> 64))
#define HANDLERS_MAD_CARRY(part, width, product)               \
  HANDLER_CARRY(mad_cc_##part, width, 3, (product) + c, d < c) \
  HANDLER_CARRY(madc_##part, width, 3, (product) + c + carry, carry ? d <= c : d < c)
HANDLERS_MAD_CARRY(lo_32, 32, a *b)
HANDLERS_MAD_CARRY(hi_u32, 32, HIGH_U32(a, b))
HANDLERS_MAD_CARRY(hi_s32, 32, HIGH_S32(a, b))
HANDLERS_MAD_CARRY(lo_64, 64, a *b)
HANDLERS_MAD_CARRY(hi_u64, 64, HIGH_U64(a, b))
HANDLERS_MAD_CARRY(hi_s64, 64, HIGH_S64(a, b))

/* Of 16 bits only those that read the carry. ptxas takes them, though no document names them. */
HANDLER_CARRY(addc_16, 32, 2, (a + b + carry) & 0xffffu, false)
HANDLER_CARRY(subc_16, 32, 2, (a - b - 1u + carry) & 0xffffu, false)
HANDLER_CARRY(madc_lo_16, 32, 3, (a * b + c + carry) & 0xffffu, false)
HANDLER_CARRY(madc_hi_u16, 32, 3, (HIGH_U16(a, b) + c + carry) & 0xffffu, false)
HANDLER_CARRY(madc_hi_s16, 32, 3, (HIGH_S16(a, b) + c + carry) & 0xffffu, false)

/* mad.lo.cc, not mad.cc.lo. */
static bool carry_comes_first(Form *form) {
  const PtxStatement *statement = form->statement;
  bool first = statement->modifier_count > 1 && strcmp(statement->modifiers[1], "cc") == 0;
  return first && !form_fail(form, ".cc follows .lo or .hi");
}

/* addc, subc and madc, which read the carry and with .cc write it, too. */
FORM_DECODER(decode_carry, 1) {
  static HandlerByType reading[] = {{SAME_FOR_SIGNS(addc)},
                                    {SAME_FOR_SIGNS(subc)},
                                    {SAME_FOR_SIGNS(madc_lo)},
                                    {BY_SIGN(madc_hi)}};
  static HandlerByType writing[] = {{CARRY_SAME_FOR_SIGNS(addc)},
                                    {CARRY_SAME_FOR_SIGNS(subc)},
                                    {CARRY_SAME_FOR_SIGNS(madc_lo)},
                                    {CARRY_BY_SIGN(madc_hi)}};
  out->reads_carry = true;
  out->writes_carry = form_take(&form, "cc");
  const char *name = statement->modifiers[0];
  bool multiply = strcmp(name, "madc") == 0;
  if (multiply && carry_comes_first(&form)) return false;
  bool high = multiply && form_take(&form, "hi");
  if (multiply && !high && !form_take(&form, "lo")) return form_fail(&form, "madc is .lo or .hi");
  Type type = form_type(&form);
  if (high && !out->writes_carry && type == TYPE_S32)
    form_take(&form, "sat"); /* ptxas takes and ignores it */
  int which = multiply ? 2 + high : strcmp(name, "subc") == 0;
  return form_end_uniform(&form, (out->writes_carry ? writing : reading)[which], type,
                          multiply ? 3 : 2);
}

static bool add_or_sub(Form *form, Type type, HandlerByType plain, HandlerByType saturating,
                       HandlerByType writing_carry) {
  const Execute *handlers = plain;
  form->out->writes_carry = form_take(form, "cc");
  if (form->out->writes_carry)
    handlers = writing_carry;
  else if (form_take(form, "sat"))
    handlers = saturating;
  return form_end_uniform(form, handlers, type, 2);
}

bool integer_add(Form *form, Type type) {
  static HandlerByType plain = {
      SAME_FOR_SIGNS(add), [TYPE_U16X2] = add_16x2, [TYPE_S16X2] = add_16x2};
  static HandlerByType saturating = {[TYPE_S32] = add_saturating};
  static HandlerByType writing_carry = {CARRY_SAME_FOR_SIGNS(add_cc)};
  return add_or_sub(form, type, plain, saturating, writing_carry);
}
bool integer_sub(Form *form, Type type) {
  static HandlerByType plain = {SAME_FOR_SIGNS(sub)};
  static HandlerByType saturating = {[TYPE_S32] = sub_saturating};
  static HandlerByType writing_carry = {CARRY_SAME_FOR_SIGNS(sub_cc)};
  return add_or_sub(form, type, plain, saturating, writing_carry);
}

/* ---- mul, mad ---- */
HANDLER2(mul_lo_16, 32, 32, 32, (a * b) & 0xffffu)
HANDLER2(mul_lo_32, 32, 32, 32, a *b)
HANDLER2(mul_lo_64, 64, 64, 64, a *b)
HANDLER2(mul_hi_u16, 32, 32, 32, HIGH_U16(a, b))
HANDLER2(mul_hi_s16, 32, 32, 32, HIGH_S16(a, b))
HANDLER2(mul_hi_u32, 32, 32, 32, HIGH_U32(a, b))
HANDLER2(mul_hi_s32, 32, 32, 32, HIGH_S32(a, b))
HANDLER2(mul_hi_u64, 64, 64, 64, HIGH_U64(a, b))
HANDLER2(mul_hi_s64, 64, 64, 64, HIGH_S64(a, b))
HANDLER2(mul_wide_u16, 32, 32, 32, (a & 0xffffu) * (b & 0xffffu))
HANDLER2(mul_wide_s16, 32, 32, 32, (int16_t)a *(int16_t)b)
HANDLER2(mul_wide_u32, 64, 32, 32, (uint64_t)a *b)
HANDLER2(mul_wide_s32, 64, 32, 32, (int64_t)(int32_t)a *(int32_t)b)
HANDLER3(mad_lo_16, 32, 32, 32, 32, (a * b + c) & 0xffffu)
HANDLER3(mad_lo_32, 32, 32, 32, 32, a *b + c)
HANDLER3(mad_lo_64, 64, 64, 64, 64, a *b + c)
HANDLER3(mad_hi_u16, 32, 32, 32, 32, (HIGH_U16(a, b) + c) & 0xffffu)
HANDLER3(mad_hi_s16, 32, 32, 32, 32, (HIGH_S16(a, b) + c) & 0xffffu)
HANDLER3(mad_hi_u32, 32, 32, 32, 32, HIGH_U32(a, b) + c)
HANDLER3(mad_hi_s32, 32, 32, 32, 32, HIGH_S32(a, b) + c)
HANDLER3(mad_hi_u64, 64, 64, 64, 64, HIGH_U64(a, b) + c)
HANDLER3(mad_hi_s64, 64, 64, 64, 64, HIGH_S64(a, b) + c)
HANDLER3(mad_hi_saturating, 32, 32, 32, 32, add_saturated(HIGH_S32(a, b), c))
HANDLER3(mad_wide_u16, 32, 32, 32, 32, (a & 0xffffu) * (b & 0xffffu) + c)
HANDLER3(mad_wide_s16, 32, 32, 32, 32, (uint32_t)((int16_t)a *(int16_t)b) + c)
HANDLER3(mad_wide_u32, 64, 32, 32, 64, (uint64_t)a *b + c)
HANDLER3(mad_wide_s32, 64, 32, 32, 64, (uint64_t)((int64_t)(int32_t)a *(int32_t)b) + c)

#define WIDE(name) \
  [TYPE_U16] = name##_u16, [TYPE_S16] = name##_s16, [TYPE_U32] = name##_u32, [TYPE_S32] = name##_s32

static bool multiply(Form *form, Type type, bool add) {
  static const char *const parts[] = {"lo", "hi", "wide", NULL};
  static HandlerByType table[2][3] = {
      {{SAME_FOR_SIGNS(mul_lo)}, {BY_SIGN(mul_hi)}, {WIDE(mul_wide)}},
      {{SAME_FOR_SIGNS(mad_lo)}, {BY_SIGN(mad_hi)}, {WIDE(mad_wide)}}};
  static HandlerByType writing_carry[2] = {{CARRY_SAME_FOR_SIGNS(mad_cc_lo)},
                                           {CARRY_BY_SIGN(mad_cc_hi)}};
  static HandlerByType saturating = {[TYPE_S32] = mad_hi_saturating};
  static const Type twice_as_wide[TYPES] = {
      [TYPE_U16] = TYPE_U32, [TYPE_S16] = TYPE_S32, [TYPE_U32] = TYPE_U64, [TYPE_S32] = TYPE_S64};
  if (carry_comes_first(form)) return false;
  int part = form_choose(form, parts);
  if (part < 0) return form_fail(form, "the multiplication is .lo, .hi or .wide");
  if (part == 2) {
    Type wide = twice_as_wide[type];
    if (wide == TYPE_NONE) return form_fail(form, ".wide goes with 16- and 32-bit types");
    if (!form_columns(form, wide, type, type, add ? wide : TYPE_NONE)) return false;
    return form_end_typed(form, table[add][part], type);
  }
  form->out->writes_carry = add && form_take(form, "cc");
  if (form->out->writes_carry) return form_end_uniform(form, writing_carry[part], type, 3);
  if (add && part == 1 && form_take(form, "sat"))
    return form_end_uniform(form, saturating, type, 3);
  return form_end_uniform(form, table[add][part], type, add ? 3 : 2);
}
bool integer_mul(Form *form, Type type) { return multiply(form, type, false); }
bool integer_mad(Form *form, Type type) { return multiply(form, type, true); }

/* mul24, mad24: 24-bit factors, the low or the high 32 bits of the 48-bit product. */
static inline uint64_t product24(uint32_t a, uint32_t b) {
  return (uint64_t)(a & 0xffffffu) * (b & 0xffffffu);
}
static inline uint64_t signed_product24(uint32_t a, uint32_t b) {
  return (uint64_t)((int64_t)((int32_t)(a << 8) >> 8) * ((int32_t)(b << 8) >> 8));
}
HANDLER2(mul24_lo_u, 32, 32, 32, product24(a, b))
HANDLER2(mul24_lo_s, 32, 32, 32, signed_product24(a, b))
HANDLER2(mul24_hi_u, 32, 32, 32, product24(a, b) >> 16)
HANDLER2(mul24_hi_s, 32, 32, 32, signed_product24(a, b) >> 16)
HANDLER3(mad24_lo_u, 32, 32, 32, 32, (uint32_t)product24(a, b) + c)
HANDLER3(mad24_lo_s, 32, 32, 32, 32, (uint32_t)signed_product24(a, b) + c)
HANDLER3(mad24_hi_u, 32, 32, 32, 32, (uint32_t)(product24(a, b) >> 16) + c)
HANDLER3(mad24_hi_s, 32, 32, 32, 32, (uint32_t)(signed_product24(a, b) >> 16) + c)
HANDLER3(mad24_hi_saturating, 32, 32, 32, 32,
         add_saturated((uint32_t)(signed_product24(a, b) >> 16), c))

FORM_DECODER(decode_mul24, 1) {
  static HandlerByType mul[2] = {{[TYPE_U32] = mul24_lo_u, [TYPE_S32] = mul24_lo_s},
                                 {[TYPE_U32] = mul24_hi_u, [TYPE_S32] = mul24_hi_s}};
  static HandlerByType mad[2] = {{[TYPE_U32] = mad24_lo_u, [TYPE_S32] = mad24_lo_s},
                                 {[TYPE_U32] = mad24_hi_u, [TYPE_S32] = mad24_hi_s}};
  static HandlerByType saturating = {[TYPE_S32] = mad24_hi_saturating};
  bool add = strcmp(statement->modifiers[0], "mad24") == 0;
  bool high = form_take(&form, "hi");
  if (!high && !form_take(&form, "lo")) return form_fail(&form, "the product is .lo or .hi");
  if (add && high && form_take(&form, "sat"))
    return form_end_uniform(&form, saturating, form_type(&form), 3);
  return form_end_uniform(&form, (add ? mad : mul)[high], form_type(&form), add ? 3 : 2);
}

/* ---- div, rem: what the chip answers for a zero divisor, and for the smallest by -1 ---- */
#define DIVIDE_HANDLERS(type, bits, width)                                                         \
  HANDLER2(div_##type, width, width, width, quotient_##type((uint##bits##_t)a, (uint##bits##_t)b)) \
  HANDLER2(rem_##type, width, width, width, remainder_##type((uint##bits##_t)a, (uint##bits##_t)b))
#define DIVIDE(type, bits, width)                                                     \
  static inline uint##bits##_t quotient_##type(uint##bits##_t a, uint##bits##_t b) {  \
    return b == 0 ? (uint##bits##_t) - 1 : a / b;                                     \
  }                                                                                   \
  static inline uint##bits##_t remainder_##type(uint##bits##_t a, uint##bits##_t b) { \
    return b == 0 ? (uint##bits##_t) - 1 : a % b;                                     \
  }                                                                                   \
  DIVIDE_HANDLERS(type, bits, width)
#define DIVIDE_SIGNED(type, bits, width)                                              \
  static inline uint##bits##_t quotient_##type(uint##bits##_t a, uint##bits##_t b) {  \
    if (b == 0) return (uint##bits##_t) - 1;                                          \
    if (b == (uint##bits##_t) - 1) return (uint##bits##_t)0 - a;                      \
    return (uint##bits##_t)((int##bits##_t)a / (int##bits##_t)b);                     \
  }                                                                                   \
  static inline uint##bits##_t remainder_##type(uint##bits##_t a, uint##bits##_t b) { \
    if (b == 0) return (uint##bits##_t) - 1;                                          \
    if (b == (uint##bits##_t) - 1) return 0;                                          \
    return (uint##bits##_t)((int##bits##_t)a % (int##bits##_t)b);                     \
  }                                                                                   \
  DIVIDE_HANDLERS(type, bits, width)
DIVIDE(u16, 16, 32)
DIVIDE(u32, 32, 32)
DIVIDE(u64, 64, 64)
DIVIDE_SIGNED(s16, 16, 32)
DIVIDE_SIGNED(s32, 32, 32)
DIVIDE_SIGNED(s64, 64, 64)
static HandlerByType div_handlers = {BY_SIGN(div)}, rem_handlers = {BY_SIGN(rem)};
bool integer_div(Form *form, Type type) { return form_end_uniform(form, div_handlers, type, 2); }
bool integer_rem(Form *form, Type type) { return form_end_uniform(form, rem_handlers, type, 2); }

/* ---- abs, neg, min, max ---- */
HANDLER1(abs_s16, 32, 32, (uint16_t)((int16_t)a < 0 ? 0u - a : a))
HANDLER1(abs_s32, 32, 32, (int32_t)a < 0 ? 0u - a : a)
HANDLER1(abs_s64, 64, 64, (int64_t)a < 0 ? 0u - a : a)
HANDLER1(neg_s16, 32, 32, (0u - a) & 0xffffu)
HANDLER1(neg_s32, 32, 32, 0u - a)
HANDLER1(neg_s64, 64, 64, 0u - a)
static HandlerByType abs_handlers = {
    [TYPE_S16] = abs_s16, [TYPE_S32] = abs_s32, [TYPE_S64] = abs_s64};
static HandlerByType neg_handlers = {
    [TYPE_S16] = neg_s16, [TYPE_S32] = neg_s32, [TYPE_S64] = neg_s64};
bool integer_abs(Form *form, Type type) { return form_end_uniform(form, abs_handlers, type, 1); }
bool integer_neg(Form *form, Type type) { return form_end_uniform(form, neg_handlers, type, 1); }

#define LESS(type, a, b) ((type)(a) < (type)(b) ? (a) : (b))
#define MORE(type, a, b) ((type)(a) > (type)(b) ? (a) : (b))
#define RELU(type, a) ((type)(a) > 0 ? (a) : 0)
#define BOTH_HALVES(operation, type, a, b)                 \
  ((operation(type, (a)&0xffffu, (b)&0xffffu) & 0xffffu) | \
   (operation(type, (a) >> 16, (b) >> 16) << 16))
#define RELU_HALVES(a) ((RELU(int16_t, (a)&0xffffu)) | (RELU(int16_t, (a) >> 16) << 16))
#define EXTREMES(name, operation)                                                                 \
  HANDLER2(name##_u16, 32, 32, 32, operation(uint16_t, a, b) & 0xffffu)                           \
  HANDLER2(name##_s16, 32, 32, 32, operation(int16_t, a, b) & 0xffffu)                            \
  HANDLER2(name##_u32, 32, 32, 32, operation(uint32_t, a, b))                                     \
  HANDLER2(name##_s32, 32, 32, 32, operation(int32_t, a, b))                                      \
  HANDLER2(name##_u64, 64, 64, 64, operation(uint64_t, a, b))                                     \
  HANDLER2(name##_s64, 64, 64, 64, operation(int64_t, a, b))                                      \
  HANDLER2(name##_u16x2, 32, 32, 32, BOTH_HALVES(operation, uint16_t, a, b))                      \
  HANDLER2(name##_s16x2, 32, 32, 32, BOTH_HALVES(operation, int16_t, a, b))                       \
  HANDLER2(name##_s32_relu, 32, 32, 32, RELU(int32_t, operation(int32_t, a, b)))                  \
  HANDLER2(name##_s16x2_relu, 32, 32, 32, RELU_HALVES(BOTH_HALVES(operation, int16_t, a, b)))     \
  bool integer_##name(Form *form, Type type) {                                                    \
    static HandlerByType plain = {                                                                \
        BY_SIGN(name), [TYPE_U16X2] = name##_u16x2, [TYPE_S16X2] = name##_s16x2};                 \
    static HandlerByType relu = {[TYPE_S32] = name##_s32_relu, [TYPE_S16X2] = name##_s16x2_relu}; \
    return form_end_uniform(form, form_take(form, "relu") ? relu : plain, type, 2);               \
  }
EXTREMES(min, LESS)
EXTREMES(max, MORE)

/* ---- sad: c + |a - b| ---- */
#define DISTANCE(type, a, b) ((type)(a) < (type)(b) ? (b) - (a) : (a) - (b))
HANDLER3(sad_u16, 32, 32, 32, 32, (c + DISTANCE(uint16_t, a, b)) & 0xffffu)
HANDLER3(sad_s16, 32, 32, 32, 32, (c + DISTANCE(int16_t, a, b)) & 0xffffu)
HANDLER3(sad_u32, 32, 32, 32, 32, c + DISTANCE(uint32_t, a, b))
HANDLER3(sad_s32, 32, 32, 32, 32, c + DISTANCE(int32_t, a, b))
HANDLER3(sad_u64, 64, 64, 64, 64, c + DISTANCE(uint64_t, a, b))
HANDLER3(sad_s64, 64, 64, 64, 64, c + DISTANCE(int64_t, a, b))
static HandlerByType sad_handlers = {BY_SIGN(sad)};
FORM_DECODER(decode_sad, 1) { return form_end_uniform(&form, sad_handlers, form_type(&form), 3); }

/* ---- dp4a, dp2a: dot products of bytes, and of halves with bytes ---- */
static inline uint32_t byte_of(uint32_t value, int index, bool sign) {
  uint32_t byte = (value >> (8 * index)) & 0xffu;
  return sign ? (uint32_t)(int32_t)(int8_t)byte : byte;
}
static inline uint32_t half_of(uint32_t value, int index, bool sign) {
  uint32_t half = (value >> (16 * index)) & 0xffffu;
  return sign ? (uint32_t)(int32_t)(int16_t)half : half;
}
static inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, bool sign_a, bool sign_b) {
  for (int i = 0; i < 4; i++) c += byte_of(a, i, sign_a) * byte_of(b, i, sign_b);
  return c;
}
static inline uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, int first, bool sign_a,
                            bool sign_b) {
  for (int i = 0; i < 2; i++) c += half_of(a, i, sign_a) * byte_of(b, first + i, sign_b);
  return c;
}
#define DOTS(suffix, sign_a, sign_b)                                           \
  HANDLER3(dp4a_##suffix, 32, 32, 32, 32, dot4(a, b, c, sign_a, sign_b))       \
  HANDLER3(dp2a_lo_##suffix, 32, 32, 32, 32, dot2(a, b, c, 0, sign_a, sign_b)) \
  HANDLER3(dp2a_hi_##suffix, 32, 32, 32, 32, dot2(a, b, c, 2, sign_a, sign_b))
DOTS(uu, false, false)
DOTS(us, false, true)
DOTS(su, true, false)
DOTS(ss, true, true)

FORM_DECODER(decode_integer_dot, 1) {
  static const Execute table[3][2][2] = {{{dp4a_uu, dp4a_us}, {dp4a_su, dp4a_ss}},
                                         {{dp2a_lo_uu, dp2a_lo_us}, {dp2a_lo_su, dp2a_lo_ss}},
                                         {{dp2a_hi_uu, dp2a_hi_us}, {dp2a_hi_su, dp2a_hi_ss}}};
  int which = 0;
  if (strcmp(statement->modifiers[0], "dp2a") == 0) {
    static const char *const parts[] = {"lo", "hi", NULL};
    which = 1 + form_choose(&form, parts);
    if (which == 0) return form_fail(&form, "dp2a is .lo or .hi");
  }
  Type a = form_type(&form), b = form_type(&form);
  if ((a != TYPE_U32 && a != TYPE_S32) || (b != TYPE_U32 && b != TYPE_S32))
    return form_fail(&form, "the types are u32 or s32");
  bool sign = a == TYPE_S32 || b == TYPE_S32;
  if (!form_columns(&form, sign ? TYPE_S32 : TYPE_U32, a, b, sign ? TYPE_S32 : TYPE_U32))
    return false;
  return form_end(&form, table[which][a == TYPE_S32][b == TYPE_S32]);
}

/* ---- vabsdiff2, vabsdiff4: of the video instructions, those of CUDA's SIMD intrinsics ---- */
typedef struct {
  int parts, bits; /* of a register: two of 16 bits, or four of 8 */
  bool signed_a, signed_b;
  bool add;         /* to c */
  uint32_t highest; /* to which .sat clamps */
} AbsoluteDifferences;

static StepResult absolute_differences(Warp *warp, const Instruction *in, LaneMask mask) {
  const AbsoluteDifferences *form = in->decoded;
  const uint32_t *a = column_u32(warp, in->a), *b = column_u32(warp, in->b);
  const uint32_t *c = column_u32(warp, in->c);
  const uint32_t kept = (1u << form->bits) - 1;
  LANE_ARRAY uint32_t result[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t sum = c[lane], joined = 0;
    for (int i = 0; i < form->parts; i++) {
      const bool halves = form->parts == 2;
      const int32_t x = (int32_t)(halves ? half_of(a[lane], i, form->signed_a)
                                         : byte_of(a[lane], i, form->signed_a));
      const int32_t y = (int32_t)(halves ? half_of(b[lane], i, form->signed_b)
                                         : byte_of(b[lane], i, form->signed_b));
      const uint32_t difference = (uint32_t)(x < y ? y - x : x - y);
      sum += difference;
      joined |= ((difference < form->highest ? difference : form->highest) & kept)
                << (i * form->bits);
    }
    result[lane] = form->add ? sum : joined;
  }
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

FORM_DECODER(decode_absolute_differences, 1) {
  AbsoluteDifferences *made = decoder_allocate(decoder, sizeof *made);
  const Type d = form_type(&form), a = form_type(&form), b = form_type(&form);
  if ((d != TYPE_U32 && d != TYPE_S32) || (a != TYPE_U32 && a != TYPE_S32) ||
      (b != TYPE_U32 && b != TYPE_S32))
    return form_fail(&form, "the types are u32 or s32");
  const bool saturates = form_take(&form, "sat");
  *made = (AbsoluteDifferences){.parts = statement->modifiers[0][8] - '0',
                                .signed_a = a == TYPE_S32,
                                .signed_b = b == TYPE_S32,
                                .add = form_take(&form, "add"),
                                .highest = UINT32_MAX};
  made->bits = 32 / made->parts;
  if (saturates && made->add) return form_fail(&form, ".sat and .add exclude each other");
  if (saturates) made->highest = (1u << (made->bits - (d == TYPE_S32))) - 1;
  out->decoded = made;
  return form_columns(&form, d, a, b, d) && form_end(&form, absolute_differences);
}
