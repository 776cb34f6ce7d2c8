// A 3 x 3 filter over an image: each block loads its tile with a halo around it. The copy engine fills in
// zeros outside the image, so no thread asks where the image ends until it writes.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' convolution_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>

#include "tma_load.cuh"

using namespace tma;

// A load begins at a multiple of 16 bytes. So the halo has 4 columns on each side, of which 1 is used.
enum { ROWS = 150, COLUMNS = 200, TILE_ROWS = 16, TILE_COLUMNS = 64, SIDE = 4 };
enum { LOADED_ROWS = TILE_ROWS + 2, LOADED_COLUMNS = TILE_COLUMNS + 2 * SIDE };

__global__ void filter(const __grid_constant__ CUtensorMap image, float *result) {
  __shared__ __align__(128) float tile[LOADED_ROWS][LOADED_COLUMNS];
  __shared__ uint64_t full;
  const float weights[3][3] = {{1, 2, 1}, {2, 4, 2}, {1, 2, 1}};
  int x = blockIdx.x * TILE_COLUMNS, y = blockIdx.y * TILE_ROWS;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, sizeof tile);  // all of it, the zeros too
    tma_load_2d(tile, &image, x - SIDE, y - 1, &full);
  }
  __syncthreads();
  mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += blockDim.x) {
    int row = i / TILE_COLUMNS, column = i % TILE_COLUMNS;
    if (y + row >= ROWS || x + column >= COLUMNS) continue;
    float sum = 0;
    for (int dy = 0; dy < 3; dy++) {
      for (int dx = 0; dx < 3; dx++) {
        sum += weights[dy][dx] * tile[row + dy][column + SIDE - 1 + dx];
      }
    }
    result[(y + row) * COLUMNS + x + column] = sum / 16;
  }
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

static float image[ROWS][COLUMNS], result[ROWS][COLUMNS];

static float pixel(int y, int x) {
  return y < 0 || y >= ROWS || x < 0 || x >= COLUMNS ? 0 : image[y][x];
}

int main(void) {
  float *device_image, *device_result;
  int wrong = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) image[i / COLUMNS][i % COLUMNS] = (float)(i * 7 % 256);
  check(cudaMalloc((void **)&device_image, sizeof image));
  check(cudaMalloc((void **)&device_result, sizeof result));
  check(cudaMemcpy(device_image, image, sizeof image, cudaMemcpyHostToDevice));
  check(cudaMemset(device_result, 0xff, sizeof result));

  uint64_t size[] = {COLUMNS, ROWS}, stride_bytes[] = {COLUMNS * sizeof(float)};
  uint32_t box[] = {LOADED_COLUMNS, LOADED_ROWS};  // innermost dimension first, as above
  CUtensorMap map;
  check(tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, device_image, size, stride_bytes,
                         box, CU_TENSOR_MAP_SWIZZLE_NONE));
  dim3 grid((COLUMNS + TILE_COLUMNS - 1) / TILE_COLUMNS, (ROWS + TILE_ROWS - 1) / TILE_ROWS);
  filter<<<grid, 128>>>(map, device_result);
  check(cudaGetLastError());
  check(cudaMemcpy(result, device_result, sizeof result, cudaMemcpyDeviceToHost));
  for (int y = 0; y < ROWS; y++) {
    for (int x = 0; x < COLUMNS; x++) {
      float sum = 0;  // whole numbers this small, and their sixteenths, are exact in any order
      for (int i = 0; i < 9; i++) {
        int dy = i / 3 - 1, dx = i % 3 - 1;
        sum += (float)((dy == 0 ? 2 : 1) * (dx == 0 ? 2 : 1)) * pixel(y + dy, x + dx);
      }
      wrong += !(result[y][x] == sum / 16);
    }
  }
  printf("%d x %d pixels filtered, %d wrong\n", (int)ROWS, (int)COLUMNS, wrong);
  return wrong != 0;
}
