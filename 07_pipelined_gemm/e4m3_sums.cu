// e4m3_sums: how exact are sums of 8-bit products, and what does it help to add in fp32 every 128 k?
//
// The tensor cores of Hopper keep only 14 bits of a sum while they add e4m3 products, although the
// accumulator has the format of fp32. The longer the sum, the more is lost. It helps to let wgmma
// sum 128 k at a time, and to add these sums to others in registers, in true fp32 ("promotion"). That takes
// a second accumulator and one addition for each of its values in every step.
#include <cuda_fp8.h>
#include <math.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "tensor_map.h"
#include "wgmma.cuh"

enum {
  M = 64,
  N = 64,
  MOST_K = 8192,
  STEP_K = 128,  // a row of 128 bytes: one swizzle span
  INSTRUCTION_K = 32,
  THREADS = 128,
  SUMS = M * N / THREADS,
};

// PTX ISA: wgmma.mma_async for e4m3. 8-bit operands are always K-major: no bits say so.
static __device__ __forceinline__ void wgmma_m64n64k32_e4m3(float d[SUMS], uint64_t a, uint64_t b,
                                                            uint32_t accumulate) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %34, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3\n"
      "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"
      "     %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},\n"
      "    %32, %33, accumulate, 1, 1;\n"
      "}"
      : WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8), WGMMA_INOUT_8(d, 16), WGMMA_INOUT_8(d, 24)
      : "l"(a), "l"(b), "r"(accumulate));
}

__global__ void multiply(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b, float *c, int k, bool promote) {
  __shared__ alignas(1024) uint8_t a[M * STEP_K], b[N * STEP_K];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  float d[SUMS], total[SUMS] = {};
  for (int step = 0; step < k / STEP_K; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, sizeof a + sizeof b);
      tma_load_2d(a, &map_a, step * STEP_K, 0, &full);
      tma_load_2d(b, &map_b, step * STEP_K, 0, &full);
    }
    mbarrier_wait_parity(&full, step % 2);
    uint64_t descriptor_a = wgmma_descriptor_k_major(a), descriptor_b = wgmma_descriptor_k_major(b);
    wgmma_fence();
    for (int i = 0; i < STEP_K / INSTRUCTION_K; i++) {  // 32 bytes further each time
      wgmma_m64n64k32_e4m3(d, descriptor_a + i * WGMMA_K_STEP, descriptor_b + i * WGMMA_K_STEP,
                           i > 0 || (step > 0 && !promote));
    }
    wgmma_commit();
    wgmma_wait_all();
    for (int i = 0; i < SUMS && promote; i++) total[i] += d[i];
    __syncthreads();  // all warps are done with the tiles
  }
  for (int i = 0; i < SUMS; i++) {  // the place of d[i]: wgmma.cuh
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
    int column = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    c[row * N + column] = promote ? total[i] : d[i];
  }
}

// The next of a sequence of numbers in [0, 1), the same on every machine.
static float next_uniform(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (float)(*state >> 40) / (float)(1 << 24);
}

static uint8_t to_e4m3(float value) {
  return (uint8_t)__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

static double from_e4m3(uint8_t bits) {
  int exponent = bits >> 3 & 15, fraction = bits & 7;
  double value = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
  return bits & 0x80 ? -value : value;
}

static CUtensorMap upload(const char *name, const uint8_t *matrix, uint64_t k) {
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  map.dimensions = 2;
  map.size[0] = k, map.size[1] = M;
  map.box[0] = STEP_K, map.box[1] = M;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUDA_CHECK(cudaMalloc(&map.address, M * k));
  CUDA_CHECK(cudaMemcpy(map.address, matrix, M * k, cudaMemcpyHostToDevice));
  return tensor_map_encode(name, &map);
}

// The root of the mean square of the errors, to that of the exact sums.
static double relative_error(const float *c, const double *exact) {
  double errors = 0, squares = 0;
  for (int i = 0; i < M * N; i++) {
    errors += (c[i] - exact[i]) * (c[i] - exact[i]);
    squares += exact[i] * exact[i];
  }
  return sqrt(errors / squares);
}

static void compare(const char *data, float least, int k) {
  static uint8_t a[M * MOST_K], b[N * MOST_K];
  static float c[2][M * N];
  static double exact[M * N];
  uint64_t state = 1;
  for (int i = 0; i < M * k; i++) {
    a[i] = to_e4m3(least + (1 - least) * next_uniform(&state));
    b[i] = to_e4m3(least + (1 - least) * next_uniform(&state));
  }
  for (int i = 0; i < M * N; i++) {
    exact[i] = 0;
    for (int j = 0; j < k; j++)
      exact[i] += from_e4m3(a[i / N * k + j]) * from_e4m3(b[i % N * k + j]);
  }
  CUtensorMap map_a = upload("A", a, k), map_b = upload("B", b, k);
  float *device_c;
  CUDA_CHECK(cudaMalloc(&device_c, sizeof c[0]));
  for (int promote = 0; promote < 2; promote++) {
    multiply<<<1, THREADS>>>(map_a, map_b, device_c, k, promote == 1);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(c[promote], device_c, sizeof c[0], cudaMemcpyDeviceToHost));
  }
  double alone = relative_error(c[0], exact), promoted = relative_error(c[1], exact);
  printf("%-8s %6d %13.4f %% %13.4f %%\n", data, k, 100 * alone, 100 * promoted);
  check_that(promoted < 0.002, "with promotion the error is %g, expected less than 0.002",
             promoted);
  check_that(promoted < alone, "promotion makes the error larger: %g instead of %g", promoted,
             alone);
}

int main(int argc, char **argv) {
  program_begin("e4m3_sums", argc, argv, NULL, 0);
  printf("error of sums of k products of numbers in e4m3, beside fp64\n");
  printf("numbers       k   wgmma alone   fp32 every %d k\n", STEP_K);
  for (int k = 512; k <= MOST_K; k *= 4) compare("-1 to 1", -1, k);
  for (int k = 512; k <= MOST_K; k *= 4) compare("0 to 1", 0, k);
  return program_end("%d x %d sums, of up to %d,%03d products each", M, N, MOST_K / 1000,
                     MOST_K % 1000);
}
