/* unload_cases.cu: kernels and variables of a module or library that was unloaded
 * (calls.bats).
 *
 *   unload_cases CASE */
#include "cases.cuh"
#include "driver_call.cuh"

typedef int Run(void);
#define CASE(name) CASE_OF(Run, name, "", static int, (void))

#define MUST(call)                                                 \
  do {                                                             \
    CUresult code_of_call = (call);                                \
    if (code_of_call != CUDA_SUCCESS) {                            \
      fprintf(stderr, "%s: error %d\n", #call, (int)code_of_call); \
      exit(1);                                                     \
    }                                                              \
  } while (0)

static const char text[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .global .align 4 .u32 factor = 3;\n"
    ".visible .entry scale(.param .u64 out, .param .u32 value)\n{\n"
    " .reg .b64 %rd<3>; .reg .b32 %r<4>;\n"
    " ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [value];\n"
    " ld.global.u32 %r2, [factor]; mul.lo.u32 %r3, %r1, %r2; st.global.u32 [%rd1], %r3;\n ret;\n}\n"
    ".visible .entry read_at(.param .u64 out, .param .u64 from)\n{\n"
    " .reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
    " ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [from];\n"
    " ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd1], %r1;\n ret;\n}\n";

static CUdeviceptr out, variable;
static CUmodule module, other;
static CUlibrary library;
static CUfunction scale, library_scale, read_at;

static CUresult launch(CUfunction function, unsigned value) {
  void *arguments[] = {&out, &value};
  return DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
}
static int result(void) {
  int got = 0;
  MUST(DRIVER(cuMemcpyDtoH)(&got, out, sizeof got));
  return got;
}

CASE(launch_after) {
  MUST(DRIVER(cuModuleUnload)(module));
  return launch(scale, 7);
}
CASE(library_launch_after) {
  MUST(DRIVER(cuLibraryUnload)(library));
  return launch(library_scale, 7);
}
CASE(graph_after) {
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  unsigned value = 7;
  void *arguments[] = {&out, &value};
  MUST(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  MUST(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(DRIVER(cuLaunchKernel)(scale, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  MUST(DRIVER(cuStreamEndCapture)(stream, &graph));
  MUST(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  MUST(DRIVER(cuModuleUnload)(module));
  return DRIVER(cuGraphLaunch)(exec, stream);
}
CASE(variable_copied_after) {
  int got;
  MUST(DRIVER(cuModuleUnload)(module));
  return DRIVER(cuMemcpyDtoH)(&got, variable, sizeof got);
}
CASE(variable_read_after) {
  void *arguments[] = {&out, &variable};
  MUST(DRIVER(cuModuleUnload)(module));
  MUST(DRIVER(cuLaunchKernel)(read_at, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  return DRIVER(cuCtxSynchronize)();
}
CASE(unloaded_after_launch) {
  MUST(launch(scale, 7));
  MUST(DRIVER(cuModuleUnload)(module));
  MUST(launch(library_scale, result()));
  MUST(DRIVER(cuLibraryUnload)(library));
  return result() == 63 ? 0 : -1;
}
CASE(function_found_after) {
  MUST(DRIVER(cuModuleUnload)(module));
  return DRIVER(cuModuleGetFunction)(&scale, module, "scale");
}
CASE(attribute_after) {
  int value;
  MUST(DRIVER(cuModuleUnload)(module));
  return DRIVER(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, scale);
}
CASE(unloaded_twice) {
  MUST(DRIVER(cuModuleUnload)(module));
  return DRIVER(cuModuleUnload)(module);
}
CASE(module_of_library) {
  CUmodule inside;
  MUST(DRIVER(cuLibraryGetModule)(&inside, library));
  return DRIVER(cuModuleUnload)(inside);
}

int main(int argc, char **argv) {
  const Case<Run> *chosen = choose_case<Run>(argc, argv);
  CUdevice device;
  CUcontext context;
  CUkernel kernel;
  size_t bytes;
  MUST(DRIVER(cuInit)(0));
  MUST(DRIVER(cuDeviceGet)(&device, 0));
  MUST(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
  MUST(DRIVER(cuCtxSetCurrent)(context));
  MUST(DRIVER(cuMemAlloc)(&out, sizeof(int)));
  MUST(DRIVER(cuModuleLoadData)(&module, text));
  MUST(DRIVER(cuModuleLoadData)(&other, text));
  MUST(DRIVER(cuLibraryLoadData)(&library, text, NULL, NULL, 0, NULL, NULL, 0));
  MUST(DRIVER(cuModuleGetFunction)(&scale, module, "scale"));
  MUST(DRIVER(cuModuleGetFunction)(&read_at, other, "read_at"));
  MUST(DRIVER(cuModuleGetGlobal)(&variable, &bytes, module, "factor"));
  MUST(DRIVER(cuLibraryGetKernel)(&kernel, library, "scale"));
  library_scale = (CUfunction)kernel;
  printf("%d\n", chosen->run());
  return 0;
}
