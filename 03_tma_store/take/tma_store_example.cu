// Each block computes one tile of a matrix in shared memory and stores it with one instruction.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' tma_store_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>

#include "tma_store.cuh"

using namespace tma;

enum { ROWS = 100, COLUMNS = 88, TILE_ROWS = 32, TILE_COLUMNS = 32 };

__global__ void number_elements(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[TILE_ROWS][TILE_COLUMNS];
  int x = blockIdx.x * TILE_COLUMNS, y = blockIdx.y * TILE_ROWS;
  for (int row = 0; row < TILE_ROWS; row++) {
    tile[row][threadIdx.x] = (y + row) * COLUMNS + x + threadIdx.x;
  }
  fence_proxy_async();  // in every thread that wrote: the copy engine must see it
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, x, y);  // what lies outside the matrix is not written
    bulk_commit_group();
    bulk_wait_group_read<0>();  // the block may not end before the engine has read the tile
  }
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

int main(void) {
  static int matrix[ROWS * COLUMNS];
  int *device_matrix, wrong = 0;
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMemset(device_matrix, 0xff, sizeof matrix));

  uint64_t size[] = {COLUMNS, ROWS};                  // innermost dimension first
  uint64_t stride_bytes[] = {COLUMNS * sizeof(int)};  // from one row to the next
  uint32_t box[] = {TILE_COLUMNS, TILE_ROWS};
  CUtensorMap map;
  check(tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, device_matrix, size, stride_bytes,
                         box, CU_TENSOR_MAP_SWIZZLE_NONE));
  dim3 grid((COLUMNS + TILE_COLUMNS - 1) / TILE_COLUMNS, (ROWS + TILE_ROWS - 1) / TILE_ROWS);
  number_elements<<<grid, TILE_COLUMNS>>>(map);
  check(cudaGetLastError());
  check(cudaMemcpy(matrix, device_matrix, sizeof matrix, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) wrong += matrix[i] != i;
  printf("%d elements stored, %d wrong\n", (int)(ROWS * COLUMNS), wrong);
  return wrong != 0;
}
