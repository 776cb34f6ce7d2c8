// driver_calls.cu: the driver's virtual memory, its linker, its occupancy and other calls of which
// the runtime has none or another form. driver_calls --unknown N calls one that is refused by name.
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/check.h"

static void *driver_entry(const char *name) {
  void *entry = NULL;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 13000, cudaEnableDefault, &found));
  if (!check_that(entry != NULL, "the driver has no %s", name)) exit(program_end("the calls"));
  return entry;
}
#define DRIVER(name) ((decltype(&name))driver_entry(#name))

__global__ void count_up(int *numbers, int count) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) numbers[i] += i;
}

static void occupancy(void) {
  CUfunction function;
  CUDA_CHECK(cudaGetFuncBySymbol((cudaFunction_t *)&function, (const void *)count_up));
  int grid = 0, block = 0;
  CU_CHECK(DRIVER(cuOccupancyMaxPotentialBlockSize)(&grid, &block, function, NULL, 0, 0));
  check_that(block >= 256 && grid >= 132, "occupancy: grid %d, block %d", grid, block);
  CU_CHECK(DRIVER(cuOccupancyMaxPotentialBlockSize)(&grid, &block, function, NULL, 0, 96));
  check_that(block <= 96, "occupancy: a block of %d, but 96 is the limit", block);
}

static void calls_of_the_runtime(void) {
  char id[32];
  CUdevice device = -1;
  CU_CHECK(DRIVER(cuDeviceGetPCIBusId)(id, sizeof id, 0));
  CU_CHECK(DRIVER(cuDeviceGetByPCIBusId)(&device, id));
  check_that(device == 0, "device %d has the bus %s", device, id);
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
  if (unknown == 1) DRIVER(cuGreenCtxCreate)(NULL, NULL, 0, 0);
  if (unknown == 2) ((CUresult(*)(void *))driver_entry("cuTexRefCreate"))(NULL);
  if (unknown == 3) DRIVER(cuGraphConditionalHandleCreate)(NULL, NULL, NULL, 0, 0);
  if (unknown == 4) {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params);
  }
  if (unknown == 5) DRIVER(cuGraphAddKernelNode)(NULL, NULL, NULL, 0, NULL);
  if (unknown == 6) cudaMallocArray(NULL, NULL, 0, 0, 0);
  if (unknown == 7) DRIVER(cuTexObjectCreate)(NULL, NULL, NULL, NULL);
  if (unknown == 9) DRIVER(cuMemMap)(0, 0, 0, 0, 0);
  if (unknown == 10) DRIVER(cuLinkDestroy)(NULL);
  if (unknown == 11) ((CUresult(*)(CUstream))driver_entry("cuStreamSynchronize_ptsz"))(NULL);
  if (unknown == 8) {
    cudaMemcpy3DParms copy = {};
    copy.dstArray = (cudaArray_t)&unknown;
    cudaMemcpy3D(&copy);
  }
  occupancy();
  calls_of_the_runtime();
  constant_memory();
  return program_end("occupancy, constant memory");
}
