/* checker.c: the hooks, while nothing watches yet. */
#include "checker.h"

void check_cluster_begin(Cluster *cluster) { (void)cluster; }
void check_cluster_end(Cluster *cluster) { (void)cluster; }
void check_warp_exit(Warp *warp, const Instruction *in, LaneMask exiting) {
  (void)warp;
  (void)in;
  (void)exiting;
}
void check_cta_exit(Cta *cta) { (void)cta; }
void check_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  uint32_t bytes, AccessKind kind) {
  (void)warp;
  (void)in;
  (void)mask;
  (void)addresses;
  (void)bytes;
  (void)kind;
}
void check_warp_sync(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)warp;
  (void)in;
  (void)mask;
}
void check_barrier_arrive(Warp *warp, const Instruction *in, uint32_t barrier, LaneMask mask) {
  (void)warp;
  (void)in;
  (void)barrier;
  (void)mask;
}
void check_barrier_complete(Cta *cta, uint32_t barrier) {
  (void)cta;
  (void)barrier;
}
void check_barrier_wait(Warp *warp, const Instruction *in, uint32_t barrier, LaneMask mask) {
  (void)warp;
  (void)in;
  (void)barrier;
  (void)mask;
}
void check_cluster_arrive(Warp *warp, const Instruction *in, bool release, LaneMask mask) {
  (void)warp;
  (void)in;
  (void)release;
  (void)mask;
}
void check_cluster_wait(Warp *warp, const Instruction *in, bool acquire, LaneMask mask) {
  (void)warp;
  (void)in;
  (void)acquire;
  (void)mask;
}
void check_fence(Warp *warp, const Instruction *in, FenceScope scope, LaneMask mask) {
  (void)warp;
  (void)in;
  (void)scope;
  (void)mask;
}
void check_fence_proxy_async(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)warp;
  (void)in;
  (void)mask;
}
void check_fence_mbarrier_init(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)warp;
  (void)in;
  (void)mask;
}
void check_fence_tensormap(Warp *warp, const Instruction *in, bool acquire, uint64_t map,
                           LaneMask mask) {
  (void)warp;
  (void)in;
  (void)acquire;
  (void)map;
  (void)mask;
}
void check_mbarrier_init(Warp *warp, const Instruction *in, int lane, uint32_t barrier,
                         uint32_t count) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)barrier;
  (void)count;
}
void check_mbarrier_inval(Warp *warp, const Instruction *in, int lane, uint32_t barrier) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)barrier;
}
bool check_mbarrier_use(Warp *warp, const Instruction *in, int lane, uint32_t barrier) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)barrier;
  return true;
}
void check_mbarrier_arrive(Warp *warp, const Instruction *in, int lane, uint32_t barrier,
                           bool release) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)barrier;
  (void)release;
}
void check_mbarrier_expect(Warp *warp, const Instruction *in, int lane, uint32_t barrier,
                           uint32_t bytes) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)barrier;
  (void)bytes;
}
void check_mbarrier_phase_complete(Cluster *cluster, uint32_t barrier, uint32_t finished_phase) {
  (void)cluster;
  (void)barrier;
  (void)finished_phase;
}
void check_mbarrier_observed(Warp *warp, const Instruction *in, int lane, uint32_t barrier,
                             uint32_t phase, bool acquire) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)barrier;
  (void)phase;
  (void)acquire;
}
AsyncCheck *check_async_issue(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                              const SharedPiece *reads, int read_count, const SharedPiece *writes,
                              int write_count, uint32_t barrier) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)kind;
  (void)reads;
  (void)read_count;
  (void)writes;
  (void)write_count;
  (void)barrier;
  return 0;
}
void check_async_source_read(Cluster *cluster, AsyncCheck *operation) {
  (void)cluster;
  (void)operation;
}
void check_async_landed(Cluster *cluster, AsyncCheck *operation) {
  (void)cluster;
  (void)operation;
}
void check_async_waited(Warp *warp, const Instruction *in, int lane, AsyncCheck *operation,
                        bool reads_only) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)operation;
  (void)reads_only;
}
void check_async_release(AsyncCheck *operation) { (void)operation; }
void check_tile_layout(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                       int swizzle_span, bool written, Proxy proxy) {
  (void)warp;
  (void)in;
  (void)address;
  (void)bytes;
  (void)swizzle_span;
  (void)written;
  (void)proxy;
}
void check_tensor_map_use(Warp *warp, const Instruction *in, int lane, uint64_t address) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)address;
}
void check_tensor_map_written(Warp *warp, const Instruction *in, int lane, uint64_t address,
                              uint32_t bytes) {
  (void)warp;
  (void)in;
  (void)lane;
  (void)address;
  (void)bytes;
}
void check_wgmma_fence(Warp *warp, const Instruction *in) {
  (void)warp;
  (void)in;
}
void check_wgmma_issue(Warp *warp, const Instruction *in, const uint16_t *slots, int slot_count,
                       const SharedPiece *reads, int read_count) {
  (void)warp;
  (void)in;
  (void)slots;
  (void)slot_count;
  (void)reads;
  (void)read_count;
}
void check_wgmma_commit(Warp *warp, const Instruction *in) {
  (void)warp;
  (void)in;
}
void check_wgmma_wait(Warp *warp, const Instruction *in, int pending) {
  (void)warp;
  (void)in;
  (void)pending;
}
