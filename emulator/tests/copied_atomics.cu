// copied_atomics.cu: bulk loads, each with an mbarrier of its own, read what atomics of another block have added up in
// the same launch. A right kernel: flag and fences order the two.

#include "copies.cuh"
#include "device_memory.cuh"

enum { BLOCKS = 3, THREADS = 32, COPIES = 64, COPY_WORDS = 4, WORDS = COPIES * COPY_WORDS };

__global__ void add_then_load(int *data, int *flag, int *sums) {
  __shared__ alignas(128) int tile[WORDS];
  __shared__ uint64_t landed[COPIES];
  if (blockIdx.x == 0) {
    for (int i = threadIdx.x; i < WORDS; i += THREADS) atomicAdd(&data[i], i);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1);
    return;
  }
  if (threadIdx.x > 0) return;
  while (atomicAdd(flag, 0) == 0) {
  }
  __threadfence();
  for (int i = 0; i < COPIES; i++) mbarrier_init(&landed[i], 1);
  fence_mbarrier_init();
  asm volatile("fence.proxy.async.global;" ::: "memory");
  for (int i = 0; i < COPIES; i++)
    expect_and_load(&tile[i * COPY_WORDS], &data[i * COPY_WORDS], COPY_WORDS * sizeof(int),
                    &landed[i]);
  int sum = 0;
  for (int i = 0; i < WORDS; i++) {
    mbarrier_wait_parity(&landed[i / COPY_WORDS], 0);
    sum += tile[i];
  }
  sums[blockIdx.x] = sum;
}

int main(void) {
  int *data = device_filled<int>(WORDS + 1 + BLOCKS, 0), sums[BLOCKS];
  add_then_load<<<BLOCKS, THREADS>>>(data, data + WORDS, data + WORDS + 1);
  CUDA_CHECK(cudaMemcpy(sums, data + WORDS + 1, sizeof sums, cudaMemcpyDeviceToHost));
  for (int block = 1; block < BLOCKS; block++)
    if (sums[block] != WORDS * (WORDS - 1) / 2) {
      printf("FAIL copied_atomics: block %d has added up %d\n", block, sums[block]);
      return 1;
    }
  printf("PASS copied_atomics: %d copies of what was added up\n", (BLOCKS - 1) * COPIES);
  return 0;
}
