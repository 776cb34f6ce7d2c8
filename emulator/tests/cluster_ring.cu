// cluster_ring.cu: two blocks of a cluster, each with a producer that copies one half of every tile to both, and
// consumers that release each stage in both. Mistakes: to whom they release it. pipelines.bats looks
// at what the emulator calls them.
//
//   cluster_ring CASE    prints "CASE: cudaError..., N wrong"
//
// The names of correct cases begin with "fine_".
#include "../../05_multicast/tma_multicast.cuh"
#include "cases.cuh"
#include "device_memory.cuh"
#include "launch_clusters.cuh"
#include "../../05_multicast/cluster.cuh"

enum { BLOCKS = 2, CONSUMERS = 2, THREADS = 32 * (1 + CONSUMERS), STAGES = 2, ROUNDS = 8 };
enum { HALF_WORDS = 64, TILE_WORDS = BLOCKS * HALF_WORDS, TILE_BYTES = TILE_WORDS * 4 };

typedef enum {
  TO_BOTH,            // lane 0 to rank 0, lane 1 to rank 1
  BOTH_TO_OWN,        // both lanes to the rank of their own block
  BOTH_TO_OTHER,      // both to the other one
  BOTH_TO_FIRST,      // both to rank 0
  ONE_WARP_TO_OWN,    // like BOTH_TO_OWN, the second consumer of rank 1 alone
  ONE_WARP_TO_OTHER,  // like BOTH_TO_OTHER, the same
  ONCE_TO_OWN,        // the same warp, in one round
  OWN_TILES,          // each producer copies whole tiles to its own block; these are released there
  OWN_TILES_TO_OTHER  // and these in the other block
} Release;

typedef struct {
  const char *name;
  Release release;
} Ring;
static const Ring RINGS[] = {
    {"fine_to_both", TO_BOTH},
    {"both_to_own", BOTH_TO_OWN},
    {"both_to_other", BOTH_TO_OTHER},
    {"both_to_first", BOTH_TO_FIRST},
    {"one_warp_to_own", ONE_WARP_TO_OWN},
    {"one_warp_to_other", ONE_WARP_TO_OTHER},
    {"once_to_own", ONCE_TO_OWN},
    {"fine_own_tiles", OWN_TILES},
    {"own_tiles_to_other", OWN_TILES_TO_OTHER},
};

static __device__ void release_stage(Release release, uint64_t *empty, int round) {
  uint32_t rank = cluster_rank(), lane = threadIdx.x % 32, to = lane;
  bool chosen = rank == 1 && threadIdx.x / 32 == 2;
  bool own_tiles = release == OWN_TILES || release == OWN_TILES_TO_OTHER;
  if (release == BOTH_TO_OWN || release == OWN_TILES) to = rank;
  if (release == BOTH_TO_OTHER || release == OWN_TILES_TO_OTHER) to = rank ^ 1;
  if (release == BOTH_TO_FIRST) to = 0;
  if (chosen && release == ONE_WARP_TO_OWN) to = rank;
  if (chosen && release == ONE_WARP_TO_OTHER) to = rank ^ 1;
  if (chosen && release == ONCE_TO_OWN && round == 1) to = rank;
  __syncwarp();
  if (lane < (own_tiles ? 1 : BLOCKS)) mbarrier_arrive_release_cluster(mapa_shared(empty, to));
}

__global__ void ring(Release release, const uint32_t *source, uint32_t *sums) {
  __shared__ alignas(128) uint32_t tiles[STAGES][TILE_WORDS];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  uint32_t rank = cluster_rank(), warp = threadIdx.x / 32, mine = 0;
  bool own_tiles = release == OWN_TILES || release == OWN_TILES_TO_OTHER;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      mbarrier_init(&full[i], 1);
      mbarrier_init(&empty[i], CONSUMERS * (own_tiles ? 1 : BLOCKS));
    }
    fence_mbarrier_init();
  }
  cluster_sync();
  for (int round = 0; round < ROUNDS; round++) {
    int stage = round % STAGES, lap = round / STAGES;
    const uint32_t *tile = source + round * TILE_WORDS;
    if (threadIdx.x == 0) {
      mbarrier_wait_parity(&empty[stage], (lap & 1) ^ 1);
      mbarrier_arrive_expect_tx(&full[stage], TILE_BYTES);
      if (own_tiles)
        bulk_load_multicast(tiles[stage], tile, TILE_BYTES, &full[stage], (uint16_t)(1 << rank));
      else
        bulk_load_multicast(&tiles[stage][rank * HALF_WORDS], tile + rank * HALF_WORDS,
                            TILE_BYTES / BLOCKS, &full[stage], cluster_mask_all(BLOCKS));
    } else if (warp > 0) {
      mbarrier_wait_parity(&full[stage], lap & 1);
      for (uint32_t i = threadIdx.x % 32; i < TILE_WORDS; i += 32) mine += tiles[stage][i];
      release_stage(release, &empty[stage], round);
    }
  }
  if (warp > 0) sums[rank * THREADS + threadIdx.x] = mine;
  __syncwarp();
  cluster_sync();
}

int main(int argc, char **argv) {
  const Ring *test = &RINGS[choose_of(RINGS, argc, argv)];
  static uint32_t host[ROUNDS * TILE_WORDS], sums[BLOCKS * THREADS];
  for (int i = 0; i < ROUNDS * TILE_WORDS; i++) host[i] = 1;
  uint32_t *source = device_copy(host), wrong = 0;
  uint32_t *device_sums = device_filled<uint32_t>(BLOCKS * THREADS, 0);
  Release release = test->release;
  void *arguments[] = {&release, &source, &device_sums};
  launch_clusters((const void *)ring, BLOCKS, BLOCKS, THREADS, 0, arguments);
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess)
    error = cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost);
  for (int i = 0; i < BLOCKS * THREADS; i++)
    wrong += i % THREADS >= 32 && sums[i] != ROUNDS * TILE_WORDS / 32;
  printf("%s: %s, %u wrong\n", test->name, cudaGetErrorName(error), wrong);
  return 0;
}
