/* driver_older.c: the driver's calls as CUDA 12 had them, before their parameters changed. Programs get them
 * from cuGetProcAddress with an older version, or from dlsym by the plain name. */
#include "runtime/runtime.h"

/* The macros of the header turn the plain names into the newest ones, so here the functions have
 * other names. */
#define OLDER(call, parameters)                    \
  CUresult older_##call parameters __asm__(#call); \
  CUresult older_##call parameters

OLDER(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end)) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
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

OLDER(cuCtxDestroy, (CUcontext context)) { return cuCtxDestroy_v2(context); }
OLDER(cuCtxPushCurrent, (CUcontext context)) { return cuCtxPushCurrent_v2(context); }
OLDER(cuCtxPopCurrent, (CUcontext * context)) { return cuCtxPopCurrent_v2(context); }
OLDER(cuStreamDestroy, (CUstream stream)) { return cuStreamDestroy_v2(stream); }
OLDER(cuEventDestroy, (CUevent event)) { return cuEventDestroy_v2(event); }
OLDER(cuStreamBeginCapture, (CUstream stream)) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
OLDER(cuGraphInstantiate,
      (CUgraphExec * instance, CUgraph graph, CUgraphNode *where, char *log, size_t capacity)) {
  if (where) *where = NULL;
  if (log && capacity) *log = '\0';
  return cuGraphInstantiateWithFlags(instance, graph, 0);
}

OLDER(cuStreamGetCaptureInfo_v2, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                  CUgraph *graph, const CUgraphNode **nodes, size_t *count)) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}
