// pitfall read_without_unswizzling: a swizzled tile is read as if it lay row by row
//   H200: wrong results
//   report: swizzle-ignored
//   check: layout
//
// The tensor map asks for the 128-byte swizzle, so the engine exchanges the 16-byte columns in all
// rows except every eighth. A reader that takes element (row, column) at row * COLUMNS + column gets
// the right row and the wrong column. Sums over a row are still right, which hides the mistake.
// It is reported only on request: ordinary loads may read a swizzled tile in any order, for instance to
// copy it. EMULATOR_CHECK=layout reports all loads whose addresses jump back and forth in a row.
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
  __shared__ alignas(1024) uint32_t tile[ELEMENTS];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    tma_load_2d(tile, &map, 0, 0, &full);
  }
  __syncthreads();
  mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < ELEMENTS; i += blockDim.x) {
    copy[i] = tile[i];
  }
}

int main(int argc, char **argv) {
  program_begin("read_without_unswizzling", argc, argv, NULL, 0);
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
