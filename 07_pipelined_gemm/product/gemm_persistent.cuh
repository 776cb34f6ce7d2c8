/* gemm_persistent.cuh: the kernel for products with many tiles. As many clusters as fit stay on the
 * chip and take tile after tile; the tiles left over after the last full round are shared by all
 * (tile_shares.cuh).
 *
 * The accumulator is in two halves, left and right. At the end of a tile the left half is stored
 * while the tensor cores still multiply the right one, and the right half while they begin with the
 * next tile's left: the ring of stages never runs dry, and the tensor cores rarely wait. */
#ifndef PIPELINED_GEMM_GEMM_PERSISTENT_CUH
#define PIPELINED_GEMM_GEMM_PERSISTENT_CUH

#include "gemm_epilogue.cuh"
#include "gemm_operands.cuh"
#include "gemm_parts.cuh"

/* What the producer tells the consumers about a piece of work. */
typedef struct {
  int row, column, batch; /* of this CTA's tile of C */
  int steps;
  int takes;       /* this many clusters before this one contribute to it */
  int given, last; /* as bool; but a struct with padding could not be copied unread */
} GemmPiece;

template <int TYPE_, int MAJOR_A_, int MAJOR_B_, int TILE_M_, int LEFT_N_, int RIGHT_N_,
          int CLUSTER_M_, int CLUSTER_N_, int STAGES_, int BOXES_, bool TRACED_ = false,
          bool FINISHES_ = false, bool FP32_ = false>
struct GemmPersistentTile {
  static constexpr int TYPE = TYPE_;
  static constexpr int MAJOR_A = MAJOR_A_;
  static constexpr int MAJOR_B = MAJOR_B_;
  static constexpr int TILE_M = TILE_M_;
  static constexpr int LEFT_N = LEFT_N_;
  static constexpr int RIGHT_N = RIGHT_N_;
  static constexpr int TILE_N = LEFT_N + RIGHT_N;
  static constexpr int CLUSTER_M = CLUSTER_M_;
  static constexpr int CLUSTER_N = CLUSTER_N_;
  static constexpr int CLUSTER_SIZE = CLUSTER_M * CLUSTER_N;
  static constexpr int STAGES = STAGES_;
  static constexpr int LEAST_STEPS = RIGHT_N > 0 ? 2 : GEMM_CARRY_STEPS; /* of a piece */
  static constexpr bool FP32 = FP32_; /* if it carries: C is in fp32, else 16 bits */
  static constexpr int CHUNK_N =
      FP32 ? GEMM_FP32_CHUNK_N : gemm_chunk_n(LEFT_N | RIGHT_N); /* divides both */
  static constexpr int BOX_BYTES = 32 * (FP32 ? 64 : gemm_line_n(CHUNK_N));
  static constexpr int BOXES = BOXES_;    /* of 16 rows, in which a warp stages C */
  static constexpr bool TRACED = TRACED_; /* with a clock */
  static constexpr bool FINISHES =
      FINISHES_; /* for products with an epilogue, others for those without */
  /* A tile of C also goes through the ring, if it is carried: as boxes that are 128 bytes wide, as many in
   * a stage as fit into its A and B. The old C arrives in them. Of a new C in fp32, for which there are not
   * enough registers, a stage of boxes is stored at once, the warps' own boxes too, and the rest is carried. */
  static constexpr int RING_BOX_N = FP32 ? 32 : 64; /* columns */
  static constexpr int RING_BOX_BYTES = TILE_M * 128;
  static constexpr int RING_BOXES = TILE_N / RING_BOX_N; /* of a tile; */
  static constexpr int IN_STAGE = 1 + TILE_N / TILE_M;   /* and of a stage */
  static constexpr int MOST_AT_ONCE = IN_STAGE + BOXES;
  static constexpr int STORED_AT_ONCE = !FP32                       ? 0
                                        : RING_BOXES < MOST_AT_ONCE ? RING_BOXES
                                                                    : MOST_AT_ONCE;
  static_assert(!FINISHES || TILE_N % RING_BOX_N == 0, "no box reaches into the next tile");
  /* And so does what another cluster contributes to a shared tile: rows of 16 bytes for each consumer thread. */
  static constexpr int PART_ROW_BYTES = TILE_M * 32;
  static constexpr int PART_ROWS = TILE_N / 8;
  static constexpr int PART_ROWS_IN_A = 4; /* of a stage: TILE_M * 128 bytes */
  static constexpr int PART_ROWS_IN_STAGE = PART_ROWS_IN_A + TILE_N * 4 / TILE_M;
  static constexpr int CONSUMERS = TILE_M / 64; /* warpgroups of 64 rows each */
  static constexpr int CONSUMER_THREADS = CONSUMERS * 128;
  static constexpr int THREADS = 128 + CONSUMER_THREADS; /* the producer's warpgroup first */
  static constexpr int SLICE_M = TILE_M / CLUSTER_N;     /* what one CTA loads of A, and of B */
  static constexpr int SLICE_N = TILE_N / CLUSTER_M;
  static constexpr int STAGE_BYTES = (TILE_M + TILE_N) * GEMM_ROW_BYTES;
  /* A kernel of 384 threads starts with at most 168 registers a thread (65,536 by 384, rounded
     * down to a multiple of 8). The producer's warpgroup gives back what it does not need. */
  static constexpr int PRODUCER_REGISTERS = CONSUMERS == 2 ? (RIGHT_N > 0 ? 72 : 56) : 56;
  static constexpr int CONSUMER_REGISTERS = CONSUMERS == 2 ? (RIGHT_N > 0 ? 216 : 224) : 152;
  static constexpr int MOVES_REGISTERS =
      CONSUMERS > 1; /* with one consumer there are enough for all */
  /* TMA stores what is only rounded. An epilogue has fewer columns at a time, for which the registers suffice,
   * and ordinary stores. */
  static constexpr int TMA_BOXES = FINISHES && RIGHT_N > 0 ? 0 : BOXES;
  static constexpr int STORE_N = FINISHES && CONSUMERS > 2 ? 16 : CHUNK_N;
  typedef typename GemmChunks<STORE_N, TMA_BOXES>::Addends Addends;
  typedef GemmCluster<CLUSTER_M, CLUSTER_N> Cluster;
  struct Shared {
    uint8_t a[STAGES][TILE_M * GEMM_ROW_BYTES];
    uint8_t b[STAGES][TILE_N * GEMM_ROW_BYTES];
    uint8_t staging[CONSUMERS * 4][BOXES * BOX_BYTES];
    uint64_t full[STAGES];
    uint64_t empty[STAGES];
    GemmPiece piece[STAGES]; /* that begins with this stage */
  };
};

/* threadIdx.x, asked anew each time: what is computed from it does not stay in registers from tile to tile,
 * of which some kernels have none left. */
static __device__ __forceinline__ uint32_t gemm_thread(void) {
  uint32_t thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

/* The ring's next stage, and the parity of the phase that it is in. */
template <int STAGES>
static __device__ __forceinline__ void gemm_advance(uint32_t *stage, uint32_t *parity) {
  if (++*stage == STAGES) *stage = 0, *parity ^= 1;
}

template <class Tile>
static __device__ __forceinline__ void gemm_record(const GemmWork &work, int actor, int *events,
                                                   GemmEventKind kind, uint32_t step) {
  if (!Tile::TRACED || blockIdx.x != 0 || threadIdx.x % 128 != 0 || *events >= GEMM_EVENTS) return;
  GemmEvent event = {clock64(), kind, (int32_t)step};
  work.trace[actor * GEMM_EVENTS + (*events)++] = event;
}

/* ---- The producer: one thread that loads ---- */

template <class Tile>
static __device__ __forceinline__ void gemm_describe_piece(const GemmWork &work, GemmPiece *told,
                                                           TilePiece piece, int worker, int row,
                                                           int column, int batch, bool last) {
  told->row = row;
  told->column = column;
  told->batch = batch;
  told->steps = piece.end - piece.first;
  told->takes = tile_contributions(work.shares, worker, piece);
  told->given = piece.end < work.shares.steps;
  told->last = last;
}

/* Where box number `box` of a tile of C lies in its stage. */
template <class Tile>
static __device__ __forceinline__ uint8_t *gemm_ring_box(typename Tile::Shared *shared,
                                                         uint32_t stage, int box) {
  int place = box % Tile::IN_STAGE;
  return place == 0 ? shared->a[stage] : shared->b[stage] + (place - 1) * Tile::RING_BOX_BYTES;
}

/* Loads the old C of this CTA's tile into the stages behind its last step. */
template <class Tile>
static __device__ __forceinline__ void gemm_produce_old(const GemmWork &work,
                                                        typename Tile::Shared *shared, int row,
                                                        int column, int batch, uint32_t *stage,
                                                        uint32_t *parity) {
#pragma unroll 1
  for (int first = 0; first < Tile::RING_BOXES; first += Tile::IN_STAGE) {
    int left = Tile::RING_BOXES - first;
    int boxes = left < Tile::IN_STAGE ? left : Tile::IN_STAGE;
    uint64_t *full = &shared->full[*stage];
    mbarrier_wait_parity(&shared->empty[*stage], *parity ^ 1);
    mbarrier_arrive_expect_tx(full, boxes * Tile::RING_BOX_BYTES);
    for (int box = 0; box < boxes; box++) {
      tma_load_3d(gemm_ring_box<Tile>(shared, *stage, box), &work.old,
                  column + (first + box) * Tile::RING_BOX_N, row, batch, full);
    }
    gemm_advance<Tile::STAGES>(stage, parity);
  }
}

/* Loads what other clusters contribute to this CTA's tile into the stages behind its last step. */
template <class Tile>
static __device__ __forceinline__ void gemm_produce_parts(const GemmWork &work,
                                                          typename Tile::Shared *shared, int takes,
                                                          uint32_t *stage, uint32_t *parity) {
  enum { THREADS = Tile::CONSUMER_THREADS, ROW_BYTES = Tile::PART_ROW_BYTES };
#pragma unroll 1
  for (int i = 1; i <= takes; i++) {
    uint32_t from = blockIdx.x - i * Tile::CLUSTER_SIZE;
    gemm_wait_for_warps(&work.flags[from], THREADS / 32);
    const uint8_t *part = (const uint8_t *)gemm_part<THREADS, Tile::TILE_N>(work, from, 0, 0);
#pragma unroll 1
    for (int first = 0; first < Tile::PART_ROWS; first += Tile::PART_ROWS_IN_STAGE) {
      int left = Tile::PART_ROWS - first;
      int rows = left < Tile::PART_ROWS_IN_STAGE ? left : Tile::PART_ROWS_IN_STAGE;
      int in_a = left < Tile::PART_ROWS_IN_A ? left : Tile::PART_ROWS_IN_A;
      uint64_t *full = &shared->full[*stage];
      mbarrier_wait_parity(&shared->empty[*stage], *parity ^ 1);
      mbarrier_arrive_expect_tx(full, rows * ROW_BYTES);
      bulk_load(shared->a[*stage], part + first * ROW_BYTES, in_a * ROW_BYTES, full);
      if (rows > in_a) {
        bulk_load(shared->b[*stage], part + (first + in_a) * ROW_BYTES, (rows - in_a) * ROW_BYTES,
                  full);
      }
      gemm_advance<Tile::STAGES>(stage, parity);
    }
  }
}

template <class Tile>
static __device__ __forceinline__ void gemm_produce(const CUtensorMap *map_a,
                                                    const CUtensorMap *map_b, const GemmWork &work,
                                                    typename Tile::Shared *shared, uint32_t rank) {
  typename Tile::Cluster cluster = Tile::Cluster::of(rank);
  uint16_t mask_a = cluster.mask_a(), mask_b = cluster.mask_b();
  uint32_t stage = 0, parity = 0, count = 0;
  int events = 0, patience = GEMM_PATIENCE, worker = blockIdx.x / Tile::CLUSTER_SIZE;
  TilePiece piece, next;
  bool more = tile_piece(work.shares, worker, 0, &next);
  for (int index = 1; more; index++) {
    piece = next;
    more = tile_piece(work.shares, worker, index, &next);
    int batch = piece.tile / work.tiles;
    TilePlace place = tile_place(work.order, piece.tile - batch * work.tiles);
    int row = (place.row * Tile::CLUSTER_M + (int)cluster.m) * Tile::TILE_M;
    int column = (place.column * Tile::CLUSTER_N + (int)cluster.n) * Tile::TILE_N;
    int batch_a = work.shared_operands & 1 ? 0 : batch,
        batch_b = work.shared_operands & 2 ? 0 : batch;
    int slice_m = cluster.n * Tile::SLICE_M, slice_n = cluster.m * Tile::SLICE_N;
    if (index == 1) gemm_wait_for_earlier_kernels();
    for (int step = piece.first; step < piece.end; step++) {
      if (work.pace && rank == 0 && index <= work.shares.whole && step % GEMM_PACE == 0) {
        gemm_keep_pace(work, index - 1, step, &patience);
      }
      uint64_t *full = &shared->full[stage];
      mbarrier_wait_parity(&shared->empty[stage], parity ^ 1);
      if (step == piece.first) {
        gemm_describe_piece<Tile>(work, &shared->piece[stage], piece, worker, row, column, batch,
                                  !more);
      }
      mbarrier_arrive_expect_tx(full, Tile::STAGE_BYTES);
      gemm_load<Tile::MAJOR_A, Tile::SLICE_M, (Tile::CLUSTER_N > 1)>(
          shared->a[stage] + slice_m * GEMM_ROW_BYTES, map_a, row + slice_m,
          step * gemm_step_k(Tile::TYPE), batch_a, full, mask_a);
      gemm_load<Tile::MAJOR_B, Tile::SLICE_N, (Tile::CLUSTER_M > 1)>(
          shared->b[stage] + slice_n * GEMM_ROW_BYTES, map_b, column + slice_n,
          step * gemm_step_k(Tile::TYPE), batch_b, full, mask_b);
      gemm_record<Tile>(work, 0, &events, GEMM_LOAD_ISSUED, count++);
      gemm_advance<Tile::STAGES>(&stage, &parity);
    }
    if (piece.end != work.shares.steps) continue;
    if (Tile::RIGHT_N == 0) {
      int takes = tile_contributions(work.shares, worker, piece);
      gemm_produce_parts<Tile>(work, shared, takes, &stage, &parity);
    }
    if (Tile::FINISHES && Tile::RIGHT_N == 0 && work.output.beta != 0) {
      gemm_produce_old<Tile>(work, shared, row, column, batch, &stage, &parity);
    }
    if (Tile::FP32) { /* a stage for the consumers to write to */
      mbarrier_wait_parity(&shared->empty[stage], parity ^ 1);
      mbarrier_arrive(&shared->full[stage]);
      gemm_advance<Tile::STAGES>(&stage, &parity);
    }
  }
  /* A CTA must not end while a peer may still arrive in it: until all stages are free again. */
  for (int i = 0; i < Tile::STAGES && Tile::CLUSTER_SIZE > 1; i++) {
    mbarrier_wait_parity(&shared->empty[stage], parity ^ 1);
    gemm_advance<Tile::STAGES>(&stage, &parity);
  }
}

/* ---- The consumers: warpgroups that multiply and store ---- */

template <class Tile>
struct GemmConsumer {
  typename Tile::Shared *shared;
  uint64_t first_a, first_b; /* descriptors of stage 0 */
  uint64_t a, b;             /* of the current stage */
  uint32_t peer_empty;       /* the `empty` barriers of this lane's peer, if it has one */
  uint32_t own_lane;         /* whose peer is this CTA itself */
  uint32_t stage, parity;    /* the next */
  uint32_t held;             /* the stage before the current: in use until freed */
  uint32_t count;            /* of steps, over all tiles */
  int events;

  __device__ __forceinline__ void wait_for_stage(const GemmWork &work, int actor) {
    mbarrier_wait_parity(&shared->full[stage], parity);
    gemm_record<Tile>(work, actor, &events, GEMM_LANDED, count);
    a = first_a + stage * (sizeof(shared->a[0]) / 16);
    b = first_b + stage * (sizeof(shared->b[0]) / 16);
  }

  static __device__ __forceinline__ GemmConsumer of(typename Tile::Shared *shared,
                                                    uint32_t warpgroup, uint32_t rank) {
    uint32_t lane = threadIdx.x % 32;
    GemmConsumer c = {};
    c.shared = shared;
    c.own_lane = Tile::Cluster::of(rank).m;
    c.first_a =
        gemm_descriptor<Tile::MAJOR_A>(shared->a[0] + (warpgroup - 1) * 64 * GEMM_ROW_BYTES);
    c.first_b = gemm_descriptor<Tile::MAJOR_B>(shared->b[0]);
    if (Tile::CLUSTER_SIZE > 1 && lane < Tile::Cluster::PEERS) {
      c.peer_empty = mapa_shared(shared->empty, Tile::Cluster::of(rank).peer(lane));
    }
    return c;
  }

  /* Lane i of each warp tells peer i. */
  __device__ __forceinline__ void free_stage(const GemmWork &work, int actor, uint32_t which,
                                             uint32_t step) {
    uint32_t lane = threadIdx.x % 32;
    if (Tile::CLUSTER_SIZE == 1) {
      if (lane == 0) mbarrier_arrive(&shared->empty[which]);
    } else if (lane < Tile::Cluster::PEERS) {
      mbarrier_arrive_cluster(peer_empty + which * (uint32_t)sizeof(uint64_t));
    }
    gemm_record<Tile>(work, actor, &events, GEMM_CONSUMED, step);
  }

  __device__ __forceinline__ void advance(void) {
    held = stage;
    count++;
    gemm_advance<Tile::STAGES>(&stage, &parity);
  }

  /* The piece that begins with the current stage. One lane reads it and passes it on: the lane that later
   * arrives at this CTA's own `empty` barrier. That arrival lets the producer write the next piece, so the
   * order of one thread is enough to have the read before the write. */
  __device__ __forceinline__ GemmPiece read_piece(void) const {
    const GemmPiece *told = &shared->piece[stage];
    bool reads = gemm_thread() % 32 == own_lane;
    GemmPiece piece;
    piece.row = pass_on(reads ? told->row : 0);
    piece.column = pass_on(reads ? told->column : 0);
    piece.batch = pass_on(reads ? told->batch : 0);
    piece.steps = pass_on(reads ? told->steps : 0);
    piece.takes = pass_on(reads ? told->takes : 0);
    piece.given = pass_on(reads ? told->given : 0);
    piece.last = pass_on(reads ? told->last : 0);
    return piece;
  }

  __device__ __forceinline__ int pass_on(int value) const {
    return __shfl_sync(0xFFFFFFFF, value, (int)own_lane);
  }

  __device__ __forceinline__ void multiply_left(float *left, bool accumulate) {
    gemm_multiply_step<Tile::LEFT_N, Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B>(left, a, b,
                                                                               accumulate);
  }

  __device__ __forceinline__ void multiply_right(float *right, bool accumulate) {
    gemm_multiply_step<Tile::RIGHT_N, Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B>(
        right, a, b + Tile::LEFT_N * GEMM_ROW_BYTES / 16, accumulate);
  }
};

/* What becomes of a half that is multiplied: a contribution is given to the tile's owner; an owner
 * adds what others contribute, always in the same order; and a whole tile is stored. */
template <class Tile, int COLUMNS>
static __device__ __forceinline__ void gemm_finish(const GemmWork &work, const GemmPiece &piece,
                                                   int first_column, float *d, GemmStaging *staging,
                                                   typename Tile::Addends *addends) {
  enum { THREADS = Tile::CONSUMER_THREADS, WARPS = THREADS / 32 };
  uint32_t thread = gemm_thread() - 128;
  if (piece.given) {
    gemm_give<THREADS, COLUMNS>(
        gemm_part<THREADS, Tile::TILE_N>(work, blockIdx.x, first_column, thread), d);
    return;
  }
#pragma unroll 1
  for (int i = 1; i <= piece.takes; i++) {
    uint32_t from = blockIdx.x - i * Tile::CLUSTER_SIZE;
    if (first_column == 0) gemm_wait_for_flag(&work.flags[from * WARPS + thread / 32]);
    gemm_take<THREADS, COLUMNS>(gemm_part<THREADS, Tile::TILE_N>(work, from, first_column, thread),
                                d);
  }
  gemm_store<Tile::TYPE, COLUMNS, Tile::STORE_N, Tile::TMA_BOXES,
             Tile::FINISHES ? GEMM_FINISHES : GEMM_ROUNDS>(
      staging, d, GEMM_ALL_CHUNKS, &work.c, work.output, piece.batch,
      piece.row + (int)(thread / 32) * 16, piece.column + first_column, piece.column + Tile::TILE_N,
      addends);
}

/* The bias and the old C for a tile's first columns, read a step before they are needed. */
template <class Tile>
static __device__ __forceinline__ void gemm_read_ahead(const GemmWork &work, const GemmPiece &piece,
                                                       typename Tile::Addends *addends) {
  if (!Tile::FINISHES || piece.given) return;
  int warp = (int)(gemm_thread() - 128) / 32;
  gemm_read_addends<Tile::TYPE>(work.output, piece.batch, piece.row + warp * 16, piece.column,
                                addends);
}

template <class Tile>
static __device__ __forceinline__ void gemm_consume(const GemmWork &work,
                                                    typename Tile::Shared *shared,
                                                    uint32_t warpgroup, uint32_t rank) {
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4;
  GemmStaging staging = {shared->staging[warp], 0};
  uint32_t *flag = &work.flags[blockIdx.x * Tile::CONSUMERS * 4 + warp];
  GemmConsumer<Tile> c = GemmConsumer<Tile>::of(shared, warpgroup, rank);

  float left[Tile::LEFT_N / 2], right[Tile::RIGHT_N / 2];
  typename Tile::Addends addends; /* of the chunk that is stored next */
  int actor = (int)warpgroup;
  c.wait_for_stage(work, actor);
  GemmPiece piece = c.read_piece();
  c.multiply_left(left, false);
  wgmma_commit();
  c.multiply_right(right, false);
  wgmma_commit();
  c.advance();
  while (true) {
    for (int step = piece.steps - 2; step > 0; step--) {
      c.wait_for_stage(work, actor);
      c.multiply_left(left, true);
      c.multiply_right(right, true);
      wgmma_commit();
      wgmma_wait_all_but_one();
      c.free_stage(work, actor, c.held, c.count - 1);
      c.advance();
    }
    /* The last step: while its right half is multiplied, the left half is stored. */
    gemm_read_ahead<Tile>(work, piece, &addends);
    c.wait_for_stage(work, actor);
    c.multiply_left(left, true);
    wgmma_commit();
    c.multiply_right(right, true);
    wgmma_commit();
    wgmma_wait_all_but_one(); /* all but the last step's right half */
    c.free_stage(work, actor, c.held, c.count - 1);
    gemm_record<Tile>(work, actor, &c.events, GEMM_STORE_BEGUN, c.count);
    gemm_finish<Tile, Tile::LEFT_N>(work, piece, 0, left, &staging, &addends);
    gemm_record<Tile>(work, actor, &c.events, GEMM_STORE_ISSUED, c.count);
    wgmma_wait_all();
    c.free_stage(work, actor, c.stage, c.count);
    c.advance();
    if (piece.last) {
      gemm_finish<Tile, Tile::RIGHT_N>(work, piece, Tile::LEFT_N, right, &staging, &addends);
      if (piece.given) gemm_raise_flag(flag);
      break;
    }

    /* The next tile's first step: while its left half is multiplied, the right half is stored. */
    c.wait_for_stage(work, actor);
    c.multiply_left(left, false);
    wgmma_commit();
    GemmPiece done = piece;
    piece = c.read_piece();
    gemm_record<Tile>(work, actor, &c.events, GEMM_STORE_BEGUN, c.count);
    gemm_finish<Tile, Tile::RIGHT_N>(work, done, Tile::LEFT_N, right, &staging, &addends);
    gemm_record<Tile>(work, actor, &c.events, GEMM_STORE_ISSUED, c.count);
    c.multiply_right(right, false);
    wgmma_commit();
    if (done.given) gemm_raise_flag(flag); /* while this step is multiplied */
    c.advance();
  }
  if (lane == 0) bulk_wait_group_read<0>(); /* shared memory must outlive the last stores */
}

/* All pieces of a consumer: the accumulator in halves, or in one piece (gemm_carry.cuh). */
template <class Tile, bool WHOLE>
struct GemmConsumeTiles {
  static __device__ __forceinline__ void run(const GemmWork &work, typename Tile::Shared *shared,
                                             uint32_t warpgroup, uint32_t rank) {
    gemm_consume<Tile>(work, shared, warpgroup, rank);
  }
};

template <class Tile>
static __global__ void __cluster_dims__(Tile::CLUSTER_SIZE, 1, 1)
    __launch_bounds__(Tile::THREADS, 1) gemm_persistent(const __grid_constant__ CUtensorMap map_a,
                                                        const __grid_constant__ CUtensorMap map_b,
                                                        const __grid_constant__ GemmWork work) {
  typedef typename Tile::Shared Shared;
  gemm_prefetch_maps(&map_a, &map_b);
  extern __shared__ uint8_t gemm_dynamic_shared[];
  Shared *shared = (Shared *)gemm_align_1024(gemm_dynamic_shared);
  uint32_t rank = Tile::CLUSTER_SIZE > 1 ? cluster_rank() : 0;
  uint32_t warpgroup = gemm_uniform(threadIdx.x / 128);

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Tile::STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], Tile::CONSUMERS * 4 * Tile::Cluster::PEERS);
    }
    fence_mbarrier_init();
    gemm_let_next_kernel_start();
  }
  if (Tile::CLUSTER_SIZE > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }

  if (warpgroup == 0) {
    if (Tile::MOVES_REGISTERS) gemm_give_registers<Tile::PRODUCER_REGISTERS>();
    if (threadIdx.x == 0) gemm_produce<Tile>(&map_a, &map_b, work, shared, rank);
  } else {
    if (Tile::MOVES_REGISTERS) gemm_take_registers<Tile::CONSUMER_REGISTERS>();
    GemmConsumeTiles<Tile, Tile::RIGHT_N == 0>::run(work, shared, warpgroup, rank);
  }
}

#endif
