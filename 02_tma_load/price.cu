// 02 tma_load, side program price: the same tile by 128 threads and by one, for price.sh to count.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// Four kernels fetch a 128x64 tile of halves: chapter 01's three and TMA. A fifth fetches nothing.
// What follows the fetch is the same code in all five, so that price.sh can take it off: everybody
// meets, then the tile goes out. This program checks that all four fetch the same; price.sh reads
// the compiled code (registers) and counts what was executed (instructions, on a GPU).
#include <stdio.h>
#include <stdlib.h>

#include "../01_tiledcopy_baseline/tiledcopy.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tma_load.cuh"

enum {
  TILE_ROWS = 128,
  TILE_COLUMNS = 64,
  TILE_ELEMENTS = TILE_ROWS * TILE_COLUMNS,
  TILE_BYTES = TILE_ELEMENTS * 2,
  MATRIX_ROWS = 256,
  MATRIX_COLUMNS = 192,
  TILES_ACROSS = MATRIX_COLUMNS / TILE_COLUMNS,
  TILES = MATRIX_ROWS / TILE_ROWS * TILES_ACROSS,
  THREADS = TILEDCOPY_THREADS,
};

static __device__ const uint16_t *tile_start(const uint16_t *matrix, size_t pitch) {
  return matrix + (size_t)blockIdx.y * TILE_ROWS * pitch + (size_t)blockIdx.x * TILE_COLUMNS;
}

static __device__ __forceinline__ void write_tile(const uint16_t *tile, uint16_t *tiles) {
  __syncthreads();
  uint16_t *mine = tiles + (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * TILE_ELEMENTS;
#pragma unroll 1
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) mine[i] = tile[i];
}

__global__ void __launch_bounds__(THREADS)
    scalar(const uint16_t *matrix, size_t pitch, uint16_t *tiles) {
  __shared__ alignas(128) uint16_t tile[TILE_ELEMENTS];
  copy_tile_scalar(tile, tile_start(matrix, pitch), pitch, TILE_ROWS, TILE_COLUMNS);
  write_tile(tile, tiles);
}

__global__ void __launch_bounds__(THREADS)
    vectors(const uint16_t *matrix, size_t pitch, uint16_t *tiles) {
  __shared__ alignas(128) uint16_t tile[TILE_ELEMENTS];
  copy_tile_vectors(tile, tile_start(matrix, pitch), pitch, TILE_ROWS, TILE_COLUMNS);
  write_tile(tile, tiles);
}

__global__ void __launch_bounds__(THREADS)
    cp_async(const uint16_t *matrix, size_t pitch, uint16_t *tiles) {
  __shared__ alignas(128) uint16_t tile[TILE_ELEMENTS];
  copy_tile_cp_async(tile, tile_start(matrix, pitch), pitch, TILE_ROWS, TILE_COLUMNS);
  write_tile(tile, tiles);
}

// As the source of this comparison has it: one thread makes the barrier, copies and waits, and
// __syncthreads() holds the others back meanwhile.
__global__ void __launch_bounds__(THREADS)
    tma(const __grid_constant__ CUtensorMap map, uint16_t *tiles) {
  __shared__ alignas(128) uint16_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    tma_load_2d(tile, &map, blockIdx.x * TILE_COLUMNS, blockIdx.y * TILE_ROWS, &barrier);
    mbarrier_wait_parity(&barrier, 0);
  }
  write_tile(tile, tiles);
}

__global__ void __launch_bounds__(THREADS) nothing(uint16_t *tiles) {
  __shared__ alignas(128) uint16_t tile[TILE_ELEMENTS];
  tile[threadIdx.x] = 0;
  write_tile(tile, tiles);
}

typedef enum { SCALAR, VECTORS, CP_ASYNC, TMA, METHODS } Method;
static const char *const method_names[METHODS] = {"scalar", "vectors", "cp_async", "tma"};

int main(int argc, char **argv) {
  long count = 0;
  Option options[] = {{"--count", "run the kernel that fetches nothing, too", &count, 0, 0}};
  program_begin("price", argc, argv, options, 1);

  static uint16_t matrix[MATRIX_ROWS * MATRIX_COLUMNS];
  static uint16_t tiles[TILES * TILE_ELEMENTS], expected[TILES * TILE_ELEMENTS];
  for (int i = 0; i < MATRIX_ROWS * MATRIX_COLUMNS; i++) matrix[i] = (uint16_t)(i + 1);
  for (int i = 0; i < TILES * TILE_ELEMENTS; i++) {
    int tile = i / TILE_ELEMENTS, inside = i % TILE_ELEMENTS;
    int row = tile / TILES_ACROSS * TILE_ROWS + inside / TILE_COLUMNS;
    int column = tile % TILES_ACROSS * TILE_COLUMNS + inside % TILE_COLUMNS;
    expected[i] = matrix[row * MATRIX_COLUMNS + column];
  }
  uint16_t *device_matrix, *device_tiles;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_tiles, sizeof tiles));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {MATRIX_COLUMNS, MATRIX_ROWS},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  CUtensorMap encoded = tensor_map_encode("matrix", &map);

  dim3 grid(TILES_ACROSS, TILES / TILES_ACROSS);
  size_t pitch = MATRIX_COLUMNS;
  if (count) nothing<<<grid, THREADS>>>(device_tiles);
  for (int method = 0; method < METHODS; method++) {
    CUDA_CHECK(cudaMemset(device_tiles, 0, sizeof tiles));
    switch ((Method)method) {
      case SCALAR:
        scalar<<<grid, THREADS>>>(device_matrix, pitch, device_tiles);
        break;
      case VECTORS:
        vectors<<<grid, THREADS>>>(device_matrix, pitch, device_tiles);
        break;
      case CP_ASYNC:
        cp_async<<<grid, THREADS>>>(device_matrix, pitch, device_tiles);
        break;
      default:
        tma<<<grid, THREADS>>>(encoded, device_tiles);
        break;
    }
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(tiles, device_tiles, sizeof tiles, cudaMemcpyDeviceToHost));
    bool right = check_tile(method_names[method], ELEMENT_U16, tiles, expected, TILES * TILE_ROWS,
                            TILE_COLUMNS, 0);
    printf("%-9s %s\n", method_names[method], right ? "fetched all tiles" : "WRONG");
  }
  return program_end("%d methods, %d tiles of %dx%d each, every element", METHODS, TILES, TILE_ROWS,
                     TILE_COLUMNS);
}
