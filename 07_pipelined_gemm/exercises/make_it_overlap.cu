// exercise make_it_overlap: the copy engine must not wait for the tensor cores
//
// 128 threads compute a 64x64 tile of C over `steps` steps of 64 k. This kernel is right, but it loads,
// waits, multiplies and waits: the copy engine and the tensor cores take turns. Make a ring of two
// stages, so that the tiles of the next step are already being loaded while this one is multiplied.
// `steps` may be 1.
#include "../../02_tma_load/tma_load.cuh"
#include "../accumulator.cuh"
#include "../wgmma.cuh"

enum { M = 64, N = 64, STEP_K = 64 };

extern "C" __global__ void __launch_bounds__(128)
    make_it_overlap(const __grid_constant__ CUtensorMap map_a,
                    const __grid_constant__ CUtensorMap map_b, int steps, uint16_t *c) {
  __shared__ alignas(1024) uint16_t a[M * STEP_K], b[N * STEP_K];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  float d[N / 2];
  uint64_t tile_a = wgmma_descriptor_k_major(a), tile_b = wgmma_descriptor_k_major(b);
  for (int step = 0; step < steps; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, sizeof a + sizeof b);
      tma_load_2d(a, &map_a, step * STEP_K, 0, &full);
      tma_load_2d(b, &map_b, step * STEP_K, 0, &full);
    }
    mbarrier_wait_parity(&full, step % 2);
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n64k16(d, tile_a + i * WGMMA_K_STEP, tile_b + i * WGMMA_K_STEP, step > 0 || i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // all four warps are done with the tiles: the next load may overwrite them
  }
  store_accumulator(c, d, N / 8, threadIdx.x / 32 * 16, 0, M, N);
}
