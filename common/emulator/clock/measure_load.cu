// measure_load: what the SMs do to each other when all of them store at once, on the GPU that runs it:
// parameters of the clock that one SM alone does not show (measure.cu). CLOCK.md says what the model
// does with them.
//
// Each SM stores an accumulator of 128 x 256, round after round, as the rungs of chapter 07 do. L2
// does not serve all SMs alike: some are done in half the time of others, so the SMs drift apart, and
// after a few rounds they store one after the other instead of all at once.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { MOST_SMS = 256, ROUNDS = 16, PITCH = 4096, PAUSE = 30000, REQUEST_SECTORS = 8 * 64 * 8 };

// 128 x 256 bf16 by 8 warps, as store_accumulator writes them, `rounds` times, `pause` clocks apart.
static __global__ void __launch_bounds__(256, 1)
    stores_kernel(int32_t *out, uint32_t *matrix, int pitch, int rounds, int pause, bool fenced) {
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t *row = matrix + ((size_t)blockIdx.x * 128 + warp * 16 + lane / 4) * (uint32_t)pitch;
  for (int round = 0; round < rounds; round++) {
    __syncthreads();
    int64_t begin = clock64();
#pragma unroll
    for (int i = 0; i < 32; i++) {
      row[i * 4 + lane % 4] = lane;
      row[8 * (size_t)pitch + i * 4 + lane % 4] = lane;
    }
    if (fenced) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x * rounds + round] = (int32_t)(clock64() - begin);
    int64_t from = clock64();  // the pause begins when this block is done, as its next tile does
    while (clock64() - from < pause) {
    }
  }
}

typedef struct {
  int32_t least, median, most;
} Spread;

static int compare_ints(const void *a, const void *b) {
  return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

// The clocks of the first round, over the SMs; prints those of other rounds too.
static Spread stores_of(int blocks, bool fenced, int32_t *out, uint32_t *matrix) {
  static int32_t times[MOST_SMS * ROUNDS];
  for (int i = 0; i < 2; i++)
    stores_kernel<<<blocks, 256>>>(out, matrix, PITCH, ROUNDS, PAUSE, fenced);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(times, out, sizeof times, cudaMemcpyDeviceToHost));
  printf("# stores%s by %d SMs: round: least median most clocks", fenced ? ", fenced," : "",
         blocks);
  Spread first = {0, 0, 0};
  for (int round = 0; round < ROUNDS; round += round < 2 ? 1 : 7) {
    int32_t sorted[MOST_SMS];
    for (int i = 0; i < blocks; i++) sorted[i] = times[i * ROUNDS + round];
    qsort(sorted, (size_t)blocks, sizeof(int32_t), compare_ints);
    Spread spread = {sorted[0], sorted[blocks / 2], sorted[blocks - 1]};
    printf("  %d: %d %d %d", round, spread.least, spread.median, spread.most);
    if (round == 0) first = spread;
  }
  printf("\n");
  return first;
}

int main(int argc, char **argv) {
  program_begin("measure_load", argc, argv, NULL, 0);
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  int sms = properties.multiProcessorCount;
  if (sms > MOST_SMS) program_fail("%d SMs, but there is room for the times of %d", sms, MOST_SMS);
  int32_t *out;
  uint32_t *matrix;
  CUDA_CHECK(cudaMalloc(&out, MOST_SMS * ROUNDS * sizeof(int32_t)));
  CUDA_CHECK(cudaMalloc(&matrix, (size_t)sms * 128 * PITCH * sizeof(uint32_t)));
  for (int blocks : {sms / 4, sms / 2}) stores_of(blocks, false, out, matrix);
  Spread one = stores_of(1, false, out, matrix), all = stores_of(sms, false, out, matrix);
  Spread one_fenced = stores_of(1, true, out, matrix),
         all_fenced = stores_of(sms, true, out, matrix);
  printf("store_sector %.4g clocks of a sector stored by threads of one SM\n",
         (double)one.median / REQUEST_SECTORS);
  printf("l2_store_sector %.4g clocks of L2 for a sector that is stored in part\n",
         (double)(all_fenced.most - (one_fenced.median - one.median)) / REQUEST_SECTORS / sms);
  printf("stores_least %d clocks of the first of all SMs that store an accumulator\n", all.least);
  printf("stores_median %d clocks of the median SM\n", all.median);
  printf("stores_most %d clocks of the last SM\n", all.most);
  return program_end("measured, not checked");
}
