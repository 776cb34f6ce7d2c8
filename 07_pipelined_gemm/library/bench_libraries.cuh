/* bench_libraries.cuh: cuBLAS and cuBLASLt computing what the ladder and library/ compute, C = A * transpose(B)
 * in bf16, for the benchmarks. Include it with -lcublas -lcublasLt. */
#ifndef PIPELINED_GEMM_BENCH_LIBRARIES_CUH
#define PIPELINED_GEMM_BENCH_LIBRARIES_CUH

#include <cublasLt.h>
#include <cublas_v2.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "../gemm_program.cuh"

#define CUBLAS_CHECK(call)                                          \
  do {                                                              \
    int status = (int)(call);                                       \
    if (status != 0) program_fail("%s answered %d", #call, status); \
  } while (0)

enum { MOST_ALGORITHMS = 8, FINALISTS = 3 };
static const size_t workspace_bytes = 64 << 20;

typedef struct {
  int m, n, k;
} Shape;

typedef enum { BY_CUBLAS, BY_CUBLASLT, BY_LIBRARY, BY_RUNG } Kind;

enum { MOST_ROUNDS = 31 };

typedef struct {
  char name[64];
  Kind kind;
  void (*launch_library)(const void *gemm); /* by library/, */
  const void *gemm;                         /* a plan of it */
  GemmLaunch *launch;                       /* of a rung, */
  GemmPlan plan;                            /* with its plan */
  cublasLtMatmulAlgo_t algorithm;
  float estimate, microseconds[MOST_ROUNDS];
} Competitor;

static cublasHandle_t blas;
static cublasLtHandle_t lt;
static cublasLtMatmulDesc_t operation;
static cublasLtMatrixLayout_t layout_a, layout_b, layout_c;
static void *workspace;
static uint16_t *a, *b, *c;
static float *reference; /* by cuBLAS, in fp32 */
static unsigned long long *different;
static cudaEvent_t begin, end;

/* Allocates matrices of this many elements each, and initialises the libraries. */
static void begin_competition(size_t elements) {
  CUDA_CHECK(cudaMalloc(&a, elements * sizeof(*a)));
  CUDA_CHECK(cudaMalloc(&b, elements * sizeof(*b)));
  CUDA_CHECK(cudaMalloc(&c, elements * sizeof(*c)));
  CUDA_CHECK(cudaMalloc(&reference, elements * sizeof(*reference)));
  CUDA_CHECK(cudaMalloc(&workspace, workspace_bytes));
  CUDA_CHECK(cudaMalloc(&different, sizeof(*different)));
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  CUBLAS_CHECK(cublasCreate(&blas));
  CUBLAS_CHECK(cublasSetWorkspace(blas, workspace, workspace_bytes));
  CUBLAS_CHECK(cublasLtCreate(&lt));
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t transposed = CUBLAS_OP_T;
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                              sizeof(transposed)));
}

/* The libraries' matrices are column-major: they compute transpose(C) = B * transpose(A). */
static void launch_cublas(Shape s, void *to, cudaDataType_t type) {
  float one = 1, zero = 0;
  CUBLAS_CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, s.n, s.m, s.k, &one, b, CUDA_R_16BF,
                            s.k, a, CUDA_R_16BF, s.k, &zero, to, type, s.n, CUBLAS_COMPUTE_32F,
                            CUBLAS_GEMM_DEFAULT));
}

static void launch(const Competitor *competitor, Shape s) {
  float one = 1, zero = 0;
  switch (competitor->kind) {
    case BY_CUBLAS:
      launch_cublas(s, c, CUDA_R_16BF);
      break;
    case BY_CUBLASLT:
      CUBLAS_CHECK(cublasLtMatmul(lt, operation, &one, b, layout_b, a, layout_a, &zero, c, layout_c,
                                  c, layout_c, &competitor->algorithm, workspace, workspace_bytes,
                                  0));
      break;
    case BY_LIBRARY:
      competitor->launch_library(competitor->gemm);
      break;
    case BY_RUNG:
      competitor->launch(&competitor->plan);
      break;
  }
}

/* Microseconds of a launch, averaged over this many, one after the other. */
static float timed(const Competitor *competitor, Shape s, int launches) {
  float milliseconds;
  CUDA_CHECK(cudaEventRecord(begin));
  for (int i = 0; i < launches; i++) launch(competitor, s);
  CUDA_CHECK(cudaEventRecord(end));
  CUDA_CHECK(cudaEventSynchronize(end));
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  return milliseconds / (float)launches * 1e3f;
}

static void estimate(Competitor *competitor, Shape s) {
  launch(competitor, s);
  float once = timed(competitor, s, 1);
  competitor->estimate = timed(competitor, s, once > 1000 ? 1 : once > 100 ? 4 : 20);
}

/* Rests, then measures for this many milliseconds. */
static float measure(const Competitor *competitor, Shape s, long rest, long milliseconds) {
  int launches = (int)((float)milliseconds * 1e3f / competitor->estimate) + 1;
  if (rest > 0) {
    CUDA_CHECK(cudaDeviceSynchronize());
    usleep((useconds_t)rest * 1000);
  }
  return timed(competitor, s, launches);
}

static void shuffle(int *order, int count) {
  for (int j = count - 1; j > 0; j--) {
    int other = rand() % (j + 1), held = order[j];
    order[j] = order[other];
    order[other] = held;
  }
}

enum { WARM_UP = 200 }; /* milliseconds, after which the clock has settled */

/* Measures each program of `order` once a round, in a new random order.
 *
 * At its power limit, the chip lowers its clock after 50 to 100 milliseconds of load, by up to a quarter, and raises it
 * again in a rest of 10. A program that is measured before the change must not be compared with one behind it. So each
 * measurement begins after a rest; or, without rests, all programs first take turns until the clock has settled, and in the
 * end a round's times are divided by how slow the round was for all programs. */
static void compete(Competitor *list, int *order, int count, Shape s, long rounds, long rest,
                    long milliseconds) {
  float slowness[MOST_ROUNDS] = {0}, mean = 0; /* the mean logarithm of a round's times */
  for (long warm = 0, j = 0; rest == 0 && warm < WARM_UP; warm += milliseconds) {
    list[order[j]].estimate = measure(&list[order[j]], s, 0, milliseconds);
    j = (j + 1) % count;
  }
  for (int round = 0; round < rounds; round++) {
    shuffle(order, count);
    for (int j = 0; j < count; j++) {
      float time = measure(&list[order[j]], s, rest, milliseconds);
      list[order[j]].microseconds[round] = time;
      slowness[round] += logf(time) / (float)count;
    }
    mean += slowness[round] / (float)rounds;
  }
  for (int j = 0; j < count; j++) {
    float *times = list[order[j]].microseconds;
    for (int round = 0; rest == 0 && round < rounds; round++) {
      times[round] *= expf(mean - slowness[round]);
    }
    qsort(times, (size_t)rounds, sizeof(float), gemm_compare_floats);
  }
}

/* The algorithms that cuBLASLt's heuristics name. */
static int find_algorithms(cublasLtMatmulDesc_t of, cublasLtMatrixLayout_t left,
                           cublasLtMatrixLayout_t right, cublasLtMatrixLayout_t result,
                           cublasLtMatmulHeuristicResult_t found[MOST_ALGORITHMS]) {
  int count = 0;
  cublasLtMatmulPreference_t preference;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof(workspace_bytes)));
  cublasLtMatmulAlgoGetHeuristic(lt, of, left, right, result, result, preference, MOST_ALGORITHMS,
                                 found, &count);
  return count;
}

static int compare_estimates(const void *x, const void *y) {
  float p = ((const Competitor *)x)->estimate, q = ((const Competitor *)y)->estimate;
  return (p > q) - (p < q);
}

/* cuBLAS, and the fastest algorithms of cuBLASLt, go to list[0..]. Returns how many. The matrices are
 * filled, and `reference` gets cuBLAS's product of them. */
static int add_libraries(Competitor *list, Shape s) {
  gemm_fill_normal<<<1024, 256>>>(a, (size_t)s.m * s.k, 1);
  gemm_fill_normal<<<1024, 256>>>(b, (size_t)s.n * s.k, 2);
  memset(&list[0], 0, sizeof(list[0]));
  snprintf(list[0].name, sizeof(list[0].name), "cublas");
  list[0].kind = BY_CUBLAS;
  launch_cublas(s, reference, CUDA_R_32F);
  estimate(&list[0], s);
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_b, CUDA_R_16BF, s.k, s.n, s.k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_a, CUDA_R_16BF, s.k, s.m, s.k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_c, CUDA_R_16BF, s.n, s.m, s.n));
  cublasLtMatmulHeuristicResult_t found[MOST_ALGORITHMS];
  int count = find_algorithms(operation, layout_b, layout_a, layout_c, found);
  for (int i = 0; i < count; i++) {
    Competitor *algorithm = &list[1 + i];
    memset(algorithm, 0, sizeof(*algorithm));
    snprintf(algorithm->name, sizeof(algorithm->name), "cublaslt_%d", i);
    algorithm->kind = BY_CUBLASLT;
    algorithm->algorithm = found[i].algo;
    estimate(algorithm, s);
  }
  qsort(list + 1, (size_t)count, sizeof(list[0]), compare_estimates);
  return 1 + (count < FINALISTS ? count : FINALISTS);
}

/* All results must be close to cuBLAS's: the time of a wrong result is worthless. */
static __global__ void count_different(const uint16_t *x, const float *y, size_t count,
                                       float allowed, unsigned long long *wrong) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride) {
    float p = __uint_as_float((uint32_t)x[i] << 16), q = y[i];
    if (!(fabsf(p - q) <= fabsf(q) / 128 + allowed)) atomicAdd(wrong, 1ull);
  }
}

static void check_competitor(const Competitor *competitor, Shape s) {
  unsigned long long found;
  size_t elements = (size_t)s.m * s.n;
  CUDA_CHECK(cudaMemset(c, 0xFF, elements * 2));
  CUDA_CHECK(cudaMemset(different, 0, sizeof(found)));
  launch(competitor, s);
  count_different<<<1024, 256>>>(c, reference, elements, 0.001f * sqrtf((float)s.k), different);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(&found, different, sizeof(found), cudaMemcpyDeviceToHost));
  check_that(found == 0, "%s at %d x %d x %d: %llu elements differ from cuBLAS's", competitor->name,
             s.m, s.n, s.k, found);
}

#endif
