// correct_pipelines: kernels that are right, put together at random, for a checker that must not
// accuse them.
//
//   correct_pipelines [--seed N] [--count C]     the kernels of the seeds N to N + C - 1
//
// A seed chooses one of five kinds and all that may be done in several legal ways: how many stages,
// consumers and blocks, who waits for a barrier and how the others learn of it, who releases a stage,
// on which side of a barrier the proxy fence is, how many stores may be under way, and how the
// Blocks of a cluster part. Every element of every result is checked.

#include "../../02_tma_load/tma_load_dimensions.cuh"
#include "../../03_tma_store/tma_store_dimensions.cuh"
#include "../../04_store_reduce/tma_reduce.cuh"
#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "../base/mix.h"
#include "copies.cuh"
#include "device_memory.cuh"
#include "launch_clusters.cuh"

enum {
  TILE_WORDS = 256,
  TILE_BYTES = TILE_WORDS * 4,
  MOST_STAGES = 6,
  MOST_WARPS = 8,
  MOST_OUT = 3,
  MOST_TILES = 20,
  BLOCKS = 4,
  MOST_WORDS = BLOCKS * MOST_TILES * TILE_WORDS,
};

typedef enum {
  WAIT_ALL,   // every thread waits
  WAIT_TEST,  // every thread polls with test_wait
  WAIT_LANE,  // one lane of each warp, then __syncwarp
  WAIT_ONE,   // one thread, then a named barrier of the consumers
  WAITS
} WaitStyle;
typedef enum {
  RELEASE_WARP,  // __syncwarp, then one lane of each warp arrives
  RELEASE_ALL,   // every thread arrives
  RELEASE_ONE,   // a named barrier, then one thread arrives
  RELEASES
} ReleaseStyle;
typedef enum {
  OUT_PLAIN,   // ordinary stores to global memory
  OUT_STORE,   // through shared memory and a tensor store
  OUT_BULK,    // and a bulk store
  OUT_REDUCE,  // and a tensor reduce to zeros
  OUTS
} OutStyle;
typedef enum {
  FENCE_WRITERS,  // every writer, before the barrier
  FENCE_ISSUER,   // the thread that issues the store, after the barrier
  FENCE_BOTH,
  FENCES
} FenceStyle;
typedef enum {
  PART_SYNC,     // cluster_sync
  PART_RELAXED,  // barrier.cluster.arrive.relaxed and .wait
  PART_TAIL,     // the producer waits until all stages have been released
  PARTS
} PartStyle;

typedef struct {
  int stages, warps, tiles, ctas, out_buffers;
  bool multicast, bulk_loads, late_expect;
  WaitStyle wait;
  ReleaseStyle release;
  OutStyle out;
  FenceStyle fence;
  PartStyle part;
} Recipe;

static __device__ void named_barrier(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

static __device__ void wait_read(int pending) {
  if (pending == 0) bulk_wait_group_read<0>();
  if (pending == 1) bulk_wait_group_read<1>();
  if (pending > 1) bulk_wait_group_read<2>();
}

static __host__ __device__ uint32_t answer(uint32_t word, int tile) { return 3 * word + tile; }

// ---- 1: producer, consumers, a ring of stages ----
static __device__ void wait_full(uint64_t *full, uint32_t parity, const Recipe *recipe) {
  int consumers = recipe->warps * 32;
  switch (recipe->wait) {
    case WAIT_LANE:
      if (threadIdx.x % 32 == 0) mbarrier_wait_parity(full, parity);
      __syncwarp();
      break;
    case WAIT_ONE:
      if (threadIdx.x == 0) mbarrier_wait_parity(full, parity);
      named_barrier(1, consumers);
      break;
    case WAIT_TEST:
      while (!mbarrier_test_wait_parity(full, parity)) {
      }
      break;
    default:
      mbarrier_wait_parity(full, parity);
      break;
  }
}

static __device__ void arrive_everywhere(uint64_t *empty, const Recipe *recipe) {
  if (!recipe->multicast) {
    mbarrier_arrive(empty);
    return;
  }
  for (int rank = 0; rank < recipe->ctas; rank++) {
    mbarrier_arrive_cluster(mapa_shared(empty, rank));
  }
}

static __device__ void release(uint64_t *empty, const Recipe *recipe) {
  switch (recipe->release) {
    case RELEASE_WARP:
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive_everywhere(empty, recipe);
      break;
    case RELEASE_ALL:
      arrive_everywhere(empty, recipe);
      break;
    default:
      named_barrier(2, recipe->warps * 32);
      if (threadIdx.x == 0) arrive_everywhere(empty, recipe);
      break;
  }
}

static __device__ int arrivals_of(const Recipe *recipe) {
  int own = recipe->release == RELEASE_WARP  ? recipe->warps
            : recipe->release == RELEASE_ALL ? recipe->warps * 32
                                             : 1;
  return own * (recipe->multicast ? recipe->ctas : 1);
}

static __global__ void __launch_bounds__(MOST_WARPS * 32 + 32)
    ring_kernel(const __grid_constant__ CUtensorMap input_map,
                const __grid_constant__ CUtensorMap output_map, const uint32_t *input,
                uint32_t *output, const Recipe recipe) {
  __shared__ alignas(128) uint32_t tile[MOST_STAGES][TILE_WORDS];
  __shared__ alignas(128) uint32_t out[MOST_OUT][TILE_WORDS];
  __shared__ uint64_t full[MOST_STAGES], empty[MOST_STAGES];
  int consumers = recipe.warps * 32;
  int rank = (int)(blockIdx.x % recipe.ctas);
  int stream = (int)(recipe.multicast ? blockIdx.x / recipe.ctas : blockIdx.x);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < recipe.stages; stage++) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], arrivals_of(&recipe));
    }
    fence_mbarrier_init();
  }
  if (recipe.ctas > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }

  if (threadIdx.x == consumers) {
    int slice = recipe.multicast ? TILE_WORDS / recipe.ctas : TILE_WORDS;
    for (int t = 0; t < recipe.tiles; t++) {
      int stage = t % recipe.stages, round = t / recipe.stages;
      if (round > 0) mbarrier_wait_parity(&empty[stage], (round - 1) % 2);
      int first = (stream * recipe.tiles + t) * TILE_WORDS;
      // Bytes may come before they are announced: the phase still lacks an arrival.
      if (!recipe.late_expect) mbarrier_arrive_expect_tx(&full[stage], TILE_BYTES);
      uint32_t *to = tile[stage];
      if (recipe.multicast && recipe.bulk_loads) {
        bulk_load_multicast(to + rank * slice, input + first + rank * slice, slice * 4,
                            &full[stage], cluster_mask_all(recipe.ctas));
      } else if (recipe.multicast) {
        tma_load_1d_multicast(to + rank * slice, &input_map, first + rank * slice, &full[stage],
                              cluster_mask_all(recipe.ctas));
      } else if (recipe.bulk_loads) {
        bulk_load(to, input + first, TILE_BYTES, &full[stage]);
      } else {
        tma_load_1d(to, &input_map, first, &full[stage]);
      }
      if (recipe.late_expect) mbarrier_arrive_expect_tx(&full[stage], TILE_BYTES);
    }
    if (recipe.ctas > 1 && recipe.part == PART_TAIL) {
      for (int stage = 0; stage < recipe.stages; stage++) {
        int rounds = (recipe.tiles - stage + recipe.stages - 1) / recipe.stages;
        if (rounds > 0) mbarrier_wait_parity(&empty[stage], (rounds - 1) % 2);
      }
    }
  } else if ((int)threadIdx.x < consumers) {
    for (int t = 0; t < recipe.tiles; t++) {
      int stage = t % recipe.stages, buffer = t % recipe.out_buffers;
      wait_full(&full[stage], t / recipe.stages % 2, &recipe);
      if (recipe.out != OUT_PLAIN) {
        if (threadIdx.x == 0) wait_read(recipe.out_buffers - 1);
        named_barrier(3, consumers);
      }
      uint32_t *result = output + (blockIdx.x * recipe.tiles + t) * TILE_WORDS;
      for (int i = threadIdx.x; i < TILE_WORDS; i += consumers) {
        uint32_t value = answer(tile[stage][i], t);
        if (recipe.out == OUT_PLAIN) {
          result[i] = value;
        } else {
          out[buffer][i] = value;
        }
      }
      release(&empty[stage], &recipe);
      if (recipe.out == OUT_PLAIN) continue;
      if (recipe.fence != FENCE_ISSUER) fence_proxy_async();
      named_barrier(4, consumers);
      if (threadIdx.x == 0) {
        if (recipe.fence != FENCE_WRITERS) fence_proxy_async();
        int first = (int)(blockIdx.x * recipe.tiles + t) * TILE_WORDS;
        if (recipe.out == OUT_STORE) tma_store_1d(&output_map, out[buffer], first);
        if (recipe.out == OUT_REDUCE) tma_reduce_add_1d(&output_map, out[buffer], first);
        if (recipe.out == OUT_BULK) bulk_store(result, out[buffer], TILE_BYTES);
        bulk_commit_group();
      }
    }
    if (threadIdx.x == 0 && recipe.out != OUT_PLAIN) wait_read(0);
  }
  if (recipe.ctas == 1) return;
  if (recipe.part == PART_RELAXED) {
    cluster_arrive_relaxed();
    cluster_wait_acquire();
  } else if (recipe.part == PART_SYNC || !recipe.multicast) {
    cluster_sync();
  }
}

// ---- 2: two buffers and __syncthreads ----
static __global__ void double_buffer_kernel(const uint32_t *input, uint32_t *output, int tiles,
                                            bool reversed) {
  __shared__ uint32_t buffer[2][TILE_WORDS];
  const uint32_t *from = input + blockIdx.x * tiles * TILE_WORDS;
  for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) buffer[0][i] = from[i];
  __syncthreads();
  for (int t = 0; t < tiles; t++) {
    if (t + 1 < tiles) {
      for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
        buffer[(t + 1) % 2][i] = from[(t + 1) * TILE_WORDS + i];
      }
    }
    for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
      int place = reversed ? TILE_WORDS - 1 - i : i;
      output[(blockIdx.x * tiles + t) * TILE_WORDS + place] = answer(buffer[t % 2][place], t);
    }
    __syncthreads();
  }
}

// ---- 3: cp.async, by groups or by a barrier ----
static __device__ void copy_16(uint32_t *to, const uint32_t *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}

static __global__ void copy_kernel(const uint32_t *input, uint32_t *output, int tiles,
                                   bool by_barrier) {
  enum { STAGES = 3, COPIES = TILE_WORDS / 4 };
  __shared__ alignas(128) uint32_t buffer[STAGES][TILE_WORDS];
  __shared__ uint64_t full[STAGES];
  const uint32_t *from = input + blockIdx.x * tiles * TILE_WORDS;
  if (threadIdx.x < STAGES) mbarrier_init(&full[threadIdx.x], blockDim.x);
  __syncthreads();
  for (int step = 0; step < tiles + STAGES - 1; step++) {
    int t = step - (STAGES - 1);
    if (t >= 0) {
      if (by_barrier) {
        mbarrier_wait_parity(&full[t % STAGES], t / STAGES % 2);
      } else {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
      }
      for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
        int place = TILE_WORDS - 1 - i;
        output[(blockIdx.x * tiles + t) * TILE_WORDS + place] =
            answer(buffer[t % STAGES][place], t);
      }
      __syncthreads();
    }
    if (step < tiles) {
      for (int i = threadIdx.x; i < COPIES; i += blockDim.x) {
        copy_16(&buffer[step % STAGES][i * 4], from + step * TILE_WORDS + i * 4);
      }
      if (by_barrier) {
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(
                         shared_address(&full[step % STAGES]))
                     : "memory");
      }
    }
    if (!by_barrier) asm volatile("cp.async.commit_group;" ::: "memory");
  }
}

// ---- 4: the memory of peers ----
static __global__ void peers_kernel(const uint32_t *input, uint32_t *output, int tiles, int ctas,
                                    bool by_copy, bool fence_by_issuer) {
  __shared__ alignas(128) uint32_t own[TILE_WORDS], inbox[TILE_WORDS];
  __shared__ uint64_t full;
  uint32_t next = (cluster_rank() + 1) % ctas;
  begin_by_first(&full, 1);
  for (int t = 0; t < tiles; t++) {
    if (threadIdx.x == 0 && by_copy) mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
      own[i] = input[(blockIdx.x * tiles + t) * TILE_WORDS + i];
    }
    if (!fence_by_issuer) fence_proxy_async();
    cluster_sync();
    if (by_copy) {
      if (threadIdx.x == 0) {
        if (fence_by_issuer) fence_proxy_async();
        bulk_copy_to_cluster(mapa_shared(inbox, next), own, TILE_BYTES, mapa_shared(&full, next));
      }
      __syncwarp();
      mbarrier_wait_parity(&full, t % 2);
    }
    for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x) {
      // By copy, what the block before sent here; else what the next one holds.
      uint32_t value = by_copy ? inbox[i] : ld_shared_cluster(mapa_shared(own, next) + i * 4);
      output[(blockIdx.x * tiles + t) * TILE_WORDS + i] = answer(value, t);
    }
    cluster_sync();
  }
}

// ---- 5: a ring of stages for wgmma ----
enum { M = 64, N = 64, STEP_K = 64, MOST_STEPS = 10, MOST_GROUPS = 2, MOST_GEMM_STAGES = 4 };
typedef struct {
  uint16_t a[MOST_GEMM_STAGES][MOST_GROUPS][M * STEP_K];
  uint16_t b[MOST_GEMM_STAGES][N * STEP_K];
  uint64_t full[MOST_GEMM_STAGES], empty[MOST_GEMM_STAGES];
} GemmShared;

static __global__ void __launch_bounds__(MOST_GROUPS * 128 + 32)
    gemm_kernel(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b, float *result, int steps, int stages,
                int groups, bool one_behind) {
  extern __shared__ uint8_t dynamic[];
  GemmShared *shared = (GemmShared *)(dynamic + (0 - shared_address(dynamic)) % 1024);
  int consumers = groups * 128;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], groups);  // one thread speaks for its warpgroup
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if ((int)threadIdx.x == consumers) {
    for (int step = 0; step < steps; step++) {
      int stage = step % stages;
      uint64_t *full = &shared->full[stage];
      if (step >= stages) mbarrier_wait_parity(&shared->empty[stage], (step / stages - 1) % 2);
      mbarrier_arrive_expect_tx(full, (groups * M + N) * STEP_K * 2);
      for (int group = 0; group < groups; group++) {
        tma_load_2d(shared->a[stage][group], &map_a, step * STEP_K, group * M, full);
      }
      tma_load_2d(shared->b[stage], &map_b, step * STEP_K, 0, full);
    }
  } else if ((int)threadIdx.x < consumers) {
    int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    float d[N / 2];
    for (int step = 0; step < steps; step++) {
      int stage = step % stages;
      mbarrier_wait_parity(&shared->full[stage], step / stages % 2);
      uint64_t a = wgmma_descriptor_k_major(shared->a[stage][group]);
      uint64_t b = wgmma_descriptor_k_major(shared->b[stage]);
      wgmma_fence();
      for (int i = 0; i < STEP_K / 16; i++) {
        wgmma_m64n64k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, step > 0 || i > 0);
      }
      wgmma_commit();
      if (one_behind) {
        wgmma_wait_all_but_one();
        if (step > 0 && thread == 0) mbarrier_arrive(&shared->empty[(step - 1) % stages]);
      } else {
        wgmma_wait_all();
        if (thread == 0) mbarrier_arrive(&shared->empty[stage]);
      }
    }
    wgmma_wait_all();
    int row = group * M + thread / 32 * 16 + thread % 32 / 4;
    for (int i = 0; i < N / 2; i++) {
      result[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
    }
  }
}

// ---- The host's side ----
static uint64_t random_state;
static int pick(int least, int most) {
  uint64_t bits = mix(random_state += 0x9e3779b97f4a7c15ull);
  return least + (int)(bits % (uint64_t)(most - least + 1));
}

static uint32_t *input, *output;  // on the device
static uint16_t *matrix_a, *matrix_b;
static float *matrix_d;
static uint32_t host[MOST_WORDS], got[MOST_WORDS], expected[MOST_WORDS];

static CUtensorMap words_map(const char *name, uint32_t *words, int count, int box) {
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       .dimensions = 1,
                       .address = words,
                       .size = {(uint64_t)count},
                       .box = {(uint32_t)box}};
  return tensor_map_encode(name, &request);
}

static void check_words(int tiles, long seed, const char *kind) {
  int words = BLOCKS * tiles * TILE_WORDS;
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, output, (size_t)words * 4, cudaMemcpyDeviceToHost));
  char what[64];
  snprintf(what, sizeof what, "seed %ld, %s", seed, kind);
  check_tile(what, ELEMENT_U32, got, expected, BLOCKS * tiles, TILE_WORDS, 0);
}

static void run_ring(long seed) {
  Recipe recipe = {};
  recipe.ctas = 1 << pick(0, 2);
  recipe.stages = pick(1, MOST_STAGES);
  recipe.warps = pick(1, MOST_WARPS);
  recipe.tiles = pick(1, MOST_TILES);
  recipe.out_buffers = pick(1, MOST_OUT);
  recipe.multicast = recipe.ctas > 1 && pick(0, 3) > 0;
  recipe.bulk_loads = pick(0, 1);
  recipe.late_expect = pick(0, 3) == 0;
  recipe.wait = (WaitStyle)pick(0, WAITS - 1);
  recipe.release = (ReleaseStyle)pick(0, RELEASES - 1);
  recipe.out = (OutStyle)pick(0, OUTS - 1);
  recipe.fence = (FenceStyle)pick(0, FENCES - 1);
  recipe.part = (PartStyle)pick(0, PARTS - 1);
  int words = BLOCKS * recipe.tiles * TILE_WORDS;
  for (int i = 0; i < words; i++) {
    int block = i / (recipe.tiles * TILE_WORDS), rest = i % (recipe.tiles * TILE_WORDS);
    int stream = recipe.multicast ? block / recipe.ctas : block;
    expected[i] = answer(host[stream * recipe.tiles * TILE_WORDS + rest], rest / TILE_WORDS);
  }
  CUtensorMap input_map =
      words_map("input", input, words, recipe.multicast ? TILE_WORDS / recipe.ctas : TILE_WORDS);
  CUtensorMap output_map = words_map("output", output, words, TILE_WORDS);
  void *arguments[] = {&input_map, &output_map, &input, &output, &recipe};
  CUDA_CHECK(launch_clusters((const void *)ring_kernel, BLOCKS, recipe.ctas, recipe.warps * 32 + 32,
                             0, arguments));
  check_words(recipe.tiles, seed, "a ring of stages");
}

static void run_buffers(long seed, bool copies) {
  int tiles = pick(1, MOST_TILES), threads = 32 * pick(1, MOST_WARPS), choice = pick(0, 1);
  for (int i = 0; i < BLOCKS * tiles * TILE_WORDS; i++) {
    expected[i] = answer(host[i], i / TILE_WORDS % tiles);
  }
  if (copies) {
    copy_kernel<<<BLOCKS, threads>>>(input, output, tiles, choice);
  } else {
    double_buffer_kernel<<<BLOCKS, threads>>>(input, output, tiles, choice);
  }
  check_words(tiles, seed, copies ? "cp.async" : "two buffers");
}

static void run_peers(long seed) {
  int tiles = pick(1, 6), ctas = 1 << pick(1, 2), threads = 32 * pick(1, MOST_WARPS);
  bool by_copy = pick(0, 1), fence_by_issuer = pick(0, 1);
  for (int i = 0; i < BLOCKS * tiles * TILE_WORDS; i++) {
    int block = i / (tiles * TILE_WORDS), rest = i % (tiles * TILE_WORDS);
    int step = by_copy ? ctas - 1 : 1;  // to the block before, or to the next
    int peer = block / ctas * ctas + (block % ctas + step) % ctas;
    expected[i] = answer(host[peer * tiles * TILE_WORDS + rest], rest / TILE_WORDS);
  }
  void *arguments[] = {&input, &output, &tiles, &ctas, &by_copy, &fence_by_issuer};
  CUDA_CHECK(launch_clusters((const void *)peers_kernel, BLOCKS, ctas, threads, 0, arguments));
  check_words(tiles, seed, "the memory of peers");
}

static float a_value(int m, int k) { return (float)((m * 3 + k * 5) % 7 - 3); }
static float b_value(int n, int k) { return (float)((n * 2 + k * 3) % 5 - 2); }

static CUtensorMap matrix_map(const char *name, uint16_t *matrix, int rows, int steps) {
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                       .dimensions = 2,
                       .address = matrix,
                       .size = {(uint64_t)(steps * STEP_K), (uint64_t)rows},
                       .stride_bytes = {MOST_STEPS * STEP_K * 2},
                       .box = {STEP_K, 64},
                       .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  return tensor_map_encode(name, &request);
}

static void run_gemm(long seed) {
  static float sums[MOST_GROUPS * M * N], wanted[MOST_GROUPS * M * N];
  int steps = pick(1, MOST_STEPS), groups = pick(1, MOST_GROUPS);
  int stages = pick(1, MOST_GEMM_STAGES);
  // Who gives a stage back one step later needs another one to go on with.
  bool one_behind = stages > 1 && pick(0, 1);
  for (int i = 0; i < groups * M * N; i++) {
    wanted[i] = 0;
    for (int k = 0; k < steps * STEP_K; k++) wanted[i] += a_value(i / N, k) * b_value(i % N, k);
  }
  int bytes = (int)sizeof(GemmShared) + 1024;
  CUDA_CHECK(cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  gemm_kernel<<<1, groups * 128 + 32, bytes>>>(matrix_map("A", matrix_a, groups * M, steps),
                                               matrix_map("B", matrix_b, N, steps), matrix_d, steps,
                                               stages, groups, one_behind);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(sums, matrix_d, (size_t)(groups * M * N) * 4, cudaMemcpyDeviceToHost));
  char what[64];
  snprintf(what, sizeof what, "seed %ld, a ring for wgmma", seed);
  check_tile(what, ELEMENT_F32, sums, wanted, groups * M, N, 0);
}

static void make_matrices(void) {
  enum { K = MOST_STEPS * STEP_K, A_ELEMENTS = (int)MOST_GROUPS * M * K, B_ELEMENTS = (int)N * K };
  static uint16_t a[A_ELEMENTS], b[B_ELEMENTS];
  for (int i = 0; i < A_ELEMENTS; i++) a[i] = bfloat16_from_float(a_value(i / K, i % K));
  for (int i = 0; i < B_ELEMENTS; i++) b[i] = bfloat16_from_float(b_value(i / K, i % K));
  matrix_a = device_copy(a);
  matrix_b = device_copy(b);
  matrix_d = device_memory<float>(MOST_GROUPS * M * N);
}

int main(int argc, char **argv) {
  long seed = 1, count = 1;
  const Option options[] = {{"--seed", "the first seed", &seed, 0, 1000000000},
                            {"--count", "how many seeds from there on", &count, 1, 1000000}};
  program_begin("correct_pipelines", argc, argv, options, 2);
  for (int i = 0; i < MOST_WORDS; i++) host[i] = (uint32_t)i * 2654435761u;
  input = device_copy(host);
  output = device_memory<uint32_t>(MOST_WORDS);
  make_matrices();
  for (long each = seed; each < seed + count; each++) {
    random_state = (uint64_t)each * 0xd1342543de82ef95ull;
    CUDA_CHECK(cudaMemset(output, 0, sizeof host));
    int kind = pick(0, 8);
    if (kind == 0) run_buffers(each, false);
    if (kind == 1) run_buffers(each, true);
    if (kind == 2) run_peers(each);
    if (kind == 3 || kind == 4) run_gemm(each);
    if (kind > 4) run_ring(each);
  }
  return program_end("%ld kernels, every element of their results", count);
}
