// in_place: A or B is read in place, although TMA cannot reach its rows: rows of any length and distance, from any address
// on, and k shared by clusters. What lies between the rows, or belongs to another row, changes nothing.
#include "../../07_pipelined_gemm/check_product.cuh"

template <int TYPE, int M, bool OF_A>
static GemmConfiguration in_place(int groups) {
  typedef GemmSingleTile<TYPE, GEMM_K_MAJOR, GEMM_K_MAJOR, M, 128, 1, 1, 1, OF_A, false, true> Tile;
  return gemm_single_configuration<Tile>("in_place", 1, groups);
}

template <int TYPE, int M, bool OF_A>
static void check_tile(const char *name, int runs) {
  int good = 0;
  for (int i = 0; i < runs; i++) {
    uint64_t h = gemm_hash((uint64_t)(1000 * M + i));
    GemmConfiguration c = in_place<TYPE, M, OF_A>(1 + i % 3);
    CheckedProduct p;
    memset(&p, 0, sizeof(p));
    p.type = (GemmType)TYPE;
    int64_t k = GEMM_STEP_K * c.groups - 60 + (int64_t)(h >> 20) % 300;
    if (k % 8 == 0) k++;
    p.problem =
        gemm_problem(8 + (int64_t)(h % 700), 1 + (int64_t)(h >> 10) % 200, k, NULL, NULL, NULL);
    p.problem.c_type = p.type;
    if (h >> 32 & 1) p.problem.n = (p.problem.n + 7) / 8 * 8;
    if (h >> 42 & 1) p.problem.lda = k + (int64_t)(h >> 43 & 15);
    if (h >> 50 & 1) p.offset = 1 + (int)(h >> 51) % 7;
    if (p.problem.lda % 8 == 0 && p.problem.lda != 0 && p.offset == 0) p.problem.lda++;
    if (i % 2) {
      p.problem.beta = h >> 33 & 1 ? 0.5f : 0, p.has_bias = h >> 34 & 1;
      p.problem.activation = (GemmActivation)(h >> 35 & 3);
      if (h >> 37 & 1) p.problem.c_type = GEMM_FP32;
    }
    if (!OF_A) {
      CheckedProduct of_a = p;
      p.problem = gemm_problem(of_a.problem.n, of_a.problem.m, k, NULL, NULL, NULL);
      p.problem.c_type = p.type, p.problem.ldb = of_a.problem.lda;
      p.has_bias = false;
    }
    p.rows = 20, p.seed = h % 1000;
    p.most_clusters = (int)(h >> 40) % 4;
    p.configuration = &c;
    good += check_product(&p, NULL);
  }
  printf("%s: %d of %d right\n", name, good, runs);
}

// Rows of ones, and every third row and all memory around the matrix is NaN: the other rows of C are k.
static void check_neighbours(int k, int lda) {
  enum { M = 70, N = 16, AROUND = 16 };
  const uint16_t one = 0x3F80, nan = 0x7FC0;
  size_t elements = (size_t)(M * lda + 2 * AROUND);
  uint16_t *memory, *b, *c;
  CUDA_CHECK(cudaMallocManaged(&memory, elements * 2));
  CUDA_CHECK(cudaMallocManaged(&b, (size_t)N * k * 2));
  CUDA_CHECK(cudaMallocManaged(&c, M * N * 2));
  uint16_t *a = memory + AROUND + 1;
  for (size_t i = 0; i < elements; i++) memory[i] = nan;
  for (int row = 0; row < M; row++) {
    for (int i = 0; i < k && row % 3; i++) a[row * lda + i] = one;
  }
  for (int i = 0; i < N * k; i++) b[i] = one;
  GemmConfiguration configuration = in_place<GEMM_BF16, 64, true>(1);
  GemmProblem problem = gemm_problem(M, N, k, a, b, c);
  problem.lda = lda;
  PipelinedGemm gemm;
  GemmStatus status =
      gemm_plan_with(&gemm, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, &configuration, 0);
  check_that(status.error == GEMM_OK, "a product of k %d and lda %d is planned", k, lda);
  if (status.error != GEMM_OK) return;
  CUDA_CHECK(pipelined_gemm_launch(&gemm, 0));
  CUDA_CHECK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < M * N; i++) wrong += i / N % 3 && gemm_float(c[i]) != (float)k;
  check_that(wrong == 0, "k %d, lda %d: %d elements of rows beside those of NaN differ from k", k,
             lda, wrong);
  CUDA_CHECK(pipelined_gemm_end(&gemm));
  CUDA_CHECK(cudaFree(memory));
  CUDA_CHECK(cudaFree(b));
  CUDA_CHECK(cudaFree(c));
}

// What TMA can reach, batches, and fewer rows than there may be classes, are not for these kernels.
static void check_refusals(void) {
  uint16_t *memory;
  PipelinedGemm gemm;
  CUDA_CHECK(cudaMalloc(&memory, 1 << 20));
  GemmConfiguration c = in_place<GEMM_BF16, 64, true>(1);
  GemmProblem problem = gemm_problem(64, 64, 70, memory, memory, memory);
  problem.lda = 72;
  GemmStatus status = gemm_plan_with(&gemm, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, &c, 0);
  check_that(status.error == GEMM_NOT_FOR_SHAPE, "rows that TMA can reach are refused");
  problem.lda = 0;
  problem.batches = 2, problem.stride_c = 64 * 64;
  status = gemm_plan_with(&gemm, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, &c, 0);
  check_that(status.error == GEMM_NOT_FOR_SHAPE, "batches are refused");
  problem.batches = 1, problem.m = 7;
  status = gemm_plan_with(&gemm, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, &c, 0);
  check_that(status.error == GEMM_NOT_FOR_SHAPE, "seven rows are refused");
  CUDA_CHECK(cudaFree(memory));
}

int main(int argc, char **argv) {
  long runs = 8;
  Option options[] = {{"--runs", "products for each tile", &runs, 1, 100000}};
  program_begin("in_place", argc, argv, options, 1);
  check_tile<GEMM_BF16, 64, true>("A, 64x128", (int)runs);
  check_tile<GEMM_FP16, 128, true>("A, 128x128, fp16", (int)runs);
  check_tile<GEMM_BF16, 64, false>("B, 64x128", (int)runs);
  check_tile<GEMM_FP16, 128, false>("B, 128x128, fp16", (int)runs);
  check_neighbours(70, 70);
  check_neighbours(75, 75);
  check_neighbours(75, 91);
  check_neighbours(72, 80);
  check_refusals();
  return program_end("rows that TMA cannot reach, read in place");
}
