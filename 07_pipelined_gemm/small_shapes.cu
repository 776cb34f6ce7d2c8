// small_shapes: products with few tiles, and how to keep 132 SMs busy with them.
//
//   serial | ring | producer_consumer | two_consumers |
//   multicast | persistent | overlapped_epilogue | [small_shapes] | pipelined_gemm
//
// A product of 64 x 512 has two tiles of 128 x 256: two SMs would work while 130 stay idle. There
// are two remedies, both in product/gemm_single.cuh:
//
// 1. Smaller tiles. Tiles of 64 x 64 give eight CTAs, but each loads more for what it computes.
// 2. Split k. The CTAs of a cluster share one tile, and each takes a part of the k range. They then
//    add up their partial sums by writing into each other's shared memory:
//
//         CTA 0: k   0..1023   64 x 64 partial sums ---- columns 0..15 of all four ----> CTA 0
//         CTA 1: k 1024..2047  64 x 64 partial sums ---- columns 16..31 of all four ---> CTA 1
//         CTA 2: k 2048..3071  64 x 64 partial sums ---- columns 32..47 of all four ---> CTA 2
//         CTA 3: k 3072..4095  64 x 64 partial sums ---- columns 48..63 of all four ---> CTA 3
//
//    Each CTA adds up its columns in the order of k and stores them. This needs no zeroed workspace
//    and no second kernel. Unlike sums by atomics or by TMA reduce (chapter 04), the result has the
//    same bits in every run. They differ from those of the unsplit sum, because fp32 additions
//    happen in another order.
#include "gemm_program.cuh"
#include "product/pipelined_gemm.cuh"

static const GemmConfiguration *current;
static PipelinedGemm planned;

static void stop_on_error(GemmStatus status) {
  char text[256];
  if (status.error == GEMM_OK) return;
  pipelined_gemm_explain(status, text, sizeof(text));
  program_fail("%s", text);
}

static void gemm_prepare(GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  GemmProblem problem = gemm_problem(p->m, p->n, p->k, p->a, p->b, p->c);
  stop_on_error(
      gemm_plan_with(&planned, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, current, 0));
}

static void gemm_launch(const GemmPlan *plan) {
  (void)plan;
  CUDA_CHECK(pipelined_gemm_launch(&planned, 0));
}

static void bench(int m, int n, int k) {
  enum { ROUNDS = 7, LAUNCHES = 20 };
  GemmPlan plan = {};
  plan.problem.m = m, plan.problem.n = n, plan.problem.k = k;
  CUDA_CHECK(cudaMalloc(&plan.problem.a, (size_t)m * k * 2));
  CUDA_CHECK(cudaMalloc(&plan.problem.b, (size_t)n * k * 2));
  CUDA_CHECK(cudaMalloc(&plan.problem.c, (size_t)m * n * 2));
  gemm_fill_normal<<<256, 256>>>(plan.problem.a, (size_t)m * k, 1);
  gemm_fill_normal<<<256, 256>>>(plan.problem.b, (size_t)n * k, 2);
  gemm_prepare(&plan);
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  float milliseconds[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    gemm_launch(&plan);
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < LAUNCHES; i++) gemm_launch(&plan);
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds[round], begin, end));
  }
  qsort(milliseconds, ROUNDS, sizeof(float), gemm_compare_floats);
  printf("%4d x %4d x %5d  %-8s %4d CTAs  %8.2f us\n", m, n, k, current->name, planned.blocks,
         milliseconds[ROUNDS / 2] / (double)LAUNCHES * 1e3);
  CUDA_CHECK(cudaFree(plan.problem.a));
  CUDA_CHECK(cudaFree(plan.problem.b));
  CUDA_CHECK(cudaFree(plan.problem.c));
}

// Both operands K-major, no cluster that shares loads, k split over this many CTAs.
template <int SPLIT_K>
struct Tile64x64 : GemmSingleTile<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, 64, 64, 1, 1, SPLIT_K> {};

int main(int argc, char **argv) {
  const GemmConfiguration all[] = {gemm_single_configuration<Tile64x64<1>>("whole", 2),
                                   gemm_single_configuration<Tile64x64<2>>("split_2", 2),
                                   gemm_single_configuration<Tile64x64<4>>("split_4", 2)};
  long measure = 0;
  Option options[] = {{"--bench", "measure skinny products on a GPU", &measure, 0, 0}};
  program_begin("small_shapes", argc, argv, options, 1);
  for (int i = 0; i < 3; i++) {
    current = &all[i];
    if (measure) {
      bench(64, 512, 4096);
      bench(256, 256, 16384);
      bench(512, 512, 512);
      continue;
    }
    printf("%-8s", current->name);
    gemm_check_product(gemm_prepare, gemm_launch, 64, 512, 1024, 0, GEMM_INTEGERS, 0, 1, true);
    printf("%-8s", current->name);
    gemm_check_product(gemm_prepare, gemm_launch, 200, 328, 584, 0, GEMM_INTEGERS, 0, 2, true);
    printf("%-8s", current->name);
    gemm_check_product(gemm_prepare, gemm_launch, 64, 512, 1024, 0, GEMM_NORMAL, 16, 3, true);
  }
  return program_end(measure ? "measured, not checked"
                             : "k whole and split in 2 and 4, six of nine products exactly");
}
