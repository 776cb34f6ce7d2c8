/* gemm_epilogue.cuh: what becomes of an accumulator: alpha, beta, bias and activation, the rounding
 * to C's type, and the way to global memory.
 *
 * A warp has 16 rows of the accumulator (wgmma.cuh says which thread has what). They go through 2
 * KiB of shared memory and leave by ordinary stores that fill whole lines. A TMA store would save a
 * few instructions, but the next columns would have to wait until it has read that memory, about
 * 1,000 clocks later; these are read back after 30. Two ways:
 *   - nothing to do but to round to 16 bits: stmatrix, 64 columns at a time;
 *   - anything else: 32 columns at a time as fp32, in a loop that is not unrolled (it would be long).
 *     A lane reads back four columns of a row, so that C and the bias are read as they lie in
 *     memory, and those of the next 32 columns while these are computed. */
#ifndef PIPELINED_GEMM_GEMM_EPILOGUE_CUH
#define PIPELINED_GEMM_GEMM_EPILOGUE_CUH

#include "../../02_tma_load/mbarrier.cuh"
#include "../accumulator.cuh"
#include "gemm_types.cuh"

constexpr int GEMM_CHUNK_N = 64, GEMM_STAGING_BYTES = 16 * GEMM_CHUNK_N * 2; /* for each warp */

/* ---- Rounding to 16 bits: the fast way ---- */

/* Two values to 16 bits each, rounded to nearest even, `low` in the low half. */
static __device__ __forceinline__ uint32_t gemm_pack(int type, float low, float high) {
  if (type == GEMM_BF16) return pack_bf16(low, high);
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/* Where an element of the staging memory lies: lines of 128 bytes, under the 128-byte swizzle, so
 * that neither eight rows of one column nor one row meet in a bank. */
static __device__ __forceinline__ uint32_t gemm_staged(int row, int byte) {
  return (uint32_t)(row * 128 + (byte ^ (row % 8 * 16)));
}

/* Rows that are aligned leave 16 bytes at a time. */
template <int COLUMNS>
static __device__ __forceinline__ void gemm_write_vectors(const uint8_t *staging,
                                                          const GemmOutput &output, uint16_t *c,
                                                          int row, int column) {
  enum { VECTORS = COLUMNS / 8 }; /* in a row */
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < VECTORS * 16; i += 32) {
    int r = (i + lane) / VECTORS, at = (i + lane) % VECTORS * 8;
    if (r < 16 && row + r < output.m && column + at < output.n) {
      uint4 *to = (uint4 *)(c + (row + r) * output.row_stride + column + at);
      uint4 value = *(const uint4 *)(staging + gemm_staged(r, at * 2));
      if (output.streaming) {
        __stcs(to, value);
      } else {
        *to = value;
      }
    }
  }
}

/* Other rows leave as aligned pairs, with a single element at either end. */
template <int COLUMNS>
static __device__ __forceinline__ void gemm_write_pairs(const uint8_t *staging,
                                                        const GemmOutput &output, uint16_t *c,
                                                        int row, int column) {
  int lane = threadIdx.x % 32;
  int columns = output.n - column < COLUMNS ? output.n - column : COLUMNS;
#pragma unroll 4
  for (int r = 0; r < 16; r++) {
    uint16_t *to = c + (row + r) * output.row_stride + column;
    int odd = (uintptr_t)to / 2 % 2, at = 2 * lane + odd;
    if (row + r >= output.m || columns < 1) continue;
    if (odd && lane == 0) to[0] = *(const uint16_t *)(staging + gemm_staged(r, 0));
    if (at >= columns) continue;
    uint16_t low = *(const uint16_t *)(staging + gemm_staged(r, at * 2));
    if (at + 1 < columns) {
      uint16_t high = *(const uint16_t *)(staging + gemm_staged(r, at * 2 + 2));
      *(uint32_t *)(to + at) = (uint32_t)high << 16 | low;
    } else {
      to[at] = low;
    }
  }
}

/* COLUMNS (at most 64) columns of a C of 16 bits. */
template <int COLUMNS>
static __device__ __forceinline__ void gemm_store_rounded(uint8_t *staging, const float *d,
                                                          const GemmOutput &output, uint16_t *c,
                                                          int row, int column) {
  int lane = threadIdx.x % 32;
  uint32_t base = shared_address(staging);
  __syncwarp(); /* the columns before have been read */
#pragma unroll
  for (int at = 0; at < COLUMNS; at += 16) {
    const float *v = d + at / 2;
    stmatrix_x4(base + gemm_staged(lane % 16, (at + lane / 16 * 8) * 2),
                gemm_pack(output.type, v[0], v[1]), gemm_pack(output.type, v[2], v[3]),
                gemm_pack(output.type, v[4], v[5]), gemm_pack(output.type, v[6], v[7]));
  }
  __syncwarp();
  if (output.eights) {
    gemm_write_vectors<COLUMNS>(staging, output, c, row, column);
  } else {
    gemm_write_pairs<COLUMNS>(staging, output, c, row, column);
  }
}

/* ---- Everything else ---- */

static __device__ __forceinline__ float gemm_unpack(int type, uint32_t bits) {
  if (type == GEMM_BF16) return __uint_as_float(bits << 16);
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((uint16_t)bits));
  return value;
}

/* Elements of C's type: one, or four that lie as TMA would want them. */
static __device__ __forceinline__ float gemm_read(int type, const void *memory, int64_t at) {
  if (type == GEMM_FP32) return ((const float *)memory)[at];
  return gemm_unpack(type, ((const uint16_t *)memory)[at]);
}

static __device__ __forceinline__ float4 gemm_read_four(int type, const void *memory, int64_t at) {
  if (type == GEMM_FP32) return *(const float4 *)((const float *)memory + at);
  uint2 bits = *(const uint2 *)((const uint16_t *)memory + at);
  return make_float4(gemm_unpack(type, bits.x & 0xFFFF), gemm_unpack(type, bits.x >> 16),
                     gemm_unpack(type, bits.y & 0xFFFF), gemm_unpack(type, bits.y >> 16));
}

static __device__ __forceinline__ void gemm_write(int type, void *memory, int64_t at, float v) {
  if (type == GEMM_FP32) {
    ((float *)memory)[at] = v;
  } else {
    ((uint16_t *)memory)[at] = (uint16_t)gemm_pack(type, v, 0);
  }
}

static __device__ __forceinline__ void gemm_write_four(int type, void *memory, int64_t at,
                                                       float4 v) {
  if (type == GEMM_FP32) {
    *(float4 *)((float *)memory + at) = v;
  } else {
    *(uint2 *)((uint16_t *)memory + at) =
        make_uint2(gemm_pack(type, v.x, v.y), gemm_pack(type, v.z, v.w));
  }
}

/* GELU and SiLU are both x * sigmoid(y), y = x for SiLU and 2 * sqrt(2 / pi) * (x + 0.044715 x^3)
 * for GELU. */
template <int COUNT>
static __device__ __forceinline__ void gemm_activate(const GemmOutput &output, float *v) {
  if (output.activation == GEMM_IDENTITY) return;
  if (output.activation == GEMM_RELU) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] = v[i] < 0 ? 0 : v[i]; /* a NaN stays one */
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

constexpr int GEMM_TRANSFORMED_N = 32; /* columns at a time */

/* Writes columns 32 * chunk and following of the accumulator to the staging memory, as fp32. */
template <int COLUMNS>
static __device__ __forceinline__ void gemm_stage_chunk(uint8_t *staging, const float *d,
                                                        int chunk) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < COLUMNS / 2; i += 2) {
    if (i / (GEMM_TRANSFORMED_N / 2) != chunk) continue;
    int r = lane / 4 + i % 4 / 2 * 8, at = i % (GEMM_TRANSFORMED_N / 2) / 4 * 8 + lane % 4 * 2;
    *(float2 *)(staging + gemm_staged(r, at * 4)) = make_float2(d[i], d[i + 1]);
  }
}

/* What is added to a lane's four columns of four rows: beta * C + bias. */
typedef struct {
  float4 row[4];
} GemmAddends;

static __device__ __forceinline__ GemmAddends gemm_read_addends(const GemmOutput &output,
                                                                int64_t first, int row,
                                                                int column) {
  float4 bias = make_float4(0, 0, 0, 0);
  if (output.bias != NULL && column < output.n) {
    bias = gemm_read_four(output.type, output.bias, column);
  }
  GemmAddends addends;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    addends.row[i] = bias;
    if (output.beta != 0 && row + 4 * i < output.m && column < output.n) {
      float4 c =
          gemm_read_four(output.type, output.c, first + (row + 4 * i) * output.row_stride + column);
      addends.row[i] = make_float4(bias.x + output.beta * c.x, bias.y + output.beta * c.y,
                                   bias.z + output.beta * c.z, bias.w + output.beta * c.w);
    }
  }
  return addends;
}

/* Reads back a lane's four columns of four rows, transforms and stores them. */
static __device__ __forceinline__ void gemm_store_fours(const uint8_t *staging,
                                                        const GemmAddends &addends,
                                                        const GemmOutput &output, int64_t first,
                                                        int row, int column) {
  int lane = threadIdx.x % 32;
  float v[16];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float4 sum = *(const float4 *)(staging + gemm_staged(lane / 8 + 4 * i, lane % 8 * 16));
    v[4 * i] = output.alpha * sum.x + addends.row[i].x;
    v[4 * i + 1] = output.alpha * sum.y + addends.row[i].y;
    v[4 * i + 2] = output.alpha * sum.z + addends.row[i].z;
    v[4 * i + 3] = output.alpha * sum.w + addends.row[i].w;
  }
  gemm_activate<16>(output, v);
  int64_t at = first + row * output.row_stride + column;
  if (column >= output.n) return;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (row + 4 * i < output.m) {
      gemm_write_four(output.type, output.c, at + 4 * i * output.row_stride,
                      make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]));
    }
  }
}

/* The same for rows that are not aligned, or whose last four columns are not all there: element by
 * element. */
static __device__ __forceinline__ void gemm_store_elements(const uint8_t *staging, int columns,
                                                           const GemmOutput &output, int64_t first,
                                                           int row, int column) {
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < 16 * GEMM_TRANSFORMED_N; i += 32) {
    int r = i / GEMM_TRANSFORMED_N, at = i % GEMM_TRANSFORMED_N;
    if (at >= columns || row + r >= output.m || column + at >= output.n) continue;
    int64_t place = first + (row + r) * output.row_stride + column + at;
    float v = output.alpha * *(const float *)(staging + gemm_staged(r, at * 4));
    if (output.bias != NULL) v += gemm_read(output.type, output.bias, column + at);
    if (output.beta != 0) v += output.beta * gemm_read(output.type, output.c, place);
    gemm_activate<1>(output, &v);
    gemm_write(output.type, output.c, place, v);
  }
}

template <int COLUMNS>
static __device__ __forceinline__ void gemm_store_transformed(uint8_t *staging, const float *d,
                                                              const GemmOutput &output,
                                                              int64_t first, int row, int column) {
  enum { CHUNKS = (COLUMNS + GEMM_TRANSFORMED_N - 1) / GEMM_TRANSFORMED_N };
  int lane = threadIdx.x % 32;
  GemmAddends next, addends;
#pragma unroll 1
  for (int chunk = -1; chunk < CHUNKS; chunk++) {
    int at = lane % 8 * 4; /* this lane's columns of the next chunk */
    int next_column = column + (chunk + 1) * GEMM_TRANSFORMED_N + at;
    bool there = (chunk + 1) * GEMM_TRANSFORMED_N + at < COLUMNS;
    if (output.eights && there) {
      next = gemm_read_addends(output, first, row + lane / 8, next_column);
    }
    if (chunk >= 0) {
      __syncwarp(); /* the chunk before has been read */
      gemm_stage_chunk<COLUMNS>(staging, d, chunk);
      __syncwarp();
      int chunk_column = chunk * GEMM_TRANSFORMED_N;
      if (!output.eights) {
        gemm_store_elements(staging, COLUMNS - chunk_column, output, first, row,
                            column + chunk_column);
      } else if (chunk_column + at < COLUMNS) {
        gemm_store_fours(staging, addends, output, first, row + lane / 8,
                         column + chunk_column + at);
      }
    }
    addends = next;
  }
}

/* ---- Both ---- */

/* A warp's 16 rows by COLUMNS columns (a multiple of 16), from (row, column) of C on. */
template <int COLUMNS>
static __device__ __forceinline__ void gemm_store(uint8_t *staging, const float *d,
                                                  const GemmOutput &output, int batch, int row,
                                                  int column) {
  enum { WHOLE = COLUMNS / GEMM_CHUNK_N * GEMM_CHUNK_N, REST = COLUMNS - WHOLE };
  int64_t first = batch * output.batch_stride;
  if (!output.plain) {
    gemm_store_transformed<COLUMNS>(staging, d, output, first, row, column);
    return;
  }
  uint16_t *c = (uint16_t *)output.c + first;
#pragma unroll
  for (int at = 0; at < WHOLE; at += GEMM_CHUNK_N) {
    gemm_store_rounded<GEMM_CHUNK_N>(staging, d + at / 2, output, c, row, column + at);
  }
  if (REST > 0) {
    gemm_store_rounded<(REST > 0 ? REST : 16)>(staging, d + WHOLE / 2, output, c, row,
                                               column + WHOLE);
  }
}

#endif
