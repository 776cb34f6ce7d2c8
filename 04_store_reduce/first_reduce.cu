// 04 first_reduce: the smallest complete TMA reduction. Four blocks add a tile of ones to the same
// 8x16 tile of a matrix, at the same time, and no update is lost.
#include <stdio.h>

#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_reduce.cuh"

enum { ROWS = 32, COLUMNS = 64, TILE_ROWS = 8, TILE_COLUMNS = 16, TILE_X = 16, TILE_Y = 8 };
enum { BLOCKS = 4 };

__global__ void add_one(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[TILE_ROWS][TILE_COLUMNS];
  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += blockDim.x) {
    tile[i / TILE_COLUMNS][i % TILE_COLUMNS] = 1;
  }
  fence_proxy_async();  // as for a store: every thread that wrote,
  __syncthreads();      // then all meet

  if (threadIdx.x == 0) {
    tma_reduce_add_2d(&map, tile, TILE_X, TILE_Y);  // matrix += tile, element by element
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

int main(int argc, char **argv) {
  program_begin("first_reduce", argc, argv, NULL, 0);
  static int matrix[ROWS][COLUMNS], expected[ROWS][COLUMNS];
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) matrix[row][column] = 100 * row + column;
  void *device_matrix;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {COLUMNS, ROWS},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  add_one<<<BLOCKS, 32>>>(tensor_map_encode("matrix", &map));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(matrix, device_matrix, sizeof matrix, cudaMemcpyDeviceToHost));

  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) {
      bool inside = row >= TILE_Y && row < TILE_Y + TILE_ROWS && column >= TILE_X &&
                    column < TILE_X + TILE_COLUMNS;
      expected[row][column] = 100 * row + column + (inside ? BLOCKS : 0);
    }
  check_tile("matrix", ELEMENT_S32, matrix, expected, ROWS, COLUMNS, 0);
  const int *at = &matrix[TILE_Y][TILE_X];
  printf("row %d, columns %d to %d: %d %d | %d %d\n", TILE_Y, TILE_X - 2, TILE_X + 1, at[-2],
         at[-1], at[0], at[1]);
  return program_end("%d blocks added to one tile, every element of the matrix", BLOCKS);
}
