// pitfall read_in_the_other_branch: half of a warp reads what the other half writes, in two branches
//   H200: wrong results
//   report: lane-race
//
// Lanes 0 to 15 fetch an element each, and lanes 16 to 31 read them. The source has the write first,
// but the two branches of an `if` may run in either order, or in turns: since Volta each lane has its
// own place in the program. What the last round has left in shared memory is read instead.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 32, COLUMNS = 32, HALF = 16 };

// One warp moves 16 elements at a time: its first half fetches them, its second half stores them.
__global__ void copy_by_halves(const uint16_t *source, uint16_t *destination) {
  __shared__ uint16_t fetched[HALF];
  int lane = threadIdx.x;
  if (lane < HALF) fetched[lane] = 0;
  __syncwarp();
  for (int i = 0; i < ROWS * COLUMNS; i += HALF) {
    if (lane < HALF) {
      __nanosleep(lane * 20);
      fetched[lane] = source[i + lane];
    } else {
      destination[i + lane - HALF] = fetched[lane - HALF];
    }
    __syncwarp();
  }
}

int main(int argc, char **argv) {
  program_begin("read_in_the_other_branch", argc, argv, NULL, 0);
  static uint16_t matrix[ROWS * COLUMNS], got[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (uint16_t)(i + 1);
  uint16_t *source, *destination;
  CUDA_CHECK(cudaMalloc(&source, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&destination, sizeof got));
  CUDA_CHECK(cudaMemcpy(source, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(destination, 0xff, sizeof got));
  copy_by_halves<<<1, 2 * HALF>>>(source, destination);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, destination, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("copy", ELEMENT_U16, got, matrix, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(source));
  CUDA_CHECK(cudaFree(destination));
  return program_end("every element of %d", ROWS * COLUMNS);
}
