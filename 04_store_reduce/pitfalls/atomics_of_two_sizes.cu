// pitfall atomics_of_two_sizes: one word is changed by 64-bit atomics, its half by 32-bit atomics
//   H200: right results
//   report: access-sizes-differ
//
// One 64-bit word holds a sum (upper half) and a count (lower half), so that one atomic changes both.
// Blocks with odd numbers have nothing to add, and count with an atomic on the lower half alone. The
// PTX ISA makes two atomics atomic to each other only if they overlap completely. A 32-bit and a
// 64-bit one do not, so either may be lost.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>

#include "check.h"

enum { PAIRS = 32, BLOCKS = 16 };

__global__ void sum_and_count(unsigned long long *pairs) {
  unsigned long long *pair = &pairs[threadIdx.x];
  unsigned long long value = blockIdx.x % 2 ? 0 : blockIdx.x + 1;
  if (value) {
    atomicAdd(pair, value << 32 | 1);
  } else {
    atomicAdd((unsigned *)pair, 1u);
  }
}

int main(int argc, char **argv) {
  program_begin("atomics_of_two_sizes", argc, argv, NULL, 0);
  unsigned long long *pairs;
  CUDA_CHECK(cudaMalloc(&pairs, PAIRS * sizeof *pairs));
  CUDA_CHECK(cudaMemset(pairs, 0, PAIRS * sizeof *pairs));
  sum_and_count<<<BLOCKS, PAIRS>>>(pairs);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  unsigned long long got[PAIRS];
  CUDA_CHECK(cudaMemcpy(got, pairs, sizeof got, cudaMemcpyDeviceToHost));
  int counts[PAIRS], sums[PAIRS], expected_counts[PAIRS], expected_sums[PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    counts[i] = (int)(unsigned)got[i];
    sums[i] = (int)(got[i] >> 32);
    expected_counts[i] = BLOCKS;
    expected_sums[i] = BLOCKS / 2 * (BLOCKS / 2);  // 1 + 3 + ... + BLOCKS - 1
  }
  check_tile("counts", ELEMENT_S32, counts, expected_counts, 1, PAIRS, 0);
  check_tile("sums", ELEMENT_S32, sums, expected_sums, 1, PAIRS, 0);
  CUDA_CHECK(cudaFree(pairs));
  return program_end("%d counts and %d sums", PAIRS, PAIRS);
}
