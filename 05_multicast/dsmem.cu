// 05 multicast, aside: from the shared memory of one block into that of another.
//
// The blocks of a cluster can pass on what they have computed without going through global memory.
// cp.async.bulk does it like a load whose source is shared memory. The receiver arms its own
// barrier. The sender names the destination and the barrier *in the receiver*; mapa computes both.
//
//   rank 0           rank 1           rank 2           rank 3
//   [outbox] --+     [outbox] --+     [outbox] --+     [outbox] --> inbox of rank 0
//              |                |                |
//   [inbox ]   +---> [inbox ]   +---> [inbox ]   +---> [inbox ]
//
// In each round, the outbox of a rank is copied to the inbox of the next one. After three rounds
// every tile has moved three ranks further. The program also reads a word of the neighbour's outbox
// with a plain ld.shared::cluster, 4 bytes per instruction, to show that it is the same memory.
#include <stdio.h>

#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "cluster.cuh"

enum {
  BLOCKS = 4,
  TILE_WORDS = 256,
  TILE_BYTES = TILE_WORDS * 4,
  THREADS = 128,
  ROUNDS = 3,
};

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    pass_on_kernel(uint32_t *inboxes, uint32_t *words_of_the_left) {
  __shared__ __align__(128) uint32_t outbox[TILE_WORDS], inbox[TILE_WORDS];
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank();
  uint32_t right = (rank + 1) % BLOCKS;
  uint32_t left = (rank + BLOCKS - 1) % BLOCKS;

  for (int i = threadIdx.x; i < TILE_WORDS; i += THREADS) outbox[i] = 1000 * (rank + 1) + i;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }

  for (int round = 0; round < ROUNDS; round++) {
    fence_proxy_async();  // the engine is to read what these threads wrote to the outbox
    if (threadIdx.x == 0) mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    cluster_sync();  // every outbox is filled, every barrier armed, every inbox free

    if (threadIdx.x == 0) {
      bulk_copy_to_cluster(mapa_shared(inbox, right), outbox, TILE_BYTES,
                           mapa_shared(&full, right));
    }
    if (threadIdx.x == 0) {
      words_of_the_left[round * BLOCKS + rank] = ld_shared_cluster(mapa_shared(&outbox[5], left));
    }
    mbarrier_wait_parity(&full, round % 2);  // my inbox is full
    cluster_sync();  // so is everyone's: my outbox has been read, and I may write to it

    for (int i = threadIdx.x; i < TILE_WORDS; i += THREADS) {
      inboxes[(round * BLOCKS + rank) * TILE_WORDS + i] = inbox[i];
      outbox[i] = inbox[i];
    }
  }
  cluster_sync();
}

int main(int argc, char **argv) {
  program_begin("dsmem", argc, argv, NULL, 0);
  static uint32_t got[ROUNDS][BLOCKS][TILE_WORDS], expected[ROUNDS][BLOCKS][TILE_WORDS];
  uint32_t words[ROUNDS][BLOCKS], expected_words[ROUNDS][BLOCKS];
  for (int round = 0; round < ROUNDS; round++) {
    for (int rank = 0; rank < BLOCKS; rank++) {
      int origin = (rank + BLOCKS - 1 - round) % BLOCKS;
      for (int i = 0; i < TILE_WORDS; i++) {
        expected[round][rank][i] = (uint32_t)(1000 * (origin + 1) + i);
      }
      expected_words[round][rank] = (uint32_t)(1000 * (origin + 1) + 5);
    }
  }

  uint32_t *inboxes, *words_on_device;
  CUDA_CHECK(cudaMalloc(&inboxes, sizeof got));
  CUDA_CHECK(cudaMalloc(&words_on_device, sizeof words));
  CUDA_CHECK(cudaMemset(inboxes, 0, sizeof got));
  pass_on_kernel<<<BLOCKS, THREADS>>>(inboxes, words_on_device);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, inboxes, sizeof got, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(words, words_on_device, sizeof words, cudaMemcpyDeviceToHost));

  printf("first and last word of each inbox\n");
  printf("round       rank 0        rank 1        rank 2        rank 3\n");
  for (int round = 0; round < ROUNDS; round++) {
    printf("  %d   ", round);
    for (int rank = 0; rank < BLOCKS; rank++) {
      printf("  %u .. %u", got[round][rank][0], got[round][rank][TILE_WORDS - 1]);
    }
    printf("\n");
  }
  check_tile("the inboxes of all rounds and ranks", ELEMENT_U32, got, expected, ROUNDS * BLOCKS,
             TILE_WORDS, 0);
  check_tile("word 5 of the left neighbour's outbox", ELEMENT_U32, words, expected_words, ROUNDS,
             BLOCKS, 0);
  CUDA_CHECK(cudaFree(inboxes));
  CUDA_CHECK(cudaFree(words_on_device));
  return program_end("%d tiles passed on %d times, every word", BLOCKS, ROUNDS);
}
