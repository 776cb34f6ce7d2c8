/* refused_launches.cu: launches that the driver refuses, each at the first value that is too large or that
 * does not fit. On a GPU and on the emulator each line ends in the same error. */
#include <stdio.h>

#include "check.h"

enum { STATIC_BYTES = 1024, MOST_SHARED_BYTES = 232448 };

__global__ void takes_all(int *out) {
  __shared__ int kept[STATIC_BYTES / 4];
  extern __shared__ int dynamic[];
  kept[threadIdx.x % (STATIC_BYTES / 4)] = 1;
  if (out) *out = kept[0] + dynamic[0];
}
__global__ void __launch_bounds__(64) takes_64(void) {}
__global__ void __cluster_dims__(2, 1, 1) is_in_pairs(void) {}

static void launch(const char *what, const void *kernel, dim3 grid, dim3 block, size_t shared,
                   int cluster, int cooperative) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  int *none = NULL;
  void *arguments[] = {&none};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.attrs = attributes;
  if (cluster) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim = {(unsigned)cluster, 1, 1};
    config.numAttrs++;
  }
  if (cooperative) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs++].val.cooperative = 1;
  }
  fprintf(stderr, "%s\n", what);
  const cudaError_t error = cudaLaunchKernelExC(&config, kernel, arguments);
  printf("%s: %s\n", what, cudaGetErrorName(error));
  (void)cudaGetLastError();
}

int main(void) {
  const void *all = (const void *)takes_all;
  const size_t unasked = 49152 - STATIC_BYTES, most = MOST_SHARED_BYTES - STATIC_BYTES;
  CUDA_CHECK(cudaFree(NULL));
  launch("a grid of 0", all, dim3(4, 0), dim3(32), 0, 0, 0);
  launch("a grid that is too wide", all, dim3(1, 65536), dim3(32), 0, 0, 0);
  launch("a block of 0", all, dim3(1), dim3(32, 0), 0, 0, 0);
  launch("1,025 threads", all, dim3(1), dim3(1025), 0, 0, 0);
  launch("1,024 threads", all, dim3(1), dim3(1024), 0, 0, 0);
  launch("a block of 65 in z", all, dim3(1), dim3(1, 1, 65), 0, 0, 0);
  launch("more than the launch bounds", (const void *)takes_64, dim3(1), dim3(65), 0, 0, 0);
  launch("49,152 bytes", all, dim3(1), dim3(32), unasked, 0, 0);
  launch("49,156 bytes", all, dim3(1), dim3(32), unasked + 4, 0, 0);
  launch("49,156 bytes again", all, dim3(1), dim3(32), unasked + 4, 0, 0);
  launch("more than a block has", all, dim3(1), dim3(32), most + 1, 0, 0);
  cudaError_t error =
      cudaFuncSetAttribute(all, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most + 1);
  printf("a limit that is too high: %s\n", cudaGetErrorName(error));
  CUDA_CHECK(cudaFuncSetAttribute(all, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  launch("65,536 bytes", all, dim3(1), dim3(32), 65536, 0, 0);
  launch("more than was set", all, dim3(1), dim3(32), 65540, 0, 0);
  launch("clusters of 3 in a grid of 4", all, dim3(4), dim3(32), 0, 3, 0);
  launch("clusters of 16", all, dim3(16), dim3(32), 0, 16, 0);
  launch("clusters of 17", all, dim3(17), dim3(32), 0, 17, 0);
  launch("another cluster than is compiled", (const void *)is_in_pairs, dim3(4), dim3(32), 0, 4, 0);
  launch("pairs in a grid of 3", (const void *)is_in_pairs, dim3(3), dim3(32), 0, 0, 0);
  launch("a cooperative launch of too many", all, dim3(1 << 20), dim3(1024), 0, 0, 1);
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
