// tiled: a GEMM with one block for each tile of C, and a loop over k.
//
//   [tiled] | serial | ring | producer_consumer | two_consumers | multicast | persistent |
//   tma_epilogue | overlapped_epilogue | carried_tile | pipelined_gemm
//
// The first rung of the ladder: first_wgmma, for matrices of any size. Each block computes a tile of
// 64 x 64. It walks along k in steps of 64. In each step it loads 64 x 64 of A and of B, waits for
// both, multiplies, and waits for the result:
//
//                     B: 64 rows (columns of C)
//                       | k ...
//     A: 64 rows  k ... +-- tile of C: the sum over all steps stays in registers
//
// What reaches past the edge of a matrix arrives as zeros, which change no sum.
//
// Many of these blocks would fit on one SM, and while one waits another could multiply. The ladder takes
// another route because it leads further: one block to an SM, with the overlap built into the kernel. To
// keep the rungs comparable, this one already asks for so much shared memory that it is alone.
#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "accumulator.cuh"
#include "gemm_program.cuh"
#include "wgmma.cuh"

enum {
  TILE_M = 64,
  TILE_N = 64,
  STEP_K = 64,  // a row of 64 bf16 is 128 bytes: one swizzle span, one line of a WGMMA tile
  THREADS = 128,
  UNUSED_BYTES = 120 * 1024,  // of shared memory: two blocks do not fit on an SM
  LOAD_BYTES = (TILE_M + TILE_N) * STEP_K * 2,
};

static __global__ void __launch_bounds__(THREADS)
    tiled_kernel(const __grid_constant__ CUtensorMap map_a,
                 const __grid_constant__ CUtensorMap map_b, uint16_t *c, int m, int n, int k) {
  __shared__ alignas(1024) uint16_t tile_a[TILE_M * STEP_K], tile_b[TILE_N * STEP_K];
  __shared__ uint64_t full;
  int row = blockIdx.x * TILE_M, column = blockIdx.y * TILE_N;

  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  uint64_t a = wgmma_descriptor_k_major(tile_a), b = wgmma_descriptor_k_major(tile_b);
  float d[TILE_N / 2];  // 64 x 64 values in 128 threads
  for (int step = 0; step * STEP_K < k; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, LOAD_BYTES);
      tma_load_2d(tile_a, &map_a, step * STEP_K, row, &full);
      tma_load_2d(tile_b, &map_b, step * STEP_K, column, &full);
    }
    mbarrier_wait_parity(&full, step % 2);  // each step is one phase of the barrier
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n64k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step > 0 || i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // all four warps are done with the tiles: the next load may overwrite them
  }
  store_accumulator(c, d, TILE_N / 8, row + threadIdx.x / 32 * 16, column, m, n);
}

static void gemm_prepare(GemmPlan *plan) {
  LadderProblem *p = &plan->problem;
  plan->a = gemm_map("A", p->a, p->m, p->k, TILE_M, STEP_K);
  plan->b = gemm_map("B", p->b, p->n, p->k, TILE_N, STEP_K);
  CUDA_CHECK(cudaFuncSetAttribute(tiled_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  UNUSED_BYTES));
}

static void gemm_launch(const GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  dim3 tiles(divide_up(p->m, TILE_M), divide_up(p->n, TILE_N));
  tiled_kernel<<<tiles, THREADS, UNUSED_BYTES>>>(plan->a, plan->b, p->c, p->m, p->n, p->k);
}

int main(int argc, char **argv) {
  return gemm_program("tiled", argc, argv, gemm_prepare, gemm_launch, 0);
}
