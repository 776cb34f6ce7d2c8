// exercise all_k_steps: multiply all 64 values of k
//
// 128 threads multiply a 64x64 tile of A by a 64x64 tile of B, both bf16 and K-major. As in
// first_wgmma.cu, only 16 of the 64 values of k are multiplied so far. Multiply all of them.
#include "../../02_tma_load/tma_load.cuh"
#include "../accumulator.cuh"
#include "../wgmma.cuh"

enum { M = 64, N = 64, K = 64 };

extern "C" __global__ void __launch_bounds__(128)
    all_k_steps(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b, uint16_t *c) {
  __shared__ alignas(1024) uint16_t a[M * K], b[N * K];
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
  uint64_t tile_a = wgmma_descriptor_k_major(a), tile_b = wgmma_descriptor_k_major(b);
  wgmma_fence();
  wgmma_m64n64k16(d, tile_a, tile_b, 0);  // Change this.
  wgmma_commit();
  wgmma_wait_all();
  store_accumulator(c, d, N / 8, threadIdx.x / 32 * 16, 0, M, N);
}
