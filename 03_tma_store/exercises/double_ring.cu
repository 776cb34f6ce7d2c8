// exercise double_ring: load, double and store, all at the same time
//
// One block of 64 threads doubles `tiles` tiles of 8x16. Tile t comes through `from` and goes through `to`, both
// times at column 0, row 8 * t. load_double_store gives each tile a block. Here one block has three
// buffers: while the threads double tile t, the next tiles are loaded and the last one is stored.
#include "../../02_tma_load/tma_load.cuh"
#include "../tma_store.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS, BUFFERS = 3 };

extern "C" __global__ void double_ring(const __grid_constant__ CUtensorMap from,
                                       const __grid_constant__ CUtensorMap to, int tiles) {
  __shared__ alignas(128) int buffers[BUFFERS][TILE];
  // Write here.
}
