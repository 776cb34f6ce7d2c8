/* machine.h: what machine.c, context.c, scheduler.c, hang.c and the flow_*.c rooms share.
 *
 * A warp is divided into groups of lanes that stand at one place with one call stack; one group
 * runs at a time. The group with the deepest stack, then the lowest place, goes first, for
 * compilers put the place where ways meet again behind all of them. Groups that meet at a leader
 * become one. */
#ifndef EMULATOR_MACHINE_H
#define EMULATOR_MACHINE_H

#include <pthread.h>

#include "base/emulator.h"
#include "ptx/program.h"

/* One call: where its caller goes on. Groups that split inside the callee share it. */
typedef struct Frame Frame;
struct Frame {
  Frame *parent;
  const Function *caller;
  const CallSite *call;
  uint32_t return_place;
  uint32_t references;
  uint32_t depth;
  uint32_t frame_bytes; /* by which the caller's .local frame moved */
  const Function *callee;
  uint8_t *saved; /* a recursive call: the caller's registers, NULL otherwise */
  uint32_t *saved_predicates;
  uint32_t stack_top[LANES]; /* of the caller, when the callee uses alloca */
};

typedef enum {
  GROUP_READY,
  GROUP_YIELDED, /* others first */
  GROUP_BLOCKED  /* until cluster->changes moves away from `seen` */
} GroupState;

typedef struct {
  LaneMask mask;
  uint32_t place;
  const Function *function;
  Frame *frame;
  uint64_t seen;
  uint32_t generation; /* of the barrier at which it has arrived */
  uint8_t state;
  bool arrived; /* at the named or cluster barrier where it stands: it only waits now */
} Group;

struct WarpFlow {
  Group groups[LANES];
  uint32_t count, current;
  uint32_t backward_jumps;  /* of the running group while others waited */
  uint32_t cluster_arrived; /* lanes that have arrived at the cluster barrier and not waited */
  uint32_t cluster_generation[LANES]; /* which round of it each lane arrived in */
  LaneMask cluster_relaxed;           /* lanes whose last arrival was .relaxed */
  uint32_t stack_top[LANES];          /* what alloca has left of .local memory, from above */
  uint32_t register_changes;          /* how many setmaxnreg it has executed */
  int16_t register_limits[8];         /* the last of them; negative: .dec */
};

/* Named barriers of a CTA. */
enum { BARRIERS = 16 };
typedef struct {
  uint32_t generation;   /* completed rounds */
  uint32_t expected;     /* threads; 0: all that have not exited */
  uint32_t arrived;      /* threads, warps with missing lanes counted whole when `expected` */
  uint32_t live_arrived; /* threads as they are */
  uint32_t count_of_true, result_count;     /* bar.red: of the running round, of the last one */
  uint32_t contributed, result_contributed; /* threads that took part in it */
  LaneMask warp_arrived[32];                /* in the running round, by warp */
} NamedBarrier;
struct CtaBarriers {
  NamedBarrier barriers[BARRIERS];
  uint32_t busy; /* bit n: somebody has arrived at barrier n */
  uint32_t live_threads;
};

struct ClusterFlow {
  uint64_t steps;       /* warp instructions executed: the cluster's clock */
  uint64_t extra_time;  /* of nanosleep and expired waits, in clocks */
  uint64_t quiet_steps; /* since changes last moved */
  uint64_t seen_changes;
  bool has_turn, wants_turn;
  uint32_t barrier_arrived, barrier_generation; /* barrier.cluster: threads */
  uint32_t live_threads;
  uint32_t running_warps;
  uint32_t expirations;
  char *output; /* of printf */
  size_t output_used, output_size;
};

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
  bool suspended;
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
static inline Group *current_group(Warp *warp) { return &warp->flow->groups[warp->flow->current]; }
static inline LaneMask live_lanes(const Warp *warp) { return warp->lanes & ~warp->exited; }
Group *split_group(struct WarpFlow *flow, LaneMask mask); /* takes lanes out of the current one */
void jump_lanes(Warp *warp, LaneMask mask, uint32_t from, uint32_t target);
void drop_group(struct WarpFlow *flow, uint32_t index);

/* flow_call.c */
void frame_release(Frame *frame);
StepResult return_lanes(Warp *warp, uint32_t place, LaneMask mask);
/* flow_barrier.c: threads have left; barriers that waited for them may be complete */
void barriers_thread_exit(Warp *warp, LaneMask exiting);
/* hang.c: ends the launch with a report of who waits for what */
void report_hang(Context **contexts, uint32_t count, const char *why);
/* context.c: clock of the emulated chip */
uint64_t cluster_clock(const Cluster *cluster);
void cluster_print(Cluster *cluster, const char *text, size_t bytes);

/* Rows of the flow rooms, joined in flow.c. */
bool decode_named_barrier(Decoder *, const PtxStatement *, Instruction *);
bool decode_cluster_barrier(Decoder *, const PtxStatement *, Instruction *);
bool decode_warp_barrier(Decoder *, const PtxStatement *, Instruction *);
bool decode_vote(Decoder *, const PtxStatement *, Instruction *);
bool decode_shuffle(Decoder *, const PtxStatement *, Instruction *);
bool decode_match(Decoder *, const PtxStatement *, Instruction *);
bool decode_redux(Decoder *, const PtxStatement *, Instruction *);
bool decode_elect(Decoder *, const PtxStatement *, Instruction *);
bool decode_activemask(Decoder *, const PtxStatement *, Instruction *);

#endif
