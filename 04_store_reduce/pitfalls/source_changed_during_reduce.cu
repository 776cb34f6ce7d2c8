// pitfall source_changed_during_reduce: the next part is written while the last is still read
//   H200: wrong results
//   report: source-reused-before-read
//
// A block adds several parts, one after the other, through one tile. The reduce is asynchronous: it
// returns before the engine has read the tile. Committing the group does not wait for it either.
// Without cp.async.bulk.wait_group.read the block writes the next part into the tile while the
// engine is still reading the last one: some elements get the next part twice.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): wrong results each time. The
// engine needs longer to read 32 KiB than the threads need to compute the next part.
#include <stdio.h>

#include "../../03_tma_store/tma_store.cuh"
#include "../tma_reduce.cuh"
#include "check.h"
#include "tensor_map.h"

enum { ROWS = 64, COLUMNS = 128, ELEMENTS = ROWS * COLUMNS, PARTS = 8, BLOCKS = 4 };

static __host__ __device__ int part_of(int block, int part, int element) {
  return element * 100 + block * PARTS + part;
}

__global__ void add_parts(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[ELEMENTS];
  for (int part = 0; part < PARTS; part++) {
    for (int i = threadIdx.x; i < ELEMENTS; i += blockDim.x) {
      tile[i] = part_of(blockIdx.x, part, i);
    }
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      tma_reduce_add_2d(&map, tile, 0, 0);
      bulk_commit_group();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) bulk_wait_group_read<0>();
}

int main(int argc, char **argv) {
  program_begin("source_changed_during_reduce", argc, argv, NULL, 0);
  static int got[ELEMENTS], expected[ELEMENTS];
  int *sums;
  CUDA_CHECK(cudaMalloc(&sums, sizeof got));
  CUDA_CHECK(cudaMemset(sums, 0, sizeof got));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 2,
                       .address = sums,
                       .size = {COLUMNS, ROWS},
                       .box = {COLUMNS, ROWS}};
  add_parts<<<BLOCKS, 256>>>(tensor_map_encode("sums", &request));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++) {
    for (int block = 0; block < BLOCKS; block++) {
      for (int part = 0; part < PARTS; part++) expected[i] += part_of(block, part, i);
    }
  }
  check_tile("sums", ELEMENT_S32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(sums));
  return program_end("the sum of %d parts of %d blocks, every element", PARTS, BLOCKS);
}
