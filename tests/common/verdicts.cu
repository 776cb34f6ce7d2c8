// verdicts: makes the helpers of common/ say what they say, one case a run, for tests/common.bats.
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "tile.h"

enum { ROWS = 4, COLUMNS = 3 };

static void integers_swapped(void) {
  int expected[ROWS * COLUMNS], got[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) expected[i] = got[i] = 100 + i;
  got[4] = expected[7];
  got[7] = expected[4];  // the same values in other places
  check_tile("tile", ELEMENT_S32, got, expected, ROWS, COLUMNS, 0);
}

static void all_wrong(void) {
  unsigned char expected[ROWS * COLUMNS], got[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) expected[i] = (unsigned char)i, got[i] = 200;
  check_tile("tile", ELEMENT_U8, got, expected, ROWS, COLUMNS, 0);
}

static void a_nan(void) {
  float expected[2] = {1, 2}, got[2] = {1, NAN};
  check_tile("tile", ELEMENT_F32, got, expected, 1, 2, 1e30);
}

static void a_nan_expected(void) {
  float expected[3] = {1, NAN, INFINITY}, got[3] = {1.25f, NAN, INFINITY};
  check_tile("tile", ELEMENT_F32, got, expected, 1, 3, 0.25);
}

static void over_tolerance(void) {
  double expected[2] = {1, 2}, got[2] = {1.5, 2.5000001};
  check_tile("tile", ELEMENT_F64, got, expected, 1, 2, 0.5);
}

static void a_false_fact(void) { check_that(2 + 2 == 5, "2 + 2 is %d, expected %d", 2 + 2, 5); }

static void a_bad_call(void) { CUDA_CHECK(cudaMemset((void *)16, 0, 1)); }
static void a_bad_driver_call(void) { CU_CHECK(CUDA_ERROR_ILLEGAL_INSTRUCTION); }
static void skip(void) { program_skip("the moon is %s", "full"); }
static void fail(void) { program_fail("no %s", "luck"); }

// Every bit pattern goes to float and back.
static void conversions(void) {
  int half_errors = 0, bfloat16_errors = 0;
  for (int bits = 0; bits < 65536; bits++) {
    float half = half_to_float((uint16_t)bits), bfloat16 = bfloat16_to_float((uint16_t)bits);
    half_errors += !isnan(half) && half_from_float(half) != bits;
    bfloat16_errors += !isnan(bfloat16) && bfloat16_from_float(bfloat16) != bits;
  }
  check_that(half_errors == 0, "%d half patterns change on the way", half_errors);
  check_that(bfloat16_errors == 0, "%d bfloat16 patterns change on the way", bfloat16_errors);
  // Ties go to the even neighbour; just above one goes up; the largest half is 65504.
  check_that(half_from_float(2049.0f) == half_from_float(2048.0f), "2049 is not rounded to even");
  check_that(half_from_float(2051.0f) == half_from_float(2052.0f), "2051 is not rounded to even");
  check_that(half_from_float(65519.9f) == 0x7bff, "65519.9 is not 65504 as a half");
  check_that(half_from_float(65520.0f) == 0x7c00, "65520 is not infinite as a half");
  check_that(half_from_float(0x1p-25f) == 0, "2^-25 is not 0 as a half");
  check_that(half_from_float(0x1.8p-25f) == 1, "1.5 * 2^-25 is not 2^-24 as a half");
  check_that(bfloat16_from_float(257.0f) == bfloat16_from_float(256.0f), "257 is not 256 in bf16");
  check_that(bfloat16_from_float(259.0f) == bfloat16_from_float(260.0f), "259 is not 260 in bf16");
}

static void pictures(void) {
  short values[6 * 8];
  for (int i = 0; i < 6 * 8; i++) values[i] = (short)(i - 10);
  TilePicture whole = {.title = "a tile at the edge",
                       .type = ELEMENT_S16,
                       .data = values,
                       .rows = 3,
                       .columns = 4,
                       .pitch = 8,
                       .first_row = 14,
                       .first_column = -1,
                       .tensor_rows = 16,
                       .tensor_columns = 16};
  tile_print(&whole);
  whole.beside = values + 8;
  whole.title = "two states of it";
  tile_print(&whole);
  TilePicture part = {.title = "a corner",
                      .type = ELEMENT_S16,
                      .data = values,
                      .rows = 6,
                      .columns = 8,
                      .shown_rows = 2,
                      .shown_columns = 3};
  tile_print(&part);
}

static void nothing_wrong(void) {
  int same[2] = {1, 2};
  check_tile("tile", ELEMENT_S32, same, same, 1, 2, 0);
}

static const struct {
  const char *name;
  void (*run)(void);
} CASES[] = {
    {"nothing_wrong", nothing_wrong},
    {"integers_swapped", integers_swapped},
    {"all_wrong", all_wrong},
    {"a_nan", a_nan},
    {"a_nan_expected", a_nan_expected},
    {"over_tolerance", over_tolerance},
    {"a_false_fact", a_false_fact},
    {"a_bad_call", a_bad_call},
    {"a_bad_driver_call", a_bad_driver_call},
    {"skip", skip},
    {"fail", fail},
    {"conversions", conversions},
    {"pictures", pictures},
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

int main(int argc, char **argv) {
  long number = 0;
  const Option options[] = {{"--case", "which case to run", &number, 0, CASE_COUNT - 1}};
  program_begin("verdicts", argc, argv, options, 1);
  printf("case %s\n", CASES[number].name);
  CASES[number].run();
  return program_end("case %ld", number);
}
