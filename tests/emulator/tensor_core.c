/* tensor_core.c: the emulator's tensor-core arithmetic against what an H200 answered, without a
 * GPU, a machine or PTX: it makes the operands that the recorded runs of mma_cases and wgmma_cases
 * made, calls mma_compute and wgmma_multiply, and compares the digests of the results.
 *
 *   tensor_core [FOLDER]   of the recordings; default tests/emulator/recorded
 *
 * First it holds chunk_offset against addresses that an H200 read: 320 matrix descriptors with
 * random start, offsets, base offset and swizzle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_core/mma.h"
#include "mma_cases.h"
#include "tensor_inputs.h"
#include "tensor_core/wgmma.h"
#include "wgmma_cases.h"

static const char *folder = "tests/emulator/recorded";
static int checked, wrong;

static FILE *open_recording(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    fprintf(stderr, "tensor_core: cannot read %s: give the folder of the recordings\n", path);
    exit(2);
  }
  return file;
}

/* The line "NAME  COUNT results DIGEST". */
static bool find_recorded(const char *recording, const char *name, uint32_t *count,
                          uint64_t *digest) {
  FILE *file = open_recording(recording);
  char line[256], found[128];
  bool hit = false;
  while (!hit && fgets(line, sizeof line, file) != NULL) {
    unsigned long long bits;
    hit =
        sscanf(line, "%127s %u results %llx", found, count, &bits) == 3 && strcmp(found, name) == 0;
    if (hit) *digest = bits;
  }
  fclose(file);
  return hit;
}

static void compare(const char *name, uint64_t digest, uint64_t recorded) {
  checked++;
  if (digest == recorded) return;
  wrong++;
  printf("%s: the digest is %016llx, an H200's was %016llx\n", name, (unsigned long long)digest,
         (unsigned long long)recorded);
}

/* Splits "m16n8k8.row.col...", the part after sync and aligned. */
static int split_opcode(char *text, const char **modifiers) {
  int count = 0;
  modifiers[count++] = "sync";
  modifiers[count++] = "aligned";
  for (char *word = strtok(text, "."); word != NULL && count < 16; word = strtok(NULL, "."))
    modifiers[count++] = word;
  return count;
}

/* ---- mma.sync ---- */

typedef struct {
  InputType a, b, c;
  int registers;
} MmaInputs;

static void test_mma(const char *name, const char *opcode, MmaInputs inputs) {
  char text[128];
  const char *modifiers[16];
  MmaForm form;
  uint32_t results = 0;
  uint64_t recorded = 0, digest = 0;
  snprintf(text, sizeof text, "%s", opcode);
  const int count = split_opcode(text, modifiers);
  const char *refused = mma_read_form(modifiers, count, &form);
  if (refused != NULL || form.d_registers != inputs.registers ||
      !find_recorded("mma_cases.txt", name, &results, &recorded)) {
    printf("%s: %s\n", name, refused != NULL ? refused : "not recorded, or other registers");
    wrong++;
    return;
  }
  const uint32_t test = name_hash(name);
  const uint32_t each = 32u * (uint32_t)form.d_registers * (form.d == RESULT_F16 ? 2u : 1u);
  for (uint32_t iteration = 0; iteration < results / each; iteration++) {
    const int mode = (int)(iteration % MODES);
    uint32_t a[4][LANES], b[2][LANES], d[4][LANES];
    const void *a_columns[4], *b_columns[2];
    void *d_columns[4];
#define FILL(columns, pointers, number, operand, type)                                \
  for (uint32_t i = 0; i < (number); i++) {                                           \
    pointers[i] = columns[i];                                                         \
    for (uint32_t lane = 0; lane < LANES; lane++)                                     \
      columns[i][lane] = input_register(                                              \
          type, input_hash(test, iteration, (operand)*1024u + lane * 16u + i), mode); \
  }
    FILL(a, a_columns, 4, 0u, inputs.a)
    FILL(b, b_columns, 2, 1u, inputs.b)
    FILL(d, d_columns, 4, 2u, inputs.c)
    mma_compute(&form, a_columns, b_columns, (const void *const *)d_columns, d_columns);
    for (uint32_t i = 0; i < (uint32_t)form.d_registers; i++)
      for (uint32_t lane = 0; lane < LANES; lane++)
        digest += result_mark(d[i][lane], iteration, lane * 8u + i);
  }
  compare(name, digest, recorded);
}

/* ---- wgmma ---- */

enum { SHARED, REGISTERS };

typedef struct {
  InputType a, b, c;
  int registers, a_mn_major, b_mn_major, source;
  const char *tail; /* ", p, 1, -1, 0, 0": scale-d, signs, ... */
} WgmmaInputs;

enum { WGMMA_SHARED = 1024 + REGION_B + BYTES_B(256) };

#define STEP_HASH(position) input_hash(test, iteration, (position))
/* One warp's share of one product, added to the digest. */
static bool multiply_quarter(const WgmmaForm *form, const WgmmaInputs *inputs,
                             const uint8_t *shared, uint32_t test, uint32_t iteration, int quarter,
                             uint64_t *digest) {
  const int step = (int)(iteration % STEPS), mode = (int)(iteration / STEPS % MODES);
  uint32_t a[4][LANES], d[128][LANES], outside = 0;
  uint32_t *d_columns[128];
  WgmmaOperands operands = {.shared = shared, .shared_bytes = WGMMA_SHARED};
  operands.scale_d = step != 3;
  operands.a =
      matrix_descriptor(step_descriptor(step_layout(step, inputs->a_mn_major), 1024 + REGION_A));
  operands.b =
      matrix_descriptor(step_descriptor(step_layout(step, inputs->b_mn_major), 1024 + REGION_B));
  for (uint32_t lane = 0; lane < LANES; lane++) {
    const uint32_t thread = (uint32_t)quarter * LANES + lane;
    for (uint32_t i = 0; i < 4; i++)
      a[i][lane] =
          input_register(inputs->a, STEP_HASH(POSITION_REGISTERS_A + thread * 4u + i), mode);
    for (uint32_t i = 0; i < (uint32_t)form->d_registers; i++)
      d[i][lane] = input_register(inputs->c, STEP_HASH(POSITION_C + thread * 128u + i), mode);
  }
  for (int i = 0; i < 4; i++) operands.a_registers[i] = a[i];
  for (int i = 0; i < form->d_registers; i++) d_columns[i] = d[i];
  WgmmaResults sums;
  wgmma_take(form, d_columns, &sums);
  if (!wgmma_multiply(form, &operands, quarter, &sums, &outside)) {
    printf("offset %u is outside of shared memory\n", outside);
    return false;
  }
  wgmma_give(form, &sums, d_columns);
  for (uint32_t i = 0; i < (uint32_t)form->d_registers; i++)
    for (uint32_t lane = 0; lane < LANES; lane++)
      *digest += result_mark(d[i][lane], iteration, ((uint32_t)quarter * LANES + lane) * 128u + i);
  return true;
}

/* A and B in shared memory. */
static void fill_tiles(const WgmmaForm *form, const WgmmaInputs *inputs, uint32_t test,
                       uint32_t block, uint8_t *shared) {
  const int mode = (int)(block % MODES);
  for (uint32_t word = 0; word < BYTES_A / 4; word++) {
    const uint32_t bits =
        input_register(inputs->a, input_hash(test, block, POSITION_A + word), mode);
    memcpy(shared + 1024 + REGION_A + 4 * word, &bits, 4);
  }
  for (uint32_t word = 0; word < BYTES_B((uint32_t)form->columns) / 4; word++) {
    const uint32_t bits =
        input_register(inputs->b, input_hash(test, block, POSITION_B + word), mode);
    memcpy(shared + 1024 + REGION_B + 4 * word, &bits, 4);
  }
}

static void test_wgmma(const char *name, const char *opcode, WgmmaInputs inputs) {
  static uint8_t shared[WGMMA_SHARED];
  char text[128];
  const char *modifiers[16];
  WgmmaForm form;
  uint32_t results = 0;
  uint64_t recorded = 0, digest = 0;
  snprintf(text, sizeof text, "%s", opcode);
  const int count = split_opcode(text, modifiers);
  const char *refused = wgmma_read_form(modifiers, count, &form);
  if (refused != NULL || form.d_registers != inputs.registers ||
      !find_recorded("wgmma_cases.txt", name, &results, &recorded)) {
    printf("%s: %s\n", name, refused != NULL ? refused : "not recorded, or other registers");
    wrong++;
    return;
  }
  int sign_a = 1, sign_b = 1;
  sscanf(strchr(inputs.tail, 'p'), "p, %d, %d", &sign_a, &sign_b);
  form.a_in_registers = inputs.source == REGISTERS;
  form.a_mn_major = inputs.a_mn_major != 0;
  form.b_mn_major = inputs.b_mn_major != 0;
  form.negate_a = sign_a < 0;
  form.negate_b = sign_b < 0;
  const uint32_t test = name_hash(name);
  const uint32_t blocks = results / (STEPS * 64u * (uint32_t)form.columns);
  for (uint32_t block = 0; block < blocks; block++) {
    fill_tiles(&form, &inputs, test, block, shared);
    for (int step = 0; step < STEPS; step++) {
      const uint32_t iteration = block * STEPS + (uint32_t)step;
      for (int quarter = 0; quarter < 4; quarter++)
        if (!multiply_quarter(&form, &inputs, shared, test, iteration, quarter, &digest)) {
          printf("%s: its descriptors are wrong\n", name);
          wrong++;
          return;
        }
    }
  }
  compare(name, digest, recorded);
}

/* ---- Matrix descriptors ---- */

/* wgmma_layouts.txt: "DESCRIPTOR MN-MAJOR DIGEST" of the offsets of B's 16 x 64 bf16 numbers. */
static void test_layouts(void) {
  FILE *file = open_recording("wgmma_layouts.txt");
  char line[128];
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned long long bits, recorded;
    int mn_major;
    if (sscanf(line, "%llx %d %llx", &bits, &mn_major, &recorded) != 3) continue;
    const MatrixDescriptor matrix = matrix_descriptor(bits);
    uint64_t digest = 0;
    for (int k = 0; k < 16; k++)
      for (int n = 0; n < 64; n++) {
        const uint32_t offset = mn_major ? chunk_offset(&matrix, true, k, n / 8) + 2u * (n % 8)
                                         : chunk_offset(&matrix, false, n, k / 8) + 2u * (k % 8);
        digest += result_mark(offset, (uint32_t)k, (uint32_t)n);
      }
    snprintf(line, sizeof line, "descriptor %016llx, %s-major", bits, mn_major ? "MN" : "K");
    compare(line, digest, recorded);
  }
  fclose(file);
}

int main(int argc, char **argv) {
  if (argc > 2) {
    fprintf(stderr, "usage: tensor_core [FOLDER of the recordings]\n");
    return 2;
  }
  if (argc == 2) folder = argv[1];
  test_layouts();
#define MMA(NAME, OPCODE, A, B, C, D, AN, BN) \
  test_mma(#NAME, OPCODE, (MmaInputs){INPUT_##A, INPUT_##B, INPUT_##C, D});
  MMA_CASES
#define WGMMA(NAME, OPCODE, R, SOURCE, A, B, C, TRANS_A, TRANS_B, TAIL) \
  test_wgmma(#NAME, OPCODE,                                             \
             (WgmmaInputs){INPUT_##A, INPUT_##B, INPUT_##C, R, TRANS_A, TRANS_B, SOURCE, TAIL});
  WGMMA_CASES
  if (wrong > 0) {
    printf("FAIL tensor_core: %d of %d differ from an H200\n", wrong, checked);
    return 1;
  }
  printf("PASS tensor_core: %d descriptors and forms as on an H200\n", checked);
  return 0;
}
