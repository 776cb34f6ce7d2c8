// 04 store reduce: a store that adds its tile to the tensor.
//
//   01 tiledcopy | 02 load | 03 store | [04 store reduce] | 05 multicast | 06 swizzle | 07 gemm
//
// Chapter 03 replaced a tile of the tensor by a tile of shared memory. One word of the instruction
// changes, cp.async.bulk becomes cp.reduce.async.bulk, and the tile is added to the tensor instead.
// The addition takes place in the L2 cache, atomically for each element, so the old values never
// come to the thread block. Everything around it is the same as for a store: the proxy fence before,
// commit and wait after.
//
// An 8x8 matrix holds 0 to 63. A 4x4 tile, added at row 2, column 4, changes the elements below it:
//
//   before                     the tile                after
//   20 21 22 23                100 101 102 103         120 122 124 126
//   28 29 30 31                200 201 202 203         228 230 232 234
//   36 37 38 39       +        300 301 302 303         336 338 340 342
//   44 45 46 47                400 401 402 403         444 446 448 450
//
// The other seven operations, and the element types that each of them accepts: operations.cu.
#include <stdio.h>
#include <string.h>

#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_reduce.cuh"

enum { SIDE = 8, TILE_SIDE = 4, X = 4, Y = 2 };

__global__ void add_one_tile(const __grid_constant__ CUtensorMap map) {
  __shared__ __align__(128) int32_t tile[TILE_SIDE][TILE_SIDE];
  tile[threadIdx.y][threadIdx.x] = 100 * (threadIdx.y + 1) + threadIdx.x;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    tma_reduce_add_2d(&map, tile, X, Y);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

static void print_tile(const char *title, const int32_t *data, int side, int first_row,
                       int first_column) {
  TilePicture picture = {.title = title,
                         .type = ELEMENT_S32,
                         .data = data,
                         .rows = side,
                         .columns = side,
                         .first_row = first_row,
                         .first_column = first_column};
  tile_print(&picture);
}

int main(int argc, char **argv) {
  program_begin("store_reduce", argc, argv, NULL, 0);

  // 1. The matrix, the tile that the kernel will write to shared memory, and their sum.
  int32_t before[SIDE][SIDE], tile[TILE_SIDE][TILE_SIDE], after[SIDE][SIDE], expected[SIDE][SIDE];
  for (int i = 0; i < SIDE * SIDE; i++) before[i / SIDE][i % SIDE] = i;
  memcpy(expected, before, sizeof expected);
  for (int row = 0; row < TILE_SIDE; row++) {
    for (int column = 0; column < TILE_SIDE; column++) {
      tile[row][column] = 100 * (row + 1) + column;
      expected[Y + row][X + column] += tile[row][column];
    }
  }
  int32_t *matrix;
  CUDA_CHECK(cudaMalloc(&matrix, sizeof before));
  CUDA_CHECK(cudaMemcpy(matrix, before, sizeof before, cudaMemcpyHostToDevice));

  // 2. The map is the same as for a store: the operation is in the instruction.
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = matrix,
                   .size = {SIDE, SIDE},
                   .box = {TILE_SIDE, TILE_SIDE}};
  add_one_tile<<<1, dim3(TILE_SIDE, TILE_SIDE)>>>(tensor_map_encode("8x8 matrix", &map));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(after, matrix, sizeof after, cudaMemcpyDeviceToHost));

  // 3. Before and after.
  detail_begin();
  print_tile("tensor before", &before[0][0], SIDE, 0, 0);
  detail_end();
  print_tile("tile in shared memory, for row 2, column 4", &tile[0][0], TILE_SIDE, Y, X);
  print_tile("tensor after one reduce-add", &after[0][0], SIDE, 0, 0);
  check_tile("reduce-add of one tile", ELEMENT_S32, after, expected, SIDE, SIDE, 0);
  return program_end("one tile added, every element of the tensor");
}
