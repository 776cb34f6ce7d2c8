/* alu.h: how arithmetic handlers are written: columns in, a column out.
 *
 * A handler computes all 32 lanes into a local array, then stores those of the mask: the loops have
 * no branch and no alias, so the compiler turns them into vector code, and the destination may
 * share slots with a source. */
#pragma once

#include <string.h>

#include "base/gather.h"
#include "base/half.h"
#include "base/warp.h"
#include "ptx/form.h"

static inline void store_u32(Warp *warp, unsigned slot, LaneMask mask, const uint32_t *result) {
  uint32_t *column = column_u32(warp, slot);
  if (mask == ~0u) {
    memcpy(column, result, LANES * 4);
    return;
  }
  blend_u32(column, mask, result);
}

static inline void store_u64(Warp *warp, unsigned slot, LaneMask mask, const uint64_t *result) {
  uint64_t *column = column_u64(warp, slot);
  if (mask == ~0u) {
    memcpy(column, result, LANES * 8);
    return;
  }
  blend_u64(column, mask, result);
}

static inline LaneMask predicate_lanes(const Warp *warp, const Operand *operand) {
  LaneMask lanes = operand->kind == OPERAND_PREDICATE ? warp->predicates[operand->slot]
                                                      : (operand->constant_value ? ~0u : 0u);
  return operand->negated ? ~lanes : lanes;
}

static inline void store_predicate(Warp *warp, const Operand *operand, LaneMask mask,
                                   LaneMask value) {
  if (operand->kind != OPERAND_PREDICATE) return; /* "_" */
  LaneMask *lanes = &warp->predicates[operand->slot];
  *lanes = (*lanes & ~mask) | (value & mask);
}

/* HANDLER(name, bits of d, sources, expression): in the expression, a, b and c are the sources'
 * lane values as unsigned integers of their width. The expression itself must cut 16-bit results to
 * 16 bits. */
#define HANDLER_BEGIN(name) \
  static StepResult name(Warp *warp, const Instruction *in, LaneMask mask) {
#define HANDLER_END(width)                   \
  store_u##width(warp, in->d, mask, result); \
  return STEP_NEXT;                          \
  }
#define HANDLER1(name, to, from_a, expression)                      \
  HANDLER_BEGIN(name)                                               \
  LANE_ARRAY uint##to##_t result[LANES];                            \
  const uint##from_a##_t *column_a = column_u##from_a(warp, in->a); \
  for (int lane = 0; lane < LANES; lane++) {                        \
    const uint##from_a##_t a = column_a[lane];                      \
    result[lane] = (uint##to##_t)(expression);                      \
  }                                                                 \
  HANDLER_END(to)
#define HANDLER2(name, to, from_a, from_b, expression)              \
  HANDLER_BEGIN(name)                                               \
  LANE_ARRAY uint##to##_t result[LANES];                            \
  const uint##from_a##_t *column_a = column_u##from_a(warp, in->a); \
  const uint##from_b##_t *column_b = column_u##from_b(warp, in->b); \
  for (int lane = 0; lane < LANES; lane++) {                        \
    const uint##from_a##_t a = column_a[lane];                      \
    const uint##from_b##_t b = column_b[lane];                      \
    result[lane] = (uint##to##_t)(expression);                      \
  }                                                                 \
  HANDLER_END(to)
#define HANDLER3(name, to, from_a, from_b, from_c, expression)      \
  HANDLER_BEGIN(name)                                               \
  LANE_ARRAY uint##to##_t result[LANES];                            \
  const uint##from_a##_t *column_a = column_u##from_a(warp, in->a); \
  const uint##from_b##_t *column_b = column_u##from_b(warp, in->b); \
  const uint##from_c##_t *column_c = column_u##from_c(warp, in->c); \
  for (int lane = 0; lane < LANES; lane++) {                        \
    const uint##from_a##_t a = column_a[lane];                      \
    const uint##from_b##_t b = column_b[lane];                      \
    const uint##from_c##_t c = column_c[lane];                      \
    result[lane] = (uint##to##_t)(expression);                      \
  }                                                                 \
  HANDLER_END(to)

/* add, sub, mul, mad, fma, div, rem, abs, neg, min, max exist for several families: alu.c looks at
 * the type and asks the family's own decoder. */
typedef bool FamilyDecode(Form *form, Type type);
FamilyDecode integer_add, integer_sub, integer_mul, integer_mad, integer_div, integer_rem,
    integer_abs, integer_neg, integer_min, integer_max;
FamilyDecode float_add, float_sub, float_mul, float_fma, float_div, float_abs, float_neg, float_min,
    float_max;
FamilyDecode half_add, half_sub, half_mul, half_fma, half_abs, half_neg, half_min, half_max;

/* What lop3 is decoded to. */
typedef struct {
  uint32_t table;
  bool either; /* p = (d != 0) | q, else & */
  const Operand *second, *with;
  uint16_t a, b, c;
} Lop3;
