/* random_global.c: does the checker see a race in global memory exactly where there is one?
 *
 *   random_global [--seed N] [--count N]
 *
 * Each program is a line of plain, relaxed, releasing and acquiring accesses of all scopes,
 * atomics, fences, barriers of blocks and of clusters, and waits for a flag, each of them for one
 * warp of some blocks. Every write has a value of its own, and every strong read leaves what it
 * has read in a log. From the log this program works out which release was seen by which acquire,
 * and from that which accesses are ordered, by the rules of the PTX memory model and every pair
 * for itself. The emulator must report something if and only if there is a race, and only at
 * instructions that race. Each program runs in a process of its own. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/written.h"
#include "load/module.h"
#include "machine/launch.h"
#include "ptx/program.h"
#include "run_apart.h"

enum {
  LANES_OF_WARP = 32,
  WARPS_MOST = 9,
  DATA_BYTES = 512,
  FLAGS = 4,
  OPERATIONS_MOST = 250,
  LOG_BYTES = 2 * OPERATIONS_MOST * 4,
  EVENTS_MOST = 640,
  PROGRAM_TEXT = 1 << 17,
  REPORTS_TEXT = 1 << 18
};

typedef enum { PLAIN, CTA, CLUSTER, GPU, SYSTEM } Reach;
static const char *const scope_names[] = {"", "cta", "cluster", "gpu", "sys"};

/* What comes before what. */
enum {
  CAUSED,     /* exactly */
  ACQUIRED,   /* if all strong reads acquire */
  DEPENDENT,  /* if all strong loads acquire and all strong stores release */
  BY_BARRIER, /* within each warp and by barriers alone */
  RELATIONS
};

/* One thing that one warp does; a barrier is two for each warp. */
typedef struct {
  int warp;
  uint32_t line;
  bool polls; /* reads 0, if the log says that there was more than one read */
  bool reads, writes, is_atomic, fence, sc, acquires, releases, leaves;
  uint8_t reach;
  int number;      /* of the operation: its value is one more, and its place in the log */
  int arrives_for; /* a barrier: its number; -1 */
  bool of_cluster, relaxed;
  uint32_t place; /* of a strong access */
  uint8_t bytes[(DATA_BYTES + FLAGS * 4) / 8];
} Event;

typedef struct {
  uint64_t state;
  char text[PROGRAM_TEXT];
  size_t used;
  uint32_t line, labels;
  int blocks, warps, cluster; /* warps: of a block; cluster: blocks of a cluster */
  Event events[EVENTS_MOST];
  int count, operations, barriers;
  bool flag_written[FLAGS];
  uint32_t *log;
  uint64_t before[RELATIONS][EVENTS_MOST][EVENTS_MOST / 64];
} Program;

static uint32_t below(Program *program, uint32_t limit) {
  program->state = program->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((program->state >> 33) % limit);
}
static bool chance(Program *program, uint32_t percent) { return below(program, 100) < percent; }

__attribute__((format(printf, 2, 3))) static void add(Program *program, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = sizeof program->text - program->used;
  program->used += (size_t)vsnprintf(program->text + program->used, left, format, arguments);
  va_end(arguments);
  if (program->used + 1 >= sizeof program->text) abort();
  program->text[program->used++] = '\n';
  program->line++;
}

static Event *new_event(Program *program, int warp) {
  if (program->count == EVENTS_MOST) abort();
  Event *event = &program->events[program->count++];
  memset(event, 0, sizeof *event);
  event->warp = warp;
  event->arrives_for = -1;
  event->line = program->line;
  event->number = program->operations;
  return event;
}

static int warps_of(const Program *program) { return program->blocks * program->warps; }
static int block_of(const Program *program, int warp) { return warp / program->warps; }
static int cluster_of(const Program *program, int warp) {
  return block_of(program, warp) / program->cluster;
}

/* ---- The operations ---- */

static void note_bytes(Event *event, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) event->bytes[i / 8] |= (uint8_t)(1u << i % 8);
}

static void add_plain(Program *program, int warp) {
  static const char *const loads[] = {"ld.global.u8 %v, [%a];", "ld.global.u16 %h, [%a];",
                                      "ld.global.u32 %v, [%a];", "ld.global.v2.u32 {%v, %w}, [%a];",
                                      "ld.global.v4.u32 {%v, %w, %x, %y}, [%a];"};
  static const char *const stores[] = {
      "st.global.u8 [%a], %v;", "st.global.u16 [%a], %h;", "st.global.u32 [%a], %v;",
      "st.global.v2.u32 [%a], {%v, %v};", "st.global.v4.u32 [%a], {%v, %v, %v, %v};"};
  static const uint32_t lanes_of[] = {1, 1, 2, 7, 32, 32};
  uint32_t width = (uint32_t[]){0, 1, 2, 2, 2, 2, 3, 4}[below(program, 8)], bytes = 1u << width;
  uint32_t lanes = lanes_of[below(program, 6)], stride = 1 + below(program, 3) % 2;
  uint32_t places = DATA_BYTES / bytes;
  while (lanes * stride > places) lanes /= 2;
  uint32_t base = below(program, places - lanes * stride + 1), label = program->labels++;
  bool writes = chance(program, 50);
  add(program, "setp.ge.u32 %%p2, %%lane, %u;", lanes);
  add(program, "@%%p2 bra L%u;", label);
  add(program, "mov.u32 %%v, %d; cvt.u16.u32 %%h, %%v;", program->operations + 1);
  add(program, "mul.wide.u32 %%a, %%lane, %u; add.u64 %%a, %%a, %u; add.u64 %%a, %%a, %%data;",
      stride * bytes, base * bytes);
  add(program, "%s", writes ? stores[width] : loads[width]);
  Event *event = new_event(program, warp);
  event->reads = !writes;
  event->writes = writes;
  for (uint32_t lane = 0; lane < lanes; lane++)
    note_bytes(event, (base + lane * stride) * bytes, bytes);
  add(program, "L%u:", label);
}

/* A strong access by one lane, to a flag or to data. */
static void add_strong(Program *program, int warp) {
  uint32_t label = program->labels++, label_again = program->labels++;
  uint32_t reach = CTA + below(program, 4), kind = below(program, 4); /* 0 load 1 store 2, 3 exch */
  bool data = chance(program, 20);
  bool acquires = kind != 1 && chance(program, 40), releases = kind != 0 && chance(program, 40);
  uint32_t flag = below(program, FLAGS);
  uint32_t place = data ? below(program, DATA_BYTES / 4) * 4 : DATA_BYTES + flag * 4;
  bool waits = kind == 0 && !data && program->flag_written[flag] && chance(program, 60);
  const char *order = acquires && releases ? "acq_rel"
                      : acquires           ? "acquire"
                      : releases           ? "release"
                                           : "relaxed";
  add(program, "setp.ne.u32 %%p2, %%lane, 0;");
  add(program, "@%%p2 bra L%u;", label);
  add(program, "mov.u32 %%v, %d; add.u64 %%a, %%data, %u;", program->operations + 1, place);
  if (waits) add(program, "mov.u32 %%x, 0;");
  if (waits) add(program, "L%u:", label_again);
  if (kind >= 2)
    add(program, "atom.%s.%s.global.exch.b32 %%w, [%%a], %%v;", order, scope_names[reach]);
  else if (kind == 1)
    add(program, "st.%s.%s.global.u32 [%%a], %%v;", order, scope_names[reach]);
  else
    add(program, "ld.%s.%s.global.u32 %%w, [%%a];", order, scope_names[reach]);
  Event *event = new_event(program, warp);
  if (waits) { /* what it has read before it read the flag */
    event->reads = event->polls = true;
    event->reach = (uint8_t)reach;
    note_bytes(event, place, 4);
    event = new_event(program, warp);
  }
  event->reads = kind != 1;
  event->writes = kind != 0;
  event->is_atomic = kind >= 2;
  event->acquires = acquires;
  event->releases = releases;
  event->reach = (uint8_t)reach;
  event->place = place;
  note_bytes(event, place, 4);
  if (waits) {
    add(program, "add.u32 %%x, %%x, 1;");
    add(program, "setp.eq.u32 %%p2, %%w, 0;");
    add(program, "@%%p2 bra L%u;", label_again);
    add(program, "st.global.u32 [%%log + %d], %%x;", (OPERATIONS_MOST + program->operations) * 4);
  }
  if (event->reads) add(program, "st.global.u32 [%%log + %d], %%w;", program->operations * 4);
  add(program, "L%u:", label);
  if (event->writes && !data) program->flag_written[flag] = true;
}

static void add_fence(Program *program, int warp) {
  uint32_t reach = CTA + below(program, 4);
  bool sc = !chance(program, 70);
  add(program, "fence.%s.%s;", sc ? "sc" : "acq_rel", scope_names[reach]);
  Event *event = new_event(program, warp);
  event->fence = true;
  event->sc = sc;
  event->reach = (uint8_t)reach;
}

static void add_barrier(Program *program, int warp) {
  bool of_cluster = program->cluster > 1 && chance(program, 40);
  bool relaxed = of_cluster && chance(program, 40);
  int size = program->warps * (of_cluster ? program->cluster : 1), first = warp / size * size;
  uint32_t label = program->labels++;
  add(program, "setp.lt.u32 %%p1, %%warp, %d;", first);
  add(program, "@%%p1 bra L%u;", label);
  add(program, "setp.ge.u32 %%p1, %%warp, %d;", first + size);
  add(program, "@%%p1 bra L%u;", label);
  if (of_cluster)
    add(program, "barrier.cluster.arrive%s.aligned; barrier.cluster.wait.acquire.aligned;",
        relaxed ? ".relaxed" : ".release");
  else
    add(program, "bar.sync 0;");
  add(program, "L%u:", label);
  for (int i = first; i < first + size; i++) {
    for (int leaves = 0; leaves < 2; leaves++) {
      Event *event = new_event(program, i);
      event->arrives_for = program->barriers;
      event->leaves = leaves;
      event->of_cluster = of_cluster;
      event->relaxed = relaxed;
    }
  }
  program->barriers++;
}

static void add_operation(Program *program) {
  int warp = (int)below(program, (uint32_t)warps_of(program));
  uint32_t choice = below(program, 100);
  if (choice >= 94) {
    add_barrier(program, warp);
  } else {
    uint32_t label = program->labels++;
    add(program, "setp.ne.u32 %%p1, %%warp, %d;", warp);
    add(program, "@%%p1 bra L%u;", label);
    if (choice < 30)
      add_plain(program, warp);
    else if (choice < 75)
      add_strong(program, warp);
    else
      add_fence(program, warp);
    /* the lanes that had nothing to do must not run ahead */
    add(program, "bar.warp.sync 0xffffffff;");
    add(program, "L%u:", label);
  }
  program->operations++;
}

static void make_program(Program *program, uint64_t seed) {
  program->state = seed * 0x9e3779b97f4a7c15u + 1;
  program->used = program->line = program->labels = 0;
  program->count = program->operations = program->barriers = 0;
  memset(program->flag_written, 0, sizeof program->flag_written);
  program->cluster = chance(program, 35) ? 2 : 1;
  program->blocks = program->cluster * (1 + (int)below(program, program->cluster == 2 ? 2 : 3));
  program->warps = 1 + (int)below(program, program->cluster == 2 ? 2 : 3);
  add(program, ".version 8.0");
  add(program, ".target sm_90a");
  add(program, ".address_size 64");
  add(program, ".visible .entry random(.param .u64 data, .param .u64 log) {");
  add(program, ".reg .pred %%p<3>; .reg .b32 %%lane, %%warp, %%v, %%w, %%x, %%y; .reg .b16 %%h;");
  add(program, ".reg .b64 %%a, %%data, %%log;");
  add(program, "ld.param.u64 %%data, [data]; ld.param.u64 %%log, [log];");
  add(program, "mov.u32 %%v, %%tid.x; and.b32 %%lane, %%v, 31; shr.u32 %%warp, %%v, 5;");
  add(program, "mov.u32 %%w, %%ctaid.x; mad.lo.u32 %%warp, %%w, %d, %%warp;", program->warps);
  uint32_t operations = 4 + below(program, (uint32_t[]){8, 20, 40}[below(program, 3)]);
  for (uint32_t i = 0; i < operations; i++) add_operation(program);
  add(program, "ret;");
  add(program, "}");
  program->text[program->used] = '\0';
}

/* ---- What is ordered ---- */

static bool includes(const Program *program, uint8_t reach, int from, int to) {
  if (reach >= GPU) return true;
  if (reach == CLUSTER) return cluster_of(program, from) == cluster_of(program, to);
  return reach == CTA && block_of(program, from) == block_of(program, to);
}

static bool morally_strong(const Program *program, uint8_t reach, int warp, uint8_t other_reach,
                           int other) {
  return includes(program, reach, warp, other) && includes(program, other_reach, other, warp);
}

static void order(Program *program, int relation, int from, int to) {
  program->before[relation][from][to / 64] |= 1ull << to % 64;
}
static bool is_before(const Program *program, int relation, int from, int to) {
  return program->before[relation][from][to / 64] >> to % 64 & 1;
}

static int event_of(const Program *program, int operation) {
  for (int i = 0; i < program->count; i++)
    if (program->events[i].number == operation) return i;
  return -1;
}

/* The write that a strong read has seen; -1: the initial value. */
static int source_of(const Program *program, const Event *read) {
  uint32_t value = program->log[read->number];
  return value == 0 ? -1 : event_of(program, (int)value - 1);
}

static void order_all(Program *program, int from, int to) {
  order(program, CAUSED, from, to);
  order(program, ACQUIRED, from, to);
  order(program, DEPENDENT, from, to);
}

/* The release that begins at `head` reaches `write`, whose value the read sees: which acquires does
 * it synchronise with? `sc`: the head is a fence.sc that barriers have ordered before the write. */
static void synchronise(Program *program, int head, uint8_t head_reach, bool sc, int read) {
  const Event *reader = &program->events[read];
  int from = program->events[head].warp;
  bool own = sc ? reader->reach >= GPU
                : morally_strong(program, head_reach, from, reader->reach, reader->warp);
  if (own) order(program, ACQUIRED, head, read);
  if (own && reader->acquires) order_all(program, head, read);
  for (int i = read + 1; i < program->count; i++) {
    const Event *later = &program->events[i];
    if (later->warp != reader->warp) continue;
    if (later->fence && (sc ? later->reach >= GPU
                            : morally_strong(program, head_reach, from, later->reach, later->warp)))
      order_all(program, head, i);
    if (own && reader->is_atomic && later->arrives_for >= 0 && !later->leaves && !later->of_cluster)
      order_all(program, head, i);
  }
}

static void follow_chain(Program *program, int read) {
  const Event *reader = &program->events[read], *seen = reader;
  for (int write; (write = source_of(program, seen)) >= 0; seen = &program->events[write]) {
    const Event *writer = &program->events[write];
    if (writer->reach == PLAIN ||
        !morally_strong(program, writer->reach, writer->warp, seen->reach, seen->warp))
      return;
    if (writer->releases) synchronise(program, write, writer->reach, false, read);
    for (int i = 0; i < write; i++) {
      const Event *fence = &program->events[i];
      if (fence->fence && fence->warp == writer->warp)
        synchronise(program, i, fence->reach, false, read);
      if (fence->sc && fence->reach >= GPU && is_before(program, BY_BARRIER, i, write))
        synchronise(program, i, fence->reach, true, read);
    }
    if (!writer->is_atomic) {
      if (!reader->is_atomic) order(program, DEPENDENT, write, read);
      return;
    }
  }
}

static void order_barriers(Program *program) {
  for (int i = 0; i < program->count; i++) {
    const Event *arrival = &program->events[i];
    if (arrival->arrives_for < 0 || arrival->leaves) continue;
    for (int k = 0; k < program->count; k++) {
      const Event *leaving = &program->events[k];
      if (leaving->arrives_for != arrival->arrives_for || !leaving->leaves) continue;
      for (int relation = 0; relation < RELATIONS; relation++) {
        if (!arrival->relaxed) order(program, relation, i, k);
        for (int f = 0; f < i && arrival->relaxed; f++) {
          const Event *fence = &program->events[f];
          if (fence->fence && fence->warp == arrival->warp && fence->reach >= CLUSTER)
            order(program, relation, f, k);
        }
      }
    }
  }
}

static void close_order(Program *program, int first, int end) {
  for (int relation = first; relation < end; relation++)
    for (int middle = 0; middle < program->count; middle++)
      for (int from = 0; from < program->count; from++)
        if (is_before(program, relation, from, middle))
          for (int i = 0; i < EVENTS_MOST / 64; i++)
            program->before[relation][from][i] |= program->before[relation][middle][i];
}

static void find_order(Program *program) {
  memset(program->before, 0, sizeof program->before);
  for (int i = 0; i < program->count; i++)
    for (int k = i + 1; k < program->count; k++)
      for (int relation = 0; relation < RELATIONS; relation++)
        if (program->events[i].warp == program->events[k].warp) order(program, relation, i, k);
  order_barriers(program);
  close_order(program, BY_BARRIER, RELATIONS);
  for (int i = 0; i < program->count; i++)
    if (program->events[i].reach != PLAIN && program->events[i].reads && !program->events[i].polls)
      follow_chain(program, i);
  close_order(program, 0, BY_BARRIER);
}

/* ---- What is a race ---- */

static bool polled(const Program *program, const Event *event) {
  return program->log[OPERATIONS_MOST + event->number] > 1;
}

static bool overlap(const Event *a, const Event *b) {
  for (size_t i = 0; i < sizeof a->bytes; i++)
    if (a->bytes[i] & b->bytes[i]) return true;
  return false;
}

/* Observation order: a strong read has seen the write, or a later one at this place that comes
 * after it, perhaps through other atomics, and the read comes before the access. The checker knows
 * that of atomics alone. What the log does not say, the order of two stores, counts as such. */
static bool is_observed(const Program *program, int earlier, int access) {
  for (int i = 0; i < program->count; i++) {
    const Event *seen = &program->events[i];
    if (seen->reach == PLAIN || !seen->reads || seen->polls ||
        !is_before(program, CAUSED, i, access))
      continue;
    for (int from; (from = source_of(program, seen)) >= 0; seen = &program->events[from]) {
      const Event *writer = &program->events[from];
      if (writer->reach == PLAIN ||
          !morally_strong(program, writer->reach, writer->warp, seen->reach, seen->warp))
        break;
      if (from == earlier ||
          (is_before(program, CAUSED, earlier, from) && overlap(writer, &program->events[earlier])))
        return true;
      if (!writer->is_atomic) {
        const Event *past = &program->events[earlier]; /* perhaps overwritten by this store */
        if (past->reach != PLAIN && past->writes && overlap(writer, past)) return true;
        break;
      }
    }
  }
  return false;
}

static bool is_race(const Program *program, int one, int other) {
  const Event *a = &program->events[one], *b = &program->events[other];
  if ((a->polls && !polled(program, a)) || (b->polls && !polled(program, b))) return false;
  if (a->warp == b->warp || !(a->writes || b->writes)) return false;
  if (!overlap(a, b)) return false;
  bool strong = a->reach != PLAIN && b->reach != PLAIN;
  if (strong && morally_strong(program, a->reach, a->warp, b->reach, b->warp)) return false;
  return !is_before(program, strong ? ACQUIRED : CAUSED, one, other) &&
         !is_before(program, strong ? ACQUIRED : CAUSED, other, one);
}

/* A plain store that may depend on a plain load of another cluster, by strong stores and loads: the
 * checker takes that to be in order (CHECKS.md). */
static bool may_be_silent(const Program *program, int read, int write) {
  const Event *a = &program->events[read], *b = &program->events[write];
  return !a->writes && b->writes && a->reach == PLAIN && b->reach == PLAIN &&
         cluster_of(program, a->warp) != cluster_of(program, b->warp) &&
         is_before(program, DEPENDENT, read, write);
}

/* The lines of all instructions that race; returns how many pairs do. `must_report`: one of them
 * must be reported. */
static int find_races(const Program *program, bool *line_races, bool *must_report) {
  int pairs = 0;
  *must_report = false;
  for (int one = 0; one < program->count; one++) {
    for (int other = 0; other < one; other++) {
      if (!is_race(program, one, other)) continue;
      const Event *a = &program->events[one], *b = &program->events[other];
      line_races[a->line] = line_races[b->line] = true;
      *must_report |= !may_be_silent(program, one, other) && !may_be_silent(program, other, one) &&
                      !is_observed(program, one, other) && !is_observed(program, other, one);
      pairs++;
    }
  }
  return pairs;
}

/* ---- What the emulator says ---- */

static int run(const void *argument) {
  const Program *program = argument;
  char error[4096];
  Module *module = module_load(program->text, program->used, "random", error, sizeof error);
  if (!module) {
    fprintf(stderr, "refused: %s\n", error);
    return 2;
  }
  uint64_t data = memory_allocate(DATA_BYTES + FLAGS * 4);
  if (!memory_register(program->log, LOG_BYTES, false)) return 2;
  memset((void *)(uintptr_t)data, 0, DATA_BYTES + FLAGS * 4);
  written_set(data, DATA_BYTES + FLAGS * 4);
  uint64_t parameters[2] = {data, (uint64_t)(uintptr_t)program->log};
  Launch launch = {.kernel = module_entry(module, "random"),
                   .grid = {(uint32_t)program->blocks, 1, 1},
                   .block = {(uint32_t)program->warps * LANES_OF_WARP, 1, 1},
                   .cluster = {(uint32_t)program->cluster, 1, 1},
                   .parameters = (const uint8_t *)parameters,
                   .parameter_bytes = sizeof parameters};
  int result = launch_run(&launch);
  module_unload(module);
  return result ? 2 : 0;
}

static bool is_race_rule(const char *at) {
  static const char *const rules[] = {"global-race:", "scope-too-narrow:", "flag-without-fence:"};
  at += strlen("emulator: ");
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (strncmp(at, rules[i], strlen(rules[i])) == 0) return true;
  return false;
}

static bool check_reports(const char *reports, const bool *line_races, int *found) {
  static const char place[] = "PTX line ";
  *found = 0;
  for (const char *at = reports; (at = strstr(at, "emulator: ")); at++) {
    if (strstr(at, " finding") && !strstr(at, " in kernel ")) break; /* the count at the end */
    const char *line = strstr(at, place);
    if (!is_race_rule(at) || !line) {
      printf("something other than a race is reported: %.60s\n", at);
      return false;
    }
    unsigned long number = strtoul(line + sizeof place - 1, NULL, 10);
    if (number >= PROGRAM_TEXT || !line_races[number]) {
      printf("PTX line %lu is reported and races with nothing\n", number);
      return false;
    }
    (*found)++;
  }
  return true;
}

static bool check_program(Program *program, uint64_t seed, int *racing) {
  static char reports[REPORTS_TEXT];
  static bool line_races[PROGRAM_TEXT];
  make_program(program, seed);
  memset(program->log, 0, LOG_BYTES);
  memset(line_races, 0, sizeof line_races);
  int code = run_apart(run, program, reports, REPORTS_TEXT), found;
  find_order(program);
  bool must_report;
  int pairs = find_races(program, line_races, &must_report);
  bool good = check_reports(reports, line_races, &found);
  if (good && found == 0 && must_report) {
    printf("%d pairs of accesses race, and %d reports were made\n", pairs, found);
    good = false;
  }
  if (good && code != (found > 0 ? 3 : 0)) {
    printf("exit code %d\n", code);
    good = false;
  }
  *racing += pairs > 0;
  if (!good) printf("FAIL seed %llu\n%s\n%s", (unsigned long long)seed, program->text, reports);
  return good;
}

int main(int argc, char **argv) {
  unsigned long long seed = 1, count = 100;
  for (int i = 1; i < argc; i += 2) {
    unsigned long long *value = !strcmp(argv[i], "--seed")    ? &seed
                                : !strcmp(argv[i], "--count") ? &count
                                                              : NULL;
    char *end = NULL;
    if (value && i + 1 < argc) *value = strtoull(argv[i + 1], &end, 10);
    if (!end || *end || end == argv[i + 1] || argv[i + 1][0] == '-' || *value == 0) {
      fprintf(stderr, "usage: random_global [--seed N] [--count N], N a number from 1 on\n");
      return 2;
    }
  }
  static Program program;
  program.log = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (program.log == MAP_FAILED) abort();
  int racing = 0;
  for (unsigned long long i = 0; i < count; i++)
    if (!check_program(&program, seed + i, &racing)) return 1;
  printf("%llu programs, %d of them with races: all seen, nothing else reported\n", count, racing);
  return 0;
}
