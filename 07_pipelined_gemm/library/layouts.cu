// layouts: what else a GEMM must support: 16-bit and 8-bit inputs, all four layouts of A and B, leading
// dimensions, batches, alpha, beta, bias, activations, 32-bit results, memory that is not aligned.
//
//   serial | ring | producer_consumer | two_consumers |
//   multicast | persistent | tma_epilogue | overlapped_epilogue | carried_tile | pipelined_gemm    [layouts]
//
// Beside the ladder. TMA and wgmma handle the transposed layouts: an MN-major operand is loaded in
// boxes of 64 x 64, and one operand of wgmma says that it is transposed (library/gemm_operands.cuh).
// alpha, beta, bias and activation are applied to the fp32 sums on their way out
// (library/gemm_epilogue.cuh).
//
//   layouts --runs 100 --seed 2        random products of all kinds
#include "check_product.cuh"

// Kernels of each kind, with small tiles, for each type and layout. A program with all kernels would take
// minutes to compile. e4m3 sums that are promoted have no kernels but those of gemm_single.
enum { SWAPPED_CARRY = 1, FIRST_SINGLE = 2, SHORT = 4, CONFIGURATIONS = 5 };

template <int TYPE, int MAJOR_A, int MAJOR_B>
static GemmConfigurations few_configurations(void) {
  static const GemmConfiguration list[] = {
      gemm_carry_configuration<TYPE, MAJOR_A, MAJOR_B, 128, 16, 2, false>("carry_128x128_2x1"),
      gemm_carry_configuration<TYPE, MAJOR_B, MAJOR_A, 128, 16, 1, true>(
          "carry_128x128_2x1_swapped"),
      gemm_single_configuration<GemmSingleTile<TYPE, MAJOR_A, MAJOR_B, 128, 64, 1, 2, 2, false> >(
          "single_128x64_1x2_split_2"),
      gemm_single_configuration<GemmSingleTile<TYPE, MAJOR_B, MAJOR_A, 64, 64, 1, 1, 1, true> >(
          "single_64x64_swapped"),
      gemm_short_configuration<GemmShortTile<TYPE, MAJOR_A, MAJOR_B, 128, 2, 5> >("short_64x128")};
  static_assert(sizeof(list) / sizeof(list[0]) == CONFIGURATIONS, "as many as are drawn from");
  GemmConfigurations few = {list, CONFIGURATIONS};
  return few;
}

static GemmConfigurations configurations_of(GemmType type, GemmMajor a, GemmMajor b) {
  enum { K = GEMM_K_MAJOR, MN = GEMM_MN_MAJOR };
  bool a_mn = a == GEMM_MN_MAJOR, b_mn = b == GEMM_MN_MAJOR;
  if (type == GEMM_E4M3) return few_configurations<GEMM_E4M3, K, K>();
  if (type == GEMM_E4M3_TO_FP16) return few_configurations<GEMM_E4M3_TO_FP16, K, K>();
  if (type == GEMM_E4M3_PROMOTED) return few_configurations<GEMM_E4M3_PROMOTED, K, K>();
  if (type == GEMM_BF16) {
    if (a_mn)
      return b_mn ? few_configurations<GEMM_BF16, MN, MN>()
                  : few_configurations<GEMM_BF16, MN, K>();
    return b_mn ? few_configurations<GEMM_BF16, K, MN>() : few_configurations<GEMM_BF16, K, K>();
  }
  if (a_mn)
    return b_mn ? few_configurations<GEMM_FP16, MN, MN>() : few_configurations<GEMM_FP16, MN, K>();
  return b_mn ? few_configurations<GEMM_FP16, K, MN>() : few_configurations<GEMM_FP16, K, K>();
}

// The addresses are filled in later. If they are not aligned then, TMA cannot write C. Of the bias only
// counts here whether there is one.
static bool fits(const CheckedProduct *p) {
  GemmProblem problem = p->problem;
  GemmShape shape;
  problem.c = (void *)(uintptr_t)(p->offset * gemm_element_bytes(problem.c_type));
  problem.bias = p->has_bias ? (const void *)16 : NULL;
  if (problem.ldc == 0) problem.ldc = problem.n;
  CUDA_CHECK(gemm_describe_shape(&problem, p->type, &shape));
  return gemm_fits(&p->configuration, &shape);
}

// The first configuration from number `wish` on that has a kernel for this layout and fits the product, in the first
// way from number `way` on in which it does.
static void choose_configuration(CheckedProduct *p, int wish, int way) {
  GemmConfigurations few = configurations_of(p->type, p->major_a, p->major_b);
  for (int i = 0; i < few.count; i++) {
    const GemmConfiguration *c = &few.list[(wish + i) % few.count];
    for (int j = 0; j < gemm_ways(c); j++) {
      p->configuration = gemm_way(c, (way + j) % gemm_ways(c));
      if (fits(p)) return;
    }
  }
  program_fail("no configuration can compute %lld x %lld x %lld", (long long)p->problem.m,
               (long long)p->problem.n, (long long)p->problem.k);
}

static CheckedProduct random_product(uint64_t seed) {
  CheckedProduct p;
  memset(&p, 0, sizeof(p));
  uint64_t h = gemm_hash(seed), g = gemm_hash(seed + (1ull << 32)),
           f = gemm_hash(seed + (2ull << 32)), e = gemm_hash(seed + (4ull << 32));
  p.type = h & 1 ? GEMM_FP16 : GEMM_BF16;
  p.major_a = h & 2 ? GEMM_MN_MAJOR : GEMM_K_MAJOR;
  p.major_b = h & 4 ? GEMM_MN_MAJOR : GEMM_K_MAJOR;
  if (e % 4 == 0) p.type = h & 1 ? GEMM_E4M3_TO_FP16 : e & 32 ? GEMM_E4M3_PROMOTED : GEMM_E4M3;
  bool e4m3 = gemm_is_e4m3(p.type);
  if (e4m3) p.major_a = p.major_b = GEMM_K_MAJOR;
  int64_t m = 1 + (int64_t)(h >> 8) % 300, n = 1 + (int64_t)(h >> 20) % 300;
  int64_t k = 1 + (int64_t)(h >> 32) % 700;
  bool by_short = gemm_hash(seed + (3ull << 32)) % 8 == 0;
  if ((f & 0xF00000) == 0) n = n / 64 * 64 + 1;  // a tile with one column
  bool by_carry = f >> 30 & 1;
  if (by_short) g = 1 | 16 | 32 | (g & ~0x7Full);  // aligned, and only rounded
  if (by_short && !by_carry) k = 1 + k % 256;
  if (by_carry && !e4m3) k *= 3;  // so that clusters share tiles
  k += GEMM_STEP_K;               // half of the kernels split k: it needs two steps
  if (e4m3) k = 2 * k - (int64_t)(e >> 2 & 1);
  int64_t aligned = e4m3 ? 16 : 8;
  if (g & 1) m = (m + 7) / 8 * 8, n = (n + 7) / 8 * 8, k = (k + aligned - 1) / aligned * aligned;
  p.problem = gemm_problem(m, n, k, NULL, NULL, NULL);
  p.problem.c_type = g & 2 ? GEMM_FP32 : (GemmType)gemm_rounded_type(p.type);
  p.problem.activation = (GemmActivation)(g >> 2 & 3);
  p.problem.alpha = g & 16 ? 1.0f : 0.125f;
  p.problem.beta = g & 32 ? 0.0f : 0.5f;
  p.has_bias = g >> 6 & 1;
  if (e4m3 && e & 8) p.scale_a = 0.75f, p.scale_b = e & 16 ? 0 : 0.5f;
  p.integers = g >> 7 & 1;
  if (g & 256) {  // gaps between rows
    p.problem.lda = (p.major_a == GEMM_K_MAJOR ? k : m) + (int64_t)(f & 15);
    p.problem.ldb = (p.major_b == GEMM_K_MAJOR ? k : n) + (int64_t)(f >> 4 & 15);
    p.problem.ldc = n + (int64_t)(f >> 8 & 15);
  }
  if (g & 512) {  // batches, perhaps with the same A or B for all
    int64_t lda = p.problem.lda ? p.problem.lda : p.major_a == GEMM_K_MAJOR ? k : m;
    int64_t ldb = p.problem.ldb ? p.problem.ldb : p.major_b == GEMM_K_MAJOR ? k : n;
    int64_t ldc = p.problem.ldc ? p.problem.ldc : n;
    p.problem.batches = 2 + (int64_t)(f >> 12 & 1);
    p.problem.stride_a = f >> 13 & 3 ? lda * (p.major_a == GEMM_K_MAJOR ? m : k) : 0;
    p.problem.stride_b = f >> 15 & 3 ? ldb * (p.major_b == GEMM_K_MAJOR ? n : k) : 0;
    p.problem.stride_c = ldc * m + (int64_t)(f >> 17 & 7);
  }
  if ((g >> 10 & 3) == 0) p.offset = 1 + (int)(f >> 20 & 7);
  p.rows = 5;
  p.most_clusters = (int)(f >> 24 & 3);
  p.seed = seed;
  int by_single = FIRST_SINGLE + (int)(f >> 27 & 1);
  int wish = by_short ? (by_carry ? SWAPPED_CARRY : SHORT) : by_carry ? 0 : by_single;
  choose_configuration(&p, wish, (int)(f >> 40 & 0xFF));
  return p;
}

static void check_random(long runs, long seed) {
  long good = 0;
  for (long run = 0; run < runs; run++) {
    CheckedProduct p = random_product((uint64_t)(seed * 100000 + run));
    if (check_product(&p, NULL)) {
      good++;
    } else {
      printf("  run %ld: %lld x %lld x %lld by %s is wrong\n", run, (long long)p.problem.m,
             (long long)p.problem.n, (long long)p.problem.k, p.configuration.name);
    }
  }
  printf("%ld of %ld random products within bounds\n", good, runs);
}

enum { OF_16_BITS = 2 * 4, ACTIVATIONS = 4 };  // two types in four layouts

// Every type and layout with every activation, on each configuration that supports the layout, in several ways.
static int check_layouts(void) {
  static const char *const types[] = {"bf16", "fp16", "fp32", "e4m3", "e4m3", "e4m3"};
  static const char *const majors[] = {"K", "MN"};
  static const GemmType of_8_bits[] = {GEMM_E4M3, GEMM_E4M3_TO_FP16, GEMM_E4M3_PROMOTED};
  printf(
      "type  A   B   configurations, each with identity, ReLU, GELU and SiLU\n"
      "            (e4m3: C in bf16 or fp32, in fp16 or fp32, and with promoted sums)\n");
  const int layouts = OF_16_BITS + sizeof of_8_bits / sizeof of_8_bits[0];
  for (int i = 0; i < layouts; i++) {
    CheckedProduct p;
    memset(&p, 0, sizeof(p));
    p.type = i & 4 ? GEMM_FP16 : GEMM_BF16;
    p.major_a = i & 2 ? GEMM_MN_MAJOR : GEMM_K_MAJOR;
    p.major_b = i & 1 ? GEMM_MN_MAJOR : GEMM_K_MAJOR;
    if (i >= OF_16_BITS) {  // the tensor cores have no other layouts for them
      p.type = of_8_bits[i - OF_16_BITS];
      p.major_a = p.major_b = GEMM_K_MAJOR;
    }
    printf("%s  %-2s  %-2s ", types[p.type], majors[p.major_a], majors[p.major_b]);
    GemmConfigurations few = configurations_of(p.type, p.major_a, p.major_b);
    for (int j = 0; j < few.count; j++) {
      if (few.list[j].kernel == NULL) continue;
      for (int activation = 0; activation < ACTIVATIONS; activation++) {
        int64_t k = few.list[j].most_steps > 0 ? 264 : 520;
        p.problem = gemm_problem(264, 136, i < OF_16_BITS ? k : 2 * k, NULL, NULL, NULL);
        p.problem.c_type = activation == 3 ? GEMM_FP32 : (GemmType)gemm_rounded_type(p.type);
        p.problem.activation = (GemmActivation)activation;
        p.problem.alpha = activation ? 0.125f : 1;
        p.problem.beta = activation == 3 ? 0.5f : 0;
        p.has_bias = activation > 0;
        bool scaled = i >= OF_16_BITS && activation != 1;
        p.scale_a = scaled ? 0.75f : 0, p.scale_b = scaled ? 0.5f : 0;
        p.integers = true;
        p.rows = 6;
        p.most_clusters = 1;
        p.seed = (uint64_t)(100 * i + 10 * j + activation);
        choose_configuration(&p, j, i + activation);
        check_product(&p, NULL);
      }
      printf(" %s", few.list[j].name);
    }
    printf("\n");
  }
  return layouts;
}

// Rows of C that begin at odd addresses leave in pairs, chunks of 16, 32 or 64 columns at a time. Every
// element is compared, after plain rounding and after bias and ReLU.
static void check_odd_rows(void) {
  for (int type = GEMM_BF16; type <= GEMM_FP16; type++) {
    GemmConfigurations few = configurations_of((GemmType)type, GEMM_K_MAJOR, GEMM_K_MAJOR);
    printf("%s, rows of 137 elements, each compared:", type == GEMM_BF16 ? "bf16" : "fp16");
    for (int i = 0; i < 2 * few.count; i++) {
      CheckedProduct p;
      memset(&p, 0, sizeof(p));
      p.type = (GemmType)type, p.major_a = p.major_b = GEMM_K_MAJOR;
      p.problem = gemm_problem(75, 137, 264, NULL, NULL, NULL);
      p.problem.c_type = p.type;
      p.problem.activation = i % 2 ? GEMM_RELU : GEMM_IDENTITY;
      p.has_bias = p.integers = i % 2;
      p.seed = (uint64_t)(1000 + i);
      p.configuration = gemm_way(&few.list[i / 2], 0);
      if (!fits(&p)) continue;
      check_product(&p, NULL);
      if (i % 2) printf(" %s", p.configuration.name);
    }
    printf("\n");
  }
}

// What a compiler cannot refuse is refused by a value.
static void check_refusals(void) {
  float scale;
  PipelinedGemm gemm;
  GemmConfigurations few = configurations_of(GEMM_E4M3, GEMM_K_MAJOR, GEMM_K_MAJOR);
  GemmProblem problem = gemm_problem(64, 64, 512, &scale, &scale, &scale);
  problem.scale_a = &scale;
  GemmStatus status =
      gemm_plan_with(&gemm, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, few.list);
  check_that(status.error == GEMM_UNSUPPORTED, "scales of bf16 operands are refused");
  problem.c_type = GEMM_FP16;
  status = gemm_plan_with(&gemm, &problem, GEMM_E4M3, GEMM_K_MAJOR, GEMM_K_MAJOR, few.list);
  check_that(status.error == GEMM_UNSUPPORTED,
             "C in fp16 is refused by kernels that round to bf16");
}

int main(int argc, char **argv) {
  long runs = 0, seed = 1;
  Option options[] = {{"--runs", "check this many random products", &runs, 1, 100000},
                      {"--seed", "which random products", &seed, 1, 1 << 20}};
  program_begin("layouts", argc, argv, options, 2);
  if (runs > 0) {
    check_random(runs, seed);
    return program_end("%ld random products", runs);
  }
  int layouts = check_layouts();
  check_odd_rows();
  check_refusals();
  return program_end("%d pairs of type and layout with %d activations each, odd rows, refusals",
                     layouts, ACTIVATIONS);
}
