// pitfall buffer_too_small: the tile reaches over the barrier behind it
//   H200: right results
//   report: barrier-overwritten
//
// The buffer was sized for 16-bit elements, and the elements have 32 bits: the copy writes twice as
// far, over the barrier that is to count it. The engine knows the box, but not how large the buffer
// is. It stops only at the end of the block's shared memory.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. The
// chip keeps the state of a barrier outside its word, and nothing uses the bytes after it. On a
// matrix of 4096 x 4096 some barriers were written back, over the tile: each run had between 6 and
// 10 wrong elements among 16 million.
#include <stdio.h>
#include <stdlib.h>

#include "../tma_load.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 64,
  COLUMNS = 64,
  TILE = 32,
  TILE_ELEMENTS = TILE * TILE,
  TILE_BYTES = TILE_ELEMENTS * sizeof(int),
  TILE_ROOM = TILE_ELEMENTS * sizeof(short),
  SHARED_BYTES = 8192,
};

// Shared memory is laid out by hand: the tile, then the barrier, then room for other things.
__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) unsigned char shared[SHARED_BYTES];
  int *tile = (int *)shared;
  uint64_t *barrier = (uint64_t *)(shared + TILE_ROOM);
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(barrier, TILE_BYTES);
    tma_load_2d(tile, &map, first_column, first_row, barrier);
  }
  mbarrier_wait_parity(barrier, 0);
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
    copy[(first_row + i / TILE) * COLUMNS + first_column + i % TILE] = tile[i];
  }
}

int main(int argc, char **argv) {
  program_begin("buffer_too_small", argc, argv, NULL, 0);
  static int matrix[ROWS * COLUMNS], got[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (int)(i + 1);
  int *device_matrix, *device_copy;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_copy, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device_copy, 0xff, sizeof got));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = device_matrix,
                       .size = {COLUMNS, ROWS},
                       .box = {TILE, TILE}};
  CUtensorMap map = tensor_map_encode("matrix", &request);
  load<<<dim3(COLUMNS / TILE, ROWS / TILE), 128>>>(map, device_copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, device_copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("copy", ELEMENT_S32, got, matrix, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(device_copy));
  return program_end("every element of 4 tiles");
}
