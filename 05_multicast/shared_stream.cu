// 05 multicast, aside: what multicast saves. Clusters of 1, 2, 4 and 8 blocks read the same stream.
//
// All blocks of a cluster need the same tiles one after the other, as in a GEMM, where a row of blocks
// shares A. In one way each block loads every tile for itself; in the other each loads one part of
// every tile and multicasts it to all, so the cluster asks L2 for every byte once:
//
//                  separate                multicast
//   cluster of 4   4 tiles read from L2    1 tile read from L2, 4 tiles written to shared memory
//
// The tiles go through a ring of buffers, the stages, as in chapter 07. The engine completes the
// `full` barrier of a stage. All blocks of the cluster arrive at its `empty` barrier, because a part
// that one block sends overwrites the buffers of all of them. A third way, "scoped", differs from multicast in those arrivals alone:
// they release, and the producer acquires, at cluster scope, which reading a buffer does not need.
//
//   shared_stream              a short stream, every element summed and checked
//   shared_stream --bench      times on a GPU: table, and build/05_multicast/shared_stream.csv
//   shared_stream --profile    one launch of each kind, for ncu (bench.sh calls it)
#include <stdio.h>
#include <stdlib.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "cluster.cuh"
#include "tma_multicast.cuh"

enum {
  TILE_WORDS = 4096,
  TILE_BYTES = TILE_WORDS * 4,
  STAGES = 8,
  CONSUMER_WARPS = 4,
  CONSUMERS = CONSUMER_WARPS * 32,
  THREADS = CONSUMERS + 32,  // and one warp that issues the loads
  RUNS = 7,
  MOST_BLOCKS = 8,
};

typedef enum { SEPARATE, MULTICAST, SCOPED, WAYS } Way;
static const char *const way_names[WAYS] = {"separate", "multicast", "scoped"};

// Cluster c reads tiles_per_cluster tiles from its own starting point in the stream (the stream
// wraps around). Each block adds up its tiles word by word, and then every four neighbouring words of
// that sum into one: sums[block][TILE_WORDS / 4].
__global__ void __launch_bounds__(THREADS)
    stream_kernel(const uint32_t *stream, int stream_tiles, int tiles_per_cluster, Way way,
                  uint32_t *sums) {
  extern __shared__ __align__(128) uint32_t buffers[];  // [STAGES][TILE_WORDS]
  __shared__ uint64_t full[STAGES], empty[STAGES];
  bool multicast = way != SEPARATE;
  uint32_t rank = cluster_rank();
  uint32_t blocks = cluster_size();
  uint32_t part_words = TILE_WORDS / blocks;
  int clusters = (int)(gridDim.x / blocks);
  int first_tile = (int)((size_t)(blockIdx.x / blocks) * stream_tiles / clusters);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      mbarrier_init(&full[s], 1);
      mbarrier_init(&empty[s], CONSUMER_WARPS * (multicast ? blocks : 1));
    }
    fence_mbarrier_init();
  }
  cluster_sync();

  if (threadIdx.x == CONSUMERS) {
    // The producer. A part that this block sends overwrites a buffer in every block, so it waits until
    // the consumers of all of them are done with it. A peer's part may arrive before this block
    // expects it: the barrier's byte count is negative then, and the phase cannot complete before
    // the arrival that comes with the expectation.
    for (int i = 0; i < tiles_per_cluster; i++) {
      int stage = i % STAGES;
      uint32_t *buffer = buffers + stage * TILE_WORDS;
      const uint32_t *tile = stream + (size_t)((first_tile + i) % stream_tiles) * TILE_WORDS;
      if (i >= STAGES) {
        uint32_t parity = (i / STAGES - 1) % 2;
        if (way == SCOPED) {
          mbarrier_wait_parity_cluster(&empty[stage], parity);
        } else {
          mbarrier_wait_parity(&empty[stage], parity);
        }
      }
      mbarrier_arrive_expect_tx(&full[stage], TILE_BYTES);
      if (multicast) {
        bulk_load_multicast(buffer + rank * part_words, tile + rank * part_words, part_words * 4,
                            &full[stage], cluster_mask_all(blocks));
      } else {
        bulk_load(buffer, tile, TILE_BYTES, &full[stage]);
      }
    }
  } else if (threadIdx.x < CONSUMERS) {
    uint4 sum[TILE_WORDS / 4 / CONSUMERS] = {};
    for (int i = 0; i < tiles_per_cluster; i++) {
      int stage = i % STAGES;
      const uint4 *buffer = (const uint4 *)(buffers + stage * TILE_WORDS);
      mbarrier_wait_parity(&full[stage], i / STAGES % 2);
      for (int j = 0; j < TILE_WORDS / 4 / CONSUMERS; j++) {
        uint4 words = buffer[threadIdx.x + j * CONSUMERS];
        sum[j].x += words.x;
        sum[j].y += words.y;
        sum[j].z += words.z;
        sum[j].w += words.w;
      }
      __syncwarp();  // this warp is done with the stage; report it to every block that writes to it
      uint32_t lane = threadIdx.x % 32;
      if (way == SEPARATE) {
        if (lane == 0) mbarrier_arrive(&empty[stage]);
      } else if (lane < blocks) {
        uint32_t empty_of_peer = mapa_shared(&empty[stage], lane);
        if (way == SCOPED) {
          mbarrier_arrive_release_cluster(empty_of_peer);
        } else {
          mbarrier_arrive_cluster(empty_of_peer);
        }
      }
    }
    for (int j = 0; j < TILE_WORDS / 4 / CONSUMERS; j++) {
      sums[blockIdx.x * (TILE_WORDS / 4) + threadIdx.x + j * CONSUMERS] =
          sum[j].x + sum[j].y + sum[j].z + sum[j].w;
    }
  }
  cluster_sync();  // a peer may still arrive at this block's barriers
}

static void configure(cudaLaunchConfig_t *config, cudaLaunchAttribute *cluster, int grid,
                      int blocks) {
  cluster->id = cudaLaunchAttributeClusterDimension;
  cluster->val.clusterDim.x = (unsigned)blocks;
  cluster->val.clusterDim.y = 1;
  cluster->val.clusterDim.z = 1;
  config->gridDim = dim3((unsigned)grid);
  config->blockDim = dim3(THREADS);
  config->dynamicSmemBytes = STAGES * TILE_BYTES;
  config->attrs = cluster;
  config->numAttrs = 1;
  CUDA_CHECK(cudaFuncSetAttribute((const void *)stream_kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  STAGES * TILE_BYTES));
}

static void launch(const uint32_t *stream, int stream_tiles, int tiles_per_cluster, Way way,
                   uint32_t *sums, int grid, int blocks) {
  cudaLaunchAttribute cluster = {};
  cudaLaunchConfig_t config = {};
  configure(&config, &cluster, grid, blocks);
  void *arguments[] = {&stream, &stream_tiles, &tiles_per_cluster, &way, &sums};
  CUDA_CHECK(cudaLaunchKernelExC(&config, (const void *)stream_kernel, arguments));
  CUDA_CHECK(cudaGetLastError());
}

// The number of blocks that can run at the same time for every cluster size up to 8. A cluster needs
// its SMs in one group of the chip, and the groups differ in size.
static int blocks_at_once(void) {
  int least = 1 << 20;
  for (int blocks = 1; blocks <= MOST_BLOCKS; blocks *= 2) {
    cudaLaunchAttribute cluster = {};
    cudaLaunchConfig_t config = {};
    configure(&config, &cluster, MOST_BLOCKS, blocks);
    int clusters;
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, (const void *)stream_kernel, &config));
    printf("clusters of %d: %d blocks run at once\n", blocks, clusters * blocks);
    if (clusters * blocks < least) least = clusters * blocks;
  }
  return least / MOST_BLOCKS * MOST_BLOCKS;
}

// Word i of the stream, made on the host as well as on the device.
static __host__ __device__ uint32_t word_at(size_t i) {
  return (uint32_t)(i * 2654435761u) ^ (uint32_t)(i >> 7);
}

__global__ void fill_kernel(uint32_t *stream, size_t words) {
  size_t first = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  for (size_t i = first; i < words; i += (size_t)gridDim.x * blockDim.x) stream[i] = word_at(i);
}

static void check_sums(const uint32_t *sums_on_device, int stream_tiles, int tiles_per_cluster,
                       int grid, int blocks, const char *what) {
  enum { PER_BLOCK = TILE_WORDS / 4 };
  uint32_t *got = (uint32_t *)malloc((size_t)grid * PER_BLOCK * 4);
  uint32_t *expected = (uint32_t *)calloc((size_t)grid * PER_BLOCK, 4);
  if (got == NULL || expected == NULL) program_fail("no memory for the sums of %d blocks", grid);
  CUDA_CHECK(cudaMemcpy(got, sums_on_device, (size_t)grid * PER_BLOCK * 4, cudaMemcpyDeviceToHost));
  for (int block = 0; block < grid; block += blocks) {
    for (int i = 0; i < tiles_per_cluster; i++) {
      size_t first_tile = (size_t)(block / blocks) * stream_tiles / (grid / blocks);
      size_t tile = (first_tile + i) % stream_tiles;
      for (int word = 0; word < TILE_WORDS; word++) {
        expected[(size_t)block * PER_BLOCK + word / 4] += word_at(tile * TILE_WORDS + word);
      }
    }
    for (int peer = 1; peer < blocks; peer++) {
      for (int i = 0; i < PER_BLOCK; i++) {
        expected[(size_t)(block + peer) * PER_BLOCK + i] = expected[(size_t)block * PER_BLOCK + i];
      }
    }
  }
  check_tile(what, ELEMENT_U32, got, expected, grid, PER_BLOCK, 0);
  free(got);
  free(expected);
}

static int compare_floats(const void *a, const void *b) {
  float difference = *(const float *)a - *(const float *)b;
  return difference < 0 ? -1 : difference > 0;
}

static float time_stream(const uint32_t *stream, int stream_tiles, int tiles_per_cluster, Way way,
                         uint32_t *sums, int grid, int blocks) {
  cudaEvent_t start, end;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&end));
  float times[RUNS];
  for (int run = -1; run < RUNS; run++) {
    CUDA_CHECK(cudaEventRecord(start, 0));
    launch(stream, stream_tiles, tiles_per_cluster, way, sums, grid, blocks);
    CUDA_CHECK(cudaEventRecord(end, 0));
    CUDA_CHECK(cudaEventSynchronize(end));
    if (run >= 0) CUDA_CHECK(cudaEventElapsedTime(&times[run], start, end));
  }
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(end));
  qsort(times, RUNS, sizeof times[0], compare_floats);
  return times[RUNS / 2] * 1000;
}

static FILE *csv_open(const char *path, const char *header) {
  FILE *file = fopen(path, "w");
  if (file == NULL) program_fail("cannot write %s: run 'make bench' at the top", path);
  fprintf(file, "%s\n", header);
  return file;
}

static const int BENCH_TILES = 512;

// Measures the rate at which shared memory is filled, over all blocks, and how much of that came from
// L2. Each block gets BENCH_TILES tiles either way.
static int bench(const uint32_t *stream, uint32_t *sums, size_t stream_bytes, int grid) {
  FILE *csv = csv_open("build/05_multicast/shared_stream.csv",
                       "MiB,cluster,way,us,GB/s,GB/s asked of L2,speed over separate");
  static const size_t megabytes[] = {16, 2048};
  for (int s = 0; s < 2; s++) {
    size_t bytes = megabytes[s] << 20;
    if (bytes > stream_bytes) bytes = stream_bytes;
    int stream_tiles = (int)(bytes / TILE_BYTES);
    printf("\nstream of %zu MiB, %d blocks, %d tiles of %d KiB into each\n", bytes >> 20, grid,
           BENCH_TILES, TILE_BYTES >> 10);
    printf("cluster  way             us   GB/s into shared memory   GB/s asked of L2   speed\n");
    for (int blocks = 1; blocks <= MOST_BLOCKS; blocks *= 2) {
      float separate_us = 0;
      for (int w = SEPARATE; w < (blocks > 1 ? WAYS : MULTICAST); w++) {
        Way way = (Way)w;
        float us = time_stream(stream, stream_tiles, BENCH_TILES, way, sums, grid, blocks);
        char what[64];
        snprintf(what, sizeof what, "cluster of %d, %s", blocks, way_names[way]);
        check_sums(sums, stream_tiles, BENCH_TILES, grid, blocks, what);
        if (way == SEPARATE) separate_us = us;
        double rate = (size_t)grid * BENCH_TILES * TILE_BYTES / us * 1e-3;
        double asked = way == SEPARATE ? rate : rate / blocks;
        printf("%4d     %-9s %8.1f %25.0f %18.0f %7.2f\n", blocks, way_names[way], us, rate, asked,
               separate_us / us);
        fprintf(csv, "%zu,%d,%s,%.1f,%.0f,%.0f,%.2f\n", bytes >> 20, blocks, way_names[way], us,
                rate, asked, separate_us / us);
      }
    }
  }
  fclose(csv);
  return program_end("the sums of all blocks, and how long they took");
}

int main(int argc, char **argv) {
  long run_bench = 0, run_profile = 0;
  const Option options[] = {
      {"--bench", "measure time on a GPU", &run_bench, 0, 0},
      {"--profile", "launch each kind once on 16 MiB, for ncu", &run_profile, 0, 0},
  };
  program_begin("shared_stream", argc, argv, options, 2);
  bool large = run_bench || run_profile;
  size_t stream_bytes = 24 * TILE_BYTES;
  if (run_profile) stream_bytes = (size_t)16 << 20;
  if (run_bench) stream_bytes = (size_t)2 << 30;
  int grid = large ? blocks_at_once() : (int)MOST_BLOCKS;
  int tiles_per_cluster = large ? BENCH_TILES : 10;
  int stream_tiles = (int)(stream_bytes / TILE_BYTES);

  uint32_t *stream, *sums;
  CUDA_CHECK(cudaMalloc(&stream, stream_bytes));
  CUDA_CHECK(cudaMalloc(&sums, (size_t)grid * TILE_BYTES / 4));
  fill_kernel<<<large ? 1024 : 16, 256>>>(stream, stream_bytes / 4);
  CUDA_CHECK(cudaGetLastError());
  if (run_bench) return bench(stream, sums, stream_bytes, grid);

  for (int blocks = 1; blocks <= MOST_BLOCKS; blocks *= 2) {
    for (int w = SEPARATE; w < (blocks > 1 ? WAYS : MULTICAST); w++) {
      Way way = (Way)w;
      CUDA_CHECK(cudaMemset(sums, 0xFF, (size_t)grid * TILE_BYTES / 4));
      launch(stream, stream_tiles, tiles_per_cluster, way, sums, grid, blocks);
      char what[64];
      snprintf(what, sizeof what, "cluster of %d, %s", blocks, way_names[way]);
      check_sums(sums, stream_tiles, tiles_per_cluster, grid, blocks, what);
      int asked = way == SEPARATE ? grid * tiles_per_cluster : grid / blocks * tiles_per_cluster;
      printf("%-23s %2d tiles into each of %d blocks, %3d tiles asked of L2\n", what,
             tiles_per_cluster, grid, asked);
    }
  }
  CUDA_CHECK(cudaFree(stream));
  CUDA_CHECK(cudaFree(sums));
  return program_end("clusters of 1 to %d blocks, %d ways, the sums of every block", MOST_BLOCKS,
                     WAYS);
}
