// 06 swizzle 3d: where a tile's elements land in shared memory, and how to choose.
//
//   01 tiledcopy | 02 load | 03 store | 04 store reduce | 05 multicast | [06 swizzle] | 07 gemm
//
// So far a tile lay in shared memory row after row. Reading down a column is slow then, because all
// rows of 128 bytes begin in the same bank. If the tensor map asks for a swizzle, the copy engine
// stores the 16-byte chunks of each row in a different order, at no cost. The values stay the same
// and only their addresses change; swizzle.h computes the new ones with one XOR.
//
// 1. The picture for all four modes. Shared memory is drawn in lines of 128 bytes (all 32 banks),
//    eight chunks of 16 bytes in each line; "3.2" is chunk 2 of row 3 of the tile. On the left is
//    what the engine wrote, on the right what swizzle.h predicts.
// 2. A swizzled box may be no wider than its span (128 bytes in the widest mode), but tiles are
//    often wider. A third dimension helps: a second map describes the same 128 columns as two
//    groups of 64 columns. One copy of a box (group, row, column) then places the groups one after
//    the other.
//
//    tensor, 2D         the same memory as 3D          shared memory
//    row 0  AAAABBBB    group 0   group 1              AAAA   group 0, rows 0 to 7
//    row 1  aaaabbbb    row 0 AAAA   BBBB              aaaa
//    ...                row 1 aaaa   bbbb              ...
//                       strides: row = 256 bytes,      BBBB   group 1, rows 0 to 7
//                       group = 128 bytes              bbbb
//
// Every tile of the tensor is compared with the formula, byte for byte. Of the narrower swizzles four
// lines are printed, which hold their pattern once or twice; --full prints all.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "swizzle.h"
#include "tensor_map.h"

enum {
  COLUMNS = 128,  // the tensor: 64 rows of 128 two-byte elements
  ROWS = 64,
  ELEMENT_SIZE = 2,
  ROW_BYTES = COLUMNS * ELEMENT_SIZE,
  CHUNK_BYTES = 16,
  CHUNK_ELEMENTS = CHUNK_BYTES / ELEMENT_SIZE,
  LINE_BYTES = 128,
  TILE_BYTES = 1024,  // in part 1: eight lines, a full turn of the widest pattern
  GROUPS = 2,         // in part 2: two groups of 8 rows, 1024 bytes each
  GROUP_COLUMNS = 64,
  GROUP_ROWS = 8,
  MOST_BYTES = GROUPS * TILE_BYTES,
  SHOWN_LINES = 4,  // of the narrower swizzles: their patterns repeat every 256 and 512 bytes
};

// Loads one tile per block and copies shared memory to `dump` as it lies, byte after byte: reading it
// back through the swizzle would prove nothing about where things are.
__global__ void dump_kernel(const __grid_constant__ CUtensorMap tensor, bool three_dimensions,
                            int tile_columns, int tile_rows, uint32_t tile_bytes, uint32_t *dump,
                            uint32_t *address_of_tile) {
  __shared__ __align__(1024) uint32_t tile[MOST_BYTES / 4];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, tile_bytes);
    int x = blockIdx.x * tile_columns;
    int y = blockIdx.y * tile_rows;
    if (three_dimensions) {
      tma_load_3d(tile, &tensor, 0, y, 0, &full);  // all groups, from column 0 of each
    } else {
      tma_load_2d(tile, &tensor, x, y, &full);
    }
    // It is the same in all blocks, but only one may store it: the order of several stores is undefined.
    if (blockIdx.x == 0 && blockIdx.y == 0) *address_of_tile = shared_address(tile);
  }
  __syncthreads();  // the barrier is initialised: the others may wait on it
  mbarrier_wait_parity(&full, 0);

  uint32_t block = blockIdx.y * gridDim.x + blockIdx.x;
  for (uint32_t i = threadIdx.x; i < tile_bytes / 4; i += blockDim.x) {
    dump[block * (tile_bytes / 4) + i] = tile[i];
  }
}

static uint16_t *tensor;
static uint32_t *dump_on_device, *address_on_device;

static uint16_t element_at(int row, int column) { return (uint16_t)(row * COLUMNS + column); }

// Lines of eight chunks, from both arrays, each chunk named by the tensor's row and chunk. What comes
// after `shown` lines is detail.
static void print_lines(const uint16_t *got, const uint16_t *predicted, int lines, int shown) {
  for (int line = 0; line < lines; line++) {
    if (line == shown) detail_begin();
    printf("  %4d  ", line * LINE_BYTES);
    for (int side = 0; side < 2; side++) {
      const uint16_t *elements = side == 0 ? got : predicted;
      for (int chunk = 0; chunk < LINE_BYTES / CHUNK_BYTES; chunk++) {
        uint16_t first = elements[(line * LINE_BYTES + chunk * CHUNK_BYTES) / ELEMENT_SIZE];
        bool last = side == 1 && chunk == LINE_BYTES / CHUNK_BYTES - 1;
        printf(" %2d.%-*d", first / COLUMNS, last ? 1 : 2, first % COLUMNS / CHUNK_ELEMENTS);
      }
      printf(side == 0 ? "   " : "\n");
    }
  }
  if (shown < lines) detail_end();
}

// ---- 1. A 2D box as wide as the swizzle's span (128 bytes without swizzle), 1024 bytes high ----

static void show_mode(const char *name, SwizzleMode mode) {
  int tile_row_bytes = mode == SWIZZLE_NONE ? LINE_BYTES : (int)swizzle_span(mode);
  int tile_columns = tile_row_bytes / ELEMENT_SIZE;
  int tile_rows = TILE_BYTES / tile_row_bytes;
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                   .dimensions = 2,
                   .address = tensor,
                   .size = {COLUMNS, ROWS},
                   .box = {(uint32_t)tile_columns, (uint32_t)tile_rows},
                   .swizzle = (CUtensorMapSwizzle)mode};
  CUtensorMap encoded = tensor_map_encode(name, &map);
  dim3 grid = {(unsigned)(COLUMNS / tile_columns), (unsigned)(ROWS / tile_rows), 1};
  dump_kernel<<<grid, 128>>>(encoded, false, tile_columns, tile_rows, TILE_BYTES, dump_on_device,
                             address_on_device);
  CUDA_CHECK(cudaGetLastError());

  static uint16_t got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  uint32_t base;
  CUDA_CHECK(cudaMemcpy(got, dump_on_device, sizeof got, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(&base, address_on_device, sizeof base, cudaMemcpyDeviceToHost));
  for (int row = 0; row < ROWS; row++) {
    for (int column = 0; column < COLUMNS; column++) {
      int tile = row / tile_rows * (COLUMNS / tile_columns) + column / tile_columns;
      uint32_t place = swizzle_tile_address(mode, base, row % tile_rows,
                                            column % tile_columns * ELEMENT_SIZE, tile_row_bytes);
      expected[(tile * TILE_BYTES + place - base) / ELEMENT_SIZE] = element_at(row, column);
    }
  }
  printf("\n%s: %d rows of %d bytes\n", name, tile_rows, tile_row_bytes);
  int lines = TILE_BYTES / LINE_BYTES;
  bool all = mode == SWIZZLE_NONE || mode == SWIZZLE_128B;
  print_lines(got, expected, lines, all ? lines : SHOWN_LINES);
  check_that(base % swizzle_alignment(SWIZZLE_128B) == 0, "the tile lies at %u, not at 1024 * n",
             base);
  check_tile(name, ELEMENT_U16, got, expected, (long)grid.x * grid.y * TILE_BYTES / LINE_BYTES,
             LINE_BYTES / ELEMENT_SIZE, 0);
}

// ---- 2. One 3D box (group, row, column) for a tile of 8 rows of 256 bytes ----

static void show_3d(void) {
  TensorMap wide = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                    .dimensions = 2,
                    .address = tensor,
                    .size = {COLUMNS, ROWS},
                    .box = {COLUMNS, GROUP_ROWS},
                    .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  bool refused = tensor_map_explain(&wide, NULL, 0) != 0;
  printf("\nA tile of %d rows of %d bytes as one 2D box with the 128-byte swizzle: %s.\n",
         GROUP_ROWS, ROW_BYTES, refused ? "refused by the encoder" : "accepted");
  check_that(refused, "a box of %d bytes in a row was accepted", ROW_BYTES);

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                   .dimensions = 3,
                   .address = tensor,
                   .size = {GROUP_COLUMNS, ROWS, GROUPS},    // column in group, row, group
                   .stride_bytes = {ROW_BYTES, LINE_BYTES},  // of a row, of a group
                   .box = {GROUP_COLUMNS, GROUP_ROWS, GROUPS},
                   .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  CUtensorMap encoded = tensor_map_encode("groups of 64 columns", &map);
  dim3 grid = {1, ROWS / GROUP_ROWS, 1};
  dump_kernel<<<grid, 128>>>(encoded, true, COLUMNS, GROUP_ROWS, MOST_BYTES, dump_on_device,
                             address_on_device);
  CUDA_CHECK(cudaGetLastError());

  static uint16_t got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  uint32_t base;
  CUDA_CHECK(cudaMemcpy(got, dump_on_device, sizeof got, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(&base, address_on_device, sizeof base, cudaMemcpyDeviceToHost));
  for (int row = 0; row < ROWS; row++) {
    for (int column = 0; column < COLUMNS; column++) {
      int tile = row / GROUP_ROWS;
      int group = column / GROUP_COLUMNS;
      uint32_t place =
          swizzle_tile_address(SWIZZLE_128B, base, group * GROUP_ROWS + row % GROUP_ROWS,
                               column % GROUP_COLUMNS * ELEMENT_SIZE, GROUP_COLUMNS * ELEMENT_SIZE);
      expected[(tile * MOST_BYTES + place - base) / ELEMENT_SIZE] = element_at(row, column);
    }
  }
  printf("As one 3D box of %d groups, %d rows, %d columns, in one copy:\n", GROUPS, GROUP_ROWS,
         GROUP_COLUMNS);
  print_lines(got, expected, MOST_BYTES / LINE_BYTES, MOST_BYTES / LINE_BYTES);
  check_tile("the 3D box", ELEMENT_U16, got, expected, (long)ROWS * GROUPS,
             LINE_BYTES / ELEMENT_SIZE, 0);
}

int main(int argc, char **argv) {
  program_begin("swizzle_3d", argc, argv, NULL, 0);
  static uint16_t host[ROWS][COLUMNS];
  for (int row = 0; row < ROWS; row++) {
    for (int column = 0; column < COLUMNS; column++) host[row][column] = element_at(row, column);
  }
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&dump_on_device, sizeof host));
  CUDA_CHECK(cudaMalloc(&address_on_device, sizeof *address_on_device));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));

  static const char *const names[] = {"no swizzle", "32-byte swizzle", "64-byte swizzle",
                                      "128-byte swizzle"};
  enum { MODES = sizeof names / sizeof names[0] };
  printf("\n  byte   what the engine wrote, row.chunk            what swizzle.h predicts");
  for (int mode = 0; mode < MODES; mode++) show_mode(names[mode], (SwizzleMode)mode);
  show_3d();

  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(dump_on_device));
  CUDA_CHECK(cudaFree(address_on_device));
  printf("\n");
  return program_end("%d modes and a 3D box, all tiles, byte for byte", MODES);
}
