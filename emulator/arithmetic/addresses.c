/* addresses.c: the instructions about addresses: cvta, isspacep, mapa and getctarank. */
#include "arithmetic/alu.h"
#include "arithmetic/warp_access.h"
#include "base/memory.h"

HANDLER1(cvta_same, 64, 64, a)
HANDLER1(cvta_shared, 64, 64, GENERIC_SHARED | (uint32_t)a)
/* The address of a function's .local symbol: the frame's address plus the symbol's offset. */
HANDLER1(cvta_local, 64, 64, GENERIC_LOCAL | (a + (uint64_t)in->operand[1].offset))
HANDLER1(cvta_param, 64, 64, GENERIC_PARAM | a)
HANDLER1(cvta_to_shared, 64, 64, (uint32_t)a)
HANDLER1(cvta_to_tagged, 64, 64, a & ~GENERIC_TAG_MASK)

FORM_DECODER(decode_cvta, 1) {
  bool to = form_take(&form, "to");
  Space space = form_space(&form);
  Type type = form_type(&form);
  if (type != TYPE_U64) return form_fail(&form, "addresses have 64 bits: cvta is .u64");
  if (!form_columns(&form, type, type, TYPE_NONE, TYPE_NONE)) return false;
  bool sum = strpbrk(statement->text, "+-") != NULL; /* ptxas takes a variable with an offset */
  if (to && out->operand[1].variable && !sum)
    return form_fail(&form, "cvta.to converts a register");
  switch (space) {
    case SPACE_GLOBAL:
    case SPACE_CONST:
      return form_end(&form, cvta_same);
    case SPACE_SHARED:
      return form_end(&form, to ? cvta_to_shared : cvta_shared);
    case SPACE_LOCAL:
      return form_end(&form, to ? cvta_to_tagged : cvta_local);
    case SPACE_PARAM:
      return form_end(&form, to ? cvta_to_tagged : cvta_param);
    default:
      return form_fail(&form, "cvta names a space");
  }
}

typedef enum {
  IN_GLOBAL,
  IN_CONST,
  IN_SHARED_CTA,
  IN_SHARED_CLUSTER,
  IN_LOCAL,
  IN_PARAM
} SpaceQuery;
static bool address_is_in(const Warp *warp, uint64_t address, SpaceQuery query) {
  uint64_t tag = address & GENERIC_TAG_MASK;
  const Allocation *found = NULL;
  switch (query) {
    case IN_SHARED_CTA:
      return tag == GENERIC_SHARED && (address & ~tag) >> 24 == warp->cta->rank;
    case IN_SHARED_CLUSTER:
      return tag == GENERIC_SHARED && (address & ~tag) >> 24 < warp->cta->cluster->cta_count;
    case IN_LOCAL:
      return tag == GENERIC_LOCAL;
    case IN_PARAM:
      return tag == GENERIC_PARAM;
    default:
      break;
  }
  if (tag != 0) return false;
  found = memory_find(address);
  return (found && found->read_only) == (query == IN_CONST);
}
/* A register of 32 bits counts as an address whose upper half is 0. */
static StepResult isspacep(Warp *warp, const Instruction *in, LaneMask mask) {
  LaneMask lanes = 0;
  bool wide = in->operand[1].bytes == 8;
  FOR_LANES(lane, mask) {
    uint64_t address = wide ? column_u64(warp, in->a)[lane] : column_u32(warp, in->a)[lane];
    if (address_is_in(warp, address, (SpaceQuery)in->b)) lanes |= 1u << lane;
  }
  store_predicate(warp, &in->operand[0], mask, lanes);
  return STEP_NEXT;
}
FORM_DECODER(decode_isspacep, 1) {
  static const struct {
    const char *name;
    SpaceQuery query;
  } spaces[] = {{"global", IN_GLOBAL},
                {"const", IN_CONST},
                {"shared", IN_SHARED_CTA},
                {"shared::cta", IN_SHARED_CTA},
                {"shared::cluster", IN_SHARED_CLUSTER},
                {"local", IN_LOCAL},
                {"param", IN_PARAM},
                {"param::entry", IN_PARAM}};
  if (!form_operands(&form, 2, 2)) return false;
  form_predicate_destination(&form, 0);
  out->a = form_source(&form, 1, out->operand[1].bytes == 4 ? TYPE_U32 : TYPE_U64);
  if (out->operand[1].variable) return form_fail(&form, "isspacep tests a register");
  for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
    if (!form_take(&form, spaces[i].name)) continue;
    out->b = spaces[i].query;
    return form_end(&form, isspacep);
  }
  return form_fail(&form, "isspacep names a space");
}

/* The same offset in another block of the cluster. The rank is the top byte of the 32 bits. */
HANDLER2(mapa_shared_u32, 32, 32, 32, (a & 0xffffffu) | b << 24)
HANDLER2(mapa_shared_u64, 64, 64, 32, (uint32_t)((a & 0xffffffu) | b << 24))
/* ptxas takes a generic address of 32 bits: the lower half of one of 64. */
HANDLER2(mapa_generic_u32, 32, 32, 32, (a & ~0xff000000u) | (b & 0xffu) << 24)
HANDLER2(mapa_generic_u64, 64, 64, 32, (a & ~0xff000000ull) | (uint64_t)(b & 0xffu) << 24)
HANDLER1(getctarank_u32, 32, 32, SHARED_RANK(a))
HANDLER1(getctarank_u64, 32, 64, SHARED_RANK(a))

FORM_DECODER(decode_mapa, 1) {
  static HandlerByType ranks = {[TYPE_U32] = getctarank_u32, [TYPE_U64] = getctarank_u64};
  static HandlerByType generic = {[TYPE_U32] = mapa_generic_u32, [TYPE_U64] = mapa_generic_u64};
  static HandlerByType in_shared = {[TYPE_U32] = mapa_shared_u32, [TYPE_U64] = mapa_shared_u64};
  bool rank = strcmp(statement->modifiers[0], "getctarank") == 0;
  bool shared = form_take(&form, "shared::cluster");
  Type type = form_type(&form);
  if (!form_columns(&form, rank ? TYPE_U32 : type, type, rank ? TYPE_NONE : TYPE_U32, TYPE_NONE))
    return false;
  return form_end_typed(&form, rank ? ranks : shared ? in_shared : generic, type);
}
