/* runtime_graph.c: graphs: nodes with work and dependencies, built by calls or by stream capture,
 * which run node after node. */
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
void nodes_clear(NodeList *list) { list->count = 0; }

/* Returns a list of nodes: as many as fit, or only their number if there is no array. */
static cudaError_t give_nodes(const NodeList *list, cudaGraphNode_t *nodes, size_t *count) {
  if (!count) return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < list->count ? list->nodes[i] : NULL;
  if (!nodes || *count > list->count) *count = list->count;
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
  free(graph->nodes.nodes);
  free(graph);
  return cudaSuccess;
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
    error = work_copy(&node->work, &work);
    if (error == cudaSuccess) error = stream_run(stream, &work);
    graph_order_ended(&run, i);
  }
  graph_order_end(&run, graph, stream);
  return error;
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
  if (!clone || !graph_known(graph)) return runtime_answer(cudaErrorInvalidValue);
  return runtime_answer(graph_clone(graph, clone));
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
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
  if (!node_known(node) || !type) return runtime_answer(cudaErrorInvalidValue);
  *type = node->work.type;
  return cudaSuccess;
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
