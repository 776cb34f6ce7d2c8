// pitfall phase_missed: some threads come to the barrier two phases late
//   H200: hangs
//   report: phase-missed
//
// Parity is one bit: it distinguishes a phase from the one before it, and no more. Here thread 0
// goes through two phases while the others are busy elsewhere. When they wait for parity 0, the
// third phase is running, which also has parity 0, and it never completes. No thread may begin a
// phase before every thread has seen the end of the second-to-last one. A separate barrier for each
// copy guarantees that.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run hung.
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
  TILES = COLUMNS / TILE,
  BARRIERS = 1,
};

__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) int tiles[TILES][TILE_ELEMENTS];
  __shared__ uint64_t barriers[BARRIERS];
  int first_row = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    for (int i = 0; i < BARRIERS; i++) mbarrier_init(&barriers[i], 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int number = 0; number < TILES; number++) {
      uint64_t *barrier = &barriers[number % BARRIERS];
      mbarrier_arrive_expect_tx(barrier, TILE_BYTES);
      tma_load_2d(tiles[number], &map, number * TILE, first_row, barrier);
      mbarrier_wait_parity(barrier, number / BARRIERS & 1);
    }
  }
  __syncthreads();  // the others had something else to do until here
  for (int number = 0; number < TILES; number++) {
    mbarrier_wait_parity(&barriers[number % BARRIERS], number / BARRIERS & 1);
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
      copy[(first_row + i / TILE) * COLUMNS + number * TILE + i % TILE] = tiles[number][i];
    }
  }
}

int main(int argc, char **argv) {
  program_begin("phase_missed", argc, argv, NULL, 0);
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
