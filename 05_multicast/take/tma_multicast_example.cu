// Two blocks need the same tile. Each loads half of it, once, into the shared memory of both.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' tma_multicast_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>

#include "tma_multicast.cuh"

using namespace tma;

enum { ROWS = 64, COLUMNS = 32, BLOCKS = 2, SLICE_ROWS = ROWS / BLOCKS };

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    share_tile(const __grid_constant__ CUtensorMap map, int *out) {
  __shared__ alignas(128) int tile[ROWS][COLUMNS];
  __shared__ uint64_t barrier;
  uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof tile);  // both slices come in here
  }
  cluster_sync();  // the barriers of both blocks are ready
  if (threadIdx.x == 0) {
    tma_load_2d_multicast(tile[rank * SLICE_ROWS], &map, 0, rank * SLICE_ROWS, &barrier,
                          cluster_mask_all(BLOCKS));
  }
  mbarrier_wait_parity(&barrier, 0);
  for (int row = 0; row < ROWS; row++) {
    out[(rank * ROWS + row) * COLUMNS + threadIdx.x] = tile[row][threadIdx.x];
  }
  cluster_sync();  // a block may not end while its peer's copy still writes to it
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

int main(void) {
  static int matrix[ROWS * COLUMNS], copies[BLOCKS * ROWS * COLUMNS];
  int *device_matrix, *device_copies, wrong = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = i;
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMalloc((void **)&device_copies, sizeof copies));
  check(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));

  uint64_t size[] = {COLUMNS, ROWS};                  // innermost dimension first
  uint64_t stride_bytes[] = {COLUMNS * sizeof(int)};  // from one row to the next
  uint32_t box[] = {COLUMNS, SLICE_ROWS};
  CUtensorMap map;
  check(tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, device_matrix, size, stride_bytes,
                         box, CU_TENSOR_MAP_SWIZZLE_NONE));
  share_tile<<<BLOCKS, COLUMNS>>>(map, device_copies);
  check(cudaGetLastError());
  check(cudaMemcpy(copies, device_copies, sizeof copies, cudaMemcpyDeviceToHost));
  for (int i = 0; i < BLOCKS * ROWS * COLUMNS; i++) wrong += copies[i] != i % (ROWS * COLUMNS);
  printf("%d elements in each of %d blocks, %d wrong\n", (int)(ROWS * COLUMNS), (int)BLOCKS, wrong);
  return wrong != 0;
}
