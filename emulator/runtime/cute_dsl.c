/* cute_dsl.c: what code compiled by CuTe DSL calls on the host. Its own library for that has a copy of CUDA's runtime in
 * it without a table of symbols, so emulate names this library in its place (CUTE_DSL_LIBS). Most are a call of
 * CUDA's under a name that begins with an underscore: those stand at the end. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/runtime.h"

#define CUTE_DSL(result, call, parameters) \
  result call parameters;                  \
  result call parameters

CUTE_DSL(cudaError_t, _cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event)) {
  return cudaStreamWaitEvent(stream, event, 0);
}
CUTE_DSL(cudaError_t, _cudaLaunchKernelEx,
         (const cudaLaunchConfig_t *config, const void *kernel, void **arguments)) {
  return cudaLaunchKernelExC(config, kernel, arguments);
}
CUTE_DSL(cudaError_t, _cudaLaunchKernel,
         (const void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
          unsigned block_y, unsigned block_z, void **arguments, size_t shared_bytes,
          cudaStream_t stream)) {
  return cudaLaunchKernel(kernel, (dim3){grid_x, grid_y, grid_z}, (dim3){block_x, block_y, block_z},
                          arguments, shared_bytes, stream);
}
CUTE_DSL(const char *, cuda_dialect_get_error_name, (cudaError_t error)) {
  return cudaGetErrorName(error);
}
CUTE_DSL(void, cuda_dialect_print_on_error, (cudaError_t error)) {
  if (error != cudaSuccess)
    fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
}
CUTE_DSL(void, cuda_dialect_assert_success, (cudaError_t error)) {
  cuda_dialect_print_on_error(error);
  if (error != cudaSuccess) abort();
}

/* Loads a library the first time, and sets what it needs on each device. */
CUTE_DSL(int, cuda_dialect_init_library_once,
         (cudaLibrary_t * kept, cudaError_t (*load)(cudaLibrary_t *),
          cudaError_t (*set_up)(cudaLibrary_t *, int),
          void (*report)(const char *kind, const char *message))) {
  HOLD_RUNTIME_LOCK;
  if (*kept) return 0;
  cudaLibrary_t library = NULL;
  cudaError_t error = load(&library);
  if (error == cudaSuccess && set_up) error = set_up(&library, 0);
  if (error == cudaSuccess)
    *kept = library;
  else
    report("RuntimeError", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : -1;
}
CUTE_DSL(void, cuda_dialect_unload_library_once, (cudaLibrary_t * kept)) {
  cudaLibrary_t library = *kept;
  *kept = NULL;
  if (library) cudaLibraryUnload(library);
}

#ifdef __aarch64__
#define JUMP "b "
#else
#define JUMP "jmp "
#endif
/* The arguments are the same, so they stay where they are. */
#define FORWARD(call) \
  __asm__(".globl _" #call "\n.type _" #call ", %function\n_" #call ": " JUMP #call "\n");

/* clang-format off */
FORWARD(cudaDeviceGetAttribute) FORWARD(cudaDeviceSynchronize) FORWARD(cudaEventCreate)
FORWARD(cudaEventCreateWithFlags) FORWARD(cudaEventDestroy) FORWARD(cudaEventElapsedTime)
FORWARD(cudaEventQuery) FORWARD(cudaEventRecord) FORWARD(cudaEventSynchronize) FORWARD(cudaFree)
FORWARD(cudaFreeAsync) FORWARD(cudaFreeHost) FORWARD(cudaFuncSetAttribute) FORWARD(cudaGetDevice)
FORWARD(cudaGetDeviceCount) FORWARD(cudaGetDeviceProperties) FORWARD(cudaGetLastError)
FORWARD(cudaGraphDestroy) FORWARD(cudaGraphExecDestroy) FORWARD(cudaGraphInstantiate)
FORWARD(cudaGraphLaunch) FORWARD(cudaKernelSetAttributeForDevice) FORWARD(cudaLibraryGetGlobal)
FORWARD(cudaLibraryGetKernel) FORWARD(cudaLibraryGetKernelCount) FORWARD(cudaLibraryLoadData)
FORWARD(cudaLibraryLoadFromFile) FORWARD(cudaLibraryUnload) FORWARD(cudaMalloc)
FORWARD(cudaMallocAsync) FORWARD(cudaMallocHost) FORWARD(cudaMallocManaged) FORWARD(cudaMemcpy)
FORWARD(cudaMemcpyAsync) FORWARD(cudaMemset) FORWARD(cudaMemsetAsync)
FORWARD(cudaOccupancyMaxActiveBlocksPerMultiprocessor) FORWARD(cudaSetDevice)
FORWARD(cudaStreamAddCallback) FORWARD(cudaStreamBeginCapture) FORWARD(cudaStreamCreate)
FORWARD(cudaStreamDestroy) FORWARD(cudaStreamEndCapture) FORWARD(cudaStreamSynchronize)
FORWARD(cuDeviceGet) FORWARD(cuKernelGetAttribute) FORWARD(cuTensorMapEncodeIm2col)
FORWARD(cuTensorMapEncodeTiled) FORWARD(cuTensorMapReplaceAddress)
