// exercise sum_first: add up on the chip, reduce once
//
// Each block, 32 threads, adds `parts` tiles of 8x16 to the one tile of sums that all blocks share. Part p of
// block b is at values + 128 * (p * blocks + b). What is here is right, but each part travels to L2.
// Make it fast: one TMA reduction a block, however many parts there are.
#include "../tma_reduce.cuh"

#include "../../03_tma_store/tma_store.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

extern "C" __global__ void sum_first(const __grid_constant__ CUtensorMap sums, const int *values,
                                     int parts) {
  __shared__ alignas(128) int tile[TILE];
  for (int part = 0; part < parts; part++) {
    const int *from = values + TILE * (part * gridDim.x + blockIdx.x);
    for (int i = threadIdx.x; i < TILE; i += blockDim.x) tile[i] = from[i];
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      tma_reduce_add_2d(&sums, tile, 0, 0);
      bulk_commit_group();
      bulk_wait_group_read<0>();
    }
    __syncthreads();
  }
}
