// 05 multicast, aside: threads write to a peer's shared memory, and a barrier counts the bytes.
//
//   beside dsmem, where the copy engine does it, a tile at a time
//
// A plain st.shared::cluster also reaches a peer, but then the peer must be told that it has
// arrived: by a cluster barrier, or by an arrive with release at cluster scope (shared_stream shows
// what that costs). st.async brings its own signal: it subtracts the bytes that it has written from
// a barrier *in the receiver*, as a TMA load does.
//
//   sender                               receiver
//     value = ...                          arrive_expect_tx(&full, all bytes)
//     st.async [peer's inbox], value,      wait_parity(&full)
//              [peer's full]               read the inbox
//
// red.async does the same with an atomic addition; here all threads of a block count in one word of
// the peer. A thread sends 4 or 8 bytes (st.async up to 16), so both suit a few words: the partial
// sums of a reduction, the next tile's index, a maximum. A tile goes by cp.async.bulk.
//
// Each of four blocks sends a word of every thread to its right neighbour, and adds 1 for each
// thread to the neighbour's counter.
#include <stdio.h>

#include "check.h"
#include "cluster.cuh"

enum { BLOCKS = 4, THREADS = 64 };

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    send_to_the_right(uint32_t *inboxes, uint32_t *counters) {
  __shared__ uint32_t inbox[THREADS], counter;
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank(), right = (rank + 1) % BLOCKS;
  if (threadIdx.x == 0) {
    counter = 0;
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, sizeof inbox + THREADS * sizeof counter);
  }
  cluster_sync();  // every barrier expects its bytes, every counter is zero

  uint32_t full_of_peer = mapa_shared(&full, right);
  st_async(mapa_shared(&inbox[threadIdx.x], right), 100 * rank + threadIdx.x, full_of_peer);
  red_async_add(mapa_shared(&counter, right), 1, full_of_peer);

  mbarrier_wait_parity_cluster(&full,
                               0);  // the writes are those of a peer: acquire from the cluster
  inboxes[rank * THREADS + threadIdx.x] = inbox[threadIdx.x];
  if (threadIdx.x == 0) counters[rank] = counter;
  cluster_sync();  // no block may end while its peer may still write to it
}

int main(int argc, char **argv) {
  program_begin("st_async", argc, argv, NULL, 0);
  uint32_t got[BLOCKS][THREADS], expected[BLOCKS][THREADS], counts[BLOCKS], expected_counts[BLOCKS];
  for (int rank = 0; rank < BLOCKS; rank++) {
    for (int i = 0; i < THREADS; i++) {
      expected[rank][i] = (uint32_t)(100 * ((rank + BLOCKS - 1) % BLOCKS) + i);
    }
    expected_counts[rank] = THREADS;
  }
  uint32_t *inboxes, *counters;
  CUDA_CHECK(cudaMalloc(&inboxes, sizeof got));
  CUDA_CHECK(cudaMalloc(&counters, sizeof counts));
  CUDA_CHECK(cudaMemset(inboxes, 0xFF, sizeof got));
  CUDA_CHECK(cudaMemset(counters, 0xFF, sizeof counts));
  send_to_the_right<<<BLOCKS, THREADS>>>(inboxes, counters);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, inboxes, sizeof got, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(counts, counters, sizeof counts, cudaMemcpyDeviceToHost));

  printf("first and last word of each inbox, and the counter\n");
  for (int rank = 0; rank < BLOCKS; rank++) {
    printf("  rank %d: %3u .. %3u, %u\n", rank, got[rank][0], got[rank][THREADS - 1], counts[rank]);
  }
  check_tile("the inboxes", ELEMENT_U32, got, expected, BLOCKS, THREADS, 0);
  check_tile("the counters", ELEMENT_U32, counts, expected_counts, 1, BLOCKS, 0);
  CUDA_CHECK(cudaFree(inboxes));
  CUDA_CHECK(cudaFree(counters));
  return program_end("%d blocks, %d words and as many additions each", BLOCKS, THREADS);
}
