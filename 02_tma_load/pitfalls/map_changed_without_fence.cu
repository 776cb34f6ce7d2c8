// pitfall map_changed_without_fence: the tensor map is changed, and no fence follows
//   H200: wrong results
//   report: tensormap-not-fenced
//
// tensormap.replace and tensormap.cp_fenceproxy put a new address into the map, which is used
// again at once. The engine reads maps through a proxy of their own, and has read this one before:
// without fence.proxy.tensormap (acquire) between the change and the copy it may go by what it
// remembers, and fetch the old matrix a second time. The acquire at the beginning, of scope .sys,
// is for what the host has written, and of no use later.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): wrong results each time: the
// first matrix came twice. With an acquire just before the change they were right each time, by
// luck: the engine then had to read the map again anyway.
#include <stdio.h>
#include <stdlib.h>

#include "../tma_load.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 32,
  COLUMNS = 32,
  TILE_ELEMENTS = ROWS * COLUMNS,
  TILE_BYTES = TILE_ELEMENTS * sizeof(int),
};

static __device__ void set_address(CUtensorMap *shared_map, const void *address) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(
                   shared_address(shared_map)),
               "l"(address)
               : "memory");
}

static __device__ void publish(CUtensorMap *global_map, const CUtensorMap *shared_map) {
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
      " [%0], [%1], 128;" ::"l"(global_map),
      "r"(shared_address(shared_map))
      : "memory");
}

static __device__ void acquire(const CUtensorMap *global_map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(global_map)
               : "memory");
}

// One warp copies two matrices with one map, whose address it changes in between.
__global__ void copy_both(CUtensorMap *map, const int *second, int *copy) {
  __shared__ alignas(128) CUtensorMap own_map;
  __shared__ alignas(128) int tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  ((uint32_t *)&own_map)[threadIdx.x] = ((const uint32_t *)map)[threadIdx.x];
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncwarp();
  acquire(map);
  for (int number = 0; number < 2; number++) {
    if (number == 1) {
      if (threadIdx.x == 0) set_address(&own_map, second);
      __syncwarp();
      publish(map, &own_map);
    }
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
      tma_load_2d(tile, map, 0, 0, &barrier);
    }
    __syncwarp();
    mbarrier_wait_parity(&barrier, number & 1);
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += 32) {
      copy[number * TILE_ELEMENTS + i] = tile[i];
    }
    __syncwarp();
  }
}

int main(int argc, char **argv) {
  program_begin("map_changed_without_fence", argc, argv, NULL, 0);
  static int matrices[2 * TILE_ELEMENTS], got[2 * TILE_ELEMENTS];
  for (int i = 0; i < 2 * TILE_ELEMENTS; i++) matrices[i] = i + 1;
  int *source, *copy;
  CUtensorMap *map;
  CUDA_CHECK(cudaMalloc(&source, sizeof matrices));
  CUDA_CHECK(cudaMalloc(&copy, sizeof got));
  CUDA_CHECK(cudaMalloc(&map, sizeof *map));
  CUDA_CHECK(cudaMemcpy(source, matrices, sizeof matrices, cudaMemcpyHostToDevice));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = source,
                       .size = {COLUMNS, ROWS},
                       .box = {COLUMNS, ROWS}};
  CUtensorMap encoded = tensor_map_encode("matrix", &request);
  CUDA_CHECK(cudaMemcpy(map, &encoded, sizeof encoded, cudaMemcpyHostToDevice));
  copy_both<<<1, 32>>>(map, source + TILE_ELEMENTS, copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("copies", ELEMENT_S32, got, matrices, 2 * ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(source));
  CUDA_CHECK(cudaFree(copy));
  CUDA_CHECK(cudaFree(map));
  return program_end("every element of 2 matrices");
}
