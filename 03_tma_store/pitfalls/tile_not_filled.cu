// pitfall tile_not_filled: the store's box is larger than what the threads have filled
//   H200: wrong results
//   report: unwritten-bytes-stored
//
// The kernel computes 28 of every 32 rows of the matrix. The other four belong to someone else and
// must not change. The threads fill 28 rows of their tile, but the tensor map's box has 32. So the
// engine copies four more rows, with whatever shared memory holds there. Rows past the end of the
// matrix would do no harm, because the engine does not write them. These lie inside.
#include <stdio.h>
#include <stdlib.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../tma_store.cuh"
#include "check.h"
#include "tensor_map.h"

enum { COLUMNS = 32, TILES = 2, TILE_ROWS = 28, STEP_ROWS = 32, ROWS = TILES * STEP_ROWS };

__global__ void fill(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[STEP_ROWS * COLUMNS];
  int first_row = blockIdx.x * STEP_ROWS;
  for (int i = threadIdx.x; i < TILE_ROWS * COLUMNS; i += blockDim.x) {
    tile[i] = first_row * COLUMNS + i;
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, 0, first_row);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

int main(int argc, char **argv) {
  program_begin("tile_not_filled", argc, argv, NULL, 0);
  int *matrix;
  CUDA_CHECK(cudaMalloc(&matrix, ROWS * COLUMNS * sizeof(int)));
  CUDA_CHECK(cudaMemset(matrix, 0x11, ROWS * COLUMNS * sizeof(int)));
  uint32_t box_rows = STEP_ROWS;
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = matrix,
                       .size = {COLUMNS, ROWS},
                       .box = {COLUMNS, box_rows}};
  CUtensorMap map = tensor_map_encode("matrix", &request);
  fill<<<TILES, 128>>>(map);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  static int got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  CUDA_CHECK(cudaMemcpy(got, matrix, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++)
    expected[i] = i / COLUMNS % STEP_ROWS < TILE_ROWS ? i : 0x11111111;
  check_tile("matrix", ELEMENT_S32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(matrix));
  return program_end("every element of %d tiles, and the rows between them", TILES);
}
