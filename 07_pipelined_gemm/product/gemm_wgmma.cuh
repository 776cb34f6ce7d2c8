/* gemm_wgmma.cuh: wgmma for every tile width, both input types and all four layouts of the
 * operands.
 *
 *   GemmWgmma<N, TYPE, MAJOR_A, MAJOR_B>::multiply(d, a, b, accumulate);
 *
 * adds A (64 x 16) times B (16 x N) to d, as wgmma_m64n64k16 does in ../wgmma.cuh. The number of
 * registers is part of the instruction, so each N needs an instruction of its own; the rest are
 * immediate operands. */
#ifndef PIPELINED_GEMM_GEMM_WGMMA_CUH
#define PIPELINED_GEMM_GEMM_WGMMA_CUH

#include "../wgmma.cuh"
#include "gemm_types.cuh"

template <int N, int TYPE, int MAJOR_A, int MAJOR_B>
struct GemmWgmma;

#define GEMM_D0_31                           \
  "%0, %1, %2, %3, %4, %5, %6, %7"           \
  ", %8, %9, %10, %11, %12, %13, %14, %15"   \
  ", %16, %17, %18, %19, %20, %21, %22, %23" \
  ", %24, %25, %26, %27, %28, %29, %30, %31"
#define GEMM_D32_63                          \
  ", %32, %33, %34, %35, %36, %37, %38, %39" \
  ", %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55" \
  ", %56, %57, %58, %59, %60, %61, %62, %63"
#define GEMM_D64_95                          \
  ", %64, %65, %66, %67, %68, %69, %70, %71" \
  ", %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87" \
  ", %88, %89, %90, %91, %92, %93, %94, %95"
#define GEMM_D96_127                                 \
  ", %96, %97, %98, %99, %100, %101, %102, %103"     \
  ", %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119" \
  ", %120, %121, %122, %123, %124, %125, %126, %127"
#define GEMM_INOUT_32(d, i)                                                   \
  WGMMA_INOUT_8(d, i), WGMMA_INOUT_8(d, (i) + 8), WGMMA_INOUT_8(d, (i) + 16), \
      WGMMA_INOUT_8(d, (i) + 24)

/* PTX ISA: wgmma.mma_async. A, B, P, ... are the numbers of the operands behind the accumulator's:
 * both descriptors, whether to accumulate, and whether A and B are MN-major. */
#define GEMM_WGMMA_OF_TYPE(N, TYPE, PTX_TYPE, D, A, B, P, TRANSPOSE_A, TRANSPOSE_B, ...)           \
  template <int MAJOR_A, int MAJOR_B>                                                              \
  struct GemmWgmma<N, TYPE, MAJOR_A, MAJOR_B> {                                                    \
    static __device__ __forceinline__ void multiply(float d[N / 2], uint64_t a, uint64_t b,        \
                                                    uint32_t accumulate) {                         \
      asm volatile(                                                                                \
          "{\n"                                                                                    \
          "  .reg .pred accumulate;\n"                                                             \
          "  setp.ne.b32 accumulate, " P                                                           \
          ", 0;\n"                                                                                 \
          "  wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." PTX_TYPE "." PTX_TYPE " {" D "}, " A \
          ", " B ", accumulate, 1, 1, " TRANSPOSE_A ", " TRANSPOSE_B                               \
          ";\n"                                                                                    \
          "}"                                                                                      \
          : __VA_ARGS__                                                                            \
          : "l"(a), "l"(b), "r"(accumulate), "n"(MAJOR_A == GEMM_MN_MAJOR),                        \
            "n"(MAJOR_B == GEMM_MN_MAJOR));                                                        \
    }                                                                                              \
  };
#define GEMM_WGMMA(N, ...)                              \
  GEMM_WGMMA_OF_TYPE(N, GEMM_BF16, "bf16", __VA_ARGS__) \
  GEMM_WGMMA_OF_TYPE(N, GEMM_FP16, "f16", __VA_ARGS__)

GEMM_WGMMA(16, "%0, %1, %2, %3, %4, %5, %6, %7", "%8", "%9", "%10", "%11", "%12",
           WGMMA_INOUT_8(d, 0))
GEMM_WGMMA(32,
           "%0, %1, %2, %3, %4, %5, %6, %7"
           ", %8, %9, %10, %11, %12, %13, %14, %15",
           "%16", "%17", "%18", "%19", "%20", WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8))
GEMM_WGMMA(48,
           "%0, %1, %2, %3, %4, %5, %6, %7"
           ", %8, %9, %10, %11, %12, %13, %14, %15"
           ", %16, %17, %18, %19, %20, %21, %22, %23",
           "%24", "%25", "%26", "%27", "%28", WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8),
           WGMMA_INOUT_8(d, 16))
GEMM_WGMMA(64, GEMM_D0_31, "%32", "%33", "%34", "%35", "%36", GEMM_INOUT_32(d, 0))
GEMM_WGMMA(80, GEMM_D0_31 ", %32, %33, %34, %35, %36, %37, %38, %39", "%40", "%41", "%42", "%43",
           "%44", GEMM_INOUT_32(d, 0), WGMMA_INOUT_8(d, 32))
GEMM_WGMMA(96,
           GEMM_D0_31
           ", %32, %33, %34, %35, %36, %37, %38, %39"
           ", %40, %41, %42, %43, %44, %45, %46, %47",
           "%48", "%49", "%50", "%51", "%52", GEMM_INOUT_32(d, 0), WGMMA_INOUT_8(d, 32),
           WGMMA_INOUT_8(d, 40))
GEMM_WGMMA(112,
           GEMM_D0_31
           ", %32, %33, %34, %35, %36, %37, %38, %39"
           ", %40, %41, %42, %43, %44, %45, %46, %47"
           ", %48, %49, %50, %51, %52, %53, %54, %55",
           "%56", "%57", "%58", "%59", "%60", GEMM_INOUT_32(d, 0), WGMMA_INOUT_8(d, 32),
           WGMMA_INOUT_8(d, 40), WGMMA_INOUT_8(d, 48))
GEMM_WGMMA(128, GEMM_D0_31 GEMM_D32_63, "%64", "%65", "%66", "%67", "%68", GEMM_INOUT_32(d, 0),
           GEMM_INOUT_32(d, 32))
GEMM_WGMMA(144, GEMM_D0_31 GEMM_D32_63 ", %64, %65, %66, %67, %68, %69, %70, %71", "%72", "%73",
           "%74", "%75", "%76", GEMM_INOUT_32(d, 0), GEMM_INOUT_32(d, 32), WGMMA_INOUT_8(d, 64))
GEMM_WGMMA(160,
           GEMM_D0_31 GEMM_D32_63
           ", %64, %65, %66, %67, %68, %69, %70, %71"
           ", %72, %73, %74, %75, %76, %77, %78, %79",
           "%80", "%81", "%82", "%83", "%84", GEMM_INOUT_32(d, 0), GEMM_INOUT_32(d, 32),
           WGMMA_INOUT_8(d, 64), WGMMA_INOUT_8(d, 72))
GEMM_WGMMA(176,
           GEMM_D0_31 GEMM_D32_63
           ", %64, %65, %66, %67, %68, %69, %70, %71"
           ", %72, %73, %74, %75, %76, %77, %78, %79"
           ", %80, %81, %82, %83, %84, %85, %86, %87",
           "%88", "%89", "%90", "%91", "%92", GEMM_INOUT_32(d, 0), GEMM_INOUT_32(d, 32),
           WGMMA_INOUT_8(d, 64), WGMMA_INOUT_8(d, 72), WGMMA_INOUT_8(d, 80))
GEMM_WGMMA(192, GEMM_D0_31 GEMM_D32_63 GEMM_D64_95, "%96", "%97", "%98", "%99", "%100",
           GEMM_INOUT_32(d, 0), GEMM_INOUT_32(d, 32), GEMM_INOUT_32(d, 64))
GEMM_WGMMA(208, GEMM_D0_31 GEMM_D32_63 GEMM_D64_95 ", %96, %97, %98, %99, %100, %101, %102, %103",
           "%104", "%105", "%106", "%107", "%108", GEMM_INOUT_32(d, 0), GEMM_INOUT_32(d, 32),
           GEMM_INOUT_32(d, 64), WGMMA_INOUT_8(d, 96))
GEMM_WGMMA(224,
           GEMM_D0_31 GEMM_D32_63 GEMM_D64_95
           ", %96, %97, %98, %99, %100, %101, %102, %103"
           ", %104, %105, %106, %107, %108, %109, %110, %111",
           "%112", "%113", "%114", "%115", "%116", GEMM_INOUT_32(d, 0), GEMM_INOUT_32(d, 32),
           GEMM_INOUT_32(d, 64), WGMMA_INOUT_8(d, 96), WGMMA_INOUT_8(d, 104))
GEMM_WGMMA(240,
           GEMM_D0_31 GEMM_D32_63 GEMM_D64_95
           ", %96, %97, %98, %99, %100, %101, %102, %103"
           ", %104, %105, %106, %107, %108, %109, %110, %111"
           ", %112, %113, %114, %115, %116, %117, %118, %119",
           "%120", "%121", "%122", "%123", "%124", GEMM_INOUT_32(d, 0), GEMM_INOUT_32(d, 32),
           GEMM_INOUT_32(d, 64), WGMMA_INOUT_8(d, 96), WGMMA_INOUT_8(d, 104), WGMMA_INOUT_8(d, 112))
GEMM_WGMMA(256, GEMM_D0_31 GEMM_D32_63 GEMM_D64_95 GEMM_D96_127, "%128", "%129", "%130", "%131",
           "%132", GEMM_INOUT_32(d, 0), GEMM_INOUT_32(d, 32), GEMM_INOUT_32(d, 64),
           GEMM_INOUT_32(d, 96))

#undef GEMM_WGMMA
#undef GEMM_WGMMA_OF_TYPE
#undef GEMM_INOUT_32
#undef GEMM_D0_31
#undef GEMM_D32_63
#undef GEMM_D64_95
#undef GEMM_D96_127

/* One step of 64 k of a 64 x N tile. */
template <int N, int TYPE, int MAJOR_A, int MAJOR_B>
static __device__ __forceinline__ void gemm_multiply_step(float d[N / 2], uint64_t a, uint64_t b,
                                                          bool accumulate) {
  /* 16 k further: 32 bytes along a line, or 16 lines of 128 bytes; in units of 16 bytes. */
  enum { NEXT_A = MAJOR_A == GEMM_K_MAJOR ? 2 : 128, NEXT_B = MAJOR_B == GEMM_K_MAJOR ? 2 : 128 };
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < GEMM_STEP_K / 16; i++) {
    GemmWgmma<N, TYPE, MAJOR_A, MAJOR_B>::multiply(d, a + i * NEXT_A, b + i * NEXT_B,
                                                   accumulate || i > 0);
  }
}

#endif
