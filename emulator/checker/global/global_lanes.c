/* global_lanes.c: races in global memory between the lanes of one warp.
 *
 * lanes.h knows which lanes are ordered. The last few loads and stores of each warp are kept
 * here with the addresses of their lanes, and each new one is compared with them: so a race is seen
 * if the two accesses are not far apart. Races of whole warps at the same two lines have the same
 * cause, so what is found is kept until the launch ends, and reported if there was no such race. */
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/summary.h"
#include "checker/global/global_state.h"
#include "checker/lanes/lanes.h"

enum { PASTS_KEPT = 4, RACES_KEPT = 32, PAIRS_KEPT = 128, LEFT_OUT_KEPT = 32 };

typedef struct {
  const Instruction *in;
  uint64_t first, end;       /* between which all its addresses lie */
  const uint64_t *addresses; /* of the lanes in `mask`, unless in_steps */
  uint64_t chunks;           /* a bit for each 16 bytes that are accessed, modulo 1 KiB */
  LaneMask mask;
  uint32_t bytes, stamp, time;
  /* in_steps: from `first` on in these steps: side by side, or all in one place */
  uint32_t step;
  bool in_steps, strong, swaps;
} LanePast;

/* Of one warp: its last loads, and its last stores. */
struct GlobalLanes {
  uint32_t count[2];
  LanePast pasts[2][PASTS_KEPT];
  uint64_t addresses[2][PASTS_KEPT][LANES];
};

struct GlobalLaneRaces {
  uint32_t count, pair_count;
  KeptFinding races[RACES_KEPT];
  const Instruction *pairs[PAIRS_KEPT][2]; /* where warps have raced */
};

/* A release of some lanes that has left out what others have stored: `past`, of the lanes in its mask. */
typedef struct {
  uint32_t cluster, agent, time;
  const Instruction *in;
  LanePast past;
  uint64_t addresses[LANES];
} LeftOut;
struct GlobalLeftOut {
  uint32_t count; /* the last LEFT_OUT_KEPT are kept */
  LeftOut kept[LEFT_OUT_KEPT];
};

void global_lanes_begin(struct GlobalState *own, uint32_t agents) {
  for (uint32_t i = 0; own->lanes && i < agents; i++)
    own->lanes[i].count[0] = own->lanes[i].count[1] = 0;
}

static struct GlobalLaneRaces *races_of(GlobalLaunch *launch) {
  if (!launch->lane_races) launch->lane_races = new_zeros(1, sizeof *launch->lane_races);
  return launch->lane_races;
}

void global_lanes_note_race(GlobalLaunch *launch, const Instruction *in, const Instruction *other) {
  HOLD_LOCK(&launch->lock);
  struct GlobalLaneRaces *all = races_of(launch);
  if (all->pair_count < PAIRS_KEPT) {
    all->pairs[all->pair_count][0] = in;
    all->pairs[all->pair_count++][1] = other;
  }
}

void global_lanes_report(GlobalLaunch *launch) {
  struct GlobalLaneRaces *all = launch->lane_races;
  for (uint32_t i = 0; all && i < all->count; i++) {
    KeptFinding *race = &all->races[i];
    bool of_warps = false;
    for (uint32_t k = 0; k < all->pair_count; k++)
      of_warps |= are_two_lines(race->in, race->what.other, all->pairs[k][0], all->pairs[k][1]);
    if (!of_warps) kept_finding_report(race);
    kept_finding_free(race);
  }
  free(all);
  free(launch->left_out);
  launch->lane_races = NULL;
  launch->left_out = NULL;
}

/* The place of a new race; NULL: it is known, or there are too many. */
static KeptFinding *new_race(const GlobalNow *now, const Finding *what) {
  HOLD_LOCK(&now->launch->lock);
  struct GlobalLaneRaces *all = races_of(now->launch);
  for (uint32_t i = 0; i < all->count; i++)
    if (all->races[i].what.rule == what->rule &&
        are_two_lines(now->in, what->other, all->races[i].in, all->races[i].what.other))
      return NULL;
  if (all->count == RACES_KEPT) return NULL;
  KeptFinding *race = &all->races[all->count++];
  *race = kept_finding(now->warp, now->in, 0, what, NULL);
  return race;
}

static void note_race(const GlobalNow *now, const LaneOrder *order, int lane, int other,
                      const LanePast *past, bool past_writes, uint64_t address) {
  bool met = past->time <= order->met[lane] && past->time <= order->met[other];
  const Finding what = {.rule = met ? RULE(LANES_MET_WITHOUT_ORDER) : RULE(LANE_RACE),
                        .other = past->in,
                        .unordered = true,
                        .memory = ABOUT_GLOBAL,
                        .address = address};
  KeptFinding *race = new_race(now, &what);
  if (!race) return;
  kept_finding_say(
      race, 1u << lane,
      phrase(
          "%s %s, which thread %u of the same warp %s %s, and nothing orders the two.\n%s%s%s",
          now->kind == ACCESS_READ    ? "reads"
          : now->kind == ACCESS_WRITE ? "writes"
                                      : "atomically changes",
          memory_place(address).text, now->warp->index * LANES + (uint32_t)other,
          past_writes ? "wrote" : "read", place_of(past->in).text,
          met ? "Between them the lanes have met (" : "", met ? place_of(order->met_at).text : "",
          met ? "), but a shuffle, a vote or the like orders no memory, and the compiler may move "
                "accesses across it. Put __syncwarp() between the two."
              : "The lanes of a warp do not run in step: put __syncwarp() between the two, for "
                "all lanes that take part."));
}

static bool changes_nothing(const GlobalNow *now, int lane, uint64_t from, uint64_t address) {
  return now->stored && now->stored->same(now->stored, lane, (uint32_t)(address - from),
                                          (uint32_t)(from + now->lane_bytes - address));
}

static uint64_t address_of(const LanePast *access, int lane) {
  return access->in_steps ? access->first + (uint32_t)lane * access->step : access->addresses[lane];
}

/* Is each lane's address that of lane 0 and a step for each lane? */
static bool lie_in_steps(const LanePast *access, uint64_t origin, uint64_t step) {
  uint64_t differing = 0;
  for (uint64_t lane = 0; lane < LANES; lane++)
    differing |=
        (access->addresses[lane] ^ (origin + lane * step)) & -(uint64_t)(access->mask >> lane & 1);
  return !differing;
}

/* Structures that follow each other, of which each lane accesses one member: the next lane's bytes begin
 * only after both members of this lane's structure. */
static bool only_meet_themselves(const LanePast *own, const LanePast *past) {
  if (own->in_steps || past->in_steps || !(own->mask & (own->mask - 1))) return false;
  uint64_t low = (uint64_t)first_lane(own->mask), high = 31 - (uint64_t)__builtin_clz(own->mask);
  uint64_t step = (own->addresses[high] - own->addresses[low]) / (high - low);
  uint64_t origin = own->addresses[low] - low * step;
  uint64_t past_low = (uint64_t)first_lane(past->mask);
  uint64_t apart = past->addresses[past_low] - past_low * step - origin;
  if (step >> 32 || own->bytes > step || past->bytes > step) return false;
  if (!lie_in_steps(own, origin, step) || !lie_in_steps(past, origin + apart, step)) return false;
  return apart >> 63 ? own->bytes - apart <= step : past->bytes + apart <= step;
}

/* Lanes of the two accesses that touch the same bytes and are not ordered. */
static void compare_lanes(const GlobalNow *now, const LaneOrder *order, const LanePast *own,
                          const LanePast *past, bool past_writes) {
  FOR_LANES(lane, own->mask) {
    uint64_t from = address_of(own, lane);
    FOR_LANES(other, past->mask & ~(1u << lane)) {
      uint64_t to = address_of(past, other);
      if (from >= to + past->bytes || to >= from + own->bytes ||
          lanes_ordered(order, lane, other, past->stamp))
        continue;
      uint64_t address = from > to ? from : to;
      if (changes_nothing(now, lane, from, address)) continue;
      note_race(now, order, lane, other, past, past_writes, address);
      return;
    }
  }
}

/* Lanes that store different values to one place in one instruction. */
static void check_collisions(const GlobalNow *now, const LanePast *own) {
  enum { SLOTS = 128 };
  uint8_t lane_at[SLOTS] = {0}; /* 1 + the lane */
  FOR_LANES(lane, own->mask) {
    uint64_t address = address_of(own, lane);
    uint8_t *slot = &lane_at[address / own->bytes % SLOTS];
    int other = *slot - 1;
    *slot = (uint8_t)(lane + 1);
    if (other < 0 || address_of(own, other) != address) continue;
    if (now->stored->alike(now->stored, lane, other)) continue;
    const Finding what = {.rule = RULE(LANES_WRITE_ONE_PLACE),
                          .other = now->in,
                          .memory = ABOUT_GLOBAL,
                          .address = address};
    KeptFinding *race = new_race(now, &what);
    if (!race) return;
    kept_finding_say(
        race, 1u << lane | 1u << other,
        phrase("writes %s by two threads with different values, and which value stays is not "
               "defined.\n"
               "Let one of them write, or use an atomic.",
               memory_place(address).text));
    return;
  }
}

/* Each lane meets itself. */
static bool is_same_run(const LanePast *own, const LanePast *past) {
  return own->in_steps && past->in_steps && own->first == past->first &&
         own->bytes == past->bytes && own->step == own->bytes && past->step == past->bytes;
}

/* A plain load whose value a compare-and-swap checks (global_guesses.c). */
static bool is_guess(const GlobalNow *now, const LanePast *past, bool past_writes) {
  if (now->kind == ACCESS_READ) return past->swaps && now->access.reach == REACH_PLAIN;
  return now->swaps && !past_writes && !past->strong;
}

/* Accesses are aligned and of at most 16 bytes, so each lane has one chunk. */
static uint64_t chunk_of(uint64_t address) { return 1ull << (address >> 4 & 63); }

static void fill_run(LanePast *own, uint64_t first) {
  uint32_t all = LANES * own->bytes;
  own->in_steps = true;
  own->step = own->bytes;
  own->first = first;
  own->end = first + all;
  uint32_t chunks = (uint32_t)((first + all - 1) >> 4) - (uint32_t)(first >> 4) + 1;
  uint64_t ones = chunks >= 64 ? UINT64_MAX : (1ull << chunks) - 1;
  uint32_t turn = (uint32_t)(first >> 4) & 63;
  own->chunks = ones << turn | ones >> (-turn & 63);
}

static bool are_in_one_place(const uint64_t *addresses) {
  uint64_t differing = 0;
  if (addresses[LANES - 1] != addresses[0])
    return false; /* most of the others already differ here */
  for (int lane = 0; lane < LANES; lane++) differing |= addresses[lane] ^ addresses[0];
  return !differing;
}

static void fill_one_place(LanePast *own, uint64_t address) {
  own->in_steps = true;
  own->step = 0;
  own->first = address;
  own->end = address + own->bytes;
  own->chunks = chunk_of(address);
}

/* One loop for each, which compilers turn into vector instructions. */
static void fill_global(LanePast *own, const uint64_t *restrict addresses) {
  uint64_t least = UINT64_MAX, most = 0, chunks = 0;
  LaneMask mask = own->mask;
  for (int lane = 0; lane < LANES; lane++) {
    uint64_t low = addresses[lane] | ((uint64_t)(mask >> lane & 1) - 1);
    least = low < least ? low : least;
  }
  for (int lane = 0; lane < LANES; lane++) {
    uint64_t high = addresses[lane] & -(uint64_t)(mask >> lane & 1);
    most = high > most ? high : most;
  }
  for (int lane = 0; lane < LANES; lane++)
    chunks |= (uint64_t)(mask >> lane & 1) << (addresses[lane] >> 4 & 63);
  own->addresses = addresses;
  own->first = least;
  own->end = most + own->bytes;
  own->chunks = chunks;
}

static void fill_lanes(LanePast *own, const uint64_t *addresses) {
  own->first = UINT64_MAX;
  own->end = 0;
  own->addresses = addresses;
  FOR_LANES(lane, own->mask) {
    uint64_t address = addresses[lane];
    if (address & GENERIC_TAG_MASK) {
      own->mask &= ~(1u << lane); /* of another space */
      continue;
    }
    own->first = address < own->first ? address : own->first;
    own->end = address + own->bytes > own->end ? address + own->bytes : own->end;
    own->chunks |= chunk_of(address);
  }
}

static void fill_past(LanePast *own, LaneMask mask, const uint64_t *addresses, bool run,
                      uint32_t bytes) {
  uint64_t all = 0;
  own->mask = mask;
  own->bytes = bytes;
  own->in_steps = false;
  own->step = 0;
  own->chunks = 0;
  for (int lane = 0; lane < LANES && !run; lane++)
    all |= addresses[lane] & -(uint64_t)(mask >> lane & 1);
  if (run)
    fill_run(own, addresses[0]);
  else if (all & GENERIC_TAG_MASK)
    fill_lanes(own, addresses);
  else if (mask == UINT32_MAX && are_in_one_place(addresses))
    fill_one_place(own, addresses[0]);
  else
    fill_global(own, addresses);
}

/* May the two touch the same bytes? */
static bool may_meet(const LanePast *a, const LanePast *b) {
  return a->first < b->end && b->first < a->end && (a->chunks & b->chunks) && !is_same_run(a, b);
}

static void keep_access(struct GlobalLanes *lanes, const LaneOrder *order, bool writes,
                        const LanePast *access) {
  uint32_t at = lanes->count[writes]++ % PASTS_KEPT;
  LanePast *kept = &lanes->pasts[writes][at];
  if (lanes->count[writes] > PASTS_KEPT && kept->stamp >= order->first)
    summary_note(NOTE_global_lanes);
  *kept = *access;
  if (access->in_steps) return;
  memcpy(lanes->addresses[writes][at], access->addresses, sizeof lanes->addresses[writes][at]);
  kept->addresses = lanes->addresses[writes][at];
}

/* May it meet one of these? Only if their lanes have to be compared. */
static bool meets_any(const struct GlobalLanes *lanes, bool past_writes, const LaneOrder *order,
                      const LanePast *own) {
  uint32_t kept = lanes->count[past_writes] < PASTS_KEPT ? lanes->count[past_writes] : PASTS_KEPT;
  for (uint32_t i = 0; i < kept; i++) {
    const LanePast *past = &lanes->pasts[past_writes][i];
    if (past->stamp >= order->first && may_meet(own, past)) return true;
  }
  return false;
}

void global_lanes_pass(const ClusterCheck *check, uint32_t agent) {
  if (check->lanes_checked) lanes_note_access(check, agent);
}

bool global_lanes_step(const GlobalQuick *quick, LaneMask mask, uint64_t first, uint32_t step,
                       uint32_t bytes) {
  const ClusterCheck *check = quick->check;
  if (!check->lanes_checked) return true;
  if (!quick->own->lanes) return !(mask & (mask - 1));
  const LaneOrder *order = lanes_order(check, quick->access->issuer);
  struct GlobalLanes *lanes = &quick->own->lanes[quick->access->issuer];
  LanePast one;
  one.bytes = bytes;
  one.chunks = 0;
  if (step)
    fill_run(&one, first);
  else
    fill_one_place(&one, first);
  if (meets_any(lanes, true, order, &one)) return false;
  if (quick->writes && meets_any(lanes, false, order, &one)) return false;
  one.mask = mask;
  one.in = quick->access->in;
  one.strong = one.swaps = false;
  one.stamp = order->stamp;
  lanes_note_access(check, quick->access->issuer);
  one.time = quick->access->time;
  keep_access(lanes, order, quick->writes, &one);
  return true;
}

void global_lanes_touch(const GlobalNow *now, LaneMask mask, const uint64_t *addresses, bool run,
                        uint32_t bytes) {
  ClusterCheck *check = now->check;
  struct GlobalState *own = now->own;
  if (!check->lanes_checked) return;
  if (!own->lanes) own->lanes = new_zeros(check->agents, sizeof *own->lanes);
  const LaneOrder *order = lanes_order(check, now->access.issuer);
  struct GlobalLanes *lanes = &own->lanes[now->access.issuer];
  bool writes = now->kind != ACCESS_READ, strong = now->access.reach != REACH_PLAIN;
  LanePast one;
  fill_past(&one, mask, addresses, run, bytes);
  for (int past_writes = !writes; past_writes < 2; past_writes++) {
    uint32_t kept = lanes->count[past_writes] < PASTS_KEPT ? lanes->count[past_writes] : PASTS_KEPT;
    for (uint32_t i = 0; i < kept; i++) {
      const LanePast *past = &lanes->pasts[past_writes][i];
      if (past->stamp < order->first || (strong && past->strong) || !may_meet(&one, past) ||
          is_guess(now, past, past_writes) || only_meet_themselves(&one, past))
        continue;
      compare_lanes(now, order, &one, past, past_writes);
    }
  }
  if (writes && !strong && !run && now->stored) check_collisions(now, &one);
  lanes_note_access(check, now->access.issuer);
  one.in = now->in;
  one.strong = strong;
  one.swaps = now->swaps;
  one.stamp = order->stamp;
  one.time = now->access.time;
  keep_access(lanes, order, writes, &one);
}

/* ---- One lane sets a flag, or waits for one, for its warp (lane_releases.c) ---- */

static void note_left_out(GlobalLaunch *launch, const LeftOut *one) {
  HOLD_LOCK(&launch->lock);
  if (!launch->left_out) launch->left_out = new_zeros(1, sizeof *launch->left_out);
  LeftOut *kept = &launch->left_out->kept[launch->left_out->count++ % LEFT_OUT_KEPT];
  *kept = *one;
  if (!kept->past.in_steps) {
    memcpy(kept->addresses, one->past.addresses, sizeof kept->addresses);
    kept->past.addresses = kept->addresses;
  }
}

void global_lanes_release(Warp *warp, const Instruction *in, uint32_t time) {
  const ClusterCheck *check = check_of(warp);
  const struct GlobalState *own = check->global;
  const uint32_t agent = agent_of(warp);
  if (!check->lanes_checked || !own || !own->launch || !own->lanes) return;
  const LaneOrder *order = lanes_order(check, agent);
  const struct GlobalLanes *all = &own->lanes[agent];
  for (uint32_t i = 0; i < PASTS_KEPT && i < all->count[1]; i++) {
    LeftOut one = {own->cluster, agent, time, in, all->pasts[1][i], {0}};
    LaneMask left_out = 0;
    if (one.past.strong || one.past.stamp < order->first) continue;
    FOR_LANES(lane, one.past.mask)
      if (!lanes_handed_on(check, agent, lane, one.past.stamp) && one.past.time > order->met[lane])
        left_out |= 1u << lane;
    one.past.mask = left_out;
    if (left_out) note_left_out(own->launch, &one);
  }
}

bool global_lanes_hand_over(const GlobalNow *now) {
  /* Relaxed: what it points to is read with the lock. */
  return now->own && (order_of(now->check, now->access.issuer)->lanes.apart ||
                      __atomic_load_n(&now->launch->left_out, __ATOMIC_RELAXED));
}

/* What the warp knows of the other one, or knew before only some of its lanes acquired more. */
static uint32_t time_known(const GlobalNow *now, const GlobalAccess *past, bool before) {
  const AgentOrder *own = order_of(now->check, now->access.issuer);
  if (past->cluster == now->access.cluster)
    return before ? own->lanes.before[past->agent] : own->clock.seen[past->agent];
  const KnownLeaf *leaf =
      order_leaf(now->launch->order,
                 before ? own->lanes.known_before : own->clock.known.tree[KNOWN], past->cluster);
  return leaf && past->agent < leaf->count ? leaf->clocks[past->agent] : 0;
}

static bool touches(const GlobalNow *now, const LanePast *past) {
  FOR_LANES(lane, past->mask) {
    const uint64_t at = address_of(past, lane);
    if (at < now->address + now->bytes && now->address < at + past->bytes) return true;
  }
  return false;
}

GlobalMistake global_lanes_mistake(GlobalNow *now, const GlobalAccess *past, int lane) {
  const LaneKnowledge *lanes = &order_of(now->check, now->access.issuer)->lanes;
  if (past->operation != now->access.operation || (past->flags & GLOBAL_ASYNC) ||
      past->reach != REACH_PLAIN || now->access.reach != REACH_PLAIN ||
      (past->cluster == now->access.cluster && past->issuer == now->access.issuer))
    return MISTAKE_RACE;
  if (lanes->apart && !(lanes->learnt >> lane & 1) && !(now->access.flags & GLOBAL_ASYNC) &&
      past->time > time_known(now, past, true))
    return MISTAKE_LANE_WAITED;
  if (now->kind == ACCESS_WRITE || !__atomic_load_n(&now->launch->left_out, __ATOMIC_RELAXED))
    return MISTAKE_RACE;
  const uint32_t known = time_known(now, past, false);
  HOLD_LOCK(&now->launch->lock);
  const struct GlobalLeftOut *all = now->launch->left_out;
  const LeftOut *found = NULL;
  for (uint32_t i = 0; i < all->count && i < LEFT_OUT_KEPT && !found; i++) {
    const LeftOut *one = &all->kept[i];
    if (one->cluster == past->cluster && one->agent == past->agent && one->time == known &&
        one->past.time == past->time && touches(now, &one->past))
      found = one;
  }
  if (found) now->told_by = found->in;
  return found ? MISTAKE_LANE_TOLD : MISTAKE_RACE;
}
