/* global_repeat.c: which memory a launch has touched, read from the shadow when it ends; and the same
 * accesses by another launch, which the machine does not run because it would do the same again
 * (machine/repeat.c). Whatever comes later must find these accesses. */
#include "checker/check_repeat.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "base/written.h"
#include "checker/check_global.h"

enum {
  RANGES_MOST = 1 << 20,
  ACCESSES_MOST = 256,
  SPAN_GAP = 256,
  FIRST_CAPACITY = 64,
  LINE_BYTES = 128,
  PARTS_FOR_PATTERN = 4, /* lines with fewer parts are so many ranges */
  PATTERNS_MOST = 256,
  VALUES_KEPT = 8
};

/* Accesses are numbers of TouchedMemory.accesses, from 1 on; 0: none. A range with a pattern consists of whole
 * lines with the same parts, as when each thread accesses the members of a structure one by one. Then
 * `writer` and `reader` only say whether there are any. */
typedef struct TouchedRange {
  uint64_t first, end;
  uint16_t writer, reader;
  uint16_t pattern; /* number of TouchedMemory.patterns, from 1 on; 0: none */
} TouchedRange;

typedef struct {
  uint8_t first, end; /* bytes of the line */
  uint16_t writer, reader;
} LinePart;

typedef struct LinePattern {
  uint32_t count;
  LinePart parts[LINE_BYTES];
} LinePattern;

typedef struct {
  uint32_t value; /* GlobalCell.writes or .reads */
  uint16_t access;
} KnownValue;

typedef struct {
  TouchedMemory *touched;
  GlobalNow now; /* of the launch */
  uint64_t workspace;
  const Allocation *place;
  KnownValue writes[VALUES_KEPT], reads[VALUES_KEPT]; /* that were looked at lately */
  uint64_t line;                                      /* the line of `parts` */
  LinePattern parts;
  bool fails;
} Collection;

/* ---- What a launch has touched ---- */

static void *grown(void *items, size_t count, size_t *capacity, size_t bytes) {
  if (count < *capacity) return items;
  *capacity = *capacity ? *capacity * 2 : FIRST_CAPACITY;
  void *made = realloc(items, *capacity * bytes);
  if (!made) out_of_memory();
  return made;
}

/* Accesses that differ only in who made them are one: a report about a later operation names the
 * launch and the instruction. */
static uint16_t access_like(Collection *all, const GlobalAccess *wanted) {
  TouchedMemory *touched = all->touched;
  for (uint32_t i = 0; i < touched->access_count; i++) {
    const GlobalAccess *each = &touched->accesses[i];
    if (each->in == wanted->in && each->reach == wanted->reach && each->size == wanted->size)
      return (uint16_t)(i + 1);
  }
  if (touched->access_count == ACCESSES_MOST) {
    all->fails = true;
    return 0;
  }
  touched->accesses[touched->access_count++] = (GlobalAccess){.cluster = wanted->cluster,
                                                              .agent = wanted->issuer,
                                                              .issuer = wanted->issuer,
                                                              .reach = wanted->reach,
                                                              .size = wanted->size,
                                                              .in = wanted->in};
  return (uint16_t)touched->access_count;
}

/* The launch's own access among these; 0: none. A plain one, if there is one, races with more. */
static uint16_t own_access(Collection *all, uint32_t value, KnownValue *known) {
  KnownValue *last = &known[value % VALUES_KEPT];
  if (value == last->value) return last->access;
  const GlobalNow *now = &all->now;
  const GlobalAccess *own = NULL;
  FOR_GLOBAL_NUMBERS(number, value) {
    const GlobalAccess *each = global_access(number);
    if (each->operation != now->launch->operation) continue;
    if (!own || each->reach < own->reach) own = each;
  }
  *last = (KnownValue){value, own ? access_like(all, own) : 0};
  return last->access;
}

static void add_span(const Allocation *place, TouchedSpans *to, uint64_t first, uint64_t end) {
  TouchedSpan *last = to->count ? &to->spans[to->count - 1] : NULL;
  if (last && last->place == place->first && first - last->end <= SPAN_GAP) {
    last->end = end;
    return;
  }
  to->spans = grown(to->spans, to->count, &to->capacity, sizeof *to->spans);
  to->spans[to->count++] = (TouchedSpan){first, end, place->first, place->end};
}

static void add_range(Collection *all, const TouchedRange *range) {
  TouchedMemory *touched = all->touched;
  TouchedRange *last = touched->range_count ? &touched->ranges[touched->range_count - 1] : NULL;
  if (last && last->end == range->first && last->writer == range->writer &&
      last->reader == range->reader && last->pattern == range->pattern) {
    last->end = range->end;
    return;
  }
  if (touched->range_count == RANGES_MOST) all->fails = true;
  if (all->fails) return;
  touched->ranges = grown(touched->ranges, touched->range_count, &touched->range_capacity,
                          sizeof *touched->ranges);
  touched->ranges[touched->range_count++] = *range;
}

/* 0: there are too many. */
static uint16_t pattern_like(Collection *all, const LinePattern *wanted) {
  TouchedMemory *touched = all->touched;
  size_t bytes = wanted->count * sizeof *wanted->parts;
  for (uint32_t i = 0; i < touched->pattern_count; i++) {
    const LinePattern *each = &touched->patterns[i];
    if (each->count == wanted->count && !memcmp(each->parts, wanted->parts, bytes))
      return (uint16_t)(i + 1);
  }
  if (touched->pattern_count == PATTERNS_MOST) return 0;
  if (!touched->patterns) touched->patterns = calloc(PATTERNS_MOST, sizeof *touched->patterns);
  if (!touched->patterns) out_of_memory();
  touched->patterns[touched->pattern_count++] = *wanted;
  return (uint16_t)touched->pattern_count;
}

/* The parts of a line have all been seen. */
static void end_line(Collection *all) {
  LinePattern *parts = &all->parts;
  uint16_t pattern = parts->count < PARTS_FOR_PATTERN ? 0 : pattern_like(all, parts);
  TouchedRange line = {all->line, all->line + LINE_BYTES, 0, 0, pattern};
  for (uint32_t i = 0; i < parts->count; i++) {
    const LinePart *part = &parts->parts[i];
    line.writer |= part->writer != 0;
    line.reader |= part->reader != 0;
    if (!pattern)
      add_range(all, &(TouchedRange){all->line + part->first, all->line + part->end, part->writer,
                                     part->reader, 0});
  }
  if (pattern) add_range(all, &line);
  parts->count = 0;
}

static void add_part(Collection *all, uint64_t first, uint64_t end, uint16_t writer,
                     uint16_t reader) {
  uint64_t line = first / LINE_BYTES * LINE_BYTES;
  if (line != all->line) end_line(all);
  all->line = line;
  LinePattern *parts = &all->parts;
  LinePart *last = parts->count ? &parts->parts[parts->count - 1] : NULL;
  if (last && last->end == first - line && last->writer == writer && last->reader == reader)
    last->end = (uint8_t)(end - line);
  else
    parts->parts[parts->count++] =
        (LinePart){(uint8_t)(first - line), (uint8_t)(end - line), writer, reader};
}

static bool add_cell(void *context, uint64_t address, uint32_t bytes, GlobalCell cell) {
  Collection *all = context;
  TouchedMemory *touched = all->touched;
  uint64_t first = address > all->place->first ? address : all->place->first;
  uint64_t end = address + bytes < all->place->end ? address + bytes : all->place->end;
  if (first >= end) return true;
  uint16_t writer = own_access(all, cell.writes, all->writes);
  uint16_t reader = own_access(all, cell.reads, all->reads);
  if (!writer && !reader) return !all->fails;
  if (all->place->kind != MEMORY_OF_DEVICE) all->fails = true;
  if (all->fails) return false;
  add_span(all->place, &touched->all, first, end);
  if (touched->updates || !writer) add_span(all->place, &touched->inputs, first, end);
  if (writer) touched->output_bytes += end - first;
  add_part(all, first, end, writer, reader);
  return true;
}

static void collect_from(const Allocation *place, void *context) {
  Collection *all = context;
  if (all->fails || place->first == all->workspace) return;
  all->place = place;
  global_shadow_each(all->now.launch->operation, place->first, place->end, add_cell, all);
  end_line(all);
}

TouchedMemory *check_touched(const Launch *launch) {
  GlobalLaunch *own = launch->global;
  if (!own || own->ignored || own->incomplete || own->triggers || own->dependency) return NULL;
  TouchedMemory *made = calloc(1, sizeof *made);
  if (!made) out_of_memory();
  made->updates = own->updates;
  made->accesses = calloc(ACCESSES_MOST, sizeof *made->accesses);
  if (!made->accesses) out_of_memory();
  Collection all = {.touched = made, .now = {.launch = own}, .workspace = launch->workspace};
  memory_each(collect_from, &all);
  if (!all.fails) return made;
  check_touched_free(made);
  return NULL;
}

/* Calls `visit` for the parts of all ranges until it returns false. False: it has. */
typedef bool (*VisitRange)(void *context, const TouchedRange *range);
static bool visit_ranges(const TouchedMemory *touched, VisitRange visit, void *context) {
  for (size_t i = 0; i < touched->range_count; i++) {
    const TouchedRange *range = &touched->ranges[i];
    if (!range->pattern) {
      if (!visit(context, range)) return false;
      continue;
    }
    const LinePattern *pattern = &touched->patterns[range->pattern - 1];
    for (uint64_t line = range->first; line < range->end; line += LINE_BYTES)
      for (uint32_t k = 0; k < pattern->count; k++) {
        const LinePart *part = &pattern->parts[k];
        TouchedRange one = {line + part->first, line + part->end, part->writer, part->reader, 0};
        if (!visit(context, &one)) return false;
      }
  }
  return true;
}

bool check_touched_writes(const TouchedMemory *touched, uint64_t first, uint64_t end) {
  for (size_t i = 0; i < touched->range_count; i++) {
    const TouchedRange *range = &touched->ranges[i];
    if (range->writer && range->first < end && first < range->end) return true;
  }
  return false;
}

/* Does another launch that makes the same accesses read only what has been written, and write no tensor map? */
static bool is_as_before(void *context, const TouchedRange *range) {
  const TouchedMemory *touched = context;
  uint64_t bytes = range->end - range->first;
  bool reads = touched->updates || range->reader;
  return (!reads || written_all(range->first, bytes)) &&
         !(range->writer && maps_may_be_in(range->first, bytes));
}

static bool set_written(void *context, const TouchedRange *range) {
  (void)context;
  if (range->writer) written_set(range->first, range->end - range->first);
  return true;
}

/* ---- What it has written ---- */

static bool copy_output(void *context, const TouchedRange *range) {
  uint8_t **to = context;
  uint64_t bytes = range->end - range->first;
  if (!range->writer) return true;
  if (!written_all(range->first, bytes)) return false; /* it has stored what nobody had written */
  memcpy(*to, (const void *)(uintptr_t)range->first, bytes);
  *to += bytes;
  return true;
}

uint8_t *check_outputs_copy(const TouchedMemory *touched) {
  uint8_t *copy = malloc(touched->output_bytes + 1), *to = copy;
  if (copy && visit_ranges(touched, copy_output, &to)) return copy;
  free(copy);
  return NULL;
}

static bool restore_output(void *context, const TouchedRange *range) {
  const uint8_t **from = context;
  uint64_t bytes = range->end - range->first;
  if (!range->writer) return true;
  memcpy((void *)(uintptr_t)range->first, *from, bytes);
  written_set(range->first, bytes);
  *from += bytes;
  return true;
}

void check_outputs_restore(const TouchedMemory *touched, const uint8_t *copy) {
  visit_ranges(touched, restore_output, &copy);
}

/* ---- The same accesses by another launch ---- */

typedef struct {
  GlobalNow now;
  const OperationOrder *order;
  bool writes;
  GlobalCell last; /* the last cell that was looked at */
} EarlierAccesses;

static bool all_before(const EarlierAccesses *with, uint32_t value) {
  const GlobalNow *now = &with->now;
  uint32_t own = now->launch->operation;
  FOR_GLOBAL_NUMBERS(number, value) {
    uint32_t past = global_access(number)->operation;
    if (past != own && with->order && !with->order->ordered(past, own)) return false;
  }
  return true;
}

static bool cell_is_before(void *context, uint64_t address, uint32_t bytes, GlobalCell cell) {
  (void)address, (void)bytes;
  EarlierAccesses *with = context;
  if (cell.writes == with->last.writes && cell.reads == with->last.reads) return true;
  if (!all_before(with, cell.writes)) return false;
  if (with->writes && !all_before(with, cell.reads)) return false;
  with->last = cell;
  return true;
}

static bool all_is_before(const Launch *launch, const TouchedMemory *touched) {
  EarlierAccesses with = {.now = {.launch = launch->global}, .order = global_operation_order()};
  for (size_t i = 0; i < touched->range_count; i++) {
    const TouchedRange *range = &touched->ranges[i];
    bool writes = range->writer != 0;
    if (with.writes != writes) with.last = (GlobalCell){0, 0};
    with.writes = writes;
    if (!global_shadow_each(0, range->first, range->end, cell_is_before, &with)) return false;
  }
  return true;
}

typedef struct {
  GlobalLaunch *launch;
  const TouchedMemory *touched;
  GlobalNow *now; /* of each access */
  bool writes;
} Touching;

/* False: there are no numbers left, and nothing is checked any more. */
static bool touch_range(void *context, const TouchedRange *range) {
  const Touching *all = context;
  uint16_t which = all->writes ? range->writer : range->writer ? 0 : range->reader;
  if (!which) return true;
  GlobalNow *each = &all->now[which];
  if (!each->launch) {
    each->launch = all->launch;
    each->kind = all->writes ? ACCESS_WRITE : ACCESS_READ;
    each->access = all->touched->accesses[which - 1];
    each->access.operation = all->launch->operation;
    each->before = (GlobalCell){GLOBAL_SPLIT, GLOBAL_SPLIT};
    GlobalAccess *made = global_access_new(NULL, &each->number);
    if (!made) return false;
    *made = each->access;
  }
  global_shadow_touch(each, range->first, range->end - range->first);
  return true;
}

static void touch(GlobalLaunch *launch, const TouchedMemory *touched, bool writes) {
  GlobalNow *now = calloc(touched->access_count + 1, sizeof *now);
  if (!now) out_of_memory();
  Touching all = {launch, touched, now, writes};
  visit_ranges(touched, touch_range, &all);
  free(now);
}

/* Nobody sees these accesses before the next operation that runs and is checked, so they wait for it: the same
 * launch, a hundred times in a row, touches its memory once, and so do two launches in turns. Of each launch only
 * the last one waits: what is ordered after it is ordered after those before, too. */
enum { WAITING_MOST = 8 };
static struct {
  const TouchedMemory *touched;
  uint32_t operation;
} waiting[WAITING_MOST]; /* in the order of their operations */
static uint32_t waiting_count;

void check_touch_now(void) {
  uint32_t count = waiting_count;
  waiting_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    GlobalLaunch launch = {.operation = waiting[i].operation, .warps_per_cta = 1};
    global_limits(&launch);
    touch(&launch, waiting[i].touched, false);
    touch(&launch, waiting[i].touched, true);
  }
}

static bool waits(const TouchedMemory *touched) {
  for (uint32_t i = 0; i < waiting_count; i++)
    if (waiting[i].touched == touched) return true;
  return false;
}

/* Is this launch the next operation after those whose accesses wait, and ordered after all of them? */
static bool follows_waiting(uint32_t operation) {
  const OperationOrder *order = global_operation_order();
  if (waiting_count && operation != waiting[waiting_count - 1].operation + 1) return false;
  for (uint32_t i = 0; i < waiting_count; i++)
    if (order && !order->ordered(waiting[i].operation, operation)) return false;
  return true;
}

static void let_wait(const TouchedMemory *touched, uint32_t operation) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < waiting_count; i++)
    if (waiting[i].touched != touched) waiting[kept++] = waiting[i];
  waiting_count = kept;
  if (waiting_count == WAITING_MOST) check_touch_now();
  waiting[waiting_count].touched = touched;
  waiting[waiting_count++].operation = operation;
}

bool check_touch_again(const Launch *launch, const TouchedMemory *touched) {
  if (!launch->global || launch->global->dependency) return false;
  uint32_t operation = launch->global->operation;
  if (!follows_waiting(operation)) check_touch_now();
  /* What came before a launch that waits, also comes before this one. */
  if (!waits(touched) && !all_is_before(launch, touched)) return false;
  let_wait(touched, operation);
  return true;
}

bool check_same_again(const Launch *launch, TouchedMemory *touched) {
  if (!visit_ranges(touched, is_as_before, touched) || !check_touch_again(launch, touched))
    return false;
  visit_ranges(touched, set_written, NULL);
  return true;
}

void check_touched_free(TouchedMemory *touched) {
  if (!touched) return;
  if (waits(touched)) check_touch_now();
  free(touched->all.spans);
  free(touched->inputs.spans);
  free(touched->ranges);
  free(touched->patterns);
  free(touched->accesses);
  free(touched);
}
