// pitfall barrier_init_again: the barrier is initialised anew for every tile
//   H200: right results
//   report: mbarrier-init-again
//
// The loop begins each tile with a fresh barrier, so that it can always wait for parity 0. But the memory
// holds a barrier already, and mbarrier.init on a living one is undefined: its eight bytes may be used
// again, for a new init or for anything else, only after mbarrier.inval. That here no thread still waits
// for the old phase does not change it. It is better to initialise once, and to flip the parity.
//
// Seen on an H200 (28 November 2026, driver 580.159.04, three runs): right results each time.
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
};

// One block takes the tiles of a row of tiles, one after the other, in one buffer.
__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  int first_row = blockIdx.x * TILE;
  for (int number = 0; number < COLUMNS / TILE; number++) {
    int first_column = number * TILE;
    if (threadIdx.x == 0) {
      mbarrier_init(&barrier, 1);
      fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
      tma_load_2d(tile, &map, first_column, first_row, &barrier);
    }
    mbarrier_wait_parity(&barrier, 0);
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
      copy[(first_row + i / TILE) * COLUMNS + first_column + i % TILE] = tile[i];
    }
    __syncthreads();
  }
}

int main(int argc, char **argv) {
  program_begin("barrier_init_again", argc, argv, NULL, 0);
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
  load<<<ROWS / TILE, 128>>>(map, device_copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, device_copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("copy", ELEMENT_S32, got, matrix, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(device_copy));
  return program_end("every element of 4 tiles");
}
