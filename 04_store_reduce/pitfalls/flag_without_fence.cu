// pitfall flag_without_fence: a block reads what a flag announces, with no fence after the flag
//   H200: right results
//   report: flag-without-fence
//
// Block 0 writes a row, executes a fence and sets a flag. Block 1 waits for the flag and reads the
// row. A volatile load only makes sure that the flag is read each time. It does not order the loads
// that follow, and neither does __syncthreads(), whose order is that of one block: they may read
// values from before the flag. The reader needs a fence as well, or ld.acquire.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>

#include "check.h"

enum { ELEMENTS = 128 };

__global__ void pass_on(int *row, volatile int *flag, int *result) {
  int element = threadIdx.x;
  if (blockIdx.x == 0) {
    row[element] = 3 * element + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      *flag = 1;
    }
  } else {
    if (threadIdx.x == 0) {
      while (*flag == 0) continue;
    }
    __syncthreads();
    result[element] = row[element];
  }
}

int main(int argc, char **argv) {
  program_begin("flag_without_fence", argc, argv, NULL, 0);
  int *row, *flag, *result;
  CUDA_CHECK(cudaMalloc(&row, ELEMENTS * sizeof *row));
  CUDA_CHECK(cudaMalloc(&flag, sizeof *flag));
  CUDA_CHECK(cudaMalloc(&result, ELEMENTS * sizeof *result));
  CUDA_CHECK(cudaMemset(row, 0, ELEMENTS * sizeof *row));
  CUDA_CHECK(cudaMemset(flag, 0, sizeof *flag));
  pass_on<<<2, ELEMENTS>>>(row, flag, result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  int got[ELEMENTS], expected[ELEMENTS];
  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++) expected[i] = 3 * i + 1;
  check_tile("row", ELEMENT_S32, got, expected, 1, ELEMENTS, 0);
  CUDA_CHECK(cudaFree(row));
  CUDA_CHECK(cudaFree(flag));
  CUDA_CHECK(cudaFree(result));
  return program_end("every element of the row");
}
