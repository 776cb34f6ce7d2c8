// 03 tma_store, side program reuse: a ring of buffers, and how many stores may be pending.
//
//   01 tiledcopy | 02 load | [03 store] | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A block produces 12 tiles but has only three buffers. Before it writes tile t, the store of tile
// t - 3, which lies in the same buffer, must have read it. Each store is a group of its own, so
// "at most 2 groups still to be read" says just that:
//
//   buffer     0    1    2    0    1    2    0 ...
//   tile       0    1    2    3    4    5    6 ...
//                             |
//                             before writing tile 3: stores of 0, 1, 2 were committed; wait until
//                             at most 2 of them still read, so store 0 has read its buffer
//
// bulk_wait_group_read<N>() counts groups of the calling thread only, and the oldest end first. The
// number is part of the instruction. Only the thread that committed can wait; the others learn of
// it in the __syncthreads() that follows.
//
// At the end a bulk_wait_group<0>(), without .read: until all groups are in global memory, where the
// same thread then reads the last tile's first element back.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_store.cuh"

enum {
  BUFFERS = 3,
  TILES = 12,
  TILE_ROWS = 16,
  TILE_COLUMNS = 32,
  TILE_ELEMENTS = TILE_ROWS * TILE_COLUMNS,
  THREADS = 64,
  BLOCKS = 2,
};

// block c writes the TILES tiles from c * TILES on, one below the other. Element i of tile t is
// t * 1000 + i. read_back[c] is the first element of the block's last tile, which the storing thread
// reads back from global memory.
__global__ void __launch_bounds__(THREADS)
    produce_tiles(const __grid_constant__ CUtensorMap map, const int32_t *matrix,
                  int32_t *read_back) {
  __shared__ alignas(128) int32_t buffers[BUFFERS][TILE_ELEMENTS];
  int last_tile = blockIdx.x * TILES + TILES - 1;

  for (int step = 0; step < TILES; step++) {
    int tile = blockIdx.x * TILES + step;
    int32_t *buffer = buffers[step % BUFFERS];

    // The buffer is free once at most BUFFERS - 1 stores have yet to read theirs.
    if (threadIdx.x == 0) bulk_wait_group_read<BUFFERS - 1>();
    __syncthreads();

    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) buffer[i] = tile * 1000 + i;
    fence_proxy_async();
    __syncthreads();

    if (threadIdx.x == 0) {
      tma_store_2d(&map, buffer, 0, tile * TILE_ROWS);
      bulk_commit_group();
    }
  }

  if (threadIdx.x == 0) {
    bulk_wait_group<0>();
    read_back[blockIdx.x] = *(volatile const int32_t *)&matrix[last_tile * TILE_ELEMENTS];
  }
}

int main(int argc, char **argv) {
  program_begin("reuse", argc, argv, NULL, 0);

  enum { ELEMENTS = BLOCKS * TILES * TILE_ELEMENTS, BYTES = ELEMENTS * 4 };
  static int32_t matrix[ELEMENTS], expected[ELEMENTS];
  int32_t *device_matrix, *device_read_back, read_back[BLOCKS];
  CUDA_CHECK(cudaMalloc(&device_matrix, BYTES));
  CUDA_CHECK(cudaMalloc(&device_read_back, sizeof read_back));
  CUDA_CHECK(cudaMemset(device_matrix, 0xff, BYTES));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {TILE_COLUMNS, BLOCKS * TILES * TILE_ROWS},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  produce_tiles<<<BLOCKS, THREADS>>>(tensor_map_encode("matrix", &map), device_matrix,
                                     device_read_back);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(matrix, device_matrix, BYTES, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(read_back, device_read_back, sizeof read_back, cudaMemcpyDeviceToHost));

  for (int i = 0; i < ELEMENTS; i++) expected[i] = i / TILE_ELEMENTS * 1000 + i % TILE_ELEMENTS;
  check_tile("tiles", ELEMENT_S32, matrix, expected, BLOCKS * TILES * TILE_ROWS, TILE_COLUMNS, 0);
  for (int block = 0; block < BLOCKS; block++) {
    printf("block %d, %d tiles through %d buffers, first elements\n ", block, TILES, BUFFERS);
    for (int step = 0; step < TILES; step++) {
      printf(" %d", matrix[(block * TILES + step) * TILE_ELEMENTS]);
    }
    printf("\n  read back by the storing thread: %d\n", read_back[block]);
    int32_t last = expected[((block + 1) * TILES - 1) * TILE_ELEMENTS];
    check_that(read_back[block] == last,
               "read back after bulk_wait_group<0>(): expected %d, got %d", last, read_back[block]);
  }
  return program_end("%d tiles through %d buffers, every element", BLOCKS * TILES, BUFFERS);
}
