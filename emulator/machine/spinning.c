/* spinning.c: checks whether the warps of a cluster spin without making progress, and advances the
 * clock quickly for those that wait for a time. */
#include "async/async.h"
#include "machine/machine.h"
#include "state/polling.h"

enum {
  SLICE_STEPS = 1024,           /* of one warp */
  CHECK_STEPS = 1 << 16,        /* of one check, at least, */
  CHECK_STEPS_OF_WARP = 1 << 9, /* plus this many for each warp, */
  CHECK_SHARE = 16,             /* and 1/16 of all steps so far, for long loops */
  MOST_EVENTS = 4000,           /* after this many events it is not polling */
  STANDSTILL_STEPS = 256,
  STANDSTILL_SLICES = 64
};

static uint32_t count_lanes(const Context *context) {
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < context->warp_count; i++)
    if (context->warps[i].flow->count)
      lanes += (uint32_t)__builtin_popcount(live_lanes(&context->warps[i]));
  return lanes;
}

static uint64_t steps_of_a_look(const Context *context) {
  uint64_t steps = CHECK_STEPS + (uint64_t)context->warp_count * CHECK_STEPS_OF_WARP;
  uint64_t share = context->flow.steps / CHECK_SHARE;
  return share > steps && share < steps * CHECK_SHARE ? share : steps;
}

/* All warps spin, and some of them read the clock: advances the clock for the next rounds. */
static bool hurry_clock(Context *context) {
  struct ClusterFlow *flow = &context->flow;
  flow->hurry = flow->hurry ? flow->hurry * 2 : FIRST_HURRY;
  if (flow->hurry > LAST_HURRY) return false;
  flow->extra_time += flow->hurry;
  polling_event(&context->cluster);
  return true;
}

/* At first waits stay blocked, because a program that limits its attempts must not get "not yet"
 * while any warp makes progress. */
static Progress judge_progress(Context *context) {
  Spinning spinning = polling_spinning(&context->cluster);
  if (spinning == NOT_SPINNING) return PROGRESS_POSSIBLE;
  if (async_land_next(&context->cluster)) {
    polling_event(&context->cluster);
    return PROGRESS_POSSIBLE;
  }
  if (!context->flow.all_waits_expire) {
    context->flow.all_waits_expire = context->cluster.waits_expire = true;
    polling_event(&context->cluster);
    return PROGRESS_POSSIBLE;
  }
  if (polling_reads_global(&context->cluster)) {
    context->flow.spinning = (uint8_t)spinning;
    return PROGRESS_BY_OTHERS;
  }
  return spinning == SPINNING_BY_CLOCK && hurry_clock(context) ? PROGRESS_POSSIBLE : PROGRESS_NEVER;
}

Progress check_progress(Context *context) {
  Cluster *cluster = &context->cluster;
  struct ClusterFlow *flow = &context->flow;
  polling_begin(cluster);
  uint64_t end = flow->steps + steps_of_a_look(context);
  uint32_t lanes = count_lanes(context), first_event = polling_events(cluster);
  Progress look = PROGRESS_POSSIBLE;
  bool over = false;
  while (!over) {
    uint64_t before = flow->steps;
    RoundResult round = {0};
    for (uint32_t i = 0; i < context->warp_count && !round.fault; i++)
      if (context->warps[i].flow->count)
        run_one(context, &context->warps[i], SLICE_STEPS, false, &round);
    if (round.fault || cluster->launch->error)
      look = PROGRESS_FAULT;
    else if (flow->running_warps && count_lanes(context) == lanes &&
             (!flow->wants_turn || flow->has_turn))
      look = judge_progress(context);
    else
      over = true; /* a warp has exited, or must wait for others: this is progress */
    if (look != PROGRESS_POSSIBLE || flow->steps == before || flow->steps > end ||
        polling_events(cluster) - first_event > MOST_EVENTS)
      over = true;
  }
  polling_end(cluster);
  flow->all_waits_expire = cluster->waits_expire = false;
  if (count_lanes(context) != lanes) flow->hurry = 0;
  return look;
}

void stand_still(Context *context) {
  Cluster *cluster = &context->cluster;
  cluster->waits_stop = true;
  context->flow.has_turn = true;
  for (uint32_t i = 0; i < context->warp_count; i++) {
    Warp *warp = &context->warps[i];
    RoundResult round = {.worked = true};
    for (int slice = 0; warp->flow->count && polling_waits(warp) && slice < STANDSTILL_SLICES;
         slice++)
      if (!round.fault && (round.worked || round.yielded)) {
        round = (RoundResult){0};
        run_one(context, warp, STANDSTILL_STEPS, false, &round);
      }
  }
  cluster->waits_stop = false;
}
