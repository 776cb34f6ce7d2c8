// exercise several_tiles: several tiles through one barrier
//
// One block of 64 threads loads `tiles` tiles of 8x16, one after the other, into the same shared
// memory and through the same barrier. Tile t begins at column 0, row 8 * t. Each goes to result + t
// * 128. Initialise the barrier only once.
#include "../tma_load.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

extern "C" __global__ void several_tiles(const __grid_constant__ CUtensorMap map, int tiles,
                                         int *result) {
  __shared__ alignas(128) int tile[TILE];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int t = 0; t < tiles; t++) {
    // Write here: load tile t, and wait for it.
    for (int i = threadIdx.x; i < TILE; i += blockDim.x) result[t * TILE + i] = tile[i];
    // And is something missing here?
  }
}
