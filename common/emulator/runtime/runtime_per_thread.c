/* runtime_per_thread.c: the calls of programs built with --default-stream per-thread: the same
 * calls with another meaning of stream 0. */
#include "runtime/runtime.h"

static cudaStream_t stream_or_per_thread(cudaStream_t stream) {
  return stream ? stream : cudaStreamPerThread;
}

#define FORWARD(call, suffix, parameters, arguments) \
  cudaError_t call##suffix parameters;               \
  cudaError_t call##suffix parameters { return call arguments; }
#define ON_STREAM(call, parameters, arguments) FORWARD(call, _ptsz, parameters, arguments)

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream);

ON_STREAM(__cudaLaunchKernel,
          (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
           cudaStream_t stream),
          (kernel, grid, block, arguments, shared, stream_or_per_thread(stream)))
ON_STREAM(cudaLaunchKernel,
          (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
           cudaStream_t stream),
          (function, grid, block, arguments, shared, stream_or_per_thread(stream)))
ON_STREAM(cudaLaunchCooperativeKernel,
          (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
           cudaStream_t stream),
          (function, grid, block, arguments, shared, stream_or_per_thread(stream)))
ON_STREAM(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
          (stream_or_per_thread(stream), function, data))
ON_STREAM(cudaStreamAddCallback,
          (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags),
          (stream_or_per_thread(stream), function, data, flags))

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *function,
                                     void **arguments);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *function,
                                     void **arguments) {
  if (!config) return runtime_answer(cudaErrorInvalidValue);
  cudaLaunchConfig_t same = *config;
  same.stream = stream_or_per_thread(config->stream);
  return cudaLaunchKernelExC(&same, function, arguments);
}

/* ---- Memory ---- */
ON_STREAM(cudaMemcpyAsync,
          (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
          (to, from, bytes, kind, stream_or_per_thread(stream)))
ON_STREAM(cudaMemcpy2DAsync,
          (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
           size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
          (to, to_pitch, from, from_pitch, width, height, kind, stream_or_per_thread(stream)))
ON_STREAM(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *copy, cudaStream_t stream),
          (copy, stream_or_per_thread(stream)))
ON_STREAM(cudaMemcpyToSymbolAsync,
          (const void *symbol, const void *from, size_t count, size_t offset,
           enum cudaMemcpyKind kind, cudaStream_t stream),
          (symbol, from, count, offset, kind, stream_or_per_thread(stream)))
ON_STREAM(cudaMemcpyFromSymbolAsync,
          (void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
           cudaStream_t stream),
          (to, symbol, count, offset, kind, stream_or_per_thread(stream)))
ON_STREAM(cudaMemsetAsync, (void *address, int value, size_t bytes, cudaStream_t stream),
          (address, value, bytes, stream_or_per_thread(stream)))
ON_STREAM(cudaMemset2DAsync,
          (void *address, size_t pitch, int value, size_t width, size_t height,
           cudaStream_t stream),
          (address, pitch, value, width, height, stream_or_per_thread(stream)))
ON_STREAM(cudaMallocAsync, (void **address, size_t bytes, cudaStream_t stream),
          (address, bytes, stream_or_per_thread(stream)))
ON_STREAM(cudaFreeAsync, (void *address, cudaStream_t stream),
          (address, stream_or_per_thread(stream)))
ON_STREAM(cudaMallocFromPoolAsync,
          (void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
          (address, bytes, pool, stream_or_per_thread(stream)))
ON_STREAM(cudaMemPrefetchAsync,
          (const void *address, size_t bytes, struct cudaMemLocation location, unsigned flags,
           cudaStream_t stream),
          (address, bytes, location, flags, stream_or_per_thread(stream)))
FORWARD(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
        (to, from, bytes, kind))
FORWARD(cudaMemcpy2D, _ptds,
        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
         size_t height, enum cudaMemcpyKind kind),
        (to, to_pitch, from, from_pitch, width, height, kind))
FORWARD(cudaMemcpy3D, _ptds, (const struct cudaMemcpy3DParms *copy), (copy))
FORWARD(cudaMemcpyToSymbol, _ptds,
        (const void *symbol, const void *from, size_t count, size_t offset,
         enum cudaMemcpyKind kind),
        (symbol, from, count, offset, kind))
FORWARD(cudaMemcpyFromSymbol, _ptds,
        (void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
        (to, symbol, count, offset, kind))
FORWARD(cudaMemset, _ptds, (void *address, int value, size_t bytes), (address, value, bytes))
FORWARD(cudaMemset2D, _ptds, (void *address, size_t pitch, int value, size_t width, size_t height),
        (address, pitch, value, width, height))

/* ---- Streams, events, graphs ---- */
ON_STREAM(cudaStreamSynchronize, (cudaStream_t stream), (stream_or_per_thread(stream)))
ON_STREAM(cudaStreamQuery, (cudaStream_t stream), (stream_or_per_thread(stream)))
ON_STREAM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
          (stream_or_per_thread(stream), event, flags))
ON_STREAM(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags),
          (stream_or_per_thread(stream), flags))
ON_STREAM(cudaStreamGetPriority, (cudaStream_t stream, int *priority),
          (stream_or_per_thread(stream), priority))
ON_STREAM(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id),
          (stream_or_per_thread(stream), id))
ON_STREAM(cudaStreamGetDevice, (cudaStream_t stream, int *device),
          (stream_or_per_thread(stream), device))
ON_STREAM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream),
          (event, stream_or_per_thread(stream)))
ON_STREAM(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
          (event, stream_or_per_thread(stream), flags))
ON_STREAM(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
          (stream_or_per_thread(stream), mode))
ON_STREAM(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph),
          (stream_or_per_thread(stream), graph))
ON_STREAM(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
          (stream_or_per_thread(stream), status))
ON_STREAM(cudaStreamGetCaptureInfo,
          (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
           cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
           const cudaGraphEdgeData **edges, size_t *count),
          (stream_or_per_thread(stream), status, id, graph, dependencies, edges, count))
ON_STREAM(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream),
          (exec, stream_or_per_thread(stream)))
ON_STREAM(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream),
          (exec, stream_or_per_thread(stream)))
ON_STREAM(cudaGraphInstantiateWithParams,
          (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params),
          (exec, graph, params))

ON_STREAM(cudaGetDriverEntryPointByVersion,
          (const char *name, void **entry, unsigned version, unsigned long long flags,
           enum cudaDriverEntryPointQueryResult *found),
          (name, entry, version, flags, found))
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *name, void **entry, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *found);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *name, void **entry, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *found) {
  return cudaGetDriverEntryPointByVersion(name, entry, CUDART_VERSION, flags, found);
}
