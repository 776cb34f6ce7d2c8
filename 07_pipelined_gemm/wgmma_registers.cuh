/* wgmma_registers.cuh: wgmma whose A comes from registers, the one instruction that attention needs
 * beyond those of wgmma.cuh.
 *
 * A thread holds of A (64 x 16) what it would hold of an accumulator of 64 x 16, in pairs of bf16:
 *
 *   row = 16 * (t / 32) + (t % 32) / 4     p[0]: columns 2 * (t % 4) + 0, 1     p[2]: 8 columns later
 *   row + 8                                p[1]: the same columns               p[3]: 8 columns later
 *
 * So the accumulator of one multiplication becomes A of the next without leaving its thread: round
 * d[8i] to d[8i + 7] in pairs and they are p[0] to p[3] of columns 16i to 16i + 15.
 *
 * The registers of A belong to the tensor cores until the wgmma is complete, like the accumulator.
 * B is MN-major: given as [K, N], a line of 128 bytes for each k (see wgmma.cuh). */
#ifndef PIPELINED_GEMM_WGMMA_REGISTERS_CUH
#define PIPELINED_GEMM_WGMMA_REGISTERS_CUH

#include "wgmma.cuh"

/* PTX ISA: wgmma.mma_async with A in registers. After `accumulate`: the signs of A and B (1, 1),
 * then that B is MN-major (1). The length of d chooses the instruction. */
static __device__ __forceinline__ void wgmma_a_registers(float (&d)[32], const uint32_t p[4],
                                                         uint64_t v, uint32_t accumulate) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %37, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16\n"
      "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"
      "     %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},\n"
      "    {%32, %33, %34, %35}, %36, accumulate, 1, 1, 1;\n"
      "}"
      : WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8), WGMMA_INOUT_8(d, 16), WGMMA_INOUT_8(d, 24)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(accumulate));
}

static __device__ __forceinline__ void wgmma_a_registers(float (&d)[64], const uint32_t p[4],
                                                         uint64_t v, uint32_t accumulate) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %69, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16\n"
      "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"
      "     %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,\n"
      "     %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,\n"
      "     %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},\n"
      "    {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
      "}"
      : WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8), WGMMA_INOUT_8(d, 16), WGMMA_INOUT_8(d, 24),
        WGMMA_INOUT_8(d, 32), WGMMA_INOUT_8(d, 40), WGMMA_INOUT_8(d, 48), WGMMA_INOUT_8(d, 56)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(accumulate));
}

/* Says that registers may have changed here. The compiler sees no connection between a wait and the
 * registers that it gives back, so without this it may move arithmetic on them before the wait. (CUDA 13.0 moves none.) */
template <int COUNT>
static __device__ __forceinline__ void wgmma_registers_changed(float (&d)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#endif
