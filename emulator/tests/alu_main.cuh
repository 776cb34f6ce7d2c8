/* alu_main.cuh: runs every case on the same inputs and keeps, or checks, what came out.
 *
 *   alu_cases record FILE    on the H200
 *   alu_cases check FILE     anywhere: each answer must be the recorded one, bit for bit
 *   alu_cases dump FILE      every answer and its operands in full, to look into differences
 *
 * A recording holds, for each case, a hash of its name, the first KEPT answers, and a hash of all
 * COUNT of them. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mix.h"
#include "check.h"

enum { COUNT = 4096, KEPT = 256, EDGES = 256, OPERANDS = 4 };

typedef struct {
  const unsigned long long *value[OPERANDS];
} Inputs;
typedef struct {
  void (*kernel)(Inputs, unsigned long long *);
  const char *name;
  char result;
  const char *operands;
} Case;

/* ---- Inputs: edge values first, in all pairs, then mixtures and random bits ---- */
static uint64_t random_state;
static uint64_t random_bits(void) { return mix(random_state += 0x9e3779b97f4a7c15ull); }

static const uint64_t edges_integer[] = {0,
                                         1,
                                         ~0ull,
                                         2,
                                         0x7fff,
                                         0x8000,
                                         0x7fffffff,
                                         0x80000000,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffff,
                                         0xffffffff,
                                         0x80008000,
                                         0x7fff7fff,
                                         0x0001ffff,
                                         0xfffffffe,
                                         3,
                                         7,
                                         31,
                                         32,
                                         33,
                                         63,
                                         64,
                                         255,
                                         256,
                                         0x10000,
                                         0x100000000,
                                         0xffffffff00000000,
                                         0x55555555aaaaaaaa,
                                         0x123456789abcdef,
                                         127,
                                         128,
                                         0xffffffffffffff80,
                                         0xffffff80,
                                         0x00ff00ff,
                                         0x80000001,
                                         0x8000000000000001};
static const uint64_t edges_small[] = {0,  1,  2,  7,  8,   15,  16,  17,  31,    32,   33,
                                       47, 48, 62, 63, 64,  65,  127, 128, 255,   256,  257,
                                       30, 5,  24, 23, 100, 512, 300, 3,   0x1f0, 65535};
static const uint64_t edges_float[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
    0x7f800001, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
    0x3f000000, 0x40000000, 0x3effffff, 0x3f000001, 0x3fffffff, 0x40400000, 0x4b000000, 0x4b000001,
    0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5f000000, 0x5f800000,
    0xdf000000, 0x3fc00000, 0x40200000, 0x477fe000, 0x477ff000, 0x477fefff, 0x38800000, 0x387fc000,
    0x33800000, 0x33000000, 0x33000001, 0x3f801000, 0x3f803000, 0x3f808000, 0x3f818000, 0x43e00000,
    0x43e80000, 0x43f00000, 0x47600000, 0x47680000, 0x47700000, 0x3c800000, 0x3a800000, 0x7e800000,
    0x7e800001, 0x00ffffff, 0x01000000, 0x437f8000, 0x47800000, 0xc3000000, 0xc3008000, 0x42fe0000};
static const uint64_t edges_double[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001,
    0x7ff0000000000001, 0x0000000000000001, 0x8000000000000001, 0x000fffffffffffff,
    0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x3fe0000000000000,
    0x4000000000000000, 0x3fdfffffffffffff, 0x3fe0000000000001, 0x4008000000000000,
    0x4330000000000000, 0x4330000000000001, 0x41dfffffffc00000, 0x41e0000000000000,
    0xc1e0000000000000, 0xc1e0000000200000, 0x41efffffffe00000, 0x41f0000000000000,
    0x43e0000000000000, 0x43f0000000000000, 0xc3e0000000000000, 0x3ff8000000000000,
    0x4004000000000000, 0x40effc0000000000, 0x40effe0000000000, 0x3810000000000000,
    0x380fffffffffffff, 0x36a0000000000000, 0x3690000000000000, 0x3690000000000001,
    0x47efffffe0000000, 0x47effffff0000000, 0x47efffffefffffff, 0x3ff0000010000000,
    0x3ff0000030000000, 0x3e70000000000000, 0x3e60000000000000, 0x0020000000000000};
static const uint64_t edges_half[] = {
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x0001, 0x8001,
    0x03ff, 0x0400, 0x7bff, 0xfbff, 0x7fff, 0xffff, 0x3800, 0x4000, 0x3bff, 0x3c01, 0x4200,
    0x3e00, 0x4100, 0x6400, 0x6401, 0x7800, 0x1400, 0x0800, 0xbbff, 0x5bf8, 0x5c00};
static const uint64_t edges_bfloat[] = {
    0x0000, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x0001, 0x8001,
    0x007f, 0x0080, 0x7f7f, 0xff7f, 0x7fff, 0xffff, 0x3f00, 0x4000, 0x3f7f, 0x3f81, 0x4040,
    0x3fc0, 0x4020, 0x4300, 0x4301, 0x5f00, 0x2000, 0x1f80, 0x0100, 0x477f, 0x4f00};

#define EDGE(table, i) table[(i) % (sizeof table / sizeof table[0])]
static uint64_t edge(char letter, uint64_t i) {
  switch (letter) {
    case 'b':
      return EDGE(edges_small, i);
    case 'f':
      return EDGE(edges_float, i);
    case 'd':
      return EDGE(edges_double, i);
    case 'x':
      return EDGE(edges_half, i);
    case 'y':
      return EDGE(edges_bfloat, i);
    case 'X':
      return EDGE(edges_half, i) | EDGE(edges_half, i * 7 + 3) << 16;
    case 'Y':
      return EDGE(edges_bfloat, i) | EDGE(edges_bfloat, i * 7 + 3) << 16;
    case 'p':
      return i;
    case 'e':
      return i * 0x0101;
    case 'm':
    case 's':
      return 0;
    default:
      return EDGE(edges_integer, i);
  }
}
/* Floats of random bits are mostly huge or tiny; every other one lies near 1. */
static uint64_t mixed(char letter) {
  uint64_t bits = random_bits(), choice = random_bits() % 8;
  if (choice < 3) return edge(letter, bits);
  if (choice < 5) return bits;
  switch (letter) {
    case 'f':
      return (bits & 0x80ffffff) + 0x3f000000 - (bits >> 60 << 23) + (bits >> 56 & 15) * 0x800000;
    case 'd':
      return (bits & 0x801fffffffffffff) + 0x3fc0000000000000;
    case 'x':
      return (bits & 0x87ff) + 0x3800;
    case 'y':
      return (bits & 0x81ff) + 0x3f00;
    case 'X':
      return (bits & 0x87ff07ff) + 0x38003800;
    case 'Y':
      return (bits & 0x81ff01ff) + 0x3f003f00;
    case 'b':
      return bits % 80;
    default:
      return bits >> (bits % 48);
  }
}
/* The first 256 of one-operand cases are edges; of two operands 16 x 16 pairs of them. */
static uint64_t input_value(char letter, int operand, int operand_count, int i) {
  uint64_t other = mixed(letter);
  if (operand_count == 1 && i < 64) return edge(letter, (uint64_t)i);
  if (operand_count == 2 && i < EDGES) return edge(letter, operand ? i % 16 : i / 16);
  if (operand_count > 2 && i < EDGES) return edge(letter, random_bits());
  return other;
}

/* ---- Running and comparing ---- */
static int refuse_recording(const char *where, const char *name) {
  printf(
      "FAIL alu_cases: the recording is not of these cases (%s %s). On a GPU, record them: "
      "common/make/record emulator/tests/recorded/alu_cases.bin.gz\n",
      where, name);
  return 1;
}

static uint64_t hash_bytes(const void *bytes, size_t count) { /* FNV-1a */
  uint64_t hash = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < count; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ull;
  return hash;
}
static size_t result_bytes(char letter) {
  switch (letter) {
    case 'p':
    case 'P':
      return 1;
    case 'h':
    case 'x':
    case 'y':
      return 2;
    case 'l':
    case 'd':
      return 8;
    default:
      return 4;
  }
}

/* How a case's answers differ from the recorded ones; false: not at all. */
static bool report_case(const Case *one, const uint8_t *kept, const uint8_t *expected,
                        bool others_differ, const unsigned long long (*inputs)[COUNT]) {
  size_t bytes = result_bytes(one->result);
  int wrong = 0, first = -1;
  for (int i = 0; i < KEPT; i++) {
    uint64_t want = 0, got = 0;
    memcpy(&want, expected + i * bytes, bytes);
    memcpy(&got, kept + i * bytes, bytes);
    if (got == want) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0 && !others_differ) return false;
  if (wrong == 0) {
    printf("%s: one of the later answers differs\n", one->name);
    return true;
  }
  uint64_t want = 0, got = 0;
  memcpy(&want, expected + first * bytes, bytes);
  memcpy(&got, kept + first * bytes, bytes);
  printf("%s: %d of %d differ; of", one->name, wrong, KEPT);
  for (int k = 0; k < (int)strlen(one->operands); k++) printf(" 0x%llx", inputs[k][first]);
  printf(" got 0x%llx, the H200 answered 0x%llx\n", (unsigned long long)got,
         (unsigned long long)want);
  return true;
}

static Inputs make_inputs(const Case *one, unsigned long long *device_inputs,
                          unsigned long long (*inputs)[COUNT]) {
  Inputs in;
  int operand_count = (int)strlen(one->operands);
  for (int k = 0; k < OPERANDS; k++) {
    in.value[k] = device_inputs + k * COUNT;
    random_state = hash_bytes(one->operands, strlen(one->operands)) + k;
    for (int i = 0; i < COUNT; i++)
      inputs[k][i] = k < operand_count ? input_value(one->operands[k], k, operand_count, i) : 0;
  }
  return in;
}

static int run_cases(int argc, char **argv, const Case *cases, int case_count) {
  bool record = argc == 3 && strcmp(argv[1], "record") == 0;
  bool dump = argc == 3 && strcmp(argv[1], "dump") == 0;
  bool check = argc == 3 && strcmp(argv[1], "check") == 0;
  FILE *file = record || dump ? fopen(argv[2], "wb") : check ? fopen(argv[2], "rb") : NULL;
  if (!file) {
    fprintf(stderr, "usage: alu_cases record|check|dump FILE\n");
    return 2;
  }
  static unsigned long long inputs[OPERANDS][COUNT], answers[COUNT];
  static uint8_t kept[COUNT * 8], expected[KEPT * 8];
  unsigned long long *device_inputs, *device_answers;
  CUDA_CHECK(cudaMalloc(&device_inputs, sizeof inputs));
  CUDA_CHECK(cudaMalloc(&device_answers, 3 * sizeof answers)); /* and 16 bytes of memory a thread */
  int failures = 0;
  for (int n = 0; n < case_count; n++) {
    const Case *one = &cases[n];
    int operand_count = (int)strlen(one->operands);
    Inputs in = make_inputs(one, device_inputs, inputs);
    CUDA_CHECK(cudaMemcpy(device_inputs, inputs, sizeof inputs, cudaMemcpyHostToDevice));
    one->kernel<<<COUNT / 128, 128>>>(in, device_answers);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(answers, device_answers, sizeof answers, cudaMemcpyDeviceToHost));
    size_t bytes = result_bytes(one->result);
    for (int i = 0; i < COUNT; i++) memcpy(kept + i * bytes, &answers[i], bytes);
    uint32_t name = (uint32_t)hash_bytes(one->name, strlen(one->name));
    uint64_t all = hash_bytes(kept, COUNT * bytes);
    if (dump) {
      fwrite(kept, bytes, COUNT, file);
      fwrite(inputs, 8, (size_t)operand_count * COUNT, file);
    }
    if (record) {
      fwrite(&name, sizeof name, 1, file);
      fwrite(kept, bytes, KEPT, file);
      fwrite(&all, sizeof all, 1, file);
    }
    if (!check) continue;
    uint32_t recorded_name;
    uint64_t recorded_all;
    if (fread(&recorded_name, sizeof name, 1, file) != 1 ||
        fread(expected, bytes, KEPT, file) != KEPT ||
        fread(&recorded_all, sizeof all, 1, file) != 1 || recorded_name != name)
      return refuse_recording("at", one->name);
    failures += report_case(one, kept, expected, all != recorded_all, inputs);
  }
  if (check && fgetc(file) != EOF) return refuse_recording("after", cases[case_count - 1].name);
  fclose(file);
  if (record || dump) return 0;
  printf("%s alu_cases: %d instructions, %d differ\n", failures ? "FAIL" : "PASS", case_count,
         failures);
  return failures != 0;
}
