// measure_load: what the SMs do to each other when all of them store at once, on the GPU that runs it:
// parameters of the clock that one SM alone does not show (measure.cu). CLOCK.md says what the model
// does with them. And what a block costs at its start and at its end.
//
// Each SM stores an accumulator of 128 x 256, round after round, as the rungs of chapter 07 do. L2
// does not serve all SMs alike: some are done in half the time of others, so the SMs drift apart, and
// after a few rounds they store one after the other instead of all at once.
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../02_tma_load/mbarrier.cuh"
#include "../../../02_tma_load/tma_load.cuh"
#include "../../../05_multicast/cluster.cuh"
#include "check.h"
#include "tensor_map.h"

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

// ---- Turns: one block after the other on an SM ----

enum {
  TURNS = 8,
  TURN_THREADS = 384,
  TURN_SHARED = 200 * 1024,
  TURN_BARRIERS = 8,
  TURN_BOX_COLUMNS = 64,
  TURN_BOX_ROWS = 192,
  TURN_BOX_BYTES = TURN_BOX_ROWS * TURN_BOX_COLUMNS * 2,
  MOST_SPREAD = 60000,
  PARTS = 7 /* of a turn */
};

typedef struct {
  int64_t start, initialised, fenced, met, met_again, loaded, again, end;
  uint32_t sm;
} Turn;

// A block that fills its SM, as those of chapter 07 do: it initialises its barriers, loads a stage twice,
// pauses, lets its first eight warps store an accumulator, and ends. Blocks of one cluster pause for the
// same time.
static __device__ __forceinline__ void take_turn(const CUtensorMap *map, Turn *turns,
                                                 uint32_t *matrix, int pitch, bool stores,
                                                 int spread, bool clusters) {
  extern __shared__ uint8_t dynamic_shared[];
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
  if (threadIdx.x == 0) {
    uint8_t *tile = dynamic_shared + (1024 - shared_address(dynamic_shared) % 1024) % 1024;
    for (int pass = 0; pass < 2; pass++) {
      mbarrier_arrive_expect_tx(&barriers[0], 2 * TURN_BOX_BYTES);
      for (int i = 0; i < 2; i++)
        tma_load_2d(tile + i * TURN_BOX_BYTES, map, 0,
                    (int)(blockIdx.x % 256 * 2 + (uint32_t)i) * TURN_BOX_ROWS, &barriers[0]);
      mbarrier_wait_parity(&barriers[0], (uint32_t)pass);
      (pass ? turn.again : turn.loaded) = clock64();
    }
  }
  // Without this the other lanes of the first warp would spin below while thread 0 waits for its copy.
  __syncthreads();
  int64_t start = turn.start;
  int pause = PAUSE + (spread ? (int)(cluster * 2654435761u >> 8) % spread : 0);
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
    turn_kernel(const __grid_constant__ CUtensorMap map, Turn *turns, uint32_t *matrix, int pitch,
                bool stores, int spread) {
  take_turn(&map, turns, matrix, pitch, stores, spread, false);
}

static __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(TURN_THREADS, 1)
    turn_cluster_kernel(const __grid_constant__ CUtensorMap map, Turn *turns, uint32_t *matrix,
                        int pitch, bool stores, int spread) {
  take_turn(&map, turns, matrix, pitch, stores, spread, true);
}

static uint8_t *tiles;  // what the blocks load
enum { TILES_ROWS = 512 * TURN_BOX_ROWS };

static int compare_turns(const void *a, const void *b) {
  const Turn *x = (const Turn *)a, *y = (const Turn *)b;
  if (x->sm != y->sm) return x->sm < y->sm ? -1 : 1;
  return (x->start > y->start) - (x->start < y->start);
}

typedef struct {
  int32_t gap, initialised, fenced, met, met_again, loaded,
      again; /* medians, each from the one before */
} Turns;

// The median, and prints the least and the most.
static int32_t median_of(const char *what, int32_t *values, int count) {
  qsort(values, (size_t)count, sizeof(int32_t), compare_ints);
  printf("#   %s: least %d, median %d, most %d clocks\n", what, values[0], values[count / 2],
         values[count - 1]);
  return values[count / 2];
}

// What the blocks after the first one of each SM took.
static Turns turns_of(int sms, bool clusters, bool stores, int spread, Turn *turns,
                      uint32_t *matrix) {
  static Turn found[MOST_SMS * TURNS];
  static int32_t parts[PARTS][MOST_SMS * TURNS];
  static const char *const names[] = {
      "from the block before", "barriers initialised", "fenced",      "all threads met",
      "they met again",        "48 KiB loaded",        "loaded again"};
  int blocks = sms * TURNS, count = 0, pitch = PITCH;
  const void *kernel = clusters ? (const void *)turn_cluster_kernel : (const void *)turn_kernel;
  CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TURN_SHARED));
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  map.dimensions = 2;
  map.address = tiles;
  map.size[0] = TURN_BOX_COLUMNS;
  map.size[1] = TILES_ROWS;
  map.box[0] = TURN_BOX_COLUMNS;
  map.box[1] = TURN_BOX_ROWS;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMap encoded = tensor_map_encode("matrix", &map);
  void *arguments[] = {&encoded, &turns, &matrix, &pitch, &stores, &spread};
  for (int i = 0; i < 2; i++)
    CUDA_CHECK(cudaLaunchKernel(kernel, blocks, TURN_THREADS, arguments, TURN_SHARED, 0));
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(found, turns, (size_t)blocks * sizeof(Turn), cudaMemcpyDeviceToHost));
  qsort(found, (size_t)blocks, sizeof(Turn), compare_turns);
  for (int i = 1; i < blocks; i++) {
    const Turn *turn = &found[i];
    if (turn->sm != turn[-1].sm) continue;
    const int64_t moments[] = {turn[-1].end, turn->start,     turn->initialised, turn->fenced,
                               turn->met,    turn->met_again, turn->loaded,      turn->again};
    for (int j = 0; j < PARTS; j++) parts[j][count] = (int32_t)(moments[j + 1] - moments[j]);
    count++;
  }
  printf("# blocks%s%s, %s\n", clusters ? " of clusters of two" : "",
         stores ? " that end by storing an accumulator" : "",
         spread ? "at many times" : "all at once");
  int32_t medians[PARTS];
  for (int j = 0; j < PARTS; j++) medians[j] = median_of(names[j], parts[j], count);
  return {medians[0], medians[1], medians[2], medians[3], medians[4], medians[5], medians[6]};
}

static void measure_turns(int sms) {
  Turn *turns;
  uint32_t *matrix;
  size_t bytes = (size_t)sms * TURNS * 128 * PITCH * sizeof(uint32_t);
  CUDA_CHECK(cudaMalloc(&turns, MOST_SMS * TURNS * sizeof(Turn)));
  CUDA_CHECK(cudaMalloc(&matrix, bytes));
  CUDA_CHECK(cudaMalloc(&tiles, TILES_ROWS * TURN_BOX_COLUMNS * 2));
  CUDA_CHECK(cudaMemset(tiles, 0, TILES_ROWS * TURN_BOX_COLUMNS * 2));
  Turns plain = turns_of(sms, false, false, MOST_SPREAD, turns, matrix);
  Turns stored = turns_of(sms, false, true, MOST_SPREAD, turns, matrix);
  Turns clusters = turns_of(sms, true, false, MOST_SPREAD, turns, matrix);
  turns_of(sms, true, true, MOST_SPREAD, turns, matrix);
  turns_of(sms, false, true, 0, turns, matrix);
  turns_of(sms, true, true, 0, turns, matrix);
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
  printf("# a block's first copy takes %d clocks more than its second\n",
         plain.loaded - plain.again);
  CUDA_CHECK(cudaFree(turns));
  CUDA_CHECK(cudaFree(matrix));
  CUDA_CHECK(cudaFree(tiles));
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
  measure_turns(sms);
  return program_end("measured, not checked");
}
