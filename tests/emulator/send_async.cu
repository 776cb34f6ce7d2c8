/* send_async: st.async and red.async into the neighbour's shared memory. */
#include <stdint.h>
#include <stdio.h>

/* Each block of a pair sends to the other: a vector, a single word, and a sum. */
__global__ void __cluster_dims__(2, 1, 1) send(uint32_t *out) {
  __shared__ __align__(16) uint32_t words[32 * 4];
  __shared__ uint32_t sum;
  __shared__ uint64_t barrier;
  uint32_t rank, here = (uint32_t)__cvta_generic_to_shared(words);
  uint32_t total = (uint32_t)__cvta_generic_to_shared(&sum);
  uint32_t mbarrier = (uint32_t)__cvta_generic_to_shared(&barrier), to, sum_to, barrier_to;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    sum = 0;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(mbarrier));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier),
                 "r"(32 * 20));
  }
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(here), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(sum_to) : "r"(total), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(barrier_to)
               : "r"(mbarrier), "r"(rank ^ 1));
  uint32_t value = rank * 1000 + threadIdx.x;
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], "
      "{%1, %2, %3, %4}, [%5];" ::"r"(to + 16 * threadIdx.x),
      "r"(value), "r"(value + 100), "r"(value + 200), "r"(value + 300), "r"(barrier_to)
      : "memory");
  asm volatile(
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
      "[%0], %1, [%2];" ::"r"(sum_to),
      "r"(value), "r"(barrier_to)
      : "memory");
  uint32_t done = 0;
  while (!done)
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(mbarrier)
        : "memory");
  for (int i = 0; i < 4; i++) out[rank * 160 + threadIdx.x * 4 + i] = words[threadIdx.x * 4 + i];
  out[rank * 160 + 128 + threadIdx.x] = sum;
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

int main(void) {
  static uint32_t out[320];
  uint32_t *device_out;
  cudaMalloc((void **)&device_out, sizeof out);
  send<<<2, 32>>>(device_out);
  cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost);
  int wrong = cudaGetLastError() != cudaSuccess;
  for (uint32_t rank = 0; rank < 2; rank++)
    for (uint32_t thread = 0; thread < 32; thread++) {
      for (uint32_t i = 0; i < 4; i++)
        wrong += out[rank * 160 + thread * 4 + i] != (rank ^ 1) * 1000 + thread + 100 * i;
      wrong += out[rank * 160 + 128 + thread] != (rank ^ 1) * 32000 + 31 * 16;
    }
  printf("%s send_async: %d wrong\n", wrong ? "FAIL" : "PASS", wrong);
  return wrong != 0;
}
