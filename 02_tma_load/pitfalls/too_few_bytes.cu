// pitfall too_few_bytes: at the edge only the bytes inside the matrix are expected
//   H200: hangs or right results
//   report: hang-too-few-bytes-expected
//
// The last tiles reach past the edge, so the byte count was made smaller there. But what lies
// outside also arrives, as zeros, and counts: a copy always brings its whole box. The barrier's
// byte count goes below zero and stays there, and the phase never completes.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run hung. But the count
// goes down piece by piece, and if it happens to stop at exactly zero on the way, the phase ends
// early, as element_stride_bytes shows: then the results may be right.
#include <stdio.h>
#include <stdlib.h>

#include "../tma_load.cuh"
#include "check.h"
#include "tensor_map.h"

// The last row of tiles has 24 rows of the matrix and 8 beyond its end.
enum {
  ROWS = 56,
  COLUMNS = 64,
  TILE = 32,
  TILE_ELEMENTS = TILE * TILE,
  TILE_BYTES = TILE_ELEMENTS * sizeof(int),
};

__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  int rows = first_row + TILE <= ROWS ? TILE : ROWS - first_row;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barrier, rows * TILE * (uint32_t)sizeof(int));
    tma_load_2d(tile, &map, first_column, first_row, &barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < rows * TILE; i += blockDim.x) {
    copy[(first_row + i / TILE) * COLUMNS + first_column + i % TILE] = tile[i];
  }
}

int main(int argc, char **argv) {
  program_begin("too_few_bytes", argc, argv, NULL, 0);
  static int matrix[ROWS * COLUMNS], got[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (int)(i + 1);
  int *device_matrix, *device_copy;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_copy, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device_copy, 0xff, sizeof got));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = device_matrix,
                       .size = {COLUMNS, ROWS},
                       .box = {TILE, TILE}};
  CUtensorMap map = tensor_map_encode("matrix", &request);
  load<<<dim3(COLUMNS / TILE, (ROWS + TILE - 1) / TILE), 128>>>(map, device_copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, device_copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("copy", ELEMENT_S32, got, matrix, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(device_copy));
  return program_end("every element of 4 tiles, two of them over the edge");
}
