// tiles_in_turn.cu: two consumer warps take tiles of three stages in turn, from a ring of 6 or 8 stages.
//
//   tiles_in_turn STAGES    prints "STAGES stages: cudaError..., N wrong"
//
// With 6, each stage is always filled for the same warp. With 8, a warp waits for a phase whose predecessor was the
// other warp's. If that one's copy lands late, the parity is that of an older phase, and the wait ends at once.
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../02_tma_load/mbarrier.cuh"

enum { STEPS = 3, TILES = 8, STAGE_WORDS = 32, CONSUMERS = 2, MOST_STAGES = 8 };
enum { WORDS = TILES * STEPS * STAGE_WORDS, WORK = 1000, THREADS = 32 * (1 + CONSUMERS) };

__global__ void add_up_tiles(const uint32_t *in, uint32_t *out, int stages) {
  __shared__ alignas(128) uint32_t stage[MOST_STAGES][STAGE_WORDS];
  __shared__ volatile uint32_t sums[THREADS];
  __shared__ uint64_t full[MOST_STAGES], empty[MOST_STAGES];
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; i++) {
      mbarrier_init(&full[i], 1);
      mbarrier_init(&empty[i], 32);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < TILES * STEPS; i++) {
      uint64_t *barrier = &full[i % stages];
      mbarrier_wait_parity(&empty[i % stages], (uint32_t)(i / stages & 1) ^ 1);
      mbarrier_arrive_expect_tx(barrier, sizeof stage[0]);
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"((uint32_t)__cvta_generic_to_shared(stage[i % stages])),
          "l"(in + i * STAGE_WORDS), "r"((uint32_t)sizeof stage[0]),
          "r"((uint32_t)__cvta_generic_to_shared(barrier))
          : "memory");
    }
  }
  if (warp == 0) return;
  for (int tile = warp - 1; tile < TILES; tile += CONSUMERS) {
    for (int i = tile * STEPS; i < (tile + 1) * STEPS; i++) {
      mbarrier_wait_parity(&full[i % stages], (uint32_t)(i / stages & 1));
      sums[threadIdx.x] = 0;
      for (int round = 0; round < WORK; round++) sums[threadIdx.x] += stage[i % stages][lane];
      out[i * STAGE_WORDS + lane] = sums[threadIdx.x];
      mbarrier_arrive(&empty[i % stages]);
    }
  }
}

int main(int argc, char **argv) {
  int stages = argc > 1 ? atoi(argv[1]) : 0, wrong = 0;
  if (stages < STEPS || stages > MOST_STAGES) {
    fprintf(stderr, "usage: tiles_in_turn STAGES (%d to %d)\n", STEPS, MOST_STAGES);
    return 2;
  }
  static uint32_t values[WORDS], got[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) values[i] = i + 1;
  uint32_t *in, *out;
  cudaMalloc(&in, sizeof values);
  cudaMalloc(&out, sizeof got);
  cudaMemcpy(in, values, sizeof values, cudaMemcpyHostToDevice);
  add_up_tiles<<<1, THREADS>>>(in, out, stages);
  cudaError_t error = cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  for (uint32_t i = 0; i < WORDS; i++) wrong += got[i] != WORK * (i + 1);
  printf("%d stages: %s, %d wrong\n", stages, cudaGetErrorName(error), wrong);
  return error != cudaSuccess || wrong > 0;
}
