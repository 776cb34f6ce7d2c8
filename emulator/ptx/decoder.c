/* decoder.c: memory, constants and errors for the instructions' decoders (ptx.h). */
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "ptx/program.h"

enum { PTX_TEXT_SHOWN = 200 };

void *decoder_allocate(Decoder *decoder, size_t bytes) {
  return arena_allocate(&decoder->module->arena, bytes);
}

uint16_t decoder_constant(Decoder *decoder, uint64_t value, uint32_t bytes) {
  uint32_t number = column_of_literal(decoder, value, bytes); /* may move the columns */
  return decoder->module->columns[number].slot;
}

void decoder_describe(Decoder *decoder, uint32_t line, const char *text, const char *reason) {
  char readable[1024];
  const Phrase name = decoder->function ? kernel_name(decoder->function->name) : NO_PHRASE;
  report_readable(reason, readable, sizeof readable);
  size_t length = strcspn(text, "\r\n");
  bool cut = length > PTX_TEXT_SHOWN;
  snprintf(decoder->error, decoder->error_bytes, "%s%s%s: PTX line %u: %.*s%s\n  %s",
           decoder->module->name, name.text[0] ? ": " : "", name.text, line,
           cut ? PTX_TEXT_SHOWN : (int)length, text, cut ? " ..." : "", readable);
}

bool decoder_error(Decoder *decoder, const PtxStatement *statement, const char *format, ...) {
  char reason[1024];
  PRINT_ARGUMENTS(reason, sizeof reason, format);
  decoder_describe(decoder, statement->line, statement->text ? statement->text : statement->opcode,
                   reason);
  return false;
}
