/* parse_source.c: .file and .loc: the source line of each statement. */
#include <stdlib.h>
#include <string.h>

#include "ptx/program.h"

static void skip_line_directive(Decoder *decoder) {
  while (*decoder->at && *decoder->at != '\n') decoder->at++;
}

static bool is_same_place(SourcePlace a, SourcePlace b) {
  return a.file == b.file && a.line == b.line && a.column == b.column;
}

static const char *file_of(const Decoder *decoder, SourcePlace place) {
  const Module *module = decoder->module;
  return place.file < module->file_count ? module->files[place.file] : NULL;
}

static const Inlining **inlinings_of(Decoder *decoder, SourcePlace inner) {
  return &decoder->inlinings[(inner.file * 31 + inner.line) % INLINING_BUCKETS];
}

/* Where the function that holds this place was inlined: the last .loc that said so. */
static const Inlining *find_inlining(Decoder *decoder, SourcePlace inner) {
  const Inlining *each = *inlinings_of(decoder, inner);
  while (each && !is_same_place(each->inner, inner)) each = each->before;
  return each;
}

/* nvcc says where the caller was inlined before it says so of what the caller calls. What is noted stays as it is,
 * because a template that calls itself is inlined in itself. */
static const Inlining *note_inlining(Decoder *decoder, SourcePlace inner, SourcePlace outer) {
  const Inlining *known = find_inlining(decoder, inner), *caller = find_inlining(decoder, outer);
  if (caller && caller->depth == MAX_INLINING_DEPTH) caller = NULL; /* no compiler's text */
  if (known && known->caller == caller && is_same_place(known->outer, outer)) return known;
  Inlining *note = decoder_allocate(decoder, sizeof *note);
  const Inlining **last = inlinings_of(decoder, inner);
  *note = (Inlining){.inner = inner,
                     .outer = outer,
                     .inner_file = file_of(decoder, inner),
                     .outer_file = file_of(decoder, outer),
                     .caller = caller,
                     .before = *last,
                     .depth = caller ? caller->depth + 1 : 1};
  *last = note;
  return note;
}

/* A call on the way there, counted from the kernel's own; the last one, if there are fewer. */
static const Inlining *call_at(const Inlining *note, uint32_t level) {
  while (note->caller && note->depth > level + 1) note = note->caller;
  return note;
}

static SourcePlace parse_place(const char **at) {
  char *rest;
  SourcePlace place = {.file = (uint32_t)strtoul(*at, &rest, 10)};
  place.line = (uint32_t)strtoul(rest, &rest, 10);
  place.column = (uint32_t)strtoul(rest, &rest, 10);
  *at = rest;
  return place;
}

/* .loc file line column [, function_name ..., inlined_at file line column]. A reader looks for the
 * line of the kernel that called the wrapper, so that is line; inner_line is the wrapper's.
 */
void parse_loc(Decoder *decoder) {
  SourcePlace inner = {.file = (uint32_t)parse_integer(decoder)};
  inner.line = (uint32_t)parse_integer(decoder);
  inner.column = (uint32_t)parse_integer(decoder);
  const char *end = decoder->at + strcspn(decoder->at, "\n");
  const char *inlined = strstr(decoder->at, "inlined_at ");
  SourcePlace outer = inner;
  decoder->source.inlining = NULL;
  if (inlined && inlined < end) {
    inlined += strlen("inlined_at ");
    decoder->source.inlining = note_inlining(decoder, inner, parse_place(&inlined));
    outer = call_at(decoder->source.inlining, 0)->outer;
  }
  decoder->source.line = outer.line;
  decoder->source.file = file_of(decoder, outer);
  bool same = outer.file == inner.file && outer.line == inner.line;
  decoder->source.inner_line = same ? 0 : inner.line;
  decoder->source.inner_file = file_of(decoder, inner);
  if (*decoder->at == ',') skip_line_directive(decoder);
}

/* ---- Kernels of a library ---- */
static bool is_in_header(const Decoder *decoder, SourcePlace place) {
  const char *file = file_of(decoder, place), *end = file ? strrchr(file, '.') : NULL;
  return end && (end[1] == 'h' || strcmp(end, ".cuh") == 0 || strcmp(end, ".inl") == 0);
}

/* Mojo's kernels are functions inlined into one that has only the line of their head, its end, too. In C a kernel
 * written in one line looks alike; what it calls stands before it. */
static bool is_body_of_head(const Decoder *decoder, const Inlining *call) {
  const Draft *end = &decoder->function->drafts[decoder->function->draft_count - 1];
  return !end->source.inlining && end->source.line == call->outer.line &&
         end->source.file == file_of(decoder, call->outer) &&
         call->inner.file == call->outer.file && call->inner.line > call->outer.line;
}

/* Has everything that was inlined into the function come through one call, at this level? Not from a program's own
 * file into a header: a reader looks for a line of the program. */
static bool is_one_call(const Decoder *decoder, uint32_t level) {
  const Function *function = decoder->function;
  const Inlining *first = NULL;
  uint32_t own = 0, inlined = 0;
  for (uint32_t i = 0; i < function->draft_count; i++) {
    const Inlining *each = function->drafts[i].source.inlining;
    own += each == NULL;
    inlined += each != NULL;
    if (!each) continue;
    if (!first) first = each;
    if (each->depth <= level ||
        !is_same_place(call_at(each, level)->outer, call_at(first, level)->outer))
      return false;
  }
  if (!first) return false;
  const Inlining *call = call_at(first, level);
  if (own >= inlined / 8 && !is_body_of_head(decoder, call)) return false;
  return is_in_header(decoder, call->outer) || !is_in_header(decoder, call->inner);
}

/* A kernel may do no more than call a function, as CUTLASS's device_kernel does. That line
 * says nothing: the lines are those of what it calls, and where much more is inlined, of a caller further in. */
void leave_out_wrapper(Decoder *decoder) {
  enum { DEEP = 9 };
  Function *function = decoder->function;
  uint32_t level = 0;
  while (is_one_call(decoder, level)) level++;
  for (uint32_t i = 0; level && i < function->draft_count; i++) {
    Draft *draft = &function->drafts[i];
    if (!draft->source.inlining) continue;
    uint32_t depth = draft->source.inlining->depth;
    const Inlining *call =
        call_at(draft->source.inlining, depth > level + DEEP ? depth - DEEP : level);
    const SourcePlace place = depth == level ? call->inner : call->outer;
    draft->source.line = place.line;
    draft->source.file = file_of(decoder, place);
    if (depth == level) draft->source.inner_line = 0;
  }
}

/* nvcc writes the bytes of a name that are not ASCII as three octal digits. */
static const char *without_escapes(char *name) {
  char *to = name;
  for (const char *at = name; *at;) {
    if (*at != '\\' || !at[1]) {
      *to++ = *at++;
      continue;
    }
    at++;
    uint32_t byte = 0, digits = 0;
    for (; digits < 3 && at[digits] >= '0' && at[digits] <= '7'; digits++)
      byte = byte * 8 + (uint32_t)(at[digits] - '0');
    *to++ = digits ? (char)byte : *at;
    at += digits ? digits : 1;
  }
  *to = '\0';
  return name;
}

void parse_file(Decoder *decoder) {
  Module *module = decoder->module;
  uint64_t number = parse_integer(decoder);
  const char *name = without_escapes(parse_string(decoder));
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
  module->files = arena_allocate(&module->arena, 4096 * sizeof *module->files);
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
    module->files[number] =
        without_escapes(copy_text(decoder, quote + 1, (size_t)(close - quote - 1)));
  }
  decoder->at = start;
  decoder->line = line;
}
