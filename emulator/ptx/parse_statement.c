/* parse_statement.c: the statements of functions as drafts, their operands looked up by name. This
 * file knows nothing about an instruction except its traits (base/traits.h). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "ptx/program.h"
#include "ptx/types.h"

/* ---- Operands ---- */
static void literal_operand(Decoder *decoder, Operand *out, uint64_t value) {
  out->kind = OPERAND_REGISTER;
  out->bytes = 8;
  out->constant = true;
  out->constant_value = value;
  out->slot = REFER_COLUMN;
  out->target = column_of_literal(decoder, value, 8);
}

/* The address of a variable that may be defined later. */
static void extern_operand(Decoder *decoder, Operand *out, const Symbol *symbol, uint64_t addend) {
  *out = (Operand){.kind = OPERAND_REGISTER,
                   .bytes = 8,
                   .constant = true,
                   .constant_value = addend,
                   .slot = REFER_COLUMN,
                   .target = column_of_extern(decoder, symbol, addend)};
}

static unsigned bytes_of_type(const PtxStatement *statement) {
  for (int i = statement->modifier_count - 1; i > 0; i--) {
    uint8_t bytes;
    if (type_size(statement->modifiers[i], &bytes)) return bytes;
  }
  return 4;
}

/* A register, or the first of a range. */
static void declared_register_operand(Decoder *decoder, const Symbol *symbol, uint32_t index,
                                      Operand *out) {
  out->kind = symbol->class == CLASS_PREDICATE ? OPERAND_PREDICATE : OPERAND_REGISTER;
  out->bytes = symbol->element_bytes;
  out->numbers = symbol->numbers;
  out->slot = REFER_REGISTER;
  out->target = symbol->kind == SYMBOL_REGISTER ? symbol->first_register
                                                : register_of_range(decoder, symbol, index);
}

/* "v.y" of a vector "v"; NULL: there is no such element. */
static const Symbol *find_element(Decoder *decoder, const char *name, uint32_t *index) {
  static const char elements[] = "xyzwrgba"; /* v.r is another name of v.x */
  const char *dot = strchr(name, '.');
  if (!dot || dot == name) return NULL;
  const Symbol *vector =
      find_symbol(decoder->module, copy_text(decoder, name, (size_t)(dot - name)));
  if (!vector || vector->kind != SYMBOL_VECTOR) return NULL;
  *index = (uint32_t)(strchr(elements, dot[1]) - elements) % 4;
  return *index < vector->range_count ? vector : NULL;
}

/* A vector of registers, or one of its elements. */
static void vector_operand(Decoder *decoder, const Symbol *vector, const char *name, uint32_t index,
                           Operand *out) {
  Operand elements[4];
  for (uint32_t i = 0; i < vector->range_count; i++)
    elements[i] = (Operand){.kind = OPERAND_REGISTER,
                            .bytes = vector->element_bytes,
                            .numbers = vector->numbers,
                            .slot = REFER_REGISTER,
                            .target = vector->first_register + i};
  if (strchr(name, '.')) {
    *out = elements[index];
    return;
  }
  out->kind = OPERAND_VECTOR;
  out->count = (uint16_t)vector->range_count;
  Operand *kept = decoder_allocate(decoder, sizeof elements);
  memcpy(kept, elements, out->count * sizeof *elements);
  out->elements = kept;
}

/* The address of a variable of shared memory or of the frame: another one for each block or call. */
static void column_operand(Operand *out, uint8_t bytes, uint32_t column, int64_t offset) {
  out->kind = OPERAND_REGISTER;
  out->bytes = bytes;
  out->slot = REFER_COLUMN;
  out->target = column;
  out->offset = offset;
  out->numbers = NUMBERS_INTEGER;
  out->special = true;
  out->narrowest = 2;
}

static void shared_operand(Decoder *decoder, Draft *draft, const Symbol *symbol, bool in_address,
                           uint64_t addend, Operand *out) {
  uint8_t bytes = in_address || bytes_of_type(&draft->statement) != 8 ? 4 : 8;
  number_add(decoder, &decoder->function->shared, symbol->number);
  column_operand(out, bytes, column_of_shared(decoder, symbol, bytes, addend), 0);
}

/* A name that is not declared (yet): a special register or a label. */
static void undeclared_operand(Decoder *decoder, const Draft *draft, const char *name,
                               bool in_address, Operand *out) {
  if (special_operand(decoder, name, out)) {
    const Opcode *opcode = draft->statement.known;
    if (in_address || !opcode || (opcode->traits & FLOW) != FLOW_COPY)
      parse_fail(decoder, "only mov and cvt read special registers such as %s", name);
    return;
  }
  if (in_address || name[0] == '%') parse_fail(decoder, "nothing here is named %s", name);
  out->kind = OPERAND_LABEL;
  out->slot = REFER_LABEL;
  out->target = use_label(decoder, name);
}

/* A name as an operand. in_address: it is inside brackets. */
static void name_operand(Decoder *decoder, Draft *draft, const char *name, bool in_address,
                         Operand *out) {
  if (strcmp(name, "_") == 0 && !in_address) {
    out->kind = OPERAND_SINK;
    return;
  }
  uint32_t index = 0;
  const Symbol *symbol = find_symbol(decoder->module, name);
  if (!symbol) symbol = find_range(decoder, name, &index);
  if (!symbol) symbol = find_element(decoder, name, &index);
  if (!symbol) {
    undeclared_operand(decoder, draft, name, in_address, out);
    return;
  }
  int64_t addend = 0;
  skip_space(decoder);
  bool is_register = symbol->kind == SYMBOL_REGISTER || symbol->kind == SYMBOL_REGISTERS ||
                     symbol->kind == SYMBOL_VECTOR;
  if (!is_register && !in_address && (*decoder->at == '+' || *decoder->at == '-'))
    addend = (int64_t)parse_integer(decoder);
  switch ((SymbolKind)symbol->kind) {
    case SYMBOL_REGISTER:
    case SYMBOL_REGISTERS:
      declared_register_operand(decoder, symbol, index, out);
      return;
    case SYMBOL_VECTOR:
      vector_operand(decoder, symbol, name, index, out);
      return;
    case SYMBOL_VARIABLE:
      if (symbol->memory)
        literal_operand(decoder, out, (uint64_t)(uintptr_t)symbol->memory + (uint64_t)addend);
      else
        extern_operand(decoder, out, symbol, (uint64_t)addend);
      out->variable = symbol->constant_space ? SPACE_CONST : SPACE_GLOBAL;
      return;
    case SYMBOL_SHARED:
      shared_operand(decoder, draft, symbol, in_address, (uint64_t)addend, out);
      out->variable = SPACE_SHARED;
      return;
    case SYMBOL_LOCAL:
      if (decoder->function->entry)
        literal_operand(decoder, out, symbol->offset + (uint64_t)addend);
      else
        column_operand(out, 8, decoder->module->frame_column, (int64_t)symbol->offset + addend);
      if (!symbol->parameter) out->variable = SPACE_LOCAL;
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
  list->items = arena_grow(decoder, list->items, list->count, &list->capacity, sizeof *list->items);
  list->items[list->count] = (Operand){0};
  return &list->items[list->count++];
}

static void parse_operand(Decoder *decoder, Draft *draft, OperandList *list);

/* [base+offset], [number], [a, {b, c}] */
static void parse_address(Decoder *decoder, Draft *draft, OperandList *list) {
  Operand address = {.kind = OPERAND_ADDRESS, .bytes = 8};
  uint8_t variable = SPACE_GENERIC;
  skip_space(decoder);
  if (at_identifier(decoder) && strncmp(decoder->at, "WARP_SZ", 7) != 0) {
    const char *name = parse_identifier(decoder);
    Operand base = {0};
    name_operand(decoder, draft, name, true, &base);
    if (base.kind != OPERAND_REGISTER || (base.bytes != 4 && base.bytes != 8))
      parse_fail(decoder, "%s cannot be an address: it has neither 32 nor 64 bits", name);
    if (base.numbers == NUMBERS_FLOAT)
      parse_fail(decoder, "%s cannot be an address: it holds floating-point numbers", name);
    const Symbol *symbol = find_symbol(decoder->module, name);
    if (symbol && (symbol->kind == SYMBOL_LOCAL || symbol->kind == SYMBOL_ENTRY_PARAMETER) &&
        (symbol->parameter || symbol->kind == SYMBOL_ENTRY_PARAMETER))
      name_space(decoder, &draft->statement, symbol->kind == SYMBOL_LOCAL ? "local" : "param");
    address = base;
    variable = base.variable;
    address.kind = OPERAND_ADDRESS;
    skip_space(decoder);
    int64_t offset = 0;
    if (*decoder->at == '+' || *decoder->at == '-') {
      if (*decoder->at == '+') decoder->at++;
      offset = (int64_t)parse_integer(decoder);
    }
    bool waits = address.slot == REFER_COLUMN &&
                 decoder->module->columns[address.target].kind == COLUMN_EXTERN;
    if (waits) {
      extern_operand(decoder, &address, symbol, address.constant_value + (uint64_t)offset);
      address.kind = OPERAND_ADDRESS;
    } else if (address.constant) {
      literal_operand(decoder, &address, address.constant_value + (uint64_t)offset);
      address.kind = OPERAND_ADDRESS;
    } else {
      address.offset += offset;
    }
  } else {
    literal_operand(decoder, &address, parse_integer(decoder));
    address.kind = OPERAND_ADDRESS;
    address.number = true;
  }
  address.variable = variable;
  *add_operand(decoder, list) = address;
  while (accept_char(decoder, ',')) parse_operand(decoder, draft, list);
  expect_char(decoder, ']');
}

static void parse_operand(Decoder *decoder, Draft *draft, OperandList *list) {
  if (++decoder->depth > 16) parse_fail(decoder, "operands nested too deeply");
  char c = skip_space(decoder);
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
  } else if (c == '!' && !isdigit((unsigned char)decoder->at[1]) && decoder->at[1] != '(') {
    decoder->at++;
    Operand *out = add_operand(decoder, list);
    name_operand(decoder, draft, parse_identifier(decoder), false, out);
    if (out->kind != OPERAND_PREDICATE) parse_fail(decoder, "\"!\" needs a predicate");
    out->negated = true;
  } else if (at_identifier(decoder) && strncmp(decoder->at, "WARP_SZ", 7) != 0) {
    Operand *out = add_operand(decoder, list);
    name_operand(decoder, draft, parse_identifier(decoder), false, out);
    if (skip_space(decoder) == '.')
      parse_fail(decoder, "parts of registers, such as .b0 and .h1, are not emulated");
    if (decoder->at[0] == '|' && decoder->at[1] != '|') {
      decoder->at++;
      draft->pair = list->count == 1;
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
Draft *add_draft(Decoder *decoder) {
  Function *function = decoder->function;
  if (function->draft_count >= 1u << 24)
    parse_fail(decoder, "a function of more than 16 million instructions");
  function->drafts = arena_grow(decoder, function->drafts, function->draft_count,
                                &function->draft_capacity, sizeof *function->drafts);
  Draft *draft = &function->drafts[function->draft_count++];
  *draft = (Draft){.guard = NO_REGISTER};
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

/* ---- Calls ---- */

static ParameterPlace *parse_call_list(Decoder *decoder, uint32_t *count) {
  ParameterPlace *places = NULL;
  uint32_t capacity = 0;
  expect_char(decoder, '(');
  *count = 0;
  if (accept_char(decoder, ')')) return NULL;
  do {
    skip_space(decoder);
    const Symbol *symbol =
        at_identifier(decoder) ? find_symbol(decoder->module, parse_identifier(decoder)) : NULL;
    if (!symbol || symbol->kind != SYMBOL_LOCAL)
      parse_fail(decoder, "a call passes .param variables: registers and numbers are not emulated");
    places = arena_grow(decoder, places, *count, &capacity, sizeof *places);
    places[(*count)++] = (ParameterPlace){(uint32_t)symbol->offset, (uint32_t)symbol->bytes};
  } while (accept_char(decoder, ','));
  expect_char(decoder, ')');
  return places;
}

/* call (result), function, (arguments); the function may be a register, then a prototype follows */
static void parse_call(Decoder *decoder, Draft *draft, OperandList *list) {
  CallSite *call = decoder_allocate(decoder, sizeof *call);
  bool told = false; /* what the function takes and returns */
  if (skip_space(decoder) == '(') {
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
    told = skip_space(decoder) != '(';
    if (!told) {
      call->arguments = parse_call_list(decoder, &call->argument_count);
      told = accept_char(decoder, ',');
    }
    if (told) parse_identifier(decoder); /* of a prototype: the arguments say what it would */
  }
  if (!call->callee && !told)
    parse_fail(decoder, "a call by a register needs a .callprototype or .calltargets");
  draft->call = call;
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

/* "@p" or "@!p" in front of an instruction. */
static void parse_guard(Decoder *decoder, Draft *draft) {
  if (!accept_char(decoder, '@')) return;
  draft->guard_negated = accept_char(decoder, '!');
  Operand guard = {0};
  const char *name = parse_identifier(decoder);
  name_operand(decoder, draft, name, false, &guard);
  if (guard.kind != OPERAND_PREDICATE) parse_fail(decoder, "%s is not a predicate", name);
  draft->guard = guard.target;
}

static void parse_operands(Decoder *decoder, Draft *draft, OperandList *list) {
  const PtxStatement *statement = &draft->statement;
  if (has_trait(statement, CALLS)) {
    parse_call(decoder, draft, list);
  } else {
    do {
      if (has_trait(statement, JUMPS_BY_LIST) && list->count == 1) {
        const char *name = parse_identifier(decoder);
        draft->targets = find_symbol(decoder->module, name);
        if (!draft->targets || draft->targets->kind != SYMBOL_TARGETS)
          parse_fail(decoder, "%s is not a .branchtargets list", name);
        continue;
      }
      if (has_trait(statement, JUMPS)) {
        Operand *out = add_operand(decoder, list);
        out->kind = OPERAND_LABEL;
        out->slot = REFER_LABEL;
        out->target = use_label(decoder, parse_identifier(decoder));
        continue;
      }
      parse_operand(decoder, draft, list);
    } while (accept_char(decoder, ','));
  }
}

/* "mov d, variable" in a function's frame is an addition. */
static void add_frame(Decoder *decoder, PtxStatement *statement, OperandList *list) {
  if (!has_trait(statement, MOVES) || list->count != 2) return;
  Operand *source = &list->items[1];
  if (source->kind != OPERAND_REGISTER || source->slot != REFER_COLUMN ||
      source->target != decoder->module->frame_column)
    return;
  int64_t offset = source->offset;
  source->offset = 0;
  literal_operand(decoder, add_operand(decoder, list), (uint64_t)offset);
  set_opcode(decoder, statement, "add.u64");
}

/* Instructions that must run before this one: those that read clocks and those that bring the warp
 * together. */
static void insert_before(Decoder *decoder, const Draft *draft, const OperandList *list) {
  const Module *module = decoder->module;
  const PtxStatement *statement = &draft->statement;
  uint32_t column;
  if (reads_clock(decoder, list, &column)) {
    Draft *read = add_draft(decoder);
    read->statement = *statement;
    read->guard = draft->guard;
    read->guard_negated = draft->guard_negated;
    read->inserted = INSERTED_READ_CLOCK;
    read->operand = decoder_allocate(decoder, sizeof *read->operand);
    read->operand[0] = (Operand){.kind = OPERAND_REGISTER,
                                 .bytes = module->columns[column].bytes,
                                 .slot = REFER_COLUMN,
                                 .target = column,
                                 .constant_value = module->columns[column].special};
    read->operand_count = 1;
  }
  if (has_trait(statement, WHOLE_WARP) && has_modifier(statement, "aligned")) {
    Draft *converge = add_draft(decoder);
    converge->statement = *statement;
    converge->inserted = INSERTED_CONVERGE;
    converge->leader = true;
  }
}

/* How many operands it writes. */
static uint32_t count_results(const Draft *draft, const OperandList *list) {
  OperandUse use = draft->statement.known ? draft->statement.known->operand_use : WRITES;
  if (use == READS || use == UPDATES || list->count == 0 || list->items[0].kind == OPERAND_ADDRESS)
    return 0;
  return use == WRITES_PAIR && draft->pair ? 2 : 1;
}

void parse_instruction(Decoder *decoder) {
  const char *first = decoder->at;
  Draft draft = {.guard = NO_REGISTER};
  draft.statement.line = decoder->line;
  parse_guard(decoder, &draft);
  PtxStatement *statement = &draft.statement;
  parse_opcode(decoder, statement);
  if (statement->modifiers[0][0] >= '0' && statement->modifiers[0][0] <= '9')
    parse_fail(decoder, "expected an instruction");
  if (statement->known && statement->known->refusal)
    parse_fail(decoder, "%s", statement->known->refusal);
  OperandList list = {0};
  skip_space(decoder);
  if (has_trait(statement, CALLS) || *decoder->at != ';') parse_operands(decoder, &draft, &list);
  skip_space(decoder);
  const char *end = decoder->at;
  expect_char(decoder, ';');
  statement->text = statement_text(decoder, first, end);

  add_frame(decoder, statement, &list);
  insert_before(decoder, &draft, &list);
  Draft *added = add_draft(decoder);
  *added = draft;
  added->operand = list.items;
  added->operand_count = list.count;
  added->results = count_results(added, &list);
  const Schedule schedule = settings()->schedule;
  if (has_trait(statement, ASYNC) && (schedule == SCHEDULE_EARLY || schedule == SCHEDULE_RANDOM)) {
    Draft *land = add_draft(decoder);
    land->statement = *statement;
    land->inserted = INSERTED_LAND;
  }
}
