/* runtime_device.c: the device: its properties, limits and hints. */
#include <cuda_profiler_api.h>
#include <string.h>

#include "runtime/driver_context.h"
#include "runtime/runtime.h"
#include "base/device_heap.h"
#include "state/cluster.h"

/* ---- The device ---- */

cudaError_t cudaGetDeviceCount(int *count) {
  driver_initialise();
  if (!count) return runtime_answer(cudaErrorInvalidValue);
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
  driver_initialise();
  NEED(runtime_may_ask());
  if (!device) return runtime_answer(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  cudaError_t error = device == 0 ? runtime_known_fault() : cudaErrorInvalidDevice;
  if (error == cudaSuccess) context_make_primary_current();
  return runtime_answer(error);
}
cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  (void)device_flags, (void)flags;
  cudaError_t error = device == 0 ? runtime_known_fault() : cudaErrorInvalidDevice;
  if (error == cudaSuccess) context_initialise_primary(); /* and does not make it current */
  return runtime_answer(error);
}
cudaError_t cudaSetDeviceFlags(unsigned flags) {
  (void)flags;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceFlags(unsigned *flags) {
  if (!flags) return runtime_answer(cudaErrorInvalidValue);
  *flags = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  driver_initialise();
  NEED(runtime_may_ask());
  if (device != 0) return runtime_answer(cudaErrorInvalidDevice);
  if (!value || !device_attribute((int)attribute, value)) {
    return runtime_answer(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

static int attribute_value(enum cudaDeviceAttr attribute) {
  int value = 0;
  device_attribute((int)attribute, &value);
  return value;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  if (device != 0) return runtime_answer(cudaErrorInvalidDevice);
  if (!p) return runtime_answer(cudaErrorInvalidValue);
  memset(p, 0, sizeof *p);
  strcpy(p->name, "Emulated sm_90a");
  memcpy(p->uuid.bytes, "emulated sm_90a", 16);
  p->totalGlobalMem = (size_t)143771 << 20;
  p->sharedMemPerBlock = (size_t)attribute_value(cudaDevAttrMaxSharedMemoryPerBlock);
  p->regsPerBlock = attribute_value(cudaDevAttrMaxRegistersPerBlock);
  p->warpSize = attribute_value(cudaDevAttrWarpSize);
  p->memPitch = (size_t)attribute_value(cudaDevAttrMaxPitch);
  p->maxThreadsPerBlock = attribute_value(cudaDevAttrMaxThreadsPerBlock);
  p->maxThreadsDim[0] = attribute_value(cudaDevAttrMaxBlockDimX);
  p->maxThreadsDim[1] = attribute_value(cudaDevAttrMaxBlockDimY);
  p->maxThreadsDim[2] = attribute_value(cudaDevAttrMaxBlockDimZ);
  p->maxGridSize[0] = attribute_value(cudaDevAttrMaxGridDimX);
  p->maxGridSize[1] = attribute_value(cudaDevAttrMaxGridDimY);
  p->maxGridSize[2] = attribute_value(cudaDevAttrMaxGridDimZ);
  p->totalConstMem = (size_t)attribute_value(cudaDevAttrTotalConstantMemory);
  p->major = attribute_value(cudaDevAttrComputeCapabilityMajor);
  p->minor = attribute_value(cudaDevAttrComputeCapabilityMinor);
  p->textureAlignment = (size_t)attribute_value(cudaDevAttrTextureAlignment);
  p->texturePitchAlignment = (size_t)attribute_value(cudaDevAttrTexturePitchAlignment);
  p->multiProcessorCount = attribute_value(cudaDevAttrMultiProcessorCount);
  p->integrated = attribute_value(cudaDevAttrIntegrated);
  p->canMapHostMemory = attribute_value(cudaDevAttrCanMapHostMemory);
  p->surfaceAlignment = (size_t)attribute_value(cudaDevAttrSurfaceAlignment);
  p->concurrentKernels = attribute_value(cudaDevAttrConcurrentKernels);
  p->ECCEnabled = attribute_value(cudaDevAttrEccEnabled);
  p->asyncEngineCount = attribute_value(cudaDevAttrAsyncEngineCount);
  p->unifiedAddressing = attribute_value(cudaDevAttrUnifiedAddressing);
  p->memoryBusWidth = attribute_value(cudaDevAttrGlobalMemoryBusWidth);
  p->l2CacheSize = attribute_value(cudaDevAttrL2CacheSize);
  p->persistingL2CacheMaxSize = attribute_value(cudaDevAttrMaxPersistingL2CacheSize);
  p->maxThreadsPerMultiProcessor = attribute_value(cudaDevAttrMaxThreadsPerMultiProcessor);
  p->streamPrioritiesSupported = attribute_value(cudaDevAttrStreamPrioritiesSupported);
  p->globalL1CacheSupported = attribute_value(cudaDevAttrGlobalL1CacheSupported);
  p->localL1CacheSupported = attribute_value(cudaDevAttrLocalL1CacheSupported);
  p->sharedMemPerMultiprocessor =
      (size_t)attribute_value(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  p->regsPerMultiprocessor = attribute_value(cudaDevAttrMaxRegistersPerMultiprocessor);
  p->managedMemory = attribute_value(cudaDevAttrManagedMemory);
  p->hostNativeAtomicSupported = attribute_value(cudaDevAttrHostNativeAtomicSupported);
  p->pageableMemoryAccess = attribute_value(cudaDevAttrPageableMemoryAccess);
  p->concurrentManagedAccess = attribute_value(cudaDevAttrConcurrentManagedAccess);
  p->computePreemptionSupported = attribute_value(cudaDevAttrComputePreemptionSupported);
  p->cooperativeLaunch = attribute_value(cudaDevAttrCooperativeLaunch);
  p->sharedMemPerBlockOptin = (size_t)attribute_value(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  p->maxBlocksPerMultiProcessor = attribute_value(cudaDevAttrMaxBlocksPerMultiprocessor);
  p->accessPolicyMaxWindowSize = attribute_value(cudaDevAttrMaxAccessPolicyWindowSize);
  p->reservedSharedMemPerBlock = (size_t)attribute_value(cudaDevAttrReservedSharedMemoryPerBlock);
  p->hostRegisterSupported = attribute_value(cudaDevAttrHostRegisterSupported);
  p->memoryPoolsSupported = attribute_value(cudaDevAttrMemoryPoolsSupported);
  p->clusterLaunch = attribute_value(cudaDevAttrClusterLaunch);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
  if (!version) return runtime_answer(cudaErrorInvalidValue);
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  if (!version) return runtime_answer(cudaErrorInvalidValue);
  *version = 13000;
  return cudaSuccess;
}

/* ---- Limits, as an H200 answers. Only the heap's changes what kernels can do here. ---- */

enum { LIMIT_OF_SHARED_MEMORY = CU_LIMIT_SHMEM_SIZE, LIMITS = CU_LIMIT_CIG_ENABLED + 1 };
/* Under the runtime's lock. */
static size_t limits[LIMITS] = {
    [cudaLimitStackSize] = 1024,
    [cudaLimitPrintfFifoSize] = 8650752,
    [cudaLimitDevRuntimePendingLaunchCount] = 2048,
    [cudaLimitMaxL2FetchGranularity] = 64,
    [cudaLimitPersistingL2CacheSize] = 11796480,
    [LIMIT_OF_SHARED_MEMORY] = 232448,
};

/* What is asked for is rounded up, to `least` and to a multiple of `step`. Beyond `most` (0: of memory)
 * it is refused, or becomes `most`. */
static const struct {
  size_t least, step, most;
  bool clamps;
} LIMIT_RANGES[LIMITS] = {
    [cudaLimitStackSize] = {0, 16, 523712, false},
    [cudaLimitPrintfFifoSize] = {512 << 10, 256, (size_t)2 << 30, true},
    [cudaLimitMallocHeapSize] = {4 << 20, 64 << 10, 0, true},
    [cudaLimitDevRuntimePendingLaunchCount] = {32, 1, 599186, true},
    [cudaLimitMaxL2FetchGranularity] = {0, 1, 128, false},
    [cudaLimitPersistingL2CacheSize] = {0, 3932160, 0, false},
};

static cudaError_t limit_known(enum cudaLimit limit) {
  if ((unsigned)limit >= CU_LIMIT_MAX) return cudaErrorInvalidValue;
  if (limit == cudaLimitDevRuntimeSyncDepth || (unsigned)limit >= LIMITS)
    return cudaErrorUnsupportedLimit;
  return runtime_known_fault();
}

/* False: more than there can be. */
static bool limit_rounded(enum cudaLimit limit, size_t *value) {
  size_t step = LIMIT_RANGES[limit].step, most = LIMIT_RANGES[limit].most;
  if (limit == cudaLimitPersistingL2CacheSize)
    most = (size_t)attribute_value(cudaDevAttrMaxPersistingL2CacheSize);
  if (*value < LIMIT_RANGES[limit].least) *value = LIMIT_RANGES[limit].least;
  if (most && *value > most) {
    *value = most;
    return LIMIT_RANGES[limit].clamps;
  }
  if (*value <= SIZE_MAX - step) *value = (*value + step - 1) / step * step;
  return true;
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  HOLD_RUNTIME_LOCK;
  cudaError_t error = limit_known(limit);
  if (error == cudaSuccess && (int)limit >= LIMIT_OF_SHARED_MEMORY) error = cudaErrorNotPermitted;
  if (error != cudaSuccess) return runtime_answer(error);
  if (!limit_rounded(limit, &value)) return runtime_answer(cudaErrorInvalidValue);
  if (limit == cudaLimitMallocHeapSize)
    return runtime_answer(device_heap_resize(value) || value <= device_heap_size()
                              ? cudaSuccess
                              : cudaErrorInvalidValue); /* it is in use */
  if (limit == cudaLimitPrintfFifoSize) cluster_printed_size(value);
  limits[limit] = value;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
  HOLD_RUNTIME_LOCK;
  if (!value) return runtime_answer(cudaErrorInvalidValue);
  NEED(limit_known(limit));
  *value = limit == cudaLimitMallocHeapSize ? device_heap_size() : limits[limit];
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) {
  (void)config;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0; /* NULL: not wanted */
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  if (!can) return runtime_answer(cudaErrorInvalidValue);
  *can = 0;
  return runtime_answer(device == 0 && peer == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int capacity, int device) {
  if (device != 0) return runtime_answer(cudaErrorInvalidDevice);
  if (!id || capacity < 13) return runtime_answer(cudaErrorInvalidValue);
  strcpy(id, "0000:00:00.0");
  return cudaSuccess;
}

/* ---- Advice that changes nothing here, and small questions ---- */

cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

cudaError_t cudaCtxResetPersistingL2Cache(void) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void *address, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  (void)address, (void)bytes, (void)advice, (void)location;
  return runtime_answer(runtime_known_fault());
}
cudaError_t cudaFuncGetName(const char **name, const void *function) {
  if (!name) return runtime_answer(cudaErrorInvalidValue);
  Kernel *kernel = runtime_find_kernel(function);
  if (!kernel) return runtime_answer(cudaErrorInvalidDeviceFunction);
  *name = kernel->device_name;
  return cudaSuccess;
}
