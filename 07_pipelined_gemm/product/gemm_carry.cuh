/* gemm_carry.cuh: the consumers of gemm_persistent whose accumulator is one piece.
 *
 * A wgmma of the full width reads A once for all columns. Two halves (gemm_persistent.cuh) read A
 * twice: a fifth more shared memory traffic for 128 x 256. But a single accumulator cannot be stored
 * while wgmma adds to it. So a finished tile is rounded to 16 bits and carried in half as many
 * registers. The accumulator is then free for the next tile at once. In each of that tile's first steps,
 * a chunk of the carried tile is stored while the tensor cores multiply. Bias and activation are applied
 * before the rounding, in a separate kernel because they need registers. This works only for a C of 16
 * bits that TMA can write and whose old values are not read. */
#ifndef PIPELINED_GEMM_GEMM_CARRY_CUH
#define PIPELINED_GEMM_GEMM_CARRY_CUH

#include "gemm_persistent.cuh"
#include "gemm_transposed.cuh"

/* Starts to store the carried chunk number `chunk`. */
template <class Tile>
static __device__ __forceinline__ void gemm_store_carried(GemmStaging *staging,
                                                          const uint32_t *carried, int chunk,
                                                          const GemmWork &work,
                                                          const GemmPiece &piece, int warp) {
  enum { N = Tile::CHUNK_N, BOXES = Tile::BOXES };
  bool first_lane = threadIdx.x % 32 == 0;
  uint8_t *box = gemm_next_box<N, BOXES>(staging);
  if (first_lane) bulk_wait_group_read(BOXES - 1);
  __syncwarp(); /* what was in the box has been read */
  int row = piece.row + warp * 16, column = piece.column + chunk * N;
  if (work.output.transposed) {
    gemm_stage_transposed<N>(box, carried + chunk * (N / 4));
  } else {
    gemm_stage_packed<N>(box, carried + chunk * (N / 4));
  }
  fence_proxy_async();
  __syncwarp();
  if (first_lane) {
    gemm_store_box(&work.c, work.output.streaming, box, work.output.transposed ? row : column,
                   work.output.transposed ? column : row, piece.batch);
    bulk_commit_group();
  }
}

/* Adds what others contribute to a tile, 32 columns at a time, because few registers are left. */
template <class Tile>
static __device__ __forceinline__ void gemm_take_all(const GemmWork &work, const GemmPiece &piece,
                                                     float *d) {
  enum {
    THREADS = Tile::CONSUMER_THREADS,
    WARPS = THREADS / 32,
    COLUMNS = Tile::CHUNK_N == 64 ? 32 : Tile::CHUNK_N
  };
  uint32_t thread = threadIdx.x - 128;
#pragma unroll 1
  for (int i = 1; i <= piece.takes; i++) {
    uint32_t from = blockIdx.x - i * Tile::CLUSTER_SIZE;
    gemm_wait_for_flag(&work.flags[from * WARPS + thread / 32]);
#pragma unroll
    for (int at = 0; at < Tile::TILE_N; at += COLUMNS) {
      gemm_take<THREADS, COLUMNS>(gemm_part<THREADS, Tile::TILE_N>(work, from, at, thread),
                                  d + at / 2);
    }
  }
}

/* The bias of a tile, two columns in a word. It is read while the tile's last step is multiplied. */
template <int COLUMNS>
struct GemmTileBias {
  enum { WORDS = (COLUMNS + 63) / 64 };
  uint32_t words[WORDS]; /* this lane's of each 32; transposed: its two rows' */
};

static __device__ __forceinline__ uint32_t gemm_read_bias_word(const GemmOutput &output, int first,
                                                               int second) {
  const uint16_t *bias = (const uint16_t *)output.bias;
  uint32_t low = first < output.n ? bias[first] : 0, high = second < output.n ? bias[second] : 0;
  return high << 16 | low;
}

template <int COLUMNS>
static __device__ __forceinline__ void gemm_read_tile_bias(const GemmOutput &output, int row,
                                                           int column,
                                                           GemmTileBias<COLUMNS> *bias) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < GemmTileBias<COLUMNS>::WORDS; i++) {
    int first = output.transposed ? row : column + 64 * i + 2 * lane;
    bias->words[i] = gemm_read_bias_word(output, first, first + (output.transposed ? 8 : 1));
  }
}

/* d = activation(alpha * d + bias). */
template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void gemm_finish_tile(const GemmOutput &output,
                                                        const GemmTileBias<COLUMNS> &bias,
                                                        float *d) {
#pragma unroll
  for (int i = 0; i < COLUMNS / 4; i++) { /* even: the upper row */
    int from = 4 * (i / 2) + threadIdx.x % 4;
    uint32_t word =
        output.transposed ? bias.words[0] : __shfl_sync(0xFFFFFFFF, bias.words[i / 16], from % 32);
    float2 sum = gemm_unpack<TYPE>(word);
    if (output.transposed) sum.x = sum.y = i % 2 ? sum.y : sum.x;
    d[2 * i] = output.alpha * d[2 * i] + sum.x;
    d[2 * i + 1] = output.alpha * d[2 * i + 1] + sum.y;
  }
  gemm_activate<COLUMNS / 2>(output, d);
}

template <class Tile>
struct GemmConsumeTiles<Tile, true> {
  enum {
    N = Tile::CHUNK_N,
    CHUNKS = Tile::TILE_N / N,
    CHUNKS_A_STEP = (CHUNKS + GEMM_CARRY_STEPS - 1) / GEMM_CARRY_STEPS
  };

  static __device__ __forceinline__ void run(const GemmWork &work, typename Tile::Shared *shared,
                                             uint32_t warpgroup, uint32_t rank) {
    int actor = (int)warpgroup, warp = (int)threadIdx.x / 32 - 4;
    uint32_t *flag = &work.flags[blockIdx.x * Tile::CONSUMERS * 4 + warp];
    GemmStaging staging = {shared->staging[warp], 0};
    GemmConsumer<Tile> c = GemmConsumer<Tile>::of(shared, warpgroup, rank);
    bool carrying = false;
    float d[Tile::TILE_N / 2];
    uint32_t carried[Tile::TILE_N / 4];
    GemmPiece piece, done = {};
    do {
#pragma unroll
      for (int step = 0; step < GEMM_CARRY_STEPS; step++) {
        c.wait_for_stage(work, actor);
        if (step == 0) piece = c.read_piece();
        c.multiply_left(d, step > 0);
        wgmma_commit();
        if (carrying) {
#pragma unroll
          for (int chunk = step * CHUNKS_A_STEP;
               chunk < (step + 1) * CHUNKS_A_STEP && chunk < CHUNKS; chunk++) {
            gemm_store_carried<Tile>(&staging, carried, chunk, work, done, warp);
          }
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
      GemmTileBias<Tile::TILE_N> bias = {};
      if (Tile::FINISHES && work.output.bias != NULL && !piece.given) {
        int row = piece.row + warp * 16 + (int)threadIdx.x % 32 / 4;
        gemm_read_tile_bias(work.output, row, piece.column, &bias);
      }
      wgmma_wait_all();
      c.free_stage(work, actor, c.held, c.count - 1);
      done = piece;
      carrying = !piece.given;
      if (piece.given) {
        gemm_give<Tile::CONSUMER_THREADS, Tile::TILE_N>(
            gemm_part<Tile::CONSUMER_THREADS, Tile::TILE_N>(work, blockIdx.x, 0, threadIdx.x - 128),
            d);
        gemm_raise_flag(flag);
      } else {
        gemm_take_all<Tile>(work, piece, d);
        if (Tile::FINISHES) gemm_finish_tile<Tile::TYPE>(work.output, bias, d);
      }
      /* Always: otherwise these registers would stay in use through the code above. */
      gemm_pack_all<Tile::TYPE, Tile::TILE_N>(carried, d);
    } while (!done.last);
    if (carrying) {
#pragma unroll
      for (int chunk = 0; chunk < CHUNKS; chunk++) {
        gemm_store_carried<Tile>(&staging, carried, chunk, work, done, warp);
      }
    }
    if (threadIdx.x % 32 == 0) bulk_wait_group_read(0); /* shared memory must outlive the stores */
  }
};

#endif
