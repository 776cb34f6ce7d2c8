/* pipelined_gemm.cuh: C = A * transpose(B) for any m and n, and k a multiple of 8, on Hopper.
 *
 *   PipelinedGemm gemm;
 *   const char *wrong = pipelined_gemm_plan(&gemm, a, b, c, m, n, k, NULL);
 *   if (wrong) ...                             a sentence: which argument, which rule, the mend
 *   pipelined_gemm_launch(&gemm, stream);      as often as wanted: no host work but the launch
 *   pipelined_gemm_end(&gemm);                 frees the plan's memory on the device
 *
 * A is [m, k], B is [n, k], C is [m, n], row-major bf16 without gaps; the sums are fp32. The same
 * arguments give the same bits every time on chips with as many SMs. A plan has memory of its own
 * through which its clusters speak: one launch of it at a time. */
#ifndef PIPELINED_GEMM_PIPELINED_GEMM_CUH
#define PIPELINED_GEMM_PIPELINED_GEMM_CUH

#include "gemm_program.cuh"

#include "gemm_configuration.cuh"

#define GEMM_NAME large_2x1
#define GEMM_CLUSTER_M 2
#define GEMM_CLUSTER_N 1
#include "gemm_large.cuh"

#define GEMM_NAME large_1x2
#define GEMM_CLUSTER_M 1
#define GEMM_CLUSTER_N 2
#include "gemm_large.cuh"

#define GEMM_NAME large_traced
#define GEMM_CLUSTER_M 2
#define GEMM_CLUSTER_N 1
#define GEMM_TRACED
#include "gemm_large.cuh"

#define GEMM_NAME small_128x256_2x1
#define GEMM_TILE_M 128
#define GEMM_TILE_N 256
#define GEMM_STAGES 4
#define GEMM_CLUSTER_M 2
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 1
#include "gemm_small.cuh"

#define GEMM_NAME small_128x256_1x2
#define GEMM_TILE_M 128
#define GEMM_TILE_N 256
#define GEMM_STAGES 4
#define GEMM_CLUSTER_M 1
#define GEMM_CLUSTER_N 2
#define GEMM_SPLIT_K 1
#include "gemm_small.cuh"

#define GEMM_NAME small_128x128_2x1
#define GEMM_TILE_M 128
#define GEMM_TILE_N 128
#define GEMM_STAGES 6
#define GEMM_CLUSTER_M 2
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 1
#include "gemm_small.cuh"

#define GEMM_NAME small_128x64_2x1
#define GEMM_TILE_M 128
#define GEMM_TILE_N 64
#define GEMM_STAGES 8
#define GEMM_CLUSTER_M 2
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 1
#include "gemm_small.cuh"

#define GEMM_NAME small_64x128
#define GEMM_TILE_M 64
#define GEMM_TILE_N 128
#define GEMM_STAGES 8
#define GEMM_CLUSTER_M 1
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 1
#include "gemm_small.cuh"

#define GEMM_NAME small_64x128_2x1
#define GEMM_TILE_M 64
#define GEMM_TILE_N 128
#define GEMM_STAGES 8
#define GEMM_CLUSTER_M 2
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 1
#include "gemm_small.cuh"

#define GEMM_NAME small_64x64
#define GEMM_TILE_M 64
#define GEMM_TILE_N 64
#define GEMM_STAGES 8
#define GEMM_CLUSTER_M 1
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 1
#include "gemm_small.cuh"

#define GEMM_NAME small_128x128_split_2
#define GEMM_TILE_M 128
#define GEMM_TILE_N 128
#define GEMM_STAGES 5
#define GEMM_CLUSTER_M 1
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 2
#include "gemm_small.cuh"

#define GEMM_NAME small_64x64_split_2
#define GEMM_TILE_M 64
#define GEMM_TILE_N 64
#define GEMM_STAGES 8
#define GEMM_CLUSTER_M 1
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 2
#include "gemm_small.cuh"

#define GEMM_NAME small_64x64_split_4
#define GEMM_TILE_M 64
#define GEMM_TILE_N 64
#define GEMM_STAGES 8
#define GEMM_CLUSTER_M 1
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 4
#include "gemm_small.cuh"

#define GEMM_NAME small_64x128_split_8
#define GEMM_TILE_M 64
#define GEMM_TILE_N 128
#define GEMM_STAGES 6
#define GEMM_CLUSTER_M 1
#define GEMM_CLUSTER_N 1
#define GEMM_SPLIT_K 8
#include "gemm_small.cuh"

/* All there are. */
static const GemmConfiguration *const gemm_configurations[] = {&large_2x1_configuration,
                                                               &large_1x2_configuration,
                                                               &small_128x128_2x1_configuration,
                                                               &small_128x64_2x1_configuration,
                                                               &small_64x128_configuration,
                                                               &small_64x128_2x1_configuration,
                                                               &small_64x64_configuration,
                                                               &small_128x128_split_2_configuration,
                                                               &small_64x64_split_2_configuration,
                                                               &small_64x64_split_4_configuration,
                                                               &small_64x128_split_8_configuration,
                                                               &small_128x256_2x1_configuration,
                                                               &small_128x256_1x2_configuration};
enum { GEMM_CONFIGURATIONS = sizeof(gemm_configurations) / sizeof(gemm_configurations[0]) };

/* Which configuration for which product: the first row all of whose conditions hold. Measured on an
 * H200 of 132 SMs (NOTES.md): what fills at least 7 of 8 SMs with the largest tiles is fastest; if
 * no SM gets a second tile, there is nothing to overlap the stores with, and the plain kernel is
 * better; a cluster had better share A where C is narrow and k long, else B; and splitting k pays
 * only once each part has 16 steps of 64 or more. */
typedef struct {
  const GemmConfiguration *configuration;
  int least_blocks, most_blocks; /* CTAs that the product may give; GEMM_ANY: no limit */
  int most_m, most_n;
  int least_k;
} GemmChoice;

enum { GEMM_ENOUGH_BLOCKS = 112, GEMM_ONE_ROUND = 132, GEMM_ANY = 0 };

static const GemmChoice gemm_choices[] = {
    /*                              CTAs at least, at most, m at most, n at most, k at least */
    {&small_128x256_1x2_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ONE_ROUND, GEMM_ANY, 2048, 4096},
    {&small_128x256_2x1_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ONE_ROUND, GEMM_ANY, GEMM_ANY, 512},
    {&large_1x2_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ANY, GEMM_ANY, 2048, 4096},
    {&large_1x2_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ANY, 128, GEMM_ANY, 65},
    {&large_2x1_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ANY, GEMM_ANY, GEMM_ANY, 65},
    {&small_128x128_2x1_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ANY, GEMM_ANY, GEMM_ANY, 0},
    {&small_64x128_2x1_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ANY, 512, GEMM_ANY, 2048},
    {&small_64x128_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ANY, GEMM_ANY, GEMM_ANY, 0},
    {&small_128x128_split_2_configuration, GEMM_ENOUGH_BLOCKS, GEMM_ANY, GEMM_ANY, GEMM_ANY, 2048},
    {&small_64x64_configuration, GEMM_ENOUGH_BLOCKS / 2, GEMM_ANY, GEMM_ANY, GEMM_ANY, 0},
    {&small_64x64_split_2_configuration, GEMM_ENOUGH_BLOCKS / 2, GEMM_ANY, GEMM_ANY, GEMM_ANY,
     2048},
    {&small_64x64_split_4_configuration, GEMM_ENOUGH_BLOCKS / 2, GEMM_ANY, GEMM_ANY, GEMM_ANY,
     4096},
    {&small_64x128_split_8_configuration, 0, GEMM_ANY, GEMM_ANY, GEMM_ANY, 8192},
    {&small_64x64_split_4_configuration, 0, GEMM_ANY, GEMM_ANY, GEMM_ANY, 4096},
    {&small_64x64_configuration, 0, GEMM_ANY, GEMM_ANY, GEMM_ANY, 0},
};
enum { GEMM_CHOICES = sizeof(gemm_choices) / sizeof(gemm_choices[0]) };

typedef struct {
  const GemmConfiguration *configuration;
  CUtensorMap a, b, c;
  GemmWork work;
  int blocks;
  void *workspace; /* NULL, or memory for tiles that several clusters compute together */
} PipelinedGemm;

/* Bands of 2048 rows or columns of C: 132 SMs then work on about 2048 x 2048. A cluster that shares
 * B walks by columns, so that its followers share A (tile_order.cuh). */
static inline TileOrder pipelined_gemm_order(const GemmConfiguration *configuration, int m, int n) {
  enum { BAND_ELEMENTS = 2048 };
  int cluster_rows = configuration->tile_m * configuration->cluster_m;
  int cluster_columns = configuration->tile_n * configuration->cluster_n;
  TileOrder order;
  order.rows = divide_up(m, cluster_rows);
  order.columns = divide_up(n, cluster_columns);
  order.by_columns = configuration->cluster_m > 1;
  order.band = BAND_ELEMENTS / (order.by_columns ? cluster_columns : cluster_rows);
  return order;
}

static inline const GemmConfiguration *pipelined_gemm_choose(int m, int n, int k) {
  for (int i = 0; i < GEMM_CHOICES - 1; i++) {
    const GemmChoice *choice = &gemm_choices[i];
    const GemmConfiguration *c = choice->configuration;
    long tiles = (long)divide_up(m, c->tile_m) * divide_up(n, c->tile_n);
    if (tiles * c->split_k < choice->least_blocks) continue;
    if (choice->most_blocks != GEMM_ANY && tiles * c->split_k > choice->most_blocks) continue;
    if (choice->most_m != GEMM_ANY && m > choice->most_m) continue;
    if (choice->most_n != GEMM_ANY && n > choice->most_n) continue;
    if (k < choice->least_k) continue;
    return c;
  }
  return gemm_choices[GEMM_CHOICES - 1].configuration;
}

/* Shares the tiles among so many CTAs, and gets the memory through which clusters sum a tile that
 * several compute, and keep pace. */
static inline void pipelined_gemm_share(PipelinedGemm *gemm, int blocks) {
  enum { LONG_WAY = 4096 }; /* steps, after which clusters have drifted too far apart for L2 */
  const GemmConfiguration *c = gemm->configuration;
  TileShares shares = tile_shares(gemm->work.order.rows * gemm->work.order.columns,
                                  gemm->work.steps, blocks / (c->cluster_m * c->cluster_n));
  bool shared = shares.sharers > shares.left;
  bool paced = shares.whole * shares.steps >= LONG_WAY;
  gemm->work.shares = shares;
  gemm->blocks = blocks;
  if (!shared && !paced) return;
  size_t part_bytes = shared ? (size_t)c->tile_m * c->tile_n * sizeof(float) * blocks : 0;
  size_t flags = (size_t)c->threads / 32 * blocks;
  CUDA_CHECK(cudaMalloc(&gemm->workspace, part_bytes + (flags + 1) * sizeof(uint32_t)));
  gemm->work.parts = (float4 *)gemm->workspace;
  gemm->work.flags = (uint32_t *)((uint8_t *)gemm->workspace + part_bytes);
  if (paced) gemm->work.pace = gemm->work.flags + flags;
  CUDA_CHECK(cudaMemset(gemm->work.flags, 0, (flags + 1) * sizeof(uint32_t)));
}

/* Plans a product. Returns NULL, or a sentence about the first argument that will not do. A
 * configuration other than NULL overrides the table. */
static inline const char *pipelined_gemm_plan(PipelinedGemm *gemm, const void *a, const void *b,
                                              void *c, long m, long n, long k,
                                              const GemmConfiguration *configuration) {
  static char text[256];
  enum {
    MOST_ROWS = 1 << 24
  }; /* coordinates of TMA are 32 bits wide, with room for the last tile */
  const struct {
    const char *name;
    const void *pointer;
  } matrices[] = {{"A", a}, {"B", b}, {"C", c}};
  for (int i = 0; i < 3; i++) {
    if (matrices[i].pointer == NULL) {
      snprintf(text, sizeof(text), "%s is a null pointer: give memory of the device",
               matrices[i].name);
      return text;
    }
    if ((uintptr_t)matrices[i].pointer % 16 != 0) {
      snprintf(text, sizeof(text),
               "%s starts %d bytes past a multiple of 16: TMA wants matrices 16-byte aligned, as "
               "cudaMalloc gives them",
               matrices[i].name, (int)((uintptr_t)matrices[i].pointer % 16));
      return text;
    }
  }
  const struct {
    const char *name;
    long value;
  } sizes[] = {{"m", m}, {"n", n}, {"k", k}};
  for (int i = 0; i < 3; i++) {
    if (sizes[i].value < 1 || sizes[i].value > MOST_ROWS) {
      snprintf(text, sizeof(text), "%s is %ld, but must be 1 to %d", sizes[i].name, sizes[i].value,
               (int)MOST_ROWS);
      return text;
    }
  }
  if (k % 8 != 0) {
    snprintf(
        text, sizeof(text),
        "k is %ld, but must be a multiple of 8: rows of A and B are then multiples of 16 bytes, "
        "as TMA wants them; pad with zeros to %ld",
        k, (k + 7) / 8 * 8);
    return text;
  }
  if (configuration == NULL) configuration = pipelined_gemm_choose((int)m, (int)n, (int)k);
  int steps = divide_up((int)k, GEMM_STEP_K);
  if (steps < configuration->split_k || (configuration->persistent && steps < 2)) {
    snprintf(text, sizeof(text), "k is %ld, too short for the configuration %s", k,
             configuration->name);
    return text;
  }

  memset(gemm, 0, sizeof(*gemm));
  gemm->configuration = configuration;
  gemm->a = gemm_map("A", (void *)a, (int)m, (int)k,
                     configuration->tile_m / configuration->cluster_n, GEMM_STEP_K);
  gemm->b = gemm_map("B", (void *)b, (int)n, (int)k,
                     configuration->tile_n / configuration->cluster_m, GEMM_STEP_K);
  /* Rows of C that are no multiple of 16 bytes cannot be described to TMA. */
  if (n % 8 == 0) {
    gemm->c = gemm_map("C", c, (int)m, (int)n, 16, configuration->box_n);
  } else {
    gemm->work.c = (uint16_t *)c;
  }
  gemm->work.order = pipelined_gemm_order(configuration, (int)m, (int)n);
  gemm->work.steps = steps;
  gemm->work.m = (int)m;
  gemm->work.n = (int)n;
  CUDA_CHECK(cudaFuncSetAttribute(configuration->kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  configuration->shared_bytes));
  int cluster = configuration->cluster_m * configuration->cluster_n * configuration->split_k;
  int tiles = gemm->work.order.rows * gemm->work.order.columns;
  gemm->blocks = configuration->persistent
                     ? persistent_blocks(configuration->kernel, cluster, configuration->threads,
                                         configuration->shared_bytes, tiles, 0)
                     : tiles * cluster;
  if (configuration->persistent) pipelined_gemm_share(gemm, gemm->blocks);
  return NULL;
}

/* When all its launches are over. */
static inline void pipelined_gemm_end(PipelinedGemm *gemm) {
  CUDA_CHECK(cudaFree(gemm->workspace));
  gemm->workspace = NULL;
}

static inline void pipelined_gemm_launch(const PipelinedGemm *gemm, cudaStream_t stream) {
  cudaLaunchConfig_t configuration = {};
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  configuration.gridDim = dim3((unsigned)gemm->blocks);
  configuration.blockDim = dim3((unsigned)gemm->configuration->threads);
  configuration.dynamicSmemBytes = (size_t)gemm->configuration->shared_bytes;
  configuration.stream = stream;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  void *arguments[] = {(void *)&gemm->a, (void *)&gemm->b, (void *)&gemm->c, (void *)&gemm->work};
  CUDA_CHECK(cudaLaunchKernelExC(&configuration, gemm->configuration->kernel, arguments));
}

#endif
