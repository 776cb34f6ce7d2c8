/* alu_compare.c: moves, selections and comparisons: mov selp slct set setp. */

#include "arithmetic/alu.h"

/* ---- mov -----
 *
 * mov.b32 d, a copies; with a vector on one side it takes values apart or puts them together, the
 * first element lowest. */

static StepResult move_u32(Warp *warp, const Instruction *in, LaneMask mask) {
  if (in->d != in->a) store_u32(warp, in->d, mask, column_u32(warp, in->a));
  return STEP_NEXT;
}
HANDLER1(move_u16, 32, 32, a & 0xffffu)
HANDLER1(move_low_u16, 32, 64, (uint32_t)a & 0xffffu)
HANDLER1(move_low_u32, 32, 64, (uint32_t)a)
static StepResult move_u64(Warp *warp, const Instruction *in, LaneMask mask) {
  LANE_ARRAY uint64_t copy[LANES]; /* the two may share one of their slots */
  memcpy(copy, column_u64(warp, in->a), sizeof copy);
  store_u64(warp, in->d, mask, copy);
  return STEP_NEXT;
}
/* The address of a .local symbol: the frame's address plus the symbol's offset. */
HANDLER1(move_sum_u32, 32, 32, a + (uint32_t)in->operand[1].offset)
HANDLER1(move_sum_u64, 64, 64, a + (uint64_t)in->operand[1].offset)
static StepResult move_predicate(Warp *warp, const Instruction *in, LaneMask mask) {
  store_predicate(warp, &in->operand[0], mask, predicate_lanes(warp, &in->operand[1]));
  return STEP_NEXT;
}

static StepResult move_special_predicate(Warp *warp, const Instruction *in, LaneMask mask) {
  const uint32_t *values = column_u32(warp, in->a);
  LaneMask lanes = 0;
  for (int lane = 0; lane < LANES; lane++) lanes |= (LaneMask)(values[lane] != 0) << lane;
  store_predicate(warp, &in->operand[0], mask, lanes);
  return STEP_NEXT;
}

/* Any mixture of registers, vectors and literals, through a 16-byte buffer for each lane. A source
 * that is left out counts as 0. */
typedef struct {
  uint16_t slot;
  uint8_t bytes, offset;
  bool wanted;
} MovePart;
typedef struct {
  int source_count, destination_count;
  MovePart source[16], destination[16];
} Move;

static StepResult move_parts(Warp *warp, const Instruction *in, LaneMask mask) {
  const Move *move = in->decoded;
  LANE_ARRAY uint8_t value[LANES][16];
  for (int i = 0; i < move->source_count; i++) {
    MovePart part = move->source[i];
    const uint8_t *column = (const uint8_t *)column_u32(warp, part.slot);
    unsigned stride = part.bytes <= 4 ? 4 : part.bytes;
    for (int lane = 0; lane < LANES; lane++)
      memcpy(value[lane] + part.offset, column + (size_t)lane * stride, part.bytes);
  }
  for (int i = 0; i < move->destination_count; i++) {
    MovePart part = move->destination[i];
    if (!part.wanted) continue;
    uint8_t *column = (uint8_t *)column_u32(warp, part.slot);
    unsigned stride = part.bytes <= 4 ? 4 : part.bytes;
    for (int lane = 0; lane < LANES; lane++) {
      if (!((mask >> lane) & 1u)) continue;
      uint8_t *to = column + (size_t)lane * stride;
      if (part.bytes < 4) memset(to, 0, 4);
      memcpy(to, value[lane] + part.offset, part.bytes);
    }
  }
  return STEP_NEXT;
}

static Type bits_type(uint32_t bytes) {
  static const Type types[] = {
      [1] = TYPE_B8, [2] = TYPE_B16, [4] = TYPE_B32, [8] = TYPE_B64, [16] = TYPE_B128};
  return bytes < sizeof types / sizeof *types ? types[bytes] : TYPE_NONE;
}

/* ptxas reads the lower part of some special registers and of addresses: mov.u16 h, %tid.x. */
static bool takes_part(const Operand *operand, Type type) {
  uint32_t bytes = type_bytes(type);
  return operand->kind == OPERAND_REGISTER && operand->narrowest && !operand->constant &&
         bytes < operand->bytes && bytes >= operand->narrowest && !type_floating(type);
}

static int split_operand(Form *form, const Operand *operand, uint32_t bytes, bool destination,
                         MovePart *parts) {
  bool vector = operand->kind == OPERAND_VECTOR;
  uint32_t count = vector ? operand->count : 1;
  if (count == 0 || count > 16 || bits_type(bytes / count) == TYPE_NONE || bytes % count != 0) {
    form_fail(form, "the vector does not divide the type evenly");
    return 0;
  }
  Type type = bits_type(bytes / count);
  static const Operand zero = {.kind = OPERAND_REGISTER, .bytes = 8, .constant = true};
  for (uint32_t i = 0; i < count; i++) {
    const Operand *element = vector ? &operand->elements[i] : operand;
    if (!destination && element->kind == OPERAND_SINK) element = &zero;
    parts[i].bytes = (uint8_t)(bytes / count);
    parts[i].offset = (uint8_t)(i * (bytes / count));
    parts[i].wanted = element->kind != OPERAND_SINK;
    if (destination && !parts[i].wanted) continue;
    if (destination && (element->kind != OPERAND_REGISTER || element->constant)) {
      form_fail(form, "a destination must be a register");
      return 0;
    }
    parts[i].slot = takes_part(element, type) ? element->slot : form_value(form, element, type);
  }
  return (int)count;
}

/* What ptxas refuses of a vector that takes a number apart or puts one together. */
static const char *vector_misfit(const Operand *vector) {
  bool integers = false, floats = false, any = false;
  for (uint32_t i = 0; i < vector->count; i++) {
    const Operand *element = &vector->elements[i];
    any |= element->kind != OPERAND_SINK;
    integers |= element->numbers == NUMBERS_INTEGER;
    floats |= element->numbers == NUMBERS_FLOAT;
  }
  if (vector->count > 4) return "a vector has at most 4 elements";
  if (!any) return "no element of the vector says what it is";
  return integers && floats ? "the vector holds integers and floating-point numbers" : NULL;
}

static const char *move_misfit(const Form *form, Type type, bool whole) {
  const Operand *operand = form->out->operand;
  if (operand[0].kind == OPERAND_SINK) return "the result of mov cannot be dropped";
  if (operand[1].kind == OPERAND_SINK) return "mov has a source";
  if (!type_bits(type) && !type_integer(type) && type != TYPE_F32 && type != TYPE_F64)
    return "mov has no such type";
  for (int i = 0; i < 2; i++) {
    if (operand[i].kind != OPERAND_VECTOR) continue;
    if (whole && !type_bits(type))
      return "a vector is moved from and to .b16, .b32, .b64 and .b128";
    const char *misfit = whole ? vector_misfit(&operand[i]) : NULL;
    if (misfit) return misfit;
  }
  return NULL;
}

static bool move_part(Form *form, Type type) {
  const Operand *source = form_operand(form, 1);
  form->out->d = form_destination(form, 0, type);
  form->out->a = source->slot;
  if (source->offset != 0) return form_fail(form, "a part of a local variable's address");
  if (source->bytes < 8) return form_end(form, move_u16);
  return form_end(form, type_bytes(type) == 2 ? move_low_u16 : move_low_u32);
}

/* %is_explicit_cluster is the one special register that is a predicate. */
static bool move_of_predicate(Form *form) {
  form_predicate_destination(form, 0);
  if (form_operand(form, 0)->kind == OPERAND_SINK)
    return form_fail(form, "the result of mov cannot be dropped");
  const Operand *source = form_operand(form, 1);
  form->out->a = source->slot;
  if (source->kind == OPERAND_REGISTER && source->special && source->bytes == 1)
    return form_end(form, move_special_predicate);
  if (source->special || source->variable) return form_fail(form, "this is no predicate");
  form_predicate(form, 1);
  return form_end(form, move_predicate);
}

FORM_DECODER(decode_mov, 1) {
  Type type = form_type(&form);
  if (!form_operands(&form, 2, 2)) return false;
  if (type == TYPE_PREDICATE) return move_of_predicate(&form);
  uint32_t bytes = type_bytes(type), elements = form_take(&form, "v4") ? 4 : 1;
  if (form_take(&form, "v2")) elements = 2;
  if (bytes < 2 || bytes * elements > 16) return form_fail(&form, "mov has no such type");
  const char *misfit = move_misfit(&form, type, elements == 1);
  if (misfit) return form_fail(&form, "%s", misfit);
  for (int i = 0; i < 2 && elements > 1; i++)
    if (out->operand[i].kind != OPERAND_VECTOR || out->operand[i].count != elements)
      return form_fail(&form, "mov.v2 and mov.v4 take vectors of 2 and 4 elements");
  bytes *= elements;
  if (out->operand[0].kind == OPERAND_REGISTER && out->operand[1].kind == OPERAND_REGISTER &&
      bytes < 16) {
    if (takes_part(&out->operand[1], type)) return move_part(&form, type);
    if (!form_columns(&form, type, type, TYPE_NONE, TYPE_NONE)) return false;
    if (out->operand[1].offset != 0)
      return form_end(&form, bytes == 8 ? move_sum_u64 : move_sum_u32);
    return form_end(&form, bytes == 8 ? move_u64 : bytes == 4 ? move_u32 : move_u16);
  }
  Move *move = decoder_allocate(decoder, sizeof *move);
  move->destination_count = split_operand(&form, &out->operand[0], bytes, true, move->destination);
  move->source_count = split_operand(&form, &out->operand[1], bytes, false, move->source);
  out->decoded = move;
  return form_end(&form, move_parts);
}

/* ---- selp, slct -----
 */
#define SELECT(width)                                                                           \
  static StepResult select_u##width(Warp *warp, const Instruction *in, LaneMask mask) {         \
    LANE_ARRAY uint##width##_t result[LANES];                                                   \
    const uint##width##_t *a = column_u##width(warp, in->a), *b = column_u##width(warp, in->b); \
    LaneMask chosen = predicate_lanes(warp, &in->operand[3]);                                   \
    for (int lane = 0; lane < LANES; lane++)                                                    \
      result[lane] = ((chosen >> lane) & 1u) ? a[lane] : b[lane];                               \
    store_u##width(warp, in->d, mask, result);                                                  \
    return STEP_NEXT;                                                                           \
  }
SELECT(32)
SELECT(64)

/* Numbers of 16 bits are selected as .b16, pairs as .b32. */
static bool selectable(Type type) {
  uint32_t bytes = type_bytes(type);
  return bytes >= 2 && bytes <= 8 && (type <= TYPE_S64 || type == TYPE_F32 || type == TYPE_F64);
}

FORM_DECODER(decode_selp, 1) {
  Type type = form_type(&form);
  uint32_t bytes = type_bytes(type);
  if (!form_operands(&form, 4, 4)) return false;
  if (!selectable(type)) return form_fail(&form, "selp has no such type");
  out->d = form_destination(&form, 0, type);
  out->a = form_source(&form, 1, type);
  out->b = form_source(&form, 2, type);
  form_predicate(&form, 3);
  return form_end(&form, bytes == 8 ? select_u64 : select_u32);
}

/* A NaN is not >= 0: it chooses b. A subnormal flushed by .ftz is zero, and -0 >= 0. */
static bool choose_float(uint32_t c) { return float_of(c) >= 0; }
static bool choose_float_flushed(uint32_t c) { return float_of(c) >= 0 || (c & 0x7f800000u) == 0; }
HANDLER3(slct_s32_u32, 32, 32, 32, 32, (int32_t)c >= 0 ? a : b)
HANDLER3(slct_s32_u64, 64, 64, 64, 32, (int32_t)c >= 0 ? a : b)
HANDLER3(slct_f32_u32, 32, 32, 32, 32, choose_float(c) ? a : b)
HANDLER3(slct_f32_u64, 64, 64, 64, 32, choose_float(c) ? a : b)
HANDLER3(slct_f32_ftz_u32, 32, 32, 32, 32, choose_float_flushed(c) ? a : b)
HANDLER3(slct_f32_ftz_u64, 64, 64, 64, 32, choose_float_flushed(c) ? a : b)

FORM_DECODER(decode_slct, 1) {
  Type type = form_type(&form), by = form_type(&form);
  bool flush = form_take(&form, "ftz");
  uint32_t bytes = type_bytes(type);
  if (!selectable(type) || (by != TYPE_S32 && by != TYPE_F32) || (flush && by != TYPE_F32))
    return form_fail(&form, "slct has no such types");
  if (!form_columns(&form, type, type, type, by)) return false;
  if (by == TYPE_S32) return form_end(&form, bytes == 8 ? slct_s32_u64 : slct_s32_u32);
  if (flush) return form_end(&form, bytes == 8 ? slct_f32_ftz_u64 : slct_f32_ftz_u32);
  return form_end(&form, bytes == 8 ? slct_f32_u64 : slct_f32_u32);
}

/* ---- set, setp -----
 *
 * A comparison makes a lane mask of two columns. */
typedef LaneMask Compare(const void *a, const void *b);

typedef enum {
  EQ,
  NE,
  LT,
  LE,
  GT,
  GE,
  EQU,
  NEU,
  LTU,
  LEU,
  GTU,
  GEU,
  NUM,
  NAN_,
  COMPARE_COUNT
} CompareOperator;

#define COMPARE(name, storage, type, read, condition)                \
  static LaneMask name(const void *a_column, const void *b_column) { \
    const storage *as = a_column, *bs = b_column;                    \
    LaneMask lanes = 0;                                              \
    for (int lane = 0; lane < LANES; lane++) {                       \
      const type a = read(as[lane]), b = read(bs[lane]);             \
      lanes |= (LaneMask)((condition) ? 1u : 0u) << lane;            \
    }                                                                \
    return lanes;                                                    \
  }
#define COMPARE_INTEGER(suffix, storage, type)                                                    \
  COMPARE_ORDERED(suffix, storage, type, (type))                                                  \
  static Compare *const compare_##suffix[COMPARE_COUNT] = {eq_##suffix, ne_##suffix, lt_##suffix, \
                                                           le_##suffix, gt_##suffix, ge_##suffix};
#define COMPARE_FLOAT(suffix, storage, type, read)                          \
  COMPARE_ORDERED(suffix, storage, type, read)                              \
  COMPARE(equ_##suffix, storage, type, read, !(a < b) && !(a > b))          \
  COMPARE(neu_##suffix, storage, type, read, a != b)                        \
  COMPARE(ltu_##suffix, storage, type, read, !(a >= b))                     \
  COMPARE(leu_##suffix, storage, type, read, !(a > b))                      \
  COMPARE(gtu_##suffix, storage, type, read, !(a <= b))                     \
  COMPARE(geu_##suffix, storage, type, read, !(a < b))                      \
  COMPARE(num_##suffix, storage, type, read, a == a && b == b)              \
  COMPARE(nan_##suffix, storage, type, read, a != a || b != b)              \
  static Compare *const compare_##suffix[COMPARE_COUNT] = {                 \
      eq_##suffix,  ne_##suffix,  lt_##suffix,  le_##suffix,  gt_##suffix,  \
      ge_##suffix,  equ_##suffix, neu_##suffix, ltu_##suffix, leu_##suffix, \
      gtu_##suffix, geu_##suffix, num_##suffix, nan_##suffix};
#define COMPARE_ORDERED(suffix, storage, type, read)     \
  COMPARE(eq_##suffix, storage, type, read, a == b)      \
  COMPARE(ne_##suffix, storage, type, read, a<b || a> b) \
  COMPARE(lt_##suffix, storage, type, read, a < b)       \
  COMPARE(le_##suffix, storage, type, read, a <= b)      \
  COMPARE(gt_##suffix, storage, type, read, a > b)       \
  COMPARE(ge_##suffix, storage, type, read, a >= b)

static inline float flushed_float(uint32_t bits) {
  return float_of((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
static inline float half_low(uint32_t bits) { return float_of_half((uint16_t)bits); }
static inline float half_low_flushed(uint32_t bits) {
  return float_of_half((uint16_t)((bits & 0x7c00u) == 0 ? bits & 0x8000u : bits));
}
static inline float half_high(uint32_t bits) { return half_low(bits >> 16); }
static inline float half_high_flushed(uint32_t bits) { return half_low_flushed(bits >> 16); }
static inline float bfloat_low(uint32_t bits) { return float_of(bits << 16); }
static inline float bfloat_high(uint32_t bits) { return float_of(bits & 0xffff0000u); }

COMPARE_INTEGER(u16, uint32_t, uint16_t)
COMPARE_INTEGER(s16, uint32_t, int16_t)
COMPARE_INTEGER(u32, uint32_t, uint32_t)
COMPARE_INTEGER(s32, uint32_t, int32_t)
COMPARE_INTEGER(u64, uint64_t, uint64_t)
COMPARE_INTEGER(s64, uint64_t, int64_t)
COMPARE_FLOAT(f32, uint32_t, float, float_of)
COMPARE_FLOAT(f32_ftz, uint32_t, float, flushed_float)
COMPARE_FLOAT(f64, uint64_t, double, double_of)
COMPARE_FLOAT(f16, uint32_t, float, half_low)
COMPARE_FLOAT(f16_ftz, uint32_t, float, half_low_flushed)
COMPARE_FLOAT(f16_high, uint32_t, float, half_high)
COMPARE_FLOAT(f16_high_ftz, uint32_t, float, half_high_flushed)
COMPARE_FLOAT(bf16, uint32_t, float, bfloat_low)
COMPARE_FLOAT(bf16_high, uint32_t, float, bfloat_high)

typedef enum { COMBINE_NONE, COMBINE_AND, COMBINE_OR, COMBINE_XOR } Combine;
typedef struct {
  Compare *compare, *compare_high; /* high: the upper half of packed types */
  Combine combine;
  bool halves;         /* setp of packed types: the two destinations get the two halves */
  const Operand *with; /* the predicate of the boolean operation */
  uint32_t yes;        /* what set writes for true */
} Comparison;

static LaneMask combine(const Comparison *comparison, LaneMask lanes, LaneMask with) {
  switch (comparison->combine) {
    case COMBINE_AND:
      return lanes & with;
    case COMBINE_OR:
      return lanes | with;
    case COMBINE_XOR:
      return lanes ^ with;
    default:
      return lanes;
  }
}

static StepResult setp_one(Warp *warp, const Instruction *in, LaneMask mask) {
  const Comparison *comparison = in->decoded;
  LaneMask lanes = comparison->compare(column_u32(warp, in->a), column_u32(warp, in->b));
  LaneMask *to = &warp->predicates[in->d];
  *to = (*to & ~mask) | (lanes & mask);
  return STEP_NEXT;
}

static StepResult setp_any(Warp *warp, const Instruction *in, LaneMask mask) {
  const Comparison *comparison = in->decoded;
  const void *a = column_u32(warp, in->a), *b = column_u32(warp, in->b);
  bool two = in->operand_count > 3 && (in->c & 1u);
  LaneMask with = comparison->with ? predicate_lanes(warp, comparison->with) : 0;
  LaneMask lanes = comparison->compare(a, b);
  LaneMask second = comparison->halves ? comparison->compare_high(a, b) : ~lanes;
  store_predicate(warp, &in->operand[0], mask, combine(comparison, lanes, with));
  if (two) store_predicate(warp, &in->operand[1], mask, combine(comparison, second, with));
  return STEP_NEXT;
}

static StepResult set_u32(Warp *warp, const Instruction *in, LaneMask mask) {
  const Comparison *comparison = in->decoded;
  const void *a = column_u32(warp, in->a), *b = column_u32(warp, in->b);
  LaneMask with = comparison->with ? predicate_lanes(warp, comparison->with) : 0;
  LaneMask lanes = combine(comparison, comparison->compare(a, b), with);
  LaneMask high =
      comparison->compare_high ? combine(comparison, comparison->compare_high(a, b), with) : 0;
  LANE_ARRAY uint32_t result[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    result[lane] = ((lanes >> lane) & 1u) ? comparison->yes : 0u;
    result[lane] |= ((high >> lane) & 1u) ? comparison->yes << 16 : 0u;
  }
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

/* The functions that compare numbers of a type, one for each relation; for packed types also those
 * for the upper half. Without and with .ftz. */
typedef struct {
  Compare *const *low, *const *high;
} Comparisons;
static const Comparisons comparisons[2][TYPES] = {
    {[TYPE_B16] = {.low = compare_u16},
     [TYPE_U16] = {.low = compare_u16},
     [TYPE_S16] = {.low = compare_s16},
     [TYPE_B32] = {.low = compare_u32},
     [TYPE_U32] = {.low = compare_u32},
     [TYPE_S32] = {.low = compare_s32},
     [TYPE_B64] = {.low = compare_u64},
     [TYPE_U64] = {.low = compare_u64},
     [TYPE_S64] = {.low = compare_s64},
     [TYPE_F32] = {.low = compare_f32},
     [TYPE_F64] = {.low = compare_f64},
     [TYPE_F16] = {.low = compare_f16},
     [TYPE_F16X2] = {compare_f16, compare_f16_high},
     [TYPE_BF16] = {.low = compare_bf16},
     [TYPE_BF16X2] = {compare_bf16, compare_bf16_high}},
    {[TYPE_F32] = {.low = compare_f32_ftz},
     [TYPE_F16] = {.low = compare_f16_ftz},
     [TYPE_F16X2] = {compare_f16_ftz, compare_f16_high_ftz}}};

/* Takes relation, boolean operation, .ftz and the operand type (the last type modifier). */
static Comparison *comparison_decode(Form *form, Type *type) {
  static const char *const operators[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                          "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
                                          "lo",  "ls",  "hi",  "hs",  NULL};
  static const char *const booleans[] = {"and", "or", "xor", NULL};
  Comparison *comparison = decoder_allocate(form->decoder, sizeof *comparison);
  int relation = form_choose(form, operators);
  comparison->combine = (Combine)(form_choose(form, booleans) + 1);
  bool flush = form_take(form, "ftz");
  *type = form_type(form);
  if (relation < 0) {
    form_fail(form, "no comparison relation");
    return comparison;
  }
  bool unsigned_only = relation > NAN_;
  if (unsigned_only) { /* lo ls hi hs are lt le gt ge of unsigned integers */
    static const CompareOperator same[] = {LT, LE, GT, GE};
    relation = same[relation - COMPARE_COUNT];
    if (type_signed(*type) || !(type_integer(*type)))
      form_fail(form, "lo, ls, hi and hs compare unsigned integers");
  }
  const Comparisons *functions = &comparisons[flush][*type];
  if (!functions->low) {
    form_fail(form, flush ? ".ftz goes with f32 and f16" : "no comparison of this type");
    return comparison;
  }
  if (type_bits(*type) && relation != EQ && relation != NE)
    form_fail(form, "bits are compared with eq and ne");
  comparison->compare = functions->low[relation];
  comparison->compare_high = functions->high ? functions->high[relation] : NULL;
  if (!comparison->compare) form_fail(form, "no such comparison of this type");
  return comparison;
}

FORM_DECODER(decode_setp, 1) {
  Type type;
  Comparison *comparison = comparison_decode(&form, &type);
  comparison->halves = comparison->compare_high != NULL;
  int boolean = comparison->combine != COMBINE_NONE;
  if (!form_operands(&form, 3 + boolean, 4 + boolean)) return false;
  bool two = out->operand_count == 4 + boolean;
  bool half = type == TYPE_F16 || type == TYPE_BF16;
  if (half && two && out->operand[1].kind != OPERAND_SINK)
    return form_fail(&form, "setp of f16 and bf16 has one predicate");
  form_predicate_destination(&form, 0);
  if (two) form_predicate_destination(&form, 1);
  out->a = form_source(&form, 1 + two, type);
  out->b = form_source(&form, 2 + two, type);
  if (boolean) comparison->with = form_predicate(&form, 3 + two);
  out->c = two;
  out->decoded = comparison;
  if (two || boolean || out->operand[0].kind != OPERAND_PREDICATE) return form_end(&form, setp_any);
  out->d = out->operand[0].slot;
  return form_end(&form, setp_one);
}

/* Of comparisons of and into halves ptxas takes only some. */
static const char *set_misfit(const Form *form, Type to, Type type) {
  bool flush = has_modifier(form->statement, "ftz"), half = type == TYPE_F16 || type == TYPE_BF16;
  bool packed = type == TYPE_F16X2 || type == TYPE_BF16X2;
  if (half && to == TYPE_F32) return "set.f32 compares no halves";
  if (type == TYPE_BF16 && to == TYPE_F16) return "set.f16 does not compare bf16";
  if (flush && to == TYPE_BF16) return ".ftz does not go with bf16";
  if ((to == TYPE_U16 || to == TYPE_S16) && !half) return "set into 16 bits compares halves";
  if (to != type && (type_packed(to) || (packed && type_floating(to))))
    return "pairs are compared into a pair of the same type, or into 32 bits";
  return NULL;
}

FORM_DECODER(decode_set, 1) {
  /* What is written for true; of packed types into each half. */
  static const uint32_t yes[TYPES] = {
      [TYPE_U32] = ~0u,     [TYPE_S32] = ~0u,        [TYPE_U16] = 0xffff,
      [TYPE_S16] = 0xffff,  [TYPE_F32] = 0x3f800000, [TYPE_F16] = 0x3c00,
      [TYPE_BF16] = 0x3f80, [TYPE_F16X2] = 0x3c00,   [TYPE_BF16X2] = 0x3f80};
  /* set.CmpOp.dtype.stype: the destination's type comes first */
  Type to = TYPE_NONE, type = TYPE_NONE;
  to = form_type(&form);
  Comparison *comparison = comparison_decode(&form, &type);
  int boolean = comparison->combine != COMBINE_NONE;
  if (!form_operands(&form, 3 + boolean, 3 + boolean)) return false;
  const char *misfit = set_misfit(&form, to, type);
  if (misfit) return form_fail(&form, "%s", misfit);
  if (!yes[to]) return form_fail(&form, "set has no such destination type");
  comparison->yes = comparison->compare_high ? yes[to] & 0xffffu : yes[to];
  out->d = form_destination(&form, 0, to);
  out->a = form_source(&form, 1, type);
  out->b = form_source(&form, 2, type);
  if (boolean) comparison->with = form_predicate(&form, 3);
  out->decoded = comparison;
  return form_end(&form, set_u32);
}
