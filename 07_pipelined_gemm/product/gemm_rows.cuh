/* gemm_rows.cuh: the kernel for products with few rows, whose time goes to reading B once.
 *
 * B's rows are divided evenly among the CTAs, wherever that cuts them, so every SM reads as many bytes. The
 * warps of a CTA share k. A lane loads 16 bytes at a time from L2 into registers, without TMA and
 * shared memory: there is no ring to fill, no tensor map to fetch, and the sums of a CTA's rows need no
 * other CTA. mma.sync multiplies 8 rows of B by up to 8 rows of A. Which k it multiplies together is up to
 * the loads, if those of A and B agree: lane 4 * r + q has 8 neighbouring k of row r, and they are two of its
 * places in each of two mma.sync.
 *
 *     k             0..7    8..15   16..23  24..31   32..39 ...
 *     row r of B    lane 4r  4r + 1  4r + 2  4r + 3   4r          16 bytes each; the second 32 k are
 *                                                                 another load of the same lanes
 *
 * At the end, the warps' sums are added up in shared memory, always in the same order. */
#ifndef PIPELINED_GEMM_GEMM_ROWS_CUH
#define PIPELINED_GEMM_GEMM_ROWS_CUH

#include "gemm_epilogue.cuh"
#include "gemm_operands.cuh"

constexpr int GEMM_ROWS = 8; /* of A, at most: with 16, half of the loads on their way are A's */

template <int TYPE_, int TILES_, int WARPS_>
struct GemmRowsTile {
  static constexpr int TYPE = TYPE_;
  static constexpr int TILES = TILES_; /* of 8 rows of B, that a warp multiplies */
  static constexpr int COLUMNS = TILES * 8;
  static constexpr int WARPS = WARPS_;
  static constexpr int THREADS = WARPS * 32;
  static constexpr int CTAS = 16 / WARPS; /* on an SM: 128 registers for each thread */
  static constexpr int CHUNK_K = 32;      /* that a warp loads at once */
  static constexpr int CHUNKS = 4;        /* on their way together */
  static constexpr int STEP = CHUNKS * CHUNK_K;
  static constexpr int SUM_BYTES = WARPS * GEMM_ROWS * COLUMNS * (int)sizeof(float);
};

/* What a lane has of a step: of each tile of B and of A, 16 bytes for each chunk. */
template <class Tile>
struct GemmRowsStep {
  uint4 b[Tile::CHUNKS][Tile::TILES], a[Tile::CHUNKS];
};

/* B is read once, so it should not push A out of L1. */
static __device__ __forceinline__ uint4 gemm_load_once(const uint16_t *from) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

static __device__ __forceinline__ uint4 gemm_load_again(const uint16_t *from) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

/* PTX ISA: mma.sync, m16n8k16. Lane 4 * r + q has row r of the first operand and column r of the second one, of each two
 * pairs of neighbouring k. Rows 8 to 15 of the first operand are zero, and so are their sums. */
template <int TYPE>
static __device__ __forceinline__ void gemm_mma(float d[4], uint32_t a0, uint32_t a1, uint32_t b0,
                                                uint32_t b1) {
  if (TYPE == GEMM_BF16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %8, %5, %8}, "
        "{%6, %7}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b0), "r"(b1), "r"(0));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %8, %5, %8}, "
        "{%6, %7}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b0), "r"(b1), "r"(0));
  }
}

/* What a warp computes: the columns of C from `column` up to `end`, as many as its tiles have, and of k every n-th step
 * from `first` on. */
struct GemmRowsPlace {
  int first_column, end; /* of the CTA */
  int group, groups;     /* of warps that have the same columns */
  int sharer, sharers;   /* warps that share k */

  static __device__ __forceinline__ GemmRowsPlace of(const GemmWork &work, int warps) {
    GemmRowsPlace place;
    int warp = threadIdx.x / 32;
    int64_t n = work.output.n;
    place.first_column = (int)(n * blockIdx.x / gridDim.x);
    place.end = (int)(n * (blockIdx.x + 1) / gridDim.x);
    place.groups = work.groups;
    place.group = warp % work.groups, place.sharer = warp / work.groups;
    place.sharers = warps / work.groups;
    return place;
  }
};

/* Zeros stand for what lies beyond k, for rows of A that there are not, and for columns of other CTAs. `a` and `b`: what
 * this lane reads of the first chunk of k = 0, of A and of the first tile of B. `eight_rows`: from a tile to the next. */
template <class Tile>
static __device__ __forceinline__ void gemm_load_rows(const uint16_t *a, const uint16_t *b,
                                                      int64_t eight_rows, bool has_row, int columns,
                                                      int k, int end_k, GemmRowsStep<Tile> *step) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int chunk = 0; chunk < Tile::CHUNKS; chunk++) {
    int at = k + chunk * Tile::CHUNK_K;
    bool inside = at + lane % 4 * 8 < end_k;
#pragma unroll
    for (int tile = 0; tile < Tile::TILES; tile++) {
      step->b[chunk][tile] = make_uint4(0, 0, 0, 0);
      if (inside && tile * 8 + lane / 4 < columns) {
        step->b[chunk][tile] = gemm_load_once(b + tile * eight_rows + at);
      }
    }
    step->a[chunk] = make_uint4(0, 0, 0, 0);
    if (inside && has_row) step->a[chunk] = gemm_load_again(a + at);
  }
}

template <class Tile>
static __device__ __forceinline__ void gemm_multiply_rows(const GemmRowsStep<Tile> &step,
                                                          float (*d)[4]) {
#pragma unroll
  for (int chunk = 0; chunk < Tile::CHUNKS; chunk++) {
    uint4 a = step.a[chunk];
#pragma unroll
    for (int tile = 0; tile < Tile::TILES; tile++) {
      uint4 b = step.b[chunk][tile];
      gemm_mma<Tile::TYPE>(d[tile], a.x, a.y, b.x, b.y);
      gemm_mma<Tile::TYPE>(d[tile], a.z, a.w, b.z, b.w);
    }
  }
}

/* All of this warp's steps of k. */
template <class Tile>
static __device__ __forceinline__ void gemm_multiply_all_rows(const GemmWork &work,
                                                              const GemmRowsPlace &place,
                                                              float (*d)[4]) {
  int row = threadIdx.x % 32 / 4, first_k = threadIdx.x % 4 * 8;
  int column = place.first_column + place.group * Tile::COLUMNS;
  const uint16_t *a = work.a.memory + row * work.a.line_stride + first_k;
  const uint16_t *b = work.b.memory + (column + row) * work.b.line_stride + first_k;
#pragma unroll 1
  for (int k = place.sharer * Tile::STEP; k < work.a.line; k += place.sharers * Tile::STEP) {
    GemmRowsStep<Tile> step;
    gemm_load_rows<Tile>(a, b, 8 * work.b.line_stride, row < work.a.lines, place.end - column, k,
                         work.a.line, &step);
    gemm_multiply_rows<Tile>(step, d);
  }
}

/* Where a warp's sum of an element lies in shared memory. */
template <class Tile>
static __device__ __forceinline__ int gemm_rows_sum_at(int warp, int row, int column) {
  return ((warp * Tile::TILES + column / 8) * GEMM_ROWS + row) * 8 + column % 8;
}

template <class Tile>
static __device__ __forceinline__ void gemm_put_row_sums(float *sums, const float (*d)[4]) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int tile = 0; tile < Tile::TILES; tile++) {
    int at = gemm_rows_sum_at<Tile>(warp, lane / 4, tile * 8 + lane % 4 * 2);
    *(float2 *)&sums[at] = make_float2(d[tile][0], d[tile][1]);
  }
}

/* An element of C, with all that the epilogue does. */
template <int TYPE>
static __device__ __forceinline__ void gemm_finish_element(const GemmOutput &output, int row,
                                                           int column, float sum) {
  int64_t at = row * output.row_stride + column;
  float v = output.alpha * sum;
  if (output.bias != NULL) v += gemm_read_bias<TYPE>(output, column);
  if (output.type == GEMM_FP32) {
    float *to = (float *)output.c + at;
    if (output.beta != 0) v += output.beta * *to;
    gemm_activate<1>(output, &v);
    *to = v;
  } else {
    uint16_t *to = (uint16_t *)output.c + at;
    if (output.beta != 0) v += output.beta * gemm_unpack<TYPE>(*to).x;
    gemm_activate<1>(output, &v);
    *to = (uint16_t)gemm_pack<TYPE>(v, 0);
  }
}

template <class Tile>
static __device__ __forceinline__ void gemm_sum_rows(const GemmWork &work,
                                                     const GemmRowsPlace &place,
                                                     const float *sums) {
  int columns = place.end - place.first_column;
  for (int i = threadIdx.x; i < work.output.m * columns; i += Tile::THREADS) {
    int row = i / columns, column = i - row * columns;
    int group = column / Tile::COLUMNS, in_group = column - group * Tile::COLUMNS;
    float sum = 0;
    for (int sharer = 0; sharer < place.sharers; sharer++) {
      sum += sums[gemm_rows_sum_at<Tile>(sharer * place.groups + group, row, in_group)];
    }
    gemm_finish_element<Tile::TYPE>(work.output, row, place.first_column + column, sum);
  }
}

template <class Tile>
static __global__ void __launch_bounds__(Tile::THREADS, Tile::CTAS)
    gemm_rows(const __grid_constant__ CUtensorMap, const __grid_constant__ CUtensorMap,
              const __grid_constant__ GemmWork work) {
  extern __shared__ uint8_t gemm_dynamic_shared[];
  float *sums = (float *)gemm_dynamic_shared;
  GemmRowsPlace place = GemmRowsPlace::of(work, Tile::WARPS);
  gemm_let_next_kernel_start();
  gemm_wait_for_earlier_kernels();

  float d[Tile::TILES][4] = {};
  gemm_multiply_all_rows<Tile>(work, place, d);
  gemm_put_row_sums<Tile>(sums, d);
  __syncthreads();
  gemm_sum_rows<Tile>(work, place, sums);
}

#endif
