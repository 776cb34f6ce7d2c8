// pitfall left_without_drop: a warp that has no more work returns, and its arrival is still expected
//   H200: hangs
//   report: hang-arrivals-missing
//
// Four warps meet at a barrier after each item of their lists, which differ in length. The count of
// mbarrier_init holds for every phase. A thread that returns arrives no more, and the next phase
// never completes. Its last arrival must be mbarrier.arrive_drop, which also lowers the count of all
// later phases.
//
// Seen on an H200 (28 November 2026, driver 580.159.04, three runs): each run hung.
#include <stdio.h>

#include "../mbarrier_counts.cuh"
#include "check.h"

enum { WARPS = 4 };

// Warp w has w + 1 items.
__global__ void count_items(int *counts) {
  __shared__ uint64_t barrier;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, WARPS);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int item = 0; item <= warp; item++) {
    bool leaves = item == warp && warp < WARPS - 1;
    if (lane == 0) {
      atomicAdd(&counts[item], 1);
      mbarrier_arrive(&barrier);
    }
    if (leaves) return;
    mbarrier_wait_parity(&barrier, item % 2);
  }
}

int main(int argc, char **argv) {
  program_begin("left_without_drop", argc, argv, NULL, 0);
  static const int expected[WARPS] = {4, 3, 2, 1};
  int counts[WARPS], *device_counts;
  CUDA_CHECK(cudaMalloc(&device_counts, sizeof counts));
  CUDA_CHECK(cudaMemset(device_counts, 0, sizeof counts));
  count_items<<<1, WARPS * 32>>>(device_counts);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(counts, device_counts, sizeof counts, cudaMemcpyDeviceToHost));
  check_tile("items of each phase", ELEMENT_S32, counts, expected, 1, WARPS, 0);
  CUDA_CHECK(cudaFree(device_counts));
  return program_end("the items of %d phases", WARPS);
}
