/* gemm_short.cuh: the kernel for products with a short k, whose time goes to writing C.
 *
 * A CTA owns a block of columns of C, or with other CTAs a part of its rows. It loads its columns of B
 * once and keeps them for all its tiles; only tiles of A, 64 rows high, follow each other through the
 * ring. Each consumer warpgroup computes tiles of its own, so while one multiplies, the others
 * store. They store by ordinary instructions, whole rows of a tile at a time: up to 512 bytes in a
 * line, where a TMA store of swizzled shared memory writes at most 128 (NOTES.md, ninth round). Nothing
 * waits for a store. Rows of C may begin anywhere: TMA would not store them at all.
 *
 * gemm_width.cuh chooses the width of the blocks so that all SMs have about the same to store. */
#ifndef PIPELINED_GEMM_GEMM_SHORT_CUH
#define PIPELINED_GEMM_GEMM_SHORT_CUH

#include "gemm_epilogue.cuh"
#include "gemm_operands.cuh"
#include "gemm_persistent.cuh"

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
  /* 65,536 by 384 or 512 threads: a kernel starts with 168 or 128 registers a thread. */
  static constexpr int PRODUCER_REGISTERS = CONSUMERS == 2 ? 40 : 32;
  static constexpr int CONSUMER_REGISTERS = CONSUMERS == 2 ? 232 : 160;
  struct Fixed { /* after B and the ring */
    uint8_t staging[CONSUMERS * 4][CHUNKS][GEMM_STAGING_BYTES];
    uint64_t full[MOST_STAGES];
    uint64_t empty[MOST_STAGES];
    uint64_t b_full;
  };
  /* A warpgroup may wait for a stage's next phase only if the one before it has completed: for a parity,
   * two phases further is the same. So the ring holds a tile for each warpgroup: then each phase that a
   * warpgroup waits for is the next one after that of its previous tile, or a stage's first. */
  static_assert((GEMM_MOST_SHARED_BYTES - 1024 - (int)sizeof(Fixed) - MOST_STEPS * B_BYTES) /
                            A_BYTES >=
                        CONSUMERS * MOST_STEPS &&
                    MOST_STAGES >= CONSUMERS * MOST_STEPS,
                "the ring holds a tile for each warpgroup");
};

/* What every thread of a CTA knows. */
template <class Tile>
struct GemmShortPlace {
  uint8_t *b, *ring;
  typename Tile::Fixed *fixed;
  int column, end; /* of this CTA's block of C */
  int batch;
  int first_row, tiles; /* of this CTA's part of the block */

  static __device__ __forceinline__ GemmShortPlace of(const GemmWork &work, uint8_t *shared) {
    GemmShortPlace place;
    place.b = gemm_align_1024(shared);
    place.ring = place.b + work.steps * Tile::B_BYTES;
    place.fixed = (typename Tile::Fixed *)(place.ring + work.stages * Tile::A_BYTES);
    int blocks = work.order.columns, rows = work.order.rows; /* in tiles */
    int block = blockIdx.x % blocks, part = blockIdx.x / blocks;
    place.batch = part / work.groups;
    part -= place.batch * work.groups;
    place.column = block * work.width;
    place.end = min(place.column + work.width, work.output.n);
    int first = (int)((int64_t)rows * part / work.groups);
    place.first_row = first * Tile::TILE_M;
    place.tiles = (int)((int64_t)rows * (part + 1) / work.groups) - first;
    return place;
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
      gemm_advance_by(1, work.stages, &stage, &parity);
    }
  }
}

/* 16 bytes of a warp's row in its staging memory, from column 8 * at on. */
static __device__ __forceinline__ uint4 gemm_read_row(const uint8_t (*staging)[GEMM_STAGING_BYTES],
                                                      int row, int at) {
  return *(const uint4 *)(staging[at / 8] + gemm_staged<64>(row, at % 8 * 16));
}

/* Eight of these sixteen elements, from number `first` on, which is less than 8. */
static __device__ __forceinline__ uint4 gemm_shift_elements(uint4 low, uint4 high, int first) {
  uint32_t v[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; i++) v[i] = first & 4 ? v[i + 2] : v[i];
#pragma unroll
  for (int i = 0; i < 5; i++) v[i] = first & 2 ? v[i + 1] : v[i];
  uint32_t bits = first % 2 * 16;
  return make_uint4(__funnelshift_r(v[0], v[1], bits), __funnelshift_r(v[1], v[2], bits),
                    __funnelshift_r(v[2], v[3], bits), __funnelshift_r(v[3], v[4], bits));
}

/* A row that begins anywhere, of which `columns` are in the staging memory and belong to `to`: 16 aligned bytes by each lane, and
 * what is left at both ends by single elements. */
static __device__ __forceinline__ void gemm_store_unaligned_row(
    const uint8_t (*staging)[GEMM_STAGING_BYTES], int row, uint16_t *to, int columns,
    bool streaming) {
  int lane = threadIdx.x % 32;
  int from = min((int)(8 - (uintptr_t)to / 2 % 8) % 8, columns), vectors = (columns - from) / 8;
  if (lane < vectors) {
    uint4 low = gemm_read_row(staging, row, lane), high = low;
    if (from > 0) high = gemm_read_row(staging, row, lane + 1);
    uint4 value = gemm_shift_elements(low, high, from);
    if (streaming) {
      __stcs((uint4 *)(to + from + 8 * lane), value);
    } else { /* by one instruction: an assignment becomes four of 4 bytes */
      __stwb((uint4 *)(to + from + 8 * lane), value);
    }
  }
  /* lanes 0 to 7: before the aligned part; 8 to 15: behind it */
  int at = lane < 8 ? lane : from + vectors * 8 + lane - 8;
  if (lane < 16 && at < (lane < 8 ? from : columns)) {
    to[at] = *(const uint16_t *)(staging[at / 64] + gemm_staged<64>(row, at % 64 * 2));
  }
}

/* A warp's 16 rows, rounded, to global memory: 16 bytes by each lane, a row by all. */
template <class Tile>
static __device__ __forceinline__ void gemm_store_rows(uint8_t (*staging)[GEMM_STAGING_BYTES],
                                                       const GemmOutput &output, int batch, int row,
                                                       int column, int end, const float *d) {
  __syncwarp(); /* what was in the staging memory has been read */
#pragma unroll
  for (int i = 0; i < Tile::CHUNKS; i++) {
    uint32_t packed[16];
    float scaled[32];
    gemm_pack_all<Tile::TYPE, 64>(packed, gemm_scale<Tile::TYPE, 32>(output, d + 32 * i, scaled));
    gemm_stage_packed<64>(staging[i], packed);
  }
  __syncwarp();
  int at = threadIdx.x % 32 * 8, rows = min(output.m - row, 16);
  uint16_t *to =
      (uint16_t *)output.c + batch * output.batch_stride + row * output.row_stride + column;
  if (!output.eights) {
#pragma unroll 4
    for (int r = 0; r < rows; r++, to += output.row_stride) {
      gemm_store_unaligned_row(staging, r, to, end - column, output.streaming);
    }
    return;
  }
  if (column + at >= end) return; /* also what lies beyond a tile of less than 256 columns */
  to += at;
#pragma unroll
  for (int r = 0; r < 16; r++, to += output.row_stride) {
    if (r >= rows) return;
    uint4 value = gemm_read_row(staging, r, at / 8);
    if (output.streaming) {
      __stcs((uint4 *)to, value);
    } else {
      *(uint4 *)to = value;
    }
  }
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
      gemm_advance_by(1, work.stages, &stage, &parity);
    }
    wgmma_wait_all();
    for (int step = 0; step < work.steps; step++) {
      if (threadIdx.x % 32 == 0) mbarrier_arrive(&place.fixed->empty[first_stage]);
      gemm_advance_by(1, work.stages, &first_stage, &parity_then);
    }
    gemm_advance_by((Tile::CONSUMERS - 1) * work.steps, work.stages, &stage, &parity);
    gemm_store_rows<Tile>(place.fixed->staging[warp], work.output, place.batch,
                          place.first_row + tile * Tile::TILE_M + warp % 4 * 16, place.column,
                          place.end, d);
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
    gemm_give_registers<Tile::PRODUCER_REGISTERS>();
    if (threadIdx.x == Tile::CONSUMER_THREADS) {
      gemm_wait_for_earlier_kernels();
      gemm_produce_short<Tile>(&map_a, &map_b, work, place);
    }
  } else {
    gemm_take_registers<Tile::CONSUMER_REGISTERS>();
    gemm_consume_short<Tile>(work, place, warpgroup);
  }
}

#endif
