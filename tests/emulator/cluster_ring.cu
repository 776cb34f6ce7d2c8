// cluster_ring.cu: two blocks of a cluster, each with a producer that copies one half of every tile to both, and
// consumers that release each stage in both. Mistakes: to whom they release it. emulator_pipelines.bats looks
// at what the emulator calls them.
//
//   cluster_ring CASE    prints "CASE: cudaError..., N wrong"
//
// The names of correct cases begin with "fine_".
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
} Case;
static const Case CASES[] = {
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

static __device__ uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}
static __device__ uint32_t cluster_rank(void) {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
static __device__ void cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
static __device__ void init(uint64_t *barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
static __device__ void wait_parity(uint64_t *barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra again; }" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
static __device__ void expect_tile(uint64_t *barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"((int)TILE_BYTES)
               : "memory");
}
static __device__ void arrive_at(uint64_t *barrier, uint32_t rank) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(
          shared_address(barrier)),
      "r"(rank)
      : "memory");
}
static __device__ void load(uint32_t *tile, const uint32_t *source, uint64_t *barrier,
                            uint32_t bytes, uint32_t mask) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(tile)),
      "l"(source), "r"(bytes), "r"(shared_address(barrier)), "h"((uint16_t)mask)
      : "memory");
}

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
  if (lane < (own_tiles ? 1 : BLOCKS)) arrive_at(empty, to);
}

__global__ void ring(Release release, const uint32_t *source, uint32_t *sums) {
  __shared__ alignas(128) uint32_t tiles[STAGES][TILE_WORDS];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  uint32_t rank = cluster_rank(), warp = threadIdx.x / 32, mine = 0;
  bool own_tiles = release == OWN_TILES || release == OWN_TILES_TO_OTHER;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      init(&full[i], 1);
      init(&empty[i], CONSUMERS * (own_tiles ? 1 : BLOCKS));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  for (int round = 0; round < ROUNDS; round++) {
    int stage = round % STAGES, lap = round / STAGES;
    const uint32_t *tile = source + round * TILE_WORDS;
    if (threadIdx.x == 0) {
      wait_parity(&empty[stage], (lap & 1) ^ 1);
      expect_tile(&full[stage]);
      if (own_tiles)
        load(tiles[stage], tile, &full[stage], TILE_BYTES, 1u << rank);
      else
        load(&tiles[stage][rank * HALF_WORDS], tile + rank * HALF_WORDS, &full[stage],
             TILE_BYTES / BLOCKS, (1 << BLOCKS) - 1);
    } else if (warp > 0) {
      wait_parity(&full[stage], lap & 1);
      for (uint32_t i = threadIdx.x % 32; i < TILE_WORDS; i += 32) mine += tiles[stage][i];
      release_stage(release, &empty[stage], round);
    }
  }
  if (warp > 0) sums[rank * THREADS + threadIdx.x] = mine;
  __syncwarp();
  cluster_sync();
}

int main(int argc, char **argv) {
  const Case *test = NULL;
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    if (argc == 2 && strcmp(argv[1], CASES[i].name) == 0) test = &CASES[i];
  if (!test) {
    fprintf(stderr, "usage: cluster_ring CASE\n");
    return 2;
  }
  static uint32_t host[ROUNDS * TILE_WORDS], sums[BLOCKS * THREADS];
  for (int i = 0; i < ROUNDS * TILE_WORDS; i++) host[i] = 1;
  uint32_t *source, *device_sums, wrong = 0;
  cudaMalloc((void **)&source, sizeof host);
  cudaMalloc((void **)&device_sums, sizeof sums);
  cudaMemcpy(source, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemset(device_sums, 0, sizeof sums);
  cudaLaunchAttribute cluster = {.id = cudaLaunchAttributeClusterDimension};
  cluster.val.clusterDim = {BLOCKS, 1, 1};
  cudaLaunchConfig_t config = {.gridDim = dim3(BLOCKS), .blockDim = dim3(THREADS)};
  config.attrs = &cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, ring, test->release, (const uint32_t *)source, device_sums);
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess)
    error = cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost);
  for (int i = 0; i < BLOCKS * THREADS; i++)
    wrong += i % THREADS >= 32 && sums[i] != ROUNDS * TILE_WORDS / 32;
  printf("%s: %s, %u wrong\n", test->name, cudaGetErrorName(error), wrong);
  return 0;
}
