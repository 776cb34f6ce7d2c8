// serial: a GEMM that loads and multiplies in turn, tile by tile in an order that suits L2.
//
//   tiled | [serial] | ring | producer_consumer | two_consumers | multicast | persistent |
//   tma_epilogue | overlapped_epilogue | carried_tile | pipelined_gemm
//
// A step of tiled waits for a copy of 16 KiB and for a multiplication of 64 x 64 x 64, and most of both is
// latency. A tile of 64 x 256 does four times the work in each step. It also loads fewer bytes for each
// result: 320 rows for 16,384 results, where tiled loads 128 rows for 4,096. And the order of the tiles
// (tile_order.cuh) keeps as much of A and B as possible in L2.
//
// What is left is that the copy engine and the tensor cores take turns, and each is idle while the other
// works:
//
//     copy   ==load==            ==load==            ==load==
//     wgmma            ==mma==             ==mma==             ==mma==
//
// From here on the tiles are in dynamic shared memory: static memory ends at 48 KiB, and the ring of the
// next rung needs 160. This kernel asks for as much, to be alone on its SM as the others are.
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
  BAND = 2048 / TILE_M,  // of rows: tile_order.cuh
  LOAD_BYTES = (TILE_M + TILE_N) * STEP_K * 2,
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t a[TILE_M * STEP_K];
  uint16_t b[TILE_N * STEP_K];
  uint64_t full;
} Shared;
enum { SHARED_BYTES = 160 * 1024 };  // one block to an SM

static __global__ void __launch_bounds__(THREADS)
    serial_kernel(const __grid_constant__ CUtensorMap map_a,
                  const __grid_constant__ CUtensorMap map_b, TileOrder order, uint16_t *c, int m,
                  int n, int k) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  TilePlace place = tile_place(order, blockIdx.x);
  int row = place.row * TILE_M, column = place.column * TILE_N;
  int steps = divide_up(k, STEP_K);  // what reaches past the edge arrives as zeros

  if (threadIdx.x == 0) {
    mbarrier_init(&shared->full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  uint64_t a = wgmma_descriptor_k_major(shared->a);
  uint64_t b = wgmma_descriptor_k_major(shared->b);
  float d[TILE_N / 2];  // 64 x 256 values in 128 threads
  for (int step = 0; step < steps; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&shared->full, LOAD_BYTES);
      tma_load_2d(shared->a, &map_a, step * STEP_K, row, &shared->full);
      tma_load_2d(shared->b, &map_b, step * STEP_K, column, &shared->full);
    }
    mbarrier_wait_parity(&shared->full, step % 2);
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n256k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step > 0 || i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // all four warps are done with the tiles: the next load may overwrite them
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
  CUDA_CHECK(cudaFuncSetAttribute(serial_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  SHARED_BYTES));
}

static void gemm_launch(const GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  TileOrder order = tile_order(p);
  serial_kernel<<<order.rows * order.columns, THREADS, SHARED_BYTES>>>(plan->a, plan->b, order,
                                                                       p->c, p->m, p->n, p->k);
}

int main(int argc, char **argv) {
  return gemm_program("serial", argc, argv, gemm_prepare, gemm_launch, 0);
}
