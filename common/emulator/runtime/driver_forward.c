/* driver_forward.c: driver calls that are runtime calls under another name. Both use the same
 * handles, structures and numbers. */
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>

#include "runtime/runtime.h"

#define FORWARD(call, parameters, same) \
  CUresult call parameters { return (CUresult)same; }

/* ---- The device and its context ---- */

FORWARD(cuDeviceGetByPCIBusId, (CUdevice * device, const char *pci_bus_id),
        cudaDeviceGetByPCIBusId((int *)(void *)device, pci_bus_id))
FORWARD(cuDeviceGetPCIBusId, (char *pci_bus_id, int len, CUdevice device),
        cudaDeviceGetPCIBusId(pci_bus_id, len, device))
FORWARD(cuDeviceCanAccessPeer, (int *can_access_peer, CUdevice device, CUdevice peer_dev),
        cudaDeviceCanAccessPeer(can_access_peer, device, peer_dev))
FORWARD(cuDeviceGetP2PAttribute,
        (int *value, CUdevice_P2PAttribute attrib, CUdevice src_device, CUdevice dst_device),
        cudaDeviceGetP2PAttribute(value, (enum cudaDeviceP2PAttr)attrib, src_device, dst_device))
FORWARD(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool_out, CUdevice device),
        cudaDeviceGetDefaultMemPool((cudaMemPool_t *)(void *)pool_out, device))
FORWARD(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device),
        cudaDeviceGetMemPool((cudaMemPool_t *)(void *)pool, device))
FORWARD(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool),
        cudaDeviceSetMemPool(device, pool))
FORWARD(cuCtxGetCacheConfig, (CUfunc_cache * pconfig),
        cudaDeviceGetCacheConfig((enum cudaFuncCache *)(void *)pconfig))
FORWARD(cuCtxSetCacheConfig, (CUfunc_cache config),
        cudaDeviceSetCacheConfig((enum cudaFuncCache)config))
FORWARD(cuCtxResetPersistingL2Cache, (void), cudaCtxResetPersistingL2Cache())
FORWARD(cuProfilerStart, (void), cudaProfilerStart())
FORWARD(cuProfilerStop, (void), cudaProfilerStop())

/* ---- Memory ---- */

FORWARD(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *pool_props),
        cudaMemPoolCreate((cudaMemPool_t *)(void *)pool,
                          (const struct cudaMemPoolProps *)(const void *)pool_props))
FORWARD(cuMemPoolDestroy, (CUmemoryPool pool), cudaMemPoolDestroy(pool))
FORWARD(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value),
        cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)attr, value))
FORWARD(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value),
        cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attr, value))
FORWARD(cuMemPoolTrimTo, (CUmemoryPool pool, size_t min_bytes_to_keep),
        cudaMemPoolTrimTo(pool, min_bytes_to_keep))
FORWARD(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count),
        cudaMemPoolSetAccess(pool, (const struct cudaMemAccessDesc *)(const void *)map, count))
FORWARD(cuMemPoolGetAccess,
        (CUmemAccess_flags * flags, CUmemoryPool mem_pool, CUmemLocation *location),
        cudaMemPoolGetAccess((enum cudaMemAccessFlags *)(void *)flags, mem_pool,
                             (struct cudaMemLocation *)(void *)location))
FORWARD(cuMemHostGetFlags, (unsigned *flags, void *p), cudaHostGetFlags(flags, p))
FORWARD(cuMemAdvise_v2,
        (CUdeviceptr dev_ptr, size_t count, CUmem_advise advice, CUmemLocation location),
        cudaMemAdvise((void *)(uintptr_t)dev_ptr, count, (enum cudaMemoryAdvise)advice,
                      *(struct cudaMemLocation *)(void *)&location))
FORWARD(cuMemPrefetchAsync_v2,
        (CUdeviceptr dev_ptr, size_t count, CUmemLocation location, unsigned flags,
         CUstream stream),
        cudaMemPrefetchAsync((void *)(uintptr_t)dev_ptr, count,
                             *(struct cudaMemLocation *)(void *)&location, flags, stream))
FORWARD(cuMemRangeGetAttribute,
        (void *data, size_t data_size, CUmem_range_attribute attribute, CUdeviceptr dev_ptr,
         size_t count),
        cudaMemRangeGetAttribute(data, data_size, (enum cudaMemRangeAttribute)attribute,
                                 (void *)(uintptr_t)dev_ptr, count))

/* ---- Streams ---- */

FORWARD(cuStreamAddCallback,
        (CUstream stream, CUstreamCallback callback, void *user_data, unsigned flags),
        cudaStreamAddCallback(stream, (cudaStreamCallback_t)callback, user_data, flags))
FORWARD(cuStreamAttachMemAsync,
        (CUstream stream, CUdeviceptr address, size_t length, unsigned flags),
        cudaStreamAttachMemAsync(stream, (void *)(uintptr_t)address, length, flags))
FORWARD(cuStreamBeginCaptureToGraph,
        (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
         const CUgraphEdgeData *dependency_data, size_t num_dependencies, CUstreamCaptureMode mode),
        cudaStreamBeginCaptureToGraph(stream, graph, dependencies,
                                      (const cudaGraphEdgeData *)(const void *)dependency_data,
                                      num_dependencies, (enum cudaStreamCaptureMode)mode))
FORWARD(cuStreamGetCaptureInfo_v3,
        (CUstream stream, CUstreamCaptureStatus *capture_status_out, cuuint64_t *id_out,
         CUgraph *graph_out, const CUgraphNode **dependencies_out,
         const CUgraphEdgeData **edge_data_out, size_t *num_dependencies_out),
        cudaStreamGetCaptureInfo(stream, (enum cudaStreamCaptureStatus *)(void *)capture_status_out,
                                 (unsigned long long *)(void *)id_out, graph_out, dependencies_out,
                                 (const cudaGraphEdgeData **)(const void *)edge_data_out,
                                 num_dependencies_out))
FORWARD(cuStreamUpdateCaptureDependencies_v2,
        (CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *dependency_data,
         size_t num_dependencies, unsigned flags),
        cudaStreamUpdateCaptureDependencies(
            stream, dependencies, (const cudaGraphEdgeData *)(const void *)dependency_data,
            num_dependencies, flags))
FORWARD(cuStreamCopyAttributes, (CUstream dst, CUstream src), cudaStreamCopyAttributes(dst, src))
FORWARD(cuStreamGetAttribute, (CUstream stream, CUstreamAttrID attr, CUstreamAttrValue *value_out),
        cudaStreamGetAttribute(stream, (cudaLaunchAttributeID)attr,
                               (cudaLaunchAttributeValue *)(void *)value_out))
FORWARD(cuStreamSetAttribute,
        (CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue *value),
        cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)attr,
                               (const cudaLaunchAttributeValue *)(const void *)value))
FORWARD(cuStreamGetDevice, (CUstream stream, CUdevice *device),
        cudaStreamGetDevice(stream, (int *)(void *)device))
FORWARD(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
        cudaThreadExchangeStreamCaptureMode((enum cudaStreamCaptureMode *)(void *)mode))

/* ---- Graphs ---- */

FORWARD(cuGraphInstantiateWithParams,
        (CUgraphExec * graph_exec, CUgraph graph,
         CUDA_GRAPH_INSTANTIATE_PARAMS *instantiate_params),
        cudaGraphInstantiateWithParams(graph_exec, graph,
                                       (cudaGraphInstantiateParams *)(void *)instantiate_params))
/* ---- Functions ---- */

FORWARD(cuOccupancyAvailableDynamicSMemPerBlock,
        (size_t * dynamic_smem_size, CUfunction func, int num_blocks, int block_size),
        cudaOccupancyAvailableDynamicSMemPerBlock(dynamic_smem_size, func, num_blocks, block_size))
