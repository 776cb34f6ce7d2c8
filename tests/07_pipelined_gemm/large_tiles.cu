// large_tiles: the tiles of gemm_single of which a warpgroup has several blocks of 64 rows, and perhaps half of the
// columns: each width, sizes that no tile divides, batches.
#include "../../07_pipelined_gemm/check_product.cuh"

template <class Tile>
static void check_tile(const char *name, int runs) {
  GemmConfiguration c = gemm_single_configuration<Tile>("large", 1);
  int widths = (c.tile_n - c.least_n) / c.step_n + 1, good = 0;
  for (int i = 0; i < runs; i++) {
    uint64_t h = gemm_hash((uint64_t)(c.tile_m * 1000 + i));
    CheckedProduct p;
    memset(&p, 0, sizeof(p));
    p.type = (GemmType)Tile::TYPE;
    /* a row of clusters, of which few run at once: so it has the narrowest tiles that hold these columns */
    int64_t width = c.least_n + i % widths * c.step_n;
    int64_t n = width * c.cluster_n - (int64_t)(h % 3) * 8, m = 8 + (int64_t)(h >> 8) % 500 * 8;
    if (i % 4 == 3) m = 8 * (1 + (int64_t)(h >> 8) % 20), n = 8 * (1 + (int64_t)(h >> 16) % 200);
    int64_t k = 8 * (1 + (int64_t)(h >> 24) % 60);
    p.problem = gemm_problem(c.swapped ? n : m, c.swapped ? m : n, k, NULL, NULL, NULL);
    p.problem.c_type = gemm_is_e4m3(p.type) ? GEMM_BF16 : p.type;
    if (i % 5 == 4) {
      p.problem.batches = 2, p.problem.ldc = p.problem.n + 16;
      p.problem.stride_a = p.problem.m * k, p.problem.stride_b = h >> 40 & 1 ? p.problem.n * k : 0;
      p.problem.stride_c = p.problem.m * p.problem.ldc;
    }
    p.rows = 30, p.seed = h % 1000;
    p.most_clusters = i % 4 == 3 ? 0 : 1 + (int)(h >> 41) % 3;
    p.configuration = &c;
    good += check_product(&p, NULL);
  }
  printf("%s: %d of %d right\n", name, good, runs);
}

int main(int argc, char **argv) {
  long runs = 8;
  Option options[] = {{"--runs", "products for each tile", &runs, 1, 100000}};
  program_begin("large_tiles", argc, argv, options, 1);
  check_tile<GemmSingleTile<GEMM_BF16, 0, 0, 192, 224, 1, 2, 1, false, false, false, 3, true> >(
      "192x224, halves", (int)runs);
  check_tile<GemmSingleTile<GEMM_FP16, 0, 0, 192, 224, 1, 2, 1, true, false, false, 3, true> >(
      "192x224 swapped, halves", (int)runs);
  check_tile<GemmSingleTile<GEMM_BF16, 0, 0, 256, 160, 1, 2, 1, true, false, false, 2> >(
      "256x160 swapped", (int)runs);
  check_tile<GemmSingleTile<GEMM_E4M3, 0, 0, 256, 160, 1, 2, 1, false, false, false, 2> >(
      "256x160, e4m3", (int)runs);
  return program_end("large tiles");
}
