// 05 multicast, aside: blocks add their tables to one in the shared memory of a peer.
//
//   beside dsmem, where a tile replaces what the peer has
//
// Each block counts its part of the data in a table of its own. Then the tables must be added up.
// Through global memory that would be one atomic per word, or a reducing store of chapter 04. Within
// a cluster the engine adds in shared memory: cp.reduce.async.bulk to .shared::cluster. The receiver
// waits at its barrier for the bytes of all tables, as for a load.
//
//   ranks 1, 2, 3                          rank 0
//     count in table                         arrive_expect_tx(&full, 3 tables)
//     fence_proxy_async                      count in table
//     cluster_sync  <------------------->    cluster_sync: its table is complete
//     one reduce each, to rank 0's table     wait_parity(&full)
//
// Only integers can be added this way. A float sum in a peer needs red.shared::cluster by threads.
#include <stdio.h>

#include "check.h"
#include "cluster.cuh"

enum { BLOCKS = 4, BINS = 64, TABLE_BYTES = BINS * 4, VALUES = 4096, PART = VALUES / BLOCKS };

__global__ void __cluster_dims__(BLOCKS, 1, 1) count(const uint32_t *values, uint32_t *counts) {
  __shared__ alignas(16) uint32_t table[BINS];
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    if (rank == 0) mbarrier_arrive_expect_tx(&full, (BLOCKS - 1) * TABLE_BYTES);
  }
  for (int i = threadIdx.x; i < BINS; i += blockDim.x) table[i] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < PART; i += blockDim.x) {
    atomicAdd(&table[values[rank * PART + i] % BINS], 1);
  }
  fence_proxy_async();  // the engine reads this table, and in rank 0 adds to it
  cluster_sync();       // every table is complete, and rank 0 expects the bytes
  if (rank > 0 && threadIdx.x == 0) {
    bulk_reduce_add_u32_to_cluster(mapa_shared(table, 0), table, TABLE_BYTES,
                                   mapa_shared(&full, 0));
  }
  if (rank == 0) {
    mbarrier_wait_parity(&full, 0);
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) counts[i] = table[i];
  }
  cluster_sync();  // no block may end while its table is still read
}

int main(int argc, char **argv) {
  program_begin("peer_reduce", argc, argv, NULL, 0);
  static uint32_t values[VALUES];
  uint32_t counts[BINS], expected[BINS] = {0}, *device_values, *device_counts;
  for (uint32_t i = 0; i < VALUES; i++) {
    values[i] = i * i / 7 + i;
    expected[values[i] % BINS]++;
  }
  CUDA_CHECK(cudaMalloc(&device_values, sizeof values));
  CUDA_CHECK(cudaMalloc(&device_counts, sizeof counts));
  CUDA_CHECK(cudaMemcpy(device_values, values, sizeof values, cudaMemcpyHostToDevice));
  count<<<BLOCKS, 128>>>(device_values, device_counts);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(counts, device_counts, sizeof counts, cudaMemcpyDeviceToHost));
  printf("the first of %d counts:", BINS);
  for (int i = 0; i < 8; i++) printf(" %u", counts[i]);
  printf("\n");
  check_tile("the counts", ELEMENT_U32, counts, expected, 1, BINS, 0);
  CUDA_CHECK(cudaFree(device_values));
  CUDA_CHECK(cudaFree(device_counts));
  return program_end("%d values in the tables of %d blocks, every count", VALUES, BLOCKS);
}
