// pitfall element_stride_bytes: fewer bytes are expected because of an element stride
//   H200: hangs or right results
//   report: hang-too-few-bytes-expected
//
// The map asks for every second column, so half the bytes are expected. But the element stride of
// the innermost dimension is ignored (interleave NONE): the whole box arrives, with all its
// columns. In the other dimensions a stride does skip elements. tensor_map_copy_bytes knows how
// many bytes a copy brings.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. The
// bytes are counted piece by piece as they land, and the phase completes if the total passes
// through exactly the announced number. Here it did, and the rest of the tile came in time. Which
// totals occur on the way is chance (multiples of 32 bytes, as far as we saw). On a matrix of 4096
// x 4096 the same program hung, and so it did here with 16 bytes more.
#include <stdio.h>
#include <stdlib.h>

#include "../tma_load.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 64,
  COLUMNS = 64,
  TILE = 32,
  TILE_ELEMENTS = TILE * TILE,
  TILE_BYTES = TILE_ELEMENTS * sizeof(int),
};

__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES / 2);
    tma_load_2d(tile, &map, first_column, first_row, &barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
    copy[(first_row + i / TILE) * COLUMNS + first_column + i % TILE] = tile[i];
  }
}

int main(int argc, char **argv) {
  program_begin("element_stride_bytes", argc, argv, NULL, 0);
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
                       .box = {TILE, TILE},
                       .element_stride = {2, 1}};
  CUtensorMap map = tensor_map_encode("matrix", &request);
  load<<<dim3(COLUMNS / TILE, ROWS / TILE), 128>>>(map, device_copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, device_copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("copy", ELEMENT_S32, got, matrix, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(device_copy));
  return program_end("every element of 4 tiles");
}
