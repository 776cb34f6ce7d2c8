// pitfall missing_syncwarp: a warp exchanges values through shared memory without __syncwarp()
//   H200: right results
//   report: lane-race
//
// Each warp transposes small tiles of its own, so no other warp is involved and __syncthreads()
// would be too much. That does not mean that nothing is needed: since Volta the lanes of a warp run
// independently. A lane may read a place that another lane has not written yet, and the compiler
// may move a read before a write, because nothing says that another lane is involved.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 32, COLUMNS = 32, WARPS = 4, TILE_ROWS = 4, TILE_COLUMNS = 8, TILE_ELEMENTS = 32 };

// Each warp takes every WARPS-th tile of 4 x 8 elements, one element per lane, and writes it back
// with the order of its elements transposed.
__global__ void transpose_tiles(const uint16_t *source, uint16_t *destination) {
  __shared__ uint16_t tiles[WARPS][TILE_ELEMENTS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint16_t *tile = tiles[warp];
  for (int i = warp; i < ROWS * COLUMNS / TILE_ELEMENTS; i += WARPS) {
    tile[lane] = source[i * TILE_ELEMENTS + lane];
    destination[i * TILE_ELEMENTS + lane] =
        tile[lane % TILE_ROWS * TILE_COLUMNS + lane / TILE_ROWS];
  }
}

int main(int argc, char **argv) {
  program_begin("missing_syncwarp", argc, argv, NULL, 0);
  static uint16_t matrix[ROWS * COLUMNS], got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (uint16_t)(i + 1);
  uint16_t *source, *destination;
  CUDA_CHECK(cudaMalloc(&source, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&destination, sizeof got));
  CUDA_CHECK(cudaMemcpy(source, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(destination, 0xff, sizeof got));
  transpose_tiles<<<1, WARPS * 32>>>(source, destination);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, destination, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    int lane = i % TILE_ELEMENTS, first = i - lane;
    expected[i] = matrix[first + lane % TILE_ROWS * TILE_COLUMNS + lane / TILE_ROWS];
  }
  check_tile("result", ELEMENT_U16, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(source));
  CUDA_CHECK(cudaFree(destination));
  return program_end("every element of %d tiles", ROWS * COLUMNS / TILE_ELEMENTS);
}
