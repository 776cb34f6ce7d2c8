/* parse_variable.c: declarations of variables and registers: types, dimensions, initial values. */
#include <string.h>

#include "base/half.h"
#include "ptx/program.h"
#include "ptx/types.h"

/* ---- Types ---- */
static uint8_t class_of(uint8_t bytes) {
  return bytes == 0 ? CLASS_PREDICATE : bytes <= 4 ? CLASS_32 : bytes == 8 ? CLASS_64 : CLASS_128;
}

uint64_t aligned(uint64_t offset, uint64_t alignment) {
  return alignment > 1 ? (offset + alignment - 1) & ~(alignment - 1) : offset;
}

bool parse_attribute(Decoder *decoder) {
  bool managed = false;
  expect_char(decoder, '(');
  do {
    const char *name = accept_directive(decoder);
    managed |= name && strcmp(name, "managed") == 0;
    if (name && strcmp(name, "unified") == 0) {
      expect_char(decoder, '(');
      do parse_integer(decoder);
      while (accept_char(decoder, ','));
      expect_char(decoder, ')');
    } else if (!name || strcmp(name, "managed") != 0) {
      parse_fail(decoder, "an attribute is .managed or .unified(number, number)");
    }
  } while (accept_char(decoder, ','));
  expect_char(decoder, ')');
  return managed;
}

/* The name of a register or a variable that is declared here. */
static const char *parse_new_name(Decoder *decoder) {
  const char *name = parse_identifier(decoder);
  if (strcmp(name, "_") == 0 || strcmp(name, "WARP_SZ") == 0 || strchr(name, '.'))
    parse_fail(decoder, "%s cannot be the name of a register or variable", name);
  return name;
}

DeclaredType parse_type(Decoder *decoder) {
  DeclaredType type = {.vector = 1};
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
      type.managed |= parse_attribute(decoder);
    } else if (strcmp(name, "v2") == 0 || strcmp(name, "v4") == 0) {
      type.vector = (uint8_t)(name[1] - '0');
    } else if (strcmp(name, "ptr") == 0) {
      type.pointer = pointer = true;
    } else if (pointer && (strcmp(name, "global") == 0 || strcmp(name, "shared") == 0 ||
                           strcmp(name, "const") == 0 || strcmp(name, "local") == 0)) {
      continue;
    } else if (!known && declared_type(name, &type.bytes, &type.numbers)) {
      type.class = class_of(type.bytes);
      if (type_opaque(name)) parse_fail(decoder, "textures and surfaces are not emulated");
      type.type = (uint8_t)type_named(name);
      known = true;
    } else {
      parse_fail(decoder, "unknown type or attribute .%s", name);
    }
  }
  if (type.alignment == 0) type.alignment = (uint32_t)(type.bytes ? type.bytes * type.vector : 1);
  return type;
}

Dimensions parse_dimensions(Decoder *decoder) {
  Dimensions dimensions = {.elements = 1};
  while (accept_char(decoder, '[')) {
    skip_space(decoder);
    if (dimensions.count == DIMENSIONS_MOST) parse_fail(decoder, "more than 8 dimensions");
    bool open = *decoder->at == ']';
    if (open && dimensions.count > 0) parse_fail(decoder, "only the first dimension may be []");
    dimensions.open |= open;
    uint64_t size = open ? 1 : parse_integer(decoder);
    expect_char(decoder, ']');
    if (size > 1ull << 34 || (size && dimensions.elements > (1ull << 34) / size))
      parse_fail(decoder, "an array larger than 16 GiB");
    dimensions.size[dimensions.count++] = size;
    dimensions.elements *= size;
  }
  return dimensions;
}

/* ---- Initial values ---- */
typedef struct {
  Symbol *symbol;
  DeclaredType type;
  const Dimensions *dimensions;
  uint64_t offset;
  Initialiser **tail;
} InitialiserState;

/* The bytes within so many braces. */
static uint64_t bytes_within(const InitialiserState *state, uint32_t level) {
  uint64_t bytes = state->type.bytes;
  if (level <= state->dimensions->count) bytes *= state->type.vector;
  for (uint32_t i = level; i < state->dimensions->count; i++) bytes *= state->dimensions->size[i];
  return bytes;
}

/* As ptxas: numbers of the variable's own kind, and no number for a half. */
static void check_initial_number(Decoder *decoder, const DeclaredType *type, bool floating) {
  bool half = type->type == TYPE_F16 || type->type == TYPE_F16X2;
  if (half)
    parse_fail(decoder, "a variable of type .%s has no initial value", type_name(type->type));
  if (type->numbers == (floating ? NUMBERS_INTEGER : NUMBERS_FLOAT))
    parse_fail(decoder, "the initial value is no number of type .%s", type_name(type->type));
}

/* Addresses are .u32 or .u64, their bytes .u8; what is named stands before. */
static void check_initial_address(Decoder *decoder, const InitialiserState *state,
                                  const Initialiser *item) {
  Type type = (Type)state->type.type;
  if (item->masked ? type != TYPE_U8 : type != TYPE_U32 && type != TYPE_U64)
    parse_fail(decoder, "an address is a number of type .u64 or .u32, its bytes are .u8");
  const Symbol *named = find_symbol(decoder->module, item->symbol);
  if (!named || named == state->symbol)
    parse_fail(decoder, "the initial value names %s, which is not declared yet", item->symbol);
}

/* A floating literal has the width in which it is written; its variable may have another. */
static void convert_float(Literal *literal, uint32_t bytes) {
  if (!literal->floating || literal->bytes == bytes) return;
  if (literal->bytes == 4 && bytes == 8)
    literal->value = bits_of_double((double)float_of((uint32_t)literal->value));
  else if (literal->bytes == 8 && bytes == 4)
    literal->value = bits_of_float((float)double_of(literal->value));
}

/* 0xff00(symbol): one byte of the symbol's address. */
static void parse_byte_mask(Decoder *decoder, uint64_t mask, Initialiser *item) {
  expect_char(decoder, '(');
  item->masked = 1;
  while (item->shift < 56 && (mask & 0xff) == 0) {
    mask >>= 8;
    item->shift = (uint8_t)(item->shift + 8);
  }
  if (mask != 0xff) parse_fail(decoder, "a mask that is not one byte, such as 0xff00");
  item->addend = 0;
}

static void parse_initialiser(Decoder *decoder, InitialiserState *state, uint32_t level);

/* {1, 2}: what is left out is 0. */
static void parse_row(Decoder *decoder, InitialiserState *state, uint32_t level) {
  uint64_t begin = state->offset, bytes = bytes_within(state, level);
  bool open = level == 0 && state->dimensions->open;
  if (!accept_char(decoder, '}')) {
    do parse_initialiser(decoder, state, level + 1);
    while (accept_char(decoder, ','));
    expect_char(decoder, '}');
  }
  if (!open && state->offset - begin > bytes)
    parse_fail(decoder, "%s has too many initial values", state->symbol->name);
  if (!open && level > 0) state->offset = begin + bytes;
}

static void parse_initialiser(Decoder *decoder, InitialiserState *state, uint32_t level) {
  bool braces = level < state->dimensions->count + (state->type.vector > 1);
  if (accept_char(decoder, '{') != braces)
    parse_fail(decoder, "the initial value of %s has as many braces as it has dimensions",
               state->symbol->name);
  if (braces) {
    parse_row(decoder, state, level);
    return;
  }
  Initialiser *item = decoder_allocate(decoder, sizeof *item);
  item->offset = state->offset;
  item->bytes = state->type.bytes;
  item->line = decoder->line;
  state->offset += state->type.bytes;
  if (skip_space(decoder) == '"') parse_fail(decoder, "a string cannot be an initialiser");
  bool named = at_identifier(decoder) && strncmp(decoder->at, "WARP_SZ", 7) != 0;
  if (!named) {
    Literal literal = parse_literal(decoder);
    named = skip_space(decoder) == '(';
    if (!named) check_initial_number(decoder, &state->type, literal.floating);
    convert_float(&literal, item->bytes);
    item->addend = (int64_t)literal.value;
    if (named) parse_byte_mask(decoder, literal.value, item);
  }
  if (named) {
    const char *name = parse_identifier(decoder);
    if (strcmp(name, "generic") == 0) {
      expect_char(decoder, '(');
      name = parse_identifier(decoder);
      expect_char(decoder, ')');
    }
    item->symbol = name;
    if (skip_space(decoder) == '-') parse_fail(decoder, "an address less a number");
    if (*decoder->at == '+') item->addend = (int64_t)parse_integer(decoder);
    if (item->masked) expect_char(decoder, ')');
    check_initial_address(decoder, state, item);
  }
  *state->tail = item;
  state->tail = &item->next;
}

/* A register, or the registers of a vector, one after the other. */
static void declare_register(Decoder *decoder, const char *name, const DeclaredType *type) {
  Symbol *symbol = new_symbol(decoder, name, type->vector > 1 ? SYMBOL_VECTOR : SYMBOL_REGISTER);
  symbol->first_register = new_register(decoder, type->class, type->bytes);
  for (symbol->range_count = 1; symbol->range_count < type->vector; symbol->range_count++)
    new_register(decoder, type->class, type->bytes);
  symbol->class = type->class;
  symbol->element_bytes = type->bytes;
  symbol->numbers = type->numbers;
  declare(decoder, symbol, true);
}

void parse_registers(Decoder *decoder) {
  if (!decoder->function) parse_fail(decoder, "registers outside of a function");
  DeclaredType type = parse_type(decoder);
  if (type.vector > 1 && type.class == CLASS_PREDICATE)
    parse_fail(decoder, "a vector of predicates");
  if (type.vector * type.bytes > 16) parse_fail(decoder, "a vector has at most 16 bytes");
  do {
    const char *name = parse_new_name(decoder);
    if (accept_char(decoder, '<')) {
      if (type.vector > 1)
        parse_fail(decoder, "ranges of vectors of registers are not emulated: declare each vector");
      uint64_t count = parse_count(decoder);
      expect_char(decoder, '>');
      if (count > UINT32_MAX) parse_fail(decoder, "more than four billion registers");
      Symbol *symbol = new_symbol(decoder, name, SYMBOL_REGISTERS);
      symbol->range_count = (uint32_t)count;
      symbol->first_register = decoder->range_count++;
      symbol->class = type.class;
      symbol->element_bytes = type.bytes;
      symbol->numbers = type.numbers;
      declare(decoder, symbol, true);
    } else {
      declare_register(decoder, name, &type);
    }
  } while (accept_char(decoder, ','));
  expect_char(decoder, ';');
}

uint64_t frame_place(Decoder *decoder, uint64_t bytes, uint64_t alignment) {
  uint64_t offset = aligned(decoder->frame_cursor, alignment);
  decoder->frame_cursor = offset + bytes;
  if (decoder->frame_cursor > 512u << 10)
    parse_fail(decoder, "more than 512 KiB of local memory in one function");
  if (decoder->function->frame_bytes < decoder->frame_cursor)
    decoder->function->frame_bytes = (uint32_t)decoder->frame_cursor;
  return offset;
}

static void add_to_list(Decoder *decoder, Symbol *symbol) {
  Module *module = decoder->module;
  if (symbol->kind == SYMBOL_SHARED) {
    module->shared = arena_grow(decoder, module->shared, module->shared_count,
                                &module->shared_capacity, sizeof *module->shared);
    symbol->number = module->shared_count;
    module->shared[module->shared_count++] = symbol;
  } else if (symbol->kind == SYMBOL_VARIABLE) {
    module->globals = arena_grow(decoder, module->globals, module->global_count,
                                 &module->global_capacity, sizeof *module->globals);
    module->globals[module->global_count++] = symbol;
  }
}

/* A second declaration in the same text. */
static void check_again(Decoder *decoder, const Symbol *symbol, const VariableScope *scope,
                        const DeclaredType *type, uint64_t bytes) {
  if (symbol->external && scope->file_local)
    parse_fail(decoder, "%s is .extern, and defined without .visible", symbol->name);
  if (!symbol->external && !scope->external)
    parse_fail(decoder, "%s is declared twice", symbol->name);
  bool open = symbol->bytes == 0 || bytes == 0;
  if (symbol->type != type->type || (!open && symbol->bytes != bytes))
    parse_fail(decoder, "%s was declared with another type", symbol->name);
}

/* The symbol of a variable that is declared here, or was before as an external or weak one. NULL: the
 * declaration says nothing new. */
static Symbol *variable_symbol(Decoder *decoder, const char *name, SymbolKind kind,
                               const VariableScope *scope, const DeclaredType *type,
                               uint64_t bytes) {
  bool in_function = decoder->function != NULL;
  Symbol *symbol = in_function ? NULL : find_symbol(decoder->module, name);
  if (symbol && symbol->kind == kind && (symbol->external || scope->external || scope->weak)) {
    if (symbol->unit == decoder->module->unit) check_again(decoder, symbol, scope, type, bytes);
    return scope->external ? NULL : symbol;
  }
  if (symbol && symbol->kind != SYMBOL_FUNCTION) parse_fail(decoder, "%s is declared twice", name);
  symbol = new_symbol(decoder, name, kind);
  symbol->file_local = scope->file_local;
  declare(decoder, symbol, in_function);
  add_to_list(decoder, symbol);
  return symbol;
}

/* "= {1, 2}" after the variable's name. An open dimension becomes as long as the list. */
static void parse_initial_value(Decoder *decoder, Symbol *symbol, const DeclaredType *type,
                                const char *space, const Dimensions *dimensions) {
  if (symbol->kind != SYMBOL_VARIABLE)
    parse_fail(decoder, "a .%s variable cannot have an initial value", space);
  if (symbol->external) parse_fail(decoder, "an .extern variable cannot have an initial value");
  symbol->initialisers = NULL;
  InitialiserState state = {
      .symbol = symbol, .type = *type, .dimensions = dimensions, .tail = &symbol->initialisers};
  parse_initialiser(decoder, &state, 0);
  if (dimensions->open) symbol->bytes = state.offset;
}

/* What ptxas refuses of a variable in this space. */
static void check_variable(Decoder *decoder, const char *space, const DeclaredType *type,
                           const VariableScope *scope) {
  bool global = strcmp(space, "global") == 0, is_parameter = strcmp(space, "param") == 0;
  if (type->class == CLASS_PREDICATE) parse_fail(decoder, "a predicate cannot be a variable");
  if (type->vector * type->bytes > 16) parse_fail(decoder, "a vector has at most 16 bytes");
  if (scope->common && !global) parse_fail(decoder, "a .common variable lies in .global");
  if (type->managed && !global) parse_fail(decoder, "a managed variable lies in .global");
  if (is_parameter && type->type == TYPE_F16X2)
    parse_fail(decoder, "no .param variable is of type .f16x2");
}

/* Arrays of vectors may be parameters, vectors may not. */
static void check_shape(Decoder *decoder, const char *space, const DeclaredType *type,
                        const Dimensions *dimensions, const VariableScope *scope) {
  if (type->vector > 1 && dimensions->count == 0 && strcmp(space, "param") == 0)
    parse_fail(decoder, "a .param variable cannot be a vector: make it an array");
  skip_space(decoder);
  bool sized = dimensions->open ? *decoder->at == '=' || scope->external : dimensions->elements > 0;
  if (!sized && !(scope->external && dimensions->open))
    parse_fail(decoder, "an array without a size that is not .extern");
}

void parse_variable(Decoder *decoder, const char *space, VariableScope scope) {
  DeclaredType type = parse_type(decoder);
  SymbolKind kind = SYMBOL_LOCAL;
  if (strcmp(space, "shared") == 0) kind = SYMBOL_SHARED;
  if (strcmp(space, "global") == 0 || strcmp(space, "const") == 0) kind = SYMBOL_VARIABLE;
  check_variable(decoder, space, &type, &scope);
  do {
    const char *name = parse_new_name(decoder);
    Dimensions dimensions = parse_dimensions(decoder);
    check_shape(decoder, space, &type, &dimensions, &scope);
    uint64_t bytes = dimensions.open ? 0 : dimensions.elements * type.bytes * type.vector;
    if (kind == SYMBOL_LOCAL && !decoder->function)
      parse_fail(decoder, "a .%s variable outside of a function", space);
    Symbol *symbol = variable_symbol(decoder, name, kind, &scope, &type, bytes);
    if (!symbol) continue;
    /* A weak symbol that has memory may be defined once more, but not grow. */
    uint64_t most_bytes = symbol->memory ? symbol->bytes : UINT64_MAX;
    symbol->bytes = bytes;
    symbol->alignment = type.alignment;
    symbol->unit = decoder->module->unit;
    symbol->element_bytes = type.bytes;
    symbol->type = type.type;
    symbol->external = scope.external;
    symbol->weak = scope.weak;
    symbol->constant_space = strcmp(space, "const") == 0;
    symbol->parameter = strcmp(space, "param") == 0;
    if (kind == SYMBOL_LOCAL) symbol->offset = frame_place(decoder, bytes, type.alignment);
    if (accept_char(decoder, '=')) parse_initial_value(decoder, symbol, &type, space, &dimensions);
    if (kind == SYMBOL_SHARED && bytes == 0) symbol->external = true; /* dynamic shared memory */
    if (symbol->bytes > most_bytes) parse_fail(decoder, "%s is declared twice and grows", name);
    if (kind == SYMBOL_VARIABLE && !scope.external) allocate_variable(decoder, symbol);
  } while (accept_char(decoder, ','));
  expect_char(decoder, ';');
}
