// pitfall copy_without_event: two streams, and nothing makes the second one wait for the first
//   H200: right results
//   report: stream-race
//
// One stream copies the matrix to the device, and another runs the kernel on it. The host makes the
// calls in the right order, but that orders nothing between streams: their work may run in any
// order, or at the same time. A small copy often finishes in time, and a large one does not.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 64, COLUMNS = 64 };

__global__ void double_elements(uint32_t *matrix) {
  matrix[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}

int main(int argc, char **argv) {
  program_begin("copy_without_event", argc, argv, NULL, 0);
  enum { BYTES = ROWS * COLUMNS * sizeof(uint32_t) };
  static uint32_t got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  uint32_t *matrix, *pinned;
  cudaStream_t copies, kernels;
  cudaEvent_t copied;
  CUDA_CHECK(cudaMalloc(&matrix, BYTES));
  CUDA_CHECK(cudaMallocHost(&pinned, BYTES));
  CUDA_CHECK(cudaStreamCreate(&copies));
  CUDA_CHECK(cudaStreamCreate(&kernels));
  CUDA_CHECK(cudaEventCreate(&copied));
  CUDA_CHECK(cudaMemset(matrix, 0, BYTES));
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    pinned[i] = i + 1;
    expected[i] = 2 * pinned[i];
  }
  CUDA_CHECK(cudaMemcpyAsync(matrix, pinned, BYTES, cudaMemcpyHostToDevice, copies));
  CUDA_CHECK(cudaEventRecord(copied, copies));
  double_elements<<<ROWS * COLUMNS / 256, 256, 0, kernels>>>(matrix);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, matrix, BYTES, cudaMemcpyDeviceToHost));
  check_tile("result", ELEMENT_U32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaEventDestroy(copied));
  CUDA_CHECK(cudaStreamDestroy(copies));
  CUDA_CHECK(cudaStreamDestroy(kernels));
  CUDA_CHECK(cudaFreeHost(pinned));
  CUDA_CHECK(cudaFree(matrix));
  return program_end("every element of a matrix");
}
