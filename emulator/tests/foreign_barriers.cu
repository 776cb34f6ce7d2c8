/* foreign_barriers.cu: a program as others write it, in C++ with libcu++: cuda::barrier with bulk
 * and tensor copies, cuda::ptx, cuda::pipeline with one role and with two. Self-contained; each
 * part is compared with the host's answer. */
// Public code calls what newer versions of libcu++ call deprecated.
#pragma nv_diag_suppress 1444
#include <cudaTypedefs.h>

#include <cstdio>
#include <cooperative_groups.h>
#include <cstdlib>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <utility>
#include <vector>

#include "check.h"

namespace cde = cuda::device::experimental;
namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int COUNT = 4096, CHUNK = 1024, SIDE = 64, TILE_ROWS = 8, TILE_COLUMNS = 32;

__global__ void add_one(int *data, int offset) {
  __shared__ alignas(16) int chunk[CHUNK];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::memcpy_async(chunk, data + offset, cuda::aligned_size_t<16>(sizeof chunk), bar);
  }
  barrier::arrival_token token = bar.arrive();
  bar.wait(std::move(token));
  for (int i = threadIdx.x; i < CHUNK; i += blockDim.x) chunk[i] += 1;
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_shared_to_global(data + offset, chunk, sizeof chunk);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
  }
}

__global__ void edit_tile(const __grid_constant__ CUtensorMap map, int x, int y) {
  __shared__ alignas(128) int tile[TILE_ROWS][TILE_COLUMNS];
  __shared__ barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, x, y, bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  tile[0][threadIdx.x] += threadIdx.x;
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, &tile);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
    (&bar)->~barrier();
  }
}

__global__ void reduce_chunks(int *out, const int *in) {
  __shared__ alignas(128) int chunk[256];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, blockDim.x);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  uint64_t token;
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, chunk, in + blockIdx.x * 256,
                       sizeof chunk, &bar);
    token = ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                           &bar, sizeof chunk);
  } else {
    token = ptx::mbarrier_arrive(&bar);
  }
  while (!ptx::mbarrier_try_wait(&bar, token)) {
  }
  chunk[threadIdx.x] *= 3;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (ptx::get_sreg_tid_x() == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, chunk,
                              sizeof chunk);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
  }
}

/* Half of the block produces, the other half consumes what others of it have copied. */
__global__ void two_roles(int *out, const int *in, int tiles) {
  __shared__ int stage[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cooperative_groups::this_thread_block();
  bool produces = threadIdx.x < 128;
  auto pipe = cuda::make_pipeline(
      block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  int lane = threadIdx.x % 128, sum = 0;
  for (int tile = 0; tile < tiles; tile++) {
    if (produces) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[tile % 2][lane], in + tile * 128 + lane, sizeof(int), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum += stage[tile % 2][127 - lane];
      pipe.consumer_release();
    }
  }
  if (!produces) out[lane] = sum;
}

/* Tiles of several warps meet at barriers in the block's reserved shared memory. */
__global__ void tiles_of_64(int *out, const int *in) {
  __shared__ cooperative_groups::block_tile_memory<256> memory;
  auto block = cooperative_groups::this_thread_block(memory);
  auto tile = cooperative_groups::tiled_partition<64>(block);
  __shared__ int values[256];
  values[threadIdx.x] = in[threadIdx.x];
  tile.sync();
  int sum = 0;
  for (int i = 0; i < 64; i++) sum += values[threadIdx.x / 64 * 64 + i];
  out[threadIdx.x] = sum;
}

static int wrong;
static void compare(const char *part, int i, int got, int expected) {
  if (got == expected) return;
  if (wrong++ == 0) printf("%s: element %d is %d, not %d\n", part, i, got, expected);
}

static CUtensorMap map_of(int *data) {
  void *function;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                              cudaEnableDefault, &found));
  CUtensorMap map;
  cuuint64_t sizes[2] = {SIDE, SIDE}, strides[1] = {SIDE * sizeof(int)};
  cuuint32_t box[2] = {TILE_COLUMNS, TILE_ROWS}, steps[2] = {1, 1};
  CUresult encoded = ((PFN_cuTensorMapEncodeTiled_v12000)function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, data, sizes, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (encoded != CUDA_SUCCESS) printf("FAIL encode: %d\n", encoded), exit(1);
  return map;
}

int main() {
  std::vector<int> host(COUNT), back(COUNT);
  for (int i = 0; i < COUNT; i++) host[i] = i * 7 + 3;
  const size_t bytes = COUNT * sizeof(int);
  int *data, *out;
  CUDA_CHECK(cudaMalloc(&data, bytes));
  CUDA_CHECK(cudaMalloc(&out, bytes));

  CUDA_CHECK(cudaMemcpy(data, host.data(), bytes, cudaMemcpyHostToDevice));
  for (int i = 0; i < COUNT; i += CHUNK) add_one<<<1, 256>>>(data, i);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(back.data(), data, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++) compare("add_one", i, back[i], host[i] + 1);

  CUDA_CHECK(cudaMemcpy(data, host.data(), bytes, cudaMemcpyHostToDevice));
  edit_tile<<<1, 32>>>(map_of(data), 32, 16);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(back.data(), data, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++) {
    int added = i / SIDE == 16 && i % SIDE >= 32 ? i % SIDE - 32 : 0;
    compare("edit_tile", i, back[i], host[i] + added);
  }

  CUDA_CHECK(cudaMemcpy(data, host.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(out, 0, bytes));
  reduce_chunks<<<4, 256>>>(out, data);
  CUDA_CHECK(cudaMemcpy(back.data(), out, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; i++) {
    compare("reduce_chunks", i, back[i],
            3 * (host[i] + host[i + 256] + host[i + 512] + host[i + 768]));
  }

  two_roles<<<1, 256>>>(out, data, COUNT / 128);
  CUDA_CHECK(cudaMemcpy(back.data(), out, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; i++) {
    int sum = 0;
    for (int tile = 0; tile < COUNT / 128; tile++) sum += host[tile * 128 + 127 - i];
    compare("two_roles", i, back[i], sum);
  }

  tiles_of_64<<<1, 256>>>(out, data);
  CUDA_CHECK(cudaMemcpy(back.data(), out, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; i++) {
    int sum = 0;
    for (int k = 0; k < 64; k++) sum += host[i / 64 * 64 + k];
    compare("tiles_of_64", i, back[i], sum);
  }
  printf(
      wrong ? "FAIL foreign_barriers\n"
            : "PASS foreign_barriers: add_one, edit_tile, reduce_chunks, two_roles, tiles_of_64\n");
  return wrong != 0;
}
