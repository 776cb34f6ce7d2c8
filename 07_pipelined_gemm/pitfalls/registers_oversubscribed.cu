// pitfall registers_oversubscribed: setmaxnreg.inc asks for registers that the block does not have
//   H200: hangs
//   report: hang-registers-missing
//
// A block of 512 threads has 65,536 registers, 128 each. The producer's warpgroup keeps 24, and three
// warpgroups of consumers want 240: 128 x (24 + 3 x 240) = 95,232. setmaxnreg.inc waits until that
// many are free, which never happens: all consumers hang. What fits is 24 + 3 x 160 = 504, up to 512.
// With two warpgroups of consumers (384 threads) 24 + 2 x 240 = 504 fits as well.
//
// The kernel needs __launch_bounds__ (or -maxrregcount): without it ptxas does not know how many
// registers a thread begins with, and leaves the instruction out (C7508, "setmaxnreg ignored").
//
// Seen on an H200 (28 November 2026, driver 580.159.04, three runs): each run hung.
#include <stdio.h>

#include "check.h"

enum { THREADS = 512, WARPGROUP = 128 };

__global__ void __launch_bounds__(THREADS, 1) share_registers(int *out) {
  if (threadIdx.x < WARPGROUP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    out[threadIdx.x] = threadIdx.x;
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    out[threadIdx.x] = 2 * threadIdx.x;
  }
}

int main(int argc, char **argv) {
  program_begin("registers_oversubscribed", argc, argv, NULL, 0);
  int got[THREADS], expected[THREADS], *out;
  for (int i = 0; i < THREADS; i++) expected[i] = i < WARPGROUP ? i : 2 * i;
  CUDA_CHECK(cudaMalloc(&out, sizeof got));
  share_registers<<<1, THREADS>>>(out);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("what each thread wrote", ELEMENT_S32, got, expected, 1, THREADS, 0);
  CUDA_CHECK(cudaFree(out));
  return program_end("%d threads", THREADS);
}
