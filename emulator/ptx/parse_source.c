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

static Inlining **inlinings_of(Decoder *decoder, SourcePlace inner) {
  return &decoder->inlinings[(inner.file * 31 + inner.line) % INLINING_BUCKETS];
}

/* The first one from here on of a function that holds `inner`, and was called at `outer` if that is not NULL. */
static const Inlining *first_inlining(const Inlining *from, SourcePlace inner,
                                      const SourcePlace *outer) {
  while (from &&
         !(is_same_place(from->inner, inner) && (!outer || is_same_place(from->outer, *outer))))
    from = from->before;
  return from;
}

/* Where the function that holds this place was inlined: the last .loc that said so. */
static const Inlining *find_inlining(Decoder *decoder, SourcePlace inner) {
  return first_inlining(*inlinings_of(decoder, inner), inner, NULL);
}

/* A call on the way there, counted from the kernel's own; the last one, if there are fewer. */
static const Inlining *call_at(const Inlining *note, uint32_t level) {
  while (note->caller && note->depth > level + 1) note = note->caller;
  return note;
}

/* ---- Which of several calls it was ---- */
/* So that long texts load in time: how many calls are looked at, the latest ones. */
enum { MOST_CALLS = 1024 };

typedef struct {
  const Inlining *calls; /* that lead to the function that holds `place`; NULL: it is the kernel */
  SourcePlace place;
} Position;

static SourcePlace place_at(Position position, uint32_t level) {
  bool outside = position.calls && level < position.calls->depth;
  return outside ? call_at(position.calls, level)->outer : position.place;
}

static bool differ_at(Position a, Position b, uint32_t level) {
  return !is_same_place(place_at(a, level), place_at(b, level));
}

/* Its line at a level, if the same calls lead there as to `other`; else 0. */
static uint32_t line_beside(Position position, Position other, uint32_t level) {
  if (level > (position.calls ? position.calls->depth : 0)) return 0;
  for (uint32_t i = 0; i < level; i++)
    if (differ_at(position, other, i)) return 0;
  return place_at(position, level).line;
}

/* The two .loc before this one that have a line; zeros where there is none. */
static void positions_before(const Decoder *decoder, uint32_t at, Position before[2]) {
  for (uint32_t found = 0; at-- > 0 && found < 2;) {
    const LocDirective *loc = &decoder->locs[at];
    if (loc->inner.line) before[found++] = (Position){loc->inlining, loc->inner};
  }
}

/* Is the first one there to say where the function of the second was called, and not for an instruction? */
static bool is_introduction(const LocDirective *loc, const LocDirective *next) {
  return loc->first == next->first && next->inlined && is_same_place(loc->inner, next->outer);
}

/* Does one of these .loc say where the function that holds the place was called? */
static bool is_named(const LocDirective *loc, const LocDirective *end, SourcePlace place) {
  while (loc < end && !(loc->inlined && is_same_place(loc->inner, place))) loc++;
  return loc < end;
}

/* The next .loc whose calls are known for sure. One on the way there may tell where the function was called that makes
 * the call in question: it is in the same function, behind the call. */
static Position position_after(Decoder *decoder, const LocDirective *asked,
                               const SourcePlace **caller) {
  enum { LOOK_AHEAD = 24 };
  const SourcePlace call = asked->outer;
  const LocDirective *end = decoder->locs + decoder->loc_count;
  for (const LocDirective *loc = asked + 1; loc < end && loc <= asked + LOOK_AHEAD; loc++) {
    if (!loc->inner.line) continue;
    if (!loc->inlined) return (Position){NULL, loc->inner};
    if (!*caller && is_same_place(loc->inner, call) &&
        !(loc + 1 < end && is_introduction(loc, loc + 1)) &&
        first_inlining(*inlinings_of(decoder, call), call, &loc->outer))
      *caller = &loc->outer;
    const Inlining *known = find_inlining(decoder, loc->outer);
    if ((!known || !first_inlining(known->before, loc->outer, NULL)) &&
        !is_named(asked, loc, loc->outer))
      return (Position){known, loc->outer};
  }
  return (Position){0};
}

/* The smaller, the better: between the lines, else behind the first, else before the second (a loop has begun again). */
static uint64_t distance(uint32_t line, uint32_t from, uint32_t to) {
  if (line >= from) return line - from + (line <= to ? 0 : 1ull << 32);
  return line <= to ? (2ull << 32) + (to - line) : 3ull << 32;
}

/* The instructions of unrolled loops and inlined functions are mostly in the order of their lines. So look where the
 * calls in question part: at the lines there of what comes before and after. */
static const Inlining *likely_caller(Decoder *decoder, uint32_t at) {
  const SourcePlace call = decoder->locs[at].outer, *outer = NULL;
  const Position after = position_after(decoder, &decoder->locs[at], &outer);
  Position before[2] = {0};
  positions_before(decoder, at, before);
  const Inlining *last = first_inlining(*inlinings_of(decoder, call), call, outer), *best = last;
  const Position first = {last, call};
  for (uint32_t level = 0; level <= MAX_INLINING_DEPTH; level++) {
    uint32_t from = line_beside(before[0], first, level), to = line_beside(after, first, level);
    uint32_t earlier = line_beside(before[1], first, level);
    if (!to) to = UINT32_MAX;
    if (from < earlier && earlier <= to) from = earlier; /* one that was moved lies between */
    const SourcePlace latest = place_at(first, level);
    uint64_t least = distance(latest.line, from, to);
    bool parted = false;
    const Inlining *each = last;
    for (int i = 0; each && i < MOST_CALLS; i++, each = first_inlining(each->before, call, outer)) {
      const SourcePlace place = place_at((Position){each, call}, level);
      const uint64_t there = distance(place.line, from, to);
      parted |= !is_same_place(place, latest);
      if (there >= least) continue;
      best = each;
      least = there;
    }
    if (parted) return from || to < UINT32_MAX ? best : last;
  }
  return last;
}

/* nvcc says where a call was inlined once in a function, right before the first instruction that came from it. Later
 * instructions of it name the place of the call only, which others can share. */
static const Inlining *caller_of(Decoder *decoder, uint32_t at) {
  const LocDirective *loc = &decoder->locs[at];
  const Inlining *known = find_inlining(decoder, loc->outer);
  if (!known || !first_inlining(known->before, loc->outer, NULL)) return known;
  const LocDirective *previous = loc - 1; /* that which made it known, at least */
  if (is_introduction(previous, loc)) return previous->inlining;
  return likely_caller(decoder, at);
}

static const Inlining *put_first(Inlining **bucket, Inlining *note) {
  note->before = *bucket;
  *bucket = note;
  return note;
}

/* What is noted stays as it is, because a template that calls itself is inlined in itself. */
static const Inlining *note_inlining(Decoder *decoder, uint32_t at) {
  const SourcePlace inner = decoder->locs[at].inner, outer = decoder->locs[at].outer;
  const Inlining *caller = caller_of(decoder, at);
  if (caller && caller->depth == MAX_INLINING_DEPTH) caller = NULL; /* no compiler's text */
  Inlining **bucket = inlinings_of(decoder, inner), **link = bucket, *note;
  for (int i = 0; (note = *link) && i < MOST_CALLS; i++, link = &note->before) {
    if (note->caller != caller || !is_same_place(note->inner, inner) ||
        !is_same_place(note->outer, outer))
      continue;
    *link = note->before;
    return put_first(bucket, note);
  }
  note = decoder_allocate(decoder, sizeof *note);
  *note = (Inlining){.inner = inner,
                     .outer = outer,
                     .inner_file = file_of(decoder, inner),
                     .outer_file = file_of(decoder, outer),
                     .caller = caller,
                     .depth = caller ? caller->depth + 1 : 1};
  return put_first(bucket, note);
}

static SourcePlace parse_place(const char *at) {
  char *rest;
  SourcePlace place = {.file = (uint32_t)strtoul(at, &rest, 10)};
  place.line = (uint32_t)strtoul(rest, &rest, 10);
  place.column = (uint32_t)strtoul(rest, &rest, 10);
  return place;
}

/* .loc file line column [, function_name ..., inlined_at file line column]. */
void parse_loc(Decoder *decoder) {
  LocDirective loc = {.inner = {.file = (uint32_t)parse_integer(decoder)}};
  loc.inner.line = (uint32_t)parse_integer(decoder);
  loc.inner.column = (uint32_t)parse_integer(decoder);
  if (*decoder->at == ',') { /* else `at` is behind the line already */
    const char *inlined = strstr(decoder->at, "inlined_at ");
    skip_line_directive(decoder);
    loc.inlined = inlined && inlined < decoder->at;
    if (loc.inlined) loc.outer = parse_place(inlined + strlen("inlined_at "));
  }
  if (!decoder->function) return;
  loc.first = decoder->function->draft_count;
  decoder->locs = arena_grow(decoder, decoder->locs, decoder->loc_count, &decoder->loc_capacity,
                             sizeof *decoder->locs);
  decoder->locs[decoder->loc_count++] = loc;
}

/* A reader looks for the line of the kernel that called the wrapper, so that is line; inner_line is the wrapper's. */
static SourceLine source_of(const Decoder *decoder, const LocDirective *loc) {
  SourcePlace inner = loc->inner, outer = inner;
  if (loc->inlining) outer = call_at(loc->inlining, 0)->outer;
  bool same = outer.file == inner.file && outer.line == inner.line;
  return (SourceLine){.line = outer.line,
                      .file = file_of(decoder, outer),
                      .inner_line = same ? 0 : inner.line,
                      .inner_file = file_of(decoder, inner),
                      .inlining = loc->inlining};
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
static void leave_out_wrapper(Decoder *decoder) {
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

/* Of the whole function, because what follows a .loc helps to tell which call it is about. */
void find_source_lines(Decoder *decoder) {
  Function *function = decoder->function;
  memset(decoder->inlinings, 0, sizeof decoder->inlinings);
  for (uint32_t at = 0; at < decoder->loc_count; at++) {
    LocDirective *loc = &decoder->locs[at];
    if (loc->inlined) loc->inlining = note_inlining(decoder, at);
    const SourceLine source = source_of(decoder, loc);
    uint32_t end = at + 1 < decoder->loc_count ? loc[1].first : function->draft_count;
    for (uint32_t i = loc->first; i < end; i++) function->drafts[i].source = source;
  }
  leave_out_wrapper(decoder);
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
