/* lane_fences.c: proxy fences that only some lanes of a warp execute.
 *
 * Elsewhere a fence counts for its whole warp. Here is kept for which lanes' writes it does: those of the lanes that execute
 * it, and those that one of them knew to come before it. A copy of what another lane has written, on whose path no
 * further fence lies, lacks one. */
#include <string.h>

#include "checker/lanes/lane_access.h"

/* Of a warp: what its own fences cover. */
struct LaneFences {
  uint32_t of_all;         /* everything up to this stamp */
  uint32_t of_lane[LANES]; /* what the lane has done up to this stamp */
  uint32_t
      met_until[LANES]; /* what it has done up to this time; then it met others before a fence */
};

void lanes_begin_fences(ClusterCheck *check, bool stamps_begin_again) {
  if (!check->lanes->fences)
    check->lanes->fences = new_zeros(check->agents, sizeof *check->lanes->fences);
  if (check->lanes->unfenced || stamps_begin_again)
    memset(check->lanes->fences, 0, check->agents * sizeof *check->lanes->fences);
  check->lanes->unfenced = false;
}

void lanes_note_fence(ClusterCheck *check, uint32_t agent, LaneMask fencing, LaneMask live) {
  const LaneOrder *order = &check->lanes->orders[agent];
  struct LaneFences *fences = &check->lanes->fences[agent];
  const bool all = !(live & ~fencing);
  if (all) fences->of_all = order->stamp;
  for (int lane = 0; lane < LANES && !all; lane++) {
    const uint32_t until = lanes_known_until(order, fencing, lane);
    if (until < order->accessed) check->lanes->unfenced = true;
    if (until > fences->of_lane[lane]) fences->of_lane[lane] = until;
    fences->met_until[lane] = order->met[lane];
  }
  lanes_begin_stamp(check, agent); /* later accesses are not covered */
}

/* A write that no fence of its warp covers. */
typedef struct {
  int lane;
  uint32_t stamp, time;
} UnfencedWrite;

/* Was the last write there, by the warp that has written the word last, such a one? */
static bool is_unfenced(LaneAccess *now, uint32_t at, UnfencedWrite *found) {
  const uint32_t word = (at << now->shadow->shift) / WORD_BYTES;
  const uint32_t record = now->shadow->writes[at], stamp = stamp_of(record);
  const int lane = lane_of(record);
  const SharedUse last = shared_last(now->check, now->rank, word, LAST_WRITER, true);
  now->agent = last.agent;
  const struct LaneFences *fences = &now->check->lanes->fences[now->agent];
  if (stamp < now->check->lanes->start || stamp <= fences->of_all || stamp <= fences->of_lane[lane])
    return false;
  if (lanes_owner(now->check, stamp) != now->agent) return false;
  *found = (UnfencedWrite){.lane = lane, .stamp = stamp, .time = last.time};
  return last.in && last.time > fences->met_until[lane];
}

/* Does nothing else tell what is wrong with it? */
static bool lacks_only_fence(const LaneAccess *now, const UnfencedWrite *write) {
  const ClusterCheck *check = now->check;
  const uint32_t issuer = agent_of(now->warp), lane = (uint32_t)first_lane(now->mask);
  if (order_fenced_by_others(check, now->agent, write->time) ||
      !has_seen(check, issuer, now->agent, write->time) ||
      !order_fenced(check, issuer, FENCED_SHARED, now->agent, write->time))
    return false;
  return now->agent != issuer ||
         lanes_ordered(&check->lanes->orders[issuer], (int)lane, write->lane, write->stamp);
}

static void report_unfenced(const LaneAccess *now, AsyncKind kind, uint32_t at,
                            const UnfencedWrite *write) {
  const Instruction *in = order_site(now->check, write->time).in;
  const Finding what = lane_finding(now, at, RULE(MISSING_PROXY_FENCE), in);
  finding_of(
      now->warp, now->in, now->mask, &what,
      "%s %s through the asynchronous proxy; written by thread %u %s through the generic "
      "proxy. Other lanes of its warp have executed fence.proxy.async since, but neither this "
      "one nor one that it had met before.\n"
      "Put fence.proxy.async.shared::cta after the writes, in each thread that writes and "
      "before the barrier that orders them, or __syncwarp() before the fence of one lane.",
      kind == ASYNC_WGMMA ? "multiplies from"
      : now->writes       ? "starts a copy into"
                          : "copies from",
      lane_place(now, at).text,
      now->agent % now->check->warps_per_cta * LANES + (uint32_t)write->lane, place_of(in).text);
}

void lanes_check_fenced(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                        const SharedPiece *pieces, int count, bool writes) {
  ClusterCheck *check = check_of(warp);
  if (check->lanes_checked && check->lanes->withheld && !writes)
    lanes_check_pieces(warp, in, lane, pieces, count);
  if (!check->lanes_checked || !check->lanes->unfenced || async_by_threads(kind)) return;
  for (int i = 0; i < count; i++) {
    LaneAccess now = {.warp = warp, .in = in, .check = check, .writes = writes};
    now.rank = SHARED_RANK(pieces[i].address);
    if (now.rank >= check->cta_count) continue;
    now.mask = 1u << lane;
    now.shadow = &check->lanes->shadows[now.rank];
    if (!now.shadow->writes) continue;
    const uint32_t first = SHARED_OFFSET(pieces[i].address), end = first + pieces[i].bytes;
    for (uint32_t at = first >> now.shadow->shift;
         at < end >> now.shadow->shift && at < now.shadow->count; at++) {
      UnfencedWrite write;
      if (!is_unfenced(&now, at, &write) || !lacks_only_fence(&now, &write)) continue;
      report_unfenced(&now, kind, at, &write);
      return;
    }
  }
}
