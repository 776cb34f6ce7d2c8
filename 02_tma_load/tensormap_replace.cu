// 02 tma_load, side program tensormap_replace: the kernel writes the tensor map.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// You may have read that tensor maps must be built on the host. Most are, but sm_90a has instructions
// that change the fields of a map in the kernel. This helps if the host does not know the addresses
// and heights of a batch of matrices, or if there are too many of them for one map each.
//
// Here four matrices of 16 columns and 3, 8, 5 and 11 rows lie one after the other in one pool. The
// host encodes a single map, a template without any of these numbers. Block i makes the map of matrix
// i from it, in four steps:
//
//   1. copy the template's 128 bytes to shared memory
//   2. tensormap.replace: address, number of rows            one thread
//   3. tensormap.cp_fenceproxy: shared -> global memory,     one warp, all 32 threads
//      made visible to the tensormap proxy (release)
//   4. fence.proxy.tensormap (acquire) in the thread that issues the copy
//
// The copy engine reads maps through a proxy of their own, with a cache of their own: without 3
// and 4 it may use what the map was before.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tensor_map.h"
#include "tensormap.cuh"
#include "tile.h"
#include "tma_load.cuh"

enum {
  MATRICES = 4,
  COLUMNS = 16,
  TILE_ROWS = 8,  // of the box; matrices 0 and 2 are shorter, matrix 3 has two tiles
  TILE_ELEMENTS = TILE_ROWS * COLUMNS,
  TILE_BYTES = TILE_ELEMENTS * 4,
  TILES = 2,  // of every matrix, also where the second lies outside
  THREADS = 32,
};

typedef struct {
  int first_row;  // in the pool
  int rows;
} Extent;

__global__ void __launch_bounds__(THREADS)
    load_own_matrix(const __grid_constant__ CUtensorMap template_map, const float *pool,
                    const Extent *extents, CUtensorMap *maps, float *landed) {
  __shared__ alignas(128) CUtensorMap own_map;
  __shared__ alignas(128) float tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  Extent extent = extents[blockIdx.x];

  // 1. 32 threads, four bytes each.
  ((uint32_t *)&own_map)[threadIdx.x] = ((const uint32_t *)&template_map)[threadIdx.x];
  __syncwarp();

  // 2. The two fields that only the kernel knows.
  if (threadIdx.x == 0) {
    tensormap_replace_address(&own_map, pool + extent.first_row * COLUMNS);
    tensormap_replace_size<1>(&own_map, extent.rows);
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncwarp();

  // 3. Out to global memory, where the engine can read it.
  tensormap_publish(&maps[blockIdx.x], &own_map);

  for (int number = 0; number < TILES; number++) {
    if (threadIdx.x == 0) {
      // 4. Once per map would do; it is here to stand beside the copy that it is for.
      fence_proxy_tensormap_acquire(&maps[blockIdx.x]);
      mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
      tma_load_2d(tile, &maps[blockIdx.x], 0, number * TILE_ROWS, &barrier);
    }
    __syncwarp();
    mbarrier_wait_parity(&barrier, number & 1);
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) {
      landed[(blockIdx.x * TILES + number) * TILE_ELEMENTS + i] = tile[i];
    }
    __syncwarp();  // everybody has read the tile before the next load overwrites it
  }
}

int main(int argc, char **argv) {
  program_begin("tensormap_replace", argc, argv, NULL, 0);

  static const Extent extents[MATRICES] = {{0, 3}, {3, 8}, {11, 5}, {16, 11}};
  enum { POOL_ROWS = 27 };
  float pool[POOL_ROWS * COLUMNS];
  for (int m = 0; m < MATRICES; m++)
    for (int row = 0; row < extents[m].rows; row++)
      for (int column = 0; column < COLUMNS; column++)
        pool[(extents[m].first_row + row) * COLUMNS + column] =
            (float)((m + 1) * 10000 + row * 100 + column);
  static float landed[MATRICES * TILES][TILE_ELEMENTS];
  float *device_pool, *device_landed;
  Extent *device_extents;
  CUtensorMap *device_maps;
  CUDA_CHECK(cudaMalloc(&device_pool, sizeof pool));
  CUDA_CHECK(cudaMalloc(&device_landed, sizeof landed));
  CUDA_CHECK(cudaMalloc(&device_extents, sizeof extents));
  CUDA_CHECK(cudaMalloc(&device_maps, MATRICES * sizeof *device_maps));
  CUDA_CHECK(cudaMemcpy(device_pool, pool, sizeof pool, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_extents, extents, sizeof extents, cudaMemcpyHostToDevice));

  // The template: right in all that the matrices share, and of one row at the pool's start, which
  // is right for none of them.
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                   .dimensions = 2,
                   .address = device_pool,
                   .size = {COLUMNS, 1},
                   .box = {COLUMNS, TILE_ROWS}};
  load_own_matrix<<<MATRICES, THREADS>>>(tensor_map_encode("template", &map), device_pool,
                                         device_extents, device_maps, device_landed);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(landed, device_landed, sizeof landed, cudaMemcpyDeviceToHost));

  for (int m = 0; m < MATRICES; m++) {
    printf("matrix %d, %2d rows of the pool from row %2d on; column 0 of its tiles\n", m,
           extents[m].rows, extents[m].first_row);
    for (int number = 0; number < TILES; number++) {
      float expected[TILE_ELEMENTS];
      const float *tile = landed[m * TILES + number];
      printf("  tile %d:", number);
      for (int i = 0; i < TILE_ELEMENTS; i++) {
        int row = number * TILE_ROWS + i / COLUMNS, column = i % COLUMNS;
        bool inside = row < extents[m].rows;
        expected[i] = inside ? (float)((m + 1) * 10000 + row * 100 + column) : 0.0f;
        if (column == 0) printf(" %5.0f", tile[i]);
      }
      printf("\n");
      char what[48];
      snprintf(what, sizeof what, "matrix %d, tile %d", m, number);
      check_tile(what, ELEMENT_F32, tile, expected, TILE_ROWS, COLUMNS, 0);
    }
  }
  return program_end("%d maps made by the kernel, %d tiles, every element", MATRICES,
                     MATRICES * TILES);
}
