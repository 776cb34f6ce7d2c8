/* gemm_measured.cuh: plans a product with the fastest of several configurations, found by measuring.
 *
 *   PipelinedGemm gemm;
 *   GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, stream);
 *   const char *name = pipelined_gemm_name(&gemm);      keep it, and plan without measuring next time:
 *   status = pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &problem, name);
 *
 * pipelined_gemm_plan() trusts a model of the time. Its choice is 1.6 % slower than the best configuration on
 * average, and in bad cases a third slower. To measure the eight that the model ranks first takes some
 * milliseconds on the device and leaves 0.1 %. It pays off for a product that is computed thousands of times.
 *
 * Measuring reads A, B and the bias, which must be in place when the stream comes to it, and writes to a C of
 * its own: the problem's C is neither read nor written, whatever beta is. On the device it takes memory for that C
 * and for two plans. The launches are repeated, so what fits into L2 is found there. The call waits until
 * the stream has done what was given to it before. Other work on the device at the same time makes the
 * measurements worse, not the results.
 *
 * Two calls with the same arguments may keep different configurations, whose sums are rounded in a different
 * order. The same name gives the same bits. */
#ifndef PIPELINED_GEMM_GEMM_MEASURED_CUH
#define PIPELINED_GEMM_GEMM_MEASURED_CUH

#include "pipelined_gemm.cuh"

constexpr int GEMM_MEASURED = 8; /* configurations to measure, unless the caller says how many */

/* ---- What is measured ---- */

typedef struct {
  const GemmConfiguration *list[GEMM_MODELLED + GEMM_DIRECT_WAYS];
  int count;
} GemmCandidates;

static inline void gemm_add_candidate(GemmCandidates *to, const GemmConfiguration *candidate) {
  for (int i = 0; i < to->count; i++) {
    if (to->list[i] == candidate) return;
  }
  to->list[to->count++] = candidate;
}

/* First the chosen configuration, then the others as the model ranks them. If there are lines that TMA cannot
 * read, the ways to load them directly alternate with those that copy them. */
static inline GemmCandidates gemm_candidates(const GemmConfiguration *chosen,
                                             GemmConfigurations all, GemmConfigurations direct,
                                             const GemmProblem *p, GemmType type, int sms) {
  const GemmConfiguration *ranked[GEMM_MODELLED];
  GemmCarried carried = gemm_can_carry(p);
  int64_t k = gemm_k_of_16_bits(type, p->k);
  int ranks =
      gemm_rank(&gemm_model, all.list, all.count, p->m, p->n, k, p->batches, sms, carried, ranked);
  GemmCandidates found = {{chosen}, 1};
  for (int i = 0; i < ranks || i < direct.count; i++) {
    if (i < direct.count && gemm_fits(&direct.list[i], k, carried)) {
      gemm_add_candidate(&found, &direct.list[i]);
    }
    if (i < ranks) gemm_add_candidate(&found, ranked[i]);
  }
  return found;
}

/* A C to measure with. Its address and its strides are to those of the problem's C as far as kernels can
 * tell: they differ by multiples of 256 bytes. Gaps between rows and matrices are no longer than that takes. */
typedef struct {
  GemmProblem problem;
  void *memory;
} GemmScratch;

static inline int64_t gemm_shortened(int64_t stride, int64_t least) {
  const int64_t unit = 128; /* elements */
  return stride - (stride - least) / unit * unit;
}

static inline GemmStatus gemm_get_scratch(GemmScratch *scratch, const GemmProblem *problem,
                                          cudaStream_t stream) {
  const size_t alignment = 256;
  GemmProblem *p = &scratch->problem;
  *p = *problem;
  scratch->memory = NULL;
  p->ldc = gemm_shortened(p->ldc == 0 ? p->n : p->ldc, p->n);
  int64_t matrix = (p->m - 1) * p->ldc + p->n;
  if (p->batches > 1) p->stride_c = gemm_shortened(p->stride_c, matrix);
  size_t bytes =
      (size_t)((p->batches - 1) * p->stride_c + matrix) * (size_t)gemm_element_bytes(p->c_type);
  size_t skip = (uintptr_t)problem->c % alignment;
  cudaError_t error = cudaMalloc(&scratch->memory, skip + bytes);
  if (error != cudaSuccess) {
    (void)cudaGetLastError(); /* so that a later call does not find it */
    scratch->memory = NULL;
    return gemm_cuda_status(error, "allocating a C to measure with");
  }
  p->c = (uint8_t *)scratch->memory + skip;
  /* beta reads it. */
  if (p->beta != 0) error = cudaMemsetAsync(p->c, 0, bytes, stream);
  return gemm_cuda_status(error, "clearing the C to measure with");
}

/* ---- How it is measured ---- */

typedef struct {
  cudaStream_t stream, recorder; /* the caller's; ours, in which launches are captured */
  cudaEvent_t begin, end;
  int launches; /* of a measurement */
  bool warm;    /* as many launches come first that are not timed */
} GemmStopwatch;

/* A plan and its launches as a graph: a host that launches slowly must not decide which configuration is taken. */
typedef struct {
  PipelinedGemm gemm;
  cudaGraphExec_t graph;
} GemmEntrant;

static inline cudaError_t gemm_record(const GemmStopwatch *watch, GemmEntrant *entrant) {
  cudaGraph_t graph = NULL;
  cudaError_t error = cudaStreamBeginCapture(watch->recorder, cudaStreamCaptureModeRelaxed);
  if (error != cudaSuccess) return error;
  for (int i = 0; i < watch->launches && error == cudaSuccess; i++) {
    error = pipelined_gemm_launch(&entrant->gemm, watch->recorder);
  }
  cudaError_t ended = cudaStreamEndCapture(watch->recorder, &graph);
  if (error == cudaSuccess) error = ended;
  if (error == cudaSuccess) error = cudaGraphInstantiate(&entrant->graph, graph, 0);
  if (error != cudaSuccess) entrant->graph = NULL;
  if (graph != NULL) cudaGraphDestroy(graph);
  return error;
}

static inline void gemm_dismiss(GemmEntrant *entrant) {
  if (entrant->graph != NULL) cudaGraphExecDestroy(entrant->graph);
  pipelined_gemm_end(&entrant->gemm);
}

/* The launches before those that are timed fill L2 as this configuration does. What another one has left there can
 * make the first launches a third faster or slower. */
static inline cudaError_t gemm_time(const GemmStopwatch *watch, const GemmEntrant *entrant,
                                    float *milliseconds) {
  cudaError_t error = cudaSuccess;
  if (watch->warm) error = cudaGraphLaunch(entrant->graph, watch->stream);
  if (error == cudaSuccess) error = cudaEventRecord(watch->begin, watch->stream);
  if (error == cudaSuccess) error = cudaGraphLaunch(entrant->graph, watch->stream);
  if (error == cudaSuccess) error = cudaEventRecord(watch->end, watch->stream);
  if (error == cudaSuccess) error = cudaEventSynchronize(watch->end);
  if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, watch->begin, watch->end);
  return error;
}

/* Enough launches for a tenth of a millisecond, up to 20. A product of several tenths replaces all of L2 itself. */
static inline cudaError_t gemm_count_launches(GemmStopwatch *watch, GemmEntrant *entrant) {
  const float enough = 0.1f, replaces_l2 = 0.3f; /* milliseconds */
  const int most = 20;
  float once = 0;
  watch->launches = 1;
  watch->warm = true;
  cudaError_t error = gemm_record(watch, entrant);
  if (error == cudaSuccess) error = gemm_time(watch, entrant, &once);
  if (once > 0) watch->launches = once * (float)most < enough ? most : 1 + (int)(enough / once);
  watch->warm = once < replaces_l2;
  if (error != cudaSuccess || watch->launches == 1) return error;
  cudaGraphExecDestroy(entrant->graph);
  return gemm_record(watch, entrant);
}

/* Both run in turn, so a clock that rises or falls changes both times, and each is first in every second
 * round. The challenger must be clearly faster in nearly all rounds: in a tie, the model's order decides. One that is
 * far slower in the first two rounds gets no more. */
static inline cudaError_t gemm_is_faster(const GemmStopwatch *watch, const GemmEntrant *best,
                                         const GemmEntrant *challenger, bool *faster) {
  enum { ROUNDS = 5, MOST_LOST = 1, ROUNDS_OF_SLOW = 2 };
  const float clearly = 0.99f, far = 1.1f; /* of the best one's time */
  int lost = 0, far_behind = 0;
  float unused;
  cudaError_t error = gemm_time(watch, challenger, &unused); /* uploads the graph */
  for (int round = 0; round < ROUNDS && lost <= MOST_LOST && error == cudaSuccess; round++) {
    float times[2] = {0, 0};
    for (int i = 0; i < 2 && error == cudaSuccess; i++) {
      int which = (round + i) % 2;
      error = gemm_time(watch, which == 0 ? best : challenger, &times[which]);
    }
    if (!(times[1] < clearly * times[0])) lost++;
    if (times[1] > far * times[0]) far_behind++;
    if (round + 1 == ROUNDS_OF_SLOW && far_behind == ROUNDS_OF_SLOW) break;
  }
  *faster = lost <= MOST_LOST;
  return error;
}

/* Which of the first `count` candidates is the fastest? Each is compared with the best so far, so only two have
 * memory at a time. A candidate that turns out not to fit the product takes no part. */
static inline GemmStatus gemm_find_fastest(GemmStopwatch *watch, const GemmProblem *problem,
                                           GemmType type, GemmMajor major_a, GemmMajor major_b,
                                           const GemmCandidates *candidates, int count,
                                           const GemmConfiguration **fastest) {
  GemmEntrant best = {}, challenger;
  GemmStatus status =
      gemm_plan_with(&best.gemm, problem, type, major_a, major_b, candidates->list[0], 0);
  if (status.error == GEMM_OK) {
    status = gemm_cuda_status(gemm_count_launches(watch, &best), "measuring");
  }
  for (int i = 1; i < count && status.error == GEMM_OK; i++) {
    bool faster = false;
    challenger.graph = NULL;
    status =
        gemm_plan_with(&challenger.gemm, problem, type, major_a, major_b, candidates->list[i], 0);
    if (status.error == GEMM_NOT_FOR_SHAPE || status.error == GEMM_OUT_OF_RANGE) {
      status = gemm_status(GEMM_OK, NULL, 0, 0, 0);
      continue;
    }
    cudaError_t error = cudaSuccess;
    if (status.error == GEMM_OK) {
      error = gemm_record(watch, &challenger);
      if (error == cudaSuccess) error = gemm_is_faster(watch, &best, &challenger, &faster);
      status = gemm_cuda_status(error, "measuring");
    }
    if (faster) {
      GemmEntrant slower = best;
      best = challenger;
      challenger = slower;
    }
    gemm_dismiss(&challenger);
  }
  *fastest = best.gemm.configuration;
  gemm_dismiss(&best);
  return status;
}

/* Finds the fastest of the first `how_many` candidates. Frees all that it has allocated. */
static inline GemmStatus gemm_measure(const GemmProblem *problem, GemmType type, GemmMajor major_a,
                                      GemmMajor major_b, const GemmCandidates *candidates,
                                      int how_many, cudaStream_t stream,
                                      const GemmConfiguration **fastest) {
  GemmScratch scratch;
  GemmStopwatch watch = {stream, NULL, NULL, NULL, 1, true};
  GemmStatus status = gemm_get_scratch(&scratch, problem, stream);
  if (status.error == GEMM_OK) {
    cudaError_t error = cudaStreamCreateWithFlags(&watch.recorder, cudaStreamNonBlocking);
    if (error == cudaSuccess) error = cudaEventCreate(&watch.begin);
    if (error == cudaSuccess) error = cudaEventCreate(&watch.end);
    status = gemm_cuda_status(error, "creating a stream and events");
  }
  if (status.error == GEMM_OK) {
    status = gemm_find_fastest(&watch, &scratch.problem, type, major_a, major_b, candidates,
                               how_many, fastest);
  }
  if (watch.begin != NULL) cudaEventDestroy(watch.begin);
  if (watch.end != NULL) cudaEventDestroy(watch.end);
  if (watch.recorder != NULL) cudaStreamDestroy(watch.recorder);
  cudaError_t error = cudaFree(scratch.memory);
  return status.error != GEMM_OK ? status
                                 : gemm_cuda_status(error, "freeing the C to measure with");
}

/* ---- What you call ---- */

/* The name of a plan's configuration, for pipelined_gemm_plan_named(). Valid as long as the program runs. */
static inline const char *pipelined_gemm_name(const PipelinedGemm *gemm) {
  return gemm->configuration->name;
}

/* Plans a product with the configuration of this name, on the current device. */
template <int TYPE, int MAJOR_A = GEMM_K_MAJOR, int MAJOR_B = GEMM_K_MAJOR>
static inline GemmStatus pipelined_gemm_plan_named(PipelinedGemm *gemm, const GemmProblem *problem,
                                                   const char *name) {
  const GemmConfigurations lists[] = {gemm_configurations<TYPE, MAJOR_A, MAJOR_B>(),
                                      gemm_direct_configurations<TYPE, MAJOR_A, MAJOR_B>()};
  memset(gemm, 0, sizeof(*gemm));
  if (name == NULL) return gemm_status(GEMM_UNKNOWN_NAME, "a null pointer", 0, 0, 0);
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < lists[i].count; j++) {
      const GemmConfiguration *c = &lists[i].list[j];
      if (strcmp(c->name, name) != 0) continue;
      return gemm_plan_with(gemm, problem, (GemmType)TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B,
                            c, 0);
    }
  }
  return gemm_status(GEMM_UNKNOWN_NAME, name, 0, 0, 0);
}

/* Plans a product on the current device with the fastest of the `how_many` configurations that the model ranks
 * first (at most all that have a chance). Not while the stream is capturing. If it fails, the plan is
 * empty and nothing stays allocated. */
template <int TYPE, int MAJOR_A = GEMM_K_MAJOR, int MAJOR_B = GEMM_K_MAJOR>
static inline GemmStatus pipelined_gemm_plan_measured(PipelinedGemm *gemm,
                                                      const GemmProblem *problem,
                                                      cudaStream_t stream,
                                                      int how_many = GEMM_MEASURED) {
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
  int sms = 0;
  error = gemm_count_sms(&sms);
  if (error != cudaSuccess) return gemm_cuda_status(error, "asking for the device");
  /* This also refuses what is wrong with the problem. */
  status = pipelined_gemm_plan<TYPE, MAJOR_A, MAJOR_B>(gemm, problem);
  if (status.error != GEMM_OK || how_many == 1) return status;

  const GemmCandidates candidates = gemm_candidates(
      gemm->configuration, gemm_configurations<TYPE, MAJOR_A, MAJOR_B>(),
      gemm_direct_configurations<TYPE, MAJOR_A, MAJOR_B>(), problem, (GemmType)TYPE, sms);
  if (candidates.count < how_many) how_many = candidates.count;
  const GemmConfiguration *fastest = NULL;
  error = pipelined_gemm_end(gemm);
  memset(gemm, 0, sizeof(*gemm));
  if (error != cudaSuccess) return gemm_cuda_status(error, "freeing the plan's workspace");
  status = gemm_measure(problem, (GemmType)TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B,
                        &candidates, how_many, stream, &fastest);
  if (status.error != GEMM_OK) return status;
  return gemm_plan_with(gemm, problem, (GemmType)TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B,
                        fastest, 0);
}

#endif
