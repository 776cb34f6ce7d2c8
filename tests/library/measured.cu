// measured: plans chosen by measuring. For products of all kinds they give the right C, and C is as it was until
// they are launched. The fastest of the candidates is kept, also when the clock falls; in a tie, the likeliest;
// and what is faster for a while only is not kept. Whichever call fails, an error comes back and nothing stays allocated.
//
// The runtime's calls go through functions here that count, fail on demand, and have a clock of their own.
#include "../../07_pipelined_gemm/gemm_program.cuh"

// ---- The runtime, as the header sees it ----

enum { MOST_KNOWN = 128 };

typedef struct {
  const void *kernel;
  unsigned blocks;
} Launched;

static long calls, failing;  // the number of the call that fails; 0: none
static long allocated, events;
static bool clearing;  // by cudaMemset in the default stream, for which other streams do not wait
static Launched known[MOST_KNOWN], last;  // in the order of their first launch
static int known_count;
// NULL: the real clock. Else nothing runs, and each known launch takes as long as this says.
static const float *clock_times;
static float clock_falls = 1;  // times get longer by this factor with each measurement
static float clock_factor;
// The third one's times are longer by this factor if more than so many launches follow each other.
static float third_slows = 1;
static int third_tires;
static int in_a_row;
// After so many measurements of the third one, its times are a third longer.
static int third_holds, third_measured;
// Before so many launches, its times are longer by a fifth.
static int third_wakes, launched;

static bool fails(void) { return ++calls == failing; }

static cudaError_t tried_malloc(void **pointer, size_t bytes) {
  cudaError_t error = fails() ? cudaErrorMemoryAllocation : cudaMalloc(pointer, bytes);
  if (error == cudaSuccess) allocated++;
  return error;
}

static cudaError_t tried_free(void *pointer) {
  if (pointer != NULL) allocated--;
  return cudaFree(pointer);
}

static cudaError_t tried_create(cudaEvent_t *event) {
  cudaError_t error = fails() ? cudaErrorMemoryAllocation : cudaEventCreate(event);
  if (error == cudaSuccess) events++;
  return error;
}

static cudaError_t tried_launch(const cudaLaunchConfig_t *launch, const void *kernel,
                                void **arguments) {
  last.kernel = kernel, last.blocks = launch->gridDim.x;
  int at = 0;
  while (at < known_count && memcmp(&known[at], &last, sizeof(last)) != 0) at++;
  if (at == known_count && known_count < MOST_KNOWN) known[known_count++] = last;
  in_a_row++, launched++;
  if (fails()) return cudaErrorLaunchFailure;
  check_that(!clearing, "a launch follows a cudaMemset that has not ended");
  return clock_times == NULL ? cudaLaunchKernelExC(launch, kernel, arguments) : cudaSuccess;
}

static cudaError_t tried_elapsed(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  bool long_row = in_a_row > third_tires;
  in_a_row = 0;
  if (fails()) return cudaErrorUnknown;
  if (clock_times == NULL) return cudaEventElapsedTime(milliseconds, begin, end);
  int at = 0;
  while (at < known_count && memcmp(&known[at], &last, sizeof(last)) != 0) at++;
  clock_factor *= clock_falls;
  *milliseconds = clock_times[at] * clock_factor * (at == 2 && long_row ? third_slows : 1);
  if (at == 2 && third_holds > 0 && ++third_measured > third_holds) *milliseconds *= 4.0f / 3;
  if (at == 2 && launched < third_wakes) *milliseconds *= 1.2f;
  return cudaSuccess;
}

#define cudaMalloc(pointer, bytes) tried_malloc((void **)(pointer), bytes)
#define cudaFree(pointer) tried_free(pointer)
#define cudaEventCreate(event) tried_create(event)
#define cudaEventDestroy(event) (events--, cudaEventDestroy(event))
#define cudaLaunchKernelExC(launch, kernel, arguments) tried_launch(launch, kernel, arguments)
#define cudaEventElapsedTime(milliseconds, begin, end) tried_elapsed(milliseconds, begin, end)
#define cudaEventRecord(event, stream) (fails() ? cudaErrorUnknown : cudaEventRecord(event, stream))
#define cudaEventSynchronize(event) (fails() ? cudaErrorUnknown : cudaEventSynchronize(event))
#define cudaMemsetAsync(to, value, bytes, stream) \
  (fails() ? cudaErrorUnknown : cudaMemsetAsync(to, value, bytes, stream))
#define cudaMemcpyAsync(to, from, bytes, kind, stream) \
  (fails() ? cudaErrorUnknown : cudaMemcpyAsync(to, from, bytes, kind, stream))
#define cudaStreamIsCapturing(stream, status) \
  (fails() ? cudaErrorUnknown : cudaStreamIsCapturing(stream, status))
#define cudaMemset(to, value, bytes) (clearing = true, cudaMemset(to, value, bytes))
#define cudaStreamSynchronize(stream) (clearing = false, cudaStreamSynchronize(stream))
#define cudaDeviceSynchronize() (clearing = false, cudaDeviceSynchronize())
#define cudaGetDevice(device) (fails() ? cudaErrorUnknown : cudaGetDevice(device))
#define cudaFuncSetAttribute(kernel, attribute, value) \
  (fails() ? cudaErrorUnknown : cudaFuncSetAttribute(kernel, attribute, value))

#define PIPELINED_GEMM_FEW_KERNELS
#include "../../07_pipelined_gemm/library/check_product.cuh"
#include "../../07_pipelined_gemm/library/gemm_measured.cuh"

// ---- Plans of any type and layout ----

enum { K = GEMM_K_MAJOR, MN = GEMM_MN_MAJOR, ALL = 1000 };
static int how_many = 3;

static GemmStatus plan_measured(PipelinedGemm *gemm, const CheckedProduct *p,
                                const GemmProblem *q) {
  if (p->type == GEMM_E4M3) return pipelined_gemm_plan_measured<GEMM_E4M3>(gemm, q, 0, how_many);
  if (p->type == GEMM_BF16 && p->major_a == GEMM_K_MAJOR) {
    return pipelined_gemm_plan_measured<GEMM_BF16>(gemm, q, 0, how_many);
  }
  if (p->type == GEMM_BF16) {
    return pipelined_gemm_plan_measured<GEMM_BF16, MN, K>(gemm, q, 0, how_many);
  }
  return p->major_a == GEMM_K_MAJOR
             ? pipelined_gemm_plan_measured<GEMM_FP16, K, MN>(gemm, q, 0, how_many)
             : pipelined_gemm_plan_measured<GEMM_FP16, MN, MN>(gemm, q, 0, how_many);
}

// C's memory is the same before and after.
static GemmStatus plan_and_look(PipelinedGemm *gemm, const CheckedProduct *p,
                                const GemmProblem *q) {
  size_t each = q->c_type == GEMM_FP32 ? 4 : 2;
  size_t bytes = (size_t)((q->batches - 1) * q->stride_c + q->m * q->ldc) * each;
  void *before = malloc(bytes), *after = malloc(bytes);
  long held = allocated;
  CUDA_CHECK(cudaMemcpy(before, q->c, bytes, cudaMemcpyDeviceToHost));
  GemmStatus status = plan_measured(gemm, p, q);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(after, q->c, bytes, cudaMemcpyDeviceToHost));
  check_that(memcmp(before, after, bytes) == 0, "measuring leaves C as it is");
  check_that(events == 0, "measuring destroys its events");
  check_that(allocated - held == (gemm->workspace != NULL), "only the plan's memory stays");
  check_that(gemm->work.output.c == q->c, "the plan is for the problem's C");
  free(before), free(after);
  return status;
}

// ---- Products of all kinds ----

static CheckedProduct product(GemmType type, int a, int b, int64_t m, int64_t n, int64_t k) {
  CheckedProduct p;
  memset(&p, 0, sizeof(p));
  p.type = type, p.major_a = (GemmMajor)a, p.major_b = (GemmMajor)b;
  p.problem = gemm_problem(m, n, k, NULL, NULL, NULL);
  p.problem.c_type = (GemmType)gemm_rounded_type(type);
  p.rows = 6;
  p.seed = (uint64_t)(m + n + k);
  p.plan = plan_and_look;
  return p;
}

static void add_epilogue(CheckedProduct *p, float beta, bool bias, GemmActivation activation) {
  p->problem.alpha = 0.125f;
  p->problem.beta = beta;
  p->has_bias = bias;
  p->problem.activation = activation;
}

static void check_products(void) {
  CheckedProduct list[] = {
      product(GEMM_BF16, K, K, 72, 136, 200),   product(GEMM_BF16, K, K, 1, 1, 8),
      product(GEMM_BF16, K, K, 75, 137, 77),    product(GEMM_BF16, K, K, 130, 72, 200),
      product(GEMM_BF16, MN, K, 72, 200, 136),  product(GEMM_FP16, K, MN, 40, 136, 136),
      product(GEMM_FP16, MN, MN, 136, 24, 136), product(GEMM_FP16, MN, MN, 33, 35, 37),
      product(GEMM_E4M3, K, K, 40, 72, 151)};
  add_epilogue(&list[2], 0.5f, false, GEMM_IDENTITY);
  add_epilogue(&list[3], 0.5f, true, GEMM_RELU);
  list[3].problem.ldc = 72 + 256 + 8;
  list[3].problem.batches = 2;
  list[3].problem.stride_a = 130 * 200;
  list[3].problem.stride_c = 131 * list[3].problem.ldc;
  add_epilogue(&list[4], 1, true, GEMM_GELU);
  list[4].problem.c_type = GEMM_FP32;
  list[5].problem.batches = 3; /* the same A and B for all */
  list[5].problem.stride_c = 40 * 136 + 3;
  add_epilogue(&list[6], 0, true, GEMM_SILU);
  list[6].offset = 3; /* no address is aligned */
  enum { COUNT = sizeof(list) / sizeof(list[0]) };
  for (int i = 0; i < COUNT; i++) {
    const char *name = "none";
    how_many = i == 2 ? ALL : 3;
    check_that(check_product(&list[i], &name), "product %d is right by %s", i, name);
  }
  printf("%d products measured, planned and computed\n", (int)COUNT);
}

// ---- Which candidate is kept ----

enum { M = 64, N = 136, DEPTH = 192 };
static uint16_t *a, *b, *c;

static GemmProblem right_problem(void) { return gemm_problem(M, N, DEPTH, a, b, c); }

static GemmCandidates all_candidates(const GemmProblem *problem) {
  GemmCandidates candidates;
  GemmStatus status = gemm_candidates_for<GEMM_BF16, K, K>(problem, &candidates);
  check_that(status.error == GEMM_OK, "the product can be planned");
  return candidates;
}

// The name of what is kept, in static memory.
static const char *kept(const float *times, float falls, int most, float slows, int holds,
                        int wakes, int tires) {
  PipelinedGemm gemm;
  GemmProblem problem = right_problem();
  known_count = 0;
  clock_times = times, clock_falls = falls, clock_factor = 1, third_slows = slows;
  third_holds = holds, third_measured = 0, third_wakes = wakes, launched = 0;
  third_tires = tires > 0 ? tires : 10;
  GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, 0, most);
  clock_times = NULL;
  check_that(status.error == GEMM_OK, "measured: error %d", (int)status.error);
  if (status.error != GEMM_OK) return "none";
  static char name[64];
  snprintf(name, sizeof(name), "%s", pipelined_gemm_name(&gemm));
  CUDA_CHECK(pipelined_gemm_end(&gemm));
  return name;
}

static void check_which_is_kept(void) {
  GemmProblem problem = right_problem();
  GemmCandidates candidates = all_candidates(&problem);
  check_that(candidates.count >= 3, "%d candidates", candidates.count);
  // By the order of the first launch. How many candidates there are depends on the estimate.
  float equal[MOST_KNOWN] = {0}, third[MOST_KNOWN] = {1.0f, 1.05f, 0.95f, 1.3f};
  float close[MOST_KNOWN] = {1.0f, 0.995f, 1.1f, 1.2f};
  for (int i = 4; i < MOST_KNOWN; i++) third[i] = close[i] = 1;
  struct {
    const float *times;
    float falls;
    int most, kept;
    const char *what;
    float slows;
    int holds, wakes, tires;
  } cases[] = {
      {equal, 1, ALL, 0, "all times are 0"},
      {third, 1, ALL, 2, "the third is the fastest"},
      {third, 1.01f, ALL, 2, "the third is the fastest, and the clock falls"},
      {third, 0.99f, ALL, 2, "the third is the fastest, and the clock rises"},
      {third, 1, 2, 0, "the third is not among the first two"},
      {third, 1, 1, 0, "nothing is measured"},
      {close, 1.03f, ALL, 0, "the second is hardly faster, and the clock falls"},
      {third, 1, ALL, 0, "the third is the fastest only in short runs", 1.5f},
      {third, 1, 3, 2, "the third is the fastest for long", 1, 30},
      {third, 1, 3, 2, "the third is the fastest only on a hot chip", 1, 0, 100},
      {third, 1, 3, 0, "the third is the fastest only in turns of 3 ms", 1.1f, 0, 0, 15},
      {third, 1, 3, 2, "the third is the fastest in turns of 10 ms, too", 1.03f, 0, 0, 15}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    const char *name =
        kept(cases[i].times, cases[i].falls, cases[i].most, cases[i].slows > 0 ? cases[i].slows : 1,
             cases[i].holds, cases[i].wakes, cases[i].tires);
    char wanted[64];
    gemm_name_of(&candidates.list[cases[i].kept], wanted);
    check_that(strcmp(name, wanted) == 0, "%s: %s is kept", cases[i].what, name);
  }
  printf("the fastest of %d candidates is kept, and in a tie the likeliest\n", candidates.count);
}

// Every name leads back to its configuration, and a name is found for every plan.
static void check_names(void) {
  GemmProblem problem = right_problem();
  GemmCandidates candidates = all_candidates(&problem);
  for (int i = 0; i < candidates.count; i++) {
    PipelinedGemm gemm;
    char name[64];
    gemm_name_of(&candidates.list[i], name);
    GemmStatus status = pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &problem, name);
    check_that(status.error == GEMM_OK && strcmp(pipelined_gemm_name(&gemm), name) == 0,
               "%s can be planned by its name", name);
    if (status.error == GEMM_OK) CUDA_CHECK(pipelined_gemm_end(&gemm));
  }
}

// ---- What fails ----

static void expect(GemmStatus status, GemmError error, const PipelinedGemm *gemm) {
  char text[256];
  pipelined_gemm_explain(status, text, sizeof(text));
  printf("  refused: %s\n", text);
  check_that(status.error == error, "error %d, expected %d", (int)status.error, (int)error);
  check_that(gemm->workspace == NULL && allocated == 3 && events == 0, "nothing stays");
  check_that(pipelined_gemm_launch(gemm, 0) == cudaErrorInvalidValue, "an empty plan is refused");
}

static void check_refusals(void) {
  GemmProblem problem = right_problem(), wrong = right_problem();
  PipelinedGemm gemm;
  cudaStream_t stream;
  cudaGraph_t graph;
  wrong.ldc = N - 1;
  expect(pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, 0, 0), GEMM_OUT_OF_RANGE, &gemm);
  expect(pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &wrong, 0), GEMM_OUT_OF_RANGE, &gemm);
  wrong = right_problem();
  wrong.activation = (GemmActivation)-1;
  expect(pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &wrong, 0), GEMM_OUT_OF_RANGE, &gemm);
  wrong = right_problem();
  wrong.c_type = GEMM_E4M3;
  expect(pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &wrong, 0), GEMM_OUT_OF_RANGE, &gemm);
  expect(pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &problem, "single_8x8"), GEMM_UNKNOWN_NAME,
         &gemm);
  expect(pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &problem, NULL), GEMM_UNKNOWN_NAME, &gemm);
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  expect(pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, stream), GEMM_CAPTURING, &gemm);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphDestroy(graph));
  GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, stream, 2);
  check_that(status.error == GEMM_OK, "after the capture: error %d", (int)status.error);
  CUDA_CHECK(pipelined_gemm_end(&gemm));
  check_that(pipelined_gemm_launch(&gemm, 0) == cudaErrorInvalidValue,
             "a plan that has ended is refused");
  CUDA_CHECK(cudaStreamDestroy(stream));
}

// Each call that can fail does, once. beta is not zero, so that all calls are made.
static void check_failing_calls(void) {
  GemmProblem problem = right_problem();
  PipelinedGemm gemm;
  const float third[] = {40, 42, 36};  // few launches heat the chip
  long failed = 0;
  problem.beta = 1;
  CUDA_CHECK(cudaMemset(c, 0, M * N * 2));
  CUDA_CHECK(cudaDeviceSynchronize());
  clock_times = third, clock_falls = clock_factor = 1, known_count = 0;
  for (failing = 1;; failing++) {
    calls = 0;
    GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, 0, 3);
    if (calls < failing) {
      check_that(status.error == GEMM_OK, "no call fails: error %d", (int)status.error);
      break;
    }
    failed++;
    check_that(status.error == GEMM_CUDA_FAILED && status.cuda != cudaSuccess,
               "call %ld fails: error %d", failing, (int)status.error);
    check_that(gemm.workspace == NULL && allocated == 3 && events == 0,
               "call %ld fails: nothing stays", failing);
    check_that(pipelined_gemm_launch(&gemm, 0) == cudaErrorInvalidValue,
               "call %ld fails: the plan is empty", failing);
    CUDA_CHECK(cudaDeviceSynchronize());
    check_that(cudaGetLastError() == cudaSuccess, "call %ld fails: no error is left", failing);
  }
  failing = 0;
  clock_times = NULL;
  CUDA_CHECK(pipelined_gemm_end(&gemm));
  check_that(failed > 30, "%ld calls failed in turn", failed);
  printf("whichever call fails, an error comes back and nothing stays allocated\n");
}

int main(int argc, char **argv) {
  program_begin("measured", argc, argv, NULL, 0);
  check_products();
  CUDA_CHECK(cudaMalloc(&a, M * DEPTH * 2));
  CUDA_CHECK(cudaMalloc(&b, N * DEPTH * 2));
  CUDA_CHECK(cudaMalloc(&c, M * N * 2));
  gemm_fill_normal<<<64, 256>>>(a, M * DEPTH, 1);
  gemm_fill_normal<<<64, 256>>>(b, N * DEPTH, 2);
  check_which_is_kept();
  check_names();
  check_refusals();
  check_failing_calls();
  CUDA_CHECK(cudaFree(a));
  CUDA_CHECK(cudaFree(b));
  CUDA_CHECK(cudaFree(c));
  return program_end("measured plans are right, keep the fastest, and fail cleanly");
}
