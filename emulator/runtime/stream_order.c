/* stream_order.c: a missing event or edge between operations that touch the same memory. */
#include "runtime/stream_order.h"

#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/summary.h"
#include "base/events.h"

enum {
  OPERATIONS_KEPT = 4096, /* older ones count as ordered */
  TALKERS_KEPT = 32,      /* kernels that have waited for a flag of another stream's */
  WHAT_TEXT = 96,
  WATCHED_MOST = 256,        /* copies from or to pinned memory that the host has not waited for */
  FREED_BYTES_MOST = 1 << 26 /* of a freed allocation that are looked at */
};

typedef struct {
  uint32_t number;
  StreamStamp stamp;
  char what[WHAT_TEXT], amount[WHAT_TEXT]; /* "the copy", " of 64 bytes" */
} Operation;

/* Host memory that an asynchronous copy uses. */
typedef struct {
  const uint8_t *bytes;
  size_t count;
  bool written;
  uint64_t hash;
  StreamStamp stamp;
} WatchedMemory;

/* Under the runtime's lock, but for the talkers. */
static struct {
  uint32_t points[TIMELINES]; /* the last one of each timeline */
  bool used[TIMELINES];
  StreamClock host;
  int streams_alive, other_streams; /* other: those that do not wait for the legacy stream */
  bool streams_ever;
  bool checker_knows; /* of this order */
  Operation *operations;
  const StreamStamp *executed; /* NULL: none */
  WatchedMemory watched[WATCHED_MOST];
  int watched_count;
  pthread_mutex_t talking; /* of the talkers */
  uint32_t talkers[TALKERS_KEPT], next_talker;
} timelines = {.used = {[NO_TIMELINE] = true}, .talking = PTHREAD_MUTEX_INITIALIZER};

bool stream_order_wanted(void) { return settings()->checks && settings()->check_global; }

void stream_order_join(StreamClock *into, const StreamClock *from) {
  for (int i = 0; i < TIMELINES; i++)
    if (from->seen[i] > into->seen[i]) into->seen[i] = from->seen[i];
}

const StreamClock *stream_order_of_host(void) { return &timelines.host; }

void stream_order_note_stream(bool begins, bool blocking) {
  timelines.streams_ever |= begins;
  timelines.streams_alive += begins ? 1 : -1;
  if (!blocking) timelines.other_streams += begins ? 1 : -1;
  HOLDS(timelines.streams_alive >= timelines.other_streams && timelines.other_streams >= 0);
}

static void begin_timeline(StreamOrder *order) {
  for (uint32_t i = 1; i < TIMELINES && order->timeline == NO_TIMELINE; i++) {
    if (timelines.used[i]) continue;
    timelines.used[i] = true;
    order->timeline = i;
  }
}

void stream_order_end_timeline(StreamOrder *order) {
  HOLDS(timelines.used[order->timeline]);
  if (order->timeline != NO_TIMELINE) timelines.used[order->timeline] = false;
  order->timeline = NO_TIMELINE;
}

StreamStamp *stream_order_submit(StreamOrder *order, unsigned long long stream) {
  StreamStamp *stamp = new_zeros(1, sizeof *stamp);
  begin_timeline(order);
  *stamp = (StreamStamp){order->timeline, 0, stream, order->clock};
  if (order->timeline != NO_TIMELINE)
    stamp->point = order->clock.seen[order->timeline] = ++timelines.points[order->timeline];
  return stamp;
}

/* ---- Operations by their numbers ---- */

static const Operation *operation_of(uint32_t number) {
  const Operation *found =
      timelines.operations ? &timelines.operations[number % OPERATIONS_KEPT] : NULL;
  if (found && found->number > number) summary_note(NOTE_stream_operations);
  return found && found->number == number ? found : NULL;
}

static bool is_after(const StreamStamp *later, const StreamStamp *earlier) {
  return earlier->timeline == NO_TIMELINE || later->timeline == NO_TIMELINE ||
         later->clock.seen[earlier->timeline] >= earlier->point;
}

static bool ordered(uint32_t earlier, uint32_t later) {
  const Operation *first = operation_of(earlier), *second = operation_of(later);
  const StreamStamp *stamp = second ? &second->stamp : timelines.executed;
  return !first || !stamp || is_after(stamp, &first->stamp);
}

/* Whatever comes later knows what the host knows. */
static bool settled(uint32_t number) {
  const Operation *found = operation_of(number);
  const StreamStamp *stamp = found ? &found->stamp : timelines.executed;
  if (!timelines.streams_ever || !stamp) return true;
  bool one_stream = timelines.streams_alive <= 1 && timelines.other_streams == 0;
  const StreamClock *known = one_stream ? &stamp->clock : &timelines.host;
  for (uint32_t i = 1; i < TIMELINES; i++) {
    bool own = i == stamp->timeline && timelines.points[i] == stamp->point;
    if (known->seen[i] + own < timelines.points[i]) return false;
  }
  return true;
}

static void learn_stamp(StreamClock *clock, const StreamStamp *of) {
  stream_order_join(clock, &of->clock);
  if (of->timeline != NO_TIMELINE && clock->seen[of->timeline] < of->point)
    clock->seen[of->timeline] = of->point;
}

static void note_talker(uint32_t number) {
  for (uint32_t i = 0; i < TALKERS_KEPT; i++)
    if (timelines.talkers[i] == number) return;
  timelines.talkers[timelines.next_talker++ % TALKERS_KEPT] = number;
}

/* Operations that talk through flags order themselves. Which one waited is not looked at, and what
 * is submitted later counts as ordered, too. Worker threads come here, and others read the clocks
 * meanwhile: they see an older or a newer value. */
static void order_talkers(uint32_t one, uint32_t other) {
  const Operation *first = operation_of(one), *second = operation_of(other);
  if (!first || !second) return;
  HOLD_LOCK(&timelines.talking);
  StreamClock both = {{0}};
  learn_stamp(&both, &first->stamp);
  learn_stamp(&both, &second->stamp);
  stream_order_join(&timelines.operations[one % OPERATIONS_KEPT].stamp.clock, &both);
  stream_order_join(&timelines.operations[other % OPERATIONS_KEPT].stamp.clock, &both);
  stream_order_join(&timelines.host, &both);
  note_talker(one);
  note_talker(other);
}

/* What was submitted before the talk and comes after one of the talkers knows it, too. */
static void learn_from_talkers(StreamStamp *stamp) {
  HOLD_LOCK(&timelines.talking);
  for (uint32_t i = 0; i < TALKERS_KEPT; i++) {
    const Operation *talker = timelines.talkers[i] ? operation_of(timelines.talkers[i]) : NULL;
    if (talker && is_after(stamp, &talker->stamp))
      stream_order_join(&stamp->clock, &talker->stamp.clock);
  }
}

static Phrase stream_name(unsigned long long id) {
  return id == 1   ? phrase("the legacy default stream")
         : id == 2 ? phrase("a per-thread default stream")
                   : phrase("stream %llu", id - 2);
}

static Phrase describe(uint32_t number) {
  const Operation *found = operation_of(number);
  if (!found) return phrase("an earlier operation");
  return phrase("%s%s in %s", found->what, found->amount, stream_name(found->stamp.stream).text);
}

void stream_order_execute(const StreamStamp *stamp) {
  static const OperationOrder order = {ordered, settled, describe, order_talkers};
  timelines.executed = stamp;
  if (timelines.checker_knows || !stream_order_wanted()) return;
  timelines.checker_knows = true;
  emit_operations_ordered(&order);
}

void stream_order_number(uint32_t number, const char *what, const char *amount) {
  if (!timelines.executed || number == 0) return;
  if (!timelines.operations)
    timelines.operations = new_zeros(OPERATIONS_KEPT, sizeof *timelines.operations);
  Operation *made = &timelines.operations[number % OPERATIONS_KEPT];
  made->number = number;
  made->stamp = *timelines.executed;
  learn_from_talkers(&made->stamp);
  snprintf(made->what, sizeof made->what, "%s", what);
  snprintf(made->amount, sizeof made->amount, "%s", amount);
}

/* ---- What operations other than kernels touch ---- */

static Phrase memory_text(uint64_t address) {
  const Allocation *found = memory_find(address);
  if (!found) return phrase("the memory at 0x%llx", (unsigned long long)address);
  return phrase("byte %llu of an allocation of %llu bytes",
                (unsigned long long)(address - found->first),
                (unsigned long long)(found->end - found->first));
}

static void report_conflict(uint32_t number, const OperationConflict *conflict, bool writes,
                            bool frees) {
  const Operation *past = operation_of(conflict->operation), *now = operation_of(number);
  const Phrase both = phrase("%s %s", now ? now->what : "", past ? past->what : "");
  finding_of_host(frees ? RULE(FREED_WHILE_IN_USE) : RULE(STREAM_RACE), both.text,
                  "%s %s %s, which %s %s, and nothing orders the two.\n"
                  "Record an event in %s after the first of the two and let %s wait for it "
                  "(cudaEventRecord, cudaStreamWaitEvent); in a graph, add an edge; or let the "
                  "host wait in between.",
                  describe(number).text,
                  frees    ? "frees"
                  : writes ? "writes"
                           : "reads",
                  memory_text(conflict->address).text, describe(conflict->operation).text,
                  conflict->wrote ? "wrote" : "read",
                  stream_name(past ? past->stamp.stream : 0).text,
                  stream_name(now ? now->stamp.stream : 0).text);
}

/* Another operation that the host has not waited for may write the memory, too: then it is not the
 * host's doing. */
static void drop_overlapping(const uint8_t *bytes, size_t count) {
  int kept = 0;
  for (int i = 0; i < timelines.watched_count; i++) {
    WatchedMemory *each = &timelines.watched[i];
    if (each->bytes < bytes + count && bytes < each->bytes + each->count) continue;
    timelines.watched[kept++] = *each;
  }
  timelines.watched_count = kept;
}

void stream_order_parameters(const uint8_t *parameters, size_t bytes) {
  for (size_t at = 0; timelines.watched_count > 0 && at + sizeof(uint64_t) <= bytes;
       at += sizeof(uint64_t)) {
    uint64_t value;
    memcpy(&value, parameters + at, sizeof value);
    const Allocation *found = memory_find(value);
    if (found && found->kind == MEMORY_OF_HOST)
      drop_overlapping((const uint8_t *)(uintptr_t)found->first, found->end - found->first);
  }
}

static uint32_t operation_begins(void) {
  uint32_t number = 0;
  emit_operation_begins(&number);
  return number;
}

static bool operation_conflicts(uint32_t number, uint64_t first, uint64_t bytes, bool writes,
                                OperationConflict *conflict) {
  bool conflicts = false;
  emit_operation_touches(number, first, bytes, writes, conflict, &conflicts);
  return conflicts;
}

void stream_order_touch(const char *what, const char *amount, const StreamTouch *touches,
                        int count) {
  if (!timelines.executed || !stream_order_wanted()) return;
  const uint32_t number = operation_begins();
  stream_order_number(number, what, amount);
  bool reported = false;
  for (int i = 0; i < count; i++) {
    OperationConflict conflict;
    if (touches[i].writes)
      drop_overlapping((const uint8_t *)(uintptr_t)touches[i].first, touches[i].bytes);
    if (!operation_conflicts(number, touches[i].first, touches[i].bytes, touches[i].writes,
                             &conflict))
      continue;
    if (!reported) report_conflict(number, &conflict, touches[i].writes, false);
    reported = true;
  }
}

void stream_order_freed(uint64_t first, uint64_t bytes) {
  if (!timelines.executed || !stream_order_wanted()) return;
  const uint32_t number = operation_begins();
  OperationConflict conflict;
  stream_order_number(number, "cudaFreeAsync", "");
  if (bytes > FREED_BYTES_MOST) {
    summary_note(NOTE_freed_memory);
    bytes = FREED_BYTES_MOST;
  }
  if (operation_conflicts(number, first, bytes, true, &conflict))
    report_conflict(number, &conflict, true, true);
}

/* ---- What the host does meanwhile ---- */

/* Of large memory, 64 bytes of each 4,096. */
static uint64_t hash_of(const uint8_t *bytes, size_t count) {
  enum { WHOLE = 1 << 20, PIECE = 64, STEP = 4096 };
  uint64_t hash = count;
  size_t step = count > WHOLE ? STEP : PIECE;
  for (size_t at = 0; at < count; at += step)
    for (size_t i = at; i < count && i < at + PIECE; i++)
      hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

void stream_order_watch_host(const void *memory, size_t count, bool written) {
  if (!timelines.executed || !stream_order_wanted() || timelines.executed->timeline == NO_TIMELINE)
    return;
  if (written) drop_overlapping(memory, count);
  if (timelines.watched_count == WATCHED_MOST) {
    summary_note(NOTE_host_memory);
    return;
  }
  timelines.watched[timelines.watched_count++] =
      (WatchedMemory){memory, count, written, hash_of(memory, count), *timelines.executed};
}

static void check_host(const WatchedMemory *memory) {
  const Allocation *found = memory_find((uint64_t)(uintptr_t)memory->bytes);
  if (!found || found->end - (uint64_t)(uintptr_t)memory->bytes < memory->count) return; /* freed */
  if (hash_of(memory->bytes, memory->count) == memory->hash) return;
  const char *touched = memory->written ? "destination" : "source";
  finding_of_host(RULE(HOST_TOUCHES_COPY), touched,
                  "the host has changed the %s of an asynchronous copy of %zu bytes in %s without "
                  "waiting for it.\n"
                  "The call only starts the copy. Wait first (cudaStreamSynchronize, or "
                  "cudaEventSynchronize of an event recorded after it), or use another buffer.",
                  touched, memory->count, stream_name(memory->stamp.stream).text);
}

void stream_order_host_learns(const StreamClock *clock) {
  stream_order_join(&timelines.host, clock);
  int kept = 0;
  for (int i = 0; i < timelines.watched_count; i++) {
    const WatchedMemory *each = &timelines.watched[i];
    if (timelines.host.seen[each->stamp.timeline] >= each->stamp.point)
      check_host(each);
    else
      timelines.watched[kept++] = *each;
  }
  timelines.watched_count = kept;
}

void stream_order_host_learns_all(void) {
  StreamClock clock;
  memcpy(clock.seen, timelines.points, sizeof clock.seen);
  stream_order_host_learns(&clock);
}

void stream_order_host_learns_executed(void) {
  if (timelines.executed) stream_order_host_learns(&timelines.executed->clock);
}
