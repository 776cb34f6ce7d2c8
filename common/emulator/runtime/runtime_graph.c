/* runtime_graph.c: graphs: nodes with work and dependencies, built by calls or by stream capture,
 * and executable copies of them, which run node after node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "runtime/handles.h"
#include "runtime/refusals.h"
#include "runtime/runtime.h"

struct CUgraphNode_st {
  cudaGraph_t graph;
  Work work;
  NodeList dependencies;
  cudaGraphNode_t original; /* in a clone: the node that it was made from */
  bool disabled;
  size_t place; /* in a graph that runs: its index */
};
struct CUgraph_st {
  NodeList nodes;            /* in an executable graph: each after all its dependencies */
  cudaUserObject_t *objects; /* one place for each reference */
  size_t object_count;
  /* What comes before the end of the last run: runs of one executable graph do not overlap. */
  StreamClock finished;
  cudaGraph_t run_of; /* in the copy that is run: that executable graph; NULL: it is no copy */
};
struct CUgraphExec_st {
  cudaGraph_t graph;
  unsigned long long flags;
};

/* ---- Lists of nodes ---- */

static bool nodes_hold(const NodeList *list, cudaGraphNode_t node) {
  for (size_t i = 0; i < list->count; i++)
    if (list->nodes[i] == node) return true;
  return false;
}
static bool graph_known(cudaGraph_t graph) { return handle_is(graph, HANDLE_GRAPH); }
static bool node_known(cudaGraphNode_t node) { return handle_is(node, HANDLE_NODE); }
static bool exec_known(cudaGraphExec_t exec) { return handle_is(exec, HANDLE_EXEC); }
static bool object_known(cudaUserObject_t object) { return handle_is(object, HANDLE_USER_OBJECT); }
bool nodes_known(const cudaGraphNode_t *nodes, size_t count) {
  bool known = nodes || count == 0;
  for (size_t i = 0; known && i < count; i++) known = node_known(nodes[i]);
  return known;
}

static void append(NodeList *list, cudaGraphNode_t node) {
  if (list->count == list->capacity) {
    list->capacity = list->capacity ? list->capacity * 2 : 4;
    list->nodes = realloc(list->nodes, list->capacity * sizeof *list->nodes);
    if (!list->nodes) out_of_memory();
  }
  list->nodes[list->count++] = node;
}
void nodes_add(NodeList *list, cudaGraphNode_t node) {
  if (!nodes_hold(list, node)) append(list, node);
}
static void nodes_remove(NodeList *list, cudaGraphNode_t node) {
  for (size_t i = 0; i < list->count; i++) {
    if (list->nodes[i] != node) continue;
    memmove(&list->nodes[i], &list->nodes[i + 1], (--list->count - i) * sizeof *list->nodes);
    return;
  }
}
void nodes_clear(NodeList *list) { list->count = 0; }

/* Returns a list of nodes: as many as fit, or only their number if there is no array. */
static cudaError_t give_nodes(const NodeList *list, cudaGraphNode_t *nodes, size_t *count) {
  if (!count) return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < list->count ? list->nodes[i] : NULL;
  if (!nodes || *count > list->count) *count = list->count;
  return cudaSuccess;
}

/* ---- Objects whose lives graphs prolong ---- */

struct CUuserObject_st {
  void *data;
  cudaHostFn_t destroy;
  unsigned references;
};
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
  if (!object || !destroy || !references || flags != cudaUserObjectNoDestructorSync)
    return runtime_answer(cudaErrorInvalidValue);
  *object = calloc(1, sizeof **object);
  if (!*object) return runtime_answer(cudaErrorMemoryAllocation);
  **object = (struct CUuserObject_st){data, destroy, references};
  handle_add(*object, HANDLE_USER_OBJECT);
  return cudaSuccess;
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  if (!object_known(object) || !count) return runtime_answer(cudaErrorInvalidValue);
  object->references += count;
  return cudaSuccess;
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  if (!object_known(object) || !count || count > object->references)
    return runtime_answer(cudaErrorInvalidValue);
  object->references -= count;
  if (object->references) return cudaSuccess;
  object->destroy(object->data);
  handle_remove(object);
  free(object);
  return cudaSuccess;
}
/* ---- Graphs ---- */

static cudaGraph_t new_graph(void) {
  cudaGraph_t graph = calloc(1, sizeof *graph);
  if (graph) handle_add(graph, HANDLE_GRAPH);
  return graph;
}
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
  if (!graph || flags) return runtime_answer(cudaErrorInvalidValue);
  *graph = new_graph();
  return runtime_answer(*graph ? cudaSuccess : cudaErrorMemoryAllocation);
}

static void free_node(cudaGraphNode_t node) {
  handle_remove(node);
  work_free(&node->work);
  free(node->dependencies.nodes);
  free(node);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph_known(graph)) return runtime_answer(cudaErrorInvalidValue);
  handle_remove(graph);
  for (size_t i = 0; i < graph->nodes.count; i++) free_node(graph->nodes.nodes[i]);
  for (size_t i = 0; i < graph->object_count; i++) cudaUserObjectRelease(graph->objects[i], 1);
  free(graph->objects);
  free(graph->nodes.nodes);
  free(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  if (!node_known(node)) return runtime_answer(cudaErrorInvalidValue);
  NodeList *all = &node->graph->nodes;
  nodes_remove(all, node);
  for (size_t i = 0; i < all->count; i++) nodes_remove(&all->nodes[i]->dependencies, node);
  free_node(node);
  return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
  if (!graph_known(graph) || !object_known(object) || !count)
    return runtime_answer(cudaErrorInvalidValue);
  size_t total = graph->object_count + count;
  cudaUserObject_t *objects = realloc(graph->objects, total * sizeof *objects);
  if (!objects) return runtime_answer(cudaErrorMemoryAllocation);
  graph->objects = objects;
  while (graph->object_count < total) objects[graph->object_count++] = object;
  return flags & cudaGraphUserObjectMove ? cudaSuccess : cudaUserObjectRetain(object, count);
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  if (!graph_known(graph) || !object_known(object) || !count)
    return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = graph->object_count; count && i-- > 0;) {
    if (graph->objects[i] != object) continue;
    graph->objects[i] = graph->objects[--graph->object_count];
    cudaUserObjectRelease(object, 1);
    count--;
  }
  return runtime_answer(count ? cudaErrorInvalidValue : cudaSuccess);
}

cudaGraphNode_t graph_add(cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                          Work *work) {
  cudaGraphNode_t node = calloc(1, sizeof *node);
  if (!node) {
    work_free(work);
    return NULL;
  }
  handle_add(node, HANDLE_NODE);
  node->graph = graph;
  node->work = *work;
  for (size_t i = 0; i < count; i++) nodes_add(&node->dependencies, dependencies[i]);
  append(&graph->nodes, node);
  return node;
}

bool graph_has_other_ends(cudaGraph_t graph, const NodeList *nodes) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    cudaGraphNode_t node = graph->nodes.nodes[i];
    bool is_end = !nodes_hold(nodes, node);
    for (size_t k = 0; is_end && k < graph->nodes.count; k++)
      is_end = !nodes_hold(&graph->nodes.nodes[k]->dependencies, node);
    if (is_end) return true;
  }
  return false;
}

static cudaGraphNode_t find_copy(cudaGraph_t graph, cudaGraphNode_t original) {
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.nodes[i]->original == original) return graph->nodes.nodes[i];
  return NULL;
}

/* Copies nodes in the order of their dependencies. */
static cudaError_t copy_nodes(cudaGraph_t graph, cudaGraph_t clone) {
  for (bool progress = true; progress && clone->nodes.count < graph->nodes.count;) {
    progress = false;
    for (size_t i = 0; i < graph->nodes.count; i++) {
      cudaGraphNode_t node = graph->nodes.nodes[i];
      const NodeList *needs = &node->dependencies;
      bool ready = !find_copy(clone, node);
      for (size_t k = 0; ready && k < needs->count; k++)
        ready = find_copy(clone, needs->nodes[k]) != NULL;
      if (!ready) continue;
      Work work;
      cudaError_t error = work_copy(&node->work, &work);
      if (error != cudaSuccess) return error;
      cudaGraphNode_t copy = graph_add(clone, NULL, 0, &work);
      if (!copy) return cudaErrorMemoryAllocation;
      copy->original = node;
      copy->disabled = node->disabled;
      for (size_t k = 0; k < needs->count; k++)
        append(&copy->dependencies, find_copy(clone, needs->nodes[k]));
      progress = true;
    }
  }
  return clone->nodes.count == graph->nodes.count ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t graph_clone(cudaGraph_t graph, cudaGraph_t *clone) {
  *clone = new_graph();
  cudaError_t error = *clone ? copy_nodes(graph, *clone) : cudaErrorMemoryAllocation;
  for (size_t i = 0; error == cudaSuccess && i < graph->object_count; i++)
    error = cudaGraphRetainUserObject(*clone, graph->objects[i], 1, 0);
  if (error != cudaSuccess && *clone) {
    cudaGraphDestroy(*clone);
    *clone = NULL;
  }
  return error;
}

/* What the nodes of a running graph come after, by its edges. */
typedef struct {
  StreamOrder *order; /* of the stream, replaced by each node's while it begins */
  uint32_t timeline;  /* the stream's own */
  StreamClock begin, end;
  StreamOrder *nodes; /* after each node; NULL: not checked */
} GraphOrder;

static void graph_order_begin(GraphOrder *run, const struct CUgraph_st *graph,
                              cudaStream_t stream) {
  *run = (GraphOrder){.nodes = NULL};
  if (!order_wanted() || graph->nodes.count == 0) return;
  run->nodes = calloc(graph->nodes.count, sizeof *run->nodes);
  if (!run->nodes) return;
  run->order = stream_order(stream);
  run->timeline = run->order->timeline;
  run->begin = run->order->clock;
  order_join(&run->begin, graph->run_of ? &graph->run_of->finished : &graph->finished);
  run->end = run->begin;
}

/* A node continues the branch of a node that it depends on, if no other node has. */
static void graph_order_node(const GraphOrder *run, size_t place, cudaGraphNode_t node) {
  if (!run->nodes) return;
  node->place = place;
  *run->order = (StreamOrder){.timeline = NO_TIMELINE, .clock = run->begin};
  for (size_t i = 0; i < node->dependencies.count; i++) {
    StreamOrder *before = &run->nodes[node->dependencies.nodes[i]->place];
    order_join(&run->order->clock, &before->clock);
    if (run->order->timeline != NO_TIMELINE) continue;
    run->order->timeline = before->timeline;
    before->timeline = NO_TIMELINE;
  }
}

static void graph_order_ended(GraphOrder *run, size_t place) {
  if (!run->nodes) return;
  run->nodes[place] = *run->order;
  order_join(&run->end, &run->order->clock);
}

static void graph_order_end(GraphOrder *run, cudaGraph_t graph, cudaStream_t stream) {
  if (!run->nodes) return;
  for (size_t i = 0; i < graph->nodes.count; i++) order_end_timeline(&run->nodes[i]);
  free(run->nodes);
  *run->order = (StreamOrder){run->timeline, run->end};
  if (graph->run_of) graph->run_of->finished = run->end;
  graph->finished = run->end;
  stream_order_ended(stream);
}

cudaError_t graph_run(cudaGraph_t graph, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  GraphOrder run;
  graph_order_begin(&run, graph, stream);
  for (size_t i = 0; error == cudaSuccess && i < graph->nodes.count; i++) {
    cudaGraphNode_t node = graph->nodes.nodes[i];
    Work work;
    graph_order_node(&run, i, node);
    if (!node->disabled) error = work_copy(&node->work, &work);
    if (!node->disabled && error == cudaSuccess) error = stream_run(stream, &work);
    graph_order_ended(&run, i);
  }
  graph_order_end(&run, graph, stream);
  return error;
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
  if (!clone || !graph_known(graph)) return runtime_answer(cudaErrorInvalidValue);
  return runtime_answer(graph_clone(graph, clone));
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *copy, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  if (!copy || !node_known(original) || !graph_known(clone))
    return runtime_answer(cudaErrorInvalidValue);
  *copy = find_copy(clone, original);
  return runtime_answer(*copy ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- Questions ---- */

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  return graph_known(graph) ? give_nodes(&graph->nodes, nodes, count)
                            : runtime_answer(cudaErrorInvalidValue);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  if (!graph_known(graph)) return runtime_answer(cudaErrorInvalidValue);
  NodeList roots = {0};
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.nodes[i]->dependencies.count == 0) append(&roots, graph->nodes.nodes[i]);
  cudaError_t error = give_nodes(&roots, nodes, count);
  free(roots.nodes);
  return error;
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count) {
  if (!graph_known(graph) || !count || !from != !to) return runtime_answer(cudaErrorInvalidValue);
  size_t found = 0;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    cudaGraphNode_t node = graph->nodes.nodes[i];
    for (size_t k = 0; k < node->dependencies.count; k++, found++) {
      if (!from || found >= *count) continue;
      from[found] = node->dependencies.nodes[k];
      to[found] = node;
      if (edges) memset(&edges[found], 0, sizeof *edges);
    }
  }
  if (!from || *count > found) *count = found;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
  if (!node_known(node) || !type) return runtime_answer(cudaErrorInvalidValue);
  *type = node->work.type;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                         cudaGraphEdgeData *edges, size_t *count) {
  if (!node_known(node)) return runtime_answer(cudaErrorInvalidValue);
  if (edges && nodes && count) memset(edges, 0, *count * sizeof *edges);
  return give_nodes(&node->dependencies, nodes, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                           cudaGraphEdgeData *edges, size_t *count) {
  if (!node_known(node)) return runtime_answer(cudaErrorInvalidValue);
  if (edges && nodes && count) memset(edges, 0, *count * sizeof *edges);
  NodeList dependents = {0};
  const NodeList *all = &node->graph->nodes;
  for (size_t i = 0; i < all->count; i++)
    if (nodes_hold(&all->nodes[i]->dependencies, node)) append(&dependents, all->nodes[i]);
  cudaError_t error = give_nodes(&dependents, nodes, count);
  free(dependents.nodes);
  return error;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                     size_t count) {
  (void)edges;
  if (!graph_known(graph) || !nodes_known(from, count) || !nodes_known(to, count))
    return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; i++)
    if (from[i] == to[i] || nodes_hold(&to[i]->dependencies, from[i]))
      return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; i++) append(&to[i]->dependencies, from[i]);
  return cudaSuccess;
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t count) {
  (void)edges;
  if (!graph_known(graph) || !nodes_known(from, count) || !nodes_known(to, count))
    return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; i++) {
    if (!nodes_hold(&to[i]->dependencies, from[i])) return runtime_answer(cudaErrorInvalidValue);
    nodes_remove(&to[i]->dependencies, from[i]);
  }
  return cudaSuccess;
}

/* Memory allocated by graphs is not counted separately. */
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value) {
  (void)attribute;
  if (device != 0) return runtime_answer(cudaErrorInvalidDevice);
  if (!value) return runtime_answer(cudaErrorInvalidValue);
  memset(value, 0, sizeof(uint64_t));
  return cudaSuccess;
}
cudaError_t cudaDeviceGraphMemTrim(int device) {
  return runtime_answer(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

/* A picture of the graph for graphviz: nodes by their number and type. */
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags) {
  (void)flags;
  static const char *const TYPES[] = {"kernel", "memcpy", "memset", "host",
                                      "graph",  "empty",  "wait",   "record"};
  FILE *file = graph_known(graph) && path ? fopen(path, "w") : NULL;
  if (!file) return runtime_answer(cudaErrorInvalidValue);
  const NodeList *all = &graph->nodes;
  fprintf(file, "digraph graph_ {\n");
  for (size_t i = 0; i < all->count; i++) {
    const Work *work = &all->nodes[i]->work;
    const char *type =
        (unsigned)work->type < sizeof TYPES / sizeof *TYPES ? TYPES[work->type] : "memory";
    bool kernel = work->type == cudaGraphNodeTypeKernel;
    fprintf(file, "  n%zu [label=\"%zu %s %.200s\"];\n", i, i, type,
            kernel ? work->launch.kernel->device_name : "");
    for (size_t k = 0; k < all->nodes[i]->dependencies.count; k++) {
      size_t from = 0;
      while (all->nodes[from] != all->nodes[i]->dependencies.nodes[k]) from++;
      fprintf(file, "  n%zu -> n%zu;\n", from, i);
    }
  }
  fprintf(file, "}\n");
  fclose(file);
  return cudaSuccess;
}

/* ---- Work of nodes from what programs state ---- */

static cudaError_t work_of_kernel(const struct cudaKernelNodeParams *params, Work *work) {
  if (!params) return cudaErrorInvalidValue;
  Kernel *kernel = runtime_find_kernel(params->func);
  const Function *entry = kernel ? runtime_entry(kernel) : NULL;
  if (!entry) return cudaErrorInvalidDeviceFunction;
  LaunchShape shape = {.grid = {params->gridDim.x, params->gridDim.y, params->gridDim.z},
                       .block = {params->blockDim.x, params->blockDim.y, params->blockDim.z},
                       .dynamic_shared_bytes = params->sharedMemBytes};
  const void *packed = NULL;
  size_t packed_bytes = 0;
  runtime_read_extra(params->extra, &packed, &packed_bytes);
  if (function_traits(entry)->parameter_count && !params->kernelParams && !packed)
    return cudaErrorInvalidValue;
  *work = (Work){.type = cudaGraphNodeTypeKernel, .launch = {.kernel = kernel, .shape = shape}};
  work->launch.parameters =
      runtime_gather_arguments(entry, params->kernelParams, packed, packed_bytes);
  return work->launch.parameters ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t work_of_child(cudaGraph_t child, Work *work) {
  *work = (Work){.type = cudaGraphNodeTypeGraph};
  return graph_known(child) ? graph_clone(child, &work->child) : cudaErrorInvalidValue;
}

/* The address is the same at every launch. The memory exists from this node on. */
static cudaError_t allocate_for_graph(struct cudaMemAllocNodeParams *params) {
  cudaError_t error = cudaMalloc(&params->dptr, params->bytesize);
  if (error == cudaSuccess) memory_give_to_graph((uint64_t)(uintptr_t)params->dptr);
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
  (void)edges;
  Work work;
  cudaError_t error = work_of_node(params, &work);
  if (error == cudaSuccess && work.type == cudaGraphNodeTypeMemAlloc)
    params->alloc.dptr = work.allocation.dptr;
  return add_work(node, graph, dependencies, count, &work, error);
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
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *dependencies, size_t count,
                                           const void *symbol, const void *from, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind) {
  char *part = NULL;
  cudaError_t error = runtime_symbol_part(symbol, bytes, offset, &part);
  Work work = work_of_copy(part, from, bytes, kind);
  return add_work(node, graph, dependencies, count, &work, error);
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                             const cudaGraphNode_t *dependencies, size_t count,
                                             void *to, const void *symbol, size_t bytes,
                                             size_t offset, enum cudaMemcpyKind kind) {
  char *part = NULL;
  cudaError_t error = runtime_symbol_part(symbol, bytes, offset, &part);
  Work work = work_of_copy(to, part, bytes, kind);
  return add_work(node, graph, dependencies, count, &work, error);
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
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaEvent_t event) {
  Work work = {.type = cudaGraphNodeTypeEventRecord, .event = event};
  return add_work(node, graph, dependencies, count, &work, cudaSuccess);
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *dependencies, size_t count,
                                      cudaEvent_t event) {
  Work work = {.type = cudaGraphNodeTypeWaitEvent, .event = event};
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
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *params) {
  if (!is_type(node, cudaGraphNodeTypeMemcpy, params)) return runtime_answer(cudaErrorInvalidValue);
  *params = node->work.copy;
  return cudaSuccess;
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *params) {
  if (!is_type(node, cudaGraphNodeTypeMemset, params)) return runtime_answer(cudaErrorInvalidValue);
  *params = node->work.fill;
  return cudaSuccess;
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *params) {
  if (!is_type(node, cudaGraphNodeTypeHost, params)) return runtime_answer(cudaErrorInvalidValue);
  *params = node->work.host;
  return cudaSuccess;
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
  if (!is_type(node, cudaGraphNodeTypeGraph, graph)) return runtime_answer(cudaErrorInvalidValue);
  *graph = node->work.child;
  return cudaSuccess;
}
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  if (!is_type(node, cudaGraphNodeTypeEventRecord, event))
    return runtime_answer(cudaErrorInvalidValue);
  *event = node->work.event;
  return cudaSuccess;
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  if (!is_type(node, cudaGraphNodeTypeWaitEvent, event))
    return runtime_answer(cudaErrorInvalidValue);
  *event = node->work.event;
  return cudaSuccess;
}

/* New parameters do not change what attributes have set. */
static cudaError_t replace_work(cudaGraphNode_t node, Work *work, cudaError_t error) {
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
  return replace_work(node, &work, error);
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *params) {
  if (!params) return runtime_answer(cudaErrorInvalidValue);
  Work work = {.type = cudaGraphNodeTypeMemcpy, .copy = *params};
  return replace_work(node, &work, cudaSuccess);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from,
                                           size_t bytes, enum cudaMemcpyKind kind) {
  Work work = work_of_copy(to, from, bytes, kind);
  return replace_work(node, &work, cudaSuccess);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *params) {
  if (!params) return runtime_answer(cudaErrorInvalidValue);
  Work work = {.type = cudaGraphNodeTypeMemset, .fill = *params};
  return replace_work(node, &work, cudaSuccess);
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *params) {
  if (!params) return runtime_answer(cudaErrorInvalidValue);
  Work work = {.type = cudaGraphNodeTypeHost, .host = *params};
  return replace_work(node, &work, cudaSuccess);
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params) {
  Work work;
  cudaError_t error = work_of_node(params, &work);
  return replace_work(node, &work, error);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            const cudaLaunchAttributeValue *value) {
  if (!is_type(node, cudaGraphNodeTypeKernel, value)) return runtime_answer(cudaErrorInvalidValue);
  cudaLaunchAttribute attribute = {.id = id, .val = *value};
  return runtime_answer(runtime_read_attributes(&attribute, 1, &node->work.launch.shape));
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            cudaLaunchAttributeValue *value) {
  if (!is_type(node, cudaGraphNodeTypeKernel, value)) return runtime_answer(cudaErrorInvalidValue);
  const LaunchShape *shape = &node->work.launch.shape;
  memset(value, 0, sizeof *value);
  if (id == cudaLaunchAttributeCooperative) value->cooperative = shape->cooperative;
  if (id == cudaLaunchAttributeClusterDimension) {
    value->clusterDim.x = shape->cluster.x;
    value->clusterDim.y = shape->cluster.y;
    value->clusterDim.z = shape->cluster.z;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  if (!is_type(to, cudaGraphNodeTypeKernel, from) || !is_type(from, cudaGraphNodeTypeKernel, to))
    return runtime_answer(cudaErrorInvalidValue);
  to->work.launch.shape.cluster = from->work.launch.shape.cluster;
  to->work.launch.shape.cooperative = from->work.launch.shape.cooperative;
  return cudaSuccess;
}

/* ---- Executable graphs ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags) {
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
  **exec = (struct CUgraphExec_st){copy, flags};
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
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags) {
  if (!exec_known(exec) || !flags) return runtime_answer(cudaErrorInvalidValue);
  *flags = exec->flags;
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
  return exec_known(exec) && node_known(node) ? find_copy(exec->graph, node) : NULL;
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  cudaGraphNode_t own = node_of(exec, node);
  if (!own) return runtime_answer(cudaErrorInvalidValue);
  own->disabled = !enabled;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled) {
  cudaGraphNode_t own = node_of(exec, node);
  if (!own || !enabled) return runtime_answer(cudaErrorInvalidValue);
  *enabled = !own->disabled;
  return cudaSuccess;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params) {
  return cudaGraphKernelNodeSetParams(node_of(exec, node), params);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *params) {
  return cudaGraphMemcpyNodeSetParams(node_of(exec, node), params);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                               const void *from, size_t bytes,
                                               enum cudaMemcpyKind kind) {
  return cudaGraphMemcpyNodeSetParams1D(node_of(exec, node), to, from, bytes, kind);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *params) {
  return cudaGraphMemsetNodeSetParams(node_of(exec, node), params);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *params) {
  return cudaGraphHostNodeSetParams(node_of(exec, node), params);
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *params) {
  return cudaGraphNodeSetParams(node_of(exec, node), params);
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  Work work;
  cudaError_t error = work_of_child(child, &work);
  return replace_work(node_of(exec, node), &work, error);
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
