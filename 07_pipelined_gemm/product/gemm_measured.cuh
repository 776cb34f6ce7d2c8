/* gemm_measured.cuh: plans a product with the fastest of several configurations, found by measuring.
 *
 *   PipelinedGemm gemm;
 *   GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, stream);
 *   const char *name = pipelined_gemm_name(&gemm);      keep it, and plan without measuring next time:
 *   status = pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &problem, name);
 *
 * pipelined_gemm_plan() trusts a model of the time. Its choice is 1.2 % slower than the best configuration on
 * average, and in rare cases a third slower. To measure the eight that the model ranks first takes about 130
 * milliseconds. It pays off for a product that is computed thousands of times. What the model chooses is kept
 * unless another configuration wins clearly.
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
  const GemmConfiguration *list[GEMM_MODELLED + GEMM_DIRECT_WAYS + 1];
  int count;
} GemmCandidates;

static inline void gemm_add_candidate(GemmCandidates *to, const GemmConfiguration *candidate) {
  for (int i = 0; i < to->count; i++) {
    if (to->list[i] == candidate) return;
  }
  to->list[to->count++] = candidate;
}

/* Ways to load lines of k elements without TMA, or to read them in place, by the times that are predicted for them. */
typedef struct {
  const GemmConfiguration *list[GEMM_DIRECT_WAYS];
  int count;
} GemmWays;

static inline GemmWays gemm_rank_ways(GemmConfigurations direct, const GemmUnaligned *product,
                                      const int classes[2]) {
  GemmWays ways;
  float times[GEMM_DIRECT_WAYS];
  ways.count = 0;
  for (int i = 0; i < direct.count; i++) {
    float time = gemm_time_way(&direct.list[i], product, classes);
    if (time == GEMM_IMPOSSIBLE) continue;
    int at = ways.count++;
    for (; at > 0 && times[at - 1] > time; at--) {
      times[at] = times[at - 1];
      ways.list[at] = ways.list[at - 1];
    }
    times[at] = time;
    ways.list[at] = &direct.list[i];
  }
  return ways;
}

/* First the chosen configuration, then that of gemm_rows unless it is NULL, then the others as the model ranks them. If there are lines that TMA cannot read, the
 * ways to load them directly or in place alternate with those that copy them. `classes`: see gemm_choose_direct(). */
static inline GemmCandidates gemm_candidates(const GemmConfiguration *chosen,
                                             const GemmConfiguration *rows, GemmConfigurations all,
                                             GemmConfigurations direct, const GemmProblem *p,
                                             GemmType type, const int classes[2], int sms) {
  GemmCarried carried = gemm_can_carry(p);
  int64_t k = gemm_k_of_16_bits(type, p->k);
  GemmRanked ranked = gemm_rank(&gemm_model, all.list, all.count, p->m, p->n, k, p->batches, sms,
                                carried, gemm_ends(p));
  const GemmUnaligned product = gemm_unaligned(p->m, p->n, k, p->batches, sms);
  const GemmWays ways = gemm_rank_ways(direct, &product, classes);
  GemmCandidates found = {{chosen}, 1};
  if (rows != NULL) gemm_add_candidate(&found, rows);
  for (int i = 0; i < ranked.count || i < ways.count; i++) {
    if (i < ways.count) gemm_add_candidate(&found, ways.list[i]);
    if (i < ranked.count) gemm_add_candidate(&found, ranked.list[i]);
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
  cudaStream_t stream;
  cudaEvent_t begin, end;
} GemmStopwatch;

/* Milliseconds of this many launches, one directly after the other, as a program would launch them. As many, but at
 * most 20, come before: the first ones find in L2 what another configuration has left there. */
static inline cudaError_t gemm_time(const GemmStopwatch *watch, const PipelinedGemm *gemm,
                                    int launches, float *milliseconds) {
  cudaError_t error = cudaSuccess;
  const int enough = 20;
  int before = launches < enough ? launches : enough;
  for (int i = 0; i < before + launches && error == cudaSuccess; i++) {
    if (i == before) error = cudaEventRecord(watch->begin, watch->stream);
    if (error == cudaSuccess) error = pipelined_gemm_launch(gemm, watch->stream);
  }
  if (error == cudaSuccess) error = cudaEventRecord(watch->end, watch->stream);
  if (error == cudaSuccess) error = cudaEventSynchronize(watch->end);
  if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, watch->begin, watch->end);
  return error;
}

/* Milliseconds of a launch. The very first one is not timed. */
static inline cudaError_t gemm_estimate(const GemmStopwatch *watch, const PipelinedGemm *gemm,
                                        float *milliseconds) {
  const int some = 4;
  cudaError_t error = gemm_time(watch, gemm, 1, milliseconds);
  if (error == cudaSuccess) error = gemm_time(watch, gemm, some, milliseconds);
  *milliseconds /= (float)some;
  return error;
}

/* So many launches take this long; at most `most`. */
static inline int gemm_launches_for(float milliseconds, float estimate, int most) {
  return estimate * (float)most > milliseconds ? 1 + (int)(milliseconds / estimate) : most;
}

/* After 50 to 100 ms of load, the chip lowers its clock at its power limit. That slows down what waits for the tensor
 * cores, but not what waits for L2 or memory, so another configuration may be the fastest: 256 x 4096 x 4096
 * takes 14.3 us by single_64x192_4x1 on a rested chip and 17.3 us on a hot one, where single_64x128_2x1
 * takes 15.8 us. So nothing is compared before. */
static inline cudaError_t gemm_heat(const GemmStopwatch *watch, const PipelinedGemm *gemm,
                                    float estimate) {
  const float milliseconds = 60;
  const int most = 20000;
  float unused;
  return gemm_time(watch, gemm, gemm_launches_for(milliseconds, estimate, most), &unused);
}

/* How two configurations are compared: in turn, so a clock that rises or falls changes both times, each of them
 * first in every second round. */
typedef struct {
  int rounds;    /* an even number, so that both are first equally often */
  int most_lost; /* rounds that a winner may lose */
  float wins; /* with a smaller part of the other one's time, in the geometric mean of the rounds */
  float hopeless;     /* a round with a larger part of it is enough to lose */
  float milliseconds; /* of launches that are timed together; */
  int most_launches;  /* but no more than this */
} GemmMatch;

static inline cudaError_t gemm_play(const GemmStopwatch *watch, const GemmMatch *match,
                                    const PipelinedGemm *best, const PipelinedGemm *challenger,
                                    float estimate, bool *won) {
  const int launches = gemm_launches_for(match->milliseconds, estimate, match->most_launches);
  int lost = 0;
  float ratios = 0; /* the sum of their logarithms */
  *won = false;
  for (int round = 0; round < match->rounds; round++) {
    float times[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
      int which = (round + i) % 2;
      cudaError_t error = gemm_time(watch, which == 0 ? best : challenger, launches, &times[which]);
      if (error != cudaSuccess) return error;
    }
    if (!(times[1] < times[0])) lost++;
    if (lost > match->most_lost || times[1] > match->hopeless * times[0]) return cudaSuccess;
    ratios += logf(times[1] / times[0]);
  }
  *won = ratios < (float)match->rounds * logf(match->wins);
  return cudaSuccess;
}

/* Challengers that are slower lose the first match, which is short. Then launches follow each other for long enough that
 * they overlap as they will in use: CTAs of the next launch take places on SMs early, which can make a
 * configuration with several CTAs to an SM half as slow again. In a tie, the model's order decides. */
static inline cudaError_t gemm_is_faster(const GemmStopwatch *watch, const PipelinedGemm *best,
                                         const PipelinedGemm *challenger, float estimate,
                                         bool *faster) {
  const GemmMatch matches[] = {{4, 2, 1, 1.1f, 1, 200}, {6, 1, 0.99f, 1.1f, 3, 1000}};
  float unused;
  *faster = true;
  cudaError_t error = gemm_time(watch, challenger, 1, &unused); /* its first launch */
  for (int i = 0; i < 2 && *faster && error == cudaSuccess; i++) {
    error = gemm_play(watch, &matches[i], best, challenger, estimate, faster);
  }
  return error;
}

/* A product as it is measured. */
typedef struct {
  const GemmProblem *problem;
  GemmType type;
  GemmMajor major_a, major_b;
} GemmMeasured;

static inline GemmStatus gemm_plan_to_measure(PipelinedGemm *gemm, const GemmMeasured *m,
                                              const GemmConfiguration *candidate) {
  return gemm_plan_with(gemm, m->problem, m->type, m->major_a, m->major_b, candidate, 0);
}

/* Is what was kept still faster than the model's choice? It may have won against others only, and the clock
 * may have fallen since. */
static inline GemmStatus gemm_confirm(const GemmStopwatch *watch, const GemmMeasured *measured,
                                      const PipelinedGemm *best, float estimate,
                                      const GemmConfiguration *chosen, bool *confirmed) {
  const GemmMatch match = {6, 1, 0.99f, 1.1f, 4, 1000};
  PipelinedGemm first;
  float unused;
  GemmStatus status = gemm_plan_to_measure(&first, measured, chosen);
  if (status.error == GEMM_OK) {
    cudaError_t error = gemm_time(watch, &first, 1, &unused);
    if (error == cudaSuccess) error = gemm_play(watch, &match, &first, best, estimate, confirmed);
    status = gemm_cuda_status(error, "measuring");
  }
  pipelined_gemm_end(&first);
  return status;
}

/* Which of the first `count` candidates is the fastest? Each is compared with the best so far, so only two have
 * memory at a time. A candidate that turns out not to fit the product takes no part. */
static inline GemmStatus gemm_find_fastest(const GemmStopwatch *watch, const GemmMeasured *measured,
                                           const GemmCandidates *candidates, int count,
                                           const GemmConfiguration **fastest) {
  const GemmConfiguration *chosen = candidates->list[0];
  PipelinedGemm best, challenger;
  float estimate = 0;
  bool confirmed = true;
  GemmStatus status = gemm_plan_to_measure(&best, measured, chosen);
  if (status.error == GEMM_OK) {
    cudaError_t error = gemm_estimate(watch, &best, &estimate);
    if (error == cudaSuccess) error = gemm_heat(watch, &best, estimate);
    status = gemm_cuda_status(error, "measuring");
  }
  for (int i = 1; i < count && status.error == GEMM_OK; i++) {
    bool faster = false;
    status = gemm_plan_to_measure(&challenger, measured, candidates->list[i]);
    if (status.error == GEMM_NOT_FOR_SHAPE || status.error == GEMM_OUT_OF_RANGE) {
      status = gemm_status(GEMM_OK, NULL, 0, 0, 0);
      continue;
    }
    if (status.error == GEMM_OK) {
      status = gemm_cuda_status(gemm_is_faster(watch, &best, &challenger, estimate, &faster),
                                "measuring");
    }
    if (faster && status.error == GEMM_OK) {
      PipelinedGemm slower = best;
      best = challenger;
      challenger = slower;
    }
    pipelined_gemm_end(&challenger);
  }
  if (status.error == GEMM_OK && best.configuration != chosen) {
    status = gemm_confirm(watch, measured, &best, estimate, chosen, &confirmed);
  }
  *fastest = confirmed ? best.configuration : chosen;
  pipelined_gemm_end(&best);
  return status;
}

/* Finds the fastest of the first `how_many` candidates. Frees all that it has allocated. */
static inline GemmStatus gemm_measure(const GemmProblem *problem, GemmType type, GemmMajor major_a,
                                      GemmMajor major_b, const GemmCandidates *candidates,
                                      int how_many, cudaStream_t stream,
                                      const GemmConfiguration **fastest) {
  GemmScratch scratch;
  GemmStopwatch watch = {stream, NULL, NULL};
  GemmStatus status = gemm_get_scratch(&scratch, problem, stream);
  if (status.error == GEMM_OK) {
    cudaError_t error = cudaEventCreate(&watch.begin);
    if (error == cudaSuccess) error = cudaEventCreate(&watch.end);
    status = gemm_cuda_status(error, "creating an event");
  }
  if (status.error == GEMM_OK) {
    const GemmMeasured measured = {&scratch.problem, type, major_a, major_b};
    status = gemm_find_fastest(&watch, &measured, candidates, how_many, fastest);
  }
  if (watch.begin != NULL) cudaEventDestroy(watch.begin);
  if (watch.end != NULL) cudaEventDestroy(watch.end);
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
                                      gemm_direct_configurations<TYPE, MAJOR_A, MAJOR_B>(),
                                      gemm_rows_configurations<TYPE, MAJOR_A, MAJOR_B>()};
  memset(gemm, 0, sizeof(*gemm));
  if (name == NULL) return gemm_status(GEMM_UNKNOWN_NAME, "a null pointer", 0, 0, 0);
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
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

  int classes[2];
  gemm_find_classes(problem, (GemmType)TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B, classes);
  const GemmConfiguration *rows =
      gemm_choose_rows(gemm_rows_configurations<TYPE, MAJOR_A, MAJOR_B>(), problem, sms, true);
  const GemmCandidates candidates = gemm_candidates(
      gemm->configuration, rows, gemm_configurations<TYPE, MAJOR_A, MAJOR_B>(),
      gemm_direct_configurations<TYPE, MAJOR_A, MAJOR_B>(), problem, (GemmType)TYPE, classes, sms);
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
