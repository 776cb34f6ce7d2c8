// heading_cases.cu: mistakes of which the first report must name the cause and not what follows from it. Those
// whose name begins with "fine_" are correct. emulator_pipelines.bats looks at the reports.
//
//   heading_cases CASE    prints "CASE: cudaError..."
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 128, TILE_BYTES = 1024 };

static __device__ uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}
static __device__ void init(uint64_t *barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
static __device__ void fence_inits(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ void wait(uint64_t *barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again; }" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
static __device__ void arrive(uint64_t *barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
static __device__ void arrive_and_wait(uint64_t *barrier) {
  asm volatile(
      "{ .reg .b64 state; .reg .pred done;\n"
      "mbarrier.arrive.shared::cta.b64 state, [%0];\n"
      "again: mbarrier.try_wait.shared::cta.b64 done, [%0], state;\n"
      "@!done bra again; }" ::"r"(shared_address(barrier))
      : "memory");
}
static __device__ void load(int *tile, const int *source, uint64_t *full) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%2], %3;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];" ::
          "r"(shared_address(tile)),
      "l"(source), "r"(shared_address(full)), "n"((int)TILE_BYTES)
      : "memory");
}

/* Warp 1 waits for the tile and tells warps 2 and 3 by a barrier. Nobody releases the stage. */
static __device__ void one_stage(const int *in, int *out, bool releases) {
  __shared__ alignas(128) int tile[TILE_BYTES / 4];
  __shared__ uint64_t full, empty;
  if (threadIdx.x == 0) {
    init(&full, 1);
    init(&empty, 3);
    fence_inits();
  }
  __syncthreads();
  for (uint32_t round = 0; threadIdx.x == 0 && round < 2; round++) {
    wait(&empty, round ^ 1);
    load(tile, in + 256 * round, &full);
  }
  if (threadIdx.x < 32) return;
  if (threadIdx.x < 64) wait(&full, 0);
  asm volatile("bar.sync 1, 96;" ::: "memory");
  out[threadIdx.x] = tile[threadIdx.x];
  __syncwarp();
  if (releases && threadIdx.x % 32 == 0) arrive(&empty);
  wait(&full, 1);  // parity 1 is right
  out[THREADS + threadIdx.x] = tile[threadIdx.x];
}
__global__ void fine_phase_known_through_barrier(const int *in, int *out) {
  one_stage(in, out, true);
}
__global__ void phase_known_through_barrier(const int *in, int *out) { one_stage(in, out, false); }

/* Thread 0 fills two stages, thread 32 refills them. */
static __device__ void two_stages(const int *in, int *out, uint32_t parity_of_free) {
  __shared__ alignas(128) int tile[2][TILE_BYTES / 4];
  __shared__ uint64_t full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; stage++) {
      init(&full[stage], 1);
      init(&empty[stage], 64);
    }
    fence_inits();
    for (int i = 0; i < 2; i++) load(tile[i], in + 256 * i, &full[i]);
  }
  __syncthreads();
  for (uint32_t i = 2; threadIdx.x == 32 && i < 6; i++) {
    wait(&empty[i % 2], (i / 2 + parity_of_free) & 1);
    load(tile[i % 2], in + 256 * i, &full[i % 2]);
  }
  for (uint32_t i = 0; threadIdx.x >= 64 && i < 6; i++) {
    wait(&full[i % 2], i / 2 & 1);
    out[threadIdx.x] += tile[i % 2][threadIdx.x];
    arrive(&empty[i % 2]);
  }
}
__global__ void fine_prologue_by_another_thread(const int *in, int *out) { two_stages(in, out, 1); }
__global__ void prologue_by_another_thread(const int *in, int *out) { two_stages(in, out, 0); }

/* One buffer for tiles that come by cp.async. */
static __device__ void one_buffer(const int *in, int *out, bool second_sync) {
  __shared__ int tile[THREADS];
  int thread = (int)threadIdx.x, sum = 0;
  for (int i = 0; i < 3; i++) {
    __pipeline_memcpy_async(&tile[thread], &in[i * THREADS + thread], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int k = 0; k < 4; k++) sum += tile[(thread + 32 + k) % THREADS];
    if (second_sync) __syncthreads();
  }
  out[thread] = sum;
}
__global__ void fine_cp_async_second_sync(const int *in, int *out) { one_buffer(in, out, true); }
__global__ void cp_async_missing_second_sync(const int *in, int *out) {
  one_buffer(in, out, false);
}
__global__ void cp_async_missing_first_sync(const int *in, int *out) {
  __shared__ int tile[THREADS];
  int thread = (int)threadIdx.x, sum = 0;
  for (int i = 0; i < 3; i++) {
    __pipeline_memcpy_async(&tile[thread], &in[i * THREADS + thread], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    sum += tile[(thread + 32) % THREADS];
    __syncthreads();
  }
  out[thread] = sum;
}

/* One phase of a barrier, then another init. */
static __device__ void two_inits(int *out, bool sync_before) {
  __shared__ uint64_t barrier;
  for (int round = 0; round < 2; round++) {
    if (sync_before) {
      __syncthreads();
      if (threadIdx.x == 0 && round)
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier))
                     : "memory");
    }
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    arrive_and_wait(&barrier);
  }
  out[threadIdx.x] = 1;
}
__global__ void fine_barrier_initialised_again(const int *, int *out) { two_inits(out, true); }
__global__ void barrier_initialised_again(const int *, int *out) { two_inits(out, false); }

typedef struct {
  const char *name;
  void (*kernel)(const int *, int *);
} Case;
#define CASE(name) \
  { #name, name }
static const Case CASES[] = {
    CASE(fine_phase_known_through_barrier), CASE(phase_known_through_barrier),
    CASE(fine_prologue_by_another_thread),  CASE(prologue_by_another_thread),
    CASE(fine_cp_async_second_sync),        CASE(cp_async_missing_second_sync),
    CASE(cp_async_missing_first_sync),      CASE(fine_barrier_initialised_again),
    CASE(barrier_initialised_again),
};

int main(int argc, char **argv) {
  int *in, *out;
  cudaMalloc((void **)&in, 8 * TILE_BYTES);
  cudaMalloc((void **)&out, 2 * THREADS * sizeof *out);
  cudaMemset(in, 1, 8 * TILE_BYTES);
  cudaMemset(out, 0, 2 * THREADS * sizeof *out);
  for (const Case &test : CASES) {
    if (argc != 2 || strcmp(argv[1], test.name) != 0) continue;
    test.kernel<<<1, THREADS>>>(in, out);
    printf("%s: %s\n", test.name, cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
  }
  fprintf(stderr, "usage: heading_cases CASE\n");
  return 2;
}
