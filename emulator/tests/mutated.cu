// mutated: for emulator/tests/long/mutations.py, whose answers for this kernel are known. Without bar.sync the
// warps race; without membar.cta, or with the two swapped, nothing is wrong; the fence's branch is
// never taken.
#include <stdint.h>
#include <stdio.h>

#include "check.h"

enum { THREADS = 64 };

__global__ void exchange(uint32_t *out) {
  __shared__ uint32_t words[THREADS];
  words[threadIdx.x] = threadIdx.x;
  asm volatile("membar.cta;\nbar.sync 0;" ::: "memory");
  out[threadIdx.x] = words[THREADS - 1 - threadIdx.x];
  if (gridDim.x > 1) asm volatile("fence.proxy.async;" ::: "memory");
}

int main(void) {
  uint32_t *out;
  CUDA_CHECK(cudaMallocManaged(&out, THREADS * sizeof *out));
  exchange<<<1, THREADS>>>(out);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  for (uint32_t i = 0; i < THREADS; i++)
    if (out[i] != THREADS - 1 - i) return 1;
  puts("PASS mutated");
  return 0;
}
