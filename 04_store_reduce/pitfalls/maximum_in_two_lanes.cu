// pitfall maximum_in_two_lanes: each lane that has the maximum stores its number to one place
//   H200: right results
//   report: lanes-write-one-place
//
// A warp looks for the first column with the largest element of a row. The lane that has this
// element stores its number. If two lanes have it, both store in the same instruction. One of the
// two numbers stays, and nothing says that it is the first one.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time. In
// all eight rows with two maxima the lower lane's number stayed.
#include <stdio.h>

#include "check.h"

enum { ROWS = 16, COLUMNS = 32, PERIOD = 20 };

// One warp searches one row.
__global__ void find_maxima(const int *matrix, int *columns) {
  __shared__ int column;
  int lane = threadIdx.x;
  int mine = matrix[blockIdx.x * COLUMNS + lane];
  int largest = __reduce_max_sync(0xffffffff, mine);
  if (mine == largest) column = lane;
  __syncwarp();
  if (lane == 0) columns[blockIdx.x] = column;
}

int main(int argc, char **argv) {
  program_begin("maximum_in_two_lanes", argc, argv, NULL, 0);
  static int matrix[ROWS * COLUMNS], got[ROWS], expected[ROWS];
  for (int row = 0; row < ROWS; row++) {
    for (int column = COLUMNS - 1; column >= 0; column--) {
      int value = (column + row) % PERIOD + 1;
      matrix[row * COLUMNS + column] = value;
      if (value == PERIOD) expected[row] = column;
    }
  }
  int *device_matrix, *columns;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&columns, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(columns, 0xff, sizeof got));
  find_maxima<<<ROWS, COLUMNS>>>(device_matrix, columns);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, columns, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("columns", ELEMENT_S32, got, expected, 1, ROWS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(columns));
  return program_end("the first maximum of %d rows", ROWS);
}
