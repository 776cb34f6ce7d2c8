// exercise multicast_ring: the next multicast while both blocks still read
//
// As in empty_barrier, a cluster of two blocks of 32 threads: thread 0 of rank 0 loads `tiles` tiles for both
// by multicast, and each block writes tile t to results + 128 * (2 * t + rank). But now there are
// two buffers, and two multicasts must be able to be under way at the same time.
#include "../../02_tma_load/tma_load.cuh"
#include "../cluster.cuh"
#include "../tma_multicast.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS, BLOCKS = 2, BUFFERS = 2 };

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1)
    multicast_ring(const __grid_constant__ CUtensorMap map, int tiles, int *results) {
  __shared__ alignas(128) int buffers[BUFFERS][TILE];
  __shared__ uint64_t full[BUFFERS], empty[BUFFERS];
  // Write here.
  cluster_sync();  // no block ends while a peer may still use its shared memory
}
