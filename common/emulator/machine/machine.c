/* machine.c: runs the warps of one cluster: the groups of a warp, the warps in turn, what is in
 * flight when no warp can go on, and the end of hangs. */
#include "machine/machine.h"

#include <string.h>

#include "async/async.h"
#include "checker/checker.h"
#include "record/record.h"

enum {
  SLICE_STEPS = 4096,          /* of one warp before the others have their turn */
  POLL_STEPS = 256,            /* a slice this short that ends in a yield is a poll */
  POLL_ROUNDS = 4,             /* rounds of nothing else after which other clusters are let on */
  EXPIRATIONS = 10000,         /* of waits without any change: then it is a hang */
  EXPIRED_WAIT_CLOCKS = 20000, /* how long a try_wait suspends a thread */
  EXPIRATIONS_TO_DOUBLE = 500  /* then time passes twice as fast: programs that give up by the clock
                                  shall come to it before they count as hanging */
};

/* ---- Groups ---- */
static uint32_t depth_of(const Group *group) { return group->frame ? group->frame->depth : 0; }

static bool may_run(const Group *group, const Cluster *cluster) {
  return group->state == GROUP_READY ||
         (group->state == GROUP_BLOCKED && group->seen != cluster->changes);
}

static bool goes_before(const Group *a, const Group *b) {
  uint32_t depth_a = depth_of(a), depth_b = depth_of(b);
  if (depth_a != depth_b) return depth_a > depth_b;
  return a->place < b->place;
}

/* The group to run next, or -1. */
static int pick_group(const struct WarpFlow *flow, const Cluster *cluster) {
  int best = -1;
  for (uint32_t i = 0; i < flow->count; i++)
    if (may_run(&flow->groups[i], cluster) &&
        (best < 0 || goes_before(&flow->groups[i], &flow->groups[best])))
      best = (int)i;
  return best;
}

/* Lanes that stand at the same place with the same call stack go on together. */
static void merge_groups(struct WarpFlow *flow) {
  for (uint32_t i = 0; i < flow->count;) {
    Group *own = &flow->groups[flow->current], *other = &flow->groups[i];
    if (i == flow->current || other->place != own->place || other->frame != own->frame ||
        other->function != own->function || other->arrived || own->arrived) {
      i++;
      continue;
    }
    own->mask |= other->mask;
    own->state = GROUP_READY;
    if (flow->current == flow->count - 1) flow->current = i;
    drop_group(flow, i);
    i = 0;
  }
}

/* ---- One warp ---- */
typedef enum { SLICE_BLOCKED, SLICE_YIELDED, SLICE_USED_UP, SLICE_DONE, SLICE_FAULT } SliceEnd;

static void show_watchers(Warp *warp, const Instruction *in, LaneMask active) {
  if (warp->watched & WATCH_STEPS) record_step(warp, in, active);
  if (warp->watched & WATCH_REGISTERS) check_registers(warp, in, active);
}

static SliceEnd warp_run(Warp *warp, uint32_t allowed_steps, bool expire) {
  struct WarpFlow *flow = warp->flow;
  Cluster *cluster = warp->cta->cluster;
  uint32_t steps = 0;
  SliceEnd end;
  for (uint32_t i = 0; i < flow->count; i++)
    if (flow->groups[i].state == GROUP_YIELDED) flow->groups[i].state = GROUP_READY;
  for (;;) {
    int picked =
        flow->count == 1 && may_run(&flow->groups[0], cluster) ? 0 : pick_group(flow, cluster);
    if (expire) { /* one wait of each warp is told that its time is over */
      expire = false;
      if (picked < 0 && flow->count) picked = (int)(cluster->flow->expirations % flow->count);
      cluster->waits_expire = true;
    }
    if (picked < 0) {
      end = flow->count == 0 ? SLICE_DONE : SLICE_BLOCKED;
      for (uint32_t i = 0; i < flow->count; i++)
        if (flow->groups[i].state == GROUP_YIELDED) end = SLICE_YIELDED;
      break;
    }
    flow->current = (uint32_t)picked;
    if (flow->count > 1) merge_groups(flow);
    Group *group = &flow->groups[flow->current];
    group->state = GROUP_READY;
    const Instruction *code = group->function->code;
    const Instruction *in = code + group->place;
    LaneMask mask = group->mask;
    bool alone = flow->count == 1, fresh = true;
    for (;;) {
      if (in->leader && !alone && !fresh) {
        group->place = (uint32_t)(in - code);
        break; /* somebody else may be first now, or stand here as well */
      }
      fresh = false;
      LaneMask active = mask;
      if (in->guard >= 0) {
        LaneMask guard = warp->predicates[in->guard];
        active &= in->guard_negated ? ~guard : guard;
        if (!active) {
          in++;
          continue;
        }
      }
      steps++;
      if (__builtin_expect(warp->watched, 0)) show_watchers(warp, in, active);
      StepResult result = in->execute(warp, in, active);
      if (__builtin_expect(result == STEP_NEXT, 1)) {
        in++;
        continue;
      }
      cluster->waits_expire = false;
      if (result == STEP_JUMPED) {
        if (flow->count == 1) {
          group = &flow->groups[0];
          flow->current = 0;
          mask = group->mask;
          code = group->function->code;
          in = code + group->place;
          alone = true;
          if (steps < allowed_steps) continue;
        }
        break;
      }
      group = &flow->groups[flow->current];
      group->place = (uint32_t)(in - code);
      if (result == STEP_FAULT) {
        end = SLICE_FAULT;
        goto leave;
      }
      /* blocked, or done and yielding; lanes that the guard let pass go their way */
      if (active != mask) {
        if (result == STEP_BLOCKED) {
          Group *passing = split_group(flow, mask & ~active);
          passing->place++;
          passing->arrived = false;
          group = &flow->groups[flow->current];
        }
      }
      if (result == STEP_BLOCKED) {
        if (cluster->recorder) record_blocked(warp, in, active);
        group->state = GROUP_BLOCKED;
        group->seen = cluster->changes;
      } else {
        group->state = GROUP_YIELDED;
        group->place++;
      }
      break;
    }
    cluster->waits_expire = false;
    if (steps >= allowed_steps && flow->count) {
      end = SLICE_USED_UP;
      break;
    }
  }
leave:
  cluster->waits_expire = false;
  cluster->flow->steps += steps;
  return end;
}

/* ---- One cluster ---- */
static bool warp_can_run(const Warp *warp, const Cluster *cluster) {
  const struct WarpFlow *flow = warp->flow;
  for (uint32_t i = 0; i < flow->count; i++)
    if (flow->groups[i].state != GROUP_BLOCKED || flow->groups[i].seen != cluster->changes)
      return true;
  return false;
}

typedef struct {
  bool ran, worked, yielded, fault;
} Round;

static void run_one(Context *context, Warp *warp, uint32_t steps, bool expire, Round *round) {
  struct ClusterFlow *flow = &context->flow;
  uint64_t before = flow->steps, changes = context->cluster.changes;
  SliceEnd end = warp_run(warp, steps, expire);
  round->ran = true;
  switch (end) {
    case SLICE_FAULT:
      round->fault = true;
      break;
    case SLICE_YIELDED:
      round->yielded = true;
      break;
    case SLICE_DONE:
      flow->running_warps--;
      if (--warp->cta->running_warps == 0 && settings()->check) check_cta_exit(warp->cta);
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

static void run_round(Context *context, Round *round) {
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
      if ((choice & 3) == 0) continue; /* passed over this time */
      steps = 16u << (choice >> 8 & 7);
      if ((choice & 0xf0) == 0) async_land_next(cluster);
    }
    run_one(context, warp, steps, false, round);
  }
}

/* Waits without an end: each blocked wait answers "not yet" once, for programs that count their
 * attempts; when that changes nothing for long, it is a hang. */
static bool expire_waits(Context *context, Round *round) {
  struct ClusterFlow *flow = &context->flow;
  if (flow->expirations >= EXPIRATIONS) return false;
  flow->extra_time += (uint64_t)EXPIRED_WAIT_CLOCKS << flow->expirations / EXPIRATIONS_TO_DOUBLE;
  uint32_t groups = 1; /* of one warp, at most: each is tried before it counts as hopeless */
  for (uint32_t i = 0; i < context->warp_count; i++)
    if (context->warps[i].flow->count > groups) groups = context->warps[i].flow->count;
  for (uint32_t attempt = 0; attempt < groups; attempt++) {
    uint64_t steps = flow->steps;
    flow->expirations++;
    for (uint32_t i = 0; i < context->warp_count && !round->fault; i++)
      if (context->warps[i].flow->count)
        run_one(context, &context->warps[i], SLICE_STEPS, true, round);
    if (round->fault) return false;
    /* somebody did more than to try again at its very place */
    if (flow->steps - steps > context->warp_count || round->worked || round->yielded) return true;
  }
  return false;
}

static bool spins_too_long(Context *context) {
  struct ClusterFlow *flow = &context->flow;
  if (flow->seen_changes != context->cluster.changes) {
    flow->seen_changes = context->cluster.changes;
    flow->quiet_steps = flow->steps;
    flow->expirations = 0;
  }
  return flow->steps - flow->quiet_steps > settings()->steps;
}

static ClusterEnd hang(Context *context, const char *why) {
  report_hang(&context, 1, why);
  return CLUSTER_FAULT;
}

ClusterEnd cluster_run(Context *context) {
  Cluster *cluster = &context->cluster;
  struct ClusterFlow *flow = &context->flow;
  uint32_t polls = 0;
  if (flow->has_turn) cluster_changed(cluster);
  flow->wants_turn = false;
  for (;;) {
    Round round = {0};
    run_round(context, &round);
    if (round.fault || cluster->launch->error) return CLUSTER_FAULT;
    if (flow->running_warps == 0) break;
    bool too_long = spins_too_long(context);
    if (too_long)
      return hang(context,
                  "it has run EMULATOR_STEPS instructions without any barrier, exit or "
                  "asynchronous operation making progress: it spins (if it only takes long, set "
                  "EMULATOR_STEPS higher)");
    if (round.worked) {
      polls = 0;
      continue;
    }
    if (round.yielded) {
      if (++polls < POLL_ROUNDS) continue;
      polls = 0;
      if (async_land_next(cluster)) continue;
      if (flow->has_turn) {
        flow->has_turn = false;
        return CLUSTER_POLLS;
      }
      return CLUSTER_WAITS;
    }
    bool awake = false;
    for (uint32_t i = 0; i < context->warp_count && !awake; i++)
      awake = warp_can_run(&context->warps[i], cluster);
    if (awake) continue;
    if (flow->wants_turn && !flow->has_turn) return CLUSTER_WAITS;
    if (async_land_next(cluster)) continue;
    Round last = {0};
    if (!expire_waits(context, &last)) {
      if (last.fault || cluster->launch->error) return CLUSTER_FAULT;
      return hang(context, "no thread can go on and nothing is in flight");
    }
    if (last.fault || cluster->launch->error) return CLUSTER_FAULT;
    if (flow->running_warps == 0) break;
  }
  /* the kernel is over only when all that it started is over */
  while (async_land_next(cluster))
    if (cluster->launch->error) return CLUSTER_FAULT;
  return CLUSTER_DONE;
}
