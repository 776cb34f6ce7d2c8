// mma with .satfinite before the types, as the PTX ISA has it, and behind them, as CUTLASS writes it: the same sums, which
// saturate.

#include "device_memory.cuh"

__global__ void multiply(int32_t *result) {
  int32_t d[4], e[4], large = 2147483647 - 100;
  uint32_t a = 0x04040404, b = 0x03030303;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %4}, {%5}, "
      "{%6, %7, %6, %7};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a), "r"(b), "r"(large), "r"(7));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32.satfinite {%0, %1, %2, %3}, {%4, %4}, {%5}, "
      "{%6, %7, %6, %7};"
      : "=r"(e[0]), "=r"(e[1]), "=r"(e[2]), "=r"(e[3])
      : "r"(a), "r"(b), "r"(large), "r"(7));
  int32_t *own = result + threadIdx.x * 8;
  for (int i = 0; i < 4; i++) {
    own[i] = d[i];
    own[4 + i] = e[i];
  }
}

int main(void) {
  int32_t *result = device_memory<int32_t>(256), got[256];
  multiply<<<1, 32>>>(result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; i++) {
    if (got[i] == (i % 2 ? 16 * 12 + 7 : INT32_MAX)) continue;
    printf("FAIL mma_saturation: value %d is %d\n", i, got[i]);
    return 1;
  }
  puts("PASS mma_saturation");
  return 0;
}
