/* judge.c: judges the exercises of chapter 07 (common/judge.h). */
#include "judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 64, MOST_STEPS = 5, MOST_K = MOST_STEPS * SIDE };

/* The value's upper half is the bf16, rounded to nearest even. */
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static void give_tile_map(const uint16_t *matrix, int rows, int columns) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                   .dimensions = 2,
                   .address = judge_upload(matrix, (size_t)(rows * columns) * sizeof *matrix),
                   .size = {(uint64_t)columns, (uint64_t)rows},
                   .box = {SIDE, SIDE},
                   .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  judge_give_map(&map);
}

/* C = A * B for A of 64 x k and B of k x 64: small whole numbers, so every sum is exact. With `first`, rows
 * are queries from first[0] on, columns are keys from first[1] on, and later keys are hidden. */
static void judge_product(const char *shape, int k, bool b_lies_as_k_n, bool takes_steps,
                          const int *first) {
  static float a[SIDE * MOST_K], b[SIDE * MOST_K]; /* b[n * k + j] */
  static uint16_t a_bits[SIDE * MOST_K], b_bits[SIDE * MOST_K], expected[SIDE * SIDE];
  for (int i = 0; i < SIDE * k; i++) {
    a[i] = (float)(judge_random() % 4), b[i] = (float)(judge_random() % 4);
    a_bits[i] = to_bf16(a[i]);
    b_bits[b_lies_as_k_n ? i % k * SIDE + i / k : i] = to_bf16(b[i]);
  }
  for (int i = 0; i < SIDE * SIDE; i++) {
    float sum = 0;
    for (int j = 0; j < k; j++) sum += a[i / SIDE * k + j] * b[i % SIDE * k + j];
    bool hidden = first && first[1] + i % SIDE > first[0] + i / SIDE;
    expected[i] = to_bf16(hidden ? -INFINITY : sum);
  }
  uint16_t *got = judge_buffer(sizeof expected);
  give_tile_map(a_bits, SIDE, k);
  give_tile_map(b_bits, b_lies_as_k_n ? k : SIDE, b_lies_as_k_n ? SIDE : k);
  if (takes_steps) judge_give_int(k / SIDE);
  for (int i = 0; first && i < 2; i++) judge_give_int(first[i]);
  judge_give_pointer(got);
  judge_launch(shape, 1, 128);
  judge_compare_bf16(got, expected, SIDE, SIDE);
}

static void judge_all_k_steps(void) {
  for (int i = 0; i < 2; i++) judge_product("one tile", SIDE, false, false, NULL);
}

static void judge_b_mn_major(void) {
  for (int i = 0; i < 2; i++) judge_product("one tile, B as [K, N]", SIDE, true, false, NULL);
}

static void judge_make_it_overlap(void) {
  static const int counts[] = {1, 2, 3, MOST_STEPS};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    char shape[64];
    snprintf(shape, sizeof shape, "%d steps", counts[i]);
    judge_product(shape, counts[i] * SIDE, false, true, NULL);
  }
}

static void judge_causal_mask(void) {
  static const int tiles[][2] = {{0, 0}, {64, 64}, {64, 0}, {128, 192}, {100, 64}, {64, 100}};
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
    char shape[64];
    snprintf(shape, sizeof shape, "queries from %d on, keys from %d on", tiles[i][0], tiles[i][1]);
    judge_product(shape, SIDE, false, false, tiles[i]);
  }
}

static const Exercise exercises[] = {{"all_k_steps", judge_all_k_steps},
                                     {"b_mn_major", judge_b_mn_major},
                                     {"causal_mask", judge_causal_mask},
                                     {"make_it_overlap", judge_make_it_overlap},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
