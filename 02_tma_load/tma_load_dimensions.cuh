/* tma_load_dimensions.cuh: loads from tensors of 1, 4 and 5 dimensions, im2col loads, and loads whose
 * destination is written .shared::cta.
 *
 * The instruction is that of tma_load.cuh, with another number of coordinates. */
#ifndef TMA_LOAD_TMA_LOAD_DIMENSIONS_CUH
#define TMA_LOAD_TMA_LOAD_DIMENSIONS_CUH

#include "tma_load.cuh"

static __device__ __forceinline__ void tma_load_1d(void *destination, const CUtensorMap *map,
                                                   int32_t x, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3}], [%2];" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x)
      : "memory");
}

static __device__ __forceinline__ void tma_load_4d(void *destination, const CUtensorMap *map,
                                                   int32_t x, int32_t y, int32_t z, int32_t w,
                                                   uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

static __device__ __forceinline__ void tma_load_5d(void *destination, const CUtensorMap *map,
                                                   int32_t x, int32_t y, int32_t z, int32_t w,
                                                   int32_t v, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}

/* PTX ISA: cp.async.bulk.tensor in im2col mode. The map is made by cuTensorMapEncodeIm2col. The
 * coordinates name the first pixel, from the lower corner of the map's box of pixels on; one copy
 * takes pixels_per_column pixels in the order of that box, and of each the same channels. The
 * offsets shift every pixel: they are the position in the filter. */
static __device__ __forceinline__ void tma_load_3d_im2col(void *destination, const CUtensorMap *map,
                                                          int32_t channel, int32_t w, int32_t image,
                                                          uint16_t offset_w, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5}], [%2], {%6};" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(w), "r"(image), "h"(offset_w)
      : "memory");
}

static __device__ __forceinline__ void tma_load_4d_im2col(void *destination, const CUtensorMap *map,
                                                          int32_t channel, int32_t w, int32_t h,
                                                          int32_t image, uint16_t offset_w,
                                                          uint16_t offset_h, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(w), "r"(h), "r"(image),
      "h"(offset_w), "h"(offset_h)
      : "memory");
}

static __device__ __forceinline__ void tma_load_5d_im2col(void *destination, const CUtensorMap *map,
                                                          int32_t channel, int32_t w, int32_t h,
                                                          int32_t d, int32_t image,
                                                          uint16_t offset_w, uint16_t offset_h,
                                                          uint16_t offset_d, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(w), "r"(h), "r"(d), "r"(image),
      "h"(offset_w), "h"(offset_h), "h"(offset_d)
      : "memory");
}

/* PTX ISA: cp.async.bulk and cp.async.bulk.tensor with the destination .shared::cta (PTX 8.6 and
 * newer). Destination and barrier are this block's own, as they always are above: the other
 * spelling only says that they could lie in a peer. */
static __device__ __forceinline__ void bulk_load_cta(void *destination, const void *source,
                                                     uint32_t bytes, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(destination)),
      "l"(source), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

static __device__ __forceinline__ void tma_load_1d_cta(void *destination, const CUtensorMap *map,
                                                       int32_t x, uint64_t *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3}], [%2];" ::"r"(shared_address(destination)),
      "l"(map), "r"(shared_address(barrier)), "r"(x)
      : "memory");
}

#endif
