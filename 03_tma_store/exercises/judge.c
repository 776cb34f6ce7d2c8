/* judge.c: judges the exercises of chapter 03 (common/exercises/judge.h). */
#include "judge.h"

#include <string.h>

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

/* Writes the tile to column x, row y of the matrix, where it is inside. */
static void put_tile(int *matrix, const int *tile, int rows, int columns, int x, int y) {
  for (int j = 0; j < TILE; j++) {
    int row = y + j / TILE_COLUMNS, column = x + j % TILE_COLUMNS;
    if (row < rows && column < columns) matrix[row * columns + column] = tile[j];
  }
}

static void judge_write_store(void) {
  enum { MOST = 40 * 64 };
  static const int cases[][4] = {/* rows, columns, x, y */
                                 {32, 64, 16, 8},
                                 {40, 36, 24, 35},
                                 {8, 16, 0, 0},
                                 {13, 20, 16, 8}};
  static int matrix[MOST], swapped[MOST], values[TILE];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int rows = cases[i][0], columns = cases[i][1], x = cases[i][2], y = cases[i][3];
    judge_fill(matrix, (size_t)(rows * columns));
    judge_fill(values, TILE);
    void *address = judge_upload(matrix, (size_t)(rows * columns) * sizeof(int));
    memcpy(swapped, matrix, sizeof matrix);
    put_tile(matrix, values, rows, columns, x, y);
    put_tile(swapped, values, rows, columns, y, x);
    judge_give_matrix(address, rows, columns, TILE_ROWS, TILE_COLUMNS);
    judge_give_int(x);
    judge_give_int(y);
    judge_give_pointer(judge_upload(values, sizeof values));
    judge_know_mistake(
        swapped, "your tile lies at row %d, column %d: a coordinate pair is {column, row}", x, y);
    judge_launch(1, 32, "%dx%d matrix, x %d, y %d", rows, columns, x, y);
    judge_compare(address, matrix, rows, columns);
  }
}

/* A tile for each block, or all of them for one. */
static void judge_double(bool one_block) {
  enum { MOST = 7 };
  static const int counts[] = {1, 2, 3, MOST};
  static int matrix[MOST * TILE];
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int tiles = counts[i], rows = tiles * TILE_ROWS;
    judge_fill(matrix, (size_t)(tiles * TILE));
    void *from = judge_upload(matrix, (size_t)(tiles * TILE) * sizeof(int));
    void *to = judge_buffer(sizeof matrix);
    for (int j = 0; j < tiles * TILE; j++) matrix[j] *= 2;
    judge_give_matrix(from, rows, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_matrix(to, rows, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    if (one_block) judge_give_int(tiles);
    judge_launch(one_block ? 1 : (unsigned)tiles, 64, "tiles = %d", tiles);
    judge_compare(to, matrix, rows, TILE_COLUMNS);
  }
}

static void judge_load_double_store(void) { judge_double(false); }
static void judge_double_ring(void) { judge_double(true); }

static const Exercise exercises[] = {{"write_store", judge_write_store},
                                     {"load_double_store", judge_load_double_store},
                                     {"double_ring", judge_double_ring},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
