/* gpu.c: a GPU of the compute capability in STUB_CAPABILITY (such as 12.0), on a machine without one.
 *
 * As libcuda.so.1 it is the driver that common/find-device asks. Preloaded into a program that runs on the emulator
 * it gives the device that capability and, as a driver of a GPU after Hopper does, answers that there is no code for
 * it where all code is for sm_90a. */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_capability(int *major, int *minor) {
  const char *text = getenv("STUB_CAPABILITY");
  if (!text || sscanf(text, "%d.%d", major, minor) != 2) {
    fprintf(stderr, "STUB_CAPABILITY is '%s', but must be such as 12.0\n", text ? text : "");
    exit(2);
  }
}

/* ---- What find-device asks of a driver ---- */

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int capacity, CUdevice device) {
  snprintf(name, (size_t)capacity, "Stub %d", device);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  int major, minor;
  read_capability(&major, &minor);
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? major : minor;
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- What programs ask of the runtime ---- */

static int without_code; /* the program's module has code for sm_90a alone */
static cudaError_t pending;

void **__cudaRegisterFatBinary(void *wrapper) {
  const struct {
    uint32_t magic, version;
    const unsigned char *container;
  } *program = wrapper;
  uint64_t bytes;
  memcpy(&bytes, program->container + 8, sizeof bytes);
  static const char target[] = ".target sm_90a";
  without_code = memmem(program->container, bytes, target, sizeof target - 1) != NULL;
  void **(*register_it)(void *) = (void **(*)(void *))dlsym(RTLD_NEXT, "__cudaRegisterFatBinary");
  return register_it(wrapper);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
  cudaError_t (*get)(struct cudaDeviceProp *, int) =
      (cudaError_t(*)(struct cudaDeviceProp *, int))dlsym(RTLD_NEXT, "cudaGetDeviceProperties");
  cudaError_t error = get(properties, device);
  strcpy(properties->name, "Stub 0");
  read_capability(&properties->major, &properties->minor);
  return error;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value) {
  if (without_code) return pending = cudaErrorNoKernelImageForDevice;
  return ((cudaError_t(*)(const void *, enum cudaFuncAttribute, int))dlsym(
      RTLD_NEXT, "cudaFuncSetAttribute"))(kernel, attribute, value);
}

/* What a launch <<<...>>> becomes. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  if (without_code) return pending = cudaErrorNoKernelImageForDevice;
  return ((cudaError_t(*)(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t))dlsym(
      RTLD_NEXT, "__cudaLaunchKernel"))(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaGetLastError(void) {
  if (!pending) return ((cudaError_t(*)(void))dlsym(RTLD_NEXT, "cudaGetLastError"))();
  cudaError_t error = pending;
  pending = cudaSuccess;
  return error;
}
