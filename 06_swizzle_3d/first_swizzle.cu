// 06 first_swizzle: TMA writes a tile of 8 rows of 128 bytes with the 128-byte swizzle. Thread r
// reads chunk 0 of row r: at the address that swizzle.h computes, not at row * 128.
#include <stdio.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "swizzle.h"
#include "tensor_map.h"

enum { ROWS = 8, COLUMNS = 32, ROW_BYTES = COLUMNS * 4 };  // a row is one span of the swizzle

__global__ void read_column(const __grid_constant__ CUtensorMap map, int *values, int *chunks) {
  __shared__ alignas(1024) char tile[ROWS * ROW_BYTES];  // the pattern repeats every 1,024 bytes
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof tile);
    tma_load_2d(tile, &map, 0, 0, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);

  uint32_t offset = threadIdx.x * ROW_BYTES;  // where chunk 0 of this row would be
  uint32_t base = shared_address(tile);
  uint32_t swizzled = swizzle_128b(base + offset) - base;  // where it is
  values[threadIdx.x] = *(const int *)(tile + swizzled);
  chunks[threadIdx.x] = (int)(swizzled % ROW_BYTES / 16);
}

int main(int argc, char **argv) {
  program_begin("first_swizzle", argc, argv, NULL, 0);
  static int matrix[ROWS][COLUMNS];
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) matrix[row][column] = 100 * row + column;
  void *device_matrix;
  int *device_values, *device_chunks, values[ROWS], chunks[ROWS];
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_values, sizeof values));
  CUDA_CHECK(cudaMalloc(&device_chunks, sizeof chunks));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {COLUMNS, ROWS},
                   .box = {COLUMNS, ROWS},
                   .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  read_column<<<1, ROWS>>>(tensor_map_encode("matrix", &map), device_values, device_chunks);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(values, device_values, sizeof values, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(chunks, device_chunks, sizeof chunks, cudaMemcpyDeviceToHost));
  for (int row = 0; row < ROWS; row++) {
    printf("row %d: chunk 0 lies in place %d and begins with %d\n", row, chunks[row], values[row]);
    check_that(values[row] == 100 * row, "row %d: expected %d, got %d", row, 100 * row,
               values[row]);
  }
  return program_end("chunk 0 of %d rows", ROWS);
}
