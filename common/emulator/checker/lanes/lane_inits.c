/* lane_inits.c: may a lane use an mbarrier that another lane of its warp has initialised?
 *
 * It may see the barrier as it was before. If another warp may, too, only that is reported (mbarriers.c). */
#include "checker/lanes/lane_access.h"

void lanes_note_init(Warp *warp, uint32_t address) {
  const ClusterCheck *check = check_of(warp);
  const uint32_t agent = agent_of(warp);
  const MbarrierPast past = check_mbarrier_past(warp, address, INIT_ONLY);
  if (!past.valid || past.init.agent != agent) return;
  check->lanes->inits[past.init.number] = lanes_order(check, agent)->stamp;
  check->lanes->open_inits[agent]++;
}

/* Has a lane of this warp initialised the barrier there, and may others not know? */
static bool is_open(const Warp *warp, uint32_t address, MbarrierInit *init) {
  const ClusterCheck *check = check_of(warp);
  const uint32_t agent = agent_of(warp);
  if (!check->lanes_checked || !check->lanes->open_inits[agent]) return false;
  const MbarrierPast past = check_mbarrier_past(warp, address, INIT_ONLY);
  *init = past.init;
  return past.valid && init->agent == agent && check->lanes->inits[init->number];
}

bool lanes_init_is_open(const Warp *warp, uint32_t address) {
  MbarrierInit init;
  return is_open(warp, address, &init);
}

static void close_init(const ClusterCheck *check, const MbarrierInit *init) {
  check->lanes->inits[init->number] = 0;
  check->lanes->open_inits[init->agent]--;
}

void lanes_check_init(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address) {
  ClusterCheck *check = check_of(warp);
  MbarrierInit init;
  if (!is_open(warp, address, &init)) return;
  const uint32_t stamp = check->lanes->inits[init.number];
  const LaneOrder *order = lanes_order(check, init.agent);
  if (stamp < order->first) {
    close_init(check, &init);
    return;
  }
  LaneMask wrong = 0;
  for (LaneMask left = lanes & ~(1u << init.lane); left; left &= left - 1)
    if (!lanes_ordered(order, first_lane(left), init.lane, stamp)) wrong |= left & -left;
  if (!wrong) return;
  const LaneAccess now = {.check = check, .warp = warp, .in = in};
  const Finding what = {.rule = LANE_RULE_INIT,
                        .other = init.in,
                        .memory = ABOUT_BARRIER,
                        .rank = (uint8_t)SHARED_RANK(address),
                        .address = SHARED_OFFSET(address)};
  if (!lane_race_is_kept(&now, init.in, LANE_RULE_INIT))
    lane_keep_race(&now, false, wrong, &what,
                   "the barrier at shared-memory offset 0x%x was initialised by thread %u of the "
                   "same warp (line %u of the %s), and nothing orders that before this use by "
                   "other lanes.\n"
                   "Put __syncthreads() after the init; for a block of one warp __syncwarp() is "
                   "enough.",
                   SHARED_OFFSET(address), thread_of(warp, init.lane), init.line, init.text);
  close_init(check, &init); /* report only once */
}
