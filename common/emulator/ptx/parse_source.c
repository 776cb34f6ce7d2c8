/* parse_source.c: .file and .loc: the source line of each statement. */
#include <stdlib.h>
#include <string.h>

#include "ptx/program.h"

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
void parse_loc(Decoder *decoder) {
  SourcePlace inner = {.file = (uint32_t)parse_integer(decoder)};
  inner.line = (uint32_t)parse_integer(decoder);
  parse_integer(decoder); /* the column */
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
  if (*decoder->at == ',') skip_line_directive(decoder);
}

void parse_file(Decoder *decoder) {
  Module *module = decoder->module;
  uint64_t number = parse_integer(decoder);
  const char *name = parse_string(decoder);
  skip_line_directive(decoder);
  if (number >= 1u << 16) parse_fail(decoder, "a file number above 65,535");
  if (number < module->file_count) module->files[number] = name;
}

/* Is there nothing but blanks before it? nvcc -ptx indents .file, the PTX in an executable does not. */
static bool begins_line(const char *at, const char *start) {
  while (at > start && (at[-1] == ' ' || at[-1] == '\t')) at--;
  return at == start || at[-1] == '\n';
}

/* nvcc puts .file lines after the code that uses them. */
void find_files(Decoder *decoder) {
  Module *module = decoder->module;
  const char *start = decoder->at;
  uint32_t line = decoder->line;
  module->files = need(decoder, arena_allocate(&module->arena, 4096 * sizeof *module->files));
  module->file_count = 4096;
  for (const char *at = start; (at = strstr(at, ".file"));) {
    bool begins = begins_line(at, start);
    at += strlen(".file");
    if (!begins || (*at != '\t' && *at != ' ')) continue;
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
