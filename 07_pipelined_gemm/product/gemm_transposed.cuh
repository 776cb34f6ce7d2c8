/* gemm_transposed.cuh: the epilogue of kernels that compute transpose(C) = B * transpose(A).
 *
 * The m of a wgmma is 64 and its n a multiple of 8. So a product with few rows, or with a few more than
 * a multiple of 64, is computed with swapped operands. A warp's 16 rows of the accumulator are then
 * 16 columns of C, and the accumulator's columns are rows of C. stmatrix and ldmatrix transpose on the
 * way to and from the staging memory, which holds lines of 16 elements of C under the 32-byte swizzle:
 *
 *     accumulator     16 rows x 64 columns         staging memory      64 lines x 16 elements
 *     n (of C) down, m across              ->      m down, n across: as C has them */
#ifndef PIPELINED_GEMM_GEMM_TRANSPOSED_CUH
#define PIPELINED_GEMM_GEMM_TRANSPOSED_CUH

#include "gemm_epilogue.cuh"

/* PTX ISA: stmatrix and ldmatrix with .trans. A thread holds two elements of a column of each 8x8
 * matrix instead of two of a row. */
static __device__ __forceinline__ void gemm_stmatrix_x4_trans(uint32_t address, const uint32_t *v) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
      : "memory");
}

static __device__ __forceinline__ void gemm_ldmatrix_x4_trans(uint32_t address, uint32_t *v) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(address)
               : "memory");
}

/* The place of a lane's row in the four 8x8 matrices of 16 lines from `line` on: matrix 0 has the first
 * 8 elements of the first 8 lines, 1 the other 8 elements, 2 and 3 the same of the other 8 lines. */
static __device__ __forceinline__ uint32_t gemm_transposed_at(uint32_t staging, int line) {
  int lane = threadIdx.x % 32;
  return staging + gemm_staged<16>(line + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 16);
}

static __device__ __forceinline__ void gemm_stmatrix_x2_trans(uint32_t address, const uint32_t *v) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address),
               "r"(v[0]), "r"(v[1])
               : "memory");
}

/* Writes N columns of a rounded accumulator to the staging memory, as N lines. */
template <int N>
static __device__ __forceinline__ void gemm_stage_transposed(uint8_t *staging,
                                                             const uint32_t *packed) {
  uint32_t base = shared_address(staging);
#pragma unroll
  for (int at = 0; at < N; at += 16) {
    if (at + 16 <= N) {
      gemm_stmatrix_x4_trans(gemm_transposed_at(base, at), packed + at / 4);
    } else {
      gemm_stmatrix_x2_trans(gemm_transposed_at(base, at), packed + at / 4);
    }
  }
}

/* Writes ROWS lines of the old C to the staging memory, from (row, column) on. */
template <int ROWS>
static __device__ __forceinline__ void gemm_stage_old_lines(uint8_t *staging,
                                                            const GemmOutput &output, int batch,
                                                            int row, int column) {
  int lane = threadIdx.x % 32;
  const uint16_t *c = (const uint16_t *)output.c + batch * output.batch_stride;
  if (output.eights) {
#pragma unroll
    for (int i = lane; i < 2 * ROWS; i += 32) {
      int r = i / 2, at = i % 2 * 8;
      uint4 old = make_uint4(0, 0, 0, 0);
      if (row + r < output.m && column + at < output.n) {
        old = *(const uint4 *)(c + (row + r) * output.row_stride + column + at);
      }
      *(uint4 *)(staging + gemm_staged<16>(r, at * 2)) = old;
    }
    return;
  }
#pragma unroll 1
  for (int i = lane; i < 16 * ROWS; i += 32) {
    int r = i / 16, at = i % 16;
    bool inside = row + r < output.m && column + at < output.n;
    *(uint16_t *)(staging + gemm_staged<16>(r, at * 2)) =
        inside ? c[(row + r) * output.row_stride + column + at] : (uint16_t)0;
  }
}

/* v = alpha * v + bias + beta * C for ROWS columns of the accumulator. The bias is that of a lane's
 * two rows of it. */
template <int TYPE, int ROWS>
static __device__ __forceinline__ void gemm_add_transposed(uint8_t *staging,
                                                           const GemmOutput &output, int batch,
                                                           int row, int column, float2 bias,
                                                           float *v) {
  bool staged = output.beta != 0 && output.type != GEMM_FP32;
  float alpha = gemm_alpha<TYPE>(output);
  __syncwarp(); /* what was in the staging memory has been read */
  if (staged) gemm_stage_old_lines<ROWS>(staging, output, batch, row, column);
  __syncwarp();
#pragma unroll
  for (int at = 0; at < ROWS; at += 16) {
    uint32_t old[4] = {0, 0, 0, 0};
    if (staged) gemm_ldmatrix_x4_trans(gemm_transposed_at(shared_address(staging), at), old);
#pragma unroll
    for (int i = 0; i < 4; i++) { /* even: the upper row of the accumulator */
      float *two = v + at / 2 + 2 * i, sum = i % 2 ? bias.y : bias.x;
      two[0] = alpha * two[0] + sum, two[1] = alpha * two[1] + sum;
      if (!staged) continue;
      float2 c = gemm_unpack<TYPE>(old[i]);
      two[0] += output.beta * c.x, two[1] += output.beta * c.y;
    }
  }
  __syncwarp(); /* the old C has been read */
}

/* fp32: straight from the registers; eight lanes have the 32 bytes of a sector. */
template <int ROWS>
static __device__ __forceinline__ void gemm_finish_fp32_transposed(const GemmOutput &output,
                                                                   int batch, int row, int column,
                                                                   float *v) {
  int lane = threadIdx.x % 32;
  row += lane % 4 * 2, column += lane / 4;
  float *c = (float *)output.c + batch * output.batch_stride + row * output.row_stride + column;
#pragma unroll
  for (int i = 0; i < ROWS / 2; i++) {
    int r = i / 4 * 8 + i % 2, at = i / 2 % 2 * 8;
    float *to = c + r * output.row_stride + at;
    if (row + r >= output.m || column + at >= output.n) continue;
    if (output.beta != 0) v[i] += output.beta * *to;
    gemm_activate<1>(output, v + i);
    *to = v[i];
  }
}

/* ROWS columns of the accumulator that are rounded, to as many rows of C. */
template <int TYPE, int ROWS>
static __device__ __forceinline__ void gemm_write_transposed(uint8_t *staging,
                                                             const GemmOutput &output, int batch,
                                                             int row, int column, const float *v) {
  uint32_t packed[ROWS / 4];
  gemm_pack_all<TYPE, ROWS>(packed, v);
  __syncwarp(); /* what was in the staging memory has been read */
  gemm_stage_transposed<ROWS>(staging, packed);
  __syncwarp();
  gemm_write_chunk<16, ROWS>(staging, output, batch, row, column);
}

/* A warp's accumulator of COLUMNS columns, of which it stores the `chunks` (gemm_store()), to COLUMNS rows of C
 * from `row` on and 16 columns from `column` on; unrolled only where the values are only rounded (gemm_store()). */
template <int TYPE, int COLUMNS, int TASK = GEMM_ROUNDS_OR_FINISHES>
static __device__ __forceinline__ void gemm_store_transposed(uint8_t *staging, const float *d,
                                                             uint32_t chunks,
                                                             const GemmOutput &output, int batch,
                                                             int row, int column) {
  enum { ROWS = gemm_chunk_n(COLUMNS), LOOP_ROWS = GemmChunks<ROWS, 0>::LOOP_N };
  if (TASK == GEMM_ROUNDS || output.plain) {
#pragma unroll
    for (int at = 0; at < COLUMNS; at += ROWS) {
      if (row + at >= output.m) return;
      float scaled[ROWS / 2];
      int chunk_row = chunks >> at / ROWS & 1 ? row + at : output.m; /* as in gemm_store() */
      gemm_write_transposed<TYPE, ROWS>(staging, output, batch, chunk_row, column,
                                        gemm_scale<TYPE, ROWS / 2>(output, d + at / 2, scaled));
    }
    return;
  }
  float2 bias = make_float2(0, 0);
  if (output.bias != NULL) {
    int at = column + (int)(threadIdx.x % 32) / 4;
    bias = make_float2(gemm_read_bias<TYPE>(output, at), gemm_read_bias<TYPE>(output, at + 8));
  }
#pragma unroll 1
  for (int at = 0; at < COLUMNS && row + at < output.m; at += LOOP_ROWS) {
    if (!(chunks >> at / ROWS & 1)) continue;
    float v[LOOP_ROWS / 2];
    gemm_move_chunk<COLUMNS, LOOP_ROWS>(d, at, v);
    gemm_add_transposed<TYPE, LOOP_ROWS>(staging, output, batch, row + at, column, bias, v);
    if (output.type == GEMM_FP32) {
      gemm_finish_fp32_transposed<LOOP_ROWS>(output, batch, row + at, column, v);
    } else {
      gemm_activate<LOOP_ROWS / 2>(output, v);
      gemm_write_transposed<TYPE, LOOP_ROWS>(staging, output, batch, row + at, column, v);
    }
  }
}

#endif
