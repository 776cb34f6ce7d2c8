// exercise share_slice: each block fetches half of the tile, and both get all of it
//
// A cluster of two blocks of 32 threads. Both need the 8x16 tile at (0, 0). The map's box has only 4 rows, a
// slice. The block of rank r loads slice r, and TMA writes it to both blocks. Each block then writes
// the whole tile to results + 128 * rank. Only 512 bytes may be read from global memory in all.
#include "../../02_tma_load/tma_load.cuh"
#include "../cluster.cuh"
#include "../tma_multicast.cuh"

enum { SLICE_ROWS = 4, TILE_COLUMNS = 16, SLICE = SLICE_ROWS * TILE_COLUMNS, BLOCKS = 2 };

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1)
    share_slice(const __grid_constant__ CUtensorMap map, int *results) {
  __shared__ alignas(128) int tile[BLOCKS * SLICE];
  __shared__ uint64_t barrier;
  int rank = (int)cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  // Write here.

  for (int i = threadIdx.x; i < BLOCKS * SLICE; i += blockDim.x) {
    results[rank * BLOCKS * SLICE + i] = tile[i];
  }
  cluster_sync();  // no block ends while a copy may still use its shared memory
}
