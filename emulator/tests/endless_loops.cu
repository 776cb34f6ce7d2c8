/* endless_loops.cu: kernels that loop without end but not without effect, one case a run, and one
 * that prints more than the GPU's buffer holds.
 *
 *   endless_loops CASE
 *   endless_loops prints LINES [LIMIT]    LIMIT: cudaLimitPrintfFifoSize
 */
#include "../../02_tma_load/mbarrier.cuh"
#include "cases.cuh"
#include "device_memory.cuh"

typedef void Kernel(unsigned *out);
#define CASE(name) CASE_OF(Kernel, name, "", __global__ void, (unsigned *out))

CASE(counts) {
  for (;;) ((volatile unsigned *)out)[threadIdx.x]++;
}
CASE_OF(Kernel, counts_in_a_cluster, "", __global__ __cluster_dims__(2) void, (unsigned *out)) {
  for (;;) ((volatile unsigned *)out)[blockIdx.x * blockDim.x + threadIdx.x]++;
}
CASE(adds) {
  while (atomicAdd(out, 1u) != UINT32_MAX) continue;
}
CASE(fills_shared) {
  __shared__ unsigned word[64];
  for (unsigned i = 0;; i++) {
    word[threadIdx.x] = i;
    __syncthreads();
    if (word[(threadIdx.x + 1) % 64] == UINT32_MAX) break;
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}
CASE(prints_on) {
  for (unsigned i = 0; *(volatile unsigned *)out == 0; i++) printf("line %u\n", i);
}
CASE(completes_phases) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 64);
  __syncthreads();
  for (unsigned parity = 0;; parity ^= 1) {
    mbarrier_arrive(&barrier);
    mbarrier_wait_parity(&barrier, parity);
    out[threadIdx.x]++;
  }
}
CASE(draws) {
  for (unsigned x = threadIdx.x + 1; x; x = x * 1664525u + 1013904223u | 1u)
    atomicExch(&out[x % 4096], x);
}
__global__ void prints(unsigned lines) {
  for (unsigned i = 0; i < lines; i++) printf("this is line %06u\n", i);
}

int main(int argc, char **argv) {
  if (argc > 3) cudaDeviceSetLimit(cudaLimitPrintfFifoSize, strtoul(argv[3], NULL, 10));
  if (argc > 2) {
    prints<<<1, 1>>>((unsigned)strtoul(argv[2], NULL, 10));
    return cudaDeviceSynchronize() != cudaSuccess;
  }
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  unsigned *out = device_filled<unsigned>(4096, 0);
  chosen->run<<<chosen->run == counts_in_a_cluster ? 2 : 1, 64>>>(out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
