/* parse.c: from text to symbols: scopes, functions and the module as a whole. Variables are read by
 * parse_variable.c, the statements of functions by parse_statement.c. */
#include <string.h>

#include "base/chip.h"
#include "ptx/program.h"
#include "ptx/types.h"

/* ---- Functions ---- */

/* What ptxas refuses of a parameter. */
static void check_parameter(Decoder *decoder, const Function *function, const DeclaredType *type,
                            uint64_t bytes, const Dimensions *dimensions) {
  bool open = dimensions->open;
  skip_space(decoder);
  if (type->pointer && !function->entry) parse_fail(decoder, ".ptr is for parameters of kernels");
  if (open && (function->entry || *decoder->at == ','))
    parse_fail(decoder, "only the last parameter of a function, and of no kernel, may be open []");
  if (bytes > 1u << 20) parse_fail(decoder, "a parameter larger than 1 MiB");
  if (bytes == 0 && !open) parse_fail(decoder, "a .param parameter cannot be a predicate");
  if (type->type == TYPE_F16X2 && dimensions->count == 0)
    parse_fail(decoder, "no .param parameter is of type .f16x2");
  if (type->vector > 1 && dimensions->count == 0)
    parse_fail(decoder,
               "a .param parameter cannot be a vector: make it an array (.param .align 16 .b8 "
               "name[16])");
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
    if (space && strcmp(space, "reg") == 0)
      parse_fail(decoder, "parameters in registers (.reg) are not emulated: make them .param");
    if (!space || strcmp(space, "param") != 0) parse_fail(decoder, "expected .param");
    DeclaredType type = parse_type(decoder);
    const char *name = parse_identifier(decoder);
    Dimensions dimensions = parse_dimensions(decoder);
    uint64_t bytes = dimensions.open ? 0 : dimensions.elements * type.bytes * type.vector;
    check_parameter(decoder, function, &type, bytes, &dimensions);
    *places = arena_grow(decoder, *places, *count, &capacity, sizeof **places);
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

static void parse_results(Decoder *decoder, Function *function, bool declare_them) {
  if (skip_space(decoder) != '(') return;
  parse_parameters(decoder, function, &function->results, &function->result_count, declare_them);
  if (function->result_count > 1) parse_fail(decoder, "a function has at most one result");
}

static Function *new_function(Decoder *decoder, const char *name, bool entry) {
  Module *module = decoder->module;
  Function *function = arena_allocate(&module->arena, sizeof *function);
  module->functions = arena_grow(decoder, module->functions, module->function_count,
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

/* Directives that exclude or need others. */
typedef struct {
  bool required_threads, most_threads, required_cluster, most_cluster, blocks_are_clusters;
} Directives;

static void note_directive(Decoder *decoder, const Function *function, const char *name,
                           Directives *said) {
  static const char *const of_kernels[] = {"maxntid",         "reqntid",           "maxnreg",
                                           "minnctapersm",    "reqnctapercluster", "maxclusterrank",
                                           "explicitcluster", "blocksareclusters"};
  for (size_t i = 0; i < sizeof of_kernels / sizeof *of_kernels; i++)
    if (!function->entry && strcmp(name, of_kernels[i]) == 0)
      parse_fail(decoder, ".%s is for kernels", name);
  if (function->entry && (strcmp(name, "noreturn") == 0 || strncmp(name, "abi_", 4) == 0))
    parse_fail(decoder, ".%s is for functions that are no kernels", name);
  said->required_threads |= strcmp(name, "reqntid") == 0;
  said->most_threads |= strcmp(name, "maxntid") == 0;
  said->required_cluster |= strcmp(name, "reqnctapercluster") == 0;
  said->most_cluster |= strcmp(name, "maxclusterrank") == 0;
  said->blocks_are_clusters |= strcmp(name, "blocksareclusters") == 0;
}

static void check_directives(Decoder *decoder, const Directives *said) {
  if (said->required_threads && said->most_threads)
    parse_fail(decoder, ".maxntid and .reqntid exclude each other");
  if (said->required_cluster && said->most_cluster)
    parse_fail(decoder, ".reqnctapercluster and .maxclusterrank exclude each other");
  if (said->blocks_are_clusters && !(said->required_threads && said->required_cluster))
    parse_fail(decoder, ".blocksareclusters needs .reqntid and .reqnctapercluster");
}

static void parse_performance_directives(Decoder *decoder, Function *function) {
  Directives said = {0};
  for (;;) {
    if (skip_space(decoder) != '.') {
      check_directives(decoder, &said);
      return;
    }
    const char *name = accept_directive(decoder);
    if (!name) parse_fail(decoder, "expected a directive");
    note_directive(decoder, function, name, &said);
    if (strcmp(name, "maxntid") == 0 || strcmp(name, "reqntid") == 0) {
      Index3 size = parse_index3(decoder);
      uint64_t threads = (uint64_t)size.x * size.y * size.z;
      if (threads == 0) parse_fail(decoder, ".%s with 0 threads", name);
      function->traits.max_threads = threads > CTA_THREADS ? CTA_THREADS : (uint32_t)threads;
      function->declared_threads = function->traits.max_threads;
    } else if (strcmp(name, "reqnctapercluster") == 0) {
      Index3 size = parse_index3(decoder);
      bool none = size.x == 0 || size.y == 0 || size.z == 0; /* ptxas takes it and says nothing */
      function->traits.required_cluster = none ? (Index3){0, 0, 0} : size;
    } else if (strcmp(name, "maxclusterrank") == 0 || strcmp(name, "maxnreg") == 0 ||
               strcmp(name, "minnctapersm") == 0) {
      uint64_t value = parse_integer(decoder);
      if (value == 0 && name[3] != 'c') parse_fail(decoder, ".%s 0", name);
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
      parse_attribute(decoder);
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
  parse_results(decoder, prototype, false);
  parse_identifier(decoder);
  if (skip_space(decoder) == '(')
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
        arena_grow(decoder, symbol->labels, symbol->label_count, &capacity, sizeof *symbol->labels);
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
  decoder->scope_parent = arena_grow(decoder, decoder->scope_parent, decoder->scope_count,
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
    parse_variable(decoder, name, (VariableScope){0});
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

/* false: this is an opcode, not a label */
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
    char c = skip_space(decoder);
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
      Symbol *copy = decoder_allocate(decoder, sizeof *copy);
      *copy = *draft->targets;
      copy->labels = decoder_allocate(decoder, copy->label_count * sizeof *copy->labels);
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
    char c = skip_space(decoder);
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
  decoder->label_count = decoder->label_use_count = decoder->loc_count = 0;
  finish_function(decoder);
}

/* A declaration before the definition: both are one function, known by the first symbol. Returns that
 * function. */
static Function *join_declarations(Decoder *decoder, Function *function, bool body,
                                   const VariableScope *scope) {
  bool external = scope->external, weak = scope->weak, file_local = scope->file_local;
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
  if (known->defined && !body && !external && !weak)
    parse_fail(decoder, "the function %s is declared after its definition", name);
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

static void parse_function(Decoder *decoder, bool entry, VariableScope scope) {
  decoder->frame_cursor = 0;
  decoder->scope_count = decoder->scope = 0;
  decoder->label_count = decoder->label_use_count = decoder->loc_count = 0;
  decoder->range_register_count = decoder->range_register_size = 0;
  decoder->range_registers = NULL;
  decoder->range_count = 0;
  decoder->parameter_twice = NULL;
  open_scope(decoder); /* parameters */
  uint32_t undo = decoder->undo_count;

  Function *function = new_function(decoder, "", entry);
  decoder->function = function;
  skip_space(decoder);
  if (strncmp(decoder->at, ".attribute", 10) == 0 && accept_directive(decoder))
    parse_attribute(decoder);
  if (!entry) parse_results(decoder, function, true);
  const char *name = parse_identifier(decoder);
  function->name = function->traits.name = name;
  if (skip_space(decoder) == '(')
    parse_parameters(decoder, function, &function->parameters, &function->parameter_count, true);
  parse_performance_directives(decoder, function);

  bool body = skip_space(decoder) == '{';
  function->promised = !body && !scope.external;
  decoder->function = function = join_declarations(decoder, function, body, &scope);
  if (!body) {
    expect_char(decoder, ';');
    forget_symbols(decoder, undo);
    decoder->function = NULL;
    return;
  }
  if (decoder->parameter_twice)
    parse_fail(decoder, "the parameter %s is declared twice", decoder->parameter_twice);
  expect_char(decoder, '{');
  function->defined = true;
  parse_body_or_refuse(decoder);
  find_source_lines(decoder);
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
  from->function->promised = false;
  from->function = to->function;
}

static void check_promises(Decoder *decoder) {
  const Module *module = decoder->module;
  for (uint32_t i = 0; i < module->function_count; i++)
    if (module->functions[i]->promised && !module->functions[i]->defined)
      parse_fail(decoder, "the function %s is neither .extern nor defined",
                 module->functions[i]->name);
}

/* .visible, .extern, .weak or .common; returns the directive behind it. */
static const char *parse_linkage(Decoder *decoder, const char *name, VariableScope *scope) {
  while (strcmp(name, "visible") == 0 || strcmp(name, "extern") == 0 || strcmp(name, "weak") == 0 ||
         strcmp(name, "common") == 0) {
    if (name[0] == 'e') scope->external = true;
    if (name[0] == 'w' || name[0] == 'c') scope->weak = true;
    if (name[0] == 'c') scope->common = true;
    if (!scope->file_local) parse_fail(decoder, "a second linkage, .%s", name);
    scope->file_local = false;
    name = accept_directive(decoder);
    if (!name) parse_fail(decoder, "expected a directive after the linkage");
  }
  return name;
}

void parse_module(Decoder *decoder) {
  find_files(decoder);
  bool versioned = false, targeted = false, sized = false;
  for (;;) {
    if (skip_space(decoder) == '\0') {
      check_promises(decoder);
      return;
    }
    const char *name = accept_directive(decoder);
    if (!name) parse_fail(decoder, "expected a directive such as .visible or .entry");
    VariableScope scope = {.file_local = true};
    name = parse_linkage(decoder, name, &scope);
    if (strcmp(name, "version") == 0) {
      Literal version = parse_literal(decoder);
      if (!version.floating) parse_fail(decoder, "expected a version such as 8.0");
      if (versioned) parse_fail(decoder, "a second .version");
      versioned = true;
    } else if (strcmp(name, "target") == 0) {
      if (targeted) parse_fail(decoder, "a second .target");
      targeted = true;
      do {
        const char *word = parse_identifier(decoder);
        if (strcmp(word, "debug") == 0) decoder->module->debug = true;
        if (strncmp(word, "sm_", 3) == 0 && strcmp(word, "sm_90a") != 0)
          decoder->module->for_other_target = true;
      } while (accept_char(decoder, ','));
    } else if (strcmp(name, "address_size") == 0) {
      if (parse_integer(decoder) != 64) parse_fail(decoder, "only 64-bit addresses are known");
      if (sized) parse_fail(decoder, "a second .address_size");
      sized = true;
    } else if (!versioned) {
      parse_fail(decoder, "a PTX text begins with .version");
    } else if (strcmp(name, "file") == 0) {
      parse_file(decoder);
    } else if (strcmp(name, "loc") == 0) {
      parse_loc(decoder);
    } else if (strcmp(name, "section") == 0) {
      skip_section(decoder);
    } else if (strcmp(name, "pragma") == 0) {
      do
        if (strcmp(parse_string(decoder), "nounroll") != 0)
          parse_fail(decoder, "the only pragma outside of functions is \"nounroll\"");
      while (accept_char(decoder, ','));
      expect_char(decoder, ';');
    } else if (strcmp(name, "alias") == 0) {
      parse_alias(decoder);
    } else if (strcmp(name, "entry") == 0 || strcmp(name, "func") == 0) {
      if (scope.common) parse_fail(decoder, "only variables are .common");
      parse_function(decoder, name[0] == 'e', scope);
    } else if (strcmp(name, "global") == 0 || strcmp(name, "const") == 0 ||
               strcmp(name, "shared") == 0) {
      parse_variable(decoder, name, scope);
    } else {
      parse_fail(decoder, "unknown directive .%s", name);
    }
  }
}
