// pitfall arrival_count_too_low: two threads arrive at a barrier that counts one
//   H200: cudaErrorLaunchFailure
//   report: too-many-arrivals
//
// Two threads announce half a tile each, but a phase of the barrier takes only one arrival. So the
// phase may complete with the first half alone, and a thread that reads then finds half a tile. The
// second arrival counts in the next phase, or comes when no arrival is pending any more, which is
// an error of its own.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorLaunchFailure. The second thread arrives while the first half is still in flight: the
// one expected arrival has come, and one more is an error. With the second thread delayed by 50
// microseconds, half of the tile was wrong in one run, and the next run hung.
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
  HALF_ELEMENTS = TILE_ELEMENTS / 2,
  HALF_BYTES = HALF_ELEMENTS * sizeof(int),
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
  // Threads 0 and 64 fetch half a tile each.
  if (threadIdx.x % 64 == 0) {
    int half = threadIdx.x / 64;
    mbarrier_arrive_expect_tx(&barrier, HALF_BYTES);
    tma_load_2d(tile + half * HALF_ELEMENTS, &map, first_column, first_row + half * TILE / 2,
                &barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
    copy[(first_row + i / TILE) * COLUMNS + first_column + i % TILE] = tile[i];
  }
}

int main(int argc, char **argv) {
  program_begin("arrival_count_too_low", argc, argv, NULL, 0);
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
                       .box = {TILE, TILE / 2}};
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
