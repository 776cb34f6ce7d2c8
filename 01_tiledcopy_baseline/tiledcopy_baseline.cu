// 01 tiledcopy_baseline: 128 threads fetch a tile, each computing its addresses.
//
//   [01 tiledcopy] | 02 load | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// Before the copy engine there was only this: to bring a 128x64 tile of halves from global into
// shared memory, each of 128 threads works out which elements are its own, computes
// address = row * pitch + column for each of them, loads and stores. Three ways, each better than
// the last:
//
//   scalar     one half per access: 64 loads and 64 stores per thread
//   vectors    16 bytes, eight halves per access: 8 loads and 8 stores per thread
//   cp_async   16 bytes, from global to shared memory past the registers: 8 copies per thread
//
// What it costs is printed by price.sh: instructions and registers, from the compiled code. Chapter
// 02 does the same with one thread and one instruction.
//
// Prints who fetches what, for scalar (thread of each element; local coordinates in brackets):
//
//        0 [0]    0   1   2   3   4   5   6   7 ...     row 0: threads 0 to 63
//        1 [1]   64  65  66  67  68  69  70  71 ...     row 1: threads 64 to 127
//        2 [2]    0   1   2   3   4   5   6   7 ...     row 2: threads 0 to 63 again
//
// and for the other two:
//
//        0 [0]    0   0   0   0   0   0   0   0   1   1   1 ...   8 threads for a row
//        1 [1]    8   8   8   8   8   8   8   8   9   9   9 ...
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tile.h"
#include "tiledcopy.cuh"

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

// Where a block's tile begins in the matrix, and where it goes in `tiles`, one packed tile per block.
static __device__ const uint16_t *tile_start(const uint16_t *matrix, size_t pitch) {
  return matrix + (size_t)blockIdx.y * TILE_ROWS * pitch + (size_t)blockIdx.x * TILE_COLUMNS;
}

// What follows the copy is the same in every kernel, chapter 02's included, so that price.sh can
// take it off: everybody meets, then the tile goes out.
static __device__ __forceinline__ void write_tile(const uint16_t *tile, uint16_t *tiles) {
  __syncthreads();
  uint16_t *mine = tiles + (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * TILE_ELEMENTS;
#pragma unroll 1
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) mine[i] = tile[i];
}

__global__ void __launch_bounds__(THREADS)
    scalar(const uint16_t *matrix, size_t pitch, uint16_t *tiles) {
  __shared__ alignas(16) uint16_t tile[TILE_ELEMENTS];
  copy_tile_scalar(tile, tile_start(matrix, pitch), pitch, TILE_ROWS, TILE_COLUMNS);
  write_tile(tile, tiles);
}

__global__ void __launch_bounds__(THREADS)
    vectors(const uint16_t *matrix, size_t pitch, uint16_t *tiles) {
  __shared__ alignas(16) uint16_t tile[TILE_ELEMENTS];
  copy_tile_vectors(tile, tile_start(matrix, pitch), pitch, TILE_ROWS, TILE_COLUMNS);
  write_tile(tile, tiles);
}

__global__ void __launch_bounds__(THREADS)
    cp_async(const uint16_t *matrix, size_t pitch, uint16_t *tiles) {
  __shared__ alignas(16) uint16_t tile[TILE_ELEMENTS];
  copy_tile_cp_async(tile, tile_start(matrix, pitch), pitch, TILE_ROWS, TILE_COLUMNS);
  write_tile(tile, tiles);
}

// No copy: what price.sh takes off.
__global__ void __launch_bounds__(THREADS) nothing(uint16_t *tiles) {
  __shared__ alignas(16) uint16_t tile[TILE_ELEMENTS];
  tile[threadIdx.x] = 0;
  write_tile(tile, tiles);
}

typedef enum { SCALAR, VECTORS, CP_ASYNC, METHODS } Method;
static const char *const method_names[METHODS] = {"scalar", "vectors", "cp_async"};

// Who fetches what, from the copy itself: every thread is given a source of its own, filled with
// its own number. What lands in the tile is then the number of the thread that fetched it.
__global__ void who_fetches(Method method, const uint16_t *sources, uint16_t *fetched_by) {
  __shared__ alignas(16) uint16_t tile[TILE_ELEMENTS];
  const uint16_t *own = sources + (size_t)threadIdx.x * TILE_ELEMENTS;
  switch (method) {
    case SCALAR:
      copy_tile_scalar(tile, own, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
      break;
    case VECTORS:
      copy_tile_vectors(tile, own, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
      break;
    default:
      copy_tile_cp_async(tile, own, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
      break;
  }
  write_tile(tile, fetched_by);
}

// Element (row, column) of the matrix: 1 to 49152, so all differ; moved as bits.
static uint16_t element_at(int row, int column) {
  return (uint16_t)(row * MATRIX_COLUMNS + column + 1);
}

static void copy_and_check(Method method, const uint16_t *device_matrix, uint16_t *device_tiles) {
  static uint16_t tiles[TILES][TILE_ELEMENTS], expected[TILE_ELEMENTS];
  dim3 grid(TILES_ACROSS, TILES / TILES_ACROSS);
  CUDA_CHECK(cudaMemset(device_tiles, 0, sizeof tiles));
  switch (method) {
    case SCALAR:
      scalar<<<grid, THREADS>>>(device_matrix, MATRIX_COLUMNS, device_tiles);
      break;
    case VECTORS:
      vectors<<<grid, THREADS>>>(device_matrix, MATRIX_COLUMNS, device_tiles);
      break;
    default:
      cp_async<<<grid, THREADS>>>(device_matrix, MATRIX_COLUMNS, device_tiles);
      break;
  }
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(tiles, device_tiles, sizeof tiles, cudaMemcpyDeviceToHost));
  for (int t = 0; t < TILES; t++) {
    int first_row = t / TILES_ACROSS * TILE_ROWS, first_column = t % TILES_ACROSS * TILE_COLUMNS;
    for (int i = 0; i < TILE_ELEMENTS; i++) {
      expected[i] = element_at(first_row + i / TILE_COLUMNS, first_column + i % TILE_COLUMNS);
    }
    char what[32];
    snprintf(what, sizeof what, "%s, tile %d", method_names[method], t);
    check_tile(what, ELEMENT_U16, tiles[t], expected, TILE_ROWS, TILE_COLUMNS, 0);
  }
}

static void show_who_fetches(Method method, const uint16_t *device_sources,
                             uint16_t *device_fetched_by) {
  static uint16_t fetched_by[TILE_ELEMENTS];
  who_fetches<<<1, THREADS>>>(method, device_sources, device_fetched_by);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(fetched_by, device_fetched_by, TILE_BYTES, cudaMemcpyDeviceToHost));

  // Element after element in scalar, eight at a time in the others; after 128 accesses again from
  // thread 0.
  static uint16_t expected[TILE_ELEMENTS];
  int elements_per_access = method == SCALAR ? 1 : VECTOR_ELEMENTS;
  for (int i = 0; i < TILE_ELEMENTS; i++) {
    expected[i] = (uint16_t)(i / elements_per_access % THREADS);
  }
  char what[32];
  snprintf(what, sizeof what, "%s, who fetches", method_names[method]);
  check_tile(what, ELEMENT_U16, fetched_by, expected, TILE_ROWS, TILE_COLUMNS, 0);
  char title[96];
  snprintf(title, sizeof title, "%s: which thread fetches what; %d accesses of %d bytes each",
           method_names[method], TILE_ELEMENTS / THREADS / elements_per_access,
           elements_per_access * 2);
  TilePicture picture = {.title = title,
                         .type = ELEMENT_U16,
                         .data = fetched_by,
                         .rows = TILE_ROWS,
                         .columns = TILE_COLUMNS,
                         .shown_rows = 4,
                         .shown_columns = 18};
  printf("\n");
  tile_print(&picture);
}

int main(int argc, char **argv) {
  long count = 0;
  Option options[] = {{"--count", "run the kernel that fetches nothing, too", &count, 0, 0}};
  program_begin("tiledcopy_baseline", argc, argv, options, 1);

  // 1. A 256x192 matrix of halves in six tiles.
  static uint16_t matrix[MATRIX_ROWS][MATRIX_COLUMNS];
  for (int row = 0; row < MATRIX_ROWS; row++)
    for (int column = 0; column < MATRIX_COLUMNS; column++)
      matrix[row][column] = element_at(row, column);
  uint16_t *device_matrix, *device_tiles;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_tiles, sizeof matrix));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  printf("matrix %dx%d, tile %dx%d (%d bytes), %d blocks of %d threads\n", MATRIX_ROWS,
         MATRIX_COLUMNS, TILE_ROWS, TILE_COLUMNS, TILE_BYTES, TILES, THREADS);

  // 2. Each way copies all tiles.
  if (count) nothing<<<dim3(TILES_ACROSS, TILES / TILES_ACROSS), THREADS>>>(device_tiles);
  for (int method = 0; method < METHODS; method++) {
    copy_and_check((Method)method, device_matrix, device_tiles);
  }

  // 3. Who fetched what.
  static uint16_t sources[THREADS][TILE_ELEMENTS];
  for (int thread = 0; thread < THREADS; thread++)
    for (int i = 0; i < TILE_ELEMENTS; i++) sources[thread][i] = (uint16_t)thread;
  uint16_t *device_sources;
  CUDA_CHECK(cudaMalloc(&device_sources, sizeof sources));
  CUDA_CHECK(cudaMemcpy(device_sources, sources, sizeof sources, cudaMemcpyHostToDevice));
  for (int method = 0; method < METHODS; method++) {
    if (method == CP_ASYNC) detail_begin();  // the same picture again
    show_who_fetches((Method)method, device_sources, device_tiles);
  }
  detail_end();

  return program_end("%d ways, %d tiles of %dx%d each, every element; %d elements per thread",
                     METHODS, TILES, TILE_ROWS, TILE_COLUMNS, TILE_ELEMENTS / THREADS);
}
