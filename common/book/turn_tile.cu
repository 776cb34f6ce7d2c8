// turn_tile: the recordings behind the book's page on which the reader turns the box, the stride and the swizzle of a
// tile (chapter 06). Each choice is a launch of one warp: it loads 32 rows, and thread i reads chunk 0 of row i.
//
// A line of JSON for each choice says which launch it is, or why the driver refuses its tensor map.
#include <stdio.h>
#include <string.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../../06_swizzle_3d/swizzle.h"
#include "check.h"
#include "tensor_map.h"

enum { ROWS = 32, WIDEST = 64, MOST_STRIDE = 4, MATRIX_ROWS = ROWS * MOST_STRIDE, READ = 8 };

__global__ void read_column(const __grid_constant__ CUtensorMap map, uint32_t row_bytes,
                            SwizzleMode swizzle, uint16_t *values) {
  __shared__ alignas(1024) uint16_t tile[ROWS * WIDEST];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, ROWS * row_bytes);
    tma_load_2d(tile, &map, 0, 0, &barrier);
  }
  __syncwarp();
  mbarrier_wait_parity(&barrier, 0);
  uint32_t base = shared_address(tile);
  uint32_t place = swizzle_tile_address(swizzle, base, threadIdx.x, 0, row_bytes) - base;
  *(uint4 *)(values + threadIdx.x * READ) = *(const uint4 *)(tile + place / 2);
}

static uint16_t element_at(int row, int column) { return (uint16_t)(row * WIDEST + column); }

static void read_with(uint16_t *matrix, uint16_t *values, int columns, int stride, int swizzle) {
  static const char *const names[] = {"none", "32 bytes", "64 bytes", "128 bytes"};
  static const char *const strides[] = {"", "every row", "every 2nd row", "", "every 4th row"};
  static int launches;
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                   .dimensions = 2,
                   .address = matrix,
                   .size = {WIDEST, MATRIX_ROWS},
                   .box = {(uint32_t)columns, (uint32_t)(ROWS * stride)},
                   .element_stride = {1, (uint32_t)stride},
                   .swizzle = (CUtensorMapSwizzle)swizzle};
  printf("{\"choice\": {\"box\": \"%d columns\", \"stride\": \"%s\", \"swizzle\": \"%s\"}, ",
         columns, strides[stride], names[swizzle]);
  char text[4096];
  if (tensor_map_explain(&map, text, sizeof text)) {
    printf("\"refused\": \"%.*s\"}\n", (int)strcspn(text, "\n"), text);
    return;
  }
  printf("\"launch\": %d, \"label\": \"element\"}\n", launches++);
  read_column<<<1, ROWS>>>(tensor_map_encode("matrix", &map), (uint32_t)columns * 2,
                           (SwizzleMode)swizzle, values);
  CUDA_CHECK(cudaGetLastError());
  uint16_t got[ROWS][READ], expected[ROWS][READ];
  CUDA_CHECK(cudaMemcpy(got, values, sizeof got, cudaMemcpyDeviceToHost));
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < READ; column++)
      expected[row][column] = element_at(row * stride, column);
  check_tile("chunk 0 of each row", ELEMENT_U16, got, expected, ROWS, READ, 0);
}

int main(int argc, char **argv) {
  program_begin("turn_tile", argc, argv, NULL, 0);
  static uint16_t matrix[MATRIX_ROWS][WIDEST];
  for (int row = 0; row < MATRIX_ROWS; row++)
    for (int column = 0; column < WIDEST; column++) matrix[row][column] = element_at(row, column);
  uint16_t *device_matrix, *values;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&values, ROWS * READ * sizeof *values));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  int choices = 0;
  for (int columns = WIDEST; columns >= 16; columns /= 2)
    for (int stride = 1; stride <= MOST_STRIDE; stride *= 2)
      for (int swizzle = 0; swizzle <= SWIZZLE_128B; swizzle++, choices++)
        read_with(device_matrix, values, columns, stride, swizzle);
  return program_end("%d choices", choices);
}
