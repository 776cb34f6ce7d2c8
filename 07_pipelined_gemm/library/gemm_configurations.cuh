/* gemm_configurations.cuh: every way to compute a product that there is. */
#ifndef PIPELINED_GEMM_GEMM_CONFIGURATIONS_CUH
#define PIPELINED_GEMM_GEMM_CONFIGURATIONS_CUH

#include "gemm_carry.cuh"
#include "gemm_short.cuh"
#include "gemm_single.cuh"

/* Which tiles have a kernel. With PIPELINED_GEMM_FEW_KERNELS only those of 128 x 128, which every
 * product fits: compiling takes a fraction of the time, and most products take longer to compute. */
#ifdef PIPELINED_GEMM_FEW_KERNELS
constexpr bool GEMM_FEW_KERNELS = true;
#else
constexpr bool GEMM_FEW_KERNELS = false;
#endif

/* A kernel, or NULL where there is none: an MN-major operand comes in groups of 64, so whatever is loaded or
 * multiplied by itself must be whole groups; and to add sums in other registers takes twice as many. */
template <class Tile, int KIND, bool POSSIBLE>
struct GemmKernel {
  static const void *get(void) { return NULL; }
};
template <class Tile>
struct GemmKernel<Tile, GEMM_CARRY, true> {
  static const void *get(void) { return (const void *)gemm_carry<Tile>; }
};
template <class Tile>
struct GemmKernel<Tile, GEMM_SINGLE, true> {
  static const void *get(void) { return (const void *)gemm_single<Tile>; }
};
template <class Tile>
struct GemmKernel<Tile, GEMM_SHORT, true> {
  static const void *get(void) { return (const void *)gemm_short<Tile>; }
};

template <int TYPE, int MAJOR_A, int MAJOR_B>
static inline constexpr bool gemm_is_possible(int kind, int m, int n, int slice_m, int slice_n) {
  return (!GEMM_FEW_KERNELS || (kind == GEMM_SINGLE && m == 128 && n == 128)) &&
         (MAJOR_A == (int)GEMM_K_MAJOR || slice_m % 64 == 0) &&
         (MAJOR_B == (int)GEMM_K_MAJOR || (n % 64 == 0 && slice_n % 64 == 0)) &&
         (TYPE != GEMM_E4M3_PROMOTED || (kind == GEMM_SINGLE && n <= (m == 128 ? 192 : 128)));
}

/* Lists the kernels of gemm_carry for tiles of N, N - STEP_N, ... columns. Those that are PLAIN only round: it would
 * take long to compile more, and for narrow tiles and swapped operands it is not worth it. */
template <int TYPE, int MAJOR_A, int MAJOR_B, int N, int STEP_N, int WIDTHS, bool SWAPPED,
          bool PLAIN>
struct GemmCarryKernels {
  static void list(const void **kernels) {
    enum { POSSIBLE = gemm_is_possible<TYPE, MAJOR_A, MAJOR_B>(GEMM_CARRY, 128, N, 128, N / 2) };
    typedef GemmCarryTile<TYPE, MAJOR_A, MAJOR_B, N, SWAPPED, PLAIN> Tile;
    *kernels = GemmKernel<Tile, GEMM_CARRY, POSSIBLE>::get();
    GemmCarryKernels<TYPE, MAJOR_A, MAJOR_B, N - STEP_N, STEP_N, WIDTHS - 1, SWAPPED, true>::list(
        kernels + 1);
  }
};
template <int TYPE, int MAJOR_A, int MAJOR_B, int N, int STEP_N, bool SWAPPED>
struct GemmCarryKernels<TYPE, MAJOR_A, MAJOR_B, N, STEP_N, 0, SWAPPED, true> {
  static void list(const void **) {}
};

/* Of an MN-major B, slices are whole groups only in the widest tiles. */
template <int TYPE, int MAJOR_A, int MAJOR_B, int N, int STEP_N, int MOST_WIDTHS, bool SWAPPED>
static inline GemmConfiguration gemm_carry_configuration(const char *name) {
  enum { WIDTHS = MAJOR_B == GEMM_K_MAJOR ? MOST_WIDTHS : 1 };
  static const void *kernels[WIDTHS];
  GemmCarryKernels<TYPE, MAJOR_A, MAJOR_B, N, STEP_N, WIDTHS, SWAPPED, SWAPPED>::list(kernels);
  GemmConfiguration c = {};
  c.name = name, c.kernel = kernels[0], c.kernels = kernels, c.kind = GEMM_CARRY;
  c.tile_m = 128, c.tile_n = c.width = N, c.least_n = N - (WIDTHS - 1) * STEP_N, c.step_n = STEP_N;
  c.cluster_m = 2, c.cluster_n = 1, c.swapped = SWAPPED;
  c.split_k = c.groups = c.most_groups = c.blocks_per_sm = c.most_blocks = 1;
  c.stages = 4, c.threads = 384;
  return c;
}

template <class Tile>
static inline GemmConfiguration gemm_single_configuration(const char *name) {
  enum {
    POSSIBLE = gemm_is_possible<Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B>(
        GEMM_SINGLE, Tile::TILE_M, Tile::TILE_N, Tile::SLICE_M, Tile::SLICE_N)
  };
  GemmConfiguration c = {};
  c.name = name, c.kernel = GemmKernel<Tile, GEMM_SINGLE, POSSIBLE>::get(), c.kind = GEMM_SINGLE;
  c.groups = 1, c.most_groups = GEMM_MOST_GROUPS;
  c.tile_m = Tile::TILE_M, c.tile_n = Tile::TILE_N;
  c.least_n = Tile::LEAST_N, c.step_n = Tile::STEP_N;
  c.cluster_m = Tile::CLUSTER_M, c.cluster_n = Tile::CLUSTER_N;
  c.split_k = Tile::SPLIT_K, c.swapped = Tile::SWAPPED;
  c.blocks_per_sm = 1, c.most_blocks = Tile::BLOCKS;
  c.stages = Tile::MOST_STAGES, c.threads = Tile::THREADS;
  c.fixed_bytes = (int)sizeof(typename Tile::Fixed) + 1024;
  return c;
}

template <class Tile>
static inline GemmConfiguration gemm_short_configuration(const char *name) {
  enum {
    POSSIBLE = gemm_is_possible<Tile::TYPE, Tile::MAJOR_A, Tile::MAJOR_B>(
        GEMM_SHORT, Tile::TILE_M, Tile::TILE_N, Tile::TILE_M, Tile::TILE_N)
  };
  GemmConfiguration c = {};
  c.name = name, c.kernel = GemmKernel<Tile, GEMM_SHORT, POSSIBLE>::get(), c.kind = GEMM_SHORT;
  c.tile_m = Tile::TILE_M, c.tile_n = c.least_n = Tile::TILE_N;
  c.cluster_m = c.cluster_n = c.split_k = 1;
  c.groups = c.most_groups = c.blocks_per_sm = c.most_blocks = 1;
  c.stages = Tile::MOST_STAGES, c.threads = Tile::THREADS, c.most_steps = Tile::MOST_STEPS;
  c.fixed_bytes = (int)sizeof(typename Tile::Fixed) + 1024;
  return c;
}

/* All configurations for one input type and layout. The name says the kernel, the tile, the cluster that shares
 * loads, the split of k (over a cluster, x over clusters), after a slash how many blocks are to fit on an SM, and
 * whether the operands are swapped: then the tile is one of transpose(C). NOTES.md says how they were chosen. */
template <int TYPE, int MAJOR_A, int MAJOR_B>
static inline GemmConfigurations gemm_configurations(void) {
#define GEMM_SINGLE_OF(M, N, CLUSTER_M, CLUSTER_N, SPLIT_K, NAME)                           \
  gemm_single_configuration<                                                                \
      GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, M, N, CLUSTER_M, CLUSTER_N, SPLIT_K, false> >( \
      "single_" NAME)
#define GEMM_SWAPPED_OF(M, N, CLUSTER_M, CLUSTER_N, SPLIT_K, NAME)                         \
  gemm_single_configuration<                                                               \
      GemmSingleTile<TYPE, MAJOR_B, MAJOR_A, M, N, CLUSTER_M, CLUSTER_N, SPLIT_K, true> >( \
      "single_" NAME "_swapped")
#define GEMM_SHORT_OF(N, CONSUMERS, MOST_STEPS, NAME)                                         \
  gemm_short_configuration<GemmShortTile<TYPE, MAJOR_A, MAJOR_B, N, CONSUMERS, MOST_STEPS> >( \
      "short_" NAME)
  static const GemmConfiguration list[] = {
      gemm_carry_configuration<TYPE, MAJOR_A, MAJOR_B, 256, 16, 7, false>("carry_128x256_2x1"),
      gemm_carry_configuration<TYPE, MAJOR_B, MAJOR_A, 256, 32, 2, true>(
          "carry_128x256_2x1_swapped"),
      GEMM_SHORT_OF(256, 2, 3, "64x256"),
      GEMM_SHORT_OF(128, 3, 4, "64x128"),
      GEMM_SINGLE_OF(192, 192, 1, 2, 1, "192x192_1x2"),
      GEMM_SWAPPED_OF(192, 192, 1, 2, 1, "192x192_1x2"),
      GEMM_SINGLE_OF(192, 128, 1, 2, 1, "192x128_1x2"),
      GEMM_SWAPPED_OF(192, 128, 1, 2, 1, "192x128_1x2"),
      GEMM_SINGLE_OF(128, 256, 1, 2, 1, "128x256_1x2"),
      GEMM_SWAPPED_OF(128, 256, 2, 1, 1, "128x256_2x1"),
      GEMM_SINGLE_OF(128, 192, 2, 2, 1, "128x192_2x2"),
      GEMM_SWAPPED_OF(128, 192, 2, 2, 1, "128x192_2x2"),
      GEMM_SINGLE_OF(128, 128, 1, 2, 1, "128x128_1x2"),
      GEMM_SINGLE_OF(128, 128, 1, 4, 1, "128x128_1x4"),
      GEMM_SWAPPED_OF(128, 128, 1, 4, 1, "128x128_1x4"),
      GEMM_SINGLE_OF(128, 64, 1, 4, 1, "128x64_1x4"),
      GEMM_SWAPPED_OF(128, 64, 1, 4, 1, "128x64_1x4"),
      GEMM_SINGLE_OF(64, 192, 4, 1, 1, "64x192_4x1"),
      GEMM_SINGLE_OF(64, 128, 1, 2, 4, "64x128_1x2_split_4"),
      GEMM_SINGLE_OF(64, 64, 1, 1, 1, "64x64"),
      GEMM_SINGLE_OF(64, 32, 1, 1, 4, "64x32_split_4"),
      GEMM_SWAPPED_OF(64, 32, 1, 1, 4, "64x32_split_4"),
      GEMM_SWAPPED_OF(64, 32, 1, 1, 1, "64x32"),
  };
#undef GEMM_SINGLE_OF
#undef GEMM_SWAPPED_OF
#undef GEMM_SHORT_OF
  GemmConfigurations all = {list, (int)(sizeof(list) / sizeof(list[0]))};
  return all;
}

#endif
