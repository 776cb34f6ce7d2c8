// without_context.cu: the driver before cuInit, in a thread without a context, with a destroyed context, and in a
// forked child whose parent has used the device. Calls are refused with a GPU's error and nothing crashes.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Not from the runtime, which would initialise the driver. */
static void *version_of(const char *name, int version) {
  static PFN_cuGetProcAddress_v12000 find =
      (PFN_cuGetProcAddress_v12000)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
  void *call = NULL;
  find(name, &call, version, CU_GET_PROC_ADDRESS_DEFAULT, NULL);
  return call;
}
#define DRIVER(name, version) ((PFN_##name##_v##version)version_of(#name, version))

static int failures;
#define EXPECT(call, wanted)                                                       \
  do {                                                                             \
    int got = (int)(call);                                                         \
    if (got != (wanted)) printf("line %d: %s answers %d\n", __LINE__, #call, got); \
    failures += got != (wanted);                                                   \
  } while (0)

static void try_calls(int wanted) {
  CUdeviceptr memory;
  CUstream stream;
  CUevent event;
  CUmodule module;
  int word = 0;
  EXPECT(DRIVER(cuMemAlloc, 3020)(&memory, 64), wanted);
  EXPECT(DRIVER(cuStreamCreate, 2000)(&stream, 0), wanted);
  EXPECT(DRIVER(cuEventCreate, 2000)(&event, 0), wanted);
  EXPECT(DRIVER(cuModuleLoadData, 2000)(&module, ".version 8.0\n.target sm_90a\n"), wanted);
  EXPECT(DRIVER(cuMemcpyHtoDAsync, 3020)(0, &word, sizeof word, NULL), wanted);
  EXPECT(DRIVER(cuCtxSynchronize, 2000)(), wanted);
}

int main() {
  CUdevice device;
  CUcontext context;
  EXPECT(DRIVER(cuDeviceGet, 2000)(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT(DRIVER(cuDevicePrimaryCtxRetain, 7000)(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
  try_calls(CUDA_ERROR_NOT_INITIALIZED);
  EXPECT(DRIVER(cuInit, 2000)(0), CUDA_SUCCESS);
  try_calls(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(DRIVER(cuCtxCreate, 12050)(&context, NULL, 0, 0), CUDA_SUCCESS);
  EXPECT(DRIVER(cuCtxDestroy, 4000)(context), CUDA_SUCCESS);
  EXPECT(DRIVER(cuCtxSetCurrent, 4000)(context), CUDA_SUCCESS);
  try_calls(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT(DRIVER(cuCtxSetCurrent, 4000)(NULL), CUDA_SUCCESS);
  EXPECT(cudaFree(NULL), cudaSuccess); /* the runtime makes the primary context current */
  EXPECT(DRIVER(cuCtxGetCurrent, 4000)(&context), CUDA_SUCCESS);
  EXPECT(context == NULL, 0);
  fflush(stdout);
  if (pid_t child = fork()) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT(status, 0);
  } else {
    void *memory;
    try_calls(CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cudaMalloc(&memory, 64), cudaErrorInitializationError);
    EXPECT(cudaDeviceSynchronize(), cudaErrorInitializationError);
    fflush(stdout);
    _exit(failures != 0);
  }
  if (failures == 0) printf("PASS without_context: 4 situations\n");
  return failures != 0;
}
