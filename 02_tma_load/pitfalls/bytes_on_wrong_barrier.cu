// pitfall bytes_on_wrong_barrier: a copy reports to another barrier than the one that expects it
//   H200: hangs
//   report: hang-bytes-on-another-barrier
//
// Two tiles, two barriers, and one index that was not changed when the line was copied. Barrier 0
// gets the bytes of both tiles. Barrier 1 gets none, so the wait for it never ends. A wait for
// barrier 0 may even end when the other tile has landed and its own has not.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run hung.
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
  __shared__ alignas(128) int tiles[2][TILE_ELEMENTS];
  __shared__ uint64_t barriers[2];
  int first_row = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    mbarrier_init(&barriers[0], 1);
    mbarrier_init(&barriers[1], 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barriers[0], TILE_BYTES);
    tma_load_2d(tiles[0], &map, 0, first_row, &barriers[0]);
    mbarrier_arrive_expect_tx(&barriers[1], TILE_BYTES);
    tma_load_2d(tiles[1], &map, TILE, first_row, &barriers[0]);
  }
  mbarrier_wait_parity(&barriers[0], 0);
  mbarrier_wait_parity(&barriers[1], 0);
  for (int i = threadIdx.x; i < 2 * TILE_ELEMENTS; i += blockDim.x) {
    int tile = i / TILE_ELEMENTS, row = i % TILE_ELEMENTS / TILE, column = i % TILE;
    copy[(first_row + row) * COLUMNS + tile * TILE + column] = tiles[tile][row * TILE + column];
  }
}

int main(int argc, char **argv) {
  program_begin("bytes_on_wrong_barrier", argc, argv, NULL, 0);
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
  load<<<ROWS / TILE, 128>>>(map, device_copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, device_copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("copy", ELEMENT_S32, got, matrix, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(device_matrix));
  CUDA_CHECK(cudaFree(device_copy));
  return program_end("every element of 4 tiles");
}
