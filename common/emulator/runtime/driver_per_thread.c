/* driver_per_thread.c: the driver calls of programs built with CUDA_API_PER_THREAD_DEFAULT_STREAM:
 * stream 0 is the per-thread default stream. Calls without a stream wait for all work, so they need
 * no second version. */
#include "runtime/runtime.h"

static CUstream stream_or_per_thread(CUstream stream) {
  return stream ? stream : CU_STREAM_PER_THREAD;
}

#define SAME(call, suffix, parameters, arguments) \
  CUresult call##suffix parameters;               \
  CUresult call##suffix parameters { return call arguments; }

SAME(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
     (event, stream_or_per_thread(stream), flags))
SAME(cuEventRecord, _ptsz, (CUevent event, CUstream stream), (event, stream_or_per_thread(stream)))
SAME(cuGraphInstantiateWithParams, _ptsz,
     (CUgraphExec * graph_exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiate_params),
     (graph_exec, graph, instantiate_params))
SAME(cuGraphLaunch, _ptsz, (CUgraphExec graph_exec, CUstream stream),
     (graph_exec, stream_or_per_thread(stream)))
SAME(cuGraphUpload, _ptsz, (CUgraphExec graph_exec, CUstream stream),
     (graph_exec, stream_or_per_thread(stream)))
SAME(cuLaunchCooperativeKernel, _ptsz,
     (CUfunction f, unsigned grid_dim_x, unsigned grid_dim_y, unsigned grid_dim_z,
      unsigned block_dim_x, unsigned block_dim_y, unsigned block_dim_z, unsigned shared_mem_bytes,
      CUstream stream, void **kernel_params),
     (f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z,
      shared_mem_bytes, stream_or_per_thread(stream), kernel_params))
SAME(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn fn, void *user_data),
     (stream_or_per_thread(stream), fn, user_data))
SAME(cuLaunchKernel, _ptsz,
     (CUfunction f, unsigned grid_dim_x, unsigned grid_dim_y, unsigned grid_dim_z,
      unsigned block_dim_x, unsigned block_dim_y, unsigned block_dim_z, unsigned shared_mem_bytes,
      CUstream stream, void **kernel_params, void **extra),
     (f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z,
      shared_mem_bytes, stream_or_per_thread(stream), kernel_params, extra))
SAME(cuMemAllocAsync, _ptsz, (CUdeviceptr * address, size_t bytesize, CUstream stream),
     (address, bytesize, stream_or_per_thread(stream)))
SAME(cuMemAllocFromPoolAsync, _ptsz,
     (CUdeviceptr * address, size_t bytesize, CUmemoryPool pool, CUstream stream),
     (address, bytesize, pool, stream_or_per_thread(stream)))
SAME(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream),
     (address, stream_or_per_thread(stream)))
SAME(cuMemPrefetchAsync_v2, _ptsz,
     (CUdeviceptr dev_ptr, size_t count, CUmemLocation location, unsigned flags, CUstream stream),
     (dev_ptr, count, location, flags, stream_or_per_thread(stream)))
SAME(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream),
     (copy, stream_or_per_thread(stream)))
SAME(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *copy), (copy))
SAME(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *copy), (copy))
SAME(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream),
     (copy, stream_or_per_thread(stream)))
SAME(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *copy), (copy))
SAME(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t byte_count, CUstream stream),
     (dst, src, byte_count, stream_or_per_thread(stream)))
SAME(cuMemcpyDtoDAsync_v2, _ptsz,
     (CUdeviceptr dst_device, CUdeviceptr src_device, size_t byte_count, CUstream stream),
     (dst_device, src_device, byte_count, stream_or_per_thread(stream)))
SAME(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst_device, CUdeviceptr src_device, size_t byte_count),
     (dst_device, src_device, byte_count))
SAME(cuMemcpyDtoHAsync_v2, _ptsz,
     (void *dst_host, CUdeviceptr src_device, size_t byte_count, CUstream stream),
     (dst_host, src_device, byte_count, stream_or_per_thread(stream)))
SAME(cuMemcpyDtoH_v2, _ptds, (void *dst_host, CUdeviceptr src_device, size_t byte_count),
     (dst_host, src_device, byte_count))
SAME(cuMemcpyHtoDAsync_v2, _ptsz,
     (CUdeviceptr dst_device, const void *src_host, size_t byte_count, CUstream stream),
     (dst_device, src_host, byte_count, stream_or_per_thread(stream)))
SAME(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst_device, const void *src_host, size_t byte_count),
     (dst_device, src_host, byte_count))
SAME(cuMemcpyPeerAsync, _ptsz,
     (CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device, CUcontext src_context,
      size_t byte_count, CUstream stream),
     (dst_device, dst_context, src_device, src_context, byte_count, stream_or_per_thread(stream)))
SAME(cuMemcpyPeer, _ptds,
     (CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device, CUcontext src_context,
      size_t byte_count),
     (dst_device, dst_context, src_device, src_context, byte_count))
SAME(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t byte_count), (dst, src, byte_count))
SAME(cuMemsetD16Async, _ptsz,
     (CUdeviceptr dst_device, unsigned short us, size_t n, CUstream stream),
     (dst_device, us, n, stream_or_per_thread(stream)))
SAME(cuMemsetD16_v2, _ptds, (CUdeviceptr dst_device, unsigned short us, size_t n),
     (dst_device, us, n))
SAME(cuMemsetD2D16Async, _ptsz,
     (CUdeviceptr dst_device, size_t dst_pitch, unsigned short us, size_t width, size_t height,
      CUstream stream),
     (dst_device, dst_pitch, us, width, height, stream_or_per_thread(stream)))
SAME(cuMemsetD2D16_v2, _ptds,
     (CUdeviceptr dst_device, size_t dst_pitch, unsigned short us, size_t width, size_t height),
     (dst_device, dst_pitch, us, width, height))
SAME(cuMemsetD2D32Async, _ptsz,
     (CUdeviceptr dst_device, size_t dst_pitch, unsigned ui, size_t width, size_t height,
      CUstream stream),
     (dst_device, dst_pitch, ui, width, height, stream_or_per_thread(stream)))
SAME(cuMemsetD2D32_v2, _ptds,
     (CUdeviceptr dst_device, size_t dst_pitch, unsigned ui, size_t width, size_t height),
     (dst_device, dst_pitch, ui, width, height))
SAME(cuMemsetD2D8Async, _ptsz,
     (CUdeviceptr dst_device, size_t dst_pitch, unsigned char uc, size_t width, size_t height,
      CUstream stream),
     (dst_device, dst_pitch, uc, width, height, stream_or_per_thread(stream)))
SAME(cuMemsetD2D8_v2, _ptds,
     (CUdeviceptr dst_device, size_t dst_pitch, unsigned char uc, size_t width, size_t height),
     (dst_device, dst_pitch, uc, width, height))
SAME(cuMemsetD32Async, _ptsz, (CUdeviceptr dst_device, unsigned ui, size_t n, CUstream stream),
     (dst_device, ui, n, stream_or_per_thread(stream)))
SAME(cuMemsetD32_v2, _ptds, (CUdeviceptr dst_device, unsigned ui, size_t n), (dst_device, ui, n))
SAME(cuMemsetD8Async, _ptsz, (CUdeviceptr dst_device, unsigned char uc, size_t n, CUstream stream),
     (dst_device, uc, n, stream_or_per_thread(stream)))
SAME(cuMemsetD8_v2, _ptds, (CUdeviceptr dst_device, unsigned char uc, size_t n),
     (dst_device, uc, n))
SAME(cuStreamAddCallback, _ptsz,
     (CUstream stream, CUstreamCallback callback, void *user_data, unsigned flags),
     (stream_or_per_thread(stream), callback, user_data, flags))
SAME(cuStreamAttachMemAsync, _ptsz,
     (CUstream stream, CUdeviceptr address, size_t length, unsigned flags),
     (stream_or_per_thread(stream), address, length, flags))
SAME(cuStreamBeginCaptureToGraph, _ptsz,
     (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
      const CUgraphEdgeData *dependency_data, size_t num_dependencies, CUstreamCaptureMode mode),
     (stream_or_per_thread(stream), graph, dependencies, dependency_data, num_dependencies, mode))
SAME(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
     (stream_or_per_thread(stream), mode))
SAME(cuStreamCopyAttributes, _ptsz, (CUstream dst, CUstream src),
     (stream_or_per_thread(dst), stream_or_per_thread(src)))
SAME(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph),
     (stream_or_per_thread(stream), graph))
SAME(cuStreamGetAttribute, _ptsz,
     (CUstream stream, CUstreamAttrID attr, CUstreamAttrValue *value_out),
     (stream_or_per_thread(stream), attr, value_out))
SAME(cuStreamGetCaptureInfo_v3, _ptsz,
     (CUstream stream, CUstreamCaptureStatus *capture_status_out, cuuint64_t *id_out,
      CUgraph *graph_out, const CUgraphNode **dependencies_out,
      const CUgraphEdgeData **edge_data_out, size_t *num_dependencies_out),
     (stream_or_per_thread(stream), capture_status_out, id_out, graph_out, dependencies_out,
      edge_data_out, num_dependencies_out))
SAME(cuStreamGetCtx_v2, _ptsz, (CUstream stream, CUcontext *context, CUgreenCtx *green),
     (stream_or_per_thread(stream), context, green))
SAME(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext *pctx),
     (stream_or_per_thread(stream), pctx))
SAME(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice *device),
     (stream_or_per_thread(stream), device))
SAME(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned *flags),
     (stream_or_per_thread(stream), flags))
SAME(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *stream_id),
     (stream_or_per_thread(stream), stream_id))
SAME(cuStreamGetPriority, _ptsz, (CUstream stream, int *priority),
     (stream_or_per_thread(stream), priority))
SAME(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus *capture_status),
     (stream_or_per_thread(stream), capture_status))
SAME(cuStreamQuery, _ptsz, (CUstream stream), (stream_or_per_thread(stream)))
SAME(cuStreamSetAttribute, _ptsz,
     (CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue *value),
     (stream_or_per_thread(stream), attr, value))
SAME(cuStreamSynchronize, _ptsz, (CUstream stream), (stream_or_per_thread(stream)))
SAME(cuStreamUpdateCaptureDependencies_v2, _ptsz,
     (CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *dependency_data,
      size_t num_dependencies, unsigned flags),
     (stream_or_per_thread(stream), dependencies, dependency_data, num_dependencies, flags))
SAME(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
     (stream_or_per_thread(stream), event, flags))

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **arguments,
                               void **extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **arguments,
                               void **extra) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  CUlaunchConfig same = *config;
  same.hStream = stream_or_per_thread(config->hStream);
  return cuLaunchKernelEx(&same, function, arguments, extra);
}
