/* gemm_epilogue.cuh: what becomes of an accumulator: alpha, beta, bias and activation, the rounding
 * to C's type, and the way to global memory.
 *
 * A warp has 16 rows of the accumulator (../fragment_layout.cu shows which thread has what) and works
 * through them in chunks, each by way of its staging memory, 2 KiB of shared memory:
 *   - what is only rounded to 16 bits, to rows that are aligned: stmatrix to the staging memory, then 16 bytes at a
 *     time to C;
 *   - all else: in fp32 to the staging memory. From there each lane takes four neighbours of a row of C,
 *     applies what is to be applied, and stores them.
 * Kernels that compute transpose(C) = B * transpose(A) have 16 columns of C where others have 16 rows. They
 * transpose on the way to the staging memory, which holds C as it is; nothing else differs. */
#ifndef PIPELINED_GEMM_GEMM_EPILOGUE_CUH
#define PIPELINED_GEMM_GEMM_EPILOGUE_CUH

#include "../../02_tma_load/mbarrier.cuh"
#include "../accumulator.cuh"
#include "gemm_types.cuh"

constexpr int GEMM_STAGING_BYTES = 2048; /* for a warp: 16 x 64 of 16 bits, or 16 x 32 in fp32 */

/* ---- Values of C's type ---- */

/* Two values to 16 bits each, rounded to nearest even, `low` in the low half. */
template <int TYPE>
static __device__ __forceinline__ uint32_t gemm_pack(float low, float high) {
  if (gemm_rounded_type(TYPE) == GEMM_BF16) return pack_bf16(low, high);
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
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

/* Four neighbours of C or of the bias, of which `inside` are there; the others are zero. */
template <int TYPE>
static __device__ __forceinline__ void gemm_read_four(const GemmOutput &output, const void *from,
                                                      int64_t at, int inside, float v[4]) {
  const uint16_t *halves = (const uint16_t *)from + at;
  const float *floats = (const float *)from + at;
  bool fp32 = output.type == GEMM_FP32;
#pragma unroll
  for (int j = 0; j < 4; j++) v[j] = 0;
  if (output.eights && inside > 0) { /* all four */
    if (fp32) {
      float4 four = *(const float4 *)floats;
      v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
    } else {
      uint2 packed = *(const uint2 *)halves;
      float2 low = gemm_unpack<TYPE>(packed.x), high = gemm_unpack<TYPE>(packed.y);
      v[0] = low.x, v[1] = low.y, v[2] = high.x, v[3] = high.y;
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (j < inside) v[j] = fp32 ? floats[j] : gemm_unpack<TYPE>(halves[j]).x;
  }
}

template <int TYPE>
static __device__ __forceinline__ void gemm_write_four(const GemmOutput &output, int64_t at,
                                                       int inside, const float v[4]) {
  uint16_t *halves = (uint16_t *)output.c + at;
  float *floats = (float *)output.c + at;
  bool fp32 = output.type == GEMM_FP32;
  uint32_t low = gemm_pack<TYPE>(v[0], v[1]), high = gemm_pack<TYPE>(v[2], v[3]);
  if (output.eights && inside > 0) {
    if (fp32) *(float4 *)floats = make_float4(v[0], v[1], v[2], v[3]);
    if (!fp32) *(uint2 *)halves = make_uint2(low, high);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (j >= inside) continue;
    if (fp32) floats[j] = v[j];
    if (!fp32) halves[j] = (uint16_t)((j < 2 ? low : high) >> j % 2 * 16);
  }
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

/* Rounds COLUMNS columns of an accumulator to 16 bits, in e4m3 after they are multiplied by the scales. */
template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void gemm_pack_all(uint32_t *packed, const float *d,
                                                     float scales) {
#pragma unroll
  for (int i = 0; i < COLUMNS / 4; i++) {
    packed[i] = gemm_is_e4m3(TYPE) ? gemm_pack<TYPE>(scales * d[2 * i], scales * d[2 * i + 1])
                                   : gemm_pack<TYPE>(d[2 * i], d[2 * i + 1]);
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

/* ---- The staging memory ---- */

/* Where an element of 16 bits lies there: lines of N elements under the swizzle of that width, so that
 * neither eight rows of one column nor one row meet in a bank. */
template <int N>
static __device__ __forceinline__ uint32_t gemm_staged(int row, int byte) {
  uint32_t offset = (uint32_t)(row * (N * 2) + byte);
  return offset ^ (offset >> 7 & (N / 8 - 1)) << 4;
}

/* Puts N columns of an accumulator there that are rounded: 16 lines of N elements. */
template <int N>
static __device__ __forceinline__ void gemm_stage_packed(uint8_t *staging, const uint32_t *packed) {
  int lane = threadIdx.x % 32;
  uint32_t base = shared_address(staging);
#pragma unroll
  for (int at = 0; at < N; at += 16) {
    const uint32_t *v = packed + at / 4;
    stmatrix_x4(base + gemm_staged<N>(lane % 16, (at + lane / 16 * 8) * 2), v[0], v[1], v[2], v[3]);
  }
}

/* The same transposed: N lines of 16 elements. PTX ISA: stmatrix with .trans. A thread holds two elements of
 * a column of each 8x8 matrix instead of two of a row. */
template <int N>
static __device__ __forceinline__ void gemm_stage_transposed(uint8_t *staging,
                                                             const uint32_t *packed) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int at = 0; at < N; at += 16) {
    const uint32_t *v = packed + at / 4;
    uint32_t to =
        shared_address(staging) + gemm_staged<16>(at + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 16);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
                 : "memory");
  }
}

/* Puts N columns of an accumulator there in fp32: 16 lines of N, or N lines of 16. Lines are rotated so that
 * the lanes of a warp meet in few banks; groups of four stay together. */
template <int WIDTH>
static __device__ __forceinline__ int gemm_staged_fp32(int row, int column) {
  return row * WIDTH + (column + row / (32 / WIDTH) * 4) % WIDTH;
}

template <int N, bool SWAPPED>
static __device__ __forceinline__ void gemm_stage_fp32(float *staging, const float *d) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < N / 2; i++) {
    int row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    staging[SWAPPED ? gemm_staged_fp32<16>(column, row) : gemm_staged_fp32<N>(row, column)] = d[i];
  }
}

/* ---- The way to global memory ---- */

/* PTX ISA: st with .cs, for what nobody reads soon. It is nvcc's __stcs, of which clang has none for 16 bytes. */
static __device__ __forceinline__ void gemm_store_streaming(uint4 *to, uint4 value) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(value.x), "r"(value.y),
               "r"(value.z), "r"(value.w)
               : "memory");
}

/* ROWS lines of N elements that are rounded and staged, to (row, column) of C, whose lines are aligned: 16 bytes at
 * a time. */
template <int N, int ROWS>
static __device__ __forceinline__ void gemm_write_vectors(const uint8_t *staging,
                                                          const GemmOutput &output, uint16_t *c,
                                                          int row, int column) {
  enum { VECTORS = N / 8 }; /* in a row */
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < VECTORS * ROWS; i += 32) {
    int r = (i + lane) / VECTORS, at = (i + lane) % VECTORS * 8;
    if (row + r >= output.m || column + at >= output.n) continue;
    uint4 *to = (uint4 *)(c + (row + r) * output.row_stride + column + at);
    uint4 value = *(const uint4 *)(staging + gemm_staged<N>(r, at * 2));
    if (output.streaming) {
      gemm_store_streaming(to, value);
    } else {
      *to = value;
    }
  }
}

/* ROWS lines of WIDTH sums that are staged in fp32: finishes them and stores them from (row, column) of C on.
 * A lane has four neighbours of a row, and reads what it needs of the old C before it stores. */
template <int TYPE, int WIDTH, int ROWS>
static __device__ __forceinline__ void gemm_finish(const float *staging, const GemmOutput &output,
                                                   int batch, int row, int column) {
  enum { TIMES = WIDTH * ROWS / 128, ROWS_AT_ONCE = 128 / WIDTH };
  int lane = threadIdx.x % 32, line = lane * 4 / WIDTH, at = lane * 4 % WIDTH;
  int columns = output.n - column - at;
  int64_t first = batch * output.batch_stride + (row + line) * output.row_stride + column + at;
  float alpha = gemm_alpha<TYPE>(output), bias[4], old[TIMES][4];
  gemm_read_four<TYPE>(output, output.bias, column + at, output.bias == NULL ? 0 : columns, bias);
#pragma unroll
  for (int i = 0; i < TIMES; i++) {
    bool has = output.beta != 0 && row + line + i * ROWS_AT_ONCE < output.m;
    gemm_read_four<TYPE>(output, output.c, first + i * ROWS_AT_ONCE * output.row_stride,
                         has ? columns : 0, old[i]);
  }
#pragma unroll
  for (int i = 0; i < TIMES; i++) {
    int r = line + i * ROWS_AT_ONCE;
    float4 sums = *(const float4 *)&staging[gemm_staged_fp32<WIDTH>(r, at)];
    float v[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = alpha * v[j] + bias[j] + output.beta * old[i][j];
    gemm_activate<4>(output, v);
    gemm_write_four<TYPE>(output, first + i * ROWS_AT_ONCE * output.row_stride,
                          row + r < output.m ? columns : 0, v);
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

/* A warp's 16 rows by COLUMNS columns of an accumulator, whose first is (row, column) of C; if SWAPPED, its rows
 * are columns of C and its columns rows. What lies beyond output.m and output.n is not stored.
 *
 * Chunks that are only rounded follow each other without a loop. All others share the code of one: unrolled,
 * it would be most of what there is to compile. */
template <int TYPE, int COLUMNS, bool SWAPPED>
static __device__ __forceinline__ void gemm_store(uint8_t *staging, const float *d,
                                                  const GemmOutput &output, int batch, int row,
                                                  int column) {
  enum {
    N = COLUMNS % 64 == 0   ? 64
        : COLUMNS % 32 == 0 ? 32
                            : 16,
    LOOP_N = N < 32 || COLUMNS > 128 ? 16 : 32 /* fewer where few registers are left */
  };
  if (output.plain && output.eights) {
    float scales = gemm_alpha<TYPE>(output);
    uint16_t *c = (uint16_t *)output.c + batch * output.batch_stride;
#pragma unroll
    for (int at = 0; at < COLUMNS; at += N) {
      uint32_t packed[N / 4];
      gemm_pack_all<TYPE, N>(packed, d + at / 2, scales);
      __syncwarp(); /* what was in the staging memory has been read */
      if (SWAPPED) {
        gemm_stage_transposed<N>(staging, packed);
        __syncwarp();
        gemm_write_vectors<16, N>(staging, output, c, row + at, column);
      } else {
        gemm_stage_packed<N>(staging, packed);
        __syncwarp();
        gemm_write_vectors<N, 16>(staging, output, c, row, column + at);
      }
    }
    return;
  }
#pragma unroll 1
  for (int at = 0; at < COLUMNS; at += LOOP_N) {
    float chunk[LOOP_N / 2];
    gemm_move_chunk<COLUMNS, LOOP_N>(d, at, chunk);
    __syncwarp(); /* what was in the staging memory has been read */
    gemm_stage_fp32<LOOP_N, SWAPPED>((float *)staging, chunk);
    __syncwarp();
    if (SWAPPED) {
      gemm_finish<TYPE, 16, LOOP_N>((const float *)staging, output, batch, row + at, column);
    } else {
      gemm_finish<TYPE, LOOP_N, 16>((const float *)staging, output, batch, row, column + at);
    }
  }
}

#endif
