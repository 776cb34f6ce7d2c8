// shared_sums: several clusters share the k range of each tile, and divide the sums among themselves. Tiles of several
// sizes, shared by up to 16 clusters, by any number of warps and chunks; narrower tiles, and every kind of C.
#include "../../07_pipelined_gemm/check_product.cuh"

template <int M, int N, int CLUSTER_M, int CLUSTER_N, int SPLIT_K, bool SWAPPED>
static void check_tile(const char *name, int runs) {
  static const int groups[] = {2, 3, 4, 5, 7, 14, 16};
  GemmConfiguration c =
      gemm_single_configuration<GemmSingleTile<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, M, N,
                                               CLUSTER_M, CLUSTER_N, SPLIT_K, SWAPPED> >(name, 1);
  int good = 0;
  for (int i = 0; i < runs; i++) {
    uint64_t h = gemm_hash((uint64_t)(1000 * M + 10 * N + i));
    CheckedProduct p;
    memset(&p, 0, sizeof(p));
    c.groups = groups[i % 7];
    int64_t least_k = GEMM_STEP_K * c.groups * SPLIT_K;
    p.type = GEMM_BF16;
    p.problem = gemm_problem(1 + (int64_t)(h % 300), 1 + (int64_t)(h >> 10) % 300,
                             least_k + (int64_t)(h >> 20) % 200, NULL, NULL, NULL);
    if (h >> 32 & 1) p.problem.n = (p.problem.n + 7) / 8 * 8;
    if (i % 2) {  // an epilogue
      p.problem.beta = h >> 33 & 1 ? 0.5f : 0, p.has_bias = h >> 34 & 1;
      p.problem.activation = (GemmActivation)(h >> 35 & 3);
      if (h >> 37 & 1) p.problem.c_type = GEMM_FP32;
    }
    p.rows = 6, p.seed = h % 1000;
    p.most_clusters = (int)(h >> 40) % 4;
    p.configuration = &c;
    good += check_product(&p, NULL);
  }
  printf("%s: %d of %d right\n", name, good, runs);
}

int main(int argc, char **argv) {
  long runs = 7;
  Option options[] = {{"--runs", "products for each tile", &runs, 1, 100000}};
  program_begin("shared_sums", argc, argv, options, 1);
  check_tile<128, 256, 2, 1, 1, false>("128x256_2x1", (int)runs);
  check_tile<128, 160, 1, 2, 1, true>("128x160_1x2_swapped", (int)runs);
  check_tile<64, 128, 1, 2, 2, false>("64x128_1x2_split_2", (int)runs);
  return program_end("sums of tiles that clusters share");
}
