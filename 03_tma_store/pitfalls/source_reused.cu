// pitfall source_reused: the buffer is refilled while the store still reads it
//   H200: right results
//   report: source-reused-before-read
//
// The store was issued, and all threads have met after it. But issued is not finished. The engine
// may not have read a single byte of the tile when the threads write the next one over it. Before
// the barrier that lets them go on, the thread that issued the store must wait until the engine has
// read the tile: wait_group.read.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time, also
// on a matrix of 4096 x 4096. The engine has read 4 KiB before the threads, which meet first, write
// the next tile. With 32 KiB it had not: chapter 04's source_changed_during_reduce went wrong each
// time.
#include <stdio.h>
#include <stdlib.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../tma_store.cuh"
#include "check.h"
#include "tensor_map.h"

enum { ROWS = 64, COLUMNS = 64, TILE = 32, TILE_ELEMENTS = TILE * TILE };

// One block fills the tiles of a row of tiles, one after the other, in one buffer.
__global__ void fill(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  int first_row = blockIdx.x * TILE;
  for (int first_column = 0; first_column < COLUMNS; first_column += TILE) {
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
      tile[i] = (first_row + i / TILE) * COLUMNS + first_column + i % TILE;
    }
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      tma_store_2d(&map, tile, first_column, first_row);
      bulk_commit_group();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) bulk_wait_group_read<0>();
}

int main(int argc, char **argv) {
  program_begin("source_reused", argc, argv, NULL, 0);
  int *matrix;
  CUDA_CHECK(cudaMalloc(&matrix, ROWS * COLUMNS * sizeof(int)));
  CUDA_CHECK(cudaMemset(matrix, 0xff, ROWS * COLUMNS * sizeof(int)));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = matrix,
                       .size = {COLUMNS, ROWS},
                       .box = {TILE, TILE}};
  CUtensorMap map = tensor_map_encode("matrix", &request);
  fill<<<ROWS / TILE, 128>>>(map);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  static int got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  CUDA_CHECK(cudaMemcpy(got, matrix, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) expected[i] = i;
  check_tile("matrix", ELEMENT_S32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(matrix));
  return program_end("every element of 4 tiles");
}
