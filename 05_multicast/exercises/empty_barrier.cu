// exercise empty_barrier: tell a peer that you have read the buffer
//
// A cluster of two blocks of 32 threads. Thread 0 of rank 0 loads `tiles` tiles of 8x16 one after the other into
// the same buffer of both blocks, by multicast. Tile t begins at row 8 * t. Each block writes each tile to
// results + 128 * (2 * t + rank). Rank 0 may load the next tile only when both blocks have read this
// one: they arrive at the barrier `empty` of rank 0. Don't use cluster_sync() in the loop.
#include "../../02_tma_load/tma_load.cuh"
#include "../cluster.cuh"
#include "../tma_multicast.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS, BLOCKS = 2 };

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1)
    empty_barrier(const __grid_constant__ CUtensorMap map, int tiles, int *results) {
  __shared__ alignas(128) int tile[TILE];
  __shared__ uint64_t full, empty;
  int rank = (int)cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, BLOCKS);
    fence_mbarrier_init();
  }
  cluster_sync();
  for (int t = 0; t < tiles; t++) {
    // Write here: wait until the buffers are free, load tile t into both, wait for it.
    for (int i = threadIdx.x; i < TILE; i += blockDim.x) {
      results[(BLOCKS * t + rank) * TILE + i] = tile[i];
    }
    __syncthreads();
    // Write here: say that this block has read the buffer.
  }
  cluster_sync();  // no block ends while a peer may still use its shared memory
}
