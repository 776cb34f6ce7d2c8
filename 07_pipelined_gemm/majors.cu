// 07 majors: B as [N, K] and as [K, N]. Two layouts of the same operand, two descriptors.
//
//   first_wgmma | [majors] | fragment_layout | serial | ring | ...
//
// C[m][n] is the sum over k of A[m][k] * B[n][k]. How does B lie in memory?
//
//   K-major    B given as [N, K]: neighbours in memory are neighbours in k.
//              A line of 128 bytes in shared memory holds 64 k of one n. Eight lines are a group.
//              From 8 n to the next 8 n: 1,024 bytes (the stride offset).
//              From 16 k to the next 16 k: 32 bytes further in the same line.
//
//   MN-major   B given as [K, N]: neighbours in memory are neighbours in n.
//              A line holds 64 n of one k. Eight lines are a group.
//              From 8 k to the next 8 k: 1,024 bytes (the stride offset).
//              From 16 k to the next 16 k: two groups, 2,048 bytes.
//
// Both are loaded by TMA with the 128-byte swizzle. No thread transposes anything. The instruction
// has a bit that says "B is MN-major", and the descriptor says the rest.
//
// Prints the start address of each k-step, relative to the tile, and checks both products.
#include <cuda_bf16.h>
#include <stdio.h>

#include "../02_tma_load/tma_load.cuh"
#include "accumulator.cuh"
#include "check.h"
#include "tensor_map.h"
#include "wgmma.cuh"

enum { M = 64, N = 64, K = 64, K_OF_ONE_WGMMA = 16, STEPS = K / K_OF_ONE_WGMMA };
enum { K_MAJOR_STEP_BYTES = 32, MN_MAJOR_STEP_BYTES = 2048, DESCRIPTOR_UNIT = 16 };

template <bool B_IS_MN_MAJOR>
__global__ void __launch_bounds__(128)
    multiply(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
             uint16_t *c) {
  __shared__ alignas(1024) uint16_t a[M * K], b[N * K];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof a + sizeof b);
    tma_load_2d(a, &map_a, 0, 0, &barrier);
    tma_load_2d(b, &map_b, 0, 0, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);

  float d[N / 2];
  uint64_t a_tile = wgmma_descriptor_k_major(a);
  if (B_IS_MN_MAJOR) {
    // One tile is 64 wide, so there is no "next 64 n": the leading offset is not used.
    uint64_t b_tile = wgmma_descriptor_mn_major(b, 0);
    wgmma_fence();
    for (int step = 0; step < STEPS; step++) {
      wgmma_m64n64k16_b_mn_major(d, a_tile + step * K_MAJOR_STEP_BYTES / DESCRIPTOR_UNIT,
                                 b_tile + step * MN_MAJOR_STEP_BYTES / DESCRIPTOR_UNIT, step > 0);
    }
  } else {
    uint64_t b_tile = wgmma_descriptor_k_major(b);
    wgmma_fence();
    for (int step = 0; step < STEPS; step++) {
      wgmma_m64n64k16(d, a_tile + step * K_MAJOR_STEP_BYTES / DESCRIPTOR_UNIT,
                      b_tile + step * K_MAJOR_STEP_BYTES / DESCRIPTOR_UNIT, step > 0);
    }
  }
  wgmma_commit();
  wgmma_wait_all();
  store_accumulator(c, d, N / 8, threadIdx.x / 32 * 16, 0, M, N);
}

// A tensor map of one 64x64 tile of either matrix.
static CUtensorMap upload(const char *name, const __nv_bfloat16 *matrix) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                   .dimensions = 2,
                   .size = {64, 64},
                   .box = {64, 64},
                   .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  CUDA_CHECK(cudaMalloc(&map.address, 64 * 64 * 2));
  CUDA_CHECK(cudaMemcpy(map.address, matrix, 64 * 64 * 2, cudaMemcpyHostToDevice));
  return tensor_map_encode(name, &map);
}

int main(int argc, char **argv) {
  program_begin("majors", argc, argv, NULL, 0);

  // 1. Small whole numbers: every sum is exact.
  static __nv_bfloat16 a[M][K], b[N][K], b_transposed[K][N], c[M][N], expected[M][N];
  for (int i = 0; i < 64 * 64; i++) {
    int row = i / 64, column = i % 64;
    a[row][column] = __float2bfloat16(i % 5 - 2);
    b[row][column] = b_transposed[column][row] = __float2bfloat16(i % 3 - 1);
  }
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += (float)a[m][k] * (float)b[n][k];
      expected[m][n] = __float2bfloat16(sum);
    }

  // 2. The same product from both layouts.
  uint16_t *device_c;
  CUDA_CHECK(cudaMalloc(&device_c, sizeof c));
  CUtensorMap map_a = upload("A", &a[0][0]);
  printf("B as      a line holds   start of the k-steps, bytes from the tile's first\n");
  for (int mn_major = 0; mn_major < 2; mn_major++) {
    const __nv_bfloat16 *matrix = mn_major ? &b_transposed[0][0] : &b[0][0];
    auto kernel = mn_major ? multiply<true> : multiply<false>;
    kernel<<<1, 128>>>(map_a, upload("B", matrix), device_c);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));
    check_tile(mn_major ? "C from [K, N]" : "C from [N, K]", ELEMENT_BF16, c, expected, M, N, 0);
    printf("%s    %d %s  ", mn_major ? "[K, N]" : "[N, K]", mn_major ? N : K,
           mn_major ? "n of a k" : "k of a n");
    for (int step = 0; step < STEPS; step++) {
      printf("  %5d", step * (mn_major ? MN_MAJOR_STEP_BYTES : K_MAJOR_STEP_BYTES));
    }
    printf("\n");
  }
  return program_end("%d x %d x %d with B K-major and MN-major, every element of both", M, N, K);
}
