/* parse.c: from text to symbols and drafts: declarations, scopes, and the statements of functions
 * with their operands looked up by name. Nothing here knows what an instruction does, but for the
 * few that name labels and functions (bra, brx, call). */
#include <stdlib.h>
#include <string.h>

#include "program.h"

/* ---- Types ---- */
static bool parse_type_name(const char *name, uint8_t *bytes, uint8_t *class) {
  static const struct {
    const char *name;
    uint8_t bytes, class;
  } types[] = {{"pred", 0, CLASS_PREDICATE}, {"b8", 1, CLASS_32},     {"u8", 1, CLASS_32},
               {"s8", 1, CLASS_32},          {"b16", 2, CLASS_32},    {"u16", 2, CLASS_32},
               {"s16", 2, CLASS_32},         {"f16", 2, CLASS_32},    {"bf16", 2, CLASS_32},
               {"b32", 4, CLASS_32},         {"u32", 4, CLASS_32},    {"s32", 4, CLASS_32},
               {"f32", 4, CLASS_32},         {"f16x2", 4, CLASS_32},  {"bf16x2", 4, CLASS_32},
               {"tf32", 4, CLASS_32},        {"b64", 8, CLASS_64},    {"u64", 8, CLASS_64},
               {"s64", 8, CLASS_64},         {"f64", 8, CLASS_64},    {"f32x2", 8, CLASS_64},
               {"b128", 16, CLASS_128},      {"texref", 8, CLASS_64}, {"samplerref", 8, CLASS_64},
               {"surfref", 8, CLASS_64},     {"e4m3x2", 2, CLASS_32}, {"e5m2x2", 2, CLASS_32}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (strcmp(types[i].name, name) == 0) {
      *bytes = types[i].bytes;
      *class = types[i].class;
      return true;
    }
  return false;
}

static uint64_t aligned(uint64_t offset, uint64_t alignment) {
  return alignment > 1 ? (offset + alignment - 1) & ~(alignment - 1) : offset;
}

typedef struct {
  uint8_t bytes, class, vector;
  uint32_t alignment;
} Type;

/* [.align N] [.attribute(...)] [.v2] .type [.ptr [.space] [.align N]] in any order that occurs */
static Type parse_type(Decoder *decoder) {
  Type type = {0, 0, 1, 0};
  bool known = false, pointer = false;
  for (;;) {
    skip_space(decoder);
    if (known && *decoder->at != '.') break;
    const char *name = accept_directive(decoder);
    if (!name) parse_fail(decoder, "expected a type");
    if (strcmp(name, "align") == 0) {
      uint64_t alignment = parse_integer(decoder);
      if (alignment == 0 || alignment > 1u << 20 || (alignment & (alignment - 1)))
        parse_fail(decoder, "an alignment must be a power of two up to 1 MiB");
      if (!pointer) type.alignment = (uint32_t)alignment;
    } else if (strcmp(name, "attribute") == 0) {
      expect_char(decoder, '(');
      while (*decoder->at && *decoder->at != ')') decoder->at++;
      expect_char(decoder, ')');
    } else if (strcmp(name, "v2") == 0 || strcmp(name, "v4") == 0) {
      type.vector = (uint8_t)(name[1] - '0');
    } else if (strcmp(name, "ptr") == 0) {
      pointer = true;
    } else if (pointer && (strcmp(name, "global") == 0 || strcmp(name, "shared") == 0 ||
                           strcmp(name, "const") == 0 || strcmp(name, "local") == 0)) {
      continue;
    } else if (!known && parse_type_name(name, &type.bytes, &type.class)) {
      known = true;
    } else {
      parse_fail(decoder, "unknown type or attribute .%s", name);
    }
  }
  if (type.alignment == 0) type.alignment = (uint32_t)(type.bytes ? type.bytes * type.vector : 1);
  return type;
}

/* name[4][2]; "[]" gives 0 elements and sets *open */
static uint64_t parse_dimensions(Decoder *decoder, bool *open) {
  uint64_t count = 1;
  *open = false;
  while (accept_char(decoder, '[')) {
    skip_space(decoder);
    uint64_t dimension = 0;
    if (*decoder->at == ']')
      *open = true;
    else
      dimension = parse_integer(decoder);
    expect_char(decoder, ']');
    if (*open && dimension == 0) continue;
    if (dimension > 1ull << 34 || (dimension && count > (1ull << 34) / dimension))
      parse_fail(decoder, "an array larger than 16 GiB");
    count *= dimension;
  }
  return count;
}

/* ---- Variables ---- */
typedef struct {
  Symbol *symbol;
  Type type;
  uint64_t offset;
  Initialiser **tail;
} InitialiserState;

static void parse_initialiser(Decoder *decoder, InitialiserState *state) {
  if (accept_char(decoder, '{')) {
    if (++decoder->depth > 64) parse_fail(decoder, "an initialiser nested too deeply");
    if (!accept_char(decoder, '}')) {
      do parse_initialiser(decoder, state);
      while (accept_char(decoder, ','));
      expect_char(decoder, '}');
    }
    decoder->depth--;
    return;
  }
  Initialiser *item = need(decoder, arena_allocate(&decoder->module->arena, sizeof *item));
  item->offset = state->offset;
  item->bytes = state->type.bytes;
  item->line = decoder->line;
  state->offset += state->type.bytes;
  skip_space(decoder);
  if (*decoder->at == '"') parse_fail(decoder, "a string cannot be an initialiser");
  bool named = at_identifier(decoder) && strncmp(decoder->at, "WARP_SZ", 7) != 0;
  if (!named) {
    Literal literal = parse_literal(decoder);
    if (literal.floating && literal.bytes == 4 && item->bytes == 8) {
      float narrow;
      uint32_t bits = (uint32_t)literal.value;
      memcpy(&narrow, &bits, 4);
      double wide = narrow;
      memcpy(&literal.value, &wide, 8);
    } else if (literal.floating && literal.bytes == 8 && item->bytes == 4) {
      double wide;
      memcpy(&wide, &literal.value, 8);
      float narrow = (float)wide;
      uint32_t bits;
      memcpy(&bits, &narrow, 4);
      literal.value = bits;
    }
    item->addend = (int64_t)literal.value;
    skip_space(decoder);
    if (*decoder->at == '(') { /* 0xff00(symbol): one byte of its address */
      decoder->at++;
      item->masked = 1;
      uint64_t mask = literal.value;
      while (item->shift < 56 && (mask & 0xff) == 0) {
        mask >>= 8;
        item->shift = (uint8_t)(item->shift + 8);
      }
      if (mask != 0xff) parse_fail(decoder, "a mask that is not one byte, such as 0xff00");
      item->addend = 0;
      named = true;
    }
  }
  if (named) {
    const char *name = parse_identifier(decoder);
    if (strcmp(name, "generic") == 0) {
      expect_char(decoder, '(');
      name = parse_identifier(decoder);
      expect_char(decoder, ')');
    }
    item->symbol = name;
    skip_space(decoder);
    if (*decoder->at == '+' || *decoder->at == '-') item->addend = (int64_t)parse_integer(decoder);
    if (item->masked) expect_char(decoder, ')');
  }
  *state->tail = item;
  state->tail = &item->next;
}

static void parse_registers(Decoder *decoder) {
  if (!decoder->function) parse_fail(decoder, "registers outside of a function");
  Type type = parse_type(decoder);
  if (type.vector != 1) parse_fail(decoder, "vector registers are not known here");
  do {
    const char *name = parse_identifier(decoder);
    if (accept_char(decoder, '<')) {
      uint64_t count = parse_count(decoder);
      expect_char(decoder, '>');
      if (count > UINT32_MAX) parse_fail(decoder, "more than four thousand million registers");
      Symbol *symbol = new_symbol(decoder, name, SYMBOL_REGISTERS);
      symbol->range_count = (uint32_t)count;
      symbol->first_register = decoder->range_count++;
      symbol->class = type.class;
      symbol->element_bytes = type.bytes;
      declare(decoder, symbol, true);
    } else {
      Symbol *symbol = new_symbol(decoder, name, SYMBOL_REGISTER);
      symbol->first_register = new_register(decoder, type.class, type.bytes);
      symbol->class = type.class;
      symbol->element_bytes = type.bytes;
      declare(decoder, symbol, true);
    }
  } while (accept_char(decoder, ','));
  expect_char(decoder, ';');
}

/* A place in the frame of the function. */
static uint64_t frame_place(Decoder *decoder, uint64_t bytes, uint64_t alignment) {
  uint64_t offset = aligned(decoder->frame_cursor, alignment);
  decoder->frame_cursor = offset + bytes;
  if (decoder->frame_cursor > 512u << 10)
    parse_fail(decoder, "more than 512 KiB of local memory in one function");
  if (decoder->function->frame_bytes < decoder->frame_cursor)
    decoder->function->frame_bytes = (uint32_t)decoder->frame_cursor;
  return offset;
}

static void parse_variable(Decoder *decoder, const char *space, bool external, bool weak) {
  Module *module = decoder->module;
  bool in_function = decoder->function != NULL;
  Type type = parse_type(decoder);
  if (type.class == CLASS_PREDICATE) parse_fail(decoder, "a predicate cannot be a variable");
  do {
    const char *name = parse_identifier(decoder);
    uint64_t repeat = 1;
    if (accept_char(decoder, '<')) { /* .param .b32 a<3>: three variables */
      repeat = parse_count(decoder);
      expect_char(decoder, '>');
      if (repeat > 1024) parse_fail(decoder, "more than 1024 variables in one range");
    }
    bool open;
    uint64_t count = parse_dimensions(decoder, &open);
    uint64_t bytes = open && count <= 1 ? 0 : count * type.bytes * type.vector;
    SymbolKind kind = SYMBOL_LOCAL;
    if (strcmp(space, "shared") == 0) kind = SYMBOL_SHARED;
    if (strcmp(space, "global") == 0 || strcmp(space, "const") == 0) kind = SYMBOL_VARIABLE;
    if (kind == SYMBOL_LOCAL && !in_function)
      parse_fail(decoder, "a .%s variable outside of a function", space);

    for (uint64_t i = 0; i < repeat; i++) {
      const char *own_name = name;
      if (repeat > 1) {
        char numbered[1100];
        snprintf(numbered, sizeof numbered, "%.1000s%u", name, (unsigned)i);
        own_name = copy_text(decoder, numbered, strlen(numbered));
      }
      Symbol *symbol = in_function ? NULL : find_symbol(module, own_name);
      if (symbol && symbol->kind == kind && (symbol->external || external || weak)) {
        if (external) continue; /* known already */
      } else if (symbol && symbol->kind != SYMBOL_FUNCTION) {
        parse_fail(decoder, "%s is declared twice", own_name);
      } else {
        symbol = new_symbol(decoder, own_name, kind);
        declare(decoder, symbol, in_function);
        if (kind == SYMBOL_SHARED) {
          module->shared = grow(decoder, module->shared, module->shared_count,
                                &module->shared_capacity, sizeof *module->shared);
          symbol->number = module->shared_count;
          module->shared[module->shared_count++] = symbol;
        } else if (kind == SYMBOL_VARIABLE) {
          module->globals = grow(decoder, module->globals, module->global_count,
                                 &module->global_capacity, sizeof *module->globals);
          module->globals[module->global_count++] = symbol;
        }
      }
      symbol->bytes = bytes;
      symbol->alignment = type.alignment;
      symbol->element_bytes = type.bytes;
      symbol->external = external;
      symbol->weak = weak;
      symbol->constant_space = strcmp(space, "const") == 0;
      symbol->parameter = strcmp(space, "param") == 0;
      if (kind == SYMBOL_LOCAL) symbol->offset = frame_place(decoder, bytes, type.alignment);
      if (accept_char(decoder, '=')) {
        if (kind != SYMBOL_VARIABLE)
          parse_fail(decoder, "a .%s variable cannot have an initial value", space);
        symbol->initialisers = NULL;
        InitialiserState state = {symbol, type, 0, &symbol->initialisers};
        parse_initialiser(decoder, &state);
        if (open && bytes == 0) symbol->bytes = bytes = state.offset;
        if (state.offset > bytes) parse_fail(decoder, "%s has too many initial values", own_name);
      }
      if (kind == SYMBOL_SHARED && bytes == 0) symbol->external = true; /* the dynamic part */
      if (kind == SYMBOL_VARIABLE && !external) allocate_variable(decoder, symbol);
    }
  } while (accept_char(decoder, ','));
  expect_char(decoder, ';');
}

/* ---- Operands ---- */
static void literal_operand(Decoder *decoder, Operand *out, uint64_t value) {
  out->kind = OPERAND_REGISTER;
  out->bytes = 8;
  out->constant = true;
  out->constant_value = value;
  out->slot = REFER_COLUMN;
  out->target = column_of_literal(decoder, value, 8);
}

static unsigned type_bytes(const PtxStatement *statement) {
  for (int i = statement->modifier_count - 1; i > 0; i--) {
    uint8_t bytes, class;
    if (parse_type_name(statement->modifiers[i], &bytes, &class)) return bytes;
  }
  return 4;
}

/* A name as an operand. in_address: it stands between brackets. */
static void name_operand(Decoder *decoder, Draft *draft, const char *name, bool in_address,
                         Operand *out) {
  if (strcmp(name, "_") == 0 && !in_address) {
    out->kind = OPERAND_SINK;
    return;
  }
  uint32_t index = 0;
  const Symbol *symbol = find_symbol(decoder->module, name);
  if (!symbol) symbol = find_range(decoder, name, &index);
  if (!symbol) {
    if (special_operand(decoder, name, out)) return;
    if (in_address || name[0] == '%') parse_fail(decoder, "nothing here is named %s", name);
    out->kind = OPERAND_LABEL;
    out->slot = REFER_LABEL;
    out->target = use_label(decoder, name);
    return;
  }
  int64_t addend = 0;
  skip_space(decoder);
  if (symbol->kind != SYMBOL_REGISTER && symbol->kind != SYMBOL_REGISTERS && !in_address &&
      (*decoder->at == '+' || *decoder->at == '-'))
    addend = (int64_t)parse_integer(decoder);
  Function *function = decoder->function;
  switch ((SymbolKind)symbol->kind) {
    case SYMBOL_REGISTER:
    case SYMBOL_REGISTERS:
      out->kind = symbol->class == CLASS_PREDICATE ? OPERAND_PREDICATE : OPERAND_REGISTER;
      out->bytes = symbol->element_bytes;
      out->slot = REFER_REGISTER;
      out->target = symbol->kind == SYMBOL_REGISTER ? symbol->first_register
                                                    : register_of_range(decoder, symbol, index);
      return;
    case SYMBOL_VARIABLE: {
      if (!symbol->memory)
        parse_fail(decoder, "%s is declared .extern and defined nowhere in this module", name);
      literal_operand(decoder, out, (uint64_t)(uintptr_t)symbol->memory + (uint64_t)addend);
      return;
    }
    case SYMBOL_SHARED:
      number_add(decoder, &function->shared, symbol->number);
      out->kind = OPERAND_REGISTER;
      out->bytes = in_address || type_bytes(&draft->statement) != 8 ? 4 : 8;
      out->slot = REFER_COLUMN;
      out->target = column_of_shared(decoder, symbol, out->bytes);
      if (addend) parse_fail(decoder, "the address of a .shared variable plus a number");
      return;
    case SYMBOL_LOCAL:
      if (function->entry) {
        literal_operand(decoder, out, symbol->offset + (uint64_t)addend);
      } else {
        out->kind = OPERAND_REGISTER;
        out->bytes = 8;
        out->slot = REFER_COLUMN;
        out->target = decoder->module->frame_column;
        out->offset = (int64_t)symbol->offset + addend;
      }
      return;
    case SYMBOL_ENTRY_PARAMETER:
      literal_operand(decoder, out, symbol->offset + (uint64_t)addend);
      return;
    case SYMBOL_FUNCTION:
      symbol->function->address_taken = true;
      literal_operand(decoder, out, symbol->function->address);
      out->callee = symbol->function;
      return;
    case SYMBOL_PROTOTYPE:
    case SYMBOL_TARGETS:
      break;
  }
  parse_fail(decoder, "%s cannot be an operand here", name);
}

/* ld.param and st.param of a function's frame work on .local memory. */
static void name_space(Decoder *decoder, PtxStatement *statement, const char *space) {
  char opcode[512] = "";
  size_t length = 0;
  for (int i = 0; i < statement->modifier_count; i++) {
    if (i > 0 && strncmp(statement->modifiers[i], "param", 5) == 0) statement->modifiers[i] = space;
    int added = snprintf(opcode + length, sizeof opcode - length, "%s%s", i ? "." : "",
                         statement->modifiers[i]);
    if (added < 0 || (size_t)added >= sizeof opcode - length)
      parse_fail(decoder, "an instruction with too long a name");
    length += (size_t)added;
  }
  statement->opcode = copy_text(decoder, opcode, length);
}

typedef struct {
  Operand *items;
  uint32_t count, capacity;
} OperandList;

static Operand *add_operand(Decoder *decoder, OperandList *list) {
  if (list->count >= 1024) parse_fail(decoder, "an instruction with more than 1024 operands");
  list->items = grow(decoder, list->items, list->count, &list->capacity, sizeof *list->items);
  list->items[list->count] = (Operand){0};
  return &list->items[list->count++];
}

static void parse_operand(Decoder *decoder, Draft *draft, OperandList *list);

/* [base+offset], [number], [a, {b, c}] */
static void parse_address(Decoder *decoder, Draft *draft, OperandList *list) {
  Operand address = {.kind = OPERAND_ADDRESS, .bytes = 8};
  skip_space(decoder);
  if (at_identifier(decoder) && strncmp(decoder->at, "WARP_SZ", 7) != 0) {
    const char *name = parse_identifier(decoder);
    Operand base = {0};
    name_operand(decoder, draft, name, true, &base);
    if (base.kind != OPERAND_REGISTER || (base.bytes != 4 && base.bytes != 8))
      parse_fail(decoder, "%s cannot be an address: it has neither 32 nor 64 bits", name);
    const Symbol *symbol = find_symbol(decoder->module, name);
    if (symbol && (symbol->kind == SYMBOL_LOCAL || symbol->kind == SYMBOL_ENTRY_PARAMETER) &&
        (symbol->parameter || symbol->kind == SYMBOL_ENTRY_PARAMETER))
      name_space(decoder, &draft->statement, symbol->kind == SYMBOL_LOCAL ? "local" : "param");
    address = base;
    address.kind = OPERAND_ADDRESS;
    skip_space(decoder);
    int64_t offset = 0;
    if (*decoder->at == '+' || *decoder->at == '-') {
      if (*decoder->at == '+') decoder->at++;
      offset = (int64_t)parse_integer(decoder);
    }
    if (address.constant) {
      literal_operand(decoder, &address, address.constant_value + (uint64_t)offset);
      address.kind = OPERAND_ADDRESS;
    } else {
      address.offset += offset;
    }
  } else {
    literal_operand(decoder, &address, parse_integer(decoder));
    address.kind = OPERAND_ADDRESS;
  }
  *add_operand(decoder, list) = address;
  while (accept_char(decoder, ',')) parse_operand(decoder, draft, list);
  expect_char(decoder, ']');
}

static void parse_operand(Decoder *decoder, Draft *draft, OperandList *list) {
  if (++decoder->depth > 16) parse_fail(decoder, "operands nested too deeply");
  skip_space(decoder);
  char c = *decoder->at;
  if (c == '[') {
    decoder->at++;
    parse_address(decoder, draft, list);
  } else if (c == '{') {
    decoder->at++;
    OperandList elements = {0};
    if (!accept_char(decoder, '}')) {
      do parse_operand(decoder, draft, &elements);
      while (accept_char(decoder, ','));
      expect_char(decoder, '}');
    }
    Operand *out = add_operand(decoder, list);
    out->kind = OPERAND_VECTOR;
    out->count = (uint16_t)elements.count;
    out->elements = elements.items;
  } else if (c == '!') {
    decoder->at++;
    Operand *out = add_operand(decoder, list);
    name_operand(decoder, draft, parse_identifier(decoder), false, out);
    if (out->kind != OPERAND_PREDICATE) parse_fail(decoder, "\"!\" needs a predicate");
    out->negated = true;
  } else if (at_identifier(decoder) && strncmp(decoder->at, "WARP_SZ", 7) != 0) {
    Operand *out = add_operand(decoder, list);
    name_operand(decoder, draft, parse_identifier(decoder), false, out);
    skip_space(decoder);
    if (decoder->at[0] == '|' && decoder->at[1] != '|') {
      decoder->at++;
      name_operand(decoder, draft, parse_identifier(decoder), false, add_operand(decoder, list));
    }
  } else {
    Literal literal = parse_literal(decoder);
    Operand *out = add_operand(decoder, list);
    out->kind = OPERAND_REGISTER;
    out->bytes = literal.bytes;
    out->constant = true;
    out->floating = literal.floating;
    out->constant_value = literal.value;
    out->slot = REFER_COLUMN;
    out->target = column_of_literal(decoder, literal.value, literal.bytes);
  }
  decoder->depth--;
}

/* ---- Statements ---- */
static Draft *add_draft(Decoder *decoder) {
  Function *function = decoder->function;
  if (function->draft_count >= 1u << 24)
    parse_fail(decoder, "a function of more than 16 million instructions");
  function->drafts = grow(decoder, function->drafts, function->draft_count,
                          &function->draft_capacity, sizeof *function->drafts);
  Draft *draft = &function->drafts[function->draft_count++];
  *draft = (Draft){.guard = NO_REGISTER,
                   .source_line = decoder->source_line,
                   .source_file = decoder->source_file,
                   .inner_line = decoder->inner_line,
                   .inner_file = decoder->inner_file};
  return draft;
}

/* The statement's text on one line. */
static const char *statement_text(Decoder *decoder, const char *first, const char *end) {
  char *text = copy_text(decoder, first, (size_t)(end - first));
  char *to = text;
  for (const char *from = text; *from; from++) {
    bool blank = *from == ' ' || *from == '\t' || *from == '\n' || *from == '\r';
    if (blank && (to == text || to[-1] == ' ')) continue;
    *to++ = blank ? ' ' : *from;
  }
  *to = '\0';
  return text;
}

static ParameterPlace *parse_call_list(Decoder *decoder, uint32_t *count) {
  ParameterPlace *places = NULL;
  uint32_t capacity = 0;
  expect_char(decoder, '(');
  *count = 0;
  if (accept_char(decoder, ')')) return NULL;
  do {
    const char *name = parse_identifier(decoder);
    const Symbol *symbol = find_symbol(decoder->module, name);
    if (!symbol || symbol->kind != SYMBOL_LOCAL)
      parse_fail(decoder, "%s is not a .param variable of this function; calls pass nothing else",
                 name);
    places = grow(decoder, places, *count, &capacity, sizeof *places);
    places[(*count)++] = (ParameterPlace){(uint32_t)symbol->offset, (uint32_t)symbol->bytes};
  } while (accept_char(decoder, ','));
  expect_char(decoder, ')');
  return places;
}

/* call (result), function, (arguments); the function may be a register, then a prototype follows */
static void parse_call(Decoder *decoder, Draft *draft, OperandList *list) {
  CallSite *call = need(decoder, arena_allocate(&decoder->module->arena, sizeof *call));
  skip_space(decoder);
  if (*decoder->at == '(') {
    call->results = parse_call_list(decoder, &call->result_count);
    expect_char(decoder, ',');
  }
  const char *name = parse_identifier(decoder);
  const Symbol *symbol = find_symbol(decoder->module, name);
  if (symbol && symbol->kind == SYMBOL_FUNCTION) {
    call->callee = symbol->function;
    number_add(decoder, &decoder->function->callees, symbol->function->number);
  } else {
    Operand *out = add_operand(decoder, list);
    name_operand(decoder, draft, name, false, out);
    if (out->kind != OPERAND_REGISTER || out->bytes != 8)
      parse_fail(decoder, "%s is neither a function nor a 64-bit register", name);
    decoder->function->has_indirect_calls = true;
  }
  if (accept_char(decoder, ',')) {
    skip_space(decoder);
    if (*decoder->at == '(') {
      call->arguments = parse_call_list(decoder, &call->argument_count);
      if (accept_char(decoder, ',')) name = parse_identifier(decoder);
    } else {
      name = parse_identifier(decoder);
    }
    if (!call->callee) {
      symbol = find_symbol(decoder->module, name);
      if (symbol && symbol->kind == SYMBOL_PROTOTYPE) call->prototype = symbol->function;
    }
  }
  draft->call = call;
}

/* Instructions that a whole warp executes together: .aligned ones other than barriers. */
static bool wants_whole_warp(const PtxStatement *statement) {
  static const char *const opcodes[] = {"wgmma", "ldmatrix",  "stmatrix",  "mma",
                                        "wmma",  "movmatrix", "setmaxnreg"};
  if (!has_modifier(statement, "aligned")) return false;
  for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++)
    if (strcmp(statement->modifiers[0], opcodes[i]) == 0) return true;
  return false;
}

static bool reads_clock(const Decoder *decoder, const OperandList *list, uint32_t *column) {
  for (uint32_t i = 0; i < list->count; i++) {
    const Operand *operand = &list->items[i];
    if (operand->kind != OPERAND_REGISTER || operand->slot != REFER_COLUMN) continue;
    const Column *candidate = &decoder->module->columns[operand->target];
    if (candidate->kind != COLUMN_SPECIAL || candidate->special < SPECIAL_FIRST_CLOCK) continue;
    *column = operand->target;
    return true;
  }
  return false;
}

static void parse_instruction(Decoder *decoder) {
  Module *module = decoder->module;
  const char *first = decoder->at;
  Draft draft = {.guard = NO_REGISTER,
                 .source_line = decoder->source_line,
                 .source_file = decoder->source_file,
                 .inner_line = decoder->inner_line,
                 .inner_file = decoder->inner_file};
  draft.statement.line = decoder->line;
  if (accept_char(decoder, '@')) {
    draft.guard_negated = accept_char(decoder, '!');
    Operand guard = {0};
    const char *name = parse_identifier(decoder);
    name_operand(decoder, &draft, name, false, &guard);
    if (guard.kind != OPERAND_PREDICATE) parse_fail(decoder, "%s is not a predicate", name);
    draft.guard = guard.target;
  }
  PtxStatement *statement = &draft.statement;
  parse_opcode(decoder, statement);
  if (statement->modifiers[0][0] >= '0' && statement->modifiers[0][0] <= '9')
    parse_fail(decoder, "expected an instruction");
  OperandList list = {0};
  const char *opcode = statement->modifiers[0];
  skip_space(decoder);
  if (strcmp(opcode, "call") == 0) {
    parse_call(decoder, &draft, &list);
  } else if (*decoder->at != ';') {
    do {
      if (strcmp(opcode, "brx") == 0 && list.count == 1) {
        const char *name = parse_identifier(decoder);
        draft.targets = find_symbol(module, name);
        if (!draft.targets || draft.targets->kind != SYMBOL_TARGETS)
          parse_fail(decoder, "%s is not a .branchtargets list", name);
        continue;
      }
      if (strcmp(opcode, "bra") == 0) {
        Operand *out = add_operand(decoder, &list);
        out->kind = OPERAND_LABEL;
        out->slot = REFER_LABEL;
        out->target = use_label(decoder, parse_identifier(decoder));
        continue;
      }
      parse_operand(decoder, &draft, &list);
    } while (accept_char(decoder, ','));
  }
  skip_space(decoder);
  const char *end = decoder->at;
  expect_char(decoder, ';');
  statement->text = statement_text(decoder, first, end);

  /* "mov d, variable" in a function's frame is an addition */
  if (strcmp(opcode, "mov") == 0 && list.count == 2 && list.items[1].kind == OPERAND_REGISTER &&
      list.items[1].slot == REFER_COLUMN && list.items[1].target == module->frame_column) {
    int64_t offset = list.items[1].offset;
    list.items[1].offset = 0;
    literal_operand(decoder, add_operand(decoder, &list), (uint64_t)offset);
    statement->opcode = "add.u64";
    statement->modifiers[0] = "add";
    statement->modifiers[1] = "u64";
    statement->modifier_count = 2;
  }

  uint32_t column;
  if (reads_clock(decoder, &list, &column)) {
    Draft *read = add_draft(decoder);
    read->statement = *statement;
    read->guard = draft.guard;
    read->guard_negated = draft.guard_negated;
    read->wanted = 2;
    read->operand = need(decoder, arena_allocate(&module->arena, sizeof *read->operand));
    read->operand[0] = (Operand){.kind = OPERAND_REGISTER,
                                 .bytes = module->columns[column].bytes,
                                 .slot = REFER_COLUMN,
                                 .target = column,
                                 .constant_value = module->columns[column].special};
    read->operand_count = 1;
  }
  if (wants_whole_warp(statement)) {
    Draft *converge = add_draft(decoder);
    converge->statement = *statement;
    converge->wanted = 1;
    converge->leader = true;
  }
  Draft *added = add_draft(decoder);
  *added = draft;
  added->operand = list.items;
  added->operand_count = list.count;
  bool is_async = false;
  instruction_row(statement, &is_async);
  if (is_async && settings()->schedule != SCHEDULE_LATE) {
    Draft *land = add_draft(decoder);
    land->statement = *statement;
    land->wanted = 3;
  }
}

static void skip_line_directive(Decoder *decoder) {
  while (*decoder->at && *decoder->at != '\n') decoder->at++;
}

/* Where the function that holds this place was inlined: the last .loc that said so. */
static const Inlining *find_inlining(const Decoder *decoder, SourcePlace place) {
  for (uint32_t i = 0; i < decoder->inlining_count; i++) {
    const Inlining *each = &decoder->inlinings[i];
    if (each->inner.file == place.file && each->inner.line == place.line) return each;
  }
  return NULL;
}

static void note_inlining(Decoder *decoder, SourcePlace inner, SourcePlace outer) {
  Inlining *known = (Inlining *)find_inlining(decoder, inner);
  if (!known) {
    if (decoder->inlining_count == MAX_INLININGS) decoder->inlining_count = 0;
    known = &decoder->inlinings[decoder->inlining_count++];
  }
  *known = (Inlining){inner, outer};
}

/* .loc file line column [, function_name ..., inlined_at file line column]. A reader looks for the
 * line of the kernel that called the wrapper, so that is source_line; inner_line is the wrapper's.
 */
static void parse_loc(Decoder *decoder) {
  SourcePlace inner = {.file = (uint32_t)parse_integer(decoder)};
  inner.line = (uint32_t)parse_integer(decoder);
  const char *end = decoder->at + strcspn(decoder->at, "\n");
  const char *inlined = strstr(decoder->at, "inlined_at ");
  SourcePlace outer = inner;
  if (inlined && inlined < end) {
    char *rest;
    outer.file = (uint32_t)strtoul(inlined + strlen("inlined_at "), &rest, 10);
    outer.line = (uint32_t)strtoul(rest, NULL, 10);
    note_inlining(decoder, inner, outer);
    for (int depth = 0; depth < MAX_INLINING_DEPTH; depth++) {
      const Inlining *further = find_inlining(decoder, outer);
      if (!further) break;
      outer = further->outer;
    }
  }
  const Module *module = decoder->module;
  decoder->source_line = outer.line;
  decoder->source_file = outer.file < module->file_count ? module->files[outer.file] : NULL;
  bool same = outer.file == inner.file && outer.line == inner.line;
  decoder->inner_line = same ? 0 : inner.line;
  decoder->inner_file = inner.file < module->file_count ? module->files[inner.file] : NULL;
  skip_line_directive(decoder);
}

static void parse_file(Decoder *decoder) {
  Module *module = decoder->module;
  uint64_t number = parse_integer(decoder);
  const char *name = parse_string(decoder);
  skip_line_directive(decoder);
  if (number >= 1u << 16) parse_fail(decoder, "a file number above 65,535");
  if (number < module->file_count) module->files[number] = name;
}

/* nvcc puts .file lines behind the code that needs them. */
static void find_files(Decoder *decoder) {
  Module *module = decoder->module;
  const char *start = decoder->at;
  uint32_t line = decoder->line;
  module->files = need(decoder, arena_allocate(&module->arena, 4096 * sizeof *module->files));
  module->file_count = 4096;
  for (const char *at = start; (at = strstr(at, "\n.file")) || (at = NULL);) {
    at += 6;
    if (*at != '\t' && *at != ' ') continue;
    char *end;
    unsigned long number = strtoul(at, &end, 10);
    const char *quote = strchr(end, '"');
    if (!quote || number >= module->file_count) continue;
    const char *close = strchr(quote + 1, '"');
    if (!close || memchr(end, '\n', (size_t)(close - end))) continue;
    module->files[number] = copy_text(decoder, quote + 1, (size_t)(close - quote - 1));
  }
  decoder->at = start;
  decoder->line = line;
}

/* ---- Functions ---- */
static void parse_parameters(Decoder *decoder, Function *function, ParameterPlace **places,
                             uint32_t *count, bool declare_them) {
  uint32_t capacity = 0;
  uint64_t offset = 0;
  *places = NULL;
  *count = 0;
  expect_char(decoder, '(');
  if (accept_char(decoder, ')')) return;
  do {
    const char *space = accept_directive(decoder);
    if (space && strcmp(space, "reg") == 0)
      parse_fail(decoder, "functions with .reg parameters are not known here; use .param");
    if (!space || strcmp(space, "param") != 0) parse_fail(decoder, "expected .param");
    Type type = parse_type(decoder);
    const char *name = parse_identifier(decoder);
    bool open;
    uint64_t elements = parse_dimensions(decoder, &open);
    uint64_t bytes = elements * type.bytes * type.vector;
    if (bytes > 1u << 20) parse_fail(decoder, "a parameter larger than 1 MiB");
    *places = grow(decoder, *places, *count, &capacity, sizeof **places);
    Symbol *symbol =
        new_symbol(decoder, name, function->entry ? SYMBOL_ENTRY_PARAMETER : SYMBOL_LOCAL);
    symbol->bytes = bytes;
    symbol->parameter = true;
    symbol->alignment = type.alignment;
    if (function->entry) {
      offset = aligned(offset, type.alignment);
      symbol->offset = offset;
      offset += bytes;
      if (offset > 32764) parse_fail(decoder, "more than 32,764 bytes of parameters");
    } else if (declare_them) {
      symbol->offset = frame_place(decoder, bytes, type.alignment);
    }
    if (declare_them) declare(decoder, symbol, true);
    (*places)[(*count)++] = (ParameterPlace){(uint32_t)symbol->offset, (uint32_t)bytes};
  } while (accept_char(decoder, ','));
  expect_char(decoder, ')');
  if (function->entry) function->traits.parameter_bytes = (uint32_t)offset;
}

static Function *new_function(Decoder *decoder, const char *name, bool entry) {
  Module *module = decoder->module;
  Function *function = need(decoder, arena_allocate(&module->arena, sizeof *function));
  module->functions = grow(decoder, module->functions, module->function_count,
                           &module->function_capacity, sizeof *module->functions);
  if (module->function_count >= 1u << 20) parse_fail(decoder, "more than a million functions");
  function->number = module->function_count;
  function->address = FUNCTION_ADDRESS | ((uint64_t)function->number + 1) << 4;
  module->functions[module->function_count++] = function;
  function->module = module;
  function->name = function->traits.name = name;
  function->entry = entry;
  function->traits.max_threads = 1024;
  function->traits.debug = module->debug;
  return function;
}

static Index3 parse_index3(Decoder *decoder) {
  uint64_t n[3] = {1, 1, 1};
  for (int i = 0; i < 3; i++) {
    n[i] = parse_integer(decoder);
    if (n[i] > INT32_MAX) parse_fail(decoder, "a size of more than 31 bits");
    if (!accept_char(decoder, ',')) break;
  }
  return (Index3){(uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2]};
}

static void parse_performance_directives(Decoder *decoder, Function *function) {
  for (;;) {
    skip_space(decoder);
    if (*decoder->at != '.') return;
    const char *name = accept_directive(decoder);
    if (!name) parse_fail(decoder, "expected a directive");
    if (strcmp(name, "maxntid") == 0 || strcmp(name, "reqntid") == 0) {
      Index3 size = parse_index3(decoder);
      uint64_t threads = (uint64_t)size.x * size.y * size.z;
      function->traits.max_threads = threads > 1024 ? 1024 : (uint32_t)threads;
    } else if (strcmp(name, "reqnctapercluster") == 0) {
      function->traits.required_cluster = parse_index3(decoder);
    } else if (strcmp(name, "maxclusterrank") == 0 || strcmp(name, "maxnreg") == 0 ||
               strcmp(name, "minnctapersm") == 0 || strcmp(name, "maxnctapersm") == 0) {
      uint64_t value = parse_integer(decoder);
      if (name[0] == 'm' && name[1] == 'i') function->minimum_ctas = (uint32_t)value;
    } else if (strcmp(name, "explicitcluster") == 0) {
      function->needs_cluster = true;
    } else if (strcmp(name, "noreturn") == 0 || strcmp(name, "blocksareclusters") == 0) {
      continue;
    } else if (strcmp(name, "pragma") == 0) {
      do parse_string(decoder);
      while (accept_char(decoder, ','));
      expect_char(decoder, ';');
    } else if (strcmp(name, "attribute") == 0) {
      expect_char(decoder, '(');
      while (*decoder->at && *decoder->at != ')') decoder->at++;
      expect_char(decoder, ')');
    } else if (strcmp(name, "abi_preserve") == 0 || strcmp(name, "abi_preserve_control") == 0) {
      parse_integer(decoder);
    } else {
      parse_fail(decoder, "unknown directive .%s", name);
    }
  }
}

/* label: .callprototype (results) _ (parameters); */
static void parse_prototype(Decoder *decoder, const char *name) {
  Function *saved = decoder->function;
  uint64_t cursor = decoder->frame_cursor;
  Function *prototype = new_function(decoder, name, false);
  prototype->prototype = true;
  skip_space(decoder);
  if (*decoder->at == '(')
    parse_parameters(decoder, prototype, &prototype->results, &prototype->result_count, false);
  parse_identifier(decoder);
  skip_space(decoder);
  if (*decoder->at == '(')
    parse_parameters(decoder, prototype, &prototype->parameters, &prototype->parameter_count,
                     false);
  parse_performance_directives(decoder, prototype);
  expect_char(decoder, ';');
  decoder->function = saved;
  decoder->frame_cursor = cursor;
  Symbol *symbol = new_symbol(decoder, name, SYMBOL_PROTOTYPE);
  symbol->function = prototype;
  declare(decoder, symbol, saved != NULL);
}

static void parse_branch_targets(Decoder *decoder, const char *name) {
  Symbol *symbol = new_symbol(decoder, name, SYMBOL_TARGETS);
  uint32_t capacity = 0;
  do {
    symbol->labels =
        grow(decoder, symbol->labels, symbol->label_count, &capacity, sizeof *symbol->labels);
    symbol->labels[symbol->label_count++] = use_label(decoder, parse_identifier(decoder));
  } while (accept_char(decoder, ','));
  expect_char(decoder, ';');
  declare(decoder, symbol, true);
}

static void skip_call_targets(Decoder *decoder) {
  do {
    const char *name = parse_identifier(decoder);
    const Symbol *symbol = find_symbol(decoder->module, name);
    if (symbol && symbol->kind == SYMBOL_FUNCTION) symbol->function->address_taken = true;
  } while (accept_char(decoder, ','));
  expect_char(decoder, ';');
}

static void open_scope(Decoder *decoder) {
  decoder->scope_parent = grow(decoder, decoder->scope_parent, decoder->scope_count,
                               &decoder->scope_capacity, sizeof *decoder->scope_parent);
  decoder->scope_parent[decoder->scope_count] = decoder->scope;
  decoder->scope = decoder->scope_count++;
}

/* Directives and statements up to the brace that closes the scope. */
static void parse_body(Decoder *decoder, int depth) {
  if (depth > 64) parse_fail(decoder, "scopes nested too deeply");
  uint32_t undo = decoder->undo_count;
  uint32_t outer = decoder->scope;
  uint64_t cursor = decoder->frame_cursor;
  open_scope(decoder);
  for (;;) {
    skip_space(decoder);
    char c = *decoder->at;
    if (c == '\0') parse_fail(decoder, "the text ends inside a function");
    if (c == '}') {
      decoder->at++;
      break;
    }
    if (c == '{') {
      decoder->at++;
      parse_body(decoder, depth + 1);
      continue;
    }
    if (c == ';') { /* an empty statement */
      decoder->at++;
      continue;
    }
    if (c == '.') {
      const char *name = accept_directive(decoder);
      if (!name) parse_fail(decoder, "expected a directive");
      if (strcmp(name, "loc") == 0) {
        parse_loc(decoder);
      } else if (strcmp(name, "reg") == 0) {
        parse_registers(decoder);
      } else if (strcmp(name, "local") == 0 || strcmp(name, "shared") == 0 ||
                 strcmp(name, "param") == 0 || strcmp(name, "global") == 0 ||
                 strcmp(name, "const") == 0) {
        parse_variable(decoder, name, false, false);
      } else if (strcmp(name, "extern") == 0) {
        const char *space = accept_directive(decoder);
        if (!space) parse_fail(decoder, "expected a state space");
        parse_variable(decoder, space, true, false);
      } else if (strcmp(name, "pragma") == 0) {
        do parse_string(decoder);
        while (accept_char(decoder, ','));
        expect_char(decoder, ';');
      } else if (strcmp(name, "file") == 0) {
        parse_file(decoder);
      } else {
        parse_fail(decoder, "unknown directive .%s", name);
      }
      continue;
    }
    if (at_identifier(decoder)) { /* a label, or the opcode */
      const char *start = decoder->at;
      uint32_t line = decoder->line;
      const char *name = parse_identifier(decoder);
      skip_space(decoder);
      if (decoder->at[0] == ':' && decoder->at[1] != ':') {
        decoder->at++;
        skip_space(decoder);
        if (*decoder->at == '.') {
          const char *saved = decoder->at;
          const char *directive = accept_directive(decoder);
          if (directive && strcmp(directive, "callprototype") == 0) {
            parse_prototype(decoder, name);
            continue;
          }
          if (directive && strcmp(directive, "branchtargets") == 0) {
            parse_branch_targets(decoder, name);
            continue;
          }
          if (directive && strcmp(directive, "calltargets") == 0) {
            skip_call_targets(decoder);
            continue;
          }
          decoder->at = saved;
        }
        define_label(decoder, name);
        continue;
      }
      decoder->at = start;
      decoder->line = line;
    }
    parse_instruction(decoder);
  }
  forget_symbols(decoder, undo);
  decoder->scope = outer;
  decoder->frame_cursor = cursor;
}

/* Lanes gather at these, and leave barriers at the same time: groups may merge there. */
static void mark_leaders(Function *function) {
  static const char *const opcodes[] = {"vote",  "shfl", "match",  "redux",
                                        "elect", "bar",  "barrier"};
  for (uint32_t i = 0; i + 1 < function->draft_count; i++)
    for (size_t k = 0; k < sizeof opcodes / sizeof opcodes[0]; k++)
      if (strcmp(function->drafts[i].statement.modifiers[0], opcodes[k]) == 0) {
        function->drafts[i].leader = true;
        if (opcodes[k][0] == 'b') function->drafts[i + 1].leader = true;
      }
}

static void finish_function(Decoder *decoder) {
  Function *function = decoder->function;
  Draft *end = add_draft(decoder); /* running off the end is a return; labels may stand here */
  end->statement.text = end->statement.opcode = function->entry ? "exit" : "ret";
  end->statement.modifiers[0] = end->statement.opcode;
  end->statement.modifier_count = 1;
  end->statement.line = decoder->line;
  uint32_t *places = resolve_labels(decoder);
  mark_leaders(function);
  for (uint32_t i = 0; i < function->draft_count; i++) {
    Draft *draft = &function->drafts[i];
    for (uint32_t k = 0; k < draft->operand_count; k++) {
      Operand *operand = &draft->operand[k];
      if (operand->kind != OPERAND_LABEL) continue;
      operand->target = places[operand->target];
      operand->slot = 0;
    }
    if (draft->targets) { /* a list may serve several branches: its own copy, resolved, for each */
      Symbol *own = need(decoder, arena_allocate(&decoder->module->arena, sizeof *own));
      *own = *draft->targets;
      own->labels = need(
          decoder, arena_allocate(&decoder->module->arena, own->label_count * sizeof *own->labels));
      for (uint32_t k = 0; k < own->label_count; k++)
        own->labels[k] = places[draft->targets->labels[k]];
      draft->targets = own;
    }
  }
}

static void parse_function(Decoder *decoder, bool entry, bool external, bool weak) {
  Module *module = decoder->module;
  (void)external;
  decoder->frame_cursor = 0;
  decoder->scope_count = decoder->scope = 0;
  decoder->label_count = decoder->label_use_count = 0;
  decoder->range_register_count = decoder->range_register_size = 0;
  decoder->range_registers = NULL;
  decoder->range_count = 0;
  decoder->source_line = 0;
  decoder->source_file = NULL;
  decoder->inner_line = 0;
  decoder->inlining_count = 0;
  open_scope(decoder); /* parameters */
  uint32_t undo = decoder->undo_count;

  Function *function = new_function(decoder, "", entry);
  decoder->function = function;
  skip_space(decoder);
  if (!entry && *decoder->at == '(')
    parse_parameters(decoder, function, &function->results, &function->result_count, true);
  const char *name = parse_identifier(decoder);
  function->name = function->traits.name = name;
  skip_space(decoder);
  if (*decoder->at == '(')
    parse_parameters(decoder, function, &function->parameters, &function->parameter_count, true);
  parse_performance_directives(decoder, function);

  /* A declaration before the definition: both are one function, known by the first symbol. */
  Symbol *symbol = find_symbol(module, name);
  if (symbol && symbol->kind != SYMBOL_FUNCTION) parse_fail(decoder, "%s is declared twice", name);
  skip_space(decoder);
  bool body = *decoder->at == '{';
  if (symbol && symbol->function->defined && body && !weak)
    parse_fail(decoder, "the function %s has two bodies", name);
  if (symbol) {
    Function *known = symbol->function;
    if (body && !known->defined) {
      uint32_t number = known->number;
      uint64_t address = known->address;
      bool address_taken = known->address_taken;
      *known = *function;
      known->number = number;
      known->address = address;
      known->address_taken = address_taken;
    } else {
      known = function; /* a second declaration or a second weak body: parsed and forgotten */
    }
    module->function_count--; /* the new one was the last */
    decoder->function = function = known;
  } else {
    symbol = new_symbol(decoder, name, SYMBOL_FUNCTION);
    symbol->function = function;
    declare(decoder, symbol, false);
  }
  if (!body) {
    expect_char(decoder, ';');
    forget_symbols(decoder, undo);
    decoder->function = NULL;
    return;
  }
  expect_char(decoder, '{');
  function->defined = true;
  parse_body(decoder, 0);
  forget_symbols(decoder, undo);
  finish_function(decoder);
  decoder->function = NULL;
}

/* ---- The module ---- */
static void skip_section(Decoder *decoder) {
  while (*decoder->at && *decoder->at != '{') {
    if (*decoder->at == '\n') decoder->line++;
    decoder->at++;
  }
  expect_char(decoder, '{');
  while (*decoder->at && *decoder->at != '}') {
    if (*decoder->at == '\n') decoder->line++;
    decoder->at++;
  }
  expect_char(decoder, '}');
}

static void parse_alias(Decoder *decoder) {
  const char *alias = parse_identifier(decoder);
  expect_char(decoder, ',');
  const char *target = parse_identifier(decoder);
  expect_char(decoder, ';');
  Symbol *from = find_symbol(decoder->module, alias), *to = find_symbol(decoder->module, target);
  if (!from || !to || from->kind != SYMBOL_FUNCTION || to->kind != SYMBOL_FUNCTION)
    parse_fail(decoder, ".alias needs two declared functions");
  from->function = to->function;
}

void parse_module(Decoder *decoder) {
  Module *module = decoder->module;
  find_files(decoder);
  module->frame_column = new_column(decoder, (Column){.kind = COLUMN_FRAME, .bytes = 8});
  bool versioned = false;
  for (;;) {
    skip_space(decoder);
    if (*decoder->at == '\0') break;
    const char *name = accept_directive(decoder);
    if (!name) parse_fail(decoder, "expected a directive such as .visible or .entry");
    bool external = false, weak = false;
    while (strcmp(name, "visible") == 0 || strcmp(name, "extern") == 0 ||
           strcmp(name, "weak") == 0 || strcmp(name, "common") == 0) {
      if (name[0] == 'e') external = true;
      if (name[0] == 'w' || name[0] == 'c') weak = true;
      name = accept_directive(decoder);
      if (!name) parse_fail(decoder, "expected a directive behind the linkage");
    }
    if (strcmp(name, "version") == 0) {
      Literal version = parse_literal(decoder);
      if (!version.floating) parse_fail(decoder, "expected a version such as 8.0");
      versioned = true;
    } else if (strcmp(name, "target") == 0) {
      do
        if (strcmp(parse_identifier(decoder), "debug") == 0) decoder->module->debug = true;
      while (accept_char(decoder, ','));
    } else if (strcmp(name, "address_size") == 0) {
      if (parse_integer(decoder) != 64) parse_fail(decoder, "only 64-bit addresses are known");
    } else if (!versioned) {
      parse_fail(decoder, "a PTX text begins with .version");
    } else if (strcmp(name, "file") == 0) {
      parse_file(decoder);
    } else if (strcmp(name, "loc") == 0) {
      parse_loc(decoder);
    } else if (strcmp(name, "section") == 0) {
      skip_section(decoder);
    } else if (strcmp(name, "pragma") == 0) {
      do parse_string(decoder);
      while (accept_char(decoder, ','));
      expect_char(decoder, ';');
    } else if (strcmp(name, "alias") == 0) {
      parse_alias(decoder);
    } else if (strcmp(name, "entry") == 0 || strcmp(name, "func") == 0) {
      parse_function(decoder, name[0] == 'e', external, weak);
    } else if (strcmp(name, "global") == 0 || strcmp(name, "const") == 0 ||
               strcmp(name, "shared") == 0) {
      parse_variable(decoder, name, external, weak);
    } else {
      parse_fail(decoder, "unknown directive .%s", name);
    }
  }
}
