/* gemm_program.cuh: what every program of the ladder needs around its kernel: data, check, bench.
 *
 * All compute C = A * transpose(B), bf16 with fp32 accumulators: A is [m, k], B is [n, k], C is
 * [m, n], each row-major and without gaps. k and n must be multiples of 8, because TMA needs rows
 * whose length is a multiple of 16 bytes. m can have any size. */
#ifndef PIPELINED_GEMM_GEMM_PROGRAM_CUH
#define PIPELINED_GEMM_GEMM_PROGRAM_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tensor_map.h"

typedef struct {
  int m, n, k;
  uint16_t *a, *b, *c; /* bf16, in device memory */
  int most_blocks;     /* limit for persistent kernels; 0: as many as the chip runs at once */
} LadderProblem;

typedef struct {
  LadderProblem problem;
  CUtensorMap a, b, c;
  int blocks;      /* of the grid, */
  int cluster;     /* and of a cluster, where it depends on the product */
  void *workspace; /* NULL, or memory on the device that prepare allocated */
  cudaStream_t stream;
} GemmPlan;

/* A rung: prepare encodes the tensor maps and sizes the grid, launch only launches. */
typedef void GemmPrepare(GemmPlan *plan);
typedef void GemmLaunch(const GemmPlan *plan);

static inline __host__ __device__ int divide_up(int a, int b) { return (a + b - 1) / b; }

/* Dynamic shared memory can start anywhere, but tiles under the 128-byte swizzle start at multiples
 * of 1024 bytes of shared address. Ask for 1024 bytes more than the struct needs. */
static __device__ __forceinline__ void *align_1024(uint8_t *pointer) {
  uint32_t misalignment = (uint32_t)__cvta_generic_to_shared(pointer) % 1024;
  return pointer + (1024 - misalignment) % 1024;
}

/* The map of a row-major bf16 matrix whose box is `box_columns` wide: 64, 32 or 16 elements. The
 * swizzle has the same width and spreads them over the banks. */
static inline CUtensorMap gemm_map(const char *name, void *matrix, int rows, int columns,
                                   int box_rows, int box_columns) {
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  map.dimensions = 2;
  map.address = matrix;
  map.size[0] = (uint64_t)columns;
  map.size[1] = (uint64_t)rows;
  map.box[0] = (uint32_t)box_columns;
  map.box[1] = (uint32_t)box_rows;
  map.swizzle = box_columns == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                : box_columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                    : CU_TENSOR_MAP_SWIZZLE_32B;
  map.l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  return tensor_map_encode(name, &map);
}

/* The grid of a persistent kernel: at most as many clusters as there are tiles, as the chip runs at
 * once, and as most_blocks allows (0: no limit). */
static inline int persistent_blocks(const void *kernel, int cluster, int threads,
                                    size_t shared_bytes, int tiles, int most_blocks) {
  cudaLaunchConfig_t configuration = {};
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  configuration.gridDim = dim3((unsigned)cluster);
  configuration.blockDim = dim3((unsigned)threads);
  configuration.dynamicSmemBytes = shared_bytes;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  int clusters = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &configuration));
  if (clusters > tiles) clusters = tiles;
  if (most_blocks > 0 && clusters > most_blocks / cluster) clusters = most_blocks / cluster;
  return (clusters > 0 ? clusters : 1) * cluster;
}

/* ---- Data, the same on every machine: a counter, hashed ---- */

static inline __host__ __device__ uint64_t gemm_hash(uint64_t counter) {
  uint64_t h = counter * 0x9E3779B97F4A7C15ull; /* splitmix64 */
  h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ h >> 27) * 0x94D049BB133111EBull;
  return h ^ h >> 31;
}

/* Nearly normal (the sum of twelve uniform numbers), and exact in every step, without libm. */
static inline __host__ __device__ float gemm_normal(uint64_t seed, uint64_t index) {
  int32_t sum = 0;
  for (int i = 0; i < 3; i++) {
    uint64_t h = gemm_hash(seed + index * 3 + i);
    for (int j = 0; j < 4; j++) sum += (int32_t)(h >> (16 * j) & 0xFFFF);
  }
  return (float)(sum - 6 * 65535) / 65536.0f;
}

/* The bf16 nearest to a float, as cvt.rn gives it. */
static inline __host__ __device__ uint16_t gemm_bf16(float value) {
  union {
    float f;
    uint32_t u;
  } bits = {value};
  return (uint16_t)((bits.u + 0x7FFF + (bits.u >> 16 & 1)) >> 16);
}

static inline float gemm_float(uint16_t bf16) {
  union {
    uint32_t u;
    float f;
  } bits = {(uint32_t)bf16 << 16};
  return bits.f;
}

enum { GEMM_INTEGERS = 0, GEMM_NORMAL = 1 };

static inline void gemm_fill(uint16_t *matrix, size_t count, int kind, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    float value = kind == GEMM_NORMAL ? gemm_normal(seed << 40, i)
                                      : (float)((int)(gemm_hash((seed << 40) + i) % 9) - 4);
    matrix[i] = gemm_bf16(value);
  }
}

static __global__ void gemm_fill_normal(uint16_t *matrix, size_t count, uint64_t seed) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride) {
    matrix[i] = gemm_bf16(gemm_normal(seed << 40, i));
  }
}

/* ---- Check ---- */

/* One row of the product in double, from the host's copies. */
static inline void gemm_reference_row(const uint16_t *a, const uint16_t *b, int n, int k, int row,
                                      double *result) {
  float *factors = (float *)malloc((size_t)k * sizeof(float));
  for (int i = 0; i < k; i++) factors[i] = gemm_float(a[(size_t)row * k + i]);
  for (int column = 0; column < n; column++) {
    const uint16_t *other = b + (size_t)column * k;
    double sum = 0;
    for (int i = 0; i < k; i++) sum += (double)(factors[i] * gemm_float(other[i]));
    result[column] = sum;
  }
  free(factors);
}

/* FNV-1a over the bits of C: one number that changes if any bit changes. */
static inline uint64_t gemm_checksum(const uint16_t *c, size_t count) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (size_t i = 0; i < count; i++) hash = (hash ^ c[i]) * 0x100000001B3ull;
  return hash;
}

/* Computes one product and compares `rows` rows of C. Small integers: the sums are exact whatever their
 * order, so every element must equal the rounded exact sum, bit for bit. Normal data: every element
 * must be within the error of rounding to bf16 and of summing k products with 24 bits. */
static inline bool gemm_check_product(GemmPrepare *prepare, GemmLaunch *launch, int m, int n, int k,
                                      int most_blocks, int kind, int rows, uint64_t seed,
                                      bool verbose) {
  size_t count_a = (size_t)m * k, count_b = (size_t)n * k, count_c = (size_t)m * n;
  uint16_t *a = (uint16_t *)malloc(count_a * 2), *b = (uint16_t *)malloc(count_b * 2);
  uint16_t *c = (uint16_t *)malloc(count_c * 2);
  gemm_fill(a, count_a, kind, seed);
  gemm_fill(b, count_b, kind, seed + 1);

  GemmPlan plan = {};
  plan.problem.m = m, plan.problem.n = n, plan.problem.k = k;
  plan.problem.most_blocks = most_blocks;
  CUDA_CHECK(cudaMalloc(&plan.problem.a, count_a * 2));
  CUDA_CHECK(cudaMalloc(&plan.problem.b, count_b * 2));
  CUDA_CHECK(cudaMalloc(&plan.problem.c, count_c * 2));
  CUDA_CHECK(cudaMemcpy(plan.problem.a, a, count_a * 2, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(plan.problem.b, b, count_b * 2, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(plan.problem.c, 0xFF, count_c * 2)); /* NaN: unwritten elements show */
  prepare(&plan);
  launch(&plan);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(c, plan.problem.c, count_c * 2, cudaMemcpyDeviceToHost));

  bool good = true;
  double *row_sums = (double *)malloc((size_t)n * sizeof(double));
  double *got = (double *)malloc((size_t)n * sizeof(double));
  if (rows > m) rows = m;
  double worst = 0;
  for (int i = 0; i < rows && good; i++) {
    int row = rows == m ? i : (int)(gemm_hash(seed + 77 + i) % (uint64_t)m);
    gemm_reference_row(a, b, n, k, row, row_sums);
    const uint16_t *line = c + (size_t)row * n;
    for (int column = 0; column < n && good; column++) {
      double value = gemm_float(line[column]);
      if (kind == GEMM_INTEGERS) {
        uint16_t wanted = gemm_bf16((float)row_sums[column]);
        good = line[column] == wanted || (value == 0 && row_sums[column] == 0);
        if (!good) {
          check_that(false, "C[%d][%d] of %d x %d x %d is %g, expected %g (exact sum %g)", row,
                     column, m, n, k, value, (double)gemm_float(wanted), row_sums[column]);
        }
      } else {
        /* Half a unit of bf16's 8 bits, and for the sum: products of deviation 1, cut k times. */
        double allowed =
            fabs(row_sums[column]) / 256 + 1e-6 * (8 + sqrt((double)k)) * sqrt((double)k);
        double error = fabs(value - row_sums[column]);
        if (error / allowed > worst) worst = error / allowed;
        good = error <= allowed;
        if (!good) {
          check_that(false, "C[%d][%d] of %d x %d x %d is %g, expected %g, error %g allowed %g",
                     row, column, m, n, k, value, row_sums[column], error, allowed);
        }
      }
    }
  }
  if (verbose && good) {
    const char *what = kind == GEMM_NORMAL ? "normal numbers: sampled rows in bounds;"
                       : rows == m         ? "small integers: every element exact;  "
                                           : "small integers: sampled rows exact;   ";
    printf("%4d x %4d x %4d, %s  checksum of C's bits %016llx\n", m, n, k, what,
           (unsigned long long)gemm_checksum(c, count_c));
  }
  CUDA_CHECK(cudaFree(plan.problem.a));
  CUDA_CHECK(cudaFree(plan.problem.b));
  CUDA_CHECK(cudaFree(plan.problem.c));
  CUDA_CHECK(cudaFree(plan.workspace));
  free(a), free(b), free(c), free(row_sums), free(got);
  return good;
}

/* ---- Bench ---- */

static inline int gemm_compare_floats(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* The median of seven times of one launch, each the mean of a few after a warm-up. */
template <typename Launch>
static inline double median_seconds(Launch launch) {
  enum { ROUNDS = 7, LAUNCHES = 5 };
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  float milliseconds[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    launch();
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < LAUNCHES; i++) launch();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds[round], begin, end));
  }
  CUDA_CHECK(cudaGetLastError());
  qsort(milliseconds, ROUNDS, sizeof(float), gemm_compare_floats);
  return milliseconds[ROUNDS / 2] / (double)LAUNCHES * 1e-3;
}

static inline void gemm_bench(const char *name, GemmPrepare *prepare, GemmLaunch *launch, int m,
                              int n, int k, int most_blocks) {
  GemmPlan plan = {};
  plan.problem.m = m, plan.problem.n = n, plan.problem.k = k;
  plan.problem.most_blocks = most_blocks;
  size_t count_a = (size_t)m * k, count_b = (size_t)n * k;
  CUDA_CHECK(cudaMalloc(&plan.problem.a, count_a * 2));
  CUDA_CHECK(cudaMalloc(&plan.problem.b, count_b * 2));
  CUDA_CHECK(cudaMalloc(&plan.problem.c, (size_t)m * n * 2));
  gemm_fill_normal<<<1024, 256>>>(plan.problem.a, count_a, 1);
  gemm_fill_normal<<<1024, 256>>>(plan.problem.b, count_b, 2);
  prepare(&plan);
  double seconds = median_seconds([&] { launch(&plan); });
  printf("%s: %d x %d x %d in %.3f ms, %.1f TFLOP/s\n", name, m, n, k, seconds * 1e3,
         2.0 * m * n * k / seconds * 1e-12);
}

static inline void gemm_require_multiple_of_8(const char *option, long value) {
  if (value % 8 == 0) return;
  fprintf(stderr,
          "%s is %ld, but must be a multiple of 8: the rows of A, B and C hold whole units of 16 "
          "bytes, as TMA requires. Fill the rows up with zeros.\n",
          option, value);
  program_exit(EXIT_USAGE);
}

/* The main function of a rung. Three products: one whose sizes the tiles divide and one with
 * tiles cut off at every edge, both exact, and then normal data. Persistent kernels get only a few
 * blocks or clusters, so that each computes several tiles. With --m, --n or --k, a product of that
 * size, by all blocks unless --blocks limits them. */
static inline int gemm_program(const char *name, int argc, char **argv, GemmPrepare *prepare,
                               GemmLaunch *launch, int few_blocks) {
  enum { MOST = 32768, BENCH_SIZE = 8192, SIZE = 512, NOT_GIVEN = 0 };
  long m = SIZE, n = SIZE, k = SIZE, blocks = NOT_GIVEN, bench = 0, no_check = 0;
  Option options[] = {{"--m", "rows of A and C", &m, 1, MOST},
                      {"--n", "rows of B, columns of C", &n, 8, MOST},
                      {"--k", "columns of A and B", &k, 8, MOST},
                      {"--blocks", "most blocks of a persistent kernel", &blocks, 2, 1024},
                      {"--bench", "measure on a GPU; default size 8192", &bench, 0, 0},
                      {"--no-check", "compute once, for a profiler", &no_check, 0, 0}};
  program_begin(name, argc, argv, options, 6);
  bool sized = m != SIZE || n != SIZE || k != SIZE;
  gemm_require_multiple_of_8("--n", n);
  gemm_require_multiple_of_8("--k", k);
  if (bench) {
    if (!sized) m = n = k = BENCH_SIZE;
    gemm_bench(name, prepare, launch, (int)m, (int)n, (int)k, (int)blocks);
    return program_end("measured, not checked");
  }
  if (no_check) {
    enum { NO_ROWS = 0 };
    gemm_check_product(prepare, launch, (int)m, (int)n, (int)k, (int)blocks, GEMM_INTEGERS, NO_ROWS,
                       11, false);
    return program_end("computed once, not checked");
  }
  if (sized) {
    int64_t rows = (1 << 29) / ((int64_t)n * k) + 1; /* the host computes them in about a second */
    gemm_check_product(prepare, launch, (int)m, (int)n, (int)k, (int)blocks, GEMM_INTEGERS,
                       rows < m ? (int)rows : (int)m, 11, true);
    return program_end("one product of bf16 matrices, exactly");
  }
  if (blocks != NOT_GIVEN) few_blocks = (int)blocks;
  gemm_check_product(prepare, launch, 512, 512, 512, few_blocks, GEMM_INTEGERS, 512, 11, true);
  gemm_check_product(prepare, launch, 200, 328, 136, few_blocks, GEMM_INTEGERS, 200, 22, true);
  gemm_check_product(prepare, launch, 512, 512, 512, few_blocks, GEMM_NORMAL, 16, 33, true);
  return program_end("three products of bf16 matrices, two of them exactly");
}

#endif
