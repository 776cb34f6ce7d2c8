// bench_shapes: pipelined_gemm against cuBLAS and cuBLASLt at every shape of a list.
//
// link: -lcublas -lcublasLt
//
// For each shape every competitor is measured in a few rounds, each in a new random order: first a
// rest, then launches one after the other for so many milliseconds. cuBLASLt: all algorithms that
// its heuristics name are tried, and the fastest are measured again like everybody. Every
// C of ours is compared with cuBLAS's fp32 result. Data: normal numbers.
//
//   bench_shapes --shapes FILE --csv FILE                    ours, as chosen, and the libraries
//   bench_shapes --shapes FILE --csv FILE --all 1            every configuration, for the fit
//
// A line of FILE is "m n k". The CSV has a line for each competitor: m,n,k,program,microseconds.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gemm_program.cuh"
#include "product/pipelined_gemm.cuh"

#define CUBLAS_CHECK(call)                                          \
  do {                                                              \
    int status = (int)(call);                                       \
    if (status != 0) program_fail("%s answered %d", #call, status); \
  } while (0)

enum { MOST_COMPETITORS = 64, MOST_ALGORITHMS = 8, MOST_ROUNDS = 9, FINALISTS = 3 };
static const size_t workspace_bytes = 64 << 20;

typedef enum { BY_CUBLAS, BY_CUBLASLT, BY_PIPELINED_GEMM } Kind;

typedef struct {
  char name[64];
  Kind kind;
  PipelinedGemm gemm;
  cublasLtMatmulAlgo_t algorithm;
  float estimate, microseconds[MOST_ROUNDS];
} Competitor;

typedef struct {
  int m, n, k;
} Shape;

static cublasHandle_t blas;
static cublasLtHandle_t lt;
static cublasLtMatmulDesc_t operation;
static cublasLtMatrixLayout_t layout_a, layout_b, layout_c;
static void *workspace;
static uint16_t *a, *b, *c;
static float *reference;  // by cuBLAS, in fp32
static unsigned long long *different;
static cudaEvent_t begin, end;
static long rest_milliseconds = 20, measured_milliseconds = 50, rounds = 3, all_configurations;

static void launch(const Competitor *competitor, Shape s) {
  float one = 1, zero = 0;
  // The libraries' matrices are column-major: they compute transpose(C) = B * transpose(A).
  switch (competitor->kind) {
    case BY_CUBLAS:
      CUBLAS_CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, s.n, s.m, s.k, &one, b, CUDA_R_16BF,
                                s.k, a, CUDA_R_16BF, s.k, &zero, c, CUDA_R_16BF, s.n,
                                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
      break;
    case BY_CUBLASLT:
      CUBLAS_CHECK(cublasLtMatmul(lt, operation, &one, b, layout_b, a, layout_a, &zero, c, layout_c,
                                  c, layout_c, &competitor->algorithm, workspace, workspace_bytes,
                                  0));
      break;
    case BY_PIPELINED_GEMM:
      CUDA_CHECK(pipelined_gemm_launch(&competitor->gemm, 0));
      break;
  }
}

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

static float measure(const Competitor *competitor, Shape s) {
  int launches = (int)((float)measured_milliseconds * 1e3f / competitor->estimate) + 1;
  if (rest_milliseconds > 0) {
    CUDA_CHECK(cudaDeviceSynchronize());
    usleep((useconds_t)rest_milliseconds * 1000);
  }
  return timed(competitor, s, launches);
}

// All must give about what cuBLAS gives: a fast wrong answer is no answer.
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

static int compare_estimates(const void *x, const void *y) {
  float p = ((const Competitor *)x)->estimate, q = ((const Competitor *)y)->estimate;
  return (p > q) - (p < q);
}

// The fastest algorithms of cuBLASLt go to list[0..]; returns how many.
static int add_cublaslt(Competitor *list, Shape s) {
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_b, CUDA_R_16BF, s.k, s.n, s.k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_a, CUDA_R_16BF, s.k, s.m, s.k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_c, CUDA_R_16BF, s.n, s.m, s.n));
  cublasLtMatmulPreference_t preference;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof(workspace_bytes)));
  cublasLtMatmulHeuristicResult_t found[MOST_ALGORITHMS];
  int count = 0;
  cublasLtMatmulAlgoGetHeuristic(lt, operation, layout_b, layout_a, layout_c, layout_c, preference,
                                 MOST_ALGORITHMS, found, &count);
  for (int i = 0; i < count; i++) {
    memset(&list[i], 0, sizeof(list[i]));
    snprintf(list[i].name, sizeof(list[i].name), "cublaslt_%d", i);
    list[i].kind = BY_CUBLASLT;
    list[i].algorithm = found[i].algo;
    estimate(&list[i], s);
  }
  qsort(list, (size_t)count, sizeof(list[0]), compare_estimates);
  return count < FINALISTS ? count : FINALISTS;
}

static int add_ours(Competitor *list, Shape s) {
  GemmProblem problem = gemm_problem(s.m, s.n, s.k, a, b, c);
  GemmConfigurations all = gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  int count = 0;
  for (int i = -1; i < (all_configurations ? all.count : 0); i++) {
    Competitor *mine = &list[count];
    memset(mine, 0, sizeof(*mine));
    mine->kind = BY_PIPELINED_GEMM;
    GemmStatus status = i < 0 ? pipelined_gemm_plan<GEMM_BF16>(&mine->gemm, &problem)
                              : gemm_plan_with(&mine->gemm, &problem, GEMM_BF16, GEMM_K_MAJOR,
                                               GEMM_K_MAJOR, &all.list[i], 0);
    if (status.error == GEMM_NOT_FOR_SHAPE) continue;
    if (status.error != GEMM_OK) {
      char text[256];
      pipelined_gemm_explain(status, text, sizeof(text));
      program_fail("%d x %d x %d: %s", s.m, s.n, s.k, text);
    }
    const char *name = mine->gemm.configuration->name;
    snprintf(mine->name, sizeof(mine->name), i < 0 ? "chosen:%s" : "%s", name);
    count++;
  }
  return count;
}

// Measures a shape; appends to the CSV.
static void bench_shape(Shape s, FILE *csv) {
  static Competitor list[MOST_COMPETITORS];
  alarm(20); /* a kernel that hangs ends the program */
  gemm_fill_normal<<<1024, 256>>>(a, (size_t)s.m * s.k, 1);
  gemm_fill_normal<<<1024, 256>>>(b, (size_t)s.n * s.k, 2);
  memset(list, 0, sizeof(list[0]));
  snprintf(list[0].name, sizeof(list[0].name), "cublas");
  list[0].kind = BY_CUBLAS;
  float one = 1, zero = 0;
  CUBLAS_CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, s.n, s.m, s.k, &one, b, CUDA_R_16BF,
                            s.k, a, CUDA_R_16BF, s.k, &zero, reference, CUDA_R_32F, s.n,
                            CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  estimate(&list[0], s);
  int libraries = 1 + add_cublaslt(list + 1, s);
  int count = libraries + add_ours(list + libraries, s), order[MOST_COMPETITORS], entrants = 0;
  float best = list[0].estimate;
  for (int i = libraries; i < count; i++) {
    check_competitor(&list[i], s);
    estimate(&list[i], s);
    if (list[i].estimate < best) best = list[i].estimate;
  }
  for (int i = 0; i < count; i++) {
    // Of all configurations, those far behind are not measured again.
    if (!all_configurations || list[i].estimate < 1.25f * best) order[entrants++] = i;
  }
  for (int round = 0; round < rounds; round++) {
    for (int j = entrants - 1; j > 0; j--) {
      int other = rand() % (j + 1), held = order[j];
      order[j] = order[other];
      order[other] = held;
    }
    for (int j = 0; j < entrants; j++) {
      list[order[j]].microseconds[round] = measure(&list[order[j]], s);
    }
  }
  for (int i = 0; i < count; i++) {
    float median = list[i].estimate;
    if (list[i].microseconds[0] > 0) {
      qsort(list[i].microseconds, (size_t)rounds, sizeof(float), gemm_compare_floats);
      median = list[i].microseconds[rounds / 2];
    }
    fprintf(csv, "%d,%d,%d,%s,%.3f\n", s.m, s.n, s.k, list[i].name, median);
    pipelined_gemm_end(&list[i].gemm);
  }
  fflush(csv);
}

int main(int argc, char **argv) {
  const char *shapes_path = NULL, *csv_path = NULL;
  int kept = 1;
  for (int i = 1; i < argc; i++) {  // the files; what is left are numbers
    if (strcmp(argv[i], "--shapes") == 0 && i + 1 < argc) {
      shapes_path = argv[++i];
    } else if (strcmp(argv[i], "--csv") == 0 && i + 1 < argc) {
      csv_path = argv[++i];
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  Option options[] = {
      {"--all", "1: every configuration", &all_configurations, 0, 1},
      {"--rest", "milliseconds before each measurement", &rest_milliseconds, 0, 1000},
      {"--milliseconds", "measured", &measured_milliseconds, 1, 10000},
      {"--rounds", "the median of so many", &rounds, 1, MOST_ROUNDS}};
  program_begin("bench_shapes", argc, argv, options, 4);
  if (shapes_path == NULL || csv_path == NULL) {
    fprintf(stderr, "bench_shapes: say --shapes FILE and --csv FILE\n");
    return EXIT_USAGE;
  }
  FILE *shapes = fopen(shapes_path, "r"), *csv = fopen(csv_path, "w");
  if (shapes == NULL) program_fail("cannot read %s", shapes_path);
  if (csv == NULL) program_fail("cannot write %s", csv_path);

  size_t most = (size_t)16384 * 28672 * 2;
  CUDA_CHECK(cudaMalloc(&a, most));
  CUDA_CHECK(cudaMalloc(&b, most));
  CUDA_CHECK(cudaMalloc(&c, most));
  CUDA_CHECK(cudaMalloc(&reference, most * 2));
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
  fprintf(csv, "m,n,k,program,microseconds\n");
  Shape s;
  int count = 0;
  while (fscanf(shapes, "%d %d %d", &s.m, &s.n, &s.k) == 3) {
    bench_shape(s, csv);
    count++;
  }
  fclose(csv);
  return program_end("%d shapes measured; all of ours agree with cuBLAS", count);
}
