// threads_vary WHAT: what may depend on the number of host threads (EMULATOR_THREADS), and what may not.
//   block   the threads of each block race with each other: which block is reported first may
//   grid    two blocks race with each other: which of them comes first may

#include "device_memory.cuh"

enum { BLOCKS = 16, THREADS = 64 };

// The earlier blocks take longer, so that others overtake them.
__device__ int take_time(int value) {
  for (int i = 0; i < 1000 * (BLOCKS - blockIdx.x); i++) value = value * 1664525 + 1013904223;
  return value;
}

__global__ void race_in_block(int *out) {
  __shared__ int values[THREADS];
  values[threadIdx.x] = take_time(threadIdx.x);
  out[THREADS * blockIdx.x + threadIdx.x] = values[THREADS - 1 - threadIdx.x];
}

__global__ void race_in_grid(int *out) {
  if (blockIdx.x == 0)
    out[0] = take_time(threadIdx.x);
  else
    out[1] = out[0];
}

int main(int argc, char **argv) {
  int *out = device_filled<int>(BLOCKS * THREADS, 0);
  if (argc > 1 && strcmp(argv[1], "block") == 0)
    race_in_block<<<BLOCKS, THREADS>>>(out);
  else
    race_in_grid<<<2, 1>>>(out);
  CHECK_LAUNCH();
  return 0;
}
