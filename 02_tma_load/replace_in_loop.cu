// 02 replace_in_loop: one tensor map, changed in every round of a loop.
//
//   beside tensormap_replace, where every block makes one map; this one goes on
//
// A persistent kernel walks through many matrices, for instance the groups of a grouped GEMM. It does
// not keep a map for each, but changes one. Each round has the same order:
//
//   replace      in shared memory, by one thread
//   publish      to global memory, by the whole warp (release)
//   acquire      by the thread that issues the copy
//   load, wait   the wait is also what makes the next round safe: the engine must have read the map
//                before it changes again
//
// Here one warp visits four matrices of 3, 8, 5 and 11 rows that lie one after the other, and loads
// the first eight rows of each. What lies past the end of a matrix arrives as zeros, because the
// number of rows is one of the replaced fields.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tensormap.cuh"
#include "tma_load.cuh"

enum { MATRICES = 4, COLUMNS = 16, TILE_ROWS = 8, POOL_ROWS = 27, THREADS = 32 };
typedef int Tile[TILE_ROWS][COLUMNS];
typedef struct {
  int first_row;  // in the pool
  int rows;
} Extent;

__global__ void __launch_bounds__(THREADS)
    visit(const __grid_constant__ CUtensorMap template_map, const int *pool, const Extent *extents,
          CUtensorMap *global_map, Tile *tiles) {
  __shared__ alignas(128) CUtensorMap map;
  __shared__ alignas(128) Tile tile;
  __shared__ uint64_t barrier;
  ((uint32_t *)&map)[threadIdx.x] = ((const uint32_t *)&template_map)[threadIdx.x];
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncwarp();

  for (int round = 0; round < MATRICES; round++) {
    Extent extent = extents[round];
    if (threadIdx.x == 0) {
      tensormap_replace_address(&map, pool + extent.first_row * COLUMNS);
      tensormap_replace_size<1>(&map, extent.rows);
    }
    __syncwarp();
    tensormap_publish(global_map, &map);
    if (threadIdx.x == 0) {
      fence_proxy_tensormap_acquire(global_map);
      mbarrier_arrive_expect_tx(&barrier, sizeof tile);
      tma_load_2d(tile, global_map, 0, 0, &barrier);
    }
    __syncwarp();
    mbarrier_wait_parity(&barrier, round % 2);  // the tile is here, and the map was read
    for (int i = threadIdx.x; i < TILE_ROWS * COLUMNS; i += THREADS) {
      tiles[round][i / COLUMNS][i % COLUMNS] = tile[i / COLUMNS][i % COLUMNS];
    }
    __syncwarp();
  }
}

int main(int argc, char **argv) {
  program_begin("replace_in_loop", argc, argv, NULL, 0);
  static const Extent extents[MATRICES] = {{0, 3}, {3, 8}, {11, 5}, {16, 11}};
  static int pool[POOL_ROWS][COLUMNS];
  for (int m = 0; m < MATRICES; m++)
    for (int row = 0; row < extents[m].rows; row++)
      for (int column = 0; column < COLUMNS; column++)
        pool[extents[m].first_row + row][column] = 10000 * (m + 1) + 100 * row + column;

  int *device_pool;
  Extent *device_extents;
  CUtensorMap *device_map;
  Tile *device_tiles;
  static Tile tiles[MATRICES];
  CUDA_CHECK(cudaMalloc(&device_pool, sizeof pool));
  CUDA_CHECK(cudaMalloc(&device_extents, sizeof extents));
  CUDA_CHECK(cudaMalloc(&device_map, sizeof *device_map));
  CUDA_CHECK(cudaMalloc(&device_tiles, sizeof tiles));
  CUDA_CHECK(cudaMemcpy(device_pool, pool, sizeof pool, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_extents, extents, sizeof extents, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_pool,
                   .size = {COLUMNS, POOL_ROWS},
                   .box = {COLUMNS, TILE_ROWS}};
  visit<<<1, THREADS>>>(tensor_map_encode("template", &map), device_pool, device_extents,
                        device_map, device_tiles);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(tiles, device_tiles, sizeof tiles, cudaMemcpyDeviceToHost));

  for (int m = 0; m < MATRICES; m++) {
    Tile expected;
    printf("matrix %d, %2d rows; column 0 of its tile:", m, extents[m].rows);
    for (int row = 0; row < TILE_ROWS; row++) {
      printf(" %5d", tiles[m][row][0]);
      for (int column = 0; column < COLUMNS; column++) {
        bool inside = row < extents[m].rows;
        expected[row][column] = inside ? 10000 * (m + 1) + 100 * row + column : 0;
      }
    }
    printf("\n");
    check_tile("tile", ELEMENT_S32, tiles[m], expected, TILE_ROWS, COLUMNS, 0);
  }
  return program_end("one tensor map for %d matrices, every element", MATRICES);
}
