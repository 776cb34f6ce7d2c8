// pitfall extern_shared_alignment: dynamic shared memory does not even begin at a multiple of 128
//   H200: cudaErrorMisalignedAddress
//   report: misaligned-address
//
// Dynamic shared memory begins after the static variables of the kernel, wherever they end: here
// after 40 bytes of barriers, so the tile is not even aligned to 128 bytes. The extern array
// declares no alignment of its own, and its use does not give it one. Ask for 1024 bytes more, and
// round the address up in the kernel.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorMisalignedAddress. The tile began 48 bytes past a multiple of 1024: the 40 bytes of
// barriers, rounded up to 16. Declared __align__(1024), such an array did begin at a multiple of
// 1024, and so did those of the other kernels of the file (CUDA 13.0). With __align__(128) it began
// at a multiple of 128. Rounding up in the kernel does not depend on any declaration.
#include <stdio.h>

#include "../../02_tma_load/tma_load.cuh"
#include "../swizzle.h"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 64,
  COLUMNS = 32,  // of 4 bytes: one span of the 128-byte swizzle
  ELEMENTS = ROWS * COLUMNS,
  TILE_BYTES = ELEMENTS * 4,
  THREADS = 128
};

__global__ void take(const __grid_constant__ CUtensorMap map, uint32_t *copy) {
  extern __shared__ uint32_t dynamic[];
  __shared__ uint64_t full[5];  // the first is used; the others are for stages to come
  uint32_t *tile = dynamic;
  if (threadIdx.x == 0) {
    mbarrier_init(&full[0], 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full[0], TILE_BYTES);
    tma_load_2d(tile, &map, 0, 0, &full[0]);
  }
  __syncthreads();
  mbarrier_wait_parity(&full[0], 0);
  for (int i = threadIdx.x; i < ELEMENTS; i += blockDim.x) {
    copy[i] = tile[swizzle_128b(i * 4) / 4];  // byte i * 4 of the tile
  }
}

int main(int argc, char **argv) {
  program_begin("extern_shared_alignment", argc, argv, NULL, 0);
  static uint32_t host[ELEMENTS], got[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) host[i] = (uint32_t)i + 1;
  uint32_t *tensor, *copy;
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&copy, sizeof got));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(copy, 0, sizeof got));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       .dimensions = 2,
                       .address = tensor,
                       .size = {COLUMNS, ROWS},
                       .box = {COLUMNS, ROWS},
                       .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  take<<<1, THREADS, TILE_BYTES + 1024>>>(tensor_map_encode("tensor", &request), copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, copy, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("the tile", ELEMENT_U32, got, host, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(copy));
  return program_end("every element of a tile");
}
