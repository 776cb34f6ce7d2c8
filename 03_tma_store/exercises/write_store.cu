// exercise write_store: write the store
//
// One block of 32 threads has filled an 8x16 tile. Send it, by one TMA store, to the place of the
// matrix that begins at column x, row y. The tile may reach past the last row or column. The block
// must not end before the copy engine has read the tile.
#include "../tma_store.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

extern "C" __global__ void write_store(const __grid_constant__ CUtensorMap map, int x, int y,
                                       const int *values) {
  __shared__ alignas(128) int tile[TILE];
  for (int i = threadIdx.x; i < TILE; i += blockDim.x) tile[i] = values[i];
  // Write here.
}
