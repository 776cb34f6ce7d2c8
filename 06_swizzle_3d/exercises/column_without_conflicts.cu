// exercise column_without_conflicts: read columns without bank conflicts
//
// One warp loads a tile of 32x32 numbers and writes it transposed: element (row, column) goes to
// result[column * 32 + row]. Two maps describe the same matrix: map_plain without a swizzle, and
// map_swizzled with the 128-byte swizzle. Thread r reads row r of the tile, so all threads read
// the same column. The judge counts the passes over the banks.
#include "../../02_tma_load/tma_load.cuh"

enum { ROWS = 32, COLUMNS = 32 };

extern "C" __global__ void column_without_conflicts(
    const __grid_constant__ CUtensorMap map_plain, const __grid_constant__ CUtensorMap map_swizzled,
    int *result) {
  __shared__ alignas(1024) int tile[ROWS * COLUMNS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof tile);
    tma_load_2d(tile, &map_plain, 0, 0, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  int row = threadIdx.x;
  // This is right, but every read takes 32 passes.
  for (int column = 0; column < COLUMNS; column++) {
    result[column * ROWS + row] = tile[row * COLUMNS + column];
  }
}
