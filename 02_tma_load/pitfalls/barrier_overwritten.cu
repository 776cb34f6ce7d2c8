// pitfall barrier_overwritten: clearing the buffer clears the barrier too
//   H200: right results
//   report: barrier-overwritten
//
// The threads clear all of their shared memory before use, including the barrier that thread 0 has
// just initialised. What a store into a live barrier does is undefined. On the H200 the state is
// kept elsewhere until mbarrier.inval, which is why this may even work.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time.
// The chip keeps the state of a barrier outside its word, but only for a limited number of
// barriers. With 64 in one block (32 still worked), or on a matrix of 4096 x 4096, where several
// blocks share an SM, it read the overwritten word back, and each run ended with
// cudaErrorLaunchFailure.
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
  SHARED_WORDS = TILE_ELEMENTS + 2,
};

// Shared memory is laid out by hand: the tile, then the barrier.
__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) int shared[SHARED_WORDS];
  int *tile = shared;
  uint64_t *barrier = (uint64_t *)(shared + TILE_ELEMENTS);
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int i = threadIdx.x; i < SHARED_WORDS; i += blockDim.x) shared[i] = 0;
  fence_proxy_async();
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
  program_begin("barrier_overwritten", argc, argv, NULL, 0);
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
