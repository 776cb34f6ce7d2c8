// exercise all_k_steps: multiply all 128 values of k
//
// 128 threads multiply 64 rows of A by 64 rows of B (given as [N, K]), both bf16, with 128 values of k. A line
// under the 128-byte swizzle holds only 64 of them, so each operand comes in two boxes, one behind the
// other: k 0 to 63, then k 64 to 127. As in first_wgmma.cu, only 16 k are multiplied so far. Multiply all.
#include "../../02_tma_load/tma_load.cuh"
#include "../accumulator.cuh"
#include "../wgmma.cuh"

enum { M = 64, N = 64, K = 128, BOX_K = 64, BOXES = K / BOX_K };

extern "C" __global__ void __launch_bounds__(128)
    all_k_steps(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b, uint16_t *c) {
  __shared__ alignas(1024) uint16_t a[BOXES][M * BOX_K], b[BOXES][N * BOX_K];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof a + sizeof b);
    for (int box = 0; box < BOXES; box++) {
      tma_load_2d(a[box], &map_a, box * BOX_K, 0, &barrier);
      tma_load_2d(b[box], &map_b, box * BOX_K, 0, &barrier);
    }
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  float d[N / 2];
  wgmma_fence();
  wgmma_m64n64k16(d, wgmma_descriptor_k_major(a[0]), wgmma_descriptor_k_major(b[0]),
                  0);  // Change this.
  wgmma_commit();
  wgmma_wait_all();
  store_accumulator(c, d, N / 8, threadIdx.x / 32 * 16, 0, M, N);
}
