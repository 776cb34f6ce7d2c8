// small_shapes: a GEMM with small tiles, whose k is split over a cluster.
//
//   tiled | serial | ring | producer_consumer | two_consumers | multicast | persistent |
//   tma_epilogue | overlapped_epilogue | carried_tile | pipelined_gemm (beside it: [small_shapes])
//
// A side branch of the ladder, for products with few tiles. A C of 64 x 512 has two tiles of
// 128 x 256: two SMs would work while 130 are idle. There are two remedies:
//
// 1. Smaller tiles. Tiles of 64 x 64 give eight blocks, but each loads more for what it computes.
// 2. Split k. The blocks of a cluster share one tile, and each takes a part of the k range. Then they
//    add up their sums, which they read from each other's shared memory:
//
//         block 0: k   0..1023   64 x 64 sums, of which columns  0..15 of all four -> block 0
//         block 1: k 1024..2047  64 x 64 sums, of which columns 16..31 of all four -> block 1
//         block 2: k 2048..3071  64 x 64 sums, of which columns 32..47 of all four -> block 2
//         block 3: k 3072..4095  64 x 64 sums, of which columns 48..63 of all four -> block 3
//
//    This needs no workspace and no second kernel. Each block adds in the order of k, so unlike sums
//    by atomics or by TMA reduce (chapter 04), the result has the same bits in every run. They differ
//    from those of the unsplit sum, because fp32 additions happen in another order.
//
// k is split in 2, 4 or 8 as long as there are SMs for it; --blocks N pretends that there are N.
#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "../05_multicast/cluster.cuh"
#include "accumulator.cuh"
#include "gemm_program.cuh"
#include "wgmma.cuh"

enum {
  TILE_M = 64,
  TILE_N = 64,
  STEP_K = 64,  // a row of 64 bf16 is 128 bytes: one swizzle span, one line of a WGMMA tile
  CONSUMER_THREADS = 128,
  CONSUMER_WARPS = CONSUMER_THREADS / 32,
  THREADS = CONSUMER_THREADS + 32,
  STAGES = 5,           // so that two blocks fit on an SM
  SUMS = TILE_N / 2,    // of a thread: 64 x 64 in 128 threads
  GROUPS = TILE_N / 8,  // of 8 columns, of which a thread has four values
  MOST_SPLIT = GROUPS,  // a block adds up at least one group
  LOAD_BYTES = (TILE_M + TILE_N) * STEP_K * 2,
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t a[STAGES][TILE_M * STEP_K];
  uint16_t b[STAGES][TILE_N * STEP_K];
  float sums[SUMS][CONSUMER_THREADS];
  uint64_t full[STAGES];
  uint64_t empty[STAGES];
} Shared;
enum { SHARED_BYTES = sizeof(Shared) + 1024 };  // space to align in

// `steps` steps of k, from `first` on, for the tile of C at (row, column): the producer warp loads, and the consumers' threads
// get their sums in d. All threads of the block call it.
static __device__ __forceinline__ void multiply_slice(Shared *shared, const CUtensorMap *map_a,
                                                      const CUtensorMap *map_b, int row, int column,
                                                      int first, int steps, float *d) {
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (threadIdx.x == CONSUMER_THREADS) {
    for (int step = 0; step < steps; step++) {
      int stage = step % STAGES, at = (first + step) * STEP_K;
      mbarrier_wait_parity(&shared->empty[stage], (step / STAGES % 2) ^ 1);
      mbarrier_arrive_expect_tx(&shared->full[stage], LOAD_BYTES);
      tma_load_2d(shared->a[stage], map_a, at, row, &shared->full[stage]);
      tma_load_2d(shared->b[stage], map_b, at, column, &shared->full[stage]);
    }
  } else if (threadIdx.x < CONSUMER_THREADS) {
    for (int step = 0; step < steps; step++) {
      int stage = step % STAGES;
      mbarrier_wait_parity(&shared->full[stage], step / STAGES % 2);
      uint64_t a = wgmma_descriptor_k_major(shared->a[stage]);
      uint64_t b = wgmma_descriptor_k_major(shared->b[stage]);
      wgmma_fence();
      for (int i = 0; i < STEP_K / 16; i++) {
        wgmma_m64n64k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step > 0 || i > 0);
      }
      wgmma_commit();
      wgmma_wait_all_but_one();
      if (threadIdx.x % 32 == 0 && step > 0) {
        mbarrier_arrive(&shared->empty[(step - 1) % STAGES]);
      }
    }
    wgmma_wait_all();
  }
}

static __global__ void __launch_bounds__(THREADS)
    small_kernel(const __grid_constant__ CUtensorMap map_a,
                 const __grid_constant__ CUtensorMap map_b, uint16_t *c, int m, int n, int k) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  int rank = cluster_rank(), split = cluster_size(), tile = blockIdx.x / split;
  int row = tile % divide_up(m, TILE_M) * TILE_M, column = tile / divide_up(m, TILE_M) * TILE_N;
  int all_steps = divide_up(k, STEP_K);  // what reaches past the edge arrives as zeros
  int first = all_steps * rank / split, steps = all_steps * (rank + 1) / split - first;

  float d[SUMS];
  multiply_slice(shared, &map_a, &map_b, row, column, first, steps, d);
  if (threadIdx.x < CONSUMER_THREADS) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) shared->sums[i][threadIdx.x] = d[i];
  }
  cluster_sync();  // the sums of all blocks are there
  if (threadIdx.x < CONSUMER_THREADS) {
    for (int group = rank * GROUPS / split; group < (rank + 1) * GROUPS / split; group++) {
      float d[4] = {};
      for (int peer = 0; peer < split; peer++) {  // in the order of k
        for (int i = 0; i < 4; i++) {
          uint32_t sum = mapa_shared(&shared->sums[4 * group + i][threadIdx.x], peer);
          d[i] += __uint_as_float(ld_shared_cluster(sum));
        }
      }
      store_accumulator(c, d, 1, row + threadIdx.x / 32 * 16, column + 8 * group, m, n);
    }
  }
  cluster_sync();  // a block must not end while a peer still reads its sums
}

static void gemm_prepare(GemmPlan *plan) {
  LadderProblem *p = &plan->problem;
  plan->a = gemm_map("A", p->a, p->m, p->k, TILE_M, STEP_K);
  plan->b = gemm_map("B", p->b, p->n, p->k, TILE_N, STEP_K);
  CUDA_CHECK(cudaFuncSetAttribute(small_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  SHARED_BYTES));
  int blocks = p->most_blocks, tiles = divide_up(p->m, TILE_M) * divide_up(p->n, TILE_N), split = 1;
  if (blocks == 0) CUDA_CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
  while (split < MOST_SPLIT && 2 * split * tiles <= blocks &&
         2 * split <= divide_up(p->k, STEP_K)) {
    split *= 2;
  }
  plan->blocks = tiles * split;
  plan->cluster = split;
}

static void gemm_launch(const GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)plan->cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3((unsigned)plan->blocks);
  launch.blockDim = dim3(THREADS);
  launch.dynamicSmemBytes = SHARED_BYTES;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  launch.stream = plan->stream;
  CUDA_CHECK(cudaLaunchKernelEx(&launch, small_kernel, plan->a, plan->b, p->c, p->m, p->n, p->k));
}

int main(int argc, char **argv) {
  // With 64 blocks the eight steps of 512 x 512 x 512 stay together and reuse the five stages, and
  // 200 x 328 x 136 is split in two. --blocks 264 splits both.
  return gemm_program("small_shapes", argc, argv, gemm_prepare, gemm_launch, 64);
}
