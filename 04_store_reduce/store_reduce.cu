// 04 store reduce: a store that adds its tile to the tensor.
//
//   01 tiledcopy | 02 load | 03 store | [04 store reduce] | 05 multicast | 06 swizzle | 07 gemm
//
// Chapter 03 replaced a tile of the tensor by a tile of shared memory. One word of the instruction
// changes, cp.async.bulk becomes cp.reduce.async.bulk, and the tile is added to the tensor instead.
// The addition takes place in the L2 cache, atomically for each element, so the old values never
// come to the thread block. Everything around it is the same as for a store: the proxy fence before,
// commit and wait after.
//
// An 8x8 matrix holds 0 to 63, and a 4x4 tile is added at row 2, column 4: before and after are printed.
//
// The other seven operations follow, a line for each. The element types that each of them accepts:
// operations.cu.
#include <stdio.h>
#include <string.h>

#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_reduce.cuh"

enum { SIDE = 8, TILE_SIDE = 4, X = 4, Y = 2 };
typedef uint32_t Tile[TILE_SIDE][TILE_SIDE];

typedef enum { ADD, MIN, MAX, INC, DEC, AND, OR, XOR, OPERATIONS } Operation;
static const char *const operation_names[OPERATIONS] = {"add", "min", "max", "inc",
                                                        "dec", "and", "or",  "xor"};

__global__ void reduce_one_tile(const __grid_constant__ CUtensorMap map, const Tile *values,
                                Operation operation) {
  __shared__ __align__(128) Tile tile;
  tile[threadIdx.y][threadIdx.x] = (*values)[threadIdx.y][threadIdx.x];
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    if (operation == ADD) tma_reduce_add_2d(&map, tile, X, Y);
    if (operation == MIN) tma_reduce_min_2d(&map, tile, X, Y);
    if (operation == MAX) tma_reduce_max_2d(&map, tile, X, Y);
    if (operation == INC) tma_reduce_inc_2d(&map, tile, X, Y);
    if (operation == DEC) tma_reduce_dec_2d(&map, tile, X, Y);
    if (operation == AND) tma_reduce_and_2d(&map, tile, X, Y);
    if (operation == OR) tma_reduce_or_2d(&map, tile, X, Y);
    if (operation == XOR) tma_reduce_xor_2d(&map, tile, X, Y);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

static uint32_t combine(Operation operation, uint32_t old, uint32_t tile) {
  switch (operation) {
    case ADD:
      return old + tile;
    case MIN:
      return tile < old ? tile : old;
    case MAX:
      return tile > old ? tile : old;
    case INC:
      return old >= tile ? 0 : old + 1;  // the tile holds limits
    case DEC:
      return old == 0 || old > tile ? tile : old - 1;
    case AND:
      return old & tile;
    case OR:
      return old | tile;
    default:
      return old ^ tile;
  }
}

static uint32_t *matrix;  // on the device, as is `values`
static Tile *values;

// The matrix holds 0 to 63; the tile is combined with it, and every element of the result is checked.
static void reduce_and_check(Operation operation, const Tile tile, uint32_t before[SIDE][SIDE],
                             uint32_t after[SIDE][SIDE]) {
  uint32_t expected[SIDE][SIDE];
  for (int i = 0; i < SIDE * SIDE; i++) before[i / SIDE][i % SIDE] = i;
  memcpy(expected, before, sizeof expected);
  for (int row = 0; row < TILE_SIDE; row++) {
    for (int column = 0; column < TILE_SIDE; column++) {
      uint32_t *element = &expected[Y + row][X + column];
      *element = combine(operation, *element, tile[row][column]);
    }
  }
  CUDA_CHECK(cudaMemcpy(matrix, before, sizeof expected, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(values, tile, sizeof(Tile), cudaMemcpyHostToDevice));

  // The map is the same as for a store: the operation is in the instruction.
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                   .dimensions = 2,
                   .address = matrix,
                   .size = {SIDE, SIDE},
                   .box = {TILE_SIDE, TILE_SIDE}};
  reduce_one_tile<<<1, dim3(TILE_SIDE, TILE_SIDE)>>>(tensor_map_encode("matrix", &map), values,
                                                     operation);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(after, matrix, sizeof expected, cudaMemcpyDeviceToHost));
  check_tile(operation_names[operation], ELEMENT_U32, after, expected, SIDE, SIDE, 0);
}

static void print_four(const uint32_t *elements) {
  printf("   ");
  for (int column = 0; column < TILE_SIDE; column++) printf(" %3u", elements[column]);
}

int main(int argc, char **argv) {
  program_begin("store_reduce", argc, argv, NULL, 0);
  uint32_t before[SIDE][SIDE], after[SIDE][SIDE];
  CUDA_CHECK(cudaMalloc(&matrix, sizeof before));
  CUDA_CHECK(cudaMalloc(&values, sizeof *values));

  // 1. One tile is added: the tile, and the tensor before and after.
  const Tile amounts = {
      {100, 101, 102, 103}, {200, 201, 202, 203}, {300, 301, 302, 303}, {400, 401, 402, 403}};
  reduce_and_check(ADD, amounts, before, after);
  char title[64];
  snprintf(title, sizeof title, "tile in shared memory, for row %d, column %d", Y, X);
  TilePicture picture = {title, ELEMENT_U32, amounts};
  picture.rows = picture.columns = TILE_SIDE;
  picture.first_row = Y, picture.first_column = X;
  tile_print(&picture);
  TilePicture both = {"tensor before and after one reduce-add", ELEMENT_U32, before};
  both.beside = after;
  both.rows = both.columns = SIDE;
  tile_print(&both);

  // 2. Each operation on the tensor as it was. Some numbers of this tile are below the old ones.
  const Tile operands = {{12, 44, 7, 51}, {30, 3, 60, 9}, {38, 39, 50, 5}, {45, 61, 1, 49}};
  printf("each operation on the tensor before; of the tile's %d rows the first is shown\n",
         TILE_SIDE);
  printf("       old                tile               new\n");
  for (int operation = 0; operation < OPERATIONS; operation++) {
    reduce_and_check((Operation)operation, operands, before, after);
    printf("  %-3s", operation_names[operation]);
    print_four(&before[Y][X]);
    print_four(operands[0]);
    print_four(&after[Y][X]);
    printf("\n");
  }
  return program_end("%d operations, every element of the tensor after each", OPERATIONS);
}
