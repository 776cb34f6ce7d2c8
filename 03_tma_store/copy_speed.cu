// 03 tma_store, side program copy_speed: TMA on both ways, against everything before.
//
//   01 tiledcopy | 02 load | [03 store] | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A whole copy, global to global, in which no thread touches the data: a CTA is one thread, which
// loads a tile, waits for the barrier, stores it, and waits for the group.
//
//   tma, one stage    one CTA per tile
//   tma, ring         CTAs that stay: before the buffer of a tile is loaded anew, its store must
//                     have read it. The store of the last tile but one has had time to:
//
//   step n:   wait for load n | store n, commit | wait until at most 1 store still reads
//             | the buffer of tile n-1 is free: load tile n-1+stages into it
//
// The tile goes from load to store untouched, hence no fence_proxy_async: the engine wrote it and
// the engine reads it, and the barrier stands between the two.
//
// By default a small matrix, to see that everything is copied; with --bench chapter 01's ways, too,
// from 16 MiB (which stay in the L2 cache) to 4 GiB, against cudaMemcpy.
#include "../01_tiledcopy_baseline/copy_bench.cuh"
#include "../01_tiledcopy_baseline/tiledcopy.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "tensor_map.h"
#include "tma_store.cuh"

enum {
  THREADS = TILEDCOPY_THREADS,  // of the kernels in which threads copy
  MOST_STAGES = 8,
  TILE_ALIGNMENT = 128,
  MULTIPROCESSOR_BYTES = 220 * 1024,  // shared memory to fill with rings
};

// ---- The ways of chapter 01 ----

typedef void (*TileKernel)(const uint16_t *, uint16_t *, size_t);

#define DEFINE_COPY_KERNEL(WAY, PUT, ROWS, COLUMNS)                                           \
  __global__ void __launch_bounds__(THREADS)                                                  \
      WAY##_##ROWS##x##COLUMNS(const uint16_t *source, uint16_t *destination, size_t pitch) { \
    __shared__ alignas(16) uint16_t tile[ROWS * COLUMNS];                                     \
    size_t offset = (size_t)blockIdx.y * ROWS * pitch + (size_t)blockIdx.x * COLUMNS;         \
    copy_tile_##WAY(tile, source + offset, pitch, ROWS, COLUMNS);                             \
    __syncthreads();                                                                          \
    PUT(destination + offset, tile, pitch, ROWS, COLUMNS);                                    \
  }
#define DEFINE_COPY_KERNELS(ROWS, COLUMNS)                     \
  DEFINE_COPY_KERNEL(scalar, put_tile_scalar, ROWS, COLUMNS)   \
  DEFINE_COPY_KERNEL(vectors, put_tile_vectors, ROWS, COLUMNS) \
  DEFINE_COPY_KERNEL(cp_async, put_tile_vectors, ROWS, COLUMNS)
DEFINE_COPY_KERNELS(16, 16)
DEFINE_COPY_KERNELS(32, 32)
DEFINE_COPY_KERNELS(64, 64)
DEFINE_COPY_KERNELS(128, 64)
DEFINE_COPY_KERNELS(64, 256)

static void launch_tiles(const CopyJob *job, const CopyWay *way) {
  dim3 grid((unsigned)(job->columns / way->tile_columns), (unsigned)(job->rows / way->tile_rows));
  ((TileKernel)way->kernel)<<<grid, THREADS>>>(job->source, job->destination, job->columns);
}

// ---- TMA on both ways ----

typedef struct {
  unsigned tile_rows, tile_columns, tile_bytes;
  unsigned tiles_across, tile_count;
} Tiling;

static __device__ int32_t tile_x(const Tiling *tiling, unsigned tile) {
  return (int32_t)(tile % tiling->tiles_across * tiling->tile_columns);
}

static __device__ int32_t tile_y(const Tiling *tiling, unsigned tile) {
  return (int32_t)(tile / tiling->tiles_across * tiling->tile_rows);
}

static __device__ uint8_t *align_up(uint8_t *pointer) {
  return (uint8_t *)(((uintptr_t)pointer + TILE_ALIGNMENT - 1) & ~(uintptr_t)(TILE_ALIGNMENT - 1));
}

// A CTA of one thread; stages is 1 if there is a CTA for each tile.
__global__ void __launch_bounds__(32)
    copy_through_ring(const __grid_constant__ CUtensorMap from,
                      const __grid_constant__ CUtensorMap to, const __grid_constant__ Tiling tiling,
                      unsigned stages) {
  extern __shared__ uint8_t dynamic[];
  __shared__ uint64_t full[MOST_STAGES];
  uint8_t *ring = align_up(dynamic);

  for (unsigned stage = 0; stage < stages; stage++) mbarrier_init(&full[stage], 1);
  fence_mbarrier_init();

  unsigned next = blockIdx.x;  // to be loaded
  for (unsigned stage = 0; stage < stages && next < tiling.tile_count; stage++) {
    mbarrier_arrive_expect_tx(&full[stage], tiling.tile_bytes);
    tma_load_2d(ring + stage * tiling.tile_bytes, &from, tile_x(&tiling, next),
                tile_y(&tiling, next), &full[stage]);
    next += gridDim.x;
  }

  unsigned stage = 0, parity = 0, stage_before = stages - 1;
  for (unsigned tile = blockIdx.x; tile < tiling.tile_count; tile += gridDim.x) {
    mbarrier_wait_parity(&full[stage], parity);
    tma_store_2d(&to, ring + stage * tiling.tile_bytes, tile_x(&tiling, tile),
                 tile_y(&tiling, tile));
    bulk_commit_group();

    // The first tile has none before it: its buffer's neighbour is still to be stored.
    if (tile != blockIdx.x && next < tiling.tile_count) {
      bulk_wait_group_read(1);
      mbarrier_arrive_expect_tx(&full[stage_before], tiling.tile_bytes);
      tma_load_2d(ring + stage_before * tiling.tile_bytes, &from, tile_x(&tiling, next),
                  tile_y(&tiling, next), &full[stage_before]);
      next += gridDim.x;
    }
    stage_before = stage;
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  bulk_wait_group_read(0);
}

static CUtensorMap source_map, destination_map;  // of the way that was prepared last
static int multiprocessors;

static void prepare(const CopyJob *job, CopyWay *way) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                   .rank = 2,
                   .address = (void *)job->source,
                   .size = {(uint64_t)job->columns, (uint64_t)job->rows},
                   .box = {(uint32_t)way->tile_columns, (uint32_t)way->tile_rows}};
  source_map = tensor_map_encode("source", &map);
  map.address = job->destination;
  destination_map = tensor_map_encode("destination", &map);
  CUDA_CHECK(cudaFuncSetAttribute((const void *)copy_through_ring,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  MULTIPROCESSOR_BYTES));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
}

static void launch(const CopyJob *job, const CopyWay *way, unsigned stages, unsigned most_ctas) {
  Tiling tiling = {(unsigned)way->tile_rows, (unsigned)way->tile_columns,
                   (unsigned)(way->tile_rows * way->tile_columns * 2),
                   (unsigned)(job->columns / way->tile_columns), 0};
  tiling.tile_count = tiling.tiles_across * (unsigned)(job->rows / way->tile_rows);
  unsigned ctas = tiling.tile_count < most_ctas ? tiling.tile_count : most_ctas;
  copy_through_ring<<<ctas, 1, stages * tiling.tile_bytes + TILE_ALIGNMENT>>>(
      source_map, destination_map, tiling, stages);
}

static void launch_one_stage(const CopyJob *job, const CopyWay *way) { launch(job, way, 1, ~0u); }

static long wanted_stages = 4, wanted_ctas = 16;  // at most so many

// As many CTAs per multiprocessor as its shared memory has room for.
static void launch_ring(const CopyJob *job, const CopyWay *way) {
  unsigned tile_bytes = (unsigned)(way->tile_rows * way->tile_columns * 2);
  unsigned stages = (unsigned)wanted_stages;
  while (stages > 2 && stages * tile_bytes > MULTIPROCESSOR_BYTES / 2) stages--;
  unsigned resident = MULTIPROCESSOR_BYTES / (stages * tile_bytes + 1024 + TILE_ALIGNMENT);
  if (resident > (unsigned)wanted_ctas) resident = (unsigned)wanted_ctas;
  launch(job, way, stages, (unsigned)multiprocessors * resident);
}

#define TILE_WAY(WAY, ROWS, COLUMNS) \
  { #WAY, ROWS, COLUMNS, NULL, launch_tiles, (void (*)(void))WAY##_##ROWS##x##COLUMNS }
#define TILE_WAYS(WAY)                                                                         \
  TILE_WAY(WAY, 16, 16), TILE_WAY(WAY, 32, 32), TILE_WAY(WAY, 64, 64), TILE_WAY(WAY, 128, 64), \
      TILE_WAY(WAY, 64, 256)
#define TMA_WAY(NAME, LAUNCH, ROWS, COLUMNS) \
  { NAME, ROWS, COLUMNS, prepare, LAUNCH, NULL }
#define TMA_WAYS(NAME, LAUNCH)                                                                 \
  TMA_WAY(NAME, LAUNCH, 16, 16), TMA_WAY(NAME, LAUNCH, 32, 32), TMA_WAY(NAME, LAUNCH, 64, 64), \
      TMA_WAY(NAME, LAUNCH, 128, 64), TMA_WAY(NAME, LAUNCH, 64, 256)

static CopyWay ways[] = {
    {"cudaMemcpy", 0, 0, NULL, copy_with_memcpy, NULL},
    TILE_WAYS(scalar),
    TILE_WAYS(vectors),
    TILE_WAYS(cp_async),
    TMA_WAYS("tma, one stage", launch_one_stage),
    TMA_WAYS("tma, ring", launch_ring),
};
enum { WAYS = sizeof ways / sizeof ways[0] };

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {
      {"--bench", "time it, and write a table as CSV", &bench, 0, 0},
      {"--stages", "buffers of a ring, fewer for large tiles", &wanted_stages, 2, MOST_STAGES},
      {"--ctas", "of the ring per multiprocessor, at most", &wanted_ctas, 1, 32},
  };
  program_begin("copy_speed", argc, argv, options, 3);
  if (bench) {
    copy_bench_run("build/03_tma_store/copy_speed.csv", ways, WAYS);
  } else {
    copy_bench_small(ways, WAYS);
  }
  return program_end("%d ways to copy, every word", WAYS);
}
