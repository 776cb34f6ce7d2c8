/* gemm_choose.cuh: chooses the configuration for a product: the one for which a model predicts the
 * least time.
 *
 * The model starts with what is known to cost time, in microseconds: the steps of the tensor cores,
 * the bytes that an SM loads, the bytes that L2 delivers, the latency of a stage, what exceeds L2, the
 * stores, the ends of tiles, the sums of a split k. Of the terms that overlap, the longest counts most.
 * Small neural networks predict the factor that this leaves unexplained. They see the same terms, the
 * padding of the tiles, and the sizes. tools/fit_model.py fits both to measurements on an H200
 * (measured/hot.csv, streamed.csv and configurations.csv) and writes gemm_model.cuh. What an epilogue adds to a plain product is
 * another sum of terms, fitted to measured/epilogues.csv.
 *
 * A program may choose for every product anew, so this must be fast. Configurations that a rough estimate finds
 * hopeless never reach the networks. What the networks see of the product alone enters their sums once, and
 * what they see of the configuration alone is in gemm_model.cuh already. */
#ifndef PIPELINED_GEMM_GEMM_CHOOSE_CUH
#define PIPELINED_GEMM_GEMM_CHOOSE_CUH

#include <math.h>

#include "gemm_width.cuh"
#include "tile_shares.cuh"

enum {
  GEMM_OVERLAPPING = 7, /* terms of which the longest counts */
  GEMM_TERMS = 19,      /* all of them; the others are added up */
  GEMM_ASIDE = 13,      /* what the networks see of the product alone, */
  GEMM_FEATURES = 19,   /* of the product and the configuration, */
  GEMM_TRAITS = 9,      /* and of the configuration alone */
  GEMM_HIDDEN = 32,     /* values of each of a network's two layers */
  GEMM_NETWORKS = 2,
  GEMM_WIDTH = GEMM_NETWORKS * GEMM_HIDDEN,
  GEMM_END_TERMS = 9, /* of what an epilogue costs */
  GEMM_MODELLED = 106 /* configurations */
};

constexpr float GEMM_HOPELESS = 1e30f;        /* for a time */
constexpr float GEMM_IMPOSSIBLE = 2e30f;      /* likewise */
constexpr float GEMM_LEAST_PERSISTENT = 1e9f; /* multiplications, for persistent kernels */

/* Parts of an epilogue that cost time beside that of a plain product, as bits. */
enum { GEMM_END_BETA = 1, GEMM_END_ACTIVATION = 2, GEMM_END_FP32 = 4, GEMM_ENDS = 3 };

/* The mean of several networks predicts better than any one of them. Their values lie side by side. */
typedef struct {
  float launch;
  float term[GEMM_TERMS];    /* factors */
  float body[GEMM_MODELLED]; /* factor of a configuration's overlapping terms */
  float aside[GEMM_ASIDE][GEMM_WIDTH];
  float first[GEMM_FEATURES][GEMM_WIDTH];
  float first_bias[GEMM_MODELLED][GEMM_WIDTH]; /* each configuration's own, with its traits in it */
  float second[GEMM_NETWORKS][GEMM_HIDDEN][GEMM_HIDDEN];
  float second_bias[GEMM_WIDTH];
  float last[GEMM_WIDTH]; /* divided by the number of networks */
  float ends[GEMM_ENDS]
            [GEMM_END_TERMS]; /* microseconds; of the old C, of bias and activation, of C in fp32 */
} GemmModel;

/* Steps of 64 k. If the kernel needs more steps, TMA fills the additional ones with zeros. */
static inline int gemm_steps(const GemmConfiguration *c, int64_t k) {
  int64_t steps = (k + GEMM_STEP_K - 1) / GEMM_STEP_K;
  return (int)(steps < c->least_steps ? c->least_steps : steps);
}

/* The kernel of a configuration that carries for such products, or NULL. */
static inline const void *gemm_carrying_kernel(const GemmConfiguration *c, GemmCarried carried) {
  bool by_all =
      carried == GEMM_BY_ALL_THAT_CARRY || (carried == GEMM_BY_SHORT && c->most_steps > 0);
  return by_all                              ? c->kernel
         : carried == GEMM_BY_FINISHING      ? c->finishing
         : carried == GEMM_BY_FINISHING_FP32 ? c->finishing_fp32
                                             : NULL;
}

/* Can this configuration compute a product of this k? `carried`: which kernels that carry can. */
static inline bool gemm_fits(const GemmConfiguration *c, int64_t k, GemmCarried carried) {
  int steps = gemm_steps(c, k);
  /* A stage is freed while the next one is multiplied, so a ring of one stage would hang. */
  int parts = c->split_k * c->groups, least_stages = steps > parts ? 2 : 1;
  return c->kernel != NULL && steps >= parts && c->groups <= GEMM_MOST_GROUPS &&
         (!c->direct || k % 8 != 0) && (c->most_steps == 0 || steps <= c->most_steps) &&
         (!c->carries || gemm_carrying_kernel(c, carried) != NULL) &&
         gemm_ring_stages(c, c->tile_n, steps) >= least_stages;
}

/* The best sharing of left-over tiles (tile_shares.cuh), nearly: the steps of the cluster with most beyond its
 * `whole` tiles, and of how many parts a tile consists. */
static inline int gemm_shared_steps(int whole, int left, int steps, int clusters, int sum_steps,
                                    int *parts) {
  int least = gemm_divide_up(left * steps, clusters), best = steps, most = steps;
  if (least < 2 * SHARES_LEAST_STEPS) least = 2 * SHARES_LEAST_STEPS;
  *parts = 1;
  for (int count = 2; count < steps; count++) {
    int each = gemm_divide_up(steps, count);
    if (each < least) each = least;
    int cost = each + count * sum_steps;
    if (cost < best) best = cost, most = each, *parts = count;
    if (each == least || cost > best) break;
  }
  if (whole > 0 && shares_two_rounds(left, steps, clusters, sum_steps) < best) {
    *parts = 2;
    most = gemm_divide_up(left * steps, clusters);
  }
  return most;
}

/* How the work of a product is distributed over the SMs. */
typedef struct {
  float busy_steps; /* of the SM with most work */
  float tile_ends;  /* on that SM */
  float rounds;     /* of CTAs */
  float resident;   /* CTAs on an SM at once */
  float parts;      /* of a tile that several clusters compute; else 1 */
  float part_steps; /* of what a CTA computes of a tile */
  float full;       /* clusters' places over those that have a tile, in all rounds */
} GemmLoad;

static inline GemmLoad gemm_load_of(const GemmConfiguration *c, float tiles, int steps, int sms) {
  int at_once = gemm_clusters_at_once(c, sms);
  GemmLoad load = {0, 0, 1, 1, 1, (float)steps, 1};
  if (c->persistent) {
    int all = tiles < 1e9f ? (int)tiles : 1000000000;
    int whole = all / at_once, left = all - whole * at_once, rest = 0, parts = 1;
    if (left > 0) rest = gemm_shared_steps(whole, left, steps, at_once, c->sum_steps, &parts);
    load.parts = (float)parts;
    load.busy_steps = (float)whole * (float)steps + (float)rest;
    load.tile_ends = (float)(whole + (left > 0));
  } else {
    load.part_steps = (float)gemm_divide_up(steps, c->split_k * c->groups);
    load.parts = (float)c->groups;
    tiles *= (float)c->groups;
    load.tile_ends = ceilf(tiles / (float)at_once);
    load.busy_steps = load.tile_ends * load.part_steps;
    load.rounds = c->most_steps > 0 ? 1 : ceilf(tiles / (float)(at_once * c->ctas));
    load.resident = load.tile_ends < (float)c->ctas ? load.tile_ends : (float)c->ctas;
  }
  load.full = load.tile_ends * (float)at_once / tiles;
  return load;
}

/* A product as a kernel sees it, so with m and n swapped if its operands are. */
typedef struct {
  int64_t m, n, k, batches;
  int sms;
  float a, b, output; /* megabytes */
  bool copied, uneven, in_two;
  bool anywhere;                     /* do rows of C begin anywhere? */
  bool splits_inputs, splits_output; /* do rows begin within sectors of L2? */
  float memory, store, all;          /* microseconds */
} GemmSide;

static inline GemmSide gemm_side(int64_t m, int64_t n, int64_t k, int64_t batches, int sms,
                                 bool swapped) {
  const float mega = 1e6f, l2 = 45; /* megabytes */
  GemmSide side;
  side.m = swapped ? n : m, side.n = swapped ? m : n;
  side.k = k, side.batches = batches, side.sms = sms;
  float count = (float)batches * 2 / mega;
  side.a = (float)side.m * (float)k * count, side.b = (float)side.n * (float)k * count;
  side.output = (float)m * (float)n * count;
  side.copied = k % 8 != 0, side.uneven = side.anywhere = n % 8 != 0;
  side.in_two = !side.copied && k % 64 != 0; /* a row of 64 k lies in two lines of L2 */
  /* Sectors have 32 bytes. Copies have lines of whole pieces of 16 bytes. */
  side.splits_inputs = (k + 7) / 8 % 2 != 0;
  side.splits_output = n % 16 != 0;
  side.all = (side.a + side.b + side.output) / 4.2f;
  side.memory = side.a + side.b + side.output > l2 ? side.all - l2 / 4.2f : 0;
  side.store = side.output / 3.0f;
  return side;
}

/* A product as the kernels see it: as it is, swapped, and as gemm_short sees it, which stores whole sectors of rows
 * wherever these begin. */
enum { GEMM_AS_IT_IS, GEMM_SWAPPED, GEMM_ALIGNED, GEMM_SIDES };

typedef struct {
  GemmSide list[GEMM_SIDES];
} GemmSides;

static inline GemmSides gemm_sides(int64_t m, int64_t n, int64_t k, int64_t batches, int sms) {
  const int64_t sector = 16; /* elements */
  int64_t aligned = n % 8 == 0 ? n : (n + sector - 1) / sector * sector;
  GemmSides sides = {{gemm_side(m, n, k, batches, sms, false),
                      gemm_side(m, n, k, batches, sms, true),
                      gemm_side(m, aligned, k, batches, sms, false)}};
  sides.list[GEMM_ALIGNED].anywhere = n % 8 != 0;
  return sides;
}

static inline int gemm_side_of(const GemmConfiguration *c) {
  return c->most_steps > 0 ? GEMM_ALIGNED : c->swapped ? GEMM_SWAPPED : GEMM_AS_IT_IS;
}

static inline void gemm_aside(const GemmSide *side, float *aside) {
  const float values[GEMM_ASIDE] = {logf(side->a + 0.1f),
                                    logf(side->b + 0.1f),
                                    logf(side->memory + 0.1f),
                                    logf(side->store + 0.1f),
                                    logf(side->all + 0.1f),
                                    side->in_two ? 2.0f : 1.0f,
                                    side->copied ? 1.0f : 0,
                                    side->anywhere ? 1.0f : 0,
                                    log2f((float)side->m * (float)side->batches) / 4,
                                    log2f((float)side->n) / 4,
                                    log2f((float)side->k) / 4,
                                    side->splits_inputs ? 1.0f : 0,
                                    side->splits_output ? 1.0f : 0};
  for (int i = 0; i < GEMM_ASIDE; i++) aside[i] = values[i];
}

/* What is known of a configuration and a product. */
typedef struct {
  float terms[GEMM_TERMS]; /* microseconds, except for factors */
  GemmLoad load;
  float stages, columns, row_share,
      column_share; /* in flight; of a tile; of the tiles that is not padding */
  float occupied;   /* of the SMs */
  float end;        /* microseconds that an epilogue adds; set by gemm_find_candidates() */
} GemmFacts;

static inline float gemm_least(float a, float b) { return a < b ? a : b; }

static inline GemmFacts gemm_facts(const GemmConfiguration *c, const GemmSide *side) {
  const float clocks = 1700, mega = 1e6f; /* clocks in a microsecond */
  int64_t m = side->m, n = side->n;
  int steps = gemm_steps(c, side->k);
  int width = c->most_steps > 0
                  ? gemm_short_share(c, m, n, side->batches, side->sms, side->anywhere).width
                  : gemm_tile_width(c, m, n, side->batches, side->sms);
  float row_step = (float)(c->tile_m * c->cluster_m), column_step = (float)(width * c->cluster_n);
  float rows = ceilf((float)m / row_step), columns = ceilf((float)n / column_step);
  float area = (float)(c->tile_m * width), split = (float)c->split_k;
  float tiles = rows * columns * (float)side->batches;
  GemmLoad load = gemm_load_of(c, tiles, steps, side->sms);
  float cluster = (float)(c->cluster_m * c->cluster_n * c->split_k);
  float own = (gemm_least((float)c->tile_m, (float)((m + 7) / 8 * 8)) / (float)c->cluster_n +
               gemm_least((float)width, (float)((n + 7) / 8 * 8)) /
                   (c->most_steps > 0 ? load.tile_ends : (float)c->cluster_m)) *
              128; /* bytes that a CTA loads itself for a step */
  float lines = side->in_two ? 2.0f : 1.0f;
  float stages = (float)gemm_ring_stages(c, width, steps);
  float in_flight = stages * load.resident;
  float tensor = load.busy_steps * area / 32 / clocks;
  float sm = load.busy_steps * own / clocks / 32 * lines;
  float chip = tiles * cluster / split * (float)steps * own / (5.5f * mega) * lines;
  float latency = load.busy_steps / in_flight * 0.7f;
  float copied = side->copied ? 1.0f : 0;
  GemmFacts facts = {{tensor, sm, chip, latency, side->memory, side->store, side->all,
                      load.tile_ends * area * 2 / 65536, load.tile_ends, load.rounds,
                      load.parts - 1, (load.parts - 1) * area / split / 32768,
                      c->split_k > 1 ? 1.0f : 0, area / 32768 * (1 - 1 / split), copied,
                      copied * (side->a + side->b), side->uneven ? side->output : 0,
                      c->persistent ? 1.0f : 0, side->splits_output ? side->store : 0},
                     load,
                     in_flight,
                     (float)width,
                     (float)m / (rows * row_step),
                     (float)n / (columns * column_step),
                     gemm_least(tiles * cluster * (float)c->groups / (float)side->sms, 1),
                     0};
  return facts;
}

/* What the networks see of a product and a configuration; `base` is what gemm_base() answers. */
static inline void gemm_features(const GemmFacts *facts, float base, float *features) {
  const float *terms = facts->terms;
  const GemmLoad *load = &facts->load;
  const float values[GEMM_FEATURES] = {logf(terms[0] + 0.1f),
                                       logf(terms[1] + 0.1f),
                                       logf(terms[2] + 0.1f),
                                       logf(terms[3] + 0.1f),
                                       logf(terms[GEMM_OVERLAPPING] + 0.1f),
                                       base,
                                       gemm_least(load->full, 8),
                                       facts->occupied,
                                       logf(load->tile_ends),
                                       logf(load->rounds),
                                       load->parts - 1,
                                       logf(facts->stages),
                                       logf(load->part_steps),
                                       facts->row_share,
                                       facts->column_share,
                                       facts->columns / 64,
                                       1 / load->tile_ends,
                                       1 / load->part_steps,
                                       1 / (facts->stages + 1)};
  for (int i = 0; i < GEMM_FEATURES; i++) features[i] = values[i];
}

/* A rough estimate in microseconds: the longest of the overlapping terms, and a little of all terms. */
static inline float gemm_reckon(const GemmFacts *facts) {
  enum { OF_LOADS = 6 }; /* terms */
  float longest = 0, sum = 0;
  for (int i = 0; i < OF_LOADS; i++) {
    if (facts->terms[i] > longest) longest = facts->terms[i];
    sum += facts->terms[i];
  }
  return 3 + longest + 0.1f * sum + 0.3f * facts->terms[GEMM_OVERLAPPING];
}

/* The natural logarithm of the microseconds that the terms alone predict. The longest of those that overlap
 * counts most: they are added as fourth powers. */
static inline float gemm_base(const GemmModel *model, int configuration, const GemmFacts *facts) {
  float fourths = 0, sum = model->launch;
  for (int i = 0; i < GEMM_OVERLAPPING; i++) {
    float term = facts->terms[i] * model->term[i] + 1e-3f;
    fourths += term * term * term * term;
  }
  for (int i = GEMM_OVERLAPPING; i < GEMM_TERMS; i++) sum += facts->terms[i] * model->term[i];
  return logf(sum + sqrtf(sqrtf(fourths)) * model->body[configuration]);
}

/* Microseconds that an epilogue adds to a product: for each tile that an SM ends, by its area and by how many CTAs end
 * at once on the SM; more if a tile has wide rows. Kernels that carry tiles compute it during the next tile. `ends`: its
 * parts, of which the one that costs most counts. */
static inline float gemm_end(const GemmModel *model, const GemmConfiguration *c,
                             const GemmFacts *facts, int ends) {
  enum {
    AREA,
    AREA_SWAPPED,
    AT_ONCE,
    AT_ONCE_SWAPPED,
    TILES,
    CARRIED_AREA,
    CARRIED_STORE,
    IN_HALVES,
    WIDE_AREA
  };
  enum { OF_AREA = 7, OF_STORE = 5, WIDE = 160 }; /* terms; columns */
  float most[GEMM_END_TERMS] = {0};
  for (int part = 0; part < GEMM_ENDS; part++) {
    for (int i = 0; i < GEMM_END_TERMS && (ends >> part & 1); i++) {
      if (model->ends[part][i] > most[i]) most[i] = model->ends[part][i];
    }
  }
  float tiles = facts->load.tile_ends, area = facts->terms[OF_AREA] / (float)c->split_k;
  float at_once = gemm_least(tiles, (float)c->ctas) / tiles * area;
  if (c->carries) return most[CARRIED_AREA] * area + most[CARRIED_STORE] * facts->terms[OF_STORE];
  if (c->persistent) return most[IN_HALVES] * area;
  float more = most[TILES] * tiles;
  if (c->swapped) return more + most[AREA_SWAPPED] * area + most[AT_ONCE_SWAPPED] * at_once;
  if (c->tile_n >= WIDE) more += most[WIDE_AREA] * area;
  return more + most[AREA] * area + most[AT_ONCE] * at_once;
}

/* The logarithm of a time, and of that time with the epilogue. */
static inline float gemm_with_end(float time, const GemmFacts *facts) {
  return facts->end > 0 ? time + log1pf(facts->end * expf(-time)) : time;
}

/* Adds values, each times COUNT weights, to as many sums. The weights for the next value come ROW further. Four values
 * at a time, so that sums are read and written less often. */
template <int COUNT, int ROW>
static inline void gemm_add_weighted(float *sums, const float *weights, const float *values,
                                     int count) {
  int i = 0;
  for (; i + 4 <= count; i += 4, weights += 4 * ROW) {
    float a = values[i], b = values[i + 1], c = values[i + 2], d = values[i + 3];
    for (int j = 0; j < COUNT; j++) {
      sums[j] += (a * weights[j] + b * weights[ROW + j]) +
                 (c * weights[2 * ROW + j] + d * weights[3 * ROW + j]);
    }
  }
  for (; i < count; i++, weights += ROW) {
    for (int j = 0; j < COUNT; j++) sums[j] += values[i] * weights[j];
  }
}

static inline void gemm_keep_positive(float *values) {
  for (int j = 0; j < GEMM_HIDDEN; j++) values[j] = values[j] > 0 ? values[j] : 0;
}

/* What a network adds to the natural logarithm that the terms alone predict. `aside`: the sums of what the
 * networks see of the product alone. */
static inline float gemm_off(const GemmModel *model, int network, int configuration,
                             const float *features, const float *aside) {
  enum { AT_ONCE = 4 };
  const int from = network * GEMM_HIDDEN;
  const float *bias = model->first_bias[configuration] + from, *last = model->last + from;
  float first[GEMM_HIDDEN], second[GEMM_HIDDEN], sums[AT_ONCE] = {0};
  for (int j = 0; j < GEMM_HIDDEN; j++) first[j] = bias[j] + aside[from + j];
  gemm_add_weighted<GEMM_HIDDEN, GEMM_WIDTH>(first, model->first[0] + from, features,
                                             GEMM_FEATURES);
  gemm_keep_positive(first);
  for (int j = 0; j < GEMM_HIDDEN; j++) second[j] = model->second_bias[from + j];
  gemm_add_weighted<GEMM_HIDDEN, GEMM_HIDDEN>(second, model->second[network][0], first,
                                              GEMM_HIDDEN);
  gemm_keep_positive(second);
  for (int j = 0; j < GEMM_HIDDEN; j += AT_ONCE) {
    for (int i = 0; i < AT_ONCE; i++) sums[i] += second[j + i] * last[j + i];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* ---- Lines of k elements that TMA cannot read ----
 * They are copied before a product, loaded directly, or those of A or B are read in place in classes. What each way
 * takes, in microseconds, was fitted to 508 products (NOTES.md). It is not a good prediction of a time, but tells
 * well which way is the fastest. */

typedef struct {
  int64_t m, n, k, batches;
  int sms;
  float inputs, output; /* megabytes */
} GemmUnaligned;

/* By copies, and then an ordinary kernel, of which the longest counts most of what it computes, reads and writes, and of
 * its steps. */
static inline float gemm_time_copied(const GemmUnaligned *p) {
  float multiplications = (float)p->m * (float)p->n * (float)p->k * (float)p->batches;
  const float terms[] = {0.00518e-9f * multiplications, 0.555f * p->inputs, 0.468f * p->output,
                         0.011f * (float)p->k / GEMM_STEP_K};
  float fourths = 0;
  for (int i = 0; i < 4; i++) fourths += terms[i] * terms[i] * terms[i] * terms[i];
  return 6.85f + p->inputs / 1.07f + sqrtf(sqrtf(fourths));
}

/* By a kernel that loads without TMA. */
static inline float gemm_time_directly(const GemmConfiguration *way, const GemmUnaligned *p) {
  int steps = gemm_steps(way, p->k);
  bool words = p->k % 2 == 0;
  if (!words && steps > 1) return GEMM_HOPELESS;
  float tiles = (float)((p->m + way->tile_m - 1) / way->tile_m) *
                (float)((p->n + way->tile_n - 1) / way->tile_n) * (float)p->batches;
  float read = tiles * (float)steps * 16384e-6f; /* megabytes */
  return 3.07f + 0.39f * (float)gemm_divide_up(steps, way->groups) +
         (words ? 0.175f : 0.567f) * read + 0.596f * p->output + (way->groups > 1 ? 8.08f : 0);
}

/* By a kernel that reads A in `classes` classes of rows; or B, if m and n are exchanged. Its tiles have n for their
 * rows, and rows of one class for their columns. The other operand is copied for each class. */
static inline float gemm_time_in_place(const GemmConfiguration *way, const GemmUnaligned *p,
                                       int classes) {
  const float least_ctas = 24; /* with fewer, most SMs are idle */
  int64_t m = way->swapped ? p->m : p->n, n = way->swapped ? p->n : p->m;
  int64_t of_class = (m + classes - 1) / classes, rows = (n + way->tile_m - 1) / way->tile_m;
  int width = gemm_tile_width(way, n, of_class, classes, p->sms);
  float ctas =
      (float)classes * (float)((of_class + width - 1) / width) * (float)(rows * way->groups);
  if (ctas < least_ctas) return GEMM_HOPELESS;
  float rounds = ctas / (float)p->sms, two_at_once = 0.8f * rounds;
  rounds = way->ctas == 1 ? ceilf(rounds) : two_at_once > 1 ? two_at_once : 1;
  int steps = gemm_divide_up(gemm_steps(way, p->k + GEMM_MOST_CLASSES - 1), way->groups);
  float mega = (float)p->k * 2e-6f; /* bytes of a row */
  float computed = rounds * (float)steps * (way->tile_m > 64 ? 0.356f : 0.167f);
  float read = 0.178f * (float)m * mega * (float)rows;
  float written = way->swapped ? 0.491f * p->output : 0.762f + 0.7f * p->output; /* one by one */
  return 6.28f + (float)classes * (float)n * mega / 0.956f +
         sqrtf(computed * computed + read * read) + written + (way->groups > 1 ? 5.41f : 0);
}

static inline GemmUnaligned gemm_unaligned(int64_t m, int64_t n, int64_t k, int64_t batches,
                                           int sms) {
  const float mega = (float)batches * 2e-6f; /* bytes of an element in all batches */
  const GemmUnaligned product = {
      m, n, k, batches, sms, (float)(m + n) * (float)k * mega, (float)m * (float)n * mega};
  return product;
}

/* The time of one of the ways without copies. `classes`: of A and of B; 0 if they cannot be read in place. GEMM_HOPELESS: it
 * is slow, GEMM_IMPOSSIBLE: not for this product. */
static inline float gemm_time_way(const GemmConfiguration *way, const GemmUnaligned *p,
                                  const int classes[2]) {
  int in_classes = classes[way->swapped ? 0 : 1];
  if (!gemm_fits(way, p->k, GEMM_BY_NONE) || (way->in_place && in_classes == 0)) {
    return GEMM_IMPOSSIBLE;
  }
  return way->in_place ? gemm_time_in_place(way, p, in_classes) : gemm_time_directly(way, p);
}

/* The fastest of `count` ways, or NULL: copies are faster. */
static inline const GemmConfiguration *gemm_choose_direct(const GemmConfiguration *ways, int count,
                                                          int64_t m, int64_t n, int64_t k,
                                                          int64_t batches, const int classes[2],
                                                          int sms) {
  if (k % 8 == 0 && classes[0] == 0 && classes[1] == 0) return NULL;
  const GemmUnaligned product = gemm_unaligned(m, n, k, batches, sms);
  const GemmConfiguration *best = NULL;
  float least = gemm_time_copied(&product);
  for (int i = 0; i < count; i++) {
    float time = gemm_time_way(&ways[i], &product, classes);
    if (time < least) best = &ways[i], least = time;
  }
  return best;
}

static inline bool gemm_in_halves(const GemmConfiguration *c) {
  return c->persistent && !c->carries;
}

/* Facts of all configurations that have a chance, and what the terms predict for them; elsewhere `base` is
 * GEMM_HOPELESS. Those that the rough estimate finds much slower than the fastest, and persistent kernels for
 * small products, were not measured, so the networks know nothing about them. Tiles in two halves are not for an
 * epilogue that kernels that carry can compute. With such an epilogue, a large product is not for kernels that start anew
 * for each tile either, if their tiles need more than one round. `ends`: the epilogue's parts. Returns the least base
 * with the epilogue. */
static inline float gemm_find_candidates(const GemmModel *model, const GemmConfiguration *list,
                                         int count, const GemmSides *sides, GemmCarried carried,
                                         int ends, GemmFacts *facts, float *base) {
  const float large = 2e10f; /* multiplications */
  /* For tiles that carry an epilogue: with less k, their ends count too much; with fewer rows or columns,
   * too much of the few tiles that can is empty. */
  const int64_t least_k = 512, least_side = 1024;
  const GemmSide *side = &sides->list[GEMM_AS_IT_IS];
  float multiplications = (float)side->m * (float)side->n * (float)side->k * (float)side->batches;
  bool by_finishing = carried == GEMM_BY_FINISHING || carried == GEMM_BY_FINISHING_FP32;
  bool by_carrying =
      by_finishing && side->k >= least_k && side->m >= least_side && side->n >= least_side;
  float reckoned[GEMM_MODELLED], fastest = 0, least = GEMM_HOPELESS;
  for (int i = 0; i < count; i++) {
    reckoned[i] = GEMM_HOPELESS;
    if (!gemm_fits(&list[i], side->k, carried)) continue;
    if (list[i].persistent && multiplications < GEMM_LEAST_PERSISTENT) continue;
    facts[i] = gemm_facts(&list[i], &sides->list[gemm_side_of(&list[i])]);
    bool starts_anew = !list[i].persistent && !list[i].carries;
    if (starts_anew && by_carrying && multiplications >= large && facts[i].load.tile_ends > 1) {
      continue;
    }
    if (gemm_in_halves(&list[i]) && by_finishing) continue;
    reckoned[i] = gemm_reckon(&facts[i]);
    if (fastest == 0 || reckoned[i] < fastest) fastest = reckoned[i];
  }
  const float slowest = 2 * fastest;
  for (int i = 0; i < count; i++) {
    base[i] = GEMM_HOPELESS;
    if (reckoned[i] > slowest) continue;
    base[i] = gemm_base(model, i, &facts[i]);
    if (ends != 0) facts[i].end = gemm_end(model, &list[i], &facts[i], ends);
    least = gemm_least(least, gemm_with_end(base[i], &facts[i]));
  }
  return least;
}

/* Begins the networks' sums for all sides of a product with what they see of it alone. */
static inline void gemm_begin_sums(const GemmModel *model, const GemmSides *sides,
                                   float sums[GEMM_SIDES][GEMM_WIDTH]) {
  for (int i = 0; i < GEMM_SIDES; i++) {
    float aside[GEMM_ASIDE];
    gemm_aside(&sides->list[i], aside);
    for (int j = 0; j < GEMM_WIDTH; j++) sums[i][j] = 0;
    gemm_add_weighted<GEMM_WIDTH, GEMM_WIDTH>(sums[i], model->aside[0], aside, GEMM_ASIDE);
  }
}

/* The networks are asked only about configurations for which the terms predict nearly the least time; and all
 * but the first network only about those for which the first one does. */
static inline const GemmConfiguration *gemm_choose(const GemmModel *model,
                                                   const GemmConfiguration *list, int count,
                                                   int64_t m, int64_t n, int64_t k, int64_t batches,
                                                   int sms, GemmCarried carried, int ends) {
  const float near = 0.3f, nearer = 0.1f; /* of a logarithm: 35 and 11 % more */
  const GemmSides sides = gemm_sides(m, n, k, batches, sms);
  GemmFacts facts[GEMM_MODELLED];
  float base[GEMM_MODELLED], first[GEMM_MODELLED], first_times[GEMM_MODELLED];
  float sums[GEMM_SIDES][GEMM_WIDTH];
  float features[GEMM_MODELLED][GEMM_FEATURES], least = GEMM_HOPELESS;
  float most = gemm_find_candidates(model, list, count, &sides, carried, ends, facts, base) + near;
  gemm_begin_sums(model, &sides, sums);
  for (int i = 0; i < count; i++) {
    if (base[i] == GEMM_HOPELESS || gemm_with_end(base[i], &facts[i]) > most) {
      base[i] = GEMM_HOPELESS;
      continue;
    }
    gemm_features(&facts[i], base[i], features[i]);
    first[i] = gemm_off(model, 0, i, features[i], sums[gemm_side_of(&list[i])]);
    first_times[i] = gemm_with_end(base[i] + (float)GEMM_NETWORKS * first[i], &facts[i]);
    least = gemm_least(least, first_times[i]);
  }
  const GemmConfiguration *best = NULL;
  most = least + nearer;
  for (int i = 0; i < count; i++) {
    if (base[i] == GEMM_HOPELESS || first_times[i] > most) continue;
    float others = gemm_off(model, 1, i, features[i], sums[gemm_side_of(&list[i])]);
    float time = gemm_with_end(base[i] + first[i] + others, &facts[i]);
    if (best == NULL || time < least) best = &list[i], least = time;
  }
  return best;
}

/* Configurations by the time that the model predicts. */
typedef struct {
  const GemmConfiguration *list[GEMM_MODELLED];
  float times[GEMM_MODELLED];
  int count;
} GemmRanked;

static inline void gemm_insert(GemmRanked *ranked, const GemmConfiguration *c, float time) {
  int at = ranked->count++;
  for (; at > 0 && ranked->times[at - 1] > time; at--) {
    ranked->times[at] = ranked->times[at - 1];
    ranked->list[at] = ranked->list[at - 1];
  }
  ranked->times[at] = time;
  ranked->list[at] = c;
}

/* Ranks all configurations that have a chance. What gemm_choose() takes is the first. Takes several times as long as
 * gemm_choose(). */
static inline GemmRanked gemm_rank(const GemmModel *model, const GemmConfiguration *list, int count,
                                   int64_t m, int64_t n, int64_t k, int64_t batches, int sms,
                                   GemmCarried carried, int ends) {
  const GemmSides sides = gemm_sides(m, n, k, batches, sms);
  GemmFacts facts[GEMM_MODELLED];
  GemmRanked ranked;
  float base[GEMM_MODELLED], sums[GEMM_SIDES][GEMM_WIDTH], features[GEMM_FEATURES];
  gemm_find_candidates(model, list, count, &sides, carried, ends, facts, base);
  gemm_begin_sums(model, &sides, sums);
  const GemmConfiguration *chosen =
      gemm_choose(model, list, count, m, n, k, batches, sms, carried, ends);
  ranked.count = 0;
  for (int i = 0; i < count; i++) {
    if (base[i] == GEMM_HOPELESS) continue;
    gemm_features(&facts[i], base[i], features);
    float off = 0;
    for (int network = 0; network < GEMM_NETWORKS; network++) {
      off += gemm_off(model, network, i, features, sums[gemm_side_of(&list[i])]);
    }
    float time = gemm_with_end(base[i] + off, &facts[i]);
    gemm_insert(&ranked, &list[i], &list[i] == chosen ? -GEMM_HOPELESS : time);
  }
  return ranked;
}

#endif
