// pitfall sums_not_cleared: blocks add to sums that nothing has set to zero
//   H200: right results
//   report: unwritten-memory-read
//
// Memory from cudaMalloc holds whatever was there before. In a process that has run nothing else
// that is often zero, so the first run is right. The second one, or the same code behind another
// kernel, adds to what that kernel has left behind.
#include <stdio.h>

#include "check.h"

enum { ROWS = 8, COLUMNS = 32, ELEMENTS = ROWS * COLUMNS, BLOCKS = 16, OTHER_SUMS = 1 << 16 };

// Small whole numbers: their sum is exact in any order.
static __host__ __device__ float part_of(int block, int element) {
  return (float)(element * 4 + block % 4);
}

__global__ void leave_ones(float *other_sums) {
  other_sums[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}

__global__ void add_parts(float *sums) {
  atomicAdd(&sums[threadIdx.x], part_of(blockIdx.x, threadIdx.x));
}

int main(int argc, char **argv) {
  program_begin("sums_not_cleared", argc, argv, NULL, 0);
  // Another part of the program has used the memory before.
  float *other_sums, *sums;
  CUDA_CHECK(cudaMalloc(&other_sums, OTHER_SUMS * sizeof(float)));
  leave_ones<<<OTHER_SUMS / ELEMENTS, ELEMENTS>>>(other_sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(other_sums));

  CUDA_CHECK(cudaMalloc(&sums, ELEMENTS * sizeof(float)));
  add_parts<<<BLOCKS, ELEMENTS>>>(sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  float got[ELEMENTS], expected[ELEMENTS];
  CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++) {
    expected[i] = 0;
    for (int block = 0; block < BLOCKS; block++) expected[i] += part_of(block, i);
  }
  check_tile("sums", ELEMENT_F32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(sums));
  return program_end("the sum of %d parts, every element", BLOCKS);
}
