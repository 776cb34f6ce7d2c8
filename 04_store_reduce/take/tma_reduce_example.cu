// Four blocks compute a part of every tile of a matrix each; the copy engine adds up the parts.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' tma_reduce_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>

#include "tma_reduce.cuh"

using namespace tma;

enum { ROWS = 64, COLUMNS = 96, TILE_ROWS = 32, TILE_COLUMNS = 32, PARTS = 4 };

__global__ void add_part(const __grid_constant__ CUtensorMap map) {
  __shared__ __align__(128) float tile[TILE_ROWS][TILE_COLUMNS];
  int x = blockIdx.x * TILE_COLUMNS, y = blockIdx.y * TILE_ROWS, part = blockIdx.z;
  for (int row = 0; row < TILE_ROWS; row++) {
    tile[row][threadIdx.x] = (float)(part + 1) * (y + row);
  }
  fence_proxy_async();  // in every thread that wrote: the copy engine must see it
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_reduce_add_2d(&map, tile, x, y);  // matrix[y...][x...] += tile, each element atomically
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
  static float matrix[ROWS][COLUMNS];
  float *device_matrix;
  int wrong = 0;
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMemset(device_matrix, 0, sizeof matrix));  // sums begin at zero

  uint64_t size[] = {COLUMNS, ROWS};                    // innermost dimension first
  uint64_t stride_bytes[] = {COLUMNS * sizeof(float)};  // from one row to the next
  uint32_t box[] = {TILE_COLUMNS, TILE_ROWS};
  CUtensorMap map;
  check(tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, device_matrix, size,
                         stride_bytes, box, CU_TENSOR_MAP_SWIZZLE_NONE));
  add_part<<<dim3(COLUMNS / TILE_COLUMNS, ROWS / TILE_ROWS, PARTS), TILE_COLUMNS>>>(map);
  check(cudaGetLastError());
  check(cudaMemcpy(matrix, device_matrix, sizeof matrix, cudaMemcpyDeviceToHost));
  for (int row = 0; row < ROWS; row++) {
    // 1 + 2 + 3 + 4 = 10 times the row; whole numbers this small are exact in any order.
    for (int column = 0; column < COLUMNS; column++) wrong += matrix[row][column] != 10.0f * row;
  }
  printf("%d sums of %d parts, %d wrong\n", (int)(ROWS * COLUMNS), (int)PARTS, wrong);
  return wrong != 0;
}
