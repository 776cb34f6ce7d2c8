/* gemm_wgmma.cuh: wgmma for every tile width, every input type and all four layouts of the
 * operands.
 *
 *   GemmWgmma<N, TYPE, MAJOR_A, MAJOR_B>::multiply(d, a, b, accumulate);
 *
 * adds A (64 x 64) times B (64 x N) to d, by four wgmmas like wgmma_m64n64k16 in ../wgmma.cuh; of e4m3 operands,
 * A (64 x 128) times B (128 x N), which are as many bytes. The number of registers is part of the instruction, so
 * each N needs an instruction of its own; the rest are immediate operands. The next 16 k are 32 bytes along a line, or 16
 * lines of 128 bytes further; descriptors count in units of 16 bytes. */
#ifndef PIPELINED_GEMM_GEMM_WGMMA_CUH
#define PIPELINED_GEMM_GEMM_WGMMA_CUH

#include "../wgmma.cuh"
#include "gemm_types.cuh"

template <int N, int TYPE, int MAJOR_A, int MAJOR_B>
struct GemmWgmma;

/* The accumulator of a tile of 8 * i columns, in PTX and as operands. */
#define GEMM_D_1 "%0, %1, %2, %3"
#define GEMM_D_2 GEMM_D_1 ", %4, %5, %6, %7"
#define GEMM_D_3 GEMM_D_2 ", %8, %9, %10, %11"
#define GEMM_D_4 GEMM_D_3 ", %12, %13, %14, %15"
#define GEMM_D_5 GEMM_D_4 ", %16, %17, %18, %19"
#define GEMM_D_6 GEMM_D_5 ", %20, %21, %22, %23"
#define GEMM_D_7 GEMM_D_6 ", %24, %25, %26, %27"
#define GEMM_D_8 GEMM_D_7 ", %28, %29, %30, %31"
#define GEMM_D_9 GEMM_D_8 ", %32, %33, %34, %35"
#define GEMM_D_10 GEMM_D_9 ", %36, %37, %38, %39"
#define GEMM_D_11 GEMM_D_10 ", %40, %41, %42, %43"
#define GEMM_D_12 GEMM_D_11 ", %44, %45, %46, %47"
#define GEMM_D_13 GEMM_D_12 ", %48, %49, %50, %51"
#define GEMM_D_14 GEMM_D_13 ", %52, %53, %54, %55"
#define GEMM_D_15 GEMM_D_14 ", %56, %57, %58, %59"
#define GEMM_D_16 GEMM_D_15 ", %60, %61, %62, %63"
#define GEMM_D_17 GEMM_D_16 ", %64, %65, %66, %67"
#define GEMM_D_18 GEMM_D_17 ", %68, %69, %70, %71"
#define GEMM_D_19 GEMM_D_18 ", %72, %73, %74, %75"
#define GEMM_D_20 GEMM_D_19 ", %76, %77, %78, %79"
#define GEMM_D_21 GEMM_D_20 ", %80, %81, %82, %83"
#define GEMM_D_22 GEMM_D_21 ", %84, %85, %86, %87"
#define GEMM_D_23 GEMM_D_22 ", %88, %89, %90, %91"
#define GEMM_D_24 GEMM_D_23 ", %92, %93, %94, %95"
#define GEMM_D_25 GEMM_D_24 ", %96, %97, %98, %99"
#define GEMM_D_26 GEMM_D_25 ", %100, %101, %102, %103"
#define GEMM_D_27 GEMM_D_26 ", %104, %105, %106, %107"
#define GEMM_D_28 GEMM_D_27 ", %108, %109, %110, %111"
#define GEMM_D_29 GEMM_D_28 ", %112, %113, %114, %115"
#define GEMM_D_30 GEMM_D_29 ", %116, %117, %118, %119"
#define GEMM_D_31 GEMM_D_30 ", %120, %121, %122, %123"
#define GEMM_D_32 GEMM_D_31 ", %124, %125, %126, %127"
#define GEMM_INOUT_4(d, i) \
  "+f"((d)[(i)]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3])
#define GEMM_INOUTS_1(d) GEMM_INOUT_4(d, 0)
#define GEMM_INOUTS_2(d) GEMM_INOUTS_1(d), GEMM_INOUT_4(d, 4)
#define GEMM_INOUTS_3(d) GEMM_INOUTS_2(d), GEMM_INOUT_4(d, 8)
#define GEMM_INOUTS_4(d) GEMM_INOUTS_3(d), GEMM_INOUT_4(d, 12)
#define GEMM_INOUTS_5(d) GEMM_INOUTS_4(d), GEMM_INOUT_4(d, 16)
#define GEMM_INOUTS_6(d) GEMM_INOUTS_5(d), GEMM_INOUT_4(d, 20)
#define GEMM_INOUTS_7(d) GEMM_INOUTS_6(d), GEMM_INOUT_4(d, 24)
#define GEMM_INOUTS_8(d) GEMM_INOUTS_7(d), GEMM_INOUT_4(d, 28)
#define GEMM_INOUTS_9(d) GEMM_INOUTS_8(d), GEMM_INOUT_4(d, 32)
#define GEMM_INOUTS_10(d) GEMM_INOUTS_9(d), GEMM_INOUT_4(d, 36)
#define GEMM_INOUTS_11(d) GEMM_INOUTS_10(d), GEMM_INOUT_4(d, 40)
#define GEMM_INOUTS_12(d) GEMM_INOUTS_11(d), GEMM_INOUT_4(d, 44)
#define GEMM_INOUTS_13(d) GEMM_INOUTS_12(d), GEMM_INOUT_4(d, 48)
#define GEMM_INOUTS_14(d) GEMM_INOUTS_13(d), GEMM_INOUT_4(d, 52)
#define GEMM_INOUTS_15(d) GEMM_INOUTS_14(d), GEMM_INOUT_4(d, 56)
#define GEMM_INOUTS_16(d) GEMM_INOUTS_15(d), GEMM_INOUT_4(d, 60)
#define GEMM_INOUTS_17(d) GEMM_INOUTS_16(d), GEMM_INOUT_4(d, 64)
#define GEMM_INOUTS_18(d) GEMM_INOUTS_17(d), GEMM_INOUT_4(d, 68)
#define GEMM_INOUTS_19(d) GEMM_INOUTS_18(d), GEMM_INOUT_4(d, 72)
#define GEMM_INOUTS_20(d) GEMM_INOUTS_19(d), GEMM_INOUT_4(d, 76)
#define GEMM_INOUTS_21(d) GEMM_INOUTS_20(d), GEMM_INOUT_4(d, 80)
#define GEMM_INOUTS_22(d) GEMM_INOUTS_21(d), GEMM_INOUT_4(d, 84)
#define GEMM_INOUTS_23(d) GEMM_INOUTS_22(d), GEMM_INOUT_4(d, 88)
#define GEMM_INOUTS_24(d) GEMM_INOUTS_23(d), GEMM_INOUT_4(d, 92)
#define GEMM_INOUTS_25(d) GEMM_INOUTS_24(d), GEMM_INOUT_4(d, 96)
#define GEMM_INOUTS_26(d) GEMM_INOUTS_25(d), GEMM_INOUT_4(d, 100)
#define GEMM_INOUTS_27(d) GEMM_INOUTS_26(d), GEMM_INOUT_4(d, 104)
#define GEMM_INOUTS_28(d) GEMM_INOUTS_27(d), GEMM_INOUT_4(d, 108)
#define GEMM_INOUTS_29(d) GEMM_INOUTS_28(d), GEMM_INOUT_4(d, 112)
#define GEMM_INOUTS_30(d) GEMM_INOUTS_29(d), GEMM_INOUT_4(d, 116)
#define GEMM_INOUTS_31(d) GEMM_INOUTS_30(d), GEMM_INOUT_4(d, 120)
#define GEMM_INOUTS_32(d) GEMM_INOUTS_31(d), GEMM_INOUT_4(d, 124)

/* PTX ISA: wgmma.mma_async, four times in one statement, because each statement with an accumulator takes long to
 * compile. A, B, ... are the numbers of the operands behind the accumulator's: both descriptors, whether to accumulate,
 * how far it is to the next 16 k in A and in B, and whether A and B are MN-major. */
#define GEMM_FIRST_AND_NEXT(INSTRUCTION, A, B, P, NEXT_A, NEXT_B, END)      \
  "{\n"                                                                     \
  "  .reg .pred accumulate;\n"                                              \
  "  .reg .b64 next_a, next_b;\n"                                           \
  "  setp.ne.b32 accumulate, " P ", 0;\n" INSTRUCTION A ", " B END          \
  "  setp.ne.b32 accumulate, 1, 0;\n"                                       \
  "  add.s64 next_a, " A ", " NEXT_A                                        \
  ";\n"                                                                     \
  "  add.s64 next_b, " B ", " NEXT_B ";\n" INSTRUCTION "next_a, next_b" END \
  GEMM_NEXT(INSTRUCTION, NEXT_A, NEXT_B, END) GEMM_NEXT(INSTRUCTION, NEXT_A, NEXT_B, END) "}"
#define GEMM_NEXT(INSTRUCTION, NEXT_A, NEXT_B, END) \
  "  add.s64 next_a, next_a, " NEXT_A               \
  ";\n"                                             \
  "  add.s64 next_b, next_b, " NEXT_B ";\n" INSTRUCTION "next_a, next_b" END

#define GEMM_WGMMA_OF_TYPE(N, TYPE, PTX_TYPE, D, A, B, P, NEXT_A, NEXT_B, MN_A, MN_B, ...)     \
  template <int MAJOR_A, int MAJOR_B>                                                          \
  struct GemmWgmma<N, TYPE, MAJOR_A, MAJOR_B> {                                                \
    static __device__ __forceinline__ void multiply(float d[N / 2], uint64_t a, uint64_t b,    \
                                                    uint32_t accumulate) {                     \
      asm volatile(GEMM_FIRST_AND_NEXT("  wgmma.mma_async.sync.aligned.m64n" #N                \
                                       "k16.f32." PTX_TYPE "." PTX_TYPE " {" D "}, ",          \
                                       A, B, P, NEXT_A, NEXT_B,                                \
                                       ", accumulate, 1, 1, " MN_A ", " MN_B ";\n")            \
                   : __VA_ARGS__                                                               \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(MAJOR_A == GEMM_MN_MAJOR ? 128 : 2), \
                     "n"(MAJOR_B == GEMM_MN_MAJOR ? 128 : 2), "n"(MAJOR_A == GEMM_MN_MAJOR),   \
                     "n"(MAJOR_B == GEMM_MN_MAJOR));                                           \
    }                                                                                          \
  };
/* The same for e4m3, which has no operands that say "MN-major". */
#define GEMM_WGMMA_E4M3(N, D, A, B, P, NEXT_A, NEXT_B, MN_A, MN_B, ...)                     \
  template <int MAJOR_A, int MAJOR_B>                                                       \
  struct GemmWgmma<N, GEMM_E4M3, MAJOR_A, MAJOR_B> {                                        \
    static __device__ __forceinline__ void multiply(float d[N / 2], uint64_t a, uint64_t b, \
                                                    uint32_t accumulate) {                  \
      asm volatile(GEMM_FIRST_AND_NEXT("  wgmma.mma_async.sync.aligned.m64n" #N             \
                                       "k32.f32.e4m3.e4m3 {" D "}, ",                       \
                                       A, B, P, NEXT_A, NEXT_B, ", accumulate, 1, 1;\n")    \
                   : __VA_ARGS__                                                            \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(2), "n"(2));                      \
    }                                                                                       \
  };
#define GEMM_WGMMA(N, ...)                              \
  GEMM_WGMMA_OF_TYPE(N, GEMM_BF16, "bf16", __VA_ARGS__) \
  GEMM_WGMMA_OF_TYPE(N, GEMM_FP16, "f16", __VA_ARGS__)  \
  GEMM_WGMMA_E4M3(N, __VA_ARGS__)

GEMM_WGMMA(8, GEMM_D_1, "%4", "%5", "%6", "%7", "%8", "%9", "%10", GEMM_INOUTS_1(d))
GEMM_WGMMA(16, GEMM_D_2, "%8", "%9", "%10", "%11", "%12", "%13", "%14", GEMM_INOUTS_2(d))
GEMM_WGMMA(24, GEMM_D_3, "%12", "%13", "%14", "%15", "%16", "%17", "%18", GEMM_INOUTS_3(d))
GEMM_WGMMA(32, GEMM_D_4, "%16", "%17", "%18", "%19", "%20", "%21", "%22", GEMM_INOUTS_4(d))
GEMM_WGMMA(40, GEMM_D_5, "%20", "%21", "%22", "%23", "%24", "%25", "%26", GEMM_INOUTS_5(d))
GEMM_WGMMA(48, GEMM_D_6, "%24", "%25", "%26", "%27", "%28", "%29", "%30", GEMM_INOUTS_6(d))
GEMM_WGMMA(56, GEMM_D_7, "%28", "%29", "%30", "%31", "%32", "%33", "%34", GEMM_INOUTS_7(d))
GEMM_WGMMA(64, GEMM_D_8, "%32", "%33", "%34", "%35", "%36", "%37", "%38", GEMM_INOUTS_8(d))
GEMM_WGMMA(72, GEMM_D_9, "%36", "%37", "%38", "%39", "%40", "%41", "%42", GEMM_INOUTS_9(d))
GEMM_WGMMA(80, GEMM_D_10, "%40", "%41", "%42", "%43", "%44", "%45", "%46", GEMM_INOUTS_10(d))
GEMM_WGMMA(88, GEMM_D_11, "%44", "%45", "%46", "%47", "%48", "%49", "%50", GEMM_INOUTS_11(d))
GEMM_WGMMA(96, GEMM_D_12, "%48", "%49", "%50", "%51", "%52", "%53", "%54", GEMM_INOUTS_12(d))
GEMM_WGMMA(104, GEMM_D_13, "%52", "%53", "%54", "%55", "%56", "%57", "%58", GEMM_INOUTS_13(d))
GEMM_WGMMA(112, GEMM_D_14, "%56", "%57", "%58", "%59", "%60", "%61", "%62", GEMM_INOUTS_14(d))
GEMM_WGMMA(120, GEMM_D_15, "%60", "%61", "%62", "%63", "%64", "%65", "%66", GEMM_INOUTS_15(d))
GEMM_WGMMA(128, GEMM_D_16, "%64", "%65", "%66", "%67", "%68", "%69", "%70", GEMM_INOUTS_16(d))
GEMM_WGMMA(136, GEMM_D_17, "%68", "%69", "%70", "%71", "%72", "%73", "%74", GEMM_INOUTS_17(d))
GEMM_WGMMA(144, GEMM_D_18, "%72", "%73", "%74", "%75", "%76", "%77", "%78", GEMM_INOUTS_18(d))
GEMM_WGMMA(152, GEMM_D_19, "%76", "%77", "%78", "%79", "%80", "%81", "%82", GEMM_INOUTS_19(d))
GEMM_WGMMA(160, GEMM_D_20, "%80", "%81", "%82", "%83", "%84", "%85", "%86", GEMM_INOUTS_20(d))
GEMM_WGMMA(168, GEMM_D_21, "%84", "%85", "%86", "%87", "%88", "%89", "%90", GEMM_INOUTS_21(d))
GEMM_WGMMA(176, GEMM_D_22, "%88", "%89", "%90", "%91", "%92", "%93", "%94", GEMM_INOUTS_22(d))
GEMM_WGMMA(184, GEMM_D_23, "%92", "%93", "%94", "%95", "%96", "%97", "%98", GEMM_INOUTS_23(d))
GEMM_WGMMA(192, GEMM_D_24, "%96", "%97", "%98", "%99", "%100", "%101", "%102", GEMM_INOUTS_24(d))
GEMM_WGMMA(200, GEMM_D_25, "%100", "%101", "%102", "%103", "%104", "%105", "%106",
           GEMM_INOUTS_25(d))
GEMM_WGMMA(208, GEMM_D_26, "%104", "%105", "%106", "%107", "%108", "%109", "%110",
           GEMM_INOUTS_26(d))
GEMM_WGMMA(216, GEMM_D_27, "%108", "%109", "%110", "%111", "%112", "%113", "%114",
           GEMM_INOUTS_27(d))
GEMM_WGMMA(224, GEMM_D_28, "%112", "%113", "%114", "%115", "%116", "%117", "%118",
           GEMM_INOUTS_28(d))
GEMM_WGMMA(232, GEMM_D_29, "%116", "%117", "%118", "%119", "%120", "%121", "%122",
           GEMM_INOUTS_29(d))
GEMM_WGMMA(240, GEMM_D_30, "%120", "%121", "%122", "%123", "%124", "%125", "%126",
           GEMM_INOUTS_30(d))
GEMM_WGMMA(248, GEMM_D_31, "%124", "%125", "%126", "%127", "%128", "%129", "%130",
           GEMM_INOUTS_31(d))
GEMM_WGMMA(256, GEMM_D_32, "%128", "%129", "%130", "%131", "%132", "%133", "%134",
           GEMM_INOUTS_32(d))

#undef GEMM_WGMMA
#undef GEMM_FIRST_AND_NEXT
#undef GEMM_NEXT
#undef GEMM_WGMMA_OF_TYPE
#undef GEMM_WGMMA_E4M3
#undef GEMM_INOUT_4
#undef GEMM_D_1
#undef GEMM_INOUTS_1
#undef GEMM_D_2
#undef GEMM_INOUTS_2
#undef GEMM_D_3
#undef GEMM_INOUTS_3
#undef GEMM_D_4
#undef GEMM_INOUTS_4
#undef GEMM_D_5
#undef GEMM_INOUTS_5
#undef GEMM_D_6
#undef GEMM_INOUTS_6
#undef GEMM_D_7
#undef GEMM_INOUTS_7
#undef GEMM_D_8
#undef GEMM_INOUTS_8
#undef GEMM_D_9
#undef GEMM_INOUTS_9
#undef GEMM_D_10
#undef GEMM_INOUTS_10
#undef GEMM_D_11
#undef GEMM_INOUTS_11
#undef GEMM_D_12
#undef GEMM_INOUTS_12
#undef GEMM_D_13
#undef GEMM_INOUTS_13
#undef GEMM_D_14
#undef GEMM_INOUTS_14
#undef GEMM_D_15
#undef GEMM_INOUTS_15
#undef GEMM_D_16
#undef GEMM_INOUTS_16
#undef GEMM_D_17
#undef GEMM_INOUTS_17
#undef GEMM_D_18
#undef GEMM_INOUTS_18
#undef GEMM_D_19
#undef GEMM_INOUTS_19
#undef GEMM_D_20
#undef GEMM_INOUTS_20
#undef GEMM_D_21
#undef GEMM_INOUTS_21
#undef GEMM_D_22
#undef GEMM_INOUTS_22
#undef GEMM_D_23
#undef GEMM_INOUTS_23
#undef GEMM_D_24
#undef GEMM_INOUTS_24
#undef GEMM_D_25
#undef GEMM_INOUTS_25
#undef GEMM_D_26
#undef GEMM_INOUTS_26
#undef GEMM_D_27
#undef GEMM_INOUTS_27
#undef GEMM_D_28
#undef GEMM_INOUTS_28
#undef GEMM_D_29
#undef GEMM_INOUTS_29
#undef GEMM_D_30
#undef GEMM_INOUTS_30
#undef GEMM_D_31
#undef GEMM_INOUTS_31
#undef GEMM_D_32
#undef GEMM_INOUTS_32

/* One step of GEMM_ROW_BYTES of k of a 64 x N tile. */
template <int N, int TYPE, int MAJOR_A, int MAJOR_B>
static __device__ __forceinline__ void gemm_multiply_step(float d[N / 2], uint64_t a, uint64_t b,
                                                          bool accumulate) {
  enum { OPERANDS = gemm_is_e4m3(TYPE) ? (int)GEMM_E4M3 : TYPE };
  static_assert(GEMM_STEP_K == 4 * 16, "four instructions");
  wgmma_fence();
  GemmWgmma<N, OPERANDS, MAJOR_A, MAJOR_B>::multiply(d, a, b, accumulate);
}

#endif
