// swizzle_mismatch: three places name the swizzle, and all three must name the same one.
//
//   beside the ladder: what happens when they do not
//   report: swizzle-mismatch
//
// The tensor map says how TMA writes the tile, the matrix descriptor says how WGMMA reads it, and
// the shape of the buffer follows from both. Nothing checks that they agree. If they don't, there is
// no error, but the product is wrong, in the same way in every run. Here the map and the descriptor
// each take all four modes, and the sixteen products are compared with the right one. A tile of 64 x 16
// is small enough for every mode: its only box is 16 bf16 wide, which is 32 bytes.
//
// Prints how many of 64 x 64 elements are wrong. Only the diagonal is right:
//
//                      WGMMA reads: none   128B    64B    32B
//     TMA writes: none                 0   ...
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>

#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "gemm_program.cuh"
#include "wgmma.cuh"

enum { M = 64, N = 64, K = 16, THREADS = 128, REGISTERS = N / 2 };
enum { TILE_BYTES = 64 * 128 };  // space for 64 lines of the widest span

static __global__ void __launch_bounds__(THREADS)
    mismatch_kernel(const __grid_constant__ CUtensorMap map_a,
                    const __grid_constant__ CUtensorMap map_b, WgmmaTile layout, int box_columns,
                    float *result) {
  __shared__ __align__(1024) uint8_t a[TILE_BYTES], b[TILE_BYTES];
  __shared__ uint64_t full;
  // What TMA does not write is zero: a narrow box leaves gaps under a wide span.
  for (int i = threadIdx.x; i < TILE_BYTES / 4; i += THREADS) {
    ((uint32_t *)a)[i] = 0;
    ((uint32_t *)b)[i] = 0;
  }
  fence_proxy_async();
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&full, (M + N) * K * 2);
    for (int k = 0; k < K;
         k += box_columns) {  // without a swizzle: columns of 8, one below the other
      tma_load_2d(a + k * M * 2, &map_a, k, 0, &full);
      tma_load_2d(b + k * N * 2, &map_b, k, 0, &full);
    }
  }
  mbarrier_wait_parity(&full, 0);
  WgmmaTile tile_a = layout, tile_b = layout;
  tile_a.start_bytes = shared_address(a);
  tile_b.start_bytes = shared_address(b);
  float d[REGISTERS] = {};
  wgmma_fence();
  wgmma_m64n64k16(d, wgmma_descriptor(tile_a), wgmma_descriptor(tile_b), 0);
  wgmma_commit();
  wgmma_wait_all();
  for (int i = 0; i < REGISTERS; i++) {
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i % 4 / 2 * 8;
    result[row * N + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = d[i];
  }
}

typedef struct {
  const char *name;
  CUtensorMapSwizzle map;  // the mode for TMA
  int box_columns;         // without a swizzle, WGMMA needs lines of 8 columns, 16 bytes
  WgmmaTile layout;        // the layout for WGMMA; offsets in bytes
} Mode;

// Lines lie a whole span apart, and eight lines are a block, so the stride offset is 8 spans. Without a
// swizzle, a line is 16 bytes, and the leading offset is the distance from k 0..7 to k 8..15.
static const Mode modes[] = {
    {"none", CU_TENSOR_MAP_SWIZZLE_NONE, 8, {0, 64 * 16, 8 * 16, 0, WGMMA_SWIZZLE_NONE}},
    {"128B", CU_TENSOR_MAP_SWIZZLE_128B, 16, {0, 16, 8 * 128, 0, WGMMA_SWIZZLE_128B}},
    {"64B", CU_TENSOR_MAP_SWIZZLE_64B, 16, {0, 16, 8 * 64, 0, WGMMA_SWIZZLE_64B}},
    {"32B", CU_TENSOR_MAP_SWIZZLE_32B, 16, {0, 16, 8 * 32, 0, WGMMA_SWIZZLE_32B}},
};
enum { MODES = sizeof modes / sizeof modes[0] };

static CUtensorMap map_of(const char *name, uint16_t *matrix, const Mode *mode) {
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  map.dimensions = 2;
  map.address = matrix;
  map.size[0] = K;
  map.size[1] = M;
  map.box[0] = (uint32_t)mode->box_columns;
  map.box[1] = M;
  map.swizzle = mode->map;
  return tensor_map_encode(name, &map);
}

int main(int argc, char **argv) {
  program_begin("swizzle_mismatch", argc, argv, NULL, 0);
  static uint16_t a[M * K], b[N * K];
  static float got[M * N];
  gemm_fill(a, M * K, GEMM_INTEGERS, 1);
  gemm_fill(b, N * K, GEMM_INTEGERS, 2);
  uint16_t *device_a, *device_b;
  float *device_result;
  CUDA_CHECK(cudaMalloc(&device_a, sizeof(a)));
  CUDA_CHECK(cudaMalloc(&device_b, sizeof(b)));
  CUDA_CHECK(cudaMalloc(&device_result, sizeof(got)));
  CUDA_CHECK(cudaMemcpy(device_a, a, sizeof(a), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b, sizeof(b), cudaMemcpyHostToDevice));

  // Printed at the end, so that the table stays whole if a tool reports the mistakes meanwhile.
  int wrong[MODES][MODES] = {};
  for (int written = 0; written < MODES; written++) {
    for (int read = 0; read < MODES; read++) {
      CUtensorMap map_a = map_of("A", device_a, &modes[written]);
      CUtensorMap map_b = map_of("B", device_b, &modes[written]);
      mismatch_kernel<<<1, THREADS>>>(map_a, map_b, modes[read].layout, modes[written].box_columns,
                                      device_result);
      CUDA_CHECK(cudaGetLastError());
      CUDA_CHECK(cudaDeviceSynchronize());
      CUDA_CHECK(cudaMemcpy(got, device_result, sizeof(got), cudaMemcpyDeviceToHost));
      double row_sums[N];
      for (int row = 0; row < M; row++) {
        gemm_reference_row(a, b, N, K, row, row_sums);
        for (int column = 0; column < N; column++) {
          wrong[written][read] += !(got[row * N + column] == (float)row_sums[column]);
        }
      }
      check_that(written == read ? wrong[written][read] == 0 : wrong[written][read] > 0,
                 "TMA writes %s, WGMMA reads %s: %d elements wrong", modes[written].name,
                 modes[read].name, wrong[written][read]);
    }
  }
  printf("wrong elements of %d           WGMMA reads:", M * N);
  for (int read = 0; read < MODES; read++) printf(read == 0 ? "%5s" : "%7s", modes[read].name);
  printf("\n");
  for (int written = 0; written < MODES; written++) {
    printf("  TMA writes %-4s                          ", modes[written].name);
    for (int read = 0; read < MODES; read++) printf("%7d", wrong[written][read]);
    printf("\n");
  }
  return program_end("the product is right exactly where both name the same swizzle");
}
