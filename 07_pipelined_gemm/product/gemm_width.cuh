/* gemm_width.cuh: how wide the tiles of gemm_single are for a product.
 *
 * A kernel with tiles of 128 columns can have narrower ones, of any multiple of 8 from 72 on. Its loop
 * over k is compiled for each width. So a product gets the narrowest tiles with which its CTAs need no
 * more rounds on the SMs than with the widest:
 *
 *     1174 x 1280 in tiles of 128 x 128    10 x 10 tiles: 100 of 132 SMs work
 *                             128 x 104    10 x 13 tiles: 130 of 132 SMs work, each less */
#ifndef PIPELINED_GEMM_GEMM_WIDTH_CUH
#define PIPELINED_GEMM_GEMM_WIDTH_CUH

#include "gemm_types.cuh"

constexpr int GEMM_MOST_WIDTHS = 8; /* for which a kernel is compiled */

/* The narrowest tile of a kernel whose widest has `columns`. */
static inline constexpr int gemm_least_width(int columns, int step) {
  return columns - (GEMM_MOST_WIDTHS - 1) * step > (step > 16 ? step : 16)
             ? columns - (GEMM_MOST_WIDTHS - 1) * step
         : step > 16 ? step
                     : 16;
}

/* Clusters of this configuration that run at once, if each SM has one CTA. An H200's GPCs have 16 or 18
 * SMs: clusters of 4 and 8 leave about one SM of 11 idle. */
static inline int gemm_clusters_at_once(const GemmConfiguration *c, int sms) {
  int cluster = c->cluster_m * c->cluster_n * c->split_k;
  int clusters = (cluster < 4 ? sms : sms * 10 / 11) / cluster;
  return clusters > 0 ? clusters : 1;
}

/* How gemm_short divides C: blocks of columns, each shared by some CTAs. */
typedef struct {
  int width; /* of a block */
  int parts; /* CTAs that share it, each with as many of its rows */
} GemmShortShare;

/* The blocks with which the CTA that has most to store has least. Widths are multiples of 16: 32 bytes, what
 * L2 writes at once. Where rows begin anywhere, a block ends up to 7 columns late: its tile has room for that. */
static inline GemmShortShare gemm_short_share(const GemmConfiguration *c, int64_t m, int64_t n,
                                              int64_t batches, int sms, bool anywhere) {
  enum { LEAST = 32 };
  const int64_t UNIT = anywhere ? 8 : 16;
  const float start = 200; /* of a CTA, and of a tile: in columns of 64 values stored */
  int64_t widest = anywhere && n > c->tile_n ? c->tile_n - 8 : c->tile_n;
  int64_t rows = (m + c->tile_m - 1) / c->tile_m, blocks = (n + widest - 1) / widest;
  int64_t most = (n + LEAST - 1) / LEAST < sms ? (n + LEAST - 1) / LEAST : sms;
  GemmShortShare best = {(int)widest, 1};
  float least = 0;
  do {
    int64_t width = ((n + blocks - 1) / blocks + UNIT - 1) / UNIT * UNIT;
    int64_t columns = (n + width - 1) / width * batches, parts = columns < sms ? sms / columns : 1;
    if (parts > rows) parts = rows;
    float rounds = (float)((columns * parts + sms - 1) / sms);
    float work = rounds * ((float)((rows + parts - 1) / parts) * (float)(width + 16) + start);
    if (least == 0 || work < least) {
      least = work;
      best.width = (int)width, best.parts = (int)parts;
    }
  } while (++blocks <= most);
  return best;
}

constexpr int GEMM_ROWS_WAYS = 6; /* configurations of gemm_rows */

/* How gemm_rows divides B's rows: CTAs, and groups of their warps, each with so many tiles of 8. */
typedef struct {
  int blocks, groups, tiles;
} GemmRowsShare;

/* As many CTAs as run at once, or a multiple of them, so that no warp has more than `most_tiles`. */
static inline GemmRowsShare gemm_rows_share(int64_t n, int ctas, int sms, int most_tiles) {
  const int most_groups = 4; /* of eight warps or more, so that at least two share k */
  int64_t at_once = (int64_t)ctas * sms, most = 8 * most_tiles * most_groups;
  int64_t rounds = (n + at_once * most - 1) / (at_once * most), blocks = rounds * at_once;
  int tiles = (int)(((n + blocks - 1) / blocks + 7) / 8);
  GemmRowsShare share = {(int)blocks, 1, 0};
  while (share.groups * most_tiles < tiles) share.groups *= 2;
  share.tiles = (tiles + share.groups - 1) / share.groups;
  return share;
}

/* m and n are those of the kernel's product, so already swapped if its operands are. */
static inline int gemm_tile_width(const GemmConfiguration *c, int64_t m, int64_t n, int64_t batches,
                                  int sms) {
  if (c->least_n == c->tile_n) return c->tile_n;
  int64_t rows = (m + c->tile_m * c->cluster_m - 1) / (c->tile_m * c->cluster_m);
  int64_t columns = (n + c->tile_n * c->cluster_n - 1) / (c->tile_n * c->cluster_n);
  int64_t of_a_column = rows * batches * c->groups, at_once = gemm_clusters_at_once(c, sms);
  int64_t rounds = (of_a_column * columns + at_once - 1) / at_once;
  int64_t most_columns = rounds * at_once / of_a_column * c->cluster_n;
  int64_t width = (n + most_columns - 1) / most_columns;
  width = (width + c->step_n - 1) / c->step_n * c->step_n;
  return (int)(width < c->least_n ? c->least_n : width);
}

/* Of shared memory: for a stage of the ring; and for what is not in the ring. */
static inline int gemm_stage_bytes(const GemmConfiguration *c, int width) {
  return (c->tile_m + (c->most_steps > 0 ? 0 : width)) * GEMM_STEP_K * 2;
}

static inline int gemm_kept_bytes(const GemmConfiguration *c, int steps) {
  return c->fixed_bytes + (c->most_steps > 0 ? steps * c->tile_n * GEMM_STEP_K * 2 : 0);
}

/* The length of the ring: in gemm_single no longer than the product needs. In gemm_short each stage is always filled
 * for the same warpgroup. */
static inline int gemm_ring_stages(const GemmConfiguration *c, int width, int steps) {
  enum { SM_BYTES = 228 * 1024, RESERVED_BYTES = 1024 }; /* of shared memory; for each CTA */
  if (c->persistent) return c->stages;
  int each = gemm_divide_up(steps, c->split_k * c->groups);
  int bytes = SM_BYTES / c->ctas - RESERVED_BYTES - gemm_kept_bytes(c, steps);
  int most = bytes / gemm_stage_bytes(c, width);
  if (most > c->stages) most = c->stages;
  if (c->most_steps > 0) { /* whole tiles, the same number for each consumer warpgroup */
    int of_a_tile_each = steps * (c->threads / 128 - 1);
    return most - most % of_a_tile_each;
  }
  return each < most ? each : most;
}

#endif
