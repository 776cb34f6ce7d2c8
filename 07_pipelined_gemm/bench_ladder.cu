// bench_ladder: the whole ladder, cuBLAS and cuBLASLt at four sizes on a hot chip, and
// small_shapes at sizes with few tiles.
//
// link: -lcublas -lcublasLt
//
// The chip is hot, and the programs take turns: compete() in bench_libraries.cuh. A slow program draws less power, and the
// one behind it would run at a higher clock. So those that take 1.5 times as long as the best have rounds of their own. The
// data are normally distributed (zeros run faster, because fewer wires toggle). For cuBLASLt, the fastest of the algorithms
// that its heuristics name is shown.
//
//   bench_ladder --bench         writes build/07_pipelined_gemm/ladder.csv and small.csv
#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "../03_tma_store/tma_store.cuh"
#include "../05_multicast/cluster.cuh"
#include "../05_multicast/tma_multicast.cuh"
#include "../06_swizzle_3d/swizzle.h"
#include "accumulator.cuh"
#include "library/bench_libraries.cuh"
#include "tile_order.cuh"
#include "tile_shares.cuh"
#include "wgmma.cuh"

// Each rung is a whole program; its functions live in a namespace of its own here. The headers that they
// share are included above.
#define main rung_main
namespace tiled {
#include "tiled.cu"
}
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
namespace tma_epilogue {
#include "tma_epilogue.cu"
}
namespace overlapped_epilogue {
#include "overlapped_epilogue.cu"
}
namespace carried_tile {
#include "carried_tile.cu"
}
namespace pipelined {
#include "pipelined_gemm.cu"
}
namespace small {
#include "small_shapes.cu"
}
#undef main

typedef struct {
  const char *name;
  GemmPrepare *prepare;
  GemmLaunch *launch;
} Rung;

static const Rung rungs[] = {
    {"tiled", tiled::gemm_prepare, tiled::gemm_launch},
    {"serial", serial::gemm_prepare, serial::gemm_launch},
    {"ring", ring::gemm_prepare, ring::gemm_launch},
    {"producer_consumer", producer_consumer::gemm_prepare, producer_consumer::gemm_launch},
    {"two_consumers", two_consumers::gemm_prepare, two_consumers::gemm_launch},
    {"multicast", multicast::gemm_prepare, multicast::gemm_launch},
    {"persistent", persistent::gemm_prepare, persistent::gemm_launch},
    {"tma_epilogue", tma_epilogue::gemm_prepare, tma_epilogue::gemm_launch},
    {"overlapped_epilogue", overlapped_epilogue::gemm_prepare, overlapped_epilogue::gemm_launch},
    {"carried_tile", carried_tile::gemm_prepare, carried_tile::gemm_launch},
    {"pipelined_gemm", pipelined::gemm_prepare, pipelined::gemm_launch}};
static const Shape sizes[] = {
    {4096, 4096, 4096}, {6144, 6144, 6144}, {8192, 8192, 8192}, {16384, 16384, 16384}};

// pipelined_gemm, and small_shapes with a whole k and with k split.
static const Rung small_rungs[] = {
    {"pipelined_gemm", pipelined::gemm_prepare, pipelined::gemm_launch},
    {"whole", small::gemm_prepare, small::gemm_launch},
    {"split", small::gemm_prepare, small::gemm_launch}};
static const Shape small_sizes[] = {
    {512, 512, 512}, {64, 512, 4096}, {64, 4096, 14336}, {256, 256, 16384}, {1000, 512, 2048}};

enum {
  RUNGS = sizeof(rungs) / sizeof(rungs[0]),
  SIZES = sizeof(sizes) / sizeof(sizes[0]),
  SMALL_RUNGS = sizeof(small_rungs) / sizeof(small_rungs[0]),
  SMALL_SIZES = sizeof(small_sizes) / sizeof(small_sizes[0]),
  LINES = 2 + RUNGS, /* of the table: cuBLAS, cuBLASLt's best, the rungs */
  MOST_COMPETITORS = 1 + MOST_ALGORITHMS + RUNGS,
  ROUNDS = 15,
  MEASURED = 10 /* milliseconds */
};

static void add_rung(Competitor *competitor, const Rung *rung, Shape s) {
  enum { NOT_SPLIT = 1 }; /* with so few blocks to fill, small_shapes leaves k whole */
  memset(competitor, 0, sizeof(*competitor));
  snprintf(competitor->name, sizeof(competitor->name), "%s", rung->name);
  competitor->kind = BY_RUNG;
  competitor->launch = rung->launch;
  LadderProblem *problem = &competitor->plan.problem;
  problem->m = s.m, problem->n = s.n, problem->k = s.k;
  problem->a = a, problem->b = b, problem->c = c;
  problem->most_blocks = strcmp(rung->name, "whole") == 0 ? NOT_SPLIT : 0;
  rung->prepare(&competitor->plan);
}

static float median(const Competitor *competitor) { return competitor->microseconds[ROUNDS / 2]; }

// The microseconds of cuBLAS, of cuBLASLt's best algorithm and of these rungs, in this order.
static void bench_size(const Rung *list_of_rungs, int rung_count, Shape s, float *microseconds) {
  static Competitor list[MOST_COMPETITORS];
  int libraries = add_libraries(list, s), count = libraries + rung_count, best = 1;
  for (int i = 0; i < rung_count; i++) {
    Competitor *competitor = &list[libraries + i];
    add_rung(competitor, &list_of_rungs[i], s);
    check_competitor(competitor, s);
    estimate(competitor, s);
  }
  float best_estimate = list[0].estimate;
  for (int i = 1; i < count; i++) best_estimate = fminf(best_estimate, list[i].estimate);
  int order[2][MOST_COMPETITORS], counts[2] = {0, 0}; /* fast and slow */
  for (int i = 0; i < count; i++) {
    int slow = list[i].estimate > 1.5f * best_estimate;
    order[slow][counts[slow]++] = i;
  }
  for (int slow = 0; slow < 2; slow++) {
    if (counts[slow] > 0) compete(list, order[slow], counts[slow], s, ROUNDS, 0, MEASURED);
  }
  for (int i = 2; i < libraries; i++) {
    if (median(&list[i]) < median(&list[best])) best = i;
  }
  microseconds[0] = median(&list[0]), microseconds[1] = median(&list[best]);
  for (int i = 0; i < rung_count; i++) {
    microseconds[2 + i] = median(&list[libraries + i]);
    CUDA_CHECK(cudaFree(list[libraries + i].plan.workspace));
  }
}

// The last column: to the better library, the geometric mean over the sizes.
static void bench_ladder(FILE *csv) {
  static float microseconds[SIZES][LINES];
  fprintf(csv, "rung");
  for (int i = 0; i < SIZES; i++) {
    bench_size(rungs, RUNGS, sizes[i], microseconds[i]);
    fprintf(csv, ",%d^3", sizes[i].m);
  }
  fprintf(csv, ",to the better library\n");
  for (int line = 0; line < LINES; line++) {
    const char *name = line == 0 ? "cuBLAS" : line == 1 ? "cuBLASLt best" : rungs[line - 2].name;
    printf("  %-20s", name);
    fprintf(csv, "%s", name);
    double logarithms = 0;
    for (int i = 0; i < SIZES; i++) {
      const float *column = microseconds[i];
      double teraflops = 2e-6 * sizes[i].m * sizes[i].n * sizes[i].k / column[line];
      double ratio = fmin(column[0], column[1]) / column[line];
      logarithms += log(ratio);
      printf(" %7.1f (%.3f)", teraflops, ratio);
      fprintf(csv, ",%.1f", teraflops);
    }
    printf("  TFLOP/s, %.3f of the better library\n", exp(logarithms / SIZES));
    fprintf(csv, ",%.3f\n", exp(logarithms / SIZES));
  }
}

static void bench_small(FILE *csv) {
  fprintf(csv,
          "m x n x k,cuBLAS us,cuBLASLt best us,pipelined_gemm us,small_shapes whole us,"
          "small_shapes split us\n");
  for (int i = 0; i < SMALL_SIZES; i++) {
    float microseconds[2 + SMALL_RUNGS];
    Shape s = small_sizes[i];
    bench_size(small_rungs, SMALL_RUNGS, s, microseconds);
    printf("  %4d x %4d x %5d", s.m, s.n, s.k);
    fprintf(csv, "%d x %d x %d", s.m, s.n, s.k);
    for (int j = 0; j < 2 + SMALL_RUNGS; j++) {
      printf(" %7.2f", microseconds[j]);
      fprintf(csv, ",%.2f", microseconds[j]);
    }
    printf(" us\n");
    fprintf(csv, "\n");
  }
}

static FILE *open_csv(const char *path) {
  FILE *csv = fopen(path, "w");
  if (csv == NULL) program_fail("cannot write %s", path);
  return csv;
}

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "measure: it does nothing else", &bench, 0, 0}};
  program_begin("bench_ladder", argc, argv, options, 1);
  if (!bench) {
    fprintf(stderr, "bench_ladder: say --bench; it needs a GPU\n");
    return EXIT_USAGE;
  }
  FILE *ladder = open_csv("build/07_pipelined_gemm/ladder.csv");
  FILE *small = open_csv("build/07_pipelined_gemm/small.csv");
  begin_competition((size_t)16384 * 16384);
  bench_ladder(ladder);
  bench_small(small);
  fclose(ladder);
  fclose(small);
  return program_end("measured; every rung agrees with cuBLAS");
}
