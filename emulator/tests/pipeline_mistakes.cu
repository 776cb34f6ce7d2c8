// pipeline_mistakes.cu: one mistake each in a ring of stages that a producer fills and consumers
// empty. pipelines.bats looks at what the emulator calls it.
//
//   pipeline_mistakes CASE    prints "CASE: cudaError..., sum N"
//
// The values of a case say how the ring is set up. Those whose name begins with "fine_" are correct.
#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"
#include "cases.cuh"
#include "device_memory.cuh"
#include "launch_clusters.cuh"

enum { CONSUMERS = 2, THREADS = 32 * (1 + CONSUMERS), STAGES = 2, ROUNDS = 6, TILE_WORDS = 256 };
enum { TILE_BYTES = TILE_WORDS * 4 };

typedef enum {
  NO_SLIP,
  ONE_WARP_FREES,         // only the first consumer warp frees stages, and nobody reads them
  FREED_BUT_ONCE,         // a consumer warp forgets one stage
  CONSUMER_ASKS_OTHER,    // the consumers wait for the other parity
  PRODUCER_ASKS_OTHER,    // the producer does
  NOTHING_EXPECTED,       // the producer arrives without the bytes
  EXPECTED_WITHOUT_COPY,  // the producer does not issue the last copy
  CONSUMERS_GO_ON,        // the consumers want one tile more than there are
  PRODUCER_GOES_ON,       // the producer waits once more than there are tiles
  WAIT_SKIPPED,           // a consumer warp does not wait for one of its tiles
  FULL_WITHOUT_ARRIVAL,   // the producer expects the bytes, but does not arrive
  TWO_ANNOUNCE,           // two lanes of the producer announce and copy each tile
  SHORT_RING,             // the producer never fills the last stage
  ONE_RANK_FILLED,        // the copies reach rank 0 only
  ONE_RANK_FILLED_LATER,  // only after the first lap
  WIDE_BARRIER,           // the consumers meet at a barrier that counts 128 threads
  FREED_IN_ADVANCE,  // no slip: the consumers free all stages first, and the producer always waits
  FREED_AND_ASKS_OTHER,  // the same, and the producer waits for the other parity
  LAST_STAGE_FREED,      // the consumers always free the last stage
} Slip;

typedef struct {
  const char *name;
  uint32_t ctas;            // of the cluster; rank 0 fills the stages of all
  uint32_t empty_count;     // arrivals that free a stage
  uint32_t arriving;        // threads of each consumer warp that arrive
  uint32_t arrive_rank;     // where they arrive: a rank, or OWN or OTHER
  uint32_t distance_words;  // between the stages
  bool producer_arms;       // the producer announces the bytes, not a consumer
  uint32_t waiting;         // threads of each consumer warp that wait for a tile
  Slip slip;                // what else is wrong
} Ring;
enum { OWN = 16, OTHER };

static const Ring RINGS[] = {
    {"fine_warps", 1, 2, 1, OWN, TILE_WORDS, false, 32},
    {"fine_threads", 1, 64, 32, OWN, TILE_WORDS, false, 32},
    {"fine_cluster", 2, 4, 1, 0, TILE_WORDS, false, 32},
    {"count_too_low", 1, 1, 1, OWN, TILE_WORDS, false, 32},
    {"count_of_warps_for_threads", 1, 2, 32, OWN, TILE_WORDS, false, 32},
    {"count_too_high", 1, 3, 1, OWN, TILE_WORDS, false, 32},
    {"count_of_threads_for_warps", 1, 64, 1, OWN, TILE_WORDS, false, 32},
    {"count_of_one_block", 2, 2, 1, 0, TILE_WORDS, false, 32},
    {"arrives_at_own_rank", 2, 4, 1, OWN, TILE_WORDS, false, 32},
    {"arrives_at_rank_1", 2, 4, 1, 1, TILE_WORDS, false, 32},
    {"arrives_at_the_other_rank", 2, 4, 1, OTHER, TILE_WORDS, false, 32},
    {"stages_overlap", 1, 2, 1, OWN, TILE_WORDS / 2, false, 32},
    {"stages_overlap_by_a_row", 1, 2, 1, OWN, TILE_WORDS - 4, false, 32},
    {"stages_overlap_in_a_cluster", 2, 4, 1, 0, TILE_WORDS / 2, false, 32},
    {"fine_armed_by_producer", 1, 2, 1, OWN, TILE_WORDS, true, 32},
    {"armed_count_too_low", 1, 1, 1, OWN, TILE_WORDS, true, 32},
    {"armed_count_too_high", 1, 3, 1, OWN, TILE_WORDS, true, 32},
    {"armed_count_of_warps_for_threads", 1, 2, 32, OWN, TILE_WORDS, true, 32},
    {"armed_stages_overlap", 1, 2, 1, OWN, TILE_WORDS / 2, true, 32},
    {"armed_one_lane_waits", 1, 2, 1, OWN, TILE_WORDS, true, 1},
    {"one_lane_waits", 1, 2, 1, OWN, TILE_WORDS, false, 1},
    {"one_warp_frees", 1, 1, 1, OWN, TILE_WORDS, true, 32, ONE_WARP_FREES},
    {"freed_but_once", 1, 2, 1, OWN, TILE_WORDS, true, 32, FREED_BUT_ONCE},
    {"consumer_asks_other", 1, 2, 1, OWN, TILE_WORDS, true, 32, CONSUMER_ASKS_OTHER},
    {"producer_asks_other", 1, 2, 1, OWN, TILE_WORDS, true, 32, PRODUCER_ASKS_OTHER},
    {"nothing_expected", 1, 2, 1, OWN, TILE_WORDS, true, 32, NOTHING_EXPECTED},
    {"nothing_expected_count_too_low", 1, 1, 1, OWN, TILE_WORDS, true, 32, NOTHING_EXPECTED},
    {"expected_without_copy", 1, 2, 1, OWN, TILE_WORDS, true, 32, EXPECTED_WITHOUT_COPY},
    {"consumers_go_on", 1, 2, 1, OWN, TILE_WORDS, true, 32, CONSUMERS_GO_ON},
    {"producer_goes_on", 1, 2, 1, OWN, TILE_WORDS, true, 32, PRODUCER_GOES_ON},
    {"wait_skipped", 1, 2, 1, OWN, TILE_WORDS, true, 32, WAIT_SKIPPED},
    {"full_without_arrival", 1, 2, 1, OWN, TILE_WORDS, true, 32, FULL_WITHOUT_ARRIVAL},
    {"count_of_warps_in_a_cluster", 2, 4, 32, 0, TILE_WORDS, false, 32},
    {"count_one_too_low_in_a_cluster", 2, 3, 1, 0, TILE_WORDS, false, 32},
    {"two_announce", 1, 2, 1, OWN, TILE_WORDS, true, 32, TWO_ANNOUNCE},
    {"short_ring", 1, 2, 1, OWN, TILE_WORDS, true, 32, SHORT_RING},
    {"one_rank_filled", 2, 4, 1, 0, TILE_WORDS, false, 32, ONE_RANK_FILLED},
    {"one_rank_filled_later", 2, 4, 1, 0, TILE_WORDS, false, 32, ONE_RANK_FILLED_LATER},
    {"wide_barrier", 1, 2, 1, OWN, TILE_WORDS, false, 32, WIDE_BARRIER},
    {"fine_freed_in_advance", 1, 2, 1, OWN, TILE_WORDS, true, 32, FREED_IN_ADVANCE},
    {"freed_and_asks_other", 1, 2, 1, OWN, TILE_WORDS, true, 32, FREED_AND_ASKS_OTHER},
    {"last_stage_freed", 1, 2, 1, OWN, TILE_WORDS, true, 32, LAST_STAGE_FREED},
};

static __device__ void arrive_at(uint64_t *barrier, uint32_t rank) {
  mbarrier_arrive_release_cluster(mapa_shared(barrier, rank));
}

static __device__ bool frees_in_advance(Ring ring) {
  return ring.slip == FREED_IN_ADVANCE || ring.slip == FREED_AND_ASKS_OTHER;
}

static __device__ uint32_t consume(const uint32_t *tile) {
  uint32_t sum = 0;
  for (uint32_t i = threadIdx.x % 64; i < TILE_WORDS; i += 64) sum += tile[i];
  return sum;
}

// What the producer does for one tile.
static __device__ void fill(Ring ring, int round, int lap, uint32_t *tile, const uint32_t *source,
                            uint64_t *full, uint64_t *empty) {
  if (frees_in_advance(ring))
    mbarrier_wait_parity(empty, (lap & 1) ^ (ring.slip == FREED_AND_ASKS_OTHER));
  else if (lap > 0 || ring.slip == LAST_STAGE_FREED)
    mbarrier_wait_parity(empty, ((lap - 1) & 1) ^ (ring.slip == PRODUCER_ASKS_OTHER));
  if (ring.slip == NOTHING_EXPECTED)
    mbarrier_arrive(full);
  else if (ring.slip == FULL_WITHOUT_ARRIVAL)
    mbarrier_expect_tx(full, TILE_BYTES);
  else if (ring.producer_arms)
    mbarrier_arrive_expect_tx(full, TILE_BYTES);
  if (ring.slip == EXPECTED_WITHOUT_COPY && round == ROUNDS - 1) return;
  bool only_own = ring.slip == ONE_RANK_FILLED || (ring.slip == ONE_RANK_FILLED_LATER && lap > 0);
  bulk_load_multicast(tile, source, TILE_BYTES, full, cluster_mask_all(only_own ? 1 : ring.ctas));
}

__global__ void pipeline(Ring ring, const uint32_t *source, uint32_t *sum) {
  __shared__ alignas(128) uint32_t tiles[STAGES * TILE_WORDS];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = cluster_rank();
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      mbarrier_init(&full[i], 1);
      mbarrier_init(&empty[i], ring.empty_count);
      if (!ring.producer_arms) mbarrier_arrive_expect_tx(&full[i], TILE_BYTES);
    }
    fence_mbarrier_init();
  }
  cluster_sync();
  if (warp == 0) {
    uint32_t lanes = ring.slip == TWO_ANNOUNCE ? 2 : 1;
    int stages = ring.slip == SHORT_RING ? STAGES - 1 : STAGES;
    for (int round = 0; rank == 0 && lane < lanes && round < ROUNDS; round++) {
      int stage = round % stages;
      fill(ring, round, round / stages, &tiles[stage * ring.distance_words],
           source + round * TILE_WORDS, &full[stage], &empty[stage]);
    }
    for (int lap = 1; ring.slip == PRODUCER_GOES_ON && lane == 0 && lap <= ROUNDS / STAGES + 1;
         lap++)
      if (lane == 0) mbarrier_wait_parity(&empty[0], (lap - 1) & 1);
  } else {
    uint32_t mine = 0;
    for (int i = 0; frees_in_advance(ring) && lane < ring.arriving && i < STAGES; i++)
      arrive_at(&empty[i], rank);
    int rounds = ring.slip == CONSUMERS_GO_ON ? ROUNDS + 1 : ROUNDS;
    for (int round = 0; round < rounds; round++) {
      int stage = round % STAGES, lap = round / STAGES;
      uint32_t parity = (lap & 1) ^ (ring.slip == CONSUMER_ASKS_OTHER);
      bool skipped = ring.slip == WAIT_SKIPPED && warp == 1 && lap == 1;
      bool slow = ring.slip == ONE_WARP_FREES && warp == 2;
      for (int i = 0; slow && i < 1000; i++) atomicAdd(sum, 0);
      if (lane < ring.waiting && !skipped) mbarrier_wait_parity(&full[stage], parity);
      mine += ring.slip == ONE_WARP_FREES ? 1 : consume(&tiles[stage * ring.distance_words]);
      if (!ring.producer_arms) {
        // Both consumers have seen the phase over; then one thread announces the next tile.
        asm volatile("bar.sync 1, %0;" ::"r"(ring.slip == WIDE_BARRIER ? 128 : 64) : "memory");
        if (threadIdx.x == 32 && round + STAGES < ROUNDS)
          mbarrier_arrive_expect_tx(&full[stage], TILE_BYTES);
        asm volatile("bar.sync 1, 64;" ::: "memory");
      }
      uint32_t to = ring.arrive_rank == OWN     ? rank
                    : ring.arrive_rank == OTHER ? 1 - rank
                                                : ring.arrive_rank;
      __syncwarp();  // the lane that arrives does so for what the others have read too
      bool forgets = (ring.slip == ONE_WARP_FREES && warp != 1) ||
                     (ring.slip == FREED_BUT_ONCE && warp == 2 && round == STAGES);
      int freed = ring.slip == LAST_STAGE_FREED ? STAGES - 1 : stage;
      if (lane < ring.arriving && !forgets) arrive_at(&empty[freed], to);
    }
    atomicAdd(sum, mine);
  }
  __syncwarp();
  cluster_sync();
}

int main(int argc, char **argv) {
  const Ring *ring = &RINGS[choose_of(RINGS, argc, argv)];
  static uint32_t host[ROUNDS * TILE_WORDS];
  for (int i = 0; i < ROUNDS * TILE_WORDS; i++) host[i] = 1;
  uint32_t *source = device_copy(host), *sum = device_filled<uint32_t>(1, 0), result = 0;
  void *arguments[] = {(void *)ring, &source, &sum};
  launch_clusters((const void *)pipeline, (int)ring->ctas, (int)ring->ctas, THREADS, 0, arguments);
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost);
  printf("%s: %s, sum %u\n", ring->name, cudaGetErrorName(error), result);
  return 0;
}
