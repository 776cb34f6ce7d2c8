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
static const float HOPELESS = 1.9f, FAR = 1.3f, LEAST_PERSISTENT = 1e9f;
static GemmConfiguration candidates[MOST_CANDIDATES];
static int candidate_count;
static cudaStream_t stream;

typedef struct {
  Competitor competitor;
  cudaGraphExec_t graph;
  int launches; /* in the graph */
  bool finalist;
} Entrant;

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

/* Those that fit and that the rough estimate gives a chance. */
static int add_candidates(Entrant *list, Shape s) {
  float reckoned[MOST_CANDIDATES], fastest = 0;
  GemmProblem problem = gemm_problem(s.m, s.n, s.k, a, b, c);
  for (int i = 0; i < candidate_count; i++) {
    const GemmConfiguration *candidate = &candidates[i];
    reckoned[i] = 0;
    if (!gemm_fits(candidate, s.k, gemm_can_carry(&problem))) continue;
    if (candidate->persistent && (float)s.m * (float)s.n * (float)s.k < LEAST_PERSISTENT) continue;
    GemmFacts facts = gemm_facts(candidate, s.m, s.n, s.k, 1, 132);
    reckoned[i] = gemm_reckon(&facts);
    if (!candidate->direct && (fastest == 0 || reckoned[i] < fastest)) fastest = reckoned[i];
  }
  int count = 0;
  for (int i = 0; i < candidate_count; i++) {
    if (reckoned[i] == 0 || (!candidates[i].direct && reckoned[i] > HOPELESS * fastest)) continue;
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

static void measure_product(Shape s, FILE *csv) {
  static Entrant list[MOST_CANDIDATES + 1 + FINALISTS];
  static Competitor of_libraries[1 + MOST_ALGORITHMS];
  alarm(20); /* a kernel that hangs ends the program */
  int libraries = add_libraries(of_libraries, s), order[MOST_CANDIDATES + 8], finalists = 0;
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
    bool close = list[i].competitor.estimate < FAR * best || only_chosen || i < libraries;
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
      float each = entrant->competitor.estimate, milliseconds = best < 50 ? 0.4f : 2.0f;
      int replays = (int)(milliseconds * 1e3f / (each * (float)entrant->launches)) + 1;
      entrant->competitor.microseconds[round] = replayed(entrant, replays);
    }
  }
  for (int i = 0; i < count; i++) {
    Competitor *mine = &list[i].competitor;
    qsort(mine->microseconds, ROUNDS, sizeof(float), gemm_compare_floats);
    bool measured = mine->microseconds[0] > 0;
    fprintf(csv, "%d,%d,%d,%s,%.5g\n", s.m, s.n, s.k, mine->name,
            measured ? mine->microseconds[ROUNDS / 2] : mine->estimate);
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
                      {"--chosen", "1: only what the choice takes", &only_chosen, 0, 1}};
  program_begin("sweep", argc, argv, options, 4);
  double until = now() + (double)seconds;
  FILE *shapes = fopen(shapes_path, "r"), *csv = fopen(csv_path, "w");
  if (shapes == NULL) program_fail("cannot read %s", shapes_path);
  if (csv == NULL) program_fail("cannot write %s", csv_path);
  candidate_count = sweep_candidates(candidates);
  begin_competition((size_t)16384 * 28672);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  fprintf(csv, "m,n,k,program,microseconds\n");
  Shape s;
  int measured = 0;
  for (int i = 0; fscanf(shapes, "%d %d %d", &s.m, &s.n, &s.k) == 3; i++) {
    if (i % parts != part || now() > until) continue;
    measure_product(s, csv);
    CUDA_CHECK(cudaDeviceSynchronize());
    measured++;
  }
  fclose(csv);
  return program_end("%d products measured; all of ours agree with cuBLAS", measured);
}
