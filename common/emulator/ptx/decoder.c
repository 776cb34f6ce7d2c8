/* decoder.c: memory, constants and errors for the instructions' decoders (ptx.h). */
#include <stdarg.h>
#include <stdio.h>

#include "ptx/program.h"

void *decoder_allocate(Decoder *decoder, size_t bytes) {
  return need(decoder, arena_allocate(&decoder->module->arena, bytes));
}

uint16_t decoder_constant(Decoder *decoder, uint64_t value, uint32_t bytes) {
  uint32_t number = column_of_literal(decoder, value, bytes); /* may move the columns */
  return decoder->module->columns[number].slot;
}

bool decoder_error(Decoder *decoder, const PtxStatement *statement, const char *format, ...) {
  char reason[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  snprintf(decoder->error, decoder->error_bytes, "%s: %s: PTX line %u: %s\n  %s",
           decoder->module->name, decoder->function ? decoder->function->name : "?",
           statement->line, statement->text ? statement->text : statement->opcode, reason);
  return false;
}
