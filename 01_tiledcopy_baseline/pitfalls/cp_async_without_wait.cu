// pitfall cp_async_without_wait: cp.async is taken for an ordinary copy
//   H200: wrong results
//   report: read-without-wait
//
// cp.async returns at once, and the bytes arrive later. __syncthreads() does not wait for them: it
// orders what threads have done, and no thread has written these bytes. Each thread must wait for
// its own copies (cp.async.wait_all or wait_group) before the barrier.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): wrong results each time. The
// bytes come from global memory, and the threads had read the tile long before.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 64, COLUMNS = 64, TILE = 32, TILE_ELEMENTS = TILE * TILE };

__global__ void copy_tiles(const uint16_t *source, uint16_t *destination) {
  __shared__ alignas(16) uint16_t tile[TILE_ELEMENTS];
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  size_t start = (size_t)first_row * COLUMNS + first_column;
  for (int i = threadIdx.x * VECTOR_ELEMENTS; i < TILE_ELEMENTS;
       i += blockDim.x * VECTOR_ELEMENTS) {
    cp_async_16(&tile[i], source + start + (size_t)(i / TILE) * COLUMNS + i % TILE);
  }
  __syncthreads();
  put_tile_scalar(destination + start, tile, COLUMNS, TILE, TILE);
}

int main(int argc, char **argv) {
  program_begin("cp_async_without_wait", argc, argv, NULL, 0);
  static uint16_t matrix[ROWS * COLUMNS], got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (uint16_t)(i + 1);
  uint16_t *source, *destination;
  CUDA_CHECK(cudaMalloc(&source, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&destination, sizeof got));
  CUDA_CHECK(cudaMemcpy(source, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(destination, 0xff, sizeof got));
  copy_tiles<<<dim3(COLUMNS / TILE, ROWS / TILE), TILEDCOPY_THREADS>>>(source, destination);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, destination, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    expected[i] = matrix[i];
  }
  check_tile("result", ELEMENT_U16, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(source));
  CUDA_CHECK(cudaFree(destination));
  return program_end("every element of 4 tiles");
}
