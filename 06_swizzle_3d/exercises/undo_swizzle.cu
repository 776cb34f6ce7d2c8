// exercise undo_swizzle: read a swizzled tile in its right order
//
// One block of 32 threads has loaded a tile of 16 rows of 128 bytes with the 128-byte swizzle. The tile begins
// at a multiple of 1,024 bytes. Write it to `result` row by row, as it lies in global memory. Write
// the formula yourself, without swizzle.h.
#include "../../02_tma_load/tma_load.cuh"

enum { ROWS = 16, COLUMNS = 32 };

extern "C" __global__ void undo_swizzle(const __grid_constant__ CUtensorMap map, int *result) {
  __shared__ alignas(1024) int tile[ROWS * COLUMNS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof tile);
    tma_load_2d(tile, &map, 0, 0, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
    // Change this line.
    result[i] = tile[i];
  }
}
