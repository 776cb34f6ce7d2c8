/* loadstore_decode.c: the text of ld, ldu and st, and what atomics and other memory instructions share of it. */
#include <string.h>

#include "arithmetic/warp_access.h"

Space form_space(Form *form) {
  const PtxStatement *statement = form->statement;
  for (int i = 1; i < statement->modifier_count; i++) {
    Space space = space_named(statement->modifiers[i]);
    if (space != SPACE_GENERIC && form_take(form, statement->modifiers[i])) return space;
  }
  return SPACE_GENERIC;
}

void form_cache_hints(Form *form, int first_extra_operand) {
  static const char *const known[] = {"ca",
                                      "cg",
                                      "cs",
                                      "lu",
                                      "cv",
                                      "wb",
                                      "wt",
                                      "L1::evict_normal",
                                      "L1::evict_unchanged",
                                      "L1::evict_first",
                                      "L1::evict_last",
                                      "L1::no_allocate",
                                      "L2::evict_normal",
                                      "L2::evict_first",
                                      "L2::evict_last",
                                      "L2::64B",
                                      "L2::128B",
                                      "L2::256B",
                                      NULL};
  while (form_choose(form, known) >= 0) continue;
  int extra = form_take(form, "L2::cache_hint") ? 1 : 0;
  if (!form_operands(form, first_extra_operand, first_extra_operand + extra)) return;
  if (extra) form_source(form, first_extra_operand, TYPE_U64);
}

void form_order(Form *form, Transfer *transfer) {
  static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
  if (form_take(form, "weak")) return; /* never of atomics */
  transfer->acquire = form_take(form, "acquire");
  transfer->release = form_take(form, "release");
  if (form_take(form, "acq_rel")) transfer->acquire = transfer->release = true;
  bool relaxed = form_take(form, "mmio"); /* written as .mmio.relaxed.sys */
  relaxed |= form_take(form, "relaxed");
  bool is_volatile = form_take(form, "volatile");
  transfer->strong = transfer->acquire || transfer->release || relaxed || is_volatile;
  int scope = form_choose(form, scopes);
  GlobalKind *kind = &transfer->kind;
  kind->reach = (uint8_t)(is_volatile ? REACH_SYSTEM : scope < 0 ? REACH_GPU : REACH_CTA + scope);
  kind->flags = is_volatile ? GLOBAL_VOLATILE : 0;
  kind->acquire = transfer->acquire;
  kind->release = transfer->release;
}

static bool memory_type(Type type) {
  return (type >= TYPE_B8 && type <= TYPE_S64) || type == TYPE_F32 || type == TYPE_F64;
}

void form_elements(Form *form, Transfer *transfer, int index, bool destination) {
  const Operand *operand = form_operand(form, index);
  bool vector = operand->kind == OPERAND_VECTOR;
  uint32_t count = vector ? operand->count : 1;
  if (count != transfer->element_count) {
    form_fail(form, "the vector has another number of elements than the instruction says");
    return;
  }
  for (uint32_t i = 0; i < count && !form->failed; i++) {
    const Operand *element = vector ? &operand->elements[i] : operand;
    transfer->element[i].wanted = element->kind != OPERAND_SINK;
    if (element->kind == OPERAND_SINK) {
      if (!destination) form_fail(form, "\"_\" has no value to store");
      continue;
    }
    if (element->kind != OPERAND_REGISTER || (destination && element->constant)) {
      form_fail(form,
                destination ? "a destination must be a register" : "a source must be a register");
      return;
    }
    if (element->constant) {
      transfer->element[i].slot = form_value(form, element, transfer->type);
      uint32_t width = transfer->element_bytes < 4 ? 4 : transfer->element_bytes;
      transfer->element[i].column_bytes = transfer->element[i].register_bytes = (uint8_t)width;
      continue;
    }
    if (!form_fits(form, element, transfer->type)) return;
    /* Loads and stores may name a wider register than their type. */
    if (element->bytes < transfer->element_bytes ||
        (transfer->element_bytes >= 8 && element->bytes != transfer->element_bytes) ||
        (element->bytes == 16) != (transfer->element_bytes == 16)) {
      form_fail(form, "a register's width does not fit the type");
      return;
    }
    transfer->element[i].slot = element->slot;
    transfer->element[i].register_bytes = element->bytes;
    transfer->element[i].column_bytes = element->bytes <= 4 ? 4 : element->bytes;
  }
}

const Operand *form_address(Form *form, int index) {
  const Operand *operand = form_operand(form, index);
  if (!form->failed && operand->kind != OPERAND_ADDRESS)
    form_fail(form, "an operand should be an address in brackets");
  return operand;
}

static bool has_any(const PtxStatement *statement, const char *const *modifiers) {
  for (int i = 0; modifiers[i]; i++)
    if (has_modifier(statement, modifiers[i])) return true;
  return false;
}

/* Modifiers that ptxas does not take together, or not in this space. */
static const char *modifiers_clash(const PtxStatement *statement, Space space) {
  static const char *const orders[] = {"relaxed", "acquire", "release", NULL};
  static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
  static const char *const operators[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", NULL};
  static const char *const priorities[] = {"L1::evict_normal", "L1::evict_unchanged",
                                           "L1::evict_first",  "L1::evict_last",
                                           "L1::no_allocate",  NULL};
  static const char *const hints[] = {"L2::cache_hint", "L2::64B", "L2::128B", "L2::256B", NULL};
  static const char *const others[] = {"weak", "volatile", "mmio", "nc", NULL};
  static const char *const vectors[] = {"v2", "v4", NULL};
  bool ordered = has_any(statement, orders), global = space == SPACE_GLOBAL;
  bool cached = has_any(statement, operators), priority = has_any(statement, priorities);
  global |= space == SPACE_GENERIC;
  if (ordered != has_any(statement, scopes))
    return ".relaxed, .acquire and .release need a scope, and a scope needs one of them";
  bool mmio = has_modifier(statement, "mmio"), is_volatile = has_modifier(statement, "volatile");
  bool hint = has_any(statement, hints);
  if (strcmp(statement->modifiers[0], "ldu") == 0 &&
      (ordered || cached || priority || hint || has_any(statement, others)))
    return "ldu takes a state space, a vector and a type, and no other modifier";
  if (strcmp(statement->modifiers[0], "st") == 0 && has_any(statement, hints + 1))
    return ".L2::64B, .L2::128B and .L2::256B are for loads";
  if (cached && (ordered || priority || is_volatile))
    return "a cache operator such as .cg excludes an order, .volatile and an eviction priority";
  bool fetches = has_any(statement, hints + 1); /* .L2::64B and longer ones */
  if (is_volatile && (priority || (hint && !fetches)))
    return ".volatile excludes what is said about caches";
  if (mmio && (priority || hint || has_any(statement, vectors)))
    return ".mmio excludes vectors and what is said about caches";
  if ((ordered || is_volatile) && !global && space != SPACE_SHARED)
    return "an order and .volatile are for global and shared memory";
  if (!global && (priority || hint || mmio))
    return ".mmio, eviction priorities and hints for the L2 cache are for global memory";
  if (mmio && !has_modifier(statement, "sys")) return ".mmio has the scope .sys";
  return NULL;
}

/* What a lane stores. */
static void lane_bytes(const Warp *warp, const Instruction *in, int lane, uint8_t *bytes) {
  const Transfer *transfer = in->decoded;
  for (int i = 0; i < transfer->element_count; i++) {
    const uint8_t *column = (const uint8_t *)column_u32(warp, transfer->element[i].slot);
    memcpy(bytes + i * transfer->element_bytes,
           column + (size_t)lane * transfer->element[i].column_bytes, transfer->element_bytes);
  }
}

void transfer_end(Transfer *transfer, Instruction *out) {
  Access access = (Access)transfer->kind.access;
  out->meets_blocks =
      transfer->strong && (transfer->space == SPACE_GLOBAL || transfer->space == SPACE_GENERIC);
  transfer->bytes = (uint8_t)(transfer->element_bytes * transfer->element_count);
  transfer->words = transfer->element_bytes == 4;
  for (int i = 0; i < transfer->element_count; i++)
    transfer->words &= transfer->element[i].wanted && transfer->element[i].column_bytes == 4;
  transfer->single = transfer->element_count == 1 && transfer->element[0].wanted &&
                     transfer->element_bytes >= 4 &&
                     transfer->element[0].column_bytes == transfer->element_bytes;
  transfer->whole = transfer->words || (transfer->single && transfer->bytes == 8);
  transfer->offset = transfer->address->offset;
  transfer->base = transfer->address->slot;
  transfer->wide = transfer->address->bytes == 8;
  transfer->constant = transfer->address->constant;
  transfer->known_place = (uint8_t)((uintptr_t)transfer / sizeof *transfer % KNOWN_PLACES);
  transfer->shared_kind = (AccessKind){.access = access,
                                       .strong = transfer->strong,
                                       .is_volatile = transfer->kind.flags & GLOBAL_VOLATILE,
                                       .updates = transfer->kind.updates,
                                       .lane_bytes = access == ACCESS_WRITE ? lane_bytes : NULL};
}

static bool decode_transfer(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                            bool is_load) {
  static const char *const vectors[] = {"v2", "v4", NULL};
  Form form = form_begin(decoder, statement, out, 1);
  Transfer *transfer = decoder_allocate(decoder, sizeof *transfer);
  out->decoded = transfer;
  form_order(&form, transfer);
  transfer->kind.access = is_load ? ACCESS_READ : ACCESS_WRITE;
  if (!transfer->strong) transfer->kind.reach = REACH_PLAIN;
  transfer->space = form_space(&form);
  out->own_memory = transfer->space == SPACE_LOCAL || transfer->space == SPACE_PARAM ||
                    transfer->space == SPACE_CONST;
  const char *clash = modifiers_clash(statement, transfer->space);
  if (clash) return form_fail(&form, "%s", clash);
  bool constant_path = is_load && form_take(&form, "nc");
  if (strcmp(statement->modifiers[0], "ldu") == 0) constant_path = true;
  if (constant_path && transfer->space != SPACE_GLOBAL && transfer->space != SPACE_GENERIC)
    return form_fail(&form, ".nc and ldu are for global memory");
  if (has_modifier(statement, "nc")) {
    static const char *const others[] = {"weak", "relaxed", "acquire", "volatile",
                                         "mmio", "lu",      "cv",      NULL};
    if (transfer->space != SPACE_GLOBAL) return form_fail(&form, ".nc needs .global");
    if (has_any(statement, others))
      return form_fail(&form, ".nc excludes an order, .weak, .volatile, .lu and .cv");
  }
  if (constant_path) transfer->kind.flags |= GLOBAL_NON_COHERENT;
  int vector = form_choose(&form, vectors);
  transfer->element_count = vector < 0 ? 1 : vector == 0 ? 2 : 4;
  transfer->type = form_type(&form);
  transfer->element_bytes = (uint8_t)type_bytes(transfer->type);
  transfer->kind.size = transfer->strong ? transfer->element_bytes : 0;
  if (!memory_type(transfer->type)) return form_fail(&form, "no such type for loads and stores");
  if (transfer->element_bytes * transfer->element_count > 16)
    return form_fail(&form, "a thread moves at most 16 bytes on sm_90");
  if (is_load && transfer->release) return form_fail(&form, "a load cannot release");
  if (!is_load && transfer->acquire) return form_fail(&form, "a store cannot acquire");
  if (!is_load && (transfer->space == SPACE_CONST || transfer->space == SPACE_PARAM))
    return form_fail(&form, "this space cannot be stored to");
  form_cache_hints(&form, 2);
  if (form.failed) return false;
  form_elements(&form, transfer, is_load ? 0 : 1, is_load);
  transfer->address = form_address(&form, is_load ? 1 : 0);
  if (form.failed) return false;
  transfer_end(transfer, out);
  if (transfer->strong)
    return form_end(&form, is_load ? execute_load_strong : execute_store_strong);
  return form_end(&form, is_load ? execute_load : execute_store);
}
DECODER(decode_ld) { return decode_transfer(decoder, statement, out, true); }
DECODER(decode_st) { return decode_transfer(decoder, statement, out, false); }
