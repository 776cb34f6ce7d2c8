// pitfall managed_read_too_early: the host reads managed memory while the kernel still writes it
//   H200: wrong results
//   report: host-race
//
// Managed memory has one address for the host and the device, so no cudaMemcpy is needed. But
// cudaMemcpy also waited for the kernel. A launch only starts it: what the host reads right after the
// launch may be old. On a GPU that can share managed memory at any time there is no fault either.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): wrong results each time.
#include <stdio.h>

#include "check.h"

enum { ROWS = 64, COLUMNS = 64, ELEMENTS = ROWS * COLUMNS, THREADS = 256 };

__global__ void square_all(int *matrix) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  matrix[i] = matrix[i] * matrix[i];
}

int main(int argc, char **argv) {
  program_begin("managed_read_too_early", argc, argv, NULL, 0);
  static int got[ELEMENTS], expected[ELEMENTS];
  int *matrix;
  CUDA_CHECK(cudaMallocManaged(&matrix, ELEMENTS * sizeof *matrix));
  for (int i = 0; i < ELEMENTS; i++) {
    matrix[i] = i + 2;
    expected[i] = (i + 2) * (i + 2);
  }
  square_all<<<ELEMENTS / THREADS, THREADS>>>(matrix);
  CUDA_CHECK(cudaGetLastError());
  for (int i = 0; i < ELEMENTS; i++) got[i] = matrix[i];
  CUDA_CHECK(cudaDeviceSynchronize());

  check_tile("squares", ELEMENT_S32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(matrix));
  return program_end("%d squares", ELEMENTS);
}
