// pitfall shuffle_for_syncwarp: a warp meets at a shuffle and takes it for a __syncwarp()
//   H200: right results
//   report: lanes-met-without-order
//
// Half of a warp fetches elements, and the other half stores them. In between lane 0 tells all
// lanes by a shuffle where the elements belong. No lane leaves a shuffle before all have come to
// it. That looks like a barrier, but a shuffle exchanges registers and orders no memory: what a
// lane has written before it may come after what another lane reads after it.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 32, COLUMNS = 32, HALF = 16, PIECES = ROWS * COLUMNS / HALF };

// One warp moves 16 elements at a time, each piece to the place that `places` names.
__global__ void move_pieces(const uint16_t *source, const int *places, uint16_t *destination) {
  __shared__ uint16_t fetched[HALF];
  int lane = threadIdx.x;
  if (lane < HALF) fetched[lane] = 0;
  __syncwarp();
  for (int i = 0; i < PIECES; i++) {
    int place = 0;
    if (lane < HALF) {
      if (lane == 0) place = places[i];
      for (int wait = 0; wait < i % 8 * 20; wait++) __nanosleep(10);
      fetched[lane] = source[i * HALF + lane];
    }
    place = __shfl_sync(0xffffffff, place, 0);
    if (lane >= HALF) destination[place * HALF + lane - HALF] = fetched[lane - HALF];
    __syncwarp();
  }
}

int main(int argc, char **argv) {
  program_begin("shuffle_for_syncwarp", argc, argv, NULL, 0);
  static uint16_t matrix[ROWS * COLUMNS], got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  static int order[PIECES];
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (uint16_t)(i + 1);
  for (int i = 0; i < PIECES; i++) order[i] = PIECES - 1 - i;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    expected[order[i / HALF] * HALF + i % HALF] = matrix[i];
  }
  uint16_t *source, *destination;
  int *places;
  CUDA_CHECK(cudaMalloc(&source, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&places, sizeof order));
  CUDA_CHECK(cudaMalloc(&destination, sizeof got));
  CUDA_CHECK(cudaMemcpy(source, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(places, order, sizeof order, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(destination, 0xff, sizeof got));
  move_pieces<<<1, 2 * HALF>>>(source, places, destination);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, destination, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("result", ELEMENT_U16, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(source));
  CUDA_CHECK(cudaFree(places));
  CUDA_CHECK(cudaFree(destination));
  return program_end("every element of %d pieces", PIECES);
}
