// hang_at_wgmma.cu: a hang in which one lane asks an mbarrier again and again, with a time limit, and the
// rest of its warpgroup waits for it at a wgmma. hangs.bats looks at what it is called.
//
//   hang_at_wgmma    prints the error
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>

__global__ void asks_beside_wgmma(float *out) {
  __shared__ uint64_t barrier;
  uint32_t address = (uint32_t)__cvta_generic_to_shared(&barrier), done = 0;
  float d[4] = {0};
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address) : "memory");
  __syncthreads();
  while (threadIdx.x == 0 && !done)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0, 1000000; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(address)
        : "memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 0, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(0ull));
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
  out[threadIdx.x] = d[0];
}

int main(void) {
  enum { THREADS = 128 };
  float *out;
  cudaMalloc(&out, THREADS * sizeof *out);
  asks_beside_wgmma<<<1, THREADS>>>(out);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
