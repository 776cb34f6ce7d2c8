// pitfall descriptor_in_bytes: the stride of the matrix descriptor is given in bytes
//   H200: cudaErrorIllegalAddress
//   report: shared-out-of-bounds
//
// All fields of the descriptor count units of 16 bytes. A stride offset of 1024, meant as the bytes
// from eight rows to the next eight, stands for 16,384 bytes. The first eight rows are right, the
// others come from beyond the tile, and finally from beyond the end of shared memory.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorIllegalAddress.
#include <stdio.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../wgmma.cuh"
#include "check.h"
#include "tensor_map.h"

// D (64 x 64) = A (64 x K) times B (64 x K) transposed, bf16 with K contiguous, by one block.
enum {
  M = 64,
  N = 64,
  K = 256,
  STEP_K = 64,  // 128 bytes: one line of a tile
  STEPS = K / STEP_K,
  TILE_ELEMENTS = 64 * STEP_K,
  TILE_BYTES = TILE_ELEMENTS * 2
};

static __device__ void store_accumulator(float *d_matrix, const float d[N / 2]) {
  int thread = threadIdx.x, row = thread / 32 * 16 + thread % 32 / 4;
  for (int i = 0; i < N / 2; i++) {
    d_matrix[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
  }
}

static __device__ uint64_t descriptor_of(const void *tile) {
  enum { STRIDE_BYTES = 8 * 128, STRIDE_BIT = 32, SWIZZLE_BIT = 62 };
  uint64_t start = (shared_address(tile) & 0x3ffff) >> 4;
  return start | (uint64_t)STRIDE_BYTES << STRIDE_BIT | (uint64_t)WGMMA_SWIZZLE_128B << SWIZZLE_BIT;
}

__global__ void multiply(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b, float *d_matrix) {
  __shared__ alignas(1024) uint16_t a[TILE_ELEMENTS], b[TILE_ELEMENTS];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  float d[N / 2];
  for (int step = 0; step < STEPS; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, 2 * TILE_BYTES);
      tma_load_2d(a, &map_a, step * STEP_K, 0, &full);
      tma_load_2d(b, &map_b, step * STEP_K, 0, &full);
    }
    mbarrier_wait_parity(&full, step % 2);
    uint64_t a_descriptor = descriptor_of(a);
    uint64_t b_descriptor = descriptor_of(b);
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n64k16(d, a_descriptor + i * WGMMA_K_STEP, b_descriptor + i * WGMMA_K_STEP,
                      step > 0 || i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // the tiles may be overwritten
  }
  store_accumulator(d_matrix, d);
}

// Small whole numbers: bf16 and the sums are exact.
static float a_value(int m, int k) { return (float)((m * 3 + k * 5) % 7 - 3); }
static float b_value(int n, int k) { return (float)((n * 2 + k * 3) % 5 - 2); }

static CUtensorMap map_of(const char *name, uint16_t *matrix) {
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                       .dimensions = 2,
                       .address = matrix,
                       .size = {K, 64},
                       .box = {STEP_K, 64},
                       .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  return tensor_map_encode(name, &request);
}

int main(int argc, char **argv) {
  program_begin("descriptor_in_bytes", argc, argv, NULL, 0);
  static uint16_t a[M * K], b[N * K];
  static float got[M * N], expected[M * N];
  for (int i = 0; i < M * K; i++) a[i] = bfloat16_from_float(a_value(i / K, i % K));
  for (int i = 0; i < N * K; i++) b[i] = bfloat16_from_float(b_value(i / K, i % K));
  for (int i = 0; i < M * N; i++) {
    for (int k = 0; k < K; k++) expected[i] += a_value(i / N, k) * b_value(i % N, k);
  }
  uint16_t *a_matrix, *b_matrix;
  float *d_matrix;
  CUDA_CHECK(cudaMalloc(&a_matrix, sizeof a));
  CUDA_CHECK(cudaMalloc(&b_matrix, sizeof b));
  CUDA_CHECK(cudaMalloc(&d_matrix, sizeof got));
  CUDA_CHECK(cudaMemcpy(a_matrix, a, sizeof a, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(b_matrix, b, sizeof b, cudaMemcpyHostToDevice));
  multiply<<<1, 128>>>(map_of("A", a_matrix), map_of("B", b_matrix), d_matrix);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, d_matrix, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("D", ELEMENT_F32, got, expected, M, N, 0);
  CUDA_CHECK(cudaFree(a_matrix));
  CUDA_CHECK(cudaFree(b_matrix));
  CUDA_CHECK(cudaFree(d_matrix));
  return program_end("%d x %d results over K = %d", M, N, K);
}
