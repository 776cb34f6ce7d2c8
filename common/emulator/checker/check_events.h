/* check_events.h: what the checker does when it hears of an event (check_events.c). base/events.def says when
 * each happens. */
#ifndef EMULATOR_CHECK_EVENTS_H
#define EMULATOR_CHECK_EVENTS_H

#include "base/events.h"
#include "checker/checker.h"
#include "state/operation.h"

void check_cluster_begin(Cluster *cluster);
void check_cluster_end(Cluster *cluster);
void check_warp_exit(Warp *warp, const Instruction *in, LaneMask exiting);
void check_cta_exit(Cta *cta);

/* A bulk or tensor copy or reduce, after its check_async_issue. */
void check_async_global(const AsyncOperation *operation);
/* griddepcontrol.wait and .launch_dependents */
void check_dependency_wait(Warp *warp);
void check_dependency_launches(Warp *warp);
void check_barrier_arrive(Warp *warp, const Instruction *in, uint32_t barrier, LaneMask mask);
/* All have arrived, and waiting threads continue. of_all: without a thread count. */
void check_barrier_complete(Cta *cta, uint32_t barrier, bool of_all);
void check_barrier_wait(Warp *warp, uint32_t barrier, LaneMask mask);
/* barrier.cluster: `round` counts its uses. A thread waits for the round in which it arrived. */
void check_cluster_arrive(Warp *warp, const Instruction *in, bool release, uint32_t round);
void check_cluster_wait(Warp *warp, uint32_t round);
void check_fence(Warp *warp, FenceScope scope, bool sc);
void check_fence_proxy_async(Warp *warp, uint8_t spaces, LaneMask mask);
void check_fence_mbarrier_init(Warp *warp, const Instruction *in, LaneMask mask);
/* mbarriers: `barrier` is the shared address; `warp` executed the operation (for a remote arrive,
 * the sender).
 */
void check_mbarrier_init(Warp *warp, const Instruction *in, int lane, uint32_t barrier,
                         uint32_t count);
void check_mbarrier_inval(Warp *warp, uint32_t barrier);
/* release: its scope; REACH_PLAIN: it is no release. of_copies: by cp.async.mbarrier.arrive, when
 * the lane's copies have landed. */
void check_mbarrier_arrive(Warp *warp, const Instruction *in, int lane, uint32_t barrier,
                           Reach release, bool of_copies);
void check_mbarrier_expect(Warp *warp, const Instruction *in, int lane, uint32_t barrier,
                           uint32_t bytes);
void check_mbarrier_phase_complete(Cluster *cluster, uint32_t barrier, uint32_t finished_phase);
/* At issue: what it will read and write in shared memory; barrier 0: it completes through a
 * group. */
AsyncCheck *check_async_issue(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                              const SharedPiece *reads, int read_count, const SharedPiece *writes,
                              int write_count, uint32_t barrier);
/* its source has been read */
void check_async_source_read(AsyncCheck *operation);
/* its destination has been written */
void check_async_landed(Cluster *cluster, AsyncCheck *operation);
/* The thread has waited for this operation's group; reads_only for wait_group.read. */
void check_async_waited(Warp *warp, AsyncCheck *operation, bool reads_only);
/* The thread has committed what it issued so far; waits_idly: it waits without ever having
 * committed; waits_for_own: it waits and has committed something. */
void check_async_committed(Warp *warp, int lane);
void check_async_waits_idly(Warp *warp, const Instruction *in, int lane);
void check_async_waits_for_own(Warp *warp, const Instruction *in);
/* The last call for a handle. */
void check_async_release(AsyncCheck *operation);
void check_wgmma_fence(Warp *warp);
void check_wgmma_commit(Warp *warp);
void check_wgmma_wait(Warp *warp, int pending);
/* A tensor map is read from this generic address: parameter, constant or global memory. */
void check_tensor_map_use(Warp *warp, const Instruction *in, int lane, uint64_t address);
/* map_bytes.c. An instruction uses all 128 bytes of a map, in shared or in global memory. `how`
 * says what it does: "changes a field of". */
void check_map_in_shared(Warp *warp, const Instruction *in, int lane, uint32_t address,
                         const char *how);
void check_map_in_global(Warp *warp, const Instruction *in, int lane, uint64_t address,
                         const char *how);
void check_fence_tensormap(Warp *warp, const Instruction *in, bool acquire, uint64_t map,
                           LaneMask mask);
/* bar.warp.sync: these lanes have waited for each other, and their accesses are ordered. */
void check_warp_sync(Warp *warp, LaneMask lanes);
/* A shuffle, vote or the like: these lanes have waited for each other, which orders no accesses. */
void check_warp_met(Warp *warp, const Instruction *in, LaneMask lanes);
/* cp.async of these lanes, one piece for each: one operation, where each lane waits for its own
 * piece. */
AsyncCheck *check_copies_issue(Warp *warp, const Instruction *in, LaneMask lanes,
                               const SharedPiece *writes, int write_count);
/* cp.async, after its check_copies_issue: what each lane reads in global memory, and to which shared
 * address it goes. */
void check_copies_read(AsyncCheck *operation, Warp *warp, const Instruction *in, LaneMask mask,
                       const uint8_t *const *sources, const uint32_t *bytes,
                       const uint32_t *shared);
/* The thread's operation will write global memory; its threads read `bytes` bytes at each address.
 * warp->async must be set. */
void check_will_write(BulkThread *thread, const AsyncOperation *operation);
void check_copied(Warp *warp, const Instruction *in, int lane, const CopiedBytes *copied);
void check_copied_bytes(const Warp *warp, uint32_t address, uint32_t bytes, bool whole_only,
                        uint32_t row, CopiedBytes *copied);
/* Quickly: may any of these bytes be undefined? */
bool check_undefined_pieces(const Warp *warp, const SharedPiece *pieces, int count);
/* A copy from shared to shared memory; after check_async_issue. */
void check_undefined_copy(Warp *warp, const Instruction *in, int lane, uint32_t from, uint32_t to,
                          uint32_t bytes);
/* Asynchronous operations: each has one handle for its lifetime. */
void check_copies_waited(Warp *warp, LaneMask lanes, AsyncCheck *operation);
/* Accesses to global memory (global_races.c). */
void check_launch_begin(Launch *launch);
void check_launch_end(Launch *launch);
/* After it: other lanes that execute the same operation on this barrier. */
void check_mbarrier_lanes(Warp *warp, const Instruction *in, LaneMask mask, uint32_t barrier);
/* A test or wait returned true for `phase` (the completed one, counted from 0 since init). */
void check_mbarrier_observed(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t barrier,
                             uint32_t phase, bool acquire);
/* A test or wait returned false. */
void check_mbarrier_not_yet(Warp *warp, const Instruction *in, int lane, uint32_t barrier);
/* A lower lane has arrived by the same instruction, and that phase is over. */
void check_mbarrier_phase_between(Warp *warp, const Instruction *in, int lane, LaneMask lanes,
                                  uint32_t barrier);

#endif
