// pitfall cp_async_arrival_not_counted: cp.async.mbarrier.arrive without .noinc, and its arrivals are expected
//   H200: hangs
//   report: hang-arrivals-missing
//
// Every thread copies 16 bytes with cp.async, and lets their landing arrive at a barrier for as many
// arrivals as there are threads. Without .noinc the instruction adds one to the pending arrivals when
// it executes, and takes away that one when the copies have landed. The arrivals that mbarrier_init
// counts never come. (That form is for a barrier at which the same threads also arrive themselves.)
//
// Seen on an H200 (28 November 2026, driver 580.159.04, three runs): each run hung.
#include <stdio.h>

#include "../mbarrier_counts.cuh"
#include "check.h"

enum { THREADS = 64, WORDS = THREADS * 4 };

static __device__ void arrive_when_landed(uint64_t *barrier) {
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

__global__ void fetch(const int *run, int *copy) {
  __shared__ alignas(16) int buffer[WORDS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, THREADS);
    fence_mbarrier_init();
  }
  __syncthreads();
  cp_async_16(&buffer[4 * threadIdx.x], &run[4 * threadIdx.x]);
  arrive_when_landed(&barrier);
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < WORDS; i += THREADS) copy[i] = buffer[WORDS - 1 - i];
}

int main(int argc, char **argv) {
  program_begin("cp_async_arrival_not_counted", argc, argv, NULL, 0);
  int run[WORDS], got[WORDS], expected[WORDS], *device_run, *device_copy;
  for (int i = 0; i < WORDS; i++) run[i] = i + 1, expected[i] = WORDS - i;
  CUDA_CHECK(cudaMalloc(&device_run, sizeof run));
  CUDA_CHECK(cudaMalloc(&device_copy, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_run, run, sizeof run, cudaMemcpyHostToDevice));
  fetch<<<1, THREADS>>>(device_run, device_copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, device_copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("the copy, backwards", ELEMENT_S32, got, expected, 1, WORDS, 0);
  CUDA_CHECK(cudaFree(device_run));
  CUDA_CHECK(cudaFree(device_copy));
  return program_end("%d numbers", WORDS);
}
