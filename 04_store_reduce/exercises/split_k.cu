// exercise split_k: several blocks share one sum
//
// C = A * transpose(B) for A of 8 x k and B of 16 x k, both row-major: C has 8 rows and 16 columns, and the
// judge has filled it with zeros. Split the k values among the blocks (64 threads each). Every block
// computes an 8x16 tile of partial sums, and one TMA reduction per block adds the tile to C. k need
// not be a multiple of the number of blocks.
#include "../tma_reduce.cuh"

#include "../../03_tma_store/tma_store.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

extern "C" __global__ void split_k(const __grid_constant__ CUtensorMap map_c, const int *a,
                                   const int *b, int k) {
  __shared__ alignas(128) int tile[TILE];
  // Write here.
}
