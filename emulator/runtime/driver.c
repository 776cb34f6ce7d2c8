/* driver.c: the driver API: mainly tensor maps and the device. Contexts are in driver_context.c, modules and
 * launches in driver_module.c, memory in driver_memory.c. How programs find these calls is in
 * driver_versions.c. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "tensor_map.h"
#include "runtime/driver_context.h"
#include "runtime/runtime.h"

enum { EXPLANATION_TEXT = 4096 };

/* ---- Tensor maps ---- */

static CUresult refuse_map(const char *call, const char *explanation) {
  fflush(stdout);
  fprintf(stderr, "emulator: %s: %s answers CUDA_ERROR_INVALID_VALUE:\n%s",
          RULE(REFUSED_TENSOR_MAP)->name, call, explanation);
  size_t length = strlen(explanation);
  if (length == 0 || explanation[length - 1] != '\n') fprintf(stderr, "\n");
  return CUDA_ERROR_INVALID_VALUE;
}

/* Required by the driver's documentation; an H200 takes a map at any address. */
static void look_at_alignment(const char *call, const CUtensorMap *map) {
  enum { ALIGNMENT = 64 };
  const unsigned past = (uintptr_t)map % ALIGNMENT;
  if (past == 0 || !settings()->checks) return;
  finding_of_host(RULE(TENSOR_MAP_ALIGNMENT), call,
                  "%s writes a CUtensorMap at address %p, which is not a multiple of %d: it is %u "
                  "past one. The driver's documentation requires that alignment.\n"
                  "A variable of this type has it, memory from malloc may not: use "
                  "aligned_alloc(%d, ...).",
                  call, (const void *)map, ALIGNMENT, past, ALIGNMENT);
}

/* A fault sticks to the encoder, too: an H200 answers 715 for a legal map. */
static CUresult give_map(CUtensorMap *map, bool packed, const uint64_t words[16]) {
  if (runtime_has_fault()) return (CUresult)runtime_known_fault();
  if (!packed) return CUDA_ERROR_INVALID_VALUE;
  memcpy(map, words, sizeof *map);
  return CUDA_SUCCESS;
}

/* The arguments that both encoders have. */
#define OF_BOTH_KINDS                                                                        \
  .type = type, .dimensions = (int)dimensions, .address = address, .interleave = interleave, \
  .swizzle = swizzle, .l2_promotion = promotion, .fill = fill, .zeros_are_literal = true

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t dimensions,
                                void *address, const cuuint64_t *size, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (!map || !size || !box || !element_strides || (dimensions > 1 && !strides)) {
    return refuse_map("cuTensorMapEncodeTiled",
                      "a pointer is NULL: the map, the sizes, the strides, the box and the element "
                      "strides are all needed");
  }
  look_at_alignment("cuTensorMapEncodeTiled", map);
  TensorMap request = {OF_BOTH_KINDS};
  for (cuuint32_t i = 0; i < dimensions && i < 5; i++) {
    request.size[i] = size[i];
    request.box[i] = box[i];
    request.element_stride[i] = element_strides[i];
    if (i + 1 < dimensions && i < 4) request.stride_bytes[i] = strides[i];
  }
  char explanation[EXPLANATION_TEXT];
  if (tensor_map_explain(&request, explanation, sizeof explanation)) {
    return refuse_map("cuTensorMapEncodeTiled", explanation);
  }
  uint64_t words[16];
  return give_map(map, tensor_map_pack(&request, words), words);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t dimensions,
                                 void *address, const cuuint64_t *size, const cuuint64_t *strides,
                                 const int *lower_corner, const int *upper_corner,
                                 cuuint32_t channels_per_pixel, cuuint32_t pixels_per_column,
                                 const cuuint32_t *element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (!map || !size || !strides || !lower_corner || !upper_corner || !element_strides) {
    return refuse_map("cuTensorMapEncodeIm2col",
                      "a pointer is NULL: the map, the sizes, the strides, both corners and the "
                      "element strides are all needed");
  }
  look_at_alignment("cuTensorMapEncodeIm2col", map);
  TensorMapIm2col request = {OF_BOTH_KINDS, .channels_per_pixel = channels_per_pixel,
                             .pixels_per_column = pixels_per_column};
  for (cuuint32_t i = 0; i < dimensions && i < 5; i++) {
    request.size[i] = size[i];
    request.element_stride[i] = element_strides[i];
    if (i + 1 < dimensions && i < 4) request.stride_bytes[i] = strides[i];
    if (i + 2 < dimensions && i < 3) request.lower_corner[i] = lower_corner[i];
    if (i + 2 < dimensions && i < 3) request.upper_corner[i] = upper_corner[i];
  }
  char explanation[EXPLANATION_TEXT];
  if (tensor_map_explain_im2col(&request, explanation, sizeof explanation)) {
    return refuse_map("cuTensorMapEncodeIm2col", explanation);
  }
  uint64_t words[16];
  return give_map(map, tensor_map_pack_im2col(&request, words), words);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address) {
  uint64_t words[16];
  TensorMap tiled;
  TensorMapIm2col im2col;
  if (!map || (uintptr_t)address % 16) return CUDA_ERROR_INVALID_VALUE;
  memcpy(words, map, sizeof words);
  if (!tensor_map_unpack(words, &tiled) && !tensor_map_unpack_im2col(words, &im2col)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  words[0] = (uint64_t)(uintptr_t)address;
  memcpy(map, words, sizeof words);
  return CUDA_SUCCESS;
}

/* ---- The device ---- */

CUresult cuInit(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  driver_initialise();
  return as_driver(runtime_may_ask());
}
CUresult cuDriverGetVersion(int *version) { return as_driver(cudaDriverGetVersion(version)); }
CUresult cuDeviceGetCount(int *count) {
  return driver_is_initialised() ? as_driver(cudaGetDeviceCount(count))
                                 : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (!driver_is_initialised()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char *name, int capacity, CUdevice device) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0 || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)capacity, "Emulated sm_90a");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return device_attribute((int)attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  size_t free_bytes;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return as_driver(cudaMemGetInfo(&free_bytes, bytes));
}
CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
  return as_driver(cudaDeviceGetLimit(value, (enum cudaLimit)limit));
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return as_driver(cudaDeviceSetLimit((enum cudaLimit)limit, value));
}
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return as_driver(cudaDeviceGetStreamPriorityRange(least, greatest));
}
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  struct cudaDeviceProp properties;
  if (!uuid || device != 0) return CUDA_ERROR_INVALID_DEVICE;
  cudaGetDeviceProperties(&properties, 0);
  *uuid = properties.uuid;
  return CUDA_SUCCESS;
}

AS_RUNTIME3(DeviceGetPCIBusId, char *, int, CUdevice)
AS_RUNTIME3(DeviceCanAccessPeer, int *, CUdevice, CUdevice)
CUresult cuCtxResetPersistingL2Cache(void) { return as_driver(cudaCtxResetPersistingL2Cache()); }
CUresult cuProfilerStart(void) { return as_driver(cudaProfilerStart()); }
CUresult cuProfilerStop(void) { return as_driver(cudaProfilerStop()); }

CUresult cuGetErrorName(CUresult result, const char **name) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = cudaGetErrorName((cudaError_t)result);
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult result, const char **sentence) {
  if (!sentence) return CUDA_ERROR_INVALID_VALUE;
  *sentence = cudaGetErrorString((cudaError_t)result);
  return CUDA_SUCCESS;
}

/* ---- The driver's tables that no document describes ---- */

/* NVRTC, nvJitLink and NVVM work without them. A copy of NVIDIA's runtime that is linked into a program or a library
 * (cuBLAS, cuFFT and others) does not, and would return an unexplained error from every call. */
CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  (void)id;
  if (table) *table = NULL;
  Dl_info caller, self;
  if (!dladdr(__builtin_return_address(0), &caller) || !dladdr((void *)&cuInit, &self))
    return CUDA_ERROR_NOT_FOUND;
  const char *name = strrchr(caller.dli_fname, '/');
  name = name ? name + 1 : caller.dli_fname;
  static const char *const COMPILERS[] = {"libnvrtc", "libnvJitLink", "libnvvm"};
  for (size_t i = 0; i < sizeof COMPILERS / sizeof *COMPILERS; i++)
    if (strncmp(name, COMPILERS[i], strlen(COMPILERS[i])) == 0) return CUDA_ERROR_NOT_FOUND;
  char reason[1024];
  if (strstr(name, ".so"))
    snprintf(reason, sizeof reason,
             "the library %s brings its own copy of CUDA's runtime. Libraries of NVIDIA such as "
             "cuBLAS, cuFFT and cuDNN hold their kernels as machine code, without PTX, so they "
             "cannot be emulated; call kernels of your own instead",
             name);
  else
    snprintf(
        reason, sizeof reason,
        "%s has a copy of CUDA's runtime linked into it, so the emulator's is not used. Start it "
        "by emulator/emulate and keep its symbols, or build it with: nvcc -cudart shared",
        name);
  runtime_refuse(reason);
}
