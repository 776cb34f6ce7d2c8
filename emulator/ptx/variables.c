/* variables.c: a module's .global and .const variables: memory, initial values, and operands that
 * named a variable before its definition was read. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ptx/program.h"

/* Each variable is a separate block of device memory, so an index that runs past its end is
 * found. It begins at a page. */
void allocate_variable(Decoder *decoder, Symbol *symbol) {
  if (symbol->memory) return;
  const size_t page = 4096;
  size_t alignment = symbol->alignment > page ? symbol->alignment : page;
  size_t bytes = symbol->bytes ? symbol->bytes : 1;
  if (bytes > 1ull << 34) parse_fail(decoder, "%s is larger than 16 GiB", symbol->name);
  uint8_t *block = calloc(1, ((bytes + page - 1) & ~(page - 1)) + alignment);
  if (!block) parse_fail(decoder, "out of memory for the variable %s", symbol->name);
  symbol->block = block;
  symbol->memory = (uint8_t *)(((uintptr_t)block + alignment - 1) & ~(uintptr_t)(alignment - 1));
  if (!memory_register(symbol->memory, bytes, symbol->constant_space)) {
    free(block);
    symbol->block = symbol->memory = NULL;
    parse_fail(decoder, "out of memory for the variable %s", symbol->name);
  }
}

void fill_variables(Decoder *decoder) {
  Module *module = decoder->module;
  for (uint32_t i = 0; i < module->global_count; i++) {
    const Symbol *symbol = module->globals[i];
    for (const Initialiser *item = symbol->initialisers; item; item = item->next) {
      uint64_t value = (uint64_t)item->addend;
      if (item->symbol) {
        module->unit = symbol->unit; /* resolve names in the text that declares the symbol */
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
      /* A variable whose definition was rejected has no memory. */
      if (symbol->memory && item->offset + item->bytes <= symbol->bytes)
        memcpy(symbol->memory + item->offset, &value, item->bytes < 8 ? item->bytes : 8);
    }
  }
}

/* Resolves operands that named a variable before its text was read. A function that uses an
 * undefined variable is rejected (decode.c). */
void resolve_externs(Module *module) {
  for (uint32_t i = 0; i < module->column_count; i++) {
    Column *column = &module->columns[i];
    if (column->kind != COLUMN_EXTERN || !column->symbol->memory) continue;
    column->kind = COLUMN_LITERAL;
    column->value += (uint64_t)(uintptr_t)column->symbol->memory;
  }
}
