/* mbarrier.c: the barrier in shared memory that counts arrivals and bytes: every mbarrier.*.
 *
 * Its 64 bits as an H200 lays them out (tests/emulator/mbarrier_cases.cu):
 *
 *   63      62 .. 43           42   41 .. 21     20 .. 1              0
 *   phase   -pending arrivals  0    -tx-count    -expected arrivals   0
 *
 * Counts are stored negated. The state of a live barrier is not in shared memory: ordinary loads
 * see the old contents, and mbarrier.inval writes the state back. So the state is in a table here.
 * A word that was never initialised is read from memory at its first use, whatever it contains. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/async.h"
#include "base/access.h"
#include "base/fault.h"
#include "base/settings.h"
#include "state/cluster.h"
#include "state/notes.h"
#include "state/polling.h"

enum {
  COUNT_MASK = (1 << 20) - 1,
  TX_LIMIT = 1 << 20, /* limit of the counts, in both directions */
  EXPECTED_AT = 1,
  TX_AT = 21,
  PENDING_AT = 43,
  PHASE_AT = 63
};
#define ZERO_BITS (1ull << 42 | 1ull)

typedef struct {
  uint32_t phase;    /* parity of the current phase */
  uint32_t expected; /* arrivals of the next phase */
  uint32_t pending;  /* arrivals still missing in this phase */
  int32_t tx;        /* bytes expected but not arrived; negative: arrived but not yet expected */
} Barrier;

static Barrier barrier_unpack(uint64_t word) {
  return (Barrier){.phase = (uint32_t)(word >> PHASE_AT),
                   .expected = (uint32_t)(0 - (word >> EXPECTED_AT)) & COUNT_MASK,
                   .pending = (uint32_t)(0 - (word >> PENDING_AT)) & COUNT_MASK,
                   .tx = -(int32_t)((int64_t)(word << 22) >> 43)};
}

static uint64_t barrier_pack(Barrier barrier) {
  return (uint64_t)(barrier.phase & 1u) << PHASE_AT |
         (uint64_t)((0u - barrier.pending) & COUNT_MASK) << PENDING_AT |
         (uint64_t)((0u - (uint32_t)barrier.tx) & (2 * TX_LIMIT - 1)) << TX_AT |
         (uint64_t)((0u - barrier.expected) & COUNT_MASK) << EXPECTED_AT;
}

/* ---- The table ------------------------------------------------------------------------------- */
enum { FIRST_CAPACITY = 64 };
typedef struct {
  uint32_t key;    /* address | 1 (addresses are multiples of 8); 0: free */
  uint32_t phases; /* completed phases: the word holds only the last bit of this number */
  uint64_t word;
  bool alive, ended;
  bool asked; /* some thread waits for it, or has waited */
  /* For the report of a hang: the warps that arrived without announcing bytes, in the current phase
   * and in the two before it. One bit for each, at the warp's number in the cluster modulo 64. */
  uint64_t arrived, arrived_before[2];
} PhaseRecord;
typedef struct {
  uint32_t used, capacity;
  PhaseRecord *records;
} PhaseTable;

static PhaseRecord *find_record(const PhaseTable *table, uint32_t key) {
  uint32_t at = (key * 2654435761u) >> 7;
  for (;; at++) {
    PhaseRecord *record = &table->records[at & (table->capacity - 1)];
    if (record->key == key || !record->key) return record;
  }
}

static PhaseRecord *record_of(Cluster *cluster, uint32_t address) {
  void **place = async_barrier_notes(cluster);
  PhaseTable *table = *place;
  if (!table) {
    table = async_allocate(sizeof *table);
    table->capacity = FIRST_CAPACITY;
    table->records = async_allocate(FIRST_CAPACITY * sizeof *table->records);
    *place = table;
  }
  uint32_t key = address | 1;
  PhaseRecord *record = find_record(table, key);
  if (record->key) return record;
  if (table->used * 2 >= table->capacity) {
    PhaseTable larger = {.capacity = table->capacity * 2};
    larger.records = async_allocate(larger.capacity * sizeof *larger.records);
    for (uint32_t i = 0; i < table->capacity; i++) {
      if (!table->records[i].key) continue;
      *find_record(&larger, table->records[i].key) = table->records[i];
      larger.used++;
    }
    free(table->records);
    *table = larger;
    record = find_record(table, key);
  }
  record->key = key;
  table->used++;
  return record;
}

void mbarrier_notes_free(void *table) {
  if (!table) return;
  free(((PhaseTable *)table)->records);
  free(table);
}

static PhaseRecord *barrier_note(Cluster *cluster, uint32_t address) {
  PhaseRecord *record = record_of(cluster, address);
  if (!record->alive) {
    memcpy(&record->word, shared_pointer(cluster, address), 8);
    record->alive = true;
    mbarrier_changed(cluster);
  }
  return record;
}

static Barrier barrier_read(Cluster *cluster, uint32_t address) {
  return barrier_unpack(barrier_note(cluster, address)->word);
}

static void barrier_write(Cluster *cluster, uint32_t address, Barrier barrier) {
  uint64_t word = barrier_pack(barrier);
  barrier_note(cluster, address)->word = word;
  if (__builtin_expect(polling_is_on(cluster), 0)) polling_changed(cluster, address, word);
}

/* ---- The operations -------------------------------------------------------------------------- */
typedef struct {
  Warp *warp;
  const Instruction *in;
  int lane;
} MbarrierThread;

static bool refuse(MbarrierThread thread, const char *rule, uint32_t address, const char *what,
                   long long value, long long limit) {
  fault(thread.warp, thread.in, 1u << thread.lane, 719, rule,
        "the mbarrier at shared address 0x%08x: %s (%lld, but at most %lld); was it initialised, "
        "with the right count, and is every arrival and byte counted once a phase?",
        address, what, value, limit);
  return false;
}

/* copy: the asynchronous operation that changed it; NULL: an instruction did. */
static void record_change(MbarrierThread thread, uint32_t address, const char *why,
                          const AsyncOperation *copy) {
  Cluster *cluster = thread.warp->cta->cluster;
  if (!cluster->recorder) return;
  const Barrier barrier = barrier_read(cluster, address);
  const RecordBarrier state = {.why = why,
                               .address = address,
                               .phase = record_of(cluster, address)->phases,
                               .pending = barrier.pending,
                               .expected = barrier.expected,
                               .bytes = barrier.tx};
  record_mbarrier(thread.warp, thread.in, thread.lane, &state, copy ? (int64_t)copy->recorded : -1);
}

/* Stores the barrier, or completes its phase; false after a fault. */
static bool settle(MbarrierThread thread, uint32_t address, Barrier barrier) {
  Cluster *cluster = thread.warp->cta->cluster;
  if (barrier.tx >= TX_LIMIT || barrier.tx <= -TX_LIMIT)
    return refuse(thread, "mbarrier-count", address,
                  barrier.tx > 0 ? "more bytes are expected than it can count"
                                 : "more bytes came unexpectedly than it can count",
                  barrier.tx > 0 ? barrier.tx : -barrier.tx, TX_LIMIT - 1);
  bool over = barrier.pending == 0 && barrier.tx == 0;
  if (over) {
    barrier.phase ^= 1;
    barrier.pending = barrier.expected;
  }
  barrier_write(cluster, address, barrier);
  if (!over && barrier.pending == 0) note(NOTE_FULL, shared_pointer(cluster, address), 0);
  if (!over) return true;
  note(NOTE_COMPLETE, shared_pointer(cluster, address), 0);
  PhaseRecord *record = record_of(cluster, address);
  uint32_t finished = record->phases++;
  record->arrived_before[1] = record->arrived_before[0];
  record->arrived_before[0] = record->arrived;
  record->arrived = 0;
  if (settings()->check) check_mbarrier_phase_complete(cluster, address, finished);
  mbarrier_changed(cluster);
  return true;
}

static bool take_arrivals(MbarrierThread thread, uint32_t address, Barrier *barrier, uint32_t count,
                          bool drop) {
  if (count > barrier->pending)
    return refuse(thread, "too-many-arrivals", address,
                  "more arrivals than are pending in this phase", count, barrier->pending);
  if (drop && count > barrier->expected)
    return refuse(thread, "too-many-arrivals", address,
                  "more arrivals are dropped than are expected", count, barrier->expected);
  barrier->pending -= count;
  if (drop) barrier->expected -= count;
  return true;
}

void mbarrier_complete_tx(AsyncOperation *operation, uint32_t address) {
  MbarrierThread thread = {operation->warp, operation->in, operation->lane};
  Barrier barrier = barrier_read(thread.warp->cta->cluster, address);
  barrier.tx -= (int32_t)operation->bytes;
  if (notes_wanted)
    note_place(NOTE_ARRIVE, shared_pointer(thread.warp->cta->cluster, address), 0, NOTE_BYTES);
  if (settle(thread, address, barrier)) record_change(thread, address, "landed", operation);
}

void mbarrier_async_arrive(AsyncOperation *operation) {
  MbarrierThread thread = {operation->warp, operation->in, operation->lane};
  Barrier barrier = barrier_read(thread.warp->cta->cluster, operation->barrier);
  note(NOTE_ARRIVE, shared_pointer(thread.warp->cta->cluster, operation->barrier), 0);
  if (!take_arrivals(thread, operation->barrier, &barrier, 1, false)) return;
  if (settings()->check)
    check_mbarrier_arrive(thread.warp, thread.in, thread.lane, operation->barrier, true, true);
  if (settle(thread, operation->barrier, barrier))
    record_change(thread, operation->barrier, "landed", operation);
}

void mbarrier_add_pending(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  Cluster *cluster = warp->cta->cluster;
  Barrier barrier = barrier_read(cluster, address);
  note(NOTE_EXPECT, shared_pointer(cluster, address), 0);
  barrier.pending = (barrier.pending + 1) & COUNT_MASK;
  barrier_write(cluster, address, barrier);
  record_change((MbarrierThread){warp, in, lane}, address, "pending", NULL);
}

bool window_address(Warp *warp, const Instruction *in, int lane, uint64_t value,
                    SharedWindow window, uint32_t *address) {
  if (window == WINDOW_GENERIC) {
    if ((value & GENERIC_TAG_MASK) != GENERIC_SHARED) {
      fault(warp, in, 1u << lane, 715, "address-space",
            "generic address 0x%llx does not lead to shared memory, where this instruction works; "
            "pass the address of a __shared__ variable",
            (unsigned long long)value);
      return false;
    }
  }
  *address = (uint32_t)value;
  uint32_t ctas = warp->cta->cluster->cta_count;
  if (SHARED_RANK(*address) >= ctas) {
    fault(warp, in, 1u << lane, 700, "address-space",
          "shared address 0x%08x names the CTA of rank %u, but the cluster has %u", *address,
          SHARED_RANK(*address), ctas);
    return false;
  }
  if (window == WINDOW_CTA && SHARED_RANK(*address) != warp->cta->rank) {
    fault(warp, in, 1u << lane, 700, "address-space",
          "shared address 0x%08x lies in the CTA of rank %u, this thread is in rank %u, and "
          "the instruction says .shared::cta, a CTA's own memory; write .shared::cluster where "
          "the instruction has that form",
          *address, SHARED_RANK(*address), warp->cta->rank);
    return false;
  }
  return true;
}

static bool barrier_place(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  return shared_bytes_at(warp, in, lane, address, 8, 8, ACCESS_ATOMIC) != NULL;
}

static bool barrier_usable(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  if (settings()->check) check_mbarrier_use(warp, in, lane, address); /* reports its own finding */
  uint64_t word = barrier_note(warp->cta->cluster, address)->word;
  if (!(word & ZERO_BITS)) return true;
  fault(warp, in, 1u << lane, 719, "mbarrier-unusable",
        "there is no mbarrier at shared address 0x%08x (its 64 bits are 0x%016llx, which no "
        "mbarrier can be): mbarrier.init first, then a fence and a barrier before others use it",
        address, (unsigned long long)word);
  return false;
}

bool mbarrier_check_target(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  return barrier_place(warp, in, lane, address) && barrier_usable(warp, in, lane, address);
}

/* ---- Instructions ---------------------------------------------------------------------------- */
typedef struct {
  uint8_t window;
  bool drop, no_complete, expect, release, acquire, parity, complete;
  bool potentially_blocking, bounded; /* bounded: with a time limit */
  bool repeated;                      /* a wait in a loop that does nothing else */
  int8_t token, address, count;       /* operand numbers; -1: none */
} MbarrierForm;

static uint32_t operand_u32(const Warp *warp, const Instruction *in, int operand, int lane) {
  return (uint32_t)lane_value(warp, &in->operand[operand], lane);
}

/* The barrier that this lane's address operand names; false after a fault. */
static bool lane_barrier(Warp *warp, const Instruction *in, int lane, uint32_t *address) {
  const MbarrierForm *form = in->decoded;
  uint64_t value = lane_address(warp, &in->operand[form->address], lane);
  return window_address(warp, in, lane, value, form->window, address) &&
         barrier_place(warp, in, lane, *address);
}

#define FOR_LANES(mask, lane)                                                      \
  for (LaneMask left_##lane = (mask); left_##lane; left_##lane &= left_##lane - 1) \
    for (int lane = first_lane(left_##lane), once_##lane = 1; once_##lane; once_##lane = 0)

static StepResult run_init(Warp *warp, const Instruction *in, LaneMask mask) {
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  FOR_LANES(mask, lane) {
    uint32_t address;
    if (!lane_barrier(warp, in, lane, &address)) return STEP_FAULT;
    uint32_t count = operand_u32(warp, in, form->count, lane);
    if ((count == 0 || count > COUNT_MASK) && settings()->check)
      finding(warp, in, 1u << lane, "mbarrier-count",
              "mbarrier.init with a count of %u: it must be 1 to %u, the number of arrivals that "
              "complete a phase",
              count, COUNT_MASK);
    /* The GPU's arithmetic: an out-of-range count carries into other fields. */
    uint32_t negated = (1u << 20) - count;
    PhaseRecord *record = record_of(cluster, address);
    record->word = (uint64_t)(negated << 11) << 32 | negated << 1;
    record->alive = true;
    record->phases = 0;
    record->asked = false;
    note(NOTE_RESET, shared_pointer(cluster, address), 0);
    record->arrived = record->arrived_before[0] = record->arrived_before[1] = 0;
    if (polling_is_on(cluster)) polling_changed(cluster, address, record->word);
    if (settings()->check) check_mbarrier_init(warp, in, address, count);
    record_change((MbarrierThread){warp, in, lane}, address, "init", NULL);
  }
  mbarrier_changed(cluster);
  return STEP_NEXT;
}

static StepResult run_inval(Warp *warp, const Instruction *in, LaneMask mask) {
  FOR_LANES(mask, lane) {
    uint32_t address;
    if (!lane_barrier(warp, in, lane, &address)) return STEP_FAULT;
    if (!barrier_usable(warp, in, lane, address)) return STEP_FAULT;
    record_change((MbarrierThread){warp, in, lane}, address, "inval", NULL);
    PhaseRecord *record = barrier_note(warp->cta->cluster, address);
    note(NOTE_RESET, shared_pointer(warp->cta->cluster, address), 0);
    note(NOTE_WRITE, shared_pointer(warp->cta->cluster, address), 8);
    memcpy(shared_pointer(warp->cta->cluster, address), &record->word, 8);
    record->alive = false;
    record->ended = true;
    warp->cta->cluster->mbarrier_changes++; /* who waits for it finds it gone at its next try */
    if (warp->cta->cluster->recorder) record_mbarrier_bytes(warp->cta->cluster, address);
    if (polling_is_on(warp->cta->cluster)) polling_event(warp->cta->cluster);
    if (settings()->check) check_mbarrier_inval(warp, address);
  }
  return STEP_NEXT;
}

/* expect_tx and complete_tx */
static StepResult run_tx(Warp *warp, const Instruction *in, LaneMask mask) {
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  FOR_LANES(mask, lane) {
    uint32_t address;
    if (!lane_barrier(warp, in, lane, &address)) return STEP_FAULT;
    if (!barrier_usable(warp, in, lane, address)) return STEP_FAULT;
    uint32_t bytes = operand_u32(warp, in, form->count, lane);
    if (settings()->check && !form->complete) check_mbarrier_expect(warp, in, lane, address, bytes);
    Barrier barrier = barrier_read(cluster, address);
    if (bytes >= 2 * TX_LIMIT) bytes = 2 * TX_LIMIT; /* too large in any case */
    barrier.tx += form->complete ? -(int32_t)bytes : (int32_t)bytes;
    if (notes_wanted)
      note_place(form->complete ? NOTE_ARRIVE : NOTE_EXPECT, shared_pointer(cluster, address), 0,
                 NOTE_BYTES);
    const MbarrierThread thread = {warp, in, lane};
    if (!settle(thread, address, barrier)) return STEP_FAULT;
    record_change(thread, address, form->complete ? "complete_tx" : "expect", NULL);
  }
  return STEP_NEXT;
}

static uint64_t bit_of_warp(const Warp *warp) {
  return 1ull << ((warp->cta->rank * warp->cta->warp_count + warp->index) & 63);
}

static StepResult run_arrive(Warp *warp, const Instruction *in, LaneMask mask) {
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  FOR_LANES(mask, lane) {
    uint32_t address;
    if (!lane_barrier(warp, in, lane, &address)) return STEP_FAULT;
    if (!barrier_usable(warp, in, lane, address)) return STEP_FAULT;
    Barrier barrier = barrier_read(cluster, address);
    /* The token is the upper half of the word; the lower half only says how it was created. */
    uint64_t token = (barrier_pack(barrier) & ~0xffffffffull) | form->no_complete;
    uint32_t count = 1, bytes = 0;
    if (form->expect)
      bytes = operand_u32(warp, in, form->count, lane);
    else if (form->count >= 0)
      count = operand_u32(warp, in, form->count, lane);
    if (form->expect) {
      if (bytes >= 2 * TX_LIMIT) bytes = 2 * TX_LIMIT;
      barrier.tx += (int32_t)bytes;
      if (settings()->check) check_mbarrier_expect(warp, in, lane, address, bytes);
    }
    MbarrierThread thread = {warp, in, lane};
    note(NOTE_ARRIVE, shared_pointer(cluster, address), 0);
    if (!take_arrivals(thread, address, &barrier, count, form->drop)) return STEP_FAULT;
    if (settings()->check)
      for (uint32_t i = 0; i < count; i++)
        check_mbarrier_arrive(warp, in, lane, address, form->release, false);
    if (!form->expect) record_of(cluster, address)->arrived |= bit_of_warp(warp);
    if (!settle(thread, address, barrier)) return STEP_FAULT;
    record_change(thread, address, form->drop ? "drop" : "arrive", NULL);
    if (form->token >= 0) set_lane_value(warp, &in->operand[form->token], lane, token);
  }
  return STEP_NEXT;
}

/* Informs the checker. Neighbouring lanes that waited for the same barrier have learnt the same.
 */
static void notify_observed(Warp *warp, const Instruction *in, LaneMask lanes,
                            const uint32_t *addresses) {
  const MbarrierForm *form = in->decoded;
  for (LaneMask left = lanes, alike; left; left &= ~alike) {
    int first = first_lane(left);
    alike = 0;
    for (int lane = first;
         lane < LANES && (!(left >> lane & 1) || addresses[lane] == addresses[first]); lane++)
      alike |= left & 1u << lane;
    const PhaseRecord *record = record_of(warp->cta->cluster, addresses[first]);
    check_mbarrier_observed(warp, in, alike, addresses[first], record->phases - 1, form->acquire);
  }
}

static StepResult blocked_on(Warp *warp, uint32_t address, uint32_t parity) {
  if (warp->cta->cluster->recorder) record_blocked_on_mbarrier(warp, address, parity);
  return STEP_BLOCKED;
}

/* A try_wait may return "not yet" at any time. If the program does not repeat it at once, it
 * returns "not yet" whenever the phase has not completed, so that a missing loop shows up. In a
 * loop it waits, except that it sometimes returns "not yet" in the random schedule. */
static bool answers_not_yet(Cluster *cluster, const MbarrierForm *form) {
  enum { ONE_IN = 8 };
  if (form->bounded) return false;
  if (!form->repeated) return true;
  return settings()->schedule == SCHEDULE_RANDOM && cluster_random(cluster) % ONE_IN == 0;
}

/* The parity of the phase that the lane waits for. The token that an arrival returns also counts the
 * arrivals that were pending, so those of a warp's lanes differ. */
static uint32_t asked_phase(const Warp *warp, const Instruction *in, int lane) {
  const MbarrierForm *form = in->decoded;
  uint64_t state = lane_value(warp, &in->operand[form->count], lane);
  return form->parity ? (uint32_t)(state & 1u) : (uint32_t)(state >> PHASE_AT);
}

static StepResult run_mbarrier_wait(Warp *warp, const Instruction *in, LaneMask mask) {
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  LaneMask complete = 0;
  uint32_t addresses[LANES], asked = 0;
  int before = -1;
  FOR_LANES(mask, lane) {
    const Operand *address = &in->operand[form->address];
    uint32_t phase = asked_phase(warp, in, lane);
    if (before >= 0 && phase == asked &&
        lane_address(warp, address, lane) == lane_address(warp, address, before)) {
      addresses[lane] = addresses[before]; /* usually all lanes of a warp wait for the same phase */
      complete |= (complete >> before & 1u) << lane;
      continue;
    }
    before = lane;
    asked = phase;
    if (!lane_barrier(warp, in, lane, &addresses[lane])) return STEP_FAULT;
    /* Not initialised yet: wait and see if some thread does it, so that the report can distinguish
     * a missing synchronisation from a missing init. */
    PhaseRecord *record = record_of(cluster, addresses[lane]);
    record->asked = true;
    if (!record->alive && !record->ended && form->potentially_blocking && !cluster->waits_expire &&
        settings()->schedule != SCHEDULE_EXPLORE)
      return blocked_on(warp, addresses[lane], asked);
    if (!barrier_usable(warp, in, lane, addresses[lane])) return STEP_FAULT;
    /* The current phase has the other parity, so the requested phase is complete. */
    if (barrier_read(cluster, addresses[lane]).phase != asked) complete |= 1u << lane;
  }
  bool stops =
      (form->potentially_blocking && !answers_not_yet(cluster, form)) || cluster->waits_stop;
  if (!complete && stops && !cluster->waits_expire)
    return blocked_on(warp, addresses[first_lane(mask)], asked);
  FOR_LANES(notes_wanted ? mask : 0, lane)
  note(complete >> lane & 1u && stops ? NOTE_PASS : NOTE_ASK,
       shared_pointer(cluster, addresses[lane]), 0);
  if (complete && cluster->recorder) record_mbarrier_passed(warp, addresses[first_lane(complete)]);
  if (settings()->check) {
    notify_observed(warp, in, complete, addresses);
    FOR_LANES(mask & ~complete, lane) check_mbarrier_not_yet(warp, in, lane, addresses[lane]);
  }
  FOR_LANES(mask, lane)
  set_lane_predicate(warp, &in->operand[0], lane, (complete >> lane) & 1u);
  return complete == mask ? STEP_NEXT : STEP_YIELD;
}

static StepResult run_pending_count(Warp *warp, const Instruction *in, LaneMask mask) {
  FOR_LANES(mask, lane)
  set_lane_value(warp, &in->operand[0], lane,
                 barrier_unpack(lane_value(warp, &in->operand[1], lane)).pending);
  return STEP_NEXT;
}

/* ---- Decoding -------------------------------------------------------------------------------- */
static const char *const no_semantics[] = {NULL};
static const char *const arrive_semantics[] = {"release", "relaxed", NULL};
static const char *const wait_semantics[] = {"acquire", "relaxed", NULL};
static const char *const relaxed_semantics[] = {"relaxed", NULL};

/* Takes .sem, .scope, .space and .b64. Without them: the strong semantics, .cta, generic. */
static MbarrierForm *take_common(Form *form, const char *const *semantics, bool cluster_window) {
  MbarrierForm *made = decoder_allocate(form->decoder, sizeof *made);
  *made = (MbarrierForm){.token = -1, .count = -1};
  int semantic = form_choose(form, semantics);
  made->acquire = made->release = semantic <= 0;
  /* The scope is not checked: CUTLASS waits with .cta for arrivals of other CTAs. */
  if (!form_take(form, "cluster")) form_take(form, "cta");
  if (form_take(form, "shared::cta") || form_take(form, "shared"))
    made->window = WINDOW_CTA;
  else if (cluster_window && form_take(form, "shared::cluster"))
    made->window = WINDOW_CLUSTER;
  else
    made->window = WINDOW_GENERIC;
  if (!form_take(form, "b64")) form_fail(form, "mbarrier instructions are of type .b64");
  return made;
}

static bool check_operand(Form *form, int index, bool good, const char *what) {
  if (index >= 0 && !form->failed && !good) form_fail(form, what);
  return !form->failed;
}
static bool need_address(Form *form, int index) {
  return check_operand(form, index, form_operand(form, index)->kind == OPERAND_ADDRESS,
                       "the barrier's address must stand in brackets");
}
static bool need_value(Form *form, int index) {
  return check_operand(form, index, form_operand(form, index)->kind == OPERAND_REGISTER,
                       "a count or state must be a register or a literal");
}

static bool finish(Form *form, const MbarrierForm *made, Execute execute) {
  if (form->failed) return false;
  form->out->decoded = made;
  return form_end(form, execute);
}

/* "[a], n" and nothing else. */
static bool take_address_and_count(Form *form, MbarrierForm *made) {
  if (!form_operands(form, 2, 2)) return false;
  made->address = 0;
  made->count = 1;
  need_address(form, 0);
  need_value(form, 1);
  return true;
}

bool decode_mbarrier_init(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 2);
  MbarrierForm *made = take_common(&form, no_semantics, false);
  if (!take_address_and_count(&form, made)) return false;
  return finish(&form, made, run_init);
}

bool decode_mbarrier_inval(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 2);
  MbarrierForm *made = take_common(&form, no_semantics, false);
  if (!form_operands(&form, 1, 1)) return false;
  made->address = 0;
  need_address(&form, 0);
  return finish(&form, made, run_inval);
}

bool decode_mbarrier_tx(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 2);
  MbarrierForm *made = take_common(&form, relaxed_semantics, true);
  made->complete = has_modifier(statement, "complete_tx");
  if (!take_address_and_count(&form, made)) return false;
  return finish(&form, made, run_tx);
}

bool decode_mbarrier_arrive(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 2);
  MbarrierForm *made = take_common(&form, arrive_semantics, true);
  made->drop = has_modifier(statement, "arrive_drop");
  made->expect = form_take(&form, "expect_tx");
  made->no_complete = form_take(&form, "noComplete");
  /* The older form of a remote arrive leaves the destination out. */
  bool has_token = form_operand(&form, 0)->kind != OPERAND_ADDRESS;
  int before = has_token ? 1 : 0;
  bool counted = made->expect || made->no_complete;
  if (!form_operands(&form, before + (counted ? 2 : 1), before + 2)) return false;
  if (has_token) {
    const Operand *token = form_operand(&form, 0);
    if (token->kind == OPERAND_REGISTER && !token->constant && token->bytes == 8)
      made->token = 0;
    else if (token->kind != OPERAND_SINK)
      return form_fail(&form, "the state that an arrive returns is a 64-bit register or _");
    if (made->token == 0 && made->window == WINDOW_CLUSTER)
      return form_fail(&form, "an arrive in .shared::cluster returns no state: write _ for it");
  } else if (made->window != WINDOW_CLUSTER) {
    return form_fail(&form, "the destination for the state is missing");
  }
  made->address = (int8_t)before;
  need_address(&form, before);
  if (out->operand_count > before + 1) {
    made->count = (int8_t)(before + 1);
    need_value(&form, before + 1);
  }
  return finish(&form, made, run_arrive);
}

bool decode_mbarrier_wait(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 2);
  MbarrierForm *made = take_common(&form, wait_semantics, false);
  made->potentially_blocking = has_modifier(statement, "try_wait");
  made->parity = form_take(&form, "parity");
  if (!form_operands(&form, 3, made->potentially_blocking ? 4 : 3)) return false;
  form_predicate_destination(&form, 0);
  made->address = 1;
  made->count = 2;
  need_address(&form, 1);
  need_value(&form, 2);
  made->bounded = out->operand_count == 4;
  if (made->bounded) need_value(&form, 3); /* the suspend time, which is ignored */
  return finish(&form, made, run_mbarrier_wait);
}

bool decode_mbarrier_pending_count(Decoder *decoder, const PtxStatement *statement,
                                   Instruction *out) {
  Form form = form_begin(decoder, statement, out, 2);
  if (!form_take(&form, "b64")) return form_fail(&form, "mbarrier.pending_count is of type .b64");
  if (!form_operands(&form, 2, 2)) return false;
  form_destination(&form, 0, TYPE_U32);
  form_source(&form, 1, TYPE_B64);
  return form_end(&form, run_pending_count);
}

/* ---- Waits in loops -------------------------------------------------------------------------- */
/* Does it use memory, barriers or copies? A loop that only polls does not. */
static bool does_something(const Instruction *in) {
  if (in->traits & (ANY_BARRIER | COPY_ENGINE)) return true;
  if (in->traits & ASKS_MBARRIER) return false;
  for (int i = 0; i < in->operand_count; i++)
    if (in->operand[i].kind == OPERAND_ADDRESS) return true;
  return false;
}

typedef struct {
  const Instruction *code;
  uint32_t count;
  uint32_t *seen; /* 1 + the number of the search that visited it */
  uint32_t *worklist;
} CodeSearch;

/* Can execution return to this wait with nothing done in between? */
static bool is_repeated(CodeSearch *search, uint32_t wait) {
  uint32_t left = 0;
  search->worklist[left++] = wait + 1;
  while (left) {
    uint32_t place = search->worklist[--left];
    if (place == wait) return true;
    if (place >= search->count || search->seen[place] == wait + 1) continue;
    search->seen[place] = wait + 1;
    const Instruction *in = &search->code[place];
    if (does_something(in)) continue;
    if (in->traits & JUMPS) search->worklist[left++] = in->operand[0].target;
    if (!(in->traits & ENDS_BLOCK) || in->guard >= 0) search->worklist[left++] = place + 1;
  }
  return false;
}

void mbarrier_function_decoded(Decoder *decoder, const Instruction *code, uint32_t count) {
  CodeSearch search = {.code = code, .count = count};
  for (uint32_t i = 0; i < count; i++) {
    if (code[i].execute != run_mbarrier_wait) continue;
    if (!search.seen) { /* each instruction adds at most two, once */
      search.seen = decoder_allocate(decoder, count * sizeof *search.seen);
      search.worklist =
          decoder_allocate(decoder, (2 * (size_t)count + 2) * sizeof *search.worklist);
    }
    ((MbarrierForm *)(uintptr_t)code[i].decoded)->repeated = is_repeated(&search, i);
  }
}

/* ---- In words -------------------------------------------------------------------------------- */
/* Describes what a blocked wait waits for. */
typedef struct {
  uint32_t address, asked, phases; /* asked: a parity; phases: completed phases */
  Barrier barrier;
  uint64_t coming; /* bytes */
  uint32_t copies;
  int64_t rest; /* bytes still pending (or, if negative, surplus) after all copies have landed */
} BlockedWait;

static bool wait_of(Warp *warp, const Instruction *in, int lane, BlockedWait *wait) {
  if (in->execute != run_mbarrier_wait) return false;
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  wait->address = (uint32_t)lane_address(warp, &in->operand[form->address], lane);
  const Cta *cta = shared_address_cta(warp, wait->address);
  if (!cta || SHARED_OFFSET(wait->address) + 8 > cta->shared_bytes) return false;
  uint64_t state = lane_value(warp, &in->operand[form->count], lane);
  wait->asked = form->parity ? (uint32_t)(state & 1u) : (uint32_t)(state >> PHASE_AT);
  wait->barrier = barrier_read(cluster, wait->address);
  wait->phases = record_of(cluster, wait->address)->phases;
  async_in_flight(cluster, wait->address, &wait->coming, &wait->copies);
  wait->rest = wait->barrier.tx - (int64_t)wait->coming;
  return true;
}

/* Is there another barrier with exactly the surplus that is missing here? */
static bool surplus_elsewhere(Cluster *cluster, int64_t bytes) {
  const PhaseTable *table = *async_barrier_notes(cluster);
  for (uint32_t i = 0; table && i < table->capacity; i++) {
    const PhaseRecord *record = &table->records[i];
    if (record->key && record->alive && barrier_unpack(record->word).tx == -bytes) return true;
  }
  return false;
}

/* Arrivals are missing here, and the barrier at the same offset in another CTA has received some,
 * although no thread ever waits for it. The rank of that CTA, or -1. */
static int rank_of_stray_arrivals(Cluster *cluster, const BlockedWait *wait) {
  if (!wait->barrier.pending || wait->rest) return -1;
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    if (rank == SHARED_RANK(wait->address)) continue;
    const PhaseRecord *record = record_of(cluster, rank << 24 | SHARED_OFFSET(wait->address));
    if (!record->alive || record->asked) continue;
    if (record->arrived | record->arrived_before[0]) return (int)rank;
  }
  return -1;
}

/* The two phases that went by ended with arrivals of different warps: each was over before all thread
 * arrive had done so. */
static bool count_is_too_low(Cluster *cluster, const BlockedWait *wait) {
  const PhaseRecord *record = record_of(cluster, wait->address);
  const uint64_t *before = record->arrived_before;
  return before[0] && before[1] && !(before[0] & before[1]);
}

const char *mbarrier_hang_rule(Warp *warp, const Instruction *in, int lane) {
  BlockedWait wait;
  if (!wait_of(warp, in, lane, &wait)) return "hang";
  if (wait.rest > 0)
    return surplus_elsewhere(warp->cta->cluster, wait.rest) ? "hang-bytes-on-another-barrier"
                                                            : "hang-too-many-bytes-expected";
  if (wait.rest < 0) return "hang-too-few-bytes-expected";
  /* It should wait for the phase after the last one that it saw complete. */
  uint32_t next = settings()->check ? check_mbarrier_next_phase(warp, wait.address) : wait.phases;
  if ((next & 1u) != wait.asked) return "waited-for-wrong-phase";
  if (wait.phases >= next + 2)
    return count_is_too_low(warp->cta->cluster, &wait) ? "hang-arrival-count-too-low"
                                                       : "phase-missed";
  if (rank_of_stray_arrivals(warp->cta->cluster, &wait) >= 0)
    return "hang-arrivals-at-another-rank";
  return wait.barrier.pending ? "hang-arrivals-missing" : "hang";
}

bool mbarrier_some_arrived(Warp *warp, const Instruction *in, int lane) {
  BlockedWait wait;
  return wait_of(warp, in, lane, &wait) && wait.barrier.pending > 0 &&
         wait.barrier.pending < wait.barrier.expected;
}

static const char *cause_of(const char *rule) {
  static const char *const causes[][2] = {
      {"hang-bytes-on-another-barrier",
       "a copy reports to another barrier than the one that expects its bytes: there just as many "
       "came unexpectedly"},
      {"hang-too-many-bytes-expected",
       "more bytes are expected than copies will bring: expect_tx promised too many, or a copy was "
       "not issued"},
      {"hang-too-few-bytes-expected",
       "copies brought more bytes than were expected: expect_tx promised too few, or on another "
       "barrier"},
      {"waited-for-wrong-phase",
       "the wait asks for the wrong parity: the first phase has parity 0, and it flips with every "
       "phase"},
      {"phase-missed",
       "this warp comes too late: a whole phase passed between the one it waits for and the "
       "current one, and the parity cannot distinguish them. Let no thread begin the next phase "
       "before all have seen the end of this one, or use one barrier for each copy"},
      {"hang-arrival-count-too-low",
       "mbarrier.init's count is too low: two phases went by while this warp waited for one, each "
       "of them over with the arrivals of other warps. Count every thread that arrives, in all "
       "CTAs "
       "of the cluster"},
      {"hang-arrivals-missing", "a thread has not arrived, or mbarrier.init's count is too high"},
  };
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
    if (strcmp(causes[i][0], rule) == 0) return causes[i][1];
  return NULL;
}

void mbarrier_describe(Warp *warp, const Instruction *in, int lane, FILE *out) {
  BlockedWait wait;
  if (!wait_of(warp, in, lane, &wait)) return;
  fprintf(out,
          "        waits for the phase of parity %u at the mbarrier at shared address 0x%08x\n"
          "        phase %u (parity %u) is running: %u of %u arrivals pending, %d bytes pending\n",
          wait.asked, wait.address, wait.phases, wait.barrier.phase, wait.barrier.pending,
          wait.barrier.expected, wait.barrier.tx);
  if (wait.coming)
    fprintf(out, "        %llu bytes are in flight in %u copies\n", (unsigned long long)wait.coming,
            wait.copies);
  if (wait.rest)
    fprintf(out, "        that is %lld bytes %s\n",
            (long long)(wait.rest < 0 ? -wait.rest : wait.rest),
            wait.rest > 0 ? "too few" : "too many");
  int rank = rank_of_stray_arrivals(warp->cta->cluster, &wait);
  const char *rule = mbarrier_hang_rule(warp, in, lane), *cause = cause_of(rule);
  if (strcmp(rule, "hang-arrivals-at-another-rank") == 0)
    fprintf(
        out,
        "        likely cause: arrivals go to the wrong rank: the barrier at the same offset of "
        "CTA %d has had some, and nobody waits for it. Arrive at the barrier of the CTA that "
        "waits: mapa with its rank, here %u\n",
        rank, SHARED_RANK(wait.address));
  else if (cause)
    fprintf(out, "        likely cause: %s\n", cause);
}
