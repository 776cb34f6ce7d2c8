// 06 swizzle 3d, aside: choose a cell of the tile and see where it lands in shared memory.
//
//   where                                  128B, row 3, column 17
//   where --mode 64B --row 9 --column 20   one cell
//   where --ask                            reads "MODE ROW COLUMN" lines, answers each in one line
//
// The rows of the tile are as wide as the swizzle's span (128 bytes for the mode none), and together
// they fill 1024 bytes. Elements have two bytes. The program computes the answer with swizzle.h and
// compares it with what the copy engine wrote. In the pictures each mark is a chunk of 16 bytes;
// '#' is the chunk that holds the cell.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "swizzle.h"
#include "tensor_map.h"

enum {
  TILE_BYTES = 1024,
  ELEMENTS = TILE_BYTES / 2,
  LINE_BYTES = 128,
  CHUNK_BYTES = 16,
};

static const char *const mode_names[] = {"none", "32B", "64B", "128B"};

__global__ void dump_kernel(const __grid_constant__ CUtensorMap tensor, uint16_t *dump) {
  __shared__ __align__(1024) uint16_t tile[ELEMENTS];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    tma_load_2d(tile, &tensor, 0, 0, &full);
  }
  __syncthreads();
  mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < ELEMENTS; i += blockDim.x) dump[i] = tile[i];
}

static int row_bytes(SwizzleMode mode) {
  return mode == SWIZZLE_NONE ? LINE_BYTES : (int)swizzle_span(mode);
}

// What lies in shared memory after a copy in that mode; element i of the tile has the value i.
static void copy_tile(SwizzleMode mode, uint16_t *in_shared) {
  uint16_t host[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) host[i] = (uint16_t)i;
  uint16_t *tensor, *dump;
  CUDA_CHECK(cudaMalloc(&tensor, TILE_BYTES));
  CUDA_CHECK(cudaMalloc(&dump, TILE_BYTES));
  CUDA_CHECK(cudaMemcpy(tensor, host, TILE_BYTES, cudaMemcpyHostToDevice));
  uint64_t columns = row_bytes(mode) / 2, rows = TILE_BYTES / row_bytes(mode);
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                   .dimensions = 2,
                   .address = tensor,
                   .size = {columns, rows},
                   .box = {(uint32_t)columns, (uint32_t)rows},
                   .swizzle = (CUtensorMapSwizzle)mode};
  CUtensorMap encoded = tensor_map_encode("the tile", &map);
  dump_kernel<<<1, 128>>>(encoded, dump);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(in_shared, dump, TILE_BYTES, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(dump));
}

static int predicted_place(SwizzleMode mode, int row, int column) {
  return (int)swizzle_tile_address(mode, 0, row, column * 2, row_bytes(mode));
}

static bool check_place(SwizzleMode mode, int row, int column, const uint16_t *in_shared) {
  int place = predicted_place(mode, row, column);
  int found = 0;
  while (found < ELEMENTS && in_shared[found] != row * row_bytes(mode) / 2 + column) found++;
  return check_that(found * 2 == place, "row %d, column %d: predicted at byte %d, found at byte %d",
                    row, column, place, found * 2);
}

static void print_chunk_row(int line, int marked) {
  for (int chunk = 0; chunk < LINE_BYTES / CHUNK_BYTES; chunk++) {
    printf(" %c", line * LINE_BYTES + chunk * CHUNK_BYTES == marked ? '#' : '.');
  }
}

static void show_place(SwizzleMode mode, int row, int column) {
  int place = predicted_place(mode, row, column);
  int offset = row * row_bytes(mode) + column * 2;
  printf("\nmode %s: %d rows of %d elements of 2 bytes; row %d, column %d\n\n", mode_names[mode],
         TILE_BYTES / row_bytes(mode), row_bytes(mode) / 2, row, column);
  printf("  without swizzle  byte %4d = line %d, chunk %d, byte %d of the chunk\n", offset,
         offset / LINE_BYTES, offset % LINE_BYTES / CHUNK_BYTES, offset % CHUNK_BYTES);
  printf("  swizzled         byte %4d = line %d, chunk %d, byte %d of the chunk; bank %d\n", place,
         place / LINE_BYTES, place % LINE_BYTES / CHUNK_BYTES, place % CHUNK_BYTES,
         place % LINE_BYTES / 4);
  printf("  because          chunk %d XOR %d = chunk %d\n\n", offset % LINE_BYTES / CHUNK_BYTES,
         (offset ^ place) / CHUNK_BYTES, place % LINE_BYTES / CHUNK_BYTES);
  printf("  line   without swizzle       swizzled\n");
  for (int line = 0; line < TILE_BYTES / LINE_BYTES; line++) {
    printf("   %d   ", line);
    print_chunk_row(line, offset / CHUNK_BYTES * CHUNK_BYTES);
    printf("      ");
    print_chunk_row(line, place / CHUNK_BYTES * CHUNK_BYTES);
    printf("\n");
  }
  printf("\n");
}

static void print_usage(FILE *out) {
  fprintf(out, "usage: where [--mode none|32B|64B|128B] [--row N] [--column N] [--ask] [--full]\n");
}

__attribute__((noreturn)) static void refuse(const char *given, const char *rule) {
  fprintf(stderr, "where: '%s' %s\n", given, rule);
  print_usage(stderr);
  exit(EXIT_USAGE);
}

static bool read_mode(const char *text, SwizzleMode *mode) {
  for (int i = 0; i < 4; i++) {
    if (strcmp(text, mode_names[i]) == 0) {
      *mode = (SwizzleMode)i;
      return true;
    }
  }
  return false;
}

static bool read_number(const char *text, int *number) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*text < '0' || *text > '9' || (*text == '0' && text[1] != '\0') || *end != '\0' ||
      value < 0 || value > 1 << 20)
    return false;
  *number = (int)value;
  return true;
}

static bool in_tile(SwizzleMode mode, int row, int column) {
  return row < TILE_BYTES / row_bytes(mode) && column < row_bytes(mode) / 2;
}

// Answers lines such as "128B 3 17" until the input ends.
static int answer_questions(void) {
  static uint16_t in_shared[4][ELEMENTS];
  bool copied[4] = {false};
  char line[80], mode_name[16];
  int answers = 0;
  while (fgets(line, sizeof line, stdin) != NULL) {
    SwizzleMode mode;
    int row, column;
    if (line[strspn(line, " \t\n")] == '\0') continue;
    if (sscanf(line, "%15s %d %d", mode_name, &row, &column) != 3 || !read_mode(mode_name, &mode) ||
        row < 0 || column < 0 || !in_tile(mode, row, column)) {
      printf("not a cell: write MODE ROW COLUMN, as in 128B 3 17\n");
      continue;
    }
    if (!copied[mode]) {
      copy_tile(mode, in_shared[mode]);
      copied[mode] = true;
    }
    int place = predicted_place(mode, row, column);
    if (check_place(mode, row, column, in_shared[mode])) {
      printf("%s row %d column %d: byte %d, line %d, chunk %d, bank %d\n", mode_name, row, column,
             place, place / LINE_BYTES, place % LINE_BYTES / CHUNK_BYTES, place % LINE_BYTES / 4);
    }
    answers++;
  }
  return program_end("%d cells found where swizzle.h says", answers);
}

int main(int argc, char **argv) {
  SwizzleMode mode = SWIZZLE_128B;
  int row = 3, column = 17;
  bool ask = false;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    for (int before = 1; before < i; before++) {
      if (strcmp(argv[before], argv[i]) == 0) refuse(argv[i], "is given twice: leave one out");
    }
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      print_usage(stdout);
      program_exit(EXIT_PASS);
    } else if (strcmp(argv[i], "--ask") == 0) {
      ask = true;
      continue;
    } else if (strcmp(argv[i], "--full") == 0) {
      continue;  // every program takes it; here nothing is left out without it
    } else if (strcmp(argv[i], "--mode") == 0) {
      if (!read_mode(value, &mode)) refuse(value, "is not a swizzle mode");
    } else if (strcmp(argv[i], "--row") == 0) {
      if (!read_number(value, &row)) refuse(value, "is not a row: rows count from 0");
    } else if (strcmp(argv[i], "--column") == 0) {
      if (!read_number(value, &column)) refuse(value, "is not a column: columns count from 0");
    } else {
      refuse(argv[i], "is not known here");
    }
    i++;
  }
  if (!in_tile(mode, row, column)) {
    char cell[64], rule[96];
    snprintf(cell, sizeof cell, "row %d, column %d", row, column);
    snprintf(rule, sizeof rule, "lies outside: in mode %s rows go to %d, columns to %d",
             mode_names[mode], TILE_BYTES / row_bytes(mode) - 1, row_bytes(mode) / 2 - 1);
    refuse(cell, rule);
  }
  program_begin("where", 1, argv, NULL, 0);
  if (ask) return answer_questions();

  uint16_t in_shared[ELEMENTS];
  copy_tile(mode, in_shared);
  show_place(mode, row, column);
  check_place(mode, row, column, in_shared);
  // The other cells too: one cell could be right by luck.
  for (int i = 0; i < ELEMENTS; i++) {
    check_place(mode, i / (row_bytes(mode) / 2), i % (row_bytes(mode) / 2), in_shared);
  }
  return program_end("the cell, and all %d others of the tile, where swizzle.h says", ELEMENTS - 1);
}
