/* driver_graph.c: the driver's graph nodes whose descriptions differ from the runtime's. */
#include "runtime/driver_context.h"
#include "runtime/runtime.h"

static CUresult as_driver(cudaError_t error) { return (CUresult)error; } /* the same numbers */

/* ---- Kernels ---- */

static struct cudaKernelNodeParams runtime_kernel(const CUDA_KERNEL_NODE_PARAMS *given) {
  return (struct cudaKernelNodeParams){
      .func = given->func ? (void *)given->func : (void *)given->kern,
      .gridDim = {given->gridDimX, given->gridDimY, given->gridDimZ},
      .blockDim = {given->blockDimX, given->blockDimY, given->blockDimZ},
      .sharedMemBytes = given->sharedMemBytes,
      .kernelParams = given->kernelParams,
      .extra = given->extra,
  };
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *parameters) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  struct cudaKernelNodeParams same = runtime_kernel(parameters);
  return as_driver(cudaGraphAddKernelNode(node, graph, dependencies, count, &same));
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                       const CUDA_KERNEL_NODE_PARAMS *parameters) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  struct cudaKernelNodeParams same = runtime_kernel(parameters);
  return as_driver(cudaGraphKernelNodeSetParams(node, &same));
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *parameters) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  struct cudaKernelNodeParams same = runtime_kernel(parameters);
  return as_driver(cudaGraphExecKernelNodeSetParams(exec, node, &same));
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters) {
  struct cudaKernelNodeParams same;
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = as_driver(cudaGraphKernelNodeGetParams(node, &same));
  if (result != CUDA_SUCCESS) return result;
  *parameters = (CUDA_KERNEL_NODE_PARAMS){
      .func = (CUfunction)runtime_find_kernel(same.func),
      .gridDimX = same.gridDim.x,
      .gridDimY = same.gridDim.y,
      .gridDimZ = same.gridDim.z,
      .blockDimX = same.blockDim.x,
      .blockDimY = same.blockDim.y,
      .blockDimZ = same.blockDim.z,
      .sharedMemBytes = same.sharedMemBytes,
      .kernelParams = same.kernelParams,
      .extra = same.extra,
  };
  return CUDA_SUCCESS;
}

/* ---- Copies and fills ---- */

/* NULL: the program leaves it to the driver. */
static bool context_invalid(CUcontext context) {
  return context && context_usable(context) == CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMCPY3D *copy, CUcontext context) {
  if (context_invalid(context)) return CUDA_ERROR_INVALID_CONTEXT;
  struct cudaMemcpy3DParms same;
  CUresult result = copy ? driver_copy_as_runtime(copy, &same) : CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return result;
  return as_driver(cudaGraphAddMemcpyNode(node, graph, dependencies, count, &same));
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy) {
  struct cudaMemcpy3DParms same;
  CUresult result = copy ? driver_copy_as_runtime(copy, &same) : CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return result;
  return as_driver(cudaGraphMemcpyNodeSetParams(node, &same));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *copy, CUcontext context) {
  if (context_invalid(context)) return CUDA_ERROR_INVALID_CONTEXT;
  struct cudaMemcpy3DParms same;
  CUresult result = copy ? driver_copy_as_runtime(copy, &same) : CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return result;
  return as_driver(cudaGraphExecMemcpyNodeSetParams(exec, node, &same));
}
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *fill,
                              CUcontext context) {
  if (context_invalid(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return as_driver(cudaGraphAddMemsetNode(node, graph, dependencies, count,
                                          (const struct cudaMemsetParams *)(const void *)fill));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context) {
  if (context_invalid(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return as_driver(cudaGraphExecMemsetNodeSetParams(
      exec, node, (const struct cudaMemsetParams *)(const void *)fill));
}
