// 07 first_wgmma: one WGMMA on one TMA tile. Four warps multiply 64x16 by 16x64 out of shared memory.
#include <cuda_bf16.h>

#include "../02_tma_load/tma_load.cuh"
#include "accumulator.cuh"
#include "check.h"
#include "tensor_map.h"
#include "wgmma.cuh"

enum { M = 64, N = 64, K = 64 };  // a row of 64 bf16 is one span of the 128-byte swizzle

__global__ void multiply(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b, uint16_t *c) {
  __shared__ alignas(1024) uint16_t a[M * K], b[N * K];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof a + sizeof b);  // two copies, one barrier
    tma_load_2d(a, &map_a, 0, 0, &barrier);
    tma_load_2d(b, &map_b, 0, 0, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  float d[N / 2];  // 64 x 64 sums, 32 in each of 128 threads
  wgmma_fence();   // the registers of d are ready
  wgmma_m64n64k16(d, wgmma_descriptor_k_major(a), wgmma_descriptor_k_major(b), 0);
  wgmma_commit();
  wgmma_wait_all();  // only now may the threads touch d
  store_accumulator(c, d, N / 8, threadIdx.x / 32 * 16, 0, M, N);
}

static CUtensorMap upload(const char *name, const __nv_bfloat16 *matrix) {
  TensorMap map = {
      .type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, .dimensions = 2, .size = {K, M}, .box = {K, M}};
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUDA_CHECK(cudaMalloc(&map.address, M * K * 2));
  CUDA_CHECK(cudaMemcpy(map.address, matrix, M * K * 2, cudaMemcpyHostToDevice));
  return tensor_map_encode(name, &map);
}

int main(int argc, char **argv) {
  program_begin("first_wgmma", argc, argv, NULL, 0);
  static __nv_bfloat16 a[M][K], b[N][K], c[M][N], expected[M][N];
  for (int i = 0; i < M * K; i++) {
    a[i / K][i % K] = __float2bfloat16(i % 7 - 3), b[i / K][i % K] = __float2bfloat16(i % 5 - 2);
  }
  for (int i = 0; i < M * N; i++) {
    float sum = 0;
    for (int k = 0; k < 16; k++) sum += (float)a[i / N][k] * (float)b[i % N][k];
    expected[i / N][i % N] = __float2bfloat16(sum);  // one instruction takes 16 of the 64 k
  }
  uint16_t *device_c;
  CUDA_CHECK(cudaMalloc(&device_c, sizeof c));
  multiply<<<1, 128>>>(upload("A", &a[0][0]), upload("B", &b[0][0]), device_c);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));
  check_tile("C", ELEMENT_BF16, c, expected, M, N, 0);
  return program_end("%d x %d sums over 16 k, every element", M, N);
}
