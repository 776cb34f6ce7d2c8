// 02 overlap: copy and compute at the same time, and what it is worth.
//
//   beside load_speed, which only copies
//
// A block takes tile after tile and computes with each. With one buffer it must wait for every tile:
//
//     copy     =1=       =2=       =3=
//     compute     =1=       =2=       =3=          time = copies + computation
//
// With two or more buffers the next tile is on its way while the threads compute:
//
//     copy     =1==2==3=
//     compute     =1==2==3=                        time = the longer of the two
//
// The copy engine needs no thread for this: thread 0 issues the next load and computes on.
//
// By default a few tiles, compared with the host's result. With --bench the time of the copies alone,
// of the computation alone, and of both with one, two and four buffers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_load.cuh"

enum {
  TILE_ROWS = 32,
  TILE_COLUMNS = 128,
  TILE_ELEMENTS = TILE_ROWS * TILE_COLUMNS,
  TILE_BYTES = TILE_ELEMENTS * 4,
  THREADS = 256,
  MOST_STAGES = 4,
  SHARED_BYTES = MOST_STAGES * TILE_BYTES + 128,  // 128: to round the address up
  REPETITIONS = 7,
};

// What is done with a value, as often as `work` says. Each step depends on the one before.
static __host__ __device__ uint32_t work_on(uint32_t sum, uint32_t value, int work) {
  for (int i = 0; i < work; i++) sum = sum * 1664525u + value;
  return sum;
}

static __device__ void start_load(const CUtensorMap *map, uint32_t *buffer, int tile,
                                  uint64_t *full) {
  mbarrier_arrive_expect_tx(full, TILE_BYTES);
  tma_load_2d(buffer, map, 0, tile * TILE_ROWS, full);
}

// The block takes tiles blockIdx.x, blockIdx.x + gridDim.x and so on. loads == false: only the first
// tiles are loaded, and used again and again.
__global__ void __launch_bounds__(THREADS)
    process(const __grid_constant__ CUtensorMap map, int tiles, int stages, bool loads, int work,
            uint32_t *sums) {
  extern __shared__ uint8_t dynamic[];
  __shared__ uint64_t full[MOST_STAGES];
  uint32_t *ring = (uint32_t *)(((uintptr_t)dynamic + 127) / 128 * 128);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; stage++) mbarrier_init(&full[stage], 1);
    fence_mbarrier_init();
    for (int stage = 0; stage < stages; stage++) {
      int tile = blockIdx.x + stage * gridDim.x;
      if (tile < tiles) start_load(&map, ring + stage * TILE_ELEMENTS, tile, &full[stage]);
    }
  }
  __syncthreads();

  uint32_t sum = 0;
  int count = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, count++) {
    int stage = count % stages, use = count / stages;
    uint32_t *buffer = ring + stage * TILE_ELEMENTS;
    if (loads || use == 0) mbarrier_wait_parity(&full[stage], use % 2);
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) sum = work_on(sum, buffer[i], work);
    __syncthreads();  // everybody has read the buffer: it may be filled again
    int next = tile + stages * gridDim.x;
    if (loads && threadIdx.x == 0 && next < tiles) start_load(&map, buffer, next, &full[stage]);
  }
  sums[blockIdx.x * THREADS + threadIdx.x] = sum;
}

static CUtensorMap map;
static uint32_t *device_sums;

static void launch(int blocks, int tiles, int stages, bool loads, int work) {
  process<<<blocks, THREADS, SHARED_BYTES>>>(map, tiles, stages, loads, work, device_sums);
  CUDA_CHECK(cudaGetLastError());
}

static uint32_t element_at(size_t i) { return (uint32_t)i * 2654435761u; }

static void upload(int tiles, int blocks) {
  size_t elements = (size_t)tiles * TILE_ELEMENTS;
  uint32_t *matrix = (uint32_t *)malloc(elements * 4);
  for (size_t i = 0; i < elements; i++) matrix[i] = element_at(i);
  TensorMap description = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                           .dimensions = 2,
                           .size = {TILE_COLUMNS, (uint64_t)tiles * TILE_ROWS},
                           .box = {TILE_COLUMNS, TILE_ROWS}};
  CUDA_CHECK(cudaMalloc(&description.address, elements * 4));
  CUDA_CHECK(cudaMemcpy(description.address, matrix, elements * 4, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMalloc(&device_sums, (size_t)blocks * THREADS * 4));
  CUDA_CHECK(
      cudaFuncSetAttribute(process, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  map = tensor_map_encode("matrix", &description);
  free(matrix);
}

enum { CHECKED_TILES = 10 };

static void check_small(void) {
  enum { BLOCKS = 2, WORK = 3 };
  upload(CHECKED_TILES, BLOCKS);
  static uint32_t sums[BLOCKS * THREADS], expected[BLOCKS * THREADS];
  for (int i = 0; i < BLOCKS * THREADS; i++) {
    for (int tile = i / THREADS; tile < CHECKED_TILES; tile += BLOCKS)
      for (int j = i % THREADS; j < TILE_ELEMENTS; j += THREADS)
        expected[i] = work_on(expected[i], element_at((size_t)tile * TILE_ELEMENTS + j), WORK);
  }
  for (int stages = 1; stages <= MOST_STAGES; stages *= 2) {
    launch(BLOCKS, CHECKED_TILES, stages, true, WORK);
    CUDA_CHECK(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
    bool right = check_tile("sums", ELEMENT_U32, sums, expected, BLOCKS, THREADS, 0);
    printf("%d buffer%s %s\n", stages, stages == 1 ? ": " : "s:", right ? "right" : "WRONG");
  }
}

static int compare_times(const void *a, const void *b) {
  float difference = *(const float *)a - *(const float *)b;
  return (difference > 0) - (difference < 0);
}

// Median, in microseconds.
static float time_of(int blocks, int tiles, int stages, bool loads, int work) {
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  float times[REPETITIONS];
  for (int i = 0; i < REPETITIONS; i++) {
    launch(blocks, tiles, stages, loads, work);  // warms up
    CUDA_CHECK(cudaEventRecord(begin));
    launch(blocks, tiles, stages, loads, work);
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&times[i], begin, end));
  }
  qsort(times, REPETITIONS, sizeof times[0], compare_times);
  return times[REPETITIONS / 2] * 1000;
}

// One block on each SM; 512 MiB, more than L2 holds. The work is chosen so that the computation alone
// takes as long as the copies alone: then the overlap is worth the most.
static void bench(void) {
  enum { TILES = 32768 };
  int blocks;
  CUDA_CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
  upload(TILES, blocks);
  float copies = time_of(blocks, TILES, MOST_STAGES, true, 1);
  int work = 1;
  while (work < 64 && time_of(blocks, TILES, MOST_STAGES, false, work) < copies) work++;
  float computation = time_of(blocks, TILES, MOST_STAGES, false, work);

  FILE *csv = fopen("build/02_tma_load/overlap.csv", "w");
  if (!csv) program_fail("cannot write build/02_tma_load/overlap.csv: run it in the repository");
  fprintf(csv, "what,us,of the sum\n");
  struct {
    const char *name;
    float us;
  } rows[] = {
      {"copies alone (four buffers; one step of work)", copies},
      {"computation alone", computation},
      {"both, one buffer", time_of(blocks, TILES, 1, true, work)},
      {"both, two buffers", time_of(blocks, TILES, 2, true, work)},
      {"both, four buffers", time_of(blocks, TILES, 4, true, work)},
  };
  printf("%d steps of work for each element\n", work);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    double share = rows[i].us / (copies + computation);
    printf("%-46s %8.1f us  %.2f\n", rows[i].name, rows[i].us, share);
    fprintf(csv, "\"%s\",%.1f,%.2f\n", rows[i].name, rows[i].us, share);
  }
  fclose(csv);
}

int main(int argc, char **argv) {
  long timed = 0;
  Option options[] = {{"--bench", "time it, and write a table as CSV", &timed, 0, 0}};
  program_begin("overlap", argc, argv, options, 1);
  if (timed) {
    bench();
    return program_end("times of copies and computation");
  }
  check_small();
  return program_end("%d tiles through up to %d buffers, every thread's sum", CHECKED_TILES,
                     MOST_STAGES);
}
