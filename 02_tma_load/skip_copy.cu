// 02 skip_copy: what the barrier needs when a copy is left out.
//
//   beside tma_load; a sparse or masked kernel leaves out tiles that it knows to be zero
//
// Each step of this kernel fills a stage with two tiles, A and B, and a list says which of them are
// worth loading. The waiting threads need not know the list. So the phase must complete in any case,
// with exactly the bytes that come:
//
//     A and B wanted      arrive_expect_tx(two tiles), two loads
//     one of them         arrive_expect_tx(one tile), one load
//     none                arrive: a phase without bytes completes by its arrival alone
//
// If the producer announced two tiles and loaded one, the phase would never complete. If it did not
// arrive at all, this step's wait would hang, and every later parity would be wrong. What was not
// loaded still holds an older tile, so the consumers must leave it out of the sum, too.
//
// Prints, step by step, which tiles were loaded, the bytes announced and the sum.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_load.cuh"

enum {
  ROWS = 8,
  COLUMNS = 16,
  STEPS = 8,
  TILE_BYTES = ROWS * COLUMNS * sizeof(int),
  WANT_A = 1,
  WANT_B = 2
};
typedef int Tile[ROWS][COLUMNS];
typedef struct {
  int wanted[STEPS];  // WANT_A, WANT_B, both or none
} Plan;

__global__ void sum_wanted_tiles(const __grid_constant__ CUtensorMap a_map,
                                 const __grid_constant__ CUtensorMap b_map, Plan plan, int *sums) {
  __shared__ alignas(128) Tile a, b;
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int step = 0; step < STEPS; step++) {
    int wanted = plan.wanted[step];
    if (threadIdx.x == 0) {
      uint32_t bytes =
          ((wanted & WANT_A) != 0) * TILE_BYTES + ((wanted & WANT_B) != 0) * TILE_BYTES;
      if (bytes > 0) {
        mbarrier_arrive_expect_tx(&full, bytes);
      } else {
        mbarrier_arrive(&full);
      }
      if (wanted & WANT_A) tma_load_2d(a, &a_map, 0, step * ROWS, &full);
      if (wanted & WANT_B) tma_load_2d(b, &b_map, 0, step * ROWS, &full);
    }
    mbarrier_wait_parity(&full, step % 2);
    int sum = 0;
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
      if (wanted & WANT_A) sum += a[i / COLUMNS][i % COLUMNS];
      if (wanted & WANT_B) sum += b[i / COLUMNS][i % COLUMNS];
    }
    atomicAdd(&sums[step], sum);
    __syncthreads();  // everybody has read the tiles: the next step may overwrite them
  }
}

static CUtensorMap tensor_of_tiles(const char *name, int *address) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = address,
                   .size = {COLUMNS, STEPS * ROWS},
                   .box = {COLUMNS, ROWS}};
  return tensor_map_encode(name, &map);
}

int main(int argc, char **argv) {
  program_begin("skip_copy", argc, argv, NULL, 0);

  static int a[STEPS][ROWS][COLUMNS], b[STEPS][ROWS][COLUMNS];
  static const char *const names[] = {"none", "A", "B", "A and B"};
  const Plan plan = {{3, 1, 0, 2, 3, 0, 0, 1}};
  int expected[STEPS] = {0}, sums[STEPS];
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < ROWS * COLUMNS; i++) {
      a[step][i / COLUMNS][i % COLUMNS] = step * 1000 + i;
      b[step][i / COLUMNS][i % COLUMNS] = 1000000 + step * 1000 + i;
      if (plan.wanted[step] & WANT_A) expected[step] += a[step][i / COLUMNS][i % COLUMNS];
      if (plan.wanted[step] & WANT_B) expected[step] += b[step][i / COLUMNS][i % COLUMNS];
    }
  }
  int *device_a, *device_b, *device_sums;
  CUDA_CHECK(cudaMalloc(&device_a, sizeof a));
  CUDA_CHECK(cudaMalloc(&device_b, sizeof b));
  CUDA_CHECK(cudaMalloc(&device_sums, sizeof sums));
  CUDA_CHECK(cudaMemcpy(device_a, a, sizeof a, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b, sizeof b, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device_sums, 0, sizeof sums));
  sum_wanted_tiles<<<1, 64>>>(tensor_of_tiles("A", device_a), tensor_of_tiles("B", device_b), plan,
                              device_sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));

  printf("step  loaded   bytes announced        sum\n");
  for (int step = 0; step < STEPS; step++) {
    int wanted = plan.wanted[step];
    printf("%4d  %-8s %15d %10d\n", step, names[wanted],
           ((wanted & WANT_A) + (wanted & WANT_B) / 2) * TILE_BYTES, sums[step]);
  }
  check_tile("the sums", ELEMENT_S32, sums, expected, 1, STEPS, 0);
  CUDA_CHECK(cudaFree(device_a));
  CUDA_CHECK(cudaFree(device_b));
  CUDA_CHECK(cudaFree(device_sums));
  return program_end("%d steps, with both tiles, one or none, every sum", STEPS);
}
