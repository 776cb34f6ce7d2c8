// clock_ladder: one rung of chapter 07's ladder at any size: launched once, for the emulator's clock
// and for ncu, or measured, for the figures that the clock is compared with.
//
//   clock_ladder --rung 3 --m 8192 --n 8192 --k 8192 [--measure]
#include <cuda.h>
#include <unistd.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../../03_tma_store/tma_store.cuh"
#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"
#include "../../07_pipelined_gemm/accumulator.cuh"
#include "../../07_pipelined_gemm/gemm_program.cuh"
#include "../../07_pipelined_gemm/tile_order.cuh"
#include "../../07_pipelined_gemm/wgmma.cuh"

// Each rung is a whole program; its functions live in a namespace of its own here.
#define main rung_main
namespace serial {
#include "../../07_pipelined_gemm/serial.cu"
}
namespace ring {
#include "../../07_pipelined_gemm/ring.cu"
}
namespace producer_consumer {
#include "../../07_pipelined_gemm/producer_consumer.cu"
}
namespace two_consumers {
#include "../../07_pipelined_gemm/two_consumers.cu"
}
namespace multicast {
#include "../../07_pipelined_gemm/multicast.cu"
}
namespace persistent {
#include "../../07_pipelined_gemm/persistent.cu"
}
namespace overlapped_epilogue {
#include "../../07_pipelined_gemm/overlapped_epilogue.cu"
}
#undef main

typedef struct {
  const char *name;
  GemmPrepare *prepare;
  GemmLaunch *launch;
} Rung;

#define RUNG(name) \
  { #name, name::gemm_prepare, name::gemm_launch }
static const Rung rungs[] = {
    RUNG(serial),    RUNG(ring),       RUNG(producer_consumer),  RUNG(two_consumers),
    RUNG(multicast), RUNG(persistent), RUNG(overlapped_epilogue)};
enum { RUNGS = sizeof(rungs) / sizeof(rungs[0]), ROUNDS = 7, REST_MICROSECONDS = 40000 };

static GemmPlan plan;

// The median time of a launch, in microseconds; measured as bench_ladder does.
static double measured(long rung, double operations) {
  float times[ROUNDS];
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  int launches = (int)(15e-3 / (operations / 750e12));
  if (launches < 1) launches = 1;
  if (launches > 200) launches = 200;
  for (int round = 0; round < ROUNDS; round++) {
    usleep(REST_MICROSECONDS);
    for (int i = 0; i < 2; i++) rungs[rung].launch(&plan);
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < launches; i++) rungs[rung].launch(&plan);
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&times[round], begin, end));
    times[round] *= 1e3f / (float)launches;
  }
  qsort(times, ROUNDS, sizeof(float), gemm_compare_floats);
  return times[ROUNDS / 2];
}

static void run_rung(long rung, bool measure) {
  const LadderProblem *p = &plan.problem;
  rungs[rung].prepare(&plan);
  if (measure) {
    double operations = 2.0 * p->m * p->n * p->k, us = measured(rung, operations);
    printf("%s,%d,%d,%d,%.2f,%.1f\n", rungs[rung].name, p->m, p->n, p->k, us,
           operations / us * 1e-6);
    return;
  }
  rungs[rung].launch(&plan);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
  enum { ALL = -1 };
  long rung = ALL, m = 512, n = 512, k = 512, measure = 0;
  Option options[] = {
      {"--rung", "0 to 6, from serial to overlapped_epilogue; -1: all", &rung, ALL, RUNGS - 1},
      {"--m", "rows of C", &m, 1, 65536},
      {"--n", "columns of C", &n, 8, 65536},
      {"--k", "length of the sums", &k, 8, 65536},
      {"--measure", "measure on a GPU", &measure, 0, 0}};
  program_begin("clock_ladder", argc, argv, options, 5);
  LadderProblem *p = &plan.problem;
  p->m = (int)m, p->n = (int)n, p->k = (int)k;
  size_t count_a = (size_t)m * (size_t)k, count_b = (size_t)n * (size_t)k;
  CUDA_CHECK(cudaMalloc(&p->a, count_a * 2));
  CUDA_CHECK(cudaMalloc(&p->b, count_b * 2));
  CUDA_CHECK(cudaMalloc(&p->c, (size_t)m * (size_t)n * 2));
  if (measure) {  // zeros would run faster; the emulator's clock sees no difference
    gemm_fill_normal<<<1024, 256>>>(p->a, count_a, 1);
    gemm_fill_normal<<<1024, 256>>>(p->b, count_b, 2);
  } else {
    CUDA_CHECK(cudaMemset(p->a, 0, count_a * 2));
    CUDA_CHECK(cudaMemset(p->b, 0, count_b * 2));
  }
  for (long i = rung == ALL ? 0 : rung; i <= (rung == ALL ? RUNGS - 1 : rung); i++)
    run_rung(i, measure != 0);
  return program_end(measure ? "measured, not checked" : "launched once, not checked");
}
