// pitfall base_not_1024_aligned: a swizzled tile lies at a multiple of 128 bytes, not of 1024
//   H200: wrong results
//   report: swizzle-base
//   check: layout
//
// The engine accepts 128-byte alignment, and swizzles by the bits of the
// shared-memory *address*. The reader computes with offsets from the
// start of the tile. The two agree only for a tile that starts at a
// multiple of the pattern's length, 1024 bytes. Here the tile starts 128
// bytes past such a multiple, so every row is laid out as the reader
// expects of the next row.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): wrong results each time.
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../swizzle.h"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 64,
  COLUMNS = 32,  // of 4 bytes: one span of the 128-byte swizzle
  ELEMENTS = ROWS * COLUMNS,
  TILE_BYTES = ELEMENTS * 4,
  THREADS = 128
};

__global__ void take(const __grid_constant__ CUtensorMap map, uint32_t *copy) {
  __shared__ alignas(1024) uint8_t buffer[128 + TILE_BYTES];
  __shared__ uint64_t full;
  uint32_t *tile = (uint32_t *)(buffer + 128);  // a header of 128 bytes comes first
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    tma_load_2d(tile, &map, 0, 0, &full);
  }
  __syncthreads();
  mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < ELEMENTS; i += blockDim.x) {
    copy[i] = tile[swizzle_128b(i * 4) / 4];  // byte i * 4 of the tile
  }
}

int main(int argc, char **argv) {
  program_begin("base_not_1024_aligned", argc, argv, NULL, 0);
  static uint32_t host[ELEMENTS], got[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) host[i] = (uint32_t)i + 1;
  uint32_t *tensor, *copy;
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&copy, sizeof got));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(copy, 0, sizeof got));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       .dimensions = 2,
                       .address = tensor,
                       .size = {COLUMNS, ROWS},
                       .box = {COLUMNS, ROWS},
                       .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  take<<<1, THREADS>>>(tensor_map_encode("tensor", &request), copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("the tile", ELEMENT_U32, got, host, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(copy));
  return program_end("every element of a tile");
}
