/* cubin.c: compiles a kernel by NVRTC for sm_90a, asks for the cubin, loads and runs it.
 *
 * build: -cudart shared -lnvrtc
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const SOURCE =
    "extern \"C\" __global__ void add_five(int *numbers) { numbers[threadIdx.x] += 5; }\n";

static void *driver_entry(const char *name) {
  void *entry = NULL;
  cudaGetDriverEntryPointByVersion(name, &entry, 13000, cudaEnableDefault, NULL);
  return entry;
}

int main(void) {
  nvrtcProgram program;
  const char *options[] = {"--gpu-architecture=sm_90a"};
  size_t bytes = 0;
  if (nvrtcCreateProgram(&program, SOURCE, "add_five.cu", 0, NULL, NULL) ||
      nvrtcCompileProgram(program, 1, options) || nvrtcGetCUBINSize(program, &bytes))
    return 1;
  char *cubin = malloc(bytes);
  if (!cubin || nvrtcGetCUBIN(program, cubin)) return 1;
  CUresult (*load)(CUmodule *, const void *) = driver_entry("cuModuleLoadData");
  CUresult (*get)(CUfunction *, CUmodule, const char *) = driver_entry("cuModuleGetFunction");
  CUmodule module;
  CUfunction function;
  int numbers[32] = {0}, *device;
  cudaMalloc((void **)&device, sizeof numbers);
  cudaMemcpy(device, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  void *arguments[] = {&device};
  if (load(&module, cubin) || get(&function, module, "add_five")) return 1;
  cudaLaunchKernel((const void *)function, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL);
  cudaMemcpy(numbers, device, sizeof numbers, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; i++)
    if (numbers[i] != 5) return 1;
  printf("PASS cubin: NVRTC's code ran\n");
  return 0;
}
