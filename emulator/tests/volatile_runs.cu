/* volatile_runs.cu: random volatile and plain accesses to shared memory by whole warps, with and without order.
 *
 *   volatile_runs SEED run       each warp's words side by side, which the checker looks at together
 *   volatile_runs SEED swapped   the same words, with every two lanes swapped: it looks at each lane
 *
 * The same is wrong with both (emulator/tests/lanes.bats). */

#include "device_memory.cuh"

enum { WARPS = 3, WARP = 32, STEPS = 24, WORDS = 256, MOST_SHIFT = 4 };

typedef enum { LOAD, STORE, PLAIN_LOAD, PLAIN_STORE, SYNC_BLOCK, SYNC_WARP, KINDS } StepKind;
struct Step {
  int kind, warp, first; /* first: of its words */
};
struct Steps {
  Step step[STEPS];
};

__global__ void run_steps(Steps steps, int swap, int *sums) {
  __shared__ int words[WORDS];
  volatile int *as_volatile = words;
  int warp = threadIdx.x / WARP, lane = (threadIdx.x % WARP) ^ swap, sum = 0;
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = i;
  __syncthreads();
  for (int i = 0; i < STEPS; i++) {
    Step step = steps.step[i];
    int at = step.first + lane;
    if (step.kind == SYNC_BLOCK) __syncthreads();
    if (step.warp != warp) continue;
    if (step.kind == SYNC_WARP) __syncwarp();
    if (step.kind == LOAD) sum += as_volatile[at];
    if (step.kind == STORE) as_volatile[at] = i;
    if (step.kind == PLAIN_LOAD) sum += words[at];
    if (step.kind == PLAIN_STORE) words[at] = i;
  }
  sums[threadIdx.x] = sum;
}

static unsigned next_number(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

int main(int argc, char **argv) {
  if (argc != 3 || (strcmp(argv[2], "run") && strcmp(argv[2], "swapped"))) {
    fprintf(stderr, "usage: volatile_runs SEED run|swapped\n");
    return 2;
  }
  unsigned state = (unsigned)atoi(argv[1]);
  Steps steps;
  for (Step &step : steps.step) {
    step.kind = (int)(next_number(&state) % KINDS);
    step.warp = (int)(next_number(&state) % WARPS);
    step.first = (int)(next_number(&state) % 3 * WARP + next_number(&state) % MOST_SHIFT / 2 * 2);
  }
  int *sums = device_memory<int>(WARPS * WARP);
  run_steps<<<1, WARPS * WARP>>>(steps, strcmp(argv[2], "run") != 0, sums);
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
