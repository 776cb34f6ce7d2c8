// exercise b_mn_major: B as [K, N]
//
// 128 threads multiply a 64x64 tile of A by a 64x64 tile of B. A is K-major, as before. B lies in memory
// as [K, N]: a line of its tile holds 64 n of one k. The kernel still treats B as K-major. Change
// that.
#include "../../02_tma_load/tma_load.cuh"
#include "../accumulator.cuh"
#include "../wgmma.cuh"

enum { M = 64, N = 64, K = 64 };

extern "C" __global__ void __launch_bounds__(128)
    b_mn_major(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               uint16_t *c) {
  __shared__ alignas(1024) uint16_t a[M * K], b[K * N];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof a + sizeof b);
    tma_load_2d(a, &map_a, 0, 0, &barrier);
    tma_load_2d(b, &map_b, 0, 0, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  float d[N / 2];
  // Change what follows.
  uint64_t tile_a = wgmma_descriptor_k_major(a), tile_b = wgmma_descriptor_k_major(b);
  wgmma_fence();
  for (int step = 0; step < K / 16; step++) {
    wgmma_m64n64k16(d, tile_a + step * WGMMA_K_STEP, tile_b + step * WGMMA_K_STEP, step > 0);
  }
  wgmma_commit();
  wgmma_wait_all();
  store_accumulator(c, d, N / 8, threadIdx.x / 32 * 16, 0, M, N);
}
