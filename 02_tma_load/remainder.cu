// 02 tma_load, side program remainder: tiles over the edge, and rows that TMA cannot address.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// Part 1: a 10x12 matrix of floats in 8x8 tiles. The tile divides neither side, and the kernel has
// no "if (row < rows)": the engine knows the matrix's size from the tensor map, does not read
// outside, and fills the tile there. It uses zeros, or NaN if the map says so: then a sum is NaN if the
// kernel adds up elements that do not exist. Filled elements count as landed, so the expected bytes
// are always those of the whole box.
//
//      columns 0..7    8..11
//     +-----------+-----:.....         the matrix ends at column 12 and row 10;
//     |           |     :    :         tile (1,0) is filled in columns 12 to 15,
//     |           |     :    :         tile (0,1) in rows 10 to 15,
//     +-----------+-----:.....         and a load may also begin before the
//     |           |     :    :         matrix: at (-4,-3), or lie outside
//     +-----------+-----:    :         altogether: at (16,8).
//     :...........:..........:
//
// Part 2: a 10x10 matrix. The map's strides must be multiples of 16 bytes, and a row of 10 floats
// takes 40: refused. The fix is padding: rows of 12 floats in memory, of which the map's size
// names 10. The two padding columns are outside, whatever memory holds there.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_load.cuh"

enum { TILE = 8, TILE_ELEMENTS = TILE * TILE, TILE_BYTES = TILE_ELEMENTS * 4 };

__global__ void load_one_tile(const __grid_constant__ CUtensorMap map, int x, int y,
                              float *landed) {
  __shared__ alignas(128) float tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);  // the whole box, also over the edge
    tma_load_2d(tile, &map, x, y, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  landed[threadIdx.x] = tile[threadIdx.x];
}

typedef struct {
  int rows, columns;
  int pitch;  // floats from one row in memory to the next
  float *device;
} Matrix;

// Row 3, column 7 is 307. Padding holds -1, which must not arrive.
static float element_at(int row, int column) { return (float)(100 * row + column); }

static Matrix make_matrix(int rows, int columns, int pitch) {
  float host[16 * 16];
  Matrix matrix = {rows, columns, pitch, NULL};
  for (int i = 0; i < rows * pitch; i++) {
    host[i] = i % pitch < columns ? element_at(i / pitch, i % pitch) : -1.0f;
  }
  CUDA_CHECK(cudaMalloc(&matrix.device, sizeof(float) * rows * pitch));
  CUDA_CHECK(cudaMemcpy(matrix.device, host, sizeof(float) * rows * pitch, cudaMemcpyHostToDevice));
  return matrix;
}

static TensorMap describe(const Matrix *matrix, CUtensorMapFloatOOBfill fill) {
  return {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
          .dimensions = 2,
          .address = matrix->device,
          .size = {(uint64_t)matrix->columns, (uint64_t)matrix->rows},
          .stride_bytes = {matrix->pitch * sizeof(float)},
          .box = {TILE, TILE},
          .fill = fill};
}

static int tiles_loaded;

// Loads the tile at (x, y), and checks every element.
static void load_and_check(const Matrix *matrix, CUtensorMapFloatOOBfill fill, int x, int y,
                           float landed[TILE_ELEMENTS]) {
  TensorMap map = describe(matrix, fill);
  float *device_landed, expected[TILE_ELEMENTS];
  CUDA_CHECK(cudaMalloc(&device_landed, TILE_BYTES));
  load_one_tile<<<1, TILE_ELEMENTS>>>(tensor_map_encode("matrix", &map), x, y, device_landed);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(landed, device_landed, TILE_BYTES, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_landed));

  float outside = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ? 0.0f : NAN;
  for (int i = 0; i < TILE_ELEMENTS; i++) {
    int row = y + i / TILE, column = x + i % TILE;
    bool inside = row >= 0 && row < matrix->rows && column >= 0 && column < matrix->columns;
    expected[i] = inside ? element_at(row, column) : outside;
  }
  char what[64];
  snprintf(what, sizeof what, "tile at (%d,%d) of %dx%d", x, y, matrix->rows, matrix->columns);
  check_tile(what, ELEMENT_F32, landed, expected, TILE, TILE, 0);
  tiles_loaded++;
}

// The first rows of the tile at (x, y); beside is NULL or the same tile through another map.
static void show(const Matrix *matrix, int x, int y, const float *landed, const float *beside,
                 int rows) {
  char title[96];
  snprintf(title, sizeof title, "%dx%d matrix, the box at (%d,%d), filled with zeros%s",
           matrix->rows, matrix->columns, x, y, beside ? " and with NaN" : "");
  TilePicture picture = {.title = title,
                         .type = ELEMENT_F32,
                         .data = landed,
                         .rows = TILE,
                         .columns = TILE,
                         .first_row = y,
                         .first_column = x,
                         .tensor_rows = matrix->rows,
                         .tensor_columns = matrix->columns,
                         .shown_rows = rows,
                         .beside = beside};
  tile_print(&picture);
}

// Which matrices of floats without padding, one to most_columns wide, have a tensor map?
static void show_widths(int most_columns) {
  printf("fp32 rows without padding: n columns have a tensor map for n =");
  for (int columns = 1; columns <= most_columns; columns++) {
    Matrix matrix = {1, columns, columns, NULL};
    TensorMap map = describe(&matrix, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    char why[1024];
    bool has_map = tensor_map_explain(&map, why, sizeof why) == 0;
    if (has_map) printf(" %d", columns);
    check_that(has_map == (columns % 4 == 0), "%d columns must %s a map", columns,
               columns % 4 == 0 ? "have" : "not have");
  }
  printf(" ...: n %% 4 == 0\n");
}

int main(int argc, char **argv) {
  program_begin("remainder", argc, argv, NULL, 0);

  // 1. The last tile of the matrix, one that begins before it, then all others and some far outside.
  Matrix matrix = make_matrix(10, 12, 12);
  CUtensorMapFloatOOBfill zero = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  CUtensorMapFloatOOBfill nan = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  float last[TILE_ELEMENTS], last_with_nan[TILE_ELEMENTS], before[TILE_ELEMENTS],
      landed[TILE_ELEMENTS];
  load_and_check(&matrix, zero, 8, 8, last);
  load_and_check(&matrix, nan, 8, 8, last_with_nan);
  load_and_check(&matrix, zero, -4, -3, before);
  show(&matrix, 8, 8, last, last_with_nan, 3);
  show(&matrix, -4, -3, before, NULL, 5);
  load_and_check(&matrix, zero, 0, 0, landed);
  load_and_check(&matrix, zero, 8, 0, landed);
  load_and_check(&matrix, zero, 0, 8, landed);
  load_and_check(&matrix, zero, 16, 8, landed);
  load_and_check(&matrix, zero, -400, -300, landed);

  // 2. Rows of 10 floats are 40 bytes: not a multiple of 16, so there is no map.
  Matrix tight = make_matrix(10, 10, 10);
  TensorMap refused = describe(&tight, zero);
  char why[1024];
  int broken_rules = tensor_map_explain(&refused, why, sizeof why);
  show_widths(16);
  printf("%dx%d: %d broken rule\n%s", tight.rows, tight.columns, broken_rules, why);
  check_that(broken_rules == 1, "%d columns: expected 1 broken rule, found %d", tight.columns,
             broken_rules);

  // 3. Padded to 12 floats, 48 bytes, it has one. The size stays 10: the padding is outside.
  Matrix padded = make_matrix(10, 10, 12);
  float padding[TILE_ELEMENTS];
  load_and_check(&padded, zero, 8, 0, padding);
  load_and_check(&padded, zero, 0, 0, landed);
  load_and_check(&padded, zero, 0, 8, landed);
  load_and_check(&padded, zero, 8, 8, landed);
  printf("padded to rows of %d it has a map, and columns from %d on count as outside\n",
         padded.pitch, padded.columns);
  detail_begin();
  show(&padded, 8, 0, padding, NULL, TILE);
  show(&matrix, 8, 8, last, last_with_nan, TILE);
  show(&matrix, -4, -3, before, NULL, TILE);
  detail_end();

  return program_end("%d tiles over all edges, every element; the refusal of %zu-byte rows",
                     tiles_loaded, tight.pitch * sizeof(float));
}
