// pitfall peer_read_too_early: a block reads its peer's words before they are written
//   H200: right results
//   report: shared-race
//
// __syncthreads() waits for the threads of this block, but the threads of the other block write these
// words. The blocks of a cluster start together and then run at their own pace. Only a cluster
// barrier after the writes guarantees that the peer has made them.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time,
// by luck: both blocks had just come from the same cluster barrier.
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../cluster.cuh"
#include "check.h"

enum { BLOCKS = 2, CLUSTERS = 4, THREADS = 64, WORDS = 512 };

// Each block fills its own memory and adds up what its peer has.
__global__ void __cluster_dims__(BLOCKS, 1, 1) exchange(uint32_t *result) {
  __shared__ uint32_t own[WORDS];
  cluster_sync();  // both have started
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) own[i] = blockIdx.x * WORDS + i;
  __syncthreads();

  uint32_t peer = mapa_shared(own, 1 - cluster_rank());
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) {
    result[blockIdx.x * WORDS + i] = ld_shared_cluster(peer + i * 4);
  }
  cluster_sync();  // no block exits while its peer reads
}

int main(int argc, char **argv) {
  program_begin("peer_read_too_early", argc, argv, NULL, 0);
  static uint32_t got[CLUSTERS * BLOCKS][WORDS], expected[CLUSTERS * BLOCKS][WORDS];
  for (int block = 0; block < CLUSTERS * BLOCKS; block++) {
    for (int i = 0; i < WORDS; i++) expected[block][i] = (uint32_t)((block ^ 1) * WORDS + i);
  }
  uint32_t *result;
  CUDA_CHECK(cudaMalloc(&result, sizeof got));
  exchange<<<CLUSTERS * BLOCKS, THREADS>>>(result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("what the peers held", ELEMENT_U32, got, expected, CLUSTERS * BLOCKS, WORDS, 0);
  CUDA_CHECK(cudaFree(result));
  return program_end("the peer's words in %d blocks", CLUSTERS * BLOCKS);
}
