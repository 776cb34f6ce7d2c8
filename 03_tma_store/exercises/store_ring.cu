// exercise store_ring: a ring of two buffers for stores
//
// One block of 64 threads stores `tiles` tiles of 8x16. Element i of tile t is values[t] + i, and tile t
// begins at column 0, row 8 * t. There are two buffers: while the copy engine still reads one of them,
// the threads fill the other. So two stores must be able to be under way at the same time.
#include "../tma_store.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS, BUFFERS = 2 };

extern "C" __global__ void store_ring(const __grid_constant__ CUtensorMap map, int tiles,
                                      const int *values) {
  __shared__ alignas(128) int buffers[BUFFERS][TILE];
  for (int t = 0; t < tiles; t++) {
    int *buffer = buffers[t % BUFFERS];
    // Write here: when may the threads write to the buffer?
    for (int i = threadIdx.x; i < TILE; i += blockDim.x) buffer[i] = values[t] + i;
    // Write here: the store.
  }
  // Write here: when may the block end?
}
