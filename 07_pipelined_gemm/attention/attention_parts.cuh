/* attention_parts.cuh: what the three attention programs have in common inside their kernels: two
 * multiplications, the softmax between them, and the store.
 *
 * A warpgroup has 64 queries and takes KEYS keys at a step:
 *
 *   scores    S = Q * transpose(K), 64 x KEYS: both from shared memory, K-major
 *   softmax   in registers: S becomes the weights P
 *   values    O += P * V, 64 x DIM: P from registers, V from shared memory, MN-major
 *
 * A softmax needs the maximum and the sum of its whole row, but the keys come step by step. So each row
 * keeps the maximum so far, and weights are relative to it: exp(score - top). When a step raises the
 * maximum, what was added before is multiplied by exp(old top - new top). The division by the sum
 * comes last. */
#ifndef PIPELINED_GEMM_ATTENTION_PARTS_CUH
#define PIPELINED_GEMM_ATTENTION_PARTS_CUH

#include "../../02_tma_load/tma_load_dimensions.cuh"
#include "../../03_tma_store/tma_store_dimensions.cuh"
#include "../../06_swizzle_3d/swizzle.h"
#include "../accumulator.cuh"
#include "attention_program.cuh"
#include "../wgmma_registers.cuh"

/* PTX ISA: ex2.approx. 2 to the power of x. */
static __device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* Loads all boxes of a tile. */
template <int BOXES, int COUNT>
static __device__ __forceinline__ void load_boxes(uint16_t (&tile)[BOXES][COUNT],
                                                  const CUtensorMap *map, int row, int head,
                                                  int batch, uint64_t *full) {
  mbarrier_arrive_expect_tx(full, sizeof tile);
  for (int box = 0; box < BOXES; box++) {
    tma_load_4d(tile[box], map, box * BOX, row, head, batch, full);
  }
}

/* Starts to multiply 64 rows of Q, whose next 64 columns are Q_BOX elements further, by KEYS keys. */
template <int DIM, int Q_BOX>
static __device__ __forceinline__ void multiply_scores(float (&s)[KEYS / 2], const uint16_t *q,
                                                       const uint16_t *k) {
  enum { NEXT_Q = Q_BOX * 2 / 16, NEXT_K = KEYS * BOX * 2 / 16, STEPS_OF_BOX = BOX / 16 };
  uint64_t a = wgmma_descriptor_k_major(q), b = wgmma_descriptor_k_major(k);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < DIM / 16; i++) {
    int box = i / STEPS_OF_BOX, step = i % STEPS_OF_BOX * WGMMA_K_STEP;
    wgmma_m64n128k16(s, a + box * NEXT_Q + step, b + box * NEXT_K + step, i > 0);
  }
  wgmma_commit();
}

/* Starts to add the weighted values of a step. */
template <int DIM>
static __device__ __forceinline__ void multiply_values(float (&o)[DIM / 2],
                                                       const uint32_t (&p)[KEYS / 16][4],
                                                       const uint16_t *v, bool accumulate) {
  enum { NEXT_16_KEYS = 16 * BOX * 2 / 16 };
  uint64_t b = wgmma_descriptor_mn_major(v, KEYS * BOX * 2);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < KEYS / 16; i++) {
    wgmma_a_registers(o, p[i], b + i * NEXT_16_KEYS, accumulate || i > 0);
  }
  wgmma_commit();
}

/* A thread has scores of two rows, 8 apart: element i belongs to row i / 2 % 2. */
typedef struct {
  float top[2];     /* the largest score so far */
  float sum[2];     /* of this thread's weights, relative to exp(top) */
  float rescale[2]; /* the factor for what was added before the last step */
  int visible[2];   /* keys that the row sees */
  int seen_by_all;  /* keys that every row of the warp sees: no mask before them */
} Rows;

static __device__ __forceinline__ Rows begin_rows(AttentionShape shape, int warps_first_row) {
  Rows rows;
  for (int i = 0; i < 2; i++) {
    rows.top[i] = -INFINITY, rows.sum[i] = 0;
    rows.visible[i] = visible_keys(shape, warps_first_row + threadIdx.x % 32 / 4 + 8 * i);
  }
  rows.seen_by_all = visible_keys(shape, warps_first_row);
  return rows;
}

/* Hides the keys that a row does not see. Only the steps on the diagonal and at the end have any. */
static __device__ __forceinline__ void mask(float (&s)[KEYS / 2], const Rows *rows, int first_key) {
  if (first_key + KEYS <= rows->seen_by_all) return;
  int first = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < KEYS / 2; i++) {
    if (first + i / 4 * 8 + i % 2 >= rows->visible[i / 2 % 2]) s[i] = -INFINITY;
  }
}

/* Turns scores into weights: exp(scale * (score - top)) by one fma and one exp2. */
static __device__ __forceinline__ void softmax(float (&s)[KEYS / 2], Rows *rows, float scale_log2) {
#pragma unroll
  for (int row = 0; row < 2; row++) {
    float top = rows->top[row];
#pragma unroll
    for (int i = 2 * row; i < KEYS / 2; i += 4) top = fmaxf(top, fmaxf(s[i], s[i + 1]));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1)); /* four lanes share a row */
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    /* No key seen yet: all are -inf, and -inf - (-inf) would be NaN. With 0 all weights become 0. */
    float base = top == -INFINITY ? 0 : top * scale_log2;
    rows->rescale[row] = exp2_approx(rows->top[row] * scale_log2 - base);
    rows->top[row] = top;
    float sum = rows->sum[row] * rows->rescale[row];
#pragma unroll
    for (int i = 2 * row; i < KEYS / 2; i += 4) {
      s[i] = exp2_approx(s[i] * scale_log2 - base);
      s[i + 1] = exp2_approx(s[i + 1] * scale_log2 - base);
      sum += s[i] + s[i + 1];
    }
    rows->sum[row] = sum;
  }
}

/* The weights as A of the next multiplication: see wgmma_registers.cuh. */
static __device__ __forceinline__ void round_weights(uint32_t (&p)[KEYS / 16][4],
                                                     const float (&s)[KEYS / 2]) {
#pragma unroll
  for (int i = 0; i < KEYS / 4; i++) p[i / 4][i % 4] = pack_bf16(s[2 * i], s[2 * i + 1]);
}

template <int COUNT>
static __device__ __forceinline__ void multiply_rows(float (&o)[COUNT], const float factor[2]) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) o[i] *= factor[i / 2 % 2];
}

/* Divides by the sums. A row without any key has a sum of 0 and becomes zeros. */
template <int COUNT>
static __device__ __forceinline__ void divide_rows(float (&o)[COUNT], const Rows *rows) {
  float inverse[2];
  for (int i = 0; i < 2; i++) {
    float sum = rows->sum[i];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    inverse[i] = sum > 0 ? 1 / sum : 0;
  }
  multiply_rows(o, inverse);
}

/* A warp stores its 16 rows; TMA cuts off what lies past the end of the sequence. */
template <int DIM>
static __device__ __forceinline__ void store_rows(uint16_t (&out)[DIM / BOX][OUT_ROWS * BOX],
                                                  const float (&o)[DIM / 2], const CUtensorMap *map,
                                                  int row, int head, int batch) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int at = 0; at < DIM; at += 16) {
    uint32_t offset = lane % 16 * (BOX * 2) + (at % BOX + lane / 16 * 8) * 2;
    const float *d = o + at / 2;
    stmatrix_x4(shared_address(out[at / BOX]) + swizzle_128b(offset), pack_bf16(d[0], d[1]),
                pack_bf16(d[2], d[3]), pack_bf16(d[4], d[5]), pack_bf16(d[6], d[7]));
  }
  fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    for (int box = 0; box < DIM / BOX; box++) {
      tma_store_4d(map, out[box], box * BOX, row, head, batch);
    }
    bulk_commit_group();
    bulk_wait_group_read<0>(); /* shared memory must outlive the store */
  }
}

#endif
