// pitfall volatile_instead_of_fence: volatile stores under a lock that is released without a fence
//   H200: right results
//   report: volatile-race
//
// Each block takes a lock and fills the same row with its own number. Whichever block is last, the
// row must hold one number only. Volatile keeps the compiler from moving or dropping the stores, but
// the hardware may still let another block see the free lock before it sees all of the row: then
// stores of two blocks mix. A fence before the lock is released prevents that.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>

#include "check.h"

enum { ELEMENTS = 32, BLOCKS = 16 };

__global__ void fill_row(volatile int *row, int *lock) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) continue;
    __threadfence();
  }
  __syncwarp();
  row[threadIdx.x] = blockIdx.x + 1;
  __syncwarp();
  if (threadIdx.x == 0) {
    atomicExch(lock, 0);
  }
}

int main(int argc, char **argv) {
  program_begin("volatile_instead_of_fence", argc, argv, NULL, 0);
  int *row, *lock;
  CUDA_CHECK(cudaMalloc(&row, ELEMENTS * sizeof *row));
  CUDA_CHECK(cudaMalloc(&lock, sizeof *lock));
  CUDA_CHECK(cudaMemset(row, 0, ELEMENTS * sizeof *row));
  CUDA_CHECK(cudaMemset(lock, 0, sizeof *lock));
  fill_row<<<BLOCKS, ELEMENTS>>>(row, lock);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  int got[ELEMENTS], expected[ELEMENTS];
  CUDA_CHECK(cudaMemcpy(got, row, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++) expected[i] = got[0];
  check_tile("row", ELEMENT_S32, got, expected, 1, ELEMENTS, 0);
  check_that(got[0] >= 1 && got[0] <= BLOCKS, "the row holds the number of a block, not %d",
             got[0]);
  CUDA_CHECK(cudaFree(row));
  CUDA_CHECK(cudaFree(lock));
  return program_end("all %d elements from one block", ELEMENTS);
}
