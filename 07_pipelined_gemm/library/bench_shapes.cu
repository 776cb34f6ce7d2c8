// bench_shapes: library/ compared with cuBLAS and cuBLASLt at every shape of a list.
//
// link: -lcublas -lcublasLt
//
// The chip is hot, and the programs take turns, or with --rest each measurement begins after a rest: compete() in
// bench_libraries.cuh.
//
// For cuBLASLt, all algorithms that its heuristics name are tried, and the fastest take part in the rounds. Every
// result of ours is compared with cuBLAS's fp32 result. The data are normally distributed.
//
// The library takes part twice: with the configuration that it chooses by its estimate, and with the one that
// pipelined_gemm_plan_measured() keeps of the --candidates with the least estimates. If both are the same, they
// have one time. How long the measured plan took is printed as the time of "planning".
//
//   bench_shapes --shapes FILE --csv FILE                    both plans, and the libraries
//   bench_shapes --shapes FILE --csv FILE --all 1            every configuration as well
//
// A line of FILE is "m n k". The CSV has a line for each: m,n,k, and "PROGRAM MICROSECONDS;...". The programs are
// cublas, cublaslt_NUMBER, chosen:NAME, measured:NAME and planning; with --all also each NAME.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench_libraries.cuh"
#include "gemm_measured.cuh"

enum {
  EVERY = GEMM_MOST_CANDIDATES,
  OURS = 2 + EVERY,
  MOST_COMPETITORS = 1 + MOST_ALGORITHMS + OURS
};
static PipelinedGemm plans[OURS];
static long rest_milliseconds = 0, measured_milliseconds = 10, rounds = 15, all_configurations;
static long candidates = GEMM_MEASURED;
static double planning;  // microseconds of the last measured plan

// The wall clock.
static double microseconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

enum { CHOSEN, MEASURED, CONFIGURATIONS };  // the order of ours

static GemmStatus plan_ours(PipelinedGemm *gemm, const GemmProblem *problem, int which) {
  if (which == CHOSEN) return pipelined_gemm_plan<GEMM_BF16>(gemm, problem);
  if (which == MEASURED) {
    double begun = microseconds_now();
    GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(gemm, problem, 0, (int)candidates);
    planning = microseconds_now() - begun;
    return status;
  }
  GemmCandidates candidates;
  GemmStatus status =
      gemm_candidates_for<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>(problem, &candidates);
  if (status.error != GEMM_OK) return status;
  which -= CONFIGURATIONS;
  if (which >= candidates.count) return gemm_status(GEMM_NOT_FOR_SHAPE, "no more", 0, 0, 0);
  return gemm_plan_with(gemm, problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR,
                        &candidates.list[which]);
}

static void launch_ours(const void *gemm) {
  CUDA_CHECK(pipelined_gemm_launch((const PipelinedGemm *)gemm, 0));
}

// Those that are far slower than `best`, the fastest library, take no part with --all.
static int add_ours(Competitor *list, Shape s, float best) {
  static const char *const prefixes[] = {"chosen:", "measured:", ""};
  GemmProblem problem = gemm_problem(s.m, s.n, s.k, a, b, c);
  int count = 0, most = CONFIGURATIONS + (all_configurations ? EVERY : 0);
  for (int i = 0; i < most; i++) {
    Competitor *mine = &list[count];
    memset(mine, 0, sizeof(*mine));
    mine->kind = BY_LIBRARY;
    mine->launch_library = launch_ours, mine->gemm = &plans[count];
    GemmStatus status = plan_ours(&plans[count], &problem, i);
    if (status.error == GEMM_NOT_FOR_SHAPE) continue;
    if (status.error != GEMM_OK) {
      char text[256];
      pipelined_gemm_explain(status, text, sizeof(text));
      program_fail("%d x %d x %d: %s", s.m, s.n, s.k, text);
    }
    estimate(mine, s);
    if (i >= CONFIGURATIONS && mine->estimate > 1.4f * best) {
      CUDA_CHECK(pipelined_gemm_end(&plans[count]));
      continue;
    }
    if (mine->estimate < best) best = mine->estimate;
    snprintf(mine->name, sizeof(mine->name), "%s%s",
             prefixes[i < CONFIGURATIONS ? i : CONFIGURATIONS], pipelined_gemm_name(&plans[count]));
    count++;
  }
  return count;
}

// Measures a shape; appends to the CSV.
static void bench_shape(Shape s, FILE *csv) {
  static Competitor list[MOST_COMPETITORS];
  alarm(20); /* a kernel that hangs ends the program */
  int libraries = add_libraries(list, s), order[MOST_COMPETITORS], entrants = 0;
  float best = fminf(list[0].estimate, list[1].estimate);
  int count = libraries + add_ours(list + libraries, s, best);
  for (int i = libraries; i < count; i++) {
    check_competitor(&list[i], s);
    best = fminf(best, list[i].estimate);
  }
  Competitor *chosen = &list[libraries + CHOSEN], *measured = &list[libraries + MEASURED];
  bool same = strcmp(plans[MEASURED].name, plans[CHOSEN].name) == 0;
  for (int i = 0; i < count; i++) {
    if (same && &list[i] == measured) continue;
    // Configurations that are far slower than the best are not measured again.
    if (!all_configurations || list[i].estimate < 1.25f * best) order[entrants++] = i;
  }
  compete(list, order, entrants, s, rounds, rest_milliseconds, measured_milliseconds);
  fprintf(csv, "%d,%d,%d", s.m, s.n, s.k);
  for (int i = 0; i < count; i++) {
    const Competitor *timed = same && &list[i] == measured ? chosen : &list[i];
    fprintf(csv, "%c%s %.3f", i == 0 ? ',' : ';', list[i].name,
            timed->microseconds[0] > 0 ? timed->microseconds[rounds / 2] : timed->estimate);
  }
  for (int i = 0; i < count - libraries; i++) CUDA_CHECK(pipelined_gemm_end(&plans[i]));
  fprintf(csv, ";planning %.3f\n", planning);
  fflush(csv);
}

int main(int argc, char **argv) {
  const char *shapes_path = NULL, *csv_path = NULL;
  int kept = 1;
  for (int i = 1; i < argc; i++) {  // the files; the other options are numbers
    if (strcmp(argv[i], "--shapes") == 0 && i + 1 < argc) {
      shapes_path = argv[++i];
    } else if (strcmp(argv[i], "--csv") == 0 && i + 1 < argc) {
      csv_path = argv[++i];
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  Option options[] = {
      {"--all", "1: every configuration", &all_configurations, 0, 1},
      {"--candidates", "how many the measured plan measures", &candidates, 1, 1000},
      {"--rest", "milliseconds before each measurement; 0: the chip stays hot", &rest_milliseconds,
       0, 1000},
      {"--milliseconds", "length of each measurement", &measured_milliseconds, 1, 10000},
      {"--rounds", "measurements of each product; the median counts", &rounds, 1, MOST_ROUNDS}};
  program_begin("bench_shapes", argc, argv, options, 5);
  if (shapes_path == NULL || csv_path == NULL) {
    fprintf(stderr, "bench_shapes: say --shapes FILE and --csv FILE\n");
    return EXIT_USAGE;
  }
  FILE *shapes = fopen(shapes_path, "r"), *csv = fopen(csv_path, "w");
  if (shapes == NULL) program_fail("cannot read %s", shapes_path);
  if (csv == NULL) program_fail("cannot write %s", csv_path);

  begin_competition((size_t)16384 * 28672);
  fprintf(csv, "m,n,k,the programs and their microseconds\n");
  Shape s;
  int count = 0;
  while (fscanf(shapes, "%d %d %d", &s.m, &s.n, &s.k) == 3) {
    bench_shape(s, csv);
    count++;
  }
  fclose(csv);
  return program_end("%d shapes measured; all of ours agree with cuBLAS", count);
}
