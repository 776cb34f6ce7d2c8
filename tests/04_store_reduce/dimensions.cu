// Every reduce of tma_reduce.cuh, by operation and number of dimensions: 8 operations on u32 tensors of 1 to 5
// dimensions, boxes in the middle of the tensor, everything around them left alone.
#include <stdio.h>
#include <string.h>

#include "../../03_tma_store/tma_store.cuh"
#include "../../04_store_reduce/tma_reduce.cuh"
#include "check.h"
#include "tensor_map.h"

enum { MOST_ELEMENTS = 8 * 5 * 4 * 3 * 3, MOST_BOX = 4 * 3 * 2 * 2 * 2 };
enum { ADD, MIN, MAX, INC, DEC, AND, OR, XOR, OPERATIONS };

typedef struct {
  int at[5];
} Coordinates;

#define REDUCE(number, name, dimensions, ...) \
  if (operation == number) tma_reduce_##name##_##dimensions##d(&map, tile, __VA_ARGS__);
#define FOR_EACH_OPERATION(dimensions, ...) \
  REDUCE(ADD, add, dimensions, __VA_ARGS__) \
  REDUCE(MIN, min, dimensions, __VA_ARGS__) \
  REDUCE(MAX, max, dimensions, __VA_ARGS__) \
  REDUCE(INC, inc, dimensions, __VA_ARGS__) \
  REDUCE(DEC, dec, dimensions, __VA_ARGS__) \
  REDUCE(AND, and, dimensions, __VA_ARGS__) \
  REDUCE(OR, or, dimensions, __VA_ARGS__)   \
  REDUCE(XOR, xor, dimensions, __VA_ARGS__)

__global__ void reduce_kernel(const __grid_constant__ CUtensorMap map, const Coordinates c,
                              int dimensions, int operation, int box_elements) {
  __shared__ __align__(128) uint32_t tile[MOST_BOX];
  for (int i = threadIdx.x; i < box_elements; i += blockDim.x) tile[i] = 3 * i + 1;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  switch (dimensions) {
    case 1:
      FOR_EACH_OPERATION(1, c.at[0]) break;
    case 2:
      FOR_EACH_OPERATION(2, c.at[0], c.at[1]) break;
    case 3:
      FOR_EACH_OPERATION(3, c.at[0], c.at[1], c.at[2]) break;
    case 4:
      FOR_EACH_OPERATION(4, c.at[0], c.at[1], c.at[2], c.at[3]) break;
    case 5:
      FOR_EACH_OPERATION(5, c.at[0], c.at[1], c.at[2], c.at[3], c.at[4]) break;
  }
  bulk_commit_group();
  bulk_wait_group<0>();
}

static uint32_t combine(int operation, uint32_t old_value, uint32_t tile_value) {
  if (operation == ADD) return old_value + tile_value;
  if (operation == MIN) return old_value < tile_value ? old_value : tile_value;
  if (operation == MAX) return old_value > tile_value ? old_value : tile_value;
  if (operation == INC) return old_value >= tile_value ? 0 : old_value + 1;
  if (operation == DEC)
    return old_value == 0 || old_value > tile_value ? tile_value : old_value - 1;
  if (operation == AND) return old_value & tile_value;
  if (operation == OR) return old_value | tile_value;
  return old_value ^ tile_value;
}

int main(int argc, char **argv) {
  program_begin("reduce dimensions", argc, argv, NULL, 0);
  static const int size[5] = {8, 5, 4, 3, 3}, box[5] = {4, 3, 2, 2, 2};
  const Coordinates at = {{4, 1, 1, 0, 1}};
  uint32_t *tensor;
  CUDA_CHECK(cudaMalloc(&tensor, MOST_ELEMENTS * 4));
  for (int dimensions = 1; dimensions <= 5; dimensions++) {
    TensorMap map = {
        .type = CU_TENSOR_MAP_DATA_TYPE_UINT32, .dimensions = dimensions, .address = tensor};
    int elements = 1, box_elements = 1;
    for (int i = 0; i < dimensions; i++) {
      map.size[i] = (uint64_t)size[i];
      map.box[i] = (uint32_t)box[i];
      elements *= size[i];
      box_elements *= box[i];
    }
    CUtensorMap encoded = tensor_map_encode("the tensor", &map);
    for (int operation = 0; operation < OPERATIONS; operation++) {
      static uint32_t before[MOST_ELEMENTS], after[MOST_ELEMENTS], expected[MOST_ELEMENTS];
      for (int i = 0; i < elements; i++) before[i] = (uint32_t)(i * 5 % 97);
      memcpy(expected, before, sizeof expected);
      for (int b = 0; b < box_elements; b++) {
        int rest = b, place = 0, step = 1;
        for (int i = 0; i < dimensions; i++) {
          place += (at.at[i] + rest % box[i]) * step;
          rest /= box[i];
          step *= size[i];
        }
        expected[place] = combine(operation, before[place], (uint32_t)(3 * b + 1));
      }
      CUDA_CHECK(cudaMemcpy(tensor, before, (size_t)elements * 4, cudaMemcpyHostToDevice));
      reduce_kernel<<<1, 32>>>(encoded, at, dimensions, operation, box_elements);
      CUDA_CHECK(cudaGetLastError());
      CUDA_CHECK(cudaMemcpy(after, tensor, (size_t)elements * 4, cudaMemcpyDeviceToHost));
      char what[64];
      snprintf(what, sizeof what, "operation %d on %d dimensions", operation, dimensions);
      check_tile(what, ELEMENT_U32, after, expected, elements / 8, 8, 0);
    }
  }
  return program_end("8 operations on 1 to 5 dimensions, every element");
}
