// pitfall no_cluster_barrier_before_exit: a block ends while its peer reads its memory
//   H200: right results
//   report: peer-exited
//
// When a block ends, its shared memory is given away, even if a peer has not read it yet. Which of
// the two comes first is luck: the reader may find the data of the next block on that SM, or the
// access faults. A cluster barrier at the end keeps every block alive until all are done with its
// memory.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. Both
// blocks read for equally long. With one of them delayed by 50 microseconds before it reads, each run
// ended with cudaErrorLaunchFailure.
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../cluster.cuh"
#include "check.h"

enum { BLOCKS = 2, CLUSTERS = 4, THREADS = 64, WORDS = 512 };

// Each block fills its own memory and adds up what its peer has.
__global__ void __cluster_dims__(BLOCKS, 1, 1) exchange(uint32_t *result) {
  __shared__ uint32_t own[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) own[i] = blockIdx.x * WORDS + i;
  cluster_sync();  // both have written

  uint32_t peer = mapa_shared(own, 1 - cluster_rank());
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) {
    result[blockIdx.x * WORDS + i] = ld_shared_cluster(peer + i * 4);
  }
}

int main(int argc, char **argv) {
  program_begin("no_cluster_barrier_before_exit", argc, argv, NULL, 0);
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
