// exercise zero_then_add: clear the sum, then add to it
//
// Block b, 32 threads, owns the 8x16 tile of the matrix that begins at column 0, row 8 * b. The matrix holds
// garbage. The block first stores zeros to its tile, then adds `parts` tiles to it, by TMA each time
// and with a single tile of shared memory. Part p of block b is at values + 128 * (p * blocks + b).
#include "../tma_reduce.cuh"

#include "../../03_tma_store/tma_store.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

extern "C" __global__ void zero_then_add(const __grid_constant__ CUtensorMap map, const int *values,
                                         int parts) {
  __shared__ alignas(128) int tile[TILE];
  // Write here.
}
