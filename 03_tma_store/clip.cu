// 03 tma_store, side program clip: a store over the edge writes only what lies inside.
//
//   01 tiledcopy | 02 load | [03 store] | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A 10x10 matrix lies in memory in the upper left of 16 rows of 16, everything around it holds -1.
// Four 8x8 tiles cover it, and three of them reach over its edge. The engine knows the matrix's
// size from the tensor map and leaves the rest alone, without a condition in the kernel:
//
//      0 ..... 7 8 9 10 ... 15
//   0  +--------+---:.........
//      |        |   :    -1        tile (1,0): columns 8 and 9 are written,
//   7  +--------+---:              10 to 15 are clipped
//   9  |........|...:
//  10  :    -1         -1
//
// Only the upper edges clip. A negative coordinate, fine in a load, is an illegal instruction in a
// store: it ends the whole process, so this program does not try it.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_store.cuh"

enum {
  TILE = 8,
  THREADS = TILE * TILE,
  ROWS = 10,
  COLUMNS = 10,
  FRAME = 16,  // rows and columns of the memory around the matrix
};

// Element (row, column) of the matrix, also where the matrix has none.
static __host__ __device__ int32_t element_at(int row, int column) { return row * 100 + column; }

__global__ void __launch_bounds__(THREADS) store_tiles(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int32_t tile[THREADS];
  int x = blockIdx.x * TILE, y = blockIdx.y * TILE;
  tile[threadIdx.x] = element_at(y + threadIdx.x / TILE, x + threadIdx.x % TILE);
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_2d(&map, tile, x, y);
    bulk_commit_group();
    bulk_wait_group_read(0);
  }
}

int main(int argc, char **argv) {
  program_begin("clip", argc, argv, NULL, 0);

  int32_t memory[FRAME * FRAME], expected[FRAME * FRAME], *device_memory;
  CUDA_CHECK(cudaMalloc(&device_memory, sizeof memory));
  CUDA_CHECK(cudaMemset(device_memory, 0xff, sizeof memory));  // -1 everywhere
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .rank = 2,
                   .address = device_memory,
                   .size = {COLUMNS, ROWS},
                   .stride_bytes = {FRAME * sizeof(int32_t)},
                   .box = {TILE, TILE}};
  store_tiles<<<dim3(2, 2), THREADS>>>(tensor_map_encode("10x10 in 16x16", &map));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(memory, device_memory, sizeof memory, cudaMemcpyDeviceToHost));

  for (int i = 0; i < FRAME * FRAME; i++) {
    int row = i / FRAME, column = i % FRAME;
    expected[i] = row < ROWS && column < COLUMNS ? element_at(row, column) : -1;
  }
  check_tile("memory", ELEMENT_S32, memory, expected, FRAME, FRAME, 0);
  TilePicture picture = {.title = "memory after the stores; the matrix is 10x10",
                         .type = ELEMENT_S32,
                         .data = memory,
                         .rows = 12,
                         .columns = 12,
                         .pitch = FRAME,
                         .tensor_rows = ROWS,
                         .tensor_columns = COLUMNS};
  tile_print(&picture);
  return program_end("4 tiles clipped to 10x10, and nothing around it touched");
}
