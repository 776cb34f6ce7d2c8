// 02 first_load: the smallest complete TMA load. One thread fetches an 8x16 tile of a 32x64 matrix.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_load.cuh"

enum { ROWS = 32, COLUMNS = 64, TILE_ROWS = 8, TILE_COLUMNS = 16, TILE_X = 16, TILE_Y = 8 };
typedef int Tile[TILE_ROWS][TILE_COLUMNS];

__global__ void load_one(const __grid_constant__ CUtensorMap map, Tile *result) {
  __shared__ alignas(128) Tile tile;  // TMA writes to multiples of 128 bytes
  __shared__ uint64_t barrier;

  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);                         // a phase needs one arrival
    fence_mbarrier_init();                              // lets the copy engine see the barrier
    mbarrier_arrive_expect_tx(&barrier, sizeof tile);   // arrive, and expect 512 bytes
    tma_load_2d(tile, &map, TILE_X, TILE_Y, &barrier);  // start the copy; do not wait for it
  }
  __syncthreads();                    // now every thread may use the barrier
  mbarrier_wait_parity(&barrier, 0);  // returns when all 512 bytes have landed

  // Here a real kernel computes with the tile. This one writes it out, so that main can check it.
  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += blockDim.x) {
    (*result)[i / TILE_COLUMNS][i % TILE_COLUMNS] = tile[i / TILE_COLUMNS][i % TILE_COLUMNS];
  }
}

int main(int argc, char **argv) {
  program_begin("first_load", argc, argv, NULL, 0);
  static int matrix[ROWS][COLUMNS];
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) matrix[row][column] = 100 * row + column;
  void *device_matrix;
  Tile *device_tile, tile, expected;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_tile, sizeof tile));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {COLUMNS, ROWS},  // the innermost dimension comes first
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  load_one<<<1, 32>>>(tensor_map_encode("matrix", &map), device_tile);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(tile, device_tile, sizeof tile, cudaMemcpyDeviceToHost));

  for (int row = 0; row < TILE_ROWS; row++)
    for (int column = 0; column < TILE_COLUMNS; column++)
      expected[row][column] = matrix[TILE_Y + row][TILE_X + column];
  check_tile("tile", ELEMENT_S32, tile, expected, TILE_ROWS, TILE_COLUMNS, 0);
  TilePicture picture = {"the tile in shared memory", ELEMENT_S32, tile, TILE_ROWS, TILE_COLUMNS};
  picture.first_row = TILE_Y, picture.first_column = TILE_X, picture.shown_columns = 8;
  tile_print(&picture);
  return program_end("one %dx%d tile, every element", TILE_ROWS, TILE_COLUMNS);
}
