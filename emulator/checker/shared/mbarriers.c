/* mbarriers.c: what is known of each mbarrier: whether it may be used, in which phase it is, what its arrivals hand
 * on, and how each warp's waits were answered. */
#include <stdlib.h>
#include <string.h>

#include "base/summary.h"
#include "checker/shared/shared_state.h"
#include "state/groups.h"

void mbarriers_forget(ClusterCheck *check) {
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    free(check->shared->barriers[i]->answers);
    free(check->shared->barriers[i]->remote);
    free(check->shared->barriers[i]);
  }
  check->shared->barrier_count = 0;
}

static void fence_barriers_of(ClusterCheck *check, uint32_t agent) {
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    if (check->shared->barriers[i]->init_agent == agent) check->shared->barriers[i]->fenced = true;
  }
}

static void release_inits_of(ClusterCheck *check, uint32_t agent) {
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    MbarrierCheck *barrier = check->shared->barriers[i];
    if (barrier->init_agent == agent) barrier->init_released = true;
  }
}

/* The next barrier.cluster of who has released its init publishes that. */
static void publish_inits_of(ClusterCheck *check, uint32_t agent, uint32_t round) {
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    MbarrierCheck *barrier = check->shared->barriers[i];
    if (barrier->init_released && !barrier->init_round && barrier->init_agent == agent)
      barrier->init_round = round + 1;
  }
}

/* ---- mbarriers ---- */

MbarrierCheck *mbarrier_at(const ClusterCheck *check, uint32_t address) {
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    if (check->shared->barriers[i]->address == address) return check->shared->barriers[i];
  }
  return NULL;
}

/* The barrier at the same offset in the memory of this rank. */
static MbarrierCheck *same_barrier(const ClusterCheck *check, const MbarrierCheck *barrier,
                                   uint32_t rank) {
  return mbarrier_at(check, rank << 24 | SHARED_OFFSET(barrier->address));
}

/* Has the agent done anything since its last release? Otherwise it may be on its way to another arrival. */
static bool goes_on(const ClusterCheck *check, uint32_t agent) {
  return clock_of(check, agent) != order_of(check, agent)->epoch;
}

static bool any_arrived(const ClusterCheck *check, const MbarrierCheck *barrier, uint32_t rank) {
  bool any = false;
  for (uint32_t i = 0; i < check->warps_per_cta; i++)
    any |= barrier->arrived[rank * check->warps_per_cta + i] != 0;
  return any;
}

/* Is there a barrier at the same offset of another block, with the same count, for which threads wait? */
static const MbarrierCheck *awaited_at_other_rank(const ClusterCheck *check,
                                                  const MbarrierCheck *barrier) {
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    const MbarrierCheck *other = same_barrier(check, barrier, rank);
    if (!other || other == barrier || !other->valid || other->count != barrier->count) continue;
    for (uint32_t agent = 0; agent < check->agents; agent++)
      if (other->answers[agent].next || other->answers[agent].not_yet_lanes) return other;
  }
  return NULL;
}

/* The same offset of another block, where the reader has arrived since, and not here. */
static const MbarrierCheck *where_reader_arrived(const ClusterCheck *check,
                                                 const MbarrierCheck *right, uint32_t reader,
                                                 uint32_t time) {
  if (reader == UINT32_MAX || !goes_on(check, reader) || right->arrived[reader] >= time)
    return NULL;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    const MbarrierCheck *other = same_barrier(check, right, rank);
    if (other && other != right && other->arrived[reader] >= time) return other;
  }
  return NULL;
}

/* The same offset of another block, where threads of this block have arrived, and never here. */
static const MbarrierCheck *where_cta_arrived(const ClusterCheck *check, const MbarrierCheck *right,
                                              uint32_t own) {
  if (any_arrived(check, right, own)) return NULL;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    const MbarrierCheck *other = same_barrier(check, right, rank);
    if (other && other != right && any_arrived(check, other, own)) return other;
  }
  return NULL;
}

/* " at gemm.cu:40": of the last arrival there. */
static Phrase line_of_arrival(const MbarrierCheck *barrier) {
  return barrier->last_arrive ? phrase(" %s", place_of(barrier->last_arrive).text) : NO_PHRASE;
}

Phrase mbarrier_stray_arrival(const ClusterCheck *check, uint32_t issuer, uint32_t rank,
                              uint32_t reader, uint32_t time) {
  uint32_t own = issuer / check->warps_per_cta;
  for (uint32_t i = 0; check->cta_count > 1 && i < check->shared->barrier_count; i++) {
    const MbarrierCheck *right = check->shared->barriers[i];
    uint32_t offset = SHARED_OFFSET(right->address), agent = right->one_for_each - 1;
    bool waits = right->answers[issuer].next && right->valid && !right->announced;
    if (SHARED_RANK(right->address) != own || !waits) continue;
    const MbarrierCheck *other = where_reader_arrived(check, right, reader, time);
    if (!other && rank == own) other = where_cta_arrived(check, right, own);
    if (other)
      return phrase(
          "who has read it has arrived at the barrier at shared-memory offset 0x%x of rank "
          "%u%s, but this thread waits for that of rank %u",
          offset, SHARED_RANK(other->address), line_of_arrival(other).text, own);
    other = right->one_for_each ? awaited_at_other_rank(check, right) : NULL;
    if (!other) continue;
    return phrase(
        "this thread waits for the barrier at shared-memory offset 0x%x of rank %u, where %u lanes "
        "of warp %u of rank %u have arrived by one instruction%s, and threads also wait for the "
        "barrier at that offset of rank %u",
        offset, own, check->cta_count, agent % check->warps_per_cta, agent / check->warps_per_cta,
        line_of_arrival(right).text, SHARED_RANK(other->address));
  }
  return NO_PHRASE;
}

/* "line %u of the %s": where a barrier was initialised. */
static uint32_t init_line(const MbarrierCheck *barrier) {
  const Instruction *in = barrier->init_in;
  return in ? in->source.line ? in->source.line : in->line : 0;
}
static const char *init_text(const MbarrierCheck *barrier) {
  return barrier->init_in && !barrier->init_in->source.line ? "PTX" : "source";
}

static void report_init_again(Warp *warp, const Instruction *in, int lane,
                              const MbarrierCheck *barrier) {
  finding(
      warp, in, 1u << lane, RULE(MBARRIER_INIT_AGAIN),
      "initialises the barrier at shared-memory offset 0x%x, which has been initialised before "
      "(line %u of the %s) and is still valid.\n"
      "%s",
      SHARED_OFFSET(barrier->address), init_line(barrier), init_text(barrier),
      barrier->init_in == in &&
              (barrier->init_lane != lane || barrier->init_agent != agent_of(warp))
          ? "Another thread has done so by this same instruction: let one thread come here (if "
            "(threadIdx.x == 0), or elect.sync), and then come a fence and __syncthreads()."
          : "One thread must initialise it, once, and then come a fence and __syncthreads(). To "
            "give it another count, wait until all threads have used it, and call "
            "mbarrier.inval first.");
}

/* Who has used the barrier before it is initialised again, and when. */
static void note_users(ClusterCheck *check, MbarrierCheck *barrier) {
  if (!barrier->used) barrier->used = order_new_vector(check);
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const WaitAnswer *answer = &barrier->answers[agent];
    bool waits = answer->next || answer->not_yet_lanes;
    barrier->used[agent] = waits ? clock_of(check, agent) : barrier->arrived[agent];
    barrier->arrived[agent] = 0;
  }
}

static bool used_before_init(const ClusterCheck *check, const MbarrierCheck *barrier,
                             uint32_t agent) {
  return barrier->used && barrier->used[agent] &&
         !has_seen(check, agent, barrier->init_agent, barrier->init_time);
}

static void mbarrier_begun(Warp *warp, const Instruction *in, int lane, uint32_t address,
                           uint32_t count) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  MbarrierCheck *barrier = mbarrier_at(check, address);
  if (barrier && barrier->valid) {
    report_init_again(warp, in, lane, barrier);
    note_users(check, barrier);
  }
  if (!barrier) {
    if (check->shared->barrier_count ==
        sizeof check->shared->barriers / sizeof *check->shared->barriers) {
      summary_note(NOTE_barriers);
      return;
    }
    barrier = new_zeros(1, sizeof *barrier);
    barrier->answers = new_zeros(check->agents, sizeof *barrier->answers);
    barrier->place = order_new_place(check);
    barrier->arrived = order_new_vector(check);
    barrier->number = check->shared->barrier_count++;
    check->shared->barriers[barrier->number] = barrier;
    barrier->address = address;
  }
  barrier->valid = true;
  barrier->landed.in = NULL;
  barrier->fenced = barrier->init_released = false;
  barrier->init_round = 0;
  barrier->init_agent = (uint16_t)agent;
  barrier->init_clock = barrier->init_time = clock_of(check, agent);
  barrier->init_lane = lane;
  barrier->init_in = in;
  barrier->count = count;
  barrier->first_phase = barrier->phase = (barrier->phase + 1) & ~1u;
  barrier->finished_phase[0] = barrier->finished_phase[1] = UINT32_MAX;
  order_forget(check, &barrier->arriving);
  memset(barrier->answers, 0, check->agents * sizeof *barrier->answers);
  free(barrier->remote);
  barrier->remote = NULL;
  barrier->armed = 0;
  barrier->announced = false;
  barrier->copy_in = barrier->arrive_in = NULL;
  barrier->expecting = 0;
  shadow_set_barrier(warp->cta->cluster, address, barrier);
}

static void mbarrier_ended(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  MbarrierCheck *barrier = mbarrier_at(check_of(warp), address);
  if (!barrier) return;
  barrier->valid = false;
  shadow_end_barrier(warp, in, lane, address);
}

/* Another warp, or the copy engine, may see the barrier as it was before its init. */
static void check_init_visible(Warp *warp, const Instruction *in, int lane, uint32_t address,
                               MbarrierCheck *barrier) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  if (!knows_init(check, agent, barrier)) {
    past_note_race(check, in, barrier->init_in);
    if (used_before_init(check, barrier, agent))
      finding(
          warp, in, 1u << lane, RULE(MBARRIER_INIT_NOT_ORDERED),
          "the barrier at shared-memory offset 0x%x was initialised again by another warp (line "
          "%u of the %s) after this warp had used it, and nothing orders the second init after "
          "that or before this.\n"
          "Put __syncthreads() before the second mbarrier.init, so that all threads have seen "
          "the end of the last phase, and another one after it.",
          SHARED_OFFSET(address), init_line(barrier), init_text(barrier));
    else
      finding(
          warp, in, 1u << lane, RULE(MBARRIER_INIT_NOT_ORDERED),
          "the barrier at shared-memory offset 0x%x was initialised by another warp (line %u of "
          "the %s), and nothing orders that before this use.\n"
          "Put %s after the init.",
          SHARED_OFFSET(address), init_line(barrier), init_text(barrier),
          warp->flow->cluster_arrived
              ? "barrier.cluster.wait, for the barrier at which this warp has arrived only,"
          : check->cta_count > 1
              ? "a cluster barrier (barrier.cluster.arrive and .wait), which other "
                "blocks need, too, before they use this one,"
              : "__syncthreads()");
    barrier->init_clock = 0; /* report only once */
    return;
  }
  if (barrier->fenced || barrier->used_by_thread == in ||
      order_fenced(check, agent, FENCED_SHARED, barrier->init_agent, barrier->init_clock)) {
    return;
  }
  if (!(in->traits & COPY_ENGINE)) {
    barrier->used_by_thread = in;
    return;
  }
  finding(warp, in, 1u << lane, RULE(MBARRIER_INIT_NOT_FENCED),
          "the copy engine will use the barrier at shared-memory offset 0x%x, whose init (line "
          "%u of the %s) may not be visible to it yet.\n"
          "Put fence.mbarrier_init.release.cluster (or fence.proxy.async) after mbarrier.init, "
          "in the thread that called it. With a cuda::barrier that is "
          "cuda::ptx::fence_mbarrier_init after init().",
          SHARED_OFFSET(address), init_line(barrier), init_text(barrier));
  barrier->fenced = true;
}

/* The valid barrier of the block that is nearest to this address; NULL: there is none. */
static const MbarrierCheck *nearest_to(const ClusterCheck *check, uint32_t address) {
  const MbarrierCheck *nearest = NULL;
  int64_t least = UINT32_MAX;
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const int64_t distance = llabs((int64_t)check->shared->barriers[i]->address - address);
    if (!check->shared->barriers[i]->valid || distance >= least) continue;
    nearest = check->shared->barriers[i];
    least = distance;
  }
  return nearest;
}

__attribute__((noinline)) static void look_at_use(Warp *warp, const Instruction *in, int lane,
                                                  uint32_t address, MbarrierCheck *barrier) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), rank = SHARED_RANK(address);
  if (rank < check->cta_count && check->shared->memory[rank].exited) {
    finding(
        warp, in, 1u << lane, RULE(PEER_EXITED),
        "uses the barrier at shared-memory offset 0x%x of rank %u of the cluster, which has "
        "exited: its shared memory is gone.\n"
        "Keep every block alive until its peers are done with it: barrier.cluster.arrive and .wait "
        "before the end of the kernel.",
        SHARED_OFFSET(address), rank);
    return;
  }
  bool of_peer = rank != warp->cta->rank;
  if (of_peer && (!barrier || !barrier->valid || !knows_init(check, agent, barrier))) {
    if (check->shared->barrier_count == MBARRIERS_MOST) return;
    bool ready = barrier && barrier->valid;
    finding(warp, in, 1u << lane, RULE(PEER_BARRIER_NOT_READY),
            "uses the barrier at shared-memory offset 0x%x of rank %u of the cluster, %s.\n"
            "Put barrier.cluster.arrive.release and .wait.acquire after mbarrier.init and "
            "fence.mbarrier_init, in all blocks (__syncthreads() covers one block only).",
            SHARED_OFFSET(address), rank,
            ready ? "which has initialised it by luck: nothing orders that before this use"
                  : "which has not initialised it yet");
    if (ready) barrier->init_clock = 0; /* report only once */
    return;
  }
  if (!barrier || !barrier->valid) {
    if (check->shared->barrier_count == MBARRIERS_MOST) return;
    const MbarrierCheck *nearest = barrier ? NULL : nearest_to(check, address);
    finding(
        warp, in, 1u << lane, barrier ? RULE(MBARRIER_AFTER_INVAL) : RULE(MBARRIER_NOT_INITIALISED),
        "the barrier at shared-memory offset 0x%x%s %s.\n%s%s", SHARED_OFFSET(address),
        check->cta_count > 1 ? " of this or another block of the cluster" : "",
        barrier ? "has been invalidated (mbarrier.inval)" : "has not been initialised",
        !nearest
            ? ""
            : phrase("Is the address or index wrong here? The nearest barrier, at 0x%x, has been "
                     "initialised (line %u of the %s). ",
                     SHARED_OFFSET(nearest->address), init_line(nearest), init_text(nearest))
                  .text,
        barrier ? "Invalidate it after its last use, or initialise it again."
                : "One thread must call mbarrier.init before any use; then a fence "
                  "(fence.mbarrier_init or fence.proxy.async) and __syncthreads, or a cluster "
                  "barrier when other blocks use it.");
    return;
  }
  check_init_visible(warp, in, lane, address, barrier);
}

/* Would look_at_use find nothing for any lane of the warp? */
static bool is_known(const Warp *warp, const Instruction *in, uint32_t address,
                     const MbarrierCheck *barrier) {
  const ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), rank = SHARED_RANK(address);
  if (!barrier || !barrier->valid || rank != warp->cta->rank || check->shared->memory[rank].exited)
    return false;
  bool visible =
      barrier->fenced || barrier->used_by_thread == in ||
      order_fenced(check, agent, FENCED_SHARED, barrier->init_agent, barrier->init_clock);
  return visible && knows_init(check, agent, barrier);
}

bool mbarrier_use(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  MbarrierCheck *barrier = mbarrier_at(check_of(warp), address);
  if (is_known(warp, in, address, barrier)) return true;
  look_at_use(warp, in, lane, address, barrier);
  return is_known(warp, in, address, barrier);
}

/* Has each agent that arrives here arrived at the same offset of each other block, too, whose threads wait there? Else
 * arrivals may have gone to the wrong rank, which is another mistake. time: of the agent's arrival before this one. */
static bool arrive_everywhere(const ClusterCheck *check, const MbarrierCheck *barrier,
                              uint32_t agent, uint32_t time) {
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    const MbarrierCheck *other = same_barrier(check, barrier, rank);
    bool awaited = false, left_out = false;
    for (uint32_t i = 0; other && other != barrier && i < check->agents; i++) {
      awaited |= other->answers[i].next || other->answers[i].not_yet_lanes;
      left_out |= barrier->arrived[i] && !other->arrived[i];
      left_out |= i == agent && other->arrived[i] < time;
    }
    if (awaited && left_out) return false;
  }
  return true;
}

/* A barrier that the same line has initialised, in this block or at the same offset of another, and where the agent has
 * never arrived; NULL: there is none. */
static const MbarrierCheck *never_arrived_at(const ClusterCheck *check,
                                             const MbarrierCheck *barrier, uint32_t agent) {
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const MbarrierCheck *other = check->shared->barriers[i];
    const uint32_t differing = other->address ^ barrier->address;
    if (other != barrier && other->valid && other->init_in == barrier->init_in &&
        !other->arrived[agent] && (!SHARED_RANK(differing) || !SHARED_OFFSET(differing)))
      return other;
  }
  return NULL;
}

static Phrase describe_never_arrived(ClusterCheck *check, const MbarrierCheck *barrier,
                                     uint32_t agent) {
  const MbarrierCheck *never = never_arrived_at(check, barrier, agent);
  if (!never) return NO_PHRASE;
  return phrase(
      "This warp has arrived here before, and never at the barrier at offset 0x%x of rank %u, "
      "which the same line initialises: is the address of one of its arrivals wrong? ",
      SHARED_OFFSET(never->address), SHARED_RANK(never->address));
}

/* An arrival that is not ordered after those of the previous phase might have counted in that
 * phase, which then completed without the intended arrival. What a relaxed wait has shown is enough. */
static void check_arrival_belongs(Warp *warp, const Instruction *in, int lane,
                                  const MbarrierCheck *barrier, uint32_t before_this) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  if (barrier->phase == barrier->first_phase) return;
  /* In a cluster phase_ended_between() knows more of lanes that arrive by one instruction. */
  if (check->cta_count > 1 && barrier->last_arrive == in && barrier->last_agent == agent &&
      lane > barrier->last_lane)
    return;
  /* One instruction whose lanes arrive at the same barrier of each block is asked about one of them. */
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    const MbarrierCheck *other = same_barrier(check, barrier, rank);
    if (other && other != barrier && other->last_arrive == in && other->last_agent == agent) return;
  }
  if (!arrive_everywhere(check, barrier, agent, before_this)) return;
  const Clock *before = &barrier->finished[(barrier->phase - 1) & 1];
  if (!before->seen || barrier->finished_phase[(barrier->phase - 1) & 1] != barrier->phase - 1) {
    return;
  }
  uint32_t warps = 0;
  for (uint32_t other = 0; other < check->agents; other++) warps += barrier->arrived[other] != 0;
  const uint32_t together = (uint32_t)__builtin_popcount(current_group(warp)->mask);
  const Phrase beside = before_this ? describe_never_arrived(check, barrier, agent) : NO_PHRASE;
  const Instruction *finished_by = barrier->finished_by[(barrier->phase - 1) & 1];
  const bool elsewhere = finished_by && !is_one_line(finished_by, in);
  const MbarrierCheck *last = mbarrier_awaited_last(check, agent);
  const Phrase mistake =
      last && last->copy_in ? last_wait_mistake(check, agent, before_this) : NO_PHRASE;
  for (uint32_t other = 0; other < check->agents; other++) {
    const uint32_t *observed = order_of(check, agent)->observed.seen;
    if (has_seen(check, agent, other, before->seen[other]) ||
        (observed && observed[other] >= before->seen[other]))
      continue;
    finding(
        warp, in, 1u << lane, RULE(TOO_MANY_ARRIVALS),
        "arrives at the barrier at shared-memory offset 0x%x in its phase %u, and nothing "
        "orders that after the arrivals of phase %u: that phase completed without this one%s%s.\n"
        "%s%s%smbarrier.init (line %u of the %s) asks for %u arrival%s a phase. %u warp%s arrived "
        "here so "
        "far, this one with %u lane%s by one instruction. Count every thread that arrives, or "
        "let one "
        "lane arrive for its warp, after __syncwarp().",
        SHARED_OFFSET(barrier->address), barrier->phase - barrier->first_phase,
        barrier->phase - barrier->first_phase - 1, elsewhere ? ", with the arrival " : "",
        elsewhere ? place_of(finished_by).text : "", mistake.text, mistake.text[0] ? " " : "",
        beside.text, init_line(barrier), init_text(barrier), barrier->count,
        barrier->count == 1 ? "" : "s", warps, warps == 1 ? " has" : "s have", together,
        together == 1 ? "" : "s");
    return;
  }
}

static void phase_ended_between(Warp *warp, const Instruction *in, int lane, LaneMask lanes,
                                uint32_t address) {
  ClusterCheck *check = check_of(warp);
  const MbarrierCheck *barrier = mbarrier_at(check, address);
  if (!barrier || check->cta_count == 1) return; /* then check_arrival_belongs() reports it */
  bool one_for_each = (uint32_t)__builtin_popcount(lanes) == check->cta_count;
  const MbarrierCheck *other = one_for_each ? awaited_at_other_rank(check, barrier) : NULL;
  if (other) {
    finding(
        warp, in, 1u << lane, RULE(ARRIVAL_AT_ANOTHER_RANK),
        "arrives at the barrier at shared-memory offset 0x%x of rank %u, where a lower lane of "
        "this warp has arrived by the same instruction. %u lanes arrive for %u blocks, and threads "
        "also wait for the barrier at the same offset of rank %u.\n"
        "This arrival goes to the wrong rank: let each lane arrive at the barrier of another block "
        "(mapa with that rank).",
        SHARED_OFFSET(address), SHARED_RANK(address), check->cta_count, check->cta_count,
        SHARED_RANK(other->address));
    return;
  }
  finding(
      warp, in, 1u << lane, RULE(TOO_MANY_ARRIVALS),
      "arrives at the barrier at shared-memory offset 0x%x in its phase %u, after lower lanes of "
      "this warp have arrived by the same instruction in phase %u: that phase completed without "
      "this arrival.\n"
      "mbarrier.init (line %u of the %s) asks for %u arrival%s a phase. Count every thread that "
      "arrives, or let fewer arrive.",
      SHARED_OFFSET(address), barrier->phase - barrier->first_phase,
      barrier->phase - barrier->first_phase - 1, init_line(barrier), init_text(barrier),
      barrier->count, barrier->count == 1 ? "" : "s");
}

static void mbarrier_arrival(Warp *warp, const Instruction *in, int lane, uint32_t address,
                             Reach release, bool of_copies) {
  ClusterCheck *check = check_of(warp);
  MbarrierCheck *barrier = mbarrier_at(check, address);
  uint32_t agent = agent_of(warp);
  const bool of_peer = SHARED_RANK(address) != warp->cta->rank;
  /* cp.async.mbarrier.arrive: from here on, the thread's earlier copies are known to be
   * complete. */
  if (of_copies) copies_arrive(warp, lane);
  if (!barrier) return;
  if (of_peer) exit_note_remote_arrive(check, barrier, agent, lane, in);
  barrier->arrive_in = in;
  const uint32_t before_this = barrier->arrived[agent];
  barrier->arrived[agent] = clock_of(check, agent);
  if (release == REACH_PLAIN &&
      warp->cta->cluster->launch->global) { /* after a fence it is a release all the same */
    order_release_to_barrier(warp, in, of_peer, release, &barrier->arriving);
    return;
  }
  /* The lanes of one instruction arrive one by one but release the same clock, so once is enough.
   * This does not hold for cp.async, where each lane's copies land separately. */
  if (!of_copies && barrier->last_arrive == in && barrier->last_agent == agent &&
      lane > barrier->last_lane && barrier->last_clock == clock_of(check, agent) &&
      barrier->arriving.seen && barrier->arriving.seen[agent] == barrier->last_released) {
    barrier->last_lane = lane;
    if (++barrier->together == check->cta_count) barrier->one_for_each = agent + 1;
    if (barrier->together > check->cta_count) barrier->one_for_each = 0;
    return;
  }
  barrier->together = 1;
  check_arrival_belongs(warp, in, lane, barrier, before_this);
  barrier->last_released = clock_of(check, agent);
  order_release_to_barrier(warp, in, of_peer, release, &barrier->arriving);
  barrier->last_arrive = in;
  barrier->last_agent = agent;
  barrier->last_lane = lane;
  barrier->last_clock = clock_of(check, agent);
}

/* Grows whenever the agent learns anything of other agents or of mbarriers. */
static uint64_t knowledge_of(const ClusterCheck *check, uint32_t agent) {
  const uint32_t *seen = order_of(check, agent)->clock.seen;
  uint64_t all = 0;
  for (uint32_t other = 0; other < check->agents; other++) all += other == agent ? 0 : seen[other];
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const uint32_t place = check->shared->barriers[i]->place;
    if (place != NO_PLACE) all += seen[place];
  }
  return all;
}

/* A copy has been issued whose bytes count at another barrier of the block, which expects none. */
static Phrase describe_unexpected(const ClusterCheck *check, const MbarrierCheck *barrier) {
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const MbarrierCheck *each = check->shared->barriers[i];
    if (each == barrier || SHARED_RANK(each->address) != SHARED_RANK(barrier->address) ||
        !each->copy_in || each->copy_phase != each->phase || each->expecting & 1)
      continue;
    return phrase(
        " (that at 0x%x, where the bytes of the copy %s count, and no thread has expected them)",
        SHARED_OFFSET(each->address), place_of(each->copy_in).text);
  }
  return NO_PHRASE;
}

static void bytes_expected(Warp *warp, const Instruction *in, int lane, uint32_t address,
                           uint32_t bytes) {
  ClusterCheck *check = check_of(warp);
  MbarrierCheck *barrier = mbarrier_at(check, address);
  if (!barrier || !bytes) return;
  barrier->announced = true;
  barrier->expecting |= 1;
  barrier->expect_in = in;
  if (!(in->traits & ARRIVES)) return;
  uint32_t agent = agent_of(warp);
  const WaitAnswer *answer = &barrier->answers[agent];
  uint64_t knowing = knowledge_of(check, agent);
  /* expect_tx twice in one phase, or in the next one by luck: a thread that expects bytes must know
   * that the bytes of the previous phase have arrived. This is reported only if the thread has not
   * waited at all. An insufficient wait is a different mistake. */
  bool by_same = barrier->armed_agent == agent && barrier->armed_lane == lane;
  bool twice = barrier->armed == barrier->phase + 1 && barrier->count == 1;
  bool by_luck = barrier->armed && barrier->armed == barrier->phase &&
                 barrier->place != UINT32_MAX && !(answer->next > barrier->phase) &&
                 !has_seen(check, agent, barrier->place, barrier->phase);
  const uint32_t *observed = order_of(check, agent)->observed.seen;
  bool waited =
      knowing != barrier->armed_knowing || (answer->next && answer->stale) ||
      (observed && barrier->place != NO_PLACE && observed[barrier->place] >= barrier->phase);
  if (by_same && (twice || by_luck) && !waited) {
    const Phrase mistake = last_wait_mistake(check, agent, barrier->armed_clock);
    finding(
        warp, in, 1u << lane, RULE(STAGE_REUSED_TOO_EARLY),
        "expects bytes at the barrier at shared-memory offset 0x%x for another copy, but has not "
        "waited for anything that shows that phase %u, with the bytes of the previous copy, is "
        "complete%s.\n"
        "%s%sIt has expected bytes here %s before: if this or that means another barrier%s, its "
        "address is wrong; if both are for one fill, expect its bytes once. Before a stage is "
        "filled "
        "again, wait until its readers have reported that they are done: arrivals on a barrier "
        "that "
        "this thread waits for, or %s.",
        SHARED_OFFSET(address), barrier->armed - 1 - barrier->first_phase,
        by_luck ? " (it is, by luck)" : "", mistake.text, mistake.text[0] ? " " : "",
        place_of(barrier->armed_in).text, describe_unexpected(check, barrier).text,
        check->cta_count > 1 ? "a cluster barrier" : "__syncthreads");
  }
  barrier->armed_again = barrier->armed == barrier->phase + 1 && barrier->armed_agent != agent &&
                         has_seen(check, agent, barrier->armed_agent, barrier->armed_clock);
  barrier->armed = barrier->phase + 1;
  barrier->armed_agent = agent;
  barrier->armed_before = barrier->armed_clock;
  barrier->armed_in = in;
  barrier->armed_clock = clock_of(check, agent);
  barrier->armed_lane = lane;
  barrier->armed_knowing = knowing;
}

static void phase_completed(Cluster *cluster, uint32_t address, uint32_t finished_phase) {
  if (!cluster->check) return;
  MbarrierCheck *barrier = mbarrier_at(cluster->check, address);
  if (!barrier) return;
  finished_phase += barrier->first_phase;
  Clock *finished = &barrier->finished[finished_phase & 1];
  const Clock before = *finished;
  *finished = barrier->arriving;
  barrier->arriving = before;
  order_forget(cluster->check, &barrier->arriving);
  barrier->finished_phase[finished_phase & 1] = finished_phase;
  barrier->finished_by[finished_phase & 1] = barrier->arrive_in;
  barrier->expecting <<= 1;
  barrier->phase = finished_phase + 1;
}

static void phase_observed(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                           uint32_t phase, bool acquire) {
  ClusterCheck *check = check_of(warp);
  int lane = first_lane(lanes);
  MbarrierCheck *barrier = mbarrier_at(check, address);
  if (!barrier) return;
  uint32_t agent = agent_of(warp);
  bool none_complete = phase == UINT32_MAX;
  phase += barrier->first_phase;
  WaitAnswer *answer = &barrier->answers[agent];
  bool same_wait = answer->in == in && lane > answer->lane && answer->next == phase + 2;
  if (!same_wait) { /* the same wait as the previous lane, which has done the update */
    uint32_t known =
        barrier->place == NO_PLACE ? 0 : order_of(check, agent)->clock.seen[barrier->place];
    answer->stale = none_complete || known > phase;
    uint32_t before = answer->next ? answer->next - 1 : barrier->first_phase;
    if (!none_complete && phase > before) answer->missed += phase - before;
  }
  answer->next = phase + 2;
  answer->time = check->now;
  answer->order = ++check->shared->waits;
  answer->relaxed = acquire ? NULL : in;
  answer->not_yet_lanes &= ~lanes;
  answer->in = in;
  answer->lane = lane;
  /* The warp already knows what the previous lane learnt. A barrier without completed phases gives
   * no information. */
  if (same_wait || none_complete) return;
  const bool kept = barrier->finished_phase[phase & 1] == phase;
  order_acquire_phase(check, agent, acquire, kept ? &barrier->finished[phase & 1] : NULL,
                      barrier->place, phase + 1);
}

static void answered_not_yet(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  MbarrierCheck *barrier = mbarrier_at(check_of(warp), address);
  if (!barrier) return;
  WaitAnswer *answer = &barrier->answers[agent_of(warp)];
  answer->not_yet = in;
  answer->not_yet_lanes |= 1u << lane;
  answer->asked = barrier->phase;
}

const Instruction *mbarrier_answered_not_yet(const MbarrierCheck *barrier, uint32_t agent,
                                             int lane) {
  if (!barrier || lane < 0) return NULL;
  const WaitAnswer *answer = &barrier->answers[agent];
  return answer->not_yet_lanes >> lane & 1 ? answer->not_yet : NULL;
}

bool mbarrier_answered_stale(const MbarrierCheck *barrier, uint32_t agent, uint32_t phase,
                             uint32_t *next) {
  if (!barrier || !barrier->answers[agent].stale) return false;
  *next = barrier->answers[agent].next - 1;
  return *next <= phase;
}

/* Where the wait fits what the warp has waited for itself, it means that phase, and may be late. */
static uint32_t next_phase(const ClusterCheck *check, const MbarrierCheck *barrier, uint32_t agent,
                           uint32_t parity) {
  uint32_t next = barrier->answers[agent].next, known = 0;
  next = next ? next - 1 - barrier->first_phase : 0;
  if (barrier->place != NO_PLACE) known = order_of(check, agent)->clock.seen[barrier->place];
  known = known > barrier->first_phase ? known - barrier->first_phase : 0;
  return known > next && (next & 1u) != parity && (known & 1u) == parity ? known : next;
}

static void look_who_frees(const Warp *warp, MbarrierPast *past) {
  const ClusterCheck *check = check_of(warp);
  uint32_t own = warp->cta->rank;
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const MbarrierCheck *barrier = check->shared->barriers[i];
    const WaitAnswer *answer = &barrier->answers[agent_of(warp)];
    const bool waited = answer->next != 0;
    if (answer->not_yet_lanes && SHARED_RANK(barrier->address) == own)
      past->not_yet = answer->not_yet;
    if (SHARED_RANK(barrier->address) != own || !waited || any_arrived(check, barrier, own))
      continue;
    for (uint32_t rank = 0; rank < check->cta_count; rank++) {
      if (!any_arrived(check, barrier, rank)) continue;
      past->freed_by_others = true;
      past->freed_offset = SHARED_OFFSET(barrier->address);
      past->freed_by = rank;
      return;
    }
  }
}

/* Does the agent know of all that the last phase has waited for? Bytes of copies it cannot know but from a wait. */
static bool is_over_by_luck(const ClusterCheck *check, const MbarrierCheck *barrier,
                            uint32_t agent) {
  const WaitAnswer *answer = &barrier->answers[agent];
  const uint32_t last = barrier->phase - 1, *observed = order_of(check, agent)->observed.seen;
  const Clock *finished = &barrier->finished[last & 1];
  if (barrier->phase == barrier->first_phase || barrier->place == NO_PLACE) return false;
  if (barrier->finished_phase[last & 1] != last || answer->next > last + 1) return false;
  if (observed && observed[barrier->place] >= barrier->phase) return false;
  if (answer->not_yet_lanes && answer->asked == barrier->phase) return false;
  if (barrier->copied == barrier->phase) return true;
  for (uint32_t other = 0; finished->seen && other < check->agents; other++)
    if (!has_seen(check, agent, other, finished->seen[other])) return true;
  return false;
}

MbarrierPast check_mbarrier_past(const Warp *warp, uint32_t address, uint32_t parity) {
  const ClusterCheck *check = check_of(warp);
  const MbarrierCheck *barrier = mbarrier_at(check, address);
  const uint32_t agent = agent_of(warp);
  MbarrierPast past = {0};
  if (parity != INIT_ONLY) look_who_frees(warp, &past);
  if (!barrier) return past;
  past.valid = barrier->valid && !check->shared->memory[SHARED_RANK(address)].exited;
  past.init = (MbarrierInit){.number = barrier->number,
                             .agent = barrier->init_agent,
                             .lane = barrier->init_lane,
                             .in = barrier->init_in,
                             .line = init_line(barrier),
                             .text = init_text(barrier)};
  past.known_over =
      barrier->place != NO_PLACE && has_seen(check, agent, barrier->place, barrier->phase);
  past.over_by_luck = !past.known_over && is_over_by_luck(check, barrier, agent);
  if (parity == INIT_ONLY) return past;
  past.wait = last_wait_mistake(check, agent, barrier->armed_before);
  past.next_phase = next_phase(check, barrier, agent, parity);
  past.missed_phases = barrier->answers[agent].missed;
  past.lost = used_before_init(check, barrier, agent);
  past.announced_again = barrier->armed_again;
  return past;
}

/* ---- Events ---- */

static void fence(Warp *warp, const Instruction *in, LaneMask mask, Fence kind) {
  (void)in, (void)mask;
  const bool of_init = kind.kind == FENCE_MBARRIER_INIT;
  if (of_init || (kind.kind == FENCE_PROXY_ASYNC && kind.spaces & PROXY_OF_OWN_SHARED))
    fence_barriers_of(check_of(warp), agent_of(warp));
  if (of_init) release_inits_of(check_of(warp), agent_of(warp));
}

static void barrier_arrival(Warp *warp, const Instruction *in, const BarrierUse *use) {
  (void)in;
  if (use->number == BARRIER_OF_CLUSTER)
    publish_inits_of(check_of(warp), agent_of(warp), use->round);
}

static const Subscriber MBARRIERS = {.fence = fence,
                                     .barrier_arrival = barrier_arrival,
                                     .mbarrier_begun = mbarrier_begun,
                                     .mbarrier_ended = mbarrier_ended,
                                     .bytes_expected = bytes_expected,
                                     .mbarrier_arrival = mbarrier_arrival,
                                     .phase_completed = phase_completed,
                                     .phase_ended_between = phase_ended_between,
                                     .phase_observed = phase_observed,
                                     .answered_not_yet = answered_not_yet};
SUBSCRIBE(MBARRIER_EVENTS, MBARRIERS)
