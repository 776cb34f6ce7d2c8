/* foreign_driver.cu: a program on the driver API that brings its own PTX, as just-in-time compilers
 * do: a library and a module of the same text, a launch with a cluster, one with packed arguments,
 * a variable by name, asynchronous copies, and a captured launch. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.cuh"

static const char PTX[] =
    ".version 8.0\n"
    ".target sm_90a\n"
    ".address_size 64\n"
    ".visible .global .u32 bias = 41;\n"
    ".visible .entry fill(.param .u64 out, .param .u32 value) {\n"
    "  .reg .b64 %a<3>;\n"
    "  .reg .b32 %r<6>;\n"
    "  ld.param.u64 %a0, [out];\n"
    "  ld.param.u32 %r0, [value];\n"
    "  mov.u32 %r1, %tid.x;\n"
    "  mov.u32 %r2, %cluster_nctarank;\n"
    "  ld.global.u32 %r3, [bias];\n"
    "  mad.lo.u32 %r4, %r2, 1000, %r3;\n"
    "  add.u32 %r4, %r4, %r0;\n"
    "  add.u32 %r4, %r4, %r1;\n"
    "  mul.wide.u32 %a1, %r1, 4;\n"
    "  add.u64 %a1, %a0, %a1;\n"
    "  st.global.u32 [%a1], %r4;\n"
    "  ret;\n"
    "}\n";

#define CHECK(call)                                             \
  do {                                                          \
    int error = (int)(call);                                    \
    if (error) {                                                \
      printf("FAIL line %d: %s: %d\n", __LINE__, #call, error); \
      exit(1);                                                  \
    }                                                           \
  } while (0)

enum { COUNT = 32 };
static unsigned host[COUNT];
static int wrong;

static void expect(const char *what, unsigned first) {
  for (unsigned i = 0; i < COUNT; i++) {
    if (host[i] == first + i) continue;
    if (wrong++ == 0) printf("%s: [%u] is %u, not %u\n", what, i, host[i], first + i);
  }
}

static void cluster_of_library(CUdeviceptr out, CUstream stream) {
  CUlibrary library;
  CUkernel kernel;
  CUfunction function;
  CHECK(DRIVER(cuLibraryLoadData)(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(DRIVER(cuLibraryGetKernel)(&kernel, library, "fill"));
  CHECK(DRIVER(cuKernelGetFunction)(&function, kernel));
  unsigned value = 100;
  void *arguments[] = {&out, &value};
  CUlaunchAttribute cluster;
  memset(&cluster, 0, sizeof cluster);
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim.x = 2;
  cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
  CUlaunchConfig config;
  memset(&config, 0, sizeof config);
  config.gridDimX = 2;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = COUNT;
  config.hStream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  CHECK(DRIVER(cuLaunchKernelEx)(&config, function, arguments, NULL));
  CHECK(DRIVER(cuMemcpyDtoHAsync)(host, out, sizeof host, stream));
  CHECK(DRIVER(cuStreamSynchronize)(stream));
  expect("a cluster of two", 2000 + 41 + 100);
  CHECK(DRIVER(cuLibraryUnload)(library));
}

/* The module's function and its variable; the arguments are one block of bytes. */
static void packed_arguments(CUmodule module, CUfunction function, CUdeviceptr out,
                             CUstream stream) {
  CUdeviceptr bias;
  size_t bytes = 0;
  CHECK(DRIVER(cuModuleGetGlobal)(&bias, &bytes, module, "bias"));
  unsigned other_bias = 7;
  CHECK(DRIVER(cuMemcpyHtoD)(bias, &other_bias, bytes));
  struct {
    CUdeviceptr out;
    unsigned value;
  } packed = {out, 5};
  size_t packed_bytes = sizeof packed; /* with the padding too many: the parameters end before it */
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &packed_bytes, CU_LAUNCH_PARAM_END};
  wrong += DRIVER(cuLaunchKernel)(function, 1, 1, 1, COUNT, 1, 1, 0, stream, NULL, extra) !=
           CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  packed_bytes = sizeof packed.out + sizeof packed.value;
  CHECK(DRIVER(cuLaunchKernel)(function, 1, 1, 1, COUNT, 1, 1, 0, stream, NULL, extra));
  CHECK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(DRIVER(cuMemcpyDtoH)(host, out, sizeof host));
  expect("packed arguments, another bias", 1000 + 7 + 5);
}

static void captured_launch(CUfunction function, CUdeviceptr out, CUstream stream) {
  unsigned value = 100;
  void *arguments[] = {&out, &value};
  CUgraph graph;
  CUgraphExec exec;
  CHECK(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(DRIVER(cuLaunchKernel)(function, 1, 1, 1, COUNT, 1, 1, 0, stream, arguments, NULL));
  CHECK(DRIVER(cuStreamEndCapture)(stream, &graph));
  value = 1; /* the graph has a copy of it */
  CHECK(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  CHECK(DRIVER(cuGraphLaunch)(exec, stream));
  CHECK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(DRIVER(cuMemcpyDtoH)(host, out, sizeof host));
  expect("captured", 1000 + 7 + 100);
  CHECK(DRIVER(cuGraphExecDestroy)(exec));
  CHECK(DRIVER(cuGraphDestroy)(graph));
}

/* A cluster that the function requires, and the launch need not name. */
static void required_cluster(CUfunction function, CUdeviceptr out, CUstream stream) {
  unsigned value = 1;
  void *arguments[] = {&out, &value};
  CHECK(DRIVER(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4));
  CHECK(DRIVER(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
  CHECK(DRIVER(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
  CHECK(DRIVER(cuLaunchKernel)(function, 4, 1, 1, COUNT, 1, 1, 0, stream, arguments, NULL));
  CHECK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(DRIVER(cuMemcpyDtoH)(host, out, sizeof host));
  expect("a required cluster of four", 4000 + 7 + 1);
}

int main(void) {
  CHECK(cudaFree(NULL)); /* makes the context */
  CUcontext context;
  CHECK(DRIVER(cuCtxGetCurrent)(&context));
  CUdeviceptr out;
  CUstream stream;
  CHECK(DRIVER(cuMemAlloc)(&out, sizeof host));
  CHECK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  cluster_of_library(out, stream);

  CUmodule module;
  CUfunction function;
  CHECK(DRIVER(cuModuleLoadData)(&module, PTX));
  CHECK(DRIVER(cuModuleGetFunction)(&function, module, "fill"));
  packed_arguments(module, function, out, stream);
  captured_launch(function, out, stream);
  required_cluster(function, out, stream);

  int registers = 0;
  CHECK(DRIVER(cuFuncGetAttribute)(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  wrong += registers <= 0;
  wrong += DRIVER(cuModuleGetFunction)(&function, module, "nothing") != CUDA_ERROR_NOT_FOUND;
  CHECK(DRIVER(cuModuleUnload)(module));
  CHECK(DRIVER(cuMemFree)(out));
  printf(wrong ? "FAIL foreign_driver\n" : "PASS foreign_driver: library, module, graph\n");
  return wrong != 0;
}
