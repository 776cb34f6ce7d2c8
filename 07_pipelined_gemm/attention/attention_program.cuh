/* attention_program.cuh: what the three attention programs need around their kernel: tensor maps, data,
 * the reference, bench.
 *
 * All compute, for each batch and head, out = softmax(scale * Q * transpose(K)) * V with scale =
 * 1 / sqrt(dim). Q and out are [batch, heads, length, dim], K and V [batch, kv_heads, keys, dim], in
 * bf16 without gaps. Consecutive query heads share a key/value head. Causal: the last query sees all
 * keys, each one before sees one key less. A query that sees no key gets zeros. */
#ifndef PIPELINED_GEMM_ATTENTION_PROGRAM_CUH
#define PIPELINED_GEMM_ATTENTION_PROGRAM_CUH

#include "../gemm_program.cuh"

typedef struct {
  int batch, heads, kv_heads, length, keys, dim, causal;
} AttentionShape;

typedef struct {
  AttentionShape shape;
  uint16_t *q, *k, *v, *out; /* in device memory */
  CUtensorMap map_q, map_k, map_v, map_out;
} AttentionPlan;

typedef void AttentionLaunch(const AttentionPlan *plan);

/* What a program hands over: how many queries a block takes, and its kernel for either dimension. */
typedef struct {
  const char *name;
  int rows;
  AttentionLaunch *launch_64, *launch_128;
} AttentionProgram;

enum {
  KEYS = 128,    /* of a step */
  BOX = 64,      /* columns of a box of Q, K, V or out: one swizzle span; two make a row of 128 */
  OUT_ROWS = 16, /* that a warp stores */
};

/* How many keys the query `row` sees; 0 or less: none. */
static inline __host__ __device__ int visible_keys(AttentionShape shape, int row) {
  int visible = row + 1 + shape.keys - shape.length;
  return shape.causal && visible < shape.keys ? visible : shape.keys;
}

/* How many tiles of `tile_keys` keys the queries up to `end_row` see. At least one: its mask then hides
 * every key, which is simpler than a special case. */
static inline __host__ __device__ int visible_tiles(AttentionShape shape, int end_row,
                                                    int tile_keys) {
  int last_row = (end_row < shape.length ? end_row : shape.length) - 1;
  int visible = visible_keys(shape, last_row);
  return visible > 0 ? divide_up(visible, tile_keys) : 1;
}

/* The sequence is a dimension of its own. So a box that reaches past its end is cut there, and what it
 * holds of the next head is neither read nor written. */
static inline CUtensorMap attention_map(const char *name, uint16_t *tensor, AttentionShape shape,
                                        int heads, int length, int box_rows) {
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  map.dimensions = 4;
  map.address = tensor;
  map.size[0] = (uint64_t)shape.dim;
  map.size[1] = (uint64_t)length;
  map.size[2] = (uint64_t)heads;
  map.size[3] = (uint64_t)shape.batch;
  map.box[0] = BOX;
  map.box[1] = (uint32_t)box_rows;
  map.box[2] = map.box[3] = 1;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  map.l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  return tensor_map_encode(name, &map);
}

static inline size_t count_of_queries(AttentionShape s) {
  return (size_t)s.batch * s.heads * s.length * s.dim;
}

static inline size_t count_of_keys(AttentionShape s) {
  return (size_t)s.batch * s.kv_heads * s.keys * s.dim;
}

/* exp(scale * x) is 2 to the power of this times x. */
static inline float attention_scale_log2(AttentionShape shape) {
  return 1.44269504f / sqrtf((float)shape.dim);
}

/* Allocates the four tensors and encodes their maps. */
static inline AttentionPlan attention_plan(const AttentionProgram *program, AttentionShape s) {
  AttentionPlan plan = {};
  size_t queries = count_of_queries(s), keys = count_of_keys(s);
  plan.shape = s;
  CUDA_CHECK(cudaMalloc(&plan.q, queries * 2));
  CUDA_CHECK(cudaMalloc(&plan.k, keys * 2));
  CUDA_CHECK(cudaMalloc(&plan.v, keys * 2));
  CUDA_CHECK(cudaMalloc(&plan.out, queries * 2));
  plan.map_q = attention_map("Q", plan.q, s, s.heads, s.length, program->rows);
  plan.map_k = attention_map("K", plan.k, s, s.kv_heads, s.keys, KEYS);
  plan.map_v = attention_map("V", plan.v, s, s.kv_heads, s.keys, KEYS);
  plan.map_out = attention_map("out", plan.out, s, s.heads, s.length, OUT_ROWS);
  return plan;
}

static inline void attention_free(const AttentionPlan *plan) {
  CUDA_CHECK(cudaFree(plan->q));
  CUDA_CHECK(cudaFree(plan->k));
  CUDA_CHECK(cudaFree(plan->v));
  CUDA_CHECK(cudaFree(plan->out));
}

static inline void attention_launch(const AttentionProgram *program, const AttentionPlan *plan) {
  (plan->shape.dim == 64 ? program->launch_64 : program->launch_128)(plan);
}

/* ---- Data ---- */

enum {
  SCORES_NORMAL, /* of deviation 1 */
  SCORES_LARGE,  /* of deviation 64: nearly all the weight is on one key */
  SCORES_RISING, /* each key scores higher than the one before, so that the maximum always changes */
  SCORES_EQUAL,  /* 0: out is the mean of V, small integers, and known to the bit */
  SCORE_KINDS
};
static const char *const score_names[SCORE_KINDS] = {"normal", "large", "rising", "equal"};

static inline void attention_data(AttentionShape s, int scores, uint16_t *q, uint16_t *k,
                                  uint16_t *v, uint64_t seed) {
  size_t queries = count_of_queries(s), keys = count_of_keys(s);
  gemm_fill(q, queries, GEMM_NORMAL, seed);
  gemm_fill(k, keys, GEMM_NORMAL, seed + 1);
  gemm_fill(v, keys, scores == SCORES_EQUAL ? GEMM_INTEGERS : GEMM_NORMAL, seed + 2);
  if (scores == SCORES_EQUAL) memset(q, 0, queries * 2);
  for (size_t i = 0; scores == SCORES_LARGE && i < queries; i++) {
    q[i] = gemm_bf16(64 * gemm_float(q[i]));
  }
  /* The first element alone: its product is key / 8, and the others add a little to it. */
  for (size_t i = 0; scores == SCORES_RISING && i < queries; i++) {
    q[i] = i % s.dim == 0 ? gemm_bf16(sqrtf((float)s.dim)) : gemm_bf16(gemm_float(q[i]) / 16);
  }
  for (size_t i = 0; scores == SCORES_RISING && i < keys; i += s.dim) {
    k[i] = gemm_bf16((float)(i / s.dim % s.keys) / 8);
  }
}

/* ---- Check ----
 *
 * The bound. Write w for the exact weights of a row (their sum is 1), out for the exact result, and A
 * for the largest scale * sum of |q||k|, which no score exceeds. The kernel's errors, with u = 2^-23:
 *   score     exact products, added by dim / 16 wgmmas. Each aligns 16 products and the sum so far to
 *             the largest of them and cuts 17 numbers off at u of it: 17/16 * dim * u * A.
 *   exponent  score times a constant, minus the maximum: three roundings of numbers up to 1.45 * A, and
 *             as many in the factors by which earlier tiles are rescaled: together 8 * u * A.
 *   exp2      ex2.approx: 2u, once for the weight and once for each tile after it that rescales it.
 *   sums      of the weights: one rounding a key at most. Of the weighted values: 17/16 * u a key.
 * A relative error e of each weight is an error of 2e in the quotient at most, as it is in numerator and
 * denominator. Two roundings to bf16 come on top, 2^-8 each: of the weights that
 * multiply V (not of those that are summed), and of the result. 1.01 covers products of errors. */
static inline double attention_bound(AttentionShape s, double out, double weighted,
                                     double largest) {
  double score = largest * (17.0 / 16 * s.dim + 8);
  double tiles = 2 * (s.keys / 64 + 2), sums = (1 + 17.0 / 16) * s.keys + 8;
  double e = ldexp(score + tiles + sums, -23);
  return 1.01 * ((ldexp(1, -8) + 2 * e) * weighted + ldexp(fabs(out), -8));
}

/* One row of the result in double. `weighted` is the sum of w|v|, which the bound needs. */
static inline double attention_reference_row(AttentionShape s, const uint16_t *q, const uint16_t *k,
                                             const uint16_t *v, int visible, double *weights,
                                             double *out, double *weighted) {
  double scale = 1 / sqrt((double)s.dim), top = -INFINITY, sum = 0, largest = 0;
  for (int key = 0; key < visible; key++) {
    double score = 0, size = 0;
    for (int i = 0; i < s.dim; i++) {
      double product = (double)(gemm_float(q[i]) * gemm_float(k[(size_t)key * s.dim + i]));
      score += product, size += fabs(product);
    }
    weights[key] = score * scale;
    if (weights[key] > top) top = weights[key];
    if (size * scale > largest) largest = size * scale;
  }
  for (int key = 0; key < visible; key++) sum += weights[key] = exp(weights[key] - top);
  for (int i = 0; i < s.dim; i++) out[i] = weighted[i] = 0;
  for (int key = 0; key < visible; key++) {
    for (int i = 0; i < s.dim; i++) {
      double value = weights[key] / sum * gemm_float(v[(size_t)key * s.dim + i]);
      out[i] += value, weighted[i] += fabs(value);
    }
  }
  return largest;
}

/* Computes one case and compares `rows` rows of each head: all, or some drawn and the last. */
static inline void attention_check(const AttentionProgram *program, AttentionShape s, int scores,
                                   int rows) {
  size_t queries = count_of_queries(s), keys = count_of_keys(s);
  uint16_t *q = (uint16_t *)malloc(queries * 2), *out = (uint16_t *)malloc(queries * 2);
  uint16_t *k = (uint16_t *)malloc(keys * 2), *v = (uint16_t *)malloc(keys * 2);
  attention_data(s, scores, q, k, v, 5);
  AttentionPlan plan = attention_plan(program, s);
  CUDA_CHECK(cudaMemcpy(plan.q, q, queries * 2, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(plan.k, k, keys * 2, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(plan.v, v, keys * 2, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(plan.out, 0xFF, queries * 2)); /* NaN: unwritten elements show */
  attention_launch(program, &plan);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out, plan.out, queries * 2, cudaMemcpyDeviceToHost));

  double *weights = (double *)malloc((size_t)s.keys * sizeof(double)), expected[128], weighted[128];
  bool good = true;
  int masked = 0;
  if (rows > s.length) rows = s.length;
  for (int head = 0; head < s.batch * s.heads && good; head++) {
    int kv_head = head / s.heads * s.kv_heads + head % s.heads / (s.heads / s.kv_heads);
    size_t kv = (size_t)kv_head * s.keys * s.dim;
    for (int i = 0; i < rows && good; i++) {
      int row = rows == s.length ? i : (int)(gemm_hash(77 + i) % (uint64_t)s.length);
      if (i == rows - 1) row = s.length - 1;
      size_t at = ((size_t)head * s.length + row) * s.dim;
      int visible = visible_keys(s, row);
      masked += visible <= 0;
      double largest =
          attention_reference_row(s, q + at, k + kv, v + kv, visible, weights, expected, weighted);
      for (int j = 0; j < s.dim && good; j++) {
        double got = gemm_float(out[at + j]);
        double bound = attention_bound(s, expected[j], weighted[j], largest);
        good = fabs(got - expected[j]) <= bound;
        if (!good) {
          check_that(false, "head %d, query %d, element %d is %g, expected %g, error allowed %g",
                     head, row, j, got, expected[j], bound);
        }
      }
    }
  }
  if (good) {
    printf("%d x %d (%d) heads, %4d queries, %4d keys, dim %3d, %s, %-6s scores:", s.batch, s.heads,
           s.kv_heads, s.length, s.keys, s.dim, s.causal ? "causal" : "full  ",
           score_names[scores]);
    /* exp2 differs in its last bits between machines, but not of 0. */
    if (scores == SCORES_EQUAL) {
      printf(" bits %016llx\n", (unsigned long long)gemm_checksum(out, queries));
    } else {
      printf(" %s in bounds", rows == s.length ? "all" : "drawn rows");
      printf(masked ? ", %d rows of zeros\n" : "\n", masked);
    }
  }
  attention_free(&plan);
  free(q), free(k), free(v), free(out), free(weights);
}

/* ---- Bench ---- */

/* Only the products that the mask leaves are counted: half of them if causal. */
static inline void attention_bench(const AttentionProgram *program, AttentionShape s) {
  size_t queries = count_of_queries(s), keys = count_of_keys(s);
  AttentionPlan plan = attention_plan(program, s);
  gemm_fill_normal<<<1024, 256>>>(plan.q, queries, 1);
  gemm_fill_normal<<<1024, 256>>>(plan.k, keys, 2);
  gemm_fill_normal<<<1024, 256>>>(plan.v, keys, 3);
  double seconds = median_seconds([&] { attention_launch(program, &plan); });
  double operations = 4.0 * s.batch * s.heads * s.length * s.keys * s.dim / (s.causal ? 2 : 1);
  printf("%s: %d x %d heads, length %d, dim %d, %s in %.3f ms, %.1f TFLOP/s\n", program->name,
         s.batch, s.heads, s.length, s.dim, s.causal ? "causal" : "full", seconds * 1e3,
         operations / seconds * 1e-12);
}

static inline void attention_refuse(const char *why, long value, const char *fix) {
  fprintf(stderr, "%s: it is %ld. %s\n", why, value, fix);
  program_exit(EXIT_USAGE);
}

/* The main function. By default nine small cases. With any option, the case that it describes. */
static inline int attention_main(int argc, char **argv, const AttentionProgram *program) {
  enum { MOST = 1 << 20 };
  long batch = 0, heads = 0, kv_heads = 0, length = 0, keys = 0, dim = 0, scores = -1;
  long causal = 0, bench = 0;
  Option options[] = {{"--batch", "sequences (default 1)", &batch, 1, 1024},
                      {"--heads", "query heads (default 1)", &heads, 1, 1024},
                      {"--kv-heads", "key/value heads (default: as many)", &kv_heads, 1, 1024},
                      {"--length", "queries (default 512)", &length, 1, MOST},
                      {"--keys", "keys (default: as many)", &keys, 1, MOST},
                      {"--dim", "head dimension, 64 or 128 (default 128)", &dim, 64, 128},
                      {"--scores", "0 normal, 1 large, 2 rising, 3 equal", &scores, 0, 3},
                      {"--causal", "hide later keys", &causal, 0, 0},
                      {"--bench", "measure on a GPU", &bench, 0, 0}};
  program_begin(program->name, argc, argv, options, sizeof options / sizeof *options);
  if (!batch && !heads && !kv_heads && !length && !keys && !dim && scores < 0 && !causal &&
      !bench) {
    static const struct {
      AttentionShape shape;
      int scores;
    } cases[] = {
        {{1, 1, 1, 1, 1, 128, 0}, SCORES_NORMAL},   {{2, 2, 2, 63, 63, 64, 0}, SCORES_NORMAL},
        {{1, 2, 1, 64, 64, 64, 1}, SCORES_LARGE},   {{2, 4, 2, 65, 65, 128, 1}, SCORES_NORMAL},
        {{1, 1, 1, 65, 300, 64, 0}, SCORES_RISING}, {{1, 2, 2, 130, 1, 128, 0}, SCORES_LARGE},
        {{1, 1, 1, 200, 72, 64, 1}, SCORES_NORMAL}, {{1, 2, 1, 600, 600, 128, 1}, SCORES_RISING},
        {{1, 2, 1, 300, 300, 128, 1}, SCORES_EQUAL}};
    const int count = sizeof cases / sizeof *cases;
    for (int i = 0; i < count; i++) {
      attention_check(program, cases[i].shape, cases[i].scores, MOST);
    }
    return program_end("%d cases against a reference in fp64", count);
  }
  AttentionShape s = {};
  s.batch = batch ? (int)batch : 1;
  s.heads = heads ? (int)heads : kv_heads ? (int)kv_heads : 1;
  s.kv_heads = kv_heads ? (int)kv_heads : s.heads;
  s.length = length ? (int)length : 512;
  s.keys = keys ? (int)keys : s.length;
  s.dim = dim ? (int)dim : 128;
  s.causal = (int)causal;
  if (s.dim != 64 && s.dim != 128) {
    attention_refuse("--dim must be 64 or 128", s.dim, "Fill the rows up with zeros.");
  }
  if (s.heads % s.kv_heads != 0) {
    attention_refuse("--kv-heads must divide --heads", s.kv_heads,
                     "Each key/value head serves as many query heads.");
  }
  if ((double)s.batch * s.heads * (s.length > s.keys ? s.length : s.keys) * s.dim > 1 << 30) {
    attention_refuse("batch * heads * length * dim must be at most 2^30", s.length,
                     "Choose a smaller --length, --heads or --batch.");
  }
  if (bench) {
    attention_bench(program, s);
    return program_end("measured, not checked");
  }
  /* As many rows of each head as the host computes in about a second. */
  int64_t rows = (1 << 28) / ((int64_t)s.batch * s.heads * s.keys * s.dim) + 2;
  attention_check(program, s, scores < 0 ? SCORES_NORMAL : (int)scores,
                  rows < MOST ? (int)rows : MOST);
  return program_end("one case against a reference in fp64");
}

#endif
