// 03 tma_store, side program copy_speed: TMA on both ways, against everything before.
//
//   01 tiledcopy | 02 load | [03 store] | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A whole copy, global to global, in which no thread touches the data: a block is one thread, which
// loads a tile, waits for the barrier, stores it, and waits for the group.
//
//   tma one stage      one block per tile, as many as the multiprocessor takes
//   tma stages         each block takes up to 8 neighbouring tiles (64 KiB) through as many buffers:
//                       all loads first, then store after store as they arrive
//   tma 48 KiB flying  one stage, but only so many blocks at a time that 48 KiB of tiles are on the
//                       way in a multiprocessor, and a hint tells L2 that no line is needed again
//
// The last is the fastest where memory is the limit. We take it that blocks start in order of their
// number, so that the fewer of them run at a time, the narrower the front of addresses that moves
// through memory. Too few, and the memory waits for them.
//
// The tile goes from load to store untouched, hence no fence_proxy_async: the engine wrote it and
// the engine reads it, and the barrier stands between the two.
//
// By default a small matrix, to see that everything is copied; with --bench matrices from 16 MiB
// (which stay in the L2 cache) to 4 GiB, chapter 01's ways beside them, timed against cudaMemcpy.
#include "../01_tiledcopy_baseline/copy_bench.cuh"
#include "../01_tiledcopy_baseline/copy_ways.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "tensor_map.h"
#include "tma_store.cuh"

enum {
  MOST_STAGES = 8,
  MOST_RING_BYTES = 64 * 1024,
  TILE_ALIGNMENT = 128,
  MULTIPROCESSOR_BYTES = 228 * 1024,  // of shared memory
  BLOCK_OVERHEAD_BYTES = 1024,        // of it that the system takes for every block
};

typedef struct {
  unsigned tile_rows, tile_columns, tile_bytes;
  unsigned tiles_across;
  unsigned stages;   // buffers of a block, and tiles that it takes
  bool evict_first;  // L2 need not keep the lines
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

// A block of one thread.
__global__ void __launch_bounds__(32)
    copy_tiles(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to,
               const __grid_constant__ Tiling tiling) {
  extern __shared__ uint8_t dynamic[];
  __shared__ uint64_t full[MOST_STAGES];
  uint8_t *buffers = align_up(dynamic);
  unsigned first = blockIdx.x * tiling.stages;
  uint64_t policy = l2_policy_evict_first();

  for (unsigned stage = 0; stage < tiling.stages; stage++) mbarrier_init(&full[stage], 1);
  fence_mbarrier_init();

  for (unsigned stage = 0; stage < tiling.stages; stage++) {
    int32_t x = tile_x(&tiling, first + stage), y = tile_y(&tiling, first + stage);
    uint8_t *buffer = buffers + stage * tiling.tile_bytes;
    mbarrier_arrive_expect_tx(&full[stage], tiling.tile_bytes);
    if (tiling.evict_first) {
      tma_load_2d_cache_hint(buffer, &from, x, y, &full[stage], policy);
    } else {
      tma_load_2d(buffer, &from, x, y, &full[stage]);
    }
  }
  for (unsigned stage = 0; stage < tiling.stages; stage++) {
    int32_t x = tile_x(&tiling, first + stage), y = tile_y(&tiling, first + stage);
    const uint8_t *buffer = buffers + stage * tiling.tile_bytes;
    mbarrier_wait_parity(&full[stage], 0);
    if (tiling.evict_first) {
      tma_store_2d_cache_hint(&to, buffer, x, y, policy);
    } else {
      tma_store_2d(&to, buffer, x, y);
    }
    bulk_commit_group();
  }
  bulk_wait_group_read<0>();
}

static CUtensorMap source_map, destination_map;  // of the way that was prepared last

static void prepare(const CopyJob *job, CopyWay *way) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                   .dimensions = 2,
                   .address = (void *)job->source,
                   .size = {(uint64_t)job->columns, (uint64_t)job->rows},
                   .box = {(uint32_t)way->tile_columns, (uint32_t)way->tile_rows}};
  source_map = tensor_map_encode("source", &map);
  map.address = job->destination;
  destination_map = tensor_map_encode("destination", &map);
  CUDA_CHECK(cudaFuncSetAttribute((const void *)copy_tiles,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, 220 * 1024));
}

// resident: blocks that may run in a multiprocessor at a time; 0: as many as fit. Shared memory that
// nobody uses keeps the others out.
static void launch(const CopyJob *job, const CopyWay *way, unsigned stages, unsigned resident,
                   bool evict_first) {
  Tiling tiling = {(unsigned)way->tile_rows,
                   (unsigned)way->tile_columns,
                   (unsigned)(way->tile_rows * way->tile_columns * 2),
                   (unsigned)(job->columns / way->tile_columns),
                   stages,
                   evict_first};
  unsigned tiles = tiling.tiles_across * (unsigned)(job->rows / way->tile_rows);
  unsigned shared_bytes = stages * tiling.tile_bytes + TILE_ALIGNMENT;
  if (resident > 0) {
    unsigned share = MULTIPROCESSOR_BYTES / resident - BLOCK_OVERHEAD_BYTES - TILE_ALIGNMENT;
    share = share / TILE_ALIGNMENT * TILE_ALIGNMENT;
    if (share > shared_bytes) shared_bytes = share;
  }
  copy_tiles<<<tiles / stages, 1, shared_bytes>>>(source_map, destination_map, tiling);
}

static void launch_one_stage(const CopyJob *job, const CopyWay *way) {
  launch(job, way, 1, 0, false);
}

static void launch_stages(const CopyJob *job, const CopyWay *way) {
  unsigned stages = MOST_STAGES, tile_bytes = (unsigned)(way->tile_rows * way->tile_columns * 2);
  unsigned tiles = (unsigned)(job->rows / way->tile_rows * (job->columns / way->tile_columns));
  while (stages * tile_bytes > MOST_RING_BYTES || tiles % stages != 0) stages /= 2;
  launch(job, way, stages, 0, false);
}

enum { FLYING_BYTES = 48 * 1024 };

static void launch_flying(const CopyJob *job, const CopyWay *way) {
  unsigned tile_bytes = (unsigned)(way->tile_rows * way->tile_columns * 2);
  unsigned resident = FLYING_BYTES / tile_bytes;
  if (resident < 1) resident = 1;
  if (resident > 32) resident = 0;  // more do not run at a time anyway
  launch(job, way, 1, resident, true);
}

#define TMA_WAY(NAME, LAUNCH, ROWS, COLUMNS) \
  { NAME, ROWS, COLUMNS, prepare, LAUNCH, NULL }
#define TMA_WAYS(NAME, LAUNCH)                                                                 \
  TMA_WAY(NAME, LAUNCH, 16, 16), TMA_WAY(NAME, LAUNCH, 32, 32), TMA_WAY(NAME, LAUNCH, 8, 256), \
      TMA_WAY(NAME, LAUNCH, 64, 64), TMA_WAY(NAME, LAUNCH, 128, 64),                           \
      TMA_WAY(NAME, LAUNCH, 32, 256)

static CopyWay ways[] = {
    {"cudaMemcpy", 0, 0, NULL, copy_with_memcpy, NULL},
    TILE_WAYS(scalar),
    TILE_WAYS(vectors),
    TILE_WAYS(cp_async),
    TMA_WAYS("tma one stage", launch_one_stage),
    TMA_WAYS("tma stages", launch_stages),
    TMA_WAYS("tma 48 KiB flying", launch_flying),
};
enum { WAYS = sizeof ways / sizeof ways[0] };

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "time it, and write a table as CSV", &bench, 0, 0}};
  program_begin("copy_speed", argc, argv, options, 1);
  if (bench) {
    copy_bench_run("build/03_tma_store/copy_speed.csv", ways, WAYS);
  } else {
    copy_bench_small(ways, WAYS);
  }
  return program_end("%d ways to copy, every word", WAYS);
}
