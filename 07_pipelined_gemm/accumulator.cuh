/* accumulator.cuh: rounds an accumulator to bf16 and writes it out. Also what warpgroups with different
 * jobs need: setmaxnreg, which gives the consumers enough registers, and named barriers. */
#ifndef PIPELINED_GEMM_ACCUMULATOR_CUH
#define PIPELINED_GEMM_ACCUMULATOR_CUH

#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"

/* PTX ISA: cvt.rn.bf16x2.f32. Two values to bf16, rounded to nearest even, `low` in the low half.
 */
static __device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/* Writes the 16 x (8 * columns_of_8) part of C that this warp's threads hold, straight from the
 * registers: `d` as wgmma.cuh describes it, (row, column) the place of the warp's first element.
 * n is a multiple of 8. Four threads together write 16 bytes, which is half of a 32-byte sector:
 * simple, but not the fastest way. */
static __device__ __forceinline__ void store_accumulator(uint16_t *c, const float *d,
                                                         int columns_of_8, int row, int column,
                                                         int m, int n) {
  int lane = threadIdx.x % 32;
  row += lane / 4;
#pragma unroll
  for (int i = 0; i < columns_of_8; i++) {
    int at = column + 8 * i + lane % 4 * 2;
    if (at >= n) continue;
    if (row < m) *(uint32_t *)&c[(size_t)row * n + at] = pack_bf16(d[4 * i], d[4 * i + 1]);
    if (row + 8 < m) {
      *(uint32_t *)&c[(size_t)(row + 8) * n + at] = pack_bf16(d[4 * i + 2], d[4 * i + 3]);
    }
  }
}

/* PTX ISA: stmatrix, four 8x8 matrices of 16-bit elements. Lane i gives the address of the 16-byte
 * row i % 8 of matrix i / 8. A thread holds the same two elements of each matrix as in an
 * accumulator: row lane / 4, columns 2 * (lane % 4) and the next. So one instruction writes the four
 * packed pairs of an accumulator's 16 x 16 square to shared memory, 16 bytes a row. */
static __device__ __forceinline__ void stmatrix_x4(uint32_t address, uint32_t a, uint32_t b,
                                                   uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

/* PTX ISA: setmaxnreg. Gives registers back, or takes them, until this warpgroup's threads have so many:
 * a multiple of 8 from 24 to 256. All warps of a warpgroup execute it, and it needs the
 * __launch_bounds__ from which the compiler knows how many the kernel starts with. The compiler keeps
 * each branch within its number. */
template <int REGISTERS>
static __device__ __forceinline__ void setmaxnreg_dec(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
static __device__ __forceinline__ void setmaxnreg_inc(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* A kernel of 384 threads starts with at most 168 registers a thread (65,536 by 384, rounded down to a
 * multiple of 8). The producer's warpgroup gives back all but 56, the two consumer warpgroups take
 * 224 each: 128 * 56 + 256 * 224 = 64,512 = 384 * 168. With 24 the producer would spill. */
static __device__ __forceinline__ void setmaxnreg_producer(void) { setmaxnreg_dec<56>(); }

static __device__ __forceinline__ void setmaxnreg_consumer(void) { setmaxnreg_inc<224>(); }

#endif
