// exercise two_matrices: two loads, one barrier
//
// One block of 64 threads loads the 8x16 box at column x, row y of two matrices and writes the sums
// of their elements to `result`. Both loads are under way at the same time and report to the same
// barrier, which needs one arrival. The box may reach over an edge.
#include "../tma_load.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

extern "C" __global__ void two_matrices(const __grid_constant__ CUtensorMap map_a,
                                        const __grid_constant__ CUtensorMap map_b, int x, int y,
                                        int *result) {
  __shared__ alignas(128) int a[TILE], b[TILE];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    // Write here.
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < TILE; i += blockDim.x) result[i] = a[i] + b[i];
}
