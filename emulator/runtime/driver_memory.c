/* driver_memory.c: the driver API's memory, streams, events and graphs, implemented by the
 * runtime's. */
#include <stddef.h>

#include "base/memory.h"
#include "runtime/driver_context.h"
#include "runtime/runtime.h"

static void *pointer(CUdeviceptr address) { return (void *)(uintptr_t)address; }

/* ---- Allocation ---- */

static CUresult allocated(cudaError_t error, void *const *found, CUdeviceptr *address) {
  if (error == cudaSuccess && !address) return CUDA_ERROR_INVALID_VALUE;
  if (error == cudaSuccess) *address = (CUdeviceptr)(uintptr_t)*found;
  return as_driver(error);
}
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  NEED_CONTEXT;
  void *found = NULL;
  if (!bytes || !address) return CUDA_ERROR_INVALID_VALUE;
  return allocated(cudaMalloc(&found, bytes), &found, address);
}
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags) {
  if (!address || !flags) return CUDA_ERROR_INVALID_VALUE;
  NEED_CONTEXT;
  void *found = NULL;
  return allocated(cudaMallocManaged(&found, bytes, flags), &found, address);
}
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  NEED_CONTEXT_OF(stream);
  void *found = NULL;
  return allocated(cudaMallocAsync(&found, bytes, stream), &found, address);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  NEED_CONTEXT_OF(stream);
  void *found = NULL;
  return allocated(cudaMallocFromPoolAsync(&found, bytes, pool, stream), &found, address);
}
AS_RUNTIME2(DeviceGetDefaultMemPool, CUmemoryPool *, CUdevice)
AS_RUNTIME2(DeviceGetMemPool, CUmemoryPool *, CUdevice)
AS_RUNTIME2(DeviceSetMemPool, CUdevice, CUmemoryPool)
/* Attributes, places and accesses have the runtime's numbers and layouts. */
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  return as_driver(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attribute, value));
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  return as_driver(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)attribute, value));
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location) {
  return as_driver(cudaMemPoolGetAccess((enum cudaMemAccessFlags *)flags, pool,
                                        (struct cudaMemLocation *)(void *)location));
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *wanted, size_t count) {
  return as_driver(
      cudaMemPoolSetAccess(pool, (const struct cudaMemAccessDesc *)(const void *)wanted, count));
}
AS_RUNTIME2(MemPoolTrimTo, CUmemoryPool, size_t)
CUresult cuMemFree_v2(CUdeviceptr address) { return as_driver(cudaFree(pointer(address))); }
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return as_driver(cudaFreeAsync(pointer(address), stream));
}
CUresult cuMemAllocHost_v2(void **address, size_t bytes) {
  NEED_CONTEXT;
  return as_driver(cudaMallocHost(address, bytes));
}
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  NEED_CONTEXT;
  return as_driver(cudaHostAlloc(address, bytes, flags));
}
CUresult cuMemFreeHost(void *address) { return as_driver(cudaFreeHost(address)); }
CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags) {
  return as_driver(cudaHostRegister(address, bytes, flags));
}
CUresult cuMemHostUnregister(void *address) { return as_driver(cudaHostUnregister(address)); }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags) {
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  void *found = NULL;
  return allocated(cudaHostGetDevicePointer(&found, host, flags), &found, address);
}
CUresult cuMemHostGetFlags(unsigned *flags, void *host) {
  return as_driver(cudaHostGetFlags(flags, host));
}
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
  NEED_CONTEXT;
  return as_driver(cudaMemGetInfo(free_bytes, total_bytes));
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr *first, size_t *bytes, CUdeviceptr address) {
  Allocation place;
  if (!memory_look_up(address, &place) || place.absent) return CUDA_ERROR_NOT_FOUND;
  if (first) *first = place.first;
  if (bytes) *bytes = place.end - place.first;
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address) {
  Allocation place;
  if (!data || !memory_look_up(address, &place) || place.absent) return CUDA_ERROR_INVALID_VALUE;
  bool host = place.kind == MEMORY_OF_HOST, managed = place.kind == MEMORY_MANAGED;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *(CUcontext *)data = context_or_primary();
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *(CUdeviceptr *)data = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!host && !managed) return CUDA_ERROR_INVALID_VALUE;
      *(void **)data = pointer(address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *(unsigned *)data = managed;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *(int *)data = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *(CUdeviceptr *)data = place.first;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *(size_t *)data = place.end - place.first;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *(unsigned *)data = 1;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *(unsigned long long *)data = place.first;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/* What a pointer that CUDA does not know has: zeros, and the number of no device. */
static void set_unknown(void *data, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *(int *)data = -2;
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *(unsigned *)data = 0;
      break;
    default:
      *(void **)data = NULL;
  }
}
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr address) {
  if (count == 0 || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++) {
    if (!data[i]) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuPointerGetAttribute(data[i], attributes[i], address);
    if (result == CUDA_ERROR_NOT_SUPPORTED) return result;
    if (result != CUDA_SUCCESS) set_unknown(data[i], attributes[i]);
  }
  return CUDA_SUCCESS;
}

/* ---- Copies and fills ---- */

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return as_driver(cudaMemcpy(pointer(to), pointer(from), bytes, cudaMemcpyDefault));
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  return as_driver(cudaMemcpy(pointer(to), from, bytes, cudaMemcpyHostToDevice));
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return as_driver(cudaMemcpy(to, pointer(from), bytes, cudaMemcpyDeviceToHost));
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return as_driver(cudaMemcpy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice));
}
static CUresult copy_async(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                           CUstream stream) {
  NEED_CONTEXT_OF(stream);
  return as_driver(cudaMemcpyAsync(to, from, bytes, kind, stream));
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(pointer(to), pointer(from), bytes, cudaMemcpyDefault, stream);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return copy_async(pointer(to), from, bytes, cudaMemcpyHostToDevice, stream);
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(to, pointer(from), bytes, cudaMemcpyDeviceToHost, stream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice, stream);
}

static CUresult fill_rows(CUdeviceptr address, size_t pitch, unsigned value, unsigned element_bytes,
                          size_t width, size_t height, CUstream stream) {
  NEED_CONTEXT_OF(stream);
  Work work = work_of_fill(pointer(address), pitch, value, element_bytes, width, height);
  return as_driver(stream_submit(stream, &work));
}
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream) {
  return fill_rows(address, count, value, 1, count, 1, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr address, unsigned short value, size_t count,
                          CUstream stream) {
  return fill_rows(address, 2 * count, value, 2, count, 1, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream) {
  return fill_rows(address, 4 * count, value, 4, count, 1, stream);
}
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count) {
  return cuMemsetD8Async(address, value, count, NULL);
}
CUresult cuMemsetD16_v2(CUdeviceptr address, unsigned short value, size_t count) {
  return cuMemsetD16Async(address, value, count, NULL);
}
CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count) {
  return cuMemsetD32Async(address, value, count, NULL);
}

/* ---- Streams and events ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  NEED_CONTEXT;
  return as_driver(cudaStreamCreateWithFlags(stream, flags));
}
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  NEED_CONTEXT;
  return as_driver(cudaStreamCreateWithPriority(stream, flags, priority));
}
CUresult cuStreamDestroy_v2(CUstream stream) { return as_driver(cudaStreamDestroy(stream)); }
CUresult cuStreamSynchronize(CUstream stream) {
  NEED_CONTEXT_OF(stream);
  return as_driver(cudaStreamSynchronize(stream));
}
CUresult cuStreamQuery(CUstream stream) {
  NEED_CONTEXT_OF(stream);
  return as_driver(cudaStreamQuery(stream));
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  NEED_CONTEXT_OF(stream);
  return as_driver(cudaStreamWaitEvent(stream, event, flags));
}
AS_RUNTIME2(StreamGetFlags, CUstream, unsigned *)
AS_RUNTIME2(StreamGetPriority, CUstream, int *)
AS_RUNTIME2(StreamGetId, CUstream, unsigned long long *)
AS_RUNTIME2(StreamGetDevice, CUstream, CUdevice *)
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  return stream_known(stream) ? cuCtxGetCurrent(context) : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green) {
  if (green) *green = NULL; /* no stream belongs to one */
  return stream_known(stream) ? cuCtxGetCurrent(context) : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes,
                                unsigned flags) {
  return as_driver(cudaStreamAttachMemAsync(stream, pointer(address), bytes, flags));
}
AS_RUNTIME2(StreamCopyAttributes, CUstream, CUstream)
/* The numbers of the errors are the same. */
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
                             unsigned flags) {
  return as_driver(
      cudaStreamAddCallback(stream, (cudaStreamCallback_t)(void (*)(void))function, data, flags));
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  NEED_CONTEXT_OF(stream);
  return as_driver(cudaLaunchHostFunc(stream, function, data));
}
CUresult cuEventCreate(CUevent *event, unsigned flags) {
  NEED_CONTEXT;
  return as_driver(cudaEventCreateWithFlags(event, flags));
}
CUresult cuEventDestroy_v2(CUevent event) { return as_driver(cudaEventDestroy(event)); }
CUresult cuEventRecord(CUevent event, CUstream stream) {
  NEED_CONTEXT_OF(stream);
  return as_driver(cudaEventRecord(event, stream));
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  NEED_CONTEXT_OF(stream);
  return as_driver(cudaEventRecordWithFlags(event, stream, flags));
}
CUresult cuEventQuery(CUevent event) { return as_driver(cudaEventQuery(event)); }
CUresult cuEventSynchronize(CUevent event) { return as_driver(cudaEventSynchronize(event)); }
CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end) {
  return as_driver(cudaEventElapsedTime(milliseconds, begin, end));
}

/* ---- Graphs ---- */

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return as_driver(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode));
}
AS_RUNTIME2(StreamEndCapture, CUstream, CUgraph *)
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  return as_driver(cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)status));
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **nodes,
                                   const CUgraphEdgeData **edges, size_t *count) {
  return as_driver(cudaStreamGetCaptureInfo(
      stream, (enum cudaStreamCaptureStatus *)status, (unsigned long long *)(void *)id, graph,
      nodes, (const cudaGraphEdgeData **)(const void *)edges, count));
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  return as_driver(cudaThreadExchangeStreamCaptureMode((enum cudaStreamCaptureMode *)mode));
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  return as_driver(cudaGraphInstantiate(exec, graph, flags));
}
AS_RUNTIME3(GraphGetNodes, CUgraph, CUgraphNode *, size_t *)
AS_RUNTIME2(GraphUpload, CUgraphExec, CUstream)
AS_RUNTIME2(GraphLaunch, CUgraphExec, CUstream)
CUresult cuGraphExecDestroy(CUgraphExec exec) { return as_driver(cudaGraphExecDestroy(exec)); }
CUresult cuGraphDestroy(CUgraph graph) { return as_driver(cudaGraphDestroy(graph)); }
