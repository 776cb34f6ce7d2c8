// 02 arrivals: the rare ways to change a barrier's counts, and what each leaves.
//
//   beside tma_load, whose barrier needs one arrival and some bytes
//
//   arrive_drop      arrives, and is not expected any more: a warp leaves, and the others go on
//   arrive, count    several arrivals at once
//   noComplete       arrivals that promise not to complete the phase
//   pending_count    how many arrivals were pending just before the one that returned this token
//   complete_tx      subtracts bytes as a copy does: threads bring what a copy was announced for
//   try_wait, limit  how long a waiting thread may be suspended before it answers false
//
// First one thread changes the counts of a barrier for 4 arrivals, step by step. Then four warps work
// through lists of different lengths, and meet at one barrier after each item. A warp that has
// nothing left must tell the barrier: it arrives for the last time with arrive_drop. If it just
// returned, the next phase would wait for it for ever (pitfalls/left_without_drop).
#include <stdio.h>

#include "check.h"
#include "mbarrier_counts.cuh"

enum { ARRIVALS = 4, STEPS = 8, WARPS = 4, BYTES = 64, LIMIT_NS = 1000 };
typedef struct {
  uint32_t pending;   // arrivals, before the step; NO_TOKEN: the step returns no token
  uint32_t complete;  // the phase, after the step
} Result;
enum { NO_TOKEN = 99 };

__global__ void one_by_one(Result *results) {
  __shared__ uint64_t barrier;
  mbarrier_init(&barrier, ARRIVALS);
  fence_mbarrier_init();
  for (int step = 0; step < STEPS; step++) {
    uint32_t parity = step < 5 ? 0 : 1;  // step 4 completes the first phase
    uint64_t token = 0;
    switch (step) {
      case 0:
        token = mbarrier_arrive_no_complete(&barrier, 1);
        break;
      case 1:
        token = mbarrier_arrive_drop(&barrier);
        break;
      case 2:
        mbarrier_expect_tx(&barrier, BYTES);
        break;
      case 3:
        token = mbarrier_arrive_count(&barrier, 2);
        break;  // the bytes are still pending
      case 4:
        mbarrier_complete_tx(&barrier, BYTES);
        break;
      case 5:
        token = mbarrier_arrive(&barrier);
        break;  // of 3: one was dropped
      case 6:
        token = mbarrier_arrive(&barrier);
        break;
      default:
        token = mbarrier_arrive(&barrier);
        break;
    }
    bool has_token = step != 2 && step != 4;
    results[step].pending = has_token ? mbarrier_pending_count(token) : NO_TOKEN;
    results[step].complete = mbarrier_try_wait_parity_limit(&barrier, parity, LIMIT_NS);
  }
}

// Warp w has w + 1 items. sums[p] is what the warps that are still there add up in phase p.
__global__ void leave_one_by_one(int *sums) {
  __shared__ uint64_t barrier;
  __shared__ int sum[WARPS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, WARPS);
    fence_mbarrier_init();
  }
  if (threadIdx.x < WARPS) sum[threadIdx.x] = 0;
  __syncthreads();
  for (int item = 0; item <= warp; item++) {
    if (lane == 0) {
      atomicAdd(&sum[item], 100 * item + warp);
      if (item == warp && warp < WARPS - 1) {
        mbarrier_arrive_drop(&barrier);  // my last item: from now on one arrival fewer
      } else {
        mbarrier_arrive(&barrier);
      }
    }
    if (item == warp && warp < WARPS - 1) return;  // the last warp stays, and reads the sums
    mbarrier_wait_parity(&barrier, item % 2);
  }
  if (lane < WARPS) sums[lane] = sum[lane];
}

int main(int argc, char **argv) {
  program_begin("arrivals", argc, argv, NULL, 0);
  static const char *const names[STEPS] = {
      "arrive.noComplete", "arrive_drop", "expect_tx 64", "arrive, count 2",
      "complete_tx 64",    "arrive",      "arrive",       "arrive"};
  static const Result expected[STEPS] = {{4, 0},        {3, 0}, {NO_TOKEN, 0}, {2, 0},
                                         {NO_TOKEN, 1}, {3, 0}, {2, 0},        {1, 1}};
  Result results[STEPS], *device_results;
  int sums[WARPS], expected_sums[WARPS] = {0}, *device_sums;
  CUDA_CHECK(cudaMalloc(&device_results, sizeof results));
  CUDA_CHECK(cudaMalloc(&device_sums, sizeof sums));
  one_by_one<<<1, 1>>>(device_results);
  leave_one_by_one<<<1, WARPS * 32>>>(device_sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));

  printf("a barrier for %d arrivals: pending before the step, and whether the phase is over\n",
         ARRIVALS);
  for (int step = 0; step < STEPS; step++) {
    char pending[12];
    snprintf(pending, sizeof pending, "%u", results[step].pending);
    printf("  %-18s %s  %s\n", names[step], results[step].pending == NO_TOKEN ? "-" : pending,
           results[step].complete ? "complete" : "goes on");
  }
  for (int phase = 0; phase < WARPS; phase++)
    for (int warp = phase; warp < WARPS; warp++) expected_sums[phase] += 100 * phase + warp;
  printf("sums of the phases with %d, 3, 2 and 1 warps: %d %d %d %d\n", WARPS, sums[0], sums[1],
         sums[2], sums[3]);
  check_tile("pending arrivals, and complete", ELEMENT_U32, results, expected, STEPS, 2, 0);
  check_tile("the sums", ELEMENT_S32, sums, expected_sums, 1, WARPS, 0);
  CUDA_CHECK(cudaFree(device_results));
  CUDA_CHECK(cudaFree(device_sums));
  return program_end("%d steps, and %d phases from which a warp leaves", STEPS, WARPS);
}
