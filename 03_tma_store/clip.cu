// 03 tma_store, side program clip: a store over the edge writes only what lies inside.
//
//   01 tiledcopy | 02 load | [03 store] | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// Part 1: an 11x12 matrix lies in memory in the upper left of 16 rows of 16, everything around it
// holds -1. Four 8x8 tiles cover it, and three of them reach over its edge. The engine knows the
// matrix's size from the tensor map and leaves the rest alone, without a condition in the kernel:
//
//      0 ..... 7 8 .. 11  ... 15
//   0  +--------+-----:.........
//      |        |     :    -1      tile (1,0): columns 8 to 11 are written,
//   7  +--------+-----:            12 to 15 are clipped
//  10  |........|.....:
//  11  :    -1           -1
//
// Part 2: the edge of a row is not cut to the element. The engine writes global memory in pieces of
// 16 bytes, and a piece whose first byte lies inside is written whole. With 10 floats a row
// (40 bytes) a store that reaches over the edge writes 48: the two padding floats are overwritten.
// (A load fills element by element.) So keep nothing in the padding, or end rows at 16 bytes.
//
// Only the upper edges clip. A negative coordinate, fine in a load, is an illegal instruction in a
// store: it ends the whole process, so this program does not try it.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_store_dimensions.cuh"

enum {
  TILE = 8,
  THREADS = TILE * TILE,
  ROWS = 11,
  COLUMNS = 12,
  TILES_DOWN = (ROWS + TILE - 1) / TILE,
  TILES_ACROSS = (COLUMNS + TILE - 1) / TILE,
  FRAME = 16,  // rows and columns of the memory around the matrix
};

// Element (row, column) of the matrix, also where the matrix has none.
static __host__ __device__ int32_t element_at(int row, int column) { return row * 100 + column; }

__global__ void __launch_bounds__(THREADS) store_tiles(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int32_t tile[THREADS];
  int x = blockIdx.x * TILE, y = blockIdx.y * TILE;
  tile[threadIdx.x] = element_at(y + threadIdx.x / TILE, x + threadIdx.x % TILE);
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, x, y);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

static void clip_tiles(void) {
  int32_t memory[FRAME * FRAME], expected[FRAME * FRAME], *device_memory;
  CUDA_CHECK(cudaMalloc(&device_memory, sizeof memory));
  CUDA_CHECK(cudaMemset(device_memory, 0xff, sizeof memory));  // -1 everywhere
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_memory,
                   .size = {COLUMNS, ROWS},
                   .stride_bytes = {FRAME * sizeof(int32_t)},
                   .box = {TILE, TILE}};
  store_tiles<<<dim3(TILES_ACROSS, TILES_DOWN), THREADS>>>(tensor_map_encode("matrix", &map));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(memory, device_memory, sizeof memory, cudaMemcpyDeviceToHost));

  for (int i = 0; i < FRAME * FRAME; i++) {
    int row = i / FRAME, column = i % FRAME;
    expected[i] = row < ROWS && column < COLUMNS ? element_at(row, column) : -1;
  }
  check_tile("memory", ELEMENT_S32, memory, expected, FRAME, FRAME, 0);
  char title[64];
  snprintf(title, sizeof title, "memory after the stores; the matrix is %dx%d", ROWS, COLUMNS);
  TilePicture picture = {.title = title,
                         .type = ELEMENT_S32,
                         .data = memory,
                         .rows = ROWS + 2,
                         .columns = COLUMNS + 2,
                         .pitch = FRAME,
                         .tensor_rows = ROWS,
                         .tensor_columns = COLUMNS,
                         .outside = "not written by the stores"};
  tile_print(&picture);
}

// ---- Part 2: how many bytes of a row does a store write whose tile reaches over its end? ----

enum {
  ROW_BYTES = 64,    // of the tile, and of the memory that may be written
  PIECE_BYTES = 16,  // what the engine writes whole
};

__global__ void __launch_bounds__(ROW_BYTES) store_row(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) uint8_t row[ROW_BYTES];
  row[threadIdx.x] = 0x11;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_1d(&map, row, 0);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

typedef struct {
  const char *name;
  CUtensorMapDataType type;
  int bytes;
} Type;

static const Type types[] = {{"u8", CU_TENSOR_MAP_DATA_TYPE_UINT8, 1},
                             {"f16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2},
                             {"f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4},
                             {"u64", CU_TENSOR_MAP_DATA_TYPE_UINT64, 8}};
enum { TYPES = sizeof types / sizeof types[0] };

// Every length of a row from one element to the whole tile; prints a few of them.
static void measure_pieces(const Type *type, uint8_t *device_row) {
  printf("%-4s", type->name);
  for (int elements = 1; elements * type->bytes <= ROW_BYTES; elements++) {
    uint8_t row[ROW_BYTES];
    CUDA_CHECK(cudaMemset(device_row, 0, ROW_BYTES));
    TensorMap map = {.type = type->type,
                     .dimensions = 1,
                     .address = device_row,
                     .size = {(uint64_t)elements},
                     .box = {(uint32_t)(ROW_BYTES / type->bytes)}};
    store_row<<<1, ROW_BYTES>>>(tensor_map_encode("row", &map));
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(row, device_row, ROW_BYTES, cudaMemcpyDeviceToHost));

    int written = 0, row_bytes = elements * type->bytes;
    for (int i = 0; i < ROW_BYTES; i++) written += row[i] == 0x11;
    int whole_pieces = (row_bytes + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
    bool contiguous = row[written - 1] == 0x11;
    check_that(written == whole_pieces && contiguous,
               "%s, a row of %d bytes: expected %d bytes to be written, found %d", type->name,
               row_bytes, whole_pieces, written);
    if (row_bytes % 8 == 0 && row_bytes <= 48) printf("   %d -> %d", row_bytes, written);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  program_begin("clip", argc, argv, NULL, 0);
  clip_tiles();

  printf("\nbytes of the row -> bytes that a store over its end writes\n");
  uint8_t *device_row;
  CUDA_CHECK(cudaMalloc(&device_row, ROW_BYTES));
  for (int i = 0; i < TYPES; i++) measure_pieces(&types[i], device_row);

  return program_end("%d tiles clipped to %dx%d, nothing around touched; rows end at %d bytes",
                     TILES_DOWN * TILES_ACROSS, ROWS, COLUMNS, PIECE_BYTES);
}
