// operands_reused: threads write over the operand of a wgmma that may still be reading it.
//   operands_reused CASE     waited, by_own_warpgroup or by_another
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "check.h"

#include <stdio.h>
#include <string.h>

enum Case { WAITED, BY_OWN_WARPGROUP, BY_ANOTHER };
enum { WARPGROUP = 128, ELEMENTS = 8 * 64, ONES = 0x3f80 };

static __device__ __forceinline__ void multiply(float d[4], const uint32_t a[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, "
      "1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

template <int kind>
static __global__ void product(float *out) {
  __shared__ alignas(1024) uint16_t b[ELEMENTS];
  uint32_t warpgroup = threadIdx.x / WARPGROUP;
  for (uint32_t i = threadIdx.x; i < ELEMENTS; i += blockDim.x) b[i] = ONES;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  float d[4] = {0};
  const uint32_t a[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
  if (warpgroup == 0) {
    wgmma_fence();
    multiply(d, a, wgmma_descriptor_k_major(b));
    wgmma_commit();
    if (kind == BY_OWN_WARPGROUP) b[threadIdx.x] = 0;
    if (kind == WAITED) wgmma_wait_all();
  }
  __syncthreads();
  if (kind != BY_OWN_WARPGROUP && warpgroup == 1) b[threadIdx.x % WARPGROUP] = 0;
  __syncthreads();
  if (warpgroup == 0) {
    wgmma_wait_all();
    out[threadIdx.x] = d[0];
  }
}

int main(int argc, char **argv) {
  float *out, result;
  CUDA_CHECK(cudaMalloc(&out, WARPGROUP * sizeof *out));
  if (argc == 2 && strcmp(argv[1], "waited") == 0)
    product<WAITED><<<1, 2 * WARPGROUP>>>(out);
  else if (argc == 2 && strcmp(argv[1], "by_own_warpgroup") == 0)
    product<BY_OWN_WARPGROUP><<<1, 2 * WARPGROUP>>>(out);
  else if (argc == 2 && strcmp(argv[1], "by_another") == 0)
    product<BY_ANOTHER><<<1, 2 * WARPGROUP>>>(out);
  else
    return 2;
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
  printf("%g\n", (double)result);
  return 0;
}
