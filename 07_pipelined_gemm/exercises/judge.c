/* judge.c: judges the exercises of chapter 07 (common/exercises/judge.h). */
#include "judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 64, MOST_K = 128, MOST_TILES = 5, MOST_N = MOST_TILES * SIDE };

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

/* The rows of scores are queries, the columns are keys, and a query sees `length` keys up to its own. */
typedef struct {
  int first_query, first_key, length;
} Window;

static bool sees(const Window *window, int row, int column) {
  int query = window->first_query + row, key = window->first_key + column;
  return key <= query && key > query - window->length;
}

/* C = A * B for A of 64 x k and B of k x n: small whole numbers, so every sum is exact. */
static void judge_product(const char *shape, int n, int k, bool b_lies_as_k_n, bool takes_tiles,
                          const Window *window) {
  static float a[SIDE * MOST_K], b[MOST_N * MOST_K]; /* b[column * k + j] */
  static uint16_t a_bits[SIDE * MOST_K], b_bits[MOST_N * MOST_K], expected[SIDE * MOST_N];
  for (int i = 0; i < SIDE * k; i++) a_bits[i] = to_bf16(a[i] = (float)(judge_random() % 4));
  for (int i = 0; i < n * k; i++) {
    b[i] = (float)(judge_random() % 4);
    b_bits[b_lies_as_k_n ? i % k * n + i / k : i] = to_bf16(b[i]);
  }
  for (int i = 0; i < SIDE * n; i++) {
    float sum = 0;
    for (int j = 0; j < k; j++) sum += a[i / n * k + j] * b[i % n * k + j];
    bool visible = !window || sees(window, i / n, i % n);
    expected[i] = to_bf16(visible ? sum : -INFINITY);
  }
  give_tile_map(a_bits, SIDE, k);
  give_tile_map(b_bits, b_lies_as_k_n ? k : n, b_lies_as_k_n ? n : k);
  if (takes_tiles) judge_give_int(n / SIDE);
  if (window) {
    judge_give_int(window->first_query);
    judge_give_int(window->first_key);
    judge_give_int(window->length);
  }
  uint16_t *got = judge_give_buffer((size_t)(SIDE * n) * sizeof *got);
  judge_launch(1, 128, "%s", shape);
  judge_compare_bf16(got, expected, SIDE, n);
}

static void judge_all_k_steps(void) {
  for (int i = 0; i < 2; i++) judge_product("one tile, k = 128", SIDE, MOST_K, false, false, NULL);
}

static void judge_b_mn_major(void) {
  for (int i = 0; i < 2; i++) judge_product("one tile, B as [K, N]", SIDE, SIDE, true, false, NULL);
}

static void judge_make_it_overlap(void) {
  static const int counts[] = {1, 2, 3, MOST_TILES};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    char shape[64];
    snprintf(shape, sizeof shape, "%d tiles", counts[i]);
    judge_product(shape, counts[i] * SIDE, SIDE, false, true, NULL);
  }
}

static void judge_sliding_window(void) {
  static const Window windows[] = {{0, 0, 64},   {0, 0, 1},     {64, 64, 10},  {64, 0, 70},
                                   {64, 0, 200}, {128, 192, 9}, {100, 64, 30}, {64, 100, 20}};
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    char shape[96];
    snprintf(shape, sizeof shape, "queries from %d on, keys from %d on, window %d",
             windows[i].first_query, windows[i].first_key, windows[i].length);
    judge_product(shape, SIDE, SIDE, false, false, &windows[i]);
  }
}

static const Exercise exercises[] = {{"all_k_steps", judge_all_k_steps},
                                     {"b_mn_major", judge_b_mn_major},
                                     {"make_it_overlap", judge_make_it_overlap},
                                     {"sliding_window", judge_sliding_window},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
