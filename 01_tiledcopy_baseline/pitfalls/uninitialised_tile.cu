// pitfall uninitialised_tile: part of the tile is read before anything has written it
//   H200: right results
//   report: uninitialised-read
//
// The last tiles reach past the edge of the matrix. The threads fetch only what exists, which is
// right. Then they sum up the whole tile, which is not: the rest of shared memory holds whatever
// was there before, usually the last tile of another block. Nothing sets it to zero.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. In a
// process that had run nothing else, these bytes of shared memory were zero. After a kernel that
// fills shared memory with ones, the results were wrong.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

// The last row of tiles has 16 rows of the matrix and 16 beyond its end.
enum { ROWS = 48, COLUMNS = 64, TILE = 32, TILE_ELEMENTS = TILE * TILE };

// sums[c] of a tile: the sum of its column c.
__global__ void sum_columns(const uint16_t *matrix, uint32_t *sums) {
  __shared__ uint16_t tile[TILE_ELEMENTS];
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
    int row = first_row + i / TILE, column = first_column + i % TILE;
    if (row < ROWS) tile[i] = matrix[row * COLUMNS + column];
  }
  __syncthreads();
  if (threadIdx.x < TILE) {
    uint32_t sum = 0;
    for (int row = 0; row < TILE; row++) sum += tile[row * TILE + threadIdx.x];
    sums[blockIdx.y * COLUMNS + first_column + threadIdx.x] = sum;
  }
}

int main(int argc, char **argv) {
  program_begin("uninitialised_tile", argc, argv, NULL, 0);
  enum { TILE_ROWS = (ROWS + TILE - 1) / TILE };
  static uint16_t matrix[ROWS * COLUMNS];
  static uint32_t got[TILE_ROWS * COLUMNS], expected[TILE_ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    matrix[i] = (uint16_t)(i + 1);
    expected[i / COLUMNS / TILE * COLUMNS + i % COLUMNS] += matrix[i];
  }
  uint16_t *device_matrix;
  uint32_t *sums;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&sums, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  sum_columns<<<dim3(COLUMNS / TILE, TILE_ROWS), TILEDCOPY_THREADS>>>(device_matrix, sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("sums", ELEMENT_U32, got, expected, TILE_ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(sums));
  return program_end("the sums of %d columns in %d rows of tiles", COLUMNS, TILE_ROWS);
}
