// Each block loads one tile of a matrix and adds it up.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' tma_load_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>

#include "tma_load.cuh"

using namespace tma;

enum { ROWS = 128, COLUMNS = 96, TILE_ROWS = 32, TILE_COLUMNS = 32 };

__global__ void sum_tiles(const __grid_constant__ CUtensorMap map, int *sums) {
  __shared__ alignas(128) int tile[TILE_ROWS][TILE_COLUMNS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);  // one arrival completes a phase, together with the bytes
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof tile);
    tma_load_2d(tile, &map, blockIdx.x * TILE_COLUMNS, blockIdx.y * TILE_ROWS, &barrier);
  }
  __syncthreads();                    // the barrier is initialised: everybody may wait
  mbarrier_wait_parity(&barrier, 0);  // the first phase has parity 0
  int sum = 0;
  for (int row = 0; row < TILE_ROWS; row++) sum += tile[row][threadIdx.x];
  atomicAdd(&sums[blockIdx.y * gridDim.x + blockIdx.x], sum);
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

int main(void) {
  enum { TILES_DOWN = ROWS / TILE_ROWS, TILES_ACROSS = COLUMNS / TILE_COLUMNS };
  static int matrix[ROWS][COLUMNS], expected[TILES_DOWN][TILES_ACROSS];
  int sums[TILES_DOWN][TILES_ACROSS], *device_matrix, *device_sums, wrong = 0;
  for (int row = 0; row < ROWS; row++) {
    for (int column = 0; column < COLUMNS; column++) {
      matrix[row][column] = row * COLUMNS + column;
      expected[row / TILE_ROWS][column / TILE_COLUMNS] += matrix[row][column];
    }
  }
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMalloc((void **)&device_sums, sizeof sums));
  check(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  check(cudaMemset(device_sums, 0, sizeof sums));

  uint64_t size[] = {COLUMNS, ROWS};                  // innermost dimension first
  uint64_t stride_bytes[] = {COLUMNS * sizeof(int)};  // from one row to the next
  uint32_t box[] = {TILE_COLUMNS, TILE_ROWS};
  CUtensorMap map;
  check(tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, device_matrix, size, stride_bytes,
                         box, CU_TENSOR_MAP_SWIZZLE_NONE));
  sum_tiles<<<dim3(TILES_ACROSS, TILES_DOWN), TILE_COLUMNS>>>(map, device_sums);
  check(cudaGetLastError());
  check(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
  for (int i = 0; i < TILES_DOWN * TILES_ACROSS; i++)
    wrong += (&sums[0][0])[i] != (&expected[0][0])[i];
  printf("%d tiles summed, %d wrong\n", (int)TILES_DOWN * TILES_ACROSS, wrong);
  return wrong != 0;
}
