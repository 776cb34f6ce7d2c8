/* machine.h: what machine.c, context.c, scheduler.c and hang.c share. */
#ifndef EMULATOR_MACHINE_H
#define EMULATOR_MACHINE_H

#include <pthread.h>

#include "base/emulator.h"
#include "flow/flow.h"
#include "ptx/program.h"
#include "state/cluster.h"
#include "state/groups.h"

/* A cluster's memory, reused for one cluster after the other. */
typedef struct Context Context;
struct Context {
  Cluster cluster;
  struct ClusterFlow flow;
  Cta ctas[MAX_CLUSTER_CTAS];
  struct CtaBarriers barriers[MAX_CLUSTER_CTAS];
  Warp *warps; /* of all CTAs */
  struct WarpFlow *warp_flows;
  uint32_t warp_count; /* of all CTAs */
  uint8_t *registers, *local, *shared;
  uint32_t *predicates;
  Context *next;
};

/* context.c */
Context *context_new(Launch *launch);
void context_free(Context *context);
void context_begin(Context *context, uint32_t number);
void context_end(Context *context);

/* machine.c */
typedef enum {
  CLUSTER_DONE,
  CLUSTER_WAITS, /* for its turn */
  CLUSTER_POLLS, /* had its turn and only polls: others first */
  CLUSTER_FAULT
} ClusterEnd;
ClusterEnd cluster_run(Context *context);
/* hang.c: ends the launch with a report of who waits for what */
void report_hang(Context **contexts, uint32_t count, const char *why);
#endif
