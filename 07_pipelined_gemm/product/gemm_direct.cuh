/* gemm_direct.cuh: loads operands that TMA cannot read, because their lines do not begin at multiples
 * of 16 bytes.
 *
 * The four warps of a producer warpgroup read lines of 64 elements, two elements a lane. They write them to the
 * stage as TMA would: with the 128-byte swizzle, and with zeros for what lies outside. If all lines begin
 * at multiples of 4 bytes, cp.async copies them, several stages ahead. Otherwise the warps read each element by itself.
 *
 * Copying an operand first (gemm_repack.cuh) and loading the copy by TMA moves three times as many bytes. If an
 * operand is used only once or twice, that would take most of the time. */
#ifndef PIPELINED_GEMM_GEMM_DIRECT_CUH
#define PIPELINED_GEMM_GEMM_DIRECT_CUH

#include "gemm_operands.cuh"

/* 64 lines of 64 elements, divided among four warps: this many lines for each. */
constexpr int GEMM_LINES_HELD = 16;
/* Steps whose copies are in flight at once. The ring must have one stage more, unless all steps fit. */
constexpr int GEMM_DIRECT_AHEAD = 3;

/* PTX ISA: cp.async. Copies 4 bytes, or writes 4 zeros if `inside` is false: then nothing is read. */
static __device__ __forceinline__ void gemm_copy_word(uint32_t shared, const void *from,
                                                      bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from),
               "r"(inside ? 4 : 0)
               : "memory");
}

/* PTX ISA: cp.async.commit_group, cp.async.wait_group. Waits until at most so many of this thread's
 * latest groups are still in flight. */
static __device__ __forceinline__ void gemm_commit_copies(void) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int IN_FLIGHT>
static __device__ __forceinline__ void gemm_wait_for_copies(void) {
  asm volatile("cp.async.wait_group %0;" ::"n"(IN_FLIGHT) : "memory");
}

/* A lane's place in a block of 64 lines: element x of every fourth line, from y on. Line number i of a
 * block is a row of it (K-major), or one k of its 64 rows (MN-major). */
template <int MAJOR>
struct GemmDirectPlace {
  int x, y;
  const uint16_t *from; /* what is there */

  static __device__ __forceinline__ GemmDirectPlace of(const GemmOperand &operand, int row, int k,
                                                       int batch) {
    int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    GemmDirectPlace place;
    place.x = (MAJOR == GEMM_K_MAJOR ? k : row) + 2 * lane;
    place.y = (MAJOR == GEMM_K_MAJOR ? row : k) + warp;
    place.from =
        operand.memory + batch * operand.batch_stride + place.y * operand.line_stride + place.x;
    return place;
  }
};

/* Where in a block the two elements of this lane go, of line number i. */
static __device__ __forceinline__ uint32_t gemm_direct_offset(int i) {
  int lane = threadIdx.x % 32;
  return i * GEMM_ROW_BYTES + ((lane / 4) ^ (i % 8)) * 16 + lane % 4 * 4;
}

/* ROWS rows by 64 k, whose lines all begin at multiples of 4 bytes and have an even length: copies that are
 * in flight when it returns. */
template <int MAJOR, int ROWS>
static __device__ __forceinline__ void gemm_copy_directly(const GemmOperand &operand, int row,
                                                          int k, int batch, uint8_t *tile) {
  int warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int block = 0; block < ROWS / 64; block++) {
    GemmDirectPlace<MAJOR> at = GemmDirectPlace<MAJOR>::of(operand, row + 64 * block, k, batch);
    uint32_t to = shared_address(tile + block * GEMM_BLOCK_BYTES);
    const uint16_t *from = at.from;
    int lines = at.x < operand.line ? operand.lines - at.y : 0;
#pragma unroll
    for (int j = 0; j < GEMM_LINES_HELD; j++, from += 4 * operand.line_stride) {
      bool inside = 4 * j < lines;
      gemm_copy_word(to + gemm_direct_offset(4 * j + warp), inside ? from : operand.memory, inside);
    }
  }
}

/* The lines of a block that belong to this warp, whatever their alignment, element by element. */
template <int MAJOR>
static __device__ __forceinline__ void gemm_read_lines(const GemmOperand &operand, int row, int k,
                                                       int batch, uint32_t *held) {
  GemmDirectPlace<MAJOR> at = GemmDirectPlace<MAJOR>::of(operand, row, k, batch);
#pragma unroll
  for (int j = 0; j < GEMM_LINES_HELD; j++) {
    const uint16_t *pair = at.from + 4 * j * operand.line_stride;
    bool inside = at.y + 4 * j < operand.lines && at.x < operand.line;
    uint32_t low = inside ? pair[0] : 0, high = inside && at.x + 1 < operand.line ? pair[1] : 0;
    held[j] = high << 16 | low;
  }
}

/* ROWS rows by 64 k of any alignment, a block at a time. */
template <int MAJOR, int ROWS>
static __device__ __forceinline__ void gemm_load_directly(const GemmOperand &operand, int row,
                                                          int k, int batch, uint8_t *tile) {
  int warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int block = 0; block < ROWS / 64; block++) {
    uint32_t held[GEMM_LINES_HELD];
    gemm_read_lines<MAJOR>(operand, row + 64 * block, k, batch, held);
#pragma unroll
    for (int j = 0; j < GEMM_LINES_HELD; j++) {
      *(uint32_t *)(tile + block * GEMM_BLOCK_BYTES + gemm_direct_offset(4 * j + warp)) = held[j];
    }
  }
}

#endif
