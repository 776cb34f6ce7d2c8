// few_rows: gemm_rows, the kernel for products with up to 8 rows: each number of rows, each configuration, columns that
// the CTAs share unevenly, a k that ends within a step, gaps between rows, every epilogue.
#include "../../07_pipelined_gemm/check_product.cuh"

template <int TYPE>
static void check_type(const char *name, int runs) {
  GemmConfigurations rows = gemm_rows_configurations<TYPE, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  int good = 0;
  for (int i = 0; i < runs; i++) {
    uint64_t h = gemm_hash((uint64_t)(TYPE * 1000 + i)), g = gemm_hash(h);
    const GemmConfiguration *c = &rows.list[i % rows.count];
    CheckedProduct p;
    memset(&p, 0, sizeof(p));
    p.type = (GemmType)TYPE;
    int64_t m = 1 + (int64_t)(h % (uint64_t)c->most_rows), k = 8 * (1 + (int64_t)(h >> 8) % 60);
    // few CTAs with columns, as many as at once, or several rounds
    int64_t n = 1 + (int64_t)(h >> 16) % (i % 3 == 0 ? 200 : i % 3 == 1 ? 3000 : 12000);
    p.problem = gemm_problem(m, n, k, NULL, NULL, NULL);
    p.problem.c_type = g & 1 ? GEMM_FP32 : p.type;
    if (g & 2) p.problem.beta = 0.5f, p.problem.alpha = 0.25f;
    if (g & 4) p.problem.activation = (GemmActivation)(g >> 3 & 3);
    if (g & 32) p.problem.lda = k + 8, p.problem.ldb = k + 24, p.problem.ldc = n + 3;
    p.has_bias = g >> 6 & 1, p.integers = g >> 7 & 1;
    p.seed = h % 1000;
    p.configuration = c;
    good += check_product(&p, NULL);
  }
  printf("%s: %d of %d right\n", name, good, runs);
}

// What the kernel cannot read is refused.
static void check_refusals(void) {
  static uint16_t memory[64];
  const GemmConfiguration *c =
      gemm_rows_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>().list;
  const GemmProblem good = gemm_problem(8, 64, 64, memory, memory, memory);
  GemmProblem problems[] = {good, good, good, good};
  problems[0].m = 9, problems[1].k = 63, problems[2].ldb = 65;
  problems[3].batches = 2, problems[3].stride_c = 512;
  for (int i = 0; i < 4; i++) {
    PipelinedGemm gemm;
    GemmStatus status =
        gemm_plan_with(&gemm, &problems[i], GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, c, 0);
    check_that(status.error == GEMM_NOT_FOR_SHAPE, "product %d is not for few rows", i);
  }
}

int main(int argc, char **argv) {
  long runs = 20;
  Option options[] = {{"--runs", "products of each type", &runs, 1, 100000}};
  program_begin("few_rows", argc, argv, options, 1);
  check_type<GEMM_BF16>("bf16", (int)runs);
  check_type<GEMM_FP16>("fp16", (int)runs);
  check_refusals();
  return program_end("few rows");
}
