// clock_division: 64 divisions by numbers known only at run time, each of which needs the one before, and as many
// additions, for the emulator's clock (emulator/tests/clock.bats).
#include <stdint.h>
#include <stdio.h>

enum { CHAIN = 64 };

static __global__ void divisions(int32_t *out, int32_t dividend, int32_t divisor) {
#pragma unroll
  for (int i = 0; i < CHAIN; i++) divisor = dividend / divisor;
  out[0] = divisor;
}

static __global__ void by_constants(int32_t *out, int32_t dividend) {
#pragma unroll
  for (int i = 0; i < CHAIN; i++) dividend = dividend / 3 + 7;
  out[0] = dividend;
}

int main(void) {
  int32_t *out;
  cudaMalloc(&out, sizeof *out);
  divisions<<<1, 1>>>(out, 1000000007, 17);
  by_constants<<<1, 1>>>(out, 1000000007);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
