// 02 tma_load: one thread fetches a whole tile.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// Chapter 01 copied a 128x64 tile of halves with 128 threads, each computing addresses. Here one
// thread hands the whole tile to the copy engine, the Tensor Memory Accelerator (TMA):
//
//   host     a *tensor map*: where the matrix lies, its size, the size of a tile   (128 bytes)
//   kernel   tma_load_2d(tile, &map, x, y, &barrier)      one thread, one instruction
//            ... any work that does not need the tile ...
//            mbarrier_wait_parity(&barrier, 0)            every thread that reads the tile
//
// The copy is asynchronous: the instruction returns long before the tile is there. A barrier in
// shared memory counts the arriving bytes. Its first phase is complete when
//
//   all expected arrivals (here one)  and  all expected bytes (here 16384)  have come in.
//
// The grid covers an m x n row-major matrix with one block per tile. Tile sizes are constants of the
// kernel and of the tensor map; m and n are known at run time only. Tiles that reach past the edge
// need no code: what lies outside the matrix arrives as zero (remainder.cu shows it).
//
// Prints a line for each tile, a corner of the last one as it lies in shared memory, and the barrier
// step by step. "parity 1 complete?" is yes from the start: a fresh barrier behaves as if a phase of
// parity 1 had just completed. Chapter 07 uses that: a stage that was never filled counts as free.
// In the last two steps the bytes land before they are announced: the barrier counts them below zero,
// and the phase waits for the arrival, which brings them back to zero.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "mbarrier_debug.cuh"
#include "tensor_map.h"
#include "tile.h"
#include "tma_load.cuh"

enum {
  TILE_ROWS = 128,
  TILE_COLUMNS = 64,
  TILE_ELEMENTS = TILE_ROWS * TILE_COLUMNS,
  TILE_BYTES = TILE_ELEMENTS * 2,  // of f16, which the host handles as bits in uint16_t
  THREADS = 128,
  TILES_SHOWN = 8,
  CLOCKS_TO_LAND = 1000000,
};

// tiles: the tile of block (i, j) at index j * gridDim.x + i, packed, for the host to look at.
__global__ void __launch_bounds__(THREADS)
    load_tiles(const __grid_constant__ CUtensorMap map, uint16_t *tiles) {
  // The engine writes to addresses that are multiples of 128 bytes.
  __shared__ alignas(128) uint16_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;

  // 1. One thread makes the barrier: a phase takes one arrival. The fence shows it to the engine,
  //    __syncthreads() to the other threads.
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  // 2. One thread announces the bytes (that is the one arrival), then issues the copy. Coordinates
  //    count elements, columns first.
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    tma_load_2d(tile, &map, blockIdx.x * TILE_COLUMNS, blockIdx.y * TILE_ROWS, &barrier);
  }

  // 3. All threads wait until the first phase, of parity 0, completes. After the wait a thread sees
  //    the tile; reading it earlier gives whatever has landed so far.
  mbarrier_wait_parity(&barrier, 0);

  // 4. The tile is ordinary shared memory now, row after row without gaps.
  uint16_t *mine = tiles + (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * TILE_ELEMENTS;
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) mine[i] = tile[i];
}

// What must be found after each step. The last load is announced afterwards, the others before.
static const struct {
  const char *name;
  uint32_t phase, pending_arrivals;
  int32_t pending_bytes;  // below zero: more has landed than was announced
} expected_steps[] = {
    {"mbarrier_init", 0, 1, 0},           {"arrive_expect_tx", 0, 0, TILE_BYTES},
    {"load, wait for parity 0", 1, 1, 0}, {"arrive_expect_tx", 1, 0, TILE_BYTES},
    {"load, wait for parity 1", 2, 1, 0}, {"arrive_expect_tx", 2, 0, TILE_BYTES},
    {"load, wait for parity 0", 3, 1, 0}, {"load, not announced yet", 3, 1, -TILE_BYTES},
    {"arrive_expect_tx", 4, 1, 0},
};
enum { STEPS = sizeof expected_steps / sizeof expected_steps[0], LOAD_FIRST = STEPS - 2 };

typedef struct {
  bool complete[2];  // what a test for parity 0 and for parity 1 answers
  MbarrierState state;
} Step;

// The same load again and again in one thread, for as many steps as asked for; then a look at the
// barrier, which ends its life: hence one launch for each look. The barrier is never initialised a
// second time: when a phase completes, the next begins by itself.
__global__ void watch_barrier(const __grid_constant__ CUtensorMap map, int steps, Step *last) {
  __shared__ alignas(128) uint16_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;

  mbarrier_init(&barrier, 1);
  fence_mbarrier_init();
  for (int step = 1; step <= steps; step++) {
    uint32_t parity = (step - 1) / 2 & 1;
    bool load_first = step >= LOAD_FIRST;
    if ((step % 2 == 1) != load_first) {
      mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    } else {
      tma_load_2d(tile, &map, 0, 0, &barrier);
      if (load_first) {  // nobody has arrived: this wait gives up, long after the bytes have landed
        mbarrier_wait_parity_for(&barrier, parity, CLOCKS_TO_LAND);
      } else {
        mbarrier_wait_parity(&barrier, parity);
      }
    }
  }
  last->complete[0] = mbarrier_test_wait_parity(&barrier, 0);
  last->complete[1] = mbarrier_test_wait_parity(&barrier, 1);
  last->state = mbarrier_last_state(&barrier);
}

// Every element of a matrix of up to 65535 elements has a bit pattern of its own, and none is the
// zero that fills the outside. A copy moves bits, so some of them may well be NaN as halves.
static uint16_t element_at(long row, long column, long columns) {
  return (uint16_t)((row * columns + column) % 65535 + 1);
}

static void show_steps(const Step *steps) {
  printf("\n                          the current       pending   pending     complete?\n");
  printf("the barrier after         phase  parity    arrivals     bytes  parity 0  parity 1\n");
  for (int i = 0; i < STEPS; i++) {
    MbarrierState state = steps[i].state;
    uint32_t phase = expected_steps[i].phase, parity = phase & 1;
    printf("%-23s %7u %7u %11u %9d %9s %9s\n", expected_steps[i].name, phase, state.phase_parity,
           state.pending_arrivals, state.pending_bytes, steps[i].complete[0] ? "yes" : "no",
           steps[i].complete[1] ? "yes" : "no");
    check_that(state.phase_parity == parity && state.phase_arrivals == 1 &&
                   state.pending_arrivals == expected_steps[i].pending_arrivals &&
                   state.pending_bytes == expected_steps[i].pending_bytes,
               "step %d: the barrier must be in phase %u with %d bytes pending", i, phase,
               expected_steps[i].pending_bytes);
    // The phase before the current one is complete; for a fresh barrier that is parity 1.
    check_that(!steps[i].complete[parity] && steps[i].complete[!parity],
               "step %d: the unfinished phase must be the one of parity %u", i, parity);
  }
}

static void show_corner(const uint16_t *tiles, size_t t, unsigned tiles_across, long rows,
                        long columns) {
  int block_x = (int)(t % tiles_across), block_y = (int)(t / tiles_across);
  char title[64];
  snprintf(title, sizeof title, "shared memory of block (%d,%d), bits as numbers", block_x,
           block_y);
  TilePicture picture = {.title = title,
                         .type = ELEMENT_U16,
                         .data = tiles + t * TILE_ELEMENTS,
                         .rows = TILE_ROWS,
                         .columns = TILE_COLUMNS,
                         .first_row = block_y * TILE_ROWS,
                         .first_column = block_x * TILE_COLUMNS,
                         .tensor_rows = (int)rows,
                         .tensor_columns = (int)columns,
                         .shown_rows = 4,
                         .shown_columns = 8};
  tile_print(&picture);
}

int main(int argc, char **argv) {
  long rows = 256, columns = 192;
  Option options[] = {
      {"--rows", "rows of the matrix", &rows, 1, 1 << 16},
      {"--columns", "columns of the matrix, a multiple of 8", &columns, 1, 1 << 16},
  };
  program_begin("tma_load", argc, argv, options, 2);

  // 1. A matrix on the device, row after row.
  size_t matrix_elements = (size_t)rows * columns;
  uint16_t *matrix = (uint16_t *)malloc(matrix_elements * sizeof *matrix);
  for (long row = 0; row < rows; row++)
    for (long column = 0; column < columns; column++)
      matrix[row * columns + column] = element_at(row, column, columns);
  uint16_t *device_matrix;
  CUDA_CHECK(cudaMalloc(&device_matrix, matrix_elements * sizeof *matrix));
  CUDA_CHECK(
      cudaMemcpy(device_matrix, matrix, matrix_elements * sizeof *matrix, cudaMemcpyHostToDevice));

  // 2. The tensor map. Innermost dimension first: columns, then rows. The row pitch must be a
  //    multiple of 16 bytes, hence the multiple of 8 columns; tensor_map_encode says so otherwise.
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {(uint64_t)columns, (uint64_t)rows},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  CUtensorMap encoded = tensor_map_encode("matrix", &map);

  // 3. One block per tile, the last ones reaching over the edge where the tile does not divide.
  unsigned tiles_across = (unsigned)((columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
  unsigned tiles_down = (unsigned)((rows + TILE_ROWS - 1) / TILE_ROWS);
  size_t tile_count = (size_t)tiles_across * tiles_down;
  uint16_t *device_tiles;
  CUDA_CHECK(cudaMalloc(&device_tiles, tile_count * TILE_BYTES));
  printf("matrix %ldx%ld, tile %dx%d (%d bytes), %u x %u blocks of %d threads\n", rows, columns,
         TILE_ROWS, TILE_COLUMNS, TILE_BYTES, tiles_across, tiles_down, THREADS);
  load_tiles<<<dim3(tiles_across, tiles_down), THREADS>>>(encoded, device_tiles);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  // 4. Every element of every tile.
  uint16_t *tiles = (uint16_t *)malloc(tile_count * TILE_BYTES);
  uint16_t *expected = (uint16_t *)malloc(TILE_BYTES);
  CUDA_CHECK(cudaMemcpy(tiles, device_tiles, tile_count * TILE_BYTES, cudaMemcpyDeviceToHost));
  for (size_t t = 0; t < tile_count; t++) {
    long first_row = (long)(t / tiles_across) * TILE_ROWS;
    long first_column = (long)(t % tiles_across) * TILE_COLUMNS;
    for (long i = 0; i < TILE_ELEMENTS; i++) {
      long row = first_row + i / TILE_COLUMNS, column = first_column + i % TILE_COLUMNS;
      bool inside = row < rows && column < columns;
      expected[i] = inside ? element_at(row, column, columns) : 0;
    }
    char what[64];
    snprintf(what, sizeof what, "tile of block (%zu,%zu)", t % tiles_across, t / tiles_across);
    if (t == TILES_SHOWN) detail_begin();
    printf("%s from (%ld,%ld): first element %u, last %u\n", what, first_column, first_row,
           tiles[t * TILE_ELEMENTS], tiles[(t + 1) * TILE_ELEMENTS - 1]);
    check_tile(what, ELEMENT_U16, tiles + t * TILE_ELEMENTS, expected, TILE_ROWS, TILE_COLUMNS, 0);
  }
  if (tile_count > TILES_SHOWN) detail_end();
  size_t last = tile_count - 1;
  show_corner(tiles, last, tiles_across, rows, columns);
  if (last > 0) {
    detail_begin();
    for (size_t t = 0; t < last; t++) show_corner(tiles, t, tiles_across, rows, columns);
    detail_end();
  }

  // 5. The same copy once more, step by step.
  Step *device_step, steps[STEPS];
  CUDA_CHECK(cudaMalloc(&device_step, sizeof *device_step));
  for (int i = 0; i < STEPS; i++) {
    watch_barrier<<<1, 1>>>(encoded, i, device_step);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(&steps[i], device_step, sizeof steps[i], cudaMemcpyDeviceToHost));
  }
  show_steps(steps);

  return program_end("%zu tiles of %dx%d, every element; the barrier in %d steps", tile_count,
                     TILE_ROWS, TILE_COLUMNS, STEPS);
}
