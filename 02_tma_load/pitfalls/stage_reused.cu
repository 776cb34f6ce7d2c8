// pitfall stage_reused: the next load begins while others still read the tile
//   H200: right results
//   report: stage-reused-too-early
//
// Thread 0 has waited for the tile and read its share, and issues the load of the next tile into
// the same buffer. The other warps may be anywhere, and the engine overwrites what they have not
// read yet. The tile's barrier reports only that the tile has landed. The thread that issues the
// load must also wait until all readers are done.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time.
// Reading the tile takes less time than the first bytes of a load take to arrive. With the last
// warp delayed by 50 microseconds before it reads, the results were wrong.
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

// One block takes the tiles of a row of tiles, one after the other, in one buffer.
__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  __shared__ uint64_t barriers[TILES];
  int first_row = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    for (int i = 0; i < TILES; i++) mbarrier_init(&barriers[i], 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int number = 0; number < TILES; number++) {
    int first_column = number * TILE;
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&barriers[number], TILE_BYTES);
      tma_load_2d(tile, &map, first_column, first_row, &barriers[number]);
    }
    mbarrier_wait_parity(&barriers[number], 0);
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
      copy[(first_row + i / TILE) * COLUMNS + first_column + i % TILE] = tile[i];
    }
  }
}

int main(int argc, char **argv) {
  program_begin("stage_reused", argc, argv, NULL, 0);
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
