// pitfall buffer_sized_by_the_byte_count: the box is narrower than the span, the buffer too small
//   H200: cudaErrorIllegalAddress
//   report: shared-out-of-bounds
//
// Under the 128-byte swizzle every row of a box takes a whole span of 128 bytes in shared memory,
// even when the box is narrower. But only the bytes of the box are copied and counted on the
// barrier: here 32 of every 128. A buffer of that many bytes holds a quarter of the rows, and the
// others are written over whatever follows it.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorIllegalAddress.
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../swizzle.h"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 256,
  COLUMNS = 8,  // 32 bytes, in rows of 128
  ELEMENTS = ROWS * COLUMNS,
  TILE_BYTES = ELEMENTS * 4,
  ROW_BYTES = 128,
  THREADS = 128
};

__global__ void take(const __grid_constant__ CUtensorMap map, uint32_t *copy) {
  __shared__ alignas(1024) uint8_t tile[TILE_BYTES];
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
    uint32_t place = i / COLUMNS * ROW_BYTES + i % COLUMNS * 4;
    copy[i] = *(uint32_t *)(tile + swizzle_128b(place));
  }
}

int main(int argc, char **argv) {
  program_begin("buffer_sized_by_the_byte_count", argc, argv, NULL, 0);
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
