// exercise write_load: write the load
//
// One block of 32 threads loads the 8x16 box of the matrix that begins at column x, row y into
// shared memory, by one TMA load, and writes it to `result`. The barrier, the load and the wait are
// missing. x and y may be such that the box reaches over an edge: what then arrives is 0.
#include "../tma_load.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16 };

extern "C" __global__ void write_load(const __grid_constant__ CUtensorMap map, int x, int y,
                                      int *result) {
  __shared__ alignas(128) int tile[TILE_ROWS * TILE_COLUMNS];
  // Write here.

  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += blockDim.x) result[i] = tile[i];
}
