/* check_events.c: what the checker hears of (base/events.def). A cluster that is not checked has no data of the
 * checker's, and its events pass by. */
#include "base/events.h"
#include "base/fault.h"
#include "base/settings.h"
#include "checker/check_events.h"
#include "checker/checker.h"

static bool is_checked(const Warp *warp) { return warp->cta->cluster->check; }

static void launch_ends(Launch *launch, const LaunchEnd *end) {
  (void)end;
  check_launch_end(launch);
}

static void cluster_begins(Cluster *cluster) {
  if (settings()->checks) check_cluster_begin(cluster);
}

static void cluster_is_over(Cluster *cluster) {
  if (cluster->check) check_cluster_end(cluster);
}

static void lanes_exit(Warp *warp, const Instruction *in, LaneMask lanes) {
  if (is_checked(warp)) check_warp_exit(warp, in, lanes);
}

static void block_exited(Cta *cta) {
  if (cta->cluster->check) check_cta_exit(cta);
}

static void dependency(Warp *warp, bool waits) {
  if (!is_checked(warp)) return;
  if (waits)
    check_dependency_wait(warp);
  else
    check_dependency_launches(warp);
}

static void fence(Warp *warp, const Instruction *in, LaneMask mask, Fence kind) {
  if (!is_checked(warp)) return;
  switch (kind.kind) {
    case FENCE_OF_MEMORY:
      check_fence(warp, kind.scope, kind.sc);
      break;
    case FENCE_PROXY_ASYNC:
      check_fence_proxy_async(warp, kind.spaces, mask);
      break;
    case FENCE_MBARRIER_INIT:
      check_fence_mbarrier_init(warp, in, mask);
      break;
    case FENCE_TENSORMAP_RELEASE: /* map_fenced */
    case FENCE_TENSORMAP_ACQUIRE:
      break;
    case FENCE_WGMMA:
      check_warp_met(warp, in, mask);
      check_wgmma_fence(warp);
      break;
  }
}

static void barrier_arrival(Warp *warp, const Instruction *in, uint32_t number, LaneMask mask) {
  if (is_checked(warp)) check_barrier_arrive(warp, in, number, mask);
}

static void barrier_completed(Cta *cta, uint32_t number, bool of_all) {
  if (cta->cluster->check) check_barrier_complete(cta, number, of_all);
}

static void barrier_passed(Warp *warp, uint32_t number, LaneMask mask) {
  if (is_checked(warp)) check_barrier_wait(warp, number, mask);
}

static void cluster_arrival_again(Warp *warp, const Instruction *in, LaneMask again) {
  if (!is_checked(warp)) return;
  finding(warp, in, again, "cluster-barrier",
          "a second barrier.cluster.arrive without a barrier.cluster.wait since the first one. "
          "An H200 waits here for the first one's phase to complete, but this thread may not see "
          "what the others wrote before it.\nPut barrier.cluster.wait between the two.");
}

static void cluster_arrival(Warp *warp, const Instruction *in, bool release, uint32_t round) {
  if (is_checked(warp)) check_cluster_arrive(warp, in, release, round);
}

static void cluster_wait_alone(Warp *warp, const Instruction *in, LaneMask early) {
  if (!is_checked(warp)) return;
  finding(warp, in, early, "cluster-barrier",
          "barrier.cluster.wait without a barrier.cluster.arrive before it: it does not wait.\n"
          "Put barrier.cluster.arrive before it, in every thread of the cluster.");
}

static void cluster_passed(Warp *warp, LaneMask arrived, uint32_t round) {
  if (arrived && is_checked(warp)) check_cluster_wait(warp, round);
}

/* One copy where lanes copy the same bytes to the same place: whichever is last,
 * the result is the same. In cooperative groups' memcpy_async, lanes that have nothing left repeat
 * the last copy. */
static AsyncCheck *issue_of_lanes(const AsyncOperation *operation) {
  SharedPiece writes[LANES];
  int count = 0, lane_of[LANES];
  LaneMask lanes = operation->copy.lanes;
  uint64_t seen = 0; /* places, modulo 64 */
  for (LaneMask left = lanes; left; left &= left - 1) {
    int lane = first_lane(left), same;
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
  return check_copies_issue(operation->warp, operation->in, lanes, writes, count);
}

/* Bytes that nothing has written: they matter in global memory; in shared memory, if they are
 * read. */
static void look_at_bulk_source(const AsyncOperation *operation, const SharedPiece *source) {
  enum { CHUNK = 16 };
  Warp *warp = operation->warp;
  CopiedBytes copied = {.row_bytes = 0};
  for (uint32_t i = 0; i < source->bytes; i += CHUNK)
    check_copied_bytes(warp, source->address + i, CHUNK, true, 0, &copied);
  check_copied(warp, operation->in, operation->lane, &copied);
}

/* The bytes of the box that arrive in global memory: are there some that nothing has written? */
static void look_at_tensor_source(const AsyncOperation *operation) {
  enum { CHUNK = 16 };
  Warp *warp = operation->warp;
  const TmaMap *map = &operation->tensor.map;
  const uint32_t start = SHARED_OFFSET(operation->shared), rank = warp->cta->rank << 24;
  TmaWalk walk;
  TmaRows rows;
  tma_walk_begin(&walk, map, &operation->tensor.place);
  CopiedBytes copied = {.row_bytes = walk.row_bytes};
  uint32_t row = 0;
  while (tma_walk_next(&walk, &rows))
    for (uint32_t i = 0; i < rows.count; i++, row++) {
      const uint32_t first = start + rows.offset + i * walk.pitch + rows.left;
      for (uint32_t j = 0; j < rows.bytes; j += CHUNK) {
        const uint32_t bytes = rows.bytes - j < CHUNK ? rows.bytes - j : CHUNK;
        check_copied_bytes(warp, rank | tma_swizzle(map->swizzle_span, first + j), bytes,
                           map->element_bytes == 1, row, &copied);
      }
    }
  check_copied(warp, operation->in, operation->lane, &copied);
}

static void operation_issues(AsyncOperation *operation, const SharedPiece *reads, int read_count,
                             const SharedPiece *writes, int write_count) {
  if (!is_checked(operation->warp)) return;
  const AsyncKind kind = (AsyncKind)operation->kind;
  if (read_count && check_undefined_pieces(operation->warp, reads, read_count)) {
    if (kind == ASYNC_TENSOR_STORE || kind == ASYNC_TENSOR_REDUCE) look_at_tensor_source(operation);
    if (kind == ASYNC_BULK_STORE || kind == ASYNC_BULK_REDUCE)
      look_at_bulk_source(operation, reads);
  }
  if (kind == ASYNC_CP_ASYNC)
    operation->checked = operation->arrives ? NULL : issue_of_lanes(operation);
  else
    operation->checked = check_async_issue(operation->warp, operation->in, operation->lane,
                                           (AsyncKind)operation->kind, reads, read_count, writes,
                                           write_count, operation->barrier);
  if (operation->checked && operation->warp->cta->cluster->launch->global)
    check_async_global(operation);
}

static void operation_issued(AsyncOperation *operation, const SharedPiece *reads, int read_count,
                             const SharedPiece *writes, int write_count) {
  (void)writes, (void)write_count;
  Warp *warp = operation->warp;
  if (!is_checked(warp)) return;
  if (operation->kind == ASYNC_CTA_TO_CTA && check_undefined_pieces(warp, reads, read_count))
    check_undefined_copy(warp, operation->in, operation->lane, operation->shared_source,
                         operation->shared, operation->bytes);
  if (operation->kind != ASYNC_CP_ASYNC && !operation->barrier)
    check_will_write(&warp->async->bulk[operation->lane], operation);
  if (operation->kind == ASYNC_CP_ASYNC && operation->checked && warp->cta->cluster->launch->global)
    check_copies_read(operation->checked, warp, operation->in, operation->copy.lanes,
                      operation->copy.source, operation->copy.source_bytes, operation->copy.shared);
}

static void source_read(Cluster *cluster, AsyncOperation *operation) {
  if (cluster->check) check_async_source_read(operation->checked);
}

static void operation_landed(Cluster *cluster, AsyncOperation *operation) {
  if (cluster->check && !operation->arrives) check_async_landed(cluster, operation->checked);
}

static void operation_awaited(Warp *warp, AsyncOperation *operation, bool reads_only) {
  if (operation->checked) check_async_waited(warp, operation->checked, reads_only);
}

static void copies_awaited(Warp *warp, LaneMask lanes, AsyncOperation *operation) {
  if (operation->checked) check_copies_waited(warp, lanes, operation->checked);
}

static void operation_released(AsyncOperation *operation) {
  if (operation->checked) check_async_release(operation->checked);
  operation->checked = NULL;
}

static void group_committed(Warp *warp, const Instruction *in, LaneMask mask, GroupKind kind) {
  (void)in;
  if (!is_checked(warp)) return;
  if (kind == GROUPS_WGMMA) check_wgmma_commit(warp);
  for (LaneMask left = kind == GROUPS_BULK ? mask : 0; left; left &= left - 1)
    check_async_committed(warp, first_lane(left));
}

static void group_awaited(Warp *warp, const Instruction *in, LaneMask mask, GroupKind kind,
                          uint32_t pending, bool reads_only) {
  (void)reads_only;
  if (kind != GROUPS_WGMMA || !is_checked(warp)) return;
  check_warp_met(warp, in, mask);
  check_wgmma_wait(warp, (int)pending);
}

static void bulk_wait(Warp *warp, const Instruction *in, int lane, bool idly) {
  if (!is_checked(warp)) return;
  if (idly)
    check_async_waits_idly(warp, in, lane);
  else
    check_async_waits_for_own(warp, in);
}

static void lanes_met(Warp *warp, const Instruction *in, LaneMask lanes, bool orders) {
  if (!is_checked(warp)) return;
  if (orders)
    check_warp_sync(warp, lanes);
  else
    check_warp_met(warp, in, lanes);
}

static void map_used(Warp *warp, const Instruction *in, int lane, uint64_t address) {
  if (is_checked(warp)) check_tensor_map_use(warp, in, lane, address);
}

static void map_read(Warp *warp, const Instruction *in, int lane, Space space, uint64_t address,
                     const char *how) {
  if (!is_checked(warp)) return;
  if (space == SPACE_SHARED)
    check_map_in_shared(warp, in, lane, (uint32_t)address, how);
  else if (space == SPACE_GLOBAL)
    check_map_in_global(warp, in, lane, address, how);
}

static void map_written(const Instruction *in, uint64_t address, uint32_t bytes) {
  if (settings()->checks) check_tensor_map_written(in, address, bytes);
}

static void map_fenced(Warp *warp, const Instruction *in, bool acquires, uint64_t map,
                       LaneMask lanes) {
  if (is_checked(warp)) check_fence_tensormap(warp, in, acquires, map, lanes);
}

static void mbarrier_used(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  if (is_checked(warp)) check_mbarrier_use(warp, in, lane, address); /* reports its own finding */
}

static void mbarrier_begun(Warp *warp, const Instruction *in, int lane, uint32_t address,
                           uint32_t count) {
  if (is_checked(warp)) check_mbarrier_init(warp, in, lane, address, count);
}

static void mbarrier_ended(Warp *warp, uint32_t address) {
  if (is_checked(warp)) check_mbarrier_inval(warp, address);
}

static void bytes_expected(Warp *warp, const Instruction *in, int lane, uint32_t address,
                           uint32_t bytes) {
  if (is_checked(warp)) check_mbarrier_expect(warp, in, lane, address, bytes);
}

static void mbarrier_arrival(Warp *warp, const Instruction *in, int lane, uint32_t address,
                             Reach release, bool of_copies) {
  if (is_checked(warp)) check_mbarrier_arrive(warp, in, lane, address, release, of_copies);
}

static void phase_completed(Cluster *cluster, uint32_t address, uint32_t phase) {
  if (cluster->check) check_mbarrier_phase_complete(cluster, address, phase);
}

static void phase_ended_between(Warp *warp, const Instruction *in, int lane, LaneMask lanes,
                                uint32_t address) {
  if (is_checked(warp)) check_mbarrier_phase_between(warp, in, lane, lanes, address);
}

static void phase_observed(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                           uint32_t phase, bool acquires) {
  if (is_checked(warp)) check_mbarrier_observed(warp, in, lanes, address, phase, acquires);
}

static void answered_not_yet(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  if (is_checked(warp)) check_mbarrier_not_yet(warp, in, lane, address);
}

static void lanes_ask(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address) {
  if (is_checked(warp)) check_mbarrier_lanes(warp, in, lanes, address);
}

static const Subscriber CHECKER = {.launch_begins = check_launch_begin,
                                   .launch_ends = launch_ends,
                                   .cluster_begins = cluster_begins,
                                   .cluster_is_over = cluster_is_over,
                                   .lanes_exit = lanes_exit,
                                   .block_exited = block_exited,
                                   .dependency = dependency,
                                   .fence = fence,
                                   .barrier_arrival = barrier_arrival,
                                   .barrier_completed = barrier_completed,
                                   .barrier_passed = barrier_passed,
                                   .cluster_arrival_again = cluster_arrival_again,
                                   .cluster_arrival = cluster_arrival,
                                   .cluster_wait_alone = cluster_wait_alone,
                                   .cluster_passed = cluster_passed,
                                   .operation_issues = operation_issues,
                                   .operation_issued = operation_issued,
                                   .source_read = source_read,
                                   .operation_landed = operation_landed,
                                   .operation_awaited = operation_awaited,
                                   .copies_awaited = copies_awaited,
                                   .operation_released = operation_released,
                                   .group_committed = group_committed,
                                   .group_awaited = group_awaited,
                                   .bulk_wait = bulk_wait,
                                   .lanes_met = lanes_met,
                                   .map_used = map_used,
                                   .map_read = map_read,
                                   .map_written = map_written,
                                   .map_fenced = map_fenced,
                                   .mbarrier_used = mbarrier_used,
                                   .mbarrier_begun = mbarrier_begun,
                                   .mbarrier_ended = mbarrier_ended,
                                   .bytes_expected = bytes_expected,
                                   .mbarrier_arrival = mbarrier_arrival,
                                   .phase_completed = phase_completed,
                                   .phase_ended_between = phase_ended_between,
                                   .phase_observed = phase_observed,
                                   .answered_not_yet = answered_not_yet,
                                   .lanes_ask = lanes_ask};
SUBSCRIBE(CHECKER_EVENTS, CHECKER)
