// A warp adds what its lanes have read from shared memory by shuffles, and all lanes store the sum over it.
//   lane_values sum|half|other
// sum: the sum comes from all lanes, so it cannot be stored before they have read (FlashInfer's RMSNorm does so).
// half: only from a half of the lanes. other: the value that is stored comes from something else.

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { SUM, HALF, OTHER, CASES };
static const char *const names[CASES] = {"sum", "half", "other"};

// Each case has a kernel of its own, because only a straight line of code is followed.
static __device__ __forceinline__ void add(int which, uint32_t *result) {
  __shared__ uint32_t values[32];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  uint32_t sum = threadIdx.x < 8 ? values[threadIdx.x] : 0, own = threadIdx.x;
  if (which == SUM) {
#pragma unroll
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(~0u, sum, by);
    values[0] = sum;
  } else if (which == HALF) {
#pragma unroll
    for (int by = 8; by > 0; by /= 2) sum += __shfl_xor_sync(~0u, sum, by);
    values[0] = sum;
  } else {
#pragma unroll
    for (int by = 16; by > 0; by /= 2) own += __shfl_xor_sync(~0u, own, by);
    values[0] = own;
  }
  __syncthreads();
  result[threadIdx.x] = values[0] + sum;
}

__global__ void add_all(uint32_t *result) { add(SUM, result); }
__global__ void add_half(uint32_t *result) { add(HALF, result); }
__global__ void add_other(uint32_t *result) { add(OTHER, result); }

int main(int argc, char **argv) {
  int which = 0;
  while (which < CASES && (argc != 2 || strcmp(argv[1], names[which]) != 0)) which++;
  if (which == CASES) {
    fprintf(stderr, "usage: lane_values sum|half|other\n");
    return 2;
  }
  uint32_t *result, got[32];
  CUDA_CHECK(cudaMalloc(&result, sizeof got));
  void (*kernels[CASES])(uint32_t *) = {add_all, add_half, add_other};
  kernels[which]<<<1, 32>>>(result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  printf("%u\n", got[0]);
  return 0;
}
