/* tma_store.cuh: copies from shared to global memory by the copy engine.
 *
 * A store has no barrier: its end is reported through *bulk groups*. The thread that issued stores
 * commits them as a group, and the same thread waits until at most N of its groups are pending:
 *
 *   fence_proxy_async();             every thread that wrote to the tile
 *   __syncthreads();
 *   if (threadIdx.x == 0) {
 *     tma_store_2d(&map, tile, x, y);
 *     bulk_commit_group();
 *     bulk_wait_group_read<0>();       the engine has read the tile: you may overwrite it now, and
 *   }                                the block may end
 *
 * In a thread that has committed nothing the wait returns at once and orders nothing.
 * tma_store_dimensions.cuh has the stores for 1, 4 and 5 dimensions.
 *
 * Coordinates are never negative: that would be an illegal instruction. What lies past the end of the
 * tensor is not written, but the last 16 bytes of a row are written whole, even if it ends in them. */
#ifndef TMA_STORE_TMA_STORE_CUH
#define TMA_STORE_TMA_STORE_CUH

#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh" /* shared_address, fence_proxy_async */

/* PTX ISA: cp.async.bulk.tensor, shared::cta to global. Word by word:
 *   .2d                       two dimensions, so two coordinates
 *   .global.shared::cta       to, from
 *   .tile                     a box, as opposed to the im2col mode of convolutions
 *   .bulk_group               completion: by commit and wait, no barrier
 *   [map, {x, y}], [source] */
static __device__ __forceinline__ void tma_store_2d(const CUtensorMap *map, const void *source,
                                                    int32_t x, int32_t y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(shared_address(source)), "r"(x), "r"(y)
      : "memory");
}

static __device__ __forceinline__ void tma_store_3d(const CUtensorMap *map, const void *source,
                                                    int32_t x, int32_t y, int32_t z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group"
      " [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(shared_address(source)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/* The same with a hint of how long L2 should keep the lines: `policy` as for loads. */
static __device__ __forceinline__ void tma_store_2d_cache_hint(const CUtensorMap *map,
                                                               const void *source, int32_t x,
                                                               int32_t y, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint"
      " [%0, {%2, %3}], [%1], %4;" ::"l"(map),
      "r"(shared_address(source)), "r"(x), "r"(y), "l"(policy)
      : "memory");
}

/* PTX ISA: cp.async.bulk, shared::cta to global. `bytes` is a multiple of 16, both addresses are
 * 16-byte aligned. Nothing is clipped: every byte is written. */
static __device__ __forceinline__ void bulk_store(void *destination, const void *source,
                                                  uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination),
               "r"(shared_address(source)), "r"(bytes)
               : "memory");
}

static __device__ __forceinline__ void bulk_store_cache_hint(void *destination, const void *source,
                                                             uint32_t bytes, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(
          destination),
      "r"(shared_address(source)), "r"(bytes), "l"(policy)
      : "memory");
}

/* PTX ISA: fence.proxy.async for other memory than fence_proxy_async() of mbarrier.cuh: for global
 * memory that threads have written and the engine then reads or overwrites, and for all memory. Also where one
 * block stores by TMA and another loads that by TMA in the same launch: after the store's bulk_wait_group and the
 * blocks' barrier, because that barrier orders only what threads have seen. */
static __device__ __forceinline__ void fence_proxy_async_global(void) {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

static __device__ __forceinline__ void fence_proxy_async_all(void) {
  asm volatile("fence.proxy.async;" ::: "memory");
}

/* PTX ISA: cp.async.bulk.commit_group. The stores that this thread issued since its last commit
 * become one group. */
static __device__ __forceinline__ void bulk_commit_group(void) {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* PTX ISA: cp.async.bulk.wait_group.read. Waits until at most MOST_PENDING of this thread's latest
 * groups have yet to read their shared memory; the engine is done reading for all older ones. The
 * instruction holds the count as a literal, so it must be known at compile time. */
template <int MOST_PENDING>
static __device__ __forceinline__ void bulk_wait_group_read(void) {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(MOST_PENDING) : "memory");
}

/* PTX ISA: cp.async.bulk.wait_group. Waits until the older groups have also written to global
 * memory, where this thread then sees what they wrote. */
template <int MOST_PENDING>
static __device__ __forceinline__ void bulk_wait_group(void) {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(MOST_PENDING) : "memory");
}

#endif
