/* endless_loops.cu: kernels that loop without end but not without effect, one case a run, and one
 * that prints more than the GPU's buffer holds.
 *
 *   endless_loops CASE
 *   endless_loops prints LINES [LIMIT]    LIMIT: cudaLimitPrintfFifoSize
 */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__global__ void counts(unsigned *out) {
  for (;;) ((volatile unsigned *)out)[threadIdx.x]++;
}
__global__ void __cluster_dims__(2) counts_in_a_cluster(unsigned *out) {
  for (;;) ((volatile unsigned *)out)[blockIdx.x * blockDim.x + threadIdx.x]++;
}
__global__ void adds(unsigned *out) {
  while (atomicAdd(out, 1u) != UINT32_MAX) continue;
}
__global__ void fills_shared(unsigned *out) {
  __shared__ unsigned word[64];
  for (unsigned i = 0;; i++) {
    word[threadIdx.x] = i;
    __syncthreads();
    if (word[(threadIdx.x + 1) % 64] == UINT32_MAX) break;
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}
__global__ void prints_on(unsigned *out) {
  for (unsigned i = 0; *(volatile unsigned *)out == 0; i++) printf("line %u\n", i);
}
__global__ void completes_phases(unsigned *out) {
  __shared__ uint64_t barrier;
  uint32_t at = (uint32_t)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at) : "memory");
  __syncthreads();
  for (unsigned parity = 0;; parity ^= 1) {
    unsigned over = 0;
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at) : "memory");
    while (!over)
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(over)
          : "r"(at), "r"(parity)
          : "memory");
    out[threadIdx.x]++;
  }
}
__global__ void draws(unsigned *out) {
  for (unsigned x = threadIdx.x + 1; x; x = x * 1664525u + 1013904223u | 1u)
    atomicExch(&out[x % 4096], x);
}
__global__ void prints(unsigned lines) {
  for (unsigned i = 0; i < lines; i++) printf("this is line %06u\n", i);
}

typedef struct {
  const char *name;
  void (*kernel)(unsigned *);
} Case;
#define CASE(name) \
  { #name, name }
static const Case CASES[] = {CASE(counts),       CASE(counts_in_a_cluster), CASE(adds),
                             CASE(fills_shared), CASE(prints_on),           CASE(completes_phases),
                             CASE(draws)};

int main(int argc, char **argv) {
  unsigned *out;
  if (argc < 2) return 2;
  if (argc > 3) cudaDeviceSetLimit(cudaLimitPrintfFifoSize, strtoul(argv[3], NULL, 10));
  if (argc > 2) {
    prints<<<1, 1>>>((unsigned)strtoul(argv[2], NULL, 10));
    return cudaDeviceSynchronize() != cudaSuccess;
  }
  cudaMalloc(&out, 4096 * sizeof *out);
  cudaMemset(out, 0, 4096 * sizeof *out);
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    if (!strcmp(argv[1], CASES[i].name)) {
      CASES[i].kernel<<<CASES[i].kernel == counts_in_a_cluster ? 2 : 1, 64>>>(out);
      return cudaDeviceSynchronize() != cudaSuccess;
    }
  return 2;
}
