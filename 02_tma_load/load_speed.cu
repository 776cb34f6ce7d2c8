// 02 tma_load, side program load_speed: TMA on the way in, threads on the way out.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// The copies of chapter 01's copy_speed, with the fetch done by TMA in two ways:
//
//   tma one stage    one block per tile: load, wait, write out. Overlap comes only from the other
//                    blocks that the multiprocessor holds.
//   tma ring         blocks that stay and take tile after tile through several buffers: while the
//                    threads write one tile out, the next ones are on their way.
//
//   tile      0      1      2      3      4      5  ...
//   stage     0      1      2      3      0      1  ...      the buffer
//   use       0      0      0      0      1      1  ...      rounds of the ring so far; a wait is
//                                                            for parity use & 1
//
// By default a small matrix, to see that everything is copied; with --bench the table. Chapter 03
// has TMA on both ways, and all ways in one table.
#include "../01_tiledcopy_baseline/copy_bench.cuh"
#include "../01_tiledcopy_baseline/tiledcopy.cuh"
#include "tensor_map.h"
#include "tma_load.cuh"

enum {
  THREADS = TILEDCOPY_THREADS,
  MOST_STAGES = 8,
  RING_BYTES = 64 * 1024,  // of shared memory for the buffers of a block, if the tile allows
  TILE_ALIGNMENT = 128,
};

typedef void (*LoadKernel)(const CUtensorMap, uint16_t *, size_t, unsigned, unsigned, int);

static __device__ uint16_t *align_up(uint8_t *pointer) {
  uintptr_t mask = TILE_ALIGNMENT - 1;
  return (uint16_t *)(((uintptr_t)pointer + mask) & ~mask);
}

// What every kernel below does: the block takes tiles blockIdx.x, blockIdx.x + gridDim.x, and so on,
// through `stages` buffers; with one stage, one tile. `rows` and `columns` are constants there.
static __device__ __forceinline__ void copy_tiles(const CUtensorMap *map, uint16_t *destination,
                                                  size_t pitch, unsigned tiles_across,
                                                  unsigned tile_count, int stages, unsigned rows,
                                                  unsigned columns) {
  extern __shared__ uint8_t dynamic[];
  __shared__ uint64_t full[MOST_STAGES];
  uint16_t *ring = align_up(dynamic);
  const uint32_t tile_elements = rows * columns, tile_bytes = tile_elements * 2;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; stage++) mbarrier_init(&full[stage], 1);
    fence_mbarrier_init();
    for (int stage = 0; stage < stages; stage++) {
      unsigned tile = blockIdx.x + stage * gridDim.x;
      if (tile >= tile_count) break;
      mbarrier_arrive_expect_tx(&full[stage], tile_bytes);
      tma_load_2d(ring + stage * tile_elements, map, tile % tiles_across * columns,
                  tile / tiles_across * rows, &full[stage]);
    }
  }
  __syncthreads();

  int stage = 0, use = 0;
  for (unsigned tile = blockIdx.x; tile < tile_count; tile += gridDim.x) {
    uint16_t *buffer = ring + stage * tile_elements;
    size_t row = (size_t)(tile / tiles_across) * rows, column = tile % tiles_across * columns;
    mbarrier_wait_parity(&full[stage], use & 1);
    put_tile_vectors(destination + row * pitch + column, buffer, pitch, rows, columns);
    __syncthreads();  // everybody has read the buffer: it may be filled again

    unsigned next = tile + stages * gridDim.x;
    if (threadIdx.x == 0 && next < tile_count) {
      mbarrier_arrive_expect_tx(&full[stage], tile_bytes);
      tma_load_2d(buffer, map, next % tiles_across * columns, next / tiles_across * rows,
                  &full[stage]);
    }
    if (++stage == stages) {
      stage = 0;
      use++;
    }
  }
}

// One kernel per tile size: the way out unrolls.
#define DEFINE_LOAD_KERNEL(ROWS, COLUMNS)                                                  \
  __global__ void __launch_bounds__(THREADS) load_##ROWS##x##COLUMNS(                      \
      const __grid_constant__ CUtensorMap map, uint16_t *destination, size_t pitch,        \
      unsigned tiles_across, unsigned tile_count, int stages) {                            \
    copy_tiles(&map, destination, pitch, tiles_across, tile_count, stages, ROWS, COLUMNS); \
  }
DEFINE_LOAD_KERNEL(16, 16)
DEFINE_LOAD_KERNEL(32, 32)
DEFINE_LOAD_KERNEL(8, 256)
DEFINE_LOAD_KERNEL(64, 64)
DEFINE_LOAD_KERNEL(128, 64)
DEFINE_LOAD_KERNEL(32, 256)

static CUtensorMap source_map;  // of the way that was prepared last
static int multiprocessors;

static void prepare(const CopyJob *job, CopyWay *way) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                   .dimensions = 2,
                   .address = (void *)job->source,
                   .size = {(uint64_t)job->columns, (uint64_t)job->rows},
                   .box = {(uint32_t)way->tile_columns, (uint32_t)way->tile_rows}};
  source_map = tensor_map_encode("source", &map);
  CUDA_CHECK(cudaFuncSetAttribute((const void *)way->kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
}

static void launch(const CopyJob *job, const CopyWay *way, int stages, unsigned most_blocks) {
  unsigned across = (unsigned)(job->columns / way->tile_columns);
  unsigned tiles = across * (unsigned)(job->rows / way->tile_rows);
  int tile_bytes = way->tile_rows * way->tile_columns * 2;
  unsigned blocks = tiles < most_blocks ? tiles : most_blocks;
  ((LoadKernel)way->kernel)<<<blocks, THREADS, stages * tile_bytes + TILE_ALIGNMENT>>>(
      source_map, job->destination, job->columns, across, tiles, stages);
}

static void launch_one_stage(const CopyJob *job, const CopyWay *way) { launch(job, way, 1, ~0u); }

static void launch_ring(const CopyJob *job, const CopyWay *way) {
  int stages = RING_BYTES / (way->tile_rows * way->tile_columns * 2);
  if (stages > MOST_STAGES) stages = MOST_STAGES;
  int ring_bytes = stages * way->tile_rows * way->tile_columns * 2;
  int resident = 200 * 1024 / ring_bytes;  // blocks whose rings fit a multiprocessor together
  if (resident > 12) resident = 12;
  launch(job, way, stages, (unsigned)(multiprocessors * resident));
}

#define TMA_WAY(NAME, LAUNCH, ROWS, COLUMNS) \
  { NAME, ROWS, COLUMNS, prepare, LAUNCH, (void (*)(void))load_##ROWS##x##COLUMNS }
#define TMA_WAYS(NAME, LAUNCH)                                                                 \
  TMA_WAY(NAME, LAUNCH, 16, 16), TMA_WAY(NAME, LAUNCH, 32, 32), TMA_WAY(NAME, LAUNCH, 8, 256), \
      TMA_WAY(NAME, LAUNCH, 64, 64), TMA_WAY(NAME, LAUNCH, 128, 64),                           \
      TMA_WAY(NAME, LAUNCH, 32, 256)

static CopyWay ways[] = {
    {"cudaMemcpy", 0, 0, NULL, copy_with_memcpy, NULL},
    TMA_WAYS("tma one stage", launch_one_stage),
    TMA_WAYS("tma ring", launch_ring),
};
enum { WAYS = sizeof ways / sizeof ways[0] };

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "time it, and write a table as CSV", &bench, 0, 0}};
  program_begin("load_speed", argc, argv, options, 1);
  if (bench) {
    copy_bench_run("build/02_tma_load/load_speed.csv", ways, WAYS);
  } else {
    copy_bench_small(ways, WAYS);
  }
  return program_end("%d ways to copy, every word", WAYS);
}
