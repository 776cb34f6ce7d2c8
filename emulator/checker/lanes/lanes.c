/* lanes.c: what the lanes of a warp know of each other's accesses (lanes.h). */
#include <stddef.h>
#include <string.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/settings.h"
#include "checker/lanes/lane_access.h"
#include "state/groups.h"

enum { STRONG_PLACES = 1024 };

/* The last strong write to a location. Another location may take its place. */
typedef struct {
  uint32_t address, agent, stamp;
  uint8_t lane;
} StrongWrite;

/* Of a cluster. */
struct LaneStamps {
  uint32_t last_stamp;
  bool any_strong;
  uint16_t owners[STAMP_OWNERS];
  StrongWrite strong[STRONG_PLACES];
};

static inline void join_clocks(LaneClock *into, const LaneClock *from) {
  for (int i = 0; i < LANES; i++)
    into->stamp[i] = from->stamp[i] > into->stamp[i] ? from->stamp[i] : into->stamp[i];
}

static uint32_t new_stamp(ClusterCheck *check, uint32_t agent) {
  struct LaneStamps *stamps = check->lanes->stamps;
  if (stamps->last_stamp < STAMPS_MOST)
    stamps->last_stamp++;
  else
    check->lanes_checked = false; /* later races are missed, but no thread is accused wrongly */
  HOLDS(stamps->last_stamp >= check->lanes->orders[agent].stamp);
  stamps->owners[stamps->last_stamp % STAMP_OWNERS] = (uint16_t)agent;
  return stamps->last_stamp;
}

void lanes_begin_stamp(ClusterCheck *check, uint32_t agent) {
  check->lanes->orders[agent].stamp = new_stamp(check, agent);
}

uint32_t lanes_owner(const ClusterCheck *check, uint32_t stamp) {
  const struct LaneStamps *stamps = check->lanes->stamps;
  return stamps->last_stamp - stamp < STAMP_OWNERS ? stamps->owners[stamp % STAMP_OWNERS]
                                                   : UINT32_MAX;
}

static void make_state(ClusterCheck *check) {
  struct LanesState *lanes = check->lanes = new_zeros(1, sizeof *lanes);
  lanes->orders = new_zeros(check->agents, sizeof *lanes->orders);
  lanes->stamps = new_zeros(1, sizeof *lanes->stamps);
  lanes->shadows = new_zeros(check->cta_count, sizeof *lanes->shadows);
  lanes->inits = new_zeros(MBARRIERS_MOST, sizeof *lanes->inits);
  lanes->open_inits = new_zeros(check->agents, sizeof *lanes->open_inits);
}

/* Stamps of earlier clusters are below those of this one, so nothing in shared memory's records has
 * to be cleared until the stamps run out. */
void lanes_begin(ClusterCheck *check) {
  if (!settings()->check_lanes) return;
  if (!check->lanes) make_state(check);
  struct LaneStamps *stamps = check->lanes->stamps;
  const bool stamps_begin_again = stamps->last_stamp > STAMPS_MOST / 2;
  if (stamps_begin_again) {
    stamps->last_stamp = 0;
    lanes_forget(check);
  }
  lanes_begin_fences(check, stamps_begin_again);
  check->lanes_checked = true;
  check->last_reader = lanes_last_reader;
  check->lanes->start = stamps->last_stamp + 1;
  lanes_drop_vectors(check);
  lanes_begin_logs(check);
  lanes_begin_releases(check);
  memset(check->lanes->open_inits, 0, check->agents * sizeof *check->lanes->open_inits);
  if (stamps->any_strong) memset(stamps->strong, 0, sizeof stamps->strong);
  stamps->any_strong = false;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    LaneOrder *order = &check->lanes->orders[agent];
    memset(order, 0, offsetof(LaneOrder, known));
    memset(order->met, 0, sizeof *order - offsetof(LaneOrder, met));
    order->release_in = NULL;
    order->first = order->stamp = new_stamp(check, agent);
  }
}

static void set_apart(LaneOrder *order) {
  if (order->apart) return;
  memset(order->seen, 0, sizeof order->seen);
  order->apart = true;
}

static void join_known(LaneClock *into, const LaneOrder *order, int lane) {
  if (order->some_known) join_clocks(into, &order->known);
  if (order->apart) join_clocks(into, &order->seen[lane]);
}

static void lanes_sync(ClusterCheck *check, uint32_t agent, LaneMask lanes, LaneMask live) {
  LaneOrder *order = &check->lanes->orders[agent];
  if (!(live & ~lanes)) {
    order->first = order->stamp = new_stamp(check, agent);
    order->some_released = order->some_known = order->apart = false;
    return;
  }
  LaneClock all = {{0}};
  set_apart(order);
  FOR_LANES(lane, lanes) {
    join_known(&all, order, lane);
    all.stamp[lane] = order->stamp;
  }
  FOR_LANES(lane, lanes) order->seen[lane] = all;
  order->stamp = new_stamp(check, agent);
}

/* Every acquire by a lane sees every earlier release by lanes of its warp. That is more than the
 * memory model promises, but a chain through other warps may connect them. */
static void release_lanes(ClusterCheck *check, uint32_t agent, const Instruction *in,
                          LaneMask lanes) {
  LaneOrder *order = &check->lanes->orders[agent];
  if (!order->some_released) memset(&order->released, 0, sizeof order->released);
  order->some_released = true;
  order->all_learnt = false;
  /* The lanes of one instruction often release one by one. They share a stamp, unless one of them
   * has accessed memory in between: lanes may reach the instruction at different times. */
  bool same = order->release_in == in && order->release_after == order->stamp &&
              order->accessed != order->stamp;
  if (!same) {
    order->release_in = in;
    order->release_before = order->stamp;
    order->release_after = order->stamp = new_stamp(check, agent);
  }
  if (!same && order->some_known) join_clocks(&order->released, &order->known);
  FOR_LANES(lane, lanes) {
    if (order->apart) join_clocks(&order->released, &order->seen[lane]);
    order->released.stamp[lane] = order->release_before;
  }
}

static void acquire(ClusterCheck *check, uint32_t agent, LaneMask lanes, LaneMask live) {
  LaneOrder *order = &check->lanes->orders[agent];
  if (!order->some_released || order->all_learnt) return;
  if (!(live & ~lanes)) {
    order->all_learnt = true;
    if (!order->some_known) memset(&order->known, 0, sizeof order->known);
    order->some_known = true;
    join_clocks(&order->known, &order->released);
    /* Up to here, every lane has published and every lane has learnt. */
    uint32_t all = UINT32_MAX;
    for (int lane = 0; lane < LANES; lane++)
      if (live >> lane & 1 && order->released.stamp[lane] < all) all = order->released.stamp[lane];
    /* The warp's next stamp, rather than the next one of all: what other warps wrote before their
     * releases has lower stamps then, and their owners need not be looked up. */
    if (all >= order->first)
      order->first = all == order->release_before ? order->release_after : all + 1;
    return;
  }
  set_apart(order);
  FOR_LANES(lane, lanes) join_clocks(&order->seen[lane], &order->released);
}

static StrongWrite *strong_place(const ClusterCheck *check, uint32_t address) {
  return &check->lanes->stamps->strong[(address / 4 ^ address >> 14) % STRONG_PLACES];
}

/* From another lane of the warp. False: another warp has written there. */
static bool acquire_own(ClusterCheck *check, uint32_t agent, int lane, uint32_t address) {
  const StrongWrite *last = strong_place(check, address);
  if (last->stamp == 0) return true; /* nothing has written there */
  if (last->address != address || last->agent != agent) return false;
  LaneOrder *order = &check->lanes->orders[agent];
  if (last->lane == lane || lanes_ordered(order, lane, last->lane, last->stamp)) return true;
  set_apart(order);
  join_known(&order->seen[lane], order, last->lane);
  if (order->seen[lane].stamp[last->lane] < last->stamp)
    order->seen[lane].stamp[last->lane] = last->stamp;
  return true;
}

static void acquire_strong(Warp *warp, int lane, uint32_t address) {
  ClusterCheck *check = check_of(warp);
  if (!acquire_own(check, agent_of(warp), lane, address))
    acquire(check, agent_of(warp), 1u << lane, live_lanes(warp));
}

/* Usually the lanes have learnt all that there is to know at a barrier, and read what other warps have
 * written. */
static void acquire_strong_lanes(Warp *warp, LaneMask mask, const uint32_t *addresses) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  const LaneOrder *order = &check->lanes->orders[agent];
  bool known = !order->some_released || order->all_learnt;
  if (known && !lanes_meet_writes(check, agent, mask, addresses)) return;
  FOR_LANES(lane, mask) acquire_strong(warp, lane, addresses[lane]);
}

void lanes_strong(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  bool releases, bool acquires) {
  ClusterCheck *check = check_of(warp);
  if (!check->lanes_checked) return;
  uint32_t agent = agent_of(warp), stamp = check->lanes->orders[agent].stamp;
  uint32_t last = UINT32_MAX;
  if (acquires) acquire_strong_lanes(warp, mask, addresses);
  if (!releases) return;
  /* Stores of several lanes are data, rather than a flag. */
  lanes_note_release(warp, in, mask & (mask - 1) ? UINT32_MAX : mask, clock_of(check, agent));
  release_lanes(check, agent, in, mask);
  check->lanes->stamps->any_strong = true;
  FOR_LANES(lane, mask) {
    /* Atomic operations of several lanes on one location come one after the other. */
    if (acquires && addresses[lane] == last) acquire_strong(warp, lane, last);
    last = addresses[lane];
    *strong_place(check, last) = (StrongWrite){last, agent, stamp, (uint8_t)lane};
  }
}

/* ---- Events ---- */

static bool are_checked(const Warp *warp) { return check_of(warp)->lanes_checked; }

static void lanes_release(Warp *warp, const Instruction *in, LaneMask lanes) {
  if (!are_checked(warp)) return;
  lanes_note_release(warp, in, lanes, order_of(check_of(warp), agent_of(warp))->last_release);
  release_lanes(check_of(warp), agent_of(warp), in, lanes);
}

static void lanes_acquire(Warp *warp, LaneMask lanes) {
  if (are_checked(warp)) acquire(check_of(warp), agent_of(warp), lanes, live_lanes(warp));
}

static void note_meeting(Warp *warp, const Instruction *in, LaneMask lanes) {
  LaneOrder *order = &check_of(warp)->lanes->orders[agent_of(warp)];
  uint32_t now = check_of(warp)->now + 1; /* after every access so far */
  for (int lane = 0; lane < LANES; lane++)
    order->met[lane] = lanes >> lane & 1 ? now : order->met[lane];
  order->met_at = in;
}

static void lanes_met(Warp *warp, const Instruction *in, LaneMask lanes, bool orders) {
  if (!are_checked(warp)) return;
  if (orders)
    lanes_sync(check_of(warp), agent_of(warp), lanes, live_lanes(warp));
  else
    note_meeting(warp, in, lanes);
}

static void fence(Warp *warp, const Instruction *in, LaneMask mask, Fence kind) {
  if (!are_checked(warp)) return;
  if (kind.kind == FENCE_WGMMA) note_meeting(warp, in, mask);
  if (kind.kind == FENCE_OF_MEMORY)
    lanes_note_release(warp, in, mask, order_of(check_of(warp), agent_of(warp))->last_release);
  if (kind.kind == FENCE_PROXY_ASYNC && kind.spaces & PROXY_OF_OWN_SHARED)
    lanes_note_fence(check_of(warp), agent_of(warp), mask, live_lanes(warp));
}

static void group_awaited(Warp *warp, const Instruction *in, LaneMask mask, const GroupWait *wait) {
  if (wait->kind == GROUPS_WGMMA && are_checked(warp)) note_meeting(warp, in, mask);
}

/* A barrier of the cluster is used by all lanes of a warp. */
static void barrier_arrival(Warp *warp, const Instruction *in, const BarrierUse *use) {
  const LaneMask lanes = use->number == BARRIER_OF_CLUSTER ? live_lanes(warp) : use->mask;
  if (are_checked(warp) && use->relaxed)
    release_lanes(check_of(warp), agent_of(warp), in, lanes);
  else
    lanes_release(warp, in, lanes);
}

static void barrier_passed(Warp *warp, const BarrierUse *use) {
  if (use->mask)
    lanes_acquire(warp, use->number == BARRIER_OF_CLUSTER ? live_lanes(warp) : use->mask);
}

static void mbarrier_begun(Warp *warp, const Instruction *in, int lane, uint32_t address,
                           uint32_t count) {
  (void)in, (void)lane, (void)count;
  if (are_checked(warp)) lanes_note_init(warp, address);
}

static void mbarrier_ended(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  uint32_t addresses[LANES];
  addresses[lane] = address;
  if (are_checked(warp))
    lanes_touch(warp, in, 1u << lane, addresses, 2 * WORD_BYTES,
                &(AccessKind){.access = ACCESS_WRITE});
}

/* The lanes that execute the instruction. */
static LaneMask executing(const Warp *warp, const Instruction *in) {
  const LaneMask group = warp->flow->groups[warp->flow->current].mask;
  if (in->guard < 0) return group;
  return group & (in->guard_negated ? ~warp->predicates[in->guard] : warp->predicates[in->guard]);
}

/* Lanes arrive one by one: the first one of an instruction stands for all. Those of cp.async, which arrive when their
 * copies have landed, hand on what their warp has written. With .relaxed only what a fence has released before is. */
static void mbarrier_arrival(Warp *warp, const Instruction *in, int lane, uint32_t address,
                             Reach reach, bool of_copies) {
  (void)address;
  if (!are_checked(warp)) return;
  if (of_copies) {
    lanes_note_if_released(warp, in, UINT32_MAX);
  } else if (reach != REACH_PLAIN) {
    const LaneMask together = executing(warp, in);
    if (lane == first_lane(together))
      lanes_note_release(warp, in, together,
                         order_of(check_of(warp), agent_of(warp))->last_release);
  }
  release_lanes(check_of(warp), agent_of(warp), in, 1u << lane);
}

static void phase_observed(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                           uint32_t phase, bool acquires) {
  (void)in, (void)address, (void)phase, (void)acquires;
  lanes_acquire(warp, lanes);
}

static void lanes_ask(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address) {
  if (are_checked(warp)) lanes_check_init(warp, in, lanes, address);
}

/* It is known whether warps race. */
static void block_exited(Cta *cta) {
  if (cta->cluster->check && !cta->cluster->launch->error) lanes_report(cta);
}

static const Subscriber LANES_OF_WARPS = {.fence = fence,
                                          .barrier_arrival = barrier_arrival,
                                          .barrier_passed = barrier_passed,
                                          .lanes_met = lanes_met,
                                          .group_awaited = group_awaited,
                                          .mbarrier_begun = mbarrier_begun,
                                          .mbarrier_ended = mbarrier_ended,
                                          .mbarrier_arrival = mbarrier_arrival,
                                          .phase_observed = phase_observed,
                                          .lanes_ask = lanes_ask,
                                          .block_exited = block_exited};
SUBSCRIBE(LANES_EVENTS, LANES_OF_WARPS)

void check_strong_global(Warp *warp, const Instruction *in, LaneMask lanes) {
  lanes_acquire(warp, lanes);
  if (!are_checked(warp)) return;
  lanes_note_if_released(warp, in, lanes);
  release_lanes(check_of(warp), agent_of(warp), in, lanes);
}
