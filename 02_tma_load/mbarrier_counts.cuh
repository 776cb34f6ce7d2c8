/* mbarrier_counts.cuh: what else changes or asks an mbarrier's counts, and named barriers. See mbarrier.cuh first.
 *
 * Most kernels need none of this. arrivals.cu and cp_async_ring.cu show when one does. */
#ifndef TMA_LOAD_MBARRIER_COUNTS_CUH
#define TMA_LOAD_MBARRIER_COUNTS_CUH

#include <stdint.h>

#include "mbarrier.cuh"

/* PTX ISA: mbarrier.arrive with a count. As many arrivals at once; no more than are pending. */
static __device__ __forceinline__ uint64_t mbarrier_arrive_count(uint64_t *barrier,
                                                                 uint32_t count) {
  uint64_t token;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;"
               : "=l"(token)
               : "r"(shared_address(barrier)), "r"(count)
               : "memory");
  return token;
}

/* PTX ISA: mbarrier.arrive.noComplete. It promises that these arrivals do not complete the phase:
 * others are still pending. Breaking the promise is undefined. */
static __device__ __forceinline__ uint64_t mbarrier_arrive_no_complete(uint64_t *barrier,
                                                                       uint32_t count) {
  uint64_t token;
  asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], %2;"
               : "=l"(token)
               : "r"(shared_address(barrier)), "r"(count)
               : "memory");
  return token;
}

/* PTX ISA: mbarrier.arrive_drop. One arrival, and one fewer in every later phase: for a thread that
 * leaves while the others go on. It must not arrive again. */
static __device__ __forceinline__ uint64_t mbarrier_arrive_drop(uint64_t *barrier) {
  uint64_t token;
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];"
               : "=l"(token)
               : "r"(shared_address(barrier))
               : "memory");
  return token;
}

/* PTX ISA: mbarrier.pending_count. The arrivals that were pending just before the arrive that
 * returned this token. It reads the token alone, not the barrier. */
static __device__ __forceinline__ uint32_t mbarrier_pending_count(uint64_t token) {
  uint32_t count;
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(token));
  return count;
}

/* PTX ISA: mbarrier.complete_tx. Subtracts bytes as the copy engine does when a copy has landed,
 * without any copy: for what threads bring in place of a copy that was announced. */
static __device__ __forceinline__ void mbarrier_complete_tx(uint64_t *barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/* PTX ISA: mbarrier.try_wait.parity with a time limit. The thread may be suspended for up to about
 * `nanoseconds`; without the operand the limit is the machine's. False: ask again. */
static __device__ __forceinline__ bool mbarrier_try_wait_parity_limit(uint64_t *barrier,
                                                                      uint32_t parity,
                                                                      uint32_t nanoseconds) {
  uint32_t complete;
  asm volatile(
      "{\n"
      "  .reg .pred complete;\n"
      "  mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2, %3;\n"
      "  selp.u32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "r"(parity), "r"(nanoseconds)
      : "memory");
  return complete != 0;
}

/* PTX ISA: cp.async, 16 bytes from global to shared memory. Both addresses are 16-byte aligned. */
static __device__ __forceinline__ void cp_async_16(void *destination, const void *source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(destination)),
               "l"(source)
               : "memory");
}

/* PTX ISA: cp.async.mbarrier.arrive.noinc. The thread arrives once, at the time when all its
 * cp.async so far have landed. mbarrier_init counts this arrival. (Without .noinc the instruction
 * adds one to the pending arrivals first, so it completes nothing that mbarrier_init counts.) */
static __device__ __forceinline__ void cp_async_mbarrier_arrive(uint64_t *barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/* PTX ISA: barrier.cta. __syncthreads() for some warps of a block: of the barrier `id` (1 to 15; 0 is
 * __syncthreads()'s own) until `threads` threads, a multiple of 32, have come to it. Those that arrive
 * count, too, but do not wait. If `id` is not a constant, the compiler reserves all 16 barriers. */
static __device__ __forceinline__ void named_barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ void named_barrier_arrive(uint32_t id, uint32_t threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

#endif
