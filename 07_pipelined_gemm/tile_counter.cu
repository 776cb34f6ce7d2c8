// 07 tile_counter: blocks that fetch their next tile from a counter.
//
//   beside persistent, where every block takes each n-th tile
//
// If tiles take different times, as under a causal mask or in a group of products, a fixed share
// leaves some blocks idle at the end. A counter in global memory gives each block its next tile
// when it has time for it. What remains to be solved is inside the block: one thread asks,
// everybody must know the answer, and nobody should wait for the counter. So the producer
// asks one tile ahead, and the answer travels with the tile through the same ring:
//
//   producer, one thread                       consumers
//     tile = atomicAdd(counter, 1)               wait for full[stage]
//     wait for empty[stage]                      tile = tile_of[stage]; -1: done
//     tile_of[stage] = tile                      sum the stage
//     arrive_expect_tx(full[stage]), load        arrive at empty[stage]
//
// tile_of[stage] is an ordinary store. The producer's arrive at full[stage] releases it, and the
// consumers' wait acquires it, together with the bytes of the copy.
//
// Tile t is summed t % 8 + 1 times, so that some take eight times as long as others. Which block
// gets which tile differs from run to run; that each tile is taken exactly once does not.
#include <stdio.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  TILES = 96,
  ROWS = 16,
  COLUMNS = 32,
  TILE_BYTES = ROWS * COLUMNS * 4,
  STAGES = 3,
  BLOCKS = 6,
  CONSUMERS = 64,  // threads
  THREADS = CONSUMERS + 32,
  NO_TILE = -1,
};

__global__ void __launch_bounds__(THREADS)
    sum_tiles(const __grid_constant__ CUtensorMap map, int *counter, int *sums, int *times_taken) {
  __shared__ alignas(128) int tiles[STAGES][ROWS * COLUMNS];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  __shared__ int tile_of[STAGES];
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      mbarrier_init(&full[i], 1);
      mbarrier_init(&empty[i], CONSUMERS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (threadIdx.x == CONSUMERS) {  // the producer
    for (int round = 0, tile = 0; tile != NO_TILE; round++) {
      int stage = round % STAGES;
      tile = atomicAdd(counter, 1);
      if (tile >= TILES) tile = NO_TILE;
      mbarrier_wait_parity(&empty[stage], (round / STAGES + 1) % 2);  // the first time it is free
      tile_of[stage] = tile;
      if (tile == NO_TILE) {
        mbarrier_arrive(&full[stage]);
      } else {
        mbarrier_arrive_expect_tx(&full[stage], TILE_BYTES);
        tma_load_2d(tiles[stage], &map, 0, tile * ROWS, &full[stage]);
      }
    }
  } else if (threadIdx.x < CONSUMERS) {
    for (int round = 0;; round++) {
      int stage = round % STAGES;
      mbarrier_wait_parity(&full[stage], round / STAGES % 2);
      int tile = tile_of[stage];
      if (tile == NO_TILE) break;
      int sum = 0;
      for (int again = 0; again <= tile % 8; again++) {
        for (int i = threadIdx.x; i < ROWS * COLUMNS; i += CONSUMERS) sum += tiles[stage][i];
      }
      mbarrier_arrive(&empty[stage]);
      atomicAdd(&sums[tile], sum);
      if (threadIdx.x == 0) atomicAdd(&times_taken[tile], 1);
    }
  }
}

int main(int argc, char **argv) {
  program_begin("tile_counter", argc, argv, NULL, 0);
  static int host[TILES][ROWS * COLUMNS], sums[TILES], expected[TILES], taken[TILES], once[TILES];
  for (int tile = 0; tile < TILES; tile++) {
    for (int i = 0; i < ROWS * COLUMNS; i++) {
      host[tile][i] = tile * 1000 + i;
      expected[tile] += host[tile][i] * (tile % 8 + 1);
    }
    once[tile] = 1;
  }
  int *tensor, *counter, *device_sums, *device_taken;
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&counter, sizeof *counter));
  CUDA_CHECK(cudaMalloc(&device_sums, sizeof sums));
  CUDA_CHECK(cudaMalloc(&device_taken, sizeof taken));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(counter, 0, sizeof *counter));  // before every launch
  CUDA_CHECK(cudaMemset(device_sums, 0, sizeof sums));
  CUDA_CHECK(cudaMemset(device_taken, 0, sizeof taken));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = tensor,
                   .size = {COLUMNS, TILES * ROWS},
                   .box = {COLUMNS, ROWS}};
  sum_tiles<<<BLOCKS, THREADS>>>(tensor_map_encode("tiles", &map), counter, device_sums,
                                 device_taken);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(taken, device_taken, sizeof taken, cudaMemcpyDeviceToHost));
  int last;
  CUDA_CHECK(cudaMemcpy(&last, counter, sizeof last, cudaMemcpyDeviceToHost));
  printf("the counter after %d tiles and %d blocks: %d (each block asks once in vain)\n", TILES,
         BLOCKS, last);
  check_that(last == TILES + BLOCKS, "the counter must be %d, not %d", TILES + BLOCKS, last);
  check_tile("how often each tile was taken", ELEMENT_S32, taken, once, 1, TILES, 0);
  check_tile("the sums", ELEMENT_S32, sums, expected, 1, TILES, 0);
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(counter));
  CUDA_CHECK(cudaFree(device_sums));
  CUDA_CHECK(cudaFree(device_taken));
  return program_end("%d tiles by %d blocks, each taken once, every sum", TILES, BLOCKS);
}
