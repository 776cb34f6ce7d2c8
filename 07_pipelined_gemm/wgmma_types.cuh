/* wgmma_types.cuh: the wgmma of wgmma.cuh for the other types, m64n64, A and B K-major in shared memory.
 *
 * Every one of them takes 32 bytes of each row of A and B: 16 numbers of 16 bits, 8 of tf32 (32 bits),
 * 32 of 8 bits. So tiles, swizzle and descriptors are the same for all, and the next step along k is
 * WGMMA_K_STEP for all. Only 16-bit operands can be MN-major.
 *
 * A thread has 32 sums. Those of f32 and s32 fill d[0] to d[31], in the places of wgmma.cuh. Sums of
 * f16 lie in pairs in d[0] to d[15]: the even place in the low half. */
#ifndef PIPELINED_GEMM_WGMMA_TYPES_CUH
#define PIPELINED_GEMM_WGMMA_TYPES_CUH

#include "wgmma.cuh"

#define WGMMA_INOUT_BITS_8(d, i)                                                                  \
  "+r"((d)[(i)]), "+r"((d)[(i) + 1]), "+r"((d)[(i) + 2]), "+r"((d)[(i) + 3]), "+r"((d)[(i) + 4]), \
      "+r"((d)[(i) + 5]), "+r"((d)[(i) + 6]), "+r"((d)[(i) + 7])

/* PTX ISA: wgmma.mma_async. `signs`: the last immediate operands, which depend on the types. */
#define DEFINE_WGMMA_32(name, types, signs)                                               \
  static __device__ __forceinline__ void name(uint32_t d[32], uint64_t a, uint64_t b,     \
                                              uint32_t accumulate) {                      \
    asm volatile(                                                                         \
        "{\n"                                                                             \
        "  .reg .pred accumulate;\n"                                                      \
        "  setp.ne.b32 accumulate, %34, 0;\n"                                             \
        "  wgmma.mma_async.sync.aligned.m64n64" types                                     \
        "\n"                                                                              \
        "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"    \
        "     %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30," \
        " %31},\n"                                                                        \
        "    %32, %33, accumulate" signs                                                  \
        ";\n"                                                                             \
        "}"                                                                               \
        : WGMMA_INOUT_BITS_8(d, 0), WGMMA_INOUT_BITS_8(d, 8), WGMMA_INOUT_BITS_8(d, 16),  \
          WGMMA_INOUT_BITS_8(d, 24)                                                       \
        : "l"(a), "l"(b), "r"(accumulate));                                               \
  }
#define DEFINE_WGMMA_16(name, types, signs)                                             \
  static __device__ __forceinline__ void name(uint32_t d[32], uint64_t a, uint64_t b,   \
                                              uint32_t accumulate) {                    \
    asm volatile(                                                                       \
        "{\n"                                                                           \
        "  .reg .pred accumulate;\n"                                                    \
        "  setp.ne.b32 accumulate, %18, 0;\n"                                           \
        "  wgmma.mma_async.sync.aligned.m64n64" types                                   \
        "\n"                                                                            \
        "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15},\n" \
        "    %16, %17, accumulate" signs                                                \
        ";\n"                                                                           \
        "}"                                                                             \
        : WGMMA_INOUT_BITS_8(d, 0), WGMMA_INOUT_BITS_8(d, 8)                            \
        : "l"(a), "l"(b), "r"(accumulate));                                             \
  }

/* After `accumulate`: the signs of A and B, then, of 16-bit operands, whether they are MN-major. Integers
 * have neither. */
DEFINE_WGMMA_32(wgmma_bf16, "k16.f32.bf16.bf16", ", 1, 1, 0, 0")
DEFINE_WGMMA_32(wgmma_f16, "k16.f32.f16.f16", ", 1, 1, 0, 0")
DEFINE_WGMMA_16(wgmma_f16_sums_f16, "k16.f16.f16.f16", ", 1, 1, 0, 0")
DEFINE_WGMMA_32(wgmma_tf32, "k8.f32.tf32.tf32", ", 1, 1")
DEFINE_WGMMA_32(wgmma_e4m3, "k32.f32.e4m3.e4m3", ", 1, 1")
DEFINE_WGMMA_16(wgmma_e4m3_sums_f16, "k32.f16.e4m3.e4m3", ", 1, 1")
DEFINE_WGMMA_32(wgmma_s8, "k32.s32.s8.s8", "")

#endif
