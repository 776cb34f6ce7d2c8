// pitfall remote_arrive_to_the_wrong_rank: the reader reports to its peer, not to the sender
//   H200: hangs
//   report: hang-arrivals-at-another-rank
//
// The sender waits until both blocks have released the buffer, at the barrier `empty` of rank 0. mapa
// turns the address of a block's own `empty` into that of another rank: it must be the rank of the
// block that waits. Here each block reports to the other: rank 0 arrives at rank 1, where no thread waits,
// and its own barrier never gets that arrival.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run hung.
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../cluster.cuh"
#include "../tma_multicast.cuh"
#include "check.h"
#include "tensor_map.h"

enum { BLOCKS = 2, ROUNDS = 6, THREADS = 32, TILE_WORDS = 256, TILE_BYTES = TILE_WORDS * 4 };

// Rank 0 sends one tile after the other to both blocks, always into the same buffer.
__global__ void __cluster_dims__(BLOCKS, 1, 1)
    stream(const __grid_constant__ CUtensorMap tensor, uint32_t *result) {
  __shared__ alignas(128) uint32_t tile[TILE_WORDS];
  __shared__ uint64_t full, empty;  // empty: that of rank 0 is used
  uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, BLOCKS);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
  }
  cluster_sync();

  for (int round = 0; round < ROUNDS; round++) {
    if (rank == 0 && threadIdx.x == 0) {
      if (round > 0) mbarrier_wait_parity(&empty, (round - 1) % 2);
      tma_load_1d_multicast(tile, &tensor, round * TILE_WORDS, &full, cluster_mask_all(BLOCKS));
    }
    __syncwarp();
    mbarrier_wait_parity(&full, round % 2);
    for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
      result[(rank * ROUNDS + round) * TILE_WORDS + i] = tile[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      if (round + 1 < ROUNDS) mbarrier_arrive_expect_tx(&full, TILE_BYTES);
      mbarrier_arrive_cluster(mapa_shared(&empty, 1 - rank));
    }
  }
  cluster_sync();
}

int main(int argc, char **argv) {
  program_begin("remote_arrive_to_the_wrong_rank", argc, argv, NULL, 0);
  enum { WORDS = ROUNDS * TILE_WORDS, RESULTS = BLOCKS * WORDS };
  static uint32_t host[WORDS], got[RESULTS], expected[RESULTS];
  for (int i = 0; i < RESULTS; i++) expected[i] = (uint32_t)(i % WORDS) + 1;
  for (int i = 0; i < WORDS; i++) host[i] = expected[i];
  uint32_t *tiles, *result;
  CUDA_CHECK(cudaMalloc(&tiles, sizeof host));
  CUDA_CHECK(cudaMalloc(&result, sizeof got));
  CUDA_CHECK(cudaMemcpy(tiles, host, sizeof host, cudaMemcpyHostToDevice));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       .dimensions = 1,
                       .address = tiles,
                       .size = {ROUNDS * TILE_WORDS},
                       .box = {TILE_WORDS}};
  stream<<<BLOCKS, THREADS>>>(tensor_map_encode("tiles", &request), result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("all rounds of both blocks", ELEMENT_U32, got, expected, BLOCKS * ROUNDS, TILE_WORDS,
             0);
  CUDA_CHECK(cudaFree(tiles));
  CUDA_CHECK(cudaFree(result));
  return program_end("%d tiles through one buffer in both blocks, every word", ROUNDS);
}
