/* judge.c: judges the exercises of chapter 02 (common/exercises/judge.h). */
#include "judge.h"

#include <stdio.h>

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

static void judge_write_load(void) {
  enum { MOST = 40 * 64 };
  static const int cases[][4] = {/* rows, columns, x, y */
                                 {32, 64, 16, 8},
                                 {40, 36, 24, 35},
                                 {9, 20, -8, -3},
                                 {16, 64, 0, 8}};
  static int matrix[MOST], expected[TILE];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int rows = cases[i][0], columns = cases[i][1], x = cases[i][2], y = cases[i][3];
    judge_fill(matrix, (size_t)(rows * columns));
    for (int j = 0; j < TILE; j++) {
      int row = y + j / TILE_COLUMNS, column = x + j % TILE_COLUMNS;
      bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
      expected[j] = inside ? matrix[row * columns + column] : 0;
    }
    int *got = judge_buffer(sizeof expected);
    void *address = judge_upload(matrix, (size_t)(rows * columns) * sizeof(int));
    judge_give_matrix(address, rows, columns, TILE_ROWS, TILE_COLUMNS);
    judge_give_int(x);
    judge_give_int(y);
    judge_give_pointer(got);
    char shape[64];
    snprintf(shape, sizeof shape, "%dx%d matrix, x %d, y %d", rows, columns, x, y);
    judge_launch(shape, 1, 32);
    judge_compare(got, expected, TILE_ROWS, TILE_COLUMNS);
  }
}

static void judge_load_3d(void) {
  enum { BOX_X = 8, BOX_Y = 4, BOX_Z = 2, SLICE = BOX_X * BOX_Y, MOST = 10 };
  static const int counts[] = {2, 6, 5, 9};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int slices = counts[i], boxes = (slices + BOX_Z - 1) / BOX_Z;
    int tensor[MOST * SLICE] = {0};
    judge_fill(tensor, (size_t)(slices * SLICE));
    TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                     .dimensions = 3,
                     .address = judge_upload(tensor, (size_t)(slices * SLICE) * sizeof(int)),
                     .size = {BOX_X, BOX_Y, (uint64_t)slices},
                     .box = {BOX_X, BOX_Y, BOX_Z}};
    int *got = judge_buffer(sizeof tensor);
    judge_give_map(&map);
    judge_give_pointer(got);
    char shape[64];
    snprintf(shape, sizeof shape, "%d slices", slices);
    judge_launch(shape, (unsigned)boxes, 32);
    judge_compare(got, tensor, boxes * BOX_Z, SLICE);
  }
}

/* Tiles below each other, each of them expected unchanged. */
static void judge_tiles(void) {
  enum { MOST = 7 };
  static const int counts[] = {1, 2, 3, MOST};
  static int matrix[MOST * TILE];
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int tiles = counts[i];
    judge_fill(matrix, (size_t)(tiles * TILE));
    int *got = judge_buffer(sizeof matrix);
    void *address = judge_upload(matrix, (size_t)(tiles * TILE) * sizeof(int));
    judge_give_matrix(address, tiles * TILE_ROWS, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_int(tiles);
    judge_give_pointer(got);
    char shape[64];
    snprintf(shape, sizeof shape, "tiles = %d", tiles);
    judge_launch(shape, 1, 64);
    judge_compare(got, matrix, tiles * TILE_ROWS, TILE_COLUMNS);
  }
}

static const Exercise exercises[] = {{"write_load", judge_write_load},
                                     {"load_3d", judge_load_3d},
                                     {"several_tiles", judge_tiles},
                                     {"load_ahead", judge_tiles},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
