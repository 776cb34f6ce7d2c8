/* gemm_large.cuh: the kernel of overlapped_epilogue.cu, for any cluster of tiles of 128 x 256, any
 * m and n, launched so that it may start before its predecessor has ended. Included once for each
 * configuration, with these defined before (and undefined after):
 *   GEMM_NAME                        the kernel's name
 *   GEMM_CLUSTER_M, GEMM_CLUSTER_N   the CTAs of a cluster, as a grid of neighbouring tiles
 *   GEMM_TRACED                      defined: block 0 records what it does
 * Needs k > 64. */
#define GEMM_SHARED GEMM_JOIN(GEMM_NAME, _shared)
#define GEMM_CLUSTER (GEMM_CLUSTER_M * GEMM_CLUSTER_N)
#ifdef GEMM_TRACED
#define GEMM_EVENT(who, what, index)                                         \
  do {                                                                       \
    if (blockIdx.x == 0 && threadIdx.x % 128 == 0 && events < GEMM_EVENTS) { \
      GemmEvent event = {clock64(), what, (int32_t)(index)};                 \
      work.trace[(who)*GEMM_EVENTS + events++] = event;                      \
    }                                                                        \
  } while (0)
#else
#define GEMM_EVENT(who, what, index) (void)0
#endif

#ifndef GEMM_LARGE_CONSTANTS
#define GEMM_LARGE_CONSTANTS
enum {
  LARGE_TILE_M = 128,
  LARGE_TILE_N = 256,
  LARGE_HALF_N = LARGE_TILE_N / 2,
  LARGE_STAGES = 4,
  LARGE_CONSUMERS = 2,
  LARGE_THREADS = 384, /* the producer's warpgroup first, then the consumers' */
  LARGE_BOX_N = 64,
  LARGE_LOAD_BYTES = (LARGE_TILE_M + LARGE_TILE_N) * GEMM_STEP_K * 2,
  LARGE_RIGHT = LARGE_HALF_N * GEMM_STEP_K * 2 / 16 /* in a descriptor's units */
};

typedef struct {
  uint16_t a[LARGE_STAGES][LARGE_TILE_M * GEMM_STEP_K];
  uint16_t b[LARGE_STAGES][LARGE_TILE_N * GEMM_STEP_K];
  uint16_t out[LARGE_CONSUMERS * 4][16 * LARGE_HALF_N];
  uint64_t full[LARGE_STAGES];
  uint64_t empty[LARGE_STAGES];
} LargeShared;

/* One step of 64 k on one half of the accumulator. */
static __device__ __forceinline__ void large_step(float d[LARGE_HALF_N / 2], uint64_t a, uint64_t b,
                                                  bool accumulate) {
  wgmma_fence();
  for (int i = 0; i < GEMM_STEP_K / 16; i++) {
    wgmma_m64n128k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, accumulate || i > 0);
  }
}
#endif

static __global__ void __cluster_dims__(GEMM_CLUSTER, 1, 1) __launch_bounds__(LARGE_THREADS, 1)
    GEMM_NAME(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
              const __grid_constant__ CUtensorMap map_c, const __grid_constant__ GemmWork work) {
  enum { CLUSTER_M = GEMM_CLUSTER_M, CLUSTER_N = GEMM_CLUSTER_N };
  enum { SLICE_M = LARGE_TILE_M / GEMM_CLUSTER_N, SLICE_N = LARGE_TILE_N / GEMM_CLUSTER_M };
  enum { PEERS = GEMM_CLUSTER_M + GEMM_CLUSTER_N - 1 }; /* CTAs that load into this one */
  extern __shared__ uint8_t dynamic_shared[];
  LargeShared *shared = (LargeShared *)align_1024(dynamic_shared);

  uint32_t rank = cluster_rank(), cluster_m = rank % CLUSTER_M, cluster_n = rank / CLUSTER_M;
  int clusters = gridDim.x / GEMM_CLUSTER, tile = blockIdx.x / GEMM_CLUSTER;
  int tiles = work.order.rows * work.order.columns;
  uint32_t warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
#ifdef GEMM_TRACED
  int events = 0;
#endif

  if (threadIdx.x == 0) {
    prefetch_tensor_map(&map_a);
    prefetch_tensor_map(&map_b);
    for (int stage = 0; stage < LARGE_STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], LARGE_CONSUMERS * 4 * PEERS);
    }
    fence_mbarrier_init();
    grid_launch_dependents();
  }
  cluster_sync();

  if (warpgroup == 0) {
    setmaxnreg_producer();
    if (thread == 0) {
      /* The same rows of A are needed by the CTAs of this cluster_m, each of which loads a slice;
       * the same columns of B by those of this cluster_n. */
      uint16_t mask_a = 0, mask_b = 0;
      for (int i = 0; i < CLUSTER_N; i++) mask_a |= 1u << (cluster_m + CLUSTER_M * i);
      for (int i = 0; i < CLUSTER_M; i++) mask_b |= 1u << (i + CLUSTER_M * cluster_n);
      uint32_t count = 0; /* of steps, over all tiles */
      grid_dependency_wait();
      for (; tile < tiles; tile += clusters) {
        TilePlace place = tile_place(work.order, tile);
        int row = (place.row * CLUSTER_M + cluster_m) * LARGE_TILE_M + cluster_n * SLICE_M;
        int column = (place.column * CLUSTER_N + cluster_n) * LARGE_TILE_N + cluster_m * SLICE_N;
        for (int step = 0; step < work.steps; step++, count++) {
          uint32_t stage = count % LARGE_STAGES;
          uint64_t *full = &shared->full[stage];
          uint16_t *a = shared->a[stage] + cluster_n * SLICE_M * GEMM_STEP_K;
          uint16_t *b = shared->b[stage] + cluster_m * SLICE_N * GEMM_STEP_K;
          int k = step * GEMM_STEP_K;
          mbarrier_wait_parity(&shared->empty[stage], count / LARGE_STAGES % 2 ^ 1);
          mbarrier_arrive_expect_tx(full, LARGE_LOAD_BYTES);
          if (CLUSTER_N > 1) {
            tma_load_2d_multicast(a, &map_a, k, row, full, mask_a);
          } else {
            tma_load_2d(a, &map_a, k, row, full);
          }
          if (CLUSTER_M > 1) {
            tma_load_2d_multicast(b, &map_b, k, column, full, mask_b);
          } else {
            tma_load_2d(b, &map_b, k, column, full);
          }
          GEMM_EVENT(0, GEMM_LOAD_ISSUED, count);
        }
      }
    }
  } else {
    setmaxnreg_consumer();
    uint32_t consumer = warpgroup - 1;
    uint16_t *out = shared->out[consumer * 4 + thread / 32];
    /* Lane i of each warp tells peer i, of those that load into this CTA, that a stage is free: the
     * CTAs of this cluster_n first, then the others of this cluster_m. */
    uint32_t other_n = lane - CLUSTER_M < cluster_n ? lane - CLUSTER_M : lane - CLUSTER_M + 1;
    uint32_t peer =
        lane < CLUSTER_M ? lane + CLUSTER_M * cluster_n : cluster_m + CLUSTER_M * other_n;
    uint32_t peer_empty = lane < PEERS ? mapa_shared(shared->empty, peer) : 0;
#define GEMM_FREE(index)                                                            \
  do {                                                                              \
    if (lane < PEERS) {                                                             \
      mbarrier_arrive_peer(peer_empty + (index) % LARGE_STAGES * sizeof(uint64_t)); \
    }                                                                               \
    GEMM_EVENT(warpgroup, GEMM_CONSUMED, index);                                    \
  } while (0)
#define GEMM_NEXT_STAGE()                                                 \
  do {                                                                    \
    uint32_t stage = count % LARGE_STAGES;                                \
    mbarrier_wait_parity(&shared->full[stage], count / LARGE_STAGES % 2); \
    GEMM_EVENT(warpgroup, GEMM_LANDED, count);                            \
    a = first_a + stage * (sizeof(shared->a[0]) / 16);                    \
    b = first_b + stage * (sizeof(shared->b[0]) / 16);                    \
  } while (0)

    uint64_t first_a = wgmma_descriptor_k_major(shared->a[0] + consumer * 64 * GEMM_STEP_K), a;
    uint64_t first_b = wgmma_descriptor_k_major(shared->b[0]), b;
    float left[LARGE_HALF_N / 2], right[LARGE_HALF_N / 2]; /* 64 x 128 values each */
    uint32_t count = 0;                                    /* of steps, over all tiles */

    GEMM_NEXT_STAGE();
    large_step(left, a, b, false);
    wgmma_commit();
    large_step(right, a, b + LARGE_RIGHT, false);
    wgmma_commit();
    count++;
    while (true) {
      TilePlace place = tile_place(work.order, tile);
      int row =
          (place.row * CLUSTER_M + cluster_m) * LARGE_TILE_M + consumer * 64 + thread / 32 * 16;
      int column = (place.column * CLUSTER_N + cluster_n) * LARGE_TILE_N;
      for (int step = 1; step < work.steps - 1; step++, count++) {
        GEMM_NEXT_STAGE();
        large_step(left, a, b, true);
        large_step(right, a, b + LARGE_RIGHT, true);
        wgmma_commit();
        wgmma_wait_all_but_one();
        GEMM_FREE(count - 1);
      }
      GEMM_NEXT_STAGE();
      large_step(left, a, b, true);
      wgmma_commit();
      large_step(right, a, b + LARGE_RIGHT, true);
      wgmma_commit();
      wgmma_wait_all_but_one(); /* all but the last step's right half */
      GEMM_FREE(count - 1);
      GEMM_EVENT(warpgroup, GEMM_STORE_BEGUN, count);
      gemm_store(out, left, LARGE_HALF_N, LARGE_BOX_N, &map_c, work, row, column);
      GEMM_EVENT(warpgroup, GEMM_STORE_ISSUED, count);
      wgmma_wait_all();
      GEMM_FREE(count);
      count++;

      tile += clusters;
      if (tile >= tiles) {
        gemm_store(out, right, LARGE_HALF_N, LARGE_BOX_N, &map_c, work, row, column + LARGE_HALF_N);
        break;
      }
      GEMM_NEXT_STAGE();
      large_step(left, a, b, false);
      wgmma_commit();
      GEMM_EVENT(warpgroup, GEMM_STORE_BEGUN, count);
      gemm_store(out, right, LARGE_HALF_N, LARGE_BOX_N, &map_c, work, row, column + LARGE_HALF_N);
      GEMM_EVENT(warpgroup, GEMM_STORE_ISSUED, count);
      large_step(right, a, b + LARGE_RIGHT, false);
      wgmma_commit();
      count++;
    }
    if (lane == 0) bulk_wait_group_read(0); /* shared memory must outlive the last stores */
  }
  /* Nor may a CTA end while a peer may write to its shared memory or arrive in it. */
  if (GEMM_CLUSTER > 1) {
    cluster_arrive_relaxed();
    cluster_wait_acquire();
  }
}

static const GemmConfiguration GEMM_JOIN(GEMM_NAME, _configuration) = {GEMM_STRING(GEMM_NAME),
                                                                       (const void *)GEMM_NAME,
                                                                       LARGE_TILE_M,
                                                                       LARGE_TILE_N,
                                                                       GEMM_CLUSTER_M,
                                                                       GEMM_CLUSTER_N,
                                                                       1,
                                                                       LARGE_THREADS,
                                                                       sizeof(LargeShared) + 1024,
                                                                       LARGE_BOX_N,
                                                                       true};

#undef GEMM_NAME
#undef GEMM_SHARED
#undef GEMM_CLUSTER
#undef GEMM_CLUSTER_M
#undef GEMM_CLUSTER_N
#undef GEMM_EVENT
#undef GEMM_TRACED
#undef GEMM_FREE
#undef GEMM_NEXT_STAGE
