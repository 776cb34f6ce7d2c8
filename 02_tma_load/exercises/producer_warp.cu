// exercise producer_warp: one warp loads, two warps work
//
// One block of 96 threads writes `tiles` tiles of 8x16 to result; tile t begins at column 0, row 8 * t. As in
// load_ahead, but with four buffers and without any __syncthreads() in the loops: warp 2 only loads,
// and warps 0 and 1 only write tiles out. For each buffer `full` says that its tile is there, and
// `empty` that both warps have read it.
#include "../tma_load.cuh"

enum {
  TILE_ROWS = 8,
  TILE_COLUMNS = 16,
  TILE = TILE_ROWS * TILE_COLUMNS,
  BUFFERS = 4,
  WORKERS = 64
};

extern "C" __global__ void producer_warp(const __grid_constant__ CUtensorMap map, int tiles,
                                         int *result) {
  __shared__ alignas(128) int buffers[BUFFERS][TILE];
  __shared__ uint64_t full[BUFFERS], empty[BUFFERS];
  // Write here: initialise the barriers. How many arrivals does each need?
  if (threadIdx.x == WORKERS) {
    for (int t = 0; t < tiles; t++) {
      // Write here: wait until the buffer is free, then load.
    }
  } else if (threadIdx.x < WORKERS) {
    for (int t = 0; t < tiles; t++) {
      // Write here: wait until the tile is there.
      for (int i = threadIdx.x; i < TILE; i += WORKERS) {
        result[t * TILE + i] = buffers[t % BUFFERS][i];
      }
      // Write here: say that this warp has read the buffer.
    }
  }
}
