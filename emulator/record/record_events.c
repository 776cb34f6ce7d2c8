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

static void launch_is_over(Launch *launch) { record_launch_end(launch); }

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

static void fence(Warp *warp, const Instruction *in, LaneMask mask, Fence kind) {
  (void)kind;
  record_fence(warp, in, mask);
}

static void barrier_passed(Warp *warp, uint32_t number, LaneMask mask) {
  (void)mask;
  record_barrier_passed(warp, number);
}

static void cluster_passed(Warp *warp, LaneMask arrived, uint32_t round) {
  (void)arrived, (void)round;
  record_cluster_barrier_passed(warp);
}

static void operation_issued(Warp *warp, AsyncOperation *operation, const SharedPiece *reads,
                             int read_count, const SharedPiece *writes, int write_count) {
  bool tensor = operation->kind == ASYNC_TENSOR_LOAD || operation->kind == ASYNC_TENSOR_STORE ||
                operation->kind == ASYNC_TENSOR_REDUCE;
  bool of_warp = operation->kind == ASYNC_CP_ASYNC && !operation->arrives;
  RecordCopy copy = {.kind = operation_name(operation),
                     .lanes = of_warp ? operation->copy.lanes : 1u << operation->lane,
                     .bytes = operation->bytes,
                     .barrier = operation->barrier,
                     .ranks = operation->cta_mask,
                     .start = operation->shared,
                     .map = tensor ? &operation->tensor.map : NULL,
                     .at = tensor ? &operation->tensor.place : NULL,
                     .reads = reads,
                     .writes = writes,
                     .read_count = read_count,
                     .write_count = write_count,
                     .global = (uint64_t)(uintptr_t)operation->global,
                     .sources = of_warp ? operation->copy.source : NULL,
                     .group = !operation->barrier && !operation->arrives,
                     .by_threads = async_by_threads((AsyncKind)operation->kind),
                     .arrives = operation->arrives};
  operation->recorded = record_copy(warp, operation->in, &copy);
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

static void mbarrier_ended(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  (void)in, (void)lane;
  record_mbarrier_bytes(warp->cta->cluster, address);
}

static void phase_observed(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                           uint32_t phase, bool acquires) {
  (void)acquires;
  record_observed(warp, in, lanes, address, (int32_t)phase);
}

static const Subscriber RECORDER = {.launch_begins = launch_begins,
                                    .launch_is_over = launch_is_over,
                                    .cluster_begins = cluster_begins,
                                    .cluster_ends = record_cluster_end,
                                    .step = step,
                                    .access = heard_access,
                                    .mma = record_mma,
                                    .wgmma_issued = record_wgmma,
                                    .wgmma_done = record_wgmma_done,
                                    .lanes_exited = record_exit,
                                    .fence = fence,
                                    .barrier_arrived = record_named_barrier,
                                    .barrier_passed = barrier_passed,
                                    .cluster_arrived = record_cluster_barrier,
                                    .cluster_passed = cluster_passed,
                                    .operation_issued = operation_issued,
                                    .operation_steps = operation_steps,
                                    .source_read = source_read,
                                    .operation_landed = operation_landed,
                                    .group_committed = record_commit,
                                    .group_awaited = record_awaited,
                                    .mbarrier_state_changed = record_mbarrier,
                                    .mbarrier_ended = mbarrier_ended,
                                    .phase_observed = phase_observed,
                                    .mbarrier_passed = record_mbarrier_passed,
                                    .blocks_on_mbarrier = record_blocked_on_mbarrier,
                                    .blocked = record_blocked};
SUBSCRIBE(RECORDER_EVENTS, RECORDER)
