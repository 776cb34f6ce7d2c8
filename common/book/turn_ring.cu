// turn_ring: the recordings behind the book's page on which the reader turns the stages and the steps of a ring
// (chapter 07). Each choice is a launch of one block: a warp loads tiles of A and B, a warpgroup multiplies them.
//
// A line of JSON for each choice says which launch it is.
#include <stdio.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "../../07_pipelined_gemm/wgmma_registers.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  TILE = 64,  // rows of A and of B
  STEP_K = 64,
  MOST_STEPS = 12,
  K = MOST_STEPS * STEP_K,
  TILE_ELEMENTS = TILE * STEP_K,
  TILE_BYTES = TILE_ELEMENTS * 2,
  CONSUMERS = 128,
  THREADS = CONSUMERS + 32,  // and a warp that issues the loads
};

// Dynamic shared memory begins at a multiple of 16 bytes, but the swizzle needs 1,024.
static __device__ __forceinline__ void *align_1024(uint8_t *pointer) {
  return pointer + (1024 - shared_address(pointer) % 1024) % 1024;
}

template <int STAGES>
struct Shared {
  uint16_t a[STAGES][TILE_ELEMENTS], b[STAGES][TILE_ELEMENTS];
  uint64_t full[STAGES], empty[STAGES];
};

template <int STAGES>
__global__ void ring(const __grid_constant__ CUtensorMap map_a,
                     const __grid_constant__ CUtensorMap map_b, int steps, float *sums) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared<STAGES> *shared = (Shared<STAGES> *)align_1024(dynamic_shared);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], CONSUMERS / 32);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == CONSUMERS) {
    for (int step = 0; step < steps; step++) {
      int stage = step % STAGES;
      mbarrier_wait_parity(&shared->empty[stage], (step / STAGES % 2) ^ 1);
      mbarrier_arrive_expect_tx(&shared->full[stage], 2 * TILE_BYTES);
      tma_load_2d(shared->a[stage], &map_a, step * STEP_K, 0, &shared->full[stage]);
      tma_load_2d(shared->b[stage], &map_b, step * STEP_K, 0, &shared->full[stage]);
    }
  } else if (threadIdx.x < CONSUMERS) {
    float d[TILE / 2];
    for (int step = 0; step < steps; step++) {
      int stage = step % STAGES;
      mbarrier_wait_parity(&shared->full[stage], step / STAGES % 2);
      uint64_t a_descriptor = wgmma_descriptor_k_major(shared->a[stage]);
      uint64_t b_descriptor = wgmma_descriptor_k_major(shared->b[stage]);
      wgmma_fence();
      for (int i = 0; i < STEP_K / 16; i++)
        wgmma_m64n64k16(d, a_descriptor + i * WGMMA_K_STEP, b_descriptor + i * WGMMA_K_STEP,
                        step > 0 || i > 0);
      wgmma_commit();
      // With more than one stage, a multiplication is under way while the next is issued.
      if (STAGES == 1) {
        wgmma_wait_all();
      } else {
        wgmma_wait_all_but_one();
      }
      int done = STAGES == 1 ? step : step - 1;
      if (threadIdx.x % 32 == 0 && done >= 0) mbarrier_arrive(&shared->empty[done % STAGES]);
    }
    wgmma_wait_all();
    wgmma_registers_changed(d);
    float sum = 0;
    for (int i = 0; i < TILE / 2; i++) sum += d[i];
    sums[threadIdx.x] = sum;
  }
}

// Small whole numbers: bf16 and the sums are exact.
static float a_value(int m, int k) { return (float)((m * 3 + k * 5) % 7 - 3); }
static float b_value(int n, int k) { return (float)((n * 2 + k * 3) % 5 - 2); }

static CUtensorMap map_of(const char *name, float (*value)(int, int)) {
  static uint16_t matrix[TILE * K];
  for (int i = 0; i < TILE * K; i++) matrix[i] = bfloat16_from_float(value(i / K, i % K));
  void *device;
  CUDA_CHECK(cudaMalloc(&device, sizeof matrix));
  CUDA_CHECK(cudaMemcpy(device, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                   .dimensions = 2,
                   .address = device,
                   .size = {K, TILE},
                   .box = {STEP_K, TILE},
                   .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  return tensor_map_encode(name, &map);
}

// The sum of a thread's accumulators: of two rows of D, two of every eight columns.
static float expected_sum(int thread, int steps) {
  int row = thread / 32 * 16 + thread % 32 / 4;
  float sum = 0;
  for (int i = 0; i < TILE / 2; i++)
    for (int k = 0; k < steps * STEP_K; k++)
      sum += a_value(row + i / 2 % 2 * 8, k) * b_value(i / 4 * 8 + thread % 4 * 2 + i % 2, k);
  return sum;
}

template <int STAGES>
static void multiply(CUtensorMap a, CUtensorMap b, int steps, int launch, float *sums) {
  static float got[CONSUMERS], expected[CONSUMERS];
  enum { SHARED_BYTES = sizeof(Shared<STAGES>) + 1024 };  // space to align in
  printf("{\"choice\": {\"stages\": \"%d\", \"steps\": \"%d\"}, \"launch\": %d}\n", STAGES, steps,
         launch);
  CUDA_CHECK(cudaFuncSetAttribute(ring<STAGES>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  SHARED_BYTES));
  ring<STAGES><<<1, THREADS, SHARED_BYTES>>>(a, b, steps, sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  for (int thread = 0; thread < CONSUMERS; thread++) expected[thread] = expected_sum(thread, steps);
  check_tile("sums of the threads", ELEMENT_F32, got, expected, 1, CONSUMERS, 0);
}

int main(int argc, char **argv) {
  program_begin("turn_ring", argc, argv, NULL, 0);
  CUtensorMap a = map_of("A", a_value), b = map_of("B", b_value);
  float *sums;
  CUDA_CHECK(cudaMalloc(&sums, CONSUMERS * sizeof *sums));
  int launches = 0;
  for (int steps = MOST_STEPS; steps >= 3; steps /= 2) {
    multiply<1>(a, b, steps, launches++, sums);
    multiply<2>(a, b, steps, launches++, sums);
    multiply<3>(a, b, steps, launches++, sums);
    multiply<4>(a, b, steps, launches++, sums);
  }
  return program_end("%d choices", launches);
}
