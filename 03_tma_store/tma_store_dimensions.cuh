/* tma_store_dimensions.cuh: stores to tensors of 1, 4 and 5 dimensions, and an im2col store.
 *
 * The instruction is that of tma_store.cuh, with another number of coordinates. */
#ifndef TMA_STORE_TMA_STORE_DIMENSIONS_CUH
#define TMA_STORE_TMA_STORE_DIMENSIONS_CUH

#include "tma_store.cuh"

static __device__ __forceinline__ void tma_store_1d(const CUtensorMap *map, const void *source,
                                                    int32_t x) {
  asm volatile(
      "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];" ::"l"(map),
      "r"(shared_address(source)), "r"(x)
      : "memory");
}

static __device__ __forceinline__ void tma_store_4d(const CUtensorMap *map, const void *source,
                                                    int32_t x, int32_t y, int32_t z, int32_t w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group"
      " [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
      "r"(shared_address(source)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

static __device__ __forceinline__ void tma_store_5d(const CUtensorMap *map, const void *source,
                                                    int32_t x, int32_t y, int32_t z, int32_t w,
                                                    int32_t v) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group"
      " [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(map),
      "r"(shared_address(source)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}

/* PTX ISA: cp.async.bulk.tensor in im2col_no_offs mode. The map is made by cuTensorMapEncodeIm2col. The
 * coordinates name the first pixel; the following ones lie in the order of the map's box of pixels,
 * over the ends of rows and images. A store has no offsets: every pixel is written once. */
static __device__ __forceinline__ void tma_store_4d_im2col(const CUtensorMap *map,
                                                           const void *source, int32_t channel,
                                                           int32_t w, int32_t h, int32_t image) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group"
      " [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
      "r"(shared_address(source)), "r"(channel), "r"(w), "r"(h), "r"(image)
      : "memory");
}

#endif
