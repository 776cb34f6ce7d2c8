// 03 tma_store: one thread sends a whole tile back.
//
//   01 tiledcopy | 02 load | [03 store] | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A store is a load in the other direction, with two differences:
//
//   before   The threads wrote the tile with ordinary stores (the generic proxy). The engine reads
//            it through the async proxy. So every thread that wrote calls fence_proxy_async(), then
//            all meet in __syncthreads(), then one thread issues the store. __syncthreads() or
//            __threadfence_block() alone order accesses through the generic proxy only.
//   after    No barrier, no bytes. The thread that issued commits its stores to a group and waits
//            for the group: until the engine has read the tile (bulk_wait_group_read), or until it
//            has arrived in global memory, too (bulk_wait_group).
//
//     generic proxy                              async proxy
//     tile[i] = ...   (all threads)
//     fence_proxy_async()   ------------------->
//     __syncthreads()
//     thread 0: tma_store_2d, commit  ---------> reads the tile, writes global memory
//     thread 0: bulk_wait_group_read<0>() <------- has read
//     the tile may be written again
//
// Part 1, fill: 32x32 tiles, 32 threads. Thread i fills row i of its tile with the value i, and the
// tiles are stored into a 64x96 matrix.
// Part 2, round trip: an 8x8 matrix 0..63 in 4x4 tiles by four blocks of 16 threads: load, each
// thread adds its own index, store. Each tile is printed before and after.
#include <stdio.h>
#include <stdlib.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_store.cuh"

// ---- Part 1: fill ----

enum {
  BLOCK_M = 32,  // rows of a tile, and threads
  BLOCK_N = 32,
  FILL_ROWS = 64,
  FILL_COLUMNS = 96,
  FILL_TILES = FILL_ROWS / BLOCK_M * (FILL_COLUMNS / BLOCK_N),
};

__global__ void __launch_bounds__(BLOCK_M) fill_rows(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int32_t tile[BLOCK_M][BLOCK_N];

  // Rows lie 128 bytes apart, so a whole column of the tile lies in one bank of shared memory. If
  // all threads wrote to the same column, their 32 stores would take turns: a 32-way bank conflict.
  // Thread i begins at column i instead, and each of the 32 stores goes to a bank of its own.
  for (int step = 0; step < BLOCK_N; step++) {
    tile[threadIdx.x][(threadIdx.x + step) % BLOCK_N] = threadIdx.x;
  }

  // Each thread fences what it wrote. After __syncthreads() all threads have done so, and the
  // engine may read the whole tile.
  fence_proxy_async();
  __syncthreads();

  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, blockIdx.x * BLOCK_N, blockIdx.y * BLOCK_M);
    bulk_commit_group();
    // A block's shared memory goes to the next block when it exits: not before the engine has read it.
    bulk_wait_group_read<0>();
  }
}

static void run_fill(void) {
  static int32_t matrix[FILL_ROWS][FILL_COLUMNS], expected[FILL_ROWS][FILL_COLUMNS];
  int32_t *device_matrix;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMemset(device_matrix, 0xff, sizeof matrix));

  // The map is the same as for a load: it says nothing of the direction.
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {FILL_COLUMNS, FILL_ROWS},
                   .box = {BLOCK_N, BLOCK_M}};
  fill_rows<<<dim3(FILL_COLUMNS / BLOCK_N, FILL_ROWS / BLOCK_M), BLOCK_M>>>(
      tensor_map_encode("matrix to fill", &map));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(matrix, device_matrix, sizeof matrix, cudaMemcpyDeviceToHost));
  for (int row = 0; row < FILL_ROWS; row++)
    for (int column = 0; column < FILL_COLUMNS; column++) expected[row][column] = row % BLOCK_M;
  check_tile("fill", ELEMENT_S32, matrix, expected, FILL_ROWS, FILL_COLUMNS, 0);

  int columns_alike = 0;
  for (int column = 0; column < FILL_COLUMNS; column++) {
    bool alike = true;
    for (int row = 0; row < FILL_ROWS; row++) alike &= matrix[row][column] == matrix[row][0];
    columns_alike += alike;
  }
  printf("fill: a %dx%d matrix by %d blocks of %d threads, one row of %d numbers for each thread\n",
         FILL_ROWS, FILL_COLUMNS, FILL_TILES, BLOCK_M, BLOCK_N);
  printf("%d of %d columns are alike; the first of them, a line for each row of tiles:\n",
         columns_alike, FILL_COLUMNS);
  for (int first_row = 0; first_row < FILL_ROWS; first_row += BLOCK_M) {
    printf(" ");
    for (int row = 0; row < BLOCK_M; row++) printf(" %d", matrix[first_row + row][0]);
    printf("\n");
  }
}

// ---- Part 2: round trip ----

enum {
  SIDE = 8,   // of the matrix
  BLOCK = 4,  // side of a tile
  BLOCK_BYTES = BLOCK * BLOCK * 4,
  BLOCK_THREADS = BLOCK * BLOCK,
  BLOCKS_ACROSS = SIDE / BLOCK,
  BLOCKS = BLOCKS_ACROSS * BLOCKS_ACROSS,
};

__global__ void __launch_bounds__(BLOCK_THREADS)
    add_local_index(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) float tile[BLOCK_THREADS];
  __shared__ uint64_t barrier;
  int x = blockIdx.x * BLOCK, y = blockIdx.y * BLOCK;

  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, BLOCK_BYTES);
    tma_load_2d(tile, &map, x, y, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);  // the load is complete: every thread reads the tile

  tile[threadIdx.x] += threadIdx.x;

  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, x, y);
    bulk_commit_group();
    bulk_wait_group_read<0>();  // the store's end: a group, for the thread that issued it
  }
}

static void print_blocks(const float *before, const float *after) {
  for (int block = 0; block < BLOCKS; block++) {
    int first_row = block / BLOCKS_ACROSS * BLOCK, first_column = block % BLOCKS_ACROSS * BLOCK;
    char title[48];
    snprintf(title, sizeof title, "tile (%d,%d) before and after", block / BLOCKS_ACROSS,
             block % BLOCKS_ACROSS);
    TilePicture picture = {.title = title,
                           .type = ELEMENT_F32,
                           .data = before + first_row * SIDE + first_column,
                           .rows = BLOCK,
                           .columns = BLOCK,
                           .pitch = SIDE,
                           .first_row = first_row,
                           .first_column = first_column,
                           .beside = after + first_row * SIDE + first_column};
    tile_print(&picture);
  }
}

static void run_round_trip(void) {
  float before[SIDE * SIDE], after[SIDE * SIDE], expected[SIDE * SIDE], *device_matrix;
  for (int i = 0; i < SIDE * SIDE; i++) {
    int local_row = i / SIDE % BLOCK, local_column = i % SIDE % BLOCK;
    before[i] = (float)i;
    expected[i] = (float)(i + local_row * BLOCK + local_column);
  }
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof before));
  CUDA_CHECK(cudaMemcpy(device_matrix, before, sizeof before, cudaMemcpyHostToDevice));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {SIDE, SIDE},
                   .box = {BLOCK, BLOCK}};
  add_local_index<<<dim3(BLOCKS_ACROSS, BLOCKS_ACROSS), BLOCK_THREADS>>>(
      tensor_map_encode("matrix of the round trip", &map));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(after, device_matrix, sizeof after, cudaMemcpyDeviceToHost));
  printf("\nround trip: load, add the local index, store; the %dx%d matrix in %d tiles\n", SIDE,
         SIDE, BLOCKS);
  print_blocks(before, after);
  check_tile("round trip", ELEMENT_F32, after, expected, SIDE, SIDE, 0);
}

int main(int argc, char **argv) {
  program_begin("tma_store", argc, argv, NULL, 0);
  run_fill();
  run_round_trip();
  return program_end("%d tiles filled row by row, %d tiles round trip, every element", FILL_TILES,
                     BLOCKS);
}
