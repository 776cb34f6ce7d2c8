/* gemm_single.cuh: the kernel for products with few tiles: one tile for each block or, with the k range split,
 * one for each cluster. There is no next tile to overlap the end of a tile with, so what matters is to keep
 * many SMs busy and to begin and end fast. The plan chooses the length of the ring: if it is short, a second
 * block fits on the SM. It also chooses the width of the tiles:
 *
 *     1174 x 1280 in tiles of 128 x 128    10 x 10 tiles: 100 of 132 SMs work
 *                             128 x 112    10 x 12 tiles: 120 of 132 SMs work, each less
 *
 * Split k: each block of the cluster multiplies its part of the k range. Then each block adds up a part of
 * the columns, which the others send it through distributed shared memory. If there are still too few tiles,
 * several clusters share a tile: each leaves its sums in global memory, and the last one to come adds them up.
 * Both always add in the same order, so the result has the same bits every time. */
#ifndef PIPELINED_GEMM_GEMM_SINGLE_CUH
#define PIPELINED_GEMM_GEMM_SINGLE_CUH

#include "gemm_epilogue.cuh"
#include "gemm_operands.cuh"

template <int TYPE_, int MAJOR_A_, int MAJOR_B_, int TILE_M_, int TILE_N_, int CLUSTER_M_,
          int CLUSTER_N_, int SPLIT_K_, bool SWAPPED_>
struct GemmSingleTile {
  static constexpr int TYPE = TYPE_;
  static constexpr int MAJOR_A = MAJOR_A_;
  static constexpr int MAJOR_B = MAJOR_B_;
  static constexpr int TILE_M = TILE_M_;
  static constexpr int TILE_N = TILE_N_;
  static constexpr int CLUSTER_M = CLUSTER_M_;
  static constexpr int CLUSTER_N = CLUSTER_N_;
  static constexpr int SPLIT_K = SPLIT_K_;
  static constexpr bool SWAPPED = SWAPPED_; /* computes transpose(C), and stores C */
  static constexpr bool PROMOTES = TYPE == GEMM_E4M3_PROMOTED;
  static constexpr int SHARING = CLUSTER_M * CLUSTER_N;
  static constexpr int CLUSTER_SIZE =
      SHARING * SPLIT_K; /* rank = place in the grid of tiles + SHARING * split */
  static constexpr int CONSUMERS = TILE_M / 64; /* warpgroups of 64 rows each; they come first */
  static constexpr int CONSUMER_THREADS = 128 * CONSUMERS;
  static constexpr int WARPS = CONSUMER_THREADS / 32;
  /* Where an SM has too few registers for all to have as many as the consumers need, the producer is a
   * whole warpgroup and gives most of its own to them. */
  static constexpr bool MOVES_REGISTERS = CONSUMERS > 2 || (CONSUMERS == 2 && TILE_N > 128);
  static constexpr int PRODUCER_REGISTERS = 32;
  static constexpr int CONSUMER_REGISTERS = CONSUMERS == 2 ? 232 : 160;
  static constexpr int PRODUCER_THREADS = MOVES_REGISTERS ? 128 : 32;
  static constexpr int THREADS = CONSUMER_THREADS + PRODUCER_THREADS;
  static constexpr int SLICE_M = TILE_M / CLUSTER_N; /* what one block loads of A, and of B */
  static constexpr int SLICE_N = TILE_N / CLUSTER_M;
  /* Tiles can be narrower if B is K-major: a slice of it then has any multiple of 8 rows. */
  static constexpr int STEP_N = 8 * CLUSTER_M;
  /* The loop over k is compiled for each width: at most 8 of them, in the upper half, but at least 4. */
  static constexpr int MOST_WIDTHS = MAJOR_B == GEMM_K_MAJOR ? TILE_N / STEP_N : 1;
  static constexpr int HALF_WIDTHS = MOST_WIDTHS / 2 > 8   ? 8
                                     : MOST_WIDTHS / 2 < 4 ? 4
                                                           : MOST_WIDTHS / 2;
  static constexpr int WIDTHS = HALF_WIDTHS < MOST_WIDTHS ? HALF_WIDTHS : MOST_WIDTHS;
  static constexpr int LEAST_N = TILE_N - (WIDTHS - 1) * STEP_N;
  static constexpr int PART_N = /* the columns that a block of a split adds up: whole chunks, so */
      TILE_N / SPLIT_K < 16 ? 16 : TILE_N / SPLIT_K;
  static constexpr int SUMMERS = TILE_N / PART_N; /* this many blocks add up; all multiply */
  static constexpr int A_BYTES = TILE_M * GEMM_ROW_BYTES;
  static constexpr int MOST_STAGES = 16;
  /* the least number of blocks on an SM, as limited by registers */
  static constexpr int BLOCKS = TILE_M > 64 || TILE_N > 128 ? 1 : TILE_N > 64 ? 2 : 3;
  typedef GemmCluster<CLUSTER_M, CLUSTER_N> Cluster;
  struct Fixed { /* the ring follows: all stages of A, then all of B */
    float4 partial[SPLIT_K > 1 ? SPLIT_K - 1 : 1][SPLIT_K > 1 ? PART_N / 8 : 1]
                  [SPLIT_K > 1 ? CONSUMER_THREADS : 1];
    uint64_t full[MOST_STAGES];
    uint64_t empty[MOST_STAGES];
  };
};

/* What every thread of a block knows. */
template <class Tile>
struct GemmSinglePlace {
  typename Tile::Fixed *fixed;
  uint8_t *ring_a, *ring_b;
  typename Tile::Cluster cluster;
  uint32_t split;         /* of the cluster's k range */
  int group;              /* of the clusters that share the tile */
  int row, column, batch; /* of this block's tile of C */
  int width, b_bytes;     /* of the tile; of a stage of B */
  int first_step, steps;

  static __device__ __forceinline__ GemmSinglePlace of(const GemmWork &work, uint8_t *shared) {
    GemmSinglePlace place;
    place.width = Tile::WIDTHS > 1 ? work.width : Tile::TILE_N;
    place.b_bytes = place.width * GEMM_ROW_BYTES;
    place.ring_a = gemm_align_1024(shared);
    place.ring_b = place.ring_a + work.stages * Tile::A_BYTES;
    place.fixed = (typename Tile::Fixed *)(place.ring_b + work.stages * place.b_bytes);
    uint32_t rank = Tile::CLUSTER_SIZE > 1 ? cluster_rank() : 0;
    place.split = rank / Tile::SHARING;
    place.cluster = Tile::Cluster::of(rank);
    int cluster = blockIdx.x / Tile::CLUSTER_SIZE, tile = cluster / work.groups;
    place.group = cluster - tile * work.groups;
    place.batch = tile / work.tiles;
    TilePlace at = tile_place(work.order, tile - place.batch * work.tiles);
    place.row = (at.row * Tile::CLUSTER_M + (int)place.cluster.m) * Tile::TILE_M;
    place.column = (at.column * Tile::CLUSTER_N + (int)place.cluster.n) * place.width;
    int parts = work.groups * Tile::SPLIT_K, part = place.group * Tile::SPLIT_K + (int)place.split;
    place.first_step = (int)((int64_t)work.steps * part / parts);
    place.steps = (int)((int64_t)work.steps * (part + 1) / parts) - place.first_step;
    return place;
  }
};

template <class Tile>
static __device__ __forceinline__ void gemm_produce_single(const CUtensorMap *map_a,
                                                           const CUtensorMap *map_b,
                                                           const GemmWork &work,
                                                           const GemmSinglePlace<Tile> &place) {
  uint16_t mask_a = place.cluster.mask_a(), mask_b = place.cluster.mask_b();
  int slice_m = (int)place.cluster.n * Tile::SLICE_M;
  int slice_n = (int)place.cluster.m * (place.width / Tile::CLUSTER_M);
  int batch_a = work.shared_operands & 1 ? 0 : place.batch;
  int batch_b = work.shared_operands & 2 ? 0 : place.batch;
  uint32_t stage = 0, parity = 0;
  gemm_wait_for_earlier_kernels();
  for (int step = 0; step < place.steps; step++) {
    uint64_t *full = &place.fixed->full[stage];
    int k = (place.first_step + step) * gemm_step_k(Tile::TYPE);
    mbarrier_wait_parity(&place.fixed->empty[stage], parity ^ 1);
    mbarrier_arrive_expect_tx(full, Tile::A_BYTES + place.b_bytes);
    gemm_load<Tile::MAJOR_A, Tile::SLICE_M, (Tile::CLUSTER_N > 1)>(
        place.ring_a + stage * Tile::A_BYTES + slice_m * GEMM_ROW_BYTES, map_a, place.row + slice_m,
        k, batch_a, full, mask_a);
    gemm_load<Tile::MAJOR_B, Tile::SLICE_N, (Tile::CLUSTER_M > 1)>(
        place.ring_b + stage * place.b_bytes + slice_n * GEMM_ROW_BYTES, map_b,
        place.column + slice_n, k, batch_b, full, mask_b);
    gemm_advance(work.stages, &stage, &parity);
  }
  /* A block must not end while a peer may still arrive in it: until all stages are free again but the
   * last, which no consumer frees. */
  for (int i = 1; i < work.stages && Tile::SHARING > 1; i++) {
    mbarrier_wait_parity(&place.fixed->empty[stage], parity ^ 1);
    gemm_advance(work.stages, &stage, &parity);
  }
}

/* All steps of this block's k range, for a tile of WIDTH columns. The rest of the accumulator is zero. */
template <class Tile, int WIDTH>
static __device__ __forceinline__ void gemm_multiply_single(const GemmWork &work,
                                                            const GemmSinglePlace<Tile> &place,
                                                            uint32_t warpgroup, float *d) {
  uint32_t lane = threadIdx.x % 32, peer_empty = 0;
  if (Tile::Cluster::PEERS > 1 && lane < Tile::Cluster::PEERS) {
    peer_empty = mapa_shared(place.fixed->empty, place.cluster.peer(lane));
  }
  uint64_t first_a = gemm_descriptor<Tile::MAJOR_A>(place.ring_a + warpgroup * 64 * GEMM_ROW_BYTES);
  uint64_t first_b = gemm_descriptor<Tile::MAJOR_B>(place.ring_b);
  uint32_t stage = 0, parity = 0, previous = 0;
  enum { SUMS = Tile::PROMOTES ? WIDTH / 2 : 1 };
  float sum[SUMS];
  for (int step = 0; step < place.steps; step++) {
    mbarrier_wait_parity(&place.fixed->full[stage], parity);
    gemm_multiply_step<WIDTH, Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B>(
        d, first_a + stage * (Tile::A_BYTES / 16), first_b + stage * (WIDTH * GEMM_ROW_BYTES / 16),
        step > 0 && !Tile::PROMOTES);
    wgmma_commit();
    if (Tile::PROMOTES) {
      /* The sums of these 128 k are complete. While they are added, another warpgroup multiplies. */
      wgmma_wait_all();
#pragma unroll
      for (int i = 0; i < SUMS; i++) sum[i] = step > 0 ? sum[i] + d[i] : d[i];
    } else {
      wgmma_wait_all_but_one();
    }
    if (step > 0) gemm_free_stage<Tile::Cluster::PEERS>(place.fixed->empty, peer_empty, previous);
    previous = stage;
    gemm_advance(work.stages, &stage, &parity);
  }
  wgmma_wait_all();
#pragma unroll
  for (int i = WIDTH / 2; i < Tile::TILE_N / 2; i++) d[i] = 0;
#pragma unroll
  for (int i = 0; i < SUMS && Tile::PROMOTES; i++) d[i] = sum[i];
}

/* The same for a tile of place.width columns, which is WIDTH or less. */
template <class Tile, int WIDTH, bool LEAST = WIDTH == Tile::LEAST_N>
struct GemmMultiplySingle {
  static __device__ __forceinline__ void run(const GemmWork &work,
                                             const GemmSinglePlace<Tile> &place, uint32_t warpgroup,
                                             float *d) {
    if (place.width < WIDTH) {
      GemmMultiplySingle<Tile, WIDTH - Tile::STEP_N>::run(work, place, warpgroup, d);
    } else {
      gemm_multiply_single<Tile, WIDTH>(work, place, warpgroup, d);
    }
  }
};
template <class Tile, int WIDTH>
struct GemmMultiplySingle<Tile, WIDTH, true> {
  static __device__ __forceinline__ void run(const GemmWork &work,
                                             const GemmSinglePlace<Tile> &place, uint32_t warpgroup,
                                             float *d) {
    gemm_multiply_single<Tile, WIDTH>(work, place, warpgroup, d);
  }
};

/* PTX ISA: st, state space .shared::cluster. Writes 16 bytes to a peer's shared memory. */
static __device__ __forceinline__ void gemm_store_to_peer(uint32_t cluster_address,
                                                          const float *v) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(cluster_address),
               "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
               : "memory");
}

static __device__ __forceinline__ void gemm_add_four(float *sum, float4 term, bool first) {
  sum[0] = first ? term.x : sum[0] + term.x, sum[1] = first ? term.y : sum[1] + term.y;
  sum[2] = first ? term.z : sum[2] + term.z, sum[3] = first ? term.w : sum[3] + term.w;
}

/* Sends each block of the cluster its columns, and adds up those of this block. */
template <class Tile>
static __device__ __forceinline__ void gemm_sum_over_cluster(const GemmSinglePlace<Tile> &place,
                                                             const float *d, float *sum) {
  enum { PART_N = Tile::PART_N };
  typename Tile::Fixed *fixed = place.fixed;
  float mine[PART_N / 2];
#pragma unroll
  for (uint32_t part = 0; part < Tile::SUMMERS; part++) {
    const float *columns = d + part * (PART_N / 2);
    if (part == place.split) {
#pragma unroll
      for (int i = 0; i < PART_N / 2; i++) mine[i] = columns[i];
      continue;
    }
    uint32_t slot = place.split < part ? place.split : place.split - 1; /* none for itself */
    uint32_t target =
        mapa_shared(&fixed->partial[slot][0][threadIdx.x],
                    place.cluster.m + Tile::CLUSTER_M * place.cluster.n + Tile::SHARING * part);
#pragma unroll
    for (int i = 0; i < PART_N / 8; i++) {
      gemm_store_to_peer(target + i * (uint32_t)sizeof(fixed->partial[0][0]), columns + 4 * i);
    }
  }
  cluster_sync(); /* all parts have arrived; and no block is written to any more */
#pragma unroll
  for (int i = 0; i < PART_N / 8; i++) {
#pragma unroll
    for (uint32_t from = 0; from < Tile::SPLIT_K; from++) {
      float4 term = make_float4(mine[4 * i], mine[4 * i + 1], mine[4 * i + 2], mine[4 * i + 3]);
      if (from != place.split) {
        term = fixed->partial[from < place.split ? from : from - 1][i][threadIdx.x];
      }
      gemm_add_four(sum + 4 * i, term, from == 0);
    }
  }
}

/* PTX ISA: atom.add, with the order of a release and an acquire. Returns what was there. */
static __device__ __forceinline__ uint32_t gemm_count(uint32_t *counter) {
  uint32_t before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}

/* Clusters that share a tile: a warp leaves its sums in global memory. If the same warps of all others have
 * done so before, it adds them all up and returns true. No warp ever waits for another. */
template <class Tile>
static __device__ __forceinline__ bool gemm_sum_over_groups(const GemmWork &work, int group,
                                                            float *d) {
  enum { FOURS = Tile::PART_N / 8, THREADS = Tile::CONSUMER_THREADS };
  const size_t of_cluster = (size_t)Tile::CLUSTER_SIZE * FOURS * THREADS;
  uint32_t first = blockIdx.x - group * Tile::CLUSTER_SIZE, before = 0;
  uint32_t *counter = &work.counters[first * Tile::WARPS + threadIdx.x / 32];
  float4 *parts = work.parts + (size_t)first * FOURS * THREADS + threadIdx.x;
#pragma unroll
  for (int i = 0; i < FOURS; i++) {
    parts[group * of_cluster + i * THREADS] =
        make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
  }
  __syncwarp(); /* all lanes have left theirs */
  if (threadIdx.x % 32 == 0) before = gemm_count(counter);
  if (__shfl_sync(0xFFFFFFFF, before, 0) + 1 != (uint32_t)work.groups) return false;
  if (threadIdx.x % 32 == 0) *counter = 0; /* for the next launch */
#pragma unroll
  for (int i = 0; i < FOURS; i++) gemm_add_four(d + 4 * i, __ldcg(&parts[i * THREADS]), true);
#pragma unroll 1
  for (int from = 1; from < work.groups; from++) {
    parts += of_cluster;
#pragma unroll
    for (int i = 0; i < FOURS; i++) gemm_add_four(d + 4 * i, __ldcg(&parts[i * THREADS]), false);
  }
  return true;
}

/* What becomes of this warpgroup's sums. By ordinary stores: there is no work left to overlap with. */
template <class Tile>
static __device__ __forceinline__ void gemm_end_single(const GemmWork &work,
                                                       const GemmSinglePlace<Tile> &place,
                                                       float *d) {
  /* Stage 0 will not be read again, so its rows of A are staging memory. */
  uint8_t *staging = place.ring_a + threadIdx.x / 32 * GEMM_STAGING_BYTES;
  int row = place.row + (int)(threadIdx.x / 32) * 16, end = place.column + place.width;
  int column = place.column + (Tile::SPLIT_K > 1 ? (int)place.split * Tile::PART_N : 0);
  float sum[Tile::PART_N / 2];
  if (Tile::SPLIT_K > 1) {
    if (Tile::SHARING == 1) cluster_wait_acquire();
    gemm_sum_over_cluster<Tile>(place, d, sum);
    if (place.split >= Tile::SUMMERS) return;
  } else {
#pragma unroll
    for (int i = 0; i < Tile::PART_N / 2; i++) sum[i] = d[i];
  }
  if (work.groups > 1 && !gemm_sum_over_groups<Tile>(work, place.group, sum)) return;
  GemmOutput output = work.output; /* of the tile: what lies beyond is others' */
  if (Tile::SWAPPED) {
    if (output.m > end) output.m = end;
    gemm_store<Tile::TYPE, Tile::PART_N, true>(staging, sum, output, place.batch, column, row);
  } else {
    if (output.n > end) output.n = end;
    gemm_store<Tile::TYPE, Tile::PART_N, false>(staging, sum, output, place.batch, row, column);
  }
}

template <class Tile>
static __global__ void __cluster_dims__(Tile::CLUSTER_SIZE, 1, 1) __launch_bounds__(Tile::THREADS,
                                                                                    Tile::BLOCKS)
    gemm_single(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b, const __grid_constant__ GemmWork work) {
  gemm_prefetch_maps(&map_a, &map_b);
  extern __shared__ uint8_t gemm_dynamic_shared[];
  GemmSinglePlace<Tile> place = GemmSinglePlace<Tile>::of(work, gemm_dynamic_shared);
  uint32_t warpgroup = gemm_uniform(threadIdx.x / 128);

  if (threadIdx.x == Tile::CONSUMER_THREADS) {
    for (int stage = 0; stage < work.stages; stage++) {
      mbarrier_init(&place.fixed->full[stage], 1);
      mbarrier_init(&place.fixed->empty[stage], Tile::WARPS * Tile::Cluster::PEERS);
    }
    fence_mbarrier_init();
    gemm_let_next_kernel_start();
  }
  /* Peers that load into this block must find its barriers set up; peers that send it sums later need
   * only find it there. */
  if (Tile::CLUSTER_SIZE > 1) cluster_arrive_release();
  if (Tile::SHARING > 1) {
    cluster_wait_acquire();
  } else {
    __syncthreads();
  }

  if (warpgroup == Tile::CONSUMERS) {
    if (Tile::MOVES_REGISTERS) setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (threadIdx.x == Tile::CONSUMER_THREADS) {
      gemm_produce_single<Tile>(&map_a, &map_b, work, place);
    }
    if (Tile::SPLIT_K > 1) {
      __syncwarp();
      if (Tile::SHARING == 1) cluster_wait_acquire();
      cluster_sync(); /* the consumers' in gemm_sum_over_cluster */
    }
  } else {
    if (Tile::MOVES_REGISTERS) setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
    float d[Tile::TILE_N / 2];
    GemmMultiplySingle<Tile, Tile::TILE_N>::run(work, place, warpgroup, d);
    gemm_end_single<Tile>(work, place, d);
  }
}

#endif
