// pitfall threadfence_instead: __threadfence_block() stands in for the proxy fence
//   H200: right results
//   report: missing-proxy-fence
//
// A memory fence orders accesses of threads, all made through the generic proxy. The copy engine
// reads through the async proxy, which no such fence affects, not even __threadfence_system(). Only
// fence.proxy.async orders accesses made through the two.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time,
// also on a matrix of 4096 x 4096. They would be right without any fence, as in
// missing_proxy_fence.
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
  __threadfence_block();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, first_column, first_row);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

int main(int argc, char **argv) {
  program_begin("threadfence_instead", argc, argv, NULL, 0);
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
