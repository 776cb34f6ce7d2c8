// 05 multicast, aside: every receiver arms its own barrier and reports when it is done.
//
// Rank 0 of a cluster of four sends one tile after another to the blocks in the mask, and uses the
// same buffer for all of them. That takes two barriers:
//
//   full   in every block: "my copy of the tile has arrived". The engine counts the bytes that it
//          writes to block r on the barrier of block r; so block r expects them. A block that is not in
//          the mask must not expect any, or it waits forever.
//   empty  in rank 0 only: "everyone is done with the tile". Four arrivals, most of which come from
//          other blocks: mapa turns the address of a block's own `empty` into that of rank 0's. Rank 0
//          arrives for the blocks that the mask leaves out: they might arrive a round too early.
//
//   round 1   rank 0: wait empty, send --+--> full (rank 0), read, arrive at empty of rank 0
//                                        +--> full (rank 1), read, arrive at empty of rank 0
//                                        +--> full (rank 2), ...
//
// A block expects its next bytes before it reports that it is done with the last ones, because the
// next ones may arrive right after that report. A barrier's parity follows the phases of that
// barrier, not the rounds: a block that was left out of a round is a phase behind.
//
// Prints, for each round, the first element that each rank holds ('-': it was not in the mask).
#include <stdio.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "cluster.cuh"
#include "tensor_map.h"
#include "tma_multicast.cuh"

enum {
  BLOCKS = 4,
  ROUNDS = 5,
  TILE_WORDS = 64,
  TILE_BYTES = TILE_WORDS * 4,
  THREADS = 32,
};

typedef struct {
  uint16_t of_round[ROUNDS];
} Masks;

// The first round from `round` on in which the mask names this rank.
static __device__ int next_round(const Masks *masks, uint32_t rank, int round) {
  while (round < ROUNDS && !(masks->of_round[round] >> rank & 1)) round++;
  return round;
}

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    rounds_kernel(const __grid_constant__ CUtensorMap tiles, const Masks masks, uint32_t *received,
                  uint32_t *phases) {
  __shared__ __align__(128) uint32_t tile[TILE_WORDS];
  __shared__ uint64_t full, empty;
  uint32_t rank = cluster_rank();

  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);        // one arrival: arrive_expect_tx by this thread
    mbarrier_init(&empty, BLOCKS);  // used in rank 0 only, but all blocks have the same layout
    fence_mbarrier_init();
    if (next_round(&masks, rank, 0) < ROUNDS) mbarrier_arrive_expect_tx(&full, TILE_BYTES);
  }
  cluster_sync();

  uint32_t full_phases = 0;
  for (int round = 0; round < ROUNDS; round++) {
    if (rank == 0 && threadIdx.x == 0) {
      if (round > 0) mbarrier_wait_parity(&empty, (round - 1) % 2);
      tma_load_1d_multicast(tile, &tiles, round * TILE_WORDS, &full, masks.of_round[round]);
      int receivers = __popc(masks.of_round[round]);
      for (int i = receivers; i < BLOCKS; i++) mbarrier_arrive(&empty);  // for those left out
    }
    if (!(masks.of_round[round] >> rank & 1)) continue;

    mbarrier_wait_parity(&full, full_phases % 2);
    full_phases++;
    for (int i = threadIdx.x; i < TILE_WORDS; i += THREADS) {
      received[(round * BLOCKS + rank) * TILE_WORDS + i] = tile[i];
    }
    __syncthreads();  // all threads of this block have read the tile
    if (threadIdx.x == 0) {
      if (next_round(&masks, rank, round + 1) < ROUNDS) {
        mbarrier_arrive_expect_tx(&full, TILE_BYTES);
      }
      mbarrier_arrive_cluster(mapa_shared(&empty, 0));
    }
  }
  if (threadIdx.x == 0) phases[rank] = full_phases;
  cluster_sync();  // rank 0's `empty` must exist until the last arrival
}

int main(int argc, char **argv) {
  program_begin("own_barrier", argc, argv, NULL, 0);
  // Everyone; everyone but rank 2; the sender not among the receivers; one receiver; everyone.
  const Masks masks = {{0xF, 0xB, 0xE, 0x4, 0xF}};

  uint32_t host[ROUNDS][TILE_WORDS];
  static uint32_t got[ROUNDS][BLOCKS][TILE_WORDS], expected[ROUNDS][BLOCKS][TILE_WORDS];
  uint32_t expected_phases[BLOCKS] = {0}, phases[BLOCKS];
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < TILE_WORDS; i++) host[round][i] = (uint32_t)(100 * (round + 1) + i);
    for (int rank = 0; rank < BLOCKS; rank++) {
      bool in_mask = masks.of_round[round] >> rank & 1;
      if (in_mask) expected_phases[rank]++;
      for (int i = 0; i < TILE_WORDS; i++) {
        expected[round][rank][i] = in_mask ? host[round][i] : 0;
      }
    }
  }

  uint32_t *tiles, *received, *phases_on_device;
  CUDA_CHECK(cudaMalloc(&tiles, sizeof host));
  CUDA_CHECK(cudaMalloc(&received, sizeof got));
  CUDA_CHECK(cudaMalloc(&phases_on_device, sizeof phases));
  CUDA_CHECK(cudaMemcpy(tiles, host, sizeof host, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(received, 0, sizeof got));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                   .dimensions = 1,
                   .address = tiles,
                   .size = {ROUNDS * TILE_WORDS},
                   .box = {TILE_WORDS}};
  CUtensorMap encoded = tensor_map_encode("the tiles", &map);
  rounds_kernel<<<BLOCKS, THREADS>>>(encoded, masks, received, phases_on_device);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, received, sizeof got, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(phases, phases_on_device, sizeof phases, cudaMemcpyDeviceToHost));

  printf("round  mask    rank 0  rank 1  rank 2  rank 3\n");
  for (int round = 0; round < ROUNDS; round++) {
    printf("  %d    0b", round);
    for (int bit = BLOCKS - 1; bit >= 0; bit--) printf("%d", masks.of_round[round] >> bit & 1);
    for (int rank = 0; rank < BLOCKS; rank++) {
      if (got[round][rank][0] == 0) {
        printf("%8s", "-");
      } else {
        printf("%8u", got[round][rank][0]);
      }
    }
    printf("\n");
  }
  printf("phases of `full`%4u%8u%8u%8u\n", phases[0], phases[1], phases[2], phases[3]);
  check_tile("the tiles of all rounds and ranks", ELEMENT_U32, got, expected, ROUNDS * BLOCKS,
             TILE_WORDS, 0);
  check_tile("the phases of the barriers", ELEMENT_U32, phases, expected_phases, 1, BLOCKS, 0);
  CUDA_CHECK(cudaFree(tiles));
  CUDA_CHECK(cudaFree(received));
  CUDA_CHECK(cudaFree(phases_on_device));
  return program_end("%d rounds through one buffer in %d blocks, every element", ROUNDS, BLOCKS);
}
