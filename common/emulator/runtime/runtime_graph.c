/* runtime_graph.c: graphs: nodes with work and dependencies, built by calls or by stream capture,
 * which run node after node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "runtime/graph.h"

/* ---- Lists of nodes ---- */

static bool nodes_hold(const NodeList *list, cudaGraphNode_t node) {
  for (size_t i = 0; i < list->count; i++)
    if (list->nodes[i] == node) return true;
  return false;
}
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

/* ---- Edges ---- */

bool graph_edge_allowed(cudaGraphNode_t from, const Work *to, const cudaGraphEdgeData *edge) {
  if (!edge || edge->type == cudaGraphDependencyTypeDefault)
    return !edge || (edge->from_port == 0 && edge->to_port == 0);
  return edge->type == cudaGraphDependencyTypeProgrammatic && edge->from_port >= 1 &&
         edge->from_port <= EDGE_PORTS && edge->to_port == 0 &&
         from->work.type == cudaGraphNodeTypeKernel && to->type == cudaGraphNodeTypeKernel;
}

void graph_set_edge(cudaGraphNode_t from, cudaGraphNode_t to, const cudaGraphEdgeData *edge) {
  if (edge && edge->type == cudaGraphDependencyTypeProgrammatic)
    nodes_add(&to->early[edge->from_port - 1], from);
}

static void read_edge(cudaGraphNode_t from, cudaGraphNode_t to, cudaGraphEdgeData *edge) {
  memset(edge, 0, sizeof *edge);
  for (int port = 0; port < EDGE_PORTS; port++) {
    if (!nodes_hold(&to->early[port], from)) continue;
    edge->type = cudaGraphDependencyTypeProgrammatic;
    edge->from_port = (unsigned char)(port + 1);
  }
}

static void remove_dependency(cudaGraphNode_t node, cudaGraphNode_t from) {
  nodes_remove(&node->dependencies, from);
  for (int port = 0; port < EDGE_PORTS; port++) nodes_remove(&node->early[port], from);
}

static void free_node(cudaGraphNode_t node) {
  handle_remove(node);
  work_free(&node->work);
  free(node->dependencies.nodes);
  for (int port = 0; port < EDGE_PORTS; port++) free(node->early[port].nodes);
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
  for (size_t i = 0; i < all->count; i++) remove_dependency(all->nodes[i], node);
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

cudaGraphNode_t graph_find_copy(cudaGraph_t graph, cudaGraphNode_t original) {
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
      bool ready = !graph_find_copy(clone, node);
      for (size_t k = 0; ready && k < needs->count; k++)
        ready = graph_find_copy(clone, needs->nodes[k]) != NULL;
      if (!ready) continue;
      Work work;
      cudaError_t error = work_copy(&node->work, &work);
      if (error != cudaSuccess) return error;
      cudaGraphNode_t copy = graph_add(clone, NULL, 0, &work);
      if (!copy) return cudaErrorMemoryAllocation;
      copy->original = node;
      copy->disabled = node->disabled;
      for (size_t k = 0; k < needs->count; k++)
        append(&copy->dependencies, graph_find_copy(clone, needs->nodes[k]));
      for (int port = 0; port < EDGE_PORTS; port++)
        for (size_t k = 0; k < node->early[port].count; k++) {
          append(&copy->early[port], graph_find_copy(clone, node->early[port].nodes[k]));
          if (port == 0) copy->work.launch.shape.overlaps = true;
          if (port == 1) copy->work.launch.shape.overlaps_begun = true;
        }
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
  *copy = graph_find_copy(clone, original);
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
      if (edges) read_edge(from[found], node, &edges[found]);
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
  const NodeList *all = &node->dependencies;
  for (size_t i = 0; edges && nodes && count && i < *count && i < all->count; i++)
    read_edge(all->nodes[i], node, &edges[i]);
  return give_nodes(all, nodes, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                           cudaGraphEdgeData *edges, size_t *count) {
  if (!node_known(node)) return runtime_answer(cudaErrorInvalidValue);
  NodeList dependents = {0};
  const NodeList *all = &node->graph->nodes;
  for (size_t i = 0; i < all->count; i++)
    if (nodes_hold(&all->nodes[i]->dependencies, node)) append(&dependents, all->nodes[i]);
  for (size_t i = 0; edges && nodes && count && i < *count && i < dependents.count; i++)
    read_edge(node, dependents.nodes[i], &edges[i]);
  cudaError_t error = give_nodes(&dependents, nodes, count);
  free(dependents.nodes);
  return error;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                     size_t count) {
  if (!graph_known(graph) || !nodes_known(from, count) || !nodes_known(to, count))
    return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; i++)
    if (from[i] == to[i] || nodes_hold(&to[i]->dependencies, from[i]) ||
        !graph_edge_allowed(from[i], &to[i]->work, edges ? &edges[i] : NULL))
      return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; i++) {
    append(&to[i]->dependencies, from[i]);
    graph_set_edge(from[i], to[i], edges ? &edges[i] : NULL);
  }
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
    remove_dependency(to[i], from[i]);
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
