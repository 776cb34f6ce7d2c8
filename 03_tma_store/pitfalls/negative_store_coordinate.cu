// pitfall negative_store_coordinate: a tile is stored that begins left of the matrix
//   H200: cudaErrorIllegalInstruction
//   report: negative-store-coordinate
//
// A load may begin outside the tensor on any side. A store may reach past the upper ends, where it
// is clipped, but a coordinate below zero is an illegal instruction. Cut off in shared memory what
// sticks out on the left, or lay out the tiles so that they begin at the edge.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorIllegalInstruction.
#include <stdio.h>
#include <stdlib.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../tma_store.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 64,
  COLUMNS = 64,
  TILE = 32,
  TILE_ELEMENTS = TILE * TILE,
  START = -16,  // of the first tile
};

__global__ void fill(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  int first_row = blockIdx.y * TILE, first_column = START + (int)blockIdx.x * TILE;
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
    tile[i] = (first_row + i / TILE) * COLUMNS + first_column + i % TILE;
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, first_column, first_row);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

int main(int argc, char **argv) {
  program_begin("negative_store_coordinate", argc, argv, NULL, 0);
  int *matrix;
  CUDA_CHECK(cudaMalloc(&matrix, ROWS * COLUMNS * sizeof(int)));
  CUDA_CHECK(cudaMemset(matrix, 0xff, ROWS * COLUMNS * sizeof(int)));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = matrix,
                       .size = {COLUMNS, ROWS},
                       .box = {TILE, TILE}};
  CUtensorMap map = tensor_map_encode("matrix", &request);
  fill<<<dim3((COLUMNS - START + TILE - 1) / TILE, ROWS / TILE), 128>>>(map);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  static int got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  CUDA_CHECK(cudaMemcpy(got, matrix, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) expected[i] = i;
  check_tile("matrix", ELEMENT_S32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(matrix));
  return program_end("every element");
}
