// exercise load_ahead: two loads on their way at the same time
//
// One block of 64 threads writes `tiles` tiles of 8x16 to result, as in several_tiles. But now there
// are two buffers, and while the block works on tile t, the load of tile t + 1 must already be under
// way. `tiles` may be 1.
#include "../tma_load.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS, BUFFERS = 2 };

extern "C" __global__ void load_ahead(const __grid_constant__ CUtensorMap map, int tiles,
                                      int *result) {
  __shared__ alignas(128) int buffers[BUFFERS][TILE];
  // Write here.
}
