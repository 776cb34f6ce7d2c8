// pitfall box_wider_than_the_span: the box has rows of 256 bytes, the swizzle spans 128
//   H200: CUDA_ERROR_INVALID_VALUE
//   report: refused-tensor-map
//
// A swizzle exchanges columns within its span, and a row of the box must fit into one span. The
// driver refuses a wider box with "invalid value", without saying which value. Wider tiles are
// split into groups of columns, one span each. A 3D map fetches all groups in one copy
// (swizzle_3d.cu). The fixed program issues one copy for each group.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// CUDA_ERROR_INVALID_VALUE. (Programs print the runtime's name for the same number,
// cudaErrorInvalidValue.)
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../swizzle.h"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 32,
  COLUMNS = 64,     // of 4 bytes
  BOX_COLUMNS = 64  // of one copy
};
enum {
  GROUPS = COLUMNS / BOX_COLUMNS,
  ELEMENTS = ROWS * COLUMNS,
  GROUP_ELEMENTS = ELEMENTS / GROUPS,
  TILE_BYTES = ELEMENTS * 4,
  THREADS = 128
};

__global__ void take(const __grid_constant__ CUtensorMap map, uint32_t *copy) {
  __shared__ alignas(1024) uint32_t tile[GROUPS][GROUP_ELEMENTS];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    for (int group = 0; group < GROUPS; group++) {
      tma_load_2d(tile[group], &map, group * BOX_COLUMNS, 0, &full);
    }
  }
  __syncthreads();
  mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < ELEMENTS; i += blockDim.x) {
    int row = i / COLUMNS, column = i % COLUMNS;
    uint32_t place = (row * BOX_COLUMNS + column % BOX_COLUMNS) * 4;
    copy[i] = tile[column / BOX_COLUMNS][swizzle_128b(place) / 4];
  }
}

int main(int argc, char **argv) {
  program_begin("box_wider_than_the_span", argc, argv, NULL, 0);
  static uint32_t host[ELEMENTS], got[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) host[i] = (uint32_t)i + 1;
  uint32_t *tensor, *copy;
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&copy, sizeof got));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(copy, 0, sizeof got));
  void *entry;
  enum cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                              cudaEnableDefault, &found));
  decltype(&cuTensorMapEncodeTiled) encode = (decltype(&cuTensorMapEncodeTiled))entry;
  CUtensorMap map;
  cuuint64_t size[] = {COLUMNS, ROWS}, stride_bytes[] = {COLUMNS * 4};
  cuuint32_t box[] = {BOX_COLUMNS, ROWS}, element_stride[] = {1, 1};
  CU_CHECK(encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, tensor, size, stride_bytes, box,
                  element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  take<<<1, THREADS>>>(map, copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("the tile", ELEMENT_U32, got, host, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(copy));
  return program_end("every element of a tile");
}
