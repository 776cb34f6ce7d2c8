// add.cu: a kernel as people bring one, with a part in another file. WITHOUT_BARRIER makes it wrong.
#include <cstdio>

#include "step.h"

__global__ void add(const int *a, int *sums, int n) {
  __shared__ int part[128];
  part[threadIdx.x] = a[threadIdx.x];
#ifndef WITHOUT_BARRIER
  __syncthreads();
#endif
  if (threadIdx.x < n) sums[threadIdx.x] = part[n - 1 - threadIdx.x] + STEP;
}

int main(int argc, char **argv) {
  int *a, *sums, wrong = 0;
  cudaMallocManaged(&a, 128 * sizeof(int));
  cudaMallocManaged(&sums, 128 * sizeof(int));
  for (int i = 0; i < 128; i++) a[i] = first_value() + i;
  add<<<1, 128>>>(a, sums, 128);
  cudaError_t error = cudaDeviceSynchronize();
  for (int i = 0; i < 128; i++) wrong += sums[i] != first_value() + 127 - i + STEP;
  printf("%s, %d wrong, step %d, %d arguments\n", cudaGetErrorName(error), wrong, STEP, argc - 1);
  return error != cudaSuccess || wrong != 0;
}
