// pitfall sums_without_atomics: several blocks add to the same sums with += instead of atomicAdd
//   H200: wrong results
//   report: global-race
//
// += is a load, an addition and a store. Between the load and the store of one block another block
// may store its own sum, and that one is lost. Nothing orders the blocks of a grid, so how many
// parts are lost differs from run to run. A reduce of the copy engine, or an atomic, does the three
// steps as one.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): wrong results each time.
#include <stdio.h>

#include "check.h"

enum { ROWS = 8, COLUMNS = 32, ELEMENTS = ROWS * COLUMNS, BLOCKS = 16 };

// Small whole numbers: their sum is exact in any order.
static __host__ __device__ float part_of(int block, int element) {
  return (float)(element * 4 + block % 4);
}

__global__ void add_parts(float *sums) {
  int element = threadIdx.x;
  sums[element] += part_of(blockIdx.x, element);
}

int main(int argc, char **argv) {
  program_begin("sums_without_atomics", argc, argv, NULL, 0);
  float *sums;
  CUDA_CHECK(cudaMalloc(&sums, ELEMENTS * sizeof(float)));
  CUDA_CHECK(cudaMemset(sums, 0, ELEMENTS * sizeof(float)));
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
