/* gemm_wgmma.cuh: wgmma for tiles of any multiple of 8 columns, every input type and all four layouts.
 *
 *   GemmWgmma<N, TYPE, MAJOR_A, MAJOR_B>::multiply(d, a, b, accumulate);
 *
 * adds A (64 x 64) times B (64 x N) to d, by four wgmmas like wgmma_m64n64k16 in ../wgmma.cuh; of e4m3
 * operands, A (64 x 128) times B (128 x N), which are as many bytes. The number of registers is part of the
 * instruction, so each N needs an instruction of its own. The next 16 k are 32 bytes along a line, or 16 lines
 * of 128 bytes further; descriptors count in units of 16 bytes. */
#ifndef PIPELINED_GEMM_GEMM_WGMMA_CUH
#define PIPELINED_GEMM_GEMM_WGMMA_CUH

#include "../wgmma.cuh"
#include "gemm_types.cuh"

template <int N, int TYPE, int MAJOR_A, int MAJOR_B>
struct GemmWgmma;

/* The accumulator of a tile of 8, 16, ... columns: its registers in PTX, from %3 on, and as operands. */
#define GEMM_D_8 "%3, %4, %5, %6"
#define GEMM_D_16 GEMM_D_8 ", %7, %8, %9, %10"
#define GEMM_D_24 GEMM_D_16 ", %11, %12, %13, %14"
#define GEMM_D_32 GEMM_D_24 ", %15, %16, %17, %18"
#define GEMM_D_40 GEMM_D_32 ", %19, %20, %21, %22"
#define GEMM_D_48 GEMM_D_40 ", %23, %24, %25, %26"
#define GEMM_D_56 GEMM_D_48 ", %27, %28, %29, %30"
#define GEMM_D_64 GEMM_D_56 ", %31, %32, %33, %34"
#define GEMM_D_72 GEMM_D_64 ", %35, %36, %37, %38"
#define GEMM_D_80 GEMM_D_72 ", %39, %40, %41, %42"
#define GEMM_D_88 GEMM_D_80 ", %43, %44, %45, %46"
#define GEMM_D_96 GEMM_D_88 ", %47, %48, %49, %50"
#define GEMM_D_104 GEMM_D_96 ", %51, %52, %53, %54"
#define GEMM_D_112 GEMM_D_104 ", %55, %56, %57, %58"
#define GEMM_D_120 GEMM_D_112 ", %59, %60, %61, %62"
#define GEMM_D_128 GEMM_D_120 ", %63, %64, %65, %66"
#define GEMM_D_136 GEMM_D_128 ", %67, %68, %69, %70"
#define GEMM_D_144 GEMM_D_136 ", %71, %72, %73, %74"
#define GEMM_D_152 GEMM_D_144 ", %75, %76, %77, %78"
#define GEMM_D_160 GEMM_D_152 ", %79, %80, %81, %82"
#define GEMM_D_168 GEMM_D_160 ", %83, %84, %85, %86"
#define GEMM_D_176 GEMM_D_168 ", %87, %88, %89, %90"
#define GEMM_D_184 GEMM_D_176 ", %91, %92, %93, %94"
#define GEMM_D_192 GEMM_D_184 ", %95, %96, %97, %98"
#define GEMM_D_200 GEMM_D_192 ", %99, %100, %101, %102"
#define GEMM_D_208 GEMM_D_200 ", %103, %104, %105, %106"
#define GEMM_D_216 GEMM_D_208 ", %107, %108, %109, %110"
#define GEMM_D_224 GEMM_D_216 ", %111, %112, %113, %114"
#define GEMM_D_232 GEMM_D_224 ", %115, %116, %117, %118"
#define GEMM_D_240 GEMM_D_232 ", %119, %120, %121, %122"
#define GEMM_D_248 GEMM_D_240 ", %123, %124, %125, %126"
#define GEMM_D_256 GEMM_D_248 ", %127, %128, %129, %130"
#define GEMM_FOUR_OF(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define GEMM_DS_8 GEMM_FOUR_OF(0)
#define GEMM_DS_16 GEMM_DS_8, GEMM_FOUR_OF(4)
#define GEMM_DS_24 GEMM_DS_16, GEMM_FOUR_OF(8)
#define GEMM_DS_32 GEMM_DS_24, GEMM_FOUR_OF(12)
#define GEMM_DS_40 GEMM_DS_32, GEMM_FOUR_OF(16)
#define GEMM_DS_48 GEMM_DS_40, GEMM_FOUR_OF(20)
#define GEMM_DS_56 GEMM_DS_48, GEMM_FOUR_OF(24)
#define GEMM_DS_64 GEMM_DS_56, GEMM_FOUR_OF(28)
#define GEMM_DS_72 GEMM_DS_64, GEMM_FOUR_OF(32)
#define GEMM_DS_80 GEMM_DS_72, GEMM_FOUR_OF(36)
#define GEMM_DS_88 GEMM_DS_80, GEMM_FOUR_OF(40)
#define GEMM_DS_96 GEMM_DS_88, GEMM_FOUR_OF(44)
#define GEMM_DS_104 GEMM_DS_96, GEMM_FOUR_OF(48)
#define GEMM_DS_112 GEMM_DS_104, GEMM_FOUR_OF(52)
#define GEMM_DS_120 GEMM_DS_112, GEMM_FOUR_OF(56)
#define GEMM_DS_128 GEMM_DS_120, GEMM_FOUR_OF(60)
#define GEMM_DS_136 GEMM_DS_128, GEMM_FOUR_OF(64)
#define GEMM_DS_144 GEMM_DS_136, GEMM_FOUR_OF(68)
#define GEMM_DS_152 GEMM_DS_144, GEMM_FOUR_OF(72)
#define GEMM_DS_160 GEMM_DS_152, GEMM_FOUR_OF(76)
#define GEMM_DS_168 GEMM_DS_160, GEMM_FOUR_OF(80)
#define GEMM_DS_176 GEMM_DS_168, GEMM_FOUR_OF(84)
#define GEMM_DS_184 GEMM_DS_176, GEMM_FOUR_OF(88)
#define GEMM_DS_192 GEMM_DS_184, GEMM_FOUR_OF(92)
#define GEMM_DS_200 GEMM_DS_192, GEMM_FOUR_OF(96)
#define GEMM_DS_208 GEMM_DS_200, GEMM_FOUR_OF(100)
#define GEMM_DS_216 GEMM_DS_208, GEMM_FOUR_OF(104)
#define GEMM_DS_224 GEMM_DS_216, GEMM_FOUR_OF(108)
#define GEMM_DS_232 GEMM_DS_224, GEMM_FOUR_OF(112)
#define GEMM_DS_240 GEMM_DS_232, GEMM_FOUR_OF(116)
#define GEMM_DS_248 GEMM_DS_240, GEMM_FOUR_OF(120)
#define GEMM_DS_256 GEMM_DS_248, GEMM_FOUR_OF(124)

/* PTX ISA: wgmma.mma_async, four times in one statement, because each statement with an accumulator takes long
 * to compile. %0 and %1 are the descriptors, %2 says whether to accumulate; NEXT_A and NEXT_B are the numbers of
 * the operands that say how far it is to the next 16 k. */
#define GEMM_NEXT(WGMMA, NEXT_A, NEXT_B, END) \
  "  add.s64 %0, %0, " NEXT_A                 \
  ";\n"                                       \
  "  add.s64 %1, %1, " NEXT_B ";\n" WGMMA END
#define GEMM_FOUR(WGMMA, NEXT_A, NEXT_B, END)                               \
  "{\n"                                                                     \
  "  .reg .pred accumulate;\n"                                              \
  "  setp.ne.b32 accumulate, %2, 0;\n" WGMMA END                            \
  "  setp.ne.b32 accumulate, 1, 0;\n" GEMM_NEXT(WGMMA, NEXT_A, NEXT_B, END) \
      GEMM_NEXT(WGMMA, NEXT_A, NEXT_B, END) GEMM_NEXT(WGMMA, NEXT_A, NEXT_B, END) "}"
/* Of 16 bits: two more operands say whether A and B are MN-major. */
#define GEMM_WGMMA_16_BITS(N, TYPE, PTX_TYPE, D, NEXT_A, NEXT_B, MN_A, MN_B, ...)            \
  template <int MAJOR_A, int MAJOR_B>                                                        \
  struct GemmWgmma<N, TYPE, MAJOR_A, MAJOR_B> {                                              \
    static __device__ __forceinline__ void multiply(float d[N / 2], uint64_t a, uint64_t b,  \
                                                    uint32_t accumulate) {                   \
      asm volatile(GEMM_FOUR("  wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." PTX_TYPE    \
                             "." PTX_TYPE " {" D "}, %0, %1, accumulate, 1, 1, ",            \
                             NEXT_A, NEXT_B, MN_A ", " MN_B ";\n")                           \
                   : "+l"(a), "+l"(b), "+r"(accumulate), __VA_ARGS__                         \
                   : "n"(MAJOR_A == GEMM_MN_MAJOR ? 128 : 2),                                \
                     "n"(MAJOR_B == GEMM_MN_MAJOR ? 128 : 2), "n"(MAJOR_A == GEMM_MN_MAJOR), \
                     "n"(MAJOR_B == GEMM_MN_MAJOR));                                         \
    }                                                                                        \
  };
#define GEMM_WGMMA(N, D, NEXT_A, NEXT_B, MN_A, MN_B, ...)                                     \
  GEMM_WGMMA_16_BITS(N, GEMM_BF16, "bf16", D, NEXT_A, NEXT_B, MN_A, MN_B, __VA_ARGS__)        \
  GEMM_WGMMA_16_BITS(N, GEMM_FP16, "f16", D, NEXT_A, NEXT_B, MN_A, MN_B, __VA_ARGS__)         \
  template <int MAJOR_A, int MAJOR_B>                                                         \
  struct GemmWgmma<N, GEMM_E4M3, MAJOR_A, MAJOR_B> {                                          \
    static __device__ __forceinline__ void multiply(float d[N / 2], uint64_t a, uint64_t b,   \
                                                    uint32_t accumulate) {                    \
      asm volatile(GEMM_FOUR("  wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 {" D \
                             "}, %0, %1, accumulate, 1, 1;\n",                                \
                             NEXT_A, NEXT_B, "")                                              \
                   : "+l"(a), "+l"(b), "+r"(accumulate), __VA_ARGS__                          \
                   : "n"(2), "n"(2));                                                         \
    }                                                                                         \
  };

GEMM_WGMMA(8, GEMM_D_8, "%7", "%8", "%9", "%10", GEMM_DS_8)
GEMM_WGMMA(16, GEMM_D_16, "%11", "%12", "%13", "%14", GEMM_DS_16)
GEMM_WGMMA(24, GEMM_D_24, "%15", "%16", "%17", "%18", GEMM_DS_24)
GEMM_WGMMA(32, GEMM_D_32, "%19", "%20", "%21", "%22", GEMM_DS_32)
GEMM_WGMMA(40, GEMM_D_40, "%23", "%24", "%25", "%26", GEMM_DS_40)
GEMM_WGMMA(48, GEMM_D_48, "%27", "%28", "%29", "%30", GEMM_DS_48)
GEMM_WGMMA(56, GEMM_D_56, "%31", "%32", "%33", "%34", GEMM_DS_56)
GEMM_WGMMA(64, GEMM_D_64, "%35", "%36", "%37", "%38", GEMM_DS_64)
GEMM_WGMMA(72, GEMM_D_72, "%39", "%40", "%41", "%42", GEMM_DS_72)
GEMM_WGMMA(80, GEMM_D_80, "%43", "%44", "%45", "%46", GEMM_DS_80)
GEMM_WGMMA(88, GEMM_D_88, "%47", "%48", "%49", "%50", GEMM_DS_88)
GEMM_WGMMA(96, GEMM_D_96, "%51", "%52", "%53", "%54", GEMM_DS_96)
GEMM_WGMMA(104, GEMM_D_104, "%55", "%56", "%57", "%58", GEMM_DS_104)
GEMM_WGMMA(112, GEMM_D_112, "%59", "%60", "%61", "%62", GEMM_DS_112)
GEMM_WGMMA(120, GEMM_D_120, "%63", "%64", "%65", "%66", GEMM_DS_120)
GEMM_WGMMA(128, GEMM_D_128, "%67", "%68", "%69", "%70", GEMM_DS_128)
GEMM_WGMMA(136, GEMM_D_136, "%71", "%72", "%73", "%74", GEMM_DS_136)
GEMM_WGMMA(144, GEMM_D_144, "%75", "%76", "%77", "%78", GEMM_DS_144)
GEMM_WGMMA(152, GEMM_D_152, "%79", "%80", "%81", "%82", GEMM_DS_152)
GEMM_WGMMA(160, GEMM_D_160, "%83", "%84", "%85", "%86", GEMM_DS_160)
GEMM_WGMMA(168, GEMM_D_168, "%87", "%88", "%89", "%90", GEMM_DS_168)
GEMM_WGMMA(176, GEMM_D_176, "%91", "%92", "%93", "%94", GEMM_DS_176)
GEMM_WGMMA(184, GEMM_D_184, "%95", "%96", "%97", "%98", GEMM_DS_184)
GEMM_WGMMA(192, GEMM_D_192, "%99", "%100", "%101", "%102", GEMM_DS_192)
GEMM_WGMMA(200, GEMM_D_200, "%103", "%104", "%105", "%106", GEMM_DS_200)
GEMM_WGMMA(208, GEMM_D_208, "%107", "%108", "%109", "%110", GEMM_DS_208)
GEMM_WGMMA(216, GEMM_D_216, "%111", "%112", "%113", "%114", GEMM_DS_216)
GEMM_WGMMA(224, GEMM_D_224, "%115", "%116", "%117", "%118", GEMM_DS_224)
GEMM_WGMMA(232, GEMM_D_232, "%119", "%120", "%121", "%122", GEMM_DS_232)
GEMM_WGMMA(240, GEMM_D_240, "%123", "%124", "%125", "%126", GEMM_DS_240)
GEMM_WGMMA(248, GEMM_D_248, "%127", "%128", "%129", "%130", GEMM_DS_248)
GEMM_WGMMA(256, GEMM_D_256, "%131", "%132", "%133", "%134", GEMM_DS_256)

/* One step of GEMM_ROW_BYTES of k of a 64 x N tile. */
template <int N, int TYPE, int MAJOR_A, int MAJOR_B>
static __device__ __forceinline__ void gemm_multiply_step(float d[N / 2], uint64_t a, uint64_t b,
                                                          bool accumulate) {
  enum { OPERANDS = gemm_is_e4m3(TYPE) ? (int)GEMM_E4M3 : TYPE };
  wgmma_fence();
  GemmWgmma<N, OPERANDS, MAJOR_A, MAJOR_B>::multiply(d, a, b, accumulate);
}

#endif
