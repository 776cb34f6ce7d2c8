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

// Two pieces of memory side by side in one range, then one of them at a second address.
static void virtual_memory(void) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t granule = 0;
  CU_CHECK(DRIVER(cuMemGetAllocationGranularity)(&granule, &properties,
                                                 CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr range, again;
  CU_CHECK(DRIVER(cuMemAddressReserve)(&range, 3 * granule, 0, 0, 0));
  CU_CHECK(DRIVER(cuMemAddressReserve)(&again, granule, 0, 0, 0));
  CUmemGenericAllocationHandle pieces[2];
  for (int i = 0; i < 2; i++) {
    CU_CHECK(DRIVER(cuMemCreate)(&pieces[i], granule, &properties, 0));
    CU_CHECK(DRIVER(cuMemMap)(range + (size_t)i * granule, granule, 0, pieces[i], 0));
  }
  CU_CHECK(DRIVER(cuMemMap)(again, granule, 0, pieces[1], 0));
  check_that(DRIVER(cuMemMap)(range, granule, 0, pieces[0], 0) == CUDA_ERROR_INVALID_VALUE,
             "a mapping over another was accepted");
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CU_CHECK(DRIVER(cuMemSetAccess)(range, 2 * granule, &access, 1));
  CU_CHECK(DRIVER(cuMemSetAccess)(again, granule, &access, 1));
  unsigned long long flags = 0;
  CU_CHECK(DRIVER(cuMemGetAccess)(&flags, &properties.location, again));
  check_that(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "cuMemGetAccess: %llu", flags);
  int count = (int)(2 * granule / sizeof(int));
  CUDA_CHECK(cudaMemset((void *)range, 0, 2 * granule));
  count_up<<<(count + 255) / 256, 256>>>((int *)range, count);
  CUDA_CHECK(cudaGetLastError());
  int *host = (int *)malloc(2 * granule), *second = (int *)malloc(granule), wrong = 0;
  CUDA_CHECK(cudaMemcpy(host, (void *)range, 2 * granule, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(second, (void *)again, granule, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; i++) wrong += host[i] != i;
  check_that(wrong == 0, "across two pieces: %d numbers are wrong", wrong);
  check_that(memcmp(second, host + count / 2, granule) == 0, "the second address sees other bytes");
  CU_CHECK(DRIVER(cuMemUnmap)(range, 2 * granule));
  check_that(cudaMemset((void *)range, 0, 4) == cudaErrorInvalidValue,
             "memory that is no longer mapped was filled");
  cudaGetLastError();
  CU_CHECK(DRIVER(cuMemAddressFree)(range, 3 * granule));
  check_that(DRIVER(cuMemAddressFree)(again, granule) == CUDA_ERROR_INVALID_VALUE,
             "a range was given back with memory in it");
  CU_CHECK(DRIVER(cuMemUnmap)(again, granule));
  for (int i = 0; i < 2; i++) CU_CHECK(DRIVER(cuMemRelease)(pieces[i]));
  check_that(DRIVER(cuMemRelease)(pieces[0]) == CUDA_ERROR_INVALID_VALUE, "released twice");
  free(host);
  free(second);
}

static const char *const TWICE =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .func (.param .b32 result) twice(.param .b32 number) {\n"
    "  .reg .b32 %r<2>;\n  ld.param.b32 %r0, [number];\n  add.u32 %r1, %r0, %r0;\n"
    "  st.param.b32 [result], %r1;\n  ret;\n}\n";
static const char *const CALLER =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".extern .func (.param .b32 result) twice(.param .b32 number);\n"
    ".visible .entry double_all(.param .u64 numbers) {\n"
    "  .reg .b32 %r<4>;\n  .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd0, [numbers];\n  mov.u32 %r0, %tid.x;\n  mul.wide.u32 %rd1, %r0, 4;\n"
    "  add.u64 %rd2, %rd0, %rd1;\n  ld.global.u32 %r1, [%rd2];\n"
    "  { .param .b32 in; .param .b32 out;\n  st.param.b32 [in], %r1;\n"
    "  call (out), twice, (in);\n  ld.param.b32 %r2, [out]; }\n"
    "  st.global.u32 [%rd2], %r2;\n  ret;\n}\n";

static void linker(void) {
  char log[256] = "not cleared";
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)sizeof log};
  CUlinkState state;
  CU_CHECK(DRIVER(cuLinkCreate)(2, options, values, &state));
  CU_CHECK(DRIVER(cuLinkAddData)(state, CU_JIT_INPUT_PTX, (void *)CALLER, strlen(CALLER) + 1,
                                 "caller", 0, NULL, NULL));
  CU_CHECK(DRIVER(cuLinkAddData)(state, CU_JIT_INPUT_PTX, (void *)TWICE, strlen(TWICE) + 1, "twice",
                                 0, NULL, NULL));
  void *linked;
  size_t bytes;
  CU_CHECK(DRIVER(cuLinkComplete)(state, &linked, &bytes));
  CUmodule module;
  CU_CHECK(DRIVER(cuModuleLoadData)(&module, linked));
  CU_CHECK(DRIVER(cuLinkDestroy)(state));
  check_that(strcmp(log, "not cleared") != 0, "the log was not written");
  CUfunction function;
  CU_CHECK(DRIVER(cuModuleGetFunction)(&function, module, "double_all"));
  int numbers[32], *device;
  for (int i = 0; i < 32; i++) numbers[i] = 7 * i;
  CUDA_CHECK(cudaMalloc(&device, sizeof numbers));
  CUDA_CHECK(cudaMemcpy(device, numbers, sizeof numbers, cudaMemcpyHostToDevice));
  void *arguments[] = {&device};
  CU_CHECK(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
  CUDA_CHECK(cudaMemcpy(numbers, device, sizeof numbers, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < 32; i++) wrong += numbers[i] != 14 * i;
  check_that(wrong == 0, "linked PTX: %d numbers are wrong", wrong);
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
  CUgraph graph, clone;
  CUgraphNode first, second, found[2];
  size_t count = 2;
  CU_CHECK(DRIVER(cuGraphCreate)(&graph, 0));
  CU_CHECK(DRIVER(cuGraphAddEmptyNode)(&first, graph, NULL, 0));
  CU_CHECK(DRIVER(cuGraphAddEmptyNode)(&second, graph, &first, 1));
  CU_CHECK(DRIVER(cuGraphClone)(&clone, graph));
  CU_CHECK(DRIVER(cuGraphGetRootNodes)(graph, found, &count));
  check_that(count == 1 && found[0] == first, "%zu roots", count);
}

// A fill, then a kernel, then a copy, as nodes in the driver's description.
static void graph_nodes(void) {
  enum { COUNT = 64 };
  int *device, host[COUNT];
  CUDA_CHECK(cudaMalloc(&device, sizeof host));
  cudaFunction_t function;
  CUDA_CHECK(cudaGetFuncBySymbol(&function, (const void *)count_up));
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = (CUdeviceptr)device;
  fill.value = 5;
  fill.elementSize = 4;
  fill.width = COUNT;
  fill.height = 1;
  int count = COUNT;
  void *arguments[] = {&device, &count};
  CUDA_KERNEL_NODE_PARAMS launch = {};
  launch.func = (CUfunction)function;
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = COUNT;
  launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = arguments;
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = (CUdeviceptr)device;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.WidthInBytes = sizeof host;
  copy.Height = copy.Depth = 1;
  CUcontext context;
  CU_CHECK(DRIVER(cuCtxGetCurrent)(&context));
  CUgraph graph;
  CUgraphNode nodes[3];
  CUgraphExec exec;
  CU_CHECK(DRIVER(cuGraphCreate)(&graph, 0));
  CU_CHECK(DRIVER(cuGraphAddMemsetNode)(&nodes[0], graph, NULL, 0, &fill, context));
  CU_CHECK(DRIVER(cuGraphAddKernelNode)(&nodes[1], graph, &nodes[0], 1, &launch));
  CU_CHECK(DRIVER(cuGraphAddMemcpyNode)(&nodes[2], graph, &nodes[1], 1, &copy, context));
  CU_CHECK(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  CU_CHECK(DRIVER(cuGraphLaunch)(exec, NULL));
  CUDA_CHECK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) wrong += host[i] != 5 + i;
  check_that(wrong == 0, "the graph: %d numbers are wrong", wrong);
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
  const Option options[] = {{"--unknown", "make a call that the emulator refuses", &unknown, 1, 8}};
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
  if (unknown == 5) DRIVER(cuGraphAddNode)(NULL, NULL, NULL, NULL, 0, NULL);
  if (unknown == 6) cudaMallocArray(NULL, NULL, 0, 0, 0);
  if (unknown == 7) DRIVER(cuTexObjectCreate)(NULL, NULL, NULL, NULL);
  if (unknown == 8) {
    cudaMemcpy3DParms copy = {};
    copy.dstArray = (cudaArray_t)&unknown;
    cudaMemcpy3D(&copy);
  }
  virtual_memory();
  linker();
  calls_of_the_runtime();
  graph_nodes();
  constant_memory();
  return program_end("virtual memory, the linker, occupancy");
}
