// pitfall two_slices_to_one_place: both blocks send their slice to the same place of the tile
//   H200: wrong results
//   report: overwrite-without-wait
//
// A multicast writes to the same offset in every block of the mask. Each block must therefore give its
// slice a place of its own; here both start at the tile's first word. Two copies then race for the
// upper half of both tiles, and nothing writes the lower half. The byte counts are right, so nothing
// hangs.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): wrong results each time.
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../cluster.cuh"
#include "../tma_multicast.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  BLOCKS = 2,  // of a cluster
  CLUSTERS = 2,
  THREADS = 64,
  TILE_WORDS = 256,
  TILE_BYTES = TILE_WORDS * 4,
  SLICE_WORDS = TILE_WORDS / BLOCKS,
  SLICE_BYTES = SLICE_WORDS * 4
};

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    share(const __grid_constant__ CUtensorMap tensor, uint32_t *result) {
  __shared__ alignas(128) uint32_t tile[TILE_WORDS];
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  cluster_sync();

  // Each block fetches one slice of the tile, for both.
  if (threadIdx.x == 0) {
    int first = (blockIdx.x / BLOCKS) * TILE_WORDS;
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    tma_load_1d_multicast(tile, &tensor, first + rank * SLICE_WORDS, &full,
                          cluster_mask_all(BLOCKS));
  }
  __syncwarp();
  mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
    result[blockIdx.x * TILE_WORDS + i] = tile[i];
  }
  cluster_sync();  // no block exits while its peer may still send to it
}

int main(int argc, char **argv) {
  program_begin("two_slices_to_one_place", argc, argv, NULL, 0);
  uint32_t host[CLUSTERS][TILE_WORDS], got[CLUSTERS][BLOCKS][TILE_WORDS];
  uint32_t expected[CLUSTERS][BLOCKS][TILE_WORDS];
  for (int cluster = 0; cluster < CLUSTERS; cluster++) {
    for (int i = 0; i < TILE_WORDS; i++) {
      host[cluster][i] = (uint32_t)(1000 * (cluster + 1) + i);
      for (int rank = 0; rank < BLOCKS; rank++) expected[cluster][rank][i] = host[cluster][i];
    }
  }
  uint32_t *tiles, *result;
  CUDA_CHECK(cudaMalloc(&tiles, sizeof host));
  CUDA_CHECK(cudaMalloc(&result, sizeof got));
  CUDA_CHECK(cudaMemcpy(tiles, host, sizeof host, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(result, 0, sizeof got));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       .dimensions = 1,
                       .address = tiles,
                       .size = {CLUSTERS * TILE_WORDS},
                       .box = {SLICE_WORDS}};
  share<<<CLUSTERS * BLOCKS, THREADS>>>(tensor_map_encode("tiles", &request), result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("the tiles of all blocks", ELEMENT_U32, got, expected, CLUSTERS * BLOCKS, TILE_WORDS,
             0);
  CUDA_CHECK(cudaFree(tiles));
  CUDA_CHECK(cudaFree(result));
  return program_end("the tile in both blocks of %d clusters, every word", CLUSTERS);
}
