// pitfall reduce_without_fence: partial sums are added up without a fence between the proxies
//   H200: right results
//   report: missing-proxy-fence
//
// A reduce reads its tile as a store does: through the async proxy. __syncthreads() orders the
// threads that wrote the tile, not the engine that reads it, so the engine may add the old
// contents. A store would write a stale tile, which the next store repairs. A reduce adds the stale
// tile to the sum, where no thread ever finds it.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. As in
// chapter 03's missing_proxy_fence, the threads' writes had reached shared memory before the engine
// read it.
#include <stdio.h>

#include "../../03_tma_store/tma_store.cuh"
#include "../tma_reduce.cuh"
#include "check.h"
#include "tensor_map.h"

enum { ROWS = 32, COLUMNS = 32, ELEMENTS = ROWS * COLUMNS, BLOCKS = 16 };

// Small whole numbers: their sum is exact in any order.
static __host__ __device__ float part_of(int block, int element) {
  return (float)(element * 4 + block % 4);
}

__global__ void add_parts(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) float tile[ELEMENTS];
  for (int i = threadIdx.x; i < ELEMENTS; i += blockDim.x) tile[i] = part_of(blockIdx.x, i);
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_reduce_add_2d(&map, tile, 0, 0);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

int main(int argc, char **argv) {
  program_begin("reduce_without_fence", argc, argv, NULL, 0);
  float *sums;
  CUDA_CHECK(cudaMalloc(&sums, ELEMENTS * sizeof(float)));
  CUDA_CHECK(cudaMemset(sums, 0, ELEMENTS * sizeof(float)));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                       .dimensions = 2,
                       .address = sums,
                       .size = {COLUMNS, ROWS},
                       .box = {COLUMNS, ROWS}};
  add_parts<<<BLOCKS, 128>>>(tensor_map_encode("sums", &request));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  float got[ELEMENTS], expected[ELEMENTS];
  CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++) {
    expected[i] = 0;
    for (int block = 0; block < BLOCKS; block++) expected[i] += part_of(block, i);
  }
  check_tile("sums", ELEMENT_F32, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(sums));
  return program_end("the sum of %d parts, every element", BLOCKS);
}
