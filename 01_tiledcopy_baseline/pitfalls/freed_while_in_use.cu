// pitfall freed_while_in_use: one stream frees memory that another stream still works on
//   H200: right results
//   report: freed-while-in-use
//
// cudaFree waits until the device is idle. cudaFreeAsync waits only for the earlier work of its own
// stream. If other streams still use the memory, the program must order that itself. Otherwise the
// pool may hand the memory to the next allocation while a kernel is still writing to it.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 64, COLUMNS = 64 };

__global__ void fill(uint32_t *scratch, uint32_t *result) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  scratch[i] = i + 1;
  result[i] = scratch[i];
}

int main(int argc, char **argv) {
  program_begin("freed_while_in_use", argc, argv, NULL, 0);
  enum { BYTES = ROWS * COLUMNS * sizeof(uint32_t) };
  static uint32_t got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  uint32_t *scratch, *result;
  cudaStream_t owner, worker;
  cudaEvent_t done;
  CUDA_CHECK(cudaMalloc(&result, BYTES));
  CUDA_CHECK(cudaStreamCreate(&owner));
  CUDA_CHECK(cudaStreamCreate(&worker));
  CUDA_CHECK(cudaEventCreate(&done));
  CUDA_CHECK(cudaMallocAsync(&scratch, BYTES, owner));
  CUDA_CHECK(cudaEventRecord(done, owner));
  CUDA_CHECK(cudaStreamWaitEvent(worker, done, 0));
  fill<<<ROWS * COLUMNS / 256, 256, 0, worker>>>(scratch, result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaEventRecord(done, worker));
  CUDA_CHECK(cudaFreeAsync(scratch, owner));
  CUDA_CHECK(cudaDeviceSynchronize());

  for (int i = 0; i < ROWS * COLUMNS; i++) expected[i] = i + 1;
  CUDA_CHECK(cudaMemcpy(got, result, BYTES, cudaMemcpyDeviceToHost));
  check_tile("result", ELEMENT_U32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaEventDestroy(done));
  CUDA_CHECK(cudaStreamDestroy(owner));
  CUDA_CHECK(cudaStreamDestroy(worker));
  CUDA_CHECK(cudaFree(result));
  return program_end("every element of a matrix");
}
