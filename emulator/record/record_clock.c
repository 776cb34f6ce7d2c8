/* record_clock.c: brings the lines of a finished cluster into the order of the clock.
 *
 * The kernel ran in the late schedule, and the lines are in that order. An mbarrier's line says how
 * many arrivals and bytes are pending after the change: what each change added or took away stays
 * the same, the sums are those of the new order.
 *
 * Of two accesses that nothing orders, the clock may put the other one first. So a cluster with a
 * finding keeps the order of the run, too: only that explains the values that the program saw. */
#include "record/record_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

typedef struct {
  double time;
  uint32_t number; /* in the order in which they were recorded */
  const char *line;
  size_t length;
  bool counts; /* an mbarrier's change, or an arrival at a barrier */
  int64_t address, arrivals, bytes, expected, total;
} TimedLine;

void clock_places_add(ClockPlaces *places, ClockPlace place) {
  places->places =
      grown_list(places->places, places->count, &places->capacity, sizeof *places->places);
  places->places[places->count++] = place;
}

static double time_of(const ClockTrace *trace, const ClockPlace *place) {
  switch ((ClockPlaceKind)place->kind) {
    case AT_SOURCE:
      return clock_of_source(trace, place->number);
    case AT_LANDING:
      return clock_of_landing(trace, place->number);
    case AT_WGMMA:
      return clock_of_wgmma(trace, place->number);
    case AT_END: /* after everything else: timed_lines */
      return 0;
    case AT_WARP:
      break;
  }
  return clock_of_moment(trace, place->number, place->moment);
}

static int by_time(const void *a, const void *b) {
  const TimedLine *first = a, *second = b;
  if (first->time != second->time) return first->time < second->time ? -1 : 1;
  return first->number < second->number ? -1 : 1;
}

static bool is_line_of(const char *line, const char *kind) {
  return !strncmp(line + 2, kind, strlen(kind)) && line[2 + strlen(kind)] == '"';
}

/* A short line by itself: sscanf reads to the end of its text, and the whole recording is long. */
enum { SHORT_LINE = 256 };
static void copy_line(const char *line, char *copy) {
  const size_t length = strcspn(line, "\n");
  snprintf(copy, SHORT_LINE, "%.*s", (int)length, line);
}

/* ---- What is counted ---- */
enum { MOST_COUNTED = 256 };
typedef struct {
  int64_t address, phase, pending, expected, bytes;
} Counted;
typedef struct {
  Counted counted[MOST_COUNTED];
  int count;
} CountedList;

static Counted *counted_of(CountedList *list, int64_t address) {
  for (int i = 0; i < list->count; i++)
    if (list->counted[i].address == address) return &list->counted[i];
  if (list->count == MOST_COUNTED) return NULL;
  list->counted[list->count] = (Counted){.address = address};
  return &list->counted[list->count++];
}

/* The numbers of ["mbarrier",t,address,"why",phase,pending,expected,bytes,...]; *rest is what follows. */
typedef struct {
  long long address, phase, pending, expected, bytes;
  char why[16];
  int rest;
} MbarrierLine;
static bool read_mbarrier(const char *line, MbarrierLine *out) {
  char copy[SHORT_LINE];
  if (!is_line_of(line, "mbarrier")) return false;
  copy_line(line, copy);
  return sscanf(copy, "[\"mbarrier\",%*d,%lld,\"%15[a-z_]\",%lld,%lld,%lld,%lld%n", &out->address,
                out->why, &out->phase, &out->pending, &out->expected, &out->bytes, &out->rest) == 6;
}

/* ["bar",t,warp,mask,place,rank,number,arrived,complete] and
 * ["cluster_barrier",t,warp,mask,place,arrived,complete] */
typedef struct {
  char before[96]; /* after the time */
  int64_t address, arrived;
  int complete;
} ArrivalLine;
static bool read_arrival(const char *line, ArrivalLine *out) {
  long long warp, mask, place, rank = 0, number = 0, arrived;
  char copy[SHORT_LINE];
  if (!is_line_of(line, "bar") && !is_line_of(line, "cluster_barrier")) return false;
  copy_line(line, copy);
  if (sscanf(copy, "[\"bar\",%*d,%lld,%lld,%lld,%lld,%lld,%lld,%d", &warp, &mask, &place, &rank,
             &number, &arrived, &out->complete) == 7) {
    snprintf(out->before, sizeof out->before, "%lld,%lld,%lld,%lld,%lld,", warp, mask, place, rank,
             number);
    out->address = -2 - (rank * 16 + number);
  } else if (sscanf(copy, "[\"cluster_barrier\",%*d,%lld,%lld,%lld,%lld,%d", &warp, &mask, &place,
                    &arrived, &out->complete) == 5) {
    snprintf(out->before, sizeof out->before, "%lld,%lld,%lld,", warp, mask, place);
    out->address = -1;
  } else {
    return false;
  }
  out->arrived = arrived;
  return true;
}

/* In the order of the recording: what each line adds. */
static void find_changes(TimedLine *lines, uint32_t count) {
  CountedList *list = new_zeros(1, sizeof *list);
  for (uint32_t i = 0; i < count; i++) {
    TimedLine *line = &lines[i];
    MbarrierLine now;
    ArrivalLine arrival;
    if (read_mbarrier(line->line, &now)) {
      Counted *before = counted_of(list, now.address);
      line->counts = before && strcmp(now.why, "init") != 0 && strcmp(now.why, "inval") != 0;
      if (!before) continue;
      const bool over = now.phase != before->phase;
      line->arrivals = over ? before->pending : before->pending - now.pending;
      line->bytes = over ? -before->bytes : now.bytes - before->bytes;
      *before = (Counted){now.address, now.phase, now.pending, now.expected, now.bytes};
    } else if (read_arrival(line->line, &arrival)) {
      Counted *before = counted_of(list, arrival.address);
      line->counts = before != NULL;
      if (!before) continue;
      line->arrivals = arrival.arrived - before->pending;
      before->pending = arrival.complete ? 0 : arrival.arrived;
      if (arrival.complete) before->expected = arrival.arrived;
    }
  }
  /* A barrier's rounds are of one size as a rule: the last one's. */
  for (uint32_t i = 0; i < count; i++) {
    ArrivalLine arrival;
    if (!lines[i].counts || !read_arrival(lines[i].line, &arrival)) continue;
    const Counted *counted = counted_of(list, arrival.address);
    if (counted) lines[i].total = counted->expected;
  }
  free(list);
}

/* ---- Writing ---- */
/* Copies and wgmmas are numbered in the order in which they are issued. */
typedef struct {
  uint32_t *numbers; /* the new number of each, plus 1; 0: not issued yet */
  uint32_t capacity, issued;
} Renumbering;
typedef struct {
  CountedList counted;
  Renumbering copies, wgmmas;
} WriteState;

static uint32_t new_number(Renumbering *list, uint32_t number) {
  if (number >= list->capacity) {
    const uint32_t capacity = number * 2 + 64;
    list->numbers = need_memory(realloc(list->numbers, capacity * sizeof *list->numbers));
    memset(list->numbers + list->capacity, 0, (capacity - list->capacity) * sizeof *list->numbers);
    list->capacity = capacity;
  }
  if (!list->numbers[number]) list->numbers[number] = ++list->issued;
  return list->numbers[number] - 1;
}

static void add_numbers(RecordText *out, const int64_t *numbers, int count) {
  for (int i = 0; i < count; i++) {
    text_add(out, ",");
    text_number(out, numbers[i]);
  }
}

/* The end of an mbarrier's line: its last number is the copy's, or -1. */
static void write_author(RecordText *out, const char *from, const char *end, Renumbering *copies) {
  const char *comma = end - 1;
  while (comma > from && *comma != ',') comma--;
  const long copy = strtol(comma + 1, NULL, 10);
  text_bytes(out, from, (size_t)(comma - from) + 1);
  text_number(out, copy < 0 ? copy : (int64_t)new_number(copies, (uint32_t)copy));
  text_add(out, "]\n");
}

/* What follows the time, with the new number of the copy or wgmma. */
static void write_rest(RecordText *out, const char *line, const char *after, const char *end,
                       WriteState *state) {
  const bool copy =
      is_line_of(line, "copy") || is_line_of(line, "source") || is_line_of(line, "landed");
  const bool bytes = is_line_of(line, "bytes") && !strncmp(after, ",\"c", 3);
  if (copy || bytes || is_line_of(line, "wgmma") || is_line_of(line, "wgmma_done")) {
    const char *number = after + (bytes ? 3 : 1);
    char *rest;
    const uint32_t old = (uint32_t)strtoul(number, &rest, 10);
    text_bytes(out, after, (size_t)(number - after));
    text_number(out, new_number(copy || bytes ? &state->copies : &state->wgmmas, old));
    after = rest;
  }
  text_bytes(out, after, (size_t)(end - after));
}

/* The line with the clock's time, and with the state that its barrier has now. */
static void write_line(RecordText *out, const TimedLine *line, WriteState *state) {
  CountedList *list = &state->counted;
  const char *comma = memchr(line->line, ',', line->length);
  const char *end = line->line + line->length;
  const char *after = comma ? memchr(comma + 1, ',', (size_t)(end - comma - 1)) : NULL;
  if (!after) after = comma ? memchr(comma + 1, ']', (size_t)(end - comma - 1)) : NULL;
  if (!comma || !after) return;
  text_bytes(out, line->line, (size_t)(comma - line->line) + 1);
  text_number(out, (int64_t)(line->time + 0.5));
  MbarrierLine now;
  ArrivalLine arrival;
  if (read_mbarrier(line->line, &now)) {
    Counted *counted = counted_of(list, now.address);
    if (counted && line->counts) {
      counted->pending -= line->arrivals;
      counted->bytes += line->bytes;
      counted->expected = now.expected;
      if (counted->pending == 0 && counted->bytes == 0) {
        counted->phase++;
        counted->pending = counted->expected;
      }
      text_add(out, ",");
      text_number(out, now.address);
      text_add(out, ",\"");
      text_add(out, now.why);
      text_add(out, "\"");
      add_numbers(
          out, (int64_t[]){counted->phase, counted->pending, counted->expected, counted->bytes}, 4);
      write_author(out, line->line + now.rest, end, &state->copies);
      return;
    }
    if (counted) *counted = (Counted){now.address, now.phase, now.pending, now.expected, now.bytes};
  } else if (line->counts && read_arrival(line->line, &arrival)) {
    Counted *counted = counted_of(list, arrival.address);
    counted->pending += line->arrivals;
    const bool complete = counted->pending >= line->total;
    text_add(out, ",");
    text_add(out, arrival.before);
    text_number(out, counted->pending);
    text_add(out, complete ? ",1]\n" : ",0]\n");
    if (complete) counted->pending = 0;
    return;
  }
  write_rest(out, line->line, after, end, state);
}

static TimedLine *timed_lines(const ClockTrace *trace, const ClockPlaces *places,
                              const RecordText *text) {
  TimedLine *lines = new_zeros(places->count + 1, sizeof *lines);
  double end_time = 0;
  for (uint32_t i = 0; i < places->count; i++) {
    const char *line = text->text + places->places[i].line;
    const char *end = memchr(line, '\n', text->used - places->places[i].line);
    lines[i] = (TimedLine){.time = time_of(trace, &places->places[i]),
                           .number = i,
                           .line = line,
                           .length = end ? (size_t)(end - line) + 1 : 0};
    if (lines[i].time > end_time) end_time = lines[i].time;
  }
  for (uint32_t i = 0; i < places->count; i++)
    if (places->places[i].kind == AT_END) lines[i].time = end_time;
  return lines;
}

/* {"run": [...]}, if the cluster has a finding and a browser can hold it twice: its events as they are now. */
enum { MOST_BYTES_OF_RUN = 16 << 20 };
static void add_run(RecordText *out, const TimedLine *lines, uint32_t count) {
  size_t bytes = 0;
  bool found = false;
  for (uint32_t i = 0; i < count; i++) {
    bytes += lines[i].length;
    found |= is_line_of(lines[i].line, "finding");
  }
  if (!found || bytes > MOST_BYTES_OF_RUN) return;
  for (uint32_t i = 0; i < count; i++) {
    text_add(out, i ? "," : "{\"run\": [");
    text_bytes(out, lines[i].line, lines[i].length - 1);
  }
  text_add(out, "]}\n");
}

void record_in_clock_order(const ClockTrace *trace, const ClockPlaces *places, RecordText *text) {
  if (!trace || !places->count) return;
  TimedLine *lines = timed_lines(trace, places, text);
  RecordText in_run = {.text = NULL};
  add_run(&in_run, lines, places->count);
  WriteState *state = new_zeros(1, sizeof *state);
  find_changes(lines, places->count);
  const TimedLine *last = &lines[places->count - 1];
  const char *rest = last->line + last->length;
  const size_t rest_bytes = text->used - (size_t)(rest - text->text);
  qsort(lines, places->count, sizeof *lines, by_time);
  RecordText sorted = {.text = NULL};
  text_bytes(&sorted, text->text, places->places[0].line);
  for (uint32_t i = 0; i < places->count; i++) write_line(&sorted, &lines[i], state);
  const char *comma = memchr(rest, ',', rest_bytes);
  text_add(&sorted, "{\"end\": ");
  text_number(&sorted, (int64_t)(lines[places->count - 1].time + 0.5));
  if (comma) text_bytes(&sorted, comma, rest_bytes - (size_t)(comma - rest));
  if (in_run.used) text_bytes(&sorted, in_run.text, in_run.used);
  text_free(&in_run);
  free(lines);
  free(state->copies.numbers);
  free(state->wgmmas.numbers);
  free(state);
  text_free(text);
  *text = sorted;
}
