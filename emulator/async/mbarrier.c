/* mbarrier.c: the barrier in shared memory that counts arrivals and bytes: every mbarrier.*.
 *
 * Its 64 bits as an H200 lays them out (emulator/tests/mbarrier_cases.cu):
 *
 *   63      62 .. 43           42   41 .. 21     20 .. 1              0
 *   phase   -pending arrivals  0    -tx-count    -expected arrivals   0
 *
 * Counts are stored negated. The state of a live barrier is not in shared memory: ordinary loads
 * see the old contents, and mbarrier.inval writes the state back. So the state is in a table here.
 * A word that was never initialised is read from memory at its first use, whatever it contains. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "async/mbarrier.h"
#include "base/holds.h"
#include "base/access.h"
#include "base/fault.h"
#include "base/fill.h"
#include "base/settings.h"
#include "state/cluster.h"
#include "state/notes.h"
#include "state/polling.h"

#define ZERO_BITS (1ull << 42 | 1ull)

static uint64_t barrier_pack(Barrier barrier) {
  return (uint64_t)(barrier.phase & 1u) << PHASE_AT |
         (uint64_t)((0u - barrier.pending) & COUNT_MASK) << PENDING_AT |
         (uint64_t)((0u - (uint32_t)barrier.tx) & (2 * TX_LIMIT - 1)) << TX_AT |
         (uint64_t)((0u - barrier.expected) & COUNT_MASK) << EXPECTED_AT;
}

/* ---- The table ------------------------------------------------------------------------------- */
enum { FIRST_CAPACITY = 64 };

static PhaseRecord *find_record(const PhaseTable *table, uint32_t key) {
  uint32_t at = (key * 2654435761u) >> 7;
  for (;; at++) {
    PhaseRecord *record = &table->records[at & (table->capacity - 1)];
    if (record->key == key || !record->key) return record;
  }
}

static void double_capacity(PhaseTable *table) {
  PhaseTable larger = {.capacity = table->capacity * 2};
  larger.records = new_zeros(larger.capacity, sizeof *larger.records);
  for (uint32_t i = 0; i < table->capacity; i++) {
    if (!table->records[i].key) continue;
    *find_record(&larger, table->records[i].key) = table->records[i];
    larger.used++;
  }
  HOLDS(larger.used == table->used);
  free(table->records);
  *table = larger;
}

PhaseRecord *mbarrier_find_record(Cluster *cluster, uint32_t address) {
  PhaseTable *table = cluster->async->barriers;
  if (!table) {
    cluster->async->barriers = table = new_zeros(1, sizeof *table);
    table->capacity = FIRST_CAPACITY;
    table->records = new_zeros(FIRST_CAPACITY, sizeof *table->records);
  }
  uint32_t key = address | 1;
  PhaseRecord *record = find_record(table, key);
  if (!record->key) {
    if (table->used * 2 >= table->capacity) {
      double_capacity(table);
      record = find_record(table, key);
    }
    record->key = key;
    table->used++;
    HOLDS(table->used < table->capacity); /* so find_record ends */
  }
  table->last = record;
  return record;
}

const PhaseRecord *mbarrier_nearest(Cluster *cluster, uint32_t address, const PhaseRecord *here,
                                    BarrierTest *test) {
  const PhaseTable *table = cluster->async->barriers;
  const PhaseRecord *nearest = NULL;
  for (uint32_t i = 0; table && i < table->capacity; i++) {
    const PhaseRecord *other = &table->records[i];
    if (other->alive && other->begun.in && other != here &&
        SHARED_RANK(other->key) == SHARED_RANK(address) && test(here, other) &&
        (!nearest || llabs((int64_t)other->key - address) < llabs((int64_t)nearest->key - address)))
      nearest = other;
  }
  return nearest;
}

void mbarrier_notes_free(PhaseTable *table) {
  if (!table) return;
  free(table->records);
  free(table);
}

static PhaseRecord *barrier_note(Cluster *cluster, uint32_t address) {
  PhaseRecord *record = mbarrier_record(cluster, address);
  if (!record->alive) {
    memcpy(&record->word, shared_pointer(cluster, address), 8);
    record->alive = true;
    mbarrier_changed(cluster);
  }
  return record;
}

Barrier mbarrier_read(Cluster *cluster, uint32_t address) {
  return barrier_unpack(barrier_note(cluster, address)->word);
}

static void barrier_write(Cluster *cluster, uint32_t address, Barrier barrier) {
  uint64_t word = barrier_pack(barrier);
  HOLDS_DEARLY(barrier_unpack(word).pending == barrier.pending &&
               barrier_unpack(word).tx == barrier.tx);
  barrier_note(cluster, address)->word = word;
  if (__builtin_expect(polling_is_on(cluster), 0)) polling_changed(cluster, address, word);
}

/* ---- The operations -------------------------------------------------------------------------- */
typedef struct {
  Warp *warp;
  const Instruction *in;
  int lane;
} MbarrierThread;

static bool refuse_count(MbarrierThread thread, const Rule *rule, uint32_t address,
                         const char *what, long long value, long long limit) {
  fault(thread.warp, thread.in, 1u << thread.lane, 719, rule,
        "the mbarrier at shared address 0x%08x: %s (%lld, but at most %lld); was it initialised, "
        "with the right count, and is every arrival and byte counted once a phase?",
        address, what, value, limit);
  return false;
}

/* Of a thread in its cluster; see PhaseRecord.armed. */
static uint32_t number_of(MbarrierThread thread) {
  return agent_of(thread.warp) * LANES + (uint32_t)thread.lane + 1;
}

/* The thread has waited for a free buffer, and only another block has said that it is: the arrivals are at the
 * wrong rank. */
static bool refuse_freed_by_others(MbarrierThread thread, uint32_t address, int32_t rest) {
  const MbarrierPast past = mbarrier_past(thread.warp, address, 0);
  if (!past.freed_by_others) return false;
  fault(thread.warp, thread.in, 1u << thread.lane, 719, RULE(ARRIVAL_AT_ANOTHER_RANK),
        "the mbarrier at shared address 0x%08x: phase %u has all its arrivals and still waits "
        "for %d bytes, but this thread announces those of another copy. It has waited for the "
        "barrier at shared-memory offset 0x%x, where only threads of rank %u have arrived and "
        "none of its own rank %u.\n"
        "These arrivals go to the wrong rank: arrive at the barrier of the block whose buffer "
        "has been read (mapa with its rank).",
        address, mbarrier_record(thread.warp->cta->cluster, address)->phases, rest,
        past.freed_offset, past.freed_by, thread.warp->cta->rank);
  return true;
}

/* An arrival that announces bytes, in a phase that has all its arrivals. rest: the bytes that the phase
 * waits for. */
static bool refuse_to_arm(MbarrierThread thread, uint32_t address, Barrier barrier, int32_t rest) {
  const PhaseRecord *record = mbarrier_record(thread.warp->cta->cluster, address);
  const Cta *cta = thread.warp->cta;
  const MbarrierPast past = mbarrier_past(thread.warp, address, 0);
  const uint32_t before = record->armed, who = (before - 1) % (cta->warp_count * LANES);
  const bool own = before == number_of(thread);
  const Phrase of_rank =
      rank_phrase(cta->cluster->cta_count, (before - 1) / (cta->warp_count * LANES));
  if (own && rest > 0 && refuse_freed_by_others(thread, address, rest)) return false;
  if (before && rest > 0 && (own || past.announced_again)) {
    const Phrase advice = phrase(
        "This thread has asked an mbarrier %s, got \"not yet\" and continued: repeat that wait "
        "until it returns true.",
        place_of(past.not_yet).text);
    fault(thread.warp, thread.in, 1u << thread.lane, 719, RULE(TOO_MANY_ARRIVALS),
          "the mbarrier at shared address 0x%08x: phase %u has all its arrivals and still waits "
          "for %d bytes, which thread %u%s announced before. This thread announces those of the "
          "next copy, a round too early.\n%s",
          address, record->phases, rest, who, of_rank.text,
          past.wait.text[0] ? past.wait.text
          : past.not_yet
              ? advice.text
              : "Before a stage is filled again, wait until its readers have released it. "
                "If this thread does wait, then for the wrong parity, or at a barrier "
                "whose mbarrier.init counts too few arrivals.");
    return false;
  }
  if (!before || own)
    return refuse_count(thread, RULE(TOO_MANY_ARRIVALS), address,
                        "more arrivals than are pending in this phase", 1, barrier.pending);
  fault(thread.warp, thread.in, 1u << thread.lane, 719, RULE(TOO_MANY_ARRIVALS),
        "the mbarrier at shared address 0x%08x: thread %u%s has announced bytes in phase %u "
        "already, and this thread announces bytes as well, but mbarrier.init asks for %u "
        "arrival%s a phase.\n"
        "Let one thread announce the bytes of all copies (and issue them), or count every thread "
        "that arrives.",
        address, who, of_rank.text, record->phases, barrier.expected,
        barrier.expected == 1 ? "" : "s");
  return false;
}

/* Stores the barrier, or completes its phase; false after a fault. */
static bool store_or_complete(MbarrierThread thread, uint32_t address, Barrier barrier) {
  Cluster *cluster = thread.warp->cta->cluster;
  if (barrier.tx >= TX_LIMIT || barrier.tx <= -TX_LIMIT)
    return refuse_count(thread, RULE(MBARRIER_COUNT), address,
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
  PhaseRecord *record = mbarrier_record(cluster, address);
  uint32_t finished = record->phases++;
  record->arrived_before[1] = record->arrived_before[0];
  record->arrived_before[0] = record->arrived;
  record->arrived = 0;
  record->bytes_landed = false;
  record->sent = 0;
  record->armed = 0;
  emit_phase_completed(cluster, address, finished);
  mbarrier_changed(cluster);
  return true;
}

/* here->key: how many. */
static bool lacks_as_many(const PhaseRecord *here, const PhaseRecord *other) {
  return barrier_unpack(other->word).pending >= here->key;
}

/* How many lanes arrive there by this instruction? */
static uint32_t lanes_arriving(MbarrierThread thread, uint32_t address) {
  const LaneMask mask = current_group(thread.warp)->mask;
  if (thread.in->execute != mbarrier_arrive) return (uint32_t)__builtin_popcount(mask);
  const MbarrierForm *form = thread.in->decoded;
  uint32_t count = 0;
  FOR_LANES(lane, mask)
    count +=
        (uint32_t)lane_address(thread.warp, &thread.in->operand[form->address], lane) == address;
  return count;
}

static bool refuse_arrival(MbarrierThread thread, uint32_t address, const Barrier *barrier) {
  const uint32_t lanes = lanes_arriving(thread, address);
  const PhaseRecord least = {.key = lanes};
  const PhaseRecord *other =
      mbarrier_nearest(thread.warp->cta->cluster, address, &least, lacks_as_many);
  fault(
      thread.warp, thread.in, 1u << thread.lane, 719, RULE(TOO_MANY_ARRIVALS),
      "the mbarrier at shared address 0x%08x has had the %u arrival%s of this phase, which "
      "mbarrier.init asks for, and %u lane%s of this warp arrive%s there by one instruction.\n"
      "%s%s",
      address, barrier->expected, barrier->expected == 1 ? "" : "s", lanes, lanes == 1 ? "" : "s",
      lanes == 1 ? "s" : "",
      !other
          ? ""
          : phrase("Is the address or index of the barrier right? The nearest that still waits for "
                   "arrivals is that at 0x%08x. ",
                   other->key & ~1u)
                .text,
      lanes > 1 ? "Let one lane arrive for its warp, after __syncwarp(), or count every thread "
                  "that arrives."
                : "Wait for the phase in this thread before it arrives again, or count every "
                  "thread that arrives in mbarrier.init.");
  return false;
}

static bool take_arrivals(MbarrierThread thread, uint32_t address, Barrier *barrier, uint32_t count,
                          bool drop) {
  if (count == 1 && barrier->pending == 0) return refuse_arrival(thread, address, barrier);
  if (count > barrier->pending)
    return refuse_count(thread, RULE(TOO_MANY_ARRIVALS), address,
                        "more arrivals than are pending in this phase", count, barrier->pending);
  if (drop && count > barrier->expected)
    return refuse_count(thread, RULE(TOO_MANY_ARRIVALS), address,
                        "more arrivals are dropped than are expected", count, barrier->expected);
  barrier->pending -= count;
  if (drop) barrier->expected -= count;
  return true;
}

void mbarrier_complete_tx(AsyncOperation *operation, uint32_t address) {
  MbarrierThread thread = {operation->warp, operation->in, operation->lane};
  Barrier barrier = mbarrier_read(thread.warp->cta->cluster, address);
  barrier.tx -= (int32_t)operation->bytes;
  PhaseRecord *record = mbarrier_record(thread.warp->cta->cluster, address);
  record->bytes_landed = true;
  record->copies[record->copy_count].in = operation->in;
  record->copies[record->copy_count].mask = operation->cta_mask;
  record->copies[record->copy_count].from = operation->warp->cta->rank;
  record->copy_count = (record->copy_count + 1) % COPIES_KEPT;
  record->sent |= mbarrier_bit_of(thread.warp);
  record->ever_sent |= record->sent;
  if (notes.wanted)
    note_place(NOTE_ARRIVE, shared_pointer(thread.warp->cta->cluster, address), 0, NOTE_BYTES);
  if (store_or_complete(thread, address, barrier))
    emit_mbarrier_state_changed(thread.warp, thread.in, thread.lane, address, "landed", operation);
}

void mbarrier_async_arrive(AsyncOperation *operation) {
  MbarrierThread thread = {operation->warp, operation->in, operation->lane};
  Barrier barrier = mbarrier_read(thread.warp->cta->cluster, operation->barrier);
  note(NOTE_ARRIVE, shared_pointer(thread.warp->cta->cluster, operation->barrier), 0);
  if (!take_arrivals(thread, operation->barrier, &barrier, 1, false)) return;
  emit_mbarrier_arrival(thread.warp, thread.in, thread.lane, operation->barrier, REACH_CTA, true);
  if (store_or_complete(thread, operation->barrier, barrier))
    emit_mbarrier_state_changed(thread.warp, thread.in, thread.lane, operation->barrier, "landed",
                                operation);
}

void mbarrier_add_pending(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  Cluster *cluster = warp->cta->cluster;
  Barrier barrier = mbarrier_read(cluster, address);
  note(NOTE_EXPECT, shared_pointer(cluster, address), 0);
  barrier.pending = (barrier.pending + 1) & COUNT_MASK;
  barrier_write(cluster, address, barrier);
  emit_mbarrier_state_changed(warp, in, lane, address, "pending", NULL);
}

bool window_address(Warp *warp, const Instruction *in, int lane, uint64_t value,
                    SharedWindow window, uint32_t *address) {
  if (window == WINDOW_GENERIC) {
    if ((value & GENERIC_TAG_MASK) != GENERIC_SHARED) {
      fault(warp, in, 1u << lane, 715, RULE(ADDRESS_SPACE),
            "generic address 0x%llx does not point to shared memory, the only memory that this "
            "instruction accesses; pass the address of a __shared__ variable",
            (unsigned long long)value);
      return false;
    }
  }
  *address = (uint32_t)value;
  uint32_t ctas = warp->cta->cluster->cta_count;
  if (SHARED_RANK(*address) >= ctas) {
    fault(warp, in, 1u << lane, 700, RULE(ADDRESS_SPACE),
          "shared address 0x%08x names the block of rank %u, but the cluster has %u", *address,
          SHARED_RANK(*address), ctas);
    return false;
  }
  if (window == WINDOW_CTA && SHARED_RANK(*address) != warp->cta->rank) {
    fault(warp, in, 1u << lane, 700, RULE(ADDRESS_SPACE),
          "shared address 0x%08x lies in the block of rank %u, this thread is in rank %u, and "
          "the instruction says .shared::cta, a block's own memory; write .shared::cluster where "
          "the instruction has that form",
          *address, SHARED_RANK(*address), warp->cta->rank);
    return false;
  }
  return true;
}

static bool is_initialised(const PhaseRecord *here, const PhaseRecord *other) {
  (void)here, (void)other;
  return true;
}

static bool barrier_place(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  const Cta *cta = shared_address_cta(warp, address);
  const PhaseRecord *nearest =
      cta && address % 8 == 0 && SHARED_OFFSET(address) + 8 > cta->shared_bytes
          ? mbarrier_nearest(warp->cta->cluster, address, NULL, is_initialised)
          : NULL;
  if (nearest) {
    fault(
        warp, in, 1u << lane, 700, RULE(SHARED_OUT_OF_BOUNDS),
        "an mbarrier at shared address 0x%x, beyond the block's shared memory, which has %u bytes "
        "(static and dynamic).\nIs the address or index of the barrier right? The nearest that has "
        "been initialised is at 0x%x.",
        address, cta->shared_bytes - SHARED_RESERVED_BYTES, nearest->key & ~1u);
    return false;
  }
  return shared_bytes_at(warp, in, lane, address, 8, 8, ACCESS_ATOMIC) != NULL;
}

static bool has_barrier(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  uint64_t word = barrier_note(warp->cta->cluster, address)->word;
  if (!(word & ZERO_BITS)) return true;
  fault(warp, in, 1u << lane, 719, RULE(MBARRIER_UNUSABLE),
        "there is no mbarrier at shared address 0x%08x (its 64 bits are 0x%016llx, which no "
        "mbarrier can be): mbarrier.init first, then a fence and a barrier before others use it",
        address, (unsigned long long)word);
  return false;
}

static bool barrier_usable(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  bool known = false;
  emit_mbarrier_used(warp, in, lane, address, &known);
  return has_barrier(warp, in, lane, address);
}

bool mbarrier_check_target(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  return barrier_place(warp, in, lane, address) && barrier_usable(warp, in, lane, address);
}

/* ---- Instructions ---------------------------------------------------------------------------- */
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

/* In its first phase, before any arrival. */
static inline bool mbarrier_starts(uint64_t word, uint32_t count) {
  const Barrier barrier = barrier_unpack(word);
  return barrier.pending == count && barrier.expected == count && !barrier.tx && !barrier.phase;
}

StepResult mbarrier_init(Warp *warp, const Instruction *in, LaneMask mask) {
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  FOR_LANES(lane, mask) {
    uint32_t address;
    if (!lane_barrier(warp, in, lane, &address)) return STEP_FAULT;
    uint32_t count = operand_u32(warp, in, form->count, lane);
    if (count == 0 || count > COUNT_MASK)
      finding(warp, in, 1u << lane, RULE(MBARRIER_COUNT),
              "mbarrier.init with a count of %u: it must be 1 to %u, the number of arrivals that "
              "complete a phase",
              count, COUNT_MASK);
    /* The GPU's arithmetic: an out-of-range count carries into other fields. */
    uint32_t negated = (1u << 20) - count;
    PhaseRecord *record = mbarrier_record(cluster, address);
    record->word = (uint64_t)(negated << 11) << 32 | negated << 1;
    HOLDS_DEARLY(count == 0 || count > COUNT_MASK || mbarrier_starts(record->word, count));
    record->alive = true;
    record->phases = 0;
    record->asked = false;
    record->passed_fresh = NULL;
    note(NOTE_RESET, shared_pointer(cluster, address), 0);
    record->arrived = record->arrived_before[0] = record->arrived_before[1] = 0;
    record->expects = record->arrives = NULL;
    memset(record->copies, 0, sizeof record->copies);
    record->ever_arrived = record->sent = record->ever_sent = 0;
    record->bytes_landed = false;
    record->armed = 0;
    mbarrier_note_beginning(warp, in, lane, record);
    if (polling_is_on(cluster)) polling_changed(cluster, address, record->word);
    emit_mbarrier_begun(warp, in, lane, address, count);
    emit_mbarrier_state_changed(warp, in, lane, address, "init", NULL);
  }
  mbarrier_changed(cluster);
  return STEP_NEXT;
}

StepResult mbarrier_inval(Warp *warp, const Instruction *in, LaneMask mask) {
  FOR_LANES(lane, mask) {
    uint32_t address;
    if (!lane_barrier(warp, in, lane, &address)) return STEP_FAULT;
    if (!barrier_usable(warp, in, lane, address)) return STEP_FAULT;
    emit_mbarrier_state_changed(warp, in, lane, address, "inval", NULL);
    PhaseRecord *record = barrier_note(warp->cta->cluster, address);
    note(NOTE_RESET, shared_pointer(warp->cta->cluster, address), 0);
    note(NOTE_WRITE, shared_pointer(warp->cta->cluster, address), 8);
    memcpy(shared_pointer(warp->cta->cluster, address), &record->word, 8);
    if (is_tried_again()) fill_unwritten(shared_pointer(warp->cta->cluster, address), 8, address);
    record->alive = false;
    record->ended = true;
    warp->cta->cluster->mbarrier_changes++; /* who waits for it finds it gone at its next try */
    if (polling_is_on(warp->cta->cluster)) polling_event(warp->cta->cluster);
    emit_mbarrier_ended(warp, in, lane, address);
  }
  return STEP_NEXT;
}

/* expect_tx and complete_tx */
StepResult mbarrier_tx(Warp *warp, const Instruction *in, LaneMask mask) {
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  FOR_LANES(lane, mask) {
    uint32_t address;
    if (!lane_barrier(warp, in, lane, &address)) return STEP_FAULT;
    if (!barrier_usable(warp, in, lane, address)) return STEP_FAULT;
    uint32_t bytes = operand_u32(warp, in, form->count, lane);
    if (!form->complete) {
      mbarrier_record(cluster, address)->expects = in;
      emit_bytes_expected(warp, in, lane, address, bytes);
    }
    Barrier barrier = mbarrier_read(cluster, address);
    if (bytes >= 2 * TX_LIMIT) bytes = 2 * TX_LIMIT; /* too large in any case */
    barrier.tx += form->complete ? -(int32_t)bytes : (int32_t)bytes;
    if (notes.wanted)
      note_place(form->complete ? NOTE_ARRIVE : NOTE_EXPECT, shared_pointer(cluster, address), 0,
                 NOTE_BYTES);
    const MbarrierThread thread = {warp, in, lane};
    if (!store_or_complete(thread, address, barrier)) return STEP_FAULT;
    emit_mbarrier_state_changed(warp, in, lane, address, form->complete ? "complete_tx" : "expect",
                                NULL);
  }
  return STEP_NEXT;
}

static Reach release_of(const MbarrierForm *form) {
  if (!form->release) return REACH_PLAIN;
  return form->cluster_scope ? REACH_CLUSTER : REACH_CTA;
}

/* Has a lower lane arrived by the same execution of an instruction, in a phase that is over now? */
static bool phase_ended_between(PhaseRecord *record, uint32_t execution) {
  bool ended = record->execution == execution && record->phases_then != record->phases;
  record->execution = execution;
  record->phases_then = record->phases;
  return ended;
}

StepResult mbarrier_arrive(Warp *warp, const Instruction *in, LaneMask mask) {
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  uint32_t address = 0, execution = 0;
  uint64_t last = 0;  /* usually all lanes arrive at one barrier, */
  bool known = false; /* and the checker has nothing to say about that */
  FOR_LANES(lane, mask) {
    const uint64_t named = lane_address(warp, &in->operand[form->address], lane);
    if (!address || named != last) {
      if (!lane_barrier(warp, in, lane, &address)) return STEP_FAULT;
      last = named;
      known = false;
    }
    if (!known) emit_mbarrier_used(warp, in, lane, address, &known);
    if (!has_barrier(warp, in, lane, address)) return STEP_FAULT;
    Barrier barrier = mbarrier_read(cluster, address);
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
      emit_bytes_expected(warp, in, lane, address, bytes);
    }
    MbarrierThread thread = {warp, in, lane};
    note(NOTE_ARRIVE, shared_pointer(cluster, address), 0);
    if (form->expect && !barrier.pending) {
      refuse_to_arm(thread, address, barrier, barrier.tx - (int32_t)bytes);
      return STEP_FAULT;
    }
    if (!take_arrivals(thread, address, &barrier, count, form->drop)) return STEP_FAULT;
    for (uint32_t i = 0; i < count; i++)
      emit_mbarrier_arrival(warp, in, lane, address, release_of(form), false);
    PhaseRecord *record = mbarrier_record(cluster, address);
    if (!execution) execution = ++cluster->async->barriers->executions;
    if (phase_ended_between(record, execution))
      emit_phase_ended_between(warp, in, lane, mask, address);
    if (!form->expect) record->arrived |= mbarrier_bit_of(warp);
    if (!form->expect) record->arrives = in;
    record->ever_arrived |= mbarrier_bit_of(warp);
    if (form->expect && !record->armed) record->armed = number_of(thread);
    if (form->expect) record->expects = in;
    if (!store_or_complete(thread, address, barrier)) return STEP_FAULT;
    emit_mbarrier_state_changed(warp, in, lane, address, form->drop ? "drop" : "arrive", NULL);
    if (form->token >= 0) set_lane_value(warp, &in->operand[form->token], lane, token);
  }
  return STEP_NEXT;
}

/* Neighbouring lanes that waited for the same barrier have learnt the same.
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
    const PhaseRecord *record = mbarrier_record(warp->cta->cluster, addresses[first]);
    emit_phase_observed(warp, in, alike, addresses[first], record->phases - 1, form->acquire);
  }
}

static StepResult blocked_on(Warp *warp, uint32_t address, uint32_t parity) {
  emit_blocks_on_mbarrier(warp, address, parity);
  return STEP_BLOCKED;
}

/* A try_wait may return "not yet" at any time. If the program does not repeat it at once, it
 * returns "not yet" whenever the phase has not completed, so that a missing loop shows up. In a
 * loop it waits, except that it sometimes returns "not yet" in the random schedule, and up to eight times in
 * a row where the loop may give up after a few attempts. So does one with a time limit, which a program may take
 * for a promise to wait that long. */
static bool answers_not_yet(Warp *warp, const MbarrierForm *form) {
  enum { ONE_IN = 8, ONE_IN_COUNTED = 4, ONE_IN_WITHOUT_LOOP = 2, IN_A_ROW = 8 };
  if (!form->repeated && !form->bounded) return true;
  if (settings()->schedule != SCHEDULE_RANDOM) return false;
  /* The last one of a row waits, so that ten attempts suffice where nothing else happens. */
  if (form->gives_up && warp->not_yet) return --warp->not_yet > 0;
  uint64_t drawn = cluster_random(warp->cta->cluster);
  uint64_t one_in = form->gives_up ? ONE_IN_COUNTED : form->repeated ? ONE_IN : ONE_IN_WITHOUT_LOOP;
  if (drawn % one_in) return false;
  if (form->gives_up) warp->not_yet = (uint8_t)(1 + drawn / one_in % IN_A_ROW);
  return true;
}

/* The parity of the phase that the lane waits for. The token that an arrival returns also counts the
 * arrivals that were pending, so those of a warp's lanes differ. */
static uint32_t asked_phase(const Warp *warp, const Instruction *in, int lane) {
  const MbarrierForm *form = in->decoded;
  uint64_t state = lane_value(warp, &in->operand[form->count], lane);
  return form->parity ? (uint32_t)(state & 1u) : (uint32_t)(state >> PHASE_AT);
}

/* The phase that these lanes have asked for is over, and the next one only lacks bytes that are in flight. Had they come
 * before the question, the answer would be about the phase behind that one: "not yet". */
static void check_phase_may_be_missed(Warp *warp, const Instruction *in, LaneMask lanes,
                                      uint32_t address) {
  const Cluster *cluster = warp->cta->cluster;
  const Barrier barrier = mbarrier_read(warp->cta->cluster, address);
  const uint32_t phases = mbarrier_record(warp->cta->cluster, address)->phases;
  uint64_t bytes;
  uint32_t operations;
  if (barrier.pending || barrier.tx <= 0 || !phases) return;
  if (mbarrier_past(warp, address, INIT_ONLY).known_over) return; /* it meant another phase */
  async_in_flight(cluster, address, &bytes, &operations);
  if (bytes != (uint64_t)barrier.tx) return;
  const Finding what = {.rule = RULE(PHASE_MAY_BE_MISSED),
                        .memory = ABOUT_BARRIER,
                        .rank = (uint8_t)SHARED_RANK(address),
                        .address = SHARED_OFFSET(address)};
  finding_of(warp, in, lanes, &what,
             "asks whether phase %u of the mbarrier at shared-memory offset 0x%x is over, while "
             "phase %u has all its arrivals and waits for %" PRIu64
             " bytes in flight. If they land first, this waits for the end of phase %u, which has "
             "the same parity.\n"
             "Let no thread begin the next phase (arrive, or expect bytes) before all that wait "
             "for this one have seen its end: arrivals on another barrier, or %s.",
             phases - 1, SHARED_OFFSET(address), phases, bytes, phases + 1,
             cluster->cta_count > 1 ? "a cluster barrier" : "__syncthreads()");
}

/* A program that asks but once may be lucky: the default order tells it "not yet" the first time, unless it knows that
 * the phase is over. */
static bool is_lucky(Warp *warp, const MbarrierForm *form, uint32_t address) {
  if (form->repeated || form->bounded || settings()->schedule != SCHEDULE_LATE) return false;
  return mbarrier_past(warp, address, INIT_ONLY).over_by_luck;
}

StepResult mbarrier_wait(Warp *warp, const Instruction *in, LaneMask mask) {
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  LaneMask complete = 0;
  uint32_t addresses[LANES], asked = 0;
  int before = -1;
  bool one_address = true;
  FOR_LANES(lane, mask) {
    const Operand *address = &in->operand[form->address];
    uint32_t phase = asked_phase(warp, in, lane);
    if (before >= 0 && phase == asked &&
        lane_address(warp, address, lane) == lane_address(warp, address, before)) {
      addresses[lane] = addresses[before]; /* usually all lanes of a warp wait for the same phase */
      complete |= (complete >> before & 1u) << lane;
      continue;
    }
    one_address = before < 0;
    before = lane;
    asked = phase;
    if (!lane_barrier(warp, in, lane, &addresses[lane])) return STEP_FAULT;
    /* Not initialised yet: wait and see if some thread does it, so that the report can distinguish
     * a missing synchronisation from a missing init. */
    PhaseRecord *record = mbarrier_record(cluster, addresses[lane]);
    record->asked = true;
    if (!record->alive && !record->ended && form->potentially_blocking && !cluster->waits_expire &&
        settings()->schedule != SCHEDULE_EXPLORE)
      return blocked_on(warp, addresses[lane], asked);
    if (!barrier_usable(warp, in, lane, addresses[lane])) return STEP_FAULT;
    /* The current phase has the other parity, so the requested phase is complete. */
    if (mbarrier_read(cluster, addresses[lane]).phase != asked &&
        !is_lucky(warp, form, addresses[lane])) {
      complete |= 1u << lane;
      if (record->phases == 0) record->passed_fresh = in;
    }
  }
  if (one_address && mask & (mask - 1)) emit_lanes_ask(warp, in, mask, addresses[before]);
  bool stops = (form->potentially_blocking && !answers_not_yet(warp, form)) || cluster->waits_stop;
  if (!complete && stops && !cluster->waits_expire)
    return blocked_on(warp, addresses[first_lane(mask)], asked);
  FOR_LANES(lane, notes.wanted ? mask : 0)
    note(complete >> lane & 1u && stops ? NOTE_PASS : NOTE_ASK,
         shared_pointer(cluster, addresses[lane]), 0);
  if (complete) emit_mbarrier_passed(warp, addresses[first_lane(complete)]);
  if (complete && settings()->checks)
    check_phase_may_be_missed(warp, in, complete, addresses[first_lane(complete)]);
  notify_observed(warp, in, complete, addresses);
  FOR_LANES(lane, mask & ~complete) emit_answered_not_yet(warp, in, lane, addresses[lane]);
  FOR_LANES(lane, mask) set_lane_predicate(warp, &in->operand[0], lane, (complete >> lane) & 1u);
  return complete == mask ? STEP_NEXT : STEP_YIELD;
}

StepResult mbarrier_pending_count(Warp *warp, const Instruction *in, LaneMask mask) {
  FOR_LANES(lane, mask)
    set_lane_value(warp, &in->operand[0], lane,
                   barrier_unpack(lane_value(warp, &in->operand[1], lane)).pending);
  return STEP_NEXT;
}
