/* machine.h: shared by machine.c, context.c, scheduler.c and hang.c. */
#pragma once

#include "base/warp.h"
#include "flow/flow.h"
#include "state/cluster.h"
#include "state/groups.h"

/* A cluster's memory, reused for one cluster after the other. */
typedef struct Context Context;
struct Context {
  Cluster cluster;
  struct ClusterFlow flow;
  Cta ctas[MAX_CLUSTER_CTAS];
  struct CtaBarriers barriers[MAX_CLUSTER_CTAS];
  Warp *warps; /* of all blocks */
  struct WarpFlow *warp_flows;
  uint32_t warp_count; /* of all blocks */
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
  CLUSTER_WAITS,  /* for its turn */
  CLUSTER_POLLS,  /* had its turn and only polls: others should run first */
  CLUSTER_PAUSES, /* had its turn and passes it on: the random schedule says so */
  CLUSTER_FAULT
} ClusterEnd;
ClusterEnd cluster_run(Context *context);
typedef struct {
  bool worked, yielded, fault;
} RoundResult;
void run_one(Context *context, Warp *warp, uint32_t steps, bool expire, RoundResult *round);
/* One instruction at a time, for exploration. Merges the group with those at the same instruction,
 * makes it the current one, and returns its instruction and the lanes that the guard enables. */
const Instruction *warp_next_instruction(Warp *warp, uint32_t group, LaneMask *active);
StepResult warp_one_instruction(Warp *warp); /* of the current group */
/* The first of the wanted groups in the order in which the machine runs them; -1: none. */
int warp_pick_group(const Warp *warp, bool (*wanted)(const Warp *warp, uint32_t group));

/* Threads that wait for a time are not kept waiting: the clock advances by so many clocks, then by more each time. After
 * the last one it does so no more: that is hours, and no program waits that long. */
#define FIRST_HURRY (1ull << 14)
#define LAST_HURRY (1ull << 44)

/* spinning.c: checks whether the warps spin without making progress. This happens rarely: first
 * after this many steps, or this many rounds in which all warps only waited, then after twice as
 * many, and so on. */
enum { FIRST_LOOK_STEPS = 1 << 22, FIRST_LOOK_ROUNDS = 16 };
typedef enum {
  PROGRESS_POSSIBLE, /* something happens, or may still happen */
  PROGRESS_NEVER,    /* nothing ever will */
  /* nothing will happen unless other clusters or the host change global memory */
  PROGRESS_BY_OTHERS,
  PROGRESS_FAULT
} Progress;
Progress check_progress(Context *context);
/* moves polling warps to the instruction where they wait, for the report */
void stand_still(Context *context);
/* scheduler.c: says once that the launch has been running for long, if it has */
void notice_long_run(const Context *context);
/* hang.c: the text of that note */
void report_long_run(const Context *context, unsigned seconds, uint32_t ended, uint32_t total);
/* hang.c: ends the launch with a report of what each warp waits for */
void report_hang(Context **contexts, uint32_t count, const char *why);
