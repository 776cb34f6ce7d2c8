/* check_lane_fences.c: proxy fences that only some lanes of a warp execute.
 *
 * Elsewhere a fence counts for its whole warp. Here is kept for which lanes' writes it does: those of the lanes that execute
 * it, and those that one of them knew to come before it. A copy of what another lane has written, on whose path no
 * further fence lies, lacks one. */
#include <stdlib.h>
#include <string.h>

#include "checker/check_access.h"
#include "checker/check_lane_access.h"

/* Of a warp: what its own fences cover. */
struct LaneFences {
  uint32_t of_all;         /* everything up to this stamp */
  uint32_t of_lane[LANES]; /* what the lane has done up to this stamp */
  uint32_t
      met_until[LANES]; /* what it has done up to this time; then it met others before a fence */
};

void lanes_begin_fences(ClusterCheck *check, bool stamps_begin_again) {
  if (!check->lane_fences) check->lane_fences = calloc(check->agents, sizeof *check->lane_fences);
  if (!check->lane_fences) out_of_memory();
  if (check->lanes_unfenced || stamps_begin_again)
    memset(check->lane_fences, 0, check->agents * sizeof *check->lane_fences);
  check->lanes_unfenced = false;
}

/* The last stamp up to which one of `fencing` knows what the lane has done. */
static uint32_t known_until(const LaneOrder *order, LaneMask fencing, int lane) {
  uint32_t until = order->first - 1;
  if (order->some_known && order->known.stamp[lane] > until) until = order->known.stamp[lane];
  for (LaneMask left = order->apart ? fencing : 0; left; left &= left - 1) {
    const uint32_t seen = order->seen[first_lane(left)].stamp[lane];
    until = seen > until ? seen : until;
  }
  return until;
}

void lanes_note_fence(ClusterCheck *check, uint32_t agent, LaneMask fencing, LaneMask live) {
  const LaneOrder *order = &check->lanes[agent];
  struct LaneFences *fences = &check->lane_fences[agent];
  const bool all = !(live & ~fencing);
  if (all) fences->of_all = order->stamp;
  for (int lane = 0; lane < LANES && !all; lane++) {
    const uint32_t until = fencing >> lane & 1 ? order->stamp : known_until(order, fencing, lane);
    if (until < order->accessed) check->lanes_unfenced = true;
    if (until > fences->of_lane[lane]) fences->of_lane[lane] = until;
    fences->met_until[lane] = order->met[lane];
  }
  lanes_begin_stamp(check, agent); /* later accesses are not covered */
}

/* The lane of this word's last writer, if that write is not covered by a fence of its warp, and when it wrote; -1
 * otherwise. */
static int unfenced_lane(LaneAccess *now, uint32_t word, uint32_t *time, uint32_t *stamped) {
  const LaneShadow *shadow = now->shadow;
  const uint32_t writer = now->notes->writers[word], at = word * WORD_BYTES >> shadow->shift;
  const int lane = (int)(writer % LANES);
  now->agent = writer / LANES;
  if (!shadow->writes || at >= shadow->count) return -1;
  const uint32_t record = shadow->writes[at], stamp = *stamped = stamp_of(record);
  const struct LaneFences *fences = &now->check->lane_fences[now->agent];
  if (lane_of(record) != lane || lanes_owner(now->check, stamp) != now->agent) return -1;
  if (stamp < now->check->lanes_start || stamp <= fences->of_all || stamp <= fences->of_lane[lane])
    return -1;
  const Instruction *in = lane_last_write(now, word, time);
  return in && *time > fences->met_until[lane] ? lane : -1;
}

static void report_unfenced(const LaneAccess *now, const AsyncCheck *operation, uint32_t word,
                            int lane, uint32_t time) {
  char where[160], place[96];
  past_describe_place(order_site(now->check, time).in, where, sizeof where);
  finding(now->warp, operation->in, 1u << operation->lane, "missing-proxy-fence",
          "%s %s through the asynchronous proxy; written by thread %u %s through the generic "
          "proxy. Other lanes of its warp have executed fence.proxy.async since, but neither this "
          "one nor one that it had met before.\n"
          "Put fence.proxy.async.shared::cta after the writes, in each thread that writes and "
          "before the barrier that orders them, or __syncwarp() before the fence of one lane.",
          operation->kind == ASYNC_WGMMA ? "multiplies from" : "copies from",
          lane_place_text(now, word * WORD_BYTES >> now->shadow->shift, place, sizeof place),
          now->agent % now->check->warps_per_cta * LANES + (uint32_t)lane, where);
}

void lanes_check_fenced(Warp *warp, const AsyncCheck *operation, const SharedPiece *pieces,
                        int count) {
  ClusterCheck *check = check_of(warp);
  const uint32_t agent = agent_of(warp);
  const Clock *clock = &check->clocks[agent];
  if (!check->lanes_unfenced || !check->lanes_checked || is_generic(operation)) return;
  for (int i = 0; i < count; i++) {
    const uint32_t rank = SHARED_RANK(pieces[i].address);
    if (rank >= check->cta_count) continue;
    LaneAccess now = {.warp = warp, .in = operation->in, .check = check, .rank = rank};
    now.notes = &check->ctas[rank];
    now.shadow = &now.notes->lane_shadow;
    const uint32_t end = (SHARED_OFFSET(pieces[i].address) + pieces[i].bytes) / WORD_BYTES;
    for (uint32_t word = SHARED_OFFSET(pieces[i].address) / WORD_BYTES;
         word < end && word < now.notes->words; word++) {
      uint32_t time, stamp;
      const int lane = unfenced_lane(&now, word, &time, &stamp);
      if (lane < 0 || time <= check->fenced_by_others[now.agent]) continue;
      if (clock->seen[now.agent] < time || clock->fenced[now.agent] < time) continue; /* reported */
      if (now.agent == agent && !lanes_ordered(&check->lanes[agent], operation->lane, lane, stamp))
        continue; /* a race of lanes */
      report_unfenced(&now, operation, word, lane, time);
      return;
    }
  }
}
