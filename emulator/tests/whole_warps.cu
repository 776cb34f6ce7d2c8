/* whole_warps.cu: warps load and store global memory in the ways that the emulator has a short cut for: all
 * lanes side by side, or some lanes at one place. Which places they use is random, so most programs have
 * races. A recording leaves the short cut out: findings and results are the same with one
 * (global.bats).
 *
 *   whole_warps SEED [DISTANCE]    DISTANCE: words between what two warps use; 0: all use the same */

#include "device_memory.cuh"

enum { BLOCKS = 3, THREADS = 96, WARPS = BLOCKS * THREADS / 32, STEPS = 24, WORDS = 512 };
enum { UNWRITTEN = 64 }; /* words at the end of each warp's part that the host does not write */
enum Kind {
  LOAD_WORDS,
  STORE_WORDS,
  LOAD_PAIRS,
  STORE_FOURS,
  LOAD_DOUBLES,
  STORE_DOUBLES,
  LOAD_ONE,
  LOAD_ONE_BY_SOME,
  LOAD_FOUR_BY_SOME,
  LOAD_TWO_PLACES,
  STORE_ONE,
  STORE_FOUR_BY_ONE,
  LOAD_NON_COHERENT,
  BARRIER,
  WARP_BARRIER,
  KINDS
};
struct Step {
  uint8_t kind, lane;
  uint16_t word;
};
__constant__ Step steps[WARPS * STEPS];

static __device__ uint32_t load_four(const uint32_t *at) {
  uint4 a = *(const uint4 *)at;
  return a.x * 3 + a.y * 5 + a.z * 7 + a.w;
}
static __device__ uint32_t load_double(const uint32_t *at) {
  uint64_t a = *(const uint64_t *)at;
  return (uint32_t)(a >> 32) * 3 + (uint32_t)a;
}
static __device__ void store_four(uint32_t *at, uint32_t value) {
  *(uint4 *)at = make_uint4(value, value + 1, value + 2, value * 3);
}

__global__ void take_steps(uint32_t *words, uint32_t *results, int distance) {
  int warp = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = (int)threadIdx.x % 32;
  uint32_t sum = (uint32_t)lane;
  for (int i = 0; i < STEPS; i++) {
    Step step = steps[warp * STEPS + i];
    uint32_t *at = words + warp * distance + step.word, value = sum % 4;
    bool some = (lane ^ step.lane) % 3 == 0;
    switch (step.kind) {
      case LOAD_WORDS:
        sum += at[lane];
        break;
      case STORE_WORDS:
        at[lane] = value;
        break;
      case LOAD_PAIRS:
        sum += ((const uint2 *)at)[lane].x * 3 + ((const uint2 *)at)[lane].y;
        break;
      case STORE_FOURS:
        store_four(at + lane * 4, value);
        break;
      case LOAD_DOUBLES:
        sum += load_double(at + lane * 2);
        break;
      case STORE_DOUBLES:
        ((uint64_t *)at)[lane] = (uint64_t)value << 32 | ~value;
        break;
      case LOAD_ONE:
        sum += *at;
        break;
      case LOAD_ONE_BY_SOME:
        if (some) sum += *at;
        break;
      case LOAD_FOUR_BY_SOME:
        if (some) sum += load_four(at);
        break;
      case LOAD_TWO_PLACES:
        sum += at[lane / 16 * 8];
        break;
      case STORE_ONE:
        if (lane == step.lane) *at = value;
        break;
      case STORE_FOUR_BY_ONE:
        if (lane == step.lane) store_four(at, value);
        break;
      case LOAD_NON_COHERENT:
        sum += __ldg(at + lane);
        break;
      case BARRIER:
        __syncthreads();
        break;
      case WARP_BARRIER:
        __syncwarp();
        break;
    }
  }
  results[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* Barriers are at the same steps in all warps. */
static void choose_steps(Step *all, int part) {
  for (int warp = 0; warp < WARPS; warp++)
    for (int i = 0; i < STEPS; i++) {
      Step *step = &all[warp * STEPS + i];
      do step->kind = (uint8_t)(rand() % KINDS);
      while (step->kind == BARRIER);
      if (i % 8 == 7) step->kind = BARRIER;
      step->lane = (uint8_t)(rand() % 32);
      int align = rand() % 2 ? 32 : 4; /* whole lines of 128 bytes, or parts of them */
      step->word = (uint16_t)(rand() % ((part - 128) / align) * align);
    }
}

int main(int count, char **arguments) {
  if (count != 2 && count != 3) {
    fprintf(stderr, "usage: whole_warps SEED [DISTANCE]\n");
    return 2;
  }
  int distance = count == 3 ? atoi(arguments[2]) : 0, all = WORDS + WARPS * distance;
  static Step chosen[WARPS * STEPS];
  static uint32_t results[WARPS * 32];
  uint32_t *host = (uint32_t *)malloc((size_t)all * sizeof *host);
  srand((unsigned)atoi(arguments[1]));
  choose_steps(chosen, distance ? distance : WORDS);
  CUDA_CHECK(cudaMemcpyToSymbol(steps, chosen, sizeof chosen));
  uint32_t *words = device_memory<uint32_t>(all), *out = device_memory<uint32_t>(WARPS * 32);
  for (int i = 0; i < all; i++) host[i] = (uint32_t)i * 7;
  CUDA_CHECK(cudaMemcpy(words, host, (size_t)(all - UNWRITTEN) * sizeof *words, cudaMemcpyDefault));
  take_steps<<<BLOCKS, THREADS>>>(words, out, distance);
  CUDA_CHECK(cudaMemcpy(results, out, sizeof results, cudaMemcpyDefault));
  CUDA_CHECK(cudaMemcpy(host, words, (size_t)all * sizeof *words, cudaMemcpyDefault));
  uint64_t sum = 0;
  for (uint32_t result : results) sum = sum * 31 + result;
  for (int i = 0; i < all; i++) sum = sum * 31 + host[i];
  printf("%016llx\n", (unsigned long long)sum);
  return 0;
}
