/* mbarrier.cuh: the barrier in shared memory that a TMA load reports to.
 *
 * An mbarrier is one 64-bit word in shared memory. Its current phase is complete once two counts
 * are zero together:
 *   pending arrivals   starts at the count given to mbarrier_init; every arrive takes one off;
 *   pending bytes      expect_tx adds to it, the copy engine takes off what it has written.
 * At that moment the next phase begins by itself: pending arrivals are back at the count of
 * mbarrier_init, and the parity of the current phase flips 0, 1, 0, 1, ...
 *
 * Waiting never changes a barrier, and any number of threads may wait. To wait "for parity p" is
 * to wait until the phase of parity p is over: the first phase has parity 0, so the first wait is
 * for parity 0, the second use of the barrier waits for parity 1, then 0 again.
 *
 * One function per PTX instruction, named after it. `barrier` points into this CTA's own shared
 * memory and is 8-byte aligned. */
#ifndef TMA_LOAD_MBARRIER_CUH
#define TMA_LOAD_MBARRIER_CUH

#include <stdint.h>
#include <stdio.h>

/* The instructions below take shared-memory addresses, which are 32 bits wide: the offset from the
 * start of the shared window, not the 64-bit generic pointer of C. */
static __device__ __forceinline__ uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* PTX ISA: mbarrier.init. One thread, once, before anyone else touches the barrier; `arrivals` is
 * how many arrivals complete a phase. What others may see of it is settled by the fence and the
 * __syncthreads() that follow. */
static __device__ __forceinline__ void mbarrier_init(uint64_t *barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}

/* PTX ISA: fence.mbarrier_init. Makes the inits of this thread visible to the async proxy, through
 * which the copy engine reads the barrier, and to the other CTAs of a cluster. */
static __device__ __forceinline__ void fence_mbarrier_init(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* PTX ISA: mbarrier.inval. Ends the barrier's life: afterwards its 8 bytes are plain memory, and
 * may be initialised anew. Nobody may be waiting, and no copy may be on its way to it. */
static __device__ __forceinline__ void mbarrier_inval(uint64_t *barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/* PTX ISA: mbarrier.arrive. One arrival. The token it returns names the phase that it arrived in,
 * for mbarrier_try_wait; who waits by parity ignores it. */
static __device__ __forceinline__ uint64_t mbarrier_arrive(uint64_t *barrier) {
  uint64_t token;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];"
               : "=l"(token)
               : "r"(shared_address(barrier))
               : "memory");
  return token;
}

/* PTX ISA: mbarrier.arrive.expect_tx. Adds `bytes` to the pending bytes, then arrives once: the
 * announcement of a copy and the promise that no further copy will be announced, in one step. */
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

/* PTX ISA: mbarrier.test_wait.parity. Is the phase of this parity over? Answers at once. */
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

/* PTX ISA: mbarrier.try_wait.parity. The same, but the thread may sleep for a while first, so it
 * costs fewer instructions to wait with. It may answer no although the phase ends a moment later:
 * always in a loop. */
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

/* The wait that lessons use. It returns once the phase of this parity is over; what the copies of
 * that phase wrote is then visible to the calling thread (try_wait acquires), and to it alone:
 * every thread that reads the tile waits itself, or meets one that did in a __syncthreads(). */
static __device__ __forceinline__ void mbarrier_wait_parity(uint64_t *barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
}

/* PTX ISA: mbarrier.try_wait with a token. Is the phase over in which the arrive took place that
 * returned this token? */
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

/* PTX ISA: fence.proxy.async. Memory has two doors: ordinary loads and stores go through the
 * generic proxy, the copy engine through the async proxy. This fence orders what the calling thread
 * wrote to shared memory through the first before what the engine does afterwards through the
 * second. Chapter 03 is about it. */
static __device__ __forceinline__ void fence_proxy_async(void) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- For looking and for debugging ---- */

/* What the 64 bits of a barrier say. PTX leaves their meaning open; this is what they were seen to
 * be on an H200 (program: tma_load). Counts are stored negated. */
typedef struct {
  uint32_t phase_parity;     /* bit 63: of the current, unfinished phase */
  uint32_t pending_arrivals; /* bits 43 to 62: still missing in this phase */
  int32_t pending_bytes;     /* bits 21 to 41: announced and not landed; below 0: not announced */
  uint32_t phase_arrivals;   /* bits 1 to 20: as given to mbarrier_init */
} MbarrierState;

/* Ends the barrier's life and says in which state it was. Looking costs the life because a living
 * barrier is not in shared memory: loads of its word give what lay there before, until
 * mbarrier.inval writes the state back. */
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

/* Waits like mbarrier_wait_parity, but gives up after so many clocks of the multiprocessor; true
 * if the phase is over. A wait that would last for ever ends, and the caller can say what it knows.
 */
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
    printf("  arrivals pending: fewer threads arrived than mbarrier_init was told\n");
  }
  if (state.pending_bytes > 0) {
    printf("  bytes pending: more was announced than the copies bring, or no copy was issued\n");
  }
  if (state.pending_bytes < 0) {
    printf("  bytes below zero: more has landed than was announced\n");
  }
}

/* Put in place of a mbarrier_wait_parity that hangs: it gives up after so many clocks, prints who
 * waited and the barrier's phase and counts, and traps, which ends the kernel with
 * cudaErrorLaunchFailure. One report per kernel: the first thread to give up speaks, the others
 * wait for its trap. */
static __device__ __forceinline__ void mbarrier_wait_parity_or_trap(uint64_t *barrier,
                                                                    uint32_t parity, int64_t clocks,
                                                                    const char *name) {
  static unsigned int reports;
  if (mbarrier_wait_parity_for(barrier, parity, clocks)) return;
  while (atomicAdd(&reports, 1) != 0) __nanosleep(1000000);
  printf("thread %u of CTA (%u,%u,%u) waited %lld clocks for parity %u and gives up\n", threadIdx.x,
         blockIdx.x, blockIdx.y, blockIdx.z, (long long)clocks, parity);
  mbarrier_print(name, mbarrier_last_state(barrier));
  __trap();
}

#endif
