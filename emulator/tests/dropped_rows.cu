// dropped_rows: a product of 16 rows. A wgmma always multiplies 64, so the other 48 are those of the
// next three buffers, which a copy may be filling meanwhile. That is harmless while nobody uses their
// products, and the results are right. DeepGEMM's kernels for few rows work like this.
//   dropped_rows --rows 64     uses the products of all rows, and so must have waited for all
//   dropped_rows --k N         the same with N multiplications into one accumulator
#include "../../02_tma_load/tma_load.cuh"
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "device_memory.cuh"

enum { K = 64, BUFFERS = 4, BUFFER_ROWS = 16, ROWS = 64, COLUMNS = 64, BUFFER_BYTES = 16 * K * 2 };

static long rows = BUFFER_ROWS, steps = 1;

__global__ void multiply(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b, int rows, int steps,
                         float *out) {
  __shared__ alignas(1024) uint16_t a[ROWS * K], b[COLUMNS * K];
  __shared__ uint64_t full[BUFFERS];
  if (threadIdx.x == 0) {
    for (int i = 0; i < BUFFERS; i++) mbarrier_init(&full[i], 1);
    fence_mbarrier_init();
    for (int i = 0; i < BUFFERS; i++) {
      mbarrier_arrive_expect_tx(&full[i], BUFFER_BYTES + (i == 0 ? COLUMNS * K * 2 : 0));
      tma_load_2d(a + i * BUFFER_ROWS * K, &map_a, 0, i * BUFFER_ROWS, &full[i]);
    }
    tma_load_2d(b, &map_b, 0, 0, &full[0]);
  }
  __syncthreads();
  mbarrier_wait_parity(&full[0], 0);
  float d[32] = {0};
  for (int i = 0; i < steps; i++) {
    wgmma_fence();
    wgmma_m64n64k16(d, wgmma_descriptor_k_major(a), wgmma_descriptor_k_major(b), 1);
    wgmma_commit();
    wgmma_wait_all();
  }
  int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  if (row < rows) out[row * COLUMNS + column] = d[0];
  for (int i = 1; i < BUFFERS; i++) mbarrier_wait_parity(&full[i], 0);
}

int main(int argc, char **argv) {
  const Option options[] = {{"--rows", "rows whose products are used", &rows, 16, ROWS},
                            {"--k", "multiplications", &steps, 1, 8}};
  program_begin("dropped_rows", argc, argv, options, 2);
  enum { ONE = 0x3f80 /* of bfloat16 */ };
  uint16_t ones[ROWS * K];
  for (int i = 0; i < ROWS * K; i++) ones[i] = ONE;
  uint16_t *matrix = device_copy(ones);
  float *out = device_memory<float>(ROWS * COLUMNS), result;
  CUtensorMap map_a = map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, matrix, K, ROWS, K,
                                    BUFFER_ROWS, CU_TENSOR_MAP_SWIZZLE_128B);
  CUtensorMap map_b = map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, matrix, K, ROWS, K, COLUMNS,
                                    CU_TENSOR_MAP_SWIZZLE_128B);
  multiply<<<1, 128>>>(map_a, map_b, (int)rows, (int)steps, out);
  CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
  check_that(result == 16.0f * (float)steps, "the first product is %g", result);
  return program_end("%ld rows of a product of 64", rows);
}
