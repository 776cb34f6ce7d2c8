// pitfall buffer_reused: the next tile is written while others still read this one
//   H200: right results
//   report: shared-race
//
// There is a barrier between writing a tile and reading it, but none between reading it and writing
// the next. A warp that has read its part goes on and writes into the buffer that slower warps are
// still reading. A buffer that is used again needs two barriers per round.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time.
// Between a warp's last read of one tile and its first write of the next there is a load from
// global memory, which takes longer than the warps drift apart. With its last warp delayed by 50
// microseconds before it reads, the program gave wrong results each time.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 64, COLUMNS = 64, TILE = 32, TILE_ELEMENTS = TILE * TILE };

// One block takes the two tiles of a row of tiles, one after the other, in one buffer.
__global__ void transpose_tiles(const uint16_t *source, uint16_t *destination) {
  __shared__ alignas(16) uint16_t tile[TILE_ELEMENTS];
  for (int number = 0; number < COLUMNS / TILE; number++) {
    size_t start = (size_t)blockIdx.x * TILE * COLUMNS + number * TILE;
    copy_tile_scalar(tile, source + start, COLUMNS, TILE, TILE);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
      int row = i / TILE, column = i % TILE;
      destination[start + (size_t)row * COLUMNS + column] = tile[column * TILE + row];
    }
  }
}

int main(int argc, char **argv) {
  program_begin("buffer_reused", argc, argv, NULL, 0);
  static uint16_t matrix[ROWS * COLUMNS], got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (uint16_t)(i + 1);
  uint16_t *source, *destination;
  CUDA_CHECK(cudaMalloc(&source, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&destination, sizeof got));
  CUDA_CHECK(cudaMemcpy(source, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(destination, 0xff, sizeof got));
  transpose_tiles<<<ROWS / TILE, TILEDCOPY_THREADS>>>(source, destination);
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
