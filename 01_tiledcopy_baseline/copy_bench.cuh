/* copy_bench.cuh: times ways to copy a matrix of halves, tile by tile, against cudaMemcpy.
 *
 * What chapters 01 to 03 have in common when they measure. A way is a function that launches the
 * copy; the bench checks that it copies everything, then times all ways in turn, five rounds, and
 * takes the median of each: a clock that changes meanwhile meets all of them alike.
 * "GB/s" counts bytes read and bytes written. */
#ifndef TILEDCOPY_BASELINE_COPY_BENCH_CUH
#define TILEDCOPY_BASELINE_COPY_BENCH_CUH

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"

typedef struct {
  const uint16_t *source;
  uint16_t *destination;
  long rows, columns; /* every tile size used divides both */
} CopyJob;

typedef struct CopyWay {
  const char *name;
  int tile_rows, tile_columns; /* 0: no tiles */
  /* Once per matrix, before it is timed; may be NULL. */
  void (*prepare)(const CopyJob *job, struct CopyWay *way);
  void (*launch)(const CopyJob *job, const struct CopyWay *way);
  void (*kernel)(void); /* whatever launch needs */
} CopyWay;

enum { COPY_BENCH_ROUNDS = 5, COPY_BENCH_COLUMNS = 8192, COPY_BENCH_MOST_WAYS = 64 };

/* Blocks of 256 threads for this many words, at least eight words each. */
static unsigned copy_bench_grid(size_t words) {
  size_t blocks = (words + 256 * 8 - 1) / (256 * 8);
  return blocks < 4096 ? (unsigned)blocks : 4096;
}

static void copy_with_memcpy(const CopyJob *job, const CopyWay *way) {
  (void)way;
  CUDA_CHECK(cudaMemcpyAsync(job->destination, job->source,
                             sizeof(uint16_t) * job->rows * job->columns,
                             cudaMemcpyDeviceToDevice));
}

/* Words that differ from their neighbours, and between any two rows. */
static __global__ void copy_bench_fill(uint32_t *words, size_t count) {
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = (uint32_t)i * 2654435761u + 1;
  }
}

static __global__ void copy_bench_compare(const uint32_t *words, size_t count,
                                          unsigned long long *wrong) {
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    if (words[i] != (uint32_t)i * 2654435761u + 1) atomicAdd(wrong, 1);
  }
}

static void copy_bench_name(const CopyWay *way, char *text, size_t text_bytes) {
  if (way->tile_rows) {
    snprintf(text, text_bytes, "%dx%d", way->tile_rows, way->tile_columns);
  } else {
    snprintf(text, text_bytes, "-");
  }
}

static CopyJob copy_bench_make(long rows, long columns) {
  CopyJob job = {NULL, NULL, rows, columns};
  size_t bytes = sizeof(uint16_t) * rows * columns;
  uint16_t *source;
  CUDA_CHECK(cudaMalloc(&source, bytes));
  CUDA_CHECK(cudaMalloc(&job.destination, bytes));
  copy_bench_fill<<<copy_bench_grid(bytes / 4), 256>>>((uint32_t *)source, bytes / 4);
  CUDA_CHECK(cudaGetLastError());
  job.source = source;
  return job;
}

static void copy_bench_free(CopyJob *job) {
  CUDA_CHECK(cudaFree((void *)job->source));
  CUDA_CHECK(cudaFree(job->destination));
}

/* Copies once and looks at every word. */
static bool copy_bench_check(const CopyJob *job, CopyWay *way) {
  size_t bytes = sizeof(uint16_t) * job->rows * job->columns;
  unsigned long long *device_wrong, wrong;
  CUDA_CHECK(cudaMalloc(&device_wrong, sizeof wrong));
  CUDA_CHECK(cudaMemset(device_wrong, 0, sizeof wrong));
  CUDA_CHECK(cudaMemset(job->destination, 0, bytes));
  if (way->prepare) way->prepare(job, way);
  way->launch(job, way);
  CUDA_CHECK(cudaGetLastError());
  copy_bench_compare<<<copy_bench_grid(bytes / 4), 256>>>((uint32_t *)job->destination, bytes / 4,
                                                          device_wrong);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(&wrong, device_wrong, sizeof wrong, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_wrong));
  char tile[32];
  copy_bench_name(way, tile, sizeof tile);
  return check_that(wrong == 0, "%s, tile %s: %llu of %zu words are wrong", way->name, tile, wrong,
                    bytes / 4);
}

/* Default run: every way on a small matrix. A line lists the tiles with which one way was right. */
static void copy_bench_small(CopyWay *ways, int count) {
  CopyJob job = copy_bench_make(128, 256);
  printf("%-18s right with tiles of\n", "way to copy");
  for (int i = 0; i < count; i++) {
    char tile[32];
    copy_bench_name(&ways[i], tile, sizeof tile);
    if (i == 0 || strcmp(ways[i].name, ways[i - 1].name) != 0) printf("%-18s", ways[i].name);
    if (copy_bench_check(&job, &ways[i])) printf(" %s", tile);
    if (i == count - 1 || strcmp(ways[i].name, ways[i + 1].name) != 0) printf("\n");
  }
  copy_bench_free(&job);
}

static int copy_bench_compare_times(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static void copy_bench_size(FILE *csv, long mebibytes, CopyWay *ways, int count) {
  size_t bytes = (size_t)mebibytes << 20;
  CopyJob job = copy_bench_make((long)(bytes / 2 / COPY_BENCH_COLUMNS), COPY_BENCH_COLUMNS);
  /* About 4 GiB for each timing, so that it lasts milliseconds. */
  int repetitions = mebibytes >= 4096 ? 1 : (int)(4096 / mebibytes);
  static float times[COPY_BENCH_MOST_WAYS][COPY_BENCH_ROUNDS];
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  for (int i = 0; i < count; i++) copy_bench_check(&job, &ways[i]);
  for (int round = 0; round < COPY_BENCH_ROUNDS; round++) {
    for (int i = 0; i < count; i++) {
      if (ways[i].prepare) ways[i].prepare(&job, &ways[i]);
      ways[i].launch(&job, &ways[i]); /* warm-up */
      CUDA_CHECK(cudaEventRecord(begin));
      for (int r = 0; r < repetitions; r++) ways[i].launch(&job, &ways[i]);
      CUDA_CHECK(cudaEventRecord(end));
      CUDA_CHECK(cudaEventSynchronize(end));
      CUDA_CHECK(cudaEventElapsedTime(&times[i][round], begin, end));
    }
  }
  float memcpy_time = 0;
  for (int i = 0; i < count; i++) {
    qsort(times[i], COPY_BENCH_ROUNDS, sizeof times[i][0], copy_bench_compare_times);
    float milliseconds = times[i][COPY_BENCH_ROUNDS / 2] / (float)repetitions;
    if (i == 0) memcpy_time = milliseconds;
    char tile[32];
    copy_bench_name(&ways[i], tile, sizeof tile);
    double gigabytes_per_second = 2.0 * (double)bytes / milliseconds * 1e-6;
    printf("%5ld MiB  %-24s %-7s %10.1f us %7.0f GB/s  %5.3f of cudaMemcpy\n", mebibytes,
           ways[i].name, tile, milliseconds * 1e3, gigabytes_per_second,
           memcpy_time / milliseconds);
    fprintf(csv, "%ld MiB,%s,%s,%.1f,%.0f,%.3f\n", mebibytes, ways[i].name, tile,
            milliseconds * 1e3, gigabytes_per_second, memcpy_time / milliseconds);
  }
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
  copy_bench_free(&job);
}

/* ways[0] is cudaMemcpy, which the ratio is taken to. */
static void copy_bench_run(const char *csv_path, CopyWay *ways, int count) {
  static const long sizes[] = {16, 64, 256, 1024, 4096};
  FILE *csv = fopen(csv_path, "w");
  if (!csv) program_fail("cannot write %s: run this in the root of the repository", csv_path);
  fprintf(csv, "size,way,tile,us,GB/s,of cudaMemcpy\n");
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    copy_bench_size(csv, sizes[i], ways, count);
  }
  fclose(csv);
}

#endif
