/* module.c: a PTX text as the runtime sees it: loaded or refused, its entries and variables by
 * name. */
#include "load/module.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ptx/program.h"

/* Each variable is device memory of its own, at its own host address, so an index that runs past
 * its end is found. */
void allocate_variable(Decoder *decoder, Symbol *symbol) {
  if (symbol->memory) return;
  size_t alignment = symbol->alignment > 256 ? symbol->alignment : 256;
  size_t bytes = symbol->bytes ? symbol->bytes : 1;
  if (bytes > 1ull << 34) parse_fail(decoder, "%s is larger than 16 GiB", symbol->name);
  uint8_t *block = calloc(1, bytes + alignment);
  if (!block) parse_fail(decoder, "out of memory for the variable %s", symbol->name);
  symbol->block = block;
  symbol->memory = (uint8_t *)(((uintptr_t)block + alignment - 1) & ~(uintptr_t)(alignment - 1));
  if (!memory_register(symbol->memory, bytes, symbol->constant_space)) {
    free(block);
    symbol->block = symbol->memory = NULL;
    parse_fail(decoder, "out of memory for the variable %s", symbol->name);
  }
}

static void fill_variables(Decoder *decoder) {
  Module *module = decoder->module;
  for (uint32_t i = 0; i < module->global_count; i++) {
    const Symbol *symbol = module->globals[i];
    for (const Initialiser *item = symbol->initialisers; item; item = item->next) {
      uint64_t value = (uint64_t)item->addend;
      if (item->symbol) {
        module->unit = symbol->unit; /* names mean what they mean in its own text */
        Symbol *target = find_symbol(module, item->symbol);
        decoder->line = item->line;
        decoder->at = NULL;
        if (!target)
          parse_fail(decoder, "the initial value of %s names %s, which is declared nowhere",
                     symbol->name, item->symbol);
        if (target->kind == SYMBOL_FUNCTION) {
          target->function->address_taken = true;
          value += target->function->address;
        } else if (target->kind == SYMBOL_VARIABLE && target->memory) {
          value += (uint64_t)(uintptr_t)target->memory;
        } else {
          parse_fail(decoder, "the initial value of %s names %s, which has no fixed address",
                     symbol->name, item->symbol);
        }
        if (item->masked) value = value >> item->shift & 0xff;
      }
      /* One that was refused in its middle has no memory. */
      if (symbol->memory && item->offset + item->bytes <= symbol->bytes)
        memcpy(symbol->memory + item->offset, &value, item->bytes < 8 ? item->bytes : 8);
    }
  }
}

/* Operands that named a variable before its text was read. Those that are defined nowhere refuse
 * the functions that use them (decode.c). */
static void resolve_externs(Module *module) {
  for (uint32_t i = 0; i < module->column_count; i++) {
    Column *column = &module->columns[i];
    if (column->kind != COLUMN_EXTERN || !column->symbol->memory) continue;
    column->kind = COLUMN_LITERAL;
    column->value += (uint64_t)(uintptr_t)column->symbol->memory;
  }
}

/* Everything that may fail by parse_fail; apart, because it returns twice. */
static bool load(Decoder *decoder, const ModuleText *texts, size_t count, const char *name) {
  if (setjmp(decoder->failed)) return false;
  Module *module = decoder->module;
  module->name = copy_text(decoder, name, strlen(name));
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += texts[i].bytes;
  module->bucket_count = 256;
  while (module->bucket_count < total / 256 && module->bucket_count < 1u << 16)
    module->bucket_count *= 2;
  module->buckets =
      need(decoder, arena_allocate(&module->arena, module->bucket_count * sizeof *module->buckets));
  module->frame_column = new_column(decoder, (Column){.kind = COLUMN_FRAME, .bytes = 8});
  for (size_t i = 0; i < count; i++) {
    const char *end = memchr(texts[i].ptx, '\0', texts[i].bytes);
    size_t length = end ? (size_t)(end - texts[i].ptx) : texts[i].bytes;
    module->text = copy_text(decoder, texts[i].ptx, length);
    module->unit = (uint32_t)i + 1;
    decoder->at = module->text;
    decoder->line = 1;
    parse_module(decoder);
  }
  fill_variables(decoder);
  module->unit = 0;
  resolve_externs(module);
  decode_module(decoder);
  return true;
}

Module *module_load_linked(const ModuleText *texts, size_t count, const char *name, char *error,
                           size_t error_bytes) {
  Module *module = calloc(1, sizeof *module);
  Decoder *decoder = calloc(1, sizeof *decoder);
  if (error_bytes) error[0] = '\0';
  bool loaded = false;
  if (module && decoder) {
    module->name = "PTX";
    decoder->module = module;
    decoder->error = error;
    decoder->error_bytes = error_bytes;
    loaded = load(decoder, texts, count, name);
  } else {
    snprintf(error, error_bytes, "out of memory");
  }
  if (decoder) arena_free(&decoder->scratch); /* what a refusal left */
  free(decoder);
  if (loaded) return module;
  module_unload(module);
  return NULL;
}

Module *module_load(const char *ptx, size_t bytes, const char *name, char *error,
                    size_t error_bytes) {
  return module_load_linked(&(ModuleText){ptx, bytes}, 1, name, error, error_bytes);
}

void module_unload(Module *module) {
  if (!module) return;
  for (uint32_t i = 0; i < module->global_count; i++) {
    Symbol *symbol = module->globals[i];
    if (!symbol->block) continue;
    memory_unregister(symbol->memory);
    free(symbol->block);
    symbol->block = NULL;
  }
  arena_free(&module->arena);
  free(module);
}

const Function *module_entry(const Module *module, const char *name) {
  const Symbol *symbol = find_symbol(module, name);
  if (!symbol || symbol->kind != SYMBOL_FUNCTION) return NULL;
  const Function *function = symbol->function;
  return function->entry && function->defined ? function : NULL;
}

uint32_t module_entries(const Module *module, const char **names, uint32_t most) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < module->function_count; i++) {
    const Function *function = module->functions[i];
    if (!function->entry || !function->defined) continue;
    if (count < most) names[count] = function->name;
    count++;
  }
  return count;
}

const char *function_refusal(const Function *function) { return function->refusal; }

bool module_variable(const Module *module, const char *name, uint64_t *address, size_t *bytes) {
  const Symbol *symbol = find_symbol(module, name);
  if (!symbol || symbol->kind != SYMBOL_VARIABLE || !symbol->memory) return false;
  *address = (uint64_t)(uintptr_t)symbol->memory;
  *bytes = symbol->bytes;
  return true;
}

const Function *function_at(const Module *module, uint64_t address) {
  uint64_t number = (address & ~GENERIC_TAG_MASK) >> 4;
  if ((address & GENERIC_TAG_MASK) != FUNCTION_ADDRESS || (address & 15) != 0 || number == 0 ||
      number > module->function_count)
    return NULL;
  const Function *function = module->functions[number - 1];
  return function->defined && !function->entry ? function : NULL;
}

const FunctionTraits *function_traits(const Function *function) { return &function->traits; }
