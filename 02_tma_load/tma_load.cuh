/* tma_load.cuh: copies from global to shared memory by the copy engine.
 *
 * tma_load_2d and tma_load_3d copy a box of a tensor (tma_load_dimensions.cuh has the other numbers of dimensions, and
 * im2col). The tensor map holds the tensor's address, its size and the size of the box; the
 * coordinates say where the box begins. bulk_load copies a run of bytes, without a tensor map. One
 * thread issues the copy for the whole block and goes on at once. The engine subtracts the bytes it
 * has written from the barrier's pending bytes (complete_tx): see mbarrier.cuh.
 *
 * Coordinates count elements, not boxes, and the innermost dimension comes first: for a row-major
 * matrix (x, y) is (column, row). x times the element's size must be a multiple of 16 bytes. A box
 * may begin at negative coordinates or reach past the end of the tensor: elements outside arrive as
 * zero (or NaN, as the map says) and still count as bytes.
 * `destination` is 128-byte aligned; `map` points to a __grid_constant__ kernel parameter, to
 * constant memory, or to global memory. */
#ifndef TMA_LOAD_TMA_LOAD_CUH
#define TMA_LOAD_TMA_LOAD_CUH

#include <cuda.h>
#include <stdint.h>

#include "mbarrier.cuh"

/* PTX ISA: cp.async.bulk.tensor, global to shared::cluster. Word by word:
 *   .2d                               two dimensions, so two coordinates
 *   .shared::cluster.global           to, from (this block's shared memory is part of the cluster's)
 *   .tile                             a box, as opposed to the im2col mode of convolutions
 *   .mbarrier::complete_tx::bytes     completion: the bytes are subtracted on an mbarrier
 *   [destination], [map, {x, y}], [barrier] */
static __device__ __forceinline__ void tma_load_2d(void *destination, const CUtensorMap *map,
                                                   int32_t x, int32_t y, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}

static __device__ __forceinline__ void tma_load_3d(void *destination, const CUtensorMap *map,
                                                   int32_t x, int32_t y, int32_t z,
                                                   uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/* The same with a hint of how long L2 should keep the lines: `policy` from l2_policy_*(). */
static __device__ __forceinline__ void tma_load_2d_cache_hint(void *destination,
                                                              const CUtensorMap *map, int32_t x,
                                                              int32_t y, uint64_t *barrier,
                                                              uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "l"(policy)
      : "memory");
}

/* PTX ISA: createpolicy. evict_first: data that is read once; evict_last: data that other blocks will
 * read again. */
static __device__ __forceinline__ uint64_t l2_policy_evict_first(void) {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

static __device__ __forceinline__ uint64_t l2_policy_evict_last(void) {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/* PTX ISA: cp.async.bulk, global to shared::cluster. `bytes` is a multiple of 16, both addresses
 * are 16-byte aligned. Nothing is clipped: all bytes must lie in allocated memory. */
static __device__ __forceinline__ void bulk_load(void *destination, const void *source,
                                                 uint32_t bytes, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1], %2, [%3];" ::"r"(shared_address(destination)),
      "l"(source), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

static __device__ __forceinline__ void bulk_load_cache_hint(void *destination, const void *source,
                                                            uint32_t bytes, uint64_t *barrier,
                                                            uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(destination)),
      "l"(source), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

/* PTX ISA: prefetch.tensormap. Brings the map's 128 bytes near the copy engine, so that the first
 * copy does not wait for them. It changes no result. */
static __device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

#endif
