// driver_calls.cu: what the driver's calls answer that have no other test. driver_calls --unknown N calls one that is
// refused by name.
#include <stdint.h>
#include <string.h>

#include "../../common/check.h"
#include "driver_call.cuh"

#define NEWEST(name) ((decltype(&name))driver_call(#name, 13000))

__global__ void count_up(int *numbers, int count) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) numbers[i] += i;
}

// A kernel has all constant variables of its module, one after the other, whether it uses them or not.
__constant__ int ten[10];
__constant__ double seven[7];
__constant__ char one;
__global__ void read_constants(int *out) { *out = ten[0] + (int)seven[0] + one; }

static void constant_memory(void) {
  const void *kernels[] = {(const void *)count_up, (const void *)read_constants};
  for (int i = 0; i < 2; i++) {
    cudaFuncAttributes attributes;
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernels[i]));
    check_that(attributes.constSizeBytes == 97, "kernel %d has %zu bytes of constant memory", i,
               attributes.constSizeBytes);
  }
}

static long unknown;

int main(int argc, char **argv) {
  const Option options[] = {
      {"--unknown", "make a call that the emulator refuses", &unknown, 1, 11}};
  program_begin("driver_calls", argc, argv, options, 1);
  CUDA_CHECK(cudaFree(NULL));
  if (unknown == 1) NEWEST(cuGreenCtxCreate)(NULL, NULL, 0, 0);
  if (unknown == 2) ((CUresult(*)(void *))driver_call("cuTexRefCreate"))(NULL);
  if (unknown == 3) NEWEST(cuGraphConditionalHandleCreate)(NULL, NULL, NULL, 0, 0);
  if (unknown == 4) cudaGraphAddKernelNode(NULL, NULL, NULL, 0, NULL);
  if (unknown == 5) cudaMemPoolDestroy(NULL);
  if (unknown == 6) cudaMallocArray(NULL, NULL, 0, 0, 0);
  if (unknown == 7) NEWEST(cuTexObjectCreate)(NULL, NULL, NULL, NULL);
  if (unknown == 9) NEWEST(cuMemMap)(0, 0, 0, 0, 0);
  if (unknown == 10) NEWEST(cuLinkDestroy)(NULL);
  if (unknown == 11) ((CUresult(*)(CUstream))driver_call("cuStreamSynchronize_ptsz"))(NULL);
  if (unknown == 8) NEWEST(cuMemcpy2D)(NULL);
  constant_memory();
  return program_end("constant memory");
}
