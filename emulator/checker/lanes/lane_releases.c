/* lane_releases.c: one lane arrives, sets a flag or waits for its warp.
 *
 * Elsewhere a release hands on all that its warp has written, and what one lane acquires the warp knows. Here is kept
 * which lanes' writes a release has left out: those of lanes that do not release with it, and that none of the
 * releasing ones knew to come before it. Who knows of no later release of that warp must not use them. And a lane must
 * not use what only other lanes of its warp have acquired (LaneKnowledge).
 *
 * Nothing is said if the lanes have met in between at an instruction for the whole warp (a shuffle, wgmma.fence): public
 * kernels rely on that. */
#include <stddef.h>
#include <string.h>

#include "checker/lanes/lane_access.h"
#include "state/groups.h"

enum { RELEASES_KEPT = 8 };

/* A release, or several between which the warp has made no access, that has left out what lanes have written to shared
 * memory. */
typedef struct {
  uint32_t time, over;   /* of the warp: what it hands on, and after it */
  uint32_t stamp;        /* later accesses have larger ones */
  uint32_t until[LANES]; /* what the lane had done up to this stamp has been handed on by then */
  uint32_t met[LANES];   /* LaneOrder.met */
  LaneMask lanes;        /* that have released */
  const Instruction *in;
} PartialRelease;

/* Of a warp. All its releases together have handed on what its lanes had done up to these stamps. */
struct LaneReleases {
  uint32_t time; /* of the last release */
  uint32_t all, until[LANES];
  uint32_t count; /* of partial ones, the last RELEASES_KEPT of which are here */
  PartialRelease partial[RELEASES_KEPT];
};

void lanes_begin_releases(ClusterCheck *check) {
  struct LanesState *lanes = check->lanes;
  if (!lanes->releases) lanes->releases = new_zeros(check->agents, sizeof *lanes->releases);
  for (uint32_t agent = 0; agent < check->agents; agent++)
    memset(&lanes->releases[agent], 0, offsetof(struct LaneReleases, partial));
  lanes->withheld = 0;
}

bool lanes_handed_on(const ClusterCheck *check, uint32_t agent, int lane, uint32_t stamp) {
  const struct LaneReleases *own = &check->lanes->releases[agent];
  return stamp <= own->all || stamp <= own->until[lane];
}

/* The last release, if it was partial, and the warp has done nothing since. */
static PartialRelease *running_release(struct LaneReleases *own, uint32_t time) {
  PartialRelease *last = &own->partial[(own->count - 1) % RELEASES_KEPT];
  return own->count && time <= last->over ? last : NULL;
}

__attribute__((noinline)) static void note_partial(Warp *warp, const Instruction *in,
                                                   LaneMask lanes, uint32_t time) {
  ClusterCheck *check = check_of(warp);
  const uint32_t agent = agent_of(warp);
  struct LaneReleases *own = &check->lanes->releases[agent];
  const LaneOrder *order = lanes_order(check, agent);
  const AccessedLines *written = &check->lanes->logs[agent].written;
  PartialRelease *last = running_release(own, time);
  const uint32_t stamp = order->stamp;
  bool leaves_out = false;
  for (int lane = 0; lane < LANES; lane++) {
    const uint32_t known = lanes_known_until(order, lanes, lane);
    if (known > own->until[lane]) own->until[lane] = known;
    leaves_out |=
        live_lanes(warp) >> lane & 1 && !lanes_handed_on(check, agent, lane, written->newest);
  }
  lanes_begin_stamp(check, agent);
  if (!leaves_out) {
    if (last) own->count--;
    return;
  }
  if (!last) {
    last = &own->partial[own->count++ % RELEASES_KEPT];
    *last = (PartialRelease){.time = time, .in = in};
    memcpy(last->met, order->met, sizeof last->met);
    check->lanes->withheld |= written->lines;
    check->lanes_differ = true;
  }
  last->over = clock_of(check, agent);
  last->stamp = stamp;
  last->lanes |= lanes;
  for (int lane = 0; lane < LANES; lane++)
    last->until[lane] = own->until[lane] > own->all ? own->until[lane] : own->all;
}

void lanes_note_release(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t time) {
  ClusterCheck *check = check_of(warp);
  if (!check->lanes_checked) return;
  const uint32_t agent = agent_of(warp);
  const LaneOrder *order = lanes_order(check, agent);
  struct LaneReleases *own = &check->lanes->releases[agent];
  const bool of_all = !(live_lanes(warp) & ~lanes);
  own->time = time;
  if (!of_all && order->accessed >= order->first) {
    note_partial(warp, in, lanes, time);
    return;
  }
  if (own->count && running_release(own, time)) own->count--;
  own->all = of_all ? order->stamp : order->first - 1;
}

void lanes_note_if_released(Warp *warp, const Instruction *in, LaneMask lanes) {
  const ClusterCheck *check = check_of(warp);
  const uint32_t agent = agent_of(warp), time = order_of(check, agent)->last_release;
  if (time > check->lanes->releases[agent].time) lanes_note_release(warp, in, lanes, time);
}

/* ---- What must not be used ---- */

/* The last release that the warp knows of the other one; NULL: it has left out nothing, or is not kept. */
static const PartialRelease *known_release(const LaneAccess *now, uint32_t other) {
  const struct LaneReleases *own = &now->check->lanes->releases[other];
  const uint32_t kept = own->count < RELEASES_KEPT ? own->count : RELEASES_KEPT;
  const uint32_t seen = order_of(now->check, now->agent)->clock.seen[other];
  for (uint32_t i = 0; i < kept; i++) /* what it knows is always that of a release */
    if (own->partial[i].time == seen) return &own->partial[i];
  return NULL;
}

static void report_left_out(const LaneAccess *now, uint32_t at, int lane, const PartialRelease *by,
                            const SharedUse *past) {
  const uint32_t writer = (uint32_t)lane_of(now->shadow->writes[at]);
  if (lane_race_is_kept(now, past->in, RULE(LANE_RACE))) return;
  Finding what = lane_finding(now, at, RULE(LANE_RACE), past->in);
  what.unordered = true;
  const uint32_t first = past->agent % now->check->warps_per_cta * LANES;
  lane_keep_race(
      now, false, 1u << lane, &what,
      "%s %s, which thread %u%s wrote %s. Thread %u of the same warp has told others %s that it "
      "is there, but an arrival, a flag or a copy hands on only what its own thread has written "
      "or seen.\n"
      "The lanes of a warp do not run in step: put __syncwarp() between the writes and that line, "
      "or let every lane that writes arrive.",
      now->kind ? "reads" : "copies or multiplies from", lane_place(now, at).text, first + writer,
      past->agent / now->check->warps_per_cta == now->warp->cta->rank ? "" : " of another block",
      place_of(past->in).text, first + (uint32_t)first_lane(by->lanes), place_of(by->in).text);
}

/* Has the last write there been left out by what this warp knows? */
static void check_left_out(const LaneAccess *now, uint32_t at, int lane) {
  const uint32_t record = now->shadow->writes[at], stamp = stamp_of(record);
  if (stamp < now->check->lanes->start || record & RECORD_STRONG) return;
  const uint32_t other = lanes_owner(now->check, stamp);
  if (other == UINT32_MAX || other == now->agent) return;
  const PartialRelease *by = known_release(now, other);
  if (!by || stamp > by->stamp || stamp <= by->until[lane_of(record)]) return;
  const uint32_t word = (at << now->shadow->shift) / WORD_BYTES;
  const SharedUse past = shared_last(now->check, now->rank, word, LAST_WRITER, true);
  if (!past.in || past.by_copy || past.agent != other || past.time <= by->met[lane_of(record)] ||
      !has_seen(now->check, now->agent, other, past.time))
    return;
  report_left_out(now, at, lane, by, &past);
}

static void report_unlearnt(const LaneAccess *now, uint32_t at, int lane, const SharedUse *past) {
  const LaneKnowledge *own = &order_of(now->check, now->agent)->lanes;
  const Rule *rule = !past->by_copy  ? RULE(LANE_RACE)
                     : past->by_read ? RULE(SOURCE_REUSED_BEFORE_READ)
                     : now->writes   ? RULE(OVERWRITE_WITHOUT_WAIT)
                                     : RULE(READ_WITHOUT_WAIT);
  if (lane_race_is_kept(now, past->in, rule)) return;
  Finding what = lane_finding(now, at, rule, past->in);
  what.unordered = true;
  lane_keep_race(
      now, false, 1u << lane, &what,
      "%s %s, which %s %u of %s %s %s. Thread %u of this warp has waited for that%s%s, but nothing "
      "orders this thread after that wait.\n"
      "The lanes of a warp do not run in step: put __syncwarp() after the wait, or let every lane "
      "wait.",
      now->writes ? "writes" : "reads", lane_place(now, at).text,
      past->by_copy ? "a copy of warp" : "warp", past->agent % now->check->warps_per_cta,
      past->agent / now->check->warps_per_cta == now->warp->cta->rank ? "this block"
                                                                      : "another block",
      past->by_read ? "read" : "wrote", place_of(past->in).text,
      thread_of(now->warp, first_lane(own->learnt)), own->in ? " " : "", place_of(own->in).text);
}

static void check_word(const LaneAccess *now, uint32_t at, int lane, bool knows_less) {
  if (!now->writes && now->check->lanes->withheld) check_left_out(now, at, lane);
  if (!knows_less) return;
  const uint32_t word = (at << now->shadow->shift) / WORD_BYTES;
  const SharedUse past =
      shared_last(now->check, now->rank, word, now->agent | UNLEARNT, !now->writes);
  if (past.in) report_unlearnt(now, at, lane, &past);
}

bool lanes_may_be_handed(const Warp *warp, uint32_t address, uint32_t bytes) {
  const ClusterCheck *check = check_of(warp);
  return order_of(check, agent_of(warp))->lanes.apart ||
         check->lanes->withheld & lane_lines(address, bytes);
}

void lanes_check_handed(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                        uint32_t bytes, bool writes) {
  static const AccessKind PLAIN_ACCESS = {.access = ACCESS_READ};
  ClusterCheck *check = check_of(warp);
  const LaneKnowledge *own = &order_of(check, agent_of(warp))->lanes;
  const LaneMask know_less = own->apart ? mask & ~own->learnt : 0;
  const bool withheld = !writes && check->lanes->withheld & lane_lines_of(mask, addresses);
  LaneAccess now = {.warp = warp, .in = in, .check = check, .agent = agent_of(warp)};
  now.kind = &PLAIN_ACCESS;
  now.writes = writes;
  FOR_LANES(lane, withheld ? mask : know_less) {
    now.rank = SHARED_RANK(addresses[lane]);
    if (now.rank >= check->cta_count) continue;
    now.shadow = &check->lanes->shadows[now.rank];
    if (!now.shadow->writes) continue;
    uint32_t at = SHARED_OFFSET(addresses[lane]) >> now.shadow->shift;
    for (const uint32_t end = at + (bytes >> now.shadow->shift); at < end && at < now.shadow->count;
         at++)
      check_word(&now, at, lane, know_less >> lane & 1);
  }
}

void lanes_check_pieces(Warp *warp, const Instruction *in, int lane, const SharedPiece *pieces,
                        int count) {
  ClusterCheck *check = check_of(warp);
  LaneAccess now = {.warp = warp, .in = in, .check = check, .agent = agent_of(warp)};
  for (int i = 0; i < count; i++) {
    if (!(check->lanes->withheld & lane_lines(pieces[i].address, pieces[i].bytes))) continue;
    now.rank = SHARED_RANK(pieces[i].address);
    if (now.rank >= check->cta_count) continue;
    now.shadow = &check->lanes->shadows[now.rank];
    if (!now.shadow->writes) continue;
    uint32_t at = SHARED_OFFSET(pieces[i].address) >> now.shadow->shift;
    for (const uint32_t end = at + (pieces[i].bytes >> now.shadow->shift);
         at < end && at < now.shadow->count; at++)
      check_left_out(&now, at, lane);
  }
}
