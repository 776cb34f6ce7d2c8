// pitfall host_buffer_reused: the host fills its buffer again while a copy still reads it
//   H200: right results
//   report: host-touches-copy
//
// cudaMemcpyAsync only starts the copy. The device reads the pinned buffer later, and finds
// whatever the host has written there in the meantime. With pageable memory this works, because the
// call itself reads the buffer. So the mistake appears when someone makes the program faster.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): right results each time.
#include <stdio.h>
#include <stdlib.h>

#include "../tiledcopy.cuh"
#include "check.h"

enum { ROWS = 64, COLUMNS = 64, PARTS = 2 };

int main(int argc, char **argv) {
  program_begin("host_buffer_reused", argc, argv, NULL, 0);
  enum { ELEMENTS = ROWS * COLUMNS / PARTS, PART_BYTES = ELEMENTS * sizeof(uint32_t) };
  static uint32_t got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  uint32_t *matrix, *pinned;
  cudaStream_t stream;
  CUDA_CHECK(cudaMalloc(&matrix, PARTS * PART_BYTES));
  CUDA_CHECK(cudaMallocHost(&pinned, PART_BYTES));
  CUDA_CHECK(cudaStreamCreate(&stream));
  for (int part = 0; part < PARTS; part++) {
    for (int i = 0; i < ELEMENTS; i++) {
      pinned[i] = part * ELEMENTS + i + 1;
      expected[part * ELEMENTS + i] = pinned[i];
    }
    CUDA_CHECK(cudaMemcpyAsync(matrix + part * ELEMENTS, pinned, PART_BYTES, cudaMemcpyHostToDevice,
                               stream));
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));

  CUDA_CHECK(cudaMemcpy(got, matrix, PARTS * PART_BYTES, cudaMemcpyDeviceToHost));
  check_tile("result", ELEMENT_U32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaFreeHost(pinned));
  CUDA_CHECK(cudaFree(matrix));
  return program_end("every element of a matrix in %d parts", PARTS);
}
