// 02 paged_rows: the pages of a key-value cache, in five ways, and its single rows.
//
//   beside tensormap_replace; asked about attention with a paged cache
//
// A sequence's keys lie in pages of 64 rows, somewhere in a pool; a list says where. Loading them is
// gathering boxes:
//
//   threads      plain loads: each thread reads 16 bytes into registers and stores them to shared memory,
//                and the block waits for them
//   cp.async     each thread copies 16 bytes at a time to shared memory, past its registers, and arrives at
//                the page's barrier when they have landed
//   bulk         a page is one run of bytes: one bulk copy each, no tensor map
//   coordinate   the pool is a tensor of 3 dimensions, and the page's number is a coordinate: one map
//                for all pages, made once, with a swizzle if wanted
//   replaced     the kernel writes each page's address into a map: replace, publish, acquire, copy.
//                Needed only if the pages are no tensor, that is, separate allocations
//
//   rows         pages of one row: a list says where each row lies, and each is a bulk copy of 128 bytes.
//                Hopper has no gather (tile::gather4 is sm_100's)
//
// Prints a sum of each sequence in which every word is multiplied by a number of its own, so that a page
// or a row in another's place is seen. With --bench: how fast each way reads 1 GiB.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "mbarrier_counts.cuh"
#include "tensor_map.h"
#include "tensormap.cuh"
#include "tma_load.cuh"

enum {
  ROWS = 64,
  COLUMNS = 32,
  WORDS = ROWS * COLUMNS,
  PAGE_BYTES = WORDS * 4,
  ROW_BYTES = COLUMNS * 4,
  BATCH = 4,  // pages in flight, each with a barrier and a map of its own
  THREADS = 128,
};
typedef enum { BY_THREADS, BY_CP_ASYNC, BY_BULK, BY_COORDINATE, BY_REPLACING, BY_ROWS, WAYS } Way;
static const char *const names[WAYS] = {"threads",    "cp_async", "bulk",
                                        "coordinate", "replaced", "rows"};

// What word i of a sequence is multiplied by.
static __host__ __device__ uint32_t weight(int i) { return 2 * (uint32_t)i + 1; }

// Block s adds up the words of the pages list[s * pages] and following. `pages` is a multiple of BATCH.
// By rows, the list has ROWS entries for each page.
__global__ void __launch_bounds__(THREADS)
    sum_pages(const __grid_constant__ CUtensorMap whole_pool, const uint32_t *pool, const int *list,
              int pages, Way way, CUtensorMap *maps, uint32_t *sums) {
  __shared__ alignas(128) uint32_t page[BATCH][WORDS];
  __shared__ alignas(128) CUtensorMap own_map;
  __shared__ uint64_t full[BATCH];
  if (threadIdx.x == 0) {
    for (int i = 0; i < BATCH; i++) mbarrier_init(&full[i], way == BY_CP_ASYNC ? THREADS : 1);
    fence_mbarrier_init();
  }
  if (way == BY_REPLACING && threadIdx.x < 32) {
    ((uint32_t *)&own_map)[threadIdx.x] = ((const uint32_t *)&whole_pool)[threadIdx.x];
  }
  __syncthreads();
  uint32_t sum = 0;
  for (int first = 0; first < pages; first += BATCH) {
    for (int i = 0; i < BATCH; i++) {
      int place = blockIdx.x * pages + first + i;
      int number = way == BY_ROWS ? 0 : list[place];
      const uint32_t *source = &pool[(size_t)number * WORDS];
      if (way == BY_THREADS) {
        for (int j = threadIdx.x; j < WORDS / 4; j += THREADS)
          ((uint4 *)page[i])[j] = ((const uint4 *)source)[j];
      } else if (way == BY_CP_ASYNC) {
        for (int j = threadIdx.x; j < WORDS / 4; j += THREADS)
          cp_async_16(&page[i][j * 4], &source[j * 4]);
        cp_async_mbarrier_arrive(&full[i]);
      } else if (threadIdx.x < 32) {  // the whole warp, because it publishes the map together
        CUtensorMap *map = &maps[blockIdx.x * BATCH + i];
        if (way == BY_REPLACING) {
          if (threadIdx.x == 0) tensormap_replace_address(&own_map, source);
          __syncwarp();
          tensormap_publish(map, &own_map);
        }
        if (threadIdx.x == 0) {
          mbarrier_arrive_expect_tx(&full[i], PAGE_BYTES);
          if (way == BY_BULK) bulk_load(page[i], source, PAGE_BYTES, &full[i]);
          if (way == BY_COORDINATE) tma_load_3d(page[i], &whole_pool, 0, 0, number, &full[i]);
          if (way == BY_REPLACING) {
            fence_proxy_tensormap_acquire(map);
            tma_load_3d(page[i], map, 0, 0, 0, &full[i]);
          }
        }
        __syncwarp();
        for (int row = threadIdx.x; way == BY_ROWS && row < ROWS; row += 32) {
          source = &pool[(size_t)list[place * ROWS + row] * COLUMNS];
          bulk_load(&page[i][row * COLUMNS], source, ROW_BYTES, &full[i]);
        }
      }
    }
    if (way == BY_THREADS) __syncthreads();
    for (int i = 0; i < BATCH; i++) {
      if (way != BY_THREADS) mbarrier_wait_parity(&full[i], first / BATCH % 2);
      for (int j = threadIdx.x; j < WORDS; j += THREADS)
        sum += page[i][j] * weight((first + i) * WORDS + j);
    }
    fence_proxy_async();  // the next copies go where threads have read, or written
    __syncthreads();
  }
  atomicAdd(&sums[blockIdx.x], sum);
}

typedef struct {
  uint32_t *pool;
  int *list, *row_list;
  uint32_t *sums;
  CUtensorMap *maps;
  CUtensorMap whole_pool;
} Cache;

// Picks each of so many numbers once, in a scattered order.
static int scattered(int i, int numbers) {
  return (int)((i * 1000003ull + 12345) % (unsigned)numbers);
}

// So many scattered numbers, in global memory.
static int *make_list(int numbers) {
  int *list, *host = (int *)malloc(numbers * sizeof *host);
  for (int i = 0; i < numbers; i++) host[i] = scattered(i, numbers);
  CUDA_CHECK(cudaMalloc(&list, numbers * sizeof *list));
  CUDA_CHECK(cudaMemcpy(list, host, numbers * sizeof *list, cudaMemcpyHostToDevice));
  free(host);
  return list;
}

// A pool with so many pages, each of which one sequence reads.
static Cache make_cache(int sequences, int pages) {
  int all = sequences * pages;
  Cache cache;
  cache.list = make_list(all);
  cache.row_list = make_list(all * ROWS);
  CUDA_CHECK(cudaMalloc(&cache.pool, (size_t)all * PAGE_BYTES));
  CUDA_CHECK(cudaMalloc(&cache.sums, sequences * sizeof *cache.sums));
  CUDA_CHECK(cudaMalloc(&cache.maps, sequences * BATCH * sizeof *cache.maps));
  CUDA_CHECK(cudaMemset(cache.pool, 1, (size_t)all * PAGE_BYTES));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 3,
                   .address = cache.pool,
                   .size = {COLUMNS, ROWS, (uint64_t)all},
                   .box = {COLUMNS, ROWS, 1}};
  cache.whole_pool = tensor_map_encode("pool", &map);
  return cache;
}

static void launch(const Cache *cache, int sequences, int pages, Way way) {
  CUDA_CHECK(cudaMemset(cache->sums, 0, sequences * sizeof *cache->sums));
  const int *list = way == BY_ROWS ? cache->row_list : cache->list;
  sum_pages<<<sequences, THREADS>>>(cache->whole_pool, cache->pool, list, pages, way, cache->maps,
                                    cache->sums);
  CUDA_CHECK(cudaGetLastError());
}

static void bench(void) {
  enum { SEQUENCES = 512, PAGES = 256, RUNS = 20 };  // 512 x 256 pages of 8 KiB: 1 GiB
  Cache cache = make_cache(SEQUENCES, PAGES);
  FILE *csv = fopen("build/02_tma_load/paged_rows.csv", "w");
  if (!csv) program_fail("cannot write build/02_tma_load/paged_rows.csv: run it in the repository");
  fprintf(csv, "way,GB/s\n");
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  for (int way = 0; way < WAYS; way++) {
    float milliseconds;
    launch(&cache, SEQUENCES, PAGES, (Way)way);
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < RUNS; i++) launch(&cache, SEQUENCES, PAGES, (Way)way);
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    double rate = (double)SEQUENCES * PAGES * PAGE_BYTES * RUNS / milliseconds / 1e6;
    printf("%-11s %6.0f GB/s\n", names[way], rate);
    fprintf(csv, "%s,%.0f\n", names[way], rate);
  }
  fclose(csv);
}

int main(int argc, char **argv) {
  enum { SEQUENCES = 3, PAGES = 8, ALL = SEQUENCES * PAGES };
  long timed = 0;
  Option options[] = {{"--bench", "time it, and write a table as CSV", &timed, 0, 0}};
  program_begin("paged_rows", argc, argv, options, 1);
  if (timed) {
    bench();
    return program_end("times of %d ways to read pages", WAYS);
  }
  static uint32_t pool[ALL][WORDS];
  uint32_t sums[SEQUENCES], of_pages[SEQUENCES] = {0}, of_rows[SEQUENCES] = {0};
  Cache cache = make_cache(SEQUENCES, PAGES);
  for (int i = 0; i < ALL * WORDS; i++) pool[i / WORDS][i % WORDS] = (uint32_t)i % 1009;
  for (int i = 0; i < ALL * WORDS; i++) {
    int row = scattered(i / COLUMNS, ALL * ROWS), sequence = i / WORDS / PAGES;
    uint32_t factor = weight(i % (PAGES * WORDS));
    of_pages[sequence] += pool[scattered(i / WORDS, ALL)][i % WORDS] * factor;
    of_rows[sequence] += pool[row / ROWS][row % ROWS * COLUMNS + i % COLUMNS] * factor;
  }
  CUDA_CHECK(cudaMemcpy(cache.pool, pool, sizeof pool, cudaMemcpyHostToDevice));
  printf("pages of sequence 0:");
  for (int i = 0; i < PAGES; i++) printf(" %d", scattered(i, ALL));
  printf("\nits first rows, where each lies by itself:");
  for (int i = 0; i < PAGES; i++) printf(" %d", scattered(i, ALL * ROWS));
  printf("\nsums of the sequences\n");
  for (int way = 0; way < WAYS; way++) {
    launch(&cache, SEQUENCES, PAGES, (Way)way);
    CUDA_CHECK(cudaMemcpy(sums, cache.sums, sizeof sums, cudaMemcpyDeviceToHost));
    printf("  %-11s %10u %10u %10u\n", names[way], sums[0], sums[1], sums[2]);
    check_tile(names[way], ELEMENT_U32, sums, way == BY_ROWS ? of_rows : of_pages, 1, SEQUENCES, 0);
  }
  return program_end("%d pages of %d rows in %d ways, and each row in its place", ALL, ROWS, WAYS);
}
