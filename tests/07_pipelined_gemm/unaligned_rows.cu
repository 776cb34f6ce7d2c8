// unaligned_rows: gemm_short stores rows of C that begin anywhere, and nothing beside them. Each stage of its ring is
// always filled for the same warpgroup.
#include "../../07_pipelined_gemm/check_product.cuh"

template <class Tile>
static void check_tile(const char *name, int runs) {
  GemmConfiguration c = gemm_short_configuration<Tile>("short");
  int good = 0;
  for (int steps = 1; steps <= Tile::MOST_STEPS; steps++) {
    int stages = gemm_ring_stages(&c, c.tile_n, steps), of_a_tile_each = steps * Tile::CONSUMERS;
    if (stages == 0 || stages % of_a_tile_each != 0) {
      program_fail(
          "%s: a ring of %d stages, of which each tile takes %d, gives a stage to different "
          "warpgroups",
          name, stages, steps);
    }
  }
  for (int i = 0; i < runs; i++) {
    uint64_t h = gemm_hash((uint64_t)(c.tile_n * 1000 + i));
    CheckedProduct p;
    memset(&p, 0, sizeof(p));
    p.type = (GemmType)Tile::TYPE;
    int64_t k = 1 + (int64_t)(h >> 24) % (Tile::MOST_STEPS * GEMM_STEP_K);
    p.problem =
        gemm_problem(1 + (int64_t)(h >> 8) % 300, 1 + (int64_t)(h % 700), k, NULL, NULL, NULL);
    p.problem.c_type = p.type;
    if (i % 3 == 0) p.problem.n = 1 + (int64_t)(h % 40);
    if (h >> 42 & 1) p.problem.ldc = p.problem.n + (int64_t)(h >> 43 & 15);
    if (h >> 50 & 1) p.offset = 1 + (int)(h >> 51) % 7;
    if (i % 5 == 4) {
      int64_t ldc = p.problem.ldc == 0 ? p.problem.n : p.problem.ldc;
      p.problem.batches = 2, p.problem.stride_a = p.problem.m * k, p.problem.stride_b = 0;
      p.problem.stride_c = p.problem.m * ldc + 3;
    }
    p.seed = h % 1000;
    p.most_clusters = (int)(h >> 54) % 4;
    p.configuration = &c;
    good += check_product(&p, NULL);
  }
  printf("%s: %d of %d right\n", name, good, runs);
}

int main(int argc, char **argv) {
  long runs = 8;
  Option options[] = {{"--runs", "products for each tile", &runs, 1, 100000}};
  program_begin("unaligned_rows", argc, argv, options, 1);
  check_tile<GemmShortTile<GEMM_BF16, 0, 0, 256, 2, 3> >("64x256", (int)runs);
  check_tile<GemmShortTile<GEMM_FP16, 0, 0, 192, 2, 4> >("64x192, fp16", (int)runs);
  check_tile<GemmShortTile<GEMM_BF16, 0, 0, 128, 3, 4> >("64x128", (int)runs);
  return program_end("rows of C that begin anywhere");
}
