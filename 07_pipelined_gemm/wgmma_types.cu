// 07 wgmma_types: the same product in every type that wgmma multiplies. How exact is it, and what is the cost?
//
//   beside first_wgmma
//
// A product of 64 x 64 sums over k = 1,024 numbers between -1 and 1, and between 0 and 1, where the sums
// grow. Two errors, relative to the root of the mean square:
//
//   of the sums    beside the exact sums of the rounded numbers: what wgmma loses while it adds
//   in all         beside the exact sums of the numbers before they were rounded to the type
//
// Each instruction takes 32 bytes of every row, so one kernel serves all types. Only its wgmma differs.
// With --bench: clocks of an instruction.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "tensor_map.h"
#include "wgmma_types.cuh"

enum {
  SIDE = 64,  // m and n
  K = 1024,
  ROW_BYTES = 128,  // of a step: one span of the swizzle, four instructions
  THREADS = 128,
  SUMS = SIDE * SIDE / THREADS,
  TIMED_STEPS = 2000,
  S8_UNITS = 127,  // 1 is 127 of them
};
typedef enum { BF16, F16, F16_SUMS_F16, TF32, E4M3, E4M3_SUMS_F16, S8, TYPES } Type;
typedef struct {
  const char *name;
  int bytes;  // of a number
  bool f16_sums;
  double most;  // error of the sums that is allowed
} TypeRow;
static const TypeRow rows[TYPES] = {
    {"bf16, sums f32", 2, false, 1e-5}, {"f16,  sums f32", 2, false, 1e-5},
    {"f16,  sums f16", 2, true, 1e-2},  {"tf32, sums f32", 4, false, 1e-5},
    {"e4m3, sums f32", 1, false, 2e-2}, {"e4m3, sums f16", 1, true, 2e-2},
    {"s8,   sums s32", 1, false, 0},
};

template <int TYPE>
static __device__ __forceinline__ void multiply_add(uint32_t d[SUMS], uint64_t a, uint64_t b,
                                                    uint32_t accumulate) {
  if (TYPE == BF16) wgmma_bf16(d, a, b, accumulate);
  if (TYPE == F16) wgmma_f16(d, a, b, accumulate);
  if (TYPE == F16_SUMS_F16) wgmma_f16_sums_f16(d, a, b, accumulate);
  if (TYPE == TF32) wgmma_tf32(d, a, b, accumulate);
  if (TYPE == E4M3) wgmma_e4m3(d, a, b, accumulate);
  if (TYPE == E4M3_SUMS_F16) wgmma_e4m3_sums_f16(d, a, b, accumulate);
  if (TYPE == S8) wgmma_s8(d, a, b, accumulate);
}

// sums: the registers of all threads. Timed, it multiplies the first step again and again.
template <int TYPE>
__global__ void __launch_bounds__(THREADS)
    multiply(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
             int steps, int64_t *clocks, uint32_t *sums) {
  __shared__ alignas(1024) uint8_t a[SIDE * ROW_BYTES], b[SIDE * ROW_BYTES];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  uint32_t d[SUMS] = {};
  uint64_t descriptor_a = wgmma_descriptor_k_major(a), descriptor_b = wgmma_descriptor_k_major(b);
  int64_t start = clock64();
  for (int step = 0; step < steps; step++) {
    if (clocks == NULL || step == 0) {
      if (threadIdx.x == 0) {
        mbarrier_arrive_expect_tx(&full, sizeof a + sizeof b);
        tma_load_2d(a, &map_a, step * ROW_BYTES, 0, &full);
        tma_load_2d(b, &map_b, step * ROW_BYTES, 0, &full);
      }
      mbarrier_wait_parity(&full, step % 2);
      start = clock64();
    }
    wgmma_fence();
    for (int i = 0; i < 4; i++) {
      multiply_add<TYPE>(d, descriptor_a + i * WGMMA_K_STEP, descriptor_b + i * WGMMA_K_STEP, 1);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // all warps are done with the tiles
  }
  if (clocks != NULL && threadIdx.x == 0) *clocks = clock64() - start;
  for (int i = 0; i < SUMS; i++) sums[threadIdx.x * SUMS + i] = d[i];
}

static void launch(int type, CUtensorMap a, CUtensorMap b, int steps, int64_t *clocks,
                   uint32_t *sums) {
  switch (type) {
#define LAUNCH(TYPE)                                           \
  case TYPE:                                                   \
    multiply<TYPE><<<1, THREADS>>>(a, b, steps, clocks, sums); \
    break
    LAUNCH(BF16);
    LAUNCH(F16);
    LAUNCH(F16_SUMS_F16);
    LAUNCH(TF32);
    LAUNCH(E4M3);
    LAUNCH(E4M3_SUMS_F16);
    LAUNCH(S8);
  }
  CUDA_CHECK(cudaGetLastError());
}

// Writes the number in this type to `bits`, and returns the value that it has there.
static double round_to(int type, float value, uint8_t *bits) {
  uint32_t word;
  switch (type) {
    case BF16: {
      __nv_bfloat16 rounded = __float2bfloat16(value);
      memcpy(bits, &rounded, 2);
      return __bfloat162float(rounded);
    }
    case F16:
    case F16_SUMS_F16: {
      __half rounded = __float2half(value);
      memcpy(bits, &rounded, 2);
      return __half2float(rounded);
    }
    case TF32:  // fp32 with 10 bits of fraction: the tensor cores do not read the others
      memcpy(&word, &value, 4);
      word = (word + 0x1000) & ~0x1fffu;
      memcpy(bits, &word, 4);
      memcpy(&value, &word, 4);
      return value;
    case S8: {
      int8_t rounded = (int8_t)lrintf(value * S8_UNITS);
      memcpy(bits, &rounded, 1);
      return rounded;
    }
    default: {
      *bits = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
      __half_raw half = __nv_cvt_fp8_to_halfraw(*bits, __NV_E4M3);
      return __half2float(__half(half));
    }
  }
}

// The sum that a thread keeps as its number i.
static double sum_of(int type, const uint32_t *d, int i) {
  uint32_t word = d[rows[type].f16_sums ? i / 2 : i];
  if (type == S8) return (int32_t)word;
  if (rows[type].f16_sums) {
    __half_raw half;
    half.x = (uint16_t)(i % 2 ? word >> 16 : word);
    return __half2float(__half(half));
  }
  float value;
  memcpy(&value, &word, 4);
  return value;
}

static CUtensorMap map_of(const char *name, void *matrix, int row_bytes) {
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  map.dimensions = 2;
  map.address = matrix;
  map.size[0] = row_bytes, map.size[1] = SIDE;
  map.box[0] = ROW_BYTES, map.box[1] = SIDE;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return tensor_map_encode(name, &map);
}

// A and B, as they are, as rounded to a type, and in its bits.
static float numbers[2 * SIDE * K];
static double rounded[2 * SIDE * K];
static uint8_t bits[2][SIDE * K * 4];
static uint32_t sums[THREADS * SUMS];
static uint8_t *device_bits[2];
static uint32_t *device_sums;

static void fill(float least) {
  uint64_t state = 1;
  for (int i = 0; i < 2 * SIDE * K; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    numbers[i] = least + (1 - least) * (float)(state >> 40) / (float)(1 << 24);
  }
}

typedef struct {
  double of_sums, in_all;
} Errors;

static Errors multiply_in(int type) {
  int row_bytes = K * rows[type].bytes;
  for (int i = 0; i < 2 * SIDE * K; i++) {
    uint8_t *place = &bits[i / (SIDE * K)][i % (SIDE * K) * rows[type].bytes];
    rounded[i] = round_to(type, numbers[i], place);
  }
  for (int i = 0; i < 2; i++)
    CUDA_CHECK(cudaMemcpy(device_bits[i], bits[i], SIDE * row_bytes, cudaMemcpyHostToDevice));
  launch(type, map_of("A", device_bits[0], row_bytes), map_of("B", device_bits[1], row_bytes),
         row_bytes / ROW_BYTES, NULL, device_sums);
  CUDA_CHECK(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
  double of_sums = 0, in_all = 0, squares = 0;
  for (int t = 0; t < THREADS; t++) {
    for (int i = 0; i < SUMS; i++) {  // the place of sum i: wgmma.cuh
      int row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + t % 4 * 2 + i % 2;
      double exact = 0, before = 0, got = sum_of(type, &sums[t * SUMS], i);
      for (int k = 0; k < K; k++) {
        exact += rounded[row * K + k] * rounded[(SIDE + column) * K + k];
        before += (double)numbers[row * K + k] * numbers[(SIDE + column) * K + k];
      }
      if (type == S8) before *= S8_UNITS * S8_UNITS;
      of_sums += (got - exact) * (got - exact);
      in_all += (got - before) * (got - before);
      squares += exact * exact;
    }
  }
  return (Errors){sqrt(of_sums / squares), sqrt(in_all / squares)};
}

static void bench(void) {
  int64_t *clocks, took;
  CUDA_CHECK(cudaMalloc(&clocks, sizeof *clocks));
  FILE *csv = fopen("build/07_pipelined_gemm/wgmma_types.csv", "w");
  if (!csv)
    program_fail("cannot write build/07_pipelined_gemm/wgmma_types.csv: run it at the root");
  fprintf(csv, "type,clocks of four instructions and a wait,multiply-adds per clock\n");
  for (int type = 0; type < TYPES; type++) {
    CUtensorMap a = map_of("A", device_bits[0], ROW_BYTES);
    CUtensorMap b = map_of("B", device_bits[1], ROW_BYTES);
    launch(type, a, b, TIMED_STEPS, clocks, device_sums);
    CUDA_CHECK(cudaMemcpy(&took, clocks, sizeof took, cudaMemcpyDeviceToHost));
    double each = (double)took / TIMED_STEPS;
    fprintf(csv, "\"%s\",%.1f,%.0f\n", rows[type].name, each,
            (double)SIDE * SIDE * ROW_BYTES / rows[type].bytes / each);
  }
  fclose(csv);
}

int main(int argc, char **argv) {
  long timed = 0;
  Option options[] = {{"--bench", "time it, and write a table as CSV", &timed, 0, 0}};
  program_begin("wgmma_types", argc, argv, options, 1);
  for (int i = 0; i < 2; i++) CUDA_CHECK(cudaMalloc(&device_bits[i], sizeof bits[i]));
  CUDA_CHECK(cudaMalloc(&device_sums, sizeof sums));
  if (timed) {
    bench();
    return program_end("clocks of %d types", TYPES);
  }
  printf("errors of sums of %d products       -1 to 1               0 to 1\n", K);
  printf("type            k of a wgmma   of the sums   in all   of the sums   in all\n");
  Errors errors[2][TYPES];
  for (int range = 0; range < 2; range++) {
    fill(range == 0 ? -1.0f : 0.0f);
    for (int type = 0; type < TYPES; type++) errors[range][type] = multiply_in(type);
  }
  for (int type = 0; type < TYPES; type++) {
    printf("%-15s %12d", rows[type].name, 32 / rows[type].bytes);
    for (int range = 0; range < 2; range++) {
      const Errors *each = &errors[range][type];
      printf("   %11.1e  %7.1e", each->of_sums, each->in_all);
      check_that(each->of_sums <= rows[type].most, "%s: an error of %g, but at most %g is expected",
                 rows[type].name, each->of_sums, rows[type].most);
    }
    printf("\n");
  }
  return program_end("%d types, %d sums of each in two ranges", TYPES, SIDE * SIDE);
}
