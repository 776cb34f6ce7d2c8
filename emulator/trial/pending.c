/* pending.c: findings whose only trace is bytes of global memory that nobody has looked at
 * (pending.h).
 *
 * A hash table says which bytes belong to which group. Of these, only those that count as unwritten are
 * meant: a byte that has been overwritten stays in the table until it is used again. */
#define _DEFAULT_SOURCE
#include "trial/pending.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/written.h"

enum {
  GROUPS_MOST = 1024,
  FINDINGS_MOST = 1 << 16,
  CHUNKS_MOST = 1 << 18,
  PLACES = 2 * CHUNKS_MOST
};

typedef struct {
  uint64_t chunk; /* 0: the place is free */
  uint32_t mask;
  PendingNumber number; /* the last group that has left something here */
} PendingBytes;

/* What several findings say. */
typedef struct {
  const Instruction *in;
  const Rule *rule;
} Mistake;

typedef struct {
  Launch launch;
  FunctionTraits traits;
  KeptFinding *findings;
  Mistake *mistakes; /* each of them once */
  size_t count, mistake_count;
  bool reported, detached;
  bool freed; /* some of its bytes, before anybody looked */
} PendingGroup;

static struct {
  pthread_mutex_t lock;
  bool any, host_has_seen, host_can_see;
  pid_t process;
  PendingGroup groups[GROUPS_MOST + 1]; /* the last one is only tried */
  uint32_t group_count, chunk_count;
  size_t finding_count;
  PendingBytes *bytes; /* PLACES; NULL: none so far */
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Relaxed, as the others: each is set while a call or a launch of the program runs, and asked
 * about its effects after it, for which the program itself has ordered the two. */
static bool any_pending(void) { return __atomic_load_n(&waiting.any, __ATOMIC_RELAXED); }

/* ---- Groups ---- */

static bool has_mistake(const Mistake *mistakes, size_t count, const Mistake *wanted) {
  size_t i = 0;
  while (i < count && (mistakes[i].in != wanted->in || mistakes[i].rule != wanted->rule)) i++;
  return i < count;
}

static Mistake *mistakes_of(const KeptFinding *findings, size_t count, size_t *mistake_count) {
  Mistake *mistakes = new_zeros(count + 1, sizeof *mistakes);
  *mistake_count = 0;
  for (size_t i = 0; i < count; i++) {
    const Mistake each = {findings[i].in, findings[i].what.rule};
    if (!has_mistake(mistakes, *mistake_count, &each)) mistakes[(*mistake_count)++] = each;
  }
  return mistakes;
}

static bool is_group_of(const PendingGroup *group, const Mistake *mistakes, size_t count) {
  if (group->reported || group->detached || group->mistake_count != count) return false;
  size_t i = 0;
  while (i < count && has_mistake(group->mistakes, count, &mistakes[i])) i++;
  return i == count;
}

static char *copy_of(const char *text, size_t length) {
  return text ? need_memory(strndup(text, length)) : NULL;
}

static void add_finding(PendingGroup *group, const KeptFinding *from, const Launch *launch) {
  if ((group->count & (group->count - 1)) == 0) {
    size_t capacity = group->count ? 2 * group->count : 1;
    group->findings = need_memory(realloc(group->findings, capacity * sizeof *group->findings));
  }
  KeptFinding *made = &group->findings[group->count++];
  *made = *from;
  made->text = copy_of(from->text, strlen(from->text));
  made->cluster.launch = (Launch *)launch;
}

/* What the launch has found itself, and what the groups say whose bytes it has read. The lock is held. */
static void fill_group(PendingGroup *group, const KeptFinding *findings, size_t count,
                       const Launch *launch) {
  group->launch = *launch;
  group->traits = *launch->traits;
  group->traits.name = copy_of(launch->traits->name, strlen(launch->traits->name));
  group->launch.traits = &group->traits;
  for (size_t i = 0; i < count; i++)
    if (!findings[i].pending) add_finding(group, &findings[i], &group->launch);
  for (PendingNumber number = 1; number <= waiting.group_count; number++) {
    const PendingGroup *read = &waiting.groups[number - 1];
    bool was_read = false;
    for (size_t i = 0; i < count; i++) was_read |= findings[i].pending == number;
    for (size_t i = 0; i < read->count && was_read; i++)
      add_finding(group, &read->findings[i], read->findings[i].cluster.launch);
  }
  group->mistakes = mistakes_of(group->findings, group->count, &group->mistake_count);
}

static void empty_group(PendingGroup *group) {
  for (size_t i = 0; i < group->count; i++) kept_finding_free(&group->findings[i]);
  free(group->findings);
  free(group->mistakes);
  free((char *)(uintptr_t)group->traits.name);
  *group = (PendingGroup){0};
}

static void end_pending(int status, void *unused) {
  (void)status, (void)unused;
  pending_end();
}

PendingNumber pending_group(const KeptFinding *findings, size_t count, const Launch *launch) {
  PendingNumber number = 0;
  HOLD_LOCK(&waiting.lock);
  PendingGroup *group = &waiting.groups[waiting.group_count];
  HOLDS(group->count == 0); /* the free one behind the last */
  fill_group(group, findings, count, launch);
  for (uint32_t i = 0; i < waiting.group_count && !number; i++)
    if (is_group_of(&waiting.groups[i], group->mistakes, group->mistake_count)) number = i + 1;
  bool fits =
      waiting.group_count < GROUPS_MOST && waiting.finding_count + group->count <= FINDINGS_MOST;
  if (number || !fits) {
    empty_group(group);
  } else {
    waiting.finding_count += group->count;
    number = ++waiting.group_count;
  }
  if (number && !waiting.any) {
    waiting.process = getpid();
    on_exit(end_pending, NULL);
    __atomic_store_n(&waiting.any, true, __ATOMIC_RELAXED);
  }
  return number;
}

bool pending_was_reported(PendingNumber number) {
  HOLD_LOCK(&waiting.lock);
  return waiting.groups[number - 1].reported;
}

/* ---- Bytes ---- */

/* The place of this chunk, or a free one. The lock is held. */
static PendingBytes *pending_place(uint64_t chunk) {
  uint64_t at = (chunk / PENDING_CHUNK * 0x9e3779b97f4a7c15ull) >> 40;
  while (waiting.bytes[at % PLACES].chunk && waiting.bytes[at % PLACES].chunk != chunk) at++;
  return &waiting.bytes[at % PLACES];
}

/* The bytes that are not overwritten. */
static uint32_t unwritten_of(const PendingBytes *bytes) {
  return bytes->mask ? bytes->mask & ~written_bits(bytes->chunk, PENDING_CHUNK) : 0;
}

static bool add_bytes(PendingNumber number, uint64_t chunk, uint32_t mask) {
  if (!waiting.bytes) waiting.bytes = new_zeros(PLACES, sizeof *waiting.bytes);
  PendingBytes *bytes = pending_place(chunk);
  if (!bytes->chunk && waiting.chunk_count == CHUNKS_MOST) return false;
  if (!bytes->chunk) waiting.chunk_count++;
  *bytes = (PendingBytes){chunk, unwritten_of(bytes) | mask, number};
  return true;
}

static uint32_t mask_between(uint64_t chunk, uint64_t first, uint64_t end) {
  uint64_t from = first > chunk ? first - chunk : 0;
  uint64_t to = end < chunk + PENDING_CHUNK ? end - chunk : PENDING_CHUNK;
  return to > from ? (uint32_t)(((1ull << (to - from)) - 1) << from) : 0;
}

/* Calls `visit` for what the table has between these addresses. The lock is held. */
typedef void VisitBytes(PendingBytes *bytes, uint32_t mask, void *context);
static void each_between(uint64_t first, uint64_t end, VisitBytes *visit, void *context) {
  uint64_t chunk = first / PENDING_CHUNK * PENDING_CHUNK;
  if (!waiting.bytes || first >= end) return;
  if ((end - chunk) / PENDING_CHUNK > PLACES) { /* it is shorter to go through the table */
    for (size_t i = 0; i < PLACES; i++) {
      PendingBytes *bytes = &waiting.bytes[i];
      if (bytes->mask && bytes->chunk >= chunk && bytes->chunk < end)
        visit(bytes, mask_between(bytes->chunk, first, end), context);
    }
    return;
  }
  for (; chunk < end; chunk += PENDING_CHUNK) {
    PendingBytes *bytes = pending_place(chunk);
    if (bytes->mask) visit(bytes, mask_between(chunk, first, end), context);
  }
}

bool pending_add(PendingNumber number, uint64_t chunk, uint32_t mask) {
  for (uint32_t left = mask; left;
       left &= left - 1) /* this also forgets what the table has there */
    written_clear(chunk + (uint64_t)__builtin_ctz(left), 1);
  HOLD_LOCK(&waiting.lock);
  return add_bytes(number, chunk, mask);
}

static void find_group(PendingBytes *bytes, uint32_t mask, void *context) {
  PendingNumber *found = context;
  if (!*found && (unwritten_of(bytes) & mask)) *found = bytes->number;
}

PendingNumber pending_in(uint64_t first, uint64_t bytes) {
  PendingNumber found = 0;
  if (!any_pending() || written_all(first, bytes)) return 0;
  HOLD_LOCK(&waiting.lock);
  each_between(first, first + bytes, find_group, &found);
  return found;
}

static void forget_bytes(PendingBytes *bytes, uint32_t mask, void *context) {
  const bool *freed = context;
  if (*freed && (unwritten_of(bytes) & mask)) waiting.groups[bytes->number - 1].freed = true;
  bytes->mask &= ~mask;
}

void pending_forget(uint64_t first, uint64_t bytes, bool freed) {
  if (!any_pending()) return;
  HOLD_LOCK(&waiting.lock);
  each_between(first, first + bytes, forget_bytes, &freed);
}

/* ---- Whoever looks ---- */

static void settle_bytes(PendingBytes *bytes, uint32_t mask, void *context) {
  const PendingNumber *number = context;
  if (bytes->number != *number) return;
  for (uint32_t left = unwritten_of(bytes) & mask; left; left &= left - 1)
    written_set(bytes->chunk + (uint64_t)__builtin_ctz(left), 1);
  bytes->mask = 0;
}

void pending_report(PendingNumber number) {
  pthread_mutex_lock(&waiting.lock);
  PendingGroup *group = &waiting.groups[number - 1];
  bool reported = group->reported;
  group->reported = true;
  each_between(0, UINT64_MAX, settle_bytes, &number);
  pthread_mutex_unlock(&waiting.lock);
  for (size_t i = 0; i < group->count && !reported; i++) kept_finding_report(&group->findings[i]);
}

/* Memory of the device that only kernels and copies touch. */
static bool is_of_device(uint64_t address) {
  Allocation place;
  return memory_look_up(address, &place) && place.kind == MEMORY_OF_DEVICE;
}

typedef struct {
  uint64_t to, from;
  PendingNumber lost; /* there was no place for its bytes */
} CopyOfBytes;

static void pass_on(PendingBytes *bytes, uint32_t mask, void *context) {
  CopyOfBytes *copy = context;
  const PendingNumber number = bytes->number;
  const uint64_t to = bytes->chunk - copy->from + copy->to;
  for (uint32_t left = unwritten_of(bytes) & mask; left; left &= left - 1) {
    uint64_t at = to + (uint64_t)__builtin_ctz(left);
    if (!add_bytes(number, at / PENDING_CHUNK * PENDING_CHUNK, 1u << at % PENDING_CHUNK))
      copy->lost = number;
  }
}

static void report_all_in(uint64_t first, uint64_t bytes) {
  for (PendingNumber seen; (seen = pending_in(first, bytes));) pending_report(seen);
}

void pending_copied(uint64_t to, uint64_t from, uint64_t bytes) {
  bool any = any_pending();
  if (!any && __atomic_load_n(&waiting.host_has_seen, __ATOMIC_RELAXED)) return;
  bool stays = is_of_device(to);
  if (!stays && is_of_device(from))
    __atomic_store_n(&waiting.host_has_seen, true, __ATOMIC_RELAXED);
  /* Who reads a variable of a module is not known. */
  if (!stays || !written_is_watched(to)) {
    report_all_in(from, bytes);
  } else if (any && !written_all(from, bytes)) {
    CopyOfBytes copy = {.to = to, .from = from};
    pthread_mutex_lock(&waiting.lock);
    each_between(from, from + bytes, pass_on, &copy);
    pthread_mutex_unlock(&waiting.lock);
    if (copy.lost) pending_report(copy.lost);
  }
}

void pending_host_can_see(void) { __atomic_store_n(&waiting.host_can_see, true, __ATOMIC_RELAXED); }

/* ---- The end of a module, and of the program ---- */

static const Instruction *detached(const Instruction *in) {
  Instruction *copy = need_memory(malloc(sizeof *copy));
  *copy = *in;
  if (in->text) copy->text = copy_of(in->text, strcspn(in->text, "\n"));
  if (in->source.file) copy->source.file = copy_of(in->source.file, strlen(in->source.file));
  if (in->source.inner_file)
    copy->source.inner_file = copy_of(in->source.inner_file, strlen(in->source.inner_file));
  return copy;
}

void pending_detach(void) {
  if (!any_pending()) return;
  HOLD_LOCK(&waiting.lock);
  for (uint32_t i = 0; i < waiting.group_count; i++) {
    PendingGroup *group = &waiting.groups[i];
    if (group->reported || group->detached) continue;
    group->detached = true;
    for (size_t k = 0; k < group->count; k++) {
      KeptFinding *finding = &group->findings[k];
      finding->in = detached(finding->in);
      if (finding->what.other) finding->what.other = detached(finding->what.other);
    }
  }
}

static bool is_there(PendingNumber number) {
  bool there = waiting.groups[number - 1].freed;
  for (size_t i = 0; i < PLACES && waiting.bytes && !there; i++)
    there = waiting.bytes[i].number == number && unwritten_of(&waiting.bytes[i]);
  return there;
}

void pending_end(void) {
  if (!any_pending() || waiting.process != getpid()) return;
  const bool looked = waiting.host_has_seen || waiting.host_can_see;
  for (PendingNumber number = 1; number <= waiting.group_count; number++) {
    if (pending_was_reported(number)) continue;
    PendingGroup *group = &waiting.groups[number - 1];
    if (!looked && is_there(number))
      pending_report(number);
    else
      for (size_t i = 0; i < group->count; i++) kept_finding_held_back(&group->findings[i]);
  }
}
