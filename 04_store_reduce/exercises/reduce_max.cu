// exercise reduce_max: the maximum instead of the sum
//
// Block b, 32 threads, holds candidate b: an 8x16 tile, at candidates + 128 * b. Afterwards each element
// of the 8x16 matrix behind `map` must be the largest of what it was before and all candidates for
// it. All blocks work at the same time, so let TMA reduce.
#include "../tma_reduce.cuh"

#include "../../03_tma_store/tma_store.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

extern "C" __global__ void reduce_max(const __grid_constant__ CUtensorMap map,
                                      const int *candidates) {
  __shared__ alignas(128) int tile[TILE];
  for (int i = threadIdx.x; i < TILE; i += blockDim.x) tile[i] = candidates[blockIdx.x * TILE + i];
  // Write here.
}
