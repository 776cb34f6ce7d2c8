// 02 tma_load, side program coordinates: which elements does a CTA fetch?
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A TMA load takes no pointer into the matrix but coordinates: of the tile's first element, counted
// in elements, innermost dimension first. For a row-major matrix that is (column, row).
//
// Here m = n = 1024, tiles are 16x16, and the grid has the first index along m, as in the CuTe
// tutorials: CTA i of the first 64 takes the i-th tile of the leftmost column of tiles. CTA 7
// issues its load at (0, 112), and gets (0,112) to (15,127). Every element of the matrix holds its
// own number, so what has landed in shared memory shows where it came from:
//
//   CTA 7 issued its load at (0,112); what landed in its shared memory came from
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
  CTA_M = 16,
  CTA_N = 16,
  TILE_ELEMENTS = CTA_M * CTA_N,
  TILE_BYTES = TILE_ELEMENTS * 4,
  CTAS = (M / CTA_M) * (N / CTA_N),
  THREADS = 32,
};

// landed[cta]: the tile of each CTA. issued[cta]: the coordinates that it asked for.
__global__ void load_tiles(const __grid_constant__ CUtensorMap map, int32_t *landed, int2 *issued) {
  __shared__ alignas(128) int32_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  int cta = blockIdx.y * gridDim.x + blockIdx.x;

  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    int row = blockIdx.x * CTA_M, column = blockIdx.y * CTA_N;
    tma_load_2d(tile, &map, column, row, &barrier);
    issued[cta] = make_int2(column, row);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) {
    landed[cta * TILE_ELEMENTS + i] = tile[i];
  }
}

static void print_tile_row(const int32_t *row) {
  printf(" ");
  for (int column = 0; column < CTA_N; column++) {
    printf(" (%d,%d)", row[column] % N, row[column] / N);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  long shown = 7;
  Option options[] = {{"--cta", "number of the CTA to print", &shown, 0, CTAS - 1}};
  program_begin("coordinates", argc, argv, options, 1);

  int32_t *matrix = (int32_t *)malloc(sizeof *matrix * M * N);
  for (int i = 0; i < M * N; i++) matrix[i] = i;  // number of the element: row * N + column
  int32_t *device_matrix, *device_landed;
  int2 *device_issued;
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof *matrix * M * N));
  CUDA_CHECK(cudaMalloc(&device_landed, sizeof *matrix * M * N));
  CUDA_CHECK(cudaMalloc(&device_issued, sizeof *device_issued * CTAS));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof *matrix * M * N, cudaMemcpyHostToDevice));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .rank = 2,
                   .address = device_matrix,
                   .size = {N, M},
                   .box = {CTA_N, CTA_M}};
  CUtensorMap encoded = tensor_map_encode("matrix", &map);
  load_tiles<<<dim3(M / CTA_M, N / CTA_N), THREADS>>>(encoded, device_landed, device_issued);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  int32_t *landed = (int32_t *)malloc(sizeof *landed * M * N);
  int2 *issued = (int2 *)malloc(sizeof *issued * CTAS);
  CUDA_CHECK(cudaMemcpy(landed, device_landed, sizeof *landed * M * N, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(issued, device_issued, sizeof *issued * CTAS, cudaMemcpyDeviceToHost));

  const int32_t *tile = landed + shown * TILE_ELEMENTS;
  printf("CTA %ld issued its load at (%d,%d); what landed in its shared memory came from\n", shown,
         issued[shown].x, issued[shown].y);
  print_tile_row(tile);
  print_tile_row(tile + CTA_N);
  printf("  ...\n");
  print_tile_row(tile + (CTA_M - 1) * CTA_N);

  int32_t expected[TILE_ELEMENTS];
  for (int cta = 0; cta < CTAS; cta++) {
    int first_row = cta % (M / CTA_M) * CTA_M, first_column = cta / (M / CTA_M) * CTA_N;
    for (int i = 0; i < TILE_ELEMENTS; i++) {
      expected[i] = (first_row + i / CTA_N) * N + first_column + i % CTA_N;
    }
    char what[32];
    snprintf(what, sizeof what, "CTA %d", cta);
    if (!check_tile(what, ELEMENT_S32, landed + cta * TILE_ELEMENTS, expected, CTA_M, CTA_N, 0)) {
      break;  // one wrong tile says it all
    }
  }
  return program_end("%d CTAs, every element of their 16x16 tiles", CTAS);
}
