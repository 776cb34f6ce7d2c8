// 01 first_copy: 32 threads fetch an 8x16 tile of a 32x64 matrix; each computes its own addresses.
#include <stdio.h>

#include "check.h"
#include "tile.h"

enum { ROWS = 32, COLUMNS = 64, TILE_ROWS = 8, TILE_COLUMNS = 16, TILE_X = 16, TILE_Y = 8 };
typedef int Tile[TILE_ROWS][TILE_COLUMNS];

__global__ void copy_one(const int *matrix, Tile *result) {
  __shared__ Tile tile;

  // Each thread fetches every 32nd element. For each it needs a row, a column and an address.
  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += blockDim.x) {
    int row = i / TILE_COLUMNS, column = i % TILE_COLUMNS;
    tile[row][column] = matrix[(TILE_Y + row) * COLUMNS + TILE_X + column];
  }
  __syncthreads();  // a thread may now read what another one fetched

  // Here a real kernel computes with the tile. This one writes it out, so that main can check it.
  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += blockDim.x) {
    (*result)[i / TILE_COLUMNS][i % TILE_COLUMNS] = tile[i / TILE_COLUMNS][i % TILE_COLUMNS];
  }
}

int main(int argc, char **argv) {
  program_begin("first_copy", argc, argv, NULL, 0);
  static int matrix[ROWS][COLUMNS];
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) matrix[row][column] = 100 * row + column;
  int *device_matrix;
  Tile *device_tile, tile, expected;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_tile, sizeof tile));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));

  copy_one<<<1, 32>>>(device_matrix, device_tile);
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
