// ring: a GEMM with several stages of tiles: loads run ahead of the multiplication.
//
//   tiled | serial | [ring] | producer_consumer | two_consumers | multicast | persistent |
//   tma_epilogue | overlapped_epilogue | carried_tile | pipelined_gemm
//
// Shared memory holds a ring of STAGES pairs of tiles, each with its own full-barrier. Before the
// first step, the loads of all stages begin. Once a stage has been consumed, it is loaded again for
// the step STAGES later. While the tensor cores work on one stage, the others are being loaded:
//
//     stage 0   ==load==  ==mma==  ==load of step 4==            ==mma==
//     stage 1   ==load==           ==mma==  ==load of step 5==            ==mma==
//     stage 2   ==load==                    ==mma==  ...
//
// The parity to wait for flips each time the ring wraps around: step / STAGES % 2.
#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "accumulator.cuh"
#include "gemm_program.cuh"
#include "tile_order.cuh"
#include "wgmma.cuh"

enum {
  TILE_M = 64,
  TILE_N = 256,
  STEP_K = 64,  // a row of 64 bf16 is 128 bytes: one swizzle span, one line of a WGMMA tile
  THREADS = 128,
  STAGES = 4,
  BAND = 2048 / TILE_M,  // of rows: tile_order.cuh
  LOAD_BYTES = (TILE_M + TILE_N) * STEP_K * 2,
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t a[STAGES][TILE_M * STEP_K];
  uint16_t b[STAGES][TILE_N * STEP_K];
  uint64_t full[STAGES];
} Shared;
enum { SHARED_BYTES = sizeof(Shared) + 1024 };  // space to align in

// Loads the tiles of one step into a stage. One thread calls it.
static __device__ __forceinline__ void load_stage(Shared *shared, int stage, int k, int row,
                                                  int column, const CUtensorMap *map_a,
                                                  const CUtensorMap *map_b) {
  mbarrier_arrive_expect_tx(&shared->full[stage], LOAD_BYTES);
  tma_load_2d(shared->a[stage], map_a, k, row, &shared->full[stage]);
  tma_load_2d(shared->b[stage], map_b, k, column, &shared->full[stage]);
}

static __global__ void __launch_bounds__(THREADS)
    ring_kernel(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b, TileOrder order, uint16_t *c, int m,
                int n, int k) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  TilePlace place = tile_place(order, blockIdx.x);
  int row = place.row * TILE_M, column = place.column * TILE_N;
  int steps = divide_up(k, STEP_K);  // what reaches past the edge arrives as zeros

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) mbarrier_init(&shared->full[stage], 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    for (int step = 0; step < STAGES && step < steps; step++) {
      load_stage(shared, step, step * STEP_K, row, column, &map_a, &map_b);
    }
  }
  float d[TILE_N / 2];  // 64 x 256 values in 128 threads
  for (int step = 0; step < steps; step++) {
    int stage = step % STAGES;
    mbarrier_wait_parity(&shared->full[stage], step / STAGES % 2);
    uint64_t a = wgmma_descriptor_k_major(shared->a[stage]);
    uint64_t b = wgmma_descriptor_k_major(shared->b[stage]);
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n256k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step > 0 || i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // all four warps are done with the stage: it may be loaded again
    if (threadIdx.x == 0 && step + STAGES < steps) {
      load_stage(shared, stage, (step + STAGES) * STEP_K, row, column, &map_a, &map_b);
    }
  }
  store_accumulator(c, d, TILE_N / 8, row + threadIdx.x / 32 * 16, column, m, n);
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
  CUDA_CHECK(
      cudaFuncSetAttribute(ring_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
}

static void gemm_launch(const GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  TileOrder order = tile_order(p);
  ring_kernel<<<order.rows * order.columns, THREADS, SHARED_BYTES>>>(plan->a, plan->b, order, p->c,
                                                                     p->m, p->n, p->k);
}

int main(int argc, char **argv) {
  return gemm_program("ring", argc, argv, gemm_prepare, gemm_launch, 0);
}
