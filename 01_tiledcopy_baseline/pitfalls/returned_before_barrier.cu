// pitfall returned_before_barrier: threads fetch a part of the tile and return before the barrier
//   H200: right results
//   report: exited-before-barrier
//
// All 128 threads of a block fetch the tile, and only the first warp works with it. So the others
// return, and __syncthreads() comes after that. It does not hang: a barrier waits only for threads
// that have not exited. But it orders the accesses of the threads that arrive at it. No document
// says that it orders what the exited ones have written.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 32, COLUMNS = 32, THREADS = 128 };

// One block fetches the matrix, and its first warp adds up the columns.
__global__ void sum_columns(const uint16_t *matrix, int *sums) {
  __shared__ uint16_t tile[ROWS * COLUMNS];
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) tile[i] = matrix[i];
  if (threadIdx.x >= COLUMNS) return;
  __syncthreads();
  int sum = 0;
  for (int row = 0; row < ROWS; row++) sum += tile[row * COLUMNS + threadIdx.x];
  sums[threadIdx.x] = sum;
}

int main(int argc, char **argv) {
  program_begin("returned_before_barrier", argc, argv, NULL, 0);
  static uint16_t matrix[ROWS * COLUMNS];
  static int got[COLUMNS], expected[COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    matrix[i] = (uint16_t)(i + 1);
    expected[i % COLUMNS] += i + 1;
  }
  uint16_t *device_matrix;
  int *sums;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&sums, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(sums, 0xff, sizeof got));
  sum_columns<<<1, THREADS>>>(device_matrix, sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("sums", ELEMENT_S32, got, expected, 1, COLUMNS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(sums));
  return program_end("the sums of %d columns", COLUMNS);
}
