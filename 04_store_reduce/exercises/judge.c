/* judge.c: judges the exercises of chapter 04 (common/exercises/judge.h). */
#include "judge.h"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

static void judge_reduce_max(void) {
  enum { MOST = 6 };
  static const int counts[] = {1, 3, MOST};
  static int candidates[MOST * TILE], matrix[TILE];
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int blocks = counts[i];
    judge_fill(candidates, (size_t)(blocks * TILE));
    judge_fill(matrix, TILE);
    void *address = judge_upload(matrix, sizeof matrix);
    for (int j = 0; j < blocks * TILE; j++) {
      if (candidates[j] > matrix[j % TILE]) matrix[j % TILE] = candidates[j];
    }
    judge_give_matrix(address, TILE_ROWS, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_pointer(judge_upload(candidates, sizeof candidates));
    judge_launch((unsigned)blocks, 32, "blocks = %d", blocks);
    judge_compare(address, matrix, TILE_ROWS, TILE_COLUMNS);
  }
}

static void judge_split_k(void) {
  enum { MOST = 50 };
  static const int cases[][2] = {{32, 4}, {50, 4}, {33, 1}, {5, 3}, {3, 5}}; /* k, blocks */
  static int a[TILE_ROWS * MOST], b[TILE_COLUMNS * MOST], c[TILE];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int k = cases[i][0], blocks = cases[i][1];
    for (int j = 0; j < TILE_ROWS * k; j++) a[j] = judge_random() % 100;
    for (int j = 0; j < TILE_COLUMNS * k; j++) b[j] = judge_random() % 100;
    for (int j = 0; j < TILE; j++) c[j] = 0;
    void *address = judge_upload(c, sizeof c);
    for (int j = 0; j < TILE * k; j++) {
      int row = j / k / TILE_COLUMNS, column = j / k % TILE_COLUMNS;
      c[j / k] += a[row * k + j % k] * b[column * k + j % k];
    }
    judge_give_matrix(address, TILE_ROWS, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_pointer(judge_upload(a, (size_t)(TILE_ROWS * k) * sizeof(int)));
    judge_give_pointer(judge_upload(b, (size_t)(TILE_COLUMNS * k) * sizeof(int)));
    judge_give_int(k);
    judge_launch((unsigned)blocks, 64, "k = %d, blocks = %d", k, blocks);
    judge_compare(address, c, TILE_ROWS, TILE_COLUMNS);
  }
}

static void judge_zero_then_add(void) {
  enum { MOST_BLOCKS = 3, MOST_PARTS = 4 };
  static const int cases[][2] = {{1, 1}, {2, 3}, {3, 4}, {2, 0}}; /* blocks, parts */
  static int values[MOST_BLOCKS * MOST_PARTS * TILE], sums[MOST_BLOCKS * TILE];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int blocks = cases[i][0], parts = cases[i][1], size = blocks * TILE;
    judge_fill(values, (size_t)(size * parts));
    for (int j = 0; j < size; j++) {
      sums[j] = 0;
      for (int part = 0; part < parts; part++) sums[j] += values[part * size + j];
    }
    void *address = judge_buffer((size_t)size * sizeof(int));
    judge_give_matrix(address, blocks * TILE_ROWS, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_pointer(judge_upload(values, sizeof values));
    judge_give_int(parts);
    judge_launch((unsigned)blocks, 32, "blocks = %d, parts = %d", blocks, parts);
    judge_compare(address, sums, blocks * TILE_ROWS, TILE_COLUMNS);
  }
}

static void judge_sum_first(void) {
  enum { MOST_BLOCKS = 3, MOST_PARTS = 6 };
  static const int cases[][2] = {{1, 1}, {2, 3}, {3, 6}}; /* blocks, parts */
  static int values[MOST_BLOCKS * MOST_PARTS * TILE], sums[TILE];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int blocks = cases[i][0], parts = cases[i][1];
    judge_fill(values, (size_t)(blocks * parts * TILE));
    judge_fill(sums, TILE);
    void *address = judge_upload(sums, sizeof sums);
    for (int j = 0; j < blocks * parts * TILE; j++) sums[j % TILE] += values[j];
    judge_give_matrix(address, TILE_ROWS, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_pointer(judge_upload(values, sizeof values));
    judge_give_int(parts);
    judge_launch((unsigned)blocks, 32, "blocks = %d, parts = %d", blocks, parts);
    judge_compare(address, sums, TILE_ROWS, TILE_COLUMNS);
  }
}

static const Exercise exercises[] = {{"reduce_max", judge_reduce_max},
                                     {"split_k", judge_split_k},
                                     {"zero_then_add", judge_zero_then_add},
                                     {"sum_first", judge_sum_first},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
