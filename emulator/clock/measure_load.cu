// measure_load: what the SMs do to each other when all of them store at once, on the GPU that runs it:
// parameters of the clock that one SM alone does not show (measure.cu). CLOCK.md says what the model
// does with them. And what a block costs at its start and at its end.
//
// Each SM stores an accumulator of 128 x 256, round after round, as the rungs of chapter 07 do. L2
// does not serve all SMs alike: some are done in half the time of others, so the SMs drift apart, and
// after a few rounds they store one after the other instead of all at once.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../../05_multicast/cluster.cuh"
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

// The clocks of the first round, over the SMs.
static Spread stores_of(int blocks, bool fenced, int32_t *out, uint32_t *matrix) {
  static int32_t times[MOST_SMS * ROUNDS];
  for (int i = 0; i < 2; i++)
    stores_kernel<<<blocks, 256>>>(out, matrix, PITCH, ROUNDS, PAUSE, fenced);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(times, out, sizeof times, cudaMemcpyDeviceToHost));
  for (int i = 0; i < blocks; i++) times[i] = times[i * ROUNDS];
  qsort(times, (size_t)blocks, sizeof(int32_t), compare_ints);
  return {times[0], times[blocks / 2], times[blocks - 1]};
}

// ---- Turns: one block after the other on an SM ----

enum {
  TURNS = 8,
  TURN_THREADS = 384,
  TURN_SHARED = 200 * 1024,
  TURN_BARRIERS = 8,
  MOST_SPREAD = 60000,
  PARTS = 5 /* of a turn */
};

typedef struct {
  int64_t start, initialised, fenced, met, met_again, end;
  uint32_t sm;
} Turn;

// A block that fills its SM, as those of chapter 07 do: it initialises its barriers, pauses, lets its first eight warps store an accumulator, and ends. Blocks of one cluster pause for the
// same time.
static __device__ __forceinline__ void take_turn(Turn *turns, uint32_t *matrix, int pitch,
                                                 bool stores, bool clusters) {
  __shared__ uint64_t barriers[TURN_BARRIERS];
  Turn turn;
  turn.start = clock64();
  uint32_t cluster = clusters ? blockIdx.x / 2 : blockIdx.x;
  if (threadIdx.x == 0) {
    for (int i = 0; i < TURN_BARRIERS; i++) mbarrier_init(&barriers[i], 1);
    turn.initialised = clock64();
    fence_mbarrier_init();
    turn.fenced = clock64();
  }
  if (clusters)
    cluster_sync();
  else
    __syncthreads();
  turn.met = clock64();
  if (clusters)
    cluster_sync();
  else
    __syncthreads();
  turn.met_again = clock64();
  int64_t start = turn.start;
  int pause = PAUSE + (int)(cluster * 2654435761u >> 8) % MOST_SPREAD;
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  while (clock64() - start < pause) {
  }
  __syncthreads();
  if (stores && warp < 8) {
    uint32_t *row = matrix + ((size_t)blockIdx.x * 128 + warp * 16 + lane / 4) * (uint32_t)pitch;
#pragma unroll
    for (int i = 0; i < 32; i++) {
      row[i * 4 + lane % 4] = lane;
      row[8 * (size_t)pitch + i * 4 + lane % 4] = lane;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    turn.end = clock64();
    asm("mov.u32 %0, %%smid;" : "=r"(turn.sm));
    turns[blockIdx.x] = turn;
  }
}

static __global__ void __launch_bounds__(TURN_THREADS, 1)
    turn_kernel(Turn *turns, uint32_t *matrix, int pitch, bool stores) {
  take_turn(turns, matrix, pitch, stores, false);
}

static __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(TURN_THREADS, 1)
    turn_cluster_kernel(Turn *turns, uint32_t *matrix, int pitch, bool stores) {
  take_turn(turns, matrix, pitch, stores, true);
}

static int compare_turns(const void *a, const void *b) {
  const Turn *x = (const Turn *)a, *y = (const Turn *)b;
  if (x->sm != y->sm) return x->sm < y->sm ? -1 : 1;
  return (x->start > y->start) - (x->start < y->start);
}

typedef struct {
  int32_t gap, initialised, fenced, met, met_again; /* medians, each from the one before */
} Turns;

// What the blocks after the first one of each SM took.
static Turns turns_of(int sms, bool clusters, bool stores, Turn *turns, uint32_t *matrix) {
  static Turn found[MOST_SMS * TURNS];
  static int32_t parts[PARTS][MOST_SMS * TURNS];
  int blocks = sms * TURNS, count = 0, pitch = PITCH;
  const void *kernel = clusters ? (const void *)turn_cluster_kernel : (const void *)turn_kernel;
  CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TURN_SHARED));
  void *arguments[] = {&turns, &matrix, &pitch, &stores};
  for (int i = 0; i < 2; i++)
    CUDA_CHECK(cudaLaunchKernel(kernel, blocks, TURN_THREADS, arguments, TURN_SHARED, 0));
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(found, turns, (size_t)blocks * sizeof(Turn), cudaMemcpyDeviceToHost));
  qsort(found, (size_t)blocks, sizeof(Turn), compare_turns);
  for (int i = 1; i < blocks; i++) {
    const Turn *turn = &found[i];
    if (turn->sm != turn[-1].sm) continue;
    const int64_t moments[] = {turn[-1].end, turn->start, turn->initialised,
                               turn->fenced, turn->met,   turn->met_again};
    for (int j = 0; j < PARTS; j++) parts[j][count] = (int32_t)(moments[j + 1] - moments[j]);
    count++;
  }
  for (auto &part : parts) qsort(part, (size_t)count, sizeof(int32_t), compare_ints);
  int middle = count / 2;
  return {parts[0][middle], parts[1][middle], parts[2][middle], parts[3][middle], parts[4][middle]};
}

static void measure_turns(int sms) {
  Turn *turns;
  uint32_t *matrix;
  size_t bytes = (size_t)sms * TURNS * 128 * PITCH * sizeof(uint32_t);
  CUDA_CHECK(cudaMalloc(&turns, MOST_SMS * TURNS * sizeof(Turn)));
  CUDA_CHECK(cudaMalloc(&matrix, bytes));
  Turns plain = turns_of(sms, false, false, turns, matrix);
  Turns stored = turns_of(sms, false, true, turns, matrix);
  Turns clusters = turns_of(sms, true, false, turns, matrix);
  printf("store_drain %d clocks of a block's end for the stores that are on their way\n",
         stored.gap - plain.gap);
  printf("cluster_turn %d clocks more from a cluster's end to the next one's start\n",
         clusters.gap - plain.gap);
  printf("mbarrier_init %.4g clocks of mbarrier.init at the start of a block\n",
         (double)plain.initialised / TURN_BARRIERS);
  // A thread does not wait for its fence, but the barrier after it does.
  int init_fence = plain.fenced + plain.met - plain.met_again;
  printf("init_fence %d clocks of the fence after the inits and of what waits for it\n",
         init_fence);
  printf("cluster_start %d clocks of the first barrier.cluster of a cluster\n",
         clusters.fenced + clusters.met - init_fence);
  CUDA_CHECK(cudaFree(turns));
  CUDA_CHECK(cudaFree(matrix));
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
  measure_turns(sms);
  return program_end("measured, not checked");
}
