/* gemm_carry.cuh: the kernel for products with many tiles, that of ../pipelined_gemm.cu for every type and layout,
 * and for several widths of tiles. As many clusters as fit stay on the chip and take tile after tile; the last ones
 * are shared by all (../tile_shares.cuh): then a cluster gives its sums to the next, through global memory.
 *
 * A single accumulator cannot be stored while wgmma adds to it. So a finished tile is rounded to 16 bits and
 * carried in half as many registers. The accumulator is then free for the next tile at once, and in each of
 * that tile's first steps some of the carried tile is stored while the tensor cores multiply. A C in fp32 would
 * need as many registers again: it is stored at once. Rows of C must be aligned for TMA. */
#ifndef PIPELINED_GEMM_GEMM_CARRY_CUH
#define PIPELINED_GEMM_GEMM_CARRY_CUH

#include "../../03_tma_store/tma_store.cuh"
#include "gemm_epilogue.cuh"
#include "gemm_operands.cuh"

constexpr int GEMM_CARRY_STEPS =
    4; /* in which a tile is stored; a shorter k is filled up with zeros */

template <int TYPE_, int MAJOR_A_, int MAJOR_B_, int TILE_N_, bool SWAPPED_, bool PLAIN_>
struct GemmCarryTile {
  static constexpr int TYPE = TYPE_;
  static constexpr int MAJOR_A = MAJOR_A_;
  static constexpr int MAJOR_B = MAJOR_B_;
  static constexpr int TILE_M = 128;
  static constexpr int TILE_N = TILE_N_;     /* a multiple of 16 */
  static constexpr bool SWAPPED = SWAPPED_;  /* computes transpose(C), and stores C */
  static constexpr bool PLAIN = PLAIN_;      /* only rounds */
  static constexpr int SLICE_N = TILE_N / 2; /* what one block of the cluster loads of B */
  static constexpr int BOX_N = gemm_carry_box(TILE_N); /* a warp stores boxes of 16 x BOX_N */
  static constexpr int BOX_BYTES = 16 * BOX_N * 2;
  static constexpr int CHUNKS = TILE_N / BOX_N;
  static constexpr int CHUNKS_A_STEP = (CHUNKS + GEMM_CARRY_STEPS - 1) / GEMM_CARRY_STEPS;
  static constexpr int BOXES = /* that a warp has, used in turn */
      (TILE_N > 192 ? 2 : 1) * GEMM_STAGING_BYTES / BOX_BYTES;
  static constexpr int CONSUMERS = TILE_M / 64; /* warpgroups of 64 rows each */
  static constexpr int CONSUMER_THREADS = CONSUMERS * 128;
  static constexpr int THREADS = 128 + CONSUMER_THREADS; /* the producer's warpgroup first */
  static constexpr int STAGE_BYTES = (TILE_M + TILE_N) * GEMM_ROW_BYTES;
  static constexpr int MOST_STAGES =
      (GEMM_MOST_SHARED_BYTES - 2048 - CONSUMERS * 4 * BOXES * BOX_BYTES) / STAGE_BYTES;
  static constexpr int STAGES = MOST_STAGES < 6 ? MOST_STAGES : 6;
  /* A kernel of 384 threads starts with 168 registers a thread. The producer's warpgroup gives back what it does
   * not need. */
  static constexpr int PRODUCER_REGISTERS = 56;
  static constexpr int CONSUMER_REGISTERS = 224;
  typedef GemmCluster<2, 1> Cluster;
  struct Shared {
    uint8_t a[STAGES][TILE_M * GEMM_ROW_BYTES];
    uint8_t b[STAGES][TILE_N * GEMM_ROW_BYTES];
    uint8_t staging[CONSUMERS * 4][BOXES][BOX_BYTES];
    uint64_t full[STAGES];
    uint64_t empty[STAGES];
  };
};

/* Where a tile of a block's cluster lies in C. The two blocks of a cluster lie one above the other. If the number
 * of rows of tiles is odd, the tiles of the last row come last, in pairs beside each other: these share nothing. */
template <class Tile>
struct GemmCarryPlace {
  int row, column, batch;
  bool beside;

  static __device__ __forceinline__ GemmCarryPlace of(const GemmWork &work, int tile,
                                                      const typename Tile::Cluster &cluster) {
    GemmCarryPlace place;
    place.batch = tile / work.tiles;
    tile -= place.batch * work.tiles;
    int last_row = tile - work.order.rows * work.order.columns;
    place.beside = last_row >= 0;
    if (place.beside) {
      place.row = work.order.rows * 2 * Tile::TILE_M;
      place.column = (last_row * 2 + (int)cluster.m) * Tile::TILE_N;
      return place;
    }
    TilePlace at = tile_place(work.order, tile);
    place.row = (at.row * 2 + (int)cluster.m) * Tile::TILE_M;
    place.column = at.column * Tile::TILE_N;
    return place;
  }
};

/* Called by each cluster every GEMM_PACE steps: waits until all others have reached the place where it was
 * at the previous call. Otherwise, over thousands of steps, the clusters drift so far apart that L2 loses what
 * the first ones have read before the last ones need it. Only the speed depends on this wait: a cluster that
 * has given up waiting once never waits again. */
constexpr int GEMM_PACE = 16, GEMM_PATIENCE = 100;

static __device__ __forceinline__ void gemm_keep_pace(uint32_t *pace, uint32_t time, uint32_t times,
                                                      uint32_t clusters, int *patience) {
  /* Whoever is last resets it for the next launch. */
  if (atomicAdd(pace, 1) + 1 == times * clusters) *(volatile uint32_t *)pace = 0;
  if (time + 1 == times) return;
  int looks = 0;
  while (looks < *patience && *(volatile uint32_t *)pace < time * clusters) looks++;
  if (looks == GEMM_PATIENCE) *patience = 0;
}

/* One thread loads. */
template <class Tile>
static __device__ __forceinline__ void gemm_produce_carry(const CUtensorMap *map_a,
                                                          const CUtensorMap *map_b,
                                                          const GemmWork &work,
                                                          typename Tile::Shared *shared,
                                                          const typename Tile::Cluster &cluster) {
  int slice_n = (int)cluster.m * Tile::SLICE_N;
  int patience = GEMM_PATIENCE,
      paced = work.pace != NULL && cluster.m == 0 ? work.shares.whole * work.shares.steps : 0;
  int worker = (int)blockIdx.x / 2, count = 0; /* of steps, over all tiles */
  uint32_t stage = 0, parity = 0;
  TilePiece piece;
  gemm_wait_for_earlier_kernels();
  for (int number = 0; tile_piece(work.shares, worker, number, &piece); number++) {
    GemmCarryPlace<Tile> place = GemmCarryPlace<Tile>::of(work, piece.tile, cluster);
    int batch_a = work.shared_operands & 1 ? 0 : place.batch;
    int batch_b = work.shared_operands & 2 ? 0 : place.batch;
    for (int step = piece.first; step < piece.end; step++, count++) {
      if (count < paced && count % GEMM_PACE == 0) {
        gemm_keep_pace(work.pace, count / GEMM_PACE, gemm_divide_up(paced, GEMM_PACE),
                       work.shares.clusters, &patience);
      }
      uint64_t *full = &shared->full[stage];
      mbarrier_wait_parity(&shared->empty[stage], parity ^ 1);
      mbarrier_arrive_expect_tx(full, Tile::STAGE_BYTES);
      int k = step * gemm_step_k(Tile::TYPE);
      gemm_load<Tile::MAJOR_A, Tile::TILE_M, false>(shared->a[stage], map_a, place.row, k, batch_a,
                                                    full, 0);
      for (int slice = 0; slice < Tile::TILE_N && place.beside; slice += Tile::SLICE_N) {
        gemm_load<Tile::MAJOR_B, Tile::SLICE_N, false>(shared->b[stage] + slice * GEMM_ROW_BYTES,
                                                       map_b, place.column + slice, k, batch_b,
                                                       full, 0);
      }
      if (!place.beside) {
        gemm_load<Tile::MAJOR_B, Tile::SLICE_N, true>(shared->b[stage] + slice_n * GEMM_ROW_BYTES,
                                                      map_b, place.column + slice_n, k, batch_b,
                                                      full, cluster.mask_b());
      }
      gemm_advance(Tile::STAGES, &stage, &parity);
    }
  }
  /* A block must not end while a peer may still arrive in it: until all stages are free again. */
  for (int i = 0; i < Tile::STAGES; i++) {
    mbarrier_wait_parity(&shared->empty[stage], parity ^ 1);
    gemm_advance(Tile::STAGES, &stage, &parity);
  }
}

/* A thread's sums of a shared tile: given where the same thread of the next cluster looks for them, and taken. Each
 * warp has a flag that says that its sums are there. */
template <class Tile>
static __device__ __forceinline__ void gemm_give(float4 *sums, const float *d) {
#pragma unroll
  for (int i = 0; i < Tile::TILE_N / 8; i++) {
    sums[i * Tile::CONSUMER_THREADS] =
        make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
  }
}

template <class Tile>
static __device__ __forceinline__ void gemm_take(const float4 *sums, float *d) {
#pragma unroll
  for (int i = 0; i < Tile::TILE_N / 8; i++) {
    float4 four = __ldcg(&sums[i * Tile::CONSUMER_THREADS]);
    d[4 * i] += four.x, d[4 * i + 1] += four.y, d[4 * i + 2] += four.z, d[4 * i + 3] += four.w;
  }
}

static __device__ __forceinline__ void gemm_raise_flag(uint32_t *flag) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
  }
}

static __device__ __forceinline__ void gemm_wait_for_flag(uint32_t *flag) {
  if (threadIdx.x % 32 == 0) {
    uint32_t raised = 0;
    while (raised == 0) {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
    }
    *flag = 0; /* for the next launch */
  }
  __syncwarp();
}

/* alpha, bias, old C and activation, in the registers: a lane has two neighbours of every 8 columns, in two rows. */
template <class Tile>
struct GemmCarryEnd {
  enum { SIXTY_FOURS = (Tile::TILE_N + 63) / 64 };
  uint32_t bias[SIXTY_FOURS]; /* of 16 bits: a pair of each 64 columns, read early */

  __device__ __forceinline__ void read_bias(const GemmOutput &output, int column) {
    column += (int)threadIdx.x % 32 * 2;
#pragma unroll
    for (int i = 0; i < SIXTY_FOURS; i++) {
      bool has = output.bias != NULL && output.type != GEMM_FP32 && column + 64 * i < output.n;
      bias[i] = has ? *(const uint32_t *)((const uint16_t *)output.bias + column + 64 * i) : 0;
    }
  }

  /* Two neighbours of C or of the bias; zeros if they are not there. n is even, so both are or none. */
  template <bool FP32>
  static __device__ __forceinline__ float2 read_two(const void *from, int64_t at, bool there) {
    if (FP32) return there ? *(const float2 *)((const float *)from + at) : make_float2(0, 0);
    return gemm_unpack<Tile::TYPE>(there ? *(const uint32_t *)((const uint16_t *)from + at) : 0);
  }

  /* d = d + beta * C. Unless all of some reads are on their way before the first is used, each waits for memory. */
  template <bool FP32>
  static __device__ __forceinline__ void add_old(const GemmOutput &output, int row, int column,
                                                 int64_t first, float *d) {
    enum { AT_ONCE = 16 };
#pragma unroll
    for (int from = 0; from < Tile::TILE_N / 4; from += AT_ONCE) {
      float2 old[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) { /* even: the upper row */
        int at = (from + i) / 2 * 8, down = i % 2 * 8;
        old[i] = read_two<FP32>(output.c, first + down * output.row_stride + at,
                                row + down < output.m && column + at < output.n);
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        d[2 * (from + i)] += output.beta * old[i].x,
            d[2 * (from + i) + 1] += output.beta * old[i].y;
      }
    }
  }

  __device__ __forceinline__ void finish(const GemmOutput &output, int row, int column, int batch,
                                         float *d) const {
    float alpha = gemm_alpha<Tile::TYPE>(output);
    bool fp32 = output.type == GEMM_FP32;
    row += (int)threadIdx.x % 32 / 4, column += (int)threadIdx.x % 4 * 2;
    int64_t first = batch * output.batch_stride + row * output.row_stride + column;
#pragma unroll
    for (int i = 0; i < Tile::TILE_N / 8; i++) {
      int holder = i % 8 * 4 + (int)threadIdx.x % 4; /* the lane that has read this pair */
      float2 sum = gemm_unpack<Tile::TYPE>(__shfl_sync(0xFFFFFFFF, bias[i / 8], holder));
      d[4 * i] = alpha * d[4 * i] + sum.x, d[4 * i + 1] = alpha * d[4 * i + 1] + sum.y;
      d[4 * i + 2] = alpha * d[4 * i + 2] + sum.x, d[4 * i + 3] = alpha * d[4 * i + 3] + sum.y;
    }
    if (fp32 && output.bias != NULL) {
#pragma unroll
      for (int i = 0; i < Tile::TILE_N / 8; i++) {
        float2 sum = read_two<true>(output.bias, column + 8 * i, column + 8 * i < output.n);
        d[4 * i] += sum.x, d[4 * i + 1] += sum.y, d[4 * i + 2] += sum.x, d[4 * i + 3] += sum.y;
      }
    }
    if (output.beta != 0 && fp32) add_old<true>(output, row, column, first, d);
    if (output.beta != 0 && !fp32) add_old<false>(output, row, column, first, d);
    gemm_activate<Tile::TILE_N / 2>(output, d);
    if (!fp32) return;
#pragma unroll
    for (int i = 0; i < Tile::TILE_N / 4; i++) { /* even: the upper row */
      int at = i / 2 * 8, down = i % 2 * 8;
      if (row + down >= output.m || column + at >= output.n) continue;
      *(float2 *)((float *)output.c + first + down * output.row_stride + at) =
          make_float2(d[2 * i], d[2 * i + 1]);
    }
  }
};

/* A warpgroup that multiplies and stores. */
template <class Tile>
struct GemmCarryConsumer {
  typename Tile::Shared *shared;
  uint64_t first_a, first_b; /* descriptors of stage 0 */
  uint32_t peer_empty;       /* the `empty` barriers of this lane's peer, if it has one */
  uint32_t stage, parity;    /* the next, and */
  uint32_t held;             /* the one before it: in use until freed */

  __device__ __forceinline__ void multiply(float *d, bool accumulate) {
    mbarrier_wait_parity(&shared->full[stage], parity);
    gemm_multiply_step<Tile::TILE_N, Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B>(
        d, first_a + stage * (sizeof(shared->a[0]) / 16),
        first_b + stage * (sizeof(shared->b[0]) / 16), accumulate);
    wgmma_commit();
  }

  /* Frees the stage of the step before, if there was one, as soon as its wgmma is done. */
  __device__ __forceinline__ void end_step(bool is_first) {
    if (!is_first) {
      wgmma_wait_all_but_one();
      free_held();
    }
    held = stage;
    gemm_advance(Tile::STAGES, &stage, &parity);
  }

  __device__ __forceinline__ void free_held(void) {
    gemm_free_stage<Tile::Cluster::PEERS>(shared->empty, peer_empty, held);
  }

  /* Starts to store the carried chunks number [from, to). */
  static __device__ __forceinline__ void store(const GemmWork &work,
                                               uint8_t (*boxes)[Tile::BOX_BYTES],
                                               const uint32_t *carried, int from, int to,
                                               const GemmCarryPlace<Tile> &place, int warp) {
    bool first_lane = threadIdx.x % 32 == 0;
#pragma unroll
    for (int i = 0; i < Tile::CHUNKS; i++) {
      if (i < from || i >= to) continue;
      uint8_t *box = boxes[i % Tile::BOXES];
      if (first_lane && i == 0) bulk_wait_group_read<0>();
      if (first_lane && i > 0) bulk_wait_group_read<Tile::BOXES - 1>();
      __syncwarp(); /* what was in the box has been read */
      int row = place.row + warp * 16, column = place.column + i * Tile::BOX_N;
      if (Tile::SWAPPED) {
        gemm_stage_transposed<Tile::BOX_N>(box, carried + i * (Tile::BOX_N / 4));
      } else {
        gemm_stage_packed<Tile::BOX_N>(box, carried + i * (Tile::BOX_N / 4));
      }
      fence_proxy_async();
      __syncwarp();
      if (!first_lane) continue;
      tma_store_3d(&work.c, box, Tile::SWAPPED ? row : column, Tile::SWAPPED ? column : row,
                   place.batch);
      bulk_commit_group();
    }
  }

  __device__ __forceinline__ void run(const GemmWork &work, const typename Tile::Cluster &cluster) {
    enum { THREADS = Tile::CONSUMER_THREADS, FOURS = Tile::TILE_N / 8, WARPS = THREADS / 32 };
    int warp = (int)threadIdx.x / 32 - 4, worker = (int)blockIdx.x / 2;
    float4 *sums = work.parts + (size_t)blockIdx.x * FOURS * THREADS + threadIdx.x - 128;
    uint32_t *flag = work.counters + blockIdx.x * WARPS + warp;
    uint8_t(*boxes)[Tile::BOX_BYTES] = shared->staging[warp];
    bool carrying = false, given = false;
    float d[Tile::TILE_N / 2];
    uint32_t carried[Tile::TILE_N / 4];
    GemmCarryPlace<Tile> place = {0, 0, 0, false}; /* of the carried tile */
    TilePiece piece;
    for (int number = 0; tile_piece(work.shares, worker, number, &piece); number++) {
#pragma unroll
      for (int step = 0; step < GEMM_CARRY_STEPS; step++) {
        multiply(d, step > 0);
        if (carrying) {
          store(work, boxes, carried, step * Tile::CHUNKS_A_STEP, (step + 1) * Tile::CHUNKS_A_STEP,
                place, warp);
        }
        if (step == 0 && given) gemm_raise_flag(flag); /* the sums have had time to get there */
        end_step(step == 0);
      }
      for (int step = piece.first + GEMM_CARRY_STEPS; step < piece.end; step++) {
        multiply(d, true);
        end_step(false);
      }
      place = GemmCarryPlace<Tile>::of(work, piece.tile, cluster);
      given = piece.end < work.shares.steps;
      carrying = !given && work.output.type != GEMM_FP32;
      GemmCarryEnd<Tile> end;
      if (!Tile::PLAIN && !work.output.plain) end.read_bias(work.output, place.column);
      wgmma_wait_all();
      free_held();
      if (piece.first > 0) {
        gemm_wait_for_flag(flag - 2 * WARPS);
        gemm_take<Tile>(sums - 2 * FOURS * THREADS, d);
      }
      if (given) gemm_give<Tile>(sums, d);
      if (!Tile::PLAIN && !work.output.plain && !given) {
        end.finish(work.output, place.row + warp * 16, place.column, place.batch, d);
      }
      float scales = Tile::PLAIN || work.output.plain ? gemm_alpha<Tile::TYPE>(work.output) : 1;
      gemm_pack_all<Tile::TYPE, Tile::TILE_N>(carried, d, scales);
    }
    if (given) gemm_raise_flag(flag);
    if (carrying) store(work, boxes, carried, 0, Tile::CHUNKS, place, warp);
    if (threadIdx.x % 32 == 0)
      bulk_wait_group_read<0>(); /* shared memory must outlive the stores */
  }
};

template <class Tile>
static __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(Tile::THREADS, 1)
    gemm_carry(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               const __grid_constant__ GemmWork work) {
  gemm_prefetch_maps(&map_a, &map_b);
  extern __shared__ uint8_t gemm_dynamic_shared[];
  typename Tile::Shared *shared = (typename Tile::Shared *)gemm_align_1024(gemm_dynamic_shared);
  uint32_t warpgroup = gemm_uniform(threadIdx.x / 128);
  typename Tile::Cluster cluster = Tile::Cluster::of(cluster_rank());

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Tile::STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], Tile::CONSUMERS * 4 * Tile::Cluster::PEERS);
    }
    fence_mbarrier_init();
    gemm_let_next_kernel_start();
  }
  cluster_sync();

  if (warpgroup == 0) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (threadIdx.x == 0) gemm_produce_carry<Tile>(&map_a, &map_b, work, shared, cluster);
  } else {
    setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
    GemmCarryConsumer<Tile> consumer = {};
    consumer.shared = shared;
    consumer.first_a =
        gemm_descriptor<Tile::MAJOR_A>(shared->a[0] + (warpgroup - 1) * 64 * GEMM_ROW_BYTES);
    consumer.first_b = gemm_descriptor<Tile::MAJOR_B>(shared->b[0]);
    if (threadIdx.x % 32 < Tile::Cluster::PEERS) {
      consumer.peer_empty = mapa_shared(shared->empty, cluster.peer(threadIdx.x % 32));
    }
    consumer.run(work, cluster);
  }
}

#endif
