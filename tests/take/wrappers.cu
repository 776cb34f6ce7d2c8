// All headers in one program of two files: the wrappers that no lesson and no example runs, each with a
// result that only it can give. The map is encoded while a stream is captured. Prints how many are wrong.
#include <stdio.h>
#include <stdlib.h>

#include "swizzle.h"
#include "tma_load.cuh"
#include "tma_multicast.cuh"
#include "tma_reduce.cuh"
#include "tma_store.cuh"
#include "wgmma.cuh"
#if __has_include("pipelined_gemm.cuh")
#include "pipelined_gemm.cuh"

// A template is only compiled if something calls it.
tma::GemmStatus plan_measured(tma::PipelinedGemm *gemm, const tma::GemmProblem *problem);
tma::GemmStatus plan_measured(tma::PipelinedGemm *gemm, const tma::GemmProblem *problem) {
  tma::GemmStatus status = tma::pipelined_gemm_plan_measured<tma::GEMM_BF16>(gemm, problem, 0);
  if (status.error != tma::GEMM_OK) return status;
  const char *name = tma::pipelined_gemm_name(gemm);
  tma::pipelined_gemm_end(gemm);
  return tma::pipelined_gemm_plan_named<tma::GEMM_BF16>(gemm, problem, name);
}
#endif
#include "rows.h"

int other_file(void);

using namespace tma;

enum { BLOCKS = 2, THREADS = 64, WORDS = 32, BYTES = WORDS * 4, REDUCES = 8, RESULTS = 16 };

static __device__ int wrong_results[RESULTS];

static __device__ void expect(int result, bool right) {
  if (!right) atomicAdd(&wrong_results[result], 1);
}

// What one block does to another: block 1 to block 0.
__global__ void __cluster_dims__(BLOCKS, 1, 1) to_a_peer(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) uint32_t tile[WORDS], sums[REDUCES][WORDS], parts[WORDS];
  __shared__ alignas(16) uint64_t wide[WORDS], wide_parts[WORDS];
  __shared__ uint32_t inbox, counter;
  __shared__ uint64_t full, announced, reduced, loaded;
  uint32_t rank = cluster_rank(), i = threadIdx.x;
  if (i == 0) {
    inbox = counter = 0;
    mbarrier_init(&full, 1);
    mbarrier_init(&announced, 1);
    mbarrier_init(&reduced, 1);
    mbarrier_init(&loaded, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, 8);
    mbarrier_arrive_expect_tx(&reduced, 7 * BYTES + 8 * WORDS);
    mbarrier_arrive_expect_tx(&loaded, BYTES);
  }
  if (i < WORDS) {
    parts[i] = rank == 1 ? i - 10 : 0;
    wide[i] = wide_parts[i] = (uint64_t)i << 33;
    for (int j = 0; j < REDUCES; j++) sums[j][i] = 5;
  }
  fence_proxy_async_all();
  cluster_sync();
  if (rank == 1 && i == 0) {
    uint32_t other = mapa_shared(&reduced, 0);
    st_async(mapa_shared(&inbox, 0), 77, mapa_shared(&full, 0));
    red_async_add(mapa_shared(&counter, 0), 3, mapa_shared(&full, 0));
    mbarrier_arrive_expect_tx_cluster(mapa_shared(&announced, 0), 16);
    bulk_copy_to_cluster(mapa_shared(tile, 0), parts, 16, mapa_shared(&announced, 0));
    bulk_reduce_add_u32_to_cluster(mapa_shared(sums[0], 0), parts, BYTES, other);
    bulk_reduce_add_s32_to_cluster(mapa_shared(sums[1], 0), (int32_t *)parts, BYTES, other);
    bulk_reduce_min_u32_to_cluster(mapa_shared(sums[2], 0), parts, BYTES, other);
    bulk_reduce_min_s32_to_cluster(mapa_shared(sums[3], 0), (int32_t *)parts, BYTES, other);
    bulk_reduce_max_u32_to_cluster(mapa_shared(sums[4], 0), parts, BYTES, other);
    bulk_reduce_max_s32_to_cluster(mapa_shared(sums[5], 0), (int32_t *)parts, BYTES, other);
    bulk_reduce_or_b32_to_cluster(mapa_shared(sums[6], 0), parts, BYTES, other);
    bulk_reduce_add_u64_to_cluster(mapa_shared(wide, 0), wide_parts, 8 * WORDS, other);
  }
  if (rank == 1) atomicAdd(mapa_pointer(&sums[7][0], 0), 1);
  cluster_sync();
  if (rank == 0) {
    mbarrier_wait_parity_cluster(&full, 0);
    mbarrier_wait_parity_cluster(&announced, 0);
    mbarrier_wait_parity_cluster(&reduced, 0);
    expect(0, inbox == 77 && counter == 3);
    expect(1, i >= 4 || tile[i] == i - 10);
    expect(2, sums[7][0] == 5 + THREADS);
    if (i < WORDS) {
      uint32_t part = i - 10, least = part < 5 ? part : 5, most = part > 5 ? part : 5;
      int32_t number = (int32_t)part;
      expect(3, sums[0][i] == 5 + part && sums[1][i] == 5 + part);
      expect(4, sums[2][i] == least && (int32_t)sums[3][i] == (number < 5 ? number : 5));
      expect(5, sums[4][i] == most && (int32_t)sums[5][i] == (number > 5 ? number : 5));
      expect(6, sums[6][i] == (5 | part) && wide[i] == (uint64_t)i << 34);
    }
  }
  cluster_sync();
  if (rank == 1 && i == 0) {
    tma_load_2d_multicast_cache_hint(tile, &map, 0, 0, &loaded, cluster_mask_all(BLOCKS),
                                     l2_policy_evict_last());
  }
  mbarrier_wait_parity(&loaded, 0);
  expect(7, i >= WORDS || tile[i] == 100 + i);
  cluster_sync();
}

// What a block does to global memory: `sums` begins as 5 everywhere.
template <class Type>
static __device__ void reduce(Type *sums, void (*of)(Type *, const Type *, uint32_t)) {
  __shared__ alignas(128) Type tile[WORDS];
  __syncthreads();  // the last sums have been looked at
  if (threadIdx.x < WORDS) tile[threadIdx.x] = (Type)threadIdx.x, sums[threadIdx.x] = (Type)5;
  fence_proxy_async_all();
  __syncthreads();
  if (threadIdx.x == 0) {
    of(sums, tile, sizeof tile);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
  __syncthreads();
}

template <class Type>
static __device__ bool is(Type *sums, Type value) {
  return threadIdx.x >= WORDS || sums[threadIdx.x] == value;
}

__global__ void to_memory(const __grid_constant__ CUtensorMap map, uint64_t *memory,
                          CUtensorMap *changed) {
  __shared__ alignas(128) uint32_t tile[WORDS], more[WORDS];
  __shared__ alignas(128) CUtensorMap own;
  __shared__ uint64_t full;
  uint32_t i = threadIdx.x, *words = (uint32_t *)memory;
  int32_t n = (int32_t)i;
  reduce((double *)memory, bulk_reduce_add_f64);
  expect(8, is((double *)memory, 5.0 + n));
  reduce(words, bulk_reduce_add_u32);
  expect(9, is(words, 5 + i));
  reduce((int32_t *)memory, bulk_reduce_add_s32);
  expect(9, is((int32_t *)memory, 5 + n));
  reduce(memory, bulk_reduce_add_u64);
  expect(9, is(memory, (uint64_t)5 + i));
  reduce(words, bulk_reduce_min_u32);
  expect(10, is(words, i < 5 ? i : 5));
  reduce((int32_t *)memory, bulk_reduce_min_s32);
  expect(10, is((int32_t *)memory, n < 5 ? n : 5));
  reduce(words, bulk_reduce_max_u32);
  expect(10, is(words, i > 5 ? i : 5));
  reduce((int32_t *)memory, bulk_reduce_max_s32);
  expect(10, is((int32_t *)memory, n > 5 ? n : 5));
  reduce(words, bulk_reduce_or_b32);
  expect(10, is(words, i | 5));
  // Two of 16 bits in a word: 1 + 2 = 3, as f16 and as bf16.
  const uint32_t one[] = {0x3c003c00, 0x3f803f80}, two[] = {0x40004000, 0x40004000};
  const uint32_t three[] = {0x42004200, 0x40404040};
  for (int type = 0; type < 2; type++) {
    __syncthreads();
    if (i < WORDS) tile[i] = one[type], words[i] = two[type];
    fence_proxy_async_all();
    __syncthreads();
    if (i == 0) {
      (type == 0 ? bulk_reduce_add_f16 : bulk_reduce_add_bf16)(words, tile, BYTES);
      bulk_store_cache_hint(words + WORDS, tile, BYTES, l2_policy_evict_first());
      tma_reduce_add_2d_cache_hint(&map, tile, 0, 1, l2_policy_evict_last());
      bulk_commit_group();
      bulk_wait_group<0>();
    }
    __syncthreads();
    expect(11, is(words, three[type]) && is(words + WORDS, one[type]));
  }
  if (i == 0) {
    own = map;
    tensormap_replace_address(&own, words + WORDS);
    tensormap_replace_size<1>(&own, 1);
    tensormap_replace_stride<1>(&own, 4 * BYTES);
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    tma_prefetch_2d(&map, 0, 0);
  }
  __syncthreads();
  if (i < 32) tensormap_publish(changed, &own);
  if (i == 0) {
    fence_proxy_tensormap_acquire(changed);
    mbarrier_arrive_expect_tx(&full, 2 * BYTES);
    tma_load_2d(tile, changed, 0, 0, &full);
    bulk_load_cache_hint(more, words, BYTES, &full, l2_policy_evict_first());
  }
  mbarrier_wait_parity(&full, 0);
  expect(12, is(tile, one[1]) && is(more, three[1]));
  // Half of the threads wait at a barrier of their own, until the others have come by it.
  if (i < 32) tile[i] = 9;
  if (i < 32) named_barrier_arrive(1, THREADS);
  if (i >= 32) named_barrier_sync(1, THREADS);
  expect(13, i < 32 || tile[i - 32] == 9);
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

int main(void) {
  uint32_t matrix[2][WORDS], box[] = {WORDS, 1}, *device_matrix;
  uint64_t size[] = {WORDS, 2}, stride_bytes[] = {BYTES}, *memory;
  int wrong[RESULTS], sum = 0;
  CUtensorMap map, refused, *changed;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  for (int i = 0; i < 2 * WORDS; i++) matrix[i / WORDS][i % WORDS] = i < WORDS ? 100 + i : 1;
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMalloc((void **)&memory, 2 * WORDS * sizeof *memory));
  check(cudaMalloc((void **)&changed, sizeof *changed));
  check(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  // A library that encodes its maps at each launch does so while its caller captures a stream, too.
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  check(tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, device_matrix, size, stride_bytes,
                         box, CU_TENSOR_MAP_SWIZZLE_NONE));
  to_a_peer<<<BLOCKS, THREADS, 0, stream>>>(map);
  to_memory<<<1, THREADS, 0, stream>>>(map, memory, changed);
  check(cudaGetLastError());
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));
  check(cudaGraphLaunch(executable, stream));
  check(cudaStreamSynchronize(stream));
  check(cudaMemcpyFromSymbol(wrong, wrong_results, sizeof wrong));
  check(cudaMemcpy(matrix, device_matrix, sizeof matrix, cudaMemcpyDeviceToHost));
  for (int i = 0; i < WORDS; i++) wrong[14] += matrix[1][i] != 1 + 0x3c003c00 + 0x3f803f80;
  for (int i = 0; i < RESULTS; i++) sum += wrong[i];
  for (int i = 0; i < RESULTS; i++) {
    if (wrong[i] != 0) printf("result %d is wrong in %d threads\n", i, wrong[i]);
  }
  // Where g++ puts the result of a function that is assigned, it is not aligned.
  alignas(64) unsigned char room[2 * sizeof(CUtensorMap)];
  check(tma_encode_tiled((CUtensorMap *)(void *)(room + 16), CU_TENSOR_MAP_DATA_TYPE_UINT32, 2,
                         device_matrix, size, stride_bytes, box, CU_TENSOR_MAP_SWIZZLE_NONE));
  // A row of 260 bytes breaks a rule: the call returns an error and prints nothing.
  stride_bytes[0] = 260;
  cudaError_t error = tma_encode_tiled(&refused, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, device_matrix,
                                       size, stride_bytes, box, CU_TENSOR_MAP_SWIZZLE_NONE);
  printf("%d results, %d wrong; the other file returns %d; a stride of 260: %s\n", (int)RESULTS - 1,
         sum, other_file(), cudaGetErrorName(error));
  return sum != 0;
}
