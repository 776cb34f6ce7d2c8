/* runtime_graph.c: graphs: captured streams. A node has work and comes after the nodes that it depends on, all of
 * which were captured before it, so a graph runs node after node. */
#include <stdlib.h>
#include <string.h>

#include "base/holds.h"
#include "runtime/handles.h"
#include "runtime/runtime.h"

struct CUgraphNode_st {
  Work work;
  NodeList dependencies;
  size_t place; /* in its graph */
};
struct CUgraph_st {
  NodeList nodes;
  /* What comes before the end of the last run: runs of one executable graph do not overlap. */
  StreamClock finished;
  cudaGraph_t run_of; /* in the copy that is run: that executable graph; NULL: not a copy */
};
struct CUgraphExec_st {
  cudaGraph_t graph;
};

static bool graph_known(cudaGraph_t graph) { return handle_is(graph, HANDLE_GRAPH); }
static bool exec_known(cudaGraphExec_t exec) { return handle_is(exec, HANDLE_EXEC); }

/* ---- Lists of nodes ---- */

static bool nodes_hold(const NodeList *list, cudaGraphNode_t node) {
  for (size_t i = 0; i < list->count; i++)
    if (list->nodes[i] == node) return true;
  return false;
}
static void append_node(NodeList *list, cudaGraphNode_t node) {
  list->nodes = grown_list(list->nodes, list->count, &list->capacity, sizeof *list->nodes);
  list->nodes[list->count++] = node;
}
void nodes_add(NodeList *list, cudaGraphNode_t node) {
  if (!nodes_hold(list, node)) append_node(list, node);
}
void nodes_clear(NodeList *list) { list->count = 0; }

/* ---- Graphs ---- */

cudaGraph_t graph_create(void) {
  cudaGraph_t graph = new_zeros(1, sizeof *graph);
  handle_add(graph, HANDLE_GRAPH);
  return graph;
}

static void free_node(cudaGraphNode_t node) {
  work_free(&node->work);
  free(node->dependencies.nodes);
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

cudaGraphNode_t graph_add(cudaGraph_t graph, const NodeList *dependencies, Work *work) {
  cudaGraphNode_t node = new_zeros(1, sizeof *node);
  *node = (struct CUgraphNode_st){.work = *work, .place = graph->nodes.count};
  for (size_t i = 0; i < dependencies->count; i++) {
    HOLDS(dependencies->nodes[i]->place < node->place); /* so a graph runs node after node */
    nodes_add(&node->dependencies, dependencies->nodes[i]);
  }
  append_node(&graph->nodes, node);
  return node;
}

bool graph_has_other_ends(cudaGraph_t graph, const NodeList *nodes) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    cudaGraphNode_t node = graph->nodes.nodes[i];
    bool is_end = !nodes_hold(nodes, node);
    for (size_t k = i + 1; is_end && k < graph->nodes.count; k++)
      is_end = !nodes_hold(&graph->nodes.nodes[k]->dependencies, node);
    if (is_end) return true;
  }
  return false;
}

cudaGraph_t graph_clone(cudaGraph_t graph) {
  cudaGraph_t clone = graph_create();
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const struct CUgraphNode_st *node = graph->nodes.nodes[i];
    Work work = work_copy(&node->work);
    cudaGraphNode_t copy = graph_add(clone, &(NodeList){0}, &work);
    for (size_t k = 0; k < node->dependencies.count; k++)
      nodes_add(&copy->dependencies, clone->nodes.nodes[node->dependencies.nodes[k]->place]);
  }
  return clone;
}

/* ---- A run ---- */

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
  if (!stream_order_wanted() || graph->nodes.count == 0) return;
  run->nodes = new_zeros(graph->nodes.count, sizeof *run->nodes);
  run->order = stream_order(stream);
  run->timeline = run->order->timeline;
  run->begin = run->order->clock;
  stream_order_join(&run->begin, graph->run_of ? &graph->run_of->finished : &graph->finished);
  run->end = run->begin;
}

/* A node continues the branch of a node that it depends on, if no other node has. */
static void graph_order_node(const GraphOrder *run, cudaGraphNode_t node) {
  if (!run->nodes) return;
  *run->order = (StreamOrder){.timeline = NO_TIMELINE, .clock = run->begin};
  for (size_t i = 0; i < node->dependencies.count; i++) {
    StreamOrder *before = &run->nodes[node->dependencies.nodes[i]->place];
    stream_order_join(&run->order->clock, &before->clock);
    if (run->order->timeline != NO_TIMELINE) continue;
    run->order->timeline = before->timeline;
    before->timeline = NO_TIMELINE;
  }
}

static void graph_order_ended(GraphOrder *run, size_t place) {
  if (!run->nodes) return;
  run->nodes[place] = *run->order;
  stream_order_join(&run->end, &run->order->clock);
}

static void graph_order_end(GraphOrder *run, cudaGraph_t graph, cudaStream_t stream) {
  if (!run->nodes) return;
  for (size_t i = 0; i < graph->nodes.count; i++) stream_order_end_timeline(&run->nodes[i]);
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
    Work work = work_copy(&node->work);
    graph_order_node(&run, node);
    error = stream_run(stream, &work);
    graph_order_ended(&run, i);
  }
  graph_order_end(&run, graph, stream);
  return error;
}

/* As many nodes as fit, or only their number if there is no array. */
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  if (!graph_known(graph) || !count) return runtime_answer(cudaErrorInvalidValue);
  const NodeList *list = &graph->nodes;
  for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < list->count ? list->nodes[i] : NULL;
  if (!nodes || *count > list->count) *count = list->count;
  return cudaSuccess;
}

/* ---- Executable graphs: copies of graphs that can be launched ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  (void)flags;
  if (!exec || !graph_known(graph)) return runtime_answer(cudaErrorInvalidValue);
  NEED(runtime_known_fault());
  *exec = new_zeros(1, sizeof **exec);
  (*exec)->graph = graph_clone(graph);
  handle_add(*exec, HANDLE_EXEC);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
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
  Work work = {.type = cudaGraphNodeTypeGraph, .child = graph_clone(exec->graph)};
  if (!stream_captures(stream)) work.child->run_of = exec->graph;
  return runtime_answer(stream_submit(stream, &work));
}

static bool same_form(cudaGraph_t a, cudaGraph_t b) {
  if (a->nodes.count != b->nodes.count) return false;
  for (size_t i = 0; i < a->nodes.count; i++) {
    cudaGraphNode_t left = a->nodes.nodes[i], right = b->nodes.nodes[i];
    if (left->work.type != right->work.type ||
        left->dependencies.count != right->dependencies.count)
      return false;
    for (size_t k = 0; k < left->dependencies.count; k++)
      if (left->dependencies.nodes[k]->place != right->dependencies.nodes[k]->place) return false;
  }
  return true;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result) {
  if (!exec_known(exec) || !graph_known(graph) || !result)
    return runtime_answer(cudaErrorInvalidValue);
  memset(result, 0, sizeof *result);
  if (!same_form(exec->graph, graph)) {
    result->result = cudaGraphExecUpdateErrorTopologyChanged;
    return runtime_answer(cudaErrorGraphExecUpdateFailure);
  }
  cudaGraph_t copy = graph_clone(graph);
  cudaGraphDestroy(exec->graph);
  exec->graph = copy;
  result->result = cudaGraphExecUpdateSuccess;
  return cudaSuccess;
}
