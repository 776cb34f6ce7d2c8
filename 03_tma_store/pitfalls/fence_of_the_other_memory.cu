// pitfall fence_of_the_other_memory: threads write global memory, and fence shared memory
//   H200: right results
//   report: missing-proxy-fence
//
// Threads write a list to global memory, and a load of the same kernel reads it. The fence between
// the two is fence.proxy.async.shared::cta, as before every store. But its suffix names the memory that
// it covers, and the list is in global memory: that takes fence.proxy.async.global, or the form
// without a suffix, which covers all memory.
//
// Seen on an H200 (28 November 2026, driver 580.159.04, three runs): right results each time, by luck.
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../tma_store.cuh"
#include "check.h"

enum { WORDS = 128, BYTES = WORDS * 4 };

__global__ void write_and_load(int *list, int *copy) {
  __shared__ alignas(128) int tile[WORDS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  list[threadIdx.x] = 3 * threadIdx.x + 1;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barrier, BYTES);
    bulk_load(tile, list, BYTES, &barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
  copy[threadIdx.x] = tile[threadIdx.x];
}

int main(int argc, char **argv) {
  program_begin("fence_of_the_other_memory", argc, argv, NULL, 0);
  int got[WORDS], expected[WORDS], *list, *copy;
  for (int i = 0; i < WORDS; i++) expected[i] = 3 * i + 1;
  CUDA_CHECK(cudaMalloc(&list, sizeof got));
  CUDA_CHECK(cudaMalloc(&copy, sizeof got));
  CUDA_CHECK(cudaMemset(list, 0, sizeof got));
  write_and_load<<<1, WORDS>>>(list, copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("the list", ELEMENT_S32, got, expected, 1, WORDS, 0);
  CUDA_CHECK(cudaFree(list));
  CUDA_CHECK(cudaFree(copy));
  return program_end("%d numbers", WORDS);
}
