/* mbarrier_debug.cuh: for a barrier that never completes. What its 64 bits say, a wait that gives
 * up, and a wait that reports and traps.
 *
 * Include this file while you look for the mistake, and mbarrier.cuh alone once you have found it:
 * what is here prints from the kernel. */
#ifndef TMA_LOAD_MBARRIER_DEBUG_CUH
#define TMA_LOAD_MBARRIER_DEBUG_CUH

#include <stdint.h>
#include <stdio.h>

#include "mbarrier.cuh"

/* The fields of a barrier's 64 bits. PTX does not document them. This is what we saw on an H200
 * with the program tma_load. Counts are stored negated. */
typedef struct {
  uint32_t phase_parity;     /* bit 63: of the current, unfinished phase */
  uint32_t pending_arrivals; /* bits 43 to 62: still missing in this phase */
  int32_t pending_bytes;     /* bits 21 to 41: expected and not yet written; negative: more bytes
                                came in than were expected */
  uint32_t phase_arrivals;   /* bits 1 to 20: as given to mbarrier_init */
} MbarrierState;

/* Ends the barrier's life and returns its last state. The state of a live barrier cannot be read:
 * ordinary loads return what lay in these 8 bytes before, until mbarrier.inval writes the state
 * back. */
static __device__ __forceinline__ MbarrierState mbarrier_last_state(uint64_t *barrier) {
  mbarrier_inval(barrier);
  uint64_t bits = *(volatile uint64_t *)barrier;
  MbarrierState state;
  state.phase_parity = (uint32_t)(bits >> 63);
  state.pending_arrivals = (uint32_t)(0 - (bits >> 43)) & 0xfffff;
  state.pending_bytes = -(int32_t)((int64_t)(bits << 22) >> 43);
  state.phase_arrivals = (uint32_t)(0 - (bits >> 1)) & 0xfffff;
  return state;
}

/* Waits like mbarrier_wait_parity, but gives up after `clocks` clock cycles of the multiprocessor.
 * Returns whether the phase is complete. */
static __device__ __forceinline__ bool mbarrier_wait_parity_for(uint64_t *barrier, uint32_t parity,
                                                                int64_t clocks) {
  int64_t start = clock64();
  while (!mbarrier_try_wait_parity(barrier, parity)) {
    if (clock64() - start >= clocks) return false;
  }
  return true;
}

static __device__ __forceinline__ void mbarrier_print(const char *name, MbarrierState state) {
  printf("barrier '%s': phase of parity %u, %u of %u arrivals pending, %d bytes pending\n", name,
         state.phase_parity, state.pending_arrivals, state.phase_arrivals, state.pending_bytes);
  if (state.pending_arrivals > 0) {
    printf("  arrivals pending: fewer threads arrived than the count given to mbarrier_init\n");
  }
  if (state.pending_bytes > 0) {
    printf("  bytes pending: more was announced than the copies bring, or no copy was issued\n");
  }
  if (state.pending_bytes < 0) {
    printf("  bytes below zero: more has landed than was announced\n");
  }
}

/* Use this instead of an mbarrier_wait_parity that hangs. After `clocks` clock cycles it
 * prints which thread waited and the barrier's phase and counts, and traps, which ends the kernel
 * with cudaErrorLaunchFailure. Only the first thread that gives up prints; the others wait for its
 * trap. */
static __device__ __forceinline__ void mbarrier_wait_parity_or_trap(uint64_t *barrier,
                                                                    uint32_t parity, int64_t clocks,
                                                                    const char *name) {
  static unsigned int reports;
  if (mbarrier_wait_parity_for(barrier, parity, clocks)) return;
  while (atomicAdd(&reports, 1) != 0) __nanosleep(1000000);
  printf("thread %u of block (%u,%u,%u) waited %lld clocks for parity %u and gives up\n",
         threadIdx.x, blockIdx.x, blockIdx.y, blockIdx.z, (long long)clocks, parity);
  mbarrier_print(name, mbarrier_last_state(barrier));
  __trap();
}

#endif
