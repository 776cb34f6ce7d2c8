// The transpose of a matrix: a tile is loaded, turned in shared memory and stored. Both tiles lie there
// under the 128-byte swizzle, so neither its rows nor its columns meet in the same banks.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' transpose_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>

#include "swizzle.h"
#include "tma_load.cuh"
#include "tma_store.cuh"

using namespace tma;

enum { ROWS = 180, COLUMNS = 300, TILE = 32, TILE_BYTES = TILE * TILE * 4, THREADS = 256 };

// Where an element lies in a tile that begins at a multiple of 1024 bytes.
static __device__ float *at(float *tile, int row, int column) {
  uint32_t place = tma_swizzle_tile_address(TMA_SWIZZLE_128B, 0, row, column * 4, TILE * 4);
  return tile + place / 4;
}

__global__ void __launch_bounds__(THREADS) transpose(const __grid_constant__ CUtensorMap matrix,
                                                     const __grid_constant__ CUtensorMap turned) {
  __shared__ __align__(1024) float in[TILE * TILE], out[TILE * TILE];
  __shared__ uint64_t full;
  int x = blockIdx.x * TILE, y = blockIdx.y * TILE;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    tma_load_2d(in, &matrix, x, y, &full);
  }
  __syncthreads();
  mbarrier_wait_parity(&full, 0);
  // A warp takes pieces of four rows that begin in different columns, so that both ways its 32 elements
  // lie in 32 banks.
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    int group = i / 32, lane = i % 32;
    int row = group / 4 * 4 + lane / 8, column = (lane / 8 ^ group % 4) * 8 + lane % 8;
    *at(out, column, row) = *at(in, row, column);
  }
  fence_proxy_async();  // in every thread that wrote: the copy engine must see it
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&turned, out, y, x);  // what lies outside the matrix is not written
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

static CUtensorMap encode(float *matrix, int rows, int columns) {
  uint64_t size[] = {(uint64_t)columns, (uint64_t)rows}, stride_bytes[] = {(uint64_t)columns * 4};
  uint32_t box[] = {TILE, TILE};
  CUtensorMap map;
  check(tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix, size, stride_bytes, box,
                         CU_TENSOR_MAP_SWIZZLE_128B));
  return map;
}

int main(void) {
  static float matrix[ROWS][COLUMNS], turned[COLUMNS][ROWS];
  float *device_matrix, *device_turned;
  int wrong = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i / COLUMNS][i % COLUMNS] = (float)i;
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMalloc((void **)&device_turned, sizeof turned));
  check(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  check(cudaMemset(device_turned, 0xff, sizeof turned));
  CUtensorMap map = encode(device_matrix, ROWS, COLUMNS);
  CUtensorMap map_turned = encode(device_turned, COLUMNS, ROWS);
  dim3 grid((COLUMNS + TILE - 1) / TILE, (ROWS + TILE - 1) / TILE);
  transpose<<<grid, THREADS>>>(map, map_turned);
  check(cudaGetLastError());
  check(cudaMemcpy(turned, device_turned, sizeof turned, cudaMemcpyDeviceToHost));
  for (int row = 0; row < ROWS; row++) {
    for (int column = 0; column < COLUMNS; column++) {
      wrong += !(turned[column][row] == matrix[row][column]);
    }
  }
  printf("%d x %d elements transposed, %d wrong\n", (int)ROWS, (int)COLUMNS, wrong);
  return wrong != 0;
}
