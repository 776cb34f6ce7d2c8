// 03 tma_store, side program dimensions: boxes stored into tensors of 1 to 5 dimensions, runs of bytes.
//
//   01 tiledcopy | 02 load | [03 store] | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// As for loads, the instruction's name carries the tensor's number of dimensions, and there are as many
// coordinates, the innermost first. The tile holds a box without gaps, again innermost first:
//
//   tile    element (x, y, z) at tile[x + box[0] * (y + box[1] * z)]
//   tensor  element (x, y, z) at address + x * size + y * stride[0] + z * stride[1]
//
// For each number of dimensions the boxes cover a small tensor; those over its edges are clipped. Beside them
// bulk_store, which needs no tensor map and has no edge: it writes every byte of its run.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_store_dimensions.cuh"

enum { MOST_BOX_ELEMENTS = 256, MOST_ELEMENTS = 512, THREADS = 64 };

typedef struct {
  int at[5];
} Five;

// One block per box. The element with index i, counted through the tensor, is to hold i + 1.
__global__ void store_boxes(const __grid_constant__ CUtensorMap map, int dimensions, Five size,
                            Five box, int box_elements) {
  __shared__ alignas(128) int32_t tile[MOST_BOX_ELEMENTS];
  int at[5], rest = blockIdx.x;  // where the box begins
  for (int d = 0; d < dimensions; d++) {
    int boxes = (size.at[d] + box.at[d] - 1) / box.at[d];
    at[d] = rest % boxes * box.at[d];
    rest /= boxes;
  }
  for (int i = threadIdx.x; i < box_elements; i += THREADS) {
    int inside = i, index = 0, stride = 1;
    for (int d = 0; d < dimensions; d++) {
      index += (at[d] + inside % box.at[d]) * stride;
      inside /= box.at[d];
      stride *= size.at[d];
    }
    tile[i] = index + 1;
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (dimensions == 1) tma_store_1d(&map, tile, at[0]);
    if (dimensions == 2) tma_store_2d(&map, tile, at[0], at[1]);
    if (dimensions == 3) tma_store_3d(&map, tile, at[0], at[1], at[2]);
    if (dimensions == 4) tma_store_4d(&map, tile, at[0], at[1], at[2], at[3]);
    if (dimensions == 5) tma_store_5d(&map, tile, at[0], at[1], at[2], at[3], at[4]);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

// The same for runs of bytes: block i writes the i-th run.
__global__ void store_runs(int32_t *destination, int run_elements) {
  __shared__ alignas(128) int32_t run[MOST_BOX_ELEMENTS];
  int first = blockIdx.x * run_elements;
  for (int i = threadIdx.x; i < run_elements; i += THREADS) run[i] = first + i + 1;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(destination + first, run, run_elements * sizeof(int32_t));
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

typedef struct {
  int dimensions;
  Five size, box;
} Case;

static const Case cases[] = {
    {1, {{100}}, {{32}}},
    {2, {{20, 6}}, {{8, 4}}},
    {3, {{12, 5, 3}}, {{4, 4, 2}}},
    {4, {{8, 3, 4, 3}}, {{4, 2, 3, 2}}},
    {5, {{8, 3, 2, 3, 2}}, {{8, 2, 2, 2, 1}}},
};
enum { CASES = sizeof cases / sizeof cases[0], RUN = 32, RUNS = 3 };

static int32_t *device_tensor;

// All elements must hold what they are to hold, and what follows the tensor nothing new.
static void compare(const char *what, int elements) {
  int32_t got[MOST_ELEMENTS], expected[MOST_ELEMENTS];
  CUDA_CHECK(cudaMemcpy(got, device_tensor, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < MOST_ELEMENTS; i++) expected[i] = i < elements ? i + 1 : -1;
  check_tile(what, ELEMENT_S32, got, expected, MOST_ELEMENTS / 8, 8, 0);
}

static void print_sizes(const char *text, const Five *sizes, int dimensions) {
  printf("%s(", text);
  for (int d = 0; d < dimensions; d++) printf("%s%d", d ? "," : "", sizes->at[d]);
  printf(")");
}

static void run_case(const Case *c) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32, .dimensions = c->dimensions};
  map.address = device_tensor;
  int elements = 1, boxes = 1, box_elements = 1;
  for (int d = 0; d < c->dimensions; d++) {
    map.size[d] = (uint64_t)c->size.at[d];
    map.box[d] = (uint32_t)c->box.at[d];
    elements *= c->size.at[d];
    box_elements *= c->box.at[d];
    boxes *= (c->size.at[d] + c->box.at[d] - 1) / c->box.at[d];
  }
  CUDA_CHECK(cudaMemset(device_tensor, 0xff, MOST_ELEMENTS * sizeof(int32_t)));  // -1 everywhere
  store_boxes<<<boxes, THREADS>>>(tensor_map_encode("tensor", &map), c->dimensions, c->size, c->box,
                                  box_elements);
  CUDA_CHECK(cudaGetLastError());
  char what[32];
  snprintf(what, sizeof what, "%dD", c->dimensions);
  compare(what, elements);
  printf("%s", what);
  print_sizes("  tensor ", &c->size, c->dimensions);
  print_sizes("  box ", &c->box, c->dimensions);
  printf("  %d boxes of %d elements for a tensor of %d\n", boxes, box_elements, elements);
}

int main(int argc, char **argv) {
  program_begin("dimensions", argc, argv, NULL, 0);
  CUDA_CHECK(cudaMalloc(&device_tensor, MOST_ELEMENTS * sizeof(int32_t)));
  for (int i = 0; i < CASES; i++) run_case(&cases[i]);

  CUDA_CHECK(cudaMemset(device_tensor, 0xff, MOST_ELEMENTS * sizeof(int32_t)));
  store_runs<<<RUNS, THREADS>>>(device_tensor, RUN);
  CUDA_CHECK(cudaGetLastError());
  compare("runs of bytes", RUNS * RUN);
  printf("run of bytes, no tensor map  %d runs of %zu bytes\n", RUNS, RUN * sizeof(int32_t));
  CUDA_CHECK(cudaFree(device_tensor));
  return program_end("every element of tensors of 1 to %d dimensions, and %d runs of bytes", CASES,
                     RUNS);
}
