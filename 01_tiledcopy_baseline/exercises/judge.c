/* judge.c: judges the exercises of chapter 01 (common/exercises/judge.h). */
#include "judge.h"

static void judge_vector_copy(void) {
  enum { MOST = 3001 };
  static const int counts[] = {4, 1, 2048, 515, 1022, MOST};
  static int source[MOST];
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int count = counts[i];
    judge_fill(source, MOST);
    judge_give_pointer(judge_upload(source, (size_t)count * sizeof(int)));
    int *got = judge_give_buffer(sizeof source);
    judge_give_int(count);
    judge_launch(1 + (unsigned)i % 3, 128, "%d numbers", count);
    judge_compare(got, source, 1, count);
  }
}

static void judge_two_buffers(void) {
  enum { TILE = 256, MOST = 7 };
  static const int counts[] = {1, 2, 3, MOST};
  static int source[MOST * TILE], expected[MOST * TILE];
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    size_t size = (size_t)counts[i] * TILE;
    judge_fill(source, size);
    for (size_t j = 0; j < size; j++) expected[j] = source[j / TILE * TILE + TILE - 1 - j % TILE];
    judge_give_pointer(judge_upload(source, size * sizeof(int)));
    int *got = judge_give_buffer(size * sizeof(int));
    judge_give_int(counts[i]);
    judge_launch(1, TILE / 4, "tiles = %d", counts[i]);
    judge_compare(got, expected, counts[i], TILE);
  }
}

static void judge_edge_tile(void) {
  enum { TILE_ROWS = 8, TILE_COLUMNS = 16, MOST = 40 * 50 };
  static const int cases[][4] = {/* rows, columns, x, y */
                                 {32, 48, 16, 8}, {37, 50, 40, 33},  {37, 50, -5, -3},
                                 {5, 9, -2, -1},  {40, 50, 44, -20}, {20, 30, -16, 4}};
  static int matrix[MOST], expected[TILE_ROWS * TILE_COLUMNS];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int rows = cases[i][0], columns = cases[i][1], x = cases[i][2], y = cases[i][3];
    judge_fill(matrix, (size_t)(rows * columns));
    for (int j = 0; j < TILE_ROWS * TILE_COLUMNS; j++) {
      int row = y + j / TILE_COLUMNS, column = x + j % TILE_COLUMNS;
      bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
      expected[j] = inside ? matrix[row * columns + column] : 0;
    }
    judge_give_pointer(judge_upload(matrix, (size_t)(rows * columns) * sizeof(int)));
    judge_give_int(rows);
    judge_give_int(columns);
    judge_give_int(x);
    judge_give_int(y);
    int *got = judge_give_buffer(sizeof expected);
    judge_launch(1, 32, "%dx%d matrix, x %d, y %d", rows, columns, x, y);
    judge_compare(got, expected, TILE_ROWS, TILE_COLUMNS);
  }
}

static const Exercise exercises[] = {{"vector_copy", judge_vector_copy},
                                     {"two_buffers", judge_two_buffers},
                                     {"edge_tile", judge_edge_tile},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
