/* gemm_choose.cuh: orders the configurations for a product by an estimate of the time that each takes.
 *
 * You can follow the estimate with pencil and paper. The number of tiles of C and of clusters that run at once
 * gives the rounds of each SM, and each round has a number of steps of 64 k. These take:
 *
 *   the tensor cores    busy steps x area of a tile
 *   loads of an SM      busy steps x bytes that a block loads itself
 *   L2                  the bytes that all blocks load
 *   latency             busy steps / stages in flight
 *   memory              the bytes of A, B and C beyond what L2 holds
 *   C                   its bytes
 *
 * They overlap, so the longest counts, and of the others a part. What does not overlap is added: the launch,
 * the ends of tiles, the sums of a split k. The constants were fitted to the times of all configurations at 100
 * products on an H100, and five of them later to the 178 in measured/configurations.csv, so some of them stand
 * for more than their name says. NOTES.md says how good the choice is. */
#ifndef PIPELINED_GEMM_GEMM_CHOOSE_CUH
#define PIPELINED_GEMM_GEMM_CHOOSE_CUH

#include <math.h>

#include "gemm_shapes.cuh"

/* Rates, per microsecond: */
constexpr float GEMM_CLOCKS =
    1650; /* of a hot chip; with the next line, what the tensor cores do */
constexpr float GEMM_AREA_A_CLOCK = 32; /* elements of a tile, for 64 k: their peak */
constexpr float GEMM_SM_BYTES = 72;     /* a clock, that an SM loads */
constexpr float GEMM_L2_MB = 19.5f;     /* that all SMs load */
constexpr float GEMM_MEMORY_MB = 1.65f; /* of A, B and C beyond what L2 holds */
constexpr float GEMM_STORE_MB = 1.63f;  /* of C */
constexpr float GEMM_SHORT_LINES = 140; /* of 64 values, stored by a block of gemm_short */
/* Microseconds: */
constexpr float GEMM_LAUNCH = 0.61f;
constexpr float GEMM_LATENCY = 1.4f;     /* from a load to its data, under load */
constexpr float GEMM_TILE_START = 1.23f; /* until a tile's first data are there */
constexpr float GEMM_TILE_END = 0.85f;   /* to store a tile of GEMM_LARGE_TILE elements, */
constexpr float GEMM_CARRY_END = 0.3f;   /* or to round it, if it is stored later, */
constexpr float GEMM_NARROW_END = 1.2f;  /* 32 bytes of a row at once, */
constexpr float GEMM_SWAPPED_END = 2.2f; /* or transposed */
constexpr float GEMM_SPLIT = 0.53f;      /* to add over a cluster */
constexpr float GEMM_GROUPS = 1.4f;      /* to add over clusters: at all, */
constexpr float GEMM_GROUP = 3;          /* and a large tile of each cluster but one */
constexpr float GEMM_SHORT_START =
    1; /* of gemm_short, whose blocks first load their columns of B, */
constexpr float GEMM_SHORT_STEP = 0.16f; /* in so many steps of k */
/* Others: */
constexpr float GEMM_L2_HOLDS = 12;      /* megabytes, without a price */
constexpr float GEMM_LARGE_TILE = 32768; /* elements: 128 x 256 */
constexpr float GEMM_OTHERS = 0.14f;     /* of the terms that are not the longest */

/* Adds up terms that overlap. */
typedef struct {
  float longest, sum;
} GemmTerms;

static inline void gemm_add_term(GemmTerms *terms, float microseconds) {
  if (microseconds > terms->longest) terms->longest = microseconds;
  terms->sum += microseconds;
}

static inline float gemm_megabytes(int64_t rows, int64_t columns, int64_t batches) {
  return (float)rows * (float)columns * (float)batches * 2e-6f;
}

static inline int64_t gemm_at_most(int64_t value, int64_t most) {
  return value < most ? value : most;
}

/* Microseconds that a product takes by a configuration that can compute it. */
static inline float gemm_estimate(const GemmConfiguration *c, const GemmShape *product) {
  GemmShape s = gemm_shape_for(c, *product);
  GemmTerms terms = {0, 0};
  float c_bytes = gemm_megabytes(s.m, s.n, s.batches);
  float bytes = c_bytes + gemm_megabytes(s.m, s.k, s.batches) + gemm_megabytes(s.n, s.k, s.batches);
  gemm_add_term(&terms, bytes > GEMM_L2_HOLDS ? (bytes - GEMM_L2_HOLDS) / GEMM_MEMORY_MB : 0);
  gemm_add_term(&terms, c_bytes / GEMM_STORE_MB);
  int steps = gemm_steps(c, s.k);
  if (c->kind == GEMM_SHORT) {
    gemm_add_term(&terms, gemm_short_share(c, &s).work / GEMM_SHORT_LINES);
    return GEMM_LAUNCH + GEMM_SHORT_START + terms.longest + GEMM_SHORT_STEP * (float)steps;
  }

  GemmTiling tiling = gemm_tiling(c, &s);
  int at_once = gemm_clusters_at_once(c, s.sms);
  float rounds = (float)((tiling.clusters + at_once - 1) / at_once);
  float resident = rounds < (float)c->blocks_per_sm
                       ? rounds
                       : (float)c->blocks_per_sm; /* blocks on an SM at once */
  int each = gemm_divide_up(steps, c->split_k * c->groups);
  float busy = rounds * (float)each, area = (float)(c->tile_m * tiling.width);
  if (c->kind == GEMM_CARRY) busy = tiling.rounds * (float)steps;
  if (tiling.shared) busy += (float)share_cost(steps);
  /* Of a tile that is not full, TMA reads what is there. A row of a step lies in two lines of L2 where rows do
   * not begin at 128 bytes. */
  int64_t rows = gemm_at_most(c->tile_m, (s.m + 7) / 8 * 8) / c->cluster_n;
  int64_t columns = gemm_at_most(tiling.width, (s.n + 7) / 8 * 8) / c->cluster_m;
  float own = (float)(rows + columns) * GEMM_ROW_BYTES * (s.k % 8 == 0 && s.k % 64 != 0 ? 2 : 1);
  int blocks = c->cluster_m * c->cluster_n * c->split_k;
  int stages = gemm_ring_stages(c, tiling.width, steps);
  gemm_add_term(&terms, busy * area / GEMM_AREA_A_CLOCK / GEMM_CLOCKS);
  gemm_add_term(&terms, busy * own / GEMM_SM_BYTES / GEMM_CLOCKS);
  gemm_add_term(&terms, (float)tiling.clusters * (float)(blocks * each) * own / 1e6f / GEMM_L2_MB);
  gemm_add_term(&terms, busy * GEMM_LATENCY / ((float)stages * resident));

  float body = terms.longest + GEMM_OTHERS * (terms.sum - terms.longest);
  float large = area / GEMM_LARGE_TILE, end = GEMM_TILE_START + GEMM_TILE_END * large;
  if (c->kind == GEMM_CARRY) {
    float narrow = gemm_carry_box(c->width) == 16 ? GEMM_NARROW_END : GEMM_CARRY_END;
    return GEMM_LAUNCH + body + (c->swapped ? GEMM_SWAPPED_END : narrow) * rounds + end;
  }
  float time = GEMM_LAUNCH + body + end * ceilf(rounds / (float)c->blocks_per_sm);
  if (c->split_k > 1) time += GEMM_SPLIT;
  if (c->groups > 1) time += GEMM_GROUPS + GEMM_GROUP * large * (float)(c->groups - 1);
  return time;
}

constexpr int GEMM_MOST_CANDIDATES = 160; /* of those with the least estimates */

/* Configurations that can compute a product, in each way, the fastest by the estimate first. */
typedef struct {
  GemmConfiguration list[GEMM_MOST_CANDIDATES];
  int count;
} GemmCandidates;

static inline void gemm_candidates(GemmConfigurations all, const GemmShape *product,
                                   GemmCandidates *candidates) {
  float times[GEMM_MOST_CANDIDATES];
  candidates->count = 0;
  for (int i = 0; i < all.count; i++) {
    for (int way = 0; way < gemm_ways(&all.list[i]); way++) {
      GemmConfiguration c = gemm_way(&all.list[i], way);
      if (!gemm_fits(&c, product)) continue;
      float time = gemm_estimate(&c, product);
      int at = candidates->count;
      for (; at > 0 && times[at - 1] > time; at--) {
        if (at < GEMM_MOST_CANDIDATES)
          times[at] = times[at - 1], candidates->list[at] = candidates->list[at - 1];
      }
      if (at < GEMM_MOST_CANDIDATES) times[at] = time, candidates->list[at] = c;
      if (candidates->count < GEMM_MOST_CANDIDATES) candidates->count++;
    }
  }
}

#endif
