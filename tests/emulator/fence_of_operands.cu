// fence_of_operands: two products with A in registers. The registers of the second are written after
// the first wgmma, and no wgmma has used them before.
//   fence_of_operands CASE     fenced, without the second fence, or with the second fence too early
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "check.h"

#include <stdio.h>
#include <string.h>

enum { FENCED, UNFENCED, FENCED_TOO_EARLY };

static __device__ __forceinline__ void multiply(float d[4], const uint32_t a[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, "
      "1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// asm volatile keeps its place between the fences.
static __device__ __forceinline__ void scale(uint32_t a[4], uint32_t factor) {
  for (int i = 0; i < 4; i++)
    asm volatile("mul.lo.u32 %0, %1, %2;" : "=r"(a[i]) : "r"(a[i]), "r"(factor));
}

template <int kind>
static __global__ void products(uint32_t factor, float *out) {
  __shared__ alignas(1024) uint16_t b[8 * 64];
  for (int i = threadIdx.x; i < 8 * 64; i += blockDim.x) b[i] = 0x3f80;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  uint64_t descriptor = wgmma_descriptor_k_major(b);
  float d[4] = {0};
  uint32_t first[4], second[4];
  for (int i = 0; i < 4; i++) first[i] = second[i] = 0x3f803f80u;
  scale(first, factor);
  wgmma_fence();
  multiply(d, first, descriptor);
  wgmma_commit();
  wgmma_wait_all();
  if (kind == FENCED_TOO_EARLY) wgmma_fence();
  scale(second, factor);
  if (kind == FENCED) wgmma_fence();
  multiply(d, second, descriptor);
  wgmma_commit();
  wgmma_wait_all();
  out[threadIdx.x] = d[0];
}

int main(int argc, char **argv) {
  static const char *const names[] = {"fenced", "unfenced", "fenced_too_early"};
  int kind = 0;
  while (argc == 2 && kind < 3 && strcmp(argv[1], names[kind]) != 0) kind++;
  if (argc != 2 || kind == 3) {
    fprintf(stderr, "usage: fence_of_operands fenced|unfenced|fenced_too_early\n");
    return 2;
  }
  float *out, result;
  CUDA_CHECK(cudaMalloc(&out, 128 * sizeof *out));
  if (kind == FENCED) products<FENCED><<<1, 128>>>(1, out);
  if (kind == UNFENCED) products<UNFENCED><<<1, 128>>>(1, out);
  if (kind == FENCED_TOO_EARLY) products<FENCED_TOO_EARLY><<<1, 128>>>(1, out);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
  printf("%s: %g\n", names[kind], result);
  return result == 32 ? 0 : 1;
}
