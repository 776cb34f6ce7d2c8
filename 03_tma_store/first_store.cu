// 03 first_store: the smallest complete TMA store. A block fills an 8x16 tile, and one thread sends
// it into a 32x64 matrix of zeros.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_store.cuh"

enum { ROWS = 32, COLUMNS = 64, TILE_ROWS = 8, TILE_COLUMNS = 16, TILE_X = 16, TILE_Y = 8 };

__global__ void store_one(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[TILE_ROWS][TILE_COLUMNS];
  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += blockDim.x) {
    tile[i / TILE_COLUMNS][i % TILE_COLUMNS] = 1000 + i;
  }
  fence_proxy_async();  // every thread that wrote: the copy engine will see these writes
  __syncthreads();      // every thread has written and fenced

  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, TILE_X, TILE_Y);  // start the copy; do not wait for it
    bulk_commit_group();                       // the stores so far are one group
    bulk_wait_group_read<0>();                 // the engine has read the tile: the block may end
  }
}

int main(int argc, char **argv) {
  program_begin("first_store", argc, argv, NULL, 0);
  static int matrix[ROWS][COLUMNS], expected[ROWS][COLUMNS];
  void *device_matrix;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMemset(device_matrix, 0, sizeof matrix));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {COLUMNS, ROWS},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  store_one<<<1, 32>>>(tensor_map_encode("matrix", &map));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(matrix, device_matrix, sizeof matrix, cudaMemcpyDeviceToHost));

  for (int i = 0; i < TILE_ROWS * TILE_COLUMNS; i++) {
    expected[TILE_Y + i / TILE_COLUMNS][TILE_X + i % TILE_COLUMNS] = 1000 + i;
  }
  check_tile("matrix", ELEMENT_S32, matrix, expected, ROWS, COLUMNS, 0);
  TilePicture picture = {"the matrix around the upper left corner of the tile", ELEMENT_S32};
  picture.data = &matrix[TILE_Y - 2][TILE_X - 2], picture.pitch = COLUMNS;
  picture.rows = TILE_ROWS + 3, picture.columns = 9;
  picture.first_row = TILE_Y - 2, picture.first_column = TILE_X - 2;
  tile_print(&picture);
  return program_end("one %dx%d tile stored, every element of the matrix", TILE_ROWS, TILE_COLUMNS);
}
