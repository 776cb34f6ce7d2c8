// bench_split: four ways to add up the slices of a k range, at products with few tiles.
//
//   whole       small_shapes with k in one piece
//   cluster     small_shapes: the blocks of a cluster read each other's sums from shared memory
//   workspace   each block writes its sums, and the last block of a tile to arrive adds them, in the order of k
//   reduce      each block adds its sums to C in fp32 by TMA (chapter 04); a second kernel rounds it to bf16
//
// They take turns, each in a CUDA graph of LAUNCHES launches, so that a launch costs the host nothing. What must be zero
// before a launch is cleared in the graph. The data are normally distributed.
//
//   bench_split --bench    checks every way, measures on a GPU, and writes build/07_pipelined_gemm/split.csv
#include "../02_tma_load/mbarrier_counts.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "../03_tma_store/tma_store.cuh"
#include "../04_store_reduce/tma_reduce.cuh"
#include "../05_multicast/cluster.cuh"
#include "accumulator.cuh"
#include "gemm_program.cuh"
#include "wgmma.cuh"

#define main small_main
namespace small {
#include "small_shapes.cu"
}
#undef main
using namespace small;

enum {
  MOST_TILES = 1024,
  BOX_COLUMNS = 32,  // a row of 32 floats is 128 bytes, and the hardware swizzles it
  BOXES = TILE_N / BOX_COLUMNS,
  LAUNCHES = 20,
  GRAPHS = 10,
  ROUNDS = 15
};

// A workspace's beginning: how many slices of each tile have arrived. The sums of each slice follow.
typedef struct {
  uint32_t arrived[MOST_TILES];
  float sums[][SUMS][CONSUMER_THREADS];
} Workspace;

typedef struct {
  float boxes
      [BOXES][TILE_M]
      [BOX_COLUMNS];  // at multiples of 1024 bytes, as the swizzle requires, and the tiles behind
  Shared tiles;
  uint32_t before;  // of the tile's slices had arrived, when this one did
} SplitShared;
enum { SPLIT_BYTES = sizeof(SplitShared) + 1024 };

// Swizzled by 128 bytes: chunk x / 4 of row y lies where chunk (x / 4) ^ (y % 8) would.
static __device__ void reduce_sums(SplitShared *shared, const CUtensorMap *map_sums, const float *d,
                                   int row, int column) {
#pragma unroll
  for (int i = 0; i < SUMS; i++) {  // d[i] of WGMMA's layout
    int y = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
    int x = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    int chunk = (x % BOX_COLUMNS / 4) ^ (y % 8);
    shared->boxes[x / BOX_COLUMNS][y][chunk * 4 + x % 4] = d[i];
  }
  fence_proxy_async();
  named_barrier_sync(1, CONSUMER_THREADS);
  if (threadIdx.x == 0) {
    for (int i = 0; i < BOXES; i++) {
      tma_reduce_add_2d(map_sums, shared->boxes[i], column + i * BOX_COLUMNS, row);
    }
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

// Whether this is the last slice of its tile to arrive: then d has the sum of all.
static __device__ bool add_in_workspace(SplitShared *shared, Workspace *workspace, float *d,
                                        int tile, int slice, int split) {
  float(*sums)[SUMS][CONSUMER_THREADS] = workspace->sums + (size_t)tile * split;
#pragma unroll
  for (int i = 0; i < SUMS; i++) sums[slice][i][threadIdx.x] = d[i];
  __threadfence();  // a thread that sees the count sees the sums
  named_barrier_sync(1, CONSUMER_THREADS);
  if (threadIdx.x == 0) shared->before = atomicAdd(&workspace->arrived[tile], 1);
  named_barrier_sync(1, CONSUMER_THREADS);
  if (shared->before != (uint32_t)split - 1) return false;
  __threadfence();
#pragma unroll
  for (int i = 0; i < SUMS; i++) d[i] = 0;
  for (int from = 0; from < split; from++) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) d[i] += sums[from][i][threadIdx.x];  // loads in flight together
  }
  return true;
}

template <bool REDUCE>
static __global__ void __launch_bounds__(THREADS)
    split_kernel(const __grid_constant__ CUtensorMap map_a,
                 const __grid_constant__ CUtensorMap map_b,
                 const __grid_constant__ CUtensorMap map_sums, Workspace *workspace, uint16_t *c,
                 int m, int n, int k, int split) {
  extern __shared__ uint8_t dynamic_shared[];
  SplitShared *shared = (SplitShared *)align_1024(dynamic_shared);
  int slice = blockIdx.x % split, tile = blockIdx.x / split, steps = divide_up(k, STEP_K);
  int row = tile % divide_up(m, TILE_M) * TILE_M, column = tile / divide_up(m, TILE_M) * TILE_N;
  int first = steps * slice / split;
  float d[SUMS];
  multiply_slice(&shared->tiles, &map_a, &map_b, row, column, first,
                 steps * (slice + 1) / split - first, d);
  if (threadIdx.x >= CONSUMER_THREADS) return;
  if (REDUCE) {
    reduce_sums(shared, &map_sums, d, row, column);
  } else if (add_in_workspace(shared, workspace, d, tile, slice, split)) {
    store_accumulator(c, d, GROUPS, row + threadIdx.x / 32 * 16, column, m, n);
  }
}

static __global__ void round_sums(const float4 *sums, uint2 *c, int fours) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= fours) return;
  float4 sum = sums[at];
  c[at] = make_uint2(pack_bf16(sum.x, sum.y), pack_bf16(sum.z, sum.w));
}

// Of the product that is prepared next.
static int slices;

static void prepare_whole(GemmPlan *plan) {
  plan->problem.most_blocks =
      1;  // small_shapes leaves k whole where there is no SM to split it for
  small::gemm_prepare(plan);
}

static void prepare_cluster(GemmPlan *plan) {
  small::gemm_prepare(plan);
  plan->blocks = plan->blocks / plan->cluster * slices;
  plan->cluster = slices;
}

static void prepare_split(GemmPlan *plan, const void *kernel, size_t workspace) {
  small::gemm_prepare(plan);
  plan->blocks /= plan->cluster;  // tiles
  if (plan->blocks > MOST_TILES) program_fail("%d tiles; at most %d", plan->blocks, MOST_TILES);
  plan->blocks *= slices;
  plan->cluster = slices;
  CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SPLIT_BYTES));
  CUDA_CHECK(cudaMalloc(&plan->workspace, workspace));
}

static void prepare_workspace(GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  size_t tiles = (size_t)divide_up(p->m, TILE_M) * divide_up(p->n, TILE_N);
  prepare_split(plan, (const void *)split_kernel<false>,
                sizeof(Workspace) + tiles * slices * sizeof(float[SUMS][CONSUMER_THREADS]));
}

static void prepare_reduce(GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  prepare_split(plan, (const void *)split_kernel<true>, (size_t)p->m * p->n * sizeof(float));
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  map.dimensions = 2;
  map.address = plan->workspace;
  map.size[0] = (uint64_t)p->n, map.size[1] = (uint64_t)p->m;
  map.box[0] = BOX_COLUMNS, map.box[1] = TILE_M;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  plan->c = tensor_map_encode("sums", &map);
}

template <bool REDUCE>
static void launch_split(const GemmPlan *plan, size_t cleared) {
  const LadderProblem *p = &plan->problem;
  CUDA_CHECK(cudaMemsetAsync(plan->workspace, 0, cleared, plan->stream));
  split_kernel<REDUCE><<<plan->blocks, THREADS, SPLIT_BYTES, plan->stream>>>(
      plan->a, plan->b, plan->c, (Workspace *)plan->workspace, p->c, p->m, p->n, p->k,
      plan->cluster);
}

static void launch_workspace(const GemmPlan *plan) {
  launch_split<false>(plan, sizeof(uint32_t[MOST_TILES]));
}

static void launch_reduce(const GemmPlan *plan) {
  launch_split<true>(plan, (size_t)plan->problem.m * plan->problem.n * sizeof(float));
}

static void launch_reduce_and_round(const GemmPlan *plan) {
  enum { ROUNDERS = 128 };
  launch_reduce(plan);
  int fours = plan->problem.m * plan->problem.n / 4;  // n is a multiple of 8
  round_sums<<<divide_up(fours, ROUNDERS), ROUNDERS, 0, plan->stream>>>(
      (const float4 *)plan->workspace, (uint2 *)plan->problem.c, fours);
}

static const struct {
  const char *name;
  GemmPrepare *prepare;
  GemmLaunch *add_up;
  bool gives_c;  // in bf16
} ways[] = {{"whole", prepare_whole, small::gemm_launch, true},
            {"cluster", prepare_cluster, small::gemm_launch, true},
            {"workspace", prepare_workspace, launch_workspace, true},
            {"\"reduce, then bf16\"", prepare_reduce, launch_reduce_and_round, true},
            {"\"reduce, C in fp32\"", prepare_reduce, launch_reduce, false}};
static const struct {
  int m, n, k, slices;
} sizes[] = {{64, 512, 1024, 8},   {64, 512, 4096, 8},  {64, 512, 16384, 8},
             {64, 512, 16384, 16}, {256, 512, 4096, 4}, {1024, 512, 2048, 2}};
enum {
  WAYS = sizeof(ways) / sizeof(ways[0]),
  CLUSTER = 1,
  SIZES = sizeof(sizes) / sizeof(sizes[0]),
  CHECKED_ROWS = 8
};

// A cluster has at most MOST_SPLIT blocks.
static bool is_possible(int way) { return way != CLUSTER || slices <= MOST_SPLIT; }

static cudaGraphExec_t capture(GemmPlan *plan, GemmLaunch *add_up) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CUDA_CHECK(cudaStreamBeginCapture(plan->stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < LAUNCHES; i++) add_up(plan);
  CUDA_CHECK(cudaStreamEndCapture(plan->stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&ready, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  return ready;
}

static void bench_size(FILE *csv, int m, int n, int k) {
  static float microseconds[WAYS][ROUNDS];
  GemmPlan plans[WAYS] = {};
  cudaGraphExec_t graphs[WAYS];
  uint16_t *a, *b, *c;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  CUDA_CHECK(cudaMalloc(&a, (size_t)m * k * sizeof(*a)));
  CUDA_CHECK(cudaMalloc(&b, (size_t)n * k * sizeof(*b)));
  CUDA_CHECK(cudaMalloc(&c, (size_t)m * n * sizeof(*c)));
  gemm_fill_normal<<<1024, 256>>>(a, (size_t)m * k, 1);
  gemm_fill_normal<<<1024, 256>>>(b, (size_t)n * k, 2);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int way = 0; way < WAYS; way++) {
    if (!is_possible(way)) continue;
    LadderProblem *p = &plans[way].problem;
    p->m = m, p->n = n, p->k = k, p->a = a, p->b = b, p->c = c;
    ways[way].prepare(&plans[way]);
    plans[way].stream = stream;
    graphs[way] = capture(&plans[way], ways[way].add_up);
  }
  for (int round = -1; round < ROUNDS; round++) {  // round -1 only warms up
    for (int way = 0; way < WAYS; way++) {
      if (!is_possible(way)) continue;
      float milliseconds;
      CUDA_CHECK(cudaGraphLaunch(graphs[way], stream));
      CUDA_CHECK(cudaEventRecord(begin, stream));
      for (int i = 0; i < GRAPHS; i++) CUDA_CHECK(cudaGraphLaunch(graphs[way], stream));
      CUDA_CHECK(cudaEventRecord(end, stream));
      CUDA_CHECK(cudaEventSynchronize(end));
      CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
      if (round >= 0) microseconds[way][round] = milliseconds * 1e3f / (GRAPHS * LAUNCHES);
    }
  }
  int tiles = divide_up(m, TILE_M) * divide_up(n, TILE_N);
  printf("  %4d x %4d x %5d, %3d tiles in %2d slices:", m, n, k, tiles, slices);
  fprintf(csv, "%d x %d x %d,%d,%d", m, n, k, tiles, slices);
  for (int way = 0; way < WAYS; way++) {
    if (!is_possible(way)) {
      printf("     -");
      fprintf(csv, ",");
      continue;
    }
    qsort(microseconds[way], ROUNDS, sizeof(float), gemm_compare_floats);
    printf(" %5.1f", microseconds[way][ROUNDS / 2]);
    fprintf(csv, ",%.1f", microseconds[way][ROUNDS / 2]);
    CUDA_CHECK(cudaGraphExecDestroy(graphs[way]));
    CUDA_CHECK(cudaFree(plans[way].workspace));
  }
  printf(" us\n");
  fprintf(csv, "\n");
  CUDA_CHECK(cudaFree(a));
  CUDA_CHECK(cudaFree(b));
  CUDA_CHECK(cudaFree(c));
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
}

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "check, then measure on a GPU", &bench, 0, 0}};
  program_begin("bench_split", argc, argv, options, 1);
  if (!bench) {
    fprintf(stderr, "bench_split: say --bench; it needs a GPU\n");
    return EXIT_USAGE;
  }
  FILE *csv = fopen("build/07_pipelined_gemm/split.csv", "w");
  if (csv == NULL) program_fail("cannot write build/07_pipelined_gemm/split.csv");
  fprintf(csv, "m x n x k,tiles,slices");
  for (int way = 0; way < WAYS; way++) fprintf(csv, ",%s", ways[way].name);
  fprintf(csv, "\n");
  for (int i = 0; i < SIZES; i++) {
    int m = sizes[i].m, n = sizes[i].n, k = sizes[i].k;
    slices = sizes[i].slices;
    for (int way = 0; way < WAYS; way++) {
      if (!ways[way].gives_c || !is_possible(way)) continue;
      gemm_check_product(ways[way].prepare, ways[way].add_up, m, n, k, 0, GEMM_INTEGERS,
                         CHECKED_ROWS, 11, false);
    }
    bench_size(csv, m, n, k);
  }
  fclose(csv);
  return program_end("measured; every way gives the exact sums");
}
