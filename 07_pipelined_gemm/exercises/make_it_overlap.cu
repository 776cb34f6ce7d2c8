// exercise make_it_overlap: the copy engine must not wait for the tensor cores
//
// 128 threads multiply A, 64 x 64, by `tiles` tiles of B, each 64 rows of [N, K]: C has 64 rows and 64 * tiles
// columns. A is loaded once and stays. For each tile this kernel loads, waits, multiplies, waits and
// stores: the copy engine and the tensor cores take turns. Give B two buffers, so that the next tile is
// already on its way while this one is multiplied and stored. Start the loads of A and of the first two
// tiles of B together. `tiles` may be 1.
#include "../../02_tma_load/tma_load.cuh"
#include "../accumulator.cuh"
#include "../wgmma.cuh"

enum { M = 64, N = 64, K = 64 };

extern "C" __global__ void __launch_bounds__(128)
    make_it_overlap(const __grid_constant__ CUtensorMap map_a,
                    const __grid_constant__ CUtensorMap map_b, int tiles, uint16_t *c) {
  __shared__ alignas(1024) uint16_t a[M * K], b[N * K];
  __shared__ uint64_t a_full, b_full;
  if (threadIdx.x == 0) {
    mbarrier_init(&a_full, 1);
    mbarrier_init(&b_full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&a_full, sizeof a);
    tma_load_2d(a, &map_a, 0, 0, &a_full);
  }
  __syncthreads();
  mbarrier_wait_parity(&a_full, 0);
  uint64_t tile_a = wgmma_descriptor_k_major(a), tile_b = wgmma_descriptor_k_major(b);
  for (int tile = 0; tile < tiles; tile++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&b_full, sizeof b);
      tma_load_2d(b, &map_b, 0, tile * N, &b_full);
    }
    mbarrier_wait_parity(&b_full, tile % 2);
    float d[N / 2];
    wgmma_fence();
    for (int i = 0; i < K / 16; i++) {
      wgmma_m64n64k16(d, tile_a + i * WGMMA_K_STEP, tile_b + i * WGMMA_K_STEP, i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    store_accumulator(c, d, N / 8, threadIdx.x / 32 * 16, tile * N, M, tiles * N);
    __syncthreads();  // all four warps are done with the tile: the next load may overwrite it
  }
}
