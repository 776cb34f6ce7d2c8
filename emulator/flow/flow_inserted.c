/* flow_inserted.c: instructions that are not in the text but inserted by the decoder. */
#include "async/async.h"
#include "base/settings.h"
#include "flow/flow.h"
#include "state/cluster.h"

/* Before an .aligned instruction: continues when all lanes of the warp have arrived here. */
StepResult flow_converge(Warp *warp, const Instruction *in, LaneMask mask) {
  if (mask != live_lanes(warp)) return STEP_BLOCKED;
  if (mask != warp->lanes) aligned_check(warp, in + 1, mask);
  return STEP_NEXT;
}
bool converge_waits_for_warp(const Instruction *in) { return in->execute == flow_converge; }

/* After asynchronous instructions, unless they land as late as possible. */
StepResult flow_land(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)in, (void)mask;
  Cluster *cluster = warp->cta->cluster;
  if (settings()->schedule == SCHEDULE_EARLY)
    while (async_land_next(cluster)) continue;
  else if ((cluster_random(cluster) & 3) == 0)
    async_land_next(cluster);
  return cluster->launch->error ? STEP_FAULT : STEP_NEXT;
}

StepResult flow_read_clock(Warp *warp, const Instruction *in, LaneMask mask) {
  Cluster *cluster = warp->cta->cluster;
  cluster->flow->extra_time += 16;
  launch_is_unique(warp);
  uint64_t clock = cluster_clock(cluster), time = 1700000000000000000ull + clock / 2;
  uint64_t value = 0;
  switch ((Special)in->operand[0].constant_value) {
    case SPECIAL_CLOCK:
    case SPECIAL_CLOCK64:
      value = clock;
      break;
    case SPECIAL_CLOCK_HI:
      value = clock >> 32;
      break;
    case SPECIAL_GLOBALTIMER:
    case SPECIAL_GLOBALTIMER_LO:
      value = time;
      break;
    case SPECIAL_GLOBALTIMER_HI:
      value = time >> 32;
      break;
    default:
      break;
  }
  for (int lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) set_lane_value(warp, &in->operand[0], lane, value);
  return STEP_NEXT;
}
