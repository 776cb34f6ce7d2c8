// heading_cases.cu: mistakes of which the first report must name the cause and not what follows from it. Those
// whose name begins with "fine_" are correct. pipelines.bats looks at the reports.
//
//   heading_cases CASE    prints "CASE: cudaError..."
#include <cuda_pipeline.h>

#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { THREADS = 128, TILE_BYTES = 1024 };

typedef void Kernel(const int *in, int *out);
#define CASE(name) CASE_OF(Kernel, name, "", __global__ void, (const int *in, int *out))

/* Warp 1 waits for the tile and tells warps 2 and 3 by a barrier. Nobody releases the stage. */
static __device__ void one_stage(const int *in, int *out, bool releases) {
  __shared__ alignas(128) int tile[TILE_BYTES / 4];
  __shared__ uint64_t full, empty;
  begin_by_first(&full, 1);
  begin_by_first(&empty, 3);
  __syncthreads();
  for (uint32_t round = 0; threadIdx.x == 0 && round < 2; round++) {
    mbarrier_wait_parity(&empty, round ^ 1);
    expect_and_load(tile, in + 256 * round, TILE_BYTES, &full);
  }
  if (threadIdx.x < 32) return;
  if (threadIdx.x < 64) mbarrier_wait_parity(&full, 0);
  asm volatile("bar.sync 1, 96;" ::: "memory");
  out[threadIdx.x] = tile[threadIdx.x];
  __syncwarp();
  if (releases && threadIdx.x % 32 == 0) mbarrier_arrive(&empty);
  mbarrier_wait_parity(&full, 1);  // parity 1 is right
  out[THREADS + threadIdx.x] = tile[threadIdx.x];
}
CASE(fine_phase_known_through_barrier) { one_stage(in, out, true); }
CASE(phase_known_through_barrier) { one_stage(in, out, false); }

/* Thread 0 fills two stages, thread 32 refills them. */
static __device__ void two_stages(const int *in, int *out, uint32_t parity_of_free) {
  __shared__ alignas(128) int tile[2][TILE_BYTES / 4];
  __shared__ uint64_t full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; stage++) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], 64);
    }
    fence_mbarrier_init();
    for (int i = 0; i < 2; i++) expect_and_load(tile[i], in + 256 * i, TILE_BYTES, &full[i]);
  }
  __syncthreads();
  for (uint32_t i = 2; threadIdx.x == 32 && i < 6; i++) {
    mbarrier_wait_parity(&empty[i % 2], (i / 2 + parity_of_free) & 1);
    expect_and_load(tile[i % 2], in + 256 * i, TILE_BYTES, &full[i % 2]);
  }
  for (uint32_t i = 0; threadIdx.x >= 64 && i < 6; i++) {
    mbarrier_wait_parity(&full[i % 2], i / 2 & 1);
    out[threadIdx.x] += tile[i % 2][threadIdx.x];
    mbarrier_arrive(&empty[i % 2]);
  }
}
CASE(fine_prologue_by_another_thread) { two_stages(in, out, 1); }
CASE(prologue_by_another_thread) { two_stages(in, out, 0); }

/* One buffer for tiles that come by cp.async. */
static __device__ void one_buffer(const int *in, int *out, bool first_sync, bool second_sync) {
  __shared__ int tile[THREADS];
  int thread = (int)threadIdx.x, sum = 0;
  for (int i = 0; i < 3; i++) {
    __pipeline_memcpy_async(&tile[thread], &in[i * THREADS + thread], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (first_sync) __syncthreads();
    for (int k = 0; k < 4; k++) sum += tile[(thread + 32 + k) % THREADS];
    if (second_sync) __syncthreads();
  }
  out[thread] = sum;
}
CASE(fine_cp_async_second_sync) { one_buffer(in, out, true, true); }
CASE(cp_async_missing_second_sync) { one_buffer(in, out, true, false); }
CASE(cp_async_missing_first_sync) { one_buffer(in, out, false, true); }

/* One phase of a barrier, then another init. */
static __device__ void two_inits(int *out, bool sync_before) {
  __shared__ uint64_t barrier;
  for (int round = 0; round < 2; round++) {
    if (sync_before) {
      __syncthreads();
      if (threadIdx.x == 0 && round) mbarrier_inval(&barrier);
    }
    if (threadIdx.x == 0) mbarrier_init(&barrier, blockDim.x);
    __syncthreads();
    mbarrier_wait(&barrier, mbarrier_arrive(&barrier));
  }
  out[threadIdx.x] = 1;
}
CASE(fine_barrier_initialised_again) { two_inits(out, true); }
CASE(barrier_initialised_again) { two_inits(out, false); }

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  int *in = device_filled<int>(8 * TILE_BYTES / 4, 1);
  chosen->run<<<1, THREADS>>>(in, device_filled<int>(2 * THREADS, 0));
  printf("%s: %s\n", chosen->name, cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
