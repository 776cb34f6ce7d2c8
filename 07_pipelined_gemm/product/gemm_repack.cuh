/* gemm_repack.cuh: copies operands that TMA cannot read to some that it can read, whose rows are
 * 16-byte aligned. The copies take time, but little in comparison with a large product. */
#ifndef PIPELINED_GEMM_GEMM_REPACK_CUH
#define PIPELINED_GEMM_GEMM_REPACK_CUH

#include "gemm_classes.cuh"

/* Rows of `columns` elements; row r of all batches together is row r % rows of matrix r / rows. `team` threads
 * copy a row, or a part of it, together: a warp or a whole block. If the other operand is read in classes, the
 * matrices are copies of one, each with zeros in front of its rows and behind them. */
typedef struct {
  void *to;
  const void *from;
  int64_t all_rows, rows, columns, to_stride, from_stride, from_batch_stride;
  int64_t from_columns; /* of the elements there, without the zeros */
  GemmClasses classes;  /* of the other operand */
  int team;
} GemmRepackedOperand;

/* Both operands are copied by one kernel: a launch takes about as long as copying a megabyte. */
typedef struct {
  GemmRepackedOperand operands[2];
  int first_blocks; /* so many blocks copy operands[0], the others operands[1] */
} GemmRepacking;

/* Element: uint16_t or uint8_t. */
template <class Element>
static __global__ void __launch_bounds__(256)
    gemm_repack(const __grid_constant__ GemmRepacking repacking) {
  enum { EACH = 8 };
  gemm_let_next_kernel_start();
  gemm_wait_for_earlier_kernels();
  bool is_first = (int)blockIdx.x < repacking.first_blocks;
  const GemmRepackedOperand &o = repacking.operands[is_first ? 0 : 1];
  int block = (int)blockIdx.x - (is_first ? 0 : repacking.first_blocks);
  int blocks = is_first ? repacking.first_blocks : (int)gridDim.x - repacking.first_blocks;
  int member = threadIdx.x % o.team, teams = 256 / o.team;
  int64_t row_parts = (o.columns + o.team * EACH - 1) / (o.team * EACH);
  for (int64_t part = (int64_t)block * teams + threadIdx.x / o.team; part < o.all_rows * row_parts;
       part += (int64_t)blocks * teams) {
    int64_t row = part / row_parts, first = part % row_parts * o.team * EACH + member;
    const Element *from =
        (const Element *)o.from + row / o.rows * o.from_batch_stride + row % o.rows * o.from_stride;
    int front = gemm_class_front(o.classes, (int)(row / o.rows));
    Element *to = (Element *)o.to + row * o.to_stride, held[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      int64_t column = first + i * o.team - front;
      held[i] = 0;
      if (column >= 0 && column < o.from_columns) held[i] = from[column];
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      if (first + i * o.team < o.columns) to[first + i * o.team] = held[i];
    }
  }
}

#endif
