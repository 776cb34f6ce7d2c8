/* runtime_graph_exec.c: executable graphs: copies of graphs that can be launched and changed. */
#include <stdlib.h>
#include <string.h>

#include "runtime/graph.h"

struct CUgraphExec_st {
  cudaGraph_t graph;
};

static bool exec_known(cudaGraphExec_t exec) { return handle_is(exec, HANDLE_EXEC); }

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  (void)flags;
  if (!exec || !graph_known(graph)) return runtime_answer(cudaErrorInvalidValue);
  cudaError_t error = runtime_known_fault();
  if (error != cudaSuccess) return runtime_answer(error);
  cudaGraph_t copy;
  *exec = calloc(1, sizeof **exec);
  error = *exec ? graph_clone(graph, &copy) : cudaErrorMemoryAllocation;
  if (error != cudaSuccess) {
    free(*exec);
    *exec = NULL;
    return runtime_answer(error);
  }
  **exec = (struct CUgraphExec_st){copy};
  handle_add(*exec, HANDLE_EXEC);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params) {
  if (!params) return runtime_answer(cudaErrorInvalidValue);
  cudaError_t error = cudaGraphInstantiate(exec, graph, params->flags);
  params->errNode_out = NULL;
  params->result_out =
      error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
  return error;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  if (!exec_known(exec)) return runtime_answer(cudaErrorInvalidValue);
  handle_remove(exec);
  cudaGraphDestroy(exec->graph);
  free(exec);
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return runtime_answer(exec_known(exec) && stream_known(stream) ? runtime_known_fault()
                                                                 : cudaErrorInvalidValue);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec_known(exec)) return runtime_answer(cudaErrorInvalidValue);
  Work work;
  cudaError_t error = work_of_child(exec->graph, &work);
  if (error == cudaSuccess && !stream_captures(stream)) work.child->run_of = exec->graph;
  if (error == cudaSuccess) error = stream_submit(stream, &work);
  return runtime_answer(error);
}

static cudaGraphNode_t node_of(cudaGraphExec_t exec, cudaGraphNode_t node) {
  return exec_known(exec) && node_known(node) ? graph_find_copy(exec->graph, node) : NULL;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params) {
  return cudaGraphKernelNodeSetParams(node_of(exec, node), params);
}

static bool same_form(cudaGraph_t a, cudaGraph_t b) {
  if (a->nodes.count != b->nodes.count) return false;
  for (size_t i = 0; i < a->nodes.count; i++) {
    cudaGraphNode_t left = a->nodes.nodes[i], right = b->nodes.nodes[i];
    if (left->work.type != right->work.type ||
        left->dependencies.count != right->dependencies.count)
      return false;
    for (size_t k = 0; k < left->dependencies.count; k++) {
      size_t n = 0;
      while (a->nodes.nodes[n] != left->dependencies.nodes[k]) n++;
      if (b->nodes.nodes[n] != right->dependencies.nodes[k]) return false;
    }
  }
  return true;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result) {
  if (!exec_known(exec) || !graph_known(graph) || !result)
    return runtime_answer(cudaErrorInvalidValue);
  memset(result, 0, sizeof *result);
  cudaGraph_t copy;
  cudaError_t error = graph_clone(graph, &copy);
  if (error == cudaErrorMemoryAllocation) return runtime_answer(error);
  if (error != cudaSuccess || !same_form(exec->graph, copy)) {
    if (copy) cudaGraphDestroy(copy);
    result->result = cudaGraphExecUpdateErrorTopologyChanged;
    return runtime_answer(cudaErrorGraphExecUpdateFailure);
  }
  for (size_t i = 0; i < copy->nodes.count; i++) /* handles of the first graph stay valid */
    copy->nodes.nodes[i]->original = exec->graph->nodes.nodes[i]->original;
  cudaGraphDestroy(exec->graph);
  exec->graph = copy;
  result->result = cudaGraphExecUpdateSuccess;
  return cudaSuccess;
}
