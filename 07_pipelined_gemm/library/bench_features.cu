// bench_features: what epilogues, layouts and types cost at 4096 x 4096 x 4096 (e4m3 also at 8192 x 8192 x 8192),
// compared with cuBLASLt.
//
// link: -lcublas -lcublasLt
//
// Each line is the median of seven rounds. A round measures the library and cuBLASLt's best algorithm
// in random order: 20 ms of rest, then 30 ms of launches. Of the configurations, four with large tiles take
// part, and the fastest counts: a program with all of them, for all types and layouts, would take minutes to compile.
#include <cuda_fp8.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_libraries.cuh"
#include "gemm_measured.cuh"

enum { ROUNDS = 7, REST = 20, MEASURED = 30, SIZE = 4096, LARGE = 8192 };

typedef struct {
  const char *name;
  GemmType type;
  GemmMajor major_a, major_b;
  GemmType c_type;
  float beta;
  bool bias;
  GemmActivation activation;
  cublasLtEpilogue_t epilogue;
  bool peer;       // cuBLASLt supports the same
  int size;        // 0: SIZE
  bool fast_sums;  // cuBLASLt adds e4m3 products as the tensor cores do, and as we do
} Feature;

static const Feature features[] = {
#define K GEMM_K_MAJOR
#define MN GEMM_MN_MAJOR
#define BF GEMM_BF16
#define E4M3 GEMM_E4M3
#define PROMOTED GEMM_E4M3_PROMOTED
#define PLAIN GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT
    {"plain", BF, K, K, BF, 0, false, PLAIN, true},
    {"beta", BF, K, K, BF, 1, false, PLAIN, true},
    {"bias", BF, K, K, BF, 0, true, GEMM_IDENTITY, CUBLASLT_EPILOGUE_BIAS, true},
    {"bias and ReLU", BF, K, K, BF, 0, true, GEMM_RELU, CUBLASLT_EPILOGUE_RELU_BIAS, true},
    {"bias and GELU", BF, K, K, BF, 0, true, GEMM_GELU, CUBLASLT_EPILOGUE_GELU_BIAS, true},
    {"bias and SiLU", BF, K, K, BF, 0, true, GEMM_SILU, CUBLASLT_EPILOGUE_DEFAULT, false},
    {"C in fp32", BF, K, K, GEMM_FP32, 0, false, PLAIN, true},
    {"fp16", GEMM_FP16, K, K, GEMM_FP16, 0, false, PLAIN, true},
    {"A MN-major", BF, MN, K, BF, 0, false, PLAIN, true},
    {"B MN-major", BF, K, MN, BF, 0, false, PLAIN, true},
    {"both MN-major", BF, MN, MN, BF, 0, false, PLAIN, true},
    {"e4m3", E4M3, K, K, BF, 0, false, PLAIN, true, SIZE, true},
    {"e4m3 (cuBLASLt with fp32 sums)", E4M3, K, K, BF, 0, false, PLAIN, true, SIZE, false},
    {"e4m3 8192^3", E4M3, K, K, BF, 0, false, PLAIN, true, LARGE, true},
    {"e4m3 8192^3 (cuBLASLt with fp32 sums)", E4M3, K, K, BF, 0, false, PLAIN, true, LARGE, false},
    {"e4m3 promoted", PROMOTED, K, K, BF, 0, false, PLAIN, true, SIZE, false},
    {"e4m3 promoted 8192^3", PROMOTED, K, K, BF, 0, false, PLAIN, true, LARGE, false}};

static void *bias;
static uint8_t *a8, *b8;
static float *scale_a, *scale_b;  // of e4m3

// One algorithm of cuBLASLt for a feature.
typedef struct {
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulHeuristicResult_t found[MOST_ALGORITHMS];
  int chosen;
  float beta;
  const void *from_a, *from_b;
} Library;

static cudaDataType_t data_type(GemmType type) {
  return type == GEMM_FP32    ? CUDA_R_32F
         : gemm_is_e4m3(type) ? CUDA_R_8F_E4M3
         : type == GEMM_FP16  ? CUDA_R_16F
                              : CUDA_R_16BF;
}

// `reference` has space for a C of any type.
static void library_launch(const void *library) {
  const Library *l = (const Library *)library;
  float one = 1;
  CUBLAS_CHECK(cublasLtMatmul(lt, l->operation, &one, l->from_b, l->b, l->from_a, l->a, &l->beta,
                              reference, l->c, reference, l->c, &l->found[l->chosen].algo,
                              workspace, workspace_bytes, 0));
}

static void launch_ours(const void *gemm) {
  CUDA_CHECK(pipelined_gemm_launch((const PipelinedGemm *)gemm, 0));
}

static Competitor competitor_of(void (*launch_library)(const void *), const void *what, Shape s) {
  Competitor competitor = {};
  competitor.kind = BY_LIBRARY, competitor.launch_library = launch_library, competitor.gemm = what;
  estimate(&competitor, s);
  return competitor;
}

// The library's matrices are column-major: it computes transpose(C) = B * transpose(A).
static int library_plan(Library *l, const Feature *f, int size) {
  memset(l, 0, sizeof(*l));
  l->beta = f->beta;
  bool e4m3 = gemm_is_e4m3(f->type);
  l->from_a = e4m3 ? a8 : (void *)a, l->from_b = e4m3 ? b8 : (void *)b;
  cublasOperation_t of_b = f->major_b == GEMM_K_MAJOR ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t of_a = f->major_a == GEMM_K_MAJOR ? CUBLAS_OP_N : CUBLAS_OP_T;
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&l->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(l->operation, CUBLASLT_MATMUL_DESC_TRANSA, &of_b,
                                              sizeof(of_b)));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(l->operation, CUBLASLT_MATMUL_DESC_TRANSB, &of_a,
                                              sizeof(of_a)));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(l->operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                              &f->epilogue, sizeof(f->epilogue)));
  if (f->bias) {
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(l->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                &bias, sizeof(bias)));
  }
  if (e4m3) {
    int8_t fast = f->fast_sums;
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(l->operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                                &scale_b, sizeof(scale_b)));
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(l->operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                                                &scale_a, sizeof(scale_a)));
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(l->operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                                &fast, sizeof(fast)));
  }
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&l->b, data_type(f->type), size, size, size));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&l->a, data_type(f->type), size, size, size));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&l->c, data_type(f->c_type), size, size, size));
  return find_algorithms(l->operation, l->b, l->a, l->c, l->found);
}

// Plans with the fastest of some configurations.
template <int TYPE, int MAJOR_A, int MAJOR_B>
static void plan(PipelinedGemm *best, const Feature *f, int size) {
  static const GemmConfiguration list[] = {
      gemm_carry_configuration<TYPE, MAJOR_A, MAJOR_B, 256, 16, 1, false>("carry_128x256_2x1"),
      gemm_single_configuration<GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, 128, 192, 2, 1, 1, false>>(
          "single_128x192_2x1"),
      gemm_single_configuration<GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, 128, 256, 1, 2, 1, false>>(
          "single_128x256_1x2"),
      gemm_single_configuration<GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, 128, 128, 1, 2, 1, false>>(
          "single_128x128_1x2")};
  bool e4m3 = gemm_is_e4m3(TYPE);
  GemmProblem problem =
      gemm_problem(size, size, size, e4m3 ? a8 : (void *)a, e4m3 ? b8 : (void *)b, reference);
  if (e4m3) problem.scale_a = scale_a, problem.scale_b = scale_b;
  problem.c_type = f->c_type;
  problem.beta = f->beta;
  problem.bias = f->bias ? bias : NULL;
  problem.activation = f->activation;
  GemmCandidates candidates;
  GemmShape shape;
  CUDA_CHECK(gemm_describe_shape(&problem, TYPE, &shape));
  gemm_candidates({list, sizeof(list) / sizeof(list[0])}, &shape, &candidates);
  int count = candidates.count < GEMM_MEASURED ? candidates.count : GEMM_MEASURED;
  GemmStatus status = gemm_plan_fastest(best, &problem, TYPE, (GemmMajor)MAJOR_A,
                                        (GemmMajor)MAJOR_B, &candidates, count, 0);
  if (status.error != GEMM_OK) program_fail("%s: error %d", f->name, (int)status.error);
}

static void plan_feature(PipelinedGemm *gemm, const Feature *f, int size) {
  if (f->type == GEMM_E4M3) {
    plan<GEMM_E4M3, K, K>(gemm, f, size);
  } else if (f->type == GEMM_E4M3_PROMOTED) {
    plan<GEMM_E4M3_PROMOTED, K, K>(gemm, f, size);
  } else if (f->type == GEMM_FP16) {
    plan<GEMM_FP16, K, K>(gemm, f, size);
  } else if (f->major_a == GEMM_K_MAJOR) {
    f->major_b == GEMM_K_MAJOR ? plan<GEMM_BF16, K, K>(gemm, f, size)
                               : plan<GEMM_BF16, K, MN>(gemm, f, size);
  } else {
    f->major_b == GEMM_K_MAJOR ? plan<GEMM_BF16, MN, K>(gemm, f, size)
                               : plan<GEMM_BF16, MN, MN>(gemm, f, size);
  }
}

static void bench_feature(const Feature *f) {
  PipelinedGemm gemm;
  Library library;
  int size = f->size > 0 ? f->size : SIZE, order[2] = {0, 1}, best = 0;
  Shape s = {size, size, size};
  plan_feature(&gemm, f, size);
  Competitor list[2] = {competitor_of(launch_ours, &gemm, s)};
  int algorithms = f->peer ? library_plan(&library, f, size) : 0;
  float least = 0;
  for (library.chosen = 0; library.chosen < algorithms; library.chosen++) {
    list[1] = competitor_of(library_launch, &library, s);
    float time = measure(&list[1], s, REST, MEASURED / 3);
    if (least == 0 || time < least) least = time, best = library.chosen;
  }
  library.chosen = best;
  compete(list, order, algorithms > 0 ? 2 : 1, s, ROUNDS, REST, MEASURED);
  float mine = list[0].microseconds[ROUNDS / 2], peer = list[1].microseconds[ROUNDS / 2];
  const char *name = pipelined_gemm_name(&gemm);
  if (algorithms > 0) {
    printf("%s,%s,%.1f,%.1f,%.3f\n", f->name, name, mine, peer, peer / mine);
  } else {
    printf("%s,%s,%.1f,,\n", f->name, name, mine);
  }
  CUDA_CHECK(pipelined_gemm_end(&gemm));
}

static __global__ void to_e4m3(uint8_t *to, const uint16_t *from, size_t count) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride) {
    to[i] =
        __nv_cvt_float_to_fp8(__uint_as_float((uint32_t)from[i] << 16), __NV_SATFINITE, __NV_E4M3);
  }
}

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "measure: it does nothing else", &bench, 0, 0}};
  program_begin("bench_features", argc, argv, options, 1);
  if (!bench) {
    fprintf(stderr, "bench_features: say --bench; it takes half a minute of a GPU\n");
    return EXIT_USAGE;
  }
  size_t count = (size_t)LARGE * LARGE;
  begin_competition(count);
  CUDA_CHECK(cudaMalloc(&bias, LARGE * 4));
  CUDA_CHECK(cudaMemset(bias, 0, LARGE * 4));
  CUDA_CHECK(cudaMemset(reference, 0, count * sizeof(*reference)));
  gemm_fill_normal<<<1024, 256>>>(a, count, 1);
  gemm_fill_normal<<<1024, 256>>>(b, count, 2);
  const float scales[] = {0.5f, 2};
  CUDA_CHECK(cudaMalloc(&a8, count));
  CUDA_CHECK(cudaMalloc(&b8, count));
  CUDA_CHECK(
      cudaMalloc(&scale_a, sizeof(*scale_a)));  // cuBLASLt refuses scales that are not aligned
  CUDA_CHECK(cudaMalloc(&scale_b, sizeof(*scale_b)));
  CUDA_CHECK(cudaMemcpy(scale_a, &scales[0], sizeof(*scale_a), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(scale_b, &scales[1], sizeof(*scale_b), cudaMemcpyHostToDevice));
  to_e4m3<<<1024, 256>>>(a8, a, count);
  to_e4m3<<<1024, 256>>>(b8, b, count);
  printf("feature,configuration,microseconds,cuBLASLt,ratio\n");
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) bench_feature(&features[i]);
  return program_end("features measured");
}
