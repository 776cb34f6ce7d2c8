// pitfall mask_names_an_exited_block: a tile is sent to a block that has left
//   H200: cudaErrorLaunchFailure
//   report: peer-exited
//
// The cluster has two tiles to do in the first round and one in the second. The block of rank 1 has
// nothing to do in the second round and returns, but the mask of the second multicast still names
// it. By then its shared memory may belong to another block, of this kernel or the next. The engine
// writes a tile over whatever is there, and counts bytes on what looks like a barrier.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorLaunchFailure.
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
  RESULTS = CLUSTERS * BLOCKS + CLUSTERS  // of the first round and of the second
};

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    share(const __grid_constant__ CUtensorMap tensor, uint32_t *result) {
  __shared__ alignas(128) uint32_t tiles[2][TILE_WORDS];  // of the two rounds
  __shared__ uint64_t full[2];
  uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(&full[0], 1);
    mbarrier_init(&full[1], 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full[0], TILE_BYTES);
    mbarrier_arrive_expect_tx(&full[1], TILE_BYTES);
  }
  cluster_sync();

  if (threadIdx.x == 0 && rank == 0) {
    tma_load_1d_multicast(tiles[0], &tensor, 0, &full[0], cluster_mask_all(BLOCKS));
  }
  __syncwarp();
  mbarrier_wait_parity(&full[0], 0);
  for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
    result[blockIdx.x * TILE_WORDS + i] = tiles[0][i];
  }
  if (rank == 1) return;  // the second round is rank 0's alone

  if (threadIdx.x == 0) {
    tma_load_1d_multicast(tiles[1], &tensor, TILE_WORDS, &full[1], cluster_mask_all(BLOCKS));
  }
  __syncwarp();
  mbarrier_wait_parity(&full[1], 0);
  for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
    result[(gridDim.x + blockIdx.x / BLOCKS) * TILE_WORDS + i] = tiles[1][i];
  }
}

int main(int argc, char **argv) {
  program_begin("mask_names_an_exited_block", argc, argv, NULL, 0);
  uint32_t host[2][TILE_WORDS], got[RESULTS][TILE_WORDS], expected[RESULTS][TILE_WORDS];
  for (int i = 0; i < TILE_WORDS; i++) {
    host[0][i] = (uint32_t)i + 1;
    host[1][i] = (uint32_t)i + 1001;
    for (int k = 0; k < RESULTS; k++) expected[k][i] = host[k < CLUSTERS * BLOCKS ? 0 : 1][i];
  }
  uint32_t *tiles, *result;
  CUDA_CHECK(cudaMalloc(&tiles, sizeof host));
  CUDA_CHECK(cudaMalloc(&result, sizeof got));
  CUDA_CHECK(cudaMemcpy(tiles, host, sizeof host, cudaMemcpyHostToDevice));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       .dimensions = 1,
                       .address = tiles,
                       .size = {2 * TILE_WORDS},
                       .box = {TILE_WORDS}};
  share<<<CLUSTERS * BLOCKS, THREADS>>>(tensor_map_encode("tiles", &request), result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("first tile by all, second by rank 0", ELEMENT_U32, got, expected, RESULTS, TILE_WORDS,
             0);
  CUDA_CHECK(cudaFree(tiles));
  CUDA_CHECK(cudaFree(result));
  return program_end("both rounds of %d clusters, every word", CLUSTERS);
}
