/* judge.c: judges the exercises of chapter 05 (common/exercises/judge.h). */
#include "judge.h"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE = TILE_ROWS * TILE_COLUMNS };

static void judge_multicast_by_mask(void) {
  enum { BLOCKS = 4, UNTOUCHED = -77 };
  static const int masks[] = {0xF, 0x5, 0xE, 0x8, 0x1};
  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    int tile[TILE], expected[BLOCKS * TILE];
    judge_fill(tile, TILE);
    for (int j = 0; j < BLOCKS * TILE; j++) expected[j] = UNTOUCHED;
    int *got = judge_upload(expected, sizeof expected);
    for (int j = 0; j < BLOCKS * TILE; j++) {
      if (masks[i] >> (j / TILE) & 1) expected[j] = tile[j % TILE];
    }
    void *address = judge_upload(tile, sizeof tile);
    judge_give_matrix(address, TILE_ROWS, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_int(masks[i]);
    judge_give_pointer(got);
    judge_launch(BLOCKS, 32, "mask 0x%x", (unsigned)masks[i]);
    judge_compare(got, expected, BLOCKS, TILE);
  }
}

static void judge_share_slice(void) {
  enum { BLOCKS = 2, LAUNCHES = 3 };
  for (int i = 0; i < LAUNCHES; i++) {
    int tile[TILE], expected[BLOCKS * TILE];
    judge_fill(tile, TILE);
    for (int j = 0; j < BLOCKS * TILE; j++) expected[j] = tile[j % TILE];
    void *address = judge_upload(tile, sizeof tile);
    judge_give_matrix(address, TILE_ROWS, TILE_COLUMNS, TILE_ROWS / BLOCKS, TILE_COLUMNS);
    int *got = judge_give_buffer(sizeof expected);
    judge_launch(BLOCKS, 32, "one tile");
    judge_compare(got, expected, BLOCKS * TILE_ROWS, TILE_COLUMNS);
  }
}

static void judge_empty_barrier(void) {
  enum { BLOCKS = 2, MOST = 5 };
  static const int counts[] = {1, 2, 3, MOST};
  static int tiles[MOST * TILE], expected[BLOCKS * MOST * TILE];
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int count = counts[i];
    judge_fill(tiles, (size_t)(count * TILE));
    for (int j = 0; j < BLOCKS * count * TILE; j++) {
      expected[j] = tiles[j / (BLOCKS * TILE) * TILE + j % TILE];
    }
    void *address = judge_upload(tiles, (size_t)(count * TILE) * sizeof(int));
    judge_give_matrix(address, count * TILE_ROWS, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
    judge_give_int(count);
    int *got = judge_give_buffer(sizeof expected);
    judge_launch(BLOCKS, 32, "tiles = %d", count);
    judge_compare(got, expected, BLOCKS * count, TILE);
  }
}

static const Exercise exercises[] = {{"multicast_by_mask", judge_multicast_by_mask},
                                     {"share_slice", judge_share_slice},
                                     {"empty_barrier", judge_empty_barrier},
                                     {"multicast_ring", judge_empty_barrier},
                                     {NULL, NULL}};

int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
