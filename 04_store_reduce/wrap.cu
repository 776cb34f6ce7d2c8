// 04 store reduce, aside: inc and dec, the two operations that wrap around.
//
// Both work on one type only, u32. The tile's element is not an amount but a limit: inc counts 0, 1, ...,
// limit, 0, 1, ... and dec counts down and starts again from the limit, element by element, as
// atomicInc and atomicDec do. A whole tile of ring-buffer indices moves on with one instruction.
//
//   inc: old >= limit             ? 0     : old + 1
//   dec: old == 0 || old > limit  ? limit : old - 1
//
// Eight counters with the limits 0 to 7 start at 5, so the first four or five of them start above
// their limit; eight reduces follow one another.
#include <stdio.h>

#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tma_reduce.cuh"

enum { COUNTERS = 8, STEPS = 8, START = 5 };

// The same eight limits at every step. The engine only reads the tile, so it is written once. history[step] is what the counters were before that step.
__global__ void count_kernel(const __grid_constant__ CUtensorMap counters_map,
                             const uint32_t *counters, uint32_t *history, bool upwards) {
  __shared__ __align__(128) uint32_t limits[COUNTERS];
  limits[threadIdx.x] = threadIdx.x;
  fence_proxy_async();
  __syncthreads();

  for (int step = 0; step <= STEPS; step++) {
    // Volatile: the engine changes the counters behind the compiler's back.
    history[step * COUNTERS + threadIdx.x] = ((const volatile uint32_t *)counters)[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0 && step < STEPS) {
      if (upwards) {
        tma_reduce_inc_1d(&counters_map, limits, 0);
      } else {
        tma_reduce_dec_1d(&counters_map, limits, 0);
      }
      bulk_commit_group();
      bulk_wait_group<0>();  // not .read: the next step reads the counters in global memory
    }
    __syncthreads();
  }
}

static void count(const char *name, bool upwards, uint32_t *counters, uint32_t *history_on_device) {
  uint32_t start[COUNTERS], history[STEPS + 1][COUNTERS], expected[STEPS + 1][COUNTERS];
  for (uint32_t limit = 0; limit < COUNTERS; limit++) {
    uint32_t value = START;
    start[limit] = START;
    for (int step = 0; step <= STEPS; step++) {
      expected[step][limit] = value;
      value = upwards ? (value >= limit ? 0 : value + 1)
                      : (value == 0 || value > limit ? limit : value - 1);
    }
  }
  CUDA_CHECK(cudaMemcpy(counters, start, sizeof start, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                   .dimensions = 1,
                   .address = counters,
                   .size = {COUNTERS},
                   .box = {COUNTERS}};
  CUtensorMap encoded = tensor_map_encode("the counters", &map);
  count_kernel<<<1, COUNTERS>>>(encoded, counters, history_on_device, upwards);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(history, history_on_device, sizeof history, cudaMemcpyDeviceToHost));

  printf("%s   step:  start", name);
  for (int step = 1; step <= STEPS; step++) printf("  %d", step);
  printf("\n");
  for (int limit = 0; limit < COUNTERS; limit++) {
    printf("  limit %d  %9u", limit, history[0][limit]);
    for (int step = 1; step <= STEPS; step++) printf("  %u", history[step][limit]);
    printf("\n");
  }
  printf("\n");
  check_tile(name, ELEMENT_U32, history, expected, STEPS + 1, COUNTERS, 0);
}

int main(int argc, char **argv) {
  program_begin("wrap", argc, argv, NULL, 0);
  uint32_t *counters, *history;
  CUDA_CHECK(cudaMalloc(&counters, COUNTERS * sizeof *counters));
  CUDA_CHECK(cudaMalloc(&history, (STEPS + 1) * COUNTERS * sizeof *history));
  count("inc", true, counters, history);
  count("dec", false, counters, history);
  CUDA_CHECK(cudaFree(counters));
  CUDA_CHECK(cudaFree(history));
  return program_end("inc and dec of %d counters, each after each of %d steps", COUNTERS, STEPS);
}
