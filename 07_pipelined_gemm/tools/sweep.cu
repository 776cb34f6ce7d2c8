// sweep: the time of many configurations at every product of a list, for fit_model.py.
//
// Only configurations that the model of now does not find much slower than the best are measured, and some others, so
// that its errors are found. Those whose first estimate is far from the best are not measured again. Launches follow
// one another in a stream, as in bench_shapes and in programs: replayed graphs make several CTAs on an SM look better
// than they are. Each result is compared with cuBLAS's fp32 result before it is timed. There are no rests. With
// --heat, those that are measured run in turn for so many milliseconds before: after 50 to 100 milliseconds, a chip at its power
// limit lowers its clock, which makes other configurations the fastest.
//
//   sweep --shapes FILE --csv FILE --seconds 300 --part 0 --parts 2     every second product, from the first
//   sweep --shapes FILE --csv FILE --epilogues 1                        each product also with three epilogues
//
// Lines of the CSV: m,n,k,program,microseconds. With epilogues, a program's name begins with beta:, gelu: (with a bias)
// or fp32: (C in fp32). The measured list ends when the seconds are over. Without SWEEP_CANDIDATES the list is that of
// gemm_configurations.cuh; with it, another file defines sweep_candidates().
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../bench_libraries.cuh"

enum { MOST_CANDIDATES = 256, ROUNDS = 3 };

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

static long seconds = 300, part = 0, parts = 1, with_epilogues, of_everything, with_libraries, heat;
static const float HOPELESS = 2, LEAST_PERSISTENT = 1e9f;
/* How much slower than the best a configuration may be, as the model predicts, with an epilogue, and as the first
 * estimate finds, to be measured. */
static const float SLOW = 1.3f, SLOW_WITH_EPILOGUE = 1.6f, FAR = 1.18f;
static GemmConfiguration candidates[MOST_CANDIDATES];
static int candidate_count;

typedef enum { PLAIN, BETA, BIAS_GELU, IN_FP32, EPILOGUES } Epilogue;
static const char *const epilogue_names[] = {"", "beta:", "gelu:", "fp32:"};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The problem with an epilogue. What the bias is does not matter for the time. */
static GemmProblem problem_of(Shape s, Epilogue epilogue) {
  GemmProblem problem = gemm_problem(s.m, s.n, s.k, a, b, c);
  if (epilogue == BETA) problem.beta = 1;
  if (epilogue == BIAS_GELU) problem.bias = b, problem.activation = GEMM_GELU;
  if (epilogue == IN_FP32) problem.c_type = GEMM_FP32;
  return problem;
}

/* Microseconds of a launch, averaged over so many, after some others: the first ones find what another program has
 * left in L2, and the first of all waits for the host. */
static float timed_in_stream(const Competitor *competitor, Shape s, float microseconds) {
  const float before = 100;
  for (int i = 0; i <= (int)(before / competitor->estimate); i++) launch(competitor, s);
  return timed(competitor, s, (int)(microseconds / competitor->estimate) + 1);
}

static void estimate_briefly(Competitor *competitor, Shape s) {
  const float brief = 120;
  launch(competitor, s);
  competitor->estimate = timed(competitor, s, 2);
  if (competitor->estimate < 1000) competitor->estimate = timed_in_stream(competitor, s, brief);
}

/* Configurations that the model does not know are expected to be fast. */
static float predicted(const GemmConfiguration *candidate, const GemmFacts *facts,
                       const GemmSide *side) {
  GemmConfigurations all = gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  int known = 0;
  while (known < all.count && strcmp(all.list[known].name, candidate->name) != 0) known++;
  if (known == all.count) return 0;
  float time = gemm_base(&gemm_model, known, facts);
  float aside[GEMM_ASIDE], features[GEMM_FEATURES], sums[GEMM_WIDTH] = {0};
  gemm_aside(side, aside);
  gemm_add_weighted<GEMM_WIDTH, GEMM_WIDTH>(sums, gemm_model.aside[0], aside, GEMM_ASIDE);
  gemm_features(facts, time, features);
  for (int network = 0; network < GEMM_NETWORKS; network++) {
    time += gemm_off(&gemm_model, network, known, features, sums);
  }
  return expf(time);
}

static bool drawn(double share) { return rand() < share * RAND_MAX; }

/* Those that fit, that the rough estimate gives a chance, and that the model of now does not find slow; and
 * some others, so that its errors are found. */
static void find_worthwhile(Shape s, Epilogue epilogue, bool *worthwhile) {
  const double of_slow = 0.05; /* share */
  const GemmSides sides = gemm_sides(s.m, s.n, s.k, 1, 132);
  const GemmProblem problem = problem_of(s, epilogue);
  GemmCarried carried = gemm_can_carry(&problem);
  float reckoned[MOST_CANDIDATES], times[MOST_CANDIDATES], fastest = 0, least = 0;
  for (int i = 0; i < candidate_count; i++) {
    const GemmConfiguration *candidate = &candidates[i];
    reckoned[i] = 0;
    if (!gemm_fits(candidate, s.k, carried)) continue;
    if (candidate->persistent && (float)s.m * (float)s.n * (float)s.k < LEAST_PERSISTENT) continue;
    const GemmSide *side = &sides.list[gemm_side_of(candidate)];
    GemmFacts facts = gemm_facts(candidate, side);
    reckoned[i] = gemm_reckon(&facts);
    times[i] = predicted(candidate, &facts, side);
    if (candidate->direct) continue;
    if (fastest == 0 || reckoned[i] < fastest) fastest = reckoned[i];
    if (times[i] > 0 && (least == 0 || times[i] < least)) least = times[i];
  }
  float slow = (with_epilogues ? SLOW_WITH_EPILOGUE : SLOW) * least;
  for (int i = 0; i < candidate_count; i++) {
    worthwhile[i] = reckoned[i] > 0 &&
                    (candidates[i].direct ||
                     (reckoned[i] <= HOPELESS * fastest &&
                      (of_everything || times[i] <= slow || (!with_epilogues && drawn(of_slow)))));
  }
}

static int add_candidates(Competitor *list, Shape s, Epilogue epilogue) {
  bool worthwhile[MOST_CANDIDATES];
  const GemmProblem problem = problem_of(s, epilogue);
  find_worthwhile(s, epilogue, worthwhile);
  int count = 0;
  for (int i = 0; i < candidate_count; i++) {
    if (!worthwhile[i]) continue;
    memset(&list[count], 0, sizeof(list[count]));
    Competitor *mine = &list[count];
    mine->kind = BY_PIPELINED_GEMM;
    GemmStatus status = gemm_plan_with(&mine->gemm, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR,
                                       &candidates[i], 0);
    if (status.error == GEMM_NOT_FOR_SHAPE) continue;
    if (status.error != GEMM_OK) {
      fprintf(stderr, "%d x %d x %d by %s: error %d\n", s.m, s.n, s.k, candidates[i].name,
              (int)status.error);
      continue;
    }
    snprintf(mine->name, sizeof(mine->name), "%s%s", epilogue_names[epilogue], candidates[i].name);
    count++;
  }
  return count;
}

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

/* Once a round, in a new random order. What all lose or gain in a round is taken out of their times. */
static void measure_in_turn(Competitor *list, int *order, int count, Shape s) {
  const float brief = 50;
  float slowness[ROUNDS], mean = 0;
  for (int round = 0; round < ROUNDS; round++) {
    shuffle(order, count);
    slowness[round] = 0;
    for (int j = 0; j < count; j++) {
      Competitor *mine = &list[order[j]];
      float time = timed_in_stream(mine, s, mine->estimate < brief ? 500 : 1000);
      mine->microseconds[round] = time;
      slowness[round] += logf(time) / (float)count;
    }
    mean += slowness[round] / (float)ROUNDS;
  }
  for (int j = 0; j < count; j++) {
    float *times = list[order[j]].microseconds;
    for (int round = 0; round < ROUNDS; round++) times[round] *= expf(mean - slowness[round]);
    qsort(times, ROUNDS, sizeof(float), gemm_compare_floats);
  }
}

/* Runs them in turn. */
static void heat_up(const Competitor *list, const int *order, int count, Shape s) {
  const float each = 2, most = (float)heat; /* milliseconds */
  int j = 0;
  for (float done = 0; done < most; done += each, j = (j + 1) % count) {
    timed(&list[order[j]], s, 1 + (int)(each * 1e3f / list[order[j]].estimate));
  }
}

static void measure_product(Shape s, Epilogue epilogue, FILE *csv) {
  static Competitor list[MOST_CANDIDATES + 1 + MOST_ALGORITHMS];
  int order[MOST_CANDIDATES + 1 + MOST_ALGORITHMS], finalists = 0, libraries = 0;
  alarm(20); /* a kernel that hangs ends the program */
  if (epilogue == PLAIN) libraries = (with_libraries ? add_libraries : add_cublas)(list, s);
  int count = libraries + add_candidates(list + libraries, s, epilogue);
  float best = 0;
  for (int i = 0; i < count; i++) {
    if (i >= libraries && epilogue == PLAIN) check_competitor(&list[i], s);
    estimate_briefly(&list[i], s);
    if (i >= libraries && (best == 0 || list[i].estimate < best)) best = list[i].estimate;
  }
  for (int i = 0; i < count; i++) {
    if (list[i].estimate < FAR * best || i < libraries) order[finalists++] = i;
  }
  heat_up(list, order, finalists, s);
  measure_in_turn(list, order, finalists, s);
  for (int i = 0; i < count; i++) {
    const float *times = list[i].microseconds; /* sorted */
    fprintf(csv, "%d,%d,%d,%s,%.5g\n", s.m, s.n, s.k, list[i].name,
            times[0] > 0 ? times[ROUNDS / 2] : list[i].estimate);
    CUDA_CHECK(pipelined_gemm_end(&list[i].gemm));
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
  Option options[] = {
      {"--seconds", "after which no further product is begun", &seconds, 1, 3600},
      {"--part", "of the products, from 0", &part, 0, 63},
      {"--parts", "into which the products are dealt", &parts, 1, 64},
      {"--everything", "1: also what the model finds slow", &of_everything, 0, 1},
      {"--libraries", "1: cuBLASLt too", &with_libraries, 0, 1},
      {"--heat", "milliseconds of load before each product is measured", &heat, 0, 1000},
      {"--epilogues", "1: also with epilogues", &with_epilogues, 0, 1}};
  program_begin("sweep", argc, argv, options, 7);
  double until = now() + (double)seconds;
  FILE *shapes = fopen(shapes_path, "r"), *csv = fopen(csv_path, "w");
  if (shapes == NULL) program_fail("cannot read %s", shapes_path);
  if (csv == NULL) program_fail("cannot write %s", csv_path);
  candidate_count = sweep_candidates(candidates);
  begin_competition((size_t)16384 * 28672);
  fprintf(csv, "m,n,k,program,microseconds\n");
  Shape s;
  int measured = 0;
  for (int i = 0; fscanf(shapes, "%d %d %d", &s.m, &s.n, &s.k) == 3; i++) {
    if (i % parts != part || now() > until) continue;
    for (int epilogue = PLAIN; epilogue < (with_epilogues ? EPILOGUES : 1); epilogue++) {
      measure_product(s, (Epilogue)epilogue, csv);
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    measured++;
  }
  fclose(csv);
  return program_end("%d products measured; all of ours agree with cuBLAS", measured);
}
