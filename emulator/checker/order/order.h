/* order.h: who has seen what.
 *
 * A cluster has one clock, which advances with every access and every release. Every warp has a time: that of the
 * last thing it did. Its vector `seen` says up to which time it has seen the work of each other warp, its agent.
 * Through barriers, mbarriers, fences and strong accesses, a warp inherits what others had seen. An access of
 * warp w at time t is ordered before x when x has seen[w] >= t; seen[x] itself is infinite. Between two things
 * that order it with others (its epoch) a warp's accesses by one instruction share one time, because nothing
 * distinguishes them.
 *
 * Further vectors say more of less. `fenced`: what the asynchronous proxy may rely on in a space. It follows
 * `seen` at each fence.proxy.async for the space, wherever that fence is on the path: in the writer before the
 * barrier, or in the thread that issues the copy after it. `published`: what a warp may rely on when it uses what
 * others have written; an arrival at a barrier of another block whose release has the scope .cta hands on `seen`,
 * which is enough to overwrite what others have read, and not `published`. It exists in clusters of several blocks.
 * The bytes of a copy hand on what its issuer knew when it issued the copy (OrderPast). Each mbarrier has a place in
 * these vectors, too: how many of its phases are known to be complete. What is known of other clusters is in trees of such vectors
 * (clock_trees.c).
 *
 * vector_clocks.c keeps time and vectors; barriers.c, through_shared.c and through_global.c hand them on. The
 * state is OrderState. Of it other folders read the record of an agent (order_of) and of a block (order_block), and
 * know only what the functions below say.
 *
 * Holds always: vectors only grow while a cluster runs, so what was ordered once stays so; and what is not known
 * here, for want of time or memory, counts as ordered, so that no correct program is accused. */
#pragma once

#include "base/events.h"
#include "base/fault.h"
#include "state/operation.h"

enum {
  /* mbarriers of a cluster that have a place in the vectors; further ones have none */
  BARRIER_PLACES = 128,
  NO_PLACE = UINT32_MAX,
  TIME_MOST = 0x3fffffff,
  WORD_BYTES = 4
};

typedef struct ClusterCheck ClusterCheck;

/* Orders of accesses to global memory. */
typedef enum {
  KNOWN,               /* causality order */
  KNOWN_ACQUIRED,      /* the same, but every strong read acquires */
  KNOWN_ANY_SCOPE,     /* the same, and all scopes include all threads: for reports */
  KNOWN_FENCED,        /* what the asynchronous proxy may rely on: as Clock.fenced[FENCED_GLOBAL] */
  KNOWN_FENCED_SHARED, /* the same for shared memory of the own cluster */
  KNOWN_DEPENDS,       /* every strong store releases, too: what a store may depend on */
  KNOWN_ANY_FENCE, /* causality order, if the scopes of this side's fences include all threads */
  KNOWN_SC,        /* what came before a fence.sc that is ordered before this by barriers */
  KNOWN_SC_READ,   /* the same, before a write that a strong read has seen */
  KNOWN_KINDS_COUNT
} KnownKind;
/* What is known about the warps of other clusters; NULL: nothing. For KNOWN_ACQUIRED,
 * KNOWN_ANY_SCOPE and the kinds below them also what is known about warps of the own cluster beyond
 * Clock.seen. */
typedef struct {
  const void *tree[KNOWN_KINDS_COUNT];
} GlobalKnowledge;
/* The clocks of a cluster's warps, and of its mbarriers behind them. */
typedef struct {
  uint32_t count, clocks[];
} KnownLeaf;

/* What a proxy fence makes ready for the asynchronous proxy. */
enum {
  FENCED_SHARED, /* what threads have written to shared memory of their own block */
  FENCED_PEERS,  /* to that of other blocks; exists in clusters of several blocks */
  FENCED_GLOBAL, /* to global memory */
  FENCED_SPACES
};
typedef struct {
  uint32_t *seen, *fenced[FENCED_SPACES];
  uint32_t *published; /* NULL in clusters of one block */
  GlobalKnowledge known;
} Clock;

/* When an instruction last made an access. */
typedef struct {
  const Instruction *in;
  uint32_t time;
} TimeSlot;

/* An access, as looked up by its time. */
typedef struct {
  const Instruction *in;
  bool strong;
} AccessSite;

enum { SCOPES = 3 }; /* .cta, .cluster, and .gpu with .sys: all agents are on one device */
/* What a warp's accesses to global memory have handed on. */
typedef struct {
  GlobalKnowledge fence[SCOPES]; /* what its last fence of this scope has released */
  GlobalKnowledge read[SCOPES];  /* what a fence of this scope would acquire */
  GlobalKnowledge updated;       /* what atomics that it read have released: for bar.sync */
  bool any_fence;
  /* The lock that it has taken by a compare-and-swap. fence: the widest one since, as a Reach.
   * handed: from a warp that has released it. */
  uint64_t lock;
  uint8_t lock_fence;
  bool lock_handed;
  bool strong_write, strong_read; /* it has made such accesses: for hints */
} GlobalWarp;

/* What some lanes of a warp have acquired, and the others have not. */
typedef struct {
  bool apart;               /* there is such a thing; else the rest is not valid */
  LaneMask learnt;          /* the lanes that know it, as far as is known here */
  const Instruction *in;    /* where the first of them acquired it */
  uint32_t since;           /* the warp's time then */
  uint32_t *before;         /* what the warp had seen before; NULL: not needed so far */
  const void *known_before; /* the same of other clusters: GlobalKnowledge.tree[KNOWN] */
} LaneKnowledge;

/* Of a warp, which is called an agent here. */
typedef struct {
  Clock clock;  /* what it has seen */
  uint32_t now; /* its time: that of the last thing it did */
  uint32_t
      last_release; /* its time at its last release, which has handed on what it had done by then */
  uint32_t epoch;   /* when its epoch began */
  uint32_t known_until;    /* in known_epoch it knows all writes up to this time */
  uint32_t known_epoch;    /* the epoch in which that was computed */
  uint32_t cluster_waited; /* 1 + the last round of barrier.cluster that it has waited for */
  /* One bit for each warp of its block that had exited, without arriving, when a barrier completed that this one has
   * waited for: that barrier did not wait for them. */
  uint32_t exited_before;
  const Instruction *exit; /* where its last threads exited; NULL: not yet */
  /* Its last arrival with .relaxed at an mbarrier or the cluster barrier, and when; NULL: none. */
  const Instruction *relaxed_arrival;
  uint32_t relaxed_time;
  LaneKnowledge lanes;
  Clock observed; /* what relaxed waits for mbarriers have shown it: its next fence acquires that */
  GlobalWarp global;
} AgentOrder;

/* Of a block: how far its barriers are. */
typedef struct {
  Clock arriving[NAMED_BARRIERS], passed[NAMED_BARRIERS];
  /* __syncthreads(), barrier 0: where its first warp stands and one at another line, in the running
   * round, and in the first round that was passed in this way; NULL: none */
  const Instruction *standing[2], *passed_apart[2];
  /* the last arrival of its threads at another block's barrier with a release of .cta scope; NULL: none */
  const Instruction *narrow_arrival;
  /* what barrier.cluster has told it, without regard to release and acquire: tells whether a peer is done */
  Clock leaving_seen;
  uint32_t exited_warps; /* one bit for each warp, as in the fields below */
  uint32_t arrived_warps[NAMED_BARRIERS],
      left_warps[NAMED_BARRIERS]; /* left: exited before the last round */
} BlockOrder;

/* Of a cluster. */
typedef struct {
  uint32_t width;    /* number of vector elements in use: agents and mbarriers */
  uint32_t capacity; /* number of elements that each vector has */
  uint32_t *vectors; /* all vectors, one block */
  size_t vector_capacity;
  size_t vectors_used;
  uint32_t begun; /* the time when the cluster began, after its first epochs */
  AgentOrder *agents;
  BlockOrder blocks[MAX_CLUSTER_CTAS];
  uint32_t *last_read, *last_write; /* for each agent, in whole pieces: its last access; 0: none */
  /* The same: the clock of its last release and of the one before; its first write since then;
   * UINT32_MAX: none. */
  uint32_t *released[2], *first_write[2];
  TimeSlot *times;           /* TIME_SLOTS of each agent */
  uint64_t *places;          /* for the last times: the instruction */
  Clock cluster_arriving[2]; /* barrier.cluster, by the parity of its round */
  uint32_t cluster_round[2];
  Clock cluster_leaving[2]; /* the same without regard to release and acquire */
  /* For each agent: up to which time other agents have seen its writes before a proxy fence of theirs. */
  uint32_t *fenced_by_others;
  bool any_narrow;                /* some block has a narrow_arrival */
  bool any_fenced[FENCED_SPACES]; /* a proxy fence for this space has been executed */
  struct OrderPast *pasts;        /* the last one is first */
  struct OrderPast *spare_pasts;
  struct Locations *locations; /* through_shared.c; NULL: none yet */
  struct OrderLaunch *launch;  /* through_global.c; NULL: global memory is not checked */
  uint32_t cluster;            /* its number in the launch */
} OrderState;

/* What the checker knows of a cluster. Each folder has a state of its own. */
struct ClusterCheck {
  ClusterCheck *next_free;
  uint32_t warps_per_cta, agents, cta_count;
  uint32_t words;      /* of shared memory of each block that are watched */
  uint32_t now, start; /* the time; when the cluster began */
  bool crossed;        /* a thread has accessed the memory of another block: set by shared/ */
  /* What each access asks first. */
  bool lanes_checked; /* the order among lanes is known */
  bool lanes_differ;  /* since some time: what lanes know or hand on is not what their warp does */
  bool any_undefined; /* some block has undefined bits, or a trial wants to see each access */
  bool layouts_asked; /* plain reads are checked for EMULATOR_CHECK=layout */
  bool any_swaps;     /* a compare-and-swap of a word has been made */
  OrderState order;
  struct UndefinedState *undefined;
  struct SharedState *shared;
  struct LanesState *lanes;
  struct GlobalState *global;
  /* Set by lanes/: the lane of the agent that has read this word last; -1: not known. */
  int (*last_reader)(ClusterCheck *check, uint32_t agent, uint32_t rank, uint32_t word);
};

/* ---- What is known, asked at each access ---- */

static inline const AgentOrder *order_of(const ClusterCheck *check, uint32_t agent) {
  return &check->order.agents[agent];
}
static inline const BlockOrder *order_block(const ClusterCheck *check, uint32_t rank) {
  return &check->order.blocks[rank];
}
static inline uint32_t clock_of(const ClusterCheck *check, uint32_t agent) {
  return order_of(check, agent)->now;
}
static inline bool has_seen(const ClusterCheck *check, uint32_t agent, uint32_t other,
                            uint32_t clock) {
  return order_of(check, agent)->clock.seen[other] >= clock;
}
/* Is what the other agent had done by then fenced, for the asynchronous proxy in this space? */
static inline bool order_fenced(const ClusterCheck *check, uint32_t agent, int space,
                                uint32_t other, uint32_t clock) {
  return order_of(check, agent)->clock.fenced[space][other] >= clock;
}
/* Has another agent that had seen the agent's work up to then executed a proxy fence? */
static inline bool order_fenced_by_others(const ClusterCheck *check, uint32_t agent,
                                          uint32_t clock) {
  return clock <= check->order.fenced_by_others[agent];
}
/* Do releases on the way to the agent publish more to some agents than to others? */
static inline bool some_unpublished(const ClusterCheck *check) {
  return __builtin_expect(check->crossed && check->order.any_narrow, 0);
}
/* The vector that says which writes the agent may use, or one that is below it. */
static inline const uint32_t *known_writes(const ClusterCheck *check, uint32_t agent) {
  const Clock *clock = &order_of(check, agent)->clock;
  return some_unpublished(check) ? clock->published : clock->seen;
}
/* Given that the agent has seen this write of another one, has it been published to it? */
static inline bool is_published(const ClusterCheck *check, uint32_t agent, uint32_t other,
                                uint32_t clock) {
  return !some_unpublished(check) || agent / check->warps_per_cta == other / check->warps_per_cta ||
         order_of(check, agent)->clock.published[other] >= clock;
}
/* Up to which time does the agent know all writes of all agents? */
uint32_t order_find_known_until(const ClusterCheck *check, uint32_t agent);
static inline uint32_t order_known_until(const ClusterCheck *check, uint32_t agent) {
  const AgentOrder *of = order_of(check, agent);
  return of->known_epoch == of->epoch ? of->known_until : order_find_known_until(check, agent);
}
/* Has the agent seen all reads of all others? */
bool order_all_reads_seen(const ClusterCheck *check, uint32_t agent);

/* ---- Times of accesses ---- */

enum { TIME_SLOTS = 256 }; /* instructions of a warp whose time in this epoch is cached */
static inline TimeSlot *time_slot(const ClusterCheck *check, uint32_t agent,
                                  const Instruction *in) {
  return &check->order.times[agent * TIME_SLOTS + (uintptr_t)in / sizeof(Instruction) % TIME_SLOTS];
}
uint32_t order_new_time(ClusterCheck *check, uint32_t agent, const Instruction *in, bool strong);
/* The time of an access that the agent makes now. */
static inline uint32_t order_time(ClusterCheck *check, uint32_t agent, const Instruction *in,
                                  bool strong) {
  const TimeSlot *slot = time_slot(check, agent, in);
  return slot->in == in && slot->time > order_of(check, agent)->epoch
             ? slot->time
             : order_new_time(check, agent, in, strong);
}
/* The access at that time has been made to shared memory, and noted. */
static inline void order_note_access(ClusterCheck *check, uint32_t agent, uint32_t time,
                                     bool reads) {
  OrderState *order = &check->order;
  if (reads) {
    order->last_read[agent] = time;
  } else {
    order->last_write[agent] = time;
    if (order->first_write[0][agent] == UINT32_MAX) order->first_write[0][agent] = time;
  }
}
/* When the agent has read last; 0: never. */
static inline uint32_t order_last_read(const ClusterCheck *check, uint32_t agent) {
  return check->order.last_read[agent];
}
/* The time, counted from the beginning of the cluster, as in trials (trial/trial.h), whose run of it begins anew; 0: not
 * known. */
static inline uint32_t order_since_begin(const ClusterCheck *check, uint32_t time) {
  return time ? time - check->order.begun : 0;
}
/* The access at that time. If it was long ago, its line is no longer known. */
AccessSite order_site(const ClusterCheck *check, uint32_t time);
/* Starts a new epoch: later accesses of the agent are distinguished from earlier ones. */
static inline void order_begin_epoch(const ClusterCheck *check, uint32_t agent) {
  check->order.agents[agent].epoch = check->now;
}

/* ---- Vectors of other things: of mbarriers ---- */

uint32_t *order_new_vector(ClusterCheck *check);
/* A place in the vectors; NO_PLACE: none is left. */
static inline uint32_t order_new_place(ClusterCheck *check) {
  OrderState *order = &check->order;
  return order->width < order->capacity ? order->width++ : NO_PLACE;
}
/* The agent hands on what it knows, in a release of this scope at an mbarrier. of_peer: of another block.
 * REACH_PLAIN: only what its fences have released, if they are known. */
void order_release_to_barrier(Warp *warp, const Instruction *in, bool of_peer, Reach reach,
                              Clock *into);
/* The agent has waited for a phase, which has handed on `from` (NULL: it is forgotten), and now knows so
 * many of the barrier's phases to be complete. acquires: at once, else at its next fence. */
void order_acquire_phase(ClusterCheck *check, uint32_t agent, bool acquires, const Clock *from,
                         uint32_t place, uint32_t phases);
void order_forget(const ClusterCheck *check, Clock *clock);
/* What the agent knows when it issues a copy by this instruction. The complete-tx of the copy's bytes releases it at
 * an mbarrier, into its clock. NULL: that was the last time, for this call. */
typedef struct OrderPast OrderPast;
OrderPast *order_keep_past(ClusterCheck *check, uint32_t agent, const Instruction *in);
void order_hand_on(ClusterCheck *check, OrderPast *past, Clock *into);

/* ---- Strong accesses ---- */

/* A strong access to these addresses in shared memory. */
void order_locations(ClusterCheck *check, uint32_t agent, LaneMask mask, const uint32_t *addresses,
                     bool releases, bool acquires);
/* Of global memory, which may synchronise: before a write; before a read, and after it again, because
 * others may write meanwhile. repeats: a store of the value that is there already. */
void check_global_release(Warp *warp, LaneMask mask, const uint64_t *addresses,
                          const GlobalKind *kind, bool repeats);
void check_global_acquire(Warp *warp, LaneMask mask, const uint64_t *addresses,
                          const GlobalKind *kind);
/* NULL: nothing is known about that cluster of the launch. */
const KnownLeaf *order_leaf(const struct OrderLaunch *launch, const void *tree, uint32_t cluster);

/* ---- Begin and end ---- */

/* Of a launch. gave_up: becomes true, atomically, when there is too little memory for the order: nothing about global
 * memory is reported any more. */
struct OrderLaunch *order_launch_begin(uint32_t clusters, const bool **gave_up);
/* True: some warp has executed griddepcontrol.launch_dependents. */
bool order_launch_end(struct OrderLaunch *launch);
/* A cluster begins. used: data of one of its shape; NULL: none, so new ones are made. launch: NULL if global memory is
 * not checked. times_begin_again: so whoever has kept some must forget them. */
ClusterCheck *order_begin(ClusterCheck *used, const Cluster *cluster, uint32_t words,
                          struct OrderLaunch *launch, bool *times_begin_again);
