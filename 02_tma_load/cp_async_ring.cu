// 02 cp_async_ring: cp.async and TMA fill one stage, and one barrier reports both.
//
//   beside tma_load
//
// TMA copies boxes. What is no box (here: rows picked by a list) can come from threads, with
// cp.async, 16 bytes each. Both can report to the same barrier, so the consumers wait once:
//
//   the box       arrive_expect_tx(bytes) and tma_load_2d, by one lane          1 arrival, bytes
//   the rows      cp.async by every lane, and then                              32 arrivals
//                 cp.async.mbarrier.arrive.noinc: "I arrive when mine have landed"
//
// mbarrier_init gets 33. The producer's warp never waits for what it has copied: it runs STAGES ahead,
// and a second barrier per stage reports that the consumers have read it.
//
// Without .noinc the instruction first adds one to the pending arrivals, and cancels only that: the
// 32 arrivals of mbarrier_init never come (pitfalls/cp_async_arrival_not_counted).
#include <stdio.h>

#include "check.h"
#include "mbarrier_counts.cuh"
#include "tensor_map.h"
#include "tma_load.cuh"

enum {
  STAGES = 3,
  STEPS = 10,
  ROWS = 8,      // of a box, and of a list
  COLUMNS = 16,  // 64 bytes: four lanes copy a row
  POOL_ROWS = 100,
  TILE_BYTES = ROWS * COLUMNS * sizeof(int),
  LANES_PER_ROW = COLUMNS * sizeof(int) / 16,
  CONSUMERS = 64,
};
typedef int Tile[ROWS][COLUMNS];

// sums[step] = the sum of the products of box `step` with the rows that list[step] picks.
__global__ void multiply_picked(const __grid_constant__ CUtensorMap boxes, const int *pool,
                                const int *list, int *sums) {
  __shared__ alignas(128) Tile box[STAGES], picked[STAGES];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&full[stage], 1 + 32);
      mbarrier_init(&empty[stage], CONSUMERS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  bool producer = threadIdx.x >= CONSUMERS;
  int lane = threadIdx.x % 32;
  for (int step = 0; step < STEPS; step++) {
    int stage = step % STAGES, parity = (step / STAGES) % 2;
    if (producer) {
      mbarrier_wait_parity(&empty[stage], parity ^ 1);
      if (lane == 0) {
        mbarrier_arrive_expect_tx(&full[stage], TILE_BYTES);
        tma_load_2d(box[stage], &boxes, 0, step * ROWS, &full[stage]);
      }
      int row = lane / LANES_PER_ROW, column = lane % LANES_PER_ROW * 4;
      cp_async_16(&picked[stage][row][column], &pool[list[step * ROWS + row] * COLUMNS + column]);
      cp_async_mbarrier_arrive(&full[stage]);
    } else {
      mbarrier_wait_parity(&full[stage], parity);
      int sum = 0;
      for (int i = threadIdx.x; i < ROWS * COLUMNS; i += CONSUMERS) {
        sum += box[stage][i / COLUMNS][i % COLUMNS] * picked[stage][i / COLUMNS][i % COLUMNS];
      }
      atomicAdd(&sums[step], sum);
      mbarrier_arrive(&empty[stage]);
    }
  }
}

int main(int argc, char **argv) {
  program_begin("cp_async_ring", argc, argv, NULL, 0);
  static int boxes[STEPS * ROWS][COLUMNS], pool[POOL_ROWS][COLUMNS], list[STEPS * ROWS];
  int sums[STEPS], expected[STEPS] = {0};
  for (int i = 0; i < STEPS * ROWS * COLUMNS; i++) boxes[i / COLUMNS][i % COLUMNS] = i % 11 + 1;
  for (int i = 0; i < POOL_ROWS * COLUMNS; i++) pool[i / COLUMNS][i % COLUMNS] = i % 101;
  for (int row = 0; row < STEPS * ROWS; row++) {
    list[row] = (37 * row + 5) % POOL_ROWS;
    for (int column = 0; column < COLUMNS; column++)
      expected[row / ROWS] += boxes[row][column] * pool[list[row]][column];
  }
  void *device_boxes;
  int *device_pool, *device_list, *device_sums;
  CUDA_CHECK(cudaMalloc(&device_boxes, sizeof boxes));
  CUDA_CHECK(cudaMalloc(&device_pool, sizeof pool));
  CUDA_CHECK(cudaMalloc(&device_list, sizeof list));
  CUDA_CHECK(cudaMalloc(&device_sums, sizeof sums));
  CUDA_CHECK(cudaMemcpy(device_boxes, boxes, sizeof boxes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_pool, pool, sizeof pool, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_list, list, sizeof list, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device_sums, 0, sizeof sums));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_boxes,
                   .size = {COLUMNS, STEPS * ROWS},
                   .box = {COLUMNS, ROWS}};
  multiply_picked<<<1, CONSUMERS + 32>>>(tensor_map_encode("boxes", &map), device_pool, device_list,
                                         device_sums);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));

  printf("step  rows of the pool                  sum\n");
  for (int step = 0; step < STEPS; step++) {
    printf("%4d ", step);
    for (int row = 0; row < ROWS; row++) printf(" %2d", list[step * ROWS + row]);
    printf(" %10d\n", sums[step]);
  }
  check_tile("the sums", ELEMENT_S32, sums, expected, 1, STEPS, 0);
  CUDA_CHECK(cudaFree(device_boxes));
  CUDA_CHECK(cudaFree(device_pool));
  CUDA_CHECK(cudaFree(device_list));
  CUDA_CHECK(cudaFree(device_sums));
  return program_end("%d stages of a ring, each filled by TMA and by cp.async", STEPS);
}
