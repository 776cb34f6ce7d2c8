/* graph.h: what the files about graphs share: runtime_graph.c, runtime_graph_nodes.c and
 * runtime_graph_exec.c. */
#ifndef EMULATOR_GRAPH_H
#define EMULATOR_GRAPH_H

#include "runtime/handles.h"
#include "runtime/runtime.h"

/* The ports of a kernel node other than its end: griddepcontrol.launch_dependents, and that all its
 * blocks have begun. */
enum { EDGE_PORTS = 2 };

struct CUgraphNode_st {
  cudaGraph_t graph;
  Work work;
  NodeList dependencies;
  /* Of a kernel: those of them that need not have ended, for each port of theirs (graph_edge). */
  NodeList early[EDGE_PORTS];
  cudaGraphNode_t original; /* in a clone: the node that it was made from */
  size_t place;             /* in a graph that runs: its index */
};
struct CUgraph_st {
  NodeList nodes; /* in an executable graph: each after all its dependencies */
  /* What comes before the end of the last run: runs of one executable graph do not overlap. */
  StreamClock finished;
  cudaGraph_t run_of; /* in the copy that is run: that executable graph; NULL: not a copy */
};

static inline bool graph_known(cudaGraph_t graph) { return handle_is(graph, HANDLE_GRAPH); }
static inline bool node_known(cudaGraphNode_t node) { return handle_is(node, HANDLE_NODE); }

/* Does this kind of edge exist between the two? NULL: an ordinary edge. */
bool graph_edge_allowed(cudaGraphNode_t from, const Work *to, const cudaGraphEdgeData *edge);
/* Notes the kind of a dependency. */
void graph_set_edge(cudaGraphNode_t from, cudaGraphNode_t to, const cudaGraphEdgeData *edge);

/* The node of a clone that was made from this one; NULL: there is none. */
cudaGraphNode_t graph_find_copy(cudaGraph_t graph, cudaGraphNode_t original);
/* The work of a node that runs a copy of this graph. */
cudaError_t work_of_child(cudaGraph_t child, Work *work);

#endif
