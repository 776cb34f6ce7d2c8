/* driver_older.c: the driver's calls as they were before their parameters changed. Programs get them
 * from cuGetProcAddress with an older version, or from dlsym by the plain name. */
#define THROUGH_GUARDS /* these calls are calls of newer forms, with their guards */
#include <string.h>

#include "runtime/runtime.h"

/* The macros of the header turn the plain names into the newest ones, so here the functions have
 * other names. */
#define OLDER(call, parameters)                    \
  CUresult older_##call parameters __asm__(#call); \
  CUresult older_##call parameters
#define OLDER_NAME(call, newer, parameters, arguments) \
  CUresult older_##call parameters __asm__(#call);     \
  CUresult older_##call parameters { return newer arguments; }

static CUstream stream_or_per_thread(CUstream stream) {
  return stream ? stream : CU_STREAM_PER_THREAD;
}

/* ---- Only the name has changed ---- */

OLDER_NAME(cuCtxCreate, cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device),
           (context, flags, device))
OLDER_NAME(cuCtxDestroy, cuCtxDestroy_v2, (CUcontext context), (context))
OLDER_NAME(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * context), (context))
OLDER_NAME(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext context), (context))
OLDER_NAME(cuDeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), (uuid, device))
OLDER_NAME(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device))
OLDER_NAME(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, (CUdevice device), (device))
OLDER_NAME(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2,
           (CUdevice device, unsigned flags), (device, flags))
OLDER_NAME(cuEventDestroy, cuEventDestroy_v2, (CUevent event), (event))
OLDER_NAME(cuEventElapsedTime, cuEventElapsedTime_v2,
           (float *milliseconds, CUevent start, CUevent end), (milliseconds, start, end))
OLDER_NAME(cuLinkAddData, cuLinkAddData_v2,
           (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
            unsigned count, CUjit_option *options, void **values),
           (state, type, data, size, name, count, options, values))
OLDER_NAME(cuLinkAddFile, cuLinkAddFile_v2,
           (CUlinkState state, CUjitInputType type, const char *path, unsigned count,
            CUjit_option *options, void **values),
           (state, type, path, count, options, values))
OLDER_NAME(cuLinkCreate, cuLinkCreate_v2,
           (unsigned count, CUjit_option *options, void **values, CUlinkState *state),
           (count, options, values, state))
OLDER_NAME(cuMemHostRegister, cuMemHostRegister_v2, (void *start, size_t bytes, unsigned flags),
           (start, bytes, flags))
OLDER_NAME(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream), (stream))

/* ---- Contexts, entry points, managed memory ---- */

OLDER(cuCtxCreate_v3, (CUcontext * context, CUexecAffinityParam *affinity, int count,
                       unsigned flags, CUdevice device)) {
  CUctxCreateParams parameters = {.execAffinityParams = affinity, .numExecAffinityParams = count};
  return cuCtxCreate_v4(context, &parameters, flags, device);
}
OLDER(cuGetProcAddress, (const char *name, void **entry, int version, cuuint64_t flags)) {
  void *result = NULL;
  if (!entry) return CUDA_ERROR_INVALID_VALUE;
  CUresult answer = cuGetProcAddress_v2(name, &result, version, flags, NULL);
  if (answer != CUDA_SUCCESS) return answer;
  if (!result) return CUDA_ERROR_NOT_FOUND;
  *entry = result;
  return CUDA_SUCCESS;
}

static CUmemLocation location_of(CUdevice device) {
  if (device == CU_DEVICE_CPU) return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
  return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}
OLDER(cuMemAdvise, (CUdeviceptr start, size_t bytes, CUmem_advise advice, CUdevice device)) {
  return cuMemAdvise_v2(start, bytes, advice, location_of(device));
}
OLDER(cuMemPrefetchAsync, (CUdeviceptr start, size_t bytes, CUdevice device, CUstream stream)) {
  return cuMemPrefetchAsync_v2(start, bytes, location_of(device), 0, stream);
}
OLDER(cuMemPrefetchAsync_ptsz,
      (CUdeviceptr start, size_t bytes, CUdevice device, CUstream stream)) {
  return cuMemPrefetchAsync_v2(start, bytes, location_of(device), 0, stream_or_per_thread(stream));
}

/* ---- Capture ---- */

OLDER(cuStreamBeginCapture, (CUstream stream)) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
OLDER(cuStreamBeginCapture_ptsz, (CUstream stream)) {
  return cuStreamBeginCapture_v2(stream_or_per_thread(stream), CU_STREAM_CAPTURE_MODE_GLOBAL);
}

OLDER(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}
OLDER(cuStreamGetCaptureInfo_ptsz,
      (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)) {
  return cuStreamGetCaptureInfo_v3(stream_or_per_thread(stream), status, id, NULL, NULL, NULL,
                                   NULL);
}
OLDER(cuStreamGetCaptureInfo_v2, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                  CUgraph *graph, const CUgraphNode **nodes, size_t *count)) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}
OLDER(cuStreamGetCaptureInfo_v2_ptsz,
      (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
       const CUgraphNode **nodes, size_t *count)) {
  return cuStreamGetCaptureInfo_v3(stream_or_per_thread(stream), status, id, graph, nodes, NULL,
                                   count);
}

OLDER(cuStreamUpdateCaptureDependencies,
      (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags)) {
  return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}
OLDER(cuStreamUpdateCaptureDependencies_ptsz,
      (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags)) {
  return cuStreamUpdateCaptureDependencies_v2(stream_or_per_thread(stream), nodes, NULL, count,
                                              flags);
}

/* ---- Graphs: edges had no data ---- */

OLDER(cuGraphAddDependencies,
      (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) {
  return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}
OLDER(cuGraphRemoveDependencies,
      (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) {
  return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}
OLDER(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)) {
  return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}
OLDER(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *nodes, size_t *count)) {
  return cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}
OLDER(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *nodes, size_t *count)) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

/* ---- Graphs: what is instantiated and updated ---- */

OLDER(cuGraphInstantiate,
      (CUgraphExec * exec, CUgraph graph, CUgraphNode *wrong, char *log, size_t bytes)) {
  if (wrong) *wrong = NULL;
  if (log && bytes) *log = 0;
  return cuGraphInstantiateWithFlags(exec, graph, 0);
}
OLDER(cuGraphInstantiate_v2,
      (CUgraphExec * exec, CUgraph graph, CUgraphNode *wrong, char *log, size_t bytes)) {
  return older_cuGraphInstantiate(exec, graph, wrong, log, bytes);
}
OLDER(cuGraphExecUpdate,
      (CUgraphExec exec, CUgraph graph, CUgraphNode *wrong, CUgraphExecUpdateResult *result)) {
  CUgraphExecUpdateResultInfo info = {0};
  CUresult answer = cuGraphExecUpdate_v2(exec, graph, &info);
  if (wrong) *wrong = info.errorNode;
  if (result) *result = info.result;
  return answer;
}

/* ---- Graphs: kernel nodes had only functions, not kernels of a library ---- */

static CUDA_KERNEL_NODE_PARAMS newer_kernel(const CUDA_KERNEL_NODE_PARAMS_v1 *given) {
  return (CUDA_KERNEL_NODE_PARAMS){
      .func = given->func,
      .gridDimX = given->gridDimX,
      .gridDimY = given->gridDimY,
      .gridDimZ = given->gridDimZ,
      .blockDimX = given->blockDimX,
      .blockDimY = given->blockDimY,
      .blockDimZ = given->blockDimZ,
      .sharedMemBytes = given->sharedMemBytes,
      .kernelParams = given->kernelParams,
      .extra = given->extra,
  };
}
OLDER(cuGraphAddKernelNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS newer = newer_kernel(parameters);
  return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &newer);
}
OLDER(cuGraphKernelNodeSetParams,
      (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS newer = newer_kernel(parameters);
  return cuGraphKernelNodeSetParams_v2(node, &newer);
}
OLDER(cuGraphExecKernelNodeSetParams,
      (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS newer = newer_kernel(parameters);
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &newer);
}
OLDER(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) {
  CUDA_KERNEL_NODE_PARAMS newer;
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = cuGraphKernelNodeGetParams_v2(node, &newer);
  if (result != CUDA_SUCCESS) return result;
  memcpy(parameters, &newer, sizeof *parameters); /* v2 has two more members, at its end */
  return CUDA_SUCCESS;
}
