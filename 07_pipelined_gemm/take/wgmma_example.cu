// C = A * transpose(B) in tiles of 64 x 64: TMA loads A and B under the 128-byte swizzle, and four
// warps multiply them. Two stages: while one is multiplied, the other is loaded.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' wgmma_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wgmma.cuh"

using namespace tma;

enum { M = 128, N = 256, DEPTH = 320, TILE_M = 64, TILE_N = 64, STEP = 64, STAGES = 2 };
enum { STEPS = DEPTH / STEP, STAGE_BYTES = (TILE_M + TILE_N) * STEP * 2 };

typedef struct {
  uint16_t a[STAGES][TILE_M][STEP], b[STAGES][TILE_N][STEP];  // each a multiple of 1024 bytes
} Tiles;

__global__ void __launch_bounds__(128)
    multiply(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
             uint16_t *c) {
  __shared__ __align__(1024) Tiles tiles;
  __shared__ uint64_t full[STAGES];
  int x = blockIdx.x * TILE_N, y = blockIdx.y * TILE_M;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) mbarrier_init(&full[stage], 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  auto load = [&](int step) {
    int stage = step % STAGES;
    mbarrier_arrive_expect_tx(&full[stage], STAGE_BYTES);
    tma_load_2d(tiles.a[stage], &map_a, step * STEP, y, &full[stage]);
    tma_load_2d(tiles.b[stage], &map_b, step * STEP, x, &full[stage]);
  };
  if (threadIdx.x == 0) {
    for (int step = 0; step < STAGES; step++) load(step);
  }
  float sums[TILE_N / 2];
  for (int step = 0; step < STEPS; step++) {
    int stage = step % STAGES;
    mbarrier_wait_parity(&full[stage], step / STAGES % 2);
    uint64_t a = wgmma_descriptor_k_major(tiles.a[stage]);
    uint64_t b = wgmma_descriptor_k_major(tiles.b[stage]);
    wgmma_fence();
    for (int i = 0; i < STEP / 16; i++) {
      wgmma_m64n64k16(sums, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step + i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // all four warps are done with the stage
    if (threadIdx.x == 0 && step + STAGES < STEPS) load(step + STAGES);
  }
  store_accumulator(c, sums, TILE_N / 8, y + threadIdx.x / 32 * 16, x, M, N);
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

// Whole numbers this small are exact in bf16, which is the upper half of a float's bits.
static uint16_t bf16(int value) {
  float number = (float)value;
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static int small(int i) { return i % 7 == 0 ? i % 3 - 1 : 0; }

static CUtensorMap encode(uint16_t *matrix, int rows, int tile_rows) {
  uint64_t size[] = {DEPTH, (uint64_t)rows}, stride_bytes[] = {DEPTH * 2};
  uint32_t box[] = {STEP, (uint32_t)tile_rows};
  CUtensorMap map;
  check(tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, size, stride_bytes, box,
                         CU_TENSOR_MAP_SWIZZLE_128B));
  return map;
}

int main(void) {
  static uint16_t a[M * DEPTH], b[N * DEPTH], c[M * N];
  uint16_t *device_a, *device_b, *device_c;
  int wrong = 0;
  for (int i = 0; i < M * DEPTH; i++) a[i] = bf16(small(i));
  for (int i = 0; i < N * DEPTH; i++) b[i] = bf16(small(i + 1));
  check(cudaMalloc((void **)&device_a, sizeof a));
  check(cudaMalloc((void **)&device_b, sizeof b));
  check(cudaMalloc((void **)&device_c, sizeof c));
  check(cudaMemcpy(device_a, a, sizeof a, cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_b, b, sizeof b, cudaMemcpyHostToDevice));
  CUtensorMap map_a = encode(device_a, M, TILE_M), map_b = encode(device_b, N, TILE_N);
  multiply<<<dim3(N / TILE_N, M / TILE_M), 128>>>(map_a, map_b, device_c);
  check(cudaGetLastError());
  check(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));
  for (int row = 0; row < M; row++) {
    for (int column = 0; column < N; column++) {
      int sum = 0;
      for (int i = 0; i < DEPTH; i++) sum += small(row * DEPTH + i) * small(column * DEPTH + i + 1);
      wrong += c[row * N + column] != bf16(sum);
    }
  }
  printf("%d x %d sums of %d products, %d wrong\n", (int)M, (int)N, (int)DEPTH, wrong);
  return wrong != 0;
}
