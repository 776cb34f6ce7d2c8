/* gemm_configurations.cuh: every way to compute a product that there is. */
#ifndef PIPELINED_GEMM_GEMM_CONFIGURATIONS_CUH
#define PIPELINED_GEMM_GEMM_CONFIGURATIONS_CUH

#include "gemm_carry.cuh"
#include "gemm_choose.cuh"
#include "gemm_persistent.cuh"
#include "gemm_rows.cuh"
#include "gemm_short.cuh"
#include "gemm_single.cuh"

/* Which tiles have a kernel. With PIPELINED_GEMM_FEW_KERNELS only those of 128 x 128, which every
 * product fits: compiling takes a fraction of the time, and most products take longer to compute. */
#ifdef PIPELINED_GEMM_FEW_KERNELS
static inline constexpr bool gemm_has_kernel(int m, int n) { return m == 128 && n == 128; }
#else
static inline constexpr bool gemm_has_kernel(int, int) { return true; }
#endif

/* An MN-major operand comes in blocks of 64: whatever is loaded or multiplied by itself must be
 * whole blocks. Where it is not, there is no kernel. */
template <class Tile, bool POSSIBLE>
struct GemmPersistentKernel {
  static const void *get(void) { return (const void *)gemm_persistent<Tile>; }
};
template <class Tile>
struct GemmPersistentKernel<Tile, false> {
  static const void *get(void) { return NULL; }
};
template <class Tile, bool POSSIBLE>
struct GemmSingleKernel {
  static const void *get(void) { return (const void *)gemm_single<Tile>; }
};
template <class Tile>
struct GemmSingleKernel<Tile, false> {
  static const void *get(void) { return NULL; }
};
template <class Tile, bool POSSIBLE>
struct GemmShortKernel {
  static const void *get(void) { return (const void *)gemm_short<Tile>; }
};
template <class Tile>
struct GemmShortKernel<Tile, false> {
  static const void *get(void) { return NULL; }
};

/* FINISHES: with a second kernel for products with an epilogue. Tiles in two halves always have one. FP32: with
 * a third one for a C in fp32. */
template <class Tile, bool FINISHES = true, bool FP32 = false>
static inline GemmConfiguration gemm_persistent_configuration(const char *name, int sum_steps,
                                                              int swapped = 0) {
  typedef GemmPersistentTile<Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B, Tile::TILE_M, Tile::LEFT_N,
                             Tile::RIGHT_N, Tile::CLUSTER_M, Tile::CLUSTER_N, Tile::STAGES,
                             Tile::BOXES, Tile::TRACED, true>
      Finishing;
  typedef GemmPersistentTile<Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B, Tile::TILE_M, Tile::LEFT_N,
                             Tile::RIGHT_N, Tile::CLUSTER_M, Tile::CLUSTER_N, Tile::STAGES,
                             Tile::BOXES, Tile::TRACED, true, FP32>
      FinishingFp32;
  enum {
    POSSIBLE = gemm_has_kernel(Tile::TILE_M, Tile::TILE_N) &&
               ((int)Tile::MAJOR_A == (int)GEMM_K_MAJOR || Tile::SLICE_M % 64 == 0) &&
               ((int)Tile::MAJOR_B == (int)GEMM_K_MAJOR ||
                (Tile::SLICE_N % 64 == 0 && Tile::LEFT_N % 64 == 0))
  };
  GemmConfiguration c = {
      name,
      GemmPersistentKernel<Tile, POSSIBLE>::get(),
      GemmPersistentKernel < Finishing,
      POSSIBLE && (Tile::RIGHT_N > 0 ? !Tile::TRACED : FINISHES) > ::get(),
      GemmPersistentKernel < FinishingFp32,
      POSSIBLE && FP32 > ::get(),
      Tile::TILE_M,
      Tile::TILE_N,
      Tile::TILE_N,
      0,
      Tile::CLUSTER_M,
      Tile::CLUSTER_N,
      1,
      1,
      swapped,
      Tile::STAGES,
      1,
      Tile::THREADS,
      (int)sizeof(typename Tile::Shared) - Tile::STAGES * Tile::STAGE_BYTES + 1024,
      Tile::CHUNK_N,
      Tile::LEAST_STEPS,
      sum_steps,
      Tile::RIGHT_N == 0,
      0,
      1,
      0,
      0,
      0};
  return c;
}

/* Only operands of 16 bits are loaded directly, or in place. */
template <class Tile>
static inline GemmConfiguration gemm_single_configuration(const char *name, int ctas,
                                                          int groups = 1) {
  enum {
    POSSIBLE = gemm_has_kernel(Tile::TILE_M, Tile::TILE_N) &&
               !((Tile::DIRECT || Tile::IN_PLACE) && gemm_is_e4m3(Tile::TYPE)) &&
               !(Tile::IN_PLACE && ((int)Tile::MAJOR_A != (int)GEMM_K_MAJOR ||
                                    (int)Tile::MAJOR_B != (int)GEMM_K_MAJOR)) &&
               ((int)Tile::MAJOR_A == (int)GEMM_K_MAJOR || Tile::SLICE_M % 64 == 0) &&
               ((int)Tile::MAJOR_B == (int)GEMM_K_MAJOR ||
                (Tile::SLICE_N % 64 == 0 && Tile::OWN_N % 64 == 0))
  };
  GemmConfiguration c = {name,
                         GemmSingleKernel<Tile, POSSIBLE>::get(),
                         NULL,
                         NULL,
                         Tile::TILE_M,
                         Tile::TILE_N,
                         Tile::LEAST_N,
                         Tile::STEP_N,
                         Tile::CLUSTER_M,
                         Tile::CLUSTER_N,
                         Tile::SPLIT_K,
                         groups,
                         Tile::SWAPPED,
                         Tile::MOST_STAGES,
                         ctas,
                         Tile::THREADS,
                         (int)sizeof(typename Tile::Fixed) + 1024,
                         0,
                         0,
                         0,
                         Tile::LARGE,
                         Tile::DIRECT,
                         0,
                         0,
                         Tile::IN_PLACE,
                         0};
  return c;
}

template <class Tile>
static inline GemmConfiguration gemm_short_configuration(const char *name) {
  GemmConfiguration c = {name,
                         GemmShortKernel<Tile, gemm_has_kernel(Tile::TILE_M, Tile::TILE_N)>::get(),
                         NULL,
                         NULL,
                         Tile::TILE_M,
                         Tile::TILE_N,
                         Tile::TILE_N,
                         0,
                         1,
                         1,
                         1,
                         1,
                         0,
                         Tile::MOST_STAGES,
                         1,
                         Tile::THREADS,
                         (int)sizeof(typename Tile::Fixed) + 1024,
                         0,
                         0,
                         0,
                         1,
                         0,
                         0,
                         Tile::MOST_STEPS,
                         0,
                         0};
  return c;
}

template <class Tile, bool POSSIBLE>
struct GemmRowsKernel {
  static const void *get(void) { return (const void *)gemm_rows<Tile>; }
};
template <class Tile>
struct GemmRowsKernel<Tile, false> {
  static const void *get(void) { return NULL; }
};

/* Only K-major operands of 16 bits. */
template <int TYPE, int MAJOR_A, int MAJOR_B, int TILES, int WARPS>
static inline GemmConfiguration gemm_rows_configuration(const char *name) {
  typedef GemmRowsTile<gemm_is_e4m3(TYPE) ? (int)GEMM_BF16 : TYPE, TILES, WARPS> Tile;
  enum {
    POSSIBLE = !gemm_is_e4m3(TYPE) && MAJOR_A == (int)GEMM_K_MAJOR &&
               MAJOR_B == (int)GEMM_K_MAJOR && gemm_has_kernel(GEMM_ROWS, Tile::COLUMNS)
  };
  GemmConfiguration c = {name,
                         GemmRowsKernel<Tile, POSSIBLE>::get(),
                         NULL,
                         NULL,
                         GEMM_ROWS,
                         Tile::COLUMNS,
                         Tile::COLUMNS,
                         0,
                         1,
                         1,
                         1,
                         1,
                         0,
                         0,
                         Tile::CTAS,
                         Tile::THREADS,
                         Tile::SUM_BYTES,
                         0,
                         0,
                         0,
                         0,
                         1,
                         0,
                         0,
                         0,
                         GEMM_ROWS};
  return c;
}

typedef struct {
  const GemmConfiguration *list;
  int count;
} GemmConfigurations;

/* All configurations for one input type and layout, in the order of gemm_model.cuh; those without
 * a kernel have kernel NULL. The name says the kernel, the tile, the cluster that shares loads, the
 * split of k (over a cluster, x over clusters), after a slash how many CTAs are to fit on an SM, and
 * whether the operands are swapped: then the tile is one of transpose(C). */
template <int TYPE, int MAJOR_A, int MAJOR_B>
static inline GemmConfigurations gemm_configurations(void) {
#define GEMM_CARRY(M, N, CLUSTER_M, CLUSTER_N, STAGES, BOXES, SUM_STEPS, FINISHES, NAME)        \
  gemm_persistent_configuration<                                                                \
      GemmPersistentTile<TYPE, MAJOR_A, MAJOR_B, M, N, 0, CLUSTER_M, CLUSTER_N, STAGES, BOXES>, \
      FINISHES, FINISHES && N % 128 == 0>("carry_" NAME, SUM_STEPS)
#define GEMM_CARRY_SWAPPED(M, N, CLUSTER_M, CLUSTER_N, STAGES, BOXES, SUM_STEPS, FINISHES, NAME) \
  gemm_persistent_configuration<                                                                 \
      GemmPersistentTile<TYPE, MAJOR_B, MAJOR_A, M, N, 0, CLUSTER_M, CLUSTER_N, STAGES, BOXES>,  \
      FINISHES>("carry_" NAME "_swapped", SUM_STEPS, 1)
#define GEMM_PERSISTENT(M, LEFT, RIGHT, CLUSTER_M, CLUSTER_N, STAGES, BOXES, SUM_STEPS, NAME) \
  gemm_persistent_configuration<GemmPersistentTile<TYPE, MAJOR_A, MAJOR_B, M, LEFT, RIGHT,    \
                                                   CLUSTER_M, CLUSTER_N, STAGES, BOXES> >(    \
      "persistent_" NAME, SUM_STEPS)
#define GEMM_SINGLE(M, N, CLUSTER_M, CLUSTER_N, SPLIT_K, CTAS, GROUPS, NAME)         \
  gemm_single_configuration<                                                         \
      GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, M, N, CLUSTER_M, CLUSTER_N, SPLIT_K> >( \
      "single_" NAME, CTAS, GROUPS)
#define GEMM_SINGLE_SWAPPED(M, N, CLUSTER_M, CLUSTER_N, SPLIT_K, CTAS, GROUPS, NAME)       \
  gemm_single_configuration<                                                               \
      GemmSingleTile<TYPE, MAJOR_B, MAJOR_A, M, N, CLUSTER_M, CLUSTER_N, SPLIT_K, true> >( \
      "single_" NAME "_swapped", CTAS, GROUPS)
#define GEMM_LARGE(M, N, CLUSTER_M, CLUSTER_N, BLOCKS, HALVES, NAME)                              \
  gemm_single_configuration<GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, M, N, CLUSTER_M, CLUSTER_N, 1, \
                                           false, false, false, BLOCKS, HALVES> >("single_" NAME, \
                                                                                  1)
#define GEMM_LARGE_SWAPPED(M, N, CLUSTER_M, CLUSTER_N, BLOCKS, HALVES, NAME)                      \
  gemm_single_configuration<GemmSingleTile<TYPE, MAJOR_B, MAJOR_A, M, N, CLUSTER_M, CLUSTER_N, 1, \
                                           true, false, false, BLOCKS, HALVES> >(                 \
      "single_" NAME "_swapped", 1)
#define GEMM_SHORT(N, CONSUMERS, MOST_STEPS, NAME)                                            \
  gemm_short_configuration<GemmShortTile<TYPE, MAJOR_A, MAJOR_B, N, CONSUMERS, MOST_STEPS> >( \
      "short_" NAME)
  static const GemmConfiguration list[] = {
      GEMM_CARRY(192, 160, 1, 2, 4, 2, 4, false, "192x160_1x2"),
      GEMM_CARRY_SWAPPED(192, 160, 1, 2, 4, 2, 4, false, "192x160_1x2"),
      GEMM_CARRY(192, 144, 1, 2, 5, 2, 4, false, "192x144_1x2"),
      GEMM_CARRY_SWAPPED(192, 144, 1, 2, 5, 2, 4, false, "192x144_1x2"),
      GEMM_CARRY(128, 256, 1, 2, 4, 2, 4, false, "128x256_1x2"),
      GEMM_CARRY(128, 256, 2, 1, 4, 2, 4, true, "128x256_2x1"),
      GEMM_CARRY(128, 192, 2, 1, 5, 1, 4, true, "128x192_2x1"),
      GEMM_CARRY_SWAPPED(128, 192, 2, 1, 5, 1, 4, false, "128x192_2x1"),
      GEMM_CARRY(128, 168, 1, 2, 5, 2, 4, false, "128x168_1x2"),
      GEMM_CARRY_SWAPPED(128, 168, 1, 2, 5, 2, 4, false, "128x168_1x2"),
      GEMM_CARRY(128, 160, 2, 1, 5, 4, 4, false, "128x160_2x1"),
      GEMM_CARRY_SWAPPED(128, 160, 2, 1, 5, 4, 4, false, "128x160_2x1"),
      GEMM_PERSISTENT(192, 128, 64, 2, 1, 4, 1, 9, "192x192_2x1"),
      GEMM_PERSISTENT(128, 128, 128, 2, 1, 4, 2, 9, "128x256_2x1"),
      GEMM_SHORT(256, 2, 3, "64x256"),
      GEMM_SHORT(192, 2, 4, "64x192"),
      GEMM_SHORT(128, 3, 4, "64x128"),
      GEMM_SINGLE(192, 160, 1, 2, 1, 1, 1, "192x160_1x2"),
      GEMM_SINGLE(192, 128, 1, 2, 1, 1, 1, "192x128_1x2"),
      GEMM_SINGLE_SWAPPED(192, 128, 1, 2, 1, 1, 1, "192x128_1x2"),
      GEMM_SINGLE(192, 128, 1, 2, 1, 1, 2, "192x128_1x2_split_1x2"),
      GEMM_SINGLE_SWAPPED(192, 128, 1, 2, 1, 1, 2, "192x128_1x2_split_1x2"),
      GEMM_SINGLE_SWAPPED(192, 128, 1, 2, 1, 1, 3, "192x128_1x2_split_1x3"),
      GEMM_SINGLE_SWAPPED(192, 64, 1, 2, 1, 1, 1, "192x64_1x2"),
      GEMM_SINGLE(128, 256, 1, 2, 1, 1, 1, "128x256_1x2"),
      GEMM_SINGLE(128, 256, 2, 1, 1, 1, 1, "128x256_2x1"),
      GEMM_SINGLE_SWAPPED(128, 256, 2, 1, 1, 1, 1, "128x256_2x1"),
      GEMM_SINGLE(128, 128, 1, 2, 1, 1, 1, "128x128_1x2"),
      GEMM_SINGLE_SWAPPED(128, 128, 1, 2, 1, 1, 1, "128x128_1x2"),
      GEMM_SINGLE(128, 128, 1, 2, 1, 1, 2, "128x128_1x2_split_1x2"),
      GEMM_SINGLE_SWAPPED(128, 128, 1, 2, 1, 1, 2, "128x128_1x2_split_1x2"),
      GEMM_SINGLE(128, 128, 1, 2, 1, 1, 3, "128x128_1x2_split_1x3"),
      GEMM_SINGLE_SWAPPED(128, 128, 1, 2, 1, 1, 3, "128x128_1x2_split_1x3"),
      GEMM_SINGLE(128, 128, 2, 1, 1, 1, 1, "128x128_2x1"),
      GEMM_SINGLE_SWAPPED(64, 256, 4, 1, 1, 1, 1, "64x256_4x1"),
      GEMM_SINGLE_SWAPPED(64, 256, 4, 1, 1, 1, 2, "64x256_4x1_split_1x2"),
      GEMM_SINGLE(64, 192, 4, 1, 1, 1, 1, "64x192_4x1"),
      GEMM_SINGLE(64, 128, 1, 1, 1, 1, 1, "64x128"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 1, 1, 1, 1, "64x128"),
      GEMM_SINGLE(64, 128, 1, 1, 1, 2, 1, "64x128/2"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 1, 1, 2, 1, "64x128/2"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 2, 2, 1, 1, "64x128_1x2_split_2"),
      GEMM_SINGLE(64, 128, 1, 2, 4, 1, 1, "64x128_1x2_split_4"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 2, 4, 1, 1, "64x128_1x2_split_4"),
      GEMM_SINGLE(64, 128, 1, 4, 1, 1, 1, "64x128_1x4"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 4, 1, 1, 1, "64x128_1x4"),
      GEMM_SINGLE(64, 128, 1, 4, 2, 1, 1, "64x128_1x4_split_2"),
      GEMM_SINGLE(64, 128, 2, 1, 1, 1, 1, "64x128_2x1"),
      GEMM_SINGLE(64, 128, 2, 1, 2, 1, 1, "64x128_2x1_split_2"),
      GEMM_SINGLE(64, 128, 2, 1, 4, 1, 1, "64x128_2x1_split_4"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 1, 1, 1, 2, "64x128_split_1x2"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 1, 4, 1, 1, "64x128_split_4"),
      GEMM_SINGLE(64, 64, 1, 1, 1, 1, 1, "64x64"),
      GEMM_SINGLE(64, 64, 1, 1, 1, 2, 1, "64x64/2"),
      GEMM_SINGLE(64, 64, 1, 2, 4, 1, 1, "64x64_1x2_split_4"),
      GEMM_SINGLE_SWAPPED(64, 64, 1, 2, 4, 1, 1, "64x64_1x2_split_4"),
      GEMM_SINGLE_SWAPPED(64, 64, 1, 1, 2, 1, 1, "64x64_split_2"),
      GEMM_SINGLE_SWAPPED(64, 64, 1, 1, 2, 2, 1, "64x64_split_2/2"),
      GEMM_SINGLE_SWAPPED(64, 64, 1, 1, 8, 1, 1, "64x64_split_8"),
      GEMM_SINGLE_SWAPPED(64, 32, 1, 1, 1, 1, 1, "64x32"),
      GEMM_SINGLE_SWAPPED(64, 32, 1, 1, 1, 3, 1, "64x32/3"),
      GEMM_SINGLE_SWAPPED(64, 32, 4, 1, 1, 1, 1, "64x32_4x1"),
      GEMM_SINGLE(64, 32, 1, 1, 4, 1, 1, "64x32_split_4"),
      GEMM_SINGLE_SWAPPED(64, 32, 1, 1, 4, 1, 1, "64x32_split_4"),
      GEMM_SINGLE_SWAPPED(64, 32, 1, 1, 4, 2, 1, "64x32_split_4/2"),
      GEMM_SINGLE(64, 32, 1, 1, 4, 3, 1, "64x32_split_4/3"),
      GEMM_SINGLE_SWAPPED(64, 32, 1, 1, 4, 3, 1, "64x32_split_4/3"),
      GEMM_SINGLE(64, 32, 1, 1, 8, 1, 1, "64x32_split_8"),
      GEMM_SINGLE(64, 32, 1, 1, 8, 3, 1, "64x32_split_8/3"),
      GEMM_CARRY(128, 224, 2, 1, 4, 2, 4, false, "128x224_2x1"),
      GEMM_CARRY_SWAPPED(128, 224, 2, 1, 4, 2, 4, false, "128x224_2x1"),
      GEMM_CARRY(128, 192, 1, 2, 5, 1, 4, false, "128x192_1x2"),
      GEMM_CARRY(128, 128, 2, 1, 6, 2, 4, false, "128x128_2x1"),
      GEMM_SINGLE_SWAPPED(192, 160, 1, 2, 1, 1, 1, "192x160_1x2"),
      GEMM_SINGLE_SWAPPED(192, 64, 1, 2, 1, 1, 2, "192x64_1x2_split_1x2"),
      GEMM_SINGLE_SWAPPED(128, 192, 2, 2, 1, 1, 1, "128x192_2x2"),
      GEMM_SINGLE_SWAPPED(128, 192, 2, 2, 1, 1, 3, "128x192_2x2_split_1x3"),
      GEMM_SINGLE_SWAPPED(128, 192, 1, 2, 1, 1, 3, "128x192_1x2_split_1x3"),
      GEMM_SINGLE_SWAPPED(128, 128, 2, 1, 1, 1, 1, "128x128_2x1"),
      GEMM_SINGLE_SWAPPED(64, 256, 2, 1, 1, 1, 1, "64x256_2x1"),
      GEMM_SINGLE_SWAPPED(64, 256, 4, 1, 1, 1, 3, "64x256_4x1_split_1x3"),
      GEMM_SINGLE_SWAPPED(64, 256, 4, 1, 1, 1, 5, "64x256_4x1_split_1x5"),
      GEMM_SINGLE(64, 192, 4, 1, 1, 1, 3, "64x192_4x1_split_1x3"),
      GEMM_SINGLE(64, 192, 4, 1, 1, 1, 4, "64x192_4x1_split_1x4"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 2, 1, 1, 1, "64x128_1x2"),
      GEMM_SINGLE_SWAPPED(64, 128, 1, 2, 4, 1, 3, "64x128_1x2_split_4x3"),
      GEMM_SINGLE(64, 128, 2, 1, 2, 1, 3, "64x128_2x1_split_2x3"),
      GEMM_LARGE(192, 224, 1, 2, 3, true, "192x224_1x2"),
      GEMM_LARGE_SWAPPED(192, 224, 1, 2, 3, true, "192x224_1x2"),
      GEMM_LARGE(256, 160, 1, 2, 2, false, "256x160_1x2"),
      GEMM_LARGE_SWAPPED(256, 160, 1, 2, 2, false, "256x160_1x2"),
      GEMM_SINGLE(128, 128, 1, 4, 1, 1, 1, "128x128_1x4"),
      GEMM_SINGLE_SWAPPED(128, 128, 1, 4, 1, 1, 1, "128x128_1x4"),
      GEMM_SINGLE(128, 128, 1, 4, 1, 1, 3, "128x128_1x4_split_1x3"),
      GEMM_SINGLE_SWAPPED(128, 128, 1, 4, 1, 1, 3, "128x128_1x4_split_1x3"),
      GEMM_SINGLE(128, 64, 1, 4, 1, 1, 1, "128x64_1x4"),
      GEMM_SINGLE_SWAPPED(128, 64, 1, 4, 1, 1, 1, "128x64_1x4"),
      GEMM_LARGE(256, 160, 2, 1, 2, false, "256x160_2x1"),
      GEMM_SINGLE_SWAPPED(128, 192, 1, 2, 1, 1, 1, "128x192_1x2"),
      GEMM_SINGLE(128, 128, 1, 4, 1, 1, 2, "128x128_1x4_split_1x2"),
      GEMM_SINGLE_SWAPPED(128, 128, 1, 4, 1, 1, 2, "128x128_1x4_split_1x2"),
      GEMM_SINGLE(128, 64, 1, 4, 1, 1, 3, "128x64_1x4_split_1x3"),
      GEMM_SINGLE_SWAPPED(128, 64, 1, 4, 1, 1, 3, "128x64_1x4_split_1x3"),
      GEMM_SINGLE_SWAPPED(64, 64, 1, 1, 2, 1, 3, "64x64_split_2x3"),
      GEMM_SINGLE_SWAPPED(64, 32, 1, 1, 1, 1, 3, "64x32_split_1x3"),
      GEMM_SINGLE_SWAPPED(64, 32, 1, 1, 1, 3, 4, "64x32_split_1x4/3"),
  };
  static_assert(sizeof(list) / sizeof(list[0]) == GEMM_MODELLED, "the model knows them all");
  GemmConfigurations all = {list, (int)(sizeof(list) / sizeof(list[0]))};
  return all;
}

#undef GEMM_CARRY
#undef GEMM_CARRY_SWAPPED
#undef GEMM_PERSISTENT
#undef GEMM_SINGLE
#undef GEMM_SINGLE_SWAPPED
#undef GEMM_SHORT
#undef GEMM_LARGE
#undef GEMM_LARGE_SWAPPED

constexpr int GEMM_DIRECT_WAYS = 14;

/* The configurations for lines of k elements that TMA cannot reach: first those that load without it, by
 * how many CTAs share the k range of a tile; then those that read A in place, and as many that read B in
 * place. */
template <int TYPE, int MAJOR_A, int MAJOR_B>
static inline GemmConfigurations gemm_direct_configurations(void) {
  typedef GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, 64, 64, 1, 1, 1, false, true> Direct;
  typedef GemmSingleTile<TYPE, MAJOR_B, MAJOR_A, 64, 128, 1, 1, 1, true, false, true> InPlace;
  typedef GemmSingleTile<TYPE, MAJOR_B, MAJOR_A, 128, 128, 1, 1, 1, true, false, true> HighInPlace;
  typedef GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, 64, 128, 1, 1, 1, false, false, true> BInPlace;
  typedef GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, 128, 128, 1, 1, 1, false, false, true>
      HighBInPlace;
  static const GemmConfiguration list[] = {
      gemm_single_configuration<Direct>("direct_64x64/3", 3, 1),
      gemm_single_configuration<Direct>("direct_64x64_split_1x2/3", 3, 2),
      gemm_single_configuration<Direct>("direct_64x64_split_1x4/3", 3, 4),
      gemm_single_configuration<Direct>("direct_64x64_split_1x8/3", 3, 8),
      gemm_single_configuration<InPlace>("in_place_64x128_swapped", 1),
      gemm_single_configuration<InPlace>("in_place_64x128_swapped/2", 2),
      gemm_single_configuration<InPlace>("in_place_64x128_split_1x4_swapped", 1, 4),
      gemm_single_configuration<HighInPlace>("in_place_128x128_swapped", 1),
      gemm_single_configuration<HighInPlace>("in_place_128x128_split_1x4_swapped", 1, 4),
      gemm_single_configuration<BInPlace>("in_place_64x128", 1),
      gemm_single_configuration<BInPlace>("in_place_64x128/2", 2),
      gemm_single_configuration<BInPlace>("in_place_64x128_split_1x4", 1, 4),
      gemm_single_configuration<HighBInPlace>("in_place_128x128", 1),
      gemm_single_configuration<HighBInPlace>("in_place_128x128_split_1x4", 1, 4),
  };
  static_assert(sizeof(list) / sizeof(list[0]) == GEMM_DIRECT_WAYS, "all have a place in lists");
  GemmConfigurations all = {list, (int)(sizeof(list) / sizeof(list[0]))};
  return all;
}

/* The configurations for few rows. The model does not know them: gemm_choose_rows() says for which products they
 * are. */
template <int TYPE, int MAJOR_A, int MAJOR_B>
static inline GemmConfigurations gemm_rows_configurations(void) {
#define GEMM_FEW_ROWS(TILES, WARPS, NAME) \
  gemm_rows_configuration<TYPE, MAJOR_A, MAJOR_B, TILES, WARPS>("rows_" NAME)
  static const GemmConfiguration list[] = {
      GEMM_FEW_ROWS(1, 16, "8x8"),   GEMM_FEW_ROWS(2, 16, "8x16"),  GEMM_FEW_ROWS(3, 16, "8x24"),
      GEMM_FEW_ROWS(2, 8, "8x16/2"), GEMM_FEW_ROWS(3, 8, "8x24/2"), GEMM_FEW_ROWS(4, 8, "8x32/2")};
#undef GEMM_FEW_ROWS
  static_assert(sizeof(list) / sizeof(list[0]) == GEMM_ROWS_WAYS, "all have a place in lists");
  GemmConfigurations all = {list, (int)(sizeof(list) / sizeof(list[0]))};
  return all;
}

#endif
