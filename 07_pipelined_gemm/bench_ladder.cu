// bench_ladder: the whole ladder, pipelined_gemm, cuBLAS and cuBLASLt, in one interleaved run.
//
// link: -lcublas -lcublasLt
//
// For each shape, every competitor is measured in seven rounds, in a new random order each round,
// so that no one always follows a hot or a cool neighbour. From 4096^3 up the chip reaches its
// power limit within milliseconds and slows its clock for all that follows: so before each
// measurement the chip rests for 40 ms, two launches warm up, and what counts is the next 15 ms or
// so. The products that fit in L2 are measured cold, one launch at a time, with 256 MiB overwritten
// before each. Data: normal numbers (zeros run faster, as fewer wires toggle). cuBLASLt: the
// fastest of the algorithms that its heuristics name, each timed first, the fastest four once more
// in the way just described.
//
//   bench_ladder --bench         writes build/07_pipelined_gemm/{gemm,ladder}.csv
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <unistd.h>

#include "accumulator.cuh"
#include "gemm_program.cuh"
#include "product/pipelined_gemm.cuh"

// Each rung is a whole program; its functions live in a namespace of its own here.
#define main rung_main
namespace serial {
#include "serial.cu"
}
namespace ring {
#include "ring.cu"
}
namespace producer_consumer {
#include "producer_consumer.cu"
}
namespace two_consumers {
#include "two_consumers.cu"
}
namespace multicast {
#include "multicast.cu"
}
namespace persistent {
#include "persistent.cu"
}
namespace overlapped_epilogue {
#include "overlapped_epilogue.cu"
}
#undef main

#define CUBLAS_CHECK(call)                                          \
  do {                                                              \
    int status = (int)(call);                                       \
    if (status != 0) program_fail("%s answered %d", #call, status); \
  } while (0)

enum { ROUNDS = 7, MOST_COMPETITORS = 32, MOST_ALGORITHMS = 24, COLD_LAUNCHES = 9 };
enum { FLUSH_BYTES = 256 << 20, WORKSPACE_BYTES = 64 << 20, REST_MICROSECONDS = 40000 };

typedef enum { BY_CUBLAS, BY_CUBLASLT, BY_RUNG, BY_PIPELINED_GEMM } Kind;

typedef struct {
  const char *name;
  Kind kind;
  GemmPrepare *prepare;
  GemmLaunch *launch;
  GemmPlan plan;
  PipelinedGemm gemm;
  cublasLtMatmulAlgo_t algorithm;
  float milliseconds[ROUNDS];
} Competitor;

typedef struct {
  int m, n, k;
  bool cold;
} Shape;

static const Shape shapes[] = {
    {512, 512, 512, true},        {1024, 1024, 1024, true},  {256, 4096, 4096, true},
    {128, 8192, 8192, true},      {2048, 2048, 2048, true},  {2048, 2048, 8192, false},
    {4096, 4096, 4096, false},    {6144, 6144, 6144, false}, {8192, 8192, 8192, false},
    {16384, 16384, 16384, false}, {8192, 1024, 4096, false}, {4096, 14336, 4096, false},
    {4096, 4096, 14336, false},   {16384, 512, 7168, false}};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };
static cublasHandle_t blas;
static cublasLtHandle_t lt;
static cublasLtMatmulDesc_t operation;
static cublasLtMatrixLayout_t layout_a, layout_b, layout_c;
static void *workspace;
static uint8_t *flushed;
static uint16_t *a, *b, *c;
static cudaEvent_t begin, end;

static void launch(Competitor *competitor, Shape s) {
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
                                  c, layout_c, &competitor->algorithm, workspace, WORKSPACE_BYTES,
                                  0));
      break;
    case BY_RUNG:
      competitor->launch(&competitor->plan);
      break;
    case BY_PIPELINED_GEMM:
      CUDA_CHECK(pipelined_gemm_launch(&competitor->gemm, 0));
      break;
  }
}

static float timed(Competitor *competitor, Shape s, int launches) {
  float milliseconds;
  CUDA_CHECK(cudaEventRecord(begin));
  for (int i = 0; i < launches; i++) launch(competitor, s);
  CUDA_CHECK(cudaEventRecord(end));
  CUDA_CHECK(cudaEventSynchronize(end));
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  return milliseconds / (float)launches;
}

static float measure(Competitor *competitor, Shape s) {
  if (s.cold) {
    float each[COLD_LAUNCHES];
    for (int i = 0; i < COLD_LAUNCHES; i++) {
      CUDA_CHECK(cudaMemsetAsync(flushed, i, FLUSH_BYTES));
      each[i] = timed(competitor, s, 1);
    }
    qsort(each, COLD_LAUNCHES, sizeof(float), gemm_compare_floats);
    return each[COLD_LAUNCHES / 2];
  }
  int launches = (int)(15e-3 / (2.0 * s.m * s.n * s.k / 750e12));
  if (launches < 1) launches = 1;
  usleep(REST_MICROSECONDS);
  for (int i = 0; i < 2; i++) launch(competitor, s);
  return timed(competitor, s, launches);
}

// The fastest of the algorithms that the heuristics name; false when they name none.
static bool best_algorithm(Competitor *competitor, Shape s) {
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_b, CUDA_R_16BF, s.k, s.n, s.k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_a, CUDA_R_16BF, s.k, s.m, s.k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_c, CUDA_R_16BF, s.n, s.m, s.n));
  cublasLtMatmulPreference_t preference;
  size_t bytes = WORKSPACE_BYTES;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)));
  cublasLtMatmulHeuristicResult_t found[MOST_ALGORITHMS];
  int count = 0;
  cublasLtMatmulAlgoGetHeuristic(lt, operation, layout_b, layout_a, layout_c, layout_c, preference,
                                 MOST_ALGORITHMS, found, &count);
  // All of them quickly; then the fastest few again, as carefully as everybody is measured.
  enum { FINALISTS = 4 };
  float times[MOST_ALGORITHMS][3];
  int launches = 2.0 * s.m * s.n * s.k > 1e12 ? 2 : 5;
  for (int final = 0; final < 2; final++) {
    if (final && count > FINALISTS) count = FINALISTS;
    for (int i = 0; i < count; i++) {
      Competitor candidate = *competitor;
      candidate.algorithm = found[i].algo;
      for (int j = 0; j < 3; j++) {
        if (s.cold || final) {
          times[i][j] = measure(&candidate, s);
        } else {
          launch(&candidate, s);
          times[i][j] = timed(&candidate, s, launches);
        }
      }
      qsort(times[i], 3, sizeof(float), gemm_compare_floats);
      // Into its place among those before it, the fastest first.
      for (int j = i; j > 0 && times[j][1] < times[j - 1][1]; j--) {
        cublasLtMatmulHeuristicResult_t held = found[j];
        float held_time = times[j][1];
        found[j] = found[j - 1], times[j][1] = times[j - 1][1];
        found[j - 1] = held, times[j - 1][1] = held_time;
      }
    }
  }
  competitor->algorithm = found[0].algo;
  return count > 0;
}

static void set_rung(Competitor *competitor, const char *name, GemmPrepare *prepare,
                     GemmLaunch *rung_launch, Shape s) {
  competitor->name = name;
  competitor->kind = BY_RUNG;
  competitor->prepare = prepare;
  competitor->launch = rung_launch;
  competitor->plan.problem.m = s.m;
  competitor->plan.problem.n = s.n;
  competitor->plan.problem.k = s.k;
  competitor->plan.problem.a = a;
  competitor->plan.problem.b = b;
  competitor->plan.problem.c = c;
  prepare(&competitor->plan);
}

static void set_pipelined(Competitor *competitor, Shape s) {
  GemmProblem problem = gemm_problem(s.m, s.n, s.k, a, b, c);
  GemmStatus status = pipelined_gemm_plan<GEMM_BF16>(&competitor->gemm, &problem);
  char text[256];
  pipelined_gemm_explain(status, text, sizeof(text));
  if (status.error != GEMM_OK) program_fail("%d x %d x %d: %s", s.m, s.n, s.k, text);
  competitor->kind = BY_PIPELINED_GEMM;
  competitor->name = "pipelined_gemm";
}

static int set_competitors(Competitor *list, Shape s) {
  int count = 0;
  memset(list, 0, sizeof(Competitor) * MOST_COMPETITORS);
  list[count].name = "cuBLAS";
  list[count++].kind = BY_CUBLAS;
  list[count].name = "cuBLASLt best";
  list[count].kind = BY_CUBLASLT;
  if (best_algorithm(&list[count], s)) count++;
  set_rung(&list[count++], "serial", serial::gemm_prepare, serial::gemm_launch, s);
  set_rung(&list[count++], "ring", ring::gemm_prepare, ring::gemm_launch, s);
  set_rung(&list[count++], "producer_consumer", producer_consumer::gemm_prepare,
           producer_consumer::gemm_launch, s);
  set_rung(&list[count++], "two_consumers", two_consumers::gemm_prepare, two_consumers::gemm_launch,
           s);
  set_rung(&list[count++], "multicast", multicast::gemm_prepare, multicast::gemm_launch, s);
  set_rung(&list[count++], "persistent", persistent::gemm_prepare, persistent::gemm_launch, s);
  set_rung(&list[count++], "overlapped_epilogue", overlapped_epilogue::gemm_prepare,
           overlapped_epilogue::gemm_launch, s);
  set_pipelined(&list[count++], s);
  return count;
}

// All must give about what cuBLAS gives: a fast wrong answer is no answer.
static __global__ void count_different(const uint16_t *x, const uint16_t *y, size_t count,
                                       float allowed, unsigned long long *different) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride) {
    float p = __uint_as_float((uint32_t)x[i] << 16), q = __uint_as_float((uint32_t)y[i] << 16);
    if (!(fabsf(p - q) <= fabsf(q) / 100 + allowed)) atomicAdd(different, 1ull);
  }
}

static void check_all(Competitor *list, int count, Shape s, uint16_t *reference,
                      unsigned long long *different) {
  size_t elements = (size_t)s.m * s.n;
  launch(&list[0], s);
  CUDA_CHECK(cudaMemcpy(reference, c, elements * 2, cudaMemcpyDeviceToDevice));
  for (int i = 1; i < count; i++) {
    unsigned long long found;
    CUDA_CHECK(cudaMemset(c, 0xFF, elements * 2));
    CUDA_CHECK(cudaMemset(different, 0, sizeof(found)));
    launch(&list[i], s);
    count_different<<<1024, 256>>>(c, reference, elements, 0.002f * sqrtf((float)s.k), different);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(&found, different, sizeof(found), cudaMemcpyDeviceToHost));
    check_that(found == 0, "%s at %d x %d x %d: %llu elements differ from cuBLAS's", list[i].name,
               s.m, s.n, s.k, found);
  }
}

static double teraflops(Shape s, float milliseconds) {
  return 2.0 * s.m * s.n * s.k / milliseconds * 1e-9;
}

static FILE *open_csv(const char *folder, const char *name, const char *header) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s.csv", folder, name);
  FILE *file = fopen(path, "w");
  if (file == NULL) program_fail("cannot write %s", path);
  fprintf(file, "%s\n", header);
  return file;
}

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "measure: it does nothing else", &bench, 0, 0}};
  program_begin("bench_ladder", argc, argv, options, 1);
  if (!bench) {
    fprintf(stderr, "bench_ladder: say --bench; it takes minutes of a GPU\n");
    return EXIT_USAGE;
  }
  const char *folder = "build/07_pipelined_gemm";
  FILE *all = open_csv(folder, "gemm",
                       "shape,L2,program,TFLOP/s,minimum,maximum,microseconds,of the best library");
  FILE *ladder = open_csv(folder, "ladder", "rung,TFLOP/s,minimum,maximum");

  size_t most = (size_t)16384 * 16384 * 2;
  uint16_t *reference;
  unsigned long long *different;
  CUDA_CHECK(cudaMalloc(&a, most));
  CUDA_CHECK(cudaMalloc(&b, most));
  CUDA_CHECK(cudaMalloc(&c, most));
  CUDA_CHECK(cudaMalloc(&reference, most));
  CUDA_CHECK(cudaMalloc(&flushed, FLUSH_BYTES));
  CUDA_CHECK(cudaMalloc(&workspace, WORKSPACE_BYTES));
  CUDA_CHECK(cudaMalloc(&different, sizeof(*different)));
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  CUBLAS_CHECK(cublasCreate(&blas));
  CUBLAS_CHECK(cublasSetWorkspace(blas, workspace, WORKSPACE_BYTES));
  CUBLAS_CHECK(cublasLtCreate(&lt));
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t transposed = CUBLAS_OP_T;
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                              sizeof(transposed)));

  static Competitor list[MOST_COMPETITORS];
  double log_ratio = 0;
  int large = 0;
  for (int i = 0; i < SHAPES; i++) {
    Shape s = shapes[i];
    gemm_fill_normal<<<1024, 256>>>(a, (size_t)s.m * s.k, 1);
    gemm_fill_normal<<<1024, 256>>>(b, (size_t)s.n * s.k, 2);
    int count = set_competitors(list, s);
    check_all(list, count, s, reference, different);
    int order[MOST_COMPETITORS];
    for (int j = 0; j < count; j++) order[j] = j;
    for (int round = 0; round < ROUNDS; round++) {
      for (int j = count - 1; j > 0; j--) {
        int other = rand() % (j + 1), held = order[j];
        order[j] = order[other];
        order[other] = held;
      }
      for (int j = 0; j < count; j++) {
        list[order[j]].milliseconds[round] = measure(&list[order[j]], s);
      }
    }
    float library = 0;
    printf("%d x %d x %d%s\n", s.m, s.n, s.k, s.cold ? ", cold L2" : "");
    for (int j = 0; j < count; j++) {
      qsort(list[j].milliseconds, ROUNDS, sizeof(float), gemm_compare_floats);
      float median = list[j].milliseconds[ROUNDS / 2];
      if (list[j].kind <= BY_CUBLASLT && (library == 0 || median < library)) library = median;
    }
    for (int j = 0; j < count; j++) {
      float median = list[j].milliseconds[ROUNDS / 2];
      double low = teraflops(s, list[j].milliseconds[ROUNDS - 1]);
      double high = teraflops(s, list[j].milliseconds[0]);
      printf("  %-22s %7.1f TFLOP/s [%.1f to %.1f]  %9.1f us  ratio %.3f\n", list[j].name,
             teraflops(s, median), low, high, median * 1e3, library / median);
      fprintf(all, "%d x %d x %d,%s,%s,%.1f,%.1f,%.1f,%.2f,%.3f\n", s.m, s.n, s.k,
              s.cold ? "cold" : "warm", list[j].name, teraflops(s, median), low, high, median * 1e3,
              library / median);
      if (s.m == 8192 && s.n == 8192) {
        fprintf(ladder, "%s,%.1f,%.1f,%.1f\n", list[j].name, teraflops(s, median), low, high);
      }
      if (list[j].kind == BY_PIPELINED_GEMM && (long)s.m * s.n >= 2048L * 2048) {
        log_ratio += log(library / median);
        large++;
      }
    }
    for (int j = 0; j < count; j++) CUDA_CHECK(pipelined_gemm_end(&list[j].gemm));
    fflush(stdout);
  }
  printf("geometric mean of the ratios from 2048 x 2048 up: %.4f over %d shapes\n",
         exp(log_ratio / large), large);
  fclose(all);
  fclose(ladder);
  return program_end("measured; every competitor agrees with cuBLAS");
}
