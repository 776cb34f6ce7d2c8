// bench_engines: how fast the emulator moves tiles and multiplies matrices: gigabytes a second
// through the copy engine, billion multiply-adds a second through the tensor cores.
// `make bench-emulator` runs it on one host thread and on all.
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "copies.cuh"
#include "best_time.cuh"
#include "device_memory.cuh"

enum {
  TILE_ROWS = 128,
  TILE_COLUMNS = 32,  // f32: rows of 128 bytes, the span of the widest swizzle
  TILE_BYTES = TILE_ROWS * TILE_COLUMNS * 4,
  BLOCKS = 64,
  ROUNDS = 64,
  REPEATS = 5,
  STEP_K = 64,
  TILE_M = 64,
  TILE_N = 256,
};

__global__ void copy_tiles(const __grid_constant__ CUtensorMap from,
                           const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(1024) float tile[TILE_ROWS * TILE_COLUMNS];
  __shared__ uint64_t full;
  if (threadIdx.x != 0) return;
  begin_barrier(&full, 1);
  for (int round = 0; round < ROUNDS; round++) {
    int row = blockIdx.x * TILE_ROWS, column = round * TILE_COLUMNS;
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
    tma_load_2d(tile, &from, column, row, &full);
    mbarrier_wait_parity(&full, round & 1);
    tma_store_2d(&to, tile, column, row);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

__global__ void __launch_bounds__(128)
    multiply(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
             float *sums) {
  extern __shared__ uint8_t dynamic_shared[];
  uint8_t *tiles = (uint8_t *)(((uintptr_t)dynamic_shared + 1023) / 1024 * 1024);
  uint8_t *a = tiles, *b = tiles + TILE_M * STEP_K * 2;
  __shared__ uint64_t full;
  begin_by_first(&full, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&full, (TILE_M + TILE_N) * STEP_K * 2);
    tma_load_2d(a, &map_a, 0, 0, &full);
    tma_load_2d(b, &map_b, 0, 0, &full);
  }
  mbarrier_wait_parity(&full, 0);
  uint64_t descriptor_a = wgmma_descriptor_k_major(a), descriptor_b = wgmma_descriptor_k_major(b);
  float d[TILE_N / 2];
  for (int round = 0; round < ROUNDS; round++) {
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n256k16(d, descriptor_a + i * WGMMA_K_STEP, descriptor_b + i * WGMMA_K_STEP,
                       round > 0 || i > 0);
    }
    wgmma_commit();
    wgmma_wait_all_but_one();
  }
  wgmma_wait_all();
  float sum = 0;
  for (int i = 0; i < TILE_N / 2; i++) sum += d[i];
  sums[blockIdx.x * 128 + threadIdx.x] = sum;
}

static void copy(CUtensorMapSwizzle swizzle, const char *what) {
  enum { ROWS = BLOCKS * TILE_ROWS, COLUMNS = ROUNDS * TILE_COLUMNS };
  size_t bytes = (size_t)ROWS * COLUMNS * 4;
  float *from = device_filled<float>(bytes / 4, 1), *to = device_memory<float>(bytes / 4);
  CUtensorMap map_from = map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, from, COLUMNS, ROWS,
                                       TILE_COLUMNS, TILE_ROWS, swizzle);
  CUtensorMap map_to = map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, to, COLUMNS, ROWS,
                                     TILE_COLUMNS, TILE_ROWS, swizzle);
  double best = best_time(REPEATS, [&] { copy_tiles<<<BLOCKS, 32>>>(map_from, map_to); });
  printf("copies, %-17s %6.2f GB a second (loaded and stored)\n", what,
         2.0 * (double)bytes / best * 1e-9);
  CUDA_CHECK(cudaFree(from));
  CUDA_CHECK(cudaFree(to));
}

static void matrices(void) {
  float *sums = device_memory<float>(BLOCKS * 128);
  size_t elements = (size_t)(TILE_M + TILE_N) * STEP_K;
  uint16_t *host = (uint16_t *)malloc(elements * 2);
  for (size_t i = 0; i < elements; i++) {
    host[i] = bfloat16_from_float((float)((i * 2654435761u >> 8) % 2000) / 1000.0f - 1.0f);
  }
  uint16_t *operands = device_copy(host, elements);
  free(host);
  CUtensorMap map_a = map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, operands, STEP_K, TILE_M,
                                    STEP_K, TILE_M, CU_TENSOR_MAP_SWIZZLE_128B);
  CUtensorMap map_b = map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, operands + TILE_M * STEP_K,
                                    STEP_K, TILE_N, STEP_K, TILE_N, CU_TENSOR_MAP_SWIZZLE_128B);
  enum { SHARED_BYTES = (TILE_M + TILE_N) * STEP_K * 2 + 1024 };
  CUDA_CHECK(
      cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  double best =
      best_time(REPEATS, [&] { multiply<<<BLOCKS / 8, 128, SHARED_BYTES>>>(map_a, map_b, sums); });
  double products = (double)((long)(BLOCKS / 8) * ROUNDS * TILE_M * TILE_N * STEP_K);
  printf("wgmma m64n256k16, bf16    %6.2f billion multiply-adds a second\n",
         products / best * 1e-9);
}

int main(int argc, char **argv) {
  program_begin("bench_engines", argc, argv, NULL, 0);
  copy(CU_TENSOR_MAP_SWIZZLE_NONE, "no swizzle:");
  copy(CU_TENSOR_MAP_SWIZZLE_128B, "128-byte swizzle:");
  matrices();
  return program_end("nothing: this program measures");
}
