// pitfall missing_syncthreads: the tile is read before all threads have written it
//   H200: right results
//   report: shared-race
//
// Each thread writes some of the tile and reads what others wrote. A warp that is ahead reads
// places that a slower one has not written yet. Nothing promises an order between warps:
// the same program is right on one chip, at one clock, with one compiler.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time.
// The warps start together, and each waits for its own bytes from global memory before it reads,
// so the others have theirs by then. On a matrix of 4096 x 4096 about 3 of 100 elements were
// wrong.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 64, COLUMNS = 64, TILE = 32, TILE_ELEMENTS = TILE * TILE };

// Transposes every tile on the way: a thread reads what threads of all warps have fetched.
__global__ void transpose_tiles(const uint16_t *source, uint16_t *destination) {
  __shared__ alignas(16) uint16_t tile[TILE_ELEMENTS];
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  size_t start = (size_t)first_row * COLUMNS + first_column;
  copy_tile_scalar(tile, source + start, COLUMNS, TILE, TILE);
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
    int row = i / TILE, column = i % TILE;
    destination[start + (size_t)row * COLUMNS + column] = tile[column * TILE + row];
  }
}

int main(int argc, char **argv) {
  program_begin("missing_syncthreads", argc, argv, NULL, 0);
  static uint16_t matrix[ROWS * COLUMNS], got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (uint16_t)(i + 1);
  uint16_t *source, *destination;
  CUDA_CHECK(cudaMalloc(&source, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&destination, sizeof got));
  CUDA_CHECK(cudaMemcpy(source, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(destination, 0xff, sizeof got));
  transpose_tiles<<<dim3(COLUMNS / TILE, ROWS / TILE), TILEDCOPY_THREADS>>>(source, destination);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, destination, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    int row = i / COLUMNS, column = i % COLUMNS;
    int from_row = row / TILE * TILE + column % TILE;
    int from_column = column / TILE * TILE + row % TILE;
    expected[i] = matrix[from_row * COLUMNS + from_column];
  }
  check_tile("result", ELEMENT_U16, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(source));
  CUDA_CHECK(cudaFree(destination));
  return program_end("every element of 4 tiles");
}
