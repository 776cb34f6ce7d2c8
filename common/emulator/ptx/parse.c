/* parse.c: from text to symbols: declarations, scopes, functions, source lines. The statements of
 * functions are read by parse_statement.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chip.h"
#include "ptx/program.h"
#include "ptx/types.h"

/* ---- Types ---- */
static uint8_t class_of(uint8_t bytes) {
  return bytes == 0 ? CLASS_PREDICATE : bytes <= 4 ? CLASS_32 : bytes == 8 ? CLASS_64 : CLASS_128;
}

static uint64_t aligned(uint64_t offset, uint64_t alignment) {
  return alignment > 1 ? (offset + alignment - 1) & ~(alignment - 1) : offset;
}

typedef struct {
  uint8_t bytes, class, vector;
  uint32_t alignment;
} DeclaredType;

/* [.align N] [.attribute(...)] [.v2] .type [.ptr [.space] [.align N]] in any order that occurs */
static DeclaredType parse_type(Decoder *decoder) {
  DeclaredType type = {0, 0, 1, 0};
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
    } else if (!known && declared_type(name, &type.bytes)) {
      type.class = class_of(type.bytes);
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
  DeclaredType type;
  uint64_t offset;
  Initialiser **tail;
} InitialiserState;

/* A floating literal has the width in which it is written; its variable may have another. */
static void convert_float(Literal *literal, uint32_t bytes) {
  if (!literal->floating || literal->bytes == bytes) return;
  float narrow;
  double wide;
  uint32_t bits = (uint32_t)literal->value;
  if (literal->bytes == 4 && bytes == 8) {
    memcpy(&narrow, &bits, 4);
    wide = narrow;
    memcpy(&literal->value, &wide, 8);
  } else if (literal->bytes == 8 && bytes == 4) {
    memcpy(&wide, &literal->value, 8);
    narrow = (float)wide;
    memcpy(&bits, &narrow, 4);
    literal->value = bits;
  }
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
    convert_float(&literal, item->bytes);
    item->addend = (int64_t)literal.value;
    skip_space(decoder);
    named = *decoder->at == '(';
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
    skip_space(decoder);
    if (*decoder->at == '+' || *decoder->at == '-') item->addend = (int64_t)parse_integer(decoder);
    if (item->masked) expect_char(decoder, ')');
  }
  *state->tail = item;
  state->tail = &item->next;
}

static Symbol *declare_register(Decoder *decoder, const char *name, const DeclaredType *type) {
  Symbol *symbol = new_symbol(decoder, name, SYMBOL_REGISTER);
  symbol->first_register = new_register(decoder, type->class, type->bytes);
  symbol->class = type->class;
  symbol->element_bytes = type->bytes;
  declare(decoder, symbol, true);
  return symbol;
}

/* "v" stands for all its registers; each of them has two names, "v.x" and "v.r". */
static void declare_vector(Decoder *decoder, const char *name, const DeclaredType *type) {
  Symbol *whole = new_symbol(decoder, name, SYMBOL_VECTOR);
  whole->range_count = type->vector;
  whole->element_bytes = type->bytes;
  for (uint32_t i = 0; i < type->vector; i++) {
    char text[1100];
    snprintf(text, sizeof text, "%.1000s.%c", name, "xyzw"[i]);
    const Symbol *element = declare_register(decoder, copy_text(decoder, text, strlen(text)), type);
    if (i == 0) whole->first_register = element->first_register;
    text[strlen(text) - 1] = "rgba"[i];
    Symbol *other = new_symbol(decoder, copy_text(decoder, text, strlen(text)), SYMBOL_REGISTER);
    other->first_register = element->first_register;
    other->class = type->class;
    other->element_bytes = type->bytes;
    declare(decoder, other, true);
  }
  declare(decoder, whole, true);
}

/* ".reg .v2 .f32 v<3>" is v0, v1 and v2. */
static void declare_vectors(Decoder *decoder, const char *name, uint64_t count,
                            const DeclaredType *type) {
  enum { VECTORS_MOST = 4096 };
  if (count > VECTORS_MOST)
    parse_fail(decoder, "more than %d vector registers in one range", VECTORS_MOST);
  for (unsigned i = 0; i < count; i++) {
    char text[1100];
    snprintf(text, sizeof text, "%.1000s%u", name, i);
    declare_vector(decoder, copy_text(decoder, text, strlen(text)), type);
  }
}

static void parse_registers(Decoder *decoder) {
  if (!decoder->function) parse_fail(decoder, "registers outside of a function");
  DeclaredType type = parse_type(decoder);
  if (type.vector != 1 && type.class == CLASS_PREDICATE)
    parse_fail(decoder, "a vector of predicates");
  do {
    const char *name = parse_identifier(decoder);
    if (accept_char(decoder, '<')) {
      uint64_t count = parse_count(decoder);
      expect_char(decoder, '>');
      if (type.vector != 1) {
        declare_vectors(decoder, name, count, &type);
        continue;
      }
      if (count > UINT32_MAX) parse_fail(decoder, "more than four billion registers");
      Symbol *symbol = new_symbol(decoder, name, SYMBOL_REGISTERS);
      symbol->range_count = (uint32_t)count;
      symbol->first_register = decoder->range_count++;
      symbol->class = type.class;
      symbol->element_bytes = type.bytes;
      declare(decoder, symbol, true);
    } else {
      if (type.vector == 1)
        declare_register(decoder, name, &type);
      else
        declare_vector(decoder, name, &type);
    }
  } while (accept_char(decoder, ','));
  expect_char(decoder, ';');
}

/* Reserves space in the function's frame. */
uint64_t frame_place(Decoder *decoder, uint64_t bytes, uint64_t alignment) {
  uint64_t offset = aligned(decoder->frame_cursor, alignment);
  decoder->frame_cursor = offset + bytes;
  if (decoder->frame_cursor > 512u << 10)
    parse_fail(decoder, "more than 512 KiB of local memory in one function");
  if (decoder->function->frame_bytes < decoder->frame_cursor)
    decoder->function->frame_bytes = (uint32_t)decoder->frame_cursor;
  return offset;
}

static void parse_variable(Decoder *decoder, const char *space, bool external, bool weak,
                           bool file_local) {
  Module *module = decoder->module;
  bool in_function = decoder->function != NULL;
  DeclaredType type = parse_type(decoder);
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
        if (external) continue; /* already known */
      } else if (symbol && symbol->kind != SYMBOL_FUNCTION) {
        parse_fail(decoder, "%s is declared twice", own_name);
      } else {
        symbol = new_symbol(decoder, own_name, kind);
        symbol->file_local = file_local;
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
      uint64_t most_bytes =
          symbol->memory ? symbol->bytes : UINT64_MAX; /* a weak symbol, defined once more */
      symbol->bytes = bytes;
      symbol->alignment = type.alignment;
      symbol->unit = module->unit;
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
      if (kind == SYMBOL_SHARED && bytes == 0) symbol->external = true; /* dynamic shared memory */
      if (symbol->bytes > most_bytes)
        parse_fail(decoder, "%s is declared twice and grows", own_name);
      if (kind == SYMBOL_VARIABLE && !external) allocate_variable(decoder, symbol);
    }
  } while (accept_char(decoder, ','));
  expect_char(decoder, ';');
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

/* nvcc puts .file lines after the code that uses them. */
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

/* ".reg .v2 .f32 v" in a list of parameters: v.x and v.y are passed one after the other. */
static void add_vector_parameter(Decoder *decoder, const char *name, const DeclaredType *type,
                                 ParameterPlace **places, uint32_t *count, uint32_t *capacity,
                                 bool declare_them) {
  uint32_t first = 0;
  if (declare_them) {
    declare_vector(decoder, name, type);
    first = find_symbol(decoder->module, name)->first_register;
  }
  for (uint32_t i = 0; i < type->vector; i++) {
    ParameterPlace place = {0, type->bytes, 0};
    if (declare_them) {
      place.offset = (uint32_t)frame_place(decoder, type->bytes, type->bytes);
      place.register_number = first + i + 1;
    }
    *places = grow(decoder, *places, *count, capacity, sizeof **places);
    (*places)[(*count)++] = place;
  }
}

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
    bool in_register = space && strcmp(space, "reg") == 0 && !function->entry;
    if (!space || (strcmp(space, "param") != 0 && !in_register))
      parse_fail(decoder, "expected .param");
    DeclaredType type = parse_type(decoder);
    const char *name = parse_identifier(decoder);
    bool open;
    uint64_t elements = parse_dimensions(decoder, &open);
    uint64_t bytes = elements * type.bytes * type.vector;
    if (bytes > 1u << 20) parse_fail(decoder, "a parameter larger than 1 MiB");
    if (in_register && (bytes == 0 || bytes != (uint64_t)type.bytes * type.vector))
      parse_fail(decoder, "a .reg parameter is a register or a vector of them, and no predicate");
    if (in_register && type.vector > 1) {
      add_vector_parameter(decoder, name, &type, places, count, &capacity, declare_them);
      continue;
    }
    *places = grow(decoder, *places, *count, &capacity, sizeof **places);
    SymbolKind kind = function->entry ? SYMBOL_ENTRY_PARAMETER : SYMBOL_LOCAL;
    Symbol *symbol = new_symbol(decoder, name, in_register ? SYMBOL_REGISTER : kind);
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
    ParameterPlace place = {(uint32_t)symbol->offset, (uint32_t)bytes, 0};
    if (in_register && declare_them) {
      symbol->class = type.class;
      symbol->element_bytes = type.bytes;
      symbol->first_register = new_register(decoder, type.class, type.bytes);
      place.register_number = symbol->first_register + 1;
    }
    if (declare_them) declare(decoder, symbol, true);
    (*places)[(*count)++] = place;
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
      function->traits.max_threads = threads > CTA_THREADS ? CTA_THREADS : (uint32_t)threads;
      function->declared_threads = function->traits.max_threads;
    } else if (strcmp(name, "reqnctapercluster") == 0) {
      function->traits.required_cluster = parse_index3(decoder);
    } else if (strcmp(name, "maxclusterrank") == 0 || strcmp(name, "maxnreg") == 0 ||
               strcmp(name, "minnctapersm") == 0 || strcmp(name, "maxnctapersm") == 0) {
      uint64_t value = parse_integer(decoder);
      uint32_t clamped = value > UINT16_MAX ? UINT16_MAX : (uint32_t)value;
      if (strcmp(name, "minnctapersm") == 0) function->minimum_ctas = clamped;
      if (strcmp(name, "maxnreg") == 0) function->most_registers = clamped;
    } else if (strcmp(name, "explicitcluster") == 0 || strcmp(name, "noreturn") == 0 ||
               strcmp(name, "blocksareclusters") == 0) {
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

static void parse_body_directive(Decoder *decoder) {
  const char *name = accept_directive(decoder);
  if (!name) parse_fail(decoder, "expected a directive");
  if (strcmp(name, "loc") == 0) {
    parse_loc(decoder);
  } else if (strcmp(name, "reg") == 0) {
    parse_registers(decoder);
  } else if (strcmp(name, "local") == 0 || strcmp(name, "shared") == 0 ||
             strcmp(name, "param") == 0 || strcmp(name, "global") == 0 ||
             strcmp(name, "const") == 0) {
    parse_variable(decoder, name, false, false, false);
  } else if (strcmp(name, "extern") == 0) {
    const char *space = accept_directive(decoder);
    if (!space) parse_fail(decoder, "expected a state space");
    parse_variable(decoder, space, true, false, false);
  } else if (strcmp(name, "pragma") == 0) {
    do parse_string(decoder);
    while (accept_char(decoder, ','));
    expect_char(decoder, ';');
  } else if (strcmp(name, "file") == 0) {
    parse_file(decoder);
  } else {
    parse_fail(decoder, "unknown directive .%s", name);
  }
}

/* false: an opcode stands here, not a label */
static bool parse_label(Decoder *decoder) {
  if (!at_identifier(decoder)) return false;
  const char *start = decoder->at;
  uint32_t line = decoder->line;
  const char *name = parse_identifier(decoder);
  skip_space(decoder);
  if (decoder->at[0] != ':' || decoder->at[1] == ':') {
    decoder->at = start;
    decoder->line = line;
    return false;
  }
  decoder->at++;
  skip_space(decoder);
  const char *behind = decoder->at;
  const char *directive = *behind == '.' ? accept_directive(decoder) : NULL;
  if (directive && strcmp(directive, "callprototype") == 0) {
    parse_prototype(decoder, name);
  } else if (directive && strcmp(directive, "branchtargets") == 0) {
    parse_branch_targets(decoder, name);
  } else if (directive && strcmp(directive, "calltargets") == 0) {
    skip_call_targets(decoder);
  } else {
    decoder->at = behind;
    define_label(decoder, name);
  }
  return true;
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
    if (c == '.')
      parse_body_directive(decoder);
    else if (!parse_label(decoder))
      parse_instruction(decoder);
  }
  forget_symbols(decoder, undo);
  decoder->scope = outer;
  decoder->frame_cursor = cursor;
}

/* Lanes meet at these instructions and leave barriers together, so groups may merge there. */
static void mark_leaders(Function *function) {
  for (uint32_t i = 0; i + 1 < function->draft_count; i++) {
    const PtxStatement *statement = &function->drafts[i].statement;
    if (has_trait(statement, ANY_BARRIER | WARP_WIDE)) function->drafts[i].leader = true;
    if (has_trait(statement, ANY_BARRIER)) function->drafts[i + 1].leader = true;
  }
}

static void finish_function(Decoder *decoder) {
  Function *function = decoder->function;
  give_register_results(decoder, NO_REGISTER, false);
  Draft *end = add_draft(decoder); /* falling off the end is a return; labels may point here */
  set_opcode(decoder, &end->statement, function->entry ? "exit" : "ret");
  end->statement.text = end->statement.opcode;
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
    if (draft->targets) { /* several branches may share a list: each gets a resolved copy */
      Symbol *copy = need(decoder, arena_allocate(&decoder->module->arena, sizeof *copy));
      *copy = *draft->targets;
      copy->labels = need(decoder, arena_allocate(&decoder->module->arena,
                                                  copy->label_count * sizeof *copy->labels));
      for (uint32_t k = 0; k < copy->label_count; k++)
        copy->labels[k] = places[draft->targets->labels[k]];
      draft->targets = copy;
    }
  }
}

/* Skips to the text after the function's closing brace. `at` is the text after its opening
 * brace. */
static void skip_body(Decoder *decoder, const char *at, uint32_t line) {
  decoder->at = at;
  decoder->line = line;
  for (uint32_t depth = 1; depth > 0;) {
    skip_space(decoder);
    char c = *decoder->at;
    if (c == '\0') parse_fail(decoder, "the text ends inside a function");
    if (c == '"') {
      parse_string(decoder);
      continue;
    }
    depth += c == '{' ? 1u : 0u;
    depth -= c == '}' ? 1u : 0u;
    decoder->at++;
  }
}

/* A separate function, because setjmp returns twice. */
static bool parse_whole_body(Decoder *decoder) {
  if (setjmp(decoder->failed)) return false;
  take_register_parameters(decoder);
  parse_body(decoder, 0);
  finish_function(decoder);
  return true;
}

/* Text that cannot be parsed rejects only this function and its callers. */
static void parse_body_or_refuse(Decoder *decoder) {
  Function *function = decoder->function;
  const char *at = decoder->at;
  uint32_t line = decoder->line, undo = decoder->undo_count, scope = decoder->scope;
  int depth = decoder->depth;
  jmp_buf outer;
  memcpy(&outer, &decoder->failed, sizeof outer);
  bool good = parse_whole_body(decoder);
  memcpy(&decoder->failed, &outer, sizeof outer);
  if (good) return;
  function->refusal = copy_text(decoder, decoder->error, strlen(decoder->error));
  decoder->function = function;
  decoder->depth = depth;
  decoder->scope = scope;
  forget_symbols(decoder, undo);
  skip_body(decoder, at, line);
  function->draft_count = 0;
  function->register_count = 0;
  function->callees.count = 0;
  function->has_indirect_calls = false;
  decoder->label_count = decoder->label_use_count = 0;
  finish_function(decoder);
}

/* A declaration before the definition: both are one function, known by the first symbol. Returns that
 * function. */
static Function *join_declarations(Decoder *decoder, Function *function, bool body, bool weak,
                                   bool file_local) {
  Module *module = decoder->module;
  const char *name = function->name;
  Symbol *symbol = find_symbol(module, name);
  if (!symbol) {
    symbol = new_symbol(decoder, name, SYMBOL_FUNCTION);
    symbol->function = function;
    symbol->file_local = file_local;
    declare(decoder, symbol, false);
    return function;
  }
  if (symbol->kind != SYMBOL_FUNCTION) parse_fail(decoder, "%s is declared twice", name);
  Function *known = symbol->function;
  if (known->defined && body && !weak) parse_fail(decoder, "the function %s has two bodies", name);
  module->function_count--; /* the new function was the last one */
  if (!body || known->defined)
    return function; /* a second declaration or a second weak body is parsed and dropped */
  uint32_t number = known->number;
  uint64_t address = known->address;
  bool address_taken = known->address_taken;
  *known = *function;
  known->number = number;
  known->address = address;
  known->address_taken = address_taken;
  return known;
}

static void parse_function(Decoder *decoder, bool entry, bool weak, bool file_local) {
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

  skip_space(decoder);
  bool body = *decoder->at == '{';
  decoder->function = function = join_declarations(decoder, function, body, weak, file_local);
  if (!body) {
    expect_char(decoder, ';');
    forget_symbols(decoder, undo);
    decoder->function = NULL;
    return;
  }
  expect_char(decoder, '{');
  function->defined = true;
  parse_body_or_refuse(decoder);
  forget_symbols(decoder, undo);
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
  find_files(decoder);
  bool versioned = false;
  for (;;) {
    skip_space(decoder);
    if (*decoder->at == '\0') break;
    const char *name = accept_directive(decoder);
    if (!name) parse_fail(decoder, "expected a directive such as .visible or .entry");
    bool external = false, weak = false, file_local = true;
    while (strcmp(name, "visible") == 0 || strcmp(name, "extern") == 0 ||
           strcmp(name, "weak") == 0 || strcmp(name, "common") == 0) {
      if (name[0] == 'e') external = true;
      if (name[0] == 'w' || name[0] == 'c') weak = true;
      file_local = false;
      name = accept_directive(decoder);
      if (!name) parse_fail(decoder, "expected a directive after the linkage");
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
      parse_function(decoder, name[0] == 'e', weak, file_local);
    } else if (strcmp(name, "global") == 0 || strcmp(name, "const") == 0 ||
               strcmp(name, "shared") == 0) {
      parse_variable(decoder, name, external, weak, file_local);
    } else {
      parse_fail(decoder, "unknown directive .%s", name);
    }
  }
}
