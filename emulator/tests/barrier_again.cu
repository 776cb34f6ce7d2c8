// barrier_again.cu: a barrier that is invalidated and initialised again for every few tiles, as
// first kernels with TMA do. pipelines.bats looks at what the emulator says.
//
//   barrier_again CASE    prints "CASE: cudaError..., sum N"
//
// Cases whose names begin with "fine_" are correct.
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { THREADS = 64, TILE_WORDS = 256, TILE_BYTES = TILE_WORDS * 4, LIVES = 4, MOST_PHASES = 3 };

typedef struct {
  const char *name;
  uint32_t phases;        // of the barrier between two inits
  uint32_t last_waiting;  // lives from this one on do not wait
  uint32_t first_parity;  // what the first wait after an init waits for
  bool alone;             // one thread does all this, and the others learn of it afterwards
} Use;

static const Use USES[] = {
    {"fine_one_phase", 1, LIVES, 0, false},    {"fine_two_phases", 2, LIVES, 0, false},
    {"fine_three_phases", 3, LIVES, 0, false}, {"fine_alone", 1, LIVES, 0, true},
    {"fine_two_alone", 2, LIVES, 0, true},     {"no_wait", 1, 2, 0, false},
    {"no_wait_alone", 1, 2, 0, true},          {"other_parity", 1, LIVES, 1, false},
};

static __device__ void begin_life(uint64_t *barrier, bool again) {
  if (again) mbarrier_inval(barrier);
  begin_barrier(barrier, 1);
}

static __global__ void kernel(Use use, const uint32_t *source, uint32_t *sums) {
  __shared__ alignas(128) uint32_t tile[TILE_WORDS];
  __shared__ uint64_t barrier;
  uint32_t sum = 0;
  for (uint32_t life = 0; life < LIVES; life++) {
    if (threadIdx.x == 0) begin_life(&barrier, life > 0);
    if (!use.alone) __syncthreads();
    for (uint32_t phase = 0; phase < use.phases; phase++) {
      const uint32_t *from = source + (life * MOST_PHASES + phase) * TILE_WORDS;
      if (threadIdx.x == 0) expect_and_load(tile, from, TILE_BYTES, &barrier);
      bool waits = life < use.last_waiting && !(use.alone && threadIdx.x > 0);
      if (waits) mbarrier_wait_parity(&barrier, (use.first_parity + phase) & 1);
      if (use.alone) __syncthreads();
      for (uint32_t i = threadIdx.x; i < TILE_WORDS; i += THREADS) sum += tile[i];
      __syncthreads();
    }
  }
  sums[threadIdx.x] = sum;
}

int main(int argc, char **argv) {
  static uint32_t source[LIVES * MOST_PHASES * TILE_WORDS], sums[THREADS];
  const Use *use = &USES[choose_of(USES, argc, argv)];
  for (uint32_t i = 0; i < sizeof source / sizeof *source; i++) source[i] = i;
  uint32_t *out = device_memory<uint32_t>(THREADS), total = 0;
  kernel<<<1, THREADS>>>(*use, device_copy(source), out);
  cudaError_t error = cudaDeviceSynchronize();
  cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost);
  for (uint32_t i = 0; i < THREADS; i++) total += sums[i];
  printf("%s: %s, sum %u\n", use->name, cudaGetErrorName(error), total);
  return 0;
}
