// exercise load_double_store: load a tile, double it, store it
//
// Each block, 64 threads, loads the 8x16 tile that begins at column 0, row 8 * blockIdx.x through `from`,
// doubles every element in shared memory, and stores the tile at the same place through `to`. Loads
// and stores are TMA's.
#include "../../02_tma_load/tma_load.cuh"
#include "../tma_store.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

extern "C" __global__ void load_double_store(const __grid_constant__ CUtensorMap from,
                                             const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(128) int tile[TILE];
  // Write here.
}
