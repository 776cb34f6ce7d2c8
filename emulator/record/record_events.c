/* record_events.c: what the recorder hears of (base/events.def). A cluster that is neither recorded nor counted has
 * no recorder. */
#include "arithmetic/warp_access.h"
#include "base/events.h"
#include "base/fill.h"
#include "ptx/program.h"
#include "record/record.h"
#include "state/operation.h"
#include "state/unwritten_registers.h"

static void launch_begins(Launch *launch) {
  if (is_tried_again()) return;
  launch->recording =
      record_launch_begin(launch, launch->traits->name, launch->traits->static_shared_bytes);
}

static void cluster_begins(Cluster *cluster) {
  const Function *kernel = cluster->launch->kernel;
  record_cluster_begin(cluster, cluster->launch->recording, POISON);
  for (uint32_t i = 0; cluster->recorder && i < kernel->module->shared_count; i++) {
    const Symbol *variable = kernel->module->shared[i];
    if (kernel->shared_offsets[i] != 0)
      record_variable(cluster, variable->name, kernel->shared_offsets[i], variable->bytes);
  }
}

static void heard_access(Warp *warp, WarpAccess *access) {
  Access how = (Access)access->transfer->kind.access;
  access_spread(access);
  access_narrow(access);
  if (access_global(access))
    record_global(warp, access_global(access), access->address, access->bytes, how);
  if (access_shared(access))
    record_shared(warp, access->in, access_shared(access), access->narrow, access->bytes, how);
}

static void step(Warp *warp, const Instruction *in, LaneMask guarded, LaneMask mask) {
  (void)guarded;
  if (mask && warp->watched & WATCH_STEPS) record_step(warp, in, mask);
}

static void operation_steps(Cluster *cluster) {
  if (cluster->recorder) record_settle(cluster);
}

static void source_read(Cluster *cluster, AsyncOperation *operation) {
  if (cluster->recorder) record_copy_source_read(cluster, operation->recorded);
}

static void operation_landed(Cluster *cluster, AsyncOperation *operation) {
  if (cluster->recorder) record_copy_landed(cluster, operation->recorded);
}

static const Subscriber RECORDER = {.launch_begins = launch_begins,
                                    .launch_is_over = record_launch_end,
                                    .cluster_begins = cluster_begins,
                                    .cluster_ends = record_cluster_end,
                                    .step = step,
                                    .access = heard_access,
                                    .mma = record_mma,
                                    .wgmma_issued = record_wgmma,
                                    .wgmma_done = record_wgmma_done,
                                    .lanes_exit = record_exit,
                                    .fence = record_fence,
                                    .barrier_arrived = record_barrier_arrived,
                                    .barrier_passed = record_barrier_passed,
                                    .operation_issued = record_operation,
                                    .operation_steps = operation_steps,
                                    .source_read = source_read,
                                    .operation_landed = operation_landed,
                                    .group_committed = record_commit,
                                    .group_awaited = record_awaited,
                                    .mbarrier_state_changed = record_mbarrier,
                                    .mbarrier_ended = record_mbarrier_bytes,
                                    .phase_observed = record_observed,
                                    .mbarrier_passed = record_mbarrier_passed,
                                    .blocks_on_mbarrier = record_blocked_on_mbarrier,
                                    .blocked = record_blocked};
SUBSCRIBE(RECORDER_EVENTS, RECORDER)
