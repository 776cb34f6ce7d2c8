/* judge.c: judges the exercises of chapter 02 (common/exercises/judge.h). */
#include "judge.h"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

/* The box at column x, row y; zeros outside. */
static void take_box(int *box, const int *matrix, int rows, int columns, int x, int y) {
  for (int j = 0; j < TILE; j++) {
    int row = y + j / TILE_COLUMNS, column = x + j % TILE_COLUMNS;
    bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
    box[j] = inside ? matrix[row * columns + column] : 0;
  }
}

static void judge_write_load(void) {
  enum { MOST = 40 * 64 };
  static const int cases[][4] = {/* rows, columns, x, y */
                                 {32, 64, 16, 8},
                                 {40, 36, 24, 35},
                                 {9, 20, -8, -3},
                                 {16, 64, 0, 8}};
  static int matrix[MOST], expected[TILE], swapped[TILE];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int rows = cases[i][0], columns = cases[i][1], x = cases[i][2], y = cases[i][3];
    judge_fill(matrix, (size_t)(rows * columns));
    take_box(expected, matrix, rows, columns, x, y);
    take_box(swapped, matrix, rows, columns, y, x);
    void *address = judge_upload(matrix, (size_t)(rows * columns) * sizeof(int));
    judge_give_matrix(address, rows, columns, TILE_ROWS, TILE_COLUMNS);
    judge_give_int(x);
    judge_give_int(y);
    int *got = judge_give_buffer(sizeof expected);
    judge_know_mistake(swapped,
                       "your tile comes from row %d, column %d: a coordinate pair is {column, row}",
                       x, y);
    judge_launch(1, 32, "%dx%d matrix, x %d, y %d", rows, columns, x, y);
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
    judge_give_map(&map);
    int *got = judge_give_buffer(sizeof tensor);
    judge_launch((unsigned)boxes, 32, "%d slices", slices);
    judge_compare(got, tensor, boxes * BOX_Z, SLICE);
  }
}

static void judge_two_matrices(void) {
  enum { ROWS = 40, COLUMNS = 36 };
  static const int boxes[][2] = {{16, 8}, {24, 35}, {-8, -3}}; /* x, y */
  static int matrices[2][ROWS * COLUMNS];
  for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
    int x = boxes[i][0], y = boxes[i][1], box[TILE], expected[TILE] = {0};
    for (int m = 0; m < 2; m++) {
      judge_fill(matrices[m], ROWS * COLUMNS);
      take_box(box, matrices[m], ROWS, COLUMNS, x, y);
      for (int j = 0; j < TILE; j++) expected[j] += box[j];
      void *address = judge_upload(matrices[m], sizeof matrices[m]);
      judge_give_matrix(address, ROWS, COLUMNS, TILE_ROWS, TILE_COLUMNS);
    }
    judge_give_int(x);
    judge_give_int(y);
    int *got = judge_give_buffer(sizeof expected);
    judge_launch(1, 64, "x %d, y %d", x, y);
    judge_compare(got, expected, TILE_ROWS, TILE_COLUMNS);
  }
}

/* Tiles below each other, each of them expected unchanged. */
static void judge_tiles_by(unsigned threads) {
  enum { MOST = 9 };
  static const int counts[] = {1, 2, 3, MOST};
  static int matrix[MOST * TILE];
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int tiles = counts[i];
    judge_fill(matrix, (size_t)(tiles * TILE));
    void *address = judge_upload(matrix, (size_t)(tiles * TILE) * sizeof(int));
    judge_give_matrix(address, tiles * TILE_ROWS, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_int(tiles);
    int *got = judge_give_buffer(sizeof matrix);
    judge_launch(1, threads, "tiles = %d", tiles);
    judge_compare(got, matrix, tiles * TILE_ROWS, TILE_COLUMNS);
  }
}

static void judge_tiles(void) { judge_tiles_by(64); }
static void judge_producer_warp(void) { judge_tiles_by(96); }

static const Exercise exercises[] = {{"write_load", judge_write_load},
                                     {"load_3d", judge_load_3d},
                                     {"several_tiles", judge_tiles},
                                     {"load_ahead", judge_tiles},
                                     {"two_matrices", judge_two_matrices},
                                     {"producer_warp", judge_producer_warp},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
