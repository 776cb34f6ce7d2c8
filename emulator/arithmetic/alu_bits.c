/* alu_bits.c: logic, shifts and bit fields: and or xor not cnot lop3 shl shr shf prmt bfe bfi szext
 * bmsk popc clz bfind brev fns. */
#include "arithmetic/alu.h"

/* ---- and, or, xor, not, cnot ---- */
HANDLER2(and_32, 32, 32, 32, a &b)
HANDLER2(or_32, 32, 32, 32, a | b)
HANDLER2(xor_32, 32, 32, 32, a ^ b)
HANDLER2(and_64, 64, 64, 64, a &b)
HANDLER2(or_64, 64, 64, 64, a | b)
HANDLER2(xor_64, 64, 64, 64, a ^ b)
HANDLER1(not_16, 32, 32, ~a & 0xffffu)
HANDLER1(not_32, 32, 32, ~a)
HANDLER1(not_64, 64, 64, ~a)
HANDLER1(cnot_16, 32, 32, (a & 0xffffu) == 0 ? 1u : 0u)
HANDLER1(cnot_32, 32, 32, a == 0 ? 1u : 0u)
HANDLER1(cnot_64, 64, 64, a == 0 ? 1u : 0u)

#define PREDICATE_LOGIC(name, expression)                                            \
  static StepResult name(Warp *warp, const Instruction *in, LaneMask mask) {         \
    LaneMask a = predicate_lanes(warp, &in->operand[1]);                             \
    LaneMask b = predicate_lanes(warp, &in->operand[in->operand_count > 2 ? 2 : 1]); \
    (void)b;                                                                         \
    store_predicate(warp, &in->operand[0], mask, expression);                        \
    return STEP_NEXT;                                                                \
  }
PREDICATE_LOGIC(and_predicate, a &b)
PREDICATE_LOGIC(or_predicate, a | b)
PREDICATE_LOGIC(xor_predicate, a ^ b)
PREDICATE_LOGIC(not_predicate, ~a)

FORM_DECODER(decode_logic, 1) {
  static const Execute predicates[] = {and_predicate, or_predicate, xor_predicate};
  static HandlerByType handlers[] = {
      {[TYPE_B16] = and_32, [TYPE_B32] = and_32, [TYPE_B64] = and_64},
      {[TYPE_B16] = or_32, [TYPE_B32] = or_32, [TYPE_B64] = or_64},
      {[TYPE_B16] = xor_32, [TYPE_B32] = xor_32, [TYPE_B64] = xor_64}};
  char first = statement->modifiers[0][0];
  int which = first == 'a' ? 0 : first == 'o' ? 1 : 2;
  Type type = form_type(&form);
  if (type != TYPE_PREDICATE) return form_end_uniform(&form, handlers[which], type, 2);
  if (!form_operands(&form, 3, 3)) return false;
  form_predicate_destination(&form, 0);
  for (int i = 1; i < 3; i++) form_predicate(&form, i);
  return form_end(&form, predicates[which]);
}

FORM_DECODER(decode_not, 1) {
  static HandlerByType handlers = {[TYPE_B16] = not_16, [TYPE_B32] = not_32, [TYPE_B64] = not_64};
  Type type = form_type(&form);
  if (type != TYPE_PREDICATE) return form_end_uniform(&form, handlers, type, 1);
  if (!form_operands(&form, 2, 2)) return false;
  form_predicate_destination(&form, 0);
  form_predicate(&form, 1);
  return form_end(&form, not_predicate);
}

FORM_DECODER(decode_cnot, 1) {
  static HandlerByType handlers = {
      [TYPE_B16] = cnot_16, [TYPE_B32] = cnot_32, [TYPE_B64] = cnot_64};
  return form_end_uniform(&form, handlers, form_type(&form), 1);
}

/* ---- lop3: any function of three bits, by its truth table ---- */
/* a, b and c are the binary digits of the table's bit number: eight masked minterms, chosen once
 * per warp. */
static StepResult lop3_32(Warp *warp, const Instruction *in, LaneMask mask) {
  const Lop3 *lop3 = in->decoded;
  LANE_ARRAY uint32_t result[LANES];
  const uint32_t *a = column_u32(warp, lop3->a), *b = column_u32(warp, lop3->b),
                 *c = column_u32(warp, lop3->c);
  uint32_t term[8];
  for (int i = 0; i < 8; i++) term[i] = ((lop3->table >> i) & 1u) ? ~0u : 0u;
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t clear_a = (~b[lane] & ((~c[lane] & term[0]) | (c[lane] & term[1]))) |
                       (b[lane] & ((~c[lane] & term[2]) | (c[lane] & term[3])));
    uint32_t set_a = (~b[lane] & ((~c[lane] & term[4]) | (c[lane] & term[5]))) |
                     (b[lane] & ((~c[lane] & term[6]) | (c[lane] & term[7])));
    result[lane] = (~a[lane] & clear_a) | (a[lane] & set_a);
  }
  if (lop3->second) {
    LaneMask lanes = 0, with = predicate_lanes(warp, lop3->with);
    for (int lane = 0; lane < LANES; lane++) lanes |= (uint32_t)(result[lane] != 0) << lane;
    store_predicate(warp, lop3->second, mask, lop3->either ? lanes | with : lanes & with);
  }
  if (in->operand[0].kind != OPERAND_SINK) store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

FORM_DECODER(decode_lop3, 1) {
  Lop3 *lop3 = decoder_allocate(decoder, sizeof *lop3);
  lop3->either = form_take(&form, "or");
  bool boolean = lop3->either || form_take(&form, "and");
  if (form_type(&form) != TYPE_B32) return form_fail(&form, "lop3 has the type b32");
  if (!form_operands(&form, boolean ? 7 : 5, boolean ? 7 : 5)) return false;
  bool sink = boolean && out->operand[0].kind == OPERAND_SINK;
  if (!sink) out->d = form_destination(&form, 0, TYPE_B32);
  if (boolean) {
    lop3->second = form_predicate_destination(&form, 1);
    lop3->with = form_predicate(&form, 6);
  }
  lop3->a = form_source(&form, 1 + boolean, TYPE_B32);
  lop3->b = form_source(&form, 2 + boolean, TYPE_B32);
  lop3->c = form_source(&form, 3 + boolean, TYPE_B32);
  const Operand *table = form_operand(&form, 4 + boolean);
  if (!table->constant || table->floating)
    return form_fail(&form, "lop3's table is a literal of 8 bits");
  lop3->table = (uint32_t)table->constant_value & 0xffu;
  out->decoded = lop3;
  return form_end(&form, lop3_32);
}

/* ---- shl, shr, shf: amounts past the width clamp ---- */
#define SHIFT_LEFT(width, a, b) ((b) < (width) ? (a) << ((b) & ((width)-1)) : 0)
HANDLER2(shl_16, 32, 32, 32, SHIFT_LEFT(32, a, b) & 0xffffu)
HANDLER2(shl_32, 32, 32, 32, SHIFT_LEFT(32, a, b))
HANDLER2(shl_64, 64, 64, 32, SHIFT_LEFT(64, a, b))
HANDLER2(shr_u16, 32, 32, 32, b < 32 ? (a & 0xffffu) >> (b & 31u) : 0)
HANDLER2(shr_u32, 32, 32, 32, b < 32 ? a >> (b & 31u) : 0)
HANDLER2(shr_u64, 64, 64, 32, b < 64 ? a >> (b & 63u) : 0)
HANDLER2(shr_s16, 32, 32, 32, (uint16_t)((int16_t)a >> (b < 15 ? b : 15u)))
HANDLER2(shr_s32, 32, 32, 32, (int32_t)a >> (b < 31 ? b : 31u))
HANDLER2(shr_s64, 64, 64, 32, (int64_t)a >> (b < 63 ? b : 63u))

FORM_DECODER(decode_shift, 1) {
  static HandlerByType shl = {[TYPE_B16] = shl_16, [TYPE_B32] = shl_32, [TYPE_B64] = shl_64};
  static HandlerByType shr = {[TYPE_B16] = shr_u16, [TYPE_B32] = shr_u32, [TYPE_B64] = shr_u64,
                              [TYPE_U16] = shr_u16, [TYPE_U32] = shr_u32, [TYPE_U64] = shr_u64,
                              [TYPE_S16] = shr_s16, [TYPE_S32] = shr_s32, [TYPE_S64] = shr_s64};
  bool left = strcmp(statement->modifiers[0], "shl") == 0;
  Type type = form_type(&form);
  if (!form_columns(&form, type, type, TYPE_U32, TYPE_NONE)) return false;
  return form_end_typed(&form, left ? shl : shr, type);
}

/* The 64 bits b:a, of which shf.l keeps the upper word and shf.r the lower one. */
static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n) {
  return (uint32_t)(((((uint64_t)b << 32) | a) << n) >> 32);
}
static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n) {
  return (uint32_t)((((uint64_t)b << 32) | a) >> n);
}
HANDLER3(shf_l_wrap, 32, 32, 32, 32, funnel_left(a, b, c & 31u))
HANDLER3(shf_r_wrap, 32, 32, 32, 32, funnel_right(a, b, c & 31u))
HANDLER3(shf_l_clamp, 32, 32, 32, 32, funnel_left(a, b, c < 32 ? c : 32u))
HANDLER3(shf_r_clamp, 32, 32, 32, 32, funnel_right(a, b, c < 32 ? c : 32u))

FORM_DECODER(decode_shf, 1) {
  bool left = form_take(&form, "l"), right = !left && form_take(&form, "r");
  bool wrap = form_take(&form, "wrap"), clamp = !wrap && form_take(&form, "clamp");
  if (!(left || right) || !(wrap || clamp) || form_type(&form) != TYPE_B32)
    return form_fail(&form, "shf is .l or .r, .wrap or .clamp, and .b32");
  if (!form_columns(&form, TYPE_B32, TYPE_B32, TYPE_B32, TYPE_U32)) return false;
  if (left) return form_end(&form, wrap ? shf_l_wrap : shf_l_clamp);
  return form_end(&form, wrap ? shf_r_wrap : shf_r_clamp);
}

/* ---- prmt: four bytes chosen from the eight of b:a ---- */
static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t bytes = ((uint64_t)b << 32) | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t choice = c >> (4 * i);
    uint32_t byte = (uint32_t)(bytes >> (8 * (choice & 7u))) & 0xffu;
    byte = (choice & 8u) ? ((byte & 0x80u) ? 0xffu : 0u) : byte;
    result |= byte << (8 * i);
  }
  return result;
}
/* The special modes are fixed choices for each of the four values of c's two low bits. */
static inline uint32_t permute_mode(uint32_t a, uint32_t b, uint32_t c, const uint16_t *choices) {
  return permute(a, b, choices[c & 3u]);
}
static const uint16_t prmt_choices[6][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e: forward */
    {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e: backward */
    {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8: one byte four times */
    {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl: clamped on the left */
    {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr: clamped on the right */
    {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16: one half twice */
};
HANDLER3(prmt_index, 32, 32, 32, 32, permute(a, b, c))
HANDLER3(prmt_mode, 32, 32, 32, 32, permute_mode(a, b, c, in->decoded))

FORM_DECODER(decode_prmt, 1) {
  static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16", NULL};
  int mode = form_choose(&form, modes);
  if (form_type(&form) != TYPE_B32) return form_fail(&form, "prmt has the type b32");
  if (!form_columns(&form, TYPE_B32, TYPE_B32, TYPE_B32, TYPE_B32)) return false;
  if (mode < 0) return form_end(&form, prmt_index);
  out->decoded = prmt_choices[mode];
  return form_end(&form, prmt_mode);
}

/* ---- Bit fields ---- */
static inline uint64_t low_bits(uint32_t count) {
  return count >= 64 ? ~0ull : (1ull << count) - 1;
}
/* Position and length count modulo 256 in the 32-bit forms; the 64-bit forms are emulated by code
 * on the GPU and use the full values. */
static inline uint32_t field_amount(uint32_t value, uint32_t width) {
  if (width == 32) return value & 0xffu;
  return value < 0x1000u ? value : 0x1000u;
}
/* Bits past the word's end are the sign (0 for unsigned), which for a signed field that sticks out
 * is the word's top bit. */
static inline uint64_t extract_field(uint64_t a, uint32_t b, uint32_t c, uint32_t width,
                                     bool sign) {
  uint32_t position = field_amount(b, width), length = field_amount(c, width);
  if (length == 0) return 0;
  uint32_t last = position + length - 1 < width - 1 ? position + length - 1 : width - 1;
  uint64_t fill = sign && ((a >> last) & 1u) ? ~0ull : 0;
  if (position >= width) return fill;
  uint32_t count = last - position + 1;
  return ((a >> position) & low_bits(count)) | (fill & ~low_bits(count));
}
HANDLER3(bfe_u32, 32, 32, 32, 32, extract_field(a, b, c, 32, false))
HANDLER3(bfe_s32, 32, 32, 32, 32, extract_field(a, b, c, 32, true))
HANDLER3(bfe_u64, 64, 64, 32, 32, extract_field(a, b, c, 64, false))
HANDLER3(bfe_s64, 64, 64, 32, 32, extract_field(a, b, c, 64, true))

FORM_DECODER(decode_bfe, 1) {
  static HandlerByType handlers = {
      [TYPE_U32] = bfe_u32, [TYPE_S32] = bfe_s32, [TYPE_U64] = bfe_u64, [TYPE_S64] = bfe_s64};
  Type type = form_type(&form);
  if (!form_columns(&form, type, type, TYPE_U32, TYPE_U32)) return false;
  if (!form_literal_within(&form, 2, 255) || !form_literal_within(&form, 3, 255)) return false;
  return form_end_typed(&form, handlers, type);
}

static inline uint64_t insert_field(uint64_t a, uint64_t b, uint32_t position, uint32_t length,
                                    uint32_t width) {
  position = field_amount(position, width), length = field_amount(length, width);
  if (position >= width) return b;
  uint64_t bits = low_bits(length) << position;
  return (b & ~bits) | ((a << position) & bits);
}
/* bfi has four sources: the length's slot comes with the decoded form. */
#define FIELD_LENGTH column_u32(warp, *(const uint16_t *)in->decoded)[lane]
HANDLER3(bfi_32, 32, 32, 32, 32, insert_field(a, b, c, FIELD_LENGTH, 32))
HANDLER3(bfi_64, 64, 64, 64, 32, insert_field(a, b, c, FIELD_LENGTH, 64))

FORM_DECODER(decode_bfi, 1) {
  Type type = form_type(&form);
  if (type != TYPE_B32 && type != TYPE_B64) return form_fail(&form, "bfi is .b32 or .b64");
  if (!form_operands(&form, 5, 5)) return false;
  uint16_t *length = decoder_allocate(decoder, sizeof *length);
  out->d = form_destination(&form, 0, type);
  out->a = form_source(&form, 1, type);
  out->b = form_source(&form, 2, type);
  out->c = form_source(&form, 3, TYPE_U32);
  *length = form_source(&form, 4, TYPE_U32);
  if (!form_literal_within(&form, 3, 255) || !form_literal_within(&form, 4, 255)) return false;
  out->decoded = length;
  return form_end(&form, type == TYPE_B64 ? bfi_64 : bfi_32);
}

/* szext: the low b bits of a, extended. bmsk: b ones from bit a up. */
static inline uint32_t extend(uint32_t a, uint32_t b, bool sign) {
  if (b >= 32) return a;
  if (b == 0) return 0;
  uint32_t shift = 32 - b;
  return sign ? (uint32_t)((int32_t)(a << shift) >> shift) : (a << shift) >> shift;
}
static inline uint32_t ones_from(uint32_t position, uint32_t length) {
  return position >= 32 ? 0 : (uint32_t)(low_bits(length) << position);
}
HANDLER2(szext_u_clamp, 32, 32, 32, extend(a, b, false))
HANDLER2(szext_s_clamp, 32, 32, 32, extend(a, b, true))
HANDLER2(szext_u_wrap, 32, 32, 32, extend(a, b & 31u, false))
HANDLER2(szext_s_wrap, 32, 32, 32, extend(a, b & 31u, true))
HANDLER2(bmsk_clamp, 32, 32, 32, ones_from(a, b))
HANDLER2(bmsk_wrap, 32, 32, 32, ones_from(a & 31u, b & 31u))

static int clamp_or_wrap(Form *form) {
  static const char *const modes[] = {"clamp", "wrap", NULL};
  int mode = form_choose(form, modes);
  if (mode < 0) form_fail(form, "the amount is .clamp or .wrap");
  return mode;
}
FORM_DECODER(decode_szext, 1) {
  static HandlerByType handlers[] = {{[TYPE_U32] = szext_u_clamp, [TYPE_S32] = szext_s_clamp},
                                     {[TYPE_U32] = szext_u_wrap, [TYPE_S32] = szext_s_wrap}};
  int mode = clamp_or_wrap(&form);
  Type type = form_type(&form);
  if (!form_columns(&form, type, type, TYPE_U32, TYPE_NONE)) return false;
  return form_end_typed(&form, handlers[mode], type);
}
FORM_DECODER(decode_bmsk, 1) {
  int mode = clamp_or_wrap(&form);
  if (form_type(&form) != TYPE_B32) return form_fail(&form, "bmsk is .b32");
  if (!form_columns(&form, TYPE_B32, TYPE_U32, TYPE_U32, TYPE_NONE)) return false;
  return form_end(&form, mode ? bmsk_wrap : bmsk_clamp);
}

/* ---- popc, clz, bfind, brev, fns ---- */
HANDLER1(popc_32, 32, 32, (uint32_t)__builtin_popcount(a))
HANDLER1(popc_64, 32, 64, (uint32_t)__builtin_popcountll(a))
HANDLER1(clz_32, 32, 32, a ? (uint32_t)__builtin_clz(a) : 32u)
HANDLER1(clz_64, 32, 64, a ? (uint32_t)__builtin_clzll(a) : 64u)

FORM_DECODER(decode_count, 1) {
  static HandlerByType popc = {[TYPE_B32] = popc_32, [TYPE_B64] = popc_64};
  static HandlerByType clz = {[TYPE_B32] = clz_32, [TYPE_B64] = clz_64};
  Type type = form_type(&form);
  if (!form_columns(&form, TYPE_U32, type, TYPE_NONE, TYPE_NONE)) return false;
  return form_end_typed(&form, statement->modifiers[0][0] == 'p' ? popc : clz, type);
}

/* The highest bit that differs from the sign; none: -1. With .shiftamt: how far it is from the top.
 */
static inline uint32_t find_u32(uint32_t a) { return a ? 31u - (uint32_t)__builtin_clz(a) : ~0u; }
static inline uint32_t find_u64(uint64_t a) { return a ? 63u - (uint32_t)__builtin_clzll(a) : ~0u; }
static inline uint32_t from_top(uint32_t found, uint32_t width) {
  return found == ~0u ? ~0u : width - 1 - found;
}
HANDLER1(bfind_u32, 32, 32, find_u32(a))
HANDLER1(bfind_s32, 32, 32, find_u32((int32_t)a < 0 ? ~a : a))
HANDLER1(bfind_u64, 32, 64, find_u64(a))
HANDLER1(bfind_s64, 32, 64, find_u64((int64_t)a < 0 ? ~a : a))
HANDLER1(bfind_shift_u32, 32, 32, from_top(find_u32(a), 32))
HANDLER1(bfind_shift_s32, 32, 32, from_top(find_u32((int32_t)a < 0 ? ~a : a), 32))
HANDLER1(bfind_shift_u64, 32, 64, from_top(find_u64(a), 64))
HANDLER1(bfind_shift_s64, 32, 64, from_top(find_u64((int64_t)a < 0 ? ~a : a), 64))

FORM_DECODER(decode_bfind, 1) {
  static HandlerByType plain = {[TYPE_U32] = bfind_u32,
                                [TYPE_S32] = bfind_s32,
                                [TYPE_U64] = bfind_u64,
                                [TYPE_S64] = bfind_s64};
  static HandlerByType shift = {[TYPE_U32] = bfind_shift_u32,
                                [TYPE_S32] = bfind_shift_s32,
                                [TYPE_U64] = bfind_shift_u64,
                                [TYPE_S64] = bfind_shift_s64};
  bool shifted = form_take(&form, "shiftamt");
  Type type = form_type(&form);
  if (!form_columns(&form, TYPE_U32, type, TYPE_NONE, TYPE_NONE)) return false;
  return form_end_typed(&form, shifted ? shift : plain, type);
}

static inline uint32_t reversed(uint32_t a) {
  a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1);
  a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2);
  a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(a);
}
HANDLER1(brev_32, 32, 32, reversed(a))
HANDLER1(brev_64, 64, 64, ((uint64_t)reversed((uint32_t)a) << 32) | reversed((uint32_t)(a >> 32)))

FORM_DECODER(decode_brev, 1) {
  static HandlerByType handlers = {[TYPE_B32] = brev_32, [TYPE_B64] = brev_64};
  return form_end_uniform(&form, handlers, form_type(&form), 1);
}

/* The offset-th set bit from the base on: up for positive offsets, down for negative ones; 0 asks
 * whether the base's own bit is set. No such bit: -1. */
static inline uint32_t nth_set(uint32_t bits, uint32_t base, uint32_t offset_bits) {
  int32_t offset = (int32_t)offset_bits;
  if (base >= 32) return ~0u;
  if (offset == 0) return ((bits >> base) & 1u) ? base : ~0u;
  int step = offset > 0 ? 1 : -1;
  uint32_t left = offset > 0 ? offset_bits : 0u - offset_bits;
  for (int at = (int)base; at >= 0 && at < 32; at += step)
    if (((bits >> at) & 1u) && --left == 0) return (uint32_t)at;
  return ~0u;
}
HANDLER3(fns_32, 32, 32, 32, 32, nth_set(a, b, c))

FORM_DECODER(decode_fns, 1) {
  if (form_type(&form) != TYPE_B32) return form_fail(&form, "fns is .b32");
  if (!form_columns(&form, TYPE_B32, TYPE_B32, TYPE_B32, TYPE_S32)) return false;
  return form_end(&form, fns_32);
}
