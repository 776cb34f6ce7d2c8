// 05 first_multicast: the smallest complete multicast. One thread of a cluster of two fetches an
// 8x16 tile, and the copy engine writes it to the shared memory of both blocks.
#include <stdio.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "cluster.cuh"
#include "tensor_map.h"
#include "tma_multicast.cuh"

enum { TILE_ROWS = 8, TILE_COLUMNS = 16, BLOCKS = 2 };
typedef int Tile[TILE_ROWS][TILE_COLUMNS];

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    load_for_both(const __grid_constant__ CUtensorMap map, Tile *results) {
  __shared__ alignas(128) Tile tile;  // at the same offset in both blocks, as the barrier is
  __shared__ uint64_t barrier;

  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof tile);  // each block expects its own copy
  }
  cluster_sync();  // both barriers are ready before either of them is used
  if (cluster_rank() == 0 && threadIdx.x == 0) {
    tma_load_2d_multicast(tile, &map, 0, 0, &barrier, 0b11);  // bit r: the block of rank r
  }
  mbarrier_wait_parity(&barrier, 0);  // each block waits on its own barrier

  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += blockDim.x) {
    results[blockIdx.x][i / TILE_COLUMNS][i % TILE_COLUMNS] =
        tile[i / TILE_COLUMNS][i % TILE_COLUMNS];
  }
}

int main(int argc, char **argv) {
  program_begin("first_multicast", argc, argv, NULL, 0);
  Tile matrix, results[BLOCKS], *device_results;
  for (int i = 0; i < TILE_ROWS * TILE_COLUMNS; i++)
    matrix[i / TILE_COLUMNS][i % TILE_COLUMNS] = 1000 + i;
  void *device_matrix;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMalloc(&device_results, sizeof results));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {TILE_COLUMNS, TILE_ROWS},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  load_for_both<<<BLOCKS, 32>>>(tensor_map_encode("matrix", &map), device_results);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
  for (int rank = 0; rank < BLOCKS; rank++) {
    check_tile("tile", ELEMENT_S32, results[rank], matrix, TILE_ROWS, TILE_COLUMNS, 0);
    printf("block %d received %d to %d\n", rank, results[rank][0][0],
           results[rank][TILE_ROWS - 1][TILE_COLUMNS - 1]);
  }
  return program_end("one copy, %d blocks, every element", BLOCKS);
}
