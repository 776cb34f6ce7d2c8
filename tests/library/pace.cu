// pace: a product so long that the library's clusters wait for each other, by two clusters with four tiles each.
#include "../../07_pipelined_gemm/library/check_product.cuh"

enum { M = 512, N = 512, K = 32768, CLUSTERS = 2, ROWS = 8 };

static GemmStatus plan_with_pace(PipelinedGemm *gemm, const CheckedProduct *p,
                                 const GemmProblem *problem) {
  CheckedProduct planned = *p;
  planned.plan = NULL;
  GemmStatus status = checked_plan(gemm, &planned, problem);
  check_that(status.error == GEMM_OK && gemm->work.pace != NULL, "the clusters keep pace");
  return status;
}

int main(int argc, char **argv) {
  program_begin("pace", argc, argv, NULL, 0);
  CheckedProduct p = {};
  p.type = GEMM_BF16;
  p.major_a = p.major_b = GEMM_K_MAJOR;
  p.problem = gemm_problem(M, N, K, NULL, NULL, NULL);
  p.problem.c_type = GEMM_BF16;
  p.integers = true;
  p.rows = ROWS;
  p.most_clusters = CLUSTERS;
  p.configuration =
      gemm_carry_configuration<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, 128, 16, 1, false>(
          "carry_128x128_2x1");
  p.plan = plan_with_pace;
  check_product(&p, NULL);
  return program_end("a product of %d steps by clusters that keep pace", K / 64);
}
