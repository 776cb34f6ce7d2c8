// 02 tma_load, side program dimensions: boxes of tensors of 1 to 5 dimensions, and a run of bytes.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// The instruction's name carries the tensor's number of dimensions, and there are as many coordinates, the
// innermost first. A box lands in shared memory without gaps, again innermost first:
//
//   tensor  element (x, y, z) at address + x * size + y * stride[0] + z * stride[1]
//   tile    element (x, y, z) at tile[x + box[0] * (y + box[1] * z)]
//
// For each number of dimensions every box of a small tensor is loaded, also those over the edges. Beside them
// bulk_load, which needs no tensor map: it copies a run of bytes, has no box, no edge and no fill.
// Its bytes must exist; in return nothing has to be prepared on the host.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_load_dimensions.cuh"

enum { MOST_BOX_ELEMENTS = 256, THREADS = 64 };

typedef struct {
  int at[5];
} Coordinates;

// One block per box: its coordinates are box_at[blockIdx.x], what arrived goes to landed.
__global__ void load_boxes(const __grid_constant__ CUtensorMap map, int dimensions,
                           int box_elements, const Coordinates *box_at, int32_t *landed) {
  __shared__ alignas(128) int32_t tile[MOST_BOX_ELEMENTS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, box_elements * sizeof(int32_t));
    const int *at = box_at[blockIdx.x].at;
    switch (dimensions) {
      case 1:
        tma_load_1d(tile, &map, at[0], &barrier);
        break;
      case 2:
        tma_load_2d(tile, &map, at[0], at[1], &barrier);
        break;
      case 3:
        tma_load_3d(tile, &map, at[0], at[1], at[2], &barrier);
        break;
      case 4:
        tma_load_4d(tile, &map, at[0], at[1], at[2], at[3], &barrier);
        break;
      case 5:
        tma_load_5d(tile, &map, at[0], at[1], at[2], at[3], at[4], &barrier);
        break;
    }
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < box_elements; i += THREADS) {
    landed[blockIdx.x * box_elements + i] = tile[i];
  }
}

// The same for runs of bytes: block i takes the i-th run.
__global__ void load_runs(const int32_t *source, int run_elements, int32_t *landed) {
  __shared__ alignas(128) int32_t run[MOST_BOX_ELEMENTS];
  __shared__ uint64_t barrier;
  uint32_t run_bytes = run_elements * sizeof(int32_t);
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, run_bytes);
    bulk_load(run, source + blockIdx.x * run_elements, run_bytes, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < run_elements; i += THREADS) {
    landed[blockIdx.x * run_elements + i] = run[i];
  }
}

typedef struct {
  int dimensions;
  uint64_t size[5];
  uint32_t box[5];
} Case;

static const Case cases[] = {
    {1, {100}, {32}},
    {2, {20, 6}, {8, 4}},
    {3, {12, 5, 3}, {4, 4, 2}},
    {4, {8, 3, 4, 3}, {4, 2, 3, 2}},
    {5, {8, 3, 2, 3, 2}, {8, 2, 2, 2, 1}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

// Splits a flat index into coordinates, innermost first.
static Coordinates split(uint64_t index, const uint64_t *size, int dimensions) {
  Coordinates coordinates = {{0}};
  for (int d = 0; d < dimensions; d++) {
    coordinates.at[d] = (int)(index % size[d]);
    index /= size[d];
  }
  return coordinates;
}

static void print_sizes(const char *text, const int *sizes, int dimensions) {
  printf("%s(", text);
  for (int d = 0; d < dimensions; d++) printf("%s%d", d ? "," : "", sizes[d]);
  printf(")");
}

static void run_case(const Case *c) {
  uint64_t elements = 1, boxes = 1, box_elements = 1, grid[5] = {1, 1, 1, 1, 1};
  uint64_t box_size[5] = {1, 1, 1, 1, 1};
  int sizes[5] = {0}, box_sizes[5] = {0};
  for (int d = 0; d < c->dimensions; d++) {
    elements *= c->size[d];
    box_elements *= c->box[d];
    box_size[d] = c->box[d];
    grid[d] = (c->size[d] + c->box[d] - 1) / c->box[d];
    boxes *= grid[d];
    sizes[d] = (int)c->size[d];
    box_sizes[d] = (int)c->box[d];
  }

  // Element number i holds i + 1: zero stands for outside.
  int32_t *tensor = (int32_t *)malloc(elements * sizeof *tensor);
  for (uint64_t i = 0; i < elements; i++) tensor[i] = (int32_t)i + 1;
  Coordinates *box_at = (Coordinates *)malloc(boxes * sizeof *box_at);
  for (uint64_t b = 0; b < boxes; b++) {
    box_at[b] = split(b, grid, c->dimensions);
    for (int d = 0; d < c->dimensions; d++) box_at[b].at[d] *= (int)c->box[d];
  }
  size_t landed_bytes = boxes * box_elements * sizeof(int32_t);
  int32_t *device_tensor, *device_landed, *landed = (int32_t *)malloc(landed_bytes);
  Coordinates *device_box_at;
  CUDA_CHECK(cudaMalloc(&device_tensor, elements * sizeof *tensor));
  CUDA_CHECK(cudaMalloc(&device_box_at, boxes * sizeof *box_at));
  CUDA_CHECK(cudaMalloc(&device_landed, landed_bytes));
  CUDA_CHECK(cudaMemcpy(device_tensor, tensor, elements * sizeof *tensor, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_box_at, box_at, boxes * sizeof *box_at, cudaMemcpyHostToDevice));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32, .dimensions = c->dimensions};
  map.address = device_tensor;
  for (int d = 0; d < c->dimensions; d++) {
    map.size[d] = c->size[d];
    map.box[d] = c->box[d];
  }
  load_boxes<<<(unsigned)boxes, THREADS>>>(tensor_map_encode("tensor", &map), c->dimensions,
                                           (int)box_elements, device_box_at, device_landed);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(landed, device_landed, landed_bytes, cudaMemcpyDeviceToHost));

  int32_t expected[MOST_BOX_ELEMENTS];
  for (uint64_t b = 0; b < boxes; b++) {
    for (uint64_t i = 0; i < box_elements; i++) {
      Coordinates inside_box = split(i, box_size, c->dimensions);
      uint64_t index = 0, stride = 1;
      bool inside = true;
      for (int d = 0; d < c->dimensions; d++) {
        uint64_t at = (uint64_t)(box_at[b].at[d] + inside_box.at[d]);
        inside = inside && at < c->size[d];
        index += at * stride;
        stride *= c->size[d];
      }
      expected[i] = inside ? (int32_t)index + 1 : 0;
    }
    char what[48];
    snprintf(what, sizeof what, "%dD, box %llu", c->dimensions, (unsigned long long)b);
    check_tile(what, ELEMENT_S32, landed + b * box_elements, expected,
               (long)(box_elements / c->box[0]), c->box[0], 0);
  }

  printf("%dD  ", c->dimensions);
  print_sizes("tensor ", sizes, c->dimensions);
  print_sizes("  box ", box_sizes, c->dimensions);
  printf("  %llu boxes of %llu bytes\n", (unsigned long long)boxes,
         (unsigned long long)(box_elements * sizeof(int32_t)));
  print_sizes("      last box, at ", box_at[boxes - 1].at, c->dimensions);
  printf(", begins");
  for (int i = 0; i < 8; i++) printf(" %d", landed[(boxes - 1) * box_elements + i]);
  printf("\n");
  CUDA_CHECK(cudaFree(device_tensor));
  CUDA_CHECK(cudaFree(device_box_at));
  CUDA_CHECK(cudaFree(device_landed));
  free(tensor);
  free(box_at);
  free(landed);
}

enum { RUN = 32, RUNS = 3, ELEMENTS = RUN * RUNS };

static void run_bulk(void) {
  int32_t source[ELEMENTS], landed[ELEMENTS], *device_source, *device_landed;
  for (int i = 0; i < ELEMENTS; i++) source[i] = i + 1;
  CUDA_CHECK(cudaMalloc(&device_source, sizeof source));
  CUDA_CHECK(cudaMalloc(&device_landed, sizeof landed));
  CUDA_CHECK(cudaMemcpy(device_source, source, sizeof source, cudaMemcpyHostToDevice));
  load_runs<<<RUNS, THREADS>>>(device_source, RUN, device_landed);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(landed, device_landed, sizeof landed, cudaMemcpyDeviceToHost));
  check_tile("runs of bytes", ELEMENT_S32, landed, source, RUNS, RUN, 0);
  printf("run of bytes, no tensor map  %d runs of %zu bytes\n", RUNS, RUN * sizeof(int32_t));
  printf("      last run begins");
  for (int i = 0; i < 8; i++) printf(" %d", landed[(RUNS - 1) * RUN + i]);
  printf("\n");
}

int main(int argc, char **argv) {
  program_begin("dimensions", argc, argv, NULL, 0);
  for (int i = 0; i < CASES; i++) run_case(&cases[i]);
  run_bulk();
  return program_end("every box of tensors of 1 to %d dimensions, and %d runs of bytes", CASES,
                     RUNS);
}
