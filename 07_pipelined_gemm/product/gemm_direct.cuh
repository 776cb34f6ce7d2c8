/* gemm_direct.cuh: loads operands that TMA cannot read, because their lines do not begin at multiples
 * of 16 bytes.
 *
 * The four warps of a producer warpgroup read lines of 64 elements, two elements a lane. They write them to the
 * stage as TMA would: with the 128-byte swizzle, and with zeros for what lies outside. If all lines begin
 * at multiples of 4 bytes, cp.async copies them, several stages ahead. Otherwise the warps read words into
 * registers and shift them by an element where a line begins in the middle of a word.
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

/* The lines of a block that belong to this warp, whatever their alignment. Those that are 4 lines apart begin
 * at the same place in a word. Only what is inside of a line is read. */
template <int MAJOR>
struct GemmDirectLines {
  uint32_t held[GEMM_LINES_HELD]; /* words as they lie in memory */
  uint32_t after;                 /* what follows the words of line number `lane` */
  int shift;                      /* the words begin so many elements before the lanes' elements */

  __device__ __forceinline__ void read(const GemmOperand &operand, int row, int k, int batch) {
    GemmDirectPlace<MAJOR> at = GemmDirectPlace<MAJOR>::of(operand, row, k, batch);
    int lane = threadIdx.x % 32;
    shift = (int)((uintptr_t)at.from / 2 % 2);
    int first = at.x - shift, second = first + 1;
    int lines = operand.lines - at.y;
    int lines_of_first = first >= 0 && first < operand.line ? lines : 0;
    int lines_of_second = second < operand.line ? lines : 0;
    const uint16_t *pair = at.from - shift;
#pragma unroll
    for (int j = 0; j < GEMM_LINES_HELD; j++, pair += 4 * operand.line_stride) {
      held[j] = 0;
      if (4 * j < min(lines_of_first, lines_of_second)) {
        held[j] = *(const uint32_t *)pair;
      } else if (4 * j < lines_of_first) {
        held[j] = pair[0];
      } else if (4 * j < lines_of_second) {
        held[j] = (uint32_t)pair[1] << 16;
      }
    }
    int past = at.x - 2 * lane + 63;
    bool reads = shift != 0 && lane < GEMM_LINES_HELD && past < operand.line &&
                 at.y + 4 * lane < operand.lines;
    after = reads ? at.from[63 - 2 * lane + 4 * lane * operand.line_stride] : 0;
  }

  __device__ __forceinline__ void write(uint8_t *block) const {
    int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < GEMM_LINES_HELD; j++) {
      uint32_t value = held[j];
      if (shift != 0) { /* for all lanes of a warp */
        uint32_t next = __shfl_down_sync(0xFFFFFFFF, value, 1);
        uint32_t last = __shfl_sync(0xFFFFFFFF, after, j);
        value = __byte_perm(value, lane == 31 ? last : next, 0x5432);
      }
      *(uint32_t *)(block + gemm_direct_offset(4 * j + warp)) = value;
    }
  }
};

/* ROWS rows by 64 k of any alignment: first read, then written. */
template <int MAJOR, int ROWS>
struct GemmDirectLoad {
  enum { BLOCKS = ROWS / 64 };
  GemmDirectLines<MAJOR> blocks[BLOCKS];

  __device__ __forceinline__ void begin(const GemmOperand &operand, int row, int k, int batch) {
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) blocks[i].read(operand, row + 64 * i, k, batch);
  }

  __device__ __forceinline__ void end(uint8_t *tile) {
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) blocks[i].write(tile + i * GEMM_BLOCK_BYTES);
  }
};

#endif
