// pitfall refused_map: the rows are 248 bytes apart
//   H200: CUDA_ERROR_INVALID_VALUE
//   report: refused-tensor-map
//
// Strides must be multiples of 16 bytes, so rows must be padded: 62 columns of 32 bits are 248
// bytes, 8 too few. The driver's encoder answers CUDA_ERROR_INVALID_VALUE, as it does to every
// mistake. (common/tensor_map.h says which rule was broken. This program asks the driver directly,
// to show what you see without it.)
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// CUDA_ERROR_INVALID_VALUE. (Programs print the runtime's name for the same number,
// cudaErrorInvalidValue.)
#include <stdio.h>
#include <stdlib.h>

#include "../tma_load.cuh"
#include "check.h"

enum {
  ROWS = 64,
  COLUMNS = 62,
  PITCH = 62,  // elements from one row to the next
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
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    tma_load_2d(tile, &map, first_column, first_row, &barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
    int column = first_column + i % TILE;
    if (column < COLUMNS) copy[(first_row + i / TILE) * PITCH + column] = tile[i];
  }
}

int main(int argc, char **argv) {
  program_begin("refused_map", argc, argv, NULL, 0);
  static int matrix[ROWS * PITCH], got[ROWS * PITCH];
  for (int i = 0; i < ROWS * PITCH; i++) matrix[i] = i % PITCH < COLUMNS ? i + 1 : -1;
  int *device_matrix, *copy;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&copy, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(copy, 0xff, sizeof got));

  void *entry = NULL;
  enum cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                              cudaEnableDefault, &found));
  decltype(&cuTensorMapEncodeTiled) encode = (decltype(&cuTensorMapEncodeTiled))entry;
  CUtensorMap map;
  cuuint64_t size[2] = {COLUMNS, ROWS}, stride_bytes[1] = {PITCH * sizeof(int)};
  cuuint32_t box[2] = {TILE, TILE}, element_stride[2] = {1, 1};
  CU_CHECK(encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, device_matrix, size, stride_bytes, box,
                  element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  load<<<dim3((COLUMNS + TILE - 1) / TILE, ROWS / TILE), 128>>>(map, copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("copy", ELEMENT_S32, got, matrix, ROWS, PITCH, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(copy));
  return program_end("every element of 4 tiles");
}
