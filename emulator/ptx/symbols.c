/* symbols.c: what names mean: declarations and their scopes, registers, the columns behind literals
 * and special registers, labels. */
#include <stdlib.h>
#include <string.h>

#include "ptx/program.h"

/* ---- Symbols ---- */
static Symbol **bucket_of(const Module *module, uint32_t hash) {
  return &module->buckets[hash & (module->bucket_count - 1)];
}

Symbol *find_symbol(const Module *module, const char *name) {
  uint32_t hash = hash_text(name);
  for (Symbol *symbol = *bucket_of(module, hash); symbol; symbol = symbol->next) {
    if (symbol->hash != hash || strcmp(symbol->name, name) != 0) continue;
    if (!symbol->file_local || !module->unit || symbol->unit == module->unit) return symbol;
  }
  return NULL;
}

Symbol *new_symbol(Decoder *decoder, const char *name, SymbolKind kind) {
  Symbol *symbol = decoder_allocate(decoder, sizeof *symbol);
  symbol->name = name;
  symbol->kind = (uint8_t)kind;
  symbol->hash = hash_text(name);
  symbol->line = decoder->line;
  symbol->unit = decoder->module->unit;
  return symbol;
}

static const Symbol *find_range_in_scope(const Decoder *decoder, const char *name, uint32_t scope);

static bool same_name(const Symbol *one, const Symbol *other) {
  return one->hash == other->hash && strcmp(one->name, other->name) == 0;
}

/* Is one of them a range such as %r<4>, and the other one a register of it, %r3? */
static bool range_holds(const Symbol *range, const Symbol *other) {
  size_t length = strlen(range->name);
  const char *number = other->name + length;
  if (strncmp(range->name, other->name, length) != 0 || number[0] < '0' || number[0] > '9' ||
      (number[0] == '0' && number[1]))
    return false;
  char *end;
  unsigned long index = strtoul(number, &end, 10);
  return !*end && index < range->range_count;
}

/* A name may hide one of outer braces, but not one of the same braces. "%r<4>" and "%r" are two names. */
static bool declared_in_scope(const Decoder *decoder, const Symbol *symbol) {
  if (symbol->kind != SYMBOL_REGISTERS) {
    for (const Symbol *other = *bucket_of(decoder->module, symbol->hash); other;
         other = other->next)
      if (other->in_scope && other->scope == symbol->scope && other->kind != SYMBOL_REGISTERS &&
          same_name(other, symbol))
        return true;
    return find_range_in_scope(decoder, symbol->name, symbol->scope);
  }
  for (uint32_t i = decoder->undo_count; i > 0; i--) {
    const Symbol *other = decoder->undo[i - 1];
    if (other->scope != symbol->scope) continue;
    if (other->kind == SYMBOL_REGISTERS ? same_name(other, symbol) : range_holds(symbol, other))
      return true;
  }
  return false;
}

struct Label {
  const char *name;
  uint32_t hash, scope, place, next; /* next: 1 + the next label of the hash chain */
};

static bool is_label(const Decoder *decoder, const Symbol *symbol) {
  for (uint32_t i = 0; i < decoder->label_count; i++) {
    const struct Label *label = &decoder->labels[i];
    uint32_t scope = label->scope <= 1 ? 0 : label->scope;
    if (label->hash == symbol->hash && scope == symbol->scope &&
        strcmp(label->name, symbol->name) == 0)
      return true;
  }
  return false;
}

/* The innermost declaration hides the others until its scope ends. */
void declare(Decoder *decoder, Symbol *symbol, bool in_scope) {
  symbol->in_scope = in_scope;
  /* The first braces of a function follow its parameters, and belong to them. */
  symbol->scope = decoder->scope <= 1 ? 0 : decoder->scope;
  if (in_scope && is_label(decoder, symbol))
    parse_fail(decoder, "%s is declared twice", symbol->name);
  if (in_scope && declared_in_scope(decoder, symbol)) {
    if (!symbol->parameter) parse_fail(decoder, "%s is declared twice", symbol->name);
    decoder->parameter_twice =
        symbol->name; /* in a declaration without a body it does not matter */
  }
  Symbol **bucket = bucket_of(decoder->module, symbol->hash);
  symbol->next = *bucket;
  *bucket = symbol;
  if (!in_scope) return;
  decoder->undo = arena_grow(decoder, decoder->undo, decoder->undo_count, &decoder->undo_capacity,
                             sizeof *decoder->undo);
  decoder->undo[decoder->undo_count++] = symbol;
}

void forget_symbols(Decoder *decoder, uint32_t down_to) {
  while (decoder->undo_count > down_to) {
    Symbol *symbol = decoder->undo[--decoder->undo_count];
    Symbol **link = bucket_of(decoder->module, symbol->hash);
    while (*link && *link != symbol) link = &(*link)->next;
    if (*link) *link = symbol->next;
  }
}

/* ---- Registers ---- */
uint32_t new_register(Decoder *decoder, unsigned class, unsigned bytes) {
  Function *function = decoder->function;
  if (function->register_count >= 1u << 20) parse_fail(decoder, "more than a million registers");
  function->registers = arena_grow(decoder, function->registers, function->register_count,
                                   &function->register_capacity, sizeof *function->registers);
  function->registers[function->register_count] =
      (Register){.class = (uint8_t) class, .bytes = (uint8_t)bytes, .first = UINT32_MAX};
  return function->register_count++;
}

/* ---- Columns ---- */
uint32_t new_column(Decoder *decoder, Column column) {
  Module *module = decoder->module;
  module->columns = arena_grow(decoder, module->columns, module->column_count,
                               &module->column_capacity, sizeof *module->columns);
  if (module->columns_final) {
    if (module->slots + column.bytes / 4u > 0xffff)
      parse_fail(decoder, "the program needs more than 65,535 register slots");
    column.slot = (uint16_t)module->slots;
    module->slots += column.bytes / 4u;
  }
  module->columns[module->column_count] = column;
  return module->column_count++;
}

static uint32_t column_hash(uint64_t value, unsigned bytes) {
  uint64_t mixed = (value + bytes) * 0x9e3779b97f4a7c15ull;
  return (uint32_t)(mixed >> 32);
}

static uint32_t note_column(Decoder *decoder, uint32_t number) {
  /* checking only the last few entries keeps the list short without a full search */
  if (decoder->function) {
    NumberList *list = &decoder->function->columns;
    for (uint32_t i = 0; i < 8 && i < list->count; i++)
      if (list->items[list->count - 1 - i] == number) return number;
    list->items =
        arena_grow(decoder, list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = number;
  }
  return number;
}

uint32_t column_of_literal(Decoder *decoder, uint64_t value, unsigned bytes) {
  Module *module = decoder->module;
  if (bytes < 4) bytes = 4;
  if (bytes == 4) value = (uint32_t)value;
  if (module->column_count * 2 >= module->column_table_size) {
    uint32_t size = module->column_table_size ? module->column_table_size * 2 : 256;
    uint32_t *table = arena_allocate(&module->arena, size * sizeof *table);
    for (uint32_t i = 0; i < module->column_count; i++) {
      const Column *column = &module->columns[i];
      if (column->kind != COLUMN_LITERAL) continue;
      uint32_t place = column_hash(column->value, column->bytes) & (size - 1);
      while (table[place]) place = (place + 1) & (size - 1);
      table[place] = i + 1;
    }
    module->column_table = table;
    module->column_table_size = size;
  }
  uint32_t place = column_hash(value, bytes) & (module->column_table_size - 1);
  while (module->column_table[place]) {
    uint32_t number = module->column_table[place] - 1;
    if (module->columns[number].value == value && module->columns[number].bytes == bytes)
      return note_column(decoder, number);
    place = (place + 1) & (module->column_table_size - 1);
  }
  Column column = {.kind = COLUMN_LITERAL, .bytes = (uint8_t)bytes, .value = value};
  uint32_t number = new_column(decoder, column);
  module->column_table[place] = number + 1;
  return note_column(decoder, number);
}

/* One of a special register or a shared variable, of which a program has few. */
static uint32_t column_like(Decoder *decoder, Column column) {
  const Module *module = decoder->module;
  for (uint32_t i = 0; i < module->column_count; i++) {
    const Column *each = &module->columns[i];
    if (each->kind == column.kind && each->special == column.special &&
        each->symbol == column.symbol && each->value == column.value && each->bytes == column.bytes)
      return note_column(decoder, i);
  }
  return note_column(decoder, new_column(decoder, column));
}

static uint32_t column_of_special(Decoder *decoder, Special special, unsigned bytes,
                                  uint64_t value) {
  return column_like(decoder, (Column){.kind = COLUMN_SPECIAL,
                                       .bytes = (uint8_t)bytes,
                                       .special = (uint16_t)special,
                                       .value = value});
}

uint32_t column_of_extern(Decoder *decoder, const Symbol *symbol, uint64_t addend) {
  Column column = {.kind = COLUMN_EXTERN, .bytes = 8, .symbol = symbol, .value = addend};
  return note_column(decoder, new_column(decoder, column));
}

uint32_t column_of_shared(Decoder *decoder, const Symbol *symbol, unsigned bytes, uint64_t addend) {
  return column_like(decoder, (Column){.kind = COLUMN_SHARED_SYMBOL,
                                       .bytes = (uint8_t)bytes,
                                       .symbol = symbol,
                                       .value = addend});
}

/* ---- Registers by number: %r57 ---- */
struct RangeRegister {
  uint32_t range, index, number; /* number: 1 + the register's; 0: empty */
};

uint32_t register_of_range(Decoder *decoder, const Symbol *range, uint32_t index) {
  if (decoder->range_register_count * 2 >= decoder->range_register_size) {
    uint32_t size = decoder->range_register_size ? decoder->range_register_size * 2 : 1024;
    struct RangeRegister *table = decoder_allocate(decoder, size * sizeof *table);
    for (uint32_t i = 0; i < decoder->range_register_size; i++) {
      struct RangeRegister *old = &decoder->range_registers[i];
      if (!old->number) continue;
      uint32_t place = column_hash(old->index, old->range) & (size - 1);
      while (table[place].number) place = (place + 1) & (size - 1);
      table[place] = *old;
    }
    decoder->range_registers = table;
    decoder->range_register_size = size;
  }
  uint32_t mask = decoder->range_register_size - 1;
  uint32_t place = column_hash(index, range->first_register) & mask;
  struct RangeRegister *table = decoder->range_registers;
  while (table[place].number) {
    if (table[place].range == range->first_register && table[place].index == index)
      return table[place].number - 1;
    place = (place + 1) & mask;
  }
  uint32_t number = new_register(decoder, range->class, range->element_bytes);
  decoder->range_registers[place] =
      (struct RangeRegister){range->first_register, index, number + 1};
  decoder->range_register_count++;
  return number;
}

/* The innermost range of this name that has the index: inside "{ .reg .f32 %f<11>; ... }" %f2521 is
 * still the function's. */
static const Symbol *range_with(const Module *module, const char *name, uint32_t index) {
  uint32_t hash = hash_text(name);
  for (const Symbol *symbol = *bucket_of(module, hash); symbol; symbol = symbol->next)
    if (symbol->hash == hash && symbol->kind == SYMBOL_REGISTERS && index < symbol->range_count &&
        strcmp(symbol->name, name) == 0)
      return symbol;
  return NULL;
}

static const Symbol *find_range_in_scope(const Decoder *decoder, const char *name, uint32_t scope) {
  uint32_t index;
  const Symbol *range = find_range(decoder, name, &index);
  return range && range->scope == scope ? range : NULL;
}

/* "%r57" where "%r<100>" is declared; the longest prefix that is a range wins. */
const Symbol *find_range(const Decoder *decoder, const char *name, uint32_t *index) {
  size_t length = strlen(name), digits = 0;
  while (digits < length && name[length - 1 - digits] >= '0' && name[length - 1 - digits] <= '9')
    digits++;
  char prefix[256];
  for (; digits > 0; digits--) {
    size_t bytes = length - digits;
    if (bytes == 0 || bytes >= sizeof prefix) continue;
    if (digits > 1 && name[bytes] == '0') continue;
    memcpy(prefix, name, bytes);
    prefix[bytes] = '\0';
    *index = digits > 9 ? UINT32_MAX : (uint32_t)strtoul(name + bytes, NULL, 10);
    const Symbol *symbol = range_with(decoder->module, prefix, *index);
    if (symbol) return symbol;
  }
  return NULL;
}

/* ---- Special registers ---- */
static const struct {
  const char *name;
  uint8_t special, bytes;
} special_registers[] = {
    {"%tid.x", SPECIAL_TID_X, 4},
    {"%tid.y", SPECIAL_TID_Y, 4},
    {"%tid.z", SPECIAL_TID_Z, 4},
    {"%ntid.x", SPECIAL_NTID_X, 4},
    {"%ntid.y", SPECIAL_NTID_Y, 4},
    {"%ntid.z", SPECIAL_NTID_Z, 4},
    {"%ctaid.x", SPECIAL_CTAID_X, 4},
    {"%ctaid.y", SPECIAL_CTAID_Y, 4},
    {"%ctaid.z", SPECIAL_CTAID_Z, 4},
    {"%nctaid.x", SPECIAL_NCTAID_X, 4},
    {"%nctaid.y", SPECIAL_NCTAID_Y, 4},
    {"%nctaid.z", SPECIAL_NCTAID_Z, 4},
    {"%laneid", SPECIAL_LANEID, 4},
    {"%warpid", SPECIAL_WARPID, 4},
    {"%nwarpid", SPECIAL_NWARPID, 4},
    {"%smid", SPECIAL_SMID, 4},
    {"%nsmid", SPECIAL_NSMID, 4},
    {"%gridid", SPECIAL_GRIDID, 8},
    {"%clusterid.x", SPECIAL_CLUSTERID_X, 4},
    {"%clusterid.y", SPECIAL_CLUSTERID_Y, 4},
    {"%clusterid.z", SPECIAL_CLUSTERID_Z, 4},
    {"%nclusterid.x", SPECIAL_NCLUSTERID_X, 4},
    {"%nclusterid.y", SPECIAL_NCLUSTERID_Y, 4},
    {"%nclusterid.z", SPECIAL_NCLUSTERID_Z, 4},
    {"%cluster_ctaid.x", SPECIAL_CLUSTER_CTAID_X, 4},
    {"%cluster_ctaid.y", SPECIAL_CLUSTER_CTAID_Y, 4},
    {"%cluster_ctaid.z", SPECIAL_CLUSTER_CTAID_Z, 4},
    {"%cluster_nctaid.x", SPECIAL_CLUSTER_NCTAID_X, 4},
    {"%cluster_nctaid.y", SPECIAL_CLUSTER_NCTAID_Y, 4},
    {"%cluster_nctaid.z", SPECIAL_CLUSTER_NCTAID_Z, 4},
    {"%cluster_ctarank", SPECIAL_CLUSTER_CTARANK, 4},
    {"%cluster_nctarank", SPECIAL_CLUSTER_NCTARANK, 4},
    {"%is_explicit_cluster", SPECIAL_IS_EXPLICIT_CLUSTER, 1},
    {"%lanemask_eq", SPECIAL_LANEMASK_EQ, 4},
    {"%lanemask_le", SPECIAL_LANEMASK_LE, 4},
    {"%lanemask_lt", SPECIAL_LANEMASK_LT, 4},
    {"%lanemask_ge", SPECIAL_LANEMASK_GE, 4},
    {"%lanemask_gt", SPECIAL_LANEMASK_GT, 4},
    {"%dynamic_smem_size", SPECIAL_DYNAMIC_SMEM_SIZE, 4},
    {"%total_smem_size", SPECIAL_TOTAL_SMEM_SIZE, 4},
    {"%aggr_smem_size", SPECIAL_AGGR_SMEM_SIZE, 4},
    {"%reserved_smem_offset_begin", SPECIAL_RESERVED_SMEM_BEGIN, 4},
    {"%reserved_smem_offset_0", SPECIAL_RESERVED_SMEM_BEGIN, 4},
    /* What cooperative groups keep for tiles of several warps: 288 bytes from the first one on. */
    {"%reserved_smem_offset_1", SPECIAL_RESERVED_SMEM_BEGIN, 4},
    {"%reserved_smem_offset_end", SPECIAL_RESERVED_SMEM_END, 4},
    {"%reserved_smem_offset_cap", SPECIAL_RESERVED_SMEM_CAP, 4},
    {"%clock", SPECIAL_CLOCK, 4},
    {"%clock_hi", SPECIAL_CLOCK_HI, 4},
    {"%clock64", SPECIAL_CLOCK64, 8},
    {"%globaltimer", SPECIAL_GLOBALTIMER, 8},
    {"%globaltimer_lo", SPECIAL_GLOBALTIMER_LO, 4},
    {"%globaltimer_hi", SPECIAL_GLOBALTIMER_HI, 4},
};

bool special_operand(Decoder *decoder, const char *name, Operand *out) {
  if (name[0] != '%') return false;
  Special special = SPECIAL_ENVREG;
  unsigned bytes = 4;
  uint64_t value = 0;
  if (strncmp(name, "%envreg", 7) == 0 && name[7]) {
    value = strtoul(name + 7, NULL, 10);
    if (value > 31) return false;
  } else {
    size_t i = 0, count = sizeof special_registers / sizeof special_registers[0];
    while (i < count && strcmp(special_registers[i].name, name) != 0) i++;
    if (i == count) return false;
    special = special_registers[i].special;
    bytes = special_registers[i].bytes;
    if (special >= SPECIAL_RESERVED_SMEM_BEGIN && special <= SPECIAL_RESERVED_SMEM_CAP)
      decoder->module->asks_for_reserved = true;
  }
  out->kind = OPERAND_REGISTER;
  out->bytes = (uint8_t)bytes;
  out->numbers = NUMBERS_INTEGER;
  out->special = true;
  out->narrowest = (uint8_t)(special == SPECIAL_GRIDID || special <= SPECIAL_NCTAID_Z ? 2 : 0);
  if (bytes < 4) bytes = 4;
  out->slot = REFER_COLUMN;
  out->target = column_of_special(decoder, special, bytes, value);
  return true;
}

/* ---- Labels ---- */
struct LabelUse {
  const char *name;
  uint32_t hash, scope, line;
};
enum { LABEL_BUCKETS = 1024 };

void define_label(Decoder *decoder, const char *name) {
  uint32_t scope = decoder->scope <= 1 ? 0 : decoder->scope;
  const Symbol *symbol = find_symbol(decoder->module, name);
  if (symbol && symbol->in_scope && symbol->scope == scope)
    parse_fail(decoder, "%s is declared twice", name);
  decoder->labels = arena_grow(decoder, decoder->labels, decoder->label_count,
                               &decoder->label_capacity, sizeof *decoder->labels);
  decoder->labels[decoder->label_count++] = (struct Label){.name = name,
                                                           .hash = hash_text(name),
                                                           .scope = decoder->scope,
                                                           .place = decoder->function->draft_count};
}

uint32_t use_label(Decoder *decoder, const char *name) {
  decoder->label_uses = arena_grow(decoder, decoder->label_uses, decoder->label_use_count,
                                   &decoder->label_use_capacity, sizeof *decoder->label_uses);
  decoder->label_uses[decoder->label_use_count] = (struct LabelUse){
      .name = name, .hash = hash_text(name), .scope = decoder->scope, .line = decoder->line};
  return decoder->label_use_count++;
}

/* Resolves label uses: the innermost scope that encloses the use and defines the label wins. */
uint32_t *resolve_labels(Decoder *decoder) {
  Function *function = decoder->function;
  uint32_t buckets[LABEL_BUCKETS] = {0};
  for (uint32_t i = 0; i < decoder->label_count; i++) {
    struct Label *label = &decoder->labels[i];
    uint32_t *bucket = &buckets[label->hash % LABEL_BUCKETS];
    for (uint32_t k = *bucket; k; k = decoder->labels[k - 1].next)
      if (decoder->labels[k - 1].scope == label->scope &&
          strcmp(decoder->labels[k - 1].name, label->name) == 0)
        parse_fail(decoder, "the label %s is defined twice in one scope", label->name);
    label->next = *bucket;
    *bucket = i + 1;
    if (label->place < function->draft_count) function->drafts[label->place].leader = true;
  }
  uint32_t *places = decoder_allocate(decoder, (decoder->label_use_count + 1u) * sizeof *places);
  for (uint32_t i = 0; i < decoder->label_use_count; i++) {
    const struct LabelUse *use = &decoder->label_uses[i];
    uint32_t found = 0;
    for (uint32_t scope = use->scope; !found; scope = decoder->scope_parent[scope]) {
      for (uint32_t k = buckets[use->hash % LABEL_BUCKETS]; k && !found;
           k = decoder->labels[k - 1].next)
        if (decoder->labels[k - 1].scope == scope &&
            strcmp(decoder->labels[k - 1].name, use->name) == 0)
          found = k;
      if (scope == 0) break;
    }
    if (!found) {
      decoder->line = use->line;
      decoder->at = NULL;
      parse_fail(decoder, "nothing here is named %s", use->name);
    }
    places[i] = decoder->labels[found - 1].place;
  }
  return places;
}

const Function *function_at(const Module *module, uint64_t address) {
  uint64_t number = (address & ~GENERIC_TAG_MASK) >> 4;
  if ((address & GENERIC_TAG_MASK) != FUNCTION_ADDRESS || (address & 15) != 0 || number == 0 ||
      number > module->function_count)
    return NULL;
  const Function *function = module->functions[number - 1];
  return function->defined && !function->entry ? function : NULL;
}
