/* gemm_large.cuh: the kernel of overlapped_epilogue.cu, for any cluster of tiles of 128 x 256, any
 * m and n, launched so that it may start before its predecessor has ended, and with the tiles left
 * over after the last full round shared by all (tile_shares.cuh). Included once for each
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

/* What the producer tells the consumers about a piece of work. */
typedef struct {
  int row, column; /* of this CTA's tile of C */
  int steps;
  int takes;       /* so many clusters before this one contribute to it */
  int given, last; /* as bool; but a struct with padding could not be copied unread */
} LargePiece;

typedef struct {
  uint16_t a[LARGE_STAGES][LARGE_TILE_M * GEMM_STEP_K];
  uint16_t b[LARGE_STAGES][LARGE_TILE_N * GEMM_STEP_K];
  uint16_t out[LARGE_CONSUMERS * 4][16 * LARGE_HALF_N];
  uint64_t full[LARGE_STAGES];
  uint64_t empty[LARGE_STAGES];
  LargePiece piece[LARGE_STAGES]; /* that begins with this stage */
} LargeShared;

/* One step of 64 k on one half of the accumulator. */
static __device__ __forceinline__ void large_step(float d[LARGE_HALF_N / 2], uint64_t a, uint64_t b,
                                                  bool accumulate) {
  wgmma_fence();
  for (int i = 0; i < GEMM_STEP_K / 16; i++) {
    wgmma_m64n128k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, accumulate || i > 0);
  }
}

/* A consumer warp's side of the exchange of contributions, through global memory. In `parts` each
 * CTA has room for one tile of sums, every thread's where the same thread of the CTA that sums them
 * looks for them; each warp has a flag that says that they are there. */
enum { LARGE_PACE = 16, LARGE_PATIENCE = 100 };
enum { LARGE_PART = LARGE_CONSUMERS * 128, LARGE_HALF_PARTS = LARGE_HALF_N / 8 };

/* PTX ISA: st.release and ld.acquire. Who reads the value that was stored so sees what had been
 * written before it. */
static __device__ __forceinline__ void st_release_gpu(uint32_t *global, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(global), "r"(value) : "memory");
}

static __device__ __forceinline__ uint32_t ld_acquire_gpu(const uint32_t *global) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(global) : "memory");
  return value;
}

static __device__ __forceinline__ void large_give(const GemmWork &work, uint32_t half,
                                                  const float d[LARGE_HALF_N / 2]) {
  float4 *to =
      work.parts + (blockIdx.x * 2 + half) * LARGE_HALF_PARTS * LARGE_PART + (threadIdx.x - 128);
#pragma unroll
  for (int i = 0; i < LARGE_HALF_PARTS; i++) {
    to[i * LARGE_PART] = make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
  }
}

static __device__ __forceinline__ void large_given(const GemmWork &work) {
  uint32_t warp = threadIdx.x / 32 - 4;
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    st_release_gpu(&work.flags[blockIdx.x * LARGE_CONSUMERS * 4 + warp], 1);
  }
}

static __device__ __forceinline__ void large_take(const GemmWork &work, uint32_t block,
                                                  uint32_t half, float d[LARGE_HALF_N / 2]) {
  uint32_t thread = threadIdx.x - 128;
  if (half == 0) {
    if (thread % 32 == 0) {
      uint32_t *flag = &work.flags[block * LARGE_CONSUMERS * 4 + thread / 32];
      while (ld_acquire_gpu(flag) == 0) {
      }
      *flag = 0; /* for the next launch */
    }
    __syncwarp();
  }
  const float4 *from = work.parts + (block * 2 + half) * LARGE_HALF_PARTS * LARGE_PART + thread;
  float4 part[LARGE_HALF_PARTS];
#pragma unroll
  for (int i = 0; i < LARGE_HALF_PARTS; i++) part[i] = __ldcg(&from[i * LARGE_PART]);
#pragma unroll
  for (int i = 0; i < LARGE_HALF_PARTS; i++) {
    d[4 * i] += part[i].x, d[4 * i + 1] += part[i].y;
    d[4 * i + 2] += part[i].z, d[4 * i + 3] += part[i].w;
  }
}

/* Called by each cluster every LARGE_PACE steps: waits until all others have reached the place
 * where it was the time before. Left to themselves the clusters drift apart, over thousands of
 * steps, until L2 has lost what the first have read before the last ask for it. Nothing but speed
 * depends on this wait: whose patience is once at an end never waits again. */
static __device__ __forceinline__ void large_keep_pace(const GemmWork &work, int tile, int step,
                                                       int *patience) {
  uint32_t times_a_tile = (work.shares.steps + LARGE_PACE - 1) / LARGE_PACE;
  uint32_t time = tile * times_a_tile + step / LARGE_PACE, workers = work.shares.workers;
  if (time + 1 < work.shares.whole * times_a_tile) {
    atomicAdd(work.pace, 1);
    int looks = 0;
    while (looks < *patience && *(volatile uint32_t *)work.pace < time * workers) looks++;
    if (looks == LARGE_PATIENCE) *patience = 0;
  } else if (atomicAdd(work.pace, 1) == (time + 1) * workers - 1) {
    *(volatile uint32_t *)work.pace = 0; /* the last of all: for the next launch */
  }
}

/* What becomes of a half that is multiplied: a contribution is given to the tile's owner; an owner
 * adds what others contribute, always in the same order; and a whole tile is stored. */
static __device__ __forceinline__ void large_finish(const GemmWork &work, const LargePiece &piece,
                                                    uint32_t cluster_size, uint32_t half,
                                                    float d[LARGE_HALF_N / 2], uint16_t *out,
                                                    const CUtensorMap *map_c) {
  if (piece.given) {
    large_give(work, half, d);
    return;
  }
#pragma unroll 1
  for (int i = 1; i <= piece.takes; i++) {
    large_take(work, blockIdx.x - i * cluster_size, half, d);
  }
  if (threadIdx.x % 32 == 0) bulk_wait_group_read(0); /* the store before has read `out` */
  __syncwarp();
  int row_in_tile = (threadIdx.x - 128) / 32 * 16;
  gemm_store(out, d, LARGE_HALF_N, LARGE_BOX_N, map_c, work, piece.row + row_in_tile,
             piece.column + (int)half * LARGE_HALF_N);
}
#endif

static __global__ void __cluster_dims__(GEMM_CLUSTER, 1, 1) __launch_bounds__(LARGE_THREADS, 1)
    GEMM_NAME(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
              const __grid_constant__ CUtensorMap map_c, const __grid_constant__ GemmWork work) {
  enum { CLUSTER_M = GEMM_CLUSTER_M, CLUSTER_N = GEMM_CLUSTER_N };
  enum { SLICE_M = LARGE_TILE_M / GEMM_CLUSTER_N, SLICE_N = LARGE_TILE_N / GEMM_CLUSTER_M };
  enum { PEERS = GEMM_CLUSTER_M + GEMM_CLUSTER_N - 1 }; /* CTAs that load into this one */
  gemm_prefetch_maps(&map_a, &map_b, &map_c);
  extern __shared__ uint8_t dynamic_shared[];
  LargeShared *shared = (LargeShared *)align_1024(dynamic_shared);

  uint32_t rank = cluster_rank(), cluster_m = rank % CLUSTER_M, cluster_n = rank / CLUSTER_M;
  uint32_t warpgroup = gemm_uniform(threadIdx.x / 128);
  uint32_t thread = threadIdx.x % 128, lane = threadIdx.x % 32;
#ifdef GEMM_TRACED
  int events = 0;
#endif

  if (threadIdx.x == 0) {
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
      int patience = LARGE_PATIENCE;
      grid_dependency_wait();
      int cluster = blockIdx.x / GEMM_CLUSTER;
      TilePiece piece, next;
      bool more = tile_piece(work.shares, cluster, 0, &next);
      for (int index = 1; more; index++) {
        piece = next;
        more = tile_piece(work.shares, cluster, index, &next);
        TilePlace place = tile_place(work.order, piece.tile);
        int row = (place.row * CLUSTER_M + cluster_m) * LARGE_TILE_M + cluster_n * SLICE_M;
        int column = (place.column * CLUSTER_N + cluster_n) * LARGE_TILE_N + cluster_m * SLICE_N;
        for (int step = piece.first; step < piece.end; step++, count++) {
          if (work.pace && rank == 0 && index <= work.shares.whole && step % LARGE_PACE == 0) {
            large_keep_pace(work, index - 1, step, &patience);
          }
          uint32_t stage = count % LARGE_STAGES;
          uint64_t *full = &shared->full[stage];
          uint16_t *a = shared->a[stage] + cluster_n * SLICE_M * GEMM_STEP_K;
          uint16_t *b = shared->b[stage] + cluster_m * SLICE_N * GEMM_STEP_K;
          int k = step * GEMM_STEP_K;
          mbarrier_wait_parity(&shared->empty[stage], count / LARGE_STAGES % 2 ^ 1);
          if (step == piece.first) {
            LargePiece *told = &shared->piece[stage];
            told->row = row - cluster_n * SLICE_M;
            told->column = column - cluster_m * SLICE_N;
            told->steps = piece.end - piece.first;
            told->takes = tile_contributions(work.shares, cluster, piece);
            told->given = piece.end < work.shares.steps;
            told->last = !more;
          }
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
    LargePiece piece = shared->piece[0];
    large_step(left, a, b, false);
    wgmma_commit();
    large_step(right, a, b + LARGE_RIGHT, false);
    wgmma_commit();
    count++;
    while (true) {
      int steps = gemm_uniform(piece.steps);
      bool last = gemm_uniform(piece.last);
      for (int step = 1; step < steps - 1; step++, count++) {
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
      large_finish(work, piece, GEMM_CLUSTER, 0, left, out, &map_c);
      GEMM_EVENT(warpgroup, GEMM_STORE_ISSUED, count);
      wgmma_wait_all();
      GEMM_FREE(count);
      count++;

      if (last) {
        large_finish(work, piece, GEMM_CLUSTER, 1, right, out, &map_c);
        if (piece.given) large_given(work);
        break;
      }
      GEMM_NEXT_STAGE();
      large_step(left, a, b, false);
      wgmma_commit();
      LargePiece done = piece;
      piece = shared->piece[count % LARGE_STAGES];
      GEMM_EVENT(warpgroup, GEMM_STORE_BEGUN, count);
      large_finish(work, done, GEMM_CLUSTER, 1, right, out, &map_c);
      GEMM_EVENT(warpgroup, GEMM_STORE_ISSUED, count);
      large_step(right, a, b + LARGE_RIGHT, false);
      wgmma_commit();
      if (done.given) large_given(work); /* while this step is multiplied */
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
