/* gemm_carry.cuh: the consumers of gemm_persistent whose accumulator is one piece.
 *
 * A wgmma of the full width reads A once for all columns. Two halves (gemm_persistent.cuh) read A
 * twice: a fifth more shared memory traffic for 128 x 256. But a single accumulator cannot be stored
 * while wgmma adds to it. So a finished tile is rounded to 16 bits and carried in half as many
 * registers. The accumulator is then free for the next tile at once. In each of that tile's first steps,
 * a chunk of the carried tile is stored while the tensor cores multiply. This works only for a C that
 * TMA can write.
 *
 * What other clusters contribute to a shared tile (tile_shares.cuh) arrives through the ring: the producer
 * loads it behind the tile's last step, like the old C below.
 *
 * Bias, old C and activation are applied before the rounding, in a separate kernel because they need
 * registers. The producer loads a tile's old C into the ring, behind the tile's last step:
 *
 *     stages     | step 62 | step 63 | old C | old C | step 0 of the next tile | ...
 *
 * A C in fp32 has a third kernel. There are not enough registers to carry such a tile, so five eighths of
 * it (of 128 x 256) are stored at once: through the warps' boxes, and through a stage of the ring, which the
 * producer leaves empty. The stage is free again when TMA has read it, a step later. */
#ifndef PIPELINED_GEMM_GEMM_CARRY_CUH
#define PIPELINED_GEMM_GEMM_CARRY_CUH

#include "gemm_persistent.cuh"
#include "gemm_transposed.cuh"

/* Puts 16 rows of 32 columns in fp32 into a box under the 128-byte swizzle. Rows of odd number write their
 * blocks of 8 columns in another order: otherwise two rows would meet in a bank. */
static __device__ __forceinline__ void gemm_stage_fp32(uint8_t *box, const float *d) {
  int row = (int)gemm_thread() % 32 / 4, pair = (int)gemm_thread() % 4 * 8, odd = row % 2;
#pragma unroll
  for (int i = 0; i < 8; i++) { /* even: the upper row */
    int here = 2 * i, other = 2 * (i ^ 4), block = i / 2 ^ 2 * odd;
    *(float2 *)(box + gemm_staged<64>(row + i % 2 * 8, block * 32 + pair)) =
        make_float2(odd ? d[other] : d[here], odd ? d[other + 1] : d[here + 1]);
  }
}

/* The registers that carry a tile: of values rounded to 16 bits, or of values in fp32. */
template <class Tile, bool FP32 = Tile::FP32>
struct GemmCarriedValues {
  typedef uint32_t Value;
  enum { CHUNKS = Tile::TILE_N / Tile::CHUNK_N, OF_CHUNK = Tile::CHUNK_N / 4 };

  static __device__ __forceinline__ void take(Value *carried, const float *d) {
    gemm_pack_all<Tile::TYPE, Tile::TILE_N>(carried, d);
  }

  static __device__ __forceinline__ void stage(uint8_t *box, const Value *chunk, bool transposed) {
    if (transposed) {
      gemm_stage_transposed<Tile::CHUNK_N>(box, chunk);
    } else {
      gemm_stage_packed<Tile::CHUNK_N>(box, chunk);
    }
  }
};

template <class Tile>
struct GemmCarriedValues<Tile, true> {
  typedef float Value;
  enum {
    CHUNKS = Tile::TILE_N / Tile::CHUNK_N - Tile::STORED_AT_ONCE,
    OF_CHUNK = Tile::CHUNK_N / 2
  };

  /* Volatile: otherwise the compiler would read the accumulator itself later, while wgmma adds to it. */
  static __device__ __forceinline__ void take(Value *carried, const float *d) {
#pragma unroll
    for (int i = 0; i < CHUNKS * OF_CHUNK; i++) {
      asm volatile("mov.b32 %0, %1;"
                   : "=f"(carried[i])
                   : "f"(d[Tile::STORED_AT_ONCE * OF_CHUNK + i]));
    }
  }

  static __device__ __forceinline__ void stage(uint8_t *box, const Value *chunk, bool) {
    gemm_stage_fp32(box, chunk);
  }
};

/* Starts to store chunk number `chunk` of a tile, from the values that are carried. */
template <class Tile>
static __device__ __forceinline__ void gemm_store_carried(
    GemmStaging *staging, const typename GemmCarriedValues<Tile>::Value *values, int chunk,
    const GemmWork &work, const GemmPiece &piece, int warp) {
  enum { N = Tile::CHUNK_N, BOXES = Tile::BOXES };
  bool first_lane = threadIdx.x % 32 == 0;
  uint8_t *box = gemm_next_box<Tile::BOX_BYTES / 32, BOXES>(staging);
  if (first_lane) bulk_wait_group_read<BOXES - 1>();
  __syncwarp(); /* what was in the box has been read */
  int row = piece.row + warp * 16, column = piece.column + chunk * N;
  GemmCarriedValues<Tile>::stage(box, values, work.output.transposed);
  fence_proxy_async();
  __syncwarp();
  if (first_lane) {
    gemm_store_box(&work.c, work.output.streaming, box, work.output.transposed ? row : column,
                   work.output.transposed ? column : row, piece.batch);
    bulk_commit_group();
  }
}

/* From where a warp stores chunk number `chunk` of those that are not carried. */
template <class Tile>
static __device__ __forceinline__ uint8_t *gemm_box_at_once(const GemmStaging &staging,
                                                            typename Tile::Shared *shared,
                                                            uint32_t stage, int warp, int chunk) {
  if (chunk >= Tile::IN_STAGE) return staging.memory + (chunk - Tile::IN_STAGE) * Tile::BOX_BYTES;
  return gemm_ring_box<Tile>(shared, stage, chunk) + warp * Tile::BOX_BYTES;
}

/* C in fp32: starts to store the chunks for which there are no registers to carry them, from a free stage
 * of the ring and from the boxes. */
template <class Tile>
static __device__ __forceinline__ void gemm_store_at_once(GemmStaging *staging, const float *d,
                                                          typename Tile::Shared *shared,
                                                          uint32_t stage, const GemmWork &work,
                                                          const GemmPiece &piece, int warp) {
  bool first_lane = threadIdx.x % 32 == 0;
  if (first_lane) bulk_wait_group_read<0>();
  __syncwarp(); /* what was in the boxes has been read */
#pragma unroll
  for (int i = 0; i < Tile::STORED_AT_ONCE; i++) {
    gemm_stage_fp32(gemm_box_at_once<Tile>(*staging, shared, stage, warp, i),
                    d + i * (Tile::CHUNK_N / 2));
  }
  fence_proxy_async();
  __syncwarp();
  if (first_lane) {
#pragma unroll
    for (int i = 0; i < Tile::STORED_AT_ONCE; i++) {
      gemm_store_box(&work.c, work.output.streaming,
                     gemm_box_at_once<Tile>(*staging, shared, stage, warp, i),
                     piece.column + i * Tile::CHUNK_N, piece.row + warp * 16, piece.batch);
      if (i + 1 >= Tile::IN_STAGE) bulk_commit_group(); /* all of the stage in one group */
    }
  }
  staging->box = 0;
}

/* Adds what others contribute to a tile, from its stages, which are then free. */
template <class Tile>
static __device__ __forceinline__ void gemm_take_all(const GemmWork &work, int actor, int takes,
                                                     GemmConsumer<Tile> *c, float *d) {
#pragma unroll 1
  for (int i = 0; i < takes; i++) {
    uint32_t thread = gemm_thread() - 128;
#pragma unroll
    for (int row = 0; row < Tile::PART_ROWS; row++) {
      int place = row % Tile::PART_ROWS_IN_STAGE, in_b = place - Tile::PART_ROWS_IN_A;
      if (place == 0) c->wait_for_stage(work, actor);
      const uint8_t *from = in_b < 0 ? c->shared->a[c->stage] + place * Tile::PART_ROW_BYTES
                                     : c->shared->b[c->stage] + in_b * Tile::PART_ROW_BYTES;
      float4 four = ((const float4 *)from)[thread];
      d[4 * row] += four.x, d[4 * row + 1] += four.y;
      d[4 * row + 2] += four.z, d[4 * row + 3] += four.w;
      if (row + 1 == Tile::PART_ROWS || place + 1 == Tile::PART_ROWS_IN_STAGE) {
        __syncwarp(); /* all lanes have read */
        c->free_stage(work, actor, c->stage, c->count);
        c->advance();
      }
    }
  }
}

/* The bias of a tile: of each 64 columns a lane has two. It is read while the tile's last step is multiplied. */
template <class Tile>
struct GemmTileBias {
  enum { PAIRS = (Tile::TILE_N + 63) / 64, WORDS = Tile::FP32 ? 2 : 1 };
  uint32_t words[PAIRS][WORDS]; /* 16 bits: both in one word */

  __device__ __forceinline__ void read(const GemmOutput &output, int column) {
    column += (int)threadIdx.x % 32 * 2;
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
      if (column + 64 * i >= output.n)
        continue; /* else the next column is also inside: n is even */
      if (Tile::FP32) {
        const uint32_t *bias = (const uint32_t *)output.bias + column + 64 * i;
        words[i][0] = bias[0], words[i][WORDS - 1] = bias[1];
      } else {
        const uint16_t *bias = (const uint16_t *)output.bias + column + 64 * i;
        words[i][0] = (uint32_t)bias[1] << 16 | bias[0];
      }
    }
  }

  /* That of this lane's two columns of 8: block number `block`. */
  __device__ __forceinline__ float2 of(int block, int lane) const {
    int from = 4 * (block % 8) + lane % 4;
    uint32_t first = __shfl_sync(0xFFFFFFFF, words[block / 8][0], from);
    if (!Tile::FP32) return gemm_unpack<Tile::TYPE>(first);
    uint32_t second = __shfl_sync(0xFFFFFFFF, words[block / 8][WORDS - 1], from);
    return make_float2(__uint_as_float(first), __uint_as_float(second));
  }
};

/* d = alpha * d + bias. */
template <class Tile>
static __device__ __forceinline__ void gemm_add_tile_bias(const GemmOutput &output,
                                                          const GemmTileBias<Tile> &bias,
                                                          float *d) {
  float alpha = gemm_alpha<Tile::TYPE>(output);
  if (output.bias == NULL && alpha == 1) return;
  int lane = (int)gemm_thread() % 32;
#pragma unroll
  for (int i = 0; i < Tile::TILE_N / 8; i++) {
    float2 sum = bias.of(i, lane);
    d[4 * i] = alpha * d[4 * i] + sum.x;
    d[4 * i + 1] = alpha * d[4 * i + 1] + sum.y;
    d[4 * i + 2] = alpha * d[4 * i + 2] + sum.x;
    d[4 * i + 3] = alpha * d[4 * i + 3] + sum.y;
  }
}

/* Two values of a lane of box number `box` of the old C, in 16 bits or in 32. */
template <class Tile>
static __device__ __forceinline__ void gemm_add_old_box(const GemmOutput &output,
                                                        const uint8_t *rows, float *d) {
  int lane = (int)gemm_thread() % 32;
  if (Tile::FP32) {
#pragma unroll
    for (int i = 0; i < Tile::RING_BOX_N / 4; i++) { /* even: the upper row */
      float2 two = *(
          const float2 *)(rows + gemm_staged<64>(lane / 4 + i % 2 * 8, i / 2 * 32 + lane % 4 * 8));
      d[2 * i] += output.beta * two.x, d[2 * i + 1] += output.beta * two.y;
    }
  } else {
#pragma unroll
    for (int at = 0; at < Tile::RING_BOX_N; at += 16) {
      uint32_t old[4];
      gemm_ldmatrix_x4(shared_address(rows) + gemm_staged<64>(lane % 16, (at + lane / 16 * 8) * 2),
                       old);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float2 two = gemm_unpack<Tile::TYPE>(old[i]);
        d[at / 2 + 2 * i] += output.beta * two.x, d[at / 2 + 2 * i + 1] += output.beta * two.y;
      }
    }
  }
}

/* d = d + beta * old C, from its stages, which are then free. */
template <class Tile>
static __device__ __forceinline__ void gemm_add_old_tile(const GemmWork &work, int actor, int warp,
                                                         GemmConsumer<Tile> *c, float *d) {
#pragma unroll
  for (int box = 0; box < Tile::RING_BOXES; box++) {
    if (box % Tile::IN_STAGE == 0) c->wait_for_stage(work, actor);
    gemm_add_old_box<Tile>(work.output,
                           gemm_ring_box<Tile>(c->shared, c->stage, box) + warp * (16 * 128),
                           d + box * (Tile::RING_BOX_N / 2));
    if (box + 1 == Tile::RING_BOXES || (box + 1) % Tile::IN_STAGE == 0) {
      __syncwarp(); /* all lanes have read */
      c->free_stage(work, actor, c->stage, c->count);
      c->advance();
    }
  }
}

/* The last tile leaves at once. There is a box for every chunk now: this warpgroup's rows of A are free
 * in all stages. */
template <class Tile>
static __device__ __forceinline__ void gemm_store_last(
    typename Tile::Shared *shared, const typename GemmCarriedValues<Tile>::Value *carried,
    const GemmWork &work, const GemmPiece &piece, int warp) {
  enum {
    N = Tile::CHUNK_N,
    CHUNKS = GemmCarriedValues<Tile>::CHUNKS,
    VALUES = GemmCarriedValues<Tile>::OF_CHUNK,
    WARP_BYTES = 16 * GEMM_ROW_BYTES,
    IN_STAGE = WARP_BYTES / Tile::BOX_BYTES
  };
  static_assert(CHUNKS <= Tile::STAGES * IN_STAGE, "a box for every chunk");
  /* What others contributed lay in all rows of A. The other warpgroups must have read it. */
  if (piece.takes > 0) {
    asm volatile("bar.sync 1, %0;" ::"n"(Tile::CONSUMER_THREADS) : "memory");
  }
#pragma unroll
  for (int i = 0; i < CHUNKS; i++) {
    uint8_t *box = shared->a[i / IN_STAGE] + warp * WARP_BYTES + i % IN_STAGE * Tile::BOX_BYTES;
    GemmCarriedValues<Tile>::stage(box, carried + i * VALUES, work.output.transposed);
  }
  fence_proxy_async();
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  int row = piece.row + warp * 16;
#pragma unroll
  for (int i = 0; i < CHUNKS; i++) {
    const uint8_t *box =
        shared->a[i / IN_STAGE] + warp * WARP_BYTES + i % IN_STAGE * Tile::BOX_BYTES;
    int column = piece.column + i * N;
    gemm_store_box(&work.c, work.output.streaming, box, work.output.transposed ? row : column,
                   work.output.transposed ? column : row, piece.batch);
  }
  bulk_commit_group();
}

template <class Tile>
struct GemmConsumeTiles<Tile, true> {
  enum {
    FROM_BOXES = Tile::FP32 ? Tile::STORED_AT_ONCE - Tile::IN_STAGE : 0, /* not from the stage */
    CHUNKS = GemmCarriedValues<Tile>::CHUNKS,
    VALUES = GemmCarriedValues<Tile>::OF_CHUNK,
    FIRST_STEP = Tile::FP32 ? 1 : 0, /* of those in which chunks are stored */
    STEPS = GEMM_CARRY_STEPS - FIRST_STEP,
    CHUNKS_A_STEP = (CHUNKS + STEPS - 1) / STEPS
  };

  static __device__ __forceinline__ void store(
      GemmStaging *staging, const typename GemmCarriedValues<Tile>::Value *carried, int from,
      int to, const GemmWork &work, const GemmPiece &piece, int warp) {
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
      if (i >= from && i < to) {
        gemm_store_carried<Tile>(staging, carried + i * VALUES, Tile::STORED_AT_ONCE + i, work,
                                 piece, warp);
      }
    }
  }

  /* The stage from which a part of the last tile was stored. */
  static __device__ __forceinline__ void free_stored(GemmConsumer<Tile> *c, const GemmWork &work,
                                                     int actor, uint32_t stage) {
    if (!Tile::FP32) return;
    if (threadIdx.x % 32 == 0) bulk_wait_group_read<FROM_BOXES>();
    __syncwarp();
    c->free_stage(work, actor, stage, c->count);
  }

  static __device__ __forceinline__ void run(const GemmWork &work, typename Tile::Shared *shared,
                                             uint32_t warpgroup, uint32_t rank) {
    int actor = (int)warpgroup, warp = (int)threadIdx.x / 32 - 4;
    uint32_t *counter = &work.flags[blockIdx.x]; /* of the warps that have given their part */
    GemmStaging staging = {shared->staging[warp], 0};
    GemmConsumer<Tile> c = GemmConsumer<Tile>::of(shared, warpgroup, rank);
    bool carrying = false;
    float d[Tile::TILE_N / 2];
    typename GemmCarriedValues<Tile>::Value carried[CHUNKS > 0 ? CHUNKS * VALUES : 1];
    uint32_t stored = 0; /* the stage from which a part of the last tile is stored */
    GemmPiece piece, done = {};
    do {
#pragma unroll
      for (int step = 0; step < GEMM_CARRY_STEPS; step++) {
        c.wait_for_stage(work, actor);
        if (step == 0) piece = c.read_piece();
        c.multiply_left(d, step > 0);
        wgmma_commit();
        if (step == 0 && done.given)
          gemm_count_warp(counter); /* its stores have had time to land */
        if (carrying) {
          if (step == 0) free_stored(&c, work, actor, stored);
          int from = (step - FIRST_STEP) * CHUNKS_A_STEP;
          store(&staging, carried, from, from + CHUNKS_A_STEP, work, done, warp);
        }
        if (step > 0) {
          wgmma_wait_all_but_one();
          c.free_stage(work, actor, c.held, c.count - 1);
        }
        c.advance();
      }
      for (int step = piece.steps - GEMM_CARRY_STEPS; step > 0; step--) {
        c.wait_for_stage(work, actor);
        c.multiply_left(d, true);
        wgmma_commit();
        wgmma_wait_all_but_one();
        c.free_stage(work, actor, c.held, c.count - 1);
        c.advance();
      }
      GemmTileBias<Tile> bias = {};
      if (Tile::FINISHES && !piece.given) {
        if (work.output.bias != NULL) bias.read(work.output, piece.column);
      }
      wgmma_wait_all();
      c.free_stage(work, actor, c.held, c.count - 1);
      done = piece;
      carrying = !piece.given;
      if (piece.given) {
        gemm_give<Tile::CONSUMER_THREADS, Tile::TILE_N>(
            gemm_part<Tile::CONSUMER_THREADS, Tile::TILE_N>(work, blockIdx.x, 0, threadIdx.x - 128),
            d);
      } else {
        gemm_take_all<Tile>(work, actor, piece.takes, &c, d);
        if (!Tile::FINISHES) gemm_scale<Tile::TYPE, Tile::TILE_N / 2>(work.output, d, d);
        if (Tile::FINISHES) gemm_add_tile_bias<Tile>(work.output, bias, d);
        if (Tile::FINISHES && work.output.beta != 0)
          gemm_add_old_tile<Tile>(work, actor, warp, &c, d);
        if (Tile::FINISHES) gemm_activate<Tile::TILE_N / 2>(work.output, d);
        if (Tile::FP32) {
          c.wait_for_stage(work, actor);
          stored = c.stage;
          gemm_store_at_once<Tile>(&staging, d, shared, stored, work, piece, warp);
          c.advance();
        }
      }
      /* Always: otherwise these registers would stay in use through the code above. */
      GemmCarriedValues<Tile>::take(carried, d);
    } while (!done.last);
    if (done.given) gemm_count_warp(counter);
    if (carrying && !Tile::FP32) gemm_store_last<Tile>(shared, carried, work, done, warp);
    if (carrying && Tile::FP32) {
      free_stored(&c, work, actor, stored);
      store(&staging, carried, 0, CHUNKS, work, done, warp);
    }
    if (threadIdx.x % 32 == 0) bulk_wait_group_read<0>(); /* shared memory must outlive the stores */
  }
};

#endif
