// pitfall volatile_for_syncwarp: a warp adds up in shared memory by volatile accesses alone
//   H200: right results
//   report: warp-synchronous
//
// Each round adds the upper half of the values to the lower half. Before Volta the lanes of a warp
// ran in lock step, and volatile was enough: it makes the compiler load and store in each round. No
// document promises lock step any more. A lane may be a round ahead and read a sum that another
// lane has not stored yet.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>

#include "check.h"

enum { ROWS = 16, COLUMNS = 32 };

// One warp adds up one row.
__global__ void sum_rows(const int *matrix, int *sums) {
  __shared__ volatile int values[COLUMNS];
  int lane = threadIdx.x;
  values[lane] = matrix[blockIdx.x * COLUMNS + lane];
  __syncwarp();
  for (int half = COLUMNS / 2; half > 0; half /= 2) {
    if (lane < half) values[lane] += values[lane + half];
  }
  if (lane == 0) sums[blockIdx.x] = values[0];
}

int main(int argc, char **argv) {
  program_begin("volatile_for_syncwarp", argc, argv, NULL, 0);
  static int matrix[ROWS * COLUMNS], got[ROWS], expected[ROWS];
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    matrix[i] = i + 1;
    expected[i / COLUMNS] += i + 1;
  }
  int *device_matrix, *sums;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&sums, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(sums, 0xff, sizeof got));
  sum_rows<<<ROWS, COLUMNS>>>(device_matrix, sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("sums", ELEMENT_S32, got, expected, 1, ROWS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(sums));
  return program_end("the sums of %d rows", ROWS);
}
