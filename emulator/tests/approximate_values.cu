// approximate_values: every result of the .approx functions (and div.full), as sums of hashes: one for each
// function and each 2^23 values of the argument, which are a binade of f32.
//
//   approximate_values record FOLDER          on a GPU: writes the files below into FOLDER
//   approximate_values check FILE             anywhere: the binades that decide, against FILE
//   approximate_values check FILE FUNCTION|all [STEP]    all binades, or every STEP-th
//
// approximate_hashes.bin has the sums. approximate_samples.bin has every SAMPLE_STEP-th result of the binades
// from which emulator/tests/long/approximate_tables makes the emulator's tables.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { BINADE = 1 << 23, BINADES = 512, SAMPLE_STEP = 127, SAMPLES = BINADE / SAMPLE_STEP + 1 };

static __device__ uint64_t mixed(uint64_t z) {  // the last steps of splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The operands of a division. In every other binade the exponents are at the edges.
static __device__ void two_operands(uint32_t i, uint32_t *a, uint32_t *b) {
  uint64_t bits = mixed(i + 0x9e3779b97f4a7c15ull);
  *a = (uint32_t)bits;
  *b = (uint32_t)(bits >> 32);
  if (!(i & BINADE)) return;
  uint64_t choices = mixed(bits);
  const uint64_t edges = 0xfffefdfcfb020100ull;  // exponents, one a byte
  *b = (*b & 0x807fffffu) | (uint32_t)(edges >> 8 * (choices & 7) & 0xff) << 23;
  if (choices & 8)
    *a = (*a & 0x807fffffu) | (uint32_t)(edges >> 8 * (choices >> 4 & 7) & 0xff) << 23;
  if ((choices >> 8 & 15) == 0) *b &= 0xff800000u;
  if ((choices >> 12 & 15) == 0) *a &= 0xff800000u;
}

// FUNCTION(name, instruction, kind)
#define FUNCTIONS(FUNCTION)                                 \
  FUNCTION(rcp, "rcp.approx.f32", word)                     \
  FUNCTION(rcp_ftz, "rcp.approx.ftz.f32", word)             \
  FUNCTION(rsqrt, "rsqrt.approx.f32", word)                 \
  FUNCTION(rsqrt_ftz, "rsqrt.approx.ftz.f32", word)         \
  FUNCTION(sqrt, "sqrt.approx.f32", word)                   \
  FUNCTION(sqrt_ftz, "sqrt.approx.ftz.f32", word)           \
  FUNCTION(ex2, "ex2.approx.f32", word)                     \
  FUNCTION(ex2_ftz, "ex2.approx.ftz.f32", word)             \
  FUNCTION(lg2, "lg2.approx.f32", word)                     \
  FUNCTION(lg2_ftz, "lg2.approx.ftz.f32", word)             \
  FUNCTION(sin, "sin.approx.f32", word)                     \
  FUNCTION(sin_ftz, "sin.approx.ftz.f32", word)             \
  FUNCTION(cos, "cos.approx.f32", word)                     \
  FUNCTION(cos_ftz, "cos.approx.ftz.f32", word)             \
  FUNCTION(tanh, "tanh.approx.f32", word)                   \
  FUNCTION(tanh_f16x2, "tanh.approx.f16x2", word)           \
  FUNCTION(ex2_f16x2, "ex2.approx.f16x2", word)             \
  FUNCTION(tanh_bf16x2, "tanh.approx.bf16x2", word)         \
  FUNCTION(ex2_bf16x2, "ex2.approx.ftz.bf16x2", word)       \
  FUNCTION(div_approx, "div.approx.f32", quotient)          \
  FUNCTION(div_approx_ftz, "div.approx.ftz.f32", quotient)  \
  FUNCTION(div_full, "div.full.f32", quotient)              \
  FUNCTION(div_full_ftz, "div.full.ftz.f32", quotient)      \
  FUNCTION(rcp_f64, "rcp.approx.ftz.f64", double_word)      \
  FUNCTION(rsqrt_f64, "rsqrt.approx.ftz.f64", double_word)  \
  FUNCTION(rsqrt_full_f64, "rsqrt.approx.f64", double_word) \
  FUNCTION(tanh_f16, "tanh.approx.f16", half)               \
  FUNCTION(ex2_f16, "ex2.approx.f16", half)                 \
  FUNCTION(tanh_bf16, "tanh.approx.bf16", half)             \
  FUNCTION(ex2_bf16, "ex2.approx.ftz.bf16", half)

#define word(instruction) \
  uint32_t y;             \
  asm(instruction " %0, %1;" : "=r"(y) : "r"(x));
#define half(instruction) \
  uint16_t y;             \
  asm(instruction " %0, %1;" : "=h"(y) : "h"((uint16_t)x));
#define quotient(instruction) \
  uint32_t y, a, b;           \
  two_operands(x, &a, &b);    \
  asm(instruction " %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
#define double_word(instruction) /* x is the upper word */ \
  uint64_t y, a = (uint64_t)x << 32 | (uint32_t)mixed(x);  \
  asm(instruction " %0, %1;" : "=l"(y) : "l"(a));

#define KERNELS(name, instruction, kind)                                                 \
  static __global__ void hash_##name(uint32_t first, unsigned long long *sum) {          \
    uint64_t part = 0;                                                                   \
    uint32_t threads = gridDim.x * blockDim.x;                                           \
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < BINADE; i += threads) { \
      uint32_t x = first + i;                                                            \
      kind(instruction) part += mixed(y + mixed(x + 1ull));                              \
    }                                                                                    \
    atomicAdd(sum, (unsigned long long)part);                                            \
  }                                                                                      \
  static __global__ void sample_##name(uint32_t first, uint32_t *results) {              \
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;                                  \
    uint32_t x = first + i * SAMPLE_STEP;                                                \
    kind(instruction) if (i < SAMPLES) results[i] = (uint32_t)y;                         \
  }
FUNCTIONS(KERNELS)

typedef struct {
  const char *name;
  void (*hash)(uint32_t first, unsigned long long *sum);
  void (*sample)(uint32_t first, uint32_t *results);
} Function;
#define ENTRY(name, instruction, kind) {instruction, hash_##name, sample_##name},
static const Function functions[] = {FUNCTIONS(ENTRY)};
enum { COUNT = sizeof functions / sizeof *functions };

// Binades by their number, which is the sign and the exponent: 127 begins at 1.
typedef struct {
  const char *name;
  uint16_t first, count;
} Binades;
static const Binades deciding[] = {
    {"rcp.approx.f32", 0, 1},         {"rcp.approx.f32", 253, 1},
    {"rcp.approx.ftz.f32", 127, 1},   {"rsqrt.approx.f32", 0, 1},
    {"rsqrt.approx.ftz.f32", 127, 2}, {"sqrt.approx.f32", 0, 1},
    {"sqrt.approx.ftz.f32", 127, 2},  {"ex2.approx.f32", 389, 1},
    {"ex2.approx.ftz.f32", 127, 1},   {"ex2.approx.ftz.f32", 382, 1},
    {"lg2.approx.f32", 0, 1},         {"lg2.approx.ftz.f32", 126, 3},
    {"sin.approx.f32", 126, 2},       {"cos.approx.f32", 127, 1},
    {"tanh.approx.f32", 119, 1},      {"tanh.approx.f32", 126, 3},
    {"tanh.approx.f16x2", 150, 1},    {"ex2.approx.f16x2", 140, 1},
    {"tanh.approx.bf16x2", 127, 1},   {"ex2.approx.ftz.bf16x2", 127, 1},
    {"div.approx.f32", 1, 1},         {"div.approx.ftz.f32", 1, 1},
    {"div.full.f32", 1, 1},           {"div.full.ftz.f32", 1, 1},
    {"rcp.approx.ftz.f64", 127, 1},   {"rsqrt.approx.ftz.f64", 127, 1},
    {"rsqrt.approx.f64", 127, 1},     {"rsqrt.approx.f64", 0, 1},
    {"tanh.approx.f16", 0, 1},        {"ex2.approx.f16", 0, 1},
    {"tanh.approx.bf16", 0, 1},       {"ex2.approx.ftz.bf16", 0, 1}};
static const Binades sampled[] = {{"rcp.approx.ftz.f32", 127, 1},  {"rsqrt.approx.ftz.f32", 127, 2},
                                  {"sqrt.approx.ftz.f32", 127, 2}, {"ex2.approx.ftz.f32", 127, 1},
                                  {"lg2.approx.ftz.f32", 128, 1},  {"sin.approx.ftz.f32", 119, 9},
                                  {"tanh.approx.f32", 119, 11}};

static const Function *find(const char *name) {
  for (int i = 0; i < COUNT; i++)
    if (strcmp(functions[i].name, name) == 0) return &functions[i];
  return NULL;
}
static uint64_t hash_of(const Function *function, uint32_t binade) {
  static unsigned long long *sum;
  unsigned long long value = 0;
  if (!sum) CUDA_CHECK(cudaMalloc(&sum, sizeof *sum));
  CUDA_CHECK(cudaMemcpy(sum, &value, sizeof value, cudaMemcpyHostToDevice));
  function->hash<<<64, 256>>>(binade << 23, sum);
  CUDA_CHECK(cudaMemcpy(&value, sum, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

static FILE *create(const char *folder, const char *name) {
  char path[1000];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  if (!file) {
    fprintf(stderr, "approximate_values: cannot write %s\n", path);
    exit(2);
  }
  return file;
}
static int record(const char *folder) {
  FILE *hashes = create(folder, "approximate_hashes.bin");
  for (int i = 0; i < COUNT; i++)
    for (uint32_t binade = 0; binade < BINADES; binade++) {
      uint64_t hash = hash_of(&functions[i], binade);
      fwrite(&hash, sizeof hash, 1, hashes);
    }
  fclose(hashes);
  FILE *samples = create(folder, "approximate_samples.bin");
  static uint32_t results[SAMPLES];
  uint32_t *device_results;
  CUDA_CHECK(cudaMalloc(&device_results, sizeof results));
  for (size_t i = 0; i < sizeof sampled / sizeof *sampled; i++)
    for (uint32_t k = 0; k < sampled[i].count; k++) {
      find(sampled[i].name)
          ->sample<<<(SAMPLES + 255) / 256, 256>>>((sampled[i].first + k) << 23, device_results);
      CUDA_CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
      fwrite(results, sizeof *results, SAMPLES, samples);
    }
  fclose(samples);
  printf("PASS approximate_values: recorded %d functions\n", COUNT);
  return 0;
}

static uint64_t recorded[COUNT][BINADES];
static long tried, differing;
static void try_binades(const Function *function, uint32_t first, uint32_t end, uint32_t step) {
  for (uint32_t binade = first; binade < end; binade += step, tried++) {
    if (hash_of(function, binade) == recorded[function - functions][binade]) continue;
    printf("%s: the results for 0x%08x to 0x%08x are not those of the GPU\n", function->name,
           binade << 23, (binade << 23) + (BINADE - 1));
    differing++;
  }
}
static int check(const char *path, const char *name, uint32_t step) {
  FILE *file = fopen(path, "rb");
  if (!file || fread(recorded, sizeof recorded, 1, file) != 1 || fgetc(file) != EOF) {
    printf("FAIL approximate_values: %s is not a recording of these functions\n", path);
    return 1;
  }
  fclose(file);
  if (!name)
    for (size_t i = 0; i < sizeof deciding / sizeof *deciding; i++)
      try_binades(find(deciding[i].name), deciding[i].first, deciding[i].first + deciding[i].count,
                  1);
  for (int i = 0; name && i < COUNT; i++)
    if (strcmp(name, "all") == 0 || strcmp(name, functions[i].name) == 0)
      try_binades(&functions[i], 0, BINADES, step);
  printf("%s approximate_values: %ld binades, %ld differ\n", differing ? "FAIL" : "PASS", tried,
         differing);
  return differing != 0;
}

int main(int argc, char **argv) {
  const char *name = argc > 3 ? argv[3] : NULL;
  int step = argc > 4 ? atoi(argv[4]) : 1;
  if (argc == 3 && strcmp(argv[1], "record") == 0) return record(argv[2]);
  if (argc >= 3 && argc <= 5 && strcmp(argv[1], "check") == 0 && step > 0 &&
      (!name || strcmp(name, "all") == 0 || find(name)))
    return check(argv[2], name, (uint32_t)step);
  fprintf(stderr,
          "usage: approximate_values record FOLDER | check FILE [FUNCTION|all [STEP]]\n"
          "FUNCTION is an instruction, like rcp.approx.ftz.f32; STEP is 1 or more\n");
  return 2;
}
