/* gemm_epilogue.cuh: what becomes of an accumulator: alpha, beta, bias and activation, the rounding
 * to C's type, and the way to global memory.
 *
 * A warp has 16 rows of the accumulator (wgmma.cuh says which thread has what) and works through
 * them in chunks of 64, 32 or 16 columns, each by way of some shared memory, its staging memory:
 *   - alpha, beta, bias and activation are applied in the registers. Bias and old C are read ahead,
 *     whole lines at a time, while the tensor cores still multiply, and distributed by shuffles and
 *     by ldmatrix;
 *   - values that are only rounded to 16 bits, rows of C that TMA can write: stmatrix to the staging
 *     memory, TMA store;
 *   - 16 bits otherwise: stmatrix to the staging memory, ordinary stores;
 *   - fp32: straight from and to the registers, since four lanes have the 32 bytes of a sector.
 *
 * Kernels that carry tiles have their own way (gemm_carry.cuh), also for the old C and for a C in fp32. */
#ifndef PIPELINED_GEMM_GEMM_EPILOGUE_CUH
#define PIPELINED_GEMM_GEMM_EPILOGUE_CUH

#include "../../02_tma_load/mbarrier.cuh"
#include "../../03_tma_store/tma_store.cuh"
#include "../accumulator.cuh"
#include "gemm_types.cuh"

/* The columns of a chunk, for an accumulator of so many; also the width of the TMA store's box. */
static inline __host__ __device__ constexpr int gemm_chunk_n(int columns) {
  return columns % 64 == 0   ? 64
         : columns % 32 == 0 ? 32
         : columns % 16 == 0 ? 16
         : columns % 56 == 0 ? 56
         : columns % 40 == 0 ? 40
                             : 24;
}

constexpr int GEMM_FP32_CHUNK_N =
    32; /* of C in fp32, where a kernel carries tiles: a line of 128 bytes */

constexpr int GEMM_STAGING_BYTES = 16 * 64 * 2; /* of shared memory, for a warp's largest chunk */

/* ---- Values of C's type ---- */

/* Two values to 16 bits each, rounded to nearest even, `low` in the low half. */
template <int TYPE>
static __device__ __forceinline__ uint32_t gemm_pack(float low, float high) {
  if (gemm_rounded_type(TYPE) == GEMM_BF16) return pack_bf16(low, high);
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/* PTX ISA: ldmatrix, the inverse of stmatrix_x4. */
static __device__ __forceinline__ void gemm_ldmatrix_x4(uint32_t address, uint32_t packed[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(packed[0]), "=r"(packed[1]), "=r"(packed[2]), "=r"(packed[3])
               : "r"(address)
               : "memory");
}

template <int TYPE>
static __device__ __forceinline__ float2 gemm_unpack(uint32_t packed) {
  if (gemm_rounded_type(TYPE) == GEMM_BF16) {
    return make_float2(__uint_as_float(packed << 16), __uint_as_float(packed & 0xFFFF0000));
  }
  float2 values;
  asm("cvt.f32.f16 %0, %1;" : "=f"(values.x) : "h"((uint16_t)packed));
  asm("cvt.f32.f16 %0, %1;" : "=f"(values.y) : "h"((uint16_t)(packed >> 16)));
  return values;
}

/* ---- The staging memory ---- */

/* Where an element of a chunk lies in the staging memory: lines of N elements under the swizzle of
 * that width, so that neither eight rows of one column nor one row meet in a bank. */
template <int N>
static __device__ __forceinline__ uint32_t gemm_staged(int row, int byte) {
  uint32_t offset = (uint32_t)(row * (N * 2) + byte);
  return offset ^ (offset >> 7 & (N / 8 - 1)) << 4;
}

/* Rounds COLUMNS columns of an accumulator to 16 bits. */
template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void gemm_pack_all(uint32_t *packed, const float *d) {
#pragma unroll
  for (int i = 0; i < COLUMNS / 4; i++) packed[i] = gemm_pack<TYPE>(d[2 * i], d[2 * i + 1]);
}

/* PTX ISA: stmatrix, two 8x8 matrices. */
static __device__ __forceinline__ void gemm_stmatrix_x2(uint32_t address, uint32_t a, uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a),
               "r"(b)
               : "memory");
}

/* Puts a chunk of N columns there that is rounded. If N is not a power of two, its lines lie as far
 * apart as the swizzle is wide: that is where TMA expects them. */
template <int N>
static __device__ __forceinline__ void gemm_stage_packed(uint8_t *staging, const uint32_t *packed) {
  enum { LINE_N = gemm_line_n(N) };
  int lane = threadIdx.x % 32;
  uint32_t base = shared_address(staging);
#pragma unroll
  for (int at = 0; at < N; at += 16) {
    const uint32_t *v = packed + at / 4;
    uint32_t to = base + gemm_staged<LINE_N>(lane % 16, (at + lane / 16 * 8) * 2);
    if (at + 16 <= N) {
      stmatrix_x4(to, v[0], v[1], v[2], v[3]);
    } else {
      gemm_stmatrix_x2(to, v[0], v[1]);
    }
  }
}

/* A warp's staging memory: boxes for BOXES chunks, used in turn, or a single one if BOXES is 0. */
struct GemmStaging {
  uint8_t *memory;
  int box; /* the next */
};

template <int N, int BOXES>
static __device__ __forceinline__ uint8_t *gemm_next_box(GemmStaging *staging) {
  if (BOXES < 2) return staging->memory;
  uint8_t *box = staging->memory + staging->box * (gemm_line_n(N) * 32);
  staging->box = staging->box + 1 == BOXES ? 0 : staging->box + 1;
  return box;
}

/* ---- alpha, beta, bias and activation ---- */

/* What is added to a chunk of N columns, as a lane reads it: the bias of two columns, and the old C
 * 16 bytes at a time (that of aligned rows of 16-bit elements; any other is read when needed). */
template <int N>
struct GemmAddends {
  float2 bias;
  uint4 old[N / 16];
};

template <int TYPE>
static __device__ __forceinline__ float gemm_read_bias(const GemmOutput &output, int column) {
  if (column >= output.n) return 0;
  if (output.type == GEMM_FP32) return ((const float *)output.bias)[column];
  return gemm_unpack<TYPE>(((const uint16_t *)output.bias)[column]).x;
}

template <int TYPE, int N>
static __device__ __forceinline__ void gemm_read_addends(const GemmOutput &output, int batch,
                                                         int row, int column,
                                                         GemmAddends<N> *addends) {
  enum { VECTORS = N / 8 }; /* in a row */
  if (output.plain) return;
  int lane = threadIdx.x % 32;
  addends->bias = make_float2(0, 0);
  if (output.bias != NULL && 2 * lane < N) {
    addends->bias.x = gemm_read_bias<TYPE>(output, column + 2 * lane);
    addends->bias.y = gemm_read_bias<TYPE>(output, column + 2 * lane + 1);
  }
  if (output.beta == 0 || output.type == GEMM_FP32 || !output.eights) return;
  const uint16_t *c = (const uint16_t *)output.c + batch * output.batch_stride;
#pragma unroll
  for (int i = 0; i < N / 16; i++) {
    int r = row + (32 * i + lane) / VECTORS, at = column + (32 * i + lane) % VECTORS * 8;
    addends->old[i] = make_uint4(0, 0, 0, 0);
    if (r < output.m && at < output.n) {
      addends->old[i] = *(const uint4 *)(c + r * output.row_stride + at);
    }
  }
}

/* Puts the old C of a chunk into the staging memory. */
template <int N>
static __device__ __forceinline__ void gemm_stage_old(uint8_t *staging, const GemmOutput &output,
                                                      int batch, int row, int column,
                                                      const GemmAddends<N> &addends) {
  enum { VECTORS = N / 8 };
  int lane = threadIdx.x % 32;
  if (output.eights) {
#pragma unroll
    for (int i = 0; i < N / 16; i++) {
      int r = (32 * i + lane) / VECTORS, at = (32 * i + lane) % VECTORS * 8;
      *(uint4 *)(staging + gemm_staged<N>(r, at * 2)) = addends.old[i];
    }
    return;
  }
  const uint16_t *c = (const uint16_t *)output.c + batch * output.batch_stride;
#pragma unroll 1
  for (int i = lane; i < 16 * N; i += 32) {
    int r = i / N, at = i % N;
    bool inside = row + r < output.m && column + at < output.n;
    *(uint16_t *)(staging + gemm_staged<N>(r, at * 2)) =
        inside ? c[(row + r) * output.row_stride + column + at] : (uint16_t)0;
  }
}

/* A lane's part of the bias for the columns 8 * j and following: its two columns. */
static __device__ __forceinline__ float2 gemm_bias_of(float2 bias, int j) {
  int from = 4 * j + threadIdx.x % 4;
  return make_float2(__shfl_sync(0xFFFFFFFF, bias.x, from), __shfl_sync(0xFFFFFFFF, bias.y, from));
}

/* The factor of the sums: alpha, times the scales of e4m3 operands. */
template <int TYPE>
static __device__ __forceinline__ float gemm_alpha(const GemmOutput &output) {
  float alpha = output.alpha;
  if (gemm_is_e4m3(TYPE)) {
    if (output.scale_a != NULL) alpha *= *output.scale_a;
    if (output.scale_b != NULL) alpha *= *output.scale_b;
  }
  return alpha;
}

/* Sums that are only rounded: in e4m3, they are multiplied by the scales first. */
template <int TYPE, int COUNT>
static __device__ __forceinline__ const float *gemm_scale(const GemmOutput &output, const float *d,
                                                          float *scaled) {
  if (!gemm_is_e4m3(TYPE)) return d;
  float alpha = gemm_alpha<TYPE>(output);
#pragma unroll
  for (int i = 0; i < COUNT; i++) scaled[i] = alpha * d[i];
  return scaled;
}

/* d = alpha * d + bias. */
template <int N>
static __device__ __forceinline__ void gemm_add_bias(float alpha, float2 bias, float *d) {
#pragma unroll
  for (int j = 0; j < N / 8; j++) {
    float2 sum = gemm_bias_of(bias, j);
    d[4 * j] = alpha * d[4 * j] + sum.x;
    d[4 * j + 1] = alpha * d[4 * j + 1] + sum.y;
    d[4 * j + 2] = alpha * d[4 * j + 2] + sum.x;
    d[4 * j + 3] = alpha * d[4 * j + 3] + sum.y;
  }
}

/* d = d + beta * C, C of 16 bits. The staging memory is free. */
template <int TYPE, int N>
static __device__ __forceinline__ void gemm_add_old(uint8_t *staging, const GemmOutput &output,
                                                    float *d) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int at = 0; at < N; at += 16) {
    uint32_t old[4];
    gemm_ldmatrix_x4(shared_address(staging) + gemm_staged<N>(lane % 16, (at + lane / 16 * 8) * 2),
                     old);
#pragma unroll
    for (int i = 0; i < 4; i++) { /* even: the upper row */
      float2 c = gemm_unpack<TYPE>(old[i]);
      d[at / 2 + 2 * i] += output.beta * c.x, d[at / 2 + 2 * i + 1] += output.beta * c.y;
    }
  }
  __syncwarp(); /* the old C has been read */
}

/* A lane's part of a chunk of C in fp32: of each 8 columns the two from `c` on, in the upper row and in
 * the one 8 below. `inside` says how many columns C has from there on, or none. */
struct GemmFp32Place {
  float *c;
  int inside[2];

  static __device__ __forceinline__ GemmFp32Place of(const GemmOutput &output, int batch, int row,
                                                     int column) {
    int lane = threadIdx.x % 32;
    row += lane / 4, column += lane % 4 * 2;
    GemmFp32Place place = {
        (float *)output.c + batch * output.batch_stride + row * output.row_stride + column,
        {row < output.m ? output.n - column : 0, row + 8 < output.m ? output.n - column : 0}};
    return place;
  }
};

/* d = d + beta * C, C in fp32. */
template <int N>
static __device__ __forceinline__ void gemm_add_old_fp32(const GemmOutput &output,
                                                         const GemmFp32Place &place, float *d) {
#pragma unroll
  for (int i = 0; i < N / 4; i++) { /* even: the upper row */
    const float *from = place.c + i / 2 * 8 + (i % 2) * 8 * output.row_stride;
    int left = place.inside[i % 2] - i / 2 * 8;
    if (left > 0) d[2 * i] += output.beta * from[0];
    if (left > 1) d[2 * i + 1] += output.beta * from[1];
  }
}

template <int N>
static __device__ __forceinline__ void gemm_write_fp32(const GemmOutput &output,
                                                       const GemmFp32Place &place, const float *d) {
#pragma unroll
  for (int i = 0; i < N / 4; i++) { /* even: the upper row */
    float *to = place.c + i / 2 * 8 + (i % 2) * 8 * output.row_stride;
    int left = place.inside[i % 2] - i / 2 * 8;
    if (output.eights && left > 0) *(float2 *)to = make_float2(d[2 * i], d[2 * i + 1]);
    if (!output.eights && left > 0) to[0] = d[2 * i];
    if (!output.eights && left > 1) to[1] = d[2 * i + 1];
  }
}

/* GELU and SiLU are both x * sigmoid(y), y = x for SiLU and 2 * sqrt(2 / pi) * (x + 0.044715 x^3)
 * for GELU. */
template <int COUNT>
static __device__ __forceinline__ void gemm_activate(const GemmOutput &output, float *v) {
  if (output.activation == GEMM_IDENTITY) return;
  if (output.activation == GEMM_RELU) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      asm("max.NaN.f32 %0, %0, 0f00000000;" : "+f"(v[i])); /* a NaN stays one */
    }
    return;
  }
  /* y = x * (linear + cubic * x^2) */
  float linear = output.activation == GEMM_SILU ? 1.0f : 1.5957691216f;
  float cubic = output.activation == GEMM_SILU ? 0.0f : 0.0713548163f;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    float y = v[i] * (linear + cubic * v[i] * v[i]);
    v[i] = __fdividef(v[i], 1 + __expf(-y));
  }
}

/* ---- The way to global memory ---- */

/* A box of the staging memory to C by TMA. If C fills L2 by itself, it leaves L2 first. */
static __device__ __forceinline__ void gemm_store_box(const CUtensorMap *map, bool streaming,
                                                      const uint8_t *box, int x, int y, int batch) {
  if (streaming) {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint"
        " [%0, {%2, %3, %4}], [%1], %5;" ::"l"(map),
        "r"(shared_address(box)), "r"(x), "r"(y), "r"(batch), "l"(policy)
        : "memory");
  } else {
    tma_store_3d(map, box, x, y, batch);
  }
}

/* Rows that are aligned leave 16 bytes at a time. */
template <int N, int ROWS>
static __device__ __forceinline__ void gemm_write_vectors(const uint8_t *staging,
                                                          const GemmOutput &output, uint16_t *c,
                                                          int row, int column) {
  enum { VECTORS = N / 8 }; /* in a row */
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < VECTORS * ROWS; i += 32) {
    int r = (i + lane) / VECTORS, at = (i + lane) % VECTORS * 8;
    if (row + r < output.m && column + at < output.n) {
      uint4 *to = (uint4 *)(c + (row + r) * output.row_stride + column + at);
      uint4 value = *(const uint4 *)(staging + gemm_staged<N>(r, at * 2));
      if (output.streaming) {
        __stcs(to, value);
      } else {
        *to = value;
      }
    }
  }
}

/* Other rows leave as aligned pairs, with a single element at either end: as many rows at once as a
 * warp has lanes for. */
template <int N, int ROWS>
static __device__ __forceinline__ void gemm_write_pairs(const uint8_t *staging,
                                                        const GemmOutput &output, uint16_t *c,
                                                        int row, int column) {
  enum { LANES = N / 2, AT_ONCE = 32 / LANES };
  int lane = threadIdx.x % LANES;
  int columns = output.n - column < N ? output.n - column : N;
#pragma unroll 4
  for (int r = threadIdx.x % 32 / LANES; r < ROWS; r += AT_ONCE) {
    uint16_t *to = c + (row + r) * output.row_stride + column;
    int odd = (uintptr_t)to / 2 % 2, at = 2 * lane + odd;
    if (row + r >= output.m || columns < 1) continue;
    if (odd && lane == 0) to[0] = *(const uint16_t *)(staging + gemm_staged<N>(r, 0));
    if (at >= columns) continue;
    uint16_t low = *(const uint16_t *)(staging + gemm_staged<N>(r, at * 2));
    if (at + 1 < columns) {
      uint16_t high = *(const uint16_t *)(staging + gemm_staged<N>(r, at * 2 + 2));
      *(uint32_t *)(to + at) = (uint32_t)high << 16 | low;
    } else {
      to[at] = low;
    }
  }
}

/* ROWS x N values that are rounded and staged, to global memory by ordinary stores. */
template <int N, int ROWS>
static __device__ __forceinline__ void gemm_write_chunk(const uint8_t *staging,
                                                        const GemmOutput &output, int batch,
                                                        int row, int column) {
  uint16_t *c = (uint16_t *)output.c + batch * output.batch_stride;
  if (output.eights) {
    gemm_write_vectors<N, ROWS>(staging, output, c, row, column);
  } else {
    gemm_write_pairs<N, ROWS>(staging, output, c, row, column);
  }
}

/* A warp's 16 rows by N columns, whose values are final, from (row, column) of C on. With TMA
 * (BOXES > 0), whose last BOXES - 1 stores may still be reading other staging memory than this. */
template <int TYPE, int N, int BOXES>
static __device__ __forceinline__ void gemm_store_rounded(uint8_t *staging, const CUtensorMap *map,
                                                          const GemmOutput &output, int batch,
                                                          int row, int column, const float *d) {
  bool by_tma = BOXES > 0 && output.by_tma, first_lane = threadIdx.x % 32 == 0;
  if (by_tma && first_lane) bulk_wait_group_read<(BOXES > 0 ? BOXES - 1 : 0)>();
  __syncwarp(); /* what was in the staging memory has been read */
  uint32_t packed[N / 4];
  gemm_pack_all<TYPE, N>(packed, d);
  gemm_stage_packed<N>(staging, packed);
  if (by_tma) fence_proxy_async();
  __syncwarp();
  if (!by_tma) gemm_write_chunk<N, 16>(staging, output, batch, row, column);
  if (by_tma && first_lane) {
    gemm_store_box(map, output.streaming, staging, column, row, batch);
    bulk_commit_group();
  }
}

/* The same for sums that are not final yet, and for C of any type. `addends` are this chunk's; once they
 * are used, those of the chunk to the right take their place if `reads_next`, on the way while this one is
 * stored. */
template <int TYPE, int N, int BOXES>
static __device__ __forceinline__ void gemm_store_chunk(uint8_t *staging, const CUtensorMap *map,
                                                        const GemmOutput &output, int batch,
                                                        int row, int column, bool reads_next,
                                                        GemmAddends<N> *addends, float *d) {
  bool fp32 = output.type == GEMM_FP32;
  GemmFp32Place place = GemmFp32Place::of(output, batch, row, column);
  if (!output.plain) {
    float alpha = gemm_alpha<TYPE>(output);
    if (output.bias != NULL || alpha != 1) gemm_add_bias<N>(alpha, addends->bias, d);
    if (output.beta != 0 && !fp32) {
      if (BOXES > 0 && threadIdx.x % 32 == 0) bulk_wait_group_read<(BOXES > 0 ? BOXES - 1 : 0)>();
      __syncwarp(); /* what was in the staging memory has been read */
      gemm_stage_old<N>(staging, output, batch, row, column, *addends);
      __syncwarp();
    }
    if (reads_next) gemm_read_addends<TYPE>(output, batch, row, column + N, addends);
    if (output.beta != 0 && fp32) gemm_add_old_fp32<N>(output, place, d);
    if (output.beta != 0 && !fp32) gemm_add_old<TYPE, N>(staging, output, d);
    gemm_activate<N / 2>(output, d);
  }
  if (fp32) {
    gemm_write_fp32<N>(output, place, d);
  } else {
    gemm_store_rounded<TYPE, N, BOXES>(staging, map, output, batch, row, column, d);
  }
}

/* Registers cannot be indexed: moves the columns from `at` on out of COLUMNS columns of an accumulator. */
template <int COLUMNS, int N>
static __device__ __forceinline__ void gemm_move_chunk(const float *d, int at, float *chunk) {
#pragma unroll
  for (int i = 0; i < COLUMNS / 2; i++) {
    if (at == i / (N / 2) * N) chunk[i % (N / 2)] = d[i];
  }
}

/* Chunks of N columns; in a kernel without TMA stores, what is more than rounded comes at most 32 columns
 * at a time, because the code for 64 takes twice as long to compile. */
template <int N, int BOXES>
struct GemmChunks {
  enum { LOOP_N = BOXES == 0 && N == 64 ? 32 : N };
  typedef GemmAddends<LOOP_N> Addends;
};

/* What a kernel may be asked to do with its sums. */
enum { GEMM_ROUNDS, GEMM_FINISHES, GEMM_ROUNDS_OR_FINISHES };

/* Every chunk of an accumulator, as bits. */
constexpr uint32_t GEMM_ALL_CHUNKS = 0xFFFFFFFF;

/* A warp's 16 rows by COLUMNS columns, of which it stores the `chunks`: bit i is for N columns from i * N on.
 * `addends`: of the first chunk, read ahead; then of the one after the last.
 *
 * Chunks that are only rounded follow each other without a loop. All others share the code of one:
 * unrolled, it would be most of what there is to compile. */
template <int TYPE, int COLUMNS, int N, int BOXES, int TASK>
static __device__ __forceinline__ void gemm_store(GemmStaging *staging, const float *d,
                                                  uint32_t chunks, const CUtensorMap *map,
                                                  const GemmOutput &output, int batch, int row,
                                                  int column, int end,
                                                  typename GemmChunks<N, BOXES>::Addends *addends) {
  enum { LOOP_N = GemmChunks<N, BOXES>::LOOP_N };
  if (TASK == GEMM_ROUNDS || (TASK == GEMM_ROUNDS_OR_FINISHES && output.plain)) {
#pragma unroll
    for (int at = 0; at < COLUMNS; at += N) {
      float scaled[N / 2];
      /* A chunk that is not to be stored lies below C. With a branch around it, this would not be straight code. */
      int chunk_row = chunks >> at / N & 1 ? row : output.m;
      gemm_store_rounded<TYPE, N, BOXES>(gemm_next_box<N, BOXES>(staging), map, output, batch,
                                         chunk_row, column + at,
                                         gemm_scale<TYPE, N / 2>(output, d + at / 2, scaled));
    }
  } else {
#pragma unroll 1
    for (int at = 0; at < COLUMNS; at += LOOP_N) {
      /* The old C of another's chunk may be new already. */
      bool reads_next = column + at + LOOP_N < end && (chunks >> (at + LOOP_N) / N & 1);
      if (!(chunks >> at / N & 1)) {
        if (reads_next) {
          gemm_read_addends<TYPE>(output, batch, row, column + at + LOOP_N, addends);
        }
        continue;
      }
      float chunk[LOOP_N / 2];
      gemm_move_chunk<COLUMNS, LOOP_N>(d, at, chunk);
      gemm_store_chunk<TYPE, LOOP_N, BOXES>(gemm_next_box<N, BOXES>(staging), map, output, batch,
                                            row, column + at, reads_next, addends, chunk);
    }
  }
}

#endif
