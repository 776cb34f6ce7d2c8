/* lane_inits.c: may a lane use an mbarrier that another lane of its warp has initialised?
 *
 * It may see the barrier as it was before. If another warp may, too, only that is reported (mbarriers.c). */
#include "base/holds.h"
#include "checker/lanes/lane_access.h"

void lanes_note_init(Warp *warp, uint32_t address) {
  const ClusterCheck *check = check_of(warp);
  const uint32_t agent = agent_of(warp);
  const MbarrierPast past = check_mbarrier_past(warp, address, INIT_ONLY);
  if (!past.valid || past.init.agent != agent) return;
  check->lanes->inits[past.init.number] = lanes_order(check, agent)->stamp;
  check->lanes->open_inits[agent]++;
}

static void close_init(const ClusterCheck *check, const MbarrierInit *init) {
  HOLDS(check->lanes->open_inits[init->agent] > 0);
  check->lanes->inits[init->number] = 0;
  check->lanes->open_inits[init->agent]--;
}

__attribute__((noinline)) static bool check_open_init(Warp *warp, const Instruction *in,
                                                      LaneMask lanes, uint32_t address) {
  ClusterCheck *check = check_of(warp);
  const MbarrierPast past = check_mbarrier_past(warp, address, INIT_ONLY);
  const MbarrierInit init = past.init;
  if (!past.valid || init.agent != agent_of(warp)) return false;
  const uint32_t stamp = check->lanes->inits[init.number];
  const LaneOrder *order = lanes_order(check, init.agent);
  if (!stamp) return false;
  if (stamp < order->first) {
    close_init(check, &init);
    return false;
  }
  LaneMask wrong = 0;
  FOR_LANES(each, lanes & ~(1u << init.lane))
    if (!lanes_ordered(order, each, init.lane, stamp)) wrong |= 1u << each;
  if (!wrong) return true;
  const LaneAccess now = {.check = check, .warp = warp, .in = in};
  const Finding what = {.rule = RULE(MBARRIER_INIT_OTHER_LANES),
                        .other = init.in,
                        .memory = ABOUT_BARRIER,
                        .rank = (uint8_t)SHARED_RANK(address),
                        .address = SHARED_OFFSET(address)};
  if (!lane_race_is_kept(&now, init.in, RULE(MBARRIER_INIT_OTHER_LANES)))
    lane_keep_race(&now, false, wrong, &what,
                   "the barrier at shared-memory offset 0x%x was initialised by thread %u of the "
                   "same warp (line %u of the %s), and nothing orders that before this use by "
                   "other lanes.\n"
                   "Put __syncthreads() after the init; for a block of one warp __syncwarp() is "
                   "enough.",
                   SHARED_OFFSET(address), thread_of(warp, init.lane), init.line, init.text);
  close_init(check, &init); /* report only once */
  return false;
}

bool lanes_check_init(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address) {
  const ClusterCheck *check = check_of(warp);
  if (!check->lanes_checked || !check->lanes->open_inits[agent_of(warp)]) return false;
  return check_open_init(warp, in, lanes, address);
}
