// 04 store reduce, aside: split-K, the most common use of reduce-add.
//
// A small C has few tiles, so in C = A * B most SMs have nothing to do, however long K is.
// Split-K cuts K into slices: each block multiplies one slice and owns a *partial* tile of C, and the
// partial tiles must be added. With reduce-add there is no second kernel and no scratch memory:
//
//        K                         slice 0   slice 1   slice 2   slice 3
//     +-----------+               +---------+---------+---------+---------+
//   M |     A     |               | block 0 | block 1 | block 2 | block 3 |   each: a tile of products
//     +-----------+               +---------+---------+---------+---------+
//                                      \        \       /        /
//                                       C tile  +=  from all four      (C starts at zero)
//
// The adds come in any order, so with ordinary floats the last bits of C may differ from run to
// run. Here all values are small whole numbers: every order gives the same sum, and the check is
// exact.
#include <stdio.h>
#include <stdlib.h>

#include "../02_tma_load/tma_load.cuh"
#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_reduce.cuh"

enum {
  M = 64,
  N = 64,
  K = 64,
  TILE_M = 32,
  TILE_N = 32,
  TILE_K = 16,
  MOST_SLICES = K / TILE_K,
  THREADS = 128,
  ROWS_PER_THREAD = TILE_M * TILE_N / THREADS,
  A_TILE_BYTES = TILE_M * TILE_K * 4,
  B_TILE_BYTES = TILE_K * TILE_N * 4,
};

// grid: (tiles along N, tiles along M, slices of K). Slice s takes the blocks of K from
// s * blocks_per_slice on; first_slice lets the host run one slice alone.
__global__ void __launch_bounds__(THREADS)
    split_k_kernel(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                   const __grid_constant__ CUtensorMap c, int first_slice, int blocks_per_slice) {
  __shared__ __align__(128) float a_tile[TILE_M][TILE_K];
  __shared__ __align__(128) float b_tile[TILE_K][TILE_N];
  __shared__ __align__(128) float c_tile[TILE_M][TILE_N];
  __shared__ uint64_t full;

  int x = blockIdx.x * TILE_N;
  int y = blockIdx.y * TILE_M;
  int slice = first_slice + blockIdx.z;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  // Each thread sums one column of the tile, in every fourth row.
  int column = threadIdx.x % TILE_N;
  int first_row = threadIdx.x / TILE_N;
  float sums[ROWS_PER_THREAD] = {0};
  for (int block = 0; block < blocks_per_slice; block++) {
    int k = (slice * blocks_per_slice + block) * TILE_K;
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, A_TILE_BYTES + B_TILE_BYTES);
      tma_load_2d(a_tile, &a, k, y, &full);
      tma_load_2d(b_tile, &b, x, k, &full);
    }
    mbarrier_wait_parity(&full, block % 2);
    for (int i = 0; i < TILE_K; i++) {
      float factor = b_tile[i][column];
      for (int r = 0; r < ROWS_PER_THREAD; r++) {
        sums[r] += a_tile[first_row + r * (THREADS / TILE_N)][i] * factor;
      }
    }
    __syncthreads();  // everyone has read the tiles before the next load replaces them
  }

  for (int r = 0; r < ROWS_PER_THREAD; r++) {
    c_tile[first_row + r * (THREADS / TILE_N)][column] = sums[r];
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_reduce_add_2d(&c, c_tile, x, y);  // a plain tma_store_2d would keep one slice only
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

static CUtensorMap describe(const char *name, float *matrix, int rows, int columns, int tile_rows,
                            int tile_columns) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                   .dimensions = 2,
                   .address = matrix,
                   .size = {(uint64_t)columns, (uint64_t)rows},
                   .box = {(uint32_t)tile_columns, (uint32_t)tile_rows}};
  return tensor_map_encode(name, &map);
}

int main(int argc, char **argv) {
  program_begin("split_k", argc, argv, NULL, 0);

  // 1. Whole numbers small enough for f32 to hold every partial sum exactly; A and B in which no
  //    two rows or columns are equal, and the product of each slice alone.
  static float a[M][K], b[K][N], got[M][N], expected[MOST_SLICES + 1][M][N];
  static float grown[MOST_SLICES][M][N];  // C after each slice
  for (int m = 0; m < M; m++) {
    for (int k = 0; k < K; k++) a[m][k] = (float)((m * 7 + k * 3) % 23 - 5);
  }
  for (int k = 0; k < K; k++) {
    for (int n = 0; n < N; n++) b[k][n] = (float)((k * 5 + n * 11) % 19 - 4);
  }
  for (int slice = 0; slice < MOST_SLICES; slice++) {  // expected[s]: after the first s slices
    for (int m = 0; m < M; m++) {
      for (int n = 0; n < N; n++) {
        float sum = expected[slice][m][n];
        for (int k = slice * TILE_K; k < (slice + 1) * TILE_K; k++) sum += a[m][k] * b[k][n];
        expected[slice + 1][m][n] = sum;
      }
    }
  }

  float *a_device, *b_device, *c_device;
  CUDA_CHECK(cudaMalloc(&a_device, sizeof a));
  CUDA_CHECK(cudaMalloc(&b_device, sizeof b));
  CUDA_CHECK(cudaMalloc(&c_device, sizeof got));
  CUDA_CHECK(cudaMemcpy(a_device, a, sizeof a, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(b_device, b, sizeof b, cudaMemcpyHostToDevice));
  CUtensorMap a_map = describe("A", a_device, M, K, TILE_M, TILE_K);
  CUtensorMap b_map = describe("B", b_device, K, N, TILE_K, TILE_N);
  CUtensorMap c_map = describe("C", c_device, M, N, TILE_M, TILE_N);

  // 2. Slice after slice, to see C grow.
  CUDA_CHECK(cudaMemset(c_device, 0, sizeof got));
  for (int slice = 0; slice < MOST_SLICES; slice++) {
    dim3 grid = {N / TILE_N, M / TILE_M, 1};
    split_k_kernel<<<grid, THREADS>>>(a_map, b_map, c_map, slice, 1);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(grown[slice], c_device, sizeof got, cudaMemcpyDeviceToHost));
    char what[64];
    snprintf(what, sizeof what, "C after slice %d", slice);
    check_tile(what, ELEMENT_F32, grown[slice], expected[slice + 1], M, N, 0);
    printf("%s, k = %2d to %2d: C(0,0) = %4g, C(%d,%d) = %4g\n", what, slice * TILE_K,
           (slice + 1) * TILE_K - 1, grown[slice][0][0], M - 1, N - 1, grown[slice][M - 1][N - 1]);
  }
  detail_begin();
  for (int slice = 0; slice < MOST_SLICES; slice++) {
    char title[64];
    snprintf(title, sizeof title, "C after slice %d", slice);
    TilePicture corner = {title, ELEMENT_F32, grown[slice]};
    corner.rows = M, corner.columns = N, corner.shown_rows = 3, corner.shown_columns = 6;
    tile_print(&corner);
  }
  detail_end();

  // 3. All slices at once, K cut into 1, 2 and 4: the same C.
  for (int slices = 1; slices <= MOST_SLICES; slices *= 2) {
    CUDA_CHECK(cudaMemset(c_device, 0, sizeof got));
    dim3 grid = {N / TILE_N, M / TILE_M, (unsigned)slices};
    split_k_kernel<<<grid, THREADS>>>(a_map, b_map, c_map, 0, MOST_SLICES / slices);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, c_device, sizeof got, cudaMemcpyDeviceToHost));
    printf("K in %d slice%s: %2u blocks, C(%d,%d) = %g\n", slices, slices == 1 ? " " : "s",
           grid.x * grid.y * grid.z, M - 1, N - 1, got[M - 1][N - 1]);
    check_tile("C of all slices at once", ELEMENT_F32, got, expected[MOST_SLICES], M, N, 0);
  }
  CUDA_CHECK(cudaFree(a_device));
  CUDA_CHECK(cudaFree(b_device));
  CUDA_CHECK(cudaFree(c_device));
  return program_end("%d x %d x %d with K in up to %d slices, every element of C", M, N, K,
                     MOST_SLICES);
}
