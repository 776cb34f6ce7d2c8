// bench_features: what epilogues, layouts and types cost at 4096 x 4096 x 4096 (e4m3 also at 8192 x 8192 x 8192),
// compared with cuBLASLt, and the energy of a product at 8192 x 8192 x 8192.
//
// link: -lcublas -lcublasLt -ldl
//
// Each line is the median of seven rounds. A round measures pipelined_gemm and cuBLASLt's best algorithm
// in alternating order: 20 ms of rest, then 30 ms of launches. Energy is read from NVML's counter over two
// seconds. The counter is in millijoules and is updated about every 100 ms, so the error is up to 5 %.
#include <cublasLt.h>
#include <cuda_fp8.h>
#include <dlfcn.h>
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

enum { ROUNDS = 7, MOST_ALGORITHMS = 8, SIZE = 4096, ENERGY_SIZE = 8192 };
static const size_t workspace_bytes = 64 << 20;

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
#define PLAIN GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT
    {"plain", BF, K, K, BF, 0, false, GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT, true},
    {"beta", BF, K, K, BF, 1, false, GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT, true},
    {"bias", BF, K, K, BF, 0, true, GEMM_IDENTITY, CUBLASLT_EPILOGUE_BIAS, true},
    {"bias and ReLU", BF, K, K, BF, 0, true, GEMM_RELU, CUBLASLT_EPILOGUE_RELU_BIAS, true},
    {"bias and GELU", BF, K, K, BF, 0, true, GEMM_GELU, CUBLASLT_EPILOGUE_GELU_BIAS, true},
    {"bias and SiLU", BF, K, K, BF, 0, true, GEMM_SILU, CUBLASLT_EPILOGUE_DEFAULT, false},
    {"C in fp32", BF, K, K, GEMM_FP32, 0, false, GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT, true},
    {"fp16", GEMM_FP16, K, K, GEMM_FP16, 0, false, GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT, true},
    {"A MN-major", BF, MN, K, BF, 0, false, GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT, true},
    {"B MN-major", BF, K, MN, BF, 0, false, GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT, true},
    {"both MN-major", BF, MN, MN, BF, 0, false, GEMM_IDENTITY, CUBLASLT_EPILOGUE_DEFAULT, true},
    {"e4m3", E4M3, K, K, BF, 0, false, PLAIN, true, SIZE, true},
    {"e4m3 (cuBLASLt with fp32 sums)", E4M3, K, K, BF, 0, false, PLAIN, true, SIZE, false},
    {"e4m3 8192^3", E4M3, K, K, BF, 0, false, PLAIN, true, ENERGY_SIZE, true},
    {"e4m3 8192^3 (cuBLASLt with fp32 sums)", E4M3, K, K, BF, 0, false, PLAIN, true, ENERGY_SIZE,
     false}};

static cublasLtHandle_t lt;
static void *workspace, *a, *b, *c, *bias;
static uint8_t *a8, *b8;
static float *scale_a, *scale_b;  // of e4m3
static cudaEvent_t begin, end;

typedef struct {
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulHeuristicResult_t found[MOST_ALGORITHMS];
  int count, best;
  float beta;
  const void *from_a, *from_b;
} Library;

static cudaDataType_t data_type(GemmType type) {
  return type == GEMM_FP32   ? CUDA_R_32F
         : type == GEMM_E4M3 ? CUDA_R_8F_E4M3
         : type == GEMM_FP16 ? CUDA_R_16F
                             : CUDA_R_16BF;
}

static void library_launch(const Library *l, int algorithm) {
  float one = 1;
  CUBLAS_CHECK(cublasLtMatmul(lt, l->operation, &one, l->from_b, l->b, l->from_a, l->a, &l->beta, c,
                              l->c, c, l->c, &l->found[algorithm].algo, workspace, workspace_bytes,
                              0));
}

// The library's matrices are column-major: it computes transpose(C) = B * transpose(A).
static void library_plan(Library *l, const Feature *f, int size) {
  memset(l, 0, sizeof(*l));
  l->beta = f->beta;
  bool e4m3 = f->type == GEMM_E4M3;
  l->from_a = e4m3 ? a8 : a, l->from_b = e4m3 ? b8 : b;
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
  cublasLtMatmulPreference_t preference;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof(workspace_bytes)));
  cublasLtMatmulAlgoGetHeuristic(lt, l->operation, l->b, l->a, l->c, l->c, preference,
                                 MOST_ALGORITHMS, l->found, &l->count);
}

static float timed(const PipelinedGemm *gemm, const Library *l, int algorithm, int launches) {
  float milliseconds;
  CUDA_CHECK(cudaDeviceSynchronize());
  usleep(20000);
  CUDA_CHECK(cudaEventRecord(begin));
  for (int i = 0; i < launches; i++) {
    if (gemm) {
      CUDA_CHECK(pipelined_gemm_launch(gemm, 0));
    } else {
      library_launch(l, algorithm);
    }
  }
  CUDA_CHECK(cudaEventRecord(end));
  CUDA_CHECK(cudaEventSynchronize(end));
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  return milliseconds / (float)launches * 1e3f;
}

// The largest tile that carries. A program with all configurations would take minutes to compile.
template <int TYPE, int MAJOR_A, int MAJOR_B>
static void plan(PipelinedGemm *gemm, const Feature *f, int size) {
  static const GemmConfiguration
      large = gemm_persistent_configuration <
              GemmPersistentTile<TYPE, MAJOR_A, MAJOR_B, 128, 256, 0, 2, 1, 4, 2>,
      true,
      TYPE == GEMM_BF16 && MAJOR_A == GEMM_K_MAJOR &&
          MAJOR_B == GEMM_K_MAJOR > ("carry_128x256_2x1", 9);
  bool e4m3 = gemm_is_e4m3(TYPE);
  GemmProblem problem = gemm_problem(size, size, size, e4m3 ? a8 : a, e4m3 ? b8 : b, c);
  if (e4m3) problem.scale_a = scale_a, problem.scale_b = scale_b;
  problem.c_type = f->c_type;
  problem.beta = f->beta;
  problem.bias = f->bias ? bias : NULL;
  problem.activation = f->activation;
  GemmStatus status = gemm_plan_with(gemm, &problem, (GemmType)TYPE, (GemmMajor)MAJOR_A,
                                     (GemmMajor)MAJOR_B, &large, 0);
  char text[256];
  pipelined_gemm_explain(status, text, sizeof(text));
  if (status.error != GEMM_OK) program_fail("%s: %s", f->name, text);
}

static void plan_feature(PipelinedGemm *gemm, const Feature *f, int size) {
  if (f->type == GEMM_E4M3) {
    plan<GEMM_E4M3, K, K>(gemm, f, size);
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
  float ours[ROUNDS], theirs[ROUNDS];
  int size = f->size > 0 ? f->size : SIZE, launches = size == SIZE ? 150 : 50;
  plan_feature(&gemm, f, size);
  if (f->peer) library_plan(&library, f, size);
  if (!f->peer) library.count = 0;
  float least = 0;
  for (int i = 0; i < library.count; i++) {
    float time = timed(NULL, &library, i, launches / 3);
    if (least == 0 || time < least) least = time, library.best = i;
  }
  for (int round = 0; round < ROUNDS; round++) {
    theirs[round] = 0;
    if (f->peer && round % 2) theirs[round] = timed(NULL, &library, library.best, launches);
    ours[round] = timed(&gemm, NULL, 0, launches);
    if (f->peer && round % 2 == 0) theirs[round] = timed(NULL, &library, library.best, launches);
  }
  qsort(ours, ROUNDS, sizeof(float), gemm_compare_floats);
  qsort(theirs, ROUNDS, sizeof(float), gemm_compare_floats);
  float mine = ours[ROUNDS / 2], peer = theirs[ROUNDS / 2];
  if (f->peer) {
    printf("%s,%.1f,%.1f,%.3f\n", f->name, mine, peer, peer / mine);
  } else {
    printf("%s,%.1f,,\n", f->name, mine);
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

static __global__ void fill_integers(uint16_t *matrix, size_t count) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride) {
    matrix[i] = gemm_bf16((float)((int)(gemm_hash(i) % 9) - 4));
  }
}

typedef int NvmlEnergy(void *device, unsigned long long *millijoules);

static void bench_energy(const char *data, NvmlEnergy *energy, void *device) {
  PipelinedGemm gemm;
  Library library;
  plan_feature(&gemm, &features[0], ENERGY_SIZE);
  library_plan(&library, &features[0], ENERGY_SIZE);
  float least = 0;
  for (int i = 0; i < library.count; i++) {
    float time = timed(NULL, &library, i, 10);
    if (least == 0 || time < least) least = time, library.best = i;
  }
  for (int mine = 0; mine < 2; mine++) {
    int launches = (int)(2e6f / least);
    unsigned long long before = 0, after = 0;
    timed(mine ? &gemm : NULL, &library, library.best, launches / 8);
    energy(device, &before);
    float time = timed(mine ? &gemm : NULL, &library, library.best, launches);
    energy(device, &after);
    double joules = (double)(after - before) * 1e-3 / launches;
    printf("%s,%s,%.2f,%.1f,%.0f\n", data, mine ? "pipelined_gemm" : "cuBLASLt best", joules,
           2.0 * ENERGY_SIZE * ENERGY_SIZE * ENERGY_SIZE / time * 1e-6, joules / time * 1e6);
  }
  CUDA_CHECK(pipelined_gemm_end(&gemm));
}

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "measure: it does nothing else", &bench, 0, 0}};
  program_begin("bench_features", argc, argv, options, 1);
  if (!bench) {
    fprintf(stderr, "bench_features: say --bench; it takes half a minute of a GPU\n");
    return EXIT_USAGE;
  }
  size_t count = (size_t)ENERGY_SIZE * ENERGY_SIZE;
  CUDA_CHECK(cudaMalloc(&a, count * 2));
  CUDA_CHECK(cudaMalloc(&b, count * 2));
  CUDA_CHECK(cudaMalloc(&c, count * 4));
  CUDA_CHECK(cudaMalloc(&bias, ENERGY_SIZE * 4));
  CUDA_CHECK(cudaMalloc(&workspace, workspace_bytes));
  CUDA_CHECK(cudaMemset(bias, 0, ENERGY_SIZE * 4));
  CUDA_CHECK(cudaMemset(c, 0, count * 4));
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  CUBLAS_CHECK(cublasLtCreate(&lt));
  gemm_fill_normal<<<1024, 256>>>((uint16_t *)a, count, 1);
  gemm_fill_normal<<<1024, 256>>>((uint16_t *)b, count, 2);
  const float scales[] = {0.5f, 2};
  CUDA_CHECK(cudaMalloc(&a8, count));
  CUDA_CHECK(cudaMalloc(&b8, count));
  CUDA_CHECK(
      cudaMalloc(&scale_a, sizeof(*scale_a)));  // cuBLASLt refuses scales that are not aligned
  CUDA_CHECK(cudaMalloc(&scale_b, sizeof(*scale_b)));
  CUDA_CHECK(cudaMemcpy(scale_a, &scales[0], sizeof(*scale_a), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(scale_b, &scales[1], sizeof(*scale_b), cudaMemcpyHostToDevice));
  to_e4m3<<<1024, 256>>>(a8, (const uint16_t *)a, count);
  to_e4m3<<<1024, 256>>>(b8, (const uint16_t *)b, count);
  printf("feature,pipelined_gemm us,cuBLASLt us,ratio\n");
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) bench_feature(&features[i]);

  // NVML numbers all GPUs, also those that CUDA_VISIBLE_DEVICES hides.
  char bus[32];
  CUDA_CHECK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
  int (*start)(void) = nvml ? (int (*)(void))dlsym(nvml, "nvmlInit_v2") : NULL;
  int (*handle)(const char *, void **) =
      nvml ? (int (*)(const char *, void **))dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2") : NULL;
  NvmlEnergy *energy =
      nvml ? (NvmlEnergy *)dlsym(nvml, "nvmlDeviceGetTotalEnergyConsumption") : NULL;
  unsigned long long millijoules;
  if (start == NULL || handle == NULL || energy == NULL || start() != 0 ||
      handle(bus, &device) != 0 || energy(device, &millijoules) != 0) {
    printf("no energy counter here\n");
    return program_end("features measured");
  }
  printf("data,program,joules,TFLOP/s,watts\n");
  bench_energy("normal", energy, device);
  fill_integers<<<1024, 256>>>((uint16_t *)a, count);
  fill_integers<<<1024, 256>>>((uint16_t *)b, count);
  bench_energy("integers", energy, device);
  CUDA_CHECK(cudaMemset(a, 0, count * 2));
  CUDA_CHECK(cudaMemset(b, 0, count * 2));
  bench_energy("zeros", energy, device);
  return program_end("features and energy measured");
}
