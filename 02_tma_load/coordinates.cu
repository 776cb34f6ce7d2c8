// 02 tma_load, side program coordinates: which elements does a block fetch?
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A TMA load takes no pointer into the matrix but coordinates: of the tile's first element, counted
// in elements, innermost dimension first. For a row-major matrix that is (column, row).
//
// Here m = n = 1024, tiles are 16x16, and the grid has the first index along m, as in the CuTe
// tutorials: block i of the first 64 takes the i-th tile of the leftmost column of tiles. Block 7
// issues its load at (0, 112), and gets (0,112) to (15,127). Every element of the matrix holds its
// own number, so what has landed in shared memory shows where it came from:
//
//   block 7 issued its load at (0,112); what landed in its shared memory came from
//     (0,112)  (1,112)  (2,112)  (3,112) ... (15,112)
//     (0,113)  (1,113)  (2,113)  (3,113) ... (15,113)
//     ...
//     (0,127)  (1,127)  (2,127)  (3,127) ... (15,127)
//
// Not to be confused with tile indices, in which (0,7) would be the same tile.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_load.cuh"

enum {
  M = 1024,  // rows
  N = 1024,  // columns
  BLOCK_M = 16,
  BLOCK_N = 16,
  TILE_ELEMENTS = BLOCK_M * BLOCK_N,
  TILE_BYTES = TILE_ELEMENTS * 4,
  BLOCKS = (M / BLOCK_M) * (N / BLOCK_N),
  THREADS = 32,
};

// landed[block]: the tile of each block. issued[block]: the coordinates that it asked for.
__global__ void load_tiles(const __grid_constant__ CUtensorMap map, int32_t *landed, int2 *issued) {
  __shared__ alignas(128) int32_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  int block = blockIdx.y * gridDim.x + blockIdx.x;

  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    int row = blockIdx.x * BLOCK_M, column = blockIdx.y * BLOCK_N;
    tma_load_2d(tile, &map, column, row, &barrier);
    issued[block] = make_int2(column, row);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) {
    landed[block * TILE_ELEMENTS + i] = tile[i];
  }
}

static void print_tile_row(const int32_t *row) {
  printf(" ");
  for (int column = 0; column < BLOCK_N; column++) {
    printf(" (%d,%d)", row[column] % N, row[column] / N);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  long shown = 7;
  Option options[] = {{"--block", "number of the block to print", &shown, 0, BLOCKS - 1}};
  program_begin("coordinates", argc, argv, options, 1);

  int32_t *matrix = (int32_t *)malloc(sizeof *matrix * M * N);
  for (int i = 0; i < M * N; i++) matrix[i] = i;  // number of the element: row * N + column
  int32_t *device_matrix, *device_landed;
  int2 *device_issued;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof *matrix * M * N));
  CUDA_CHECK(cudaMalloc(&device_landed, sizeof *matrix * M * N));
  CUDA_CHECK(cudaMalloc(&device_issued, sizeof *device_issued * BLOCKS));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof *matrix * M * N, cudaMemcpyHostToDevice));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {N, M},
                   .box = {BLOCK_N, BLOCK_M}};
  CUtensorMap encoded = tensor_map_encode("matrix", &map);
  load_tiles<<<dim3(M / BLOCK_M, N / BLOCK_N), THREADS>>>(encoded, device_landed, device_issued);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  int32_t *landed = (int32_t *)malloc(sizeof *landed * M * N);
  int2 *issued = (int2 *)malloc(sizeof *issued * BLOCKS);
  CUDA_CHECK(cudaMemcpy(landed, device_landed, sizeof *landed * M * N, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(issued, device_issued, sizeof *issued * BLOCKS, cudaMemcpyDeviceToHost));

  const int32_t *tile = landed + shown * TILE_ELEMENTS;
  printf("block %ld issued its load at (%d,%d); what landed in its shared memory came from\n",
         shown, issued[shown].x, issued[shown].y);
  for (int row = 0; row < BLOCK_M; row++) {
    if (row == 2) detail_begin();
    if (row == BLOCK_M - 1) detail_end();
    print_tile_row(tile + row * BLOCK_N);
  }

  int32_t expected[TILE_ELEMENTS];
  for (int block = 0; block < BLOCKS; block++) {
    int first_row = block % (M / BLOCK_M) * BLOCK_M, first_column = block / (M / BLOCK_M) * BLOCK_N;
    for (int i = 0; i < TILE_ELEMENTS; i++) {
      expected[i] = (first_row + i / BLOCK_N) * N + first_column + i % BLOCK_N;
    }
    char what[32];
    snprintf(what, sizeof what, "block %d", block);
    if (!check_tile(what, ELEMENT_S32, landed + block * TILE_ELEMENTS, expected, BLOCK_M, BLOCK_N,
                    0)) {
      break;  // one wrong tile says it all
    }
  }
  return program_end("%d blocks, every element of their %dx%d tiles", BLOCKS, BLOCK_M, BLOCK_N);
}
