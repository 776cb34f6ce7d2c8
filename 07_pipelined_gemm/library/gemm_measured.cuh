/* gemm_measured.cuh: plans a product with the fastest of several configurations, found by measuring. This is
 * what we recommend.
 *
 *   PipelinedGemm gemm;
 *   GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, stream);
 *   const char *name = pipelined_gemm_name(&gemm);      keep it, and plan without measuring next time:
 *   status = pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &problem, name);
 *
 * It takes some tenths of a second. Measuring reads A, B and the bias, which must be in place when the stream
 * comes to it, and writes to a C of its own: the problem's C is neither read nor written, whatever beta is. A
 * configuration must be faster both where launches find their operands in L2 and where they do not: so A, B and C
 * have copies, of three times L2 together. Other work on the device at the same time makes the measurements worse,
 * not the results.
 *
 * Two calls with the same arguments may keep different configurations, whose sums are rounded in a different
 * order. The same name gives the same bits. */
#ifndef PIPELINED_GEMM_GEMM_MEASURED_CUH
#define PIPELINED_GEMM_GEMM_MEASURED_CUH

#include "pipelined_gemm.cuh"

constexpr int GEMM_MEASURED = 12; /* configurations to measure, unless the caller says how many */

constexpr int GEMM_MOST_SETS = 16;

/* What to measure with: a C, and as many more sets of A, B and C as do not fit into L2 together. Each matrix is as
 * far behind a multiple of 256 bytes as the problem's. */
typedef struct {
  GemmProblem problems[GEMM_MOST_SETS];
  int sets;
  void *memory;
} GemmScratch;

/* The bytes from the first element to the last. */
static inline size_t gemm_extent(GemmLines lines, int element_bytes) {
  int64_t last = (lines.batches - 1) * lines.batch_stride + (lines.lines - 1) * lines.line_stride;
  return (size_t)((last + lines.line) * element_bytes);
}

/* A pointer into the scratch memory at `*at`, or the size so far if there is none yet. */
static inline void *gemm_place(const GemmScratch *scratch, size_t *at, const void *like,
                               size_t bytes) {
  uint8_t *begin = (uint8_t *)scratch->memory + *at + (uintptr_t)like % 256;
  *at += gemm_aligned((uintptr_t)like % 256 + bytes);
  return begin;
}

static inline cudaError_t gemm_get_scratch(GemmScratch *scratch, const GemmProblem *problem,
                                           int type, GemmMajor major_a, GemmMajor major_b,
                                           cudaStream_t stream) {
  GemmProblem p = *problem;
  GemmStatus checked = gemm_check_problem(&p, type, major_a, major_b); /* has been done: strides */
  if (checked.error != GEMM_OK) return cudaErrorInvalidValue;
  GemmLines lines_c = {p.c, p.n, p.m, p.ldc, p.batches, p.stride_c};
  const GemmLines lines[] = {gemm_lines(p.a, major_a, p.m, p.k, p.lda, p.batches, p.stride_a),
                             gemm_lines(p.b, major_b, p.n, p.k, p.ldb, p.batches, p.stride_b),
                             lines_c};
  size_t bytes[3], set = 0, at = 0;
  for (int i = 0; i < 3; i++) {
    bytes[i] = gemm_extent(lines[i], gemm_element_bytes(i < 2 ? type : (int)p.c_type));
    set += gemm_aligned((uintptr_t)lines[i].memory % 256 + bytes[i]);
  }
  int device = 0, l2 = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device);
  if (error != cudaSuccess) return error;
  size_t sets = 1 + 3 * (size_t)l2 / set;
  scratch->sets = sets < GEMM_MOST_SETS ? (int)sets : GEMM_MOST_SETS;
  error = cudaMalloc(&scratch->memory, (size_t)scratch->sets * set);
  if (error != cudaSuccess) {
    (void)cudaGetLastError(); /* so that a later call does not find it */
    scratch->memory = NULL;
    return error;
  }
  p.workspace = NULL;
  for (int i = 0; i < scratch->sets && error == cudaSuccess; i++) {
    GemmProblem *q = &scratch->problems[i];
    *q = p;
    q->c = gemm_place(scratch, &at, p.c, bytes[2]);
    if (p.beta != 0) error = cudaMemsetAsync(q->c, 0, bytes[2], stream); /* beta reads it */
    if (i == 0) continue;
    void *a = gemm_place(scratch, &at, p.a, bytes[0]), *b = gemm_place(scratch, &at, p.b, bytes[1]);
    q->a = a, q->b = b;
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(a, p.a, bytes[0], cudaMemcpyDeviceToDevice, stream);
    }
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(b, p.b, bytes[1], cudaMemcpyDeviceToDevice, stream);
    }
  }
  return error;
}

/* ---- How it is measured ---- */

typedef struct {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  const GemmScratch *scratch;
} GemmStopwatch;

/* One configuration, bound to each set of operands. The first plan has the memory. */
typedef struct {
  PipelinedGemm plans[GEMM_MOST_SETS];
} GemmEntrant;

static inline GemmStatus gemm_enter(GemmEntrant *entrant, const GemmScratch *scratch, int type,
                                    GemmMajor major_a, GemmMajor major_b,
                                    const GemmConfiguration *c) {
  PipelinedGemm *plans = entrant->plans;
  GemmStatus status = gemm_plan_with(&plans[0], &scratch->problems[0], type, major_a, major_b, c);
  for (int i = 1; i < scratch->sets && status.error == GEMM_OK; i++) {
    plans[i] = plans[0];
    status = pipelined_gemm_rebind(&plans[i], &scratch->problems[i]);
    if (status.error != GEMM_OK) pipelined_gemm_end(&plans[0]);
  }
  return status;
}

/* Where a launch finds A and B: in L2 as far as they fit, or in memory. */
typedef enum { GEMM_IN_L2, GEMM_IN_MEMORY } GemmPlace;

/* Milliseconds of this many launches, one directly after the other, as a program would launch them. As many, but at
 * most 20, come before: the first ones find in L2 what another configuration has left there. */
static inline cudaError_t gemm_time(const GemmStopwatch *watch, const GemmEntrant *entrant,
                                    GemmPlace place, int launches, float *milliseconds) {
  cudaError_t error = cudaSuccess;
  int before = launches < 20 ? launches : 20;
  int sets = place == GEMM_IN_MEMORY ? watch->scratch->sets : 1;
  for (int i = 0; i < before + launches && error == cudaSuccess; i++) {
    if (i == before) error = cudaEventRecord(watch->begin, watch->stream);
    if (error == cudaSuccess)
      error = pipelined_gemm_launch(&entrant->plans[i % sets], watch->stream);
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
static inline cudaError_t gemm_heat(const GemmStopwatch *watch, const GemmEntrant *gemm,
                                    float *estimate) {
  const int some = 4, most = 20000;
  const float milliseconds = 60;
  float unused;
  cudaError_t error =
      gemm_time(watch, gemm, GEMM_IN_MEMORY, 1, &unused); /* the very first launch is not timed */
  if (error == cudaSuccess) error = gemm_time(watch, gemm, GEMM_IN_MEMORY, some, estimate);
  *estimate /= (float)some;
  if (error != cudaSuccess) return error;
  return gemm_time(watch, gemm, GEMM_IN_MEMORY, gemm_launches_for(milliseconds, *estimate, most),
                   &unused);
}

/* Measures two plans alternately, each of them first in every second round, so a clock that rises or falls changes both times.
 * The challenger wins with less than `wins` of the other one's time in the geometric mean. A round with a tenth
 * more is enough to lose. */
static inline cudaError_t gemm_match(const GemmStopwatch *watch, const GemmEntrant *best,
                                     const GemmEntrant *challenger, GemmPlace place, int launches,
                                     float wins, bool *won) {
  const int rounds = 6;
  const float hopeless = 1.1f;
  float ratios = 0; /* the sum of their logarithms */
  *won = false;
  for (int round = 0; round < rounds; round++) {
    float times[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
      int which = (round + i) % 2;
      cudaError_t error =
          gemm_time(watch, which == 0 ? best : challenger, place, launches, &times[which]);
      if (error != cudaSuccess) return error;
    }
    if (times[1] > hopeless * times[0]) return cudaSuccess;
    ratios += logf(times[1] / times[0]);
  }
  *won = ratios < (float)rounds * logf(wins);
  return cudaSuccess;
}

/* The challenger must win a short match, and then long ones, in which launches overlap as they will in use: blocks
 * of the next launch take places on SMs early. It must win where operands come from memory, and not lose where
 * they are in L2: the fastest there is often slower with operands that somebody else has just written or evicted. */
static inline cudaError_t gemm_is_faster(const GemmStopwatch *watch, const GemmEntrant *best,
                                         const GemmEntrant *challenger, float estimate,
                                         bool *faster) {
  float unused;
  int few = gemm_launches_for(1, estimate, 200), many = gemm_launches_for(3, estimate, 1000);
  cudaError_t error = gemm_time(watch, challenger, GEMM_IN_MEMORY, 1, &unused); /* the first */
  if (error == cudaSuccess) {
    error = gemm_match(watch, best, challenger, GEMM_IN_MEMORY, few, 1, faster);
  }
  if (error == cudaSuccess && *faster) {
    error = gemm_match(watch, best, challenger, GEMM_IN_MEMORY, many, 0.99f, faster);
  }
  if (error == cudaSuccess && *faster && watch->scratch->sets > 1) {
    error = gemm_match(watch, best, challenger, GEMM_IN_L2, many, 1, faster);
  }
  return error;
}

/* The likeliest configuration gives way only to one that also wins the last match, in turns of 10 ms: who beat
 * others that beat it in turn may still be slower. Each alone for 100 ms would say less: the clock then differs
 * by 5 % from one run to the next. */
static inline cudaError_t gemm_wins_at_last(const GemmStopwatch *watch,
                                            const GemmEntrant *likeliest,
                                            const GemmEntrant *challenger, float estimate,
                                            bool *won) {
  return gemm_match(watch, likeliest, challenger, GEMM_IN_MEMORY,
                    gemm_launches_for(10, estimate, 4000), 0.99f, won);
}

/* Finds the fastest of the first `count`. Each is compared with the best so far, so only two have memory at
 * a time. One that turns out not to fit the product takes no part. */
static inline GemmStatus gemm_find_fastest(GemmConfiguration *fastest, const GemmStopwatch *watch,
                                           int type, GemmMajor major_a, GemmMajor major_b,
                                           const GemmCandidates *candidates, int count) {
  float estimate = 0;
  GemmEntrant entrants[2]; /* 30 KB each */
  int best = 0, kept = 0;  /* which entrant, and which candidate it is */
  const GemmScratch *scratch = watch->scratch;
  GemmStatus status =
      gemm_enter(&entrants[0], scratch, type, major_a, major_b, &candidates->list[0]);
  if (status.error != GEMM_OK) return status;
  status = gemm_cuda_status(gemm_heat(watch, &entrants[0], &estimate), "measuring");
  for (int i = 1; i < count && status.error == GEMM_OK; i++) {
    GemmEntrant *challenger = &entrants[1 - best];
    bool faster = false;
    status = gemm_enter(challenger, scratch, type, major_a, major_b, &candidates->list[i]);
    if (status.error == GEMM_NOT_FOR_SHAPE || status.error == GEMM_OUT_OF_RANGE) {
      status = gemm_ok();
      continue;
    }
    if (status.error != GEMM_OK) break;
    status = gemm_cuda_status(gemm_is_faster(watch, &entrants[best], challenger, estimate, &faster),
                              "measuring");
    if (faster) best = 1 - best, kept = i;
    pipelined_gemm_end(&entrants[1 - best].plans[0]);
  }
  if (kept > 0 && status.error == GEMM_OK) {
    GemmEntrant *likeliest = &entrants[1 - best];
    bool faster = false;
    status = gemm_enter(likeliest, scratch, type, major_a, major_b, &candidates->list[0]);
    if (status.error == GEMM_OK) {
      status = gemm_cuda_status(
          gemm_wins_at_last(watch, likeliest, &entrants[best], estimate, &faster), "measuring");
      if (!faster) best = 1 - best;
      pipelined_gemm_end(&entrants[1 - best].plans[0]);
    }
  }
  *fastest = entrants[best].plans[0].configuration;
  pipelined_gemm_end(&entrants[best].plans[0]);
  return status;
}

/* Plans with the fastest of the first `count`, and frees what it measured with. */
static inline GemmStatus gemm_plan_fastest(PipelinedGemm *gemm, const GemmProblem *problem,
                                           int type, GemmMajor major_a, GemmMajor major_b,
                                           const GemmCandidates *candidates, int count,
                                           cudaStream_t stream) {
  GemmScratch scratch = {};
  GemmStopwatch watch = {stream, NULL, NULL, &scratch};
  GemmConfiguration fastest = {};
  cudaError_t error = gemm_get_scratch(&scratch, problem, type, major_a, major_b, stream);
  if (error == cudaSuccess) error = cudaEventCreate(&watch.begin);
  if (error == cudaSuccess) error = cudaEventCreate(&watch.end);
  GemmStatus status = gemm_cuda_status(error, "allocating what to measure with");
  if (status.error == GEMM_OK) {
    status = gemm_find_fastest(&fastest, &watch, type, major_a, major_b, candidates, count);
  }
  if (watch.begin != NULL) cudaEventDestroy(watch.begin);
  if (watch.end != NULL) cudaEventDestroy(watch.end);
  error = cudaFree(scratch.memory);
  if (status.error == GEMM_OK) status = gemm_cuda_status(error, "freeing what was measured with");
  if (status.error != GEMM_OK) return status;
  return gemm_plan_with(gemm, problem, type, major_a, major_b, &fastest);
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
  GemmProblem in_stream = *problem;
  in_stream.in_stream = 1, in_stream.stream = stream;
  status = gemm_check_capture(&in_stream);
  if (status.error != GEMM_OK) return status;
  status = gemm_candidates_for<TYPE, MAJOR_A, MAJOR_B>(problem, &candidates);
  if (status.error != GEMM_OK) return status;
  if (candidates.count < how_many) how_many = candidates.count;
  return gemm_plan_fastest(gemm, problem, TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B, &candidates,
                           how_many, stream);
}

#endif
