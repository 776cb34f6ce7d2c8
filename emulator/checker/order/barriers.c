/* barriers.c: barriers of a block and of the cluster, and fences: they hand on vectors. */
#include <string.h>

#include "base/holds.h"
#include "base/fault.h"
#include "checker/order/clocks.h"
#include "checker/order/pieces.h"

void order_begin_barriers(ClusterCheck *check) {
  OrderState *order = &check->order;
  memset(order->cluster_arriving, 0, sizeof order->cluster_arriving);
  memset(order->cluster_leaving, 0, sizeof order->cluster_leaving);
  order->cluster_round[0] = order->cluster_round[1] = UINT32_MAX;
  memset(order->blocks, 0, check->cta_count * sizeof *order->blocks);
}

/* ---- Barriers of a block and of the cluster ---- */

/* Barrier 0 with all threads is __syncthreads(), as a rule. */
static void note_standing(BlockOrder *block, const Instruction *in) {
  if (!block->standing[0])
    block->standing[0] = in;
  else if (!block->standing[1] && !is_one_line(block->standing[0], in))
    block->standing[1] = in;
}

static void note_passed(BlockOrder *block, bool of_all) {
  if (of_all && block->standing[1] && !block->passed_apart[0])
    memcpy(block->passed_apart, block->standing, sizeof block->standing);
  block->standing[0] = block->standing[1] = NULL;
}

static void block_arrival(Warp *warp, const Instruction *in, uint32_t barrier) {
  ClusterCheck *check = check_of(warp);
  BlockOrder *block = &check->order.blocks[warp->cta->rank];
  if (barrier == 0) note_standing(block, in);
  global_barrier(warp);
  order_release(check, agent_of(warp), &block->arriving[barrier]);
  block->arrived_warps[barrier] |= 1u << warp->index;
}

static void barrier_completed(Cta *cta, uint32_t barrier, bool of_all) {
  ClusterCheck *check = cta->cluster->check;
  if (!check) return;
  BlockOrder *block = &check->order.blocks[cta->rank];
  if (barrier == 0) note_passed(block, of_all);
  block->left_warps[barrier] = of_all ? block->exited_warps & ~block->arrived_warps[barrier] : 0;
  block->arrived_warps[barrier] = 0;
  const Clock before = block->passed[barrier];
  block->passed[barrier] = block->arriving[barrier];
  block->arriving[barrier] = before;
  order_forget(check, &block->arriving[barrier]);
}

static void block_passed(Warp *warp, uint32_t barrier, LaneMask mask) {
  ClusterCheck *check = check_of(warp);
  order_lanes_acquire(warp, NULL, mask);
  const BlockOrder *block = &check->order.blocks[warp->cta->rank];
  uint32_t agent = agent_of(warp);
  order_acquire(check, agent, &block->passed[barrier]);
  check->order.agents[agent].exited_before |= block->left_warps[barrier];
}

static void lanes_exit(Warp *warp, const Instruction *in, const Instruction *from,
                       LaneMask exiting) {
  (void)in;
  if (warp->lanes & ~(warp->exited | exiting)) return;
  ClusterCheck *check = check_of(warp);
  check->order.agents[agent_of(warp)].exit = from;
  check->order.blocks[warp->cta->rank].exited_warps |= 1u << warp->index;
}

/* A warp that has passed may arrive for the next round while a slower one has not yet taken over
 * this round's clock, so there are two clocks, indexed by the round's parity. */
static void cluster_arrival(Warp *warp, const Instruction *in, uint32_t round, bool relaxed) {
  ClusterCheck *check = check_of(warp);
  Clock *clock = &check->order.cluster_arriving[round & 1];
  if (check->order.cluster_round[round & 1] != round) {
    HOLDS(check->order.cluster_round[round & 1] + 1 < round + 1); /* rounds follow one another */
    check->order.cluster_round[round & 1] = round;
    order_forget(check, clock);
    order_forget(check, &check->order.cluster_leaving[round & 1]);
  }
  uint32_t agent = agent_of(warp);
  order_release(check, agent, &check->order.cluster_leaving[round & 1]);
  if (!relaxed) {
    order_release(check, agent, clock);
    return;
  }
  check->order.agents[agent].relaxed_arrival = in;
  check->order.agents[agent].relaxed_time = check->now;
  /* after a fence of the cluster or more, a relaxed arrival is a release */
  order_make_clock(check, clock);
  global_release_fenced(warp, REACH_CLUSTER, clock);
}

static void cluster_passed(Warp *warp, LaneMask arrived, uint32_t round) {
  if (!arrived) return;
  ClusterCheck *check = check_of(warp);
  order_lanes_acquire(warp, NULL, UINT32_MAX);
  Clock *learnt = &check->order.blocks[warp->cta->rank].leaving_seen;
  order_make_clock(check, learnt);
  join(learnt->seen, check->order.cluster_leaving[round & 1].seen, check->order.width);
  check->order.agents[agent_of(warp)].cluster_waited = round + 1;
  order_acquire(check, agent_of(warp), &check->order.cluster_arriving[round & 1]);
}

static void barrier_arrival(Warp *warp, const Instruction *in, const BarrierUse *use) {
  if (use->number == BARRIER_OF_CLUSTER)
    cluster_arrival(warp, in, use->round, use->relaxed);
  else
    block_arrival(warp, in, use->number);
}

static void barrier_passed(Warp *warp, const BarrierUse *use) {
  if (use->number == BARRIER_OF_CLUSTER)
    cluster_passed(warp, use->mask, use->round);
  else
    block_passed(warp, use->number, use->mask);
}

/* ---- Fences ---- */

/* Ordinary fences order strong accesses. For those to shared memory, order_locations does not need
 * them. */
static void fence_memory(Warp *warp, Reach reach, bool sc) {
  global_fence(warp, reach, sc);
  ClusterCheck *check = check_of(warp);
  order_acquire(check, agent_of(warp), &check->order.agents[agent_of(warp)].observed);
}

static void fence_space(ClusterCheck *check, uint32_t agent, int space) {
  Clock *clock = &check->order.agents[agent].clock;
  HOLDS(clock->fenced[space][agent] <=
        check->order.agents[agent].now); /* what is known only grows */
  join(clock->fenced[space], clock->seen, check->order.width);
  clock->fenced[space][agent] = check->order.agents[agent].now;
  check->order.any_fenced[space] = true;
}

/* A fence for .shared::cta is one for what others have written to the memory of this block, and not for
 * what its own threads have written to that of others. */
static void fence_of_own_shared(ClusterCheck *check, uint32_t agent) {
  Clock *clock = &check->order.agents[agent].clock;
  uint32_t first = agent / check->warps_per_cta * check->warps_per_cta;
  for (uint32_t other = 0; other < check->agents; other++) {
    bool own = other >= first && other < first + check->warps_per_cta;
    if (!own && clock->fenced[FENCED_PEERS][other] < clock->seen[other])
      clock->fenced[FENCED_PEERS][other] = clock->seen[other];
  }
}

static void fence_shared(Warp *warp, uint8_t spaces) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), own = check->order.fenced_by_others[agent];
  join(check->order.fenced_by_others, check->order.agents[agent].clock.seen,
       whole_pieces(check->agents));
  check->order.fenced_by_others[agent] = own;
  fence_space(check, agent, FENCED_SHARED);
  if (check->cta_count > 1 && (spaces & PROXY_OF_SHARED) == PROXY_OF_SHARED)
    fence_space(check, agent, FENCED_PEERS);
  else if (check->cta_count > 1)
    fence_of_own_shared(check, agent);
}

static void fence_proxy_async(Warp *warp, uint8_t spaces) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  if (spaces & PROXY_OF_GLOBAL) {
    global_fence_proxy_async(warp);
    fence_space(check, agent, FENCED_GLOBAL);
  }
  if (spaces & PROXY_OF_OWN_SHARED) fence_shared(warp, spaces);
  order_begin_new_epoch(check, agent); /* later writes of this warp are not covered by the fence */
}

static void fence(Warp *warp, const Instruction *in, LaneMask mask, Fence kind) {
  if (kind.kind == FENCE_OF_MEMORY) order_lanes_acquire(warp, in, mask);
  if (kind.kind == FENCE_WGMMA) order_lanes_meet(warp, mask);
  if (kind.kind == FENCE_OF_MEMORY) fence_memory(warp, kind.reach, kind.sc);
  if (kind.kind == FENCE_PROXY_ASYNC) fence_proxy_async(warp, kind.spaces);
}

/* Not before a stmatrix writes where a lane has waited: that it is .aligned does not put its writes after the wait. */
static void lanes_met(Warp *warp, const Instruction *in, LaneMask lanes, bool orders) {
  const bool stores = (in->traits & FLOW) == FLOW_MATRIX && in->results == 0;
  if (orders || !stores) order_lanes_meet(warp, lanes);
}

static void group_awaited(Warp *warp, const Instruction *in, LaneMask mask, const GroupWait *wait) {
  if (wait->kind == GROUPS_WGMMA) order_lanes_meet(warp, mask);
  if (wait->kind != GROUPS_BULK) return;
  order_begin_new_epoch(check_of(warp), agent_of(warp)); /* so that earlier waits are earlier */
  order_lanes_acquire(warp, in, mask);
}

/* Before mbarriers.c hands on what that phase's arrivals had seen. */
static void phase_observed(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                           uint32_t phase, bool acquires) {
  (void)address;
  if (acquires && phase != UINT32_MAX) order_lanes_acquire(warp, in, lanes);
}

static void dependency(Warp *warp, bool waits) { global_dependency(warp, waits); }

static const Subscriber ORDER = {.lanes_exit = lanes_exit,
                                 .dependency = dependency,
                                 .fence = fence,
                                 .lanes_met = lanes_met,
                                 .group_awaited = group_awaited,
                                 .phase_observed = phase_observed,
                                 .barrier_arrival = barrier_arrival,
                                 .barrier_completed = barrier_completed,
                                 .barrier_passed = barrier_passed};
SUBSCRIBE(ORDER_EVENTS, ORDER)
