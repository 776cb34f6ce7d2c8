// pitfall read_result_too_early: the sums are read back when only the tile has been read
//   H200: right results
//   report: read-before-written
//
// Every block adds its part to the sums; the last one to finish adds the sums up. It waits for its
// reduce with cp.async.bulk.wait_group.read, which returns when the engine has read the tile: the
// tile may be overwritten, but the sums may not be in global memory yet. That needs
// cp.async.bulk.wait_group without .read.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time, also
// with 4096 blocks. Between the wait and the read there are an atomic operation and two fences,
// which take the same path to L2 as the reduction. Nothing guarantees that they are slower than the
// reduction.
#include <stdio.h>

#include "../../03_tma_store/tma_store.cuh"
#include "../tma_reduce.cuh"
#include "check.h"
#include "tensor_map.h"

enum { ELEMENTS = 256, BLOCKS = 16 };

__global__ void add_up(const __grid_constant__ CUtensorMap map, const volatile int *sums,
                       unsigned *finished, int *total) {
  __shared__ alignas(128) int tile[ELEMENTS];
  for (int i = threadIdx.x; i < ELEMENTS; i += blockDim.x) tile[i] = (int)blockIdx.x + i;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_reduce_add_1d(&map, tile, 0);
    bulk_commit_group();
    bulk_wait_group_read<0>();
    __threadfence();
    if (atomicAdd(finished, 1) == BLOCKS - 1) {  // the last: all others have added their parts
      __threadfence();
      int sum = 0;
      for (int i = 0; i < ELEMENTS; i++) sum += sums[i];
      *total = sum;
    }
  }
}

int main(int argc, char **argv) {
  program_begin("read_result_too_early", argc, argv, NULL, 0);
  int *sums, *total;
  unsigned *finished;
  CUDA_CHECK(cudaMalloc(&sums, ELEMENTS * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&total, sizeof(int)));
  CUDA_CHECK(cudaMalloc(&finished, sizeof(unsigned)));
  CUDA_CHECK(cudaMemset(sums, 0, ELEMENTS * sizeof(int)));
  CUDA_CHECK(cudaMemset(finished, 0, sizeof(unsigned)));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                       .dimensions = 1,
                       .address = sums,
                       .size = {ELEMENTS},
                       .box = {ELEMENTS}};
  add_up<<<BLOCKS, 64>>>(tensor_map_encode("sums", &request), sums, finished, total);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  int got, expected = 0;
  CUDA_CHECK(cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < BLOCKS * ELEMENTS; i++) expected += i / ELEMENTS + i % ELEMENTS;
  check_that(got == expected, "the total: expected %d, got %d", expected, got);
  CUDA_CHECK(cudaFree(sums));
  CUDA_CHECK(cudaFree(total));
  CUDA_CHECK(cudaFree(finished));
  return program_end("the total of %d blocks", BLOCKS);
}
