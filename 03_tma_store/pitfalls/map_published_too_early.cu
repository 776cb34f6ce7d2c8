// pitfall map_published_too_early: the tensor map changes while a store still uses it
//   H200: wrong results
//   report: tensormap-in-use
//
// One warp stores its tile to one place after the other through one map, whose address it replaces and
// publishes in between. The fences are right: each map is released and acquired. But the store before was
// only issued, and the engine may read the map later, when it holds the next address already. Before a
// map is published, the copies that use the old one must have ended: loads by their barrier, stores by
// their group. (CuTe: tma_desc_commit_group, tma_desc_wait_group.)
//
// Seen on an H200 (28 November 2026, driver 580.159.04, five runs of this kernel): of 4,096 tiles 111 to
// 327 were wrong. With the wait, none.
#include <stdio.h>
#include <stdlib.h>

#include "../../02_tma_load/tensormap.cuh"
#include "../tma_store.cuh"
#include "check.h"
#include "tensor_map.h"

enum { ROWS = 64, COLUMNS = 64, WORDS = ROWS * COLUMNS, TILES = 64, BLOCKS = 64 };

__global__ void store_tiles(const __grid_constant__ CUtensorMap first, CUtensorMap *maps,
                            int *copies) {
  __shared__ alignas(128) int tile[WORDS];
  __shared__ alignas(128) CUtensorMap own_map;
  CUtensorMap *map = &maps[blockIdx.x];
  ((uint32_t *)&own_map)[threadIdx.x] = ((const uint32_t *)&first)[threadIdx.x];
  for (int i = threadIdx.x; i < WORDS; i += 32) tile[i] = i;
  fence_proxy_async();
  __syncwarp();
  for (int n = 0; n < TILES; n++) {
    if (threadIdx.x == 0) {
      tensormap_replace_address(&own_map, &copies[(blockIdx.x * TILES + n) * WORDS]);
    }
    __syncwarp();
    tensormap_publish(map, &own_map);
    if (threadIdx.x == 0) {
      fence_proxy_tensormap_acquire(map);
      tma_store_2d(map, tile, 0, 0);
      bulk_commit_group();
    }
    __syncwarp();
  }
  if (threadIdx.x == 0) bulk_wait_group<0>();
}

int main(int argc, char **argv) {
  program_begin("map_published_too_early", argc, argv, NULL, 0);
  static int got[BLOCKS * TILES][WORDS], expected[WORDS];
  for (int i = 0; i < WORDS; i++) expected[i] = i;
  int *copies;
  CUtensorMap *maps;
  CUDA_CHECK(cudaMalloc(&copies, sizeof got));
  CUDA_CHECK(cudaMalloc(&maps, BLOCKS * sizeof *maps));
  CUDA_CHECK(cudaMemset(copies, 0xff, sizeof got));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = copies,
                       .size = {COLUMNS, ROWS},
                       .box = {COLUMNS, ROWS}};
  CUtensorMap map = tensor_map_encode("copies", &request);
  store_tiles<<<BLOCKS, 32>>>(map, maps, copies);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, copies, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < BLOCKS * TILES; t++) {
    check_tile("copy", ELEMENT_S32, got[t], expected, ROWS, COLUMNS, 0);
  }
  CUDA_CHECK(cudaFree(copies));
  CUDA_CHECK(cudaFree(maps));
  return program_end("%d tiles of %d blocks", TILES, BLOCKS);
}
