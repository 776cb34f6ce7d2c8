/* lane_copies.c: copies into and from shared memory, which are accesses of the lane that
 * issues them; and copies over what lanes of other warps have read. */
#include "checker/lanes/lane_access.h"

/* ---- Copies over what lanes of other warps have read ---- */

/* The lanes that have read there as the record says, and told nobody since: no barrier, no strong
 * access, and no __syncwarp() with a lane that did. */
static LaneMask silent_readers(const LaneAccess *now, uint32_t at, uint32_t agent) {
  const LaneOrder *order = &now->check->lanes->orders[agent];
  const LaneShadow *shadow = now->shadow;
  uint32_t record = shadow->reads[at], stamp = stamp_of(record);
  LaneMask readers = 1u << lane_of(record), silent = 0;
  if (stamp < order->first) return 0;
  if (record & RECORD_MANY && !(record & RECORD_VECTOR)) readers = shadow->readers[at];
  FOR_LANES(lane, readers) {
    bool told = order->some_released && stamp <= order->released.stamp[lane];
    silent |= (LaneMask)!told << lane;
  }
  return silent;
}

/* One lane often arrives at an mbarrier for its warp. What the others have read is ordered before
 * that only by __syncwarp(). Nothing is said if the lanes have met in between at an instruction for
 * the whole warp (a shuffle, wgmma.wait_group): public kernels rely on that. */
static void check_silent_readers(const LaneAccess *now, uint32_t at, int lane, uint32_t agent) {
  LaneMask silent = silent_readers(now, at, agent);
  if (!silent) return;
  uint32_t word = (at << now->shadow->shift) / WORD_BYTES;
  const SharedUse last = shared_last(now->check, now->rank, word, agent, false);
  const Instruction *past = last.in;
  const uint32_t time = last.time;
  bool met = time && time <= now->check->lanes->orders[agent].met[first_lane(silent)];
  if (met || lane_race_is_kept(now, past, RULE(LANE_RACE))) return;
  const Finding what = lane_finding(now, at, RULE(LANE_RACE), past);
  lane_keep_race(
      now, false, 1u << lane, &what,
      "starts a copy into %s, which thread %u%s read %s. That thread has not arrived at a "
      "barrier since: another lane of its warp has.\n"
      "The lanes of a warp do not run in step: put __syncwarp() between the reads and the "
      "arrival, or let every lane arrive.",
      lane_place(now, at).text,
      agent % now->check->warps_per_cta * LANES + (uint32_t)first_lane(silent),
      agent / now->check->warps_per_cta == now->warp->cta->rank ? "" : " of another block",
      past ? place_of(past).text : "earlier");
}

static void check_other_readers(const LaneAccess *now, uint32_t at, uint32_t end, int lane) {
  uint32_t last = 0; /* the last record that was looked at */
  for (; at < end; at++) {
    uint32_t record = now->shadow->reads[at], stamp = stamp_of(record);
    if (record == last || stamp < now->check->lanes->start) continue;
    last = record;
    uint32_t agent = lanes_owner(now->check, stamp);
    if (agent != UINT32_MAX && agent != now->agent) check_silent_readers(now, at, lane, agent);
  }
}

/* Is one of the records so new that it matters? Usually a copy meets none, and this is quick. */
static bool any_since(const uint32_t *records, uint32_t count, uint32_t least) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) found |= (uint32_t)((records[i] & RECORD_STAMP) >= least);
  return found;
}

static void touch_records(const LaneAccess *now, uint32_t at, uint32_t end, int lane) {
  const LaneShadow *shadow = now->shadow;
  uint32_t least = now->order->first << LANE_BITS, first = now->check->lanes->start << LANE_BITS;
  if (first > least) first = least;
  if (!any_since(shadow->writes + at, end - at, least) &&
      !(now->writes && any_since(shadow->reads + at, end - at, first)))
    return;
  if (now->writes) check_other_readers(now, at, end, lane);
  for (; at < end; at++) {
    if (lane_suspicious(shadow->writes[at], least, lane)) lane_check_written(now, at, lane);
    if (now->writes && lane_read_suspicious(shadow->reads[at], least, lane))
      lane_check_read(now, at, lane);
  }
}

void lanes_touch_pieces(Warp *warp, const Instruction *in, int lane, const SharedPiece *pieces,
                        int count, bool writes) {
  LaneAccess now = {.mask = 1u << lane, .writes = writes};
  for (int i = 0; i < count; i++) {
    if (!lane_access_begin(&now, warp, in, SHARED_RANK(pieces[i].address), WORD_BYTES)) return;
    const LaneShadow *shadow = now.shadow;
    if (writes)
      lane_logs_flush(now.check, now.agent, lane_lines(pieces[i].address, pieces[i].bytes));
    uint32_t at = SHARED_OFFSET(pieces[i].address) >> shadow->shift;
    uint32_t end = at + (pieces[i].bytes >> shadow->shift);
    if (end > shadow->count) end = shadow->count;
    if (at < end) touch_records(&now, at, end, lane);
  }
}

void lanes_touch_copies(Warp *warp, const Instruction *in, LaneMask lanes,
                        const SharedPiece *pieces, int count) {
  uint32_t addresses[LANES] = {0};
  LaneMask left = lanes;
  for (int i = 0; i < count && left; i++, left &= left - 1)
    addresses[first_lane(left)] = pieces[i].address;
  if (count > 0)
    lanes_touch(warp, in, lanes & ~left, addresses, pieces[0].bytes,
                &(AccessKind){.access = ACCESS_WRITE});
}
