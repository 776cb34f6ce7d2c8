/* gemm_short.cuh: the kernel for products with a short k, which spend most of their time writing C.
 *
 * C is cut into strips of columns. A block owns a strip, or with other blocks a part of the strip's rows. It loads
 * its columns of B once and keeps them for all its tiles. Only tiles of A, 64 rows high, follow each other through
 * the ring. Each consumer warpgroup computes tiles of its own, so while one multiplies, the others
 * store. They store by ordinary instructions, whole rows of a tile at a time: up to 512 bytes in a
 * line, where a TMA store of swizzled shared memory writes at most 128. Nothing
 * waits for a store. Rows of C may begin anywhere: TMA would not store them at all.
 *
 * The plan chooses the width of the strips so that all SMs have about the same amount to store. */
#ifndef PIPELINED_GEMM_GEMM_SHORT_CUH
#define PIPELINED_GEMM_GEMM_SHORT_CUH

#include "gemm_epilogue.cuh"
#include "gemm_operands.cuh"

template <int TYPE_, int MAJOR_A_, int MAJOR_B_, int TILE_N_, int CONSUMERS_, int MOST_STEPS_>
struct GemmShortTile {
  static constexpr int TYPE = TYPE_;
  static constexpr int MAJOR_A = MAJOR_A_;
  static constexpr int MAJOR_B = MAJOR_B_;
  static constexpr int TILE_M = 64;
  static constexpr int TILE_N = TILE_N_; /* at most 256: a warp stores a row of it at once */
  static constexpr int CONSUMERS = CONSUMERS_;
  static constexpr int MOST_STEPS = MOST_STEPS_; /* of k, that B's columns fit in shared memory */
  static constexpr int CONSUMER_THREADS = 128 * CONSUMERS; /* they come first */
  static constexpr int THREADS = CONSUMER_THREADS + 128;
  static constexpr int A_BYTES = TILE_M * GEMM_ROW_BYTES;
  static constexpr int B_BYTES = TILE_N * GEMM_ROW_BYTES;
  static constexpr int MOST_STAGES = 12;
  static constexpr int CHUNKS = TILE_N / 64;
  /* A row of a warp's staging memory: with 16 bytes more, eight rows of one column are in different banks, and a row
   * may begin up to 14 bytes later. */
  static constexpr int STAGING_ROW_BYTES = TILE_N * 2 + 16;
  /* 65,536 by 384 or 512 threads: a kernel starts with 168 or 128 registers a thread. */
  static constexpr int PRODUCER_REGISTERS = CONSUMERS == 2 ? 40 : 32;
  static constexpr int CONSUMER_REGISTERS = CONSUMERS == 2 ? 232 : 160;
  struct Fixed { /* after B and the ring */
    uint8_t staging[CONSUMERS * 4][16 * STAGING_ROW_BYTES];
    uint64_t full[MOST_STAGES];
    uint64_t empty[MOST_STAGES];
    uint64_t b_full;
  };
  /* A parity names only the phase that follows the one before it: a warpgroup that waits two phases further does not
   * wait at all. It knows that a stage's phase has completed only if it has waited for it itself. So each stage is
   * always filled for the same warpgroup: the ring holds a tile for each, or several. A ring of
   * another length is right only as long as copies land in the order in which they were issued. With such a ring,
   * an H200 ended some launches with an error. */
  static_assert((GEMM_MOST_SHARED_BYTES - 1024 - (int)sizeof(Fixed) - MOST_STEPS * B_BYTES) /
                            A_BYTES >=
                        CONSUMERS * MOST_STEPS &&
                    MOST_STAGES >= CONSUMERS * MOST_STEPS,
                "the ring holds a tile for each warpgroup");
};

/* Where a warp's rows go: part of a strip. */
struct GemmShortRows {
  uint16_t *to; /* the first row's first column in this strip */
  int64_t stride;
  int rows;        /* of C; at most 16 */
  int width, left; /* of the strip; of the rows, from this column on */
  bool first;      /* of the strips of a row */
};

/* What every thread of a block knows. */
template <class Tile>
struct GemmShortPlace {
  uint8_t *b, *ring;
  typename Tile::Fixed *fixed;
  int column, width; /* of this block's strip */
  int batch;
  int first_row, tiles; /* of this block's part of the strip */

  static __device__ __forceinline__ GemmShortPlace of(const GemmWork &work, uint8_t *shared) {
    GemmShortPlace place;
    place.b = gemm_align_1024(shared);
    place.ring = place.b + work.steps * Tile::B_BYTES;
    place.fixed = (typename Tile::Fixed *)(place.ring + work.stages * Tile::A_BYTES);
    int strips = work.order.columns, rows = work.order.rows; /* in tiles */
    int strip = blockIdx.x % strips, part = blockIdx.x / strips;
    place.batch = part / work.groups;
    part -= place.batch * work.groups;
    place.column = strip * work.width, place.width = work.width;
    int first = (int)((int64_t)rows * part / work.groups);
    place.first_row = first * Tile::TILE_M;
    place.tiles = (int)((int64_t)rows * (part + 1) / work.groups) - first;
    return place;
  }

  /* Sixteen rows from this one on; rows are counted from the block's first. */
  __device__ __forceinline__ GemmShortRows rows_of(const GemmOutput &output, int row) const {
    row += first_row;
    uint16_t *c = (uint16_t *)output.c + batch * output.batch_stride;
    return {c + row * output.row_stride + column,
            output.row_stride,
            min(output.m - row, 16),
            width,
            output.n - column,
            column == 0};
  }
};

static __device__ __forceinline__ void gemm_advance_by(int steps, int stages, uint32_t *stage,
                                                       uint32_t *parity) {
  *stage += steps;
  while (*stage >= (uint32_t)stages) *stage -= stages, *parity ^= 1;
}

template <class Tile>
static __device__ __forceinline__ void gemm_produce_short(const CUtensorMap *map_a,
                                                          const CUtensorMap *map_b,
                                                          const GemmWork &work,
                                                          const GemmShortPlace<Tile> &place) {
  int batch_a = work.shared_operands & 1 ? 0 : place.batch;
  int batch_b = work.shared_operands & 2 ? 0 : place.batch;
  uint64_t *b_full = &place.fixed->b_full;
  uint32_t stage = 0, parity = 0;
  mbarrier_arrive_expect_tx(b_full, work.steps * Tile::B_BYTES);
  for (int tile = 0; tile < place.tiles; tile++) {
    for (int step = 0; step < work.steps; step++) {
      uint64_t *full = &place.fixed->full[stage];
      mbarrier_wait_parity(&place.fixed->empty[stage], parity ^ 1);
      mbarrier_arrive_expect_tx(full, Tile::A_BYTES);
      gemm_load<Tile::MAJOR_A, Tile::TILE_M, false>(
          place.ring + stage * Tile::A_BYTES, map_a, place.first_row + tile * Tile::TILE_M,
          step * gemm_step_k(Tile::TYPE), batch_a, full, 0);
      if (tile == 0) {
        gemm_load<Tile::MAJOR_B, Tile::TILE_N, false>(place.b + step * Tile::B_BYTES, map_b,
                                                      place.column, step * gemm_step_k(Tile::TYPE),
                                                      batch_b, b_full, 0);
      }
      gemm_advance(work.stages, &stage, &parity);
    }
  }
}

/* ---- A warp's 16 rows of C ----
 *
 * They lie in the staging memory STAGING_ROW_BYTES apart, each as far behind a multiple of 16 bytes as in C. So a lane
 * reads 16 bytes and stores them as they are, wherever the rows of C begin. A strip ends where 16 bytes of the row
 * end, up to 7 columns late: the tile has that many more columns. Only where a row itself begins and
 * ends, elements are stored one by one. */

static __device__ __forceinline__ int gemm_elements_past_16_bytes(const uint16_t *at) {
  return (int)((uintptr_t)at / 2 % 8);
}

/* By one instruction: of an assignment the compiler may make four of 4 bytes. */
static __device__ __forceinline__ void gemm_store_16_bytes(uint16_t *to, uint4 value,
                                                           bool streaming) {
  if (streaming) {
    gemm_store_streaming((uint4 *)to, value);
  } else {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(value.x), "r"(value.y),
                 "r"(value.z), "r"(value.w)
                 : "memory");
  }
}

/* Puts a warp's rows there, rounded: by stmatrix where rows begin at multiples of 16 bytes (ALIGNED), else one
 * by one, 16 bytes of a row at any distance from such a multiple. */
template <class Tile, bool ALIGNED>
static __device__ __forceinline__ void gemm_stage_rows(uint8_t *staging, const GemmOutput &output,
                                                       const GemmShortRows &strip, const float *d) {
  enum { ROW_BYTES = Tile::STAGING_ROW_BYTES };
  int lane = threadIdx.x % 32;
  float scales = gemm_alpha<Tile::TYPE>(output);
  uint32_t aligned = shared_address(staging + lane % 16 * ROW_BYTES + lane / 16 * 16);
  /* Both of a lane's rows begin equally far behind 16 bytes, as they are 8 apart. */
  int past = gemm_elements_past_16_bytes(strip.to + lane / 4 * strip.stride);
  uint16_t *upper = (uint16_t *)(staging + lane / 4 * ROW_BYTES) + lane % 4 * 2 + past;
#pragma unroll
  for (int at = 0; at < Tile::TILE_N; at += 64) {
    uint32_t v[16];
    gemm_pack_all<Tile::TYPE, 64>(v, d + at / 2, scales);
#pragma unroll
    for (int i = 0; i < 16; i++) {
      uint16_t *to = upper + at + i / 2 * 8 + i % 2 * (8 * ROW_BYTES / 2);
      if (ALIGNED && i % 4 == 0) {
        stmatrix_x4(aligned + 2 * at + 8 * i, v[i], v[i + 1], v[i + 2], v[i + 3]);
      }
      if (!ALIGNED) to[0] = (uint16_t)v[i], to[1] = (uint16_t)(v[i] >> 16);
    }
  }
}

/* Whole pieces of 16 bytes: from the one on that begins in the strip, to the one that begins behind it. Four rows at
 * a time, and those 8 further on, which begin equally far behind 16 bytes. All are read before the first is stored. */
template <int ROW_BYTES, bool ALIGNED>
static __device__ __forceinline__ void gemm_store_pieces(const GemmShortRows &strip,
                                                         const uint8_t *staging, bool streaming) {
  uint32_t lane = threadIdx.x % 32, reach = min(strip.width + (ALIGNED ? 0 : 7), strip.left);
  uint16_t *to = strip.to;
#pragma unroll
  for (int first = 0; first < 8; first += 4, staging += 4 * ROW_BYTES) {
    uint4 values[8];
    uint16_t *places[4];
    bool inside[4];
#pragma unroll
    for (int i = 0; i < 4; i++, to += strip.stride) {
      uint32_t past = ALIGNED ? 0 : gemm_elements_past_16_bytes(to), at = (past + 7) / 8 + lane;
      inside[i] = at < (past + reach) / 8;
      places[i] = to + 8 * (int)at - (int)past;
      const uint8_t *from = staging + i * ROW_BYTES + 16 * min(at, (uint32_t)ROW_BYTES / 16 - 1);
      values[i] = *(const uint4 *)from;
      values[i + 4] = *(const uint4 *)(from + 8 * ROW_BYTES);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
      uint16_t *place = places[i % 4] + i / 4 * 8 * strip.stride;
      if (!inside[i % 4] || first + i % 4 + i / 4 * 8 >= strip.rows) continue;
      gemm_store_16_bytes(place, values[i], streaming);
    }
  }
}

/* What four rows have before their first whole piece and behind the last one: an element by each lane. */
template <int ROW_BYTES>
static __device__ __forceinline__ void gemm_store_ends(const GemmShortRows &strip,
                                                       const uint8_t *staging) {
  int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int r = lane / 8; r < strip.rows; r += 4) {
    uint16_t *to = strip.to + r * strip.stride;
    const uint16_t *row = (const uint16_t *)(staging + r * ROW_BYTES);
    int past = gemm_elements_past_16_bytes(to), end = past + strip.left, at = lane % 8;
    if (strip.first && past > 0 && at >= past && at < end) to[at - past] = row[at];
    bool ends_here = end / 8 < (past + 7 + strip.width) / 8;
    at += max((past + 7) / 8, end / 8) * 8;
    if (ends_here && at < end) to[at - past] = row[at];
  }
}

/* A warp's rows, rounded, to global memory: 16 bytes by each lane, a row by all. */
template <class Tile>
static __device__ __forceinline__ void gemm_store_rows(uint8_t *staging, const GemmOutput &output,
                                                       const GemmShortRows &strip, const float *d) {
  enum { ROW_BYTES = Tile::STAGING_ROW_BYTES };
  __syncwarp(); /* what was in the staging memory has been read */
  if (output.eights) {
    gemm_stage_rows<Tile, true>(staging, output, strip, d);
    __syncwarp();
    gemm_store_pieces<ROW_BYTES, true>(strip, staging, output.streaming);
    return;
  }
  gemm_stage_rows<Tile, false>(staging, output, strip, d);
  __syncwarp();
  gemm_store_pieces<ROW_BYTES, false>(strip, staging, output.streaming);
  if (strip.first || strip.left < strip.width + 8) gemm_store_ends<ROW_BYTES>(strip, staging);
  __syncwarp(); /* wgmma is for whole warps */
}

/* Every tile of this warpgroup: of CONSUMERS that follow each other, one. */
template <class Tile>
static __device__ __forceinline__ void gemm_consume_short(const GemmWork &work,
                                                          const GemmShortPlace<Tile> &place,
                                                          uint32_t warpgroup) {
  uint64_t first_a = gemm_descriptor<Tile::MAJOR_A>(place.ring);
  uint64_t first_b = gemm_descriptor<Tile::MAJOR_B>(place.b);
  int warp = threadIdx.x / 32;
  uint32_t stage = 0, parity = 0;
  float d[Tile::TILE_N / 2];
  gemm_advance_by(warpgroup * work.steps, work.stages, &stage, &parity);
  mbarrier_wait_parity(&place.fixed->b_full, 0);
  for (int tile = warpgroup; tile < place.tiles; tile += Tile::CONSUMERS) {
    uint32_t first_stage = stage, parity_then = parity;
    for (int step = 0; step < work.steps; step++) {
      mbarrier_wait_parity(&place.fixed->full[stage], parity);
      gemm_multiply_step<Tile::TILE_N, Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B>(
          d, first_a + stage * (Tile::A_BYTES / 16), first_b + step * (Tile::B_BYTES / 16),
          step > 0);
      wgmma_commit();
      gemm_advance(work.stages, &stage, &parity);
    }
    wgmma_wait_all();
    for (int step = 0; step < work.steps; step++) {
      if (threadIdx.x % 32 == 0) mbarrier_arrive(&place.fixed->empty[first_stage]);
      gemm_advance(work.stages, &first_stage, &parity_then);
    }
    gemm_advance_by((Tile::CONSUMERS - 1) * work.steps, work.stages, &stage, &parity);
    gemm_store_rows<Tile>(place.fixed->staging[warp], work.output,
                          place.rows_of(work.output, tile * Tile::TILE_M + warp % 4 * 16), d);
  }
}

template <class Tile>
static __global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm_short(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               const __grid_constant__ GemmWork work) {
  gemm_prefetch_maps(&map_a, &map_b);
  extern __shared__ uint8_t gemm_dynamic_shared[];
  GemmShortPlace<Tile> place = GemmShortPlace<Tile>::of(work, gemm_dynamic_shared);
  uint32_t warpgroup = gemm_uniform(threadIdx.x / 128);

  if (threadIdx.x == Tile::CONSUMER_THREADS) {
    for (int stage = 0; stage < work.stages; stage++) {
      mbarrier_init(&place.fixed->full[stage], 1);
      mbarrier_init(&place.fixed->empty[stage], 4); /* the warps of the one that has the tile */
    }
    mbarrier_init(&place.fixed->b_full, 1);
    fence_mbarrier_init();
    gemm_let_next_kernel_start();
  }
  __syncthreads();

  if (warpgroup == Tile::CONSUMERS) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (threadIdx.x == Tile::CONSUMER_THREADS) {
      gemm_wait_for_earlier_kernels();
      gemm_produce_short<Tile>(&map_a, &map_b, work, place);
    }
  } else {
    setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
    gemm_consume_short<Tile>(work, place, warpgroup);
  }
}

#endif
