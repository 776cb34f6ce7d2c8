/* gemm_single.cuh: the kernel for products with few tiles: one tile for each CTA or, with the k
 * range split, one for each cluster. There is no next tile to overlap the end of a tile with, so what
 * matters is to keep many SMs busy and to begin and end fast. The length of the ring is chosen for each
 * product: if the ring is short, a second CTA fits on the SM. So is the width of the tiles
 * (gemm_width.cuh).
 *
 * Split k: each CTA of the cluster multiplies its part of the k range. Then each CTA adds up a part of
 * the columns, which the others send it through distributed shared memory, always in the same
 * order, so the result has the same bits every time. If there are still too few tiles, several
 * clusters share a tile. They divide its sums among themselves in the same way, but send them through global
 * memory (gemm_parts.cuh). */
#ifndef PIPELINED_GEMM_GEMM_SINGLE_CUH
#define PIPELINED_GEMM_GEMM_SINGLE_CUH

#include "gemm_classes.cuh"
#include "gemm_direct.cuh"
#include "gemm_epilogue.cuh"
#include "gemm_operands.cuh"
#include "gemm_parts.cuh"
#include "gemm_transposed.cuh"
#include "gemm_width.cuh"

template <int TYPE_, int MAJOR_A_, int MAJOR_B_, int TILE_M_, int TILE_N_, int CLUSTER_M_,
          int CLUSTER_N_, int SPLIT_K_, bool SWAPPED_ = false, bool DIRECT_ = false,
          bool IN_PLACE_ = false, int BLOCKS_ = 1, bool HALVES_ = false>
struct GemmSingleTile {
  static constexpr int TYPE = TYPE_;
  static constexpr int MAJOR_A = MAJOR_A_;
  static constexpr int MAJOR_B = MAJOR_B_;
  static constexpr int TILE_M = TILE_M_;
  static constexpr int TILE_N = TILE_N_;
  static constexpr int CLUSTER_M = CLUSTER_M_;
  static constexpr int CLUSTER_N = CLUSTER_N_;
  static constexpr int SPLIT_K = SPLIT_K_;
  static constexpr bool DIRECT = DIRECT_;     /* gemm_direct.cuh loads, not TMA */
  static constexpr bool IN_PLACE = IN_PLACE_; /* reads B in classes of rows: gemm_classes.cuh */
  static constexpr bool SWAPPED = SWAPPED_;   /* computes transpose(C), and stores C */
  static constexpr int SHARING = CLUSTER_M * CLUSTER_N;
  static constexpr int CLUSTER_SIZE =
      SHARING * SPLIT_K; /* rank = place in the grid of tiles + SHARING * split */
  /* A consumer warpgroup multiplies so many blocks of 64 rows; if HALVES, with half of the columns: the larger a
   * tile, the fewer rounds. One warpgroup's wgmma has no room for more than 64 x 256. */
  static constexpr int BLOCKS = BLOCKS_;
  static constexpr bool HALVES = HALVES_;
  static constexpr bool LARGE = BLOCKS > 1;
  static constexpr int CONSUMERS = HALVES ? 2 : TILE_M / 64 / BLOCKS; /* they come first */
  static constexpr int CONSUMER_THREADS = 128 * CONSUMERS;
  /* Where an SM has too few registers for all to have as many as the consumers need, the producer is a
   * whole warpgroup and gives most of its own to them. */
  static constexpr bool MOVES_REGISTERS =
      !DIRECT && (CONSUMERS > 2 || (CONSUMERS == 2 && TILE_N > 128) || LARGE);
  static constexpr int PRODUCER_REGISTERS = 32;
  static constexpr int CONSUMER_REGISTERS = CONSUMERS == 2 ? 232 : CONSUMERS == 3 ? 160 : 112;
  static constexpr int PRODUCER_THREADS = DIRECT || MOVES_REGISTERS ? 128 : 32;
  static constexpr int THREADS = CONSUMER_THREADS + PRODUCER_THREADS;
  static constexpr int SLICE_M = TILE_M / CLUSTER_N; /* what one CTA loads of A, and of B */
  static constexpr int SLICE_N = TILE_N / CLUSTER_M;
  /* Tiles can be narrower if B is K-major: a slice of it then has any multiple of 8 rows. */
  static constexpr int STEP_N = 8 * CLUSTER_M * (HALVES ? 2 : 1);
  static_assert(!HALVES || TILE_M == 64 * BLOCKS, "both halves have all rows");
  static_assert(!LARGE || SPLIT_K_ == 1,
                "what a warpgroup has of a large tile is not added to others'");
  static_assert(!IN_PLACE || (SHARING == 1 && SPLIT_K == 1 && TILE_N <= CONSUMER_THREADS),
                "a thread of the consumers for each column");
  static constexpr bool NARROWS = !DIRECT && MAJOR_B == GEMM_K_MAJOR;
  static constexpr int LEAST_N = !NARROWS ? TILE_N
                                 : HALVES && gemm_least_width(TILE_N, STEP_N) < 128
                                     ? 128 /* half of B's stage is staging memory */
                                     : gemm_least_width(TILE_N, STEP_N);
  /* The columns of a warpgroup, and those that its accumulators have: whole chunks. */
  static constexpr int OWN_N = HALVES ? TILE_N / 2 : TILE_N;
  static constexpr int SUM_N = LARGE ? (OWN_N + 31) / 32 * 32 : OWN_N;
  static constexpr int PART_N = gemm_part_n(TILE_N, SPLIT_K); /* the columns that a CTA adds up */
  static constexpr int SUMMERS =
      TILE_N / PART_N; /* this many CTAs of the cluster add up; all store */
  static constexpr int A_BYTES = TILE_M * GEMM_ROW_BYTES;
  static constexpr int MOST_STAGES = 16;
  /* the least number of CTAs on an SM, as limited by registers */
  static constexpr int CTAS = TILE_M > 64 || TILE_N > 128 ? 1 : TILE_N > 64 ? 2 : 3;
  typedef GemmCluster<CLUSTER_M, CLUSTER_N> Cluster;
  struct Fixed { /* the ring follows: all stages of A, then all of B */
    float4 partial[SPLIT_K > 1 ? SPLIT_K - 1 : 1][SPLIT_K > 1 ? PART_N / 8 : 1]
                  [SPLIT_K > 1 ? CONSUMER_THREADS : 1];
    uint64_t full[MOST_STAGES];
    uint64_t empty[MOST_STAGES];
  };
};

/* What every thread of a CTA knows. */
template <class Tile>
struct GemmSinglePlace {
  typename Tile::Fixed *fixed;
  uint8_t *ring_a, *ring_b;
  typename Tile::Cluster cluster;
  uint32_t split;         /* of the cluster's k range */
  int group;              /* of the clusters that share the tile */
  int row, column, batch; /* of this CTA's tile of C */
  int b_bytes;            /* of a stage */
  int first_step, steps;

  static __device__ __forceinline__ GemmSinglePlace of(const GemmWork &work, uint8_t *shared) {
    GemmSinglePlace place;
    place.ring_a = gemm_align_1024(shared);
    place.ring_b = place.ring_a + work.stages * Tile::A_BYTES;
    place.b_bytes = (Tile::NARROWS ? work.width : Tile::TILE_N) * GEMM_ROW_BYTES;
    place.fixed = (typename Tile::Fixed *)(place.ring_b + work.stages * place.b_bytes);
    uint32_t rank = Tile::CLUSTER_SIZE > 1 ? cluster_rank() : 0;
    place.split = rank / Tile::SHARING;
    place.cluster = Tile::Cluster::of(rank);
    int cluster = blockIdx.x / Tile::CLUSTER_SIZE, tile = cluster / work.groups;
    place.group = cluster - tile * work.groups;
    place.batch = tile / work.tiles;
    TilePlace at = tile_place(work.order, tile - place.batch * work.tiles);
    place.row = (at.row * Tile::CLUSTER_M + (int)place.cluster.m) * Tile::TILE_M;
    place.column = (at.column * Tile::CLUSTER_N + (int)place.cluster.n) * work.width;
    int parts = work.groups * Tile::SPLIT_K, part = place.group * Tile::SPLIT_K + (int)place.split;
    place.first_step = (int)((int64_t)work.steps * part / parts);
    place.steps = (int)((int64_t)work.steps * (part + 1) / parts) - place.first_step;
    return place;
  }
};

static __device__ __forceinline__ void gemm_advance_single(int stages, uint32_t *stage,
                                                           uint32_t *parity) {
  if (++*stage == (uint32_t)stages) *stage = 0, *parity ^= 1;
}

template <class Tile>
static __device__ __forceinline__ void gemm_produce_single(const CUtensorMap *map_a,
                                                           const CUtensorMap *map_b,
                                                           const GemmWork &work,
                                                           const GemmSinglePlace<Tile> &place) {
  uint16_t mask_a = place.cluster.mask_a(), mask_b = place.cluster.mask_b();
  int slice_m = place.cluster.n * Tile::SLICE_M,
      slice_n = place.cluster.m * (work.width / Tile::CLUSTER_M);
  int batch_a = work.shared_operands & 1 ? 0 : place.batch;
  int batch_b = work.shared_operands & 2 ? 0 : place.batch;
  uint32_t stage = 0, parity = 0;
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
    gemm_advance_single(work.stages, &stage, &parity);
  }
  /* A CTA must not end while a peer may still arrive in it: until all stages are free again but the
   * last, which no consumer frees. */
  for (int i = 1; i < work.stages && Tile::SHARING > 1; i++) {
    mbarrier_wait_parity(&place.fixed->empty[stage], parity ^ 1);
    gemm_advance_single(work.stages, &stage, &parity);
  }
}

/* The same by four warps without TMA, GEMM_DIRECT_AHEAD steps at a time on their way. */
template <class Tile>
static __device__ __forceinline__ void gemm_produce_by_copies(const GemmWork &work,
                                                              const GemmSinglePlace<Tile> &place) {
  static_assert(Tile::SHARING == 1, "nothing is loaded for others");
  enum { AHEAD = GEMM_DIRECT_AHEAD };
  int batch_a = work.shared_operands & 1 ? 0 : place.batch;
  int batch_b = work.shared_operands & 2 ? 0 : place.batch;
  uint32_t stage = 0, parity = 0, landed = 0, landed_parity = 0;
#pragma unroll 1
  for (int step = 0; step < place.steps + AHEAD - 1; step++) {
    if (step < place.steps) {
      int k = (place.first_step + step) * GEMM_STEP_K;
      mbarrier_wait_parity(&place.fixed->empty[stage], parity ^ 1);
      gemm_copy_directly<Tile::MAJOR_A, Tile::TILE_M>(work.a, place.row, k, batch_a,
                                                      place.ring_a + stage * Tile::A_BYTES);
      gemm_copy_directly<Tile::MAJOR_B, Tile::TILE_N>(work.b, place.column, k, batch_b,
                                                      place.ring_b + stage * place.b_bytes);
      gemm_advance_single(work.stages, &stage, &parity);
    }
    gemm_commit_copies(); /* also of nothing, so that each step has a group */
    if (step < AHEAD - 1) continue;
    gemm_wait_for_copies<AHEAD - 1>();
    fence_proxy_async(); /* wgmma reads through another proxy */
    mbarrier_arrive(&place.fixed->full[landed]);
    gemm_advance_single(work.stages, &landed, &landed_parity);
  }
}

/* The same for lines of any alignment, a step at a time. */
template <class Tile>
static __device__ __forceinline__ void gemm_produce_directly(const GemmWork &work,
                                                             const GemmSinglePlace<Tile> &place) {
  int batch_a = work.shared_operands & 1 ? 0 : place.batch;
  int batch_b = work.shared_operands & 2 ? 0 : place.batch;
  uint32_t stage = 0, parity = 0;
#pragma unroll 1
  for (int step = 0; step < place.steps; step++) {
    int k = (place.first_step + step) * GEMM_STEP_K;
    mbarrier_wait_parity(&place.fixed->empty[stage], parity ^ 1);
    gemm_load_directly<Tile::MAJOR_A, Tile::TILE_M>(work.a, place.row, k, batch_a,
                                                    place.ring_a + stage * Tile::A_BYTES);
    gemm_load_directly<Tile::MAJOR_B, Tile::TILE_N>(work.b, place.column, k, batch_b,
                                                    place.ring_b + stage * place.b_bytes);
    fence_proxy_async(); /* wgmma reads through another proxy */
    mbarrier_arrive(&place.fixed->full[stage]);
    gemm_advance_single(work.stages, &stage, &parity);
  }
}

template <class Tile, bool DIRECT>
struct GemmProducer {
  static __device__ __forceinline__ void run(const CUtensorMap *map_a, const CUtensorMap *map_b,
                                             const GemmWork &work,
                                             const GemmSinglePlace<Tile> &place) {
    if (threadIdx.x != Tile::CONSUMER_THREADS) return;
    gemm_wait_for_earlier_kernels();
    if (Tile::IN_PLACE) map_b = &work.classes.maps[place.batch];
    gemm_produce_single<Tile>(map_a, map_b, work, place);
  }
};
template <class Tile>
struct GemmProducer<Tile, true> {
  static __device__ __forceinline__ void run(const CUtensorMap *, const CUtensorMap *,
                                             const GemmWork &work,
                                             const GemmSinglePlace<Tile> &place) {
    gemm_wait_for_earlier_kernels();
    if (work.a.words && work.b.words) {
      gemm_produce_by_copies<Tile>(work, place);
    } else {
      gemm_produce_directly<Tile>(work, place);
    }
  }
};

/* All steps of this CTA's k range, for tiles of WIDTH columns. The rest of the accumulators is zero. */
template <class Tile, int WIDTH>
static __device__ __forceinline__ void gemm_multiply_single(const GemmWork &work,
                                                            const GemmSinglePlace<Tile> &place,
                                                            uint32_t warpgroup,
                                                            float (*d)[Tile::SUM_N / 2]) {
  enum { OWN = Tile::HALVES ? WIDTH / 2 : WIDTH };
  uint32_t lane = threadIdx.x % 32, peer_empty = 0;
  if (Tile::Cluster::PEERS > 1 && lane < Tile::Cluster::PEERS) {
    peer_empty = mapa_shared(place.fixed->empty, place.cluster.peer(lane));
  }
  uint32_t first_row = Tile::HALVES ? 0 : warpgroup * Tile::BLOCKS * 64;
  uint32_t first_column = Tile::HALVES ? warpgroup * OWN : 0;
  uint64_t first_a = gemm_descriptor<Tile::MAJOR_A>(place.ring_a + first_row * GEMM_ROW_BYTES);
  uint64_t first_b = gemm_descriptor<Tile::MAJOR_B>(place.ring_b + first_column * GEMM_ROW_BYTES);
  uint32_t stage = 0, parity = 0, previous = 0;
  for (int step = 0; step < place.steps; step++) {
    mbarrier_wait_parity(&place.fixed->full[stage], parity);
    if (Tile::IN_PLACE && place.first_step + step == 0) {
      gemm_clear_front<Tile::CONSUMER_THREADS>(place.ring_b, WIDTH,
                                               gemm_class_front(work.classes, place.batch));
    }
#pragma unroll
    for (int block = 0; block < Tile::BLOCKS; block++) {
      gemm_multiply_step<OWN, Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B>(
          d[block], first_a + (stage * Tile::A_BYTES + block * 64 * GEMM_ROW_BYTES) / 16,
          first_b + stage * (WIDTH * GEMM_ROW_BYTES / 16), step > 0);
    }
    wgmma_commit();
    wgmma_wait_all_but_one();
    if (step > 0) {
      if (Tile::Cluster::PEERS == 1 && lane == 0) mbarrier_arrive(&place.fixed->empty[previous]);
      if (Tile::Cluster::PEERS > 1 && lane < Tile::Cluster::PEERS) {
        mbarrier_arrive_cluster(peer_empty + previous * (uint32_t)sizeof(uint64_t));
      }
    }
    previous = stage;
    gemm_advance_single(work.stages, &stage, &parity);
  }
  wgmma_wait_all();
#pragma unroll
  for (int block = 0; block < Tile::BLOCKS; block++) {
#pragma unroll
    for (int i = OWN / 2; i < Tile::SUM_N / 2; i++) d[block][i] = 0;
  }
}

/* The same for tiles of work.width columns, which is WIDTH or less. */
template <class Tile, int WIDTH, bool LEAST>
struct GemmMultiplySingle {
  static __device__ __forceinline__ void run(const GemmWork &work,
                                             const GemmSinglePlace<Tile> &place, uint32_t warpgroup,
                                             float (*d)[Tile::SUM_N / 2]) {
    if (work.width < WIDTH) {
      enum { NEXT = WIDTH - Tile::STEP_N };
      GemmMultiplySingle<Tile, NEXT, (int)NEXT <= Tile::LEAST_N>::run(work, place, warpgroup, d);
      return;
    }
    gemm_multiply_single<Tile, WIDTH>(work, place, warpgroup, d);
  }
};
template <class Tile, int WIDTH>
struct GemmMultiplySingle<Tile, WIDTH, true> {
  static __device__ __forceinline__ void run(const GemmWork &work,
                                             const GemmSinglePlace<Tile> &place, uint32_t warpgroup,
                                             float (*d)[Tile::SUM_N / 2]) {
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

/* Sends each CTA its columns, and adds up the columns of this CTA if it has any. */
template <class Tile>
static __device__ __forceinline__ void gemm_sum_over_cluster(const GemmSinglePlace<Tile> &place,
                                                             const float *d, float *sum) {
  enum { PART_N = Tile::PART_N };
  typename Tile::Fixed *fixed = place.fixed;
#pragma unroll
  for (uint32_t part = 0; part < Tile::SUMMERS; part++) {
    const float *mine = d + part * (PART_N / 2);
    if (part == place.split) {
#pragma unroll
      for (int i = 0; i < PART_N / 2; i++) sum[i] = mine[i];
    } else {
      uint32_t slot = place.split < part ? place.split : place.split - 1; /* none for itself */
      uint32_t target =
          mapa_shared(&fixed->partial[slot][0][threadIdx.x],
                      place.cluster.m + Tile::CLUSTER_M * place.cluster.n + Tile::SHARING * part);
#pragma unroll
      for (int i = 0; i < PART_N / 8; i++) {
        gemm_store_to_peer(target + i * (uint32_t)sizeof(fixed->partial[0][0]), mine + 4 * i);
      }
    }
  }
  cluster_sync(); /* all parts have arrived; and no CTA is written to any more */
  if (place.split >= Tile::SUMMERS) return;
#pragma unroll
  for (int i = 0; i < PART_N / 8; i++) {
    float4 total = make_float4(0, 0, 0, 0);
#pragma unroll
    for (uint32_t from = 0; from < Tile::SPLIT_K; from++) {
      float4 term = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
      if (from != place.split) {
        term = fixed->partial[from < place.split ? from : from - 1][i][threadIdx.x];
      }
      total.x += term.x, total.y += term.y, total.z += term.z, total.w += term.w;
    }
    sum[4 * i] = total.x, sum[4 * i + 1] = total.y;
    sum[4 * i + 2] = total.z, sum[4 * i + 3] = total.w;
  }
}

/* Which of the clusters that share a tile owns which chunk of a warp's columns. Each owns about as many, and
 * different warps' chunks are owned by different clusters. */
template <class Tile>
struct GemmChunkOwners {
  enum { CHUNK_N = gemm_chunk_n(Tile::PART_N), CHUNKS = Tile::PART_N / CHUNK_N };
  int groups, first, used; /* used: so many chunks have columns of a tile that is narrower */

  static __device__ __forceinline__ GemmChunkOwners of(const GemmWork &work,
                                                       const GemmSinglePlace<Tile> &place) {
    int columns = (Tile::NARROWS ? work.width : Tile::TILE_N) - (int)place.split * Tile::PART_N;
    if (columns > Tile::PART_N) columns = Tile::PART_N;
    GemmChunkOwners owners;
    owners.groups = work.groups;
    owners.first = (int)(threadIdx.x / 32) % work.groups;
    owners.used = columns > 0 ? gemm_divide_up(columns, CHUNK_N) : 0;
    return owners;
  }

  __device__ __forceinline__ int owner(int chunk) const {
    return (chunk * groups / (used > 0 ? used : 1) + first) % groups;
  }

  /* The chunks, as bits, that belong to those whose bits are in `of_groups`. */
  __device__ __forceinline__ uint32_t owned(uint32_t of_groups) const {
    uint32_t chunks = 0;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
      if (i < used && of_groups >> owner(i) & 1) chunks |= 1u << i;
    }
    return chunks;
  }
};

/* Leaves the sums of some chunks where whoever owns them looks for them. */
template <class Tile>
static __device__ __forceinline__ void gemm_give_chunks(const GemmWork &work, uint32_t chunks,
                                                        const float *sum) {
  enum { THREADS = Tile::CONSUMER_THREADS, N = GemmChunkOwners<Tile>::CHUNK_N };
#pragma unroll
  for (int i = 0; i < GemmChunkOwners<Tile>::CHUNKS; i++) {
    if (!(chunks >> i & 1)) continue;
    gemm_give<THREADS, N>(gemm_part<THREADS, Tile::PART_N>(work, blockIdx.x, i * N, threadIdx.x),
                          sum + i * (N / 2));
  }
}

/* Adds up a chunk, always in the same order: first its owner's sums, then those of the clusters after it. */
template <class Tile>
static __device__ __forceinline__ void gemm_sum_chunk(const GemmWork &work, int group, int owner,
                                                      int chunk, float *d) {
  enum {
    THREADS = Tile::CONSUMER_THREADS,
    N = GemmChunkOwners<Tile>::CHUNK_N,
    FOURS = N / 8,
    EACH = Tile::DIRECT ? 4 : FOURS, /* it has few registers left */
    AT_ONCE = FOURS < 8 && Tile::CONSUMERS < 3 ? 16 / FOURS
              : FOURS < 8                      ? 8 / FOURS
                                               : 1
  };
  uint32_t first = blockIdx.x - group * Tile::CLUSTER_SIZE;
  int number = owner == group ? 1 : 0;
  if (owner != group) { /* it gave up: all is in memory */
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[i] = -0.0f;
  }
#pragma unroll 1
  for (; number < work.groups; number += AT_ONCE) {
#pragma unroll
    for (int four = 0; four < FOURS; four += EACH) {
      float4 parts[AT_ONCE][EACH];
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) {
        int from = owner + number + j;
        if (from >= work.groups) from -= work.groups;
        const float4 *part = gemm_part<THREADS, Tile::PART_N>(
            work, first + from * Tile::CLUSTER_SIZE, chunk * N, threadIdx.x);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          if (number + j < work.groups) parts[j][i] = __ldcg(&part[(four + i) * THREADS]);
        }
      }
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) {
        if (number + j >= work.groups) break;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          float *to = d + 4 * (four + i);
          to[0] += parts[j][i].x, to[1] += parts[j][i].y;
          to[2] += parts[j][i].z, to[3] += parts[j][i].w;
        }
      }
    }
  }
}

/* Clusters that share a tile add up its sums: each those of the chunks that it owns. Returns the chunks, as bits,
 * that this warp must store. */
template <class Tile>
static __device__ __forceinline__ uint32_t gemm_sum_over_groups(const GemmWork &work,
                                                                const GemmSinglePlace<Tile> &place,
                                                                float *sum) {
  enum { WARPS = Tile::CONSUMER_THREADS / 32, N = GemmChunkOwners<Tile>::CHUNK_N };
  if (work.groups == 1) return GEMM_ALL_CHUNKS;
  GemmChunkOwners<Tile> owners = GemmChunkOwners<Tile>::of(work, place);
  uint32_t all = (1u << owners.used) - 1;
  uint32_t own = owners.owned(1u << place.group);
  uint32_t first = blockIdx.x - place.group * Tile::CLUSTER_SIZE;
  uint32_t *flag = &work.flags[first * WARPS + threadIdx.x / 32];
  gemm_give_chunks<Tile>(work, all & ~own, sum);
  uint32_t takes = gemm_give_and_wait(flag, place.group, work.groups, own != 0);
  if (own != 0 && !(takes >> place.group & 1)) { /* its patience has ended */
    gemm_give_chunks<Tile>(work, own, sum);
    takes |= gemm_give_up(flag, place.group, work.groups);
  }
  uint32_t done = gemm_be_done(flag); /* needed at the end, and until then on its way */
  uint32_t chunks = owners.owned(takes);
#pragma unroll
  for (int i = 0; i < GemmChunkOwners<Tile>::CHUNKS; i++) {
    if (chunks >> i & 1) {
      gemm_sum_chunk<Tile>(work, place.group, owners.owner(i), i, sum + i * (N / 2));
    }
  }
  gemm_clear_flag(flag, done, work.groups);
  return chunks;
}

/* By ordinary stores: there is no work left with which a TMA store could overlap. Of the columns, this warp stores
 * the `chunks`. Those of the accumulator from `end` on are not this CTA's. */
template <int TYPE, int COLUMNS, bool SWAPPED, int TASK = GEMM_ROUNDS_OR_FINISHES>
struct GemmStoreSingle {
  static __device__ __forceinline__ void run(uint8_t *staging, float *d, uint32_t chunks,
                                             GemmOutput output, int batch, int row, int column,
                                             int end) {
    if (end > column + COLUMNS) end = column + COLUMNS; /* of a split, the others' parts follow */
    if (output.n > end) output.n = end;
    enum { N = gemm_chunk_n(COLUMNS) };
    typename GemmChunks<N, 0>::Addends addends;
    if (TASK != GEMM_ROUNDS && (chunks & 1)) {
      gemm_read_addends<TYPE>(output, batch, row, column, &addends);
    }
    GemmStaging memory = {staging, 0};
    gemm_store<TYPE, COLUMNS, N, 0, TASK>(&memory, d, chunks, NULL, output, batch, row, column, end,
                                          &addends);
  }
};
template <int TYPE, int COLUMNS, int TASK>
struct GemmStoreSingle<TYPE, COLUMNS, true, TASK> {
  static __device__ __forceinline__ void run(uint8_t *staging, float *d, uint32_t chunks,
                                             GemmOutput output, int batch, int row, int column,
                                             int end) {
    if (output.m > end) output.m = end;
    gemm_store_transposed<TYPE, COLUMNS, TASK>(staging, d, chunks, output, batch, column, row);
  }
};

/* Columns of C that lie apart: not for an epilogue. */
template <class Tile, bool APART = Tile::IN_PLACE && !Tile::SWAPPED>
struct GemmStoreTile {
  static __device__ __forceinline__ void run(uint8_t *staging, float *d, uint32_t chunks,
                                             const GemmWork &work, int batch, int row, int column,
                                             int end) {
    gemm_store_apart<Tile::TYPE, Tile::PART_N>(staging, d, chunks,
                                               gemm_class_output(work, batch, false), row, column,
                                               end, work.classes.count);
  }
};
template <class Tile>
struct GemmStoreTile<Tile, false> {
  static __device__ __forceinline__ void run(uint8_t *staging, float *d, uint32_t chunks,
                                             const GemmWork &work, int batch, int row, int column,
                                             int end) {
    GemmOutput output = Tile::IN_PLACE ? gemm_class_output(work, batch, true) : work.output;
    GemmStoreSingle<Tile::TYPE, Tile::PART_N, Tile::SWAPPED>::run(
        staging, d, chunks, output, Tile::IN_PLACE ? 0 : batch, row, column, end);
  }
};

/* What becomes of the sums of this warpgroup: of a tile of which each warpgroup has 64 rows. */
template <class Tile, bool LARGE = Tile::LARGE>
struct GemmEndSingle {
  static __device__ __forceinline__ void run(const GemmWork &work,
                                             const GemmSinglePlace<Tile> &place, uint32_t,
                                             float (*d)[Tile::SUM_N / 2]) {
    /* This warpgroup's rows of A in stage 0 will not be read again, so four warps can use the space. */
    uint8_t *staging = place.ring_a + (threadIdx.x / 32) * GEMM_STAGING_BYTES;
    int row = place.row + (int)(threadIdx.x / 32) * 16;
    int end = place.column + (Tile::NARROWS ? work.width : Tile::TILE_N);
    if (Tile::SPLIT_K > 1) {
      float sum[Tile::PART_N / 2];
      if (Tile::SHARING == 1) cluster_wait_acquire();
      gemm_sum_over_cluster<Tile>(place, d[0], sum);
      if (place.split >= Tile::SUMMERS) return;
      uint32_t chunks = gemm_sum_over_groups<Tile>(work, place, sum);
      GemmStoreTile<Tile>::run(staging, sum, chunks, work, place.batch, row,
                               place.column + (int)place.split * Tile::PART_N, end);
    } else {
      uint32_t chunks = gemm_sum_over_groups<Tile>(work, place, d[0]);
      GemmStoreTile<Tile>::run(staging, d[0], chunks, work, place.batch, row, place.column, end);
    }
  }
};

/* The same if it has several blocks of 64 rows, which are only rounded. Their staging memory is of stage 0, too: of A's rows, or of the half of
 * B, that only this warpgroup reads. */
template <class Tile>
struct GemmEndSingle<Tile, true> {
  static __device__ __forceinline__ void run(const GemmWork &work,
                                             const GemmSinglePlace<Tile> &place, uint32_t warpgroup,
                                             float (*d)[Tile::SUM_N / 2]) {
    int width = Tile::NARROWS ? work.width : Tile::TILE_N, own = Tile::HALVES ? width / 2 : width;
    int first_row = Tile::HALVES ? 0 : (int)warpgroup * Tile::BLOCKS * 64;
    int column = place.column + (Tile::HALVES ? (int)warpgroup * own : 0);
    uint8_t *own_stage = Tile::HALVES ? place.ring_b + warpgroup * own * GEMM_ROW_BYTES
                                      : place.ring_a + first_row * GEMM_ROW_BYTES;
    uint8_t *staging = own_stage + threadIdx.x / 32 % 4 * GEMM_STAGING_BYTES;
    int row = place.row + first_row + (int)(threadIdx.x / 32 % 4) * 16;
#pragma unroll
    for (int block = 0; block < Tile::BLOCKS; block++) {
      GemmStoreSingle<Tile::TYPE, Tile::SUM_N, Tile::SWAPPED, GEMM_ROUNDS>::run(
          staging, d[block], GEMM_ALL_CHUNKS, work.output, place.batch, row + block * 64, column,
          column + own);
    }
  }
};

template <class Tile>
static __global__ void __cluster_dims__(Tile::CLUSTER_SIZE, 1, 1) __launch_bounds__(Tile::THREADS,
                                                                                    Tile::CTAS)
    gemm_single(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b, const __grid_constant__ GemmWork work) {
  if (!Tile::DIRECT && !Tile::IN_PLACE) gemm_prefetch_maps(&map_a, &map_b);
  extern __shared__ uint8_t gemm_dynamic_shared[];
  GemmSinglePlace<Tile> place = GemmSinglePlace<Tile>::of(work, gemm_dynamic_shared);
  uint32_t warpgroup = gemm_uniform(threadIdx.x / 128);
  if (Tile::IN_PLACE) gemm_prefetch_maps(&map_a, &work.classes.maps[place.batch]);

  if (threadIdx.x == Tile::CONSUMER_THREADS) {
    for (int stage = 0; stage < work.stages; stage++) {
      mbarrier_init(&place.fixed->full[stage], Tile::DIRECT ? Tile::PRODUCER_THREADS : 1);
      mbarrier_init(&place.fixed->empty[stage], Tile::CONSUMERS * 4 * Tile::Cluster::PEERS);
    }
    fence_mbarrier_init();
    gemm_let_next_kernel_start();
  }
  /* Peers that load into this CTA must find its barriers set up; peers that send it sums later need
   * only find it there. */
  if (Tile::CLUSTER_SIZE > 1) cluster_arrive_release();
  if (Tile::SHARING > 1) {
    cluster_wait_acquire();
  } else {
    __syncthreads();
  }

  if (warpgroup == Tile::CONSUMERS) {
    if (Tile::MOVES_REGISTERS) gemm_give_registers<Tile::PRODUCER_REGISTERS>();
    GemmProducer<Tile, Tile::DIRECT>::run(&map_a, &map_b, work, place);
    if (Tile::SPLIT_K > 1) {
      __syncwarp();
      if (Tile::SHARING == 1) cluster_wait_acquire();
      cluster_sync(); /* the consumers' in gemm_sum_over_cluster */
    }
  } else {
    if (Tile::MOVES_REGISTERS) gemm_take_registers<Tile::CONSUMER_REGISTERS>();
    float d[Tile::BLOCKS][Tile::SUM_N / 2];
    GemmMultiplySingle<Tile, Tile::TILE_N, Tile::TILE_N == Tile::LEAST_N>::run(work, place,
                                                                               warpgroup, d);
    GemmEndSingle<Tile>::run(work, place, warpgroup, d);
  }
}

#endif
