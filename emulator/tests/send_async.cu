/* send_async: st.async and red.async into the neighbour's shared memory. */
#include <stdio.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../../05_multicast/cluster.cuh"

/* Each block of a pair sends to the other: a vector, a single word, and a sum. */
__global__ void __cluster_dims__(2, 1, 1) send(uint32_t *out) {
  __shared__ __align__(16) uint32_t words[32 * 4];
  __shared__ uint32_t sum;
  __shared__ uint64_t barrier;
  uint32_t rank = cluster_rank(), peer = rank ^ 1;
  if (threadIdx.x == 0) {
    sum = 0;
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, 32 * 20);
  }
  cluster_sync();
  uint32_t to = mapa_shared(words, peer), sum_to = mapa_shared(&sum, peer);
  uint32_t barrier_to = mapa_shared(&barrier, peer);
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
  mbarrier_wait_parity(&barrier, 0);
  for (int i = 0; i < 4; i++) out[rank * 160 + threadIdx.x * 4 + i] = words[threadIdx.x * 4 + i];
  out[rank * 160 + 128 + threadIdx.x] = sum;
  cluster_sync();
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
