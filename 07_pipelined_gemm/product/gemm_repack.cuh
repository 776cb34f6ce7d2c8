/* gemm_repack.cuh: copies an operand that TMA cannot read to one that it can read, whose rows are
 * 16-byte aligned. The copy takes time, but little in comparison with a large product. */
#ifndef PIPELINED_GEMM_GEMM_REPACK_CUH
#define PIPELINED_GEMM_GEMM_REPACK_CUH

#include "gemm_operands.cuh"

/* Copies rows of `columns` elements of 16 or 8 bits; row r of all batches together is row r % rows of matrix
 * r / rows. `team` threads copy a row, or a part of it, together: a warp or a whole block. */
template <class Element>
static __global__ void __launch_bounds__(256)
    gemm_repack(Element *to, const Element *from, int64_t all_rows, int64_t rows, int64_t columns,
                int64_t to_stride, int64_t from_stride, int64_t from_batch_stride, int team) {
  enum { EACH = 8 };
  gemm_let_next_kernel_start();
  gemm_wait_for_earlier_kernels();
  int member = threadIdx.x % team, teams = 256 / team;
  int64_t row_parts = (columns + team * EACH - 1) / (team * EACH);
  for (int64_t part = (int64_t)blockIdx.x * teams + threadIdx.x / team; part < all_rows * row_parts;
       part += (int64_t)gridDim.x * teams) {
    int64_t row = part / row_parts, first = part % row_parts * team * EACH + member;
    const Element *source = from + row / rows * from_batch_stride + row % rows * from_stride;
    Element held[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      if (first + i * team < columns) held[i] = source[first + i * team];
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      if (first + i * team < columns) to[row * to_stride + first + i * team] = held[i];
    }
  }
}

#endif
