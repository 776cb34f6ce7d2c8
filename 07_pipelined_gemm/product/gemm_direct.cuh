/* gemm_direct.cuh: loads operands that TMA cannot read, because their lines do not begin at multiples
 * of 16 bytes.
 *
 * The four warps of a producer warpgroup read lines of 64 elements with ordinary loads, two elements a
 * lane. They write them to the stage as TMA would: with the 128-byte swizzle, and with zeros for what
 * lies outside. Copying an operand first (gemm_repack.cuh) and loading the copy by TMA moves three times
 * as many bytes. If an operand is used only once or twice, that would take most of the time. */
#ifndef PIPELINED_GEMM_GEMM_DIRECT_CUH
#define PIPELINED_GEMM_GEMM_DIRECT_CUH

#include "gemm_operands.cuh"

/* 64 lines of 64 elements, divided among four warps: this warp's lines, in registers between two memories. */
constexpr int GEMM_LINES_HELD = 16;

/* Line number i of a block is a row of it (K-major), or one k of its 64 rows (MN-major). WORDS: all lines
 * begin at multiples of 4 bytes and have an even length. */
template <int MAJOR, bool WORDS>
static __device__ __forceinline__ void gemm_read_lines(const GemmOperand &operand, int row, int k,
                                                       int batch, uint32_t *held) {
  int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  int x = (MAJOR == GEMM_K_MAJOR ? k : row) + 2 * lane;
  int y = (MAJOR == GEMM_K_MAJOR ? row : k) + warp;
  const uint16_t *from =
      operand.memory + batch * operand.batch_stride + y * operand.line_stride + x;
#pragma unroll
  for (int j = 0; j < GEMM_LINES_HELD; j++) {
    bool inside = y + 4 * j < operand.lines && x < operand.line;
    const uint16_t *pair = from + 4 * j * operand.line_stride;
    if (WORDS) {
      held[j] = inside ? *(const uint32_t *)pair : 0;
    } else {
      uint32_t low = inside ? pair[0] : 0, high = inside && x + 1 < operand.line ? pair[1] : 0;
      held[j] = high << 16 | low;
    }
  }
}

static __device__ __forceinline__ void gemm_write_lines(uint8_t *block, const uint32_t *held) {
  int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < GEMM_LINES_HELD; j++) {
    int i = 4 * j + warp;
    uint32_t *to =
        (uint32_t *)(block + i * GEMM_ROW_BYTES + ((lane / 4) ^ (i % 8)) * 16 + lane % 4 * 4);
    *to = held[j];
  }
}

/* ROWS rows by 64 k. In words, all lines are loaded at once. Otherwise there are registers for one block. */
template <int MAJOR, int ROWS, bool WORDS>
struct GemmDirectLoad {
  enum { BLOCKS = ROWS / 64 };
  uint32_t held[WORDS ? BLOCKS : 1][GEMM_LINES_HELD];

  __device__ __forceinline__ void begin(const GemmOperand &operand, int row, int k, int batch) {
#pragma unroll
    for (int i = 0; i < BLOCKS && WORDS; i++) {
      gemm_read_lines<MAJOR, WORDS>(operand, row + 64 * i, k, batch, held[i]);
    }
  }

  __device__ __forceinline__ void end(const GemmOperand &operand, int row, int k, int batch,
                                      uint8_t *tile) {
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
      if (!WORDS) gemm_read_lines<MAJOR, WORDS>(operand, row + 64 * i, k, batch, held[0]);
      gemm_write_lines(tile + i * GEMM_BLOCK_BYTES, held[WORDS ? i : 0]);
    }
  }
};

#endif
