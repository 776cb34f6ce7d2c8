// pitfall arrive_in_two_branches: one thread arrives with a release, the others of its warp relaxed
//   H200: hangs
//   report: cluster-arrive-split
//
// Only thread 0 has written something that the peer will read, so only its arrive seems to need the
// release. Every thread arrives once, as the cluster barrier asks. But the lanes of warp 0 come to
// it by two instructions, and the barrier is never complete.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): hangs each time. With
// the same instruction in both branches it does not, nor when whole warps take different ones.
#include <stdio.h>

#include "../cluster.cuh"
#include "check.h"

enum { BLOCKS = 2, CLUSTERS = 2, THREADS = 64 };

__global__ void __cluster_dims__(BLOCKS, 1, 1) exchange(uint32_t *result) {
  __shared__ uint32_t value;
  uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) {
    value = 100 + blockIdx.x;
    cluster_arrive_release();
  } else {
    cluster_arrive_relaxed();
  }
  cluster_wait_acquire();
  result[blockIdx.x * THREADS + threadIdx.x] = ld_shared_cluster(mapa_shared(&value, rank ^ 1));
  cluster_sync();  // no block exits while its peer may still read
}

int main(int argc, char **argv) {
  program_begin("arrive_in_two_branches", argc, argv, NULL, 0);
  uint32_t got[CLUSTERS * BLOCKS][THREADS], expected[CLUSTERS * BLOCKS][THREADS];
  for (uint32_t block = 0; block < CLUSTERS * BLOCKS; block++) {
    for (int i = 0; i < THREADS; i++) expected[block][i] = 100 + (block ^ 1);
  }
  uint32_t *result;
  CUDA_CHECK(cudaMalloc(&result, sizeof got));
  CUDA_CHECK(cudaMemset(result, 0, sizeof got));
  exchange<<<CLUSTERS * BLOCKS, THREADS>>>(result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("what each block got from its peer", ELEMENT_U32, got, expected, CLUSTERS * BLOCKS,
             THREADS, 0);
  CUDA_CHECK(cudaFree(result));
  return program_end("%d clusters, each thread has its peer's number", CLUSTERS);
}
