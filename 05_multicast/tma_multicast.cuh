/* tma_multicast.cuh: one TMA load that writes to the shared memory of several blocks of a cluster.
 *
 * Bit r of the mask selects the block of rank r. In each block of the mask the tile is written at
 * the *same offset* as `destination` has in the issuing block, and the bytes are counted on the
 * barrier at the same offset as `barrier`. So every receiver must expect the bytes on its own
 * barrier, and all blocks must have the same layout of shared memory. The issuing block need not be in
 * the mask. */
#ifndef MULTICAST_TMA_MULTICAST_CUH
#define MULTICAST_TMA_MULTICAST_CUH

#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"

/* The mask of all blocks of a cluster of `size` (1 to 16). */
static __device__ __forceinline__ uint16_t cluster_mask_all(uint32_t size) {
  return (uint16_t)((1u << size) - 1);
}

/* PTX ISA: cp.async.bulk.tensor with .multicast::cluster, by rank of the tensor. Coordinates are
 * element offsets, innermost first, as in tma_load_2d. */
static __device__ __forceinline__ void tma_load_1d_multicast(void *destination,
                                                             const CUtensorMap *map, int32_t x,
                                                             uint64_t *barrier, uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3}], [%2], %4;" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "h"(mask)
      : "memory");
}

static __device__ __forceinline__ void tma_load_2d_multicast(void *destination,
                                                             const CUtensorMap *map, int32_t x,
                                                             int32_t y, uint64_t *barrier,
                                                             uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "h"(mask)
      : "memory");
}

static __device__ __forceinline__ void tma_load_3d_multicast(void *destination,
                                                             const CUtensorMap *map, int32_t x,
                                                             int32_t y, int32_t z,
                                                             uint64_t *barrier, uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(mask)
      : "memory");
}

static __device__ __forceinline__ void tma_load_4d_multicast(void *destination,
                                                             const CUtensorMap *map, int32_t x,
                                                             int32_t y, int32_t z, int32_t w,
                                                             uint64_t *barrier, uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(
          shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "h"(mask)
      : "memory");
}

static __device__ __forceinline__ void tma_load_5d_multicast(void *destination,
                                                             const CUtensorMap *map, int32_t x,
                                                             int32_t y, int32_t z, int32_t w,
                                                             int32_t v, uint64_t *barrier,
                                                             uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(
          shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "h"(mask)
      : "memory");
}

/* The same with a hint of how long L2 should keep the lines, as in tma_load_2d_cache_hint. */
static __device__ __forceinline__ void tma_load_2d_multicast_cache_hint(
    void *destination, const CUtensorMap *map, int32_t x, int32_t y, uint64_t *barrier,
    uint16_t mask, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5, %6;" ::"r"(
          shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "h"(mask), "l"(policy)
      : "memory");
}

/* PTX ISA: cp.async.bulk, global to shared::cluster, with .multicast::cluster. A run of bytes (a
 * multiple of 16, both ends 16-byte aligned) without a tensor map. */
static __device__ __forceinline__ void bulk_load_multicast(void *destination, const void *source,
                                                           uint32_t bytes, uint64_t *barrier,
                                                           uint16_t mask) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(destination)),
      "l"(source), "r"(bytes), "r"(shared_address(barrier)), "h"(mask)
      : "memory");
}

#endif
