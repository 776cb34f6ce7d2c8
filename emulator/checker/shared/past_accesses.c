/* past_accesses.c: may an access follow the earlier accesses to the word? If not, reports what is
 * wrong.
 */
#include <stdlib.h>

#include "base/summary.h"
#include "checker/shared/shared_access.h"
#include "checker/undefined/undefined.h"
#include "state/groups.h"
#include "trial/trial.h"

/* ---- Words about the past ---- */

static Phrase agent_name(const ClusterCheck *check, uint32_t agent, int lane) {
  const uint32_t warp = agent % check->warps_per_cta;
  const Phrase of_rank = rank_phrase(check->cta_count, agent / check->warps_per_cta);
  return lane < 0 ? phrase("a thread of warp %u%s", warp, of_rank.text)
                  : phrase("thread %u%s", warp * LANES + (uint32_t)lane, of_rank.text);
}

/* Which of its threads has copied or will copy this word? */
static int issuing_lane(const AccessNow *now, const AsyncCheck *operation) {
  if (operation->kind == ASYNC_WGMMA) return -1;
  if (!operation->lanes) return operation->lane;
  if (operation == now->operation) return access_lane_of_copy(now, false);
  return now->check->shared->memory[now->rank].writers[now->word] % LANES;
}

static Phrase describe_operation(const AccessNow *now, const AsyncCheck *operation) {
  return phrase("the %s issued by %s %s", async_kind_name(operation->kind),
                agent_name(now->check, operation->agent, issuing_lane(now, operation)).text,
                place_of(operation->in).text);
}

/* ---- May this access follow? ---- */

/* cp.async, if only some lanes have waited: has the lane that copied this word waited? */
static bool lane_knows_landed(AccessNow *now, const AsyncCheck *operation) {
  if (!operation->lane_waited_clock) return false;
  int lane = now->check->shared->memory[now->rank].writers[now->word] % LANES;
  uint32_t clock = operation->lane_waited_clock[lane];
  now->by_lane = true;
  return clock && has_seen(now->check, now->agent, operation->agent, clock);
}

/* Does who has seen this know that the operation is complete? */
static bool shows_landed(const ClusterCheck *check, const uint32_t *seen,
                         const AsyncCheck *operation, uint32_t rank) {
  if (!operation->landed) return false;
  if (operation->waited_clock && seen[operation->agent] >= operation->waited_clock) return true;
  if (by_group(operation)) return false;
  uint32_t address = operation->barrier;
  if (operation->kind != ASYNC_CTA_TO_CTA) address = rank << 24 | SHARED_OFFSET(address);
  const MbarrierCheck *barrier = mbarrier_at(check, address);
  /* barriers that share a place: do not report */
  if (!barrier || barrier->place == UINT32_MAX) return true;
  return seen[barrier->place] >= operation->landing_phase[rank] + 1;
}

bool past_knows_landed(const ClusterCheck *check, uint32_t agent, const AsyncCheck *operation,
                       uint32_t rank) {
  return shows_landed(check, order_of(check, agent)->clock.seen, operation, rank);
}

/* Of two clocks of the agent: is the time beyond the first, and within the second? */
static bool is_between(const ClusterCheck *check, uint32_t agent, uint32_t other, uint32_t time) {
  return order_of(check, agent)->lanes.before[other] < time && has_seen(check, agent, other, time);
}

/* The entry's write, if the warp knows it, and lanes that have learnt nothing since `before` do not. */
static bool is_unlearnt(const ClusterCheck *check, uint32_t agent, uint32_t rank,
                        const AccessRecord *entry, bool writes, SharedUse *found) {
  const AsyncCheck *copy = entry->operation;
  if (entry->kind == ENTRY_WRITE && is_between(check, agent, entry->agent, entry->clock)) {
    *found = (SharedUse){.in = entry->in, .time = entry->clock, .agent = entry->agent};
    return true;
  }
  if (writes && entry->kind == ENTRY_ASYNC_READ && by_group(copy) && copy->agent == agent &&
      copy->kind != ASYNC_WGMMA && copy->read_waited_clock >= order_of(check, agent)->lanes.since) {
    *found = (SharedUse){.in = copy->in, .agent = copy->agent, .by_copy = true, .by_read = true};
    return true;
  }
  if (entry->kind != ENTRY_ASYNC_WRITE || !past_knows_landed(check, agent, copy, rank) ||
      shows_landed(check, order_of(check, agent)->lanes.before, copy, rank))
    return false;
  *found = (SharedUse){.in = copy->in, .agent = copy->agent, .by_copy = true};
  return true;
}

bool past_unlearnt(const ClusterCheck *check, uint32_t agent, uint32_t rank, uint32_t word,
                   bool writes, SharedUse *found) {
  const struct CheckedMemory *memory = &check->shared->memory[rank];
  const uint32_t number = states_of(memory, word);
  if (number >= PLAIN) {
    AccessRecord plain = {.kind = ENTRY_WRITE,
                          .agent = memory->writers[word] / LANES & AGENT_MOST,
                          .clock = time_of_plain(number),
                          .in = order_site(check, time_of_plain(number)).in};
    if (is_unlearnt(check, agent, rank, &plain, writes, found)) return true;
  }
  for (unsigned i = 0;
       number >= FIRST_STATE && number < PLAIN && i < state_at(check, number)->count; i++)
    if (is_unlearnt(check, agent, rank, &state_at(check, number)->entries[i], writes, found))
      return true;
  for (uint32_t other = 0; writes && other < check->agents; other++) {
    const uint32_t time = reads_last(memory, word, other);
    if (!is_between(check, agent, other, time)) continue;
    *found = (SharedUse){
        .in = order_site(check, time).in, .time = time, .agent = other, .by_read = true};
    return true;
  }
  return false;
}

/* Does this warp know that the source has been read? */
static bool knows_source_read(const ClusterCheck *check, uint32_t agent,
                              const AsyncCheck *operation) {
  if (operation->kind == ASYNC_CTA_TO_CTA) {
    return past_knows_landed(check, agent, operation, SHARED_RANK(operation->barrier));
  }
  if (operation->kind == ASYNC_WGMMA) {
    /* One operation of four warps: a wait by any of them shows that it is complete. */
    uint32_t rank = operation->agent / check->warps_per_cta;
    uint32_t first = operation->agent % check->warps_per_cta / WARPS_OF_GROUP * WARPS_OF_GROUP;
    uint32_t waited = 0;
    for (uint32_t i = 0; i < WARPS_OF_GROUP; i++)
      waited += operation->group_waited[i] &&
                has_seen(check, agent, rank * check->warps_per_cta + first + i,
                         operation->group_waited[i]);
    if (waited && waited < WARPS_OF_GROUP) summary_note(NOTE_warpgroup_wait);
    return waited != 0;
  }
  return operation->source_read && operation->read_waited_clock &&
         has_seen(check, agent, operation->agent, operation->read_waited_clock);
}

/* The offsets that a copy takes up here, of what it writes or reads; false: it is no copy, or they are not known. */
static bool extent_of(const AccessNow *now, uint32_t *first, uint32_t *end) {
  const AsyncCheck *copy = now->operation;
  if (!copy || copy->kind == ASYNC_WGMMA) return false;
  *first = now->kind == ENTRY_ASYNC_WRITE ? copy->into : copy->from;
  *end = now->kind == ENTRY_ASYNC_WRITE ? copy->into_end : copy->from_end;
  return *first < *end;
}

static Phrase bytes_place(const AccessNow *now) {
  uint32_t first, end;
  const bool inside = extent_of(now, &first, &end) && now->word * WORD_BYTES > first;
  return phrase("shared memory at offset 0x%x%s%s", now->word * WORD_BYTES,
                rank_phrase(now->check->cta_count, now->rank).text,
                inside ? phrase(" (of 0x%x to 0x%x)", first, end - 1).text : "");
}

static const char *access_verb(const AccessNow *now) {
  switch (now->kind) {
    case ENTRY_READ:
      return "reads";
    case ENTRY_WRITE:
      return "writes";
    case ENTRY_ASYNC_WRITE:
      return now->operation->adds ? "reduces into" : "starts a copy into";
    case ENTRY_ASYNC_READ:
      return now->operation->kind == ASYNC_WGMMA ? "multiplies from" : "copies from";
    default:
      return "overwrites";
  }
}

MbarrierCheck *past_barrier_of(const ClusterCheck *check, const AsyncCheck *operation,
                               uint32_t rank) {
  if (by_group(operation)) return NULL;
  uint32_t address = operation->barrier;
  if (operation->kind != ASYNC_CTA_TO_CTA) address = rank << 24 | SHARED_OFFSET(address);
  return mbarrier_at(check, address);
}

/* Do two tiles that begin at different addresses share bytes by mistake? They do if each has bytes
 * that the other does not have, or if both are in flight and report to the same barrier. A buffer
 * that is filled again does neither. */
static bool tiles_overlap(const AccessNow *now, const AsyncCheck *past) {
  const AsyncCheck *load = now->operation;
  if (!load->into_end || !past->into_end || load->into == past->into) return false;
  bool beside =
      load->into < past->into ? load->into_end < past->into_end : load->into_end > past->into_end;
  return beside || (load->barrier == past->barrier && !past->landed);
}

static void report_overlap(const AccessNow *now, const AsyncCheck *past) {
  const AsyncCheck *load = now->operation;
  uint32_t first = load->into > past->into ? load->into : past->into;
  uint32_t end = load->into_end < past->into_end ? load->into_end : past->into_end;
  uint32_t distance = load->into > past->into ? load->into - past->into : past->into - load->into;
  const AsyncCheck *front = load->into < past->into ? load : past;
  const Finding about = {.rule = RULE(TILES_OVERLAP), .other = past->in};
  REPORT_OF(
      now, &about,
      "starts a copy into shared memory at offsets 0x%x to 0x%x, and %s writes 0x%x to 0x%x: %u "
      "bytes belong to both.\n"
      "The first of the two tiles has %u bytes, and the next one begins %u bytes behind it. Make "
      "the distance between the buffers at least as large as the tile (its box times the element's "
      "size), or the box smaller. If both are right, a copy uses another tensor map than it "
      "should, or one of the two addresses is wrong: they are %u bytes too close.",
      load->into, load->into_end - 1, describe_operation(now, past).text, past->into,
      past->into_end - 1, end - first, front->into_end - front->into, distance,
      front->into_end - front->into - distance);
  now->check->shared->overlap_first = first / WORD_BYTES;
  now->check->shared->overlap_end = (end + WORD_BYTES - 1) / WORD_BYTES;
}

/* Bytes of a copy that may not have landed, as far as the accessing agent knows. */
typedef struct {
  const AccessNow *now;
  const AsyncCheck *past; /* the copy */
  const MbarrierCheck *barrier;
  uint32_t rank, phase; /* where that is, and its phase in which the bytes count */
  bool reading;
  const char *verb, *landed;
  Phrase place, what, beyond; /* describe_beyond() */
} NotLanded;

/* With the barrier's phase in which the bytes count. */
static Finding bytes_finding(const NotLanded *bytes, const Rule *rule) {
  Finding made = access_finding(bytes->now, rule, bytes->past->in);
  made.phase = phase_named(bytes->barrier, bytes->phase);
  return made;
}

/* Have the bytes been expected only after the arrival that should have waited for them? Then the agent has waited, and
 * they count in the next phase, in which nobody has arrived. */
static bool expected_too_late(const NotLanded *bytes) {
  const MbarrierCheck *barrier = bytes->barrier;
  const WaitAnswer *answer = &barrier->answers[bytes->now->agent];
  return bytes->phase > barrier->first_phase && !answer->stale &&
         answer->next == bytes->phase + 1 && barrier->armed <= bytes->phase &&
         ended_without_bytes(barrier, bytes->phase - 1);
}

/* Has another load brought these bytes in the phase before? Then that one has not ended without them, and this load, of the
 * next phase, came too early. */
static bool is_refill(const NotLanded *bytes) {
  const AccessNow *now = bytes->now;
  const uint32_t offset = now->word * WORD_BYTES;
  for (const AsyncCheck *each = now->check->shared->operations; each; each = each->next_allocated)
    if (each != bytes->past && each->landed && each->ranks >> now->rank & 1 &&
        each->into <= offset && offset < each->into_end &&
        past_barrier_of(now->check, each, bytes->rank) == bytes->barrier &&
        each->landing_phase[bytes->rank] + 1 == bytes->phase)
      return true;
  return false;
}

/* The copy was issued in an earlier phase, or counts in a phase without expect_tx. A reader that has not
 * waited at all has another mistake. */
static bool report_uncounted_bytes(const NotLanded *bytes) {
  const MbarrierCheck *barrier = bytes->barrier;
  uint32_t phase = bytes->phase;
  if (!barrier) return false;
  bool unarmed = phase > barrier->first_phase &&
                 (barrier->armed ? barrier->armed <= phase : !barrier->announced);
  bool waited = barrier->answers[bytes->now->agent].next > phase;
  if (!barrier->announced && !waited) return false;
  if (bytes->past->issue_phase[bytes->rank] >= phase && !unarmed && !expected_too_late(bytes))
    return false;
  if (is_refill(bytes)) return false;
  const bool none = ended_without_bytes(barrier, phase - 1);
  const Finding about = bytes_finding(bytes, RULE(TOO_FEW_BYTES_EXPECTED));
  const bool multicast = bytes->past->ranks & (bytes->past->ranks - 1);
  REPORT_OF(
      bytes->now, &about,
      "%s %s, where %s%s %s: phase %u of its barrier ended without these bytes%s%s%s%s.\n"
      "%s all bytes that arrive in this block's shared memory in that phase, "
      "from every copy%s (mbarrier.arrive.expect_tx).",
      bytes->verb, bytes->place.text, bytes->what.text,
      multicast ? phrase(" (a multicast to the ranks of mask 0x%x)", bytes->past->ranks).text : "",
      bytes->landed, phase_named(barrier, phase - 1), none ? ", with the arrival " : "",
      none ? place_of_end(barrier, phase - 1).text : "",
      !barrier->announced ? ", and no thread has expected any"
      : none              ? ", and until then no thread had expected any; the last expect_tx was "
                          : "; the last expect_tx was ",
      place_of(barrier->expect_in).text,
      none ? "Let that arrival expect, or expect before it," : "In each phase, expect",
      bytes->now->check->cta_count > 1
          ? ", also from those that other blocks of the cluster send here"
          : "");
  return true;
}

static bool report_wrong_phase(const NotLanded *bytes) {
  uint32_t next;
  const MbarrierCheck *barrier = bytes->barrier;
  if (!mbarrier_answered_stale(barrier, bytes->now->agent, bytes->phase, &next)) return false;
  const WaitAnswer *answer = &barrier->answers[bytes->now->agent];
  const Finding about = bytes_finding(bytes, RULE(WAITED_FOR_WRONG_PHASE));
  REPORT_OF(bytes->now, &about,
            "%s %s, where %s %s: its bytes count in phase %u of the barrier (parity %u), and the "
            "last wait of this warp there, %s, asked for parity %u and succeeded because %s is "
            "over.\n"
            "Ask for parity %u in that wait: the first phase has parity 0, and it flips with every "
            "phase.",
            bytes->verb, bytes->place.text, bytes->what.text, bytes->landed,
            phase_named(barrier, bytes->phase), bytes->phase & 1, place_of(answer->in).text,
            answer->next & 1, phase_name(barrier, next - 1).text, bytes->phase & 1);
  return true;
}

static bool report_wait_not_repeated(const NotLanded *bytes) {
  const Instruction *asked =
      mbarrier_answered_not_yet(bytes->barrier, bytes->now->agent, bytes->now->lane);
  if (!asked) return false;
  REPORT(bytes->now, RULE(WAIT_NOT_REPEATED), bytes->past->in,
         "%s %s, where %s %s: this thread polled the barrier (line %u of the source), got "
         "\"not yet\" and continued.\nmbarrier.try_wait and test_wait may return \"not "
         "yet\" at any time: repeat them until they return true, as in while (!try_wait(...)).",
         bytes->verb, bytes->place.text, bytes->what.text, bytes->landed, asked->source.line);
  return true;
}

/* The same for copies of a group: has the agent waited for the copy that filled the word before? Not if it
 * has read that, and then met others: it means the next one. */
static bool knows_replaced(const AccessNow *now, const AsyncCheck *past) {
  const ClusterCheck *check = now->check;
  const ReadClocks *reads = check->shared->memory[now->rank].reads[now->agent];
  if (!by_group(past) || !past->replaced_clock) return false;
  uint32_t last = reads ? reads->words[now->word] >> 1 : 0;
  if (last > past->replaced_clock && last <= order_of(check, now->agent)->epoch) return false;
  return has_seen(check, now->agent, past->replaced_agent, past->replaced_clock);
}

/* The buffer has been released, but to another block than that of the thread that fills it. past: what is known
 * of the last use of the word. */
static bool report_stray_arrival(const AccessNow *now, const char *past, const Finding *about,
                                 uint32_t reader, uint32_t time) {
  const Phrase why = mbarrier_stray_arrival(now->check, now->agent, now->rank, reader, time);
  if (!why.text[0]) return false;
  REPORT_OF(
      now, about,
      "%s %s, %s: %s.\n"
      "An arrival that should free this buffer goes to the wrong rank: arrive at the barrier of "
      "each block whose thread copies into it (mapa with the rank of that block, here %u).",
      access_verb(now), bytes_place(now).text, past, why.text,
      now->agent / now->check->warps_per_cta);
  return true;
}

/* When the agent was done with what the operation has put here or reads here; 0: it was not. */
static uint32_t time_of_end(const AccessNow *now, const AsyncCheck *past, uint32_t agent) {
  const ClusterCheck *check = now->check;
  const uint32_t warps = check->warps_per_cta;
  if (past->kind != ASYNC_WGMMA)
    return reads_last(&check->shared->memory[now->rank], now->word, agent);
  const bool same_group = agent / warps == past->agent / warps &&
                          agent % warps / WARPS_OF_GROUP == past->agent % warps / WARPS_OF_GROUP;
  return same_group ? past->group_waited[agent % warps % WARPS_OF_GROUP] : 0;
}

/* In which block do the bytes count, as far as the agent can know? It waits in its own alone, also for a multicast copy. */
static uint32_t rank_of_wait(const AccessNow *now, const AsyncCheck *past) {
  const uint32_t own = now->agent / now->check->warps_per_cta;
  const MbarrierCheck *barrier = past_barrier_of(now->check, past, own);
  return past->kind == ASYNC_TENSOR_LOAD && barrier && barrier->answers[now->agent].next
             ? own
             : now->rank;
}

/* The advice where a wait has told this warp of the end of the operation, or of its users, but with .relaxed, if one has. */
static Phrase advise_relaxed_wait(const AccessNow *now, const AsyncCheck *past) {
  const ClusterCheck *check = now->check;
  const uint32_t *observed = order_of(check, now->agent)->observed.seen;
  const Instruction *wait = NULL;
  if (!observed) return NO_PHRASE;
  bool knows =
      past->kind != ASYNC_WGMMA && (shows_landed(check, observed, past, now->rank) ||
                                    shows_landed(check, observed, past, rank_of_wait(now, past)));
  for (uint32_t i = 0; i < check->agents; i++) {
    const uint32_t end = time_of_end(now, past, i);
    knows |= end && observed[i] >= end;
  }
  for (uint32_t i = 0; knows && !wait && i < check->shared->barrier_count; i++)
    wait = check->shared->barriers[i]->answers[now->agent].relaxed;
  if (!wait) return NO_PHRASE;
  return phrase(
      "This warp has waited for that %s, but by a wait with .relaxed, which does not order "
      "what follows: wait with .acquire, as mbarrier.try_wait does without .relaxed, or put "
      "fence.acq_rel after the wait.",
      place_of(wait).text);
}

/* The same, or where its user has arrived with .relaxed. */
static Phrase advise_relaxed(const AccessNow *now, const AsyncCheck *past) {
  const ClusterCheck *check = now->check;
  const Phrase of_wait = advise_relaxed_wait(now, past);
  if (of_wait.text[0]) return of_wait;
  for (uint32_t i = 0; i < check->agents; i++) {
    const AgentOrder *user = order_of(check, i);
    const Instruction *arrival = user->relaxed_arrival;
    uint32_t end = time_of_end(now, past, i);
    if (!end && arrival && arrival->traits & MBARRIER && i != now->agent &&
        past->kind != ASYNC_WGMMA && past_knows_landed(check, i, past, now->rank))
      end = past->issue_time;
    if (!end || !arrival || user->relaxed_time < end) continue;
    return phrase(
        "Its user, %s, has arrived at a barrier since, %s, but with .relaxed, which does not "
        "order what came before: arrive with .release, as mbarrier.arrive does without "
        ".relaxed, or put fence.acq_rel before the arrival.",
        agent_name(check, i, -1).text, place_of(arrival).text);
  }
  return NO_PHRASE;
}

/* Is this copy the next one of a thread, or of one that knows of the copy before, at the same barrier? */
static bool follows_copy(const AccessNow *now, const AsyncCheck *past) {
  if (past->agent == now->agent) return past->lane == now->lane;
  return past->barrier == now->operation->barrier &&
         has_seen(now->check, now->agent, past->agent, past->issue_clock);
}

/* The nearest barrier of the same block at which threads arrive and no copies' bytes count; NULL: there is none. */
static const MbarrierCheck *arrived_at_beside(const ClusterCheck *check,
                                              const MbarrierCheck *barrier) {
  const MbarrierCheck *nearest = NULL;
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const MbarrierCheck *each = check->shared->barriers[i];
    if (SHARED_RANK(each->address) == SHARED_RANK(barrier->address) && each->valid &&
        each->arrive_in && !each->copy_in &&
        (!nearest || llabs((int64_t)each->address - barrier->address) <
                         llabs((int64_t)nearest->address - barrier->address)))
      nearest = each;
  }
  return nearest;
}

/* The thread that fills the buffer again has waited for something since the copy before: with what mistake, or at which
 * barrier? Nothing: it has not waited. */
static Phrase advise_own_wait(const AccessNow *now, const AsyncCheck *before) {
  const ClusterCheck *check = now->check;
  const MbarrierCheck *last = mbarrier_awaited_last(check, now->agent);
  if (!last || last->answers[now->agent].time < before->issue_time) return NO_PHRASE;
  const MbarrierCheck *other = last->copy_in ? arrived_at_beside(check, last) : NULL;
  const Phrase where = place_of(last->answers[now->agent].in);
  if (other)
    return phrase(
        "The last wait of this warp, %s, was for the mbarrier at shared-memory offset 0x%x, "
        "where the bytes of copies count. Threads arrive at that at 0x%x, %s: wait for that "
        "one. ",
        where.text, SHARED_OFFSET(last->address), SHARED_OFFSET(other->address),
        place_of(other->arrive_in).text);
  const Phrase mistake = wait_mistake(last, now->agent, "this warp");
  if (mistake.text[0]) return phrase("%s ", mistake.text);
  return phrase(
      "The last wait of this warp, %s, was for phase %u of the mbarrier at shared-memory offset "
      "0x%x. Is it that at which the readers of this buffer arrive, and does mbarrier.init, %s, "
      "count all of them (it asks for %u)? ",
      where.text, phase_named(last, last->answers[now->agent].next - 2),
      SHARED_OFFSET(last->address), place_of(last->init_in).text, last->count);
}

/* A barrier for the thread that issues a copy and those that read it: __syncthreads is of one block. */
static const char *barrier_of(const ClusterCheck *check, uint32_t agent, uint32_t ranks) {
  return ranks & ~(1u << agent / check->warps_per_cta) ? "a cluster barrier" : "__syncthreads";
}

static Phrase advise_release(const char *issuer, const ClusterCheck *check, uint32_t agent,
                             uint32_t ranks) {
  return phrase(
      "Let the readers report that they are done (arrive on a barrier that %s waits for, "
      "or %s) before the next copy is issued.",
      issuer, barrier_of(check, agent, ranks));
}

/* The next copy into the buffer was issued before its readers were done. */
static bool report_reused_stage(const NotLanded *bytes) {
  const AccessNow *now = bytes->now;
  const AsyncCheck *past = bytes->past;
  const ClusterCheck *check = now->check;
  /* It has waited for the earlier contents, and had not read them yet when this copy was issued. */
  const bool group = knows_replaced(now, past);
  const bool known = past->replaced_place &&
                     has_seen(check, now->agent, past->replaced_place, past->replaced_phase + 1);
  const bool refill = bytes->barrier && bytes->barrier->place != NO_PLACE &&
                      has_seen(check, now->agent, bytes->barrier->place, bytes->phase) &&
                      is_refill(bytes);
  if (bytes->reading &&
      (group || ((known || refill) && !(past->replaced_readers >> (now->agent & 63) & 1)))) {
    REPORT(now, RULE(STAGE_REUSED_TOO_EARLY), past->in,
           "%s %s: this warp has waited for the copy that filled it, but meanwhile %s was started "
           "over it.\n"
           "%s%s",
           bytes->verb, bytes->place.text, bytes->what.text, group ? "" : bytes->beyond.text,
           group ? "Put __syncthreads() after the reads, before the next copy into this buffer is "
                   "issued, or use one buffer more."
                 : advise_release("the issuing thread", check, past->agent, past->ranks).text);
    return true;
  }
  if (now->kind != ENTRY_ASYNC_WRITE || !bytes->barrier || !follows_copy(now, past)) return false;
  const Phrase before = phrase("where %s %s", bytes->what.text, bytes->landed);
  const Finding stray = access_finding(now, RULE(ARRIVAL_AT_ANOTHER_RANK), past->in);
  if (report_stray_arrival(now, before.text, &stray, UINT32_MAX, 0)) return true;
  const Phrase of_relaxed = advise_relaxed(now, past);
  const bool relaxed = of_relaxed.text[0];
  REPORT(now, RULE(STAGE_REUSED_TOO_EARLY), past->in, "%s %s, where %s %s.\n%s%s%s%s", bytes->verb,
         bytes->place.text, bytes->what.text, bytes->landed,
         relaxed ? of_relaxed.text : advise_own_wait(now, past).text,
         relaxed ? ""
                 : "Wait before the next copy is issued until the readers have reported that they "
                   "are done with the last one",
         relaxed || check->cta_count == 1 ? "" : ", in every block that the copy writes to",
         relaxed ? ""
                 : phrase(": arrivals on a barrier that this thread waits for, or %s.",
                          barrier_of(check, now->agent, now->operation->ranks))
                       .text);
  return true;
}

/* What a wgmma reads beyond the tile in which its operand begins: perhaps its descriptor is wrong. The same where the end
 * of a copy alone reaches into what others use: perhaps its address is wrong. */
static Phrase describe_beyond(const AccessNow *now) {
  enum { LITTLE = 128 };
  uint32_t offset = now->word * WORD_BYTES, first, end;
  if (extent_of(now, &first, &end) && offset > first && end - offset <= LITTLE)
    return phrase(
        "Only the last %u bytes of the copy reach there: if they should not, its address or "
        "its size is wrong.\n",
        end - offset);
  if (!now->operation || !now->operation->begins) return NO_PHRASE;
  const LoadedTile *tile = check_tile_at(now->warp, now->operation->begins);
  if (!tile || (offset >= tile->first && offset < tile->end)) return NO_PHRASE;
  return phrase(
      "The operand begins in another tile, 0x%x to 0x%x, loaded %s. If that one should hold "
      "all of it, the stride or leading offset of its matrix descriptor is wrong: the tile "
      "has rows of %u bytes, so groups of 8 rows are %u bytes apart.\n",
      tile->first, tile->end, place_of(tile->in).text, tile->row_bytes, 8 * tile->row_bytes);
}

/* Has the warp arrived at the barrier of the cluster and gone on without waiting there? */
static bool has_not_waited(const Warp *warp) {
  bool waits = false;
  for (uint32_t i = 0; i < warp->flow->count; i++) {
    const Group *group = &warp->flow->groups[i];
    waits |= (group->function->code[group->place].traits & CLUSTER_BARRIER) != 0;
  }
  return warp->flow->cluster_arrived && !waits;
}

/* The advice where this warp or the other one has done so; else this other advice. */
static const char *advise_cluster_wait(const AccessNow *now, uint32_t other,
                                       const char *otherwise) {
  if (now->warp->flow->cluster_arrived)
    return "This warp has arrived at the cluster barrier (barrier.cluster.arrive) and has not "
           "waited there: put barrier.cluster.wait before this.";
  if (has_not_waited(warp_of(now->warp->cta->cluster, other)))
    return "The other warp has arrived at the cluster barrier (barrier.cluster.arrive) and gone on "
           "without waiting there: put barrier.cluster.wait behind that.";
  return otherwise;
}

/* The advice where a wait for groups has not waited for the copy, or the last wait was for another barrier or for the other
 * parity, if so. */
static Phrase advise_other_wait(const AccessNow *now, const AsyncCheck *past,
                                const MbarrierCheck *barrier) {
  const MbarrierCheck *last = mbarrier_awaited_last(now->check, now->agent);
  Phrase mistake = NO_PHRASE;
  if (last && past->kind == ASYNC_CP_ASYNC) mistake = wait_mistake(last, now->agent, "this warp");
  if (mistake.text[0]) return mistake;
  if (!last || !barrier || last == barrier)
    return past->waited_clock ? NO_PHRASE : async_passed(past);
  const LoadedTile *beside = now->kind == ENTRY_READ
                                 ? tile_beside(now->check, now->rank << 24 | now->word * WORD_BYTES)
                                 : NULL;
  const bool behind = beside && beside->end <= now->word * WORD_BYTES;
  return phrase(
      "The last wait of this warp, %s, was for the mbarrier at 0x%x, and these bytes count at "
      "that at 0x%x%s: that is the wrong one, or a wait is missing.%s",
      place_of(last->answers[now->agent].in).text, SHARED_OFFSET(last->address),
      SHARED_OFFSET(barrier->address),
      SHARED_RANK(last->address) == SHARED_RANK(barrier->address) ? "" : " of another block",
      behind ? phrase(" Or the read's address is wrong: it is just behind the end of the tile at "
                      "0x%x to 0x%x.",
                      beside->first, beside->end - 1)
                   .text
             : "");
}

static void report_not_landed(const AccessNow *now, const AsyncCheck *past, const char *verb_now) {
  const ClusterCheck *check = now->check;
  if (now->word >= check->shared->overlap_first && now->word < check->shared->overlap_end) return;
  if (past->over_mistake) return;
  if (now->kind == ENTRY_ASYNC_WRITE && tiles_overlap(now, past)) {
    report_overlap(now, past);
    return;
  }
  const uint32_t counted = rank_of_wait(now, past);
  const MbarrierCheck *barrier = past_barrier_of(check, past, counted);
  bool reading = now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ;
  const Rule *rule = reading ? RULE(READ_WITHOUT_WAIT) : RULE(OVERWRITE_WITHOUT_WAIT);
  bool usual = by_group(past) && !barrier && !past->replaced_place && !past->replaced_clock;
  if (usual && finding_repeats(now->warp, now->in, rule, now->word * WORD_BYTES)) return;
  NotLanded bytes = {
      .now = now,
      .past = past,
      .barrier = barrier,
      .rank = counted,
      .phase = barrier && past->landed ? past->landing_phase[counted]
               : barrier               ? barrier->phase
                                       : 0,
      .reading = reading,
      .verb = verb_now,
      .landed =
          past->landed ? "has landed by luck: this thread has not waited for it" : "has not landed",
      .place = bytes_place(now),
      .what = describe_operation(now, past),
      .beyond = describe_beyond(now),
  };
  Phrase passed = advise_relaxed_wait(now, past);
  if (!passed.text[0] && (report_uncounted_bytes(&bytes) || report_wrong_phase(&bytes) ||
                          report_wait_not_repeated(&bytes)))
    return;
  if (report_reused_stage(&bytes)) return;
  if (!passed.text[0])
    passed = phrase(
        "%s", advise_cluster_wait(now, past->agent, advise_other_wait(now, past, barrier).text));
  REPORT(now, rule, past->in, "%s %s, where %s %s.\n%s%s", bytes.verb, bytes.place.text,
         bytes.what.text, bytes.landed, bytes.beyond.text,
         passed.text[0] ? passed.text
         : now->kind == ENTRY_WRITE && !has_seen(check, now->agent, past->agent, past->issue_clock)
             ? "If this write is meant to come before the copy, put __syncthreads() between it and "
               "the thread that issues the copy. Otherwise wait first for the phase of its barrier "
               "that counts these bytes."
         : past->kind == ASYNC_CP_ASYNC
             ? "Wait first: cp.async.wait_group, then __syncthreads()."
             : "Wait first for the phase of its barrier that counts these "
               "bytes, in this thread or before a barrier that orders it.");
}

/* The read in this entry came before every write of what it read. */
static void confirm_unwritten(const Cluster *cluster, const AccessRecord *entry) {
  ClusterCheck *check = cluster->check;
  bool asynchronous = entry->kind == ENTRY_ASYNC_READ;
  uint32_t agent = asynchronous ? entry->operation->agent : entry->agent;
  undefined_confirm(check, warp_of(cluster, agent),
                    asynchronous ? entry->operation->in : entry->in);
}

/* The reader came even before the copy was issued. The report is as if it came right after. */
static int last_reader(const AccessNow *now, uint32_t agent) {
  ClusterCheck *check = now->check;
  return check->last_reader ? check->last_reader(check, agent, now->rank, now->word) : -1;
}

static void report_early_reader(const AccessNow *now, const AccessRecord *entry) {
  AsyncCheck *operation = entry->kind == ENTRY_ASYNC_READ ? entry->operation : NULL;
  uint32_t agent = operation ? operation->agent : entry->agent;
  AccessNow reader = {.check = now->check,
                      .warp = warp_of(now->warp->cta->cluster, agent),
                      .in = operation ? operation->in : entry->in,
                      .lane = operation ? operation->lane : last_reader(now, agent),
                      .agent = agent,
                      .rank = now->rank,
                      .word = now->word,
                      .kind = (uint8_t)entry->kind,
                      .operation = operation};
  report_not_landed(&reader, now->operation, access_verb(&reader));
}

static Phrase advise_after_wgmma(const AccessNow *now, const AsyncCheck *wgmma) {
  enum { WARPGROUP_WARPS = 4 };
  uint32_t warps = now->check->warps_per_cta;
  bool same_block = now->agent / warps == wgmma->agent / warps;
  uint32_t group = now->agent % warps / WARPGROUP_WARPS;
  const Phrase passed = async_passed(wgmma);
  if (passed.text[0]) return passed;
  const char *commit = async_committed(now->check, wgmma) ? "" : "wgmma.commit_group, ";
  if (now->kind == ENTRY_ASYNC_WRITE)
    return phrase("Wait for that wgmma (%swgmma.wait_group) before releasing the stage.", commit);
  if (same_block && group == wgmma->agent % warps / WARPGROUP_WARPS)
    return phrase("Wait for that wgmma first (%swgmma.wait_group).", commit);
  return phrase(
      "The warps that issued it must wait for it (wgmma.wait_group) and then signal this thread "
      "(__syncthreads, a named barrier or an mbarrier), before it writes here again.");
}

/* Has a phase of the barrier completed, or begun, with an arrival of the agent since that time? */
static bool has_arrived_since(const MbarrierCheck *barrier, uint32_t agent, uint32_t time) {
  const Clock *clocks[] = {&barrier->arriving, &barrier->finished[0], &barrier->finished[1]};
  for (int i = 0; i < 3; i++)
    if (clocks[i]->seen && clocks[i]->seen[agent] >= time) return true;
  return false;
}

/* What would order this access after what the other agent did at that time, but for one word of it: advice that names its
 * line. Nothing: there is no such thing. *rule changes where that has one of its own. */
static Phrase advise_weak_edge(const AccessNow *now, uint32_t other, uint32_t time,
                               const Rule **rule) {
  const ClusterCheck *check = now->check;
  const uint32_t *observed = order_of(check, now->agent)->observed.seen;
  const AgentOrder *past = order_of(check, other);
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const MbarrierCheck *barrier = check->shared->barriers[i];
    const WaitAnswer *answer = &barrier->answers[now->agent];
    const Instruction *asked = mbarrier_answered_not_yet(barrier, now->agent, now->lane);
    if (!has_arrived_since(barrier, other, time)) continue;
    if (asked) {
      *rule = RULE(WAIT_NOT_REPEATED);
      return phrase(
          "This thread has asked an mbarrier for that %s, got \"not yet\" and continued: repeat "
          "mbarrier.try_wait or test_wait until it returns true.",
          place_of(asked).text);
    }
    if (answer->relaxed && observed && observed[other] >= time)
      return phrase(
          "This warp has waited for that %s, but by a wait with .relaxed, which does not order "
          "what follows: wait with .acquire, or put fence.acq_rel after the wait.",
          place_of(answer->relaxed).text);
  }
  for (uint32_t i = 0; now->kind == ENTRY_ASYNC_WRITE && i < check->shared->barrier_count; i++) {
    const MbarrierCheck *barrier = check->shared->barriers[i];
    if (SHARED_RANK(barrier->address) != now->agent / check->warps_per_cta || barrier->announced ||
        !barrier->valid || !has_arrived_since(barrier, other, time))
      continue;
    return phrase(
        "Who has read it has arrived since at the mbarrier at shared-memory offset 0x%x, which "
        "was initialised at line %u of the source: wait there, for the phase of that arrival, "
        "before the next copy is issued.",
        SHARED_OFFSET(barrier->address), barrier->init_in ? barrier->init_in->source.line : 0);
  }
  if (!past->relaxed_arrival || past->relaxed_time < time) return NO_PHRASE;
  return phrase(
      "That warp has arrived at a barrier since, %s, but with .relaxed, which does not order "
      "what came before: arrive with .release, or put fence.acq_rel before the arrival.",
      place_of(past->relaxed_arrival).text);
}

/* The end of a copy's source alone reaches into what this thread writes: perhaps the copy's address is wrong. */
static Phrase describe_source_end(const AccessNow *now, const AsyncCheck *copy) {
  enum { LITTLE = 128 };
  const uint32_t rest = copy->from_end - now->word * WORD_BYTES;
  if (rest > LITTLE || copy->from_end - copy->from <= 2 * LITTLE) return NO_PHRASE;
  return phrase(
      "The copy takes 0x%x to 0x%x, and only its last %u bytes reach here: if they should "
      "not, its address or its size is wrong. ",
      copy->from, copy->from_end - 1, rest);
}

/* The access comes while the copy takes the bytes, or before it: nothing orders the two. */
static void report_copy_not_ordered(const AccessNow *now, const AsyncCheck *past,
                                    const char *what) {
  const Rule *rule = RULE(COPY_NOT_ORDERED);
  const Phrase weak = advise_weak_edge(now, past->agent, past->issue_clock, &rule);
  REPORT(now, rule, past->in,
         "%s %s, from where %s copies, and nothing orders the two.\n"
         "%s%s",
         access_verb(now), bytes_place(now).text, what, describe_source_end(now, past).text,
         weak.text[0]
             ? weak.text
             : advise_cluster_wait(
                   now, past->agent,
                   "Put __syncthreads() between the writes and the thread that issues the copy. "
                   "Writes for its next copy must come after this one has read its source: that "
                   "thread waits (cp.async.bulk.commit_group, cp.async.bulk.wait_group.read) and "
                   "then signals the others (__syncthreads). If it is not meant to take these "
                   "bytes, its address or size is wrong."));
}

static bool check_after_operation(AccessNow *now, const AccessRecord *entry) {
  const ClusterCheck *check = now->check;
  const AsyncCheck *past = entry->operation;
  bool reading = now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ;
  if (entry->kind == ENTRY_ASYNC_WRITE) {
    bool both_add = past->adds && now->kind == ENTRY_ASYNC_WRITE && now->operation->adds;
    if (both_add || (past->kind == ASYNC_RED_ASYNC && now->strong)) return true;
    if (past_knows_landed(check, now->agent, past, now->rank) || lane_knows_landed(now, past))
      return true;
    report_not_landed(now, past, access_verb(now));
    return false;
  }
  if (reading) return true;
  if (knows_source_read(check, now->agent, past)) {
    if (entry->unwritten) confirm_unwritten(now->warp->cta->cluster, entry);
    return true;
  }
  if (now->kind == ENTRY_ASYNC_WRITE && entry->unwritten) {
    report_early_reader(now, entry);
    return false;
  }
  const Phrase place = bytes_place(now), what = describe_operation(now, past);
  if (past->kind == ASYNC_WGMMA) {
    const Phrase relaxed = advise_relaxed(now, past);
    REPORT(now, RULE(STAGE_RELEASED_BEFORE_WGMMA), past->in,
           "%s %s, which %s may still be reading.\n%s", access_verb(now), place.text, what.text,
           relaxed.text[0] ? relaxed.text : advise_after_wgmma(now, past).text);
  } else if (!has_seen(check, now->agent, past->agent, past->issue_clock)) {
    report_copy_not_ordered(now, past, what.text);
  } else {
    const Phrase passed = past->read_waited_clock ? NO_PHRASE : async_passed(past);
    const bool committed = async_committed(check, past);
    REPORT(now, RULE(SOURCE_REUSED_BEFORE_READ), past->in,
           "%s %s, which %s may still be reading%s.\n"
           "%s%s",
           access_verb(now), place.text, what.text,
           past->source_read ? " (it was read in time by luck)" : "",
           describe_source_end(now, past).text,
           !by_group(past)
               ? "Wait first for the mbarrier that this copy reports to, in a thread of "
                 "its block, and let that thread tell this one (a cluster barrier, or "
                 "an arrival at an mbarrier)."
           : passed.text[0]
               ? passed.text
               : phrase("The thread that issued it must %s until its group has read the source "
                        "(%scp.async.bulk.wait_group.read), and then signal the other threads "
                        "(__syncthreads).",
                        committed ? "wait" : "commit it and wait",
                        committed ? "" : "cp.async.bulk.commit_group, ")
                     .text);
  }
  return false;
}

/* The fix when threads have exited before a barrier of others. */
static Phrase describe_apart(const Instruction *const *apart) {
  if (!apart[0]) return phrase("Return after the barrier, so that all threads take part in it.");
  return phrase(
      "Before, some warps have passed a __syncthreads() %s while others passed one %s: all must "
      "execute the same ones, so put none into a loop or branch that warps take differently.",
      place_of(apart[0]).text, place_of(apart[1]).text);
}

/* Did all threads of the other agent exit before a barrier of the block that this one has waited for? Then that barrier
 * did not wait for them. */
static bool exited_before(const AccessNow *now, const AccessRecord *entry) {
  uint32_t warps = now->check->warps_per_cta, agent = entry->agent;
  return now->agent / warps == agent / warps &&
         order_of(now->check, now->agent)->exited_before >> agent % warps & 1;
}

/* The suggested fix when nothing orders this access after that of another agent. */
static Phrase advise_order(const AccessNow *now, const AccessRecord *entry) {
  const ClusterCheck *check = now->check;
  uint32_t warps = check->warps_per_cta, first = entry->agent % warps * LANES;
  if (advise_cluster_wait(now, entry->agent, NULL))
    return phrase("%s", advise_cluster_wait(now, entry->agent, NULL));
  if (entry->agent / warps != now->agent / warps)
    return phrase(
        "Put a cluster barrier between them (barrier.cluster.arrive and .wait), or an mbarrier "
        "that the other block arrives on.");
  const Instruction *behind =
      entry->kind == ENTRY_READ
          ? lanes_behind(warp_of(now->warp->cta->cluster, entry->agent), entry->in)
      : now->kind == ENTRY_READ ? lanes_behind(now->warp, now->in)
                                : NULL;
  if (behind && behind->traits & ASKS_MBARRIER && !exited_before(now, entry))
    return phrase(
        "Other lanes of the warp that reads are still %s. If one of them waits there for all, "
        "put __syncwarp() between that wait and the reads: the lanes of a warp do not run "
        "in step.",
        place_of(behind).text);
  if (!exited_before(now, entry)) {
    if (is_one_line(now->in, entry->in))
      return phrase(
          "Both are one line of the source: does each thread have a place of its own, or is "
          "the index or address wrong? If the second access should come after the first, put "
          "__syncthreads() between them.");
    if (now->strong == entry->strong)
      return phrase("Put __syncthreads() (or a barrier that both take part in) between them.");
    return phrase(
        "Only one of them is atomic or volatile. Put __syncthreads() between them. If any "
        "recent value will do, make the other access volatile or atomic as well "
        "(cuda::atomic_ref).");
  }
  LaneMask lanes = warp_of(now->warp->cta->cluster, entry->agent)->lanes;
  return phrase(
      "Threads %u-%u exited %s, before the barrier that this warp has passed since. A barrier "
      "waits only for threads that have not exited, and no document says that it also orders "
      "what they did before that.\n"
      "%s",
      first, first + LANES - 1u - (uint32_t)__builtin_clz(lanes),
      place_of(order_of(check, entry->agent)->exit).text,
      describe_apart(order_block(check, entry->agent / warps)->passed_apart).text);
}

/* The rule that two unordered ordinary accesses break. */
static const Rule *race_rule(const AccessNow *now, const AccessRecord *entry) {
  return exited_before(now, entry) ? RULE(EXITED_BEFORE_BARRIER) : RULE(SHARED_RACE);
}

/* A race of two accesses by threads: may it be held back until a trial has shown whether it matters? */
static bool may_be_tried(AccessNow *now, const AccessRecord *entry) {
  now->by_lane = true; /* each word is asked about: in a trial all of them have other values */
  bool reads = now->kind == ENTRY_READ, read = entry->kind == ENTRY_READ;
  if (exited_before(now, entry)) return false;
  if (!reads && !read)
    return trial_changes_stored(now->warp->cta->cluster, now->rank, now->word * WORD_BYTES,
                                WORD_BYTES);
  const uint32_t time = reads ? now->time : entry->clock;
  return trial_gives_others(now->warp->cta->cluster,
                            (RacingRead){.rank = now->rank,
                                         .word = now->word,
                                         .agent = reads ? now->agent : entry->agent,
                                         .lanes = UINT32_MAX,
                                         .time = order_since_begin(now->check, time),
                                         .in = reads ? now->in : entry->in});
}

static Finding unordered_finding(const AccessNow *now, const Rule *rule,
                                 const AccessRecord *entry) {
  Finding made = access_finding(now, rule, entry->in);
  made.unordered = true;
  return made;
}

/* The arrivals on the way have a release whose scope ends at their block. */
static void report_unpublished(AccessNow *now, const AccessRecord *entry) {
  const ClusterCheck *check = now->check;
  const int lane = check->shared->memory[now->rank].writers[now->word] % LANES;
  const Instruction *narrow =
      order_block(check, entry->agent / check->warps_per_cta)->narrow_arrival;
  const Finding about = unordered_finding(now, RULE(SCOPE_TOO_NARROW), entry);
  trial_doubt(now->kind != ENTRY_ASYNC_READ && may_be_tried(now, entry), now->warp, now->in,
              1u << now->lane, &about,
              "%s %s, written by %s %s, and nothing orders the two: that block has arrived at a "
              "barrier of another one %s, but with a release of scope .cta, which publishes "
              "nothing to threads of other blocks.\n"
              "Write mbarrier.arrive.release.cluster.shared::cluster (and "
              "mbarrier.try_wait...acquire.cluster in the thread that waits). Without a scope an "
              "arrival has .cta, which is enough to say that a buffer has been read.",
              access_verb(now), bytes_place(now).text, agent_name(check, entry->agent, lane).text,
              place_of(entry->in).text, place_of(narrow).text);
}

/* What this agent may rely on for the asynchronous proxy: of the entry's writer, in this memory. */
static bool is_fenced(const AccessNow *now, const AccessRecord *entry) {
  const ClusterCheck *check = now->check;
  bool of_peer = entry->agent / check->warps_per_cta != now->rank;
  int space = of_peer ? FENCED_PEERS : FENCED_SHARED;
  return order_fenced(check, now->agent, space, entry->agent, entry->clock);
}

/* "there is" which fence, where one for this memory is missing? */
static const char *fences_there(const AccessNow *now, const AccessRecord *entry) {
  if (order_fenced(now->check, now->agent, FENCED_SHARED, entry->agent, entry->clock))
    return "only fence.proxy.async.shared::cta, which does not include the memory of another "
           "block,";
  if (order_fenced(now->check, now->agent, FENCED_GLOBAL, entry->agent, entry->clock))
    return "only fence.proxy.async.global, which does not include shared memory,";
  return "no fence.proxy.async";
}

static bool check_after_write(AccessNow *now, const AccessRecord *entry) {
  const ClusterCheck *check = now->check;
  if (now->strong && entry->strong) return true;
  bool asynchronous = now->kind == ENTRY_ASYNC_READ || now->kind == ENTRY_ASYNC_WRITE;
  bool seen = has_seen(check, now->agent, entry->agent, entry->clock);
  /* A copy over it is allowed: kernels change a stage in place and free it like one that was read. */
  if (seen && now->kind != ENTRY_ASYNC_WRITE && !access_changes_nothing(now) &&
      !is_published(check, now->agent, entry->agent, entry->clock)) {
    past_note_race(now->check, now->in, entry->in);
    report_unpublished(now, entry);
    return false;
  }
  if (seen && !asynchronous) return true;
  if (seen && is_fenced(now, entry)) return true;
  if (now->operation && is_generic(now->operation) && seen) return true;
  if (!asynchronous &&
      (swaps_allow(now, entry) || (!entry->strong && access_changes_nothing(now)))) {
    now->by_lane = true;
    return true;
  }
  const int lane = check->shared->memory[now->rank].writers[now->word] % LANES;
  const Phrase place = bytes_place(now), beyond = describe_beyond(now),
               who = agent_name(check, entry->agent, lane), where = place_of(entry->in);
  if (seen) {
    REPORT(now, RULE(MISSING_PROXY_FENCE), entry->in,
           "%s %s through the asynchronous proxy; written by %s %s through the generic proxy, and "
           "there is %s between that and this.\n"
           "%sPut fence.proxy.async.shared::%s after the writes, in each thread that writes and "
           "before the barrier that orders them%s.",
           access_verb(now), place.text, who.text, where.text, fences_there(now, entry),
           beyond.text, entry->agent / check->warps_per_cta == now->rank ? "cta" : "cluster",
           now->operation->kind == ASYNC_WGMMA ? "" : " (or in this thread, after that barrier)");
  } else {
    past_note_race(now->check, now->in, entry->in);
    const Rule *rule = asynchronous ? RULE(COPY_NOT_ORDERED) : race_rule(now, entry);
    const Phrase weak = advise_weak_edge(now, entry->agent, entry->clock, &rule);
    const Finding about = unordered_finding(now, rule, entry);
    trial_doubt(!asynchronous && may_be_tried(now, entry), now->warp, now->in, 1u << now->lane,
                &about, "%s %s, written by %s %s, and nothing orders the two.\n%s%s%s",
                access_verb(now), place.text, who.text, where.text, beyond.text,
                weak.text[0] ? weak.text : advise_order(now, entry).text,
                weak.text[0] || !asynchronous || is_generic(now->operation) ? ""
                : now->kind == ENTRY_ASYNC_WRITE
                    ? " Before it, each thread that writes needs fence.proxy.async.shared::cta. If "
                      "the write is to change what the copy brings, its thread must wait for the "
                      "copy first."
                    : " Before it, each thread that writes needs fence.proxy.async.shared::cta.");
  }
  return false;
}

void past_check_started(const AccessNow *now) {
  const ClusterCheck *check = now->check;
  for (uint32_t i = 0; i < check->warps_per_cta; i++)
    if (has_seen(check, now->agent, now->rank * check->warps_per_cta + i, check->start + 1)) return;
  REPORT_OF(now, &(const Finding){.rule = RULE(PEER_NOT_STARTED)},
            "%s shared memory of rank %u of the cluster, and nothing shows that this block has "
            "begun: before that, its shared memory is not its own.\n"
            "Put barrier.cluster.arrive and .wait before the first use of another block's memory.",
            access_verb(now), now->rank);
}

void past_report_exited(const AccessNow *now) {
  REPORT_OF(
      now, &(const Finding){.rule = RULE(PEER_EXITED)},
      "%s shared memory of rank %u of the cluster, which has exited.\n"
      "Keep every block alive until its peers are done with it: barrier.cluster.arrive and .wait "
      "before the end of the kernel.",
      access_verb(now), now->rank);
}

/* Has the reader of these bytes read them before, and then waited for the barrier of the copy that
 * is issued now, and been answered with a phase that it already knew? Then it meant to wait for
 * this copy. */
static bool read_again_unasked(const AccessNow *now, const AccessRecord *entry) {
  uint32_t next;
  const MbarrierCheck *barrier = past_barrier_of(now->check, now->operation, now->rank);
  return entry->again && barrier &&
         mbarrier_answered_stale(barrier, entry->agent, barrier->phase, &next);
}

/* The load that wrote this word; NULL if something else wrote it last. */
static const AsyncCheck *load_before(const AccessNow *now) {
  uint32_t number = states_of(&now->check->shared->memory[now->rank], now->word);
  if (number < FIRST_STATE || number >= PLAIN) return NULL;
  const WordState *state = state_at(now->check, number);
  for (unsigned i = 0; i < state->count; i++)
    if (state->entries[i].kind == ENTRY_ASYNC_WRITE) return state->entries[i].operation;
  return NULL;
}

static bool check_after_read(AccessNow *now, const AccessRecord *entry) {
  const ClusterCheck *check = now->check;
  if (now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ) return true;
  if (now->strong && entry->strong) return true;
  if (has_seen(check, now->agent, entry->agent, entry->clock)) {
    if (entry->unwritten) confirm_unwritten(now->warp->cta->cluster, entry);
    return true;
  }
  if (now->kind == ENTRY_WRITE && swaps_allow(now, entry)) {
    now->by_lane = true;
    return true;
  }
  if (now->kind == ENTRY_ASYNC_WRITE && (entry->unwritten || read_again_unasked(now, entry))) {
    report_early_reader(now, entry);
    return false;
  }
  const AsyncCheck *before = now->kind == ENTRY_ASYNC_WRITE ? load_before(now) : NULL;
  if (before && tiles_overlap(now, before)) {
    report_overlap(now, before);
    return false;
  }
  const Phrase past = phrase("which %s read %s, and nothing orders the two",
                             agent_name(check, entry->agent, -1).text, place_of(entry->in).text);
  past_note_race(now->check, now->in, entry->in);
  if (now->kind == ENTRY_ASYNC_WRITE) {
    const Finding stray = unordered_finding(now, RULE(ARRIVAL_AT_ANOTHER_RANK), entry);
    if (report_stray_arrival(now, past.text, &stray, entry->agent, entry->clock)) return false;
  }
  const Rule *rule =
      now->kind == ENTRY_ASYNC_WRITE ? RULE(STAGE_REUSED_TOO_EARLY) : race_rule(now, entry);
  const Phrase weak = advise_weak_edge(now, entry->agent, entry->clock, &rule);
  const Phrase own = before && !weak.text[0] && !by_group(now->operation)
                         ? advise_own_wait(now, before)
                         : NO_PHRASE;
  const Finding about = unordered_finding(now, rule, entry);
  trial_doubt(
      now->kind == ENTRY_WRITE && may_be_tried(now, entry), now->warp, now->in, 1u << now->lane,
      &about, "%s %s, %s.\n%s%s", access_verb(now), bytes_place(now).text, past.text, own.text,
      weak.text[0] ? weak.text
      : now->kind == ENTRY_ASYNC_WRITE && by_group(now->operation)
          ? "Put __syncthreads() after the reads, before the next copy into this buffer is issued, "
            "or use one buffer more."
      : now->kind == ENTRY_ASYNC_WRITE
          ? advise_release("this thread", check, now->agent,
                           now->operation->ranks | 1u << entry->agent / check->warps_per_cta)
                .text
          : advise_order(now, entry).text);
  return false;
}

static bool check_after_barrier(const AccessNow *now, const AccessRecord *entry) {
  if (now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ) return true;
  if (!entry->barrier->valid) return true;
  REPORT(
      now, RULE(BARRIER_OVERWRITTEN), entry->barrier->init_in,
      "%s %s, which holds a live mbarrier (initialised at line %u of the source).\n"
      "The buffer is larger than the space reserved for it, its address is wrong, or the barrier "
      "must be invalidated first (mbarrier.inval).",
      access_verb(now), bytes_place(now).text,
      entry->barrier->init_in ? entry->barrier->init_in->source.line : 0);
  return false;
}

void past_note_race(ClusterCheck *check, const Instruction *in, const Instruction *other) {
  struct SharedState *shared = check->shared;
  if (shared->race_count == RACES_KEPT) return;
  for (uint32_t i = 0; i < shared->race_count; i++)
    if (shared->races[i][0] == in && shared->races[i][1] == other) return;
  shared->races[shared->race_count][0] = in;
  shared->races[shared->race_count++][1] = other;
}

bool shared_have_raced(const ClusterCheck *check, const Instruction *in, const Instruction *other) {
  const struct SharedState *shared = check->shared;
  for (uint32_t i = 0; i < shared->race_count; i++)
    if (are_two_lines(in, other, shared->races[i][0], shared->races[i][1])) return true;
  return false;
}

bool past_allows(AccessNow *now, const AccessRecord *entry) {
  switch (entry->kind) {
    case ENTRY_WRITE:
      return check_after_write(now, entry);
    case ENTRY_READ:
      return check_after_read(now, entry);
    case ENTRY_BARRIER:
      return check_after_barrier(now, entry);
    default:
      if (check_after_operation(now, entry)) return true;
      past_note_race(now->check, now->in, entry->operation->in);
      return false;
  }
}

/* Reading uninitialised memory is a mistake if the value matters (propagate.c). Later accesses
 * show which mistake it is: a missing wait, a race, or memory that is never written. */
bool past_unwritten(const AccessNow *now, uint8_t written) {
  bool reads = now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ;
  return reads && (written & now->mask) != now->mask && !now->strong;
}

void past_confirm_exited(Cta *cta) {
  ClusterCheck *check = cta->cluster->check;
  struct CheckedMemory *memory = &check->shared->memory[cta->rank];
  memory->exited = true;
  if (!memory->unwritten_reads) return;
  for (uint32_t word = 0; word < memory->words; word = states_next(memory, word)) {
    uint32_t number = states_of(memory, word);
    if (number < FIRST_STATE || number >= PLAIN) continue;
    const WordState *state = state_at(check, number);
    for (unsigned i = 0; i < state->count; i++) {
      const AccessRecord *entry = &state->entries[i];
      if (entry->unwritten) confirm_unwritten(cta->cluster, entry);
    }
  }
}
