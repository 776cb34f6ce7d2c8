/* judge.c: judges the exercises of chapter 06 (common/exercises/judge.h). */
#include "judge.h"

static void give_swizzled(void *address, int rows, int columns, int box_columns,
                          CUtensorMapSwizzle swizzle) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = address,
                   .size = {(uint64_t)columns, (uint64_t)rows},
                   .box = {(uint32_t)box_columns, (uint32_t)rows},
                   .swizzle = swizzle};
  judge_give_map(&map);
}

static void judge_undo_swizzle(void) {
  enum { ROWS = 16, COLUMNS = 32, LAUNCHES = 2 };
  for (int i = 0; i < LAUNCHES; i++) {
    int matrix[ROWS * COLUMNS];
    judge_fill(matrix, ROWS * COLUMNS);
    void *address = judge_upload(matrix, sizeof matrix);
    give_swizzled(address, ROWS, COLUMNS, COLUMNS, CU_TENSOR_MAP_SWIZZLE_128B);
    int *got = judge_give_buffer(sizeof matrix);
    judge_launch(1, 32, "one tile");
    judge_compare(got, matrix, ROWS, COLUMNS);
  }
}

static void judge_choose_swizzle(void) {
  enum { MOST = 16 * 64 };
  static const int cases[][2] = {
      /* rows, bytes of a row */
      {8, 32}, {16, 64}, {8, 128}, {16, 96}, {8, 192}, {16, 256}, {16, 160}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int rows = cases[i][0], columns = cases[i][1] / 4;
    int matrix[MOST];
    judge_fill(matrix, (size_t)(rows * columns));
    void *address = judge_upload(matrix, (size_t)(rows * columns) * sizeof(int));
    give_swizzled(address, rows, columns, 8, CU_TENSOR_MAP_SWIZZLE_32B);
    give_swizzled(address, rows, columns, 16, CU_TENSOR_MAP_SWIZZLE_64B);
    give_swizzled(address, rows, columns, 32, CU_TENSOR_MAP_SWIZZLE_128B);
    judge_give_int(rows);
    judge_give_int(cases[i][1]);
    int *got = judge_give_buffer(sizeof matrix);
    judge_launch(1, 32, "%d rows of %d bytes", rows, cases[i][1]);
    judge_compare(got, matrix, rows, columns);
  }
}

static void judge_column_without_conflicts(void) {
  enum { SIDE = 32, LAUNCHES = 2 };
  for (int i = 0; i < LAUNCHES; i++) {
    int matrix[SIDE * SIDE], expected[SIDE * SIDE];
    judge_fill(matrix, SIDE * SIDE);
    for (int j = 0; j < SIDE * SIDE; j++) expected[j] = matrix[j % SIDE * SIDE + j / SIDE];
    void *address = judge_upload(matrix, sizeof matrix);
    give_swizzled(address, SIDE, SIDE, SIDE, CU_TENSOR_MAP_SWIZZLE_NONE);
    give_swizzled(address, SIDE, SIDE, SIDE, CU_TENSOR_MAP_SWIZZLE_128B);
    int *got = judge_give_buffer(sizeof matrix);
    judge_launch(1, SIDE, "one tile");
    judge_compare(got, expected, SIDE, SIDE);
  }
}

static const Exercise exercises[] = {{"undo_swizzle", judge_undo_swizzle},
                                     {"choose_swizzle", judge_choose_swizzle},
                                     {"column_without_conflicts", judge_column_without_conflicts},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
