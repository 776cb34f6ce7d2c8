// 04 store reduce, aside: one accumulation, written in five ways.
//
// Every block holds tiles of partial sums in shared memory and adds them to a large f32 array:
//
//   read-combine-write   ld, add, st by every thread: the sums travel twice, and no other block may
//                        touch the tile in the meantime
//   red                  one atomic add per float: data travels once, but takes one instruction
//                        per 4 bytes
//   red.v4               one per 16 bytes (sm_90)
//   bulk reduce          one instruction per tile, by one thread; the copy engine walks over the tile
//   tensor reduce        the same through a tensor map: tiles of a matrix, clipped at its edges
//
// The last three are tried again with the destination prefetched into L2. That matters when it is
// not there yet; README.md explains why, from the counters.
//
//   accumulate              64 KiB, each way checked
//   accumulate --bench      times on a GPU: table, and build/04_store_reduce/accumulate.csv
//   accumulate --profile    one launch of each way on 256 MiB, for ncu (bench.sh calls it)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tma_reduce.cuh"

enum {
  THREADS = 256,
  TILE_COLUMNS = 64,  // floats
  TILE_ROWS = 64,     // 16 KiB; --bench also varies it
  MOST_TILE_ROWS = 128,
  MATRIX_COLUMNS = 2 * TILE_COLUMNS,
  BLOCKS_PER_SM = 2,
  PREFETCH_BYTES = 16384,  // how far ahead of its additions a block prefetches
  RUNS = 7,
};

typedef enum {
  READ_COMBINE_WRITE,
  RED,
  RED_V4,
  BULK_REDUCE,
  TENSOR_REDUCE,
  RED_V4_PREFETCHED,
  BULK_REDUCE_PREFETCHED,
  TENSOR_REDUCE_PREFETCHED,
  WAYS
} Way;
static const char *const way_names[WAYS] = {"read-combine-write",
                                            "red",
                                            "red.v4",
                                            "bulk reduce",
                                            "tensor reduce",
                                            "red.v4, prefetched",
                                            "bulk reduce, prefetched",
                                            "tensor reduce, prefetched"};

static __device__ int tile_x(int tile) {
  return tile % (MATRIX_COLUMNS / TILE_COLUMNS) * TILE_COLUMNS;
}

static __device__ int tile_y(int tile, int tile_rows) {
  return tile / (MATRIX_COLUMNS / TILE_COLUMNS) * tile_rows;
}

// The matrix is MATRIX_COLUMNS wide; a tile of it is tile_rows rows of TILE_COLUMNS floats. Ways
// without a tensor map treat the tile's floats as consecutive: any tiling of the array will do.
// A block adds its tile of partial sums to every gridDim.x-th tile, `passes` times over.
__global__ void __launch_bounds__(THREADS)
    accumulate_kernel(const __grid_constant__ CUtensorMap matrix, float *sums, int tiles,
                      int tile_rows, int passes, Way way) {
  __shared__ __align__(128) float tile[MOST_TILE_ROWS * TILE_COLUMNS];
  int tile_floats = tile_rows * TILE_COLUMNS;
  int tile_bytes = tile_floats * 4;
  int prefetch_distance = PREFETCH_BYTES > tile_bytes ? PREFETCH_BYTES / tile_bytes : 1;
  for (int i = threadIdx.x; i < tile_floats; i += THREADS) tile[i] = (float)(1 + i % 61);
  fence_proxy_async();
  __syncthreads();

  bool by_engine = way == BULK_REDUCE || way == TENSOR_REDUCE || way == BULK_REDUCE_PREFETCHED ||
                   way == TENSOR_REDUCE_PREFETCHED;
  bool prefetched = way >= RED_V4_PREFETCHED;
  if (by_engine && threadIdx.x != 0) return;  // the engine does the rest

  for (int pass = 0; pass < passes; pass++) {
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      float *destination = sums + (size_t)t * tile_floats;
      int x = tile_x(t), y = tile_y(t, tile_rows);

      int ahead = t + prefetch_distance * gridDim.x;
      if (prefetched && threadIdx.x == 0 && ahead < tiles) {
        if (way == TENSOR_REDUCE_PREFETCHED) {
          tma_prefetch_2d(&matrix, tile_x(ahead), tile_y(ahead, tile_rows));
        } else {
          bulk_prefetch_l2(sums + (size_t)ahead * tile_floats, tile_bytes);
        }
      }
      switch (way) {
        case READ_COMBINE_WRITE:
          for (int i = threadIdx.x * 4; i < tile_floats; i += THREADS * 4) {
            float4 sum = *(float4 *)(destination + i), part = *(float4 *)(tile + i);
            sum.x += part.x;
            sum.y += part.y;
            sum.z += part.z;
            sum.w += part.w;
            *(float4 *)(destination + i) = sum;
          }
          break;
        case RED:
          for (int i = threadIdx.x; i < tile_floats; i += THREADS) {
            red_add_f32(destination + i, tile[i]);
          }
          break;
        case RED_V4:
        case RED_V4_PREFETCHED:
          for (int i = threadIdx.x * 4; i < tile_floats; i += THREADS * 4) {
            red_add_f32_v4(destination + i, *(float4 *)(tile + i));
          }
          if (prefetched) __syncthreads();  // keeps all warps close to the one that prefetches
          break;
        case BULK_REDUCE:
        case BULK_REDUCE_PREFETCHED:
          bulk_reduce_add_f32(destination, tile, tile_bytes);
          bulk_commit_group();
          break;
        case TENSOR_REDUCE:
        case TENSOR_REDUCE_PREFETCHED:
          tma_reduce_add_2d(&matrix, tile, x, y);
          bulk_commit_group();
          break;
        default:
          break;
      }
    }
  }
  // The tile must stay until the engine has read it. A kernel that fills another tile in the
  // meantime would wait for one free tile only, for example with bulk_wait_group_read<1>().
  if (by_engine) bulk_wait_group_read<0>();
}

static void accumulate(Way way, const CUtensorMap *matrix, float *sums, size_t bytes, int tile_rows,
                       int passes, int blocks) {
  int tiles = (int)(bytes / ((size_t)tile_rows * TILE_COLUMNS * 4));
  accumulate_kernel<<<blocks, THREADS>>>(*matrix, sums, tiles, tile_rows, passes, way);
  CUDA_CHECK(cudaGetLastError());
}

static CUtensorMap describe(float *sums, size_t bytes, int tile_rows) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                   .dimensions = 2,
                   .address = sums,
                   .size = {MATRIX_COLUMNS, bytes / 4 / MATRIX_COLUMNS},
                   .box = {TILE_COLUMNS, (uint32_t)tile_rows}};
  return tensor_map_encode("the matrix of sums", &map);
}

// What one pass of `way` adds to float number `index` of the array.
static float part_at(Way way, int tile_rows, size_t index) {
  bool tiled = way == TENSOR_REDUCE || way == TENSOR_REDUCE_PREFETCHED;
  size_t row_in_tile = index / MATRIX_COLUMNS % tile_rows;
  size_t in_tile = tiled ? row_in_tile * TILE_COLUMNS + index % TILE_COLUMNS
                         : index % ((size_t)tile_rows * TILE_COLUMNS);
  return (float)(1 + in_tile % 61);
}

// Compares `bytes` of the array, from float number `first` on, with the sum of `times` passes.
static void check_sums(Way way, int tile_rows, const float *sums, size_t first, size_t bytes,
                       int times) {
  float *got = (float *)malloc(bytes), *expected = (float *)malloc(bytes);
  if (got == NULL || expected == NULL) program_fail("no memory for %zu bytes", bytes);
  CUDA_CHECK(cudaMemcpy(got, sums + first, bytes, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < bytes / 4; i++) expected[i] = times * part_at(way, tile_rows, first + i);
  check_tile(way_names[way], ELEMENT_F32, got, expected, bytes / 4 / MATRIX_COLUMNS, MATRIX_COLUMNS,
             0);
  free(got);
  free(expected);
}

static int compare_floats(const void *a, const void *b) {
  float difference = *(const float *)a - *(const float *)b;
  return difference < 0 ? -1 : difference > 0;
}

// The median time of one pass, in microseconds. Small arrays get several passes in one launch, so
// that the launch itself does not dominate.
static float time_way(Way way, int tile_rows, float *sums, size_t bytes, int blocks) {
  CUtensorMap matrix = describe(sums, bytes, tile_rows);
  int passes = bytes < (size_t)1 << 30 ? (int)(((size_t)1 << 30) / bytes) : 1;
  cudaEvent_t start, end;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&end));
  CUDA_CHECK(cudaMemset(sums, 0, bytes));
  float times[RUNS];
  accumulate(way, &matrix, sums, bytes, tile_rows, passes, blocks);
  for (int run = 0; run < RUNS; run++) {
    CUDA_CHECK(cudaEventRecord(start, 0));
    accumulate(way, &matrix, sums, bytes, tile_rows, passes, blocks);
    CUDA_CHECK(cudaEventRecord(end, 0));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&times[run], start, end));
  }
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(end));
  size_t checked = bytes < (size_t)1 << 20 ? bytes : (size_t)1 << 20;
  check_sums(way, tile_rows, sums, 0, checked, passes * (RUNS + 1));
  check_sums(way, tile_rows, sums, (bytes - checked) / 4, checked, passes * (RUNS + 1));
  qsort(times, RUNS, sizeof times[0], compare_floats);
  return times[RUNS / 2] * 1000 / passes;
}

static float time_memcpy(float *to, const float *from, size_t bytes) {
  int copies = bytes < (size_t)1 << 30 ? (int)(((size_t)1 << 30) / bytes) : 1;
  cudaEvent_t start, end;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&end));
  float times[RUNS];
  for (int run = 0; run < RUNS; run++) {
    CUDA_CHECK(cudaEventRecord(start, 0));
    for (int i = 0; i < copies; i++) {
      CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, 0));
    }
    CUDA_CHECK(cudaEventRecord(end, 0));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&times[run], start, end));
  }
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(end));
  qsort(times, RUNS, sizeof times[0], compare_floats);
  return times[RUNS / 2] * 1000 / copies;
}

static FILE *csv_open(const char *path, const char *header) {
  FILE *file = fopen(path, "w");
  if (file == NULL) program_fail("cannot write %s: run 'make bench' at the top", path);
  fprintf(file, "%s\n", header);
  return file;
}

static int bench(void) {
  enum { SIZES = 6 };
  static const size_t megabytes[SIZES] = {8, 32, 64, 256, 1024, 4096};
  int sms;
  CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  size_t most = megabytes[SIZES - 1] << 20;
  float *sums, *other;
  CUDA_CHECK(cudaMalloc(&sums, most));
  CUDA_CHECK(cudaMalloc(&other, most));
  CUDA_CHECK(cudaMemset(other, 0, most));

  FILE *csv =
      csv_open("build/04_store_reduce/accumulate.csv", "blocks,MiB,way,us,GB/s,time over memcpy");
  // First all SMs; then only a few, so that the SM is the limit and not the memory.
  const int grids[] = {sms * BLOCKS_PER_SM, 8};
  for (int g = 0; g < 2; g++) {
    printf("\n%d blocks of %d threads, tiles of %d KiB. GB/s of sums added to\n%-26s", grids[g],
           THREADS, TILE_ROWS * TILE_COLUMNS * 4 >> 10, "");
    int sizes = g == 0 ? SIZES : 2;
    for (int s = 0; s < sizes; s++) printf(" %6zu MiB", megabytes[s]);
    printf("\n");
    float memcpy_us[SIZES];
    printf("%-26s", "cudaMemcpy, for scale");
    for (int s = 0; s < sizes; s++) {
      memcpy_us[s] = time_memcpy(sums, other, megabytes[s] << 20);
      double rate = (megabytes[s] << 20) / memcpy_us[s] * 1e-3;
      printf(" %10.0f", rate);
      fprintf(csv, "%d,%zu,cudaMemcpy,%.2f,%.0f,1.00\n", grids[g], megabytes[s], memcpy_us[s],
              rate);
    }
    printf("\n");
    for (int way = 0; way < WAYS; way++) {
      printf("%-26s", way_names[way]);
      for (int s = 0; s < sizes; s++) {
        size_t bytes = megabytes[s] << 20;
        float us = time_way((Way)way, TILE_ROWS, sums, bytes, grids[g]);
        printf(" %10.0f", bytes / us * 1e-3);
        fprintf(csv, "%d,%zu,\"%s\",%.2f,%.0f,%.2f\n", grids[g], megabytes[s], way_names[way], us,
                bytes / us * 1e-3, us / memcpy_us[s]);
      }
      printf("\n");
    }
  }
  fclose(csv);

  // The size of the tile, on 1024 MiB: one instruction for the engine, a loop for the threads.
  csv = csv_open("build/04_store_reduce/accumulate_tiles.csv", "KiB,way,GB/s");
  printf("\n1024 MiB, %d blocks, by size of tile. GB/s of sums added to\n%-26s", grids[0], "");
  for (int rows = 4; rows <= MOST_TILE_ROWS; rows *= 2) {
    printf(" %7d KiB", rows * TILE_COLUMNS * 4 >> 10);
  }
  printf("\n");
  for (int way = 0; way < WAYS; way++) {
    printf("%-26s", way_names[way]);
    for (int rows = 4; rows <= MOST_TILE_ROWS; rows *= 2) {
      float us = time_way((Way)way, rows, sums, (size_t)1 << 30, grids[0]);
      double rate = ((size_t)1 << 30) / us * 1e-3;
      printf(" %11.0f", rate);
      fprintf(csv, "%d,\"%s\",%.0f\n", rows * TILE_COLUMNS * 4 >> 10, way_names[way], rate);
    }
    printf("\n");
  }
  fclose(csv);
  return program_end("the first and last MiB of each array, and how long it took");
}

int main(int argc, char **argv) {
  long run_bench = 0, run_profile = 0;
  const Option options[] = {
      {"--bench", "measure time on a GPU", &run_bench, 0, 0},
      {"--profile", "launch each way once on 256 MiB, for ncu", &run_profile, 0, 0},
  };
  program_begin("accumulate", argc, argv, options, 2);
  if (run_bench) return bench();

  size_t bytes = run_profile ? (size_t)256 << 20 : (size_t)64 << 10;
  int tile_kib = TILE_ROWS * TILE_COLUMNS * 4 >> 10;
  int blocks = run_profile ? 132 * BLOCKS_PER_SM : 2;
  float *sums;
  CUDA_CHECK(cudaMalloc(&sums, bytes));
  CUtensorMap matrix = describe(sums, bytes, TILE_ROWS);
  for (int way = 0; way < WAYS; way++) {
    int passes = run_profile ? 1 : 2;
    CUDA_CHECK(cudaMemset(sums, 0, bytes));
    accumulate((Way)way, &matrix, sums, bytes, TILE_ROWS, passes, blocks);
    size_t checked = bytes < (size_t)1 << 20 ? bytes : (size_t)1 << 20;
    check_sums((Way)way, TILE_ROWS, sums, (bytes - checked) / 4, checked, passes);
    printf("%-26s %zu tiles of %d KiB added, %d times over\n", way_names[way],
           (bytes >> 10) / tile_kib, tile_kib, passes);
  }
  CUDA_CHECK(cudaFree(sums));
  return program_end("%d ways to add the same tiles, %s", WAYS,
                     run_profile ? "the last MiB of sums" : "every sum");
}
