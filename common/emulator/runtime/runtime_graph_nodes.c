/* runtime_graph_nodes.c: the work of graphs' nodes: made from what programs state, given back, and
 * replaced. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/graph.h"
#include "runtime/refusals.h"

/* ---- Work of nodes from what programs state ---- */

static cudaError_t work_of_kernel(const struct cudaKernelNodeParams *params, Work *work) {
  if (!params) return cudaErrorInvalidValue;
  Kernel *kernel = runtime_find_kernel(params->func);
  const Function *entry = kernel ? runtime_entry(kernel) : NULL;
  if (!entry) return cudaErrorInvalidDeviceFunction;
  LaunchShape shape = {.grid = {params->gridDim.x, params->gridDim.y, params->gridDim.z},
                       .block = {params->blockDim.x, params->blockDim.y, params->blockDim.z},
                       .dynamic_shared_bytes = params->sharedMemBytes};
  *work = (Work){.type = cudaGraphNodeTypeKernel, .launch = {.kernel = kernel, .shape = shape}};
  return runtime_gather_arguments(entry, params->kernelParams, params->extra,
                                  &work->launch.parameters);
}

cudaError_t work_of_child(cudaGraph_t child, Work *work) {
  *work = (Work){.type = cudaGraphNodeTypeGraph};
  return graph_known(child) ? graph_clone(child, &work->child) : cudaErrorInvalidValue;
}

/* The address is the same at every launch. The memory exists from this node on. */
static cudaError_t allocate_for_graph(struct cudaMemAllocNodeParams *params) {
  cudaError_t error = cudaMalloc(&params->dptr, params->bytesize);
  if (error == cudaSuccess) give_to_graph(params->dptr);
  return error;
}

static cudaError_t work_of_node(struct cudaGraphNodeParams *params, Work *work) {
  if (!params) return cudaErrorInvalidValue;
  *work = (Work){.type = params->type};
  switch (params->type) {
    case cudaGraphNodeTypeKernel: {
      struct cudaKernelNodeParams kernel;
      memcpy(&kernel, &params->kernel, sizeof kernel);
      return work_of_kernel(&kernel, work);
    }
    case cudaGraphNodeTypeMemcpy:
      work->copy = params->memcpy.copyParams;
      return cudaSuccess;
    case cudaGraphNodeTypeMemset:
      memcpy(&work->fill, &params->memset, sizeof work->fill);
      return cudaSuccess;
    case cudaGraphNodeTypeHost:
      memcpy(&work->host, &params->host, sizeof work->host);
      return cudaSuccess;
    case cudaGraphNodeTypeGraph:
      return work_of_child(params->graph.graph, work);
    case cudaGraphNodeTypeEmpty:
      return cudaSuccess;
    case cudaGraphNodeTypeEventRecord:
      work->event = params->eventRecord.event;
      return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
      work->event = params->eventWait.event;
      return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc:
      memcpy(&work->allocation, &params->alloc, sizeof work->allocation);
      return allocate_for_graph(&work->allocation);
    case cudaGraphNodeTypeMemFree:
      work->freed = params->free.dptr;
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      refuse_call("cudaGraphAddNode with a conditional node", CONDITIONAL_NODES);
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
      refuse_call("cudaGraphAddNode with a semaphore's node",
                  "semaphores of other interfaces do not exist here");
    default:
      return cudaErrorInvalidValue;
  }
}

static cudaError_t add_work(cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, size_t count, Work *work,
                            cudaError_t error) {
  if (error != cudaSuccess) return runtime_answer(error); /* nothing was made */
  error = !node || !graph_known(graph) || !nodes_known(dependencies, count) ? cudaErrorInvalidValue
                                                                            : work_check(work);
  if (error != cudaSuccess) {
    if (work->type == cudaGraphNodeTypeMemAlloc) cudaFree(work->allocation.dptr);
    work_free(work);
    return runtime_answer(error);
  }
  *node = graph_add(graph, dependencies, count, work);
  return runtime_answer(*node ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                             size_t count, struct cudaGraphNodeParams *params) {
  Work work;
  cudaError_t error = work_of_node(params, &work);
  bool allowed = nodes_known(dependencies, count);
  for (size_t i = 0; allowed && error == cudaSuccess && edges && i < count; i++)
    allowed = graph_edge_allowed(dependencies[i], &work, &edges[i]);
  if (error == cudaSuccess && work.type == cudaGraphNodeTypeMemAlloc)
    params->alloc.dptr = work.allocation.dptr;
  error = add_work(allowed ? node : NULL, graph, dependencies, count, &work, error);
  for (size_t i = 0; error == cudaSuccess && edges && i < count; i++)
    graph_set_edge(dependencies[i], *node, &edges[i]);
  return error;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaKernelNodeParams *params) {
  Work work;
  cudaError_t error = work_of_kernel(params, &work);
  return add_work(node, graph, dependencies, count, &work, error);
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemcpy3DParms *params) {
  if (!params) return runtime_answer(cudaErrorInvalidValue);
  Work work = {.type = cudaGraphNodeTypeMemcpy, .copy = *params};
  return add_work(node, graph, dependencies, count, &work, cudaSuccess);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count, void *to,
                                     const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  Work work = work_of_copy(to, from, bytes, kind);
  return add_work(node, graph, dependencies, count, &work, cudaSuccess);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemsetParams *params) {
  if (!params) return runtime_answer(cudaErrorInvalidValue);
  Work work = {.type = cudaGraphNodeTypeMemset, .fill = *params};
  return add_work(node, graph, dependencies, count, &work, cudaSuccess);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t count,
                                 const struct cudaHostNodeParams *params) {
  if (!params) return runtime_answer(cudaErrorInvalidValue);
  Work work = {.type = cudaGraphNodeTypeHost, .host = *params};
  return add_work(node, graph, dependencies, count, &work, cudaSuccess);
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *dependencies, size_t count,
                                       cudaGraph_t child) {
  Work work;
  cudaError_t error = work_of_child(child, &work);
  return add_work(node, graph, dependencies, count, &work, error);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count) {
  Work work = {.type = cudaGraphNodeTypeEmpty};
  return add_work(node, graph, dependencies, count, &work, cudaSuccess);
}
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count,
                                     struct cudaMemAllocNodeParams *params) {
  if (!params) return runtime_answer(cudaErrorInvalidValue);
  cudaError_t error = allocate_for_graph(params);
  Work work = {.type = cudaGraphNodeTypeMemAlloc, .allocation = *params};
  return add_work(node, graph, dependencies, count, &work, error);
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *dependencies, size_t count,
                                    void *address) {
  Work work = {.type = cudaGraphNodeTypeMemFree, .freed = address};
  return add_work(node, graph, dependencies, count, &work, cudaSuccess);
}

/* ---- What nodes hold ---- */

static bool is_type(cudaGraphNode_t node, enum cudaGraphNodeType type, const void *params) {
  return node_known(node) && params && node->work.type == type;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                         struct cudaKernelNodeParams *params) {
  if (!is_type(node, cudaGraphNodeTypeKernel, params)) return runtime_answer(cudaErrorInvalidValue);
  Kernel *kernel = node->work.launch.kernel;
  const FunctionTraits *traits = function_traits(runtime_entry(kernel));
  LaunchShape shape = node->work.launch.shape;
  if (!node->work.launch.pointers) {
    node->work.launch.pointers = calloc(traits->parameter_count + 1u, sizeof(void *));
    if (!node->work.launch.pointers) return runtime_answer(cudaErrorMemoryAllocation);
    for (uint32_t i = 0; i < traits->parameter_count; i++)
      node->work.launch.pointers[i] = node->work.launch.parameters + traits->parameter_offsets[i];
  }
  memset(params, 0, sizeof *params);
  params->func = kernel->host_function ? (void *)(uintptr_t)kernel->host_function : kernel;
  params->gridDim = (dim3){shape.grid.x, shape.grid.y, shape.grid.z};
  params->blockDim = (dim3){shape.block.x, shape.block.y, shape.block.z};
  params->sharedMemBytes = (unsigned)shape.dynamic_shared_bytes;
  params->kernelParams = node->work.launch.pointers;
  return cudaSuccess;
}

/* New parameters do not change what attributes have set. */
static cudaError_t node_replace_work(cudaGraphNode_t node, Work *work, cudaError_t error) {
  if (error != cudaSuccess) return runtime_answer(error); /* nothing was made */
  error =
      !node_known(node) || node->work.type != work->type ? cudaErrorInvalidValue : work_check(work);
  if (error != cudaSuccess) {
    work_free(work);
    return runtime_answer(error);
  }
  if (work->type == cudaGraphNodeTypeKernel) {
    work->launch.shape.cluster = node->work.launch.shape.cluster;
    work->launch.shape.cooperative = node->work.launch.shape.cooperative;
  }
  work_free(&node->work);
  node->work = *work;
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *params) {
  Work work;
  cudaError_t error = work_of_kernel(params, &work);
  return node_replace_work(node, &work, error);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            const cudaLaunchAttributeValue *value) {
  if (!is_type(node, cudaGraphNodeTypeKernel, value)) return runtime_answer(cudaErrorInvalidValue);
  cudaLaunchAttribute attribute = {.id = id, .val = *value};
  return runtime_answer(runtime_node_attribute(&attribute, &node->work.launch.shape));
}
