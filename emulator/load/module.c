/* module.c: a PTX text as the runtime sees it: loaded or rejected, with its entries and variables
 * by name. */
#include "load/module.h"

#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "base/fault.h"
#include "base/memory.h"
#include "ptx/program.h"

/* Everything that may call parse_fail. A separate function, because setjmp returns twice. */
static bool load_texts(Decoder *decoder, const ModuleText *texts, size_t count, const char *name) {
  if (setjmp(decoder->failed)) return false;
  Module *module = decoder->module;
  module->name = copy_text(decoder, name, strlen(name));
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += texts[i].bytes;
  module->bucket_count = 256;
  while (module->bucket_count < total / 256 && module->bucket_count < 1u << 16)
    module->bucket_count *= 2;
  module->buckets = arena_allocate(&module->arena, module->bucket_count * sizeof *module->buckets);
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
  Module *module = new_zeros(1, sizeof *module);
  Decoder *decoder = new_zeros(1, sizeof *decoder);
  if (error_bytes) error[0] = '\0';
  module->name = "PTX";
  decoder->module = module;
  decoder->error = error;
  decoder->error_bytes = error_bytes;
  const bool loaded = load_texts(decoder, texts, count, name);
  arena_free(&decoder->scratch); /* memory left over after an error */
  free(decoder);
  if (loaded) return module;
  module_unload(module);
  return NULL;
}

Module *module_load(const char *ptx, size_t bytes, const char *name, char *error,
                    size_t error_bytes) {
  return module_load_linked(&(ModuleText){ptx, bytes}, 1, name, error, error_bytes);
}

void module_drop_variables(Module *module) {
  for (uint32_t i = 0; i < module->global_count; i++) {
    Symbol *symbol = module->globals[i];
    if (!symbol->block) continue;
    memory_unregister(symbol->memory);
    free(symbol->block);
    symbol->block = NULL;
  }
}

void module_unload(Module *module) {
  if (!module) return;
  emit_module_ends();
  module_drop_variables(module);
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

void module_set_machine_code(Module *module, const char *name, uint32_t registers,
                             uint32_t loads_at_once) {
  const Symbol *symbol = find_symbol(module, name);
  if (!symbol || symbol->kind != SYMBOL_FUNCTION) return;
  FunctionTraits *traits = &symbol->function->traits;
  traits->registers = registers < THREAD_REGISTERS ? registers : THREAD_REGISTERS;
  traits->registers_known = true;
  traits->loads_at_once = loads_at_once;
}

const char *function_refusal(const Function *function) { return function->refusal; }

bool module_variable(const Module *module, const char *name, uint64_t *address, size_t *bytes) {
  const Symbol *symbol = find_symbol(module, name);
  if (!symbol || symbol->kind != SYMBOL_VARIABLE || !symbol->memory) return false;
  *address = (uint64_t)(uintptr_t)symbol->memory;
  *bytes = symbol->bytes;
  return true;
}

size_t module_constant_bytes(const Module *module) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < module->global_count; i++) {
    const Symbol *symbol = module->globals[i];
    if (symbol->constant_space) bytes = align_up(bytes, symbol->alignment) + symbol->bytes;
  }
  return bytes;
}

const FunctionTraits *function_traits(const Function *function) { return &function->traits; }
