/* mbarrier_hang.c: says in a report of a hang what a wait for an mbarrier waits for, and why. */
#include <stdlib.h>
#include <string.h>

#include "async/mbarrier.h"
#include "base/access.h"
#include "base/settings.h"
#include "base/report.h"
#include "ptx/program.h"
#include "state/groups.h"

/* Describes what a blocked wait waits for. */
typedef struct {
  uint32_t address, asked, phases; /* asked: a parity; phases: completed phases */
  Barrier barrier;
  uint64_t coming; /* bytes */
  uint32_t copies;
  int64_t rest; /* bytes still pending (or, if negative, surplus) after all copies have landed */
} BlockedWait;

static bool wait_of(Warp *warp, const Instruction *in, int lane, BlockedWait *wait) {
  if (in->execute != mbarrier_wait) return false;
  const MbarrierForm *form = in->decoded;
  Cluster *cluster = warp->cta->cluster;
  wait->address = (uint32_t)lane_address(warp, &in->operand[form->address], lane);
  const Cta *cta = shared_address_cta(warp, wait->address);
  if (!cta || SHARED_OFFSET(wait->address) + 8 > cta->shared_bytes) return false;
  uint64_t state = lane_value(warp, &in->operand[form->count], lane);
  wait->asked = form->parity ? (uint32_t)(state & 1u) : (uint32_t)(state >> PHASE_AT);
  wait->barrier = mbarrier_read(cluster, wait->address);
  wait->phases = mbarrier_record(cluster, wait->address)->phases;
  async_in_flight(cluster, wait->address, &wait->coming, &wait->copies);
  wait->rest = wait->barrier.tx - (int64_t)wait->coming;
  return true;
}

LaneMask mbarrier_waits_alike(Warp *warp, const Instruction *in, LaneMask lanes) {
  BlockedWait first, wait;
  LaneMask alike = 0;
  if (!wait_of(warp, in, first_lane(lanes), &first)) return lanes;
  FOR_LANES(lane, lanes)
    if (wait_of(warp, in, lane, &wait) && wait.address == first.address &&
        wait.asked == first.asked)
      alike |= 1u << lane;
  return alike;
}

static bool is_multicast(const Instruction *in) {
  return in->text && strstr(in->text, ".multicast");
}

/* The bytes that this barrier of another block has had too many came by a multicast that this rank got as well: they are
 * not those that it lacks. */
static bool came_to_both(const PhaseRecord *record, uint32_t rank) {
  for (uint32_t i = 0; i < COPIES_KEPT && SHARED_RANK(record->key) != rank; i++)
    if (record->copies[i].in && record->copies[i].mask >> rank & 1 &&
        is_multicast(record->copies[i].in))
      return true;
  return false;
}

/* Another barrier that has too many bytes where this one has too few, or the other way round; NULL: there is none. */
static const PhaseRecord *counterpart(Cluster *cluster, const BlockedWait *wait) {
  const PhaseTable *table = cluster->async->barriers;
  for (uint32_t i = 0; table && wait->rest && i < table->capacity; i++) {
    const PhaseRecord *record = &table->records[i];
    if (record->key && record->alive && barrier_unpack(record->word).tx == -wait->rest &&
        !(wait->rest > 0 && came_to_both(record, SHARED_RANK(wait->address))))
      return record;
  }
  return NULL;
}

/* Bytes of a phase that this block has not announced yet, from a copy of another one: its thread waits for something else. */
static bool came_early(Cluster *cluster, const BlockedWait *wait) {
  const PhaseRecord *record = mbarrier_record(cluster, wait->address);
  if (wait->rest >= 0 || !wait->barrier.pending || !wait->phases) return false;
  for (uint32_t i = 0; i < COPIES_KEPT; i++)
    if (record->copies[i].in && record->copies[i].from != SHARED_RANK(wait->address)) return true;
  return false;
}

/* Arrivals are missing here, and the barrier at the same offset in another block has received some,
 * although no thread ever waits for it. The rank of that block, or -1. */
static int rank_of_stray_arrivals(Cluster *cluster, const BlockedWait *wait) {
  if (!wait->barrier.pending || wait->rest) return -1;
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    if (rank == SHARED_RANK(wait->address)) continue;
    const PhaseRecord *record = mbarrier_record(cluster, rank << 24 | SHARED_OFFSET(wait->address));
    if (!record->alive || record->asked) continue;
    if (record->arrived | record->arrived_before[0]) return (int)rank;
  }
  return -1;
}

/* The two phases that went by ended with arrivals of different warps: each was over before all thread
 * arrive had done so. */
static bool count_is_too_low(Cluster *cluster, const BlockedWait *wait) {
  const PhaseRecord *record = mbarrier_record(cluster, wait->address);
  const uint64_t *before = record->arrived_before;
  return before[0] && before[1] && !(before[0] & before[1]);
}

/* Do those who have arrived there in earlier phases all wait for something other than an mbarrier, or have
 * they exited? Then they have left the loop in which they arrive. */
static bool arrivers_have_left(const Cluster *cluster, uint64_t arrivers) {
  FOR_WARPS(warp, cluster) {
    if (!(arrivers & mbarrier_bit_of(warp))) continue;
    for (uint32_t i = 0; i < warp->flow->count; i++) {
      const Group *group = &warp->flow->groups[i];
      if (!(group->function->code[group->place].traits &
            (CTA_BARRIER | CLUSTER_BARRIER | WARP_BARRIER)))
        return false;
    }
  }
  return true;
}

/* Nobody will arrive any more, and this warp waits: because it was so late that phases have passed of
 * which it knows nothing? Their number. */
static uint32_t phases_missed(Warp *warp, const BlockedWait *wait) {
  Cluster *cluster = warp->cta->cluster;
  if (!settings()->checks || wait->rest || wait->barrier.pending != wait->barrier.expected)
    return 0;
  uint32_t missed = mbarrier_past(warp, wait->address, wait->asked).missed_phases;
  return arrivers_have_left(cluster, mbarrier_record(cluster, wait->address)->ever_arrived) ? missed
                                                                                            : 0;
}

/* Nobody has ever arrived here, but at the barriers at the same offset of all other blocks. */
static bool rank_is_left_out(Cluster *cluster, const BlockedWait *wait) {
  if (cluster->cta_count == 1 || wait->rest || !wait->barrier.pending) return false;
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    const PhaseRecord *record = mbarrier_record(cluster, rank << 24 | SHARED_OFFSET(wait->address));
    bool own = rank == SHARED_RANK(wait->address);
    if (!record->alive || own == (record->ever_arrived != 0)) return false;
  }
  return true;
}

/* Only bytes are missing here, and the barrier at the same offset in another block has completed this
 * phase: the copies went there. The rank of that block, or -1. */
static int rank_that_has_the_bytes(Cluster *cluster, const BlockedWait *wait) {
  if (wait->barrier.pending || wait->rest <= 0) return -1;
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    if (rank == SHARED_RANK(wait->address)) continue;
    const PhaseRecord *record = mbarrier_record(cluster, rank << 24 | SHARED_OFFSET(wait->address));
    if (record->alive && record->phases > wait->phases) return (int)rank;
  }
  return -1;
}

const Rule *mbarrier_hang_rule(Warp *warp, const Instruction *in, int lane) {
  BlockedWait wait;
  if (!wait_of(warp, in, lane, &wait)) return RULE(HANG);
  if (rank_that_has_the_bytes(warp->cta->cluster, &wait) >= 0)
    return RULE(HANG_BYTES_AT_ANOTHER_RANK);
  if (wait.rest > 0)
    return counterpart(warp->cta->cluster, &wait) ? RULE(HANG_BYTES_ON_ANOTHER_BARRIER)
                                                  : RULE(HANG_TOO_MANY_BYTES_EXPECTED);
  if (wait.rest < 0)
    return came_early(warp->cta->cluster, &wait) ? RULE(HANG_ARRIVALS_MISSING)
                                                 : RULE(HANG_TOO_FEW_BYTES_EXPECTED);
  MbarrierPast past = {.next_phase = wait.phases};
  emit_mbarrier_past_asked(warp, wait.address, wait.asked, &past);
  if (past.lost) return RULE(MBARRIER_INIT_AGAIN);
  /* It should wait for the phase after the last one that it saw complete. */
  const uint32_t next = past.next_phase;
  if ((next & 1u) != wait.asked) return RULE(WAITED_FOR_WRONG_PHASE);
  if (wait.phases >= next + 2)
    return count_is_too_low(warp->cta->cluster, &wait) ? RULE(HANG_ARRIVAL_COUNT_TOO_LOW)
                                                       : RULE(PHASE_MISSED);
  if (rank_of_stray_arrivals(warp->cta->cluster, &wait) >= 0 ||
      rank_is_left_out(warp->cta->cluster, &wait))
    return RULE(HANG_ARRIVALS_AT_ANOTHER_RANK);
  if (phases_missed(warp, &wait)) return RULE(PHASE_MISSED);
  return wait.barrier.pending ? RULE(HANG_ARRIVALS_MISSING) : RULE(HANG);
}

/* Is there a barrier next to this one, before it, that one line has initialised with it and that has completed a phase?
 * Then both are stages of one ring. */
static bool stage_before_was_filled(Cluster *cluster, const PhaseRecord *record) {
  uint32_t address = record->key & ~1u;
  if (SHARED_OFFSET(address) < 8 || record->ever_arrived) return false;
  const PhaseTable *table = cluster->async->barriers;
  for (uint32_t i = 0; i < table->capacity; i++) {
    const PhaseRecord *before = &table->records[i];
    if (before->key == ((address - 8) | 1))
      return before->alive && before->phases > 0 && mbarrier_is_one_row(before, record);
  }
  return false;
}

/* The warps that arrived here, or at another stage of the ring, and not yet in the current phase. */
static uint64_t warps_to_arrive(Cluster *cluster, const PhaseRecord *record) {
  const PhaseTable *table = cluster->async->barriers;
  uint64_t arrivers = record->ever_arrived, arrived = record->arrived;
  for (uint32_t i = 0; i < table->capacity; i++)
    if (table->records[i].key && mbarrier_is_one_row(record, &table->records[i]))
      arrivers |= table->records[i].ever_arrived;
  if (record->armed) arrived |= 1ull << ((record->armed - 1) / LANES & 63);
  return arrivers & ~arrived;
}

bool mbarrier_fills(const Instruction *in) {
  const MbarrierForm *form = in->decoded;
  const uint32_t copies = ASYNC | OPERANDS_DECIDE | SEEN_BY_OTHERS,
                 not_these = ARRIVES | WHOLE_WARP;
  if (in->execute == mbarrier_arrive) return form->expect;
  if (in->execute == mbarrier_tx) return !form->complete;
  return (in->traits & copies) == copies && !(in->traits & not_these);
}

bool mbarrier_awaited(Warp *warp, const Instruction *in, int lane, AwaitedBarrier *awaited) {
  BlockedWait wait;
  if (!wait_of(warp, in, lane, &wait)) return false;
  const PhaseRecord *record = mbarrier_record(warp->cta->cluster, wait.address);
  *awaited = (AwaitedBarrier){
      .address = wait.address,
      .missing = wait.barrier.pending ? warps_to_arrive(warp->cta->cluster, record)
                 : wait.rest > 0      ? record->ever_sent & ~record->sent
                                      : 0,
      .pending = wait.barrier.pending,
      .expected = wait.barrier.expected,
      .phases = wait.phases,
      .bytes_landed = record->bytes_landed && !came_early(warp->cta->cluster, &wait),
      .passed_fresh = record->passed_fresh != NULL,
      .left_out = wait.phases == 0 && stage_before_was_filled(warp->cta->cluster, record)};
  return true;
}

static const char *cause_of(const Rule *rule, const PhaseRecord *record) {
  if (rule == RULE(HANG_TOO_MANY_BYTES_EXPECTED) && !record->bytes_landed)
    return "none of these bytes has come: no copy that names this barrier was issued (look at what "
           "its issue depends on), or an expect_tx has none";
  const struct {
    const Rule *rule;
    const char *cause;
  } CAUSES[] = {
      {RULE(HANG_BYTES_ON_ANOTHER_BARRIER),
       "a copy signals a different barrier from the one that expects its bytes"},
      {RULE(HANG_TOO_MANY_BYTES_EXPECTED),
       "more bytes are expected than copies will bring: expect_tx promised too many, a copy "
       "was not issued, or it brings less than a whole tile (a tensor map with a smaller box)"},
      {RULE(HANG_TOO_FEW_BYTES_EXPECTED),
       "copies brought more bytes than were expected: expect_tx promised too few, or on "
       "another barrier"},
      {RULE(WAITED_FOR_WRONG_PHASE),
       "the wait asks for the wrong parity: the first phase has parity 0, and it flips with "
       "every phase"},
      {RULE(MBARRIER_INIT_AGAIN),
       "the barrier was initialised again while this thread was still to wait for a phase of "
       "before: that phase and its arrivals are gone. Put __syncthreads() before the second "
       "mbarrier.init as well, so that all have seen the end of the last phase"},
      {RULE(PHASE_MISSED),
       "this warp comes too late: a whole phase passed between the one it waits for and the "
       "current one, and the parity cannot distinguish them. Let no thread begin the next "
       "phase before all have seen the end of this one, or use one barrier for each copy"},
      {RULE(HANG_ARRIVAL_COUNT_TOO_LOW),
       "mbarrier.init's count is too low: two phases went by while this warp waited for one, "
       "each of them over with the arrivals of other warps. Count every thread that arrives, "
       "in all blocks of the cluster"},
  };
  for (size_t i = 0; i < sizeof CAUSES / sizeof *CAUSES; i++)
    if (CAUSES[i].rule == rule) return CAUSES[i].cause;
  return NULL;
}

/* The line of mbarrier.init, and its number; and that of another stage, if it differs. */
static void describe_count(Cluster *cluster, const BlockedWait *wait, FILE *out) {
  const PhaseRecord *record = mbarrier_record(cluster, wait->address);
  const PhaseTable *table = cluster->async->barriers;
  fprintf(out,
          "        likely cause: a thread has not arrived, or mbarrier.init's count is too high");
  if (record->begun.in)
    fprintf(out, ": it is %u, %s", wait->barrier.expected, place_of(record->begun.in).text);
  for (uint32_t i = 0; i < table->capacity; i++) {
    const uint32_t count = barrier_unpack(table->records[i].word).expected;
    if (!mbarrier_is_one_row(record, &table->records[i]) || count >= wait->barrier.expected)
      continue;
    fprintf(out, ", where another barrier gets %u", count);
    break;
  }
  fputc('\n', out);
}

/* " (full[0])": the __shared__ variable that holds it. In one that is larger than any array of barriers it lies
 * among other things: " (stage+2048)", unless the source says more. */
static void print_name(Cluster *cluster, uint32_t address, FILE *out) {
  enum { BARRIER_BYTES = 8, MOST_IN_ARRAY = 64 };
  const Function *kernel = cluster->launch->kernel;
  const uint32_t offset = SHARED_OFFSET(address);
  Phrase name = NO_PHRASE;
  char in_source[512];
  uint32_t inside = 0, bytes = 0;
  for (uint32_t i = 0; i < kernel->module->shared_count; i++) {
    const Symbol *variable = kernel->module->shared[i];
    const uint32_t first = kernel->shared_offsets[i];
    if (first == 0 || offset < first || offset - first >= variable->bytes) continue;
    name = variable_name(variable->name);
    inside = offset - first;
    bytes = variable->bytes;
  }
  if (mbarrier_name_in_source(cluster, address, name.text, in_source, sizeof in_source))
    fprintf(out, " (%s)", in_source);
  else if (bytes > MOST_IN_ARRAY * BARRIER_BYTES || inside % BARRIER_BYTES)
    fprintf(out, " (%s+%u)", name.text, inside);
  else if (bytes > BARRIER_BYTES)
    fprintf(out, " (%s[%u])", name.text, inside / BARRIER_BYTES);
  else if (bytes)
    fprintf(out, " (%s)", name.text);
}

static bool has_had_arrivals_before(const PhaseRecord *here, const PhaseRecord *other) {
  return mbarrier_is_one_row(here, other) && other->ever_arrived && other->key < here->key;
}
static bool has_had_arrivals_behind(const PhaseRecord *here, const PhaseRecord *other) {
  return mbarrier_is_one_row(here, other) && other->ever_arrived && other->key > here->key;
}
/* A wait has passed the first phase of both, and at one of the two bytes are expected. */
static bool is_passed_fresh_too(const PhaseRecord *here, const PhaseRecord *other) {
  return here->passed_fresh && other->passed_fresh && !other->expects != !here->expects;
}
/* A phase is over, and no thread has ever asked for it, although it comes first: before this one in its row, or nothing
 * has ever come here. */
static bool is_never_asked(const PhaseRecord *here, const PhaseRecord *other) {
  return other->phases && !other->asked &&
         (mbarrier_is_one_row(here, other)
              ? other->key < here->key
              : !here->ever_arrived && !here->ever_sent && !here->expects);
}

static bool describe_never_asked(Cluster *cluster, const PhaseRecord *record, FILE *out) {
  const PhaseRecord *other = mbarrier_nearest(cluster, record->key, record, is_never_asked);
  if (!other) return false;
  fprintf(
      out,
      "        likely cause: this wait and the arrivals or copies name different barriers: a phase "
      "of that at shared address 0x%08x",
      other->key & ~1u);
  print_name(cluster, other->key & ~1u, out);
  fprintf(out, " is over, and no thread has asked for it\n");
  return true;
}

/* Has the warp arrived anywhere, or brought bytes? */
static bool has_done_something(const Cluster *cluster, const Warp *warp) {
  const PhaseTable *table = cluster->async->barriers;
  uint64_t done = 0;
  for (uint32_t i = 0; i < table->capacity; i++)
    if (table->records[i].key) done |= table->records[i].ever_arrived | table->records[i].ever_sent;
  return done & mbarrier_bit_of(warp);
}

/* Nobody has arrived yet: has a wait asked for the wrong parity, or do the arrivals go elsewhere? fills: the thread that
 * waits is one that fills a buffer. */
static bool describe_wrong_wait(const Warp *warp, const PhaseRecord *record, bool fills,
                                FILE *out) {
  Cluster *cluster = warp->cta->cluster;
  if (record->phases || record->ever_arrived || record->bytes_landed) return false;
  if (fills && !record->passed_fresh && !has_done_something(cluster, warp)) {
    fprintf(out,
            "        likely cause: this wait asks for parity 0, the end of the first phase, and no "
            "thread has arrived here yet. Before a buffer is filled for the first time, nobody has "
            "to free it: ask for parity 1 then, which a fresh barrier answers at once, or do not "
            "wait in the first round\n");
    return true;
  }
  const PhaseRecord *other = mbarrier_nearest(cluster, record->key, record, is_passed_fresh_too);
  if (other) {
    fprintf(out, "        likely cause: a wait %s for the mbarrier at shared address 0x%08x",
            place_of(other->passed_fresh).text, other->key & ~1u);
    print_name(cluster, other->key & ~1u, out);
    fprintf(out,
            " asked for parity 1 in the first phase, and went on at once, as one here has done. Of "
            "the two who hand a buffer to and fro only one may: who waits for data asks for parity "
            "0 first\n");
    return true;
  }
  other = mbarrier_nearest(cluster, record->key, record, has_had_arrivals_behind);
  if (!other || mbarrier_nearest(cluster, record->key, record, has_had_arrivals_before))
    return false;
  fprintf(out,
          "        likely cause: arrivals go to the wrong barrier: none has come here, and the one "
          "behind this, at shared address 0x%08x",
          other->key & ~1u);
  print_name(cluster, other->key & ~1u, out);
  fprintf(out, ", has had some: is the address or the stage of the arrival wrong?\n");
  return true;
}

/* Nobody has arrived in the phase: which of the usual mistakes of a ring is it? */
static void describe_no_arrival(Cluster *cluster, const PhaseRecord *record, FILE *out) {
  if (record->bytes_landed)
    fprintf(out,
            "        the bytes of this phase have come, but no thread has arrived: "
            "mbarrier.expect_tx only announces bytes. Use mbarrier.arrive.expect_tx, or arrive as "
            "well\n");
  else if (record->phases == 0 && stage_before_was_filled(cluster, record))
    fprintf(out,
            "        no thread has ever arrived here, but phases of the barrier before this one "
            "are over: do all who go round this ring use the same number of stages?\n");
  else if (record->phases == 0 && record->passed_fresh)
    fprintf(
        out,
        "        no thread has ever arrived here; only the first round passed without that: let "
        "those who use the buffer arrive here (mbarrier.arrive) when they are done with it\n");
  else if (record->phases == 0)
    fprintf(
        out,
        "        no thread has arrived here yet: if this barrier reports that a buffer is free, "
        "wait for parity 1 in the first round, which a fresh barrier answers at once, and let "
        "those who use the buffer arrive here\n");
  else if (arrivers_have_left(cluster, record->ever_arrived))
    fprintf(out,
            "        %u phase%s over, and the threads that arrived in them have left their loop: "
            "this one goes on for one round more\n",
            record->phases, record->phases == 1 ? " is" : "s are");
}

/* "rank 0", "ranks 0, 2 and 3" */
static void print_ranks(uint32_t mask, FILE *out) {
  fprintf(out, mask & (mask - 1) ? "ranks" : "rank");
  for (const char *before = " "; mask; mask &= mask - 1) {
    fprintf(out, "%s%d", before, __builtin_ctz(mask));
    before = mask & (mask - 1) && (mask & (mask - 1)) & ((mask & (mask - 1)) - 1) ? ", " : " and ";
  }
}

/* A multicast that has brought bytes to this barrier and not to that rank. */
static void describe_copy_without(Cluster *cluster, uint32_t address, uint32_t rank, FILE *out) {
  const PhaseRecord *record = mbarrier_record(cluster, address);
  for (uint32_t i = 0; i < COPIES_KEPT; i++) {
    if (!record->copies[i].in || record->copies[i].mask >> rank & 1 ||
        !is_multicast(record->copies[i].in))
      continue;
    fprintf(out,
            "The copy %s, by rank %u, has the mask 0x%x: ", place_of(record->copies[i].in).text,
            record->copies[i].from, record->copies[i].mask);
    print_ranks(record->copies[i].mask, out);
    fprintf(out, " got its bytes, and rank %u waits for as many. ", rank);
    return;
  }
}

/* What should have come here has come to another block of the cluster. */
static void describe_other_rank(Cluster *cluster, const BlockedWait *wait, FILE *out) {
  int arrivals = rank_of_stray_arrivals(cluster, wait),
      bytes = rank_that_has_the_bytes(cluster, wait);
  uint32_t own = SHARED_RANK(wait->address);
  if (bytes >= 0) {
    fprintf(out,
            "        likely cause: copies leave out this rank: the barrier at the same offset of "
            "rank %d has had all bytes of this phase. ",
            bytes);
    describe_copy_without(cluster, (uint32_t)bytes << 24 | SHARED_OFFSET(wait->address), own, out);
    fprintf(out,
            "Name rank %u in the multicast mask of each copy that both need. If a mask leaves rank "
            "%u out on purpose, another thread must arrive in its place at the barrier that frees "
            "the buffer\n",
            own, own);
  } else if (arrivals >= 0) {
    const PhaseRecord *record =
        mbarrier_record(cluster, (uint32_t)arrivals << 24 | SHARED_OFFSET(wait->address));
    fprintf(out,
            "        likely cause: arrivals go to the wrong rank: those %s come to the barrier at "
            "the same offset of rank %d, where no thread waits, and rank %u lacks them. Arrive at "
            "the barrier of the block that waits: mapa with its rank, here %u\n",
            place_of(record->arrives).text, arrivals, own, own);
  } else
    fprintf(
        out,
        "        likely cause: arrivals leave out this rank: the barriers at the same offset of "
        "all other blocks have had some. Arrive at rank %u as well\n",
        own);
}

void mbarrier_describe(Warp *warp, const Instruction *in, int lane, bool explained, bool fills,
                       FILE *out) {
  BlockedWait wait;
  if (!wait_of(warp, in, lane, &wait)) return;
  fprintf(out, "        waits for the phase of parity %u at the mbarrier at shared address 0x%08x",
          wait.asked, wait.address);
  print_name(warp->cta->cluster, wait.address, out);
  fprintf(
      out,
      "\n        phase %u (parity %u) is running: %u of %u arrivals pending, %d bytes pending\n",
      wait.phases, wait.barrier.phase, wait.barrier.pending, wait.barrier.expected,
      wait.barrier.tx);
  if (wait.coming)
    fprintf(out, "        %llu bytes are in flight in %u copies\n", (unsigned long long)wait.coming,
            wait.copies);
  if (wait.rest)
    fprintf(out, "        that is %lld bytes %s", (long long)llabs(wait.rest),
            wait.rest > 0 ? "too few"
            : came_early(warp->cta->cluster, &wait)
                ? "that were sent before they are announced here"
                : "too many");
  const PhaseRecord *record = mbarrier_record(warp->cta->cluster, wait.address);
  if (wait.rest && record->expects)
    fprintf(out, "; the last expect_tx was %s", place_of(record->expects).text);
  if (wait.rest) fputc('\n', out);
  if (explained) return;
  bool named = false;
  const Rule *rule = mbarrier_hang_rule(warp, in, lane);
  const char *cause = cause_of(rule, record);
  if (rule == RULE(HANG_ARRIVALS_AT_ANOTHER_RANK) || rule == RULE(HANG_BYTES_AT_ANOTHER_RANK))
    describe_other_rank(warp->cta->cluster, &wait, out);
  else if (rule == RULE(PHASE_MISSED) && phases_missed(warp, &wait))
    fprintf(out,
            "        likely cause: this warp comes too late: %u phase%s passed that it has not "
            "waited for, and now it waits for one that nobody begins. Let no thread begin the next "
            "phase before all have seen the end of this one: count the arrivals of each warp that "
            "waits\n",
            phases_missed(warp, &wait), phases_missed(warp, &wait) == 1 ? "" : "s");
  else if (rule == RULE(HANG_ARRIVALS_MISSING) || rule == RULE(HANG_TOO_MANY_BYTES_EXPECTED))
    named = describe_never_asked(warp->cta->cluster, record, out);
  if (!named && cause) fprintf(out, "        likely cause: %s\n", cause);
  const PhaseRecord *other = counterpart(warp->cta->cluster, &wait);
  if (other) {
    fprintf(out, "        the mbarrier at shared address 0x%08x", other->key & ~1u);
    print_name(warp->cta->cluster, other->key & ~1u, out);
    fprintf(out,
            " has just as many bytes too %s: expect_tx and the copies must name the same one\n",
            wait.rest > 0 ? "many" : "few");
  }
  if (named || rule != RULE(HANG_ARRIVALS_MISSING)) return;
  if (describe_wrong_wait(warp, record, fills, out)) return;
  describe_count(warp->cta->cluster, &wait, out);
  if (wait.barrier.pending == wait.barrier.expected)
    describe_no_arrival(warp->cta->cluster, mbarrier_record(warp->cta->cluster, wait.address), out);
}
