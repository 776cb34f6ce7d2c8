/* gemm_choose.cuh: chooses the configuration for a product: the one for which a model predicts the
 * least time.
 *
 * The model starts with what is known to cost time, in microseconds: the steps of the tensor cores,
 * the bytes that an SM loads, the bytes that L2 delivers, the latency of a stage, what exceeds L2, the
 * stores, the ends of tiles, the sums of a split k. Of the terms that overlap, the longest counts most.
 * Small neural networks predict the factor that this leaves unexplained. They see the same terms, the
 * padding of the tiles, and the sizes. tools/fit_model.py fits both to measurements on an H200
 * (measured/configurations.csv) and writes gemm_model.cuh. */
#ifndef PIPELINED_GEMM_GEMM_CHOOSE_CUH
#define PIPELINED_GEMM_GEMM_CHOOSE_CUH

#include <math.h>

#include "gemm_width.cuh"

enum {
  GEMM_OVERLAPPING = 6, /* terms of which the longest counts */
  GEMM_TERMS = 17,      /* all of them; the others are added up */
  GEMM_TILE_ENDS = 7,   /* the term that is how many tiles an SM computes */
  GEMM_FEATURES = 35,   /* what the networks see */
  GEMM_HIDDEN = 16,     /* values of each of their two layers */
  GEMM_NETWORKS = 4,
  GEMM_MODELLED = 56 /* configurations */
};

/* One network. The mean of several networks predicts better than any one of them. */
typedef struct {
  float launch, sharpness;   /* of the choice of the longest term: 1 would add them up */
  float term[GEMM_TERMS];    /* factors */
  float body[GEMM_MODELLED]; /* factor of a configuration's overlapping terms */
  float first[GEMM_FEATURES][GEMM_HIDDEN];
  float first_bias[GEMM_MODELLED][GEMM_HIDDEN]; /* each configuration's own */
  float second[GEMM_HIDDEN][GEMM_HIDDEN], second_bias[GEMM_HIDDEN];
  float last[GEMM_HIDDEN];
} GemmNetwork;

typedef struct {
  float mean[GEMM_FEATURES], scale[GEMM_FEATURES];
  GemmNetwork network[GEMM_NETWORKS];
} GemmModel;

/* Steps of 64 k. If the kernel needs more steps, TMA fills the additional ones with zeros. */
static inline int gemm_steps(const GemmConfiguration *c, int64_t k) {
  int64_t steps = (k + GEMM_STEP_K - 1) / GEMM_STEP_K;
  return (int)(steps < c->least_steps ? c->least_steps : steps);
}

/* Can this configuration compute a product of this k? `carried`: which kernels that carry can. */
static inline bool gemm_fits(const GemmConfiguration *c, int64_t k, GemmCarried carried) {
  int steps = gemm_steps(c, k);
  /* A stage is freed while the next one is multiplied, so a ring of one stage would hang. */
  int parts = c->split_k * c->groups, least_stages = steps > parts ? 2 : 1;
  return c->kernel != NULL && steps >= parts && (!c->direct || k % 8 != 0) &&
         (c->most_steps == 0 || steps <= c->most_steps) &&
         (!c->carries || carried == GEMM_BY_ALL_THAT_CARRY ||
          (carried == GEMM_BY_FINISHING && c->finishing != NULL)) &&
         gemm_ring_stages(c, c->tile_n, steps) >= least_stages;
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
    TileShares shares =
        tile_shares(tiles < 1e9f ? (int)tiles : 1000000000, steps, at_once, c->sum_steps);
    float rest = shares.left > 0 ? (float)steps : 0;
    if (shares.sharers > shares.left) {
      int each = gemm_divide_up(shares.left * steps, shares.sharers);
      rest = (float)each;
      load.parts = (float)gemm_divide_up(steps, each);
    }
    load.busy_steps = (float)shares.whole * (float)steps + rest;
    load.tile_ends = (float)(shares.whole + (shares.left > 0));
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

/* What is known of a configuration and a product. */
typedef struct {
  float terms[GEMM_TERMS]; /* microseconds, except for factors */
  float features[GEMM_FEATURES];
} GemmFacts;

static inline float gemm_least(float a, float b) { return a < b ? a : b; }

static inline GemmFacts gemm_facts(const GemmConfiguration *c, int64_t m, int64_t n, int64_t k,
                                   int64_t batches, int sms) {
  const float clocks = 1700, mega = 1e6f; /* clocks in a microsecond */
  int steps = gemm_steps(c, k);
  bool uneven = n % 8 != 0;
  if (c->swapped) {
    int64_t held = m;
    m = n, n = held;
  }
  float rows = ceilf((float)m / (float)(c->tile_m * c->cluster_m));
  int width = gemm_tile_width(c, m, n, batches, sms);
  float columns = ceilf((float)n / (float)(width * c->cluster_n));
  float area = (float)(c->tile_m * width), count = (float)batches;
  float tiles = rows * columns * count, split = (float)c->split_k;
  float a = (float)m * (float)k * 2 * count, b = (float)n * (float)k * 2 * count;
  float output = (float)m * (float)n * 2 * count;
  bool copied = k % 8 != 0;
  bool in_two = !copied && k % 64 != 0; /* a row of 64 k lies in two lines of L2 */
  GemmLoad load = gemm_load_of(c, tiles, steps, sms);
  float cluster = (float)(c->cluster_m * c->cluster_n * c->split_k);
  float own = (gemm_least((float)c->tile_m, (float)((m + 7) / 8 * 8)) / (float)c->cluster_n +
               gemm_least((float)width, (float)((n + 7) / 8 * 8)) /
                   (c->most_steps > 0 ? load.tile_ends : (float)c->cluster_m)) *
              128; /* bytes that a CTA loads itself for a step */
  float lines = in_two ? 2.0f : 1.0f;
  float in_flight = (float)gemm_ring_stages(c, width, steps) * load.resident;
  float beyond_l2 = a + b + output - 45 * mega;
  float tensor = load.busy_steps * area / 32 / clocks;
  float sm = load.busy_steps * own / clocks / 32 * lines;
  float chip = tiles * cluster / split * (float)steps * own / (5.5f * mega) * lines;
  float latency = load.busy_steps / in_flight * 0.7f;
  float memory = beyond_l2 > 0 ? beyond_l2 / (4.2f * mega) : 0;
  float store = output / (3.0f * mega), tile_store = load.tile_ends * area * 2 / 65536;
  float all = (a + b + output) / (4.2f * mega);
  GemmFacts facts = {
      {tensor, sm, chip, latency, memory, store, tile_store, load.tile_ends, load.rounds,
       load.parts - 1, (load.parts - 1) * area / split / 32768, log2f(split),
       area / 32768 * (1 - 1 / split), copied ? 1.0f : 0, copied ? (a + b) / mega : 0,
       uneven ? output / mega : 0, c->persistent ? 1.0f : 0},
      {logf(tensor + 0.1f),
       logf(sm + 0.1f),
       logf(chip + 0.1f),
       logf(latency + 0.1f),
       logf(memory + 0.1f),
       logf(store + 0.1f),
       logf(tile_store + 0.1f),
       logf(a / mega + 0.1f),
       logf(b / mega + 0.1f),
       logf(all + 0.1f),
       lines,
       c->carries ? 1.0f : 0,
       c->persistent ? 1.0f : 0,
       copied ? 1.0f : 0,
       uneven ? 1.0f : 0,
       log2f(split),
       gemm_least(load.full, 8),
       gemm_least(tiles * cluster * (float)c->groups / (float)sms, 1),
       logf(load.tile_ends),
       logf(load.rounds),
       logf(load.parts),
       logf(in_flight),
       logf(load.part_steps),
       log2f((float)m * count) / 4,
       log2f((float)n) / 4,
       log2f((float)k) / 4,
       (float)m / (rows * (float)(c->tile_m * c->cluster_m)),
       (float)n / (columns * (float)(width * c->cluster_n)),
       c->swapped ? 1.0f : 0,
       log2f((float)c->groups),
       log2f((float)c->tile_m),
       log2f((float)width),
       log2f((float)c->cluster_m),
       log2f((float)c->cluster_n),
       area / 32768}};
  return facts;
}

/* The natural logarithm of the microseconds that a network predicts. */
static inline float gemm_predict(const GemmNetwork *w, int configuration, const GemmFacts *facts,
                                 const float *features) {
  float longest = 0, sum = w->launch, hidden[GEMM_HIDDEN], again[GEMM_HIDDEN], off = 0;
  for (int i = 0; i < GEMM_TERMS; i++) {
    float term = facts->terms[i] * w->term[i];
    if (i < GEMM_OVERLAPPING) {
      longest += powf(term + 1e-3f, w->sharpness);
    } else {
      sum += term;
    }
  }
  sum += powf(longest, 1 / w->sharpness) * w->body[configuration];
  for (int j = 0; j < GEMM_HIDDEN; j++) {
    hidden[j] = w->first_bias[configuration][j];
    again[j] = w->second_bias[j];
  }
  for (int i = 0; i < GEMM_FEATURES; i++) {
    for (int j = 0; j < GEMM_HIDDEN; j++) hidden[j] += features[i] * w->first[i][j];
  }
  for (int i = 0; i < GEMM_HIDDEN; i++) {
    if (hidden[i] <= 0) continue;
    for (int j = 0; j < GEMM_HIDDEN; j++) again[j] += hidden[i] * w->second[i][j];
  }
  for (int i = 0; i < GEMM_HIDDEN; i++) off += again[i] > 0 ? again[i] * w->last[i] : 0;
  return logf(sum) + off;
}

/* A rough estimate in microseconds: the longest of the overlapping terms, and a little of all terms. */
static inline float gemm_reckon(const GemmFacts *facts) {
  float longest = 0, sum = 0;
  for (int i = 0; i < GEMM_OVERLAPPING; i++) {
    if (facts->terms[i] > longest) longest = facts->terms[i];
    sum += facts->terms[i];
  }
  return 3 + longest + 0.1f * sum + 0.3f * facts->terms[GEMM_OVERLAPPING];
}

/* The mean of the networks' predictions, times their number. */
static inline float gemm_predict_all(const GemmModel *model, int configuration,
                                     const GemmFacts *facts) {
  float features[GEMM_FEATURES], sum = 0;
  for (int i = 0; i < GEMM_FEATURES; i++) {
    features[i] = (facts->features[i] - model->mean[i]) * model->scale[i];
  }
  for (int i = 0; i < GEMM_NETWORKS; i++) {
    sum += gemm_predict(&model->network[i], configuration, facts, features);
  }
  return sum;
}

/* Lines of k elements that TMA cannot read are copied before a product, or loaded directly, whichever takes
 * less time for its data. Fitted to 48 products (NOTES.md). The tiles of `list` are 64 x 64; tiles get so many
 * CTAs that each SM has two. NULL: copy them. */
static inline const GemmConfiguration *gemm_choose_direct(const GemmConfiguration *list, int count,
                                                          int64_t m, int64_t n, int64_t k,
                                                          int64_t batches, int sms) {
  float tiles = (float)((m + 63) / 64) * (float)((n + 63) / 64) * (float)batches;
  int64_t steps = (k + GEMM_STEP_K - 1) / GEMM_STEP_K;
  float loaded = tiles * (float)steps * 16384,
        copied = (float)(m + n) * (float)k * 2 * (float)batches;
  bool words = k % 2 == 0;
  float more = loaded * (words ? 0.1e-6f : 0.5e-6f), copy = 5 + copied / 1.3e6f; /* microseconds */
  if (k % 8 == 0 || more > copy || (!words && steps > 2)) return NULL;
  int at = 0;
  while (at + 1 < count && tiles * (float)list[at].groups < 2 * (float)sms &&
         steps >= list[at + 1].groups) {
    at++;
  }
  return list[at].kernel != NULL ? &list[at] : NULL;
}

/* The networks predict only configurations that have a chance. Those that the rough estimate finds much
 * slower than the fastest, and persistent kernels for small products, were not measured, so the networks
 * know nothing about them. A large product is not for kernels that start anew for each tile, if their tiles
 * need more than one round and kernels that carry can compute it. */
static inline const GemmConfiguration *gemm_choose(const GemmModel *model,
                                                   const GemmConfiguration *list, int count,
                                                   int64_t m, int64_t n, int64_t k, int64_t batches,
                                                   int sms, GemmCarried carried) {
  const float brief = 10;                             /* microseconds */
  const float least_persistent = 1e9f, large = 2e10f; /* multiplications */
  float multiplications = (float)m * (float)n * (float)k * (float)batches;
  const GemmConfiguration *best = NULL;
  float reckoned[GEMM_MODELLED], fastest = 0, least = 0;
  for (int i = 0; i < count; i++) {
    reckoned[i] = 0;
    if (!gemm_fits(&list[i], k, carried)) continue;
    if (list[i].persistent && multiplications < least_persistent) continue;
    GemmFacts facts = gemm_facts(&list[i], m, n, k, batches, sms);
    bool starts_anew = !list[i].persistent && !list[i].carries;
    if (starts_anew && carried == GEMM_BY_ALL_THAT_CARRY && multiplications >= large &&
        facts.terms[GEMM_TILE_ENDS] > 1) {
      continue;
    }
    reckoned[i] = gemm_reckon(&facts);
    if (fastest == 0 || reckoned[i] < fastest) fastest = reckoned[i];
  }
  const float hopeless = fastest < brief ? 1.8f : 1.6f;
  for (int i = 0; i < count; i++) {
    if (reckoned[i] == 0 || reckoned[i] > hopeless * fastest) continue;
    GemmFacts facts = gemm_facts(&list[i], m, n, k, batches, sms);
    float time = gemm_predict_all(model, i, &facts);
    if (best == NULL || time < least) best = &list[i], least = time;
  }
  return best;
}

#endif
