// choices: every tile of every grid is computed exactly once, in bands of the promised thickness;
// what the model picks for a shape can compute that shape; and a model fitted to every second
// product that an H200 measured (measured/streamed.csv and hot.csv) loses little on the others.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../07_pipelined_gemm/gemm_program.cuh"
#include "../../07_pipelined_gemm/product/gemm_measured.cuh"
#include "half_model.cuh"

// A file of measured times, and what may be lost there: on average, and the share of products that lose more than 10 %.
// The same of the best among the configurations that a measured plan measures.
typedef struct {
  const char *path;
  double lost, far, lost_measured, far_measured;
} Replayed;
static const Replayed replayed[] = {
    {"07_pipelined_gemm/measured/streamed.csv", 0.0122, 0.02, 0.001, 0.0025},
    // Chosen for being hard.
    {"07_pipelined_gemm/measured/hot.csv", 0.024, 0.065, 0.003, 0.006}};
static const double MOST_LOST_WITH_EPILOGUE = 0.07;
static const double MOST_LOST_UNALIGNED = 0.02, MOST_FAR_UNALIGNED = 0.07;
static const double MOST_LOST_UNALIGNED_MEASURED = 0.004;

static bool covers_every_tile(TileOrder order) {
  static unsigned char seen[64 * 64];
  memset(seen, 0, sizeof(seen));
  for (int i = 0; i < order.rows * order.columns; i++) {
    TilePlace place = tile_place(order, i);
    if (place.row < 0 || place.row >= order.rows || place.column < 0 ||
        place.column >= order.columns || seen[place.row * 64 + place.column]++) {
      return false;
    }
  }
  return true;
}

// Each step of each tile belongs to one block, and the block that ends a tile knows of each
// of them, and each of them has one place to leave its contribution.
static bool shares_every_step(TileShares shares) {
  static int steps[80 * 7], parts[80 * 7], owners[80 * 7];
  int tiles = shares.whole * shares.workers + shares.left;
  memset(steps, 0, sizeof(steps));
  memset(parts, 0, sizeof(parts));
  memset(owners, 0, sizeof(owners));
  for (int worker = 0; worker < shares.workers; worker++) {
    TilePiece piece;
    int given = 0;
    for (int i = 0; tile_piece(shares, worker, i, &piece); i++) {
      if (piece.tile < 0 || piece.tile >= tiles || piece.first < 0 || piece.end > shares.steps ||
          piece.end - piece.first < (shares.steps < 4 ? shares.steps : 4)) {
        return false;
      }
      steps[piece.tile] += piece.end - piece.first;
      int others = tile_contributions(shares, worker, piece);
      if (piece.end == shares.steps) {
        if (owners[piece.tile]++) return false;
        parts[piece.tile] += others;
        // The others are the workers just before this one, in the same tile.
        for (int j = 1; j <= others; j++) {
          TilePiece other;
          bool found = false;
          for (int k = 0; tile_piece(shares, worker - j, k, &other); k++) {
            found = found || (other.tile == piece.tile && other.end < shares.steps);
          }
          if (!found) return false;
        }
      } else {
        parts[piece.tile]--;
        if (others != 0 || ++given > 1) return false;
      }
    }
  }
  for (int tile = 0; tile < tiles; tile++) {
    if (steps[tile] != shares.steps || parts[tile] != 0 || owners[tile] != 1) return false;
  }
  return true;
}

// If the workers share more than a round, their shares are longer than tiles.
static bool in_two_parts(TileShares shares) {
  for (int worker = 0; worker < shares.workers; worker++) {
    TilePiece piece;
    for (int i = 0; tile_piece(shares, worker, i, &piece); i++) {
      if (tile_contributions(shares, worker, piece) > 1) return false;
    }
  }
  return true;
}

static GemmConfigurations all_configurations(void) {
  return gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
}

// A line of streamed.csv: m, n, k, cuBLAS's microseconds, then those of each configuration. In epilogues.csv, the
// epilogue's name comes after k. A minus stands for a configuration that the sweep did not know.
enum { SMS = 132, COLUMNS_BEFORE = 4, MOST_COLUMNS = 128 };
static const float UNKNOWN = -1;
static const float HOST = 4;  // microseconds: shorter launches in a stream wait for the host

static void read_times(char *line, int columns, float *times) {
  for (int column = 0; column < columns; column++) {
    times[column] = line == NULL ? 0 : *line == '-' ? UNKNOWN : (float)atof(line);
    line = line ? strchr(line, ',') : NULL;
    if (line) line++;
  }
}

// The least time of those that were measured.
static float least_of(const float *times, int count) {
  float least = 0;
  for (int i = 0; i < count; i++) {
    if (times[i] > 0 && (least == 0 || times[i] < least)) least = times[i];
  }
  return least;
}

// What the choice loses against the best configuration, over the products that the model of this
// test was not fitted to: every second one.
static void replay_measurements(const Replayed *replay) {
  GemmConfigurations all = all_configurations();
  FILE *file = fopen(replay->path, "r");
  if (file == NULL) program_fail("cannot read %s", replay->path);
  char line[4096];
  int product = 0, judged = 0, far = 0;
  double lost = 0, worst = 0;
  while (fgets(line, sizeof(line), file)) {
    if (line[0] < '0' || line[0] > '9' || product++ % 2 == 0) continue;
    float times[MOST_COLUMNS], *mine = times + COLUMNS_BEFORE;
    read_times(line, COLUMNS_BEFORE + all.count, times);
    float best = least_of(mine, all.count);
    if (best < HOST) continue;
    int n = (int)times[1];
    const GemmConfiguration *c =
        gemm_choose(&half_model, all.list, all.count, (int)times[0], n, (int)times[2], 1, SMS,
                    n % 8 == 0 ? GEMM_BY_ALL_THAT_CARRY : GEMM_BY_SHORT, 0);
    float chosen = mine[c - all.list];
    if (chosen == UNKNOWN) continue;
    // What was not measured was reckoned to take twice as long as others.
    double loss = chosen > 0 ? chosen / best - 1 : 1;
    lost += loss;
    if (loss > worst) worst = loss;
    if (loss > 0.1) far++;
    judged++;
  }
  fclose(file);
  printf("%d products: %.2f %% lost on average, %.1f %% at worst, more than 10 %% at %d\n", judged,
         100 * lost / judged, 100 * worst, far);
  check_that(judged > 250, "%d products judged", judged);
  check_that(lost / judged < replay->lost, "%.4f lost on average", lost / judged);
  check_that(far < replay->far * judged, "%d lose more than 10 %%", far);
}

// Epilogues, the old C and C in fp32: where kernels that carry can compute them, tiles in two halves are not
// chosen, and large products are not for kernels that start anew for each tile.
static void choose_for_epilogues(void) {
  static const int shapes[][3] = {{4096, 4096, 4096},  {2048, 2048, 2048}, {8192, 8192, 8192},
                                  {4096, 14336, 4096}, {8192, 8192, 1024}, {8192, 8192, 128},
                                  {256, 4096, 4096},   {100, 136, 200}};
  GemmConfigurations all = all_configurations();
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
    const int *s = shapes[i];
    for (int carried = GEMM_BY_FINISHING; carried <= GEMM_BY_FINISHING_FP32; carried++) {
      const GemmConfiguration *c = gemm_choose(
          &gemm_model, all.list, all.count, s[0], s[1], s[2], 1, 132, (GemmCarried)carried,
          carried == GEMM_BY_FINISHING_FP32 ? GEMM_END_FP32 : GEMM_END_BETA);
      check_that(c != NULL && gemm_fits(c, s[2], (GemmCarried)carried), "%d x %d x %d has one",
                 s[0], s[1], s[2]);
      if (c == NULL) continue;
      printf("%d x %d x %d%s: %s\n", s[0], s[1], s[2],
             carried == GEMM_BY_FINISHING_FP32 ? " in fp32" : "", c->name);
      check_that(c->carries || !c->persistent, "%s is not for an epilogue", c->name);
      if (i == 0) check_that(c->carries, "%s does not carry", c->name);
    }
  }
}

// The same with epilogues, of which the model knows what they add. A configuration that carries tiles with such an
// epilogue may also be chosen where it was not measured without.
static void replay_epilogues(const char *path) {
  static const char *const names[] = {"beta", "gelu", "fp32"};
  GemmConfigurations all = all_configurations();
  FILE *file = fopen(path, "r");
  if (file == NULL) program_fail("cannot read %s", path);
  char line[4096], shape[64] = "", kind[8];
  int product = 0, judged[GEMM_ENDS] = {0}, far[GEMM_ENDS] = {0};
  double lost[GEMM_ENDS] = {0};
  while (fgets(line, sizeof(line), file)) {
    int m, n, k, end = 0, end_of_shape = 0;
    if (sscanf(line, "%d,%d,%d%n,%7[a-z0-9],%n", &m, &n, &k, &end_of_shape, kind, &end) < 4)
      continue;
    if (strncmp(line, shape, (size_t)end_of_shape + 1) != 0) product++;
    snprintf(shape, sizeof(shape), "%.*s", end_of_shape + 1, line);
    if (product % 2 != 0) continue;
    float times[MOST_COLUMNS];
    read_times(line + end, 1 + all.count, times);
    float best = least_of(times + 1, all.count);
    for (int i = 0; i < GEMM_ENDS && best > 0; i++) {
      if (strcmp(kind, names[i]) != 0) continue;
      GemmCarried carried = 1 << i == GEMM_END_FP32 ? GEMM_BY_FINISHING_FP32 : GEMM_BY_FINISHING;
      const GemmConfiguration *c = gemm_choose(&half_model, all.list, all.count, m, n, k, 1, SMS,
                                               n % 8 == 0 ? carried : GEMM_BY_NONE, 1 << i);
      float chosen = times[1 + (c - all.list)];
      if (chosen == UNKNOWN) continue;
      double loss = chosen > 0 ? chosen / best - 1 : 1;
      lost[i] += loss;
      if (loss > 0.1) far[i]++;
      judged[i]++;
    }
  }
  fclose(file);
  for (int i = 0; i < GEMM_ENDS; i++) {
    printf("%s: %d products, %.2f %% lost on average, more than 10 %% at %d\n", names[i], judged[i],
           100 * lost[i] / judged[i], far[i]);
    check_that(judged[i] > 100, "%d products judged with %s", judged[i], names[i]);
    check_that(lost[i] / judged[i] < MOST_LOST_WITH_EPILOGUE, "%.4f lost on average with %s",
               lost[i] / judged[i], names[i]);
  }
}

// What is lost if the first of the ranked configurations are measured: 1, 2, 4, 8, 16 of them or all.
static void replay_ranks(const Replayed *replay) {
  enum { COUNTS = 6 };
  static const int most[COUNTS] = {1, 2, 4, GEMM_MEASURED, 16, GEMM_MODELLED};
  GemmConfigurations all = all_configurations();
  FILE *file = fopen(replay->path, "r");
  if (file == NULL) program_fail("cannot read %s", replay->path);
  char line[4096];
  int product = 0, judged[COUNTS] = {0}, far[COUNTS] = {0};
  double lost[COUNTS] = {0}, worst[COUNTS] = {0};
  while (fgets(line, sizeof(line), file)) {
    if (line[0] < '0' || line[0] > '9' || product++ % 2 == 0) continue;
    float times[MOST_COLUMNS], found = 0, *mine = times + COLUMNS_BEFORE;
    read_times(line, COLUMNS_BEFORE + all.count, times);
    float best = least_of(mine, all.count);
    if (best < HOST) continue;
    int n = (int)times[1];
    GemmCarried carried = n % 8 == 0 ? GEMM_BY_ALL_THAT_CARRY : GEMM_BY_SHORT;
    GemmRanked ranked = gemm_rank(&half_model, all.list, all.count, (int)times[0], n, (int)times[2],
                                  1, SMS, carried, 0);
    if (judged[0] == 0) {
      check_that(ranked.list[0] == gemm_choose(&half_model, all.list, all.count, (int)times[0], n,
                                               (int)times[2], 1, SMS, carried, 0),
                 "the first is the choice");
    }
    bool unknown = false;
    for (int i = 0, at = 0, tried = 0; i < COUNTS; i++) {
      for (; at < ranked.count && tried < most[i]; at++) {
        float time = mine[ranked.list[at] - all.list];
        if (time == UNKNOWN) {
          unknown = true;
        } else {
          tried++;
        }
        if (time > 0 && (found == 0 || time < found)) found = time;
      }
      // If those that the model ranks first are unknown, so is what the others lose.
      if (found == 0 && unknown) continue;
      judged[i]++;
      double loss = found > 0 ? found / best - 1 : 1;
      lost[i] += loss;
      if (loss > worst[i]) worst[i] = loss;
      if (loss > 0.1) far[i]++;
    }
  }
  fclose(file);
  for (int i = 0; i < COUNTS; i++) {
    printf("the best of %2d: %.2f %% lost on average, %.1f %% at worst, more than 10 %% at %d\n",
           most[i], 100 * lost[i] / judged[i], 100 * worst[i], far[i]);
    if (most[i] != GEMM_MEASURED) continue;
    check_that(lost[i] / judged[i] < replay->lost_measured, "%.4f lost on average",
               lost[i] / judged[i]);
    check_that(far[i] < replay->far_measured * judged[i], "%d lose more than 10 %%", far[i]);
  }
}

// The least time of the candidates of a measured plan; `times`: of copies, then of all ways.
static float measured_unaligned(const float *times, GemmConfigurations ways, const int *sizes,
                                const GemmConfiguration *way, const int classes[2]) {
  const GemmProblem problem = gemm_problem(sizes[0], sizes[1], sizes[2], NULL, NULL, NULL);
  GemmConfigurations all = all_configurations();
  const GemmCandidates candidates = gemm_candidates(way == NULL ? all.list : way, NULL, all, ways,
                                                    &problem, GEMM_BF16, classes, SMS);
  float found = 0;
  for (int i = 0; i < candidates.count && i < GEMM_MEASURED; i++) {
    const GemmConfiguration *c = candidates.list[i];
    float time = c->direct || c->in_place ? times[1 + (c - ways.list)] : times[0];
    if (time > 0 && (found == 0 || time < found)) found = time;
  }
  return found;
}

// Lines of k elements that TMA cannot read: copied, loaded directly or read in place? A line of unaligned.csv: m, n, k,
// cuBLAS's microseconds, those of the fastest configuration with copies, then those of each other way.
static void replay_unaligned(const char *path) {
  GemmConfigurations ways = gemm_direct_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  FILE *file = fopen(path, "r");
  if (file == NULL) program_fail("cannot read %s", path);
  char line[1024];
  int judged = 0, far = 0;
  double lost = 0, lost_measured = 0;
  while (fgets(line, sizeof(line), file)) {
    if (line[0] < '0' || line[0] > '9') continue;
    float times[MOST_COLUMNS], *mine = times + COLUMNS_BEFORE;
    read_times(line, COLUMNS_BEFORE + 1 + ways.count, times);
    float best = least_of(mine, 1 + ways.count);
    if (best < HOST) continue;
    const int sizes[] = {(int)times[0], (int)times[1], (int)times[2]};
    int m = sizes[0], n = sizes[1], k = sizes[2], count = 1;
    while (k * count % GEMM_MOST_CLASSES != 0) count *= 2;
    const int classes[2] = {m < GEMM_MOST_CLASSES ? 0 : count, n < GEMM_MOST_CLASSES ? 0 : count};
    const GemmConfiguration *way =
        gemm_choose_direct(ways.list, ways.count, m, n, k, 1, classes, SMS);
    float chosen = mine[way == NULL ? 0 : 1 + (way - ways.list)];
    double loss = chosen > 0 ? chosen / best - 1 : 1;
    lost += loss;
    if (loss > 0.1) far++;
    judged++;
    float measured = measured_unaligned(mine, ways, sizes, way, classes);
    lost_measured += measured > 0 ? measured / best - 1 : 1;
  }
  fclose(file);
  printf(
      "unaligned: %d products, %.2f %% lost on average, more than 10 %% at %d; %.2f %% if "
      "measured\n",
      judged, 100 * lost / judged, far, 100 * lost_measured / judged);
  check_that(lost_measured / judged < MOST_LOST_UNALIGNED_MEASURED, "%.4f lost if measured",
             lost_measured / judged);
  check_that(judged > 250, "%d unaligned products judged", judged);
  check_that(lost / judged < MOST_LOST_UNALIGNED, "%.4f lost on average", lost / judged);
  check_that(far < MOST_FAR_UNALIGNED * judged, "%d lose more than 10 %%", far);
}

// Kernels that read an operand in place have no other tiles, so they must not leave most SMs idle.
static void choose_in_place(void) {
  enum { LEAST_CTAS = 24 };
  static const int sizes[] = {8, 40, 64, 120, 200, 320, 627, 1105, 2061, 5497, 9460, 16000};
  static const int ks[] = {70, 333, 1002, 1761, 3870, 9999};
  enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), KS = sizeof(ks) / sizeof(ks[0]) };
  int in_place = 0;
  uint16_t *memory;
  CUDA_CHECK(cudaMalloc(&memory, 16));
  for (int i = 0; i < SIZES * SIZES * KS; i++) {
    int m = sizes[i % SIZES], n = sizes[i / SIZES % SIZES], k = ks[i / SIZES / SIZES];
    PipelinedGemm gemm;
    GemmProblem problem = gemm_problem(m, n, k, memory, memory, memory);
    GemmStatus status = pipelined_gemm_plan<GEMM_BF16>(&gemm, &problem);
    check_that(status.error == GEMM_OK, "%d x %d x %d: error %d", m, n, k, status.error);
    if (status.error != GEMM_OK) continue;
    if (gemm.configuration->in_place) {
      in_place++;
      check_that(gemm.blocks >= LEAST_CTAS, "%d x %d x %d: %s has %d CTAs", m, n, k,
                 gemm.configuration->name, gemm.blocks);
    }
    CUDA_CHECK(pipelined_gemm_end(&gemm));
  }
  CUDA_CHECK(cudaFree(memory));
  check_that(in_place > 50, "%d of %d products are read in place", in_place, SIZES * SIZES * KS);
}

static void time_the_choice(void) {
  enum { TIMES = 200 };
  GemmConfigurations all = all_configurations();
  clock_t begin = clock();
  int found = 0;
  for (int i = 0; i < TIMES; i++) {
    found += gemm_choose(&gemm_model, all.list, all.count, 100 + 17 * i, 3000 - i, 64 + i, 1, 132,
                         GEMM_BY_ALL_THAT_CARRY, 0) != NULL;
  }
  double each = (double)(clock() - begin) / CLOCKS_PER_SEC / TIMES;
  printf("a choice takes %.0f microseconds\n", each * 1e6);
  check_that(found == TIMES, "something is chosen each time");
  check_that(each < 1e-3, "a choice takes %g seconds", each);
}

// Do a plan's tiles have all of C? Those of gemm_rows are divided among CTAs and groups of warps.
static bool covers_c(const PipelinedGemm *gemm, int m, int n) {
  const GemmConfiguration *c = gemm->configuration;
  if (c->most_rows > 0) {
    return m <= c->most_rows && gemm_divide_up(n, gemm->blocks) <= gemm->work.groups * c->tile_n &&
           gemm->work.groups * 2 * 32 <= c->threads;
  }
  int rows = c->swapped ? n : m, columns = c->swapped ? m : n;  // of what it computes
  return gemm->work.order.rows * c->tile_m * c->cluster_m >= rows &&
         gemm->work.order.columns * gemm->work.width * c->cluster_n >= columns;
}

int main(int argc, char **argv) {
  program_begin("choices", argc, argv, NULL, 0);
  for (size_t i = 0; i < sizeof(replayed) / sizeof(replayed[0]); i++) {
    printf("%s:\n", replayed[i].path);
    replay_measurements(&replayed[i]);
    replay_ranks(&replayed[i]);
  }
  replay_epilogues("07_pipelined_gemm/measured/epilogues.csv");
  choose_for_epilogues();
  replay_unaligned("07_pipelined_gemm/measured/unaligned.csv");
  choose_in_place();
  time_the_choice();
  long grids = 0, shapes = 0, shared = 0, two_rounds = 0;
  for (int workers = 1; workers <= 74; workers += workers < 8 ? 1 : 11) {
    for (int tiles = 1; tiles <= 3 * workers; tiles++) {
      for (int steps = 2; steps <= 300; steps += steps < 20 ? 1 : 31) {
        TileShares shares = tile_shares(tiles, steps, workers, 4 + tiles % 6);
        check_that(shares_every_step(shares), "%d tiles of %d steps for %d workers: each step once",
                   tiles, steps, workers);
        if (shares_have_parts(shares)) shared++;
        if (shares.left > workers) {
          two_rounds++;
          check_that(in_two_parts(shares),
                     "%d tiles of %d steps for %d workers: two parts of a tile", tiles, steps,
                     workers);
        }
      }
    }
  }
  check_that(shared > 1000, "%ld of these cases have shared tiles", shared);
  check_that(two_rounds > 300, "%ld of these cases share a round more", two_rounds);
  for (int rows = 1; rows <= 24; rows++) {
    for (int columns = 1; columns <= 24; columns++) {
      for (int band = 1; band <= 17; band += 2) {
        for (int by_columns = 0; by_columns < 2; by_columns++) {
          TileOrder order = {rows, columns, band, by_columns};
          check_that(covers_every_tile(order), "%d x %d tiles in bands of %d%s: each once", rows,
                     columns, band, by_columns ? " columns" : "");
          grids++;
        }
      }
    }
  }
  // Neighbours in a band: the next tile is the next row of the same column, or the first of the
  // next.
  TileOrder order = {4, 5, 2, 0};
  TilePlace first = tile_place(order, 0), second = tile_place(order, 1),
            back = tile_place(order, 10);
  check_that(first.row == 0 && first.column == 0 && second.row == 1 && second.column == 0,
             "a band is walked column by column");
  check_that(back.row == 2 && back.column == 4, "the second band goes backwards");

  static const int sizes[] = {1, 8, 63, 64, 65, 127, 128, 129, 500, 1024, 2048, 4096, 5000, 16384};
  enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
  uint16_t *memory;
  CUDA_CHECK(cudaMalloc(&memory, 16));
  for (int i = 0; i < SIZES; i++) {
    for (int j = 0; j < SIZES; j++) {
      for (int k = 8; k <= 16384; k += k < 256 ? 8 : k) {
        int m = sizes[i], n = sizes[j];
        PipelinedGemm gemm;
        GemmProblem problem = gemm_problem(m, n, k, memory, memory, memory);
        GemmStatus status = pipelined_gemm_plan<GEMM_BF16>(&gemm, &problem);
        check_that(status.error == GEMM_OK, "%d x %d x %d: error %d", m, n, k, status.error);
        if (status.error != GEMM_OK) continue;
        const GemmConfiguration *c = gemm.configuration;
        check_that(covers_c(&gemm, m, n), "%d x %d x %d: %s covers C", m, n, k, c->name);
        check_that(c->most_rows > 0 || gemm.work.order.band >= 1, "%d x %d x %d: a band of %d", m,
                   n, k, gemm.work.order.band);
        check_that(gemm.shared_bytes <= GEMM_MOST_SHARED_BYTES, "%s: %d bytes of shared memory",
                   c->name, gemm.shared_bytes);
        CUDA_CHECK(pipelined_gemm_end(&gemm));
        shapes++;
      }
    }
  }
  CUDA_CHECK(cudaFree(memory));
  return program_end("%ld grids, %ld shapes", grids, shapes);
}
