// fragment_layout: which thread holds which element? The hardware shows it, register by register.
//
//   beside the ladder: wgmma.cuh's tables, printed
//
// The accumulator of a wgmma is spread over 128 threads, and so is A when it comes from registers.
// The program multiplies matrices whose product has the value 8 * row + column in every element, so
// the value in a register says which element the register holds. The program compares this with the
// formula in wgmma.cuh. It then does the same with B given MN-major, as [K, N]: the descriptor
// changes, but the product does not.
//
// Prints the first 16 rows of the accumulator of m64n8k16, as "thread:register":
//
//           0      1      2      3 ...
//      0    0:0    0:1    1:0    1:1  ...
//      8    0:2    0:3    1:2    1:3  ...
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../06_swizzle_3d/swizzle.h"
#include "check.h"
#include "gemm_program.cuh"
#include "wgmma.cuh"

enum { M = 64, N = 64, K = 16, THREADS = 128, REGISTERS = N / 2, A_REGISTERS = 8 };

// PTX ISA: wgmma.mma_async with A in registers: four of two bf16 each.
static __device__ __forceinline__ void wgmma_m64n32k16_a_registers(float d[16], const uint32_t a[4],
                                                                   uint64_t b) {
  asm volatile(
      "{\n"
      "  wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16\n"
      "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15},\n"
      "    {%16, %17, %18, %19}, %20, 0, 1, 1, 0;\n"
      "}"
      : WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Copies a matrix of 128-byte lines into shared memory as TMA with the 128-byte swizzle would.
static __device__ void put_swizzled(uint16_t *tile, const uint16_t *lines, int count) {
  for (int i = threadIdx.x; i < count * 64; i += THREADS) {
    uint32_t offset = i * 2;
    tile[swizzle_128b(offset) / 2] = lines[i];
  }
}

// a: 64 rows of 64 k, b_k: 64 rows of 64 k, b_mn: 16 k of 64 n. Each warpgroup of one block.
static __global__ void __launch_bounds__(THREADS)
    layout_kernel(const uint16_t *a, const uint16_t *b_k_major, const uint16_t *b_mn_major,
                  const uint16_t *unit, float *from_k_major, float *from_mn_major, float *from_a) {
  __shared__ __align__(1024) uint16_t tile_a[M * 64], tile_b[N * 64], tile_mn[K * 64],
      tile_unit[32 * 64];
  put_swizzled(tile_a, a, M);
  put_swizzled(tile_b, b_k_major, N);
  put_swizzled(tile_mn, b_mn_major, K);
  put_swizzled(tile_unit, unit, 32);
  fence_proxy_async();
  __syncthreads();

  float d[REGISTERS] = {};
  wgmma_fence();
  wgmma_m64n64k16(d, wgmma_descriptor_k_major(tile_a), wgmma_descriptor_k_major(tile_b), 0);
  wgmma_commit();
  wgmma_wait_all();
  for (int i = 0; i < REGISTERS; i++) from_k_major[threadIdx.x * REGISTERS + i] = d[i];

  float e[REGISTERS] = {};
  wgmma_fence();
  wgmma_m64n64k16_b_mn_major(e, wgmma_descriptor_k_major(tile_a),
                             wgmma_descriptor_mn_major(tile_mn, sizeof(tile_mn)), 0);
  wgmma_commit();
  wgmma_wait_all();
  for (int i = 0; i < REGISTERS; i++) from_mn_major[threadIdx.x * REGISTERS + i] = e[i];

  // A in registers, B = the unit matrix: the product is A. Two passes, because bf16 cannot hold the
  // numbers of 128 threads times 8 elements exactly: first each element is the number of its thread,
  // then its own number.
  for (int pass = 0; pass < 2; pass++) {
    uint32_t registers[4];
    for (int i = 0; i < 4; i++) {
      float low = pass == 0 ? threadIdx.x : 2 * i, high = pass == 0 ? threadIdx.x : 2 * i + 1;
      registers[i] = (uint32_t)gemm_bf16(low) | (uint32_t)gemm_bf16(high) << 16;
    }
    float f[16] = {};
    wgmma_fence();
    wgmma_m64n32k16_a_registers(f, registers, wgmma_descriptor_k_major(tile_unit));
    wgmma_commit();
    wgmma_wait_all();
    for (int i = 0; i < 16; i++) from_a[(pass * THREADS + threadIdx.x) * 16 + i] = f[i];
  }
}

typedef struct {
  int row, column;
} Place;

// wgmma.cuh's formula.
static Place accumulator_place(int thread, int index) {
  Place place;
  place.row = thread / 32 * 16 + thread % 32 / 4 + index % 4 / 2 * 8;
  place.column = index / 4 * 8 + thread % 4 * 2 + index % 2;
  return place;
}

// Registers of A: element e is half e % 2 of register e / 2; registers 0 and 1 are k 0 to 7 of rows
// r and r + 8, registers 2 and 3 k 8 to 15.
static Place a_place(int thread, int element) {
  Place place;
  place.row = thread / 32 * 16 + thread % 32 / 4 + element / 2 % 2 * 8;
  place.column = element / 4 * 8 + thread % 4 * 2 + element % 2;
  return place;
}

int main(int argc, char **argv) {
  program_begin("fragment_layout", argc, argv, NULL, 0);
  // 1. A[i][0] = i, A[i][1] = 1; B[j][0] = 64, B[j][1] = j: the product is 64 i + j, exactly.
  static uint16_t a[M * 64], b_k_major[N * 64], b_mn_major[K * 64], unit[32 * 64];
  for (int i = 0; i < M; i++) a[i * 64] = gemm_bf16(i), a[i * 64 + 1] = gemm_bf16(1);
  for (int j = 0; j < N; j++) {
    b_k_major[j * 64] = b_mn_major[j] = gemm_bf16(64);
    b_k_major[j * 64 + 1] = b_mn_major[64 + j] = gemm_bf16(j);
  }
  for (int j = 0; j < K; j++) unit[j * 64 + j] = gemm_bf16(1);

  uint16_t *device[4];
  const void *host[] = {a, b_k_major, b_mn_major, unit};
  size_t bytes[] = {sizeof(a), sizeof(b_k_major), sizeof(b_mn_major), sizeof(unit)};
  for (int i = 0; i < 4; i++) {
    CUDA_CHECK(cudaMalloc(&device[i], bytes[i]));
    CUDA_CHECK(cudaMemcpy(device[i], host[i], bytes[i], cudaMemcpyHostToDevice));
  }
  static float k_major[THREADS][REGISTERS], mn_major[THREADS][REGISTERS], from_a[2][THREADS][16];
  float *results[3];
  CUDA_CHECK(cudaMalloc(&results[0], sizeof(k_major)));
  CUDA_CHECK(cudaMalloc(&results[1], sizeof(mn_major)));
  CUDA_CHECK(cudaMalloc(&results[2], sizeof(from_a)));
  layout_kernel<<<1, THREADS>>>(device[0], device[1], device[2], device[3], results[0], results[1],
                                results[2]);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(k_major, results[0], sizeof(k_major), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(mn_major, results[1], sizeof(mn_major), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(from_a, results[2], sizeof(from_a), cudaMemcpyDeviceToHost));

  // 2. The accumulator: the value in each register says which element it is.
  static int owner[M][N], reg[M][N];
  memset(owner, 0xFF, sizeof(owner));
  long wrong = 0, differ = 0;
  for (int thread = 0; thread < THREADS; thread++) {
    for (int i = 0; i < REGISTERS; i++) {
      int value = (int)k_major[thread][i], row = value / N % M, column = value % N;
      Place expected = accumulator_place(thread, i);
      wrong += !(k_major[thread][i] == (float)(expected.row * N + expected.column));
      differ += !(k_major[thread][i] == mn_major[thread][i]);
      owner[row][column] = thread;
      reg[row][column] = i;
    }
  }
  printf("accumulator of m64n64k16, thread:register; rows 0 to 15 are warp 0's\n      ");
  for (int column = 0; column < 16; column++) printf("%7d", column);
  printf("\n");
  for (int row = 0; row < 16; row++) {
    if (row == 10) detail_begin();
    printf("%5d ", row);
    for (int column = 0; column < 16; column++) {
      printf("%4d:%-2d", owner[row][column], reg[row][column]);
    }
    printf("\n");
  }
  detail_end();
  check_that(wrong == 0, "%ld of %d registers are not where the formula has them", wrong,
             THREADS * REGISTERS);
  check_that(differ == 0, "%ld registers differ when B is MN-major", differ);
  printf("with B MN-major, as [K, N]: %ld of %d registers differ\n", differ, THREADS * REGISTERS);

  // 3. A from registers. The product with the unit matrix is A itself, in accumulator layout.
  static int a_owner[M][K], a_element[M][K];
  wrong = 0;
  for (int thread = 0; thread < THREADS; thread++) {
    for (int i = 0; i < A_REGISTERS; i++) {
      Place place = accumulator_place(thread, i);
      a_owner[place.row][place.column] = (int)from_a[0][thread][i];
      a_element[place.row][place.column] = (int)from_a[1][thread][i];
    }
  }
  for (int thread = 0; thread < THREADS; thread++) {
    for (int element = 0; element < A_REGISTERS; element++) {
      Place place = a_place(thread, element);
      wrong += a_owner[place.row][place.column] != thread ||
               a_element[place.row][place.column] != element;
    }
  }
  detail_begin();
  printf("A from registers, thread:element (two to a register)\n      ");
  for (int column = 0; column < K; column++) printf("%7d", column);
  printf("\n");
  for (int row = 0; row < 16; row++) {
    printf("%5d ", row);
    for (int column = 0; column < K; column++) {
      printf("%4d:%-2d", a_owner[row][column], a_element[row][column]);
    }
    printf("\n");
  }
  detail_end();
  check_that(wrong == 0, "%ld of %d elements of A are not where the formula has them", wrong,
             THREADS * A_REGISTERS);
  return program_end("%d registers of D from K-major and MN-major B, %d elements of A",
                     THREADS * REGISTERS, THREADS * A_REGISTERS);
}
