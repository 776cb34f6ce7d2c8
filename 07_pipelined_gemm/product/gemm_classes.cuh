/* gemm_classes.cuh: loads an operand in place by TMA whose rows do not begin at multiples of 16 bytes.
 *
 * Rows that lie 140 bytes apart (k = 70) are out of TMA's reach, but every fourth of them is not: they
 * lie 560 bytes apart. So the rows are divided into classes, row r into class r % 4 here. Each class
 * has a tensor map of its own, whose rows begin at the last multiple of 16 bytes before those of the
 * matrix:
 *
 *     class 0   | 0 1 2 3 4 5 6 7 | 8 9 ...
 *     class 1   | . . . . . . 0 1 | 2 3 ...      all k come 6 elements later
 *     class 2   | . . . . 0 1 2 3 | 4 5 ...      4 elements
 *     class 3   | . . 0 1 2 3 4 5 | 6 7 ...      2 elements
 *
 * These rows are the columns of the kernel's tiles: a tile has columns of one class, and as many that
 * all SMs have the same work (gemm_width.cuh). If they are rows of A, the kernel computes
 * transpose(C). The other operand is copied once for each class, with as many zeros in front of every
 * row. The dots are the end of another row. A zero times a NaN is a NaN, so the dots are replaced by
 * zeros in shared memory. What follows a row's end is outside of the tensor map, so TMA writes zeros
 * there.
 *
 * Copying the operand itself (gemm_repack.cuh) moves three times its bytes. Loading it without TMA
 * (gemm_direct.cuh) takes an instruction for every 128 bytes. */
#ifndef PIPELINED_GEMM_GEMM_CLASSES_CUH
#define PIPELINED_GEMM_GEMM_CLASSES_CUH

#include "gemm_epilogue.cuh"
#include "gemm_operands.cuh"

/* THREADS consumers replace the first `count` elements of at most as many rows in a stage by zeros. */
template <int THREADS>
static __device__ __forceinline__ void gemm_clear_front(uint8_t *stage, int rows, int count) {
  int row = (int)threadIdx.x;
  if (row < rows) {
    uint16_t *front = (uint16_t *)(stage + row * GEMM_ROW_BYTES + row % 8 * 16); /* swizzled */
    for (int i = 0; i < count; i++) front[i] = 0;
  }
  fence_proxy_async(); /* wgmma reads through another proxy */
  asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/* Elements of the class number `number` that come before its rows. */
static inline __host__ __device__ int gemm_class_front(const GemmClasses &classes, int number) {
  return (classes.first_front + number * classes.next_front) % GEMM_MOST_CLASSES;
}

/* Where a class of rows goes: rows of C that lie as far apart, or columns if these are rows of B. */
static __device__ __forceinline__ GemmOutput gemm_class_output(const GemmWork &work, int number,
                                                               bool transposed) {
  GemmOutput output = work.output;
  int count = work.classes.count;
  int64_t first = transposed ? number * output.row_stride : number;
  output.c = (uint8_t *)output.c + first * (output.type == GEMM_FP32 ? 4 : 2);
  if (transposed) {
    output.m = (output.m - number + count - 1) / count;
    output.row_stride *= count;
  } else {
    output.n = (output.n - number + count - 1) / count;
  }
  return output;
}

/* A warp's 16 rows by COLUMNS columns that lie `apart` elements from each other in C; only rounded. */
template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void gemm_store_apart(uint8_t *staging, const float *d,
                                                        uint32_t chunks, const GemmOutput &output,
                                                        int row, int column, int end, int apart) {
  enum { N = gemm_chunk_n(COLUMNS) };
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int at = 0; at < COLUMNS; at += N) {
    uint32_t packed[N / 4];
    gemm_pack_all<TYPE, N>(packed, d + at / 2);
    __syncwarp(); /* what was in the staging memory has been read */
    gemm_stage_packed<N>(staging, packed);
    __syncwarp();
    int columns = chunks >> at / N & 1 ? min(end, output.n) - column - at : 0;
#pragma unroll 4
    for (int i = lane; i < 16 * N; i += 32) {
      int r = i / N, x = i % N;
      if (row + r >= output.m || x >= columns) continue;
      ((uint16_t *)output.c)[(row + r) * output.row_stride + (int64_t)(column + at + x) * apart] =
          *(const uint16_t *)(staging + gemm_staged<N>(r, x * 2));
    }
  }
}

#endif
