// persistent: a GEMM by clusters that stay and compute one tile after another.
//
//   tiled | serial | ring | producer_consumer | two_consumers | multicast | [persistent] |
//   tma_epilogue | overlapped_epilogue | carried_tile | pipelined_gemm
//
// So far every tile had its own block, which began with an empty ring and ended with the tensor cores
// waiting for its stores. Now there are n clusters, as many as the chip holds at once, and each takes
// every n-th tile. The ring runs on from tile to tile: while the consumers write one tile out, the
// producer already loads the next. Stage and parity follow from a count of steps that is never reset.
#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "../05_multicast/cluster.cuh"
#include "../05_multicast/tma_multicast.cuh"
#include "accumulator.cuh"
#include "gemm_program.cuh"
#include "tile_order.cuh"
#include "wgmma.cuh"

enum {
  TILE_M = 128,
  TILE_N = 256,
  STEP_K = 64,  // a row of 64 bf16 is 128 bytes: one swizzle span, one line of a WGMMA tile
  CONSUMERS = 2,
  CONSUMER_WARPS = CONSUMERS * 4,
  THREADS = 384,  // the consumers' two warpgroups, then the producer's
  STAGES = 4,
  CLUSTER = 2,
  SLICE = TILE_N / CLUSTER,  // columns of B that a block loads for both
  BAND = 2048 / TILE_N,      // of columns: tile_order.cuh
  LOAD_BYTES = (TILE_M + TILE_N) * STEP_K * 2,
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t a[STAGES][TILE_M * STEP_K];
  uint16_t b[STAGES][TILE_N * STEP_K];
  uint64_t full[STAGES];
  uint64_t empty[STAGES];
} Shared;
enum { SHARED_BYTES = sizeof(Shared) + 1024 };  // space to align in

static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    persistent_kernel(const __grid_constant__ CUtensorMap map_a,
                      const __grid_constant__ CUtensorMap map_b, TileOrder order, uint16_t *c,
                      int m, int n, int k) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  uint32_t rank = cluster_rank();
  int tiles = order.rows * order.columns, clusters = gridDim.x / CLUSTER;
  int steps = divide_up(k, STEP_K);  // what reaches past the edge arrives as zeros

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], CLUSTER * CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  cluster_sync();  // the peer's barriers must be there before anything is sent to them

  int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
  if (warpgroup == CONSUMERS) {
    setmaxnreg_producer();
    if (thread == 0) {
      uint32_t count = 0;  // of steps, over all tiles
      for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += clusters) {
        TilePlace place = tile_place(order, tile);
        int row = (place.row * CLUSTER + rank) * TILE_M, column = place.column * TILE_N;
        for (int step = 0; step < steps; step++, count++) {
          uint32_t stage = count % STAGES;
          mbarrier_wait_parity(&shared->empty[stage], (count / STAGES % 2) ^ 1);
          mbarrier_arrive_expect_tx(&shared->full[stage], LOAD_BYTES);
          tma_load_2d(shared->a[stage], &map_a, step * STEP_K, row, &shared->full[stage]);
          tma_load_2d_multicast(shared->b[stage] + rank * SLICE * STEP_K, &map_b, step * STEP_K,
                                column + rank * SLICE, &shared->full[stage],
                                cluster_mask_all(CLUSTER));
        }
      }
      // A block must not end while a peer may still report a stage as free to it: wait for all reports.
      for (int i = 0; i < STAGES; i++, count++) {
        mbarrier_wait_parity(&shared->empty[count % STAGES], (count / STAGES % 2) ^ 1);
      }
    }
  } else {
    setmaxnreg_consumer();
    // Lane i of each warp tells the block of rank i that a stage is free.
    uint32_t lane = thread % 32;
    uint32_t peer_empty = lane < CLUSTER ? mapa_shared(shared->empty, lane) : 0;
    float d[TILE_N / 2];  // 64 x 256 values in 128 threads
    uint32_t count = 0;   // of steps, over all tiles
    for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += clusters) {
      for (int step = 0; step < steps; step++, count++) {
        uint32_t stage = count % STAGES;
        mbarrier_wait_parity(&shared->full[stage], count / STAGES % 2);
        uint64_t a = wgmma_descriptor_k_major(shared->a[stage] + warpgroup * 64 * STEP_K);
        uint64_t b = wgmma_descriptor_k_major(shared->b[stage]);
        wgmma_fence();
        for (int i = 0; i < STEP_K / 16; i++) {
          wgmma_m64n256k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step > 0 || i > 0);
        }
        wgmma_commit();
        wgmma_wait_all_but_one();
        if (lane < CLUSTER && step > 0) {
          mbarrier_arrive_cluster(peer_empty + (count - 1) % STAGES * sizeof(uint64_t));
        }
      }
      wgmma_wait_all();
      if (lane < CLUSTER) {  // before the stores, so that the producer can go on
        mbarrier_arrive_cluster(peer_empty + (count - 1) % STAGES * sizeof(uint64_t));
      }
      TilePlace place = tile_place(order, tile);
      int row = (place.row * CLUSTER + rank) * TILE_M + warpgroup * 64 + thread / 32 * 16;
      store_accumulator(c, d, TILE_N / 8, row, place.column * TILE_N, m, n);
    }
  }
}

static TileOrder tile_order(const LadderProblem *p) {
  TileOrder order;
  order.rows = divide_up(p->m, TILE_M * CLUSTER);
  order.columns = divide_up(p->n, TILE_N);
  order.band = BAND;
  order.by_columns = 1;
  return order;
}

static void gemm_prepare(GemmPlan *plan) {
  LadderProblem *p = &plan->problem;
  plan->a = gemm_map("A", p->a, p->m, p->k, TILE_M, STEP_K);
  plan->b = gemm_map("B", p->b, p->n, p->k, SLICE, STEP_K);
  CUDA_CHECK(cudaFuncSetAttribute(persistent_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  SHARED_BYTES));
  TileOrder order = tile_order(p);
  plan->blocks = persistent_blocks((const void *)persistent_kernel, CLUSTER, THREADS, SHARED_BYTES,
                                   order.rows * order.columns, p->most_blocks);
}

static void gemm_launch(const GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  persistent_kernel<<<plan->blocks, THREADS, SHARED_BYTES>>>(plan->a, plan->b, tile_order(p), p->c,
                                                             p->m, p->n, p->k);
}

int main(int argc, char **argv) {
  return gemm_program("persistent", argc, argv, gemm_prepare, gemm_launch, 2);
}
