// sweep: the time of every configuration at every product of a list, for fit_model.py.
//
// Configurations that the rough estimate of gemm_choose.cuh finds hopeless are left out, those whose first
// estimate is far from the best are not measured again. Launches are replayed in a graph, which takes the host
// out of the time; the libraries' too. Each result is compared with cuBLAS's fp32 result before it is timed.
// There are no rests: the chip is hot.
//
//   sweep --shapes FILE --csv FILE --seconds 300 --part 0 --parts 2     every second product, from the first
//   sweep --shapes FILE --csv FILE --chosen 1          only the libraries and what the choice takes
//
// Lines of the CSV: m,n,k,program,microseconds. The measured list ends when the seconds are over.
// Without SWEEP_CANDIDATES the list is gemm_configurations.cuh's and that of the direct ones; with it, another
// file defines sweep_candidates().
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../bench_libraries.cuh"

enum { MOST_CANDIDATES = 256, MOST_PRODUCTS = 65536, MOST_LAUNCHES = 20 };

#ifdef SWEEP_CANDIDATES
int sweep_candidates(GemmConfiguration *list); /* how many */
#else
static int sweep_candidates(GemmConfiguration *list) {
  GemmConfigurations all = gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  GemmConfigurations direct = gemm_direct_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  memcpy(list, all.list, (size_t)all.count * sizeof(*list));
  memcpy(list + all.count, direct.list, (size_t)direct.count * sizeof(*list));
  return all.count + direct.count;
}
#endif

static long seconds = 300, part = 0, parts = 1, only_chosen = 0;
static long rested_one_in = 5, of_everything = 0, with_libraries = 1;
static const float HOPELESS = 1.9f, LEAST_PERSISTENT = 1e9f;
static const float BRIEF = 50, SLOW = 1.5f, SLOW_LONG = 1.3f, FAR = 1.25f,
                   FAR_LONG = 1.12f; /* BRIEF: microseconds */
static const double LARGE = 2048.0 * 2048 * 2048;
static GemmConfiguration candidates[MOST_CANDIDATES];
static int candidate_count;
static cudaStream_t stream;

typedef struct {
  Competitor competitor;
  cudaGraphExec_t graph;
  int launches; /* in the graph */
  bool finalist;
} Entrant;

/* The median, or the estimate if the first one was far from the best. */
static float time_of(const Entrant *entrant) {
  const Competitor *mine = &entrant->competitor;
  return mine->microseconds[0] > 0 ? mine->microseconds[1] : mine->estimate;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* launch() of bench_libraries.cuh, on the stream that is captured. */
static void launch_on_stream(const Competitor *competitor, Shape s) {
  float one = 1, zero = 0;
  if (competitor->kind == BY_PIPELINED_GEMM) {
    CUDA_CHECK(pipelined_gemm_launch(&competitor->gemm, stream));
  } else if (competitor->kind == BY_CUBLASLT) {
    CUBLAS_CHECK(cublasLtMatmul(lt, operation, &one, b, layout_b, a, layout_a, &zero, c, layout_c,
                                c, layout_c, &competitor->algorithm, workspace, workspace_bytes,
                                stream));
  } else {
    launch_cublas(s, c, CUDA_R_16BF);
  }
}

static void capture(Entrant *entrant, Shape s, float estimate) {
  cudaGraph_t graph;
  int launches = (int)(200 / estimate) + 1;
  entrant->launches = launches > MOST_LAUNCHES ? MOST_LAUNCHES : launches;
  CUBLAS_CHECK(cublasSetStream(blas, stream));
  CUBLAS_CHECK(cublasSetWorkspace(blas, workspace, workspace_bytes));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < entrant->launches; i++) launch_on_stream(&entrant->competitor, s);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&entrant->graph, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUBLAS_CHECK(cublasSetStream(blas, 0));
  CUBLAS_CHECK(cublasSetWorkspace(blas, workspace, workspace_bytes));
}

static float replayed(const Entrant *entrant, int replays) {
  float milliseconds;
  CUDA_CHECK(cudaEventRecord(begin, stream));
  for (int i = 0; i < replays; i++) CUDA_CHECK(cudaGraphLaunch(entrant->graph, stream));
  CUDA_CHECK(cudaEventRecord(end, stream));
  CUDA_CHECK(cudaEventSynchronize(end));
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  return milliseconds * 1e3f / (float)(replays * entrant->launches);
}

/* Of the product's own configurations the model knows the time; of others it knows what their terms predict. */
static int in_model(const GemmConfiguration *candidate) {
  GemmConfigurations all = gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  for (int i = 0; i < all.count; i++) {
    if (strcmp(all.list[i].name, candidate->name) == 0) return i;
  }
  return -1;
}

static float predicted(const GemmConfiguration *candidate, const GemmFacts *facts,
                       const GemmSide *side) {
  int known = in_model(candidate);
  float base = gemm_base(&gemm_model, known < 0 ? 0 : known, facts);
  if (known < 0) return expf(base);
  float aside[GEMM_ASIDE], features[GEMM_FEATURES], sums[GEMM_WIDTH] = {0};
  gemm_aside(side, aside);
  gemm_add_weighted<0, GEMM_NETWORKS>(sums, gemm_model.aside, aside, GEMM_ASIDE);
  gemm_features(facts, base, features);
  return expf(base + gemm_off<0, GEMM_NETWORKS>(&gemm_model, known, features, sums));
}

static bool drawn(double share) { return rand() < share * RAND_MAX; }

/* Those that fit, that the rough estimate gives a chance, and that the model of now does not find slow; and
 * some others, so that its errors are found. */
static void find_worthwhile(Shape s, GemmCarried carried, bool *worthwhile) {
  const double of_slow = 0.1, of_unknown = 0.6; /* shares */
  const GemmSide sides[2] = {gemm_side(s.m, s.n, s.k, 1, 132, false),
                             gemm_side(s.m, s.n, s.k, 1, 132, true)};
  float reckoned[MOST_CANDIDATES], times[MOST_CANDIDATES], fastest = 0, least = 0;
  for (int i = 0; i < candidate_count; i++) {
    const GemmConfiguration *candidate = &candidates[i];
    reckoned[i] = 0;
    if (!gemm_fits(candidate, s.k, carried)) continue;
    if (candidate->persistent && (float)s.m * (float)s.n * (float)s.k < LEAST_PERSISTENT) continue;
    const GemmSide *side = &sides[candidate->swapped];
    GemmFacts facts = gemm_facts(candidate, side);
    reckoned[i] = gemm_reckon(&facts);
    times[i] = predicted(candidate, &facts, side);
    if (candidate->direct) continue;
    if (fastest == 0 || reckoned[i] < fastest) fastest = reckoned[i];
    if (in_model(candidate) >= 0 && (least == 0 || times[i] < least)) least = times[i];
  }
  for (int i = 0; i < candidate_count; i++) {
    bool is_known = in_model(&candidates[i]) >= 0,
         slow = times[i] > (least < BRIEF ? SLOW : SLOW_LONG) * least;
    worthwhile[i] = reckoned[i] > 0 &&
                    (candidates[i].direct || (reckoned[i] <= HOPELESS * fastest &&
                                              drawn(slow && !of_everything      ? of_slow
                                                    : is_known || of_everything ? 1
                                                                                : of_unknown)));
  }
}

static int add_candidates(Entrant *list, Shape s) {
  bool worthwhile[MOST_CANDIDATES];
  GemmProblem problem = gemm_problem(s.m, s.n, s.k, a, b, c);
  find_worthwhile(s, gemm_can_carry(&problem), worthwhile);
  int count = 0;
  for (int i = 0; i < candidate_count; i++) {
    if (!worthwhile[i]) continue;
    memset(&list[count], 0, sizeof(list[count]));
    Competitor *mine = &list[count].competitor;
    mine->kind = BY_PIPELINED_GEMM;
    GemmStatus status = gemm_plan_with(&mine->gemm, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR,
                                       &candidates[i], 0);
    if (status.error == GEMM_NOT_FOR_SHAPE) continue;
    if (status.error != GEMM_OK) {
      fprintf(stderr, "%d x %d x %d by %s: error %d\n", s.m, s.n, s.k, candidates[i].name,
              (int)status.error);
      continue;
    }
    snprintf(mine->name, sizeof(mine->name), "%s", candidates[i].name);
    count++;
  }
  return count;
}

/* The best again, as bench_shapes measures: after a rest, launched one by one. */
static void measure_rested(Entrant *list, int *order, int count, Shape s, FILE *csv) {
  enum { MOST_RESTED = 5, ROUNDS = 2, REST = 15, MILLISECONDS = 20 };
  for (int i = 0; i < count; i++) {
    for (int j = i + 1; j < count; j++) {
      if (time_of(&list[order[j]]) >= time_of(&list[order[i]])) continue;
      int held = order[i];
      order[i] = order[j];
      order[j] = held;
    }
  }
  if (count > MOST_RESTED) count = MOST_RESTED;
  float times[MOST_RESTED][ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < count; i++) {
      times[i][round] = measure(&list[order[i]].competitor, s, REST, MILLISECONDS);
    }
  }
  for (int i = 0; i < count; i++) {
    fprintf(csv, "%d,%d,%d,rested:%s,%.5g\n", s.m, s.n, s.k, list[order[i]].competitor.name,
            (times[i][0] + times[i][1]) / 2);
  }
}

#ifndef SWEEP_CANDIDATES
static int add_chosen(Entrant *list, Shape s) {
  memset(list, 0, sizeof(*list));
  GemmProblem problem = gemm_problem(s.m, s.n, s.k, a, b, c);
  GemmStatus status = pipelined_gemm_plan<GEMM_BF16>(&list->competitor.gemm, &problem);
  if (status.error != GEMM_OK) program_fail("%d x %d x %d is not planned", s.m, s.n, s.k);
  list->competitor.kind = BY_PIPELINED_GEMM;
  snprintf(list->competitor.name, sizeof(list->competitor.name), "chosen:%s",
           list->competitor.gemm.configuration->name);
  return 1;
}
#endif

/* add_libraries() without cuBLASLt, whose algorithms take longer to try than ours. */
static int add_cublas(Competitor *list, Shape s) {
  gemm_fill_normal<<<1024, 256>>>(a, (size_t)s.m * s.k, 1);
  gemm_fill_normal<<<1024, 256>>>(b, (size_t)s.n * s.k, 2);
  memset(&list[0], 0, sizeof(list[0]));
  snprintf(list[0].name, sizeof(list[0].name), "cublas");
  list[0].kind = BY_CUBLAS;
  launch_cublas(s, reference, CUDA_R_32F);
  launch_cublas(s, c, CUDA_R_16BF);
  list[0].estimate = timed(&list[0], s, 1);
  return 1;
}

static void measure_product(Shape s, bool rested, FILE *csv) {
  static Entrant list[MOST_CANDIDATES + 1 + FINALISTS];
  static Competitor of_libraries[1 + MOST_ALGORITHMS];
  alarm(20); /* a kernel that hangs ends the program */
  int libraries = (with_libraries ? add_libraries : add_cublas)(of_libraries, s);
  int order[MOST_CANDIDATES + 8], finalists = 0;
  memset(list, 0, sizeof(*list) * (size_t)libraries);
  for (int i = 0; i < libraries; i++) list[i].competitor = of_libraries[i];
  int count = libraries;
#ifndef SWEEP_CANDIDATES
  if (only_chosen) {
    count += add_chosen(list + libraries, s);
  } else
#endif
    count += add_candidates(list + libraries, s);
  float best = list[0].competitor.estimate;
  for (int i = 0; i < count; i++) {
    Entrant *entrant = &list[i];
    if (i >= libraries) {
      check_competitor(&entrant->competitor, s);
      launch(&entrant->competitor, s);
      entrant->competitor.estimate = timed(&entrant->competitor, s, 1);
    }
    capture(entrant, s, entrant->competitor.estimate);
    float once = replayed(entrant, 1);
    entrant->competitor.estimate = once > 1000 ? once : replayed(entrant, 1);
    if (entrant->competitor.estimate < best) best = entrant->competitor.estimate;
  }
  for (int i = 0; i < count; i++) {
    bool close = list[i].competitor.estimate < (best < BRIEF ? FAR : FAR_LONG) * best ||
                 only_chosen || i < libraries;
    if (close) order[finalists++] = i;
  }
  enum { ROUNDS = 3 };
  for (int round = 0; round < ROUNDS; round++) {
    for (int j = finalists - 1; j > 0; j--) {
      int other = rand() % (j + 1), held = order[j];
      order[j] = order[other];
      order[other] = held;
    }
    for (int j = 0; j < finalists; j++) {
      Entrant *entrant = &list[order[j]];
      float each = entrant->competitor.estimate, milliseconds = best < BRIEF ? 0.3f : 1.2f;
      int replays = (int)(milliseconds * 1e3f / (each * (float)entrant->launches)) + 1;
      entrant->competitor.microseconds[round] = replayed(entrant, replays);
    }
  }
  for (int i = 0; i < count; i++) {
    qsort(list[i].competitor.microseconds, ROUNDS, sizeof(float), gemm_compare_floats);
  }
  if (rested) measure_rested(list, order, finalists, s, csv);
  for (int i = 0; i < count; i++) {
    Competitor *mine = &list[i].competitor;
    fprintf(csv, "%d,%d,%d,%s,%.5g\n", s.m, s.n, s.k, mine->name, time_of(&list[i]));
    CUDA_CHECK(cudaGraphExecDestroy(list[i].graph));
    if (mine->kind == BY_PIPELINED_GEMM) CUDA_CHECK(pipelined_gemm_end(&mine->gemm));
  }
  fflush(csv);
}

static const char *take_file(int *argc, char **argv, const char *option) {
  for (int i = 1; i + 1 < *argc; i++) {
    if (strcmp(argv[i], option) != 0) continue;
    const char *file = argv[i + 1];
    for (int j = i; j + 2 <= *argc; j++) argv[j] = argv[j + 2];
    *argc -= 2;
    return file;
  }
  fprintf(stderr, "sweep: say %s FILE\n", option);
  exit(EXIT_USAGE);
}

int main(int argc, char **argv) {
  const char *shapes_path = take_file(&argc, argv, "--shapes");
  const char *csv_path = take_file(&argc, argv, "--csv");
  Option options[] = {{"--seconds", "after which no further product is begun", &seconds, 1, 3600},
                      {"--part", "of the products, from 0", &part, 0, 63},
                      {"--parts", "into which the products are dealt", &parts, 1, 64},
                      {"--chosen", "1: only what the choice takes", &only_chosen, 0, 1},
                      {"--everything", "1: also what the model finds slow", &of_everything, 0, 1},
                      {"--libraries", "0: without cuBLASLt", &with_libraries, 0, 1},
                      {"--rested", "of so many large products, one also after rests; 0: none",
                       &rested_one_in, 0, 1000}};
  program_begin("sweep", argc, argv, options, 7);
  double until = now() + (double)seconds;
  FILE *shapes = fopen(shapes_path, "r"), *csv = fopen(csv_path, "w");
  if (shapes == NULL) program_fail("cannot read %s", shapes_path);
  if (csv == NULL) program_fail("cannot write %s", csv_path);
  candidate_count = sweep_candidates(candidates);
  begin_competition((size_t)16384 * 28672);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  fprintf(csv, "m,n,k,program,microseconds\n");
  Shape s;
  int measured = 0, large = 0;
  for (int i = 0; fscanf(shapes, "%d %d %d", &s.m, &s.n, &s.k) == 3; i++) {
    if (i % parts != part || now() > until) continue;
    bool is_large = (double)s.m * s.n * s.k >= LARGE;
    large += is_large;
    measure_product(s, is_large && rested_one_in > 0 && large % rested_one_in == 0, csv);
    CUDA_CHECK(cudaDeviceSynchronize());
    measured++;
  }
  fclose(csv);
  return program_end("%d products measured; all of ours agree with cuBLAS", measured);
}
