/* cubin.c: compiles a kernel by NVRTC for sm_90a or the architecture that is given, asks for the cubin, or with "ptx"
 * for the PTX, loads and runs it.
 *
 *   cubin [sm_... [ptx]]
 *
 * build: -cudart shared -lnvrtc
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvrtc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const SOURCE =
    "extern \"C\" __global__ void add_five(int *numbers) { numbers[threadIdx.x] += 5; }\n";

static void *driver_entry(const char *name) {
  void *entry = NULL;
  cudaGetDriverEntryPointByVersion(name, &entry, 13000, cudaEnableDefault, NULL);
  return entry;
}

static char *compile(const char *architecture, bool ptx) {
  nvrtcProgram program;
  char option[64];
  const char *options[] = {option};
  size_t bytes = 0;
  snprintf(option, sizeof option, "--gpu-architecture=%s", architecture);
  if (nvrtcCreateProgram(&program, SOURCE, "add_five.cu", 0, NULL, NULL) ||
      nvrtcCompileProgram(program, 1, options) ||
      (ptx ? nvrtcGetPTXSize : nvrtcGetCUBINSize)(program, &bytes))
    return NULL;
  char *code = malloc(bytes);
  return code && !(ptx ? nvrtcGetPTX : nvrtcGetCUBIN)(program, code) ? code : NULL;
}

int main(int argc, char **argv) {
  char *code = compile(argc > 1 ? argv[1] : "sm_90a", argc > 2);
  if (!code) return 1;
  CUresult (*load)(CUmodule *, const void *) = driver_entry("cuModuleLoadData");
  CUresult (*get)(CUfunction *, CUmodule, const char *) = driver_entry("cuModuleGetFunction");
  CUmodule module;
  CUfunction function;
  int numbers[32] = {0}, *device;
  cudaMalloc((void **)&device, sizeof numbers);
  cudaMemcpy(device, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  void *arguments[] = {&device};
  CUresult answer = load(&module, code);
  if (answer != CUDA_SUCCESS) return printf("cuModuleLoadData answers %d\n", (int)answer), 2;
  if (get(&function, module, "add_five")) return 1;
  cudaLaunchKernel((const void *)function, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL);
  cudaMemcpy(numbers, device, sizeof numbers, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; i++)
    if (numbers[i] != 5) return 1;
  printf("PASS cubin: NVRTC's code ran\n");
  return 0;
}
