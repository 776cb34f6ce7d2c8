// two_consumers: a GEMM with two consumer warpgroups that share a tile of B.
//
//   tiled | serial | ring | producer_consumer | [two_consumers] | multicast | persistent |
//   tma_epilogue | overlapped_epilogue | carried_tile | pipelined_gemm
//
// A tile of 64 x 256 loads 320 rows for 64 * 256 results. Twice as many rows of A share the same
// tile of B: 128 x 256 loads 384 rows for twice the results. Each warpgroup takes 64 rows of A:
//
//                     B: 256 columns
//     A: rows 0..63    consumer 0: 128 registers of accumulator a thread
//     A: rows 64..127  consumer 1
//
// An even share of the register file is tight for such accumulators, and not enough for what later
// rungs carry: 65,536 registers are 168 for each of 384 threads. setmaxnreg moves registers from
// the producer, which needs few, to the consumers. It works on whole warpgroups, so the producer
// becomes one with three idle warps. A stage is empty when all warps of both consumers have arrived
// on its empty-barrier, which therefore counts eight arrivals.
#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
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
  BAND = 2048 / TILE_M,  // of rows: tile_order.cuh
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

static __global__ void __launch_bounds__(THREADS, 1)
    two_consumers_kernel(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b, TileOrder order, uint16_t *c,
                         int m, int n, int k) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  TilePlace place = tile_place(order, blockIdx.x);
  int row = place.row * TILE_M, column = place.column * TILE_N;
  int steps = divide_up(k, STEP_K);  // what reaches past the edge arrives as zeros

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
  if (warpgroup == CONSUMERS) {
    setmaxnreg_producer();
    if (thread == 0) {
      for (int step = 0; step < steps; step++) {
        int stage = step % STAGES;
        mbarrier_wait_parity(&shared->empty[stage], (step / STAGES % 2) ^ 1);
        mbarrier_arrive_expect_tx(&shared->full[stage], LOAD_BYTES);
        tma_load_2d(shared->a[stage], &map_a, step * STEP_K, row, &shared->full[stage]);
        tma_load_2d(shared->b[stage], &map_b, step * STEP_K, column, &shared->full[stage]);
      }
    }
  } else {
    setmaxnreg_consumer();
    float d[TILE_N / 2];  // 64 x 256 values in 128 threads
    for (int step = 0; step < steps; step++) {
      int stage = step % STAGES;
      mbarrier_wait_parity(&shared->full[stage], step / STAGES % 2);
      uint64_t a = wgmma_descriptor_k_major(shared->a[stage] + warpgroup * 64 * STEP_K);
      uint64_t b = wgmma_descriptor_k_major(shared->b[stage]);
      wgmma_fence();
      for (int i = 0; i < STEP_K / 16; i++) {
        wgmma_m64n256k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step > 0 || i > 0);
      }
      wgmma_commit();
      wgmma_wait_all_but_one();
      if (thread % 32 == 0 && step > 0) mbarrier_arrive(&shared->empty[(step - 1) % STAGES]);
    }
    wgmma_wait_all();
    store_accumulator(c, d, TILE_N / 8, row + warpgroup * 64 + thread / 32 * 16, column, m, n);
  }
}

static TileOrder tile_order(const LadderProblem *p) {
  TileOrder order;
  order.rows = divide_up(p->m, TILE_M);
  order.columns = divide_up(p->n, TILE_N);
  order.band = BAND;
  order.by_columns = 0;
  return order;
}

static void gemm_prepare(GemmPlan *plan) {
  LadderProblem *p = &plan->problem;
  plan->a = gemm_map("A", p->a, p->m, p->k, TILE_M, STEP_K);
  plan->b = gemm_map("B", p->b, p->n, p->k, TILE_N, STEP_K);
  CUDA_CHECK(cudaFuncSetAttribute(two_consumers_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  SHARED_BYTES));
}

static void gemm_launch(const GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  TileOrder order = tile_order(p);
  two_consumers_kernel<<<order.rows * order.columns, THREADS, SHARED_BYTES>>>(
      plan->a, plan->b, order, p->c, p->m, p->n, p->k);
}

int main(int argc, char **argv) {
  return gemm_program("two_consumers", argc, argv, gemm_prepare, gemm_launch, 0);
}
