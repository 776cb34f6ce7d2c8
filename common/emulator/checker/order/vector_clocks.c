/* vector_clocks.c: the order of accesses: barriers, mbarriers and fences as vector clocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "checker/lanes/lane_access.h"
#include "checker/lanes/lanes.h"
#include "checker/check_state.h"
#include "checker/order/larger.h"
#include "state/groups.h"

/* ---- Vectors ---- */

static uint32_t *new_vector(ClusterCheck *check) {
  _Static_assert(AT_ONCE * sizeof(uint32_t) >= sizeof(void *), "the first piece holds a pointer");
  if (check->vectors_used + check->capacity > check->vector_capacity) {
    /* Vectors in use must not move: the first piece of the new block points to the old block. */
    size_t capacity =
        (check->vector_capacity ? check->vector_capacity : 64 * (size_t)check->capacity) * 2;
    uint32_t *block = aligned_alloc(AT_ONCE * sizeof *block, capacity * sizeof *block);
    if (!block) out_of_memory();
    memcpy(block, &check->vectors, sizeof(void *));
    check->vectors = block;
    check->vector_capacity = capacity;
    check->vectors_used = AT_ONCE;
  }
  uint32_t *vector = check->vectors + check->vectors_used;
  check->vectors_used += check->capacity;
  memset(vector, 0, check->capacity * sizeof *vector);
  return vector;
}

static Clock order_new_clock(ClusterCheck *check) {
  Clock clock = {.seen = NULL};
  clock.seen = new_vector(check);
  for (int space = 0; space < FENCED_SPACES; space++)
    if (space != FENCED_PEERS || check->cta_count > 1) clock.fenced[space] = new_vector(check);
  *(check->cta_count > 1 ? &clock.published : &clock.before) = new_vector(check);
  return clock;
}

static void join(uint32_t *into, const uint32_t *from, uint32_t width) {
  for (uint32_t at = 0; at < width; at += AT_ONCE)
    *piece_at(into, at) = larger(*piece_at(into, at), *const_piece_at(from, at));
}

/* After this many accesses the clock saturates: later races are missed, but no correct program is
 * accused. */
static uint32_t tick(ClusterCheck *check) {
  if (check->now < TIME_MOST) check->now++;
  return check->now;
}

/* Later accesses of the warp are not covered by this release. */
static void begin_epoch(ClusterCheck *check, uint32_t agent) {
  check->current_clock[agent] = check->epoch[agent] = tick(check);
}

static void begin_epoch_released(ClusterCheck *check, uint32_t agent) {
  check->released[1][agent] = check->released[0][agent];
  check->first_write[1][agent] = check->first_write[0][agent];
  check->released[0][agent] = check->current_clock[agent];
  check->first_write[0][agent] = UINT32_MAX;
  begin_epoch(check, agent);
}

/* Many sites are stored and few are looked up, so a site fits into 64 bits: the instruction's
 * address, whether it was strong, and the part of the time that the index does not give. */
enum { TAG_BITS = 16 };

uint32_t order_new_time(ClusterCheck *check, uint32_t agent, const Instruction *in, bool strong) {
  _Static_assert(TIME_MOST / PLACES < 1u << TAG_BITS, "the tag is different for all times");
  _Static_assert(_Alignof(Instruction) > 1, "the lowest bit of an address is free");
  uint32_t time = tick(check);
  check->current_clock[agent] = time;
  *time_slot(check, agent, in) = (TimeSlot){in, time};
  check->places[time % PLACES] = ((uint64_t)(uintptr_t)in | strong) << TAG_BITS | time / PLACES;
  return time;
}

AccessSite order_site(const ClusterCheck *check, uint32_t time) {
  static const Instruction FORGOTTEN = {.text = ""};
  uint64_t place = check->places[time % PLACES], address = place >> TAG_BITS;
  if ((place & ((1u << TAG_BITS) - 1)) != time / PLACES || address == 0)
    return (AccessSite){&FORGOTTEN, .strong = true}; /* better than a false accusation */
  return (AccessSite){(const Instruction *)(uintptr_t)(address & ~1ull), address & 1};
}

__attribute__((noinline)) static void join_known(ClusterCheck *check, Clock *into,
                                                 const Clock *from) {
  global_known_add(check, &into->known, &from->known);
}

static inline void join_fenced(const ClusterCheck *check, Clock *into, const Clock *from) {
  for (int space = 0; space < FENCED_SPACES; space++)
    if (from->fenced[space]) join(into->fenced[space], from->fenced[space], check->width);
}

static inline void join_clock(ClusterCheck *check, Clock *into, const Clock *from) {
  if (!from->seen) return;
  join(into->seen, from->seen, check->width);
  join_fenced(check, into, from);
  if (from->published) join(into->published, from->published, check->width);
  if (from->before) join(into->before, from->before, check->width);
  if (check->global) join_known(check, into, from);
}

void order_begin_released_epoch(ClusterCheck *check, uint32_t agent) {
  begin_epoch_released(check, agent);
}

static void order_release(ClusterCheck *check, uint32_t agent, Clock *into) {
  if (!into->seen) *into = order_new_clock(check);
  join_clock(check, into, &check->clocks[agent]);
  into->seen[agent] = check->current_clock[agent];
  if (into->published) into->published[agent] = check->current_clock[agent];
  if (into->before) into->before[agent] = check->current_clock[agent];
  begin_epoch_released(check, agent);
}

/* A release whose scope does not include who will wait. What earlier fences of a wider scope have
 * released is published. */
static void order_release_narrowly(ClusterCheck *check, Warp *warp, Clock *into) {
  uint32_t agent = agent_of(warp);
  if (!into->seen) *into = order_new_clock(check);
  join(into->seen, check->clocks[agent].seen, check->width);
  join_fenced(check, into, &check->clocks[agent]);
  if (check->global) join_known(check, into, &check->clocks[agent]);
  into->seen[agent] = check->current_clock[agent];
  global_release_fenced(warp, REACH_CLUSTER, into);
  begin_epoch_released(check, agent);
}

static void order_acquire(ClusterCheck *check, uint32_t agent, const Clock *from) {
  if (!from->seen) return;
  join_clock(check, &check->clocks[agent], from);
  order_begin_epoch(check, agent);
}

static void forget(Clock *clock, uint32_t width) {
  if (!clock->seen) return;
  memset(clock->seen, 0, width * sizeof *clock->seen);
  for (int space = 0; space < FENCED_SPACES; space++)
    if (clock->fenced[space]) memset(clock->fenced[space], 0, width * sizeof(uint32_t));
  if (clock->published) memset(clock->published, 0, width * sizeof *clock->published);
  if (clock->before) memset(clock->before, 0, width * sizeof *clock->before);
  clock->known = (GlobalKnowledge){{NULL}};
}

static void swap(Clock *one, Clock *other) {
  Clock held = *one;
  *one = *other;
  *other = held;
}

/* Everything that stores a time must be reset too. */
static void begin_time(ClusterCheck *check) {
  check->now = 0;
  reads_forget_all(check);
  memset(check->times, 0, check->agents * TIME_SLOTS * sizeof *check->times);
  memset(check->places, 0, PLACES * sizeof *check->places);
  memset(check->known_epoch, 0, check->agents * sizeof *check->known_epoch);
  memset(check->memos, 0, MEMOS * sizeof *check->memos);
  global_forget_times(check);
}

/* Frees all blocks except the newest, which is large enough for a cluster like the last one. */
static void free_older_vectors(ClusterCheck *check) {
  void *older = NULL;
  if (check->vectors) memcpy(&older, check->vectors, sizeof older);
  while (older) {
    void *next;
    memcpy(&next, older, sizeof next);
    free(older);
    older = next;
  }
  if (check->vectors) memset(check->vectors, 0, sizeof(void *));
  check->vectors_used = check->vectors ? AT_ONCE : 0;
}

static void free_barriers(ClusterCheck *check) {
  for (uint32_t i = 0; i < check->barrier_count; i++) {
    free(check->barriers[i]->answers);
    free(check->barriers[i]->remote);
    free(check->barriers[i]);
  }
  check->barrier_count = 0;
}

void order_begin(ClusterCheck *check) {
  check->width = check->agents;
  free_older_vectors(check);
  if (check->now > TIME_MOST / 2) begin_time(check);
  check->start = tick(check);
  check->overlap_first = check->overlap_end = 0;
  memset(check->last_read, 0, check->agents * sizeof *check->last_read);
  memset(check->last_write, 0, check->agents * sizeof *check->last_write);
  memset(check->observed, 0, check->agents * sizeof *check->observed);
  check->fenced_by_others = new_vector(check);
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    check->clocks[agent] = order_new_clock(check);
    for (uint32_t other = 0; other < check->agents; other++) {
      check->clocks[agent].seen[other] = check->start;
    }
    check->clocks[agent].seen[agent] = UINT32_MAX;
    uint32_t *other =
        check->cta_count > 1 ? check->clocks[agent].published : check->clocks[agent].before;
    memcpy(other, check->clocks[agent].seen, check->agents * sizeof *other);
    check->wgmma_group[agent] = 1;
  }
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    check->current_clock[agent] = check->start;
    begin_epoch_released(check, agent);
    begin_epoch_released(check, agent);
  }
  memset(check->cluster_arriving, 0, sizeof check->cluster_arriving);
  memset(check->cluster_leaving, 0, sizeof check->cluster_leaving);
  memset(check->leaving_seen, 0, sizeof check->leaving_seen);
  memset(check->exits, 0, check->agents * sizeof *check->exits);
  memset(check->exited_before, 0, check->agents * sizeof *check->exited_before);
  check->cluster_round[0] = check->cluster_round[1] = UINT32_MAX;
  check->crossed = check->any_narrow = false;
  memset(check->any_fenced, 0, sizeof check->any_fenced);
  memset(check->cluster_waited, 0, sizeof check->cluster_waited);
  free_barriers(check);
  locations_begin(check);
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    memset(check->ctas[rank].arriving, 0, sizeof check->ctas[rank].arriving);
    memset(check->ctas[rank].passed, 0, sizeof check->ctas[rank].passed);
    check->ctas[rank].exited_warps = 0;
    check->ctas[rank].standing[0] = check->ctas[rank].standing[1] = NULL;
    check->ctas[rank].passed_apart[0] = NULL;
    memset(check->ctas[rank].arrived_warps, 0, sizeof check->ctas[rank].arrived_warps);
    memset(check->ctas[rank].left_warps, 0, sizeof check->ctas[rank].left_warps);
    check->ctas[rank].exited = check->ctas[rank].unwritten_reads = false;
    check->ctas[rank].narrow_arrival = NULL;
    check->ctas[rank].idle_wait = check->ctas[rank].own_wait = NULL;
  }
}

/* ---- Barriers of a block and of the cluster ---- */

/* Barrier 0 with all threads is __syncthreads(), as a rule. */
static void note_standing(struct CheckedMemory *memory, const Instruction *in) {
  if (!memory->standing[0])
    memory->standing[0] = in;
  else if (!memory->standing[1] && !is_one_line(memory->standing[0], in))
    memory->standing[1] = in;
}

static void note_passed(struct CheckedMemory *memory, bool of_all) {
  if (of_all && memory->standing[1] && !memory->passed_apart[0])
    memcpy(memory->passed_apart, memory->standing, sizeof memory->standing);
  memory->standing[0] = memory->standing[1] = NULL;
}

void check_barrier_arrive(Warp *warp, const Instruction *in, uint32_t barrier, LaneMask mask) {
  if (barrier >= NAMED_BARRIERS) return;
  ClusterCheck *check = check_of(warp);
  struct CheckedMemory *memory = &check->ctas[warp->cta->rank];
  if (barrier == 0) note_standing(memory, in);
  if (check->global) global_barrier(warp);
  lanes_release(check, agent_of(warp), in, mask);
  order_release(check, agent_of(warp), &memory->arriving[barrier]);
  memory->arrived_warps[barrier] |= 1u << warp->index;
}

void check_barrier_complete(Cta *cta, uint32_t barrier, bool of_all) {
  if (barrier >= NAMED_BARRIERS) return;
  ClusterCheck *check = cta->cluster->check;
  struct CheckedMemory *memory = &check->ctas[cta->rank];
  if (barrier == 0) note_passed(memory, of_all);
  memory->left_warps[barrier] = of_all ? memory->exited_warps & ~memory->arrived_warps[barrier] : 0;
  memory->arrived_warps[barrier] = 0;
  swap(&memory->arriving[barrier], &memory->passed[barrier]);
  forget(&memory->arriving[barrier], check->width);
}

void check_barrier_wait(Warp *warp, uint32_t barrier, LaneMask mask) {
  if (barrier >= NAMED_BARRIERS) return;
  ClusterCheck *check = check_of(warp);
  const struct CheckedMemory *memory = &check->ctas[warp->cta->rank];
  uint32_t agent = agent_of(warp);
  lanes_acquire(check, agent, mask, live_lanes(warp));
  order_acquire(check, agent, &memory->passed[barrier]);
  check->exited_before[agent] |= memory->left_warps[barrier];
}

void check_warp_exit(Warp *warp, const Instruction *in, LaneMask exiting) {
  if (warp->lanes & ~(warp->exited | exiting)) return;
  ClusterCheck *check = check_of(warp);
  check->exits[agent_of(warp)] = in;
  check->ctas[warp->cta->rank].exited_warps |= 1u << warp->index;
}

/* A warp that has passed may arrive for the next round while a slower one has not yet taken over
 * this round's clock, so there are two clocks, indexed by the round's parity. */
void check_cluster_arrive(Warp *warp, const Instruction *in, bool release, uint32_t round) {
  ClusterCheck *check = check_of(warp);
  Clock *clock = &check->cluster_arriving[round & 1];
  if (check->cluster_round[round & 1] != round) {
    check->cluster_round[round & 1] = round;
    forget(clock, check->width);
    forget(&check->cluster_leaving[round & 1], check->width);
  }
  uint32_t agent = agent_of(warp);
  lanes_release(check, agent, in, live_lanes(warp));
  order_release(check, agent, &check->cluster_leaving[round & 1]);
  for (uint32_t i = 0; i < check->barrier_count; i++) {
    MbarrierCheck *barrier = check->barriers[i];
    if (barrier->init_released && !barrier->init_round && barrier->init_agent == agent) {
      barrier->init_round = round + 1;
    }
  }
  if (release) {
    order_release(check, agent, clock);
    return;
  }
  /* after a fence of the cluster or more, a relaxed arrival is a release */
  if (!clock->seen) *clock = order_new_clock(check);
  global_release_fenced(warp, REACH_CLUSTER, clock);
}

void check_cluster_wait(Warp *warp, uint32_t round) {
  ClusterCheck *check = check_of(warp);
  if (check->cluster_round[round & 1] != round) return;
  Clock *learnt = &check->leaving_seen[warp->cta->rank];
  if (!learnt->seen) *learnt = order_new_clock(check);
  join(learnt->seen, check->cluster_leaving[round & 1].seen, check->width);
  lanes_acquire(check, agent_of(warp), live_lanes(warp), live_lanes(warp));
  check->cluster_waited[agent_of(warp)] = round + 1;
  order_acquire(check, agent_of(warp), &check->cluster_arriving[round & 1]);
}

/* ---- Fences ---- */

/* Ordinary fences order strong accesses. For those to shared memory, order_locations does not need
 * them. */
void check_fence(Warp *warp, FenceScope scope, bool sc) {
  static const Reach reach[] = {[FENCE_CTA] = REACH_CTA,
                                [FENCE_CLUSTER] = REACH_CLUSTER,
                                [FENCE_GPU] = REACH_GPU,
                                [FENCE_SYSTEM] = REACH_SYSTEM};
  global_fence(warp, reach[scope], sc);
  ClusterCheck *check = check_of(warp);
  order_acquire(check, agent_of(warp), &check->observed[agent_of(warp)]);
}

static void fence_barriers_of(ClusterCheck *check, uint32_t agent) {
  for (uint32_t i = 0; i < check->barrier_count; i++) {
    if (check->barriers[i]->init_agent == agent) check->barriers[i]->fenced = true;
  }
}

static void fence_space(ClusterCheck *check, uint32_t agent, int space) {
  Clock *clock = &check->clocks[agent];
  join(clock->fenced[space], clock->seen, check->width);
  clock->fenced[space][agent] = check->current_clock[agent];
  check->any_fenced[space] = true;
}

/* A fence for .shared::cta is one for what others have written to the memory of this block, and not for
 * what its own threads have written to that of others. */
static void fence_of_own_shared(ClusterCheck *check, uint32_t agent) {
  Clock *clock = &check->clocks[agent];
  uint32_t first = agent / check->warps_per_cta * check->warps_per_cta;
  for (uint32_t other = 0; other < check->agents; other++) {
    bool own = other >= first && other < first + check->warps_per_cta;
    if (!own && clock->fenced[FENCED_PEERS][other] < clock->seen[other])
      clock->fenced[FENCED_PEERS][other] = clock->seen[other];
  }
}

static void fence_shared(Warp *warp, uint8_t spaces, LaneMask mask) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), own = check->fenced_by_others[agent];
  join(check->fenced_by_others, check->clocks[agent].seen, whole_pieces(check->agents));
  check->fenced_by_others[agent] = own;
  if (check->lanes_checked) lanes_note_fence(check, agent, mask, live_lanes(warp));
  fence_space(check, agent, FENCED_SHARED);
  if (check->cta_count > 1 && (spaces & PROXY_OF_SHARED) == PROXY_OF_SHARED)
    fence_space(check, agent, FENCED_PEERS);
  else if (check->cta_count > 1)
    fence_of_own_shared(check, agent);
  fence_barriers_of(check, agent);
}

void check_fence_proxy_async(Warp *warp, uint8_t spaces, LaneMask mask) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  if (spaces & PROXY_OF_GLOBAL) {
    global_fence_proxy_async(warp);
    fence_space(check, agent, FENCED_GLOBAL);
  }
  if (spaces & PROXY_OF_OWN_SHARED) fence_shared(warp, spaces, mask);
  begin_epoch(check, agent); /* later writes of this warp are not covered by the fence */
}

void check_fence_mbarrier_init(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)in, (void)mask;
  ClusterCheck *check = check_of(warp);
  fence_barriers_of(check, agent_of(warp));
  for (uint32_t i = 0; i < check->barrier_count; i++) {
    if (check->barriers[i]->init_agent == agent_of(warp)) check->barriers[i]->init_released = true;
  }
}

/* ---- mbarriers ---- */

MbarrierCheck *order_find_barrier(const ClusterCheck *check, uint32_t address) {
  for (uint32_t i = 0; i < check->barrier_count; i++) {
    if (check->barriers[i]->address == address) return check->barriers[i];
  }
  return NULL;
}

/* The barrier at the same offset in the memory of this rank. */
static MbarrierCheck *same_barrier(const ClusterCheck *check, const MbarrierCheck *barrier,
                                   uint32_t rank) {
  return order_find_barrier(check, rank << 24 | SHARED_OFFSET(barrier->address));
}

/* Has the agent done anything since its last release? Otherwise it may be on its way to another arrival. */
static bool goes_on(const ClusterCheck *check, uint32_t agent) {
  return check->current_clock[agent] != check->epoch[agent];
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

bool order_stray_arrival(const ClusterCheck *check, uint32_t issuer, uint32_t rank, uint32_t reader,
                         uint32_t time, char *text, size_t capacity) {
  uint32_t own = issuer / check->warps_per_cta;
  for (uint32_t i = 0; check->cta_count > 1 && i < check->barrier_count; i++) {
    const MbarrierCheck *right = check->barriers[i];
    uint32_t offset = SHARED_OFFSET(right->address), agent = right->one_for_each - 1;
    bool waits = right->answers[issuer].next && right->valid && !right->announced;
    if (SHARED_RANK(right->address) != own || !waits) continue;
    const MbarrierCheck *other = where_reader_arrived(check, right, reader, time);
    if (!other && rank == own) other = where_cta_arrived(check, right, own);
    if (other) {
      snprintf(
          text, capacity,
          "who has read it has arrived at the barrier at shared-memory offset 0x%x of rank %u, but "
          "this thread waits for that of rank %u",
          offset, SHARED_RANK(other->address), own);
      return true;
    }
    other = right->one_for_each ? awaited_at_other_rank(check, right) : NULL;
    if (!other) continue;
    snprintf(
        text, capacity,
        "this thread waits for the barrier at shared-memory offset 0x%x of rank %u, where %u lanes "
        "of warp %u of rank %u have arrived by one instruction, and threads also wait for the "
        "barrier at that offset of rank %u",
        offset, own, check->cta_count, agent % check->warps_per_cta, agent / check->warps_per_cta,
        SHARED_RANK(other->address));
    return true;
  }
  return false;
}

/* "line %u of the %s": where a barrier was initialised. */
static uint32_t init_line(const MbarrierCheck *barrier) {
  const Instruction *in = barrier->init_in;
  return in ? in->source_line ? in->source_line : in->line : 0;
}
static const char *init_text(const MbarrierCheck *barrier) {
  return barrier->init_in && !barrier->init_in->source_line ? "PTX" : "source";
}

static void report_init_again(Warp *warp, const Instruction *in, int lane,
                              const MbarrierCheck *barrier) {
  finding(warp, in, 1u << lane, "mbarrier-init-again",
          "initialises the barrier at shared-memory offset 0x%x, which has been initialised before "
          "(line %u of the %s) and is still valid.\n"
          "One thread must initialise it, once, and then come a fence and __syncthreads(). To give "
          "it another count, wait until all threads have used it, and call mbarrier.inval first.",
          SHARED_OFFSET(barrier->address), init_line(barrier), init_text(barrier));
}

/* Who has used the barrier before it is initialised again, and when. */
static void note_users(ClusterCheck *check, MbarrierCheck *barrier) {
  if (!barrier->used) barrier->used = new_vector(check);
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
         check->clocks[agent].seen[barrier->init_agent] < barrier->init_time;
}

void check_mbarrier_init(Warp *warp, const Instruction *in, int lane, uint32_t address,
                         uint32_t count) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  MbarrierCheck *barrier = order_find_barrier(check, address);
  if (barrier && barrier->valid) {
    report_init_again(warp, in, lane, barrier);
    note_users(check, barrier);
  }
  if (!barrier) {
    if (check->barrier_count == sizeof check->barriers / sizeof *check->barriers) return;
    barrier = calloc(1, sizeof *barrier);
    if (!barrier) out_of_memory();
    barrier->answers = calloc(check->agents, sizeof *barrier->answers);
    if (!barrier->answers) out_of_memory();
    barrier->place = check->width < check->capacity ? check->width++ : UINT32_MAX;
    barrier->arrived = new_vector(check);
    check->barriers[check->barrier_count++] = barrier;
    barrier->address = address;
  }
  barrier->valid = true;
  barrier->landed.in = NULL;
  barrier->fenced = barrier->init_released = false;
  barrier->init_round = 0;
  barrier->init_agent = (uint16_t)agent;
  barrier->init_clock = barrier->init_time = clock_of(check, agent);
  barrier->init_lane = lane;
  barrier->init_stamp = check->lanes_checked ? check->lanes[agent].stamp : 0;
  barrier->init_in = in;
  barrier->count = count;
  barrier->first_phase = barrier->phase = (barrier->phase + 1) & ~1u;
  barrier->finished_phase[0] = barrier->finished_phase[1] = UINT32_MAX;
  forget(&barrier->arriving, check->width);
  memset(barrier->answers, 0, check->agents * sizeof *barrier->answers);
  free(barrier->remote);
  barrier->remote = NULL;
  barrier->issued = NULL;
  barrier->armed = 0;
  barrier->announced = false;
  shadow_set_barrier(warp->cta->cluster, address, barrier);
}

void check_mbarrier_inval(Warp *warp, uint32_t address) {
  MbarrierCheck *barrier = order_find_barrier(check_of(warp), address);
  if (!barrier) return;
  barrier->valid = false;
  shadow_set_barrier(warp->cta->cluster, address, NULL);
}

/* Another lane of the warp may see the barrier as it was before its init. If another warp may, too,
 * only that is reported. */
static void check_init_known_to(Warp *warp, const Instruction *in, LaneMask mask, uint32_t address,
                                MbarrierCheck *barrier) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  if (barrier->init_agent != agent || !barrier->init_stamp || !check->lanes_checked) return;
  const LaneOrder *order = &check->lanes[agent];
  if (barrier->init_stamp < order->first) {
    barrier->init_stamp = 0;
    return;
  }
  LaneMask wrong = 0;
  for (LaneMask left = mask & ~(1u << barrier->init_lane); left; left &= left - 1) {
    int lane = first_lane(left);
    if (!lanes_ordered(order, lane, barrier->init_lane, barrier->init_stamp)) wrong |= 1u << lane;
  }
  if (!wrong) return;
  const LaneAccess now = {.check = check, .warp = warp, .in = in};
  const Finding what = {.rule = LANE_RULE_INIT,
                        .other = barrier->init_in,
                        .memory = ABOUT_BARRIER,
                        .rank = (uint8_t)SHARED_RANK(address),
                        .address = SHARED_OFFSET(address)};
  if (!lane_race_is_kept(&now, barrier->init_in, LANE_RULE_INIT))
    lane_keep_race(&now, false, wrong, &what,
                   "the barrier at shared-memory offset 0x%x was initialised by thread %u of the "
                   "same warp (line %u of the %s), and nothing orders that before this use by "
                   "other lanes.\n"
                   "Put __syncthreads() after the init; for a block of one warp __syncwarp() is "
                   "enough.",
                   SHARED_OFFSET(address), thread_of(warp, barrier->init_lane), init_line(barrier),
                   init_text(barrier));
  barrier->init_stamp = 0; /* report only once */
}

/* Another warp, or the copy engine, may see the barrier as it was before its init. */
static void check_init_visible(Warp *warp, const Instruction *in, int lane, uint32_t address,
                               MbarrierCheck *barrier) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  check_init_known_to(warp, in, 1u << lane, address, barrier);
  if (!knows_init(check, agent, barrier)) {
    lanes_note_race(check, in, barrier->init_in);
    if (used_before_init(check, barrier, agent))
      finding(
          warp, in, 1u << lane, "mbarrier-init-not-ordered",
          "the barrier at shared-memory offset 0x%x was initialised again by another warp (line "
          "%u of the %s) after this warp had used it, and nothing orders the second init after "
          "that or before this.\n"
          "Put __syncthreads() before the second mbarrier.init, so that all threads have seen "
          "the end of the last phase, and another one after it.",
          SHARED_OFFSET(address), init_line(barrier), init_text(barrier));
    else
      finding(
          warp, in, 1u << lane, "mbarrier-init-not-ordered",
          "the barrier at shared-memory offset 0x%x was initialised by another warp (line %u of "
          "the %s), and nothing orders that before this use.\n"
          "Put __syncthreads() after the init.",
          SHARED_OFFSET(address), init_line(barrier), init_text(barrier));
    barrier->init_clock = 0; /* report only once */
    return;
  }
  if (barrier->fenced || barrier->used_by_thread == in ||
      check->clocks[agent].fenced[FENCED_SHARED][barrier->init_agent] >= barrier->init_clock) {
    return;
  }
  if (!(in->traits & COPY_ENGINE)) {
    barrier->used_by_thread = in;
    return;
  }
  finding(warp, in, 1u << lane, "mbarrier-init-not-fenced",
          "the copy engine will use the barrier at shared-memory offset 0x%x, whose init (line "
          "%u of the %s) may not be visible to it yet.\n"
          "Put fence.mbarrier_init.release.cluster (or fence.proxy.async) after mbarrier.init, "
          "in the thread that called it. With a cuda::barrier that is "
          "cuda::ptx::fence_mbarrier_init after init().",
          SHARED_OFFSET(address), init_line(barrier), init_text(barrier));
  barrier->fenced = true;
}

bool check_mbarrier_use(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), rank = SHARED_RANK(address);
  MbarrierCheck *barrier = order_find_barrier(check, address);
  if (rank < check->cta_count && check->ctas[rank].exited) {
    finding(
        warp, in, 1u << lane, "peer-exited",
        "uses the barrier at shared-memory offset 0x%x of rank %u of the cluster, which has "
        "exited: its shared memory is gone.\n"
        "Keep every block alive until its peers are done with it: barrier.cluster.arrive and .wait "
        "before the end of the kernel.",
        SHARED_OFFSET(address), rank);
    return true; /* the emulator keeps the memory valid, so continue and look for other mistakes */
  }
  bool of_peer = rank != warp->cta->rank;
  if (of_peer && (!barrier || !barrier->valid || !knows_init(check, agent, barrier))) {
    if (check->barrier_count == sizeof check->barriers / sizeof *check->barriers) return true;
    bool ready = barrier && barrier->valid;
    finding(warp, in, 1u << lane, "peer-barrier-not-ready",
            "uses the barrier at shared-memory offset 0x%x of rank %u of the cluster, %s.\n"
            "Put barrier.cluster.arrive.release and .wait.acquire after mbarrier.init and "
            "fence.mbarrier_init, in all blocks (__syncthreads() covers one block only).",
            SHARED_OFFSET(address), rank,
            ready ? "which has initialised it by luck: nothing orders that before this use"
                  : "which has not initialised it yet");
    if (ready) barrier->init_clock = 0; /* report only once */
    return ready;
  }
  if (!barrier || !barrier->valid) {
    if (check->barrier_count == sizeof check->barriers / sizeof *check->barriers) return true;
    finding(warp, in, 1u << lane, barrier ? "mbarrier-after-inval" : "mbarrier-not-initialised",
            "the barrier at shared-memory offset 0x%x%s %s.\n%s", SHARED_OFFSET(address),
            check->cta_count > 1 ? " of this or another block of the cluster" : "",
            barrier ? "has been invalidated (mbarrier.inval)" : "has not been initialised",
            barrier ? "Invalidate it after its last use, or initialise it again."
                    : "One thread must call mbarrier.init before any use; then a fence "
                      "(fence.mbarrier_init or fence.proxy.async) and __syncthreads, or a cluster "
                      "barrier when other blocks use it.");
    return false;
  }
  check_init_visible(warp, in, lane, address, barrier);
  return true;
}

bool check_mbarrier_known(const Warp *warp, const Instruction *in, uint32_t address) {
  const ClusterCheck *check = check_of(warp);
  const MbarrierCheck *barrier = order_find_barrier(check, address);
  uint32_t agent = agent_of(warp), rank = SHARED_RANK(address);
  if (!barrier || !barrier->valid || rank != warp->cta->rank || check->ctas[rank].exited)
    return false;
  bool by_lane = barrier->init_agent == agent && barrier->init_stamp && check->lanes_checked;
  bool visible =
      barrier->fenced || barrier->used_by_thread == in ||
      check->clocks[agent].fenced[FENCED_SHARED][barrier->init_agent] >= barrier->init_clock;
  return !by_lane && visible && knows_init(check, agent, barrier);
}

void check_mbarrier_lanes(Warp *warp, const Instruction *in, LaneMask mask, uint32_t address) {
  MbarrierCheck *barrier = order_find_barrier(check_of(warp), address);
  if (barrier && barrier->valid) check_init_known_to(warp, in, mask, address, barrier);
}

/* An arrival that is not ordered after those of the previous phase might have counted in that
 * phase, which then completed without the intended arrival. (In a cluster, the bytes of a peer's
 * copy can also provide this order, but there they do not hand on what their issuer knew.) */
static void check_arrival_belongs(Warp *warp, const Instruction *in, int lane,
                                  const MbarrierCheck *barrier) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  if (barrier->phase == barrier->first_phase || check->cta_count > 1) return;
  const Clock *before = &barrier->finished[(barrier->phase - 1) & 1];
  if (!before->seen || barrier->finished_phase[(barrier->phase - 1) & 1] != barrier->phase - 1) {
    return;
  }
  for (uint32_t other = 0; other < check->agents; other++) {
    if (check->clocks[agent].before[other] >= before->seen[other]) continue;
    finding(warp, in, 1u << lane, "too-many-arrivals",
            "arrives at the barrier at shared-memory offset 0x%x in its phase %u, and nothing "
            "orders that after the arrivals of phase %u: that phase completed without this one.\n"
            "mbarrier.init (line %u of the %s) asks for %u arrival%s a phase. Count every thread "
            "that arrives, or let fewer arrive.",
            SHARED_OFFSET(barrier->address), barrier->phase - barrier->first_phase,
            barrier->phase - barrier->first_phase - 1, init_line(barrier), init_text(barrier),
            barrier->count, barrier->count == 1 ? "" : "s");
    return;
  }
}

void check_mbarrier_phase_between(Warp *warp, const Instruction *in, int lane, LaneMask lanes,
                                  uint32_t address) {
  ClusterCheck *check = check_of(warp);
  const MbarrierCheck *barrier = order_find_barrier(check, address);
  if (!barrier || check->cta_count == 1) return; /* then check_arrival_belongs() reports it */
  bool one_for_each = (uint32_t)__builtin_popcount(lanes) == check->cta_count;
  const MbarrierCheck *other = one_for_each ? awaited_at_other_rank(check, barrier) : NULL;
  if (other) {
    finding(
        warp, in, 1u << lane, "arrival-at-another-rank",
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
      warp, in, 1u << lane, "too-many-arrivals",
      "arrives at the barrier at shared-memory offset 0x%x in its phase %u, after lower lanes of "
      "this warp have arrived by the same instruction in phase %u: that phase completed without "
      "this arrival.\n"
      "mbarrier.init (line %u of the %s) asks for %u arrival%s a phase. Count every thread that "
      "arrives, or let fewer arrive.",
      SHARED_OFFSET(address), barrier->phase - barrier->first_phase,
      barrier->phase - barrier->first_phase - 1, init_line(barrier), init_text(barrier),
      barrier->count, barrier->count == 1 ? "" : "s");
}

void check_mbarrier_arrive(Warp *warp, const Instruction *in, int lane, uint32_t address,
                           Reach release, bool of_copies) {
  ClusterCheck *check = check_of(warp);
  MbarrierCheck *barrier = order_find_barrier(check, address);
  uint32_t agent = agent_of(warp);
  lanes_release(check, agent, in, 1u << lane);
  /* cp.async.mbarrier.arrive: from here on, the thread's earlier copies are known to be
   * complete. */
  if (of_copies) check_copies_arrive(warp, lane);
  if (barrier && SHARED_RANK(address) != warp->cta->rank) {
    exit_note_remote_arrive(check, barrier, agent, lane, in);
  }
  if (!barrier) return;
  barrier->arrived[agent] = clock_of(check, agent);
  bool of_peer = SHARED_RANK(address) != warp->cta->rank;
  if (release == REACH_PLAIN && check->global) { /* after a fence it is a release all the same */
    if (!barrier->arriving.seen) barrier->arriving = order_new_clock(check);
    global_release_fenced(warp, of_peer ? REACH_CLUSTER : REACH_CTA, &barrier->arriving);
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
  check_arrival_belongs(warp, in, lane, barrier);
  barrier->last_released = clock_of(check, agent);
  if (of_peer && release == REACH_CTA && check->global) {
    check->any_narrow = true;
    check->ctas[warp->cta->rank].narrow_arrival = in;
    order_release_narrowly(check, warp, &barrier->arriving);
  } else { /* without the checks of global memory, fences are not known, so they may be missing */
    order_release(check, agent, &barrier->arriving);
  }
  barrier->last_arrive = in;
  barrier->last_agent = agent;
  barrier->last_lane = lane;
  barrier->last_clock = clock_of(check, agent);
}

void check_mbarrier_expect(Warp *warp, const Instruction *in, int lane, uint32_t address,
                           uint32_t bytes) {
  ClusterCheck *check = check_of(warp);
  MbarrierCheck *barrier = order_find_barrier(check, address);
  if (!barrier || !bytes) return;
  barrier->announced = true;
  if (!(in->traits & ARRIVES)) return;
  uint32_t agent = agent_of(warp);
  const WaitAnswer *answer = &barrier->answers[agent];
  uint64_t knowing = 0;
  for (uint32_t i = 0; i < check->width; i++) {
    if (i != agent) knowing += check->clocks[agent].seen[i];
  }
  /* expect_tx twice in one phase, or in the next one by luck: a thread that expects bytes must know
   * that the bytes of the previous phase have arrived. This is reported only if the thread has not
   * waited at all. An insufficient wait is a different mistake. */
  bool by_same = barrier->armed_agent == agent && barrier->armed_lane == lane;
  bool twice = barrier->armed == barrier->phase + 1 && barrier->count == 1;
  bool by_luck = barrier->armed && barrier->armed == barrier->phase &&
                 barrier->place != UINT32_MAX && !(answer->next > barrier->phase) &&
                 check->clocks[agent].seen[barrier->place] < barrier->phase;
  bool waited = knowing != barrier->armed_knowing || (answer->next && answer->stale);
  if (by_same && (twice || by_luck) && !waited) {
    finding(
        warp, in, 1u << lane, "stage-reused-too-early",
        "expects bytes at the barrier at shared-memory offset 0x%x for another copy, but has not "
        "waited for anything that shows that phase %u, with the bytes of the previous copy, is "
        "complete%s.\n"
        "Before a stage is filled again, wait until its readers have reported that they are done: "
        "arrivals on a barrier that this thread waits for, or __syncthreads.",
        SHARED_OFFSET(address), barrier->armed - 1 - barrier->first_phase,
        by_luck ? " (it is, by luck)" : "");
  }
  barrier->armed_again = barrier->armed == barrier->phase + 1 && barrier->armed_agent != agent &&
                         has_seen(check, agent, barrier->armed_agent, barrier->armed_clock);
  barrier->armed = barrier->phase + 1;
  barrier->armed_agent = agent;
  barrier->armed_clock = clock_of(check, agent);
  barrier->armed_lane = lane;
  barrier->armed_knowing = knowing;
}

void check_mbarrier_phase_complete(Cluster *cluster, uint32_t address, uint32_t finished_phase) {
  MbarrierCheck *barrier = order_find_barrier(cluster->check, address);
  if (!barrier) return;
  finished_phase += barrier->first_phase;
  Clock *finished = &barrier->finished[finished_phase & 1];
  swap(&barrier->arriving, finished);
  forget(&barrier->arriving, cluster->check->width);
  if (barrier->issued && finished->before)
    join(finished->before, barrier->issued, cluster->check->width);
  barrier->finished_phase[finished_phase & 1] = finished_phase;
  barrier->phase = finished_phase + 1;
}

void check_mbarrier_observed(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                             uint32_t phase, bool acquire) {
  ClusterCheck *check = check_of(warp);
  int lane = first_lane(lanes);
  lanes_acquire(check, agent_of(warp), lanes, live_lanes(warp));
  MbarrierCheck *barrier = order_find_barrier(check, address);
  if (!barrier) return;
  uint32_t agent = agent_of(warp);
  bool none_complete = phase == UINT32_MAX;
  phase += barrier->first_phase;
  WaitAnswer *answer = &barrier->answers[agent];
  bool same_wait = answer->in == in && lane > answer->lane && answer->next == phase + 2;
  if (!same_wait) { /* the same wait as the previous lane, which has done the update */
    uint32_t known = barrier->place == UINT32_MAX ? 0 : check->clocks[agent].seen[barrier->place];
    answer->stale = none_complete || known > phase;
    uint32_t before = answer->next ? answer->next - 1 : barrier->first_phase;
    if (!none_complete && phase > before) answer->missed += phase - before;
  }
  answer->next = phase + 2;
  answer->not_yet_lanes &= ~lanes;
  answer->in = in;
  answer->lane = lane;
  /* The warp already knows what the previous lane learnt. A barrier without completed phases gives
   * no information. */
  if (same_wait || none_complete) return;
  Clock *learnt = acquire ? &check->clocks[agent] : &check->observed[agent];
  if (!learnt->seen) *learnt = order_new_clock(check);
  if (barrier->finished_phase[phase & 1] == phase) {
    if (acquire)
      order_acquire(check, agent, &barrier->finished[phase & 1]);
    else
      join_clock(check, learnt, &barrier->finished[phase & 1]);
  }
  if (barrier->place != UINT32_MAX && learnt->seen[barrier->place] < phase + 1)
    learnt->seen[barrier->place] = phase + 1;
}

void order_note_issue(ClusterCheck *check, uint32_t agent, uint32_t address) {
  MbarrierCheck *barrier = check->cta_count == 1 ? order_find_barrier(check, address) : NULL;
  if (!barrier) return;
  if (!barrier->issued) barrier->issued = new_vector(check);
  uint32_t held = barrier->issued[agent];
  join(barrier->issued, check->clocks[agent].before, check->width);
  barrier->issued[agent] = clock_of(check, agent) > held ? clock_of(check, agent) : held;
}

void check_mbarrier_not_yet(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  MbarrierCheck *barrier = order_find_barrier(check_of(warp), address);
  if (!barrier) return;
  WaitAnswer *answer = &barrier->answers[agent_of(warp)];
  answer->not_yet = in;
  answer->not_yet_lanes |= 1u << lane;
}

const Instruction *order_answered_not_yet(const MbarrierCheck *barrier, uint32_t agent, int lane) {
  if (!barrier || lane < 0) return NULL;
  const WaitAnswer *answer = &barrier->answers[agent];
  return answer->not_yet_lanes >> lane & 1 ? answer->not_yet : NULL;
}

bool order_answered_stale(const MbarrierCheck *barrier, uint32_t agent, uint32_t phase,
                          uint32_t *next) {
  if (!barrier || !barrier->answers[agent].stale) return false;
  *next = barrier->answers[agent].next - 1;
  return *next <= phase;
}

uint32_t check_mbarrier_missed_phases(Warp *warp, uint32_t address) {
  const MbarrierCheck *barrier = order_find_barrier(check_of(warp), address);
  return barrier ? barrier->answers[agent_of(warp)].missed : 0;
}

uint32_t check_mbarrier_next_phase(Warp *warp, uint32_t address, uint32_t parity) {
  const ClusterCheck *check = check_of(warp);
  const MbarrierCheck *barrier = order_find_barrier(check, address);
  if (!barrier) return 0;
  uint32_t next = barrier->answers[agent_of(warp)].next, known = 0;
  next = next ? next - 1 - barrier->first_phase : 0;
  if (barrier->place != UINT32_MAX) known = check->clocks[agent_of(warp)].seen[barrier->place];
  known = known > barrier->first_phase ? known - barrier->first_phase : 0;
  /* Where the wait fits what the warp has waited for itself, it means that phase, and may be late. */
  return known > next && (next & 1u) != parity && (known & 1u) == parity ? known : next;
}

bool check_mbarrier_lost(Warp *warp, uint32_t address) {
  const ClusterCheck *check = check_of(warp);
  const MbarrierCheck *barrier = order_find_barrier(check, address);
  return barrier && used_before_init(check, barrier, agent_of(warp));
}

bool check_mbarrier_freed_by_others(Warp *warp, uint32_t *offset, uint32_t *other) {
  const ClusterCheck *check = check_of(warp);
  uint32_t own = warp->cta->rank;
  for (uint32_t i = 0; i < check->barrier_count; i++) {
    const MbarrierCheck *barrier = check->barriers[i];
    bool waited = barrier->answers[agent_of(warp)].next != 0;
    if (SHARED_RANK(barrier->address) != own || !waited || any_arrived(check, barrier, own))
      continue;
    for (uint32_t rank = 0; rank < check->cta_count; rank++) {
      if (!any_arrived(check, barrier, rank)) continue;
      *offset = SHARED_OFFSET(barrier->address);
      *other = rank;
      return true;
    }
  }
  return false;
}

bool check_mbarrier_announced_again(Warp *warp, uint32_t address) {
  const MbarrierCheck *barrier = order_find_barrier(check_of(warp), address);
  return barrier && barrier->armed_again;
}
