// 06 swizzle 3d, aside: several 2D boxes compared with one 3D box.
//
// A tile of rows of 512 bytes does not fit a 128-byte swizzle in one 2D box. There are two
// ways to fetch it in groups of 128 bytes:
//
//   2D   four copies, one for each group, each with its column:  tma_load_2d(..., x + 64 * g, y)
//   3D   one copy of a box (group, row, column), as in swizzle_3d.cu
//
// Both bring the same bytes to the same addresses, which this program checks. They differ in how many
// instructions the thread issues; --bench measures whether that costs time.
//
//   boxes             one tile per block both ways, compared byte by byte; prints which element of
//                     the tensor begins each group in shared memory
//   boxes --bench     times on a GPU: table, and build/06_swizzle_3d/boxes.csv
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "swizzle.h"
#include "tensor_map.h"

enum {
  GROUPS = 4,
  GROUP_COLUMNS = 64,  // two-byte elements: 128 bytes
  TILE_COLUMNS = GROUPS * GROUP_COLUMNS,
  MOST_TILE_ROWS = 64,
  STAGES = 4,
  RUNS = 7,
  ALIGNMENT = 1024,
};

typedef struct {
  CUtensorMap two_dimensions, three_dimensions;
} Maps;

static __device__ uint8_t *aligned_stage(uint8_t *buffers, int stage, uint32_t tile_bytes) {
  // extern __shared__ is only aligned to 16 bytes: round the address up, and ask for the slack.
  uint32_t misplaced = shared_address(buffers) % ALIGNMENT;
  return buffers + (misplaced ? ALIGNMENT - misplaced : 0) + stage * tile_bytes;
}

static __device__ void load_tile(const Maps *maps, bool one_box, uint8_t *tile, int x, int y,
                                 int tile_rows, uint64_t *full) {
  mbarrier_arrive_expect_tx(full, tile_rows * TILE_COLUMNS * 2);
  if (one_box) {
    tma_load_3d(tile, &maps->three_dimensions, 0, y, x / GROUP_COLUMNS, full);
    return;
  }
  for (int group = 0; group < GROUPS; group++) {
    tma_load_2d(tile + group * tile_rows * GROUP_COLUMNS * 2, &maps->two_dimensions,
                x + group * GROUP_COLUMNS, y, full);
  }
}

// Each block loads every gridDim.x-th tile through a ring of STAGES buffers, `passes` times over the
// tensor, and copies the last tile out. No thread reads the others, because only the loading
// is measured.
__global__ void load_kernel(const __grid_constant__ Maps maps, bool one_box, int tensor_tiles,
                            int passes, int tiles_across, int tile_rows, uint32_t *dump) {
  extern __shared__ uint8_t buffers[];
  __shared__ uint64_t full[STAGES];
  uint32_t tile_bytes = tile_rows * TILE_COLUMNS * 2;
  int tiles = tensor_tiles * passes;
  int mine = (tiles - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) mbarrier_init(&full[s], 1);
    fence_mbarrier_init();
    for (int i = 0; i < mine; i++) {
      int t = (blockIdx.x + i * gridDim.x) % tensor_tiles;
      if (i >= STAGES) mbarrier_wait_parity(&full[i % STAGES], (i / STAGES - 1) % 2);
      load_tile(&maps, one_box, aligned_stage(buffers, i % STAGES, tile_bytes),
                t % tiles_across * TILE_COLUMNS, t / tiles_across * tile_rows, tile_rows,
                &full[i % STAGES]);
    }
  }
  __syncthreads();
  for (int i = mine > STAGES ? mine - STAGES : 0; i < mine; i++) {
    mbarrier_wait_parity(&full[i % STAGES], i / STAGES % 2);
  }
  if (mine == 0) return;
  uint32_t *last = (uint32_t *)aligned_stage(buffers, (mine - 1) % STAGES, tile_bytes);
  for (uint32_t i = threadIdx.x; i < tile_bytes / 4; i += blockDim.x) {
    dump[blockIdx.x * (tile_bytes / 4) + i] = last[i];
  }
}

static Maps describe(uint16_t *tensor, int rows, int columns, int tile_rows) {
  TensorMap two_dimensions = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                              .dimensions = 2,
                              .address = tensor,
                              .size = {(uint64_t)columns, (uint64_t)rows},
                              .box = {GROUP_COLUMNS, (uint32_t)tile_rows},
                              .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  TensorMap three_dimensions = {
      .type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      .dimensions = 3,
      .address = tensor,
      .size = {GROUP_COLUMNS, (uint64_t)rows, (uint64_t)columns / GROUP_COLUMNS},
      .stride_bytes = {(uint64_t)columns * 2, GROUP_COLUMNS * 2},
      .box = {GROUP_COLUMNS, (uint32_t)tile_rows, GROUPS},
      .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  Maps maps = {tensor_map_encode("2D boxes", &two_dimensions),
               tensor_map_encode("one 3D box", &three_dimensions)};
  return maps;
}

static void load(const Maps *maps, bool one_box, int tensor_tiles, int passes, int tiles_across,
                 int tile_rows, uint32_t *dump, int blocks) {
  int shared_bytes = STAGES * tile_rows * TILE_COLUMNS * 2 + ALIGNMENT;
  CUDA_CHECK(cudaFuncSetAttribute((const void *)load_kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  load_kernel<<<blocks, 32, shared_bytes>>>(*maps, one_box, tensor_tiles, passes, tiles_across,
                                            tile_rows, dump);
  CUDA_CHECK(cudaGetLastError());
}

// ---- The check: each block one tile, as in swizzle_3d.cu ----

static void check_both(int tile_rows) {
  const int across = 2, down = 2, tile_count = across * down;
  int rows = down * tile_rows, columns = across * TILE_COLUMNS;
  size_t bytes = (size_t)rows * columns * 2;
  uint16_t *host = (uint16_t *)malloc(bytes), *got = (uint16_t *)malloc(bytes),
           *expected = (uint16_t *)malloc(bytes);
  if (host == NULL || got == NULL || expected == NULL) program_fail("no memory for the tiles");
  for (size_t i = 0; i < bytes / 2; i++) host[i] = (uint16_t)i;  // each element has its own number
  for (int t = 0; t < tile_count; t++) {
    for (int row = 0; row < tile_rows; row++) {
      for (int column = 0; column < TILE_COLUMNS; column++) {
        uint32_t place =
            swizzle_tile_address(SWIZZLE_128B, 0, column / GROUP_COLUMNS * tile_rows + row,
                                 column % GROUP_COLUMNS * 2, GROUP_COLUMNS * 2);
        expected[t * tile_rows * TILE_COLUMNS + place / 2] =
            host[(t / across * tile_rows + row) * columns + t % across * TILE_COLUMNS + column];
      }
    }
  }
  uint16_t *tensor;
  uint32_t *dump;
  CUDA_CHECK(cudaMalloc(&tensor, bytes));
  CUDA_CHECK(cudaMalloc(&dump, bytes));
  CUDA_CHECK(cudaMemcpy(tensor, host, bytes, cudaMemcpyHostToDevice));
  Maps maps = describe(tensor, rows, columns, tile_rows);
  printf("\ntile of %2d rows of %d bytes            byte:", tile_rows, TILE_COLUMNS * 2);
  for (int group = 0; group < GROUPS; group++)
    printf(" %8d", group * tile_rows * GROUP_COLUMNS * 2);
  printf("\n");
  for (int one_box = 0; one_box < 2; one_box++) {
    CUDA_CHECK(cudaMemset(dump, 0xFF, bytes));
    load(&maps, one_box, tile_count, 1, across, tile_rows, dump, tile_count);
    CUDA_CHECK(cudaMemcpy(got, dump, bytes, cudaMemcpyDeviceToHost));
    char what[32];
    snprintf(what, sizeof what, one_box ? "1 copy of a 3D box" : "%d copies of 2D boxes", GROUPS);
    printf("  %-22s holds (row,column)", what);
    for (int group = 0; group < GROUPS; group++) {
      int element = got[group * tile_rows * GROUP_COLUMNS];
      char place[32];
      snprintf(place, sizeof place, "(%d,%d)", element / columns, element % columns);
      printf(" %8s", place);
    }
    printf("\n");
    check_tile(what, ELEMENT_U16, got, expected, tile_count * tile_rows, TILE_COLUMNS, 0);
  }
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(dump));
  free(host);
  free(got);
  free(expected);
}

// ---- The measurement ----

static int compare_floats(const void *a, const void *b) {
  float difference = *(const float *)a - *(const float *)b;
  return difference < 0 ? -1 : difference > 0;
}

static FILE *csv_open(const char *path, const char *header) {
  FILE *file = fopen(path, "w");
  if (file == NULL) program_fail("cannot write %s: run 'make bench' at the top", path);
  fprintf(file, "%s\n", header);
  return file;
}

static int bench(void) {
  const int matrix_columns = 8192;
  int sms;
  CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  static const size_t megabytes[] = {16, 1024};
  static const int heights[] = {1, 2, 4, 8, 16, 64};
  uint16_t *tensor;
  uint32_t *dump;
  CUDA_CHECK(cudaMalloc(&tensor, megabytes[1] << 20));
  CUDA_CHECK(cudaMemset(tensor, 0, megabytes[1] << 20));
  CUDA_CHECK(cudaMalloc(&dump, (size_t)sms * MOST_TILE_ROWS * TILE_COLUMNS * 2));
  cudaEvent_t start, end;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&end));
  FILE *csv = csv_open("build/06_swizzle_3d/boxes.csv",
                       "tensor MiB,tile rows,tile bytes,2D boxes GB/s,3D box GB/s,3D over 2D");
  for (int m = 0; m < 2; m++) {
    int passes = (int)(megabytes[1] / megabytes[m]);  // one GiB in all for every size
    printf("\ntensor of %zu MiB, one block per SM, %d stages, GB/s loaded\n", megabytes[m], STAGES);
    printf("  tile               four 2D boxes   one 3D box   3D over 2D\n");
    for (int h = 0; h < (int)(sizeof heights / sizeof heights[0]); h++) {
      int rows = (int)((megabytes[m] << 20) / (matrix_columns * 2));
      int tiles_across = matrix_columns / TILE_COLUMNS;
      int tiles = rows / heights[h] * tiles_across;
      Maps maps = describe(tensor, rows, matrix_columns, heights[h]);
      double rate[2];
      for (int one_box = 0; one_box < 2; one_box++) {
        float times[RUNS];
        for (int run = -1; run < RUNS; run++) {
          CUDA_CHECK(cudaEventRecord(start, 0));
          load(&maps, one_box, tiles, passes, tiles_across, heights[h], dump, sms);
          CUDA_CHECK(cudaEventRecord(end, 0));
          CUDA_CHECK(cudaEventSynchronize(end));
          if (run >= 0) CUDA_CHECK(cudaEventElapsedTime(&times[run], start, end));
        }
        qsort(times, RUNS, sizeof times[0], compare_floats);
        rate[one_box] = (megabytes[1] << 20) / times[RUNS / 2] * 1e-6;
      }
      int tile_bytes = heights[h] * TILE_COLUMNS * 2;
      printf("  %2d x %d bytes %9.0f %14.0f %12.2f\n", heights[h], TILE_COLUMNS * 2, rate[0],
             rate[1], rate[1] / rate[0]);
      fprintf(csv, "%zu,%d,%d,%.0f,%.0f,%.2f\n", megabytes[m], heights[h], tile_bytes, rate[0],
              rate[1], rate[1] / rate[0]);
    }
  }
  fclose(csv);
  return program_end("how long both ways took; the bytes are checked without --bench");
}

int main(int argc, char **argv) {
  long run_bench = 0;
  const Option options[] = {{"--bench", "measure time on a GPU", &run_bench, 0, 0}};
  program_begin("boxes", argc, argv, options, 1);
  if (run_bench) return bench();
  static const int heights[] = {8, 32};
  enum { HEIGHTS = sizeof heights / sizeof heights[0] };
  for (int h = 0; h < HEIGHTS; h++) check_both(heights[h]);
  printf("\n");
  return program_end("tiles of %d and %d rows, both ways the same bytes, where swizzle.h puts them",
                     heights[0], heights[HEIGHTS - 1]);
}
