/* gemm_shapes.cuh: what a configuration makes of a product: how wide its tiles are, how many clusters run at
 * once, how long its ring is, and which products it can compute at all. */
#ifndef PIPELINED_GEMM_GEMM_SHAPES_CUH
#define PIPELINED_GEMM_GEMM_SHAPES_CUH

#include "gemm_types.cuh"

/* A product as a kernel sees it: with m and n swapped if its operands are, and k in 16-bit elements. */
typedef struct {
  int64_t m, n, k, batches;
  int sms;
  bool plain;    /* C is only rounded */
  bool anywhere; /* rows of C begin anywhere */
} GemmShape;

static inline GemmShape gemm_shape_for(const GemmConfiguration *c, GemmShape shape) {
  int64_t m = shape.m;
  if (c->swapped) shape.m = shape.n, shape.n = m;
  return shape;
}

/* Steps of 64 k. gemm_carry needs some in which to store; TMA fills what a shorter k lacks with zeros. */
static inline int gemm_steps(const GemmConfiguration *c, int64_t k) {
  enum { CARRY_STEPS = 4 };
  int steps = (int)((k + GEMM_STEP_K - 1) / GEMM_STEP_K);
  return c->kind == GEMM_CARRY && steps < CARRY_STEPS ? CARRY_STEPS : steps;
}

/* Clusters of this configuration that run at once, if each SM has one block. An H200's GPCs have 16 or 18
 * SMs: clusters of 4 and 8 leave about one SM of 11 idle. */
static inline int gemm_clusters_at_once(const GemmConfiguration *c, int sms) {
  int cluster = c->cluster_m * c->cluster_n * c->split_k;
  int clusters = (cluster < 4 ? sms : sms * 10 / 11) / cluster;
  return clusters > 0 ? clusters : 1;
}

/* A configuration can be used in several ways: gemm_single with 1, 2, ... clusters for a tile, and with rings so short
 * that 1, 2, ... blocks fit on an SM; gemm_carry with each width, without and with shared tiles. */
static inline int gemm_ways(const GemmConfiguration *c) {
  return c->kind == GEMM_CARRY ? 2 * ((c->tile_n - c->least_n) / c->step_n + 1)
                               : c->most_groups * c->most_blocks;
}

static inline GemmConfiguration gemm_way(const GemmConfiguration *of, int number) {
  GemmConfiguration c = *of;
  if (c.kind != GEMM_CARRY) {
    c.groups = 1 + number % c.most_groups;
    c.blocks_per_sm = 1 + number / c.most_groups;
    return c;
  }
  c.kernel = c.kernels[number / 2];
  c.width = c.tile_n - number / 2 * c.step_n;
  c.shared = number % 2;
  return c;
}

/* How gemm_single and gemm_carry cut C into tiles. */
typedef struct {
  int width;             /* of a tile */
  int64_t rows, columns; /* of the clusters' tiles */
  int64_t clusters;      /* for all batches and groups */
  float rounds;          /* gemm_carry: of the cluster that has most to do */
  bool shared;           /* gemm_carry: the last tiles */
} GemmTiling;

/* gemm_carry: who computes which tiles. */
static inline TileShares gemm_shares(const GemmConfiguration *c, int tiles, int steps,
                                     int clusters) {
  return tile_shares(tiles, steps, clusters, c->shared ? 0 : steps);
}

/* Of gemm_carry. If the number of rows of tiles is odd, those of the last row lie beside each other in their
 * clusters. */
static inline GemmTiling gemm_carry_tiling(const GemmConfiguration *c, const GemmShape *s) {
  int64_t rows = (s->m + c->tile_m - 1) / c->tile_m, columns = (s->n + c->width - 1) / c->width;
  GemmTiling tiling = {c->width, rows / 2, columns, 0, 0, false};
  tiling.clusters = (rows / 2 * columns + rows % 2 * ((columns + 1) / 2)) * s->batches;
  int tiles = (int)(tiling.clusters < INT32_MAX ? tiling.clusters : INT32_MAX);
  TileShares shares = gemm_shares(c, tiles, gemm_steps(c, s->k), gemm_clusters_at_once(c, s->sms));
  float last = shares.shared ? (float)shares.left / (float)shares.clusters : shares.left > 0;
  tiling.rounds = (float)shares.whole + last;
  tiling.shared = shares.shared;
  return tiling;
}

/* Of gemm_single: the narrowest tiles with which the clusters need no more rounds on the SMs than with the widest. */
static inline GemmTiling gemm_tiling(const GemmConfiguration *c, const GemmShape *s) {
  if (c->kind == GEMM_CARRY) return gemm_carry_tiling(c, s);
  int64_t across = c->tile_n * c->cluster_n, down = c->tile_m * c->cluster_m;
  GemmTiling tiling = {c->tile_n, (s->m + down - 1) / down, (s->n + across - 1) / across, 0, 0,
                       false};
  int64_t of_a_column = tiling.rows * s->batches * c->groups;
  if (c->least_n < c->tile_n) {
    int64_t at_once = gemm_clusters_at_once(c, s->sms);
    int64_t rounds = (of_a_column * tiling.columns + at_once - 1) / at_once;
    int64_t tiles = rounds * at_once / of_a_column * c->cluster_n; /* in a row, at most */
    int64_t width = (s->n + tiles - 1) / tiles;
    width = (width + c->step_n - 1) / c->step_n * c->step_n;
    tiling.width = (int)(width < c->least_n ? c->least_n : width);
    across = tiling.width * c->cluster_n;
    tiling.columns = (s->n + across - 1) / across;
  }
  tiling.clusters = of_a_column * tiling.columns;
  return tiling;
}

/* How gemm_short divides C: strips of columns, each shared by some blocks. */
typedef struct {
  int width;  /* of a strip */
  int parts;  /* blocks that share it, each with as many of its rows */
  float work; /* of the block with most, in lines of 64 values that it stores */
} GemmShortShare;

/* The strips with which the block that stores most stores least. Widths are multiples of 16: 32 bytes, what
 * L2 writes at once. Where rows begin anywhere, a strip ends up to 7 columns late: its tile has space for that. */
static inline GemmShortShare gemm_short_share(const GemmConfiguration *c, const GemmShape *s) {
  enum { LEAST = 32 };
  const int64_t unit = s->anywhere ? 8 : 16;
  const float start = 200; /* of a block: in lines stored; and */
  const int64_t more = 16; /* columns, what a row costs beside its own */
  int64_t widest = s->anywhere && s->n > c->tile_n ? c->tile_n - 8 : c->tile_n;
  int64_t rows = (s->m + c->tile_m - 1) / c->tile_m, strips = (s->n + widest - 1) / widest;
  int64_t most = (s->n + LEAST - 1) / LEAST < s->sms ? (s->n + LEAST - 1) / LEAST : s->sms;
  GemmShortShare best = {0, 0, 0};
  do {
    int64_t width = ((s->n + strips - 1) / strips + unit - 1) / unit * unit;
    int64_t columns = (s->n + width - 1) / width * s->batches;
    int64_t parts = columns < s->sms ? s->sms / columns : 1;
    if (parts > rows) parts = rows;
    float rounds = (float)((columns * parts + s->sms - 1) / s->sms);
    float work = rounds * ((float)((rows + parts - 1) / parts) * (float)(width + more) + start);
    if (best.parts == 0 || work < best.work) {
      best.width = (int)width, best.parts = (int)parts, best.work = work;
    }
  } while (++strips <= most);
  return best;
}

/* Of shared memory: for a stage of the ring; and for what is not in the ring. */
static inline int gemm_stage_bytes(const GemmConfiguration *c, int width) {
  return (c->tile_m + (c->kind == GEMM_SHORT ? 0 : width)) * GEMM_ROW_BYTES;
}

static inline int gemm_kept_bytes(const GemmConfiguration *c, int steps) {
  return c->fixed_bytes + (c->kind == GEMM_SHORT ? steps * c->tile_n * GEMM_ROW_BYTES : 0);
}

/* The length of the ring: in gemm_single no longer than the product needs. In gemm_short each stage is always
 * filled for the same warpgroup. */
static inline int gemm_ring_stages(const GemmConfiguration *c, int width, int steps) {
  enum { SM_BYTES = 228 * 1024, RESERVED_BYTES = 1024 }; /* of shared memory; for each block */
  if (c->kind == GEMM_CARRY) return c->stages;
  int each = gemm_divide_up(steps, c->split_k * c->groups);
  int bytes = SM_BYTES / c->blocks_per_sm - RESERVED_BYTES - gemm_kept_bytes(c, steps);
  int most = bytes / gemm_stage_bytes(c, width);
  if (most > c->stages) most = c->stages;
  if (c->kind == GEMM_SHORT) { /* whole tiles, the same number for each consumer warpgroup */
    int of_a_tile_each = steps * (c->threads / 128 - 1);
    return most - most % of_a_tile_each;
  }
  return each < most ? each : most;
}

/* Only the widest tiles do more than to round. Tiles that come out even cannot be shared. */
static inline bool gemm_carry_fits(const GemmConfiguration *c, const GemmShape *s) {
  GemmShape shape = gemm_shape_for(c, *s);
  return !s->anywhere && (s->plain || (!c->swapped && c->width == c->tile_n)) &&
         (!c->shared || gemm_carry_tiling(c, &shape).shared);
}

/* Can this configuration compute such a product? */
static inline bool gemm_fits(const GemmConfiguration *c, const GemmShape *s) {
  int steps = gemm_steps(c, s->k), parts = c->split_k * c->groups;
  /* A stage is freed while the next one is multiplied, so a ring of one stage would hang. */
  int least_stages = steps > parts ? 2 : 1;
  return c->kernel != NULL && steps >= parts && (c->kind != GEMM_CARRY || gemm_carry_fits(c, s)) &&
         (c->kind != GEMM_SHORT || (s->plain && steps <= c->most_steps)) &&
         gemm_ring_stages(c, c->tile_n, steps) >= least_stages;
}

#endif
