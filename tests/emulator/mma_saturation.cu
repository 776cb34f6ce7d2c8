// mma with .satfinite before the types, as the PTX ISA has it, and behind them, as CUTLASS writes it: the same sums, which
// saturate.

#include <stdint.h>
#include <stdio.h>

#include "check.h"

__global__ void multiply(int32_t *result) {
  int32_t d[2], e[2], large = 2147483647 - 100;
  uint32_t a = 0x04040404, b = 0x03030303;
  asm volatile(
      "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};"
      : "=r"(d[0]), "=r"(d[1])
      : "r"(a), "r"(b), "r"(large), "r"(7));
  asm volatile(
      "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32.satfinite {%0, %1}, {%2}, {%3}, {%4, %5};"
      : "=r"(e[0]), "=r"(e[1])
      : "r"(a), "r"(b), "r"(large), "r"(7));
  int32_t *own = result + threadIdx.x * 4;
  own[0] = d[0];
  own[1] = d[1];
  own[2] = e[0];
  own[3] = e[1];
}

int main(void) {
  int32_t *result, got[128];
  CUDA_CHECK(cudaMalloc(&result, sizeof got));
  multiply<<<1, 32>>>(result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; i++) {
    if (got[i] == (i % 2 ? 16 * 12 + 7 : INT32_MAX)) continue;
    printf("FAIL mma_saturation: value %d is %d\n", i, got[i]);
    return 1;
  }
  puts("PASS mma_saturation");
  return 0;
}
