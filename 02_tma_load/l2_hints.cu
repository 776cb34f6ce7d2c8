// 02 l2_hints: what the L2 promotion of a tensor map and the cache hint of a load are worth.
//
//   beside load_speed
//
// Two ways to tell the L2 cache what is coming. Neither changes a result.
//
//   L2 promotion   a field of the tensor map: on a miss, fetch at least 64, 128 or 256 bytes
//   cache hint     an operand of the load, made by createpolicy: evict_first for data that is read
//                  once, evict_last for data that is read again soon
//
// With --bench:
//   1. A 1 GiB matrix is read once, with boxes of narrow and wide rows, for each promotion.
//   2. A 24 MiB matrix is read again and again while a 1 GiB matrix streams through L2, with and
//      without hints.
// By default small matrices through every variant, compared with the host's sums.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_load.cuh"

enum {
  THREADS = 128,
  STAGES = 4,
  TILE_BYTES = 8192,
  COLUMNS = 8192,  // of bytes
  REPETITIONS = 7,
};

typedef enum { NO_HINT, EVICT_FIRST, EVICT_LAST, HINTS } Hint;

static __device__ uint64_t policy_of(Hint hint) {
  return hint == EVICT_FIRST ? l2_policy_evict_first() : l2_policy_evict_last();
}

static __device__ void start_load(const CUtensorMap *map, uint8_t *buffer, int tile, int across,
                                  int box_bytes, Hint hint, uint64_t *full) {
  int x = tile % across * box_bytes, y = tile / across * (TILE_BYTES / box_bytes);
  mbarrier_arrive_expect_tx(full, TILE_BYTES);
  if (hint == NO_HINT) {
    tma_load_2d(buffer, map, x, y, full);
  } else {
    tma_load_2d_cache_hint(buffer, map, x, y, full, policy_of(hint));
  }
}

// Reads every tile of a matrix and adds up the first word of each thread's 64 bytes.
__global__ void __launch_bounds__(THREADS)
    read_all(const __grid_constant__ CUtensorMap map, int tiles, int across, int box_bytes,
             Hint hint, uint32_t *sums) {
  __shared__ alignas(128) uint8_t ring[STAGES][TILE_BYTES];
  __shared__ uint64_t full[STAGES];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) mbarrier_init(&full[stage], 1);
    fence_mbarrier_init();
    for (int stage = 0; stage < STAGES; stage++) {
      int tile = blockIdx.x + stage * gridDim.x;
      if (tile < tiles) start_load(&map, ring[stage], tile, across, box_bytes, hint, &full[stage]);
    }
  }
  __syncthreads();
  uint32_t sum = 0;
  int count = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, count++) {
    int stage = count % STAGES;
    mbarrier_wait_parity(&full[stage], count / STAGES % 2);
    sum += *(const uint32_t *)&ring[stage][threadIdx.x * (TILE_BYTES / THREADS)];
    __syncthreads();
    int next = tile + STAGES * gridDim.x;
    if (threadIdx.x == 0 && next < tiles)
      start_load(&map, ring[stage], next, across, box_bytes, hint, &full[stage]);
  }
  atomicAdd(sums, sum);
}

typedef struct {
  uint32_t *memory;
  int rows;
} Matrix;

static uint32_t *device_sum;

static __global__ void fill(uint32_t *words, size_t count) {
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    words[i] = (uint32_t)i * 2654435761u;
}

static Matrix make_matrix(int rows) {
  Matrix matrix = {NULL, rows};
  size_t words = (size_t)rows * COLUMNS / 4;
  CUDA_CHECK(cudaMalloc(&matrix.memory, words * 4));
  fill<<<256, 256>>>(matrix.memory, words);
  CUDA_CHECK(cudaGetLastError());
  return matrix;
}

static void read_matrix(Matrix matrix, int box_bytes, CUtensorMapL2promotion promotion, Hint hint,
                        int blocks) {
  int box_rows = TILE_BYTES / box_bytes, across = COLUMNS / box_bytes;
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                   .dimensions = 2,
                   .address = matrix.memory,
                   .size = {COLUMNS, (uint64_t)matrix.rows},
                   .box = {(uint32_t)box_bytes, (uint32_t)box_rows},
                   .l2_promotion = promotion};
  read_all<<<blocks, THREADS>>>(tensor_map_encode("matrix", &map), across * matrix.rows / box_rows,
                                across, box_bytes, hint, device_sum);
  CUDA_CHECK(cudaGetLastError());
}

static const CUtensorMapL2promotion promotions[] = {
    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
static const char *const promotion_names[] = {"none", "64 bytes", "128 bytes", "256 bytes"};
static const int box_widths[] = {32, 64, 128, 256};
enum { PROMOTIONS = 4, WIDTHS = 4 };

// The sum of read_all, for any width of box: the words at which the threads look.
static uint32_t expected_sum(int rows, int box_bytes) {
  uint32_t sum = 0;
  int box_rows = TILE_BYTES / box_bytes;
  for (int first = 0; first < rows; first += box_rows)
    for (int x = 0; x < COLUMNS; x += box_bytes)
      for (int thread = 0; thread < THREADS; thread++) {
        int offset = thread * (TILE_BYTES / THREADS);
        size_t byte = (size_t)(first + offset / box_bytes) * COLUMNS + x + offset % box_bytes;
        sum += (uint32_t)(byte / 4) * 2654435761u;
      }
  return sum;
}

enum { CHECKED_ROWS = 256 };

static void check_small(void) {
  Matrix matrix = make_matrix(CHECKED_ROWS);
  for (int width = 0; width < WIDTHS; width++) {
    uint32_t expected = expected_sum(CHECKED_ROWS, box_widths[width]), sum;
    bool right = true;
    for (int promotion = 0; promotion < PROMOTIONS; promotion++)
      for (int hint = NO_HINT; hint < HINTS; hint++) {
        CUDA_CHECK(cudaMemset(device_sum, 0, sizeof sum));
        read_matrix(matrix, box_widths[width], promotions[promotion], (Hint)hint, 4);
        CUDA_CHECK(cudaMemcpy(&sum, device_sum, sizeof sum, cudaMemcpyDeviceToHost));
        right &=
            check_that(sum == expected, "boxes of %d bytes, promotion %s, hint %d: sum %u, not %u",
                       box_widths[width], promotion_names[promotion], hint, sum, expected);
      }
    printf("boxes of %3d bytes: %d promotions, %d hints: %s\n", box_widths[width], PROMOTIONS,
           HINTS, right ? "right" : "WRONG");
  }
}

static int compare_times(const void *a, const void *b) {
  float difference = *(const float *)a - *(const float *)b;
  return (difference > 0) - (difference < 0);
}

static FILE *open_table(const char *path, const char *header) {
  FILE *csv = fopen(path, "w");
  if (!csv) program_fail("cannot write %s: run it in the repository", path);
  fprintf(csv, "%s\n", header);
  return csv;
}

// The stream, in slices, and after each slice the whole small matrix: milliseconds for all of it.
static float time_with_reuse(Matrix stream, Matrix small, Hint of_stream, Hint of_small,
                             int blocks) {
  enum { SLICES = 16 };
  Matrix slice = {stream.memory, stream.rows / SLICES};
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  float times[REPETITIONS];
  for (int i = 0; i < REPETITIONS; i++) {
    CUDA_CHECK(cudaEventRecord(begin));
    for (int s = 0; s < SLICES; s++) {
      slice.memory = stream.memory + (size_t)s * slice.rows * COLUMNS / 4;
      read_matrix(slice, 256, CU_TENSOR_MAP_L2_PROMOTION_NONE, of_stream, blocks);
      read_matrix(small, 256, CU_TENSOR_MAP_L2_PROMOTION_NONE, of_small, blocks);
    }
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&times[i], begin, end));
  }
  qsort(times, REPETITIONS, sizeof times[0], compare_times);
  return times[REPETITIONS / 2];
}

static void bench(void) {
  enum { STREAM_ROWS = 131072, SMALL_ROWS = 3072 };  // 1 GiB and 24 MiB
  int multiprocessors;
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  int blocks = multiprocessors * 6;
  Matrix stream = make_matrix(STREAM_ROWS), small = make_matrix(SMALL_ROWS);

  FILE *csv =
      open_table("build/02_tma_load/l2_promotion.csv", "bytes in a row of the box,promotion,GB/s");
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  for (int width = 0; width < WIDTHS; width++)
    for (int promotion = 0; promotion < PROMOTIONS; promotion++) {
      float times[REPETITIONS];
      for (int i = 0; i < REPETITIONS; i++) {
        CUDA_CHECK(cudaEventRecord(begin));
        read_matrix(stream, box_widths[width], promotions[promotion], NO_HINT, blocks);
        CUDA_CHECK(cudaEventRecord(end));
        CUDA_CHECK(cudaEventSynchronize(end));
        CUDA_CHECK(cudaEventElapsedTime(&times[i], begin, end));
      }
      qsort(times, REPETITIONS, sizeof times[0], compare_times);
      double rate = (double)STREAM_ROWS * COLUMNS / times[REPETITIONS / 2] / 1e6;
      printf("boxes of %3d bytes, promotion %-9s %6.0f GB/s\n", box_widths[width],
             promotion_names[promotion], rate);
      fprintf(csv, "%d,%s,%.0f\n", box_widths[width], promotion_names[promotion], rate);
    }
  fclose(csv);

  csv = open_table("build/02_tma_load/l2_hints.csv", "the stream,the small matrix,ms");
  static const char *const names[] = {"no hint", "evict_first", "evict_last"};
  static const Hint pairs[][2] = {{NO_HINT, NO_HINT},
                                  {EVICT_FIRST, NO_HINT},
                                  {NO_HINT, EVICT_LAST},
                                  {EVICT_FIRST, EVICT_LAST},
                                  {EVICT_LAST, EVICT_FIRST}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    float ms = time_with_reuse(stream, small, pairs[i][0], pairs[i][1], blocks);
    printf("stream %-11s  small matrix %-11s %7.3f ms\n", names[pairs[i][0]], names[pairs[i][1]],
           ms);
    fprintf(csv, "%s,%s,%.3f\n", names[pairs[i][0]], names[pairs[i][1]], ms);
  }
  fclose(csv);
}

int main(int argc, char **argv) {
  long timed = 0;
  Option options[] = {{"--bench", "time it, and write tables as CSV", &timed, 0, 0}};
  program_begin("l2_hints", argc, argv, options, 1);
  CUDA_CHECK(cudaMalloc(&device_sum, sizeof *device_sum));
  if (timed) {
    bench();
    return program_end("times for %d promotions, and for pairs of %d hints", PROMOTIONS, HINTS);
  }
  check_small();
  return program_end("%d KiB through every variant, the sum of each", CHECKED_ROWS * COLUMNS >> 10);
}
