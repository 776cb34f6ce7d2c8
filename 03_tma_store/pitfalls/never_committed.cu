// pitfall never_committed: the wait has no group to wait for
//   H200: right results
//   report: store-never-committed
//
// wait_group waits for groups, and a store belongs to no group until commit_group makes one of it.
// Without the commit there is nothing to wait for: the wait returns at once. It looks right in
// every review, and does nothing.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. As in
// exit_before_read, the engine reads 4 KiB before the next block gets around to writing there.
#include <stdio.h>
#include <stdlib.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../tma_store.cuh"
#include "check.h"
#include "tensor_map.h"

enum { ROWS = 64, COLUMNS = 64, TILE = 32, TILE_ELEMENTS = TILE * TILE };

__global__ void fill(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
    tile[i] = (first_row + i / TILE) * COLUMNS + first_column + i % TILE;
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, first_column, first_row);
    bulk_wait_group_read<0>();
  }
}

int main(int argc, char **argv) {
  program_begin("never_committed", argc, argv, NULL, 0);
  int *matrix;
  CUDA_CHECK(cudaMalloc(&matrix, ROWS * COLUMNS * sizeof(int)));
  CUDA_CHECK(cudaMemset(matrix, 0xff, ROWS * COLUMNS * sizeof(int)));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = matrix,
                       .size = {COLUMNS, ROWS},
                       .box = {TILE, TILE}};
  CUtensorMap map = tensor_map_encode("matrix", &request);
  fill<<<dim3(COLUMNS / TILE, ROWS / TILE), 128>>>(map);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  static int got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  CUDA_CHECK(cudaMemcpy(got, matrix, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) expected[i] = i;
  check_tile("matrix", ELEMENT_S32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(matrix));
  return program_end("every element of 4 tiles");
}
