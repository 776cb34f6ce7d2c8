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
#include <sys/mman.h>

#include "base/memory.h"
#include "base/written.h"
#include "random_races.h"

enum {
  DATA_BYTES = 512,
  FLAGS = 4,
  OPERATIONS_MOST = 250,
  LOG_BYTES = 2 * OPERATIONS_MOST * 4,
  EVENTS_MOST = 640
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
  int blocks, warps, cluster; /* warps: of a block; cluster: blocks of a cluster */
  Event events[EVENTS_MOST];
  int count, operations, barriers;
  bool flag_written[FLAGS];
  uint32_t *log;
  uint64_t before[RELATIONS][EVENTS_MOST][EVENTS_MOST / 64];
} Program;

static Program program[1];

static Event *new_event(int warp) {
  if (program->count == EVENTS_MOST) abort();
  Event *event = &program->events[program->count++];
  memset(event, 0, sizeof *event);
  event->warp = warp;
  event->arrives_for = -1;
  event->line = drawn.line;
  event->number = program->operations;
  return event;
}

static int warps_of(void) { return program->blocks * program->warps; }
static int block_of(int warp) { return warp / program->warps; }
static int cluster_of(int warp) { return block_of(warp) / program->cluster; }

/* ---- The operations ---- */

static void note_bytes(Event *event, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) event->bytes[i / 8] |= (uint8_t)(1u << i % 8);
}

static void add_plain(int warp) {
  static const char *const loads[] = {"ld.global.u8 %v, [%a];", "ld.global.u16 %h, [%a];",
                                      "ld.global.u32 %v, [%a];", "ld.global.v2.u32 {%v, %w}, [%a];",
                                      "ld.global.v4.u32 {%v, %w, %x, %y}, [%a];"};
  static const char *const stores[] = {
      "st.global.u8 [%a], %v;", "st.global.u16 [%a], %h;", "st.global.u32 [%a], %v;",
      "st.global.v2.u32 [%a], {%v, %v};", "st.global.v4.u32 [%a], {%v, %v, %v, %v};"};
  static const uint32_t lanes_of[] = {1, 1, 2, 7, 32, 32};
  uint32_t width = (uint32_t[]){0, 1, 2, 2, 2, 2, 3, 4}[below(8)], bytes = 1u << width;
  uint32_t lanes = lanes_of[below(6)], stride = 1 + below(3) % 2;
  uint32_t places = DATA_BYTES / bytes;
  while (lanes * stride > places) lanes /= 2;
  uint32_t base = below(places - lanes * stride + 1), label = drawn.labels++;
  bool writes = chance(50);
  add("setp.ge.u32 %%p2, %%lane, %u;", lanes);
  add("@%%p2 bra L%u;", label);
  add("mov.u32 %%v, %d; cvt.u16.u32 %%h, %%v;", program->operations + 1);
  add("mul.wide.u32 %%a, %%lane, %u; add.u64 %%a, %%a, %u; add.u64 %%a, %%a, %%data;",
      stride * bytes, base * bytes);
  add("%s", writes ? stores[width] : loads[width]);
  Event *event = new_event(warp);
  event->reads = !writes;
  event->writes = writes;
  for (uint32_t lane = 0; lane < lanes; lane++)
    note_bytes(event, (base + lane * stride) * bytes, bytes);
  add("L%u:", label);
}

/* A strong access by one lane, to a flag or to data. */
static void add_strong(int warp) {
  uint32_t label = drawn.labels++, label_again = drawn.labels++;
  uint32_t reach = CTA + below(4), kind = below(4); /* 0 load 1 store 2, 3 exch */
  bool data = chance(20);
  bool acquires = kind != 1 && chance(40), releases = kind != 0 && chance(40);
  uint32_t flag = below(FLAGS);
  uint32_t place = data ? below(DATA_BYTES / 4) * 4 : DATA_BYTES + flag * 4;
  bool waits = kind == 0 && !data && program->flag_written[flag] && chance(60);
  const char *order = acquires && releases ? "acq_rel"
                      : acquires           ? "acquire"
                      : releases           ? "release"
                                           : "relaxed";
  add("setp.ne.u32 %%p2, %%lane, 0;");
  add("@%%p2 bra L%u;", label);
  add("mov.u32 %%v, %d; add.u64 %%a, %%data, %u;", program->operations + 1, place);
  if (waits) add("mov.u32 %%x, 0;");
  if (waits) add("L%u:", label_again);
  if (kind >= 2)
    add("atom.%s.%s.global.exch.b32 %%w, [%%a], %%v;", order, scope_names[reach]);
  else if (kind == 1)
    add("st.%s.%s.global.u32 [%%a], %%v;", order, scope_names[reach]);
  else
    add("ld.%s.%s.global.u32 %%w, [%%a];", order, scope_names[reach]);
  Event *event = new_event(warp);
  if (waits) { /* what it has read before it read the flag */
    event->reads = event->polls = true;
    event->reach = (uint8_t)reach;
    note_bytes(event, place, 4);
    event = new_event(warp);
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
    add("add.u32 %%x, %%x, 1;");
    add("setp.eq.u32 %%p2, %%w, 0;");
    add("@%%p2 bra L%u;", label_again);
    add("st.global.u32 [%%log + %d], %%x;", (OPERATIONS_MOST + program->operations) * 4);
  }
  if (event->reads) add("st.global.u32 [%%log + %d], %%w;", program->operations * 4);
  add("L%u:", label);
  if (event->writes && !data) program->flag_written[flag] = true;
}

static void add_fence(int warp) {
  uint32_t reach = CTA + below(4);
  bool sc = !chance(70);
  add("fence.%s.%s;", sc ? "sc" : "acq_rel", scope_names[reach]);
  Event *event = new_event(warp);
  event->fence = true;
  event->sc = sc;
  event->reach = (uint8_t)reach;
}

static void add_barrier(int warp) {
  bool of_cluster = program->cluster > 1 && chance(40);
  bool relaxed = of_cluster && chance(40);
  int size = program->warps * (of_cluster ? program->cluster : 1), first = warp / size * size;
  uint32_t label = drawn.labels++;
  add("setp.lt.u32 %%p1, %%warp, %d;", first);
  add("@%%p1 bra L%u;", label);
  add("setp.ge.u32 %%p1, %%warp, %d;", first + size);
  add("@%%p1 bra L%u;", label);
  if (of_cluster)
    add("barrier.cluster.arrive%s.aligned; barrier.cluster.wait.acquire.aligned;",
        relaxed ? ".relaxed" : ".release");
  else
    add("bar.sync 0;");
  add("L%u:", label);
  for (int i = first; i < first + size; i++) {
    for (int leaves = 0; leaves < 2; leaves++) {
      Event *event = new_event(i);
      event->arrives_for = program->barriers;
      event->leaves = leaves;
      event->of_cluster = of_cluster;
      event->relaxed = relaxed;
    }
  }
  program->barriers++;
}

static void add_operation(void) {
  int warp = (int)below((uint32_t)warps_of());
  uint32_t choice = below(100);
  if (choice >= 94) {
    add_barrier(warp);
  } else {
    uint32_t label = drawn.labels++;
    add("setp.ne.u32 %%p1, %%warp, %d;", warp);
    add("@%%p1 bra L%u;", label);
    if (choice < 30)
      add_plain(warp);
    else if (choice < 75)
      add_strong(warp);
    else
      add_fence(warp);
    /* the lanes that had nothing to do must not run ahead */
    add("bar.warp.sync 0xffffffff;");
    add("L%u:", label);
  }
  program->operations++;
}

static void make_program(uint64_t seed) {
  begin_text(seed);
  memset(program->log, 0, LOG_BYTES);
  program->count = program->operations = program->barriers = 0;
  memset(program->flag_written, 0, sizeof program->flag_written);
  program->cluster = chance(35) ? 2 : 1;
  program->blocks = program->cluster * (1 + (int)below(program->cluster == 2 ? 2 : 3));
  program->warps = 1 + (int)below(program->cluster == 2 ? 2 : 3);
  add(".visible .entry random(.param .u64 data, .param .u64 log) {");
  add(".reg .pred %%p<3>; .reg .b32 %%lane, %%warp, %%v, %%w, %%x, %%y; .reg .b16 %%h;");
  add(".reg .b64 %%a, %%data, %%log;");
  add("ld.param.u64 %%data, [data]; ld.param.u64 %%log, [log];");
  add("mov.u32 %%v, %%tid.x; and.b32 %%lane, %%v, 31; shr.u32 %%warp, %%v, 5;");
  add("mov.u32 %%w, %%ctaid.x; mad.lo.u32 %%warp, %%w, %d, %%warp;", program->warps);
  uint32_t operations = 4 + below((uint32_t[]){8, 20, 40}[below(3)]);
  for (uint32_t i = 0; i < operations; i++) add_operation();
  end_text();
}

/* ---- What is ordered ---- */

static bool includes(uint8_t reach, int from, int to) {
  if (reach >= GPU) return true;
  if (reach == CLUSTER) return cluster_of(from) == cluster_of(to);
  return reach == CTA && block_of(from) == block_of(to);
}

static bool morally_strong(uint8_t reach, int warp, uint8_t other_reach, int other) {
  return includes(reach, warp, other) && includes(other_reach, other, warp);
}

static void order(int relation, int from, int to) {
  program->before[relation][from][to / 64] |= 1ull << to % 64;
}
static bool is_before(int relation, int from, int to) {
  return program->before[relation][from][to / 64] >> to % 64 & 1;
}

static int event_of(int operation) {
  for (int i = 0; i < program->count; i++)
    if (program->events[i].number == operation) return i;
  return -1;
}

/* The write that a strong read has seen; -1: the initial value. */
static int source_of(const Event *read) {
  uint32_t value = program->log[read->number];
  return value == 0 ? -1 : event_of((int)value - 1);
}

static void order_all(int from, int to) {
  order(CAUSED, from, to);
  order(ACQUIRED, from, to);
  order(DEPENDENT, from, to);
}

/* The release that begins at `head` reaches `write`, whose value the read sees: which acquires does
 * it synchronise with? `sc`: the head is a fence.sc that barriers have ordered before the write. */
static void synchronise(int head, uint8_t head_reach, bool sc, int read) {
  const Event *reader = &program->events[read];
  int from = program->events[head].warp;
  bool own =
      sc ? reader->reach >= GPU : morally_strong(head_reach, from, reader->reach, reader->warp);
  if (own) order(ACQUIRED, head, read);
  if (own && reader->acquires) order_all(head, read);
  for (int i = read + 1; i < program->count; i++) {
    const Event *later = &program->events[i];
    if (later->warp != reader->warp) continue;
    if (later->fence &&
        (sc ? later->reach >= GPU : morally_strong(head_reach, from, later->reach, later->warp)))
      order_all(head, i);
    if (own && reader->is_atomic && later->arrives_for >= 0 && !later->leaves && !later->of_cluster)
      order_all(head, i);
  }
}

static void follow_chain(int read) {
  const Event *reader = &program->events[read], *seen = reader;
  for (int write; (write = source_of(seen)) >= 0; seen = &program->events[write]) {
    const Event *writer = &program->events[write];
    if (writer->reach == PLAIN ||
        !morally_strong(writer->reach, writer->warp, seen->reach, seen->warp))
      return;
    if (writer->releases) synchronise(write, writer->reach, false, read);
    for (int i = 0; i < write; i++) {
      const Event *fence = &program->events[i];
      if (fence->fence && fence->warp == writer->warp) synchronise(i, fence->reach, false, read);
      if (fence->sc && fence->reach >= GPU && is_before(BY_BARRIER, i, write))
        synchronise(i, fence->reach, true, read);
    }
    if (!writer->is_atomic) {
      if (!reader->is_atomic) order(DEPENDENT, write, read);
      return;
    }
  }
}

static void order_barriers(void) {
  for (int i = 0; i < program->count; i++) {
    const Event *arrival = &program->events[i];
    if (arrival->arrives_for < 0 || arrival->leaves) continue;
    for (int k = 0; k < program->count; k++) {
      const Event *leaving = &program->events[k];
      if (leaving->arrives_for != arrival->arrives_for || !leaving->leaves) continue;
      for (int relation = 0; relation < RELATIONS; relation++) {
        if (!arrival->relaxed) order(relation, i, k);
        for (int f = 0; f < i && arrival->relaxed; f++) {
          const Event *fence = &program->events[f];
          if (fence->fence && fence->warp == arrival->warp && fence->reach >= CLUSTER)
            order(relation, f, k);
        }
      }
    }
  }
}

static void close_order(int first, int end) {
  for (int relation = first; relation < end; relation++)
    for (int middle = 0; middle < program->count; middle++)
      for (int from = 0; from < program->count; from++)
        if (is_before(relation, from, middle))
          for (int i = 0; i < EVENTS_MOST / 64; i++)
            program->before[relation][from][i] |= program->before[relation][middle][i];
}

static void find_order(void) {
  memset(program->before, 0, sizeof program->before);
  for (int i = 0; i < program->count; i++)
    for (int k = i + 1; k < program->count; k++)
      for (int relation = 0; relation < RELATIONS; relation++)
        if (program->events[i].warp == program->events[k].warp) order(relation, i, k);
  order_barriers();
  close_order(BY_BARRIER, RELATIONS);
  for (int i = 0; i < program->count; i++)
    if (program->events[i].reach != PLAIN && program->events[i].reads && !program->events[i].polls)
      follow_chain(i);
  close_order(0, BY_BARRIER);
}

/* ---- What is a race ---- */

static bool polled(const Event *event) { return program->log[OPERATIONS_MOST + event->number] > 1; }

static bool overlap(const Event *a, const Event *b) {
  for (size_t i = 0; i < sizeof a->bytes; i++)
    if (a->bytes[i] & b->bytes[i]) return true;
  return false;
}

/* Observation order: a strong read has seen the write, or a later one at this place that comes
 * after it, perhaps through other atomics, and the read comes before the access. The checker knows
 * that of atomics alone. What the log does not say, the order of two stores, counts as such. */
static bool is_observed(int earlier, int access) {
  for (int i = 0; i < program->count; i++) {
    const Event *seen = &program->events[i];
    if (seen->reach == PLAIN || !seen->reads || seen->polls || !is_before(CAUSED, i, access))
      continue;
    for (int from; (from = source_of(seen)) >= 0; seen = &program->events[from]) {
      const Event *writer = &program->events[from];
      if (writer->reach == PLAIN ||
          !morally_strong(writer->reach, writer->warp, seen->reach, seen->warp))
        break;
      if (from == earlier ||
          (is_before(CAUSED, earlier, from) && overlap(writer, &program->events[earlier])))
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

static bool is_race(int one, int other) {
  const Event *a = &program->events[one], *b = &program->events[other];
  if ((a->polls && !polled(a)) || (b->polls && !polled(b))) return false;
  if (a->warp == b->warp || !(a->writes || b->writes)) return false;
  if (!overlap(a, b)) return false;
  bool strong = a->reach != PLAIN && b->reach != PLAIN;
  if (strong && morally_strong(a->reach, a->warp, b->reach, b->warp)) return false;
  return !is_before(strong ? ACQUIRED : CAUSED, one, other) &&
         !is_before(strong ? ACQUIRED : CAUSED, other, one);
}

/* A plain store that may depend on a plain load of another cluster, by strong stores and loads: the
 * checker takes that to be in order (CHECKS.md). */
static bool may_be_silent(int read, int write) {
  const Event *a = &program->events[read], *b = &program->events[write];
  return !a->writes && b->writes && a->reach == PLAIN && b->reach == PLAIN &&
         cluster_of(a->warp) != cluster_of(b->warp) && is_before(DEPENDENT, read, write);
}

static bool must_be_reported(int one, int other) {
  return !may_be_silent(one, other) && !may_be_silent(other, one) && !is_observed(one, other) &&
         !is_observed(other, one);
}

static int count_events(void) {
  find_order();
  return program->count;
}
static uint32_t line_of_event(int event) { return program->events[event].line; }

/* ---- What the emulator says ---- */

static int run(void) {
  uint64_t data = memory_allocate(DATA_BYTES + FLAGS * 4);
  if (!memory_register(program->log, LOG_BYTES, false)) return 2;
  memset((void *)(uintptr_t)data, 0, DATA_BYTES + FLAGS * 4);
  written_set(data, DATA_BYTES + FLAGS * 4);
  uint64_t parameters[2] = {data, (uint64_t)(uintptr_t)program->log};
  return run_text((Launch){.grid = {(uint32_t)program->blocks, 1, 1},
                           .block = {(uint32_t)program->warps * LANES_OF_WARP, 1, 1},
                           .cluster = {(uint32_t)program->cluster, 1, 1},
                           .parameters = (const uint8_t *)parameters,
                           .parameter_bytes = sizeof parameters});
}

int main(int argc, char **argv) {
  static const Oracle oracle = {.make = make_program,
                                .run = run,
                                .count = count_events,
                                .line_of = line_of_event,
                                .is_race = is_race,
                                .must_be_reported = must_be_reported,
                                .rules = {"global-race", "scope-too-narrow", "flag-without-fence"}};
  program->log = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (program->log == MAP_FAILED) abort();
  return check_programs(&oracle, argc, argv);
}
