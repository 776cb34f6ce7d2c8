/* machine.c: runs the warps of one cluster: the groups of a warp, the warps in turn, operations in
 * flight when no warp can continue, and the end of hangs. */
#include "base/holds.h"
#include "machine/launch.h"
#include "machine/machine.h"

#include "async/async.h"
#include "base/settings.h"
#include "state/polling.h"

enum {
  SLICE_STEPS = 4096,          /* steps of one warp before the others run */
  POLL_STEPS = 256,            /* a slice shorter than this that ends in a yield is a poll */
  POLL_ROUNDS = 4,             /* rounds of only polling after which other clusters run */
  EXPIRED_WAIT_CLOCKS = 20000, /* how long a try_wait suspends a thread */
  /* rounds and steps after which to look at the time */
  ROUNDS_TO_NOTICE = 64,
  STEPS_TO_NOTICE = 1 << 15
};

/* ---- Groups ---- */
static uint32_t depth_of(const Group *group) { return group->frame ? group->frame->depth : 0; }

/* Has anything happened since it was blocked that it may be waiting for? */
static bool may_go_on(const Group *group, const Cluster *cluster) {
  return group->seen != (group->sleeps ? cluster->mbarrier_changes : cluster->changes);
}

static bool may_run(const Group *group, const Cluster *cluster) {
  return group->state == GROUP_READY ||
         (group->state == GROUP_BLOCKED && may_go_on(group, cluster));
}

static bool goes_before(const Group *a, const Group *b) {
  if (a->frame == b->frame) return a->place < b->place;
  uint32_t depth_a = depth_of(a), depth_b = depth_of(b);
  if (depth_a != depth_b) return depth_a > depth_b;
  return a->place < b->place;
}

/* The group to run next, or -1. */
static int pick_group(const struct WarpFlow *flow, const Cluster *cluster) {
  int best = -1;
  for (int i = 0; i < (int)flow->count; i++) {
    const Group *group = &flow->groups[i];
    if (may_run(group, cluster) && (best < 0 || goes_before(group, &flow->groups[best]))) best = i;
  }
  return best;
}

__attribute__((noinline)) static void merge_groups_here(struct WarpFlow *flow) {
  Group *own = &flow->groups[flow->current], *last = &flow->groups[flow->count - 1];
  if (own->arrived) return;
  for (Group *other = flow->groups; other <= last;) {
    if (other->place != own->place || other == own || other->frame != own->frame ||
        other->function != own->function || other->arrived) {
      other++;
      continue;
    }
    own->mask |= other->mask;
    own->met |= other->met;
    uint32_t dropped = (uint32_t)(other - flow->groups);
    drop_group(flow, dropped); /* the last one is there now */
    if (own == last) {
      own = other;
      flow->current = dropped;
    }
    last--;
  }
  forget_splits(flow, own->mask);
}

/* Lanes at the same instruction with the same call stack continue together. Usually no other group is
 * there: this is asked before every run of a group. */
static inline void merge_groups(struct WarpFlow *flow) {
  if (flow->count == 2) {
    if (flow->groups[0].place == flow->groups[1].place) merge_groups_here(flow);
    return;
  }
  uint32_t place = flow->groups[flow->current].place, here = 0;
  for (const Group *group = flow->groups, *end = group + flow->count; group < end; group++)
    here += group->place == place;
  if (here > 1) merge_groups_here(flow);
}

/* ---- One warp ---- */
typedef enum { SLICE_BLOCKED, SLICE_YIELDED, SLICE_USED_UP, SLICE_DONE, SLICE_FAULT } SliceEnd;

__attribute__((noinline, cold)) static void show_watchers(Warp *warp, const Instruction *in,
                                                          LaneMask mask) {
  LaneMask guarded = 0;
  if (warp->watched & WATCH_POLLING) polling_step(warp, in, mask);
  if (in->guard >= 0) {
    LaneMask guard = warp->predicates[in->guard];
    guarded = mask;
    mask &= in->guard_negated ? ~guard : guard;
  }
  emit_step(warp, in, guarded, mask);
}

/* Why none of its groups can run. */
static SliceEnd why_idle(const struct WarpFlow *flow) {
  for (uint32_t i = 0; i < flow->count; i++)
    if (flow->groups[i].state == GROUP_YIELDED) return SLICE_YIELDED;
  return flow->count == 0 ? SLICE_DONE : SLICE_BLOCKED;
}

/* The running group stops here: a fault, blocked, or done and yielding. If it is blocked, lanes that
 * the guard disables continue. */
static inline void stop_group(Warp *warp, const Instruction *in, LaneMask active,
                              StepResult result) {
  struct WarpFlow *flow = warp->flow;
  Cluster *cluster = warp->cta->cluster;
  Group *group = current_group(warp);
  group->place = (uint32_t)(in - group->function->code);
  if (result == STEP_FAULT) return;
  if (result != STEP_BLOCKED) {
    group->state = GROUP_YIELDED;
    group->place++;
    return;
  }
  if (active != group->mask) {
    Group *passing = split_group(flow, group->mask & ~active);
    passing->place++;
    passing->arrived = false;
    group = current_group(warp);
  }
  emit_blocked(warp, in, active);
  group->state = GROUP_BLOCKED;
  /* In a random order a wait may answer "not yet" each time it is tried, so it is tried often. */
  group->sleeps = (in->traits & MBARRIER) && settings()->schedule != SCHEDULE_RANDOM &&
                  settings()->schedule != SCHEDULE_EXPLORE;
  group->seen = group->sleeps ? cluster->mbarrier_changes : cluster->changes;
}

static inline void expiry_is_over(Cluster *cluster) {
  if (__builtin_expect(cluster->waits_expire, 0))
    cluster->waits_expire = cluster->flow->all_waits_expire;
}

/* Runs the group of lanes until it stops, jumps while there are other groups, comes to an instruction
 * where it may merge with them (another may be first then), or has used up the slice. Returns the
 * result of the last instruction. */
static inline StepResult run_group(Warp *warp, Group *group, uint32_t allowed_steps,
                                   uint32_t *steps) {
  struct WarpFlow *flow = warp->flow;
  const Instruction *code = group->function->code, *in = code + group->place;
  LaneMask mask = group->mask;
  bool alone = flow->count == 1;
  StepResult result = STEP_NEXT;
  do {
    if (__builtin_expect(warp->watched, 0)) show_watchers(warp, in, mask);
    LaneMask active = mask;
    if (in->guard >= 0) {
      LaneMask guard = warp->predicates[in->guard];
      active &= in->guard_negated ? ~guard : guard;
      if (!active) {
        in++;
        continue;
      }
    }
    ++*steps;
    result = in->execute(warp, in, active);
    if (__builtin_expect(result == STEP_NEXT, 1)) {
      in++;
      continue;
    }
    if (result != STEP_JUMPED) {
      stop_group(warp, in, active, result);
      return result;
    }
    if (flow->count != 1) return result;
    expiry_is_over(warp->cta->cluster);
    flow->current = 0;
    group = &flow->groups[0];
    mask = group->mask;
    code = group->function->code;
    in = code + group->place;
    alone = true;
    if (*steps >= allowed_steps) return result;
  } while (alone || !in->leader);
  group->place = (uint32_t)(in - code);
  return result;
}

static inline SliceEnd warp_run(Warp *warp, uint32_t allowed_steps, bool expire) {
  struct WarpFlow *flow = warp->flow;
  Cluster *cluster = warp->cta->cluster;
  uint32_t steps = 0;
  SliceEnd end;
  bool watched = polling_watches(warp);
  for (uint32_t i = 0; i < flow->count; i++) {
    Group *group = &flow->groups[i];
    if (watched) group->retries = group->state == GROUP_BLOCKED ? group->mask : 0;
    if (group->state == GROUP_YIELDED || watched) group->state = GROUP_READY;
  }
  for (;;) {
    int picked =
        flow->count == 1 && may_run(&flow->groups[0], cluster) ? 0 : pick_group(flow, cluster);
    if (expire) { /* one wait of each warp expires */
      expire = false;
      if (picked < 0 && flow->count) picked = (int)(cluster->flow->expirations % flow->count);
      cluster->waits_expire = true;
    }
    if (picked < 0) {
      end = why_idle(flow);
      break;
    }
    flow->current = (uint32_t)picked;
    Group *group = &flow->groups[picked];
    if (flow->count > 1) {
      merge_groups(flow);
      group = current_group(warp);
    }
    if (group->state == GROUP_BLOCKED) group->retries = group->mask;
    group->state = GROUP_READY;
    group->sleeps = false;
    StepResult last = run_group(warp, group, allowed_steps, &steps);
    expiry_is_over(cluster);
    if (last == STEP_FAULT || (steps >= allowed_steps && flow->count)) {
      end = last == STEP_FAULT ? SLICE_FAULT : SLICE_USED_UP;
      break;
    }
    if (flow->count == 1 && (last == STEP_BLOCKED || last == STEP_YIELD)) {
      end = last == STEP_BLOCKED ? SLICE_BLOCKED : SLICE_YIELDED;
      break;
    }
  }
  expiry_is_over(cluster);
  cluster->flow->steps += steps;
  return end;
}

/* ---- One cluster ---- */
static bool warp_can_run(const Warp *warp, const Cluster *cluster) {
  const struct WarpFlow *flow = warp->flow;
  for (uint32_t i = 0; i < flow->count; i++)
    if (flow->groups[i].state != GROUP_BLOCKED || may_go_on(&flow->groups[i], cluster)) return true;
  return false;
}

/* Each living lane is in one group. (From where a fault has ended the launch on, that is not so.) */
static inline bool groups_hold(const Warp *warp) {
  LaneMask lanes = 0;
  for (uint32_t i = 0; i < warp->flow->count; i++) {
    const Group *group = &warp->flow->groups[i];
    if (group->mask == 0 || lanes & group->mask || group->place >= group->function->count)
      return false;
    lanes |= group->mask;
  }
  return lanes == live_lanes(warp);
}

void run_one(Context *context, Warp *warp, uint32_t steps, bool expire, RoundResult *round) {
  struct ClusterFlow *flow = &context->flow;
  uint64_t before = flow->steps, changes = context->cluster.changes;
  SliceEnd end = warp_run(warp, steps, expire);
  HOLDS_DEARLY(end == SLICE_FAULT || groups_hold(warp));
  switch (end) {
    case SLICE_FAULT:
      round->fault = true;
      break;
    case SLICE_YIELDED:
      round->yielded = true;
      break;
    case SLICE_DONE:
      flow->running_warps--;
      if (--warp->cta->running_warps == 0) emit_block_exited(warp->cta);
      round->worked = true;
      break;
    case SLICE_USED_UP:
      round->worked = true;
      break;
    case SLICE_BLOCKED:
      break;
  }
  if (flow->steps - before > POLL_STEPS || changes != context->cluster.changes)
    round->worked = true;
}

static void run_round(Context *context, RoundResult *round) {
  Cluster *cluster = &context->cluster;
  bool random = settings()->schedule == SCHEDULE_RANDOM;
  uint32_t start = random ? (uint32_t)(cluster_random(cluster) % context->warp_count) : 0;
  for (uint32_t k = 0; k < context->warp_count && !round->fault; k++) {
    uint32_t i = start + k < context->warp_count ? start + k : start + k - context->warp_count;
    Warp *warp = &context->warps[i];
    if (warp->flow->count == 0 || !warp_can_run(warp, cluster)) continue;
    uint32_t steps = SLICE_STEPS;
    if (random) {
      uint64_t choice = cluster_random(cluster);
      if ((choice & 3) == 0) continue; /* skipped this time */
      steps = 16u << (choice >> 8 & 7);
      if ((choice & 0xf0) == 0) async_land_next(cluster);
    }
    run_one(context, warp, steps, false, round);
  }
}

/* When nothing can run and nothing is in flight, each blocked wait returns "not yet" once, for
 * programs that limit their waits. False: no warp made progress, for example because all are at
 * barriers that never expire. */
static bool expire_waits(Context *context, RoundResult *round) {
  struct ClusterFlow *flow = &context->flow;
  flow->extra_time += EXPIRED_WAIT_CLOCKS;
  /* maximum over the warps: each group is tried before this counts as hopeless */
  uint32_t groups = 1;
  for (uint32_t i = 0; i < context->warp_count; i++)
    if (context->warps[i].flow->count > groups) groups = context->warps[i].flow->count;
  for (uint32_t attempt = 0; attempt < groups; attempt++) {
    uint64_t steps = flow->steps;
    flow->expirations++;
    for (uint32_t i = 0; i < context->warp_count && !round->fault; i++)
      if (context->warps[i].flow->count)
        run_one(context, &context->warps[i], SLICE_STEPS, true, round);
    if (round->fault) return false;
    /* some warp did more than retry the same instruction */
    if (flow->steps - steps > context->warp_count || round->worked || round->yielded) return true;
  }
  return false;
}

static bool spins_too_long(Context *context) {
  struct ClusterFlow *flow = &context->flow;
  if (flow->steps > launches.steps_most) return true;
  if (flow->seen_changes != context->cluster.changes) {
    flow->seen_changes = context->cluster.changes;
    flow->quiet_steps = flow->steps;
  }
  return flow->steps - flow->quiet_steps > settings()->steps;
}

static ClusterEnd end_in_hang(Context *context, const char *why) {
  report_hang(&context, 1, why);
  return CLUSTER_FAULT;
}

/* Is it time to check whether the cluster still makes progress? */
static bool progress_check_is_due(Context *context) {
  struct ClusterFlow *flow = &context->flow;
  bool idle = flow->idle_rounds >= flow->next_idle_check;
  if (!idle && flow->steps < flow->next_progress_check) return false;
  if (idle) flow->next_idle_check = flow->idle_rounds * 2;
  flow->next_progress_check = flow->steps * 2;
  return !flow->wants_turn || flow->has_turn;
}

typedef enum { GO_ON, STOP } ClusterNext;

/* Checks for progress, and sets *end if the cluster must stop. */
static ClusterNext act_on_progress(Context *context, ClusterEnd *end) {
  struct ClusterFlow *flow = &context->flow;
  switch (check_progress(context)) {
    case PROGRESS_POSSIBLE:
      return GO_ON;
    case PROGRESS_FAULT:
      *end = CLUSTER_FAULT;
      return STOP;
    case PROGRESS_BY_OTHERS:
      flow->next_idle_check = 0; /* check at once when it has its turn again */
      *end = flow->has_turn ? CLUSTER_POLLS : CLUSTER_WAITS;
      flow->has_turn = false;
      return STOP;
    case PROGRESS_NEVER:
      break;
  }
  stand_still(context);
  *end = end_in_hang(
      context,
      "every thread only waits or polls, nothing is in flight, and no thread is left that "
      "could change what they wait for");
  return STOP;
}

/* No warp can continue: an operation in flight lands, or waits expire. */
static ClusterNext settle_idle(Context *context, ClusterEnd *end) {
  struct ClusterFlow *flow = &context->flow;
  Cluster *cluster = &context->cluster;
  if (flow->wants_turn && !flow->has_turn) {
    *end = CLUSTER_WAITS;
    return STOP;
  }
  if (async_land_next(cluster)) return GO_ON;
  flow->idle_rounds++;
  RoundResult last = {0};
  if (expire_waits(context, &last)) return GO_ON;
  *end = last.fault || cluster->launch->error
             ? CLUSTER_FAULT
             : end_in_hang(context, "no thread can continue and nothing is in flight");
  return STOP;
}

/* All warps that can continue only poll: other clusters may have to do something first. */
static ClusterNext settle_polls(Context *context, ClusterEnd *end) {
  struct ClusterFlow *flow = &context->flow;
  if (async_land_next(&context->cluster)) return GO_ON;
  flow->idle_rounds++;
  if (progress_check_is_due(context)) return act_on_progress(context, end);
  *end = flow->has_turn ? CLUSTER_POLLS : CLUSTER_WAITS;
  flow->has_turn = false;
  return STOP;
}

static bool anybody_can_run(const Context *context) {
  for (uint32_t i = 0; i < context->warp_count; i++)
    if (warp_can_run(&context->warps[i], &context->cluster)) return true;
  return false;
}

/* In a random order other clusters may run between any two of this one's operations whose order
 * they could observe. */
static bool passes_turn(Context *context) {
  struct ClusterFlow *flow = &context->flow;
  if (settings()->schedule != SCHEDULE_RANDOM || !flow->has_turn ||
      cluster_random(&context->cluster) % 2 == 0)
    return false;
  flow->has_turn = false;
  return true;
}

/* A kernel that loops without end but not without effect is no hang that could be proved. */
static void look_at_time(Context *context) {
  struct ClusterFlow *flow = &context->flow;
  if (++flow->rounds_unnoticed < ROUNDS_TO_NOTICE &&
      flow->steps - flow->noticed_steps < STEPS_TO_NOTICE)
    return;
  flow->rounds_unnoticed = 0;
  flow->noticed_steps = flow->steps;
  notice_long_run(context);
}

ClusterEnd cluster_run(Context *context) {
  Cluster *cluster = &context->cluster;
  struct ClusterFlow *flow = &context->flow;
  uint32_t polls = 0;
  ClusterEnd end = CLUSTER_DONE;
  if (flow->has_turn) cluster_changed(cluster);
  flow->wants_turn = false;
  flow->spinning = NOT_SPINNING;
  if (passes_turn(context)) return CLUSTER_PAUSES;
  for (;;) {
    RoundResult round = {0};
    run_round(context, &round);
    if (round.fault || cluster->launch->error) return CLUSTER_FAULT;
    if (flow->running_warps == 0) break;
    look_at_time(context);
    if (spins_too_long(context))
      return end_in_hang(
          context,
          "it has run EMULATOR_STEPS instructions without any barrier, exit or "
          "asynchronous operation making progress: it is spinning (if it just takes long, "
          "raise EMULATOR_STEPS)");
    if (progress_check_is_due(context)) {
      if (act_on_progress(context, &end) == STOP) return end;
    } else if (round.worked) {
      polls = 0;
      if (flow->next_idle_check) flow->idle_rounds = 0;
      if (passes_turn(context)) return CLUSTER_PAUSES;
    } else if (round.yielded) {
      if (++polls < POLL_ROUNDS) continue;
      polls = 0;
      if (settle_polls(context, &end) == STOP) return end;
    } else if (!anybody_can_run(context) && settle_idle(context, &end) == STOP) {
      return end;
    }
    if (cluster->launch->error) return CLUSTER_FAULT;
    if (flow->running_warps == 0) break;
  }
  /* the kernel ends only when everything that it started has completed */
  while (async_land_next(cluster))
    if (cluster->launch->error) return CLUSTER_FAULT;
  return CLUSTER_DONE;
}

/* ---- One instruction at a time, for exploration ---- */
const Instruction *warp_next_instruction(Warp *warp, uint32_t group_index, LaneMask *active) {
  struct WarpFlow *flow = warp->flow;
  flow->current = group_index;
  if (flow->count > 1) merge_groups(flow);
  Group *group = current_group(warp);
  const Instruction *in = group->function->code + group->place;
  *active = group->mask;
  if (in->guard >= 0) {
    LaneMask guard = warp->predicates[in->guard];
    *active &= in->guard_negated ? ~guard : guard;
  }
  return in;
}

StepResult warp_one_instruction(Warp *warp) {
  LaneMask active;
  const Instruction *in = warp_next_instruction(warp, warp->flow->current, &active);
  Group *group = current_group(warp);
  group->state = GROUP_READY;
  if (__builtin_expect(warp->watched, 0)) show_watchers(warp, in, group->mask);
  if (!active) {
    group->place++;
    return STEP_NEXT;
  }
  warp->cta->cluster->flow->steps++;
  StepResult result = in->execute(warp, in, active);
  if (result == STEP_NEXT)
    group->place++;
  else if (result != STEP_JUMPED)
    stop_group(warp, in, active, result);
  return result;
}

int warp_pick_group(const Warp *warp, bool (*wanted)(const Warp *warp, uint32_t index)) {
  const struct WarpFlow *flow = warp->flow;
  int best = -1;
  for (uint32_t i = 0; i < flow->count; i++)
    if (wanted(warp, i) && (best < 0 || goes_before(&flow->groups[i], &flow->groups[best])))
      best = (int)i;
  return best;
}
