/* gemm_small.cuh: the kernel for products with too few tiles of 128 x 256 to fill the chip: smaller
 * tiles, one for each CTA or, with the k range split, one for each cluster. Included once for each
 * configuration, with these defined before (and undefined after):
 *   GEMM_NAME                        the kernel's name
 *   GEMM_TILE_M, GEMM_TILE_N         64 or 128 rows, one consumer warpgroup for each 64; 64, 128 or
 *                                    256 columns
 *   GEMM_STAGES                      the ring's length
 *   GEMM_CLUSTER_M, GEMM_CLUSTER_N   the CTAs of a cluster that share loads, as a grid of tiles
 *   GEMM_SPLIT_K                     the CTAs of a cluster that share a tile: each takes a part of
 *                                    the k range, then each sums up a part of the columns, which
 *                                    the others send it through distributed shared memory: always
 *                                    in the same order, so the result has the same bits every time
 */
#define GEMM_WGMMA GEMM_JOIN(GEMM_JOIN(wgmma_m64n, GEMM_TILE_N), k16)
#define GEMM_SHARED GEMM_JOIN(GEMM_NAME, _shared)
#define GEMM_SHARING (GEMM_CLUSTER_M * GEMM_CLUSTER_N)
#define GEMM_CLUSTER (GEMM_SHARING * GEMM_SPLIT_K)
#define GEMM_CONSUMERS (GEMM_TILE_M / 64)
#define GEMM_THREADS (128 * GEMM_CONSUMERS + 32)
/* The columns that a CTA sums up and stores, and those of one box of the store. */
#define GEMM_PART_N (GEMM_TILE_N / GEMM_SPLIT_K)
#define GEMM_BOX_N (GEMM_PART_N < 64 ? GEMM_PART_N : 64)
/* Stored at a time. */
#define GEMM_OUT_N (GEMM_PART_N < 128 ? GEMM_PART_N : 128)

typedef struct {
  uint16_t a[GEMM_STAGES][GEMM_TILE_M * GEMM_STEP_K];
  uint16_t b[GEMM_STAGES][GEMM_TILE_N * GEMM_STEP_K];
  uint16_t out[GEMM_CONSUMERS * 4][16 * GEMM_OUT_N];
#if GEMM_SPLIT_K > 1
  float4 partial[GEMM_SPLIT_K - 1][GEMM_PART_N / 8][128 * GEMM_CONSUMERS];
#endif
  uint64_t full[GEMM_STAGES];
  uint64_t empty[GEMM_STAGES];
} GEMM_SHARED;

#ifndef GEMM_SMALL_FUNCTIONS
#define GEMM_SMALL_FUNCTIONS
/* PTX ISA: st, state space .shared::cluster. Writes 16 bytes to a peer's shared memory. */
static __device__ __forceinline__ void st_shared_cluster_f32x4(uint32_t cluster_address,
                                                               const float *v) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(cluster_address),
               "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
               : "memory");
}
#endif

static __global__ void __cluster_dims__(GEMM_CLUSTER, 1, 1) __launch_bounds__(GEMM_THREADS, 1)
    GEMM_NAME(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
              const __grid_constant__ CUtensorMap map_c, const __grid_constant__ GemmWork work) {
  enum { TILE_M = GEMM_TILE_M, TILE_N = GEMM_TILE_N, STAGES = GEMM_STAGES };
  enum { CLUSTER_M = GEMM_CLUSTER_M, CLUSTER_N = GEMM_CLUSTER_N, SPLIT_K = GEMM_SPLIT_K };
  enum { SLICE_M = GEMM_TILE_M / GEMM_CLUSTER_N, SLICE_N = GEMM_TILE_N / GEMM_CLUSTER_M };
  enum { CONSUMERS = GEMM_CONSUMERS, PEERS = GEMM_CLUSTER_M + GEMM_CLUSTER_N - 1 };
  enum { PART_N = GEMM_PART_N, BOX_N = GEMM_BOX_N, OUT_N = GEMM_OUT_N };
  enum { LOAD_BYTES = (GEMM_TILE_M + GEMM_TILE_N) * GEMM_STEP_K * 2 };
  gemm_prefetch_maps(&map_a, &map_b, &map_c);
  extern __shared__ uint8_t dynamic_shared[];
  GEMM_SHARED *shared = (GEMM_SHARED *)align_1024(dynamic_shared);

  /* rank = cluster_m + CLUSTER_M * (cluster_n + CLUSTER_N * split) */
  uint32_t rank = GEMM_CLUSTER > 1 ? cluster_rank() : 0;
  uint32_t cluster_m = rank % CLUSTER_M, cluster_n = rank / CLUSTER_M % CLUSTER_N;
  uint32_t split = rank / GEMM_SHARING;
  uint32_t warpgroup = gemm_uniform(threadIdx.x / 128);
  uint32_t thread = threadIdx.x % 128, lane = threadIdx.x % 32;

  if (threadIdx.x == 128 * CONSUMERS) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], CONSUMERS * 4 * PEERS);
    }
    fence_mbarrier_init();
    grid_launch_dependents();
  }
  if (GEMM_CLUSTER > 1) cluster_arrive_release();
  TilePlace place = tile_place(work.order, blockIdx.x / GEMM_CLUSTER);
  int tile_row = (place.row * CLUSTER_M + cluster_m) * TILE_M;
  int tile_column = (place.column * CLUSTER_N + cluster_n) * TILE_N;
  int first_step = work.steps * (int)split / SPLIT_K;
  int steps = work.steps * (int)(split + 1) / SPLIT_K - first_step;
  if (GEMM_CLUSTER > 1) {
    cluster_wait_acquire();
  } else {
    __syncthreads();
  }

  if (warpgroup == CONSUMERS) {
    if (thread == 0) {
      uint16_t mask_a = 0, mask_b = 0;
      uint32_t first = GEMM_SHARING * split;
      for (int i = 0; i < CLUSTER_N; i++) mask_a |= 1u << (first + cluster_m + CLUSTER_M * i);
      for (int i = 0; i < CLUSTER_M; i++) mask_b |= 1u << (first + i + CLUSTER_M * cluster_n);
      int row = tile_row + cluster_n * SLICE_M, column = tile_column + cluster_m * SLICE_N;
      grid_dependency_wait();
      for (int step = 0; step < steps; step++) {
        uint32_t stage = step % STAGES;
        uint64_t *full = &shared->full[stage];
        uint16_t *a = shared->a[stage] + cluster_n * SLICE_M * GEMM_STEP_K;
        uint16_t *b = shared->b[stage] + cluster_m * SLICE_N * GEMM_STEP_K;
        int k = (first_step + step) * GEMM_STEP_K;
        mbarrier_wait_parity(&shared->empty[stage], step / STAGES % 2 ^ 1);
        mbarrier_arrive_expect_tx(full, LOAD_BYTES);
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
      }
    }
#if GEMM_SPLIT_K > 1
    __syncwarp();
    cluster_sync(); /* the consumers' below */
#endif
  } else {
    /* Lane i of each warp tells peer i that a stage is free, as in gemm_large.cuh. */
    uint32_t other_n = lane - CLUSTER_M < cluster_n ? lane - CLUSTER_M : lane - CLUSTER_M + 1;
    uint32_t peer =
        lane < CLUSTER_M ? lane + CLUSTER_M * cluster_n : cluster_m + CLUSTER_M * other_n;
    uint32_t peer_empty =
        PEERS > 1 && lane < PEERS ? mapa_shared(shared->empty, peer + GEMM_SHARING * split) : 0;

    uint64_t first_a = wgmma_descriptor_k_major(shared->a[0] + warpgroup * 64 * GEMM_STEP_K);
    uint64_t first_b = wgmma_descriptor_k_major(shared->b[0]);
    float d[TILE_N / 2];
    for (int step = 0; step < steps; step++) {
      uint32_t stage = step % STAGES, previous = (step - 1) % STAGES;
      mbarrier_wait_parity(&shared->full[stage], step / STAGES % 2);
      uint64_t a = first_a + stage * (sizeof(shared->a[0]) / 16);
      uint64_t b = first_b + stage * (sizeof(shared->b[0]) / 16);
      wgmma_fence();
      for (int i = 0; i < GEMM_STEP_K / 16; i++) {
        GEMM_WGMMA(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step > 0 || i > 0);
      }
      wgmma_commit();
      wgmma_wait_all_but_one();
      if (step > 0) {
        if (PEERS == 1 && lane == 0) mbarrier_arrive(&shared->empty[previous]);
        if (PEERS > 1 && lane < PEERS) {
          mbarrier_arrive_peer(peer_empty + previous * sizeof(uint64_t));
        }
      }
    }
    wgmma_wait_all();

    uint16_t *out = shared->out[warpgroup * 4 + thread / 32];
    int row = tile_row + warpgroup * 64 + thread / 32 * 16;
#if GEMM_SPLIT_K > 1
    float sum[PART_N / 2];
#pragma unroll
    for (uint32_t part = 0; part < SPLIT_K; part++) {
      const float *mine = d + part * (PART_N / 2);
      if (part == split) {
#pragma unroll
        for (int i = 0; i < PART_N / 2; i++) sum[i] = mine[i];
      } else {
        uint32_t slot = split < part ? split : split - 1; /* a CTA has none for itself */
        uint32_t target = mapa_shared(&shared->partial[slot][0][threadIdx.x],
                                      rank % GEMM_SHARING + GEMM_SHARING * part);
#pragma unroll
        for (int i = 0; i < PART_N / 8; i++) {
          st_shared_cluster_f32x4(target + i * (uint32_t)sizeof(shared->partial[0][0]),
                                  mine + 4 * i);
        }
      }
    }
    cluster_sync(); /* all parts have arrived; and no CTA is written to any more */
#pragma unroll
    for (int i = 0; i < PART_N / 8; i++) {
      float4 total = make_float4(0, 0, 0, 0);
#pragma unroll
      for (uint32_t from = 0; from < SPLIT_K; from++) {
        float4 term = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
        if (from != split) {
          term = shared->partial[from < split ? from : from - 1][i][threadIdx.x];
        }
        total.x += term.x, total.y += term.y, total.z += term.z, total.w += term.w;
      }
      sum[4 * i] = total.x, sum[4 * i + 1] = total.y;
      sum[4 * i + 2] = total.z, sum[4 * i + 3] = total.w;
    }
#else
    float *sum = d;
#endif
#pragma unroll
    for (int at = 0; at < PART_N; at += OUT_N) {
      if (at > 0) {
        if (lane == 0) bulk_wait_group_read(0);
        __syncwarp();
      }
      gemm_store(out, sum + at / 2, OUT_N, BOX_N, &map_c, work, row,
                 tile_column + (int)split * PART_N + at);
    }
    if (lane == 0) bulk_wait_group_read(0);
  }
#if GEMM_SPLIT_K == 1
  if (GEMM_CLUSTER > 1) {
    cluster_arrive_relaxed();
    cluster_wait_acquire();
  }
#endif
}

static const GemmConfiguration GEMM_JOIN(GEMM_NAME, _configuration) = {GEMM_STRING(GEMM_NAME),
                                                                       (const void *)GEMM_NAME,
                                                                       GEMM_TILE_M,
                                                                       GEMM_TILE_N,
                                                                       GEMM_CLUSTER_M,
                                                                       GEMM_CLUSTER_N,
                                                                       GEMM_SPLIT_K,
                                                                       GEMM_THREADS,
                                                                       sizeof(GEMM_SHARED) + 1024,
                                                                       GEMM_BOX_N,
                                                                       false};

#undef GEMM_NAME
#undef GEMM_TILE_M
#undef GEMM_TILE_N
#undef GEMM_STAGES
#undef GEMM_CLUSTER_M
#undef GEMM_CLUSTER_N
#undef GEMM_SPLIT_K
#undef GEMM_WGMMA
#undef GEMM_SHARED
#undef GEMM_SHARING
#undef GEMM_CLUSTER
#undef GEMM_CONSUMERS
#undef GEMM_THREADS
#undef GEMM_PART_N
#undef GEMM_BOX_N
#undef GEMM_OUT_N
