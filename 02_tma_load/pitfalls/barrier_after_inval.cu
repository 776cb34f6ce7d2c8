// pitfall barrier_after_inval: the barrier is invalidated in the loop and used again
//   H200: right results
//   report: mbarrier-after-inval
//
// mbarrier_inval ends the barrier's life: its eight bytes are ordinary memory again. The loop calls
// it after every tile, as one frees what one has allocated. But the barrier was made once, before
// the loop. After the inval it needs a new init, a fence and a __syncthreads(). It is better to
// call inval only after the last use.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. The
// barrier continued where it had been, even when the program wrote something else into its eight
// bytes after the inval: this chip did not look at them. PTX promises nothing of the kind.
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

// One block takes the tiles of a row of tiles, one after the other, in one buffer.
__global__ void load(const __grid_constant__ CUtensorMap map, int *copy) {
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  int first_row = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int number = 0; number < COLUMNS / TILE; number++) {
    int first_column = number * TILE;
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
      tma_load_2d(tile, &map, first_column, first_row, &barrier);
    }
    mbarrier_wait_parity(&barrier, number & 1);
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
      copy[(first_row + i / TILE) * COLUMNS + first_column + i % TILE] = tile[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) mbarrier_inval(&barrier);
  }
}

int main(int argc, char **argv) {
  program_begin("barrier_after_inval", argc, argv, NULL, 0);
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
