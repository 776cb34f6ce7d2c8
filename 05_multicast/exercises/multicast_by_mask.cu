// exercise multicast_by_mask: send a tile to the blocks of a mask
//
// A cluster of four blocks of 32 threads. Thread 0 of rank 0 loads the 8x16 tile at (0, 0) once, and TMA
// writes it to those blocks whose bit is set in `mask`. Rank 0 itself need not be among them. Each
// block that receives the tile writes it to results + 128 * rank. The others write nothing there.
#include "../../02_tma_load/tma_load.cuh"
#include "../cluster.cuh"
#include "../tma_multicast.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS, BLOCKS = 4 };

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1)
    multicast_by_mask(const __grid_constant__ CUtensorMap map, int mask, int *results) {
  __shared__ alignas(128) int tile[TILE];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  // Write here.

  cluster_sync();  // no block ends while a copy may still use its shared memory
}
