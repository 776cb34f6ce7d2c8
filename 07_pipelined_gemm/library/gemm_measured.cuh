/* gemm_measured.cuh: plans a product with the fastest of several configurations, found by measuring. This is
 * what we recommend.
 *
 *   PipelinedGemm gemm;
 *   GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, stream);
 *   const char *name = pipelined_gemm_name(&gemm);      keep it, and plan without measuring next time:
 *   status = pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &problem, name);
 *
 * It takes about a third of a second. Measuring reads A, B and the bias, which must be in place when the stream
 * comes to it, and writes to a C of its own: the problem's C is neither read nor written, whatever beta is. The
 * launches are repeated, so what fits into L2 is found there. Other work on the device at the same time makes
 * the measurements worse, not the results.
 *
 * Two calls with the same arguments may keep different configurations, whose sums are rounded in a different
 * order. The same name gives the same bits. */
#ifndef PIPELINED_GEMM_GEMM_MEASURED_CUH
#define PIPELINED_GEMM_GEMM_MEASURED_CUH

#include "pipelined_gemm.cuh"

constexpr int GEMM_MEASURED = 12; /* configurations to measure, unless the caller says how many */

/* A C to measure with, as far behind a multiple of 256 bytes as the problem's C. */
typedef struct {
  GemmProblem problem;
  void *memory;
} GemmScratch;

static inline cudaError_t gemm_get_scratch(GemmScratch *scratch, const GemmProblem *problem,
                                           cudaStream_t stream) {
  const size_t alignment = 256;
  GemmProblem *p = &scratch->problem;
  *p = *problem;
  if (p->ldc == 0) p->ldc = p->n;
  int64_t matrix = (p->m - 1) * p->ldc + p->n;
  size_t bytes =
      (size_t)((p->batches - 1) * p->stride_c + matrix) * (size_t)gemm_element_bytes(p->c_type);
  size_t skip = (uintptr_t)problem->c % alignment;
  cudaError_t error = cudaMalloc(&scratch->memory, skip + bytes);
  if (error != cudaSuccess) {
    (void)cudaGetLastError(); /* so that a later call does not find it */
    scratch->memory = NULL;
    return error;
  }
  p->c = (uint8_t *)scratch->memory + skip;
  return p->beta != 0 ? cudaMemsetAsync(p->c, 0, bytes, stream) : cudaSuccess; /* beta reads it */
}

/* ---- How it is measured ---- */

typedef struct {
  cudaStream_t stream;
  cudaEvent_t begin, end;
} GemmStopwatch;

/* Milliseconds of this many launches, one directly after the other, as a program would launch them. As many, but at
 * most 20, come before: the first ones find in L2 what another configuration has left there. */
static inline cudaError_t gemm_time(const GemmStopwatch *watch, const PipelinedGemm *gemm,
                                    int launches, float *milliseconds) {
  cudaError_t error = cudaSuccess;
  int before = launches < 20 ? launches : 20;
  for (int i = 0; i < before + launches && error == cudaSuccess; i++) {
    if (i == before) error = cudaEventRecord(watch->begin, watch->stream);
    if (error == cudaSuccess) error = pipelined_gemm_launch(gemm, watch->stream);
  }
  if (error == cudaSuccess) error = cudaEventRecord(watch->end, watch->stream);
  if (error == cudaSuccess) error = cudaEventSynchronize(watch->end);
  if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, watch->begin, watch->end);
  return error;
}

/* So many launches take this long; at most `most`. */
static inline int gemm_launches_for(float milliseconds, float estimate, int most) {
  return estimate * (float)most > milliseconds ? 1 + (int)(milliseconds / estimate) : most;
}

/* After 50 to 100 ms of load, the chip lowers its clock at its power limit. That slows down what waits for the tensor
 * cores, but not what waits for L2 or memory, so another configuration may be the fastest. So nothing is compared
 * before. `estimate`: milliseconds of a launch, found here. */
static inline cudaError_t gemm_heat(const GemmStopwatch *watch, const PipelinedGemm *gemm,
                                    float *estimate) {
  const int some = 4, most = 20000;
  const float milliseconds = 60;
  float unused;
  cudaError_t error = gemm_time(watch, gemm, 1, &unused); /* the very first launch is not timed */
  if (error == cudaSuccess) error = gemm_time(watch, gemm, some, estimate);
  *estimate /= (float)some;
  if (error != cudaSuccess) return error;
  return gemm_time(watch, gemm, gemm_launches_for(milliseconds, *estimate, most), &unused);
}

/* Measures two plans alternately, each of them first in every second round, so a clock that rises or falls changes both times.
 * The challenger wins with less than `wins` of the other one's time in the geometric mean. A round with a tenth
 * more is enough to lose. */
static inline cudaError_t gemm_match(const GemmStopwatch *watch, const PipelinedGemm *best,
                                     const PipelinedGemm *challenger, int launches, float wins,
                                     bool *won) {
  const int rounds = 6;
  const float hopeless = 1.1f;
  float ratios = 0; /* the sum of their logarithms */
  *won = false;
  for (int round = 0; round < rounds; round++) {
    float times[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
      int which = (round + i) % 2;
      cudaError_t error = gemm_time(watch, which == 0 ? best : challenger, launches, &times[which]);
      if (error != cudaSuccess) return error;
    }
    if (times[1] > hopeless * times[0]) return cudaSuccess;
    ratios += logf(times[1] / times[0]);
  }
  *won = ratios < (float)rounds * logf(wins);
  return cudaSuccess;
}

/* The challenger must win a short match, and then a long one, in which launches overlap as they will in use: blocks
 * of the next launch take places on SMs early. */
static inline cudaError_t gemm_is_faster(const GemmStopwatch *watch, const PipelinedGemm *best,
                                         const PipelinedGemm *challenger, float estimate,
                                         bool *faster) {
  float unused;
  int few = gemm_launches_for(1, estimate, 200), many = gemm_launches_for(3, estimate, 1000);
  cudaError_t error = gemm_time(watch, challenger, 1, &unused); /* its first launch */
  if (error == cudaSuccess) error = gemm_match(watch, best, challenger, few, 1, faster);
  if (error != cudaSuccess || !*faster) return error;
  return gemm_match(watch, best, challenger, many, 0.99f, faster);
}

/* Plans with the fastest of the first `count`. Each is compared with the best so far, so only two have memory at
 * a time. One that turns out not to fit the product takes no part. */
static inline GemmStatus gemm_plan_fastest(PipelinedGemm *best, const GemmStopwatch *watch,
                                           const GemmProblem *problem, int type, GemmMajor major_a,
                                           GemmMajor major_b, const GemmCandidates *candidates,
                                           int count) {
  float estimate = 0;
  GemmStatus status = gemm_plan_with(best, problem, type, major_a, major_b, &candidates->list[0]);
  if (status.error != GEMM_OK) return status;
  status = gemm_cuda_status(gemm_heat(watch, best, &estimate), "measuring");
  for (int i = 1; i < count && status.error == GEMM_OK; i++) {
    PipelinedGemm challenger;
    bool faster = false;
    status = gemm_plan_with(&challenger, problem, type, major_a, major_b, &candidates->list[i]);
    if (status.error == GEMM_NOT_FOR_SHAPE || status.error == GEMM_OUT_OF_RANGE) {
      status = gemm_ok();
      continue;
    }
    if (status.error != GEMM_OK) break;
    status =
        gemm_cuda_status(gemm_is_faster(watch, best, &challenger, estimate, &faster), "measuring");
    PipelinedGemm loser = faster ? *best : challenger;
    if (faster) *best = challenger;
    pipelined_gemm_end(&loser);
  }
  return status;
}

/* Plans a product on the current device with the fastest of the `how_many` likeliest configurations (at most all
 * that can compute it). Not while the stream is capturing. If it fails, the plan is empty and nothing stays
 * allocated. */
template <int TYPE, int MAJOR_A = GEMM_K_MAJOR, int MAJOR_B = GEMM_K_MAJOR>
static inline GemmStatus pipelined_gemm_plan_measured(PipelinedGemm *gemm,
                                                      const GemmProblem *problem,
                                                      cudaStream_t stream,
                                                      int how_many = GEMM_MEASURED) {
  GemmCandidates candidates;
  memset(gemm, 0, sizeof(*gemm));
  GemmStatus status =
      gemm_check_range("the number of configurations to measure", how_many, 1, INT32_MAX);
  if (status.error != GEMM_OK) return status;
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  cudaError_t error = cudaStreamIsCapturing(stream, &capturing);
  if (error != cudaSuccess) return gemm_cuda_status(error, "asking whether the stream captures");
  if (capturing != cudaStreamCaptureStatusNone) {
    return gemm_status(GEMM_CAPTURING, "the stream", 0, 0, 0);
  }
  status = gemm_candidates_for<TYPE, MAJOR_A, MAJOR_B>(problem, &candidates);
  if (status.error != GEMM_OK) return status;
  if (candidates.count < how_many) how_many = candidates.count;

  GemmScratch scratch = {};
  GemmStopwatch watch = {stream, NULL, NULL};
  error = gemm_get_scratch(&scratch, problem, stream);
  if (error == cudaSuccess) error = cudaEventCreate(&watch.begin);
  if (error == cudaSuccess) error = cudaEventCreate(&watch.end);
  status = gemm_cuda_status(error, "allocating what to measure with");
  if (status.error == GEMM_OK) {
    status = gemm_plan_fastest(gemm, &watch, &scratch.problem, TYPE, (GemmMajor)MAJOR_A,
                               (GemmMajor)MAJOR_B, &candidates, how_many);
  }
  if (watch.begin != NULL) cudaEventDestroy(watch.begin);
  if (watch.end != NULL) cudaEventDestroy(watch.end);
  const GemmConfiguration fastest = gemm->configuration;
  pipelined_gemm_end(gemm);
  error = cudaFree(scratch.memory);
  if (status.error == GEMM_OK) status = gemm_cuda_status(error, "freeing what was measured with");
  memset(gemm, 0, sizeof(*gemm));
  if (status.error != GEMM_OK) return status;
  return gemm_plan_with(gemm, problem, TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B, &fastest);
}

#endif
