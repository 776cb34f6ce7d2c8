// bench_ladder: the whole ladder, pipelined_gemm, cuBLAS and cuBLASLt at 8192 x 8192 x 8192, in one
// interleaved run.
//
// link: -lcublas -lcublasLt
//
// Every program is measured in seven rounds. Each round has a new random order, so that no program
// always runs after one that heats the chip. The chip reaches its power limit within milliseconds and
// then lowers its clock. So it rests for 40 ms before each measurement, which takes about 15 ms. The data
// are normally distributed (zeros run faster, because fewer wires toggle). For cuBLASLt, the fastest
// of the algorithms that its heuristics name is measured. bench_shapes measures other shapes.
//
//   bench_ladder --bench         writes build/07_pipelined_gemm/ladder.csv
#include "accumulator.cuh"
#include "bench_libraries.cuh"

// Each rung is a whole program; its functions live in a namespace of its own here.
#define main rung_main
namespace serial {
#include "serial.cu"
}
namespace ring {
#include "ring.cu"
}
namespace producer_consumer {
#include "producer_consumer.cu"
}
namespace two_consumers {
#include "two_consumers.cu"
}
namespace multicast {
#include "multicast.cu"
}
namespace persistent {
#include "persistent.cu"
}
namespace overlapped_epilogue {
#include "overlapped_epilogue.cu"
}
#undef main

enum { SIZE = 8192, ROUNDS = 7, MOST_COMPETITORS = 32, REST = 40, MEASURED = 15 };  // milliseconds

static void add_rung(Competitor *competitor, const char *name, GemmPrepare *prepare,
                     GemmLaunch *rung_launch, Shape s) {
  memset(competitor, 0, sizeof(*competitor));
  snprintf(competitor->name, sizeof(competitor->name), "%s", name);
  competitor->kind = BY_RUNG;
  competitor->launch = rung_launch;
  LadderProblem *problem = &competitor->plan.problem;
  problem->m = s.m, problem->n = s.n, problem->k = s.k;
  problem->a = a, problem->b = b, problem->c = c;
  prepare(&competitor->plan);
}

// The configuration that the model picks here. Compiling all the others would take a minute.
static void add_pipelined(Competitor *competitor, Shape s) {
  static const GemmConfiguration chosen = gemm_persistent_configuration<
      GemmPersistentTile<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, 128, 256, 0, 2, 1, 4, 2> >(
      "carry_128x256_2x1", 9);
  memset(competitor, 0, sizeof(*competitor));
  GemmProblem problem = gemm_problem(s.m, s.n, s.k, a, b, c);
  GemmStatus status = gemm_plan_with(&competitor->gemm, &problem, GEMM_BF16, GEMM_K_MAJOR,
                                     GEMM_K_MAJOR, &chosen, 0);
  char text[256];
  pipelined_gemm_explain(status, text, sizeof(text));
  if (status.error != GEMM_OK) program_fail("%d x %d x %d: %s", s.m, s.n, s.k, text);
  competitor->kind = BY_PIPELINED_GEMM;
  snprintf(competitor->name, sizeof(competitor->name), "pipelined_gemm");
}

static int add_ours(Competitor *list, Shape s) {
  int count = 0;
  add_rung(&list[count++], "serial", serial::gemm_prepare, serial::gemm_launch, s);
  add_rung(&list[count++], "ring", ring::gemm_prepare, ring::gemm_launch, s);
  add_rung(&list[count++], "producer_consumer", producer_consumer::gemm_prepare,
           producer_consumer::gemm_launch, s);
  add_rung(&list[count++], "two_consumers", two_consumers::gemm_prepare, two_consumers::gemm_launch,
           s);
  add_rung(&list[count++], "multicast", multicast::gemm_prepare, multicast::gemm_launch, s);
  add_rung(&list[count++], "persistent", persistent::gemm_prepare, persistent::gemm_launch, s);
  add_rung(&list[count++], "overlapped_epilogue", overlapped_epilogue::gemm_prepare,
           overlapped_epilogue::gemm_launch, s);
  add_pipelined(&list[count++], s);
  return count;
}

static double teraflops(Shape s, float microseconds) {
  return 2.0 * s.m * s.n * s.k / microseconds * 1e-6;
}

// Of cuBLASLt's algorithms only the best is shown.
static void write_ladder(Competitor *list, int libraries, int count, Shape s, FILE *csv) {
  enum { MEDIAN = ROUNDS / 2 };
  int best = 1;
  for (int i = 2; i < libraries; i++) {
    if (list[i].microseconds[MEDIAN] < list[best].microseconds[MEDIAN]) best = i;
  }
  fprintf(csv, "rung,TFLOP/s,minimum,maximum\n");
  for (int i = 0; i < count; i++) {
    if (i > 0 && i < libraries && i != best) continue;
    const float *times = list[i].microseconds;
    const char *name = i == 0 ? "cuBLAS" : i < libraries ? "cuBLASLt best" : list[i].name;
    double median = teraflops(s, times[MEDIAN]);
    double low = teraflops(s, times[ROUNDS - 1]), high = teraflops(s, times[0]);
    printf("  %-22s %7.1f TFLOP/s [%.1f to %.1f]\n", name, median, low, high);
    fprintf(csv, "%s,%.1f,%.1f,%.1f\n", name, median, low, high);
  }
}

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "measure: it does nothing else", &bench, 0, 0}};
  program_begin("bench_ladder", argc, argv, options, 1);
  if (!bench) {
    fprintf(stderr, "bench_ladder: say --bench; it needs a GPU\n");
    return EXIT_USAGE;
  }
  const char *path = "build/07_pipelined_gemm/ladder.csv";
  FILE *csv = fopen(path, "w");
  if (csv == NULL) program_fail("cannot write %s", path);

  static Competitor list[MOST_COMPETITORS];
  Shape s = {SIZE, SIZE, SIZE};
  begin_competition((size_t)SIZE * SIZE);
  int libraries = add_libraries(list, s), count = libraries + add_ours(list + libraries, s);
  int order[MOST_COMPETITORS];
  for (int i = 0; i < count; i++) {
    order[i] = i;
    check_competitor(&list[i], s);
    estimate(&list[i], s);
  }
  compete(list, order, count, s, ROUNDS, REST, MEASURED);
  write_ladder(list, libraries, count, s, csv);
  fclose(csv);
  for (int i = 0; i < count; i++) CUDA_CHECK(pipelined_gemm_end(&list[i].gemm));
  return program_end("measured; every competitor agrees with cuBLAS");
}
