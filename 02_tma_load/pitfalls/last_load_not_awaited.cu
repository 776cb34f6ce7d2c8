// pitfall last_load_not_awaited: the kernel ends while a load is on its way
//   H200: right results
//   report: exit-with-copy-in-flight
//
// Each tile is fetched while the one before it is read. After the last tile there is no next one,
// and yet it is fetched: the box lies outside the matrix, zeros are sent, and no thread waits for
// them. When the block ends, the next block gets its shared memory, and the zeros land there.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time,
// by luck.
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
};

// One block takes the tiles of a row of tiles, one after the other: each is fetched while the one
// before it is read, into the other of two buffers.
__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) int tiles[2][TILE_ELEMENTS];
  __shared__ uint64_t barriers[2];
  int first_row = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    mbarrier_init(&barriers[0], 1);
    mbarrier_init(&barriers[1], 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barriers[0], TILE_BYTES);
    tma_load_2d(tiles[0], &map, 0, first_row, &barriers[0]);
  }
  __syncthreads();
  for (int number = 0; number < TILES; number++) {
    int next = number + 1;
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&barriers[next % 2], TILE_BYTES);
      tma_load_2d(tiles[next % 2], &map, next * TILE, first_row, &barriers[next % 2]);
    }
    mbarrier_wait_parity(&barriers[number % 2], number / 2 & 1);
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
      copy[(first_row + i / TILE) * COLUMNS + number * TILE + i % TILE] = tiles[number % 2][i];
    }
    __syncthreads();  // the buffer may be filled again
  }
}

int main(int argc, char **argv) {
  program_begin("last_load_not_awaited", argc, argv, NULL, 0);
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
