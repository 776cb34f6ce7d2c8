// 02 elect_one: "one thread issues the copy", the way CUTLASS writes it.
//
//   beside first_load, which writes if (threadIdx.x == 0)
//
// elect.sync chooses one lane of the warp. Its answer is a predicate that is true in exactly one of
// the lanes that the mask names. Compared with threadIdx.x == 0:
//
//   - It works in any warp, and in a warp where lane 0 does not take part.
//   - The compiler knows that the branch is taken by one lane, so it need not make a loop over
//     diverged lanes of the instructions inside, and can keep their operands in uniform registers.
//   - All lanes of the mask must execute it together.
//
// Which lane is chosen is up to the hardware. Do not choose again between a store's issue, its
// commit and its wait (chapter 03): they must be executed by the same thread. Elect once and keep
// the answer.
//
// Prints which lane was chosen for several masks, and loads one tile for each of four warps.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_load.cuh"

enum { WARPS = 4, ROWS = 8, COLUMNS = 16 };
typedef int Tile[ROWS][COLUMNS];

__global__ void choose(const uint32_t *masks, unsigned *chosen) {
  uint32_t mask = masks[blockIdx.x];
  if (mask >> threadIdx.x & 1 && elect_one_of(mask)) chosen[blockIdx.x] |= 1u << threadIdx.x;
}

__global__ void load_by_warps(const __grid_constant__ CUtensorMap map, Tile *results) {
  __shared__ alignas(128) Tile tile[WARPS];
  __shared__ uint64_t barrier[WARPS];
  int warp = threadIdx.x / 32;
  if (elect_one()) {  // one lane of each warp
    mbarrier_init(&barrier[warp], 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier[warp], sizeof tile[warp]);
    tma_load_2d(tile[warp], &map, 0, warp * ROWS, &barrier[warp]);
  }
  __syncwarp();  // the other lanes of this warp may use the barrier now
  mbarrier_wait_parity(&barrier[warp], 0);
  for (int i = threadIdx.x % 32; i < ROWS * COLUMNS; i += 32) {
    results[warp][i / COLUMNS][i % COLUMNS] = tile[warp][i / COLUMNS][i % COLUMNS];
  }
}

int main(int argc, char **argv) {
  program_begin("elect_one", argc, argv, NULL, 0);

  // 1. Masks.
  static const uint32_t masks[] = {0xffffffff, 0xffff0000, 0x00000220, 0x80000000};
  enum { MASKS = sizeof masks / sizeof masks[0] };
  uint32_t *device_masks;
  unsigned chosen[MASKS], *device_chosen;
  CUDA_CHECK(cudaMalloc(&device_masks, sizeof masks));
  CUDA_CHECK(cudaMalloc(&device_chosen, sizeof chosen));
  CUDA_CHECK(cudaMemcpy(device_masks, masks, sizeof masks, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device_chosen, 0, sizeof chosen));
  choose<<<MASKS, 32>>>(device_masks, device_chosen);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(chosen, device_chosen, sizeof chosen, cudaMemcpyDeviceToHost));
  for (int i = 0; i < MASKS; i++) {
    bool one = chosen[i] != 0 && (chosen[i] & (chosen[i] - 1)) == 0;
    check_that(one && (chosen[i] & masks[i]) != 0, "mask %08x: exactly one of its lanes, got %08x",
               masks[i], chosen[i]);
    printf("mask %08x: lane %d\n", masks[i], one ? __builtin_ctz(chosen[i]) : -1);
  }

  // 2. Four warps, one load each.
  static int matrix[WARPS * ROWS][COLUMNS];
  for (int i = 0; i < WARPS * ROWS * COLUMNS; i++) matrix[i / COLUMNS][i % COLUMNS] = 1000 + i;
  void *device_matrix;
  static Tile results[WARPS];
  Tile *device_results;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_results, sizeof results));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {COLUMNS, WARPS * ROWS},
                   .box = {COLUMNS, ROWS}};
  load_by_warps<<<1, WARPS * 32>>>(tensor_map_encode("matrix", &map), device_results);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
  check_tile("tiles", ELEMENT_S32, results, matrix, WARPS * ROWS, COLUMNS, 0);
  return program_end("one lane of each mask, and %d tiles by %d warps", WARPS, WARPS);
}
