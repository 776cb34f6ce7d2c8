/* checker_events.c: the events that concern several folders, in the order in which these must hear of them. What
 * concerns one alone it subscribes to itself. */
#include "base/settings.h"
#include "checker/checker.h"
#include "checker/undefined_matrices.h"

/* ---- Clusters ---- */

/* Free ones are kept for the next cluster of their size. Sizes of shared memory go up in steps, so that a
 * program that launches with a thousand different ones does not keep a thousand of them. */
enum { WORDS_STEP = 1024 };
static _Thread_local ClusterCheck *free_checks;

static uint32_t words_of(const Cluster *cluster) {
  return (uint32_t)(cluster->ctas[0].shared_bytes / sizeof(uint32_t) / WORDS_STEP + 1) * WORDS_STEP;
}

/* A free one of the same size; NULL: there is none. */
static ClusterCheck *take_check(const Cluster *cluster) {
  for (ClusterCheck **link = &free_checks; *link; link = &(*link)->next_free) {
    ClusterCheck *check = *link;
    if (check->warps_per_cta != cluster->ctas[0].warp_count ||
        check->cta_count != cluster->cta_count || check->words != words_of(cluster))
      continue;
    *link = check->next_free;
    return check;
  }
  return NULL;
}

static void cluster_begins(Cluster *cluster) {
  if (!settings()->checks) return;
  bool again;
  ClusterCheck *check = cluster->check = order_begin(
      take_check(cluster), cluster, words_of(cluster), global_order_of(cluster->launch), &again);
  global_begin_cluster(cluster, again);
  lanes_begin(check);
  shared_begin(cluster, again);
  undefined_begin(cluster);
}

/* Its data are for the next cluster, which usually has the same shape. */
static void cluster_is_over(Cluster *cluster) {
  ClusterCheck *check = cluster->check;
  if (!check) return;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) lanes_report(&cluster->ctas[rank]);
  shared_end(check);
  undefined_end(check, cluster->launch->error != 0);
  global_end_cluster(check);
  check->next_free = free_checks;
  free_checks = check;
  cluster->check = NULL;
}

/* ---- Copies ---- */

/* One copy where lanes copy the same bytes to the same place: whichever is last,
 * the result is the same. In cooperative groups' memcpy_async, lanes that have nothing left repeat
 * the last copy. */
static void issue_of_lanes(AsyncOperation *operation) {
  SharedPiece writes[LANES];
  int count = 0, lane_of[LANES];
  LaneMask lanes = operation->copy.lanes;
  uint64_t seen = 0; /* places, modulo 64 */
  FOR_LANES(lane, lanes) {
    int same;
    uint32_t to = operation->copy.shared[lane], bytes = operation->copy.bytes;
    uint64_t place = 1ull << (to / bytes & 63);
    for (same = seen & place ? 0 : count; same < count; same++)
      if (writes[same].address == to &&
          operation->copy.source[lane_of[same]] == operation->copy.source[lane] &&
          operation->copy.source_bytes[lane_of[same]] == operation->copy.source_bytes[lane])
        break;
    seen |= place;
    if (same < count) {
      lanes &= ~(1u << lane);
      continue;
    }
    lane_of[count] = lane;
    writes[count++] = (SharedPiece){to, bytes};
  }
  operation->checked = shared_issue(operation->warp, operation->in, first_lane(lanes),
                                    ASYNC_CP_ASYNC, false, lanes, NULL, 0, 0);
  lanes_touch_copies(operation->warp, operation->in, lanes, writes, count);
  shared_touch(operation->warp, operation->checked, true, writes, count, NULL);
}

static void issue_check(AsyncOperation *operation, const CopiedPieces *pieces) {
  const SharedPiece *reads = pieces->reads, *writes = pieces->writes;
  const int read_count = pieces->read_count, write_count = pieces->write_count;
  Warp *warp = operation->warp;
  const Instruction *in = operation->in;
  const int lane = operation->lane;
  const AsyncKind kind = (AsyncKind)operation->kind;
  const uint32_t time = clock_of(check_of(warp), agent_of(warp));
  AsyncCheck *checked = operation->checked = shared_issue(
      warp, in, lane, kind, operation->reduce != 0, 0, writes, write_count, operation->barrier);
  if (operation->barrier) lanes_note_release(warp, in, 1u << lane, time);
  lanes_touch_pieces(warp, in, lane, reads, read_count, false);
  lanes_touch_pieces(warp, in, lane, writes, write_count, true);
  lanes_check_fenced(warp, in, lane, kind, reads, read_count, false);
  lanes_check_fenced(warp, in, lane, kind, writes, write_count, true);
  shared_touch(warp, checked, false, reads, read_count, NULL);
  shared_touch(warp, checked, true, writes, write_count, NULL);
}

static void operation_issues(Warp *warp, AsyncOperation *operation, const CopiedPieces *pieces) {
  (void)warp;
  operation->checked = NULL;
  if (operation->kind != ASYNC_CP_ASYNC)
    issue_check(operation, pieces);
  else if (!operation->arrives)
    issue_of_lanes(operation);
  if (operation->checked) global_copy_issues(operation);
}

static void operation_issued(Warp *warp, AsyncOperation *operation, const CopiedPieces *pieces) {
  (void)warp, (void)pieces;
  global_copy_issued(operation);
}

/* ---- Others ---- */

static void mbarrier_used(Warp *warp, const Instruction *in, int lane, uint32_t address,
                          bool *known) {
  *known = check_mbarrier_use(warp, in, lane, address);
}

static void step(Warp *warp, const Instruction *in, LaneMask guarded, LaneMask mask) {
  if (mask && warp->watched & WATCH_REGISTERS) check_registers(warp, in, mask);
  if (warp->watched & WATCH_UNDEFINED)
    check_undefined(warp, in, guarded, in->traits & LANDS_FIRST ? 0 : mask);
}

static void past_asked(const Warp *warp, uint32_t address, uint32_t parity, MbarrierPast *past) {
  *past = check_mbarrier_past(warp, address, parity);
}

static void products_landed(Warp *warp, const Instruction *in, LaneMask mask) {
  if (warp->watched & WATCH_UNDEFINED) check_undefined(warp, in, 0, mask);
}

static const Subscriber CHECKER = {.cluster_begins = cluster_begins,
                                   .cluster_is_over = cluster_is_over,
                                   .warp_is_over = check_warp_end,
                                   .step = step,
                                   .function_begins = check_call,
                                   .access = check_access,
                                   .access_moves = check_access_moves,
                                   .access_done = check_access_done,
                                   .mma = undefined_mma,
                                   .local_used = check_local,
                                   .local_copied = check_local_copied,
                                   .registers_stored = check_undefined_moved,
                                   .exchanged = undefined_exchange,
                                   .matrices_move = undefined_matrices_move,
                                   .wgmma_issues = check_wgmma,
                                   .products_landed = products_landed,
                                   .operation_issues = operation_issues,
                                   .operation_issued = operation_issued,
                                   .mbarrier_used = mbarrier_used,
                                   .mbarrier_past_asked = past_asked};
SUBSCRIBE(CHECKER_EVENTS, CHECKER)
