// Launches with 1,000 different sizes of shared memory and of blocks. What the checker keeps for later launches
// must not grow with their number: after the first hundred launches the program needs some 64 MiB more, and 700 if each
// shape has something of its own.
//   many_shapes

#include "device_memory.cuh"

__global__ void reverse(uint32_t *sum, uint32_t words) {
  extern __shared__ uint32_t shared[];
  for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) shared[i] = i;
  __syncthreads();
  uint32_t mine = 0;
  for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) mine += shared[words - 1 - i];
  atomicAdd(sum, mine);
}

int main(void) {
  without_huge_pages();
  enum { LAUNCHES = 1000 };
  uint32_t *sum = device_filled<uint32_t>(1, 0), expected = 0, got;
  long early = 0;
  for (uint32_t i = 0; i < LAUNCHES; i++) {
    uint32_t words = 32 + i * 11, warps = 1 + i % 8;
    reverse<<<1, 32 * warps, words * sizeof(uint32_t)>>>(sum, words);
    CHECK_LAUNCH();
    expected += words * (words - 1) / 2;
    if (i == LAUNCHES / 10) early = most_memory_kib();
  }
  CUDA_CHECK(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost));
  long more = most_memory_kib() - early;
  if (got != expected) {
    printf("FAIL many_shapes: the sum is %u, expected %u\n", got, expected);
    return 1;
  }
  if (more > 256 * 1024) {
    printf("FAIL many_shapes: the last 900 launches took %ld KiB more\n", more);
    return 1;
  }
  printf("PASS many_shapes: %d launches\n", LAUNCHES);
  return 0;
}
