/* mbarrier.cuh: the barrier in shared memory that reports the end of a TMA load.
 *
 * An mbarrier is one 64-bit word in shared memory. Its current phase completes when two counts are
 * zero at the same time:
 *   pending arrivals   starts at the count given to mbarrier_init; each arrive subtracts one;
 *   pending bytes      expect_tx adds to it; the copy engine subtracts the bytes it has written.
 * The next phase then begins by itself: pending arrivals are back at the count of mbarrier_init,
 * and the parity of the current phase flips: 0, 1, 0, 1, ...
 *
 * Waiting never changes a barrier, and any number of threads may wait. To wait "for parity p" means
 * to wait until the phase of parity p is complete. The first phase has parity 0, so the first wait
 * is for parity 0, the second for parity 1, the third for parity 0 again.
 *
 * One function per PTX instruction, named after it. `barrier` points into this block's own shared
 * memory and is 8-byte aligned. */
#ifndef TMA_LOAD_MBARRIER_CUH
#define TMA_LOAD_MBARRIER_CUH

#include <stdint.h>

/* The instructions below take shared-memory addresses, which are 32 bits wide: the offset from the
 * start of the shared window, not the 64-bit generic pointer of C. */
static __device__ __forceinline__ uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* PTX ISA: mbarrier.init. One thread calls it, once, before anyone else uses the barrier. A phase
 * needs `arrivals` arrivals. Follow it with fence_mbarrier_init() in the same thread and then
 * __syncthreads(): without them others may not see the initialised barrier yet. */
static __device__ __forceinline__ void mbarrier_init(uint64_t *barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}

/* PTX ISA: fence.mbarrier_init. A release at cluster scope, of this thread's inits alone. NVIDIA's
 * examples execute it before the copy engine or a peer block uses the barrier, and so do we. */
static __device__ __forceinline__ void fence_mbarrier_init(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* PTX ISA: mbarrier.inval. Ends the barrier's life: its 8 bytes are ordinary memory again, and may
 * hold a new barrier later. No thread may be waiting on it, and no copy may still report to it. */
static __device__ __forceinline__ void mbarrier_inval(uint64_t *barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/* PTX ISA: mbarrier.arrive. One arrival. The returned token names the phase of this arrival, for
 * mbarrier_try_wait. Ignore it if you wait by parity. */
static __device__ __forceinline__ uint64_t mbarrier_arrive(uint64_t *barrier) {
  uint64_t token;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];"
               : "=l"(token)
               : "r"(shared_address(barrier))
               : "memory");
  return token;
}

/* PTX ISA: mbarrier.arrive.expect_tx. Adds `bytes` to the pending bytes, then arrives once. The
 * phase cannot complete between the two. */
static __device__ __forceinline__ uint64_t mbarrier_arrive_expect_tx(uint64_t *barrier,
                                                                     uint32_t bytes) {
  uint64_t token;
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
               : "=l"(token)
               : "r"(shared_address(barrier)), "r"(bytes)
               : "memory");
  return token;
}

/* PTX ISA: mbarrier.expect_tx. Adds `bytes` to the pending bytes without arriving. */
static __device__ __forceinline__ void mbarrier_expect_tx(uint64_t *barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/* PTX ISA: mbarrier.test_wait.parity. Is the phase of this parity complete? Returns at once. */
static __device__ __forceinline__ bool mbarrier_test_wait_parity(uint64_t *barrier,
                                                                 uint32_t parity) {
  uint32_t complete;
  asm volatile(
      "{\n"
      "  .reg .pred complete;\n"
      "  mbarrier.test_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
      "  selp.u32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return complete != 0;
}

/* PTX ISA: mbarrier.try_wait.parity. The same, but the thread may be suspended for a while first,
 * which makes waiting cheaper. It may return false before the phase is complete: always call it in
 * a loop. */
static __device__ __forceinline__ bool mbarrier_try_wait_parity(uint64_t *barrier,
                                                                uint32_t parity) {
  uint32_t complete;
  asm volatile(
      "{\n"
      "  .reg .pred complete;\n"
      "  mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
      "  selp.u32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return complete != 0;
}

/* The usual wait. It returns once the phase of this parity is complete. What the copies of that
 * phase wrote is then visible to the calling thread, and to this thread only: every thread that
 * reads the tile must wait itself, or pass a __syncthreads() after a thread that has waited. */
static __device__ __forceinline__ void mbarrier_wait_parity(uint64_t *barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
}

/* PTX ISA: mbarrier.try_wait with a token. Is the phase complete in which mbarrier_arrive returned
 * this token? */
static __device__ __forceinline__ bool mbarrier_try_wait(uint64_t *barrier, uint64_t token) {
  uint32_t complete;
  asm volatile(
      "{\n"
      "  .reg .pred complete;\n"
      "  mbarrier.try_wait.shared::cta.b64 complete, [%1], %2;\n"
      "  selp.u32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "l"(token)
      : "memory");
  return complete != 0;
}

static __device__ __forceinline__ void mbarrier_wait(uint64_t *barrier, uint64_t token) {
  while (!mbarrier_try_wait(barrier, token)) {
  }
}

/* PTX ISA: fence.proxy.async. Ordinary loads and stores access memory through the generic proxy,
 * the copy engine through the async proxy. This fence orders the shared-memory accesses that the
 * calling thread has made through the generic proxy before those that the engine makes afterwards.
 * Without it the engine may read old data. */
static __device__ __forceinline__ void fence_proxy_async(void) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* PTX ISA: elect.sync. True in exactly one of the lanes of the mask, all of which must execute it. */
static __device__ __forceinline__ bool elect_one_of(uint32_t mask) {
  uint32_t chosen;
  asm volatile(
      "{\n"
      "  .reg .pred chosen;\n"
      "  elect.sync _|chosen, %1;\n"
      "  selp.u32 %0, 1, 0, chosen;\n"
      "}"
      : "=r"(chosen)
      : "r"(mask)
      : "memory");
  return chosen != 0;
}

/* One lane of a whole warp. */
static __device__ __forceinline__ bool elect_one(void) { return elect_one_of(0xffffffff); }

#endif
