/* gemm_choose.cuh: which configuration for which product: the one that would take the least time,
 * as far as a model of the time and measurements of similar products can tell.
 *
 * The model adds up what costs time: the launch, the rounds of tiles, the end of each tile, and
 * the longest of what goes on at the same time (the tensor cores' steps, or the loads of a step, or
 * their latency; all bytes through L2; bytes from and to memory). Its numbers were fitted to
 * measurements on an H200, and how far the model was off at each measured product is kept
 * (gemm_measured.cuh): a prediction is corrected by what it was off at the most similar ones.
 * tools/fit_model.py writes that file, from measured/configurations.csv. */
#ifndef PIPELINED_GEMM_GEMM_CHOOSE_CUH
#define PIPELINED_GEMM_GEMM_CHOOSE_CUH

#include <math.h>

#include "gemm_measured.cuh"
#include "gemm_types.cuh"

/* How long the ring is: in gemm_single no longer than the product needs. */
static inline int gemm_ring_stages(const GemmConfiguration *c, int steps) {
  enum { SM_BYTES = 228 * 1024, RESERVED_BYTES = 1024 }; /* of shared memory; for each CTA */
  if (c->persistent) return c->stages;
  int each = gemm_divide_up(steps, c->split_k);
  int most = (SM_BYTES / c->ctas - RESERVED_BYTES - c->fixed_bytes) / gemm_stage_bytes(c);
  if (most > c->stages) most = c->stages;
  return each < most ? each : most;
}

/* Can this configuration compute a product of this k? */
static inline bool gemm_fits(const GemmConfiguration *c, int64_t k) {
  int64_t steps = (k + GEMM_STEP_K - 1) / GEMM_STEP_K;
  /* A stage is freed while the next is multiplied: with one alone nothing would ever move on. */
  int least_stages = steps > c->split_k ? 2 : 1;
  return c->kernel != NULL && steps >= c->split_k && (!c->persistent || steps >= 2) &&
         gemm_ring_stages(c, (int)steps) >= least_stages;
}

/* How the work of a product falls on the SMs. */
typedef struct {
  float busy_steps; /* of the SM that has most */
  float tile_ends;  /* on that SM */
  float rounds;     /* of CTAs */
  float resident;   /* CTAs on an SM at once */
  bool shared;      /* some tiles are computed by several clusters */
} GemmLoad;

static inline GemmLoad gemm_load_of(const GemmConfiguration *c, float tiles, int steps, int sms) {
  /* An H200's GPCs have 16 or 18 SMs: clusters of 4 and 8 leave about one SM of 11 idle. */
  int cluster = c->cluster_m * c->cluster_n * c->split_k;
  int at_once = (cluster < 4 ? sms : sms * 10 / 11) / cluster; /* clusters */
  if (at_once < 1) at_once = 1;
  GemmLoad load = {0, 0, 1, 1, false};
  if (c->persistent) {
    TileShares shares = tile_shares(tiles < 1e9f ? (int)tiles : 1000000000, steps, at_once);
    float rest = shares.left > 0 ? (float)steps : 0;
    load.shared = shares.sharers > shares.left;
    if (load.shared) {
      int each = gemm_divide_up(shares.left * steps, shares.sharers);
      rest = (float)(each + gemm_divide_up(steps, each) * SHARES_SUM_STEPS);
    }
    load.busy_steps = (float)shares.whole * (float)steps + rest;
    load.tile_ends = (float)(shares.whole + (shares.left > 0));
  } else {
    load.tile_ends = ceilf(tiles / (float)at_once);
    load.busy_steps = load.tile_ends * (float)gemm_divide_up(steps, c->split_k);
    load.rounds = ceilf(tiles / (float)(at_once * c->ctas));
    load.resident = load.tile_ends < (float)c->ctas ? load.tile_ends : (float)c->ctas;
  }
  return load;
}

/* Of terms that overlap the longest counts, and of the others a little. */
static inline float gemm_overlapped(float a, float b, float c, float d) {
  float p = gemm_model.overlap;
  return powf(powf(a, p) + powf(b, p) + powf(c, p) + powf(d, p), 1 / p);
}

/* Microseconds that the model predicts for the configuration of this index. */
static inline float gemm_predict(const GemmConfiguration *c, int index, int64_t m, int64_t n,
                                 int64_t k, int64_t batches, int sms) {
  const GemmModel *model = &gemm_model;
  const float clocks = 1700, mega = 1e6f; /* clocks in a microsecond */
  int steps = (int)((k + GEMM_STEP_K - 1) / GEMM_STEP_K);
  float rows = ceilf((float)m / (float)(c->tile_m * c->cluster_m));
  float columns = ceilf((float)n / (float)(c->tile_n * c->cluster_n));
  float area = (float)(c->tile_m * c->tile_n), count = (float)batches;
  float a = (float)m * (float)k * 2 * count, b = (float)n * (float)k * 2 * count;
  float output = (float)m * (float)n * 2 * count;
  bool copied = k % 8 != 0, split = !copied && k % 64 != 0; /* rows of 64 k in two lines of L2 */
  GemmLoad load = gemm_load_of(c, rows * columns * count, steps, sms);

  float lines = split ? model->split_line : 1, slice_m = (float)c->tile_m;
  if ((float)m < slice_m) slice_m = (float)m;
  float loaded = (slice_m / (float)c->cluster_n + (float)c->tile_n / (float)c->cluster_m) * 128;
  float in_flight = (float)gemm_ring_stages(c, steps) * load.resident;
  float step =
      gemm_overlapped(area / 32 / clocks * model->tensor, loaded / clocks * lines / model->sm_bytes,
                      model->latency / in_flight, 0) *
      gemm_configuration_model[index].step;
  float beyond_l2 = a + b + output - model->l2_bytes * mega;
  float uneven = n % 8 != 0 ? 1 + model->uneven_rows : 1;
  float body =
      gemm_overlapped(load.busy_steps * step, (a * columns + b * rows) * lines / (model->l2 * mega),
                      beyond_l2 > 0 ? beyond_l2 / (model->memory * mega) : 0,
                      output * uneven / (model->output * mega));
  float ends = model->tile_end + model->tile_store * area * 2 / (float)c->split_k / 65536 * uneven;
  float extra = 0;
  if (c->split_k > 1) {
    extra += model->split_k * log2f((float)c->split_k) +
             model->split_sum * area / 32768 * (1 - 1 / (float)c->split_k);
  }
  if (load.shared) extra += model->shared_tiles;
  if (c->persistent) extra += model->persistent;
  if (copied) extra += model->copy + (a + b) / (model->copy_bytes * mega);
  return model->launch * gemm_configuration_model[index].start + model->round * load.rounds +
         ends * load.tile_ends + body + extra;
}

/* How unlike two products are, squared: factors of two in each size, and whether rows of A, B and C
 * are aligned. */
static inline float gemm_distance(int64_t m, int64_t n, int64_t k, const GemmMeasured *other) {
  float dm = log2f((float)m / (float)other->m), dn = log2f((float)n / (float)other->n);
  float dk = log2f((float)k / (float)other->k);
  float distance = dm * dm + dn * dn + dk * dk;
  if ((k % 8 != 0) != (other->k % 8 != 0)) distance += 4;
  if ((n % 8 != 0) != (other->n % 8 != 0)) distance += 1;
  if ((k % 64 != 0) != (other->k % 64 != 0)) distance += 0.5f;
  return distance;
}

/* The measured products that are most like this one; `without`: the index of one that must not
 * count (for the test), or -1. */
typedef struct {
  int index[GEMM_NEIGHBOURS];
  float weight[GEMM_NEIGHBOURS];
} GemmNeighbours;

static inline GemmNeighbours gemm_neighbours(int64_t m, int64_t n, int64_t k, int without) {
  GemmNeighbours near;
  float distance[GEMM_NEIGHBOURS];
  int count = 0;
  for (int i = 0; i < GEMM_MEASURED; i++) {
    if (i == without) continue;
    float d = gemm_distance(m, n, k, &gemm_measured[i]);
    if (count == GEMM_NEIGHBOURS && d >= distance[count - 1]) continue;
    if (count < GEMM_NEIGHBOURS) count++;
    int at = count - 1;
    for (; at > 0 && d < distance[at - 1]; at--) {
      distance[at] = distance[at - 1];
      near.index[at] = near.index[at - 1];
    }
    distance[at] = d;
    near.index[at] = i;
  }
  for (int i = 0; i < GEMM_NEIGHBOURS; i++) near.weight[i] = 1 / (distance[i] + GEMM_NEARNESS);
  return near;
}

/* The factor by which the model was off at these products. */
static inline float gemm_correction(const GemmNeighbours *near, int configuration) {
  float sum = 0, weights = GEMM_CAUTION;
  for (int i = 0; i < GEMM_NEIGHBOURS; i++) {
    int off = gemm_measured[near->index[i]].off[configuration];
    if (off == GEMM_NOT_MEASURED) continue;
    sum += near->weight[i] * (float)off;
    weights += near->weight[i];
  }
  return expf(sum / weights / 100); /* `off` is in hundredths of a natural logarithm */
}

static inline const GemmConfiguration *gemm_choose(const GemmConfiguration *list, int count,
                                                   int64_t m, int64_t n, int64_t k, int64_t batches,
                                                   int sms, int without) {
  const float CLEARLY = 0.98f, LONG = 100; /* microseconds */
  const GemmConfiguration *best = NULL;
  float least = 0;
  /* A batch is like one product with that many more rows. */
  GemmNeighbours near = gemm_neighbours(m * batches, n, k, without);
  for (int i = 0; i < count; i++) {
    if (!gemm_fits(&list[i], k)) continue;
    float time = gemm_predict(&list[i], i, m, n, k, batches, sms) * gemm_correction(&near, i);
    /* Those before have larger tiles: where the difference is noise, they take less energy; and
     * energy is what long products are short of. */
    if (best == NULL || time < (time > LONG ? CLEARLY : 1) * least) {
      best = &list[i];
      least = time;
    }
  }
  return best;
}

#endif
