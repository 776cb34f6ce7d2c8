// pitfall block_fence_between_blocks: the last block sums up, after fences that reach one block only
//   H200: right results
//   report: scope-too-narrow
//
// Each block writes its part and takes a ticket; the block with the last ticket adds all parts up.
// The fence must make the part visible before the ticket is. __threadfence_block() does so for the
// threads of the same block only: its scope is .cta. Another block may see the ticket and an old
// part.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>

#include "check.h"

enum { ELEMENTS = 128, BLOCKS = 16 };

static __host__ __device__ float part_of(int block, int element) {
  return (float)(element * 4 + block % 4);
}

__global__ void add_parts(float *parts, unsigned *tickets, float *sums) {
  __shared__ bool is_last;
  int element = threadIdx.x;
  parts[blockIdx.x * ELEMENTS + element] = part_of(blockIdx.x, element);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_block();
    is_last = atomicAdd(tickets, 1) == BLOCKS - 1;
  }
  __syncthreads();
  if (!is_last) return;
  float sum = 0;
  for (int block = 0; block < BLOCKS; block++) sum += parts[block * ELEMENTS + element];
  sums[element] = sum;
}

int main(int argc, char **argv) {
  program_begin("block_fence_between_blocks", argc, argv, NULL, 0);
  float *parts, *sums;
  unsigned *tickets;
  CUDA_CHECK(cudaMalloc(&parts, BLOCKS * ELEMENTS * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&sums, ELEMENTS * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&tickets, sizeof *tickets));
  CUDA_CHECK(cudaMemset(tickets, 0, sizeof *tickets));
  add_parts<<<BLOCKS, ELEMENTS>>>(parts, tickets, sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  float got[ELEMENTS], expected[ELEMENTS];
  CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++) {
    expected[i] = 0;
    for (int block = 0; block < BLOCKS; block++) expected[i] += part_of(block, i);
  }
  check_tile("sums", ELEMENT_F32, got, expected, 1, ELEMENTS, 0);
  CUDA_CHECK(cudaFree(parts));
  CUDA_CHECK(cudaFree(sums));
  CUDA_CHECK(cudaFree(tickets));
  return program_end("the sum of %d parts, every element", BLOCKS);
}
