/* record.h: the interface of the recorder. RECORDING.md describes the file.
 *
 * A cluster that is recorded or counted (EMULATOR_COUNT=1) has a recorder; all others have none.
 * Only for these are the events of warps passed on (record_events.c). Every function records what has just
 * happened, unless its comment says otherwise. */
#pragma once

#include "base/events.h"
#include "base/tma_map.h"

typedef struct Recorder Recorder;

/* ---- Launches and clusters ---- */
/* The number of the launch in the recording; -1: this run is not recorded. */
int record_launch_begin(const Launch *launch, const char *symbol, uint32_t static_shared_bytes);
/* All clusters have ended: writes what they recorded. */
void record_launch_end(Launch *launch);
/* Gives the cluster a recorder if it is selected. `initial`: the value of every byte of its shared
 * memory. */
void record_cluster_begin(Cluster *cluster, int launch_number, uint8_t initial);
/* A variable in the shared memory of each block; bytes 0: up to the end (extern __shared__). */
void record_variable(Cluster *cluster, const char *symbol, uint32_t offset, uint64_t bytes);
void record_cluster_end(Cluster *cluster);

/* ---- Warps ---- */
/* Before every instruction of a recorded warp. */
void record_step(Warp *warp, const Instruction *in, LaneMask mask);
/* The instruction of the last record_step was blocked. */
void record_blocked(Warp *warp, const Instruction *in, LaneMask mask);
/* Before record_blocked: what it waits for. */
void record_blocked_on_mbarrier(Warp *warp, uint32_t address, uint32_t parity);
/* A test or wait is answered by true. */
void record_observed(Warp *warp, const Instruction *in, LaneMask mask, uint32_t address,
                     uint32_t phase, bool acquires);
/* A wait for the last phase of the mbarrier, or at a barrier, has ended. */
void record_mbarrier_passed(Warp *warp, uint32_t address);
void record_barrier_passed(Warp *warp, const BarrierUse *use);
void record_exit(Warp *warp, const Instruction *in, const Instruction *from, LaneMask mask);
void record_fence(Warp *warp, const Instruction *in, LaneMask mask, Fence fence);
void record_commit(Warp *warp, const Instruction *in, LaneMask mask, GroupKind kind);
void record_awaited(Warp *warp, const Instruction *in, LaneMask mask, const GroupWait *wait);
void record_barrier_arrived(Warp *warp, const Instruction *in, const BarrierUse *use,
                            uint32_t arrived, bool complete);
/* Before the effect: an access of threads to shared memory. */
void record_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                   uint32_t bytes, Access access);
/* An access to global memory, for the counters. */
void record_global(Warp *warp, LaneMask mask, const uint64_t *addresses, uint32_t bytes,
                   Access access);
/* Before shared memory is changed by anything other than an instruction of a warp. */
void record_settle(Cluster *cluster);

/* ---- Asynchronous operations ---- */
/* The program has named a tensor map (common/tensor_map_encode.c). */
void tensor_map_named(const void *map, const char *name);
/* NULL: it has not. */
const char *record_tensor_name(const TmaMap *map);
/* Gives it its number in the recording. */
void record_operation(Warp *warp, struct AsyncOperation *operation, const CopiedPieces *pieces);
void record_copy_source_read(Cluster *cluster, uint32_t copy);
void record_copy_landed(Cluster *cluster, uint32_t copy);

/* ---- mbarriers ---- */
/* copy: NULL when a thread did it. */
void record_mbarrier(Warp *warp, const Instruction *in, int lane, uint32_t address, const char *why,
                     const struct AsyncOperation *copy);
/* mbarrier.inval has written the barrier's 8 bytes to memory. */
void record_mbarrier_bytes(Warp *warp, const Instruction *in, int lane, uint32_t address);

/* ---- Tensor cores ---- */
void record_mma(Warp *warp, const Instruction *in, LaneMask mask);
void record_wgmma(Warp *warp, const Instruction *in, struct PendingWgmma *flight);
void record_wgmma_done(Warp *warp, const struct PendingWgmma *flight);
