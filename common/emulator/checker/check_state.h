/* check_state.h: shared by the files of the checker.
 *
 * The checker asks two questions about every access to shared memory: what else touched these
 * bytes, and is that access ordered with this one? word_states.c, readers.c and history.c
 * answer the first question, vector_clocks.c the second. may_follow.c reports what is wrong.
 *
 * Order. A cluster has one clock, which advances with every access and every release. Every warp
 * has a time: that of the last thing it did. clocks[x].seen[w] is the time up to which warp x has
 * seen the work of warp w. Through barriers, mbarriers and fences, a warp inherits what others had
 * seen. An access of warp w at time t is ordered before x when seen[w] >= t; seen[x] is infinite.
 * clocks[x].fenced[space][w] is the same for what the asynchronous proxy may rely on in this space: it
 * follows `seen` at each fence.proxy.async for the space, wherever that fence is on the path (in the
 * writer before the barrier, or in the thread that issues the copy after it). Between two things that order it with others (its
 * epoch) a warp's accesses by one instruction share one time, because nothing distinguishes them.
 * Each mbarrier has a place in the same vectors: how many of its phases warp x knows to be
 * complete. clocks[x].published[w] is what warp x may rely on when it uses what w has written: an
 * arrival at a barrier of another block whose release has the scope .cta hands on `seen`, which is
 * enough to overwrite what w has read, and not `published`. It exists in clusters of several blocks.
 * clocks[x].before[w] is what has happened before, whether or not x may see it in memory: the bytes of
 * a copy also hand on what its issuer knew. It exists in clusters of one block. */
#ifndef EMULATOR_CHECK_STATE_H
#define EMULATOR_CHECK_STATE_H

#include "checker/check_events.h"
#include "checker/checker.h"

enum {
  /* mbarriers of a cluster that have a place in the vectors; further ones have none */
  BARRIER_PLACES = 128,
  TIME_SLOTS = 256, /* instructions of a warp whose time in this epoch is cached */
  PLACES = 1 << 14, /* number of recent times for which the instruction is kept */
  NAMED_BARRIERS = 16,
  ORIGIN_CHAINS = 256,
  LOADED_TILES = 32, /* tiles of a block whose shape is kept */
  WARPS_OF_GROUP = 4
};

typedef struct ClusterCheck ClusterCheck;

/* Orders of accesses to global memory (global.h). */
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

/* What a proxy fence makes ready for the asynchronous proxy. */
enum {
  FENCED_SHARED, /* what threads have written to shared memory of their own block */
  FENCED_PEERS,  /* to that of other blocks; exists in clusters of several blocks */
  FENCED_GLOBAL, /* to global memory */
  FENCED_SPACES
};
typedef struct {
  uint32_t *seen, *fenced[FENCED_SPACES];
  uint32_t *published, *before; /* one of them is NULL */
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

typedef struct WaitAnswer {
  uint32_t next; /* 0 before the first; then 1 + the number of complete phases */
  uint32_t
      missed; /* phases that were complete before its waits, besides those that it waited for */
  /* the answer was about a phase that the agent already knew to be complete */
  bool stale;
  const Instruction *not_yet; /* the last wait that returned "not yet" */
  LaneMask not_yet_lanes;     /* the lanes that got this answer, and none since that was true */
  const Instruction *in;
  int lane;
} WaitAnswer;

/* The last arrival of an agent of another block. */
typedef struct {
  const Instruction *in; /* NULL: none yet */
  uint32_t clock, phase;
  int lane;
} RemoteArrive;

/* The last load of a block into its own memory that has landed and counted at a barrier. */
typedef struct {
  const Instruction *in; /* NULL: none yet */
  AsyncKind kind;
  uint32_t agent, phase; /* phase: the one in which its bytes counted */
  int lane;
} LandedLoad;

typedef struct MbarrierCheck {
  uint32_t address;
  bool valid, fenced;
  bool init_released;  /* by fence.mbarrier_init: the next cluster barrier publishes the init */
  uint32_t init_round; /* 1 + the round of that cluster barrier; 0: none yet */
  uint16_t init_agent;
  int init_lane;
  uint32_t init_clock;
  uint32_t init_stamp; /* of the lane that called init; 0: known to all lanes */
  uint32_t place;      /* its index in the vectors; UINT32_MAX: none was left */
  /* The current phase, and the number of the first one after mbarrier.init. Numbers go on where the
   * barrier is initialised again, so what is known of a copy of an earlier phase remains true, and
   * says nothing about later ones. The first one is even, like its parity. */
  uint32_t phase, first_phase;
  uint32_t count;
  const Instruction *init_in;
  const Instruction *used_by_thread; /* the last instruction that was found not to be a copy's */
  /* what the threads that arrived in the current phase had seen */
  Clock arriving;
  Clock finished[2];              /* the last two phases */
  const Instruction *last_arrive; /* with agent, lane and clock: lanes of one arrive release once */
  uint32_t last_agent, last_clock, last_released;
  int last_lane;
  uint32_t finished_phase[2];
  /* The last arrive.expect_tx: its phase plus 1, the agent, and how much of the others' work it had
   * seen. */
  uint32_t armed, armed_agent, armed_clock;
  bool armed_again; /* in this phase, and by an agent that knew of the time before */
  bool announced;   /* some thread has expected bytes here, in whatever way */
  uint64_t armed_knowing;
  int armed_lane;
  struct WaitAnswer *answers; /* for each agent, the answer to its last wait */
  uint32_t *issued;           /* the vector `before` of who has issued copies to it; NULL: none */
  /* Of each agent, its clock at its last arrival; 0: none. used: when the barrier was initialised again,
   * its last use before that; NULL: it was not */
  uint32_t *arrived, *used;
  /* How many lanes of the last instruction have arrived together; and an agent of which as many have as the
   * cluster has blocks, plus 1; 0: none */
  uint32_t together, one_for_each;
  uint32_t init_time;   /* as init_clock, which is 0 once something has been reported */
  RemoteArrive *remote; /* of each agent; NULL: only its own block has arrived so far */
  LandedLoad landed;
} MbarrierCheck;

/* An asynchronous operation. */
struct AsyncCheck {
  AsyncCheck *next_of_warp; /* next operation of the warp that has not been waited for */
  AsyncCheck **link;        /* the pointer to it in that list; NULL: in no list */
  AsyncCheck *next_allocated;
  const Instruction *in;
  AsyncKind kind;
  uint16_t agent;
  uint8_t lane;
  uint32_t barrier; /* 0: completes by a group */
  bool source_read, landed, released, marked, committed;
  uint32_t into, into_end; /* a load: the offsets that its tile takes in shared memory */
  uint32_t begins;         /* a wgmma: where the operand begins that it reads now; 0: none */
  bool into_issuer;        /* it writes shared memory of the block that issued it */
  uint32_t issue_clock, issue_time;
  uint32_t issue_phase[MAX_CLUSTER_CTAS]; /* of the barrier in each block */
  /* The load whose bytes this load has overwritten: they counted in this phase of this barrier (its
   * index in the vectors; 0: none), and these agents had read some of them (bit mask of their
   * numbers modulo 64). */
  uint32_t replaced_place, replaced_phase;
  /* The same for a copy of a group: who waited for it, and when; 0: nobody. */
  uint32_t replaced_agent, replaced_clock;
  bool over_mistake; /* something wrong has been reported about bytes that it overwrites */
  uint64_t replaced_readers;
  uint32_t landing_phase[MAX_CLUSTER_CTAS]; /* of the barrier in each block */
  /* The thread's clock when its own wait showed that the operation was complete; 0: not yet. */
  uint32_t read_waited_clock, waited_clock;
  struct GlobalAccess *global; /* its access to global memory (global.h); NULL: none */
  /* cp.async: one operation of several lanes, each with its own wait: waited_clock is that of the
   * last. */
  LaneMask lanes, lanes_waited;
  uint32_t *lane_waited_clock; /* of each lane; NULL: no lane has waited before the others */
  uint64_t group;              /* wgmma: number of its group */
  /* wgmma: for each warp of the group, its clock when its wait returned; 0: not yet */
  uint32_t group_waited[WARPS_OF_GROUP];
};

/* The state of a word of shared memory, apart from its readers (readers.c), is a number.
 *
 * Usually a thread has written the whole word, and everything before that is dropped: then the
 * number is the time of that write (PLAIN). Any other history is the number of a WordState, which
 * all words with the same history share, so a tile needs one state, and one number per word. */
typedef enum {
  ENTRY_WRITE,       /* generic */
  ENTRY_READ,        /* in a state only for reads of uninitialised bytes: see readers.c */
  ENTRY_ASYNC_WRITE, /* by an asynchronous operation */
  ENTRY_ASYNC_READ,
  ENTRY_BARRIER /* this is a live mbarrier */
} EntryKind;
typedef struct {
  uint32_t kind : 4, mask : 4; /* mask: bytes of the word */
  uint32_t strong : 1;
  uint32_t unwritten : 1; /* a read of uninitialised bytes: wrong, but the cause is found later */
  uint32_t again : 1;     /* a read: this agent had read here before, in an earlier epoch */
  /* at most AGENT_MOST; uses all remaining bits, because states are compared as bytes */
  uint32_t agent : 21;
  uint32_t clock;
  union {
    const Instruction *in;
    AsyncCheck *operation;
    MbarrierCheck *barrier;
  };
} AccessRecord;
enum { AGENT_MOST = (1 << 21) - 1 };
typedef struct WordState {
  uint32_t hash;
  uint16_t count;
  uint8_t written; /* bytes that have ever been written */
  uint32_t since;  /* when the whole word was last written: earlier reads no longer matter */
  /* agents (of the first 64) known so far to be allowed to read all of it, as a bit mask */
  uint64_t read_by;
  AccessRecord entries[];
} WordState;
enum { STATE_NEVER_WRITTEN, STATE_UNKNOWN, STATE_SPLIT, FIRST_STATE };
#define PLAIN 0x80000000u
#define PLAIN_STRONG 0x40000000u /* with PLAIN: the write was strong */
#define TIME_MOST 0x3fffffffu
enum {
  LINE_WORDS = 32,
  WORD_BYTES = 4,
  FULL_WORD = 15 /* a mask of bytes */
};

enum { MANY_READERS = UINT16_MAX };

/* When an agent last read each word: time << 1 | again. */
typedef struct {
  uint32_t *lines; /* for each line: the agent's clock when it last read near it */
  uint32_t *bytes; /* like `words`, for reads of less than a word; NULL: none yet */
  uint32_t words[];
} ReadClocks;

/* Which lanes have accessed each word, or each half of a word or byte (lane_shadow.c). */
typedef struct {
  uint32_t *writes, *reads, *readers;
  uint32_t shift, count; /* of records; shift: 2 for words, 0 for bytes */
} LaneShadow;

/* A tile that a tensor load has written or will write. */
typedef struct {
  uint32_t first, end, row_bytes;
  const Instruction *in;
} LoadedTile;

struct CheckedMemory {
  uint32_t *lines;    /* state of all words of a line of shared memory; STATE_SPLIT: they differ */
  uint32_t *states;   /* of each word of a split line */
  uint32_t *writers;  /* agent * LANES + lane that wrote it last, through the generic proxy */
  uint8_t *layouts;   /* for each 128 bytes: swizzle span / 16 + 1 of the copy that wrote them */
  ReadClocks **reads; /* of each agent; NULL: it has read nothing here */
  uint16_t *readers;  /* for each line: 0, 1 + the only agent that has read it, or MANY_READERS */
  uint32_t words;
  bool any_layout;                /* some of them is not 0 */
  LoadedTile tiles[LOADED_TILES]; /* the last tensor loads into this block */
  uint32_t tile_count;            /* how many there have been */
  /* the last arrival of its threads at another block's barrier with a release of .cta scope */
  const Instruction *narrow_arrival;
  bool exited;
  bool unwritten_reads; /* some entry is unwritten */
  /* a thread waited for its bulk groups without having committed any, and not before a commit */
  const Instruction *idle_wait;
  uint32_t idle_thread, idle_clock;
  const Instruction *own_wait; /* where a thread has waited that had committed some */
  uint8_t *undefined; /* same layout as shared memory; 1: undefined bit; NULL: no undefined bits */
  uint16_t *undefined_origins; /* of each word */
  LaneShadow lane_shadow;
  uint8_t *swaps; /* byte_atomics.c, of each word; NULL: none so far */
  Clock arriving[NAMED_BARRIERS], passed[NAMED_BARRIERS];
  /* __syncthreads(), barrier 0: where its first warp stands and one at another line, in the running
   * round, and in the first round that was passed in this way */
  const Instruction *standing[2], *passed_apart[2];
  uint32_t exited_warps; /* one bit for each warp, as in the fields below */
  uint32_t arrived_warps[NAMED_BARRIERS],
      left_warps[NAMED_BARRIERS]; /* left: exited before the last round */
};

typedef struct {
  uint32_t number, hash;
} StateSlot;
typedef struct {
  uint32_t state, next, agent, time;
  const void *what;
  uint32_t how;
} CachedTransition;
enum { MEMOS = 4096 };

/* What undefined_confirm() was called for, and how many origins there were then. Words of a tile
 * alternate between the instructions that have read them, so more than the last one is kept. */
enum { CONFIRMED_READS = 512 };
typedef struct {
  const Instruction *in;
  const Warp *reader;
  uint32_t origins;
} ConfirmedRead;

struct ClusterCheck {
  ClusterCheck *next_free;
  uint32_t warps_per_cta, agents;
  uint32_t width;    /* number of vector elements in use: agents and mbarriers */
  uint32_t capacity; /* number of elements that each vector has */
  uint32_t *vectors; /* all vectors, one block */
  size_t vector_capacity;
  size_t vectors_used;
  Clock *clocks; /* of each agent */
  /* Of each agent, what relaxed waits for mbarriers have shown it: its next fence acquires that. */
  Clock *observed;
  uint32_t now, start;       /* the time; when this cluster began */
  uint32_t *current_clock;   /* of each agent */
  uint32_t *epoch;           /* of each agent: when it began */
  uint32_t *known_until;     /* for each agent: in this epoch it knows all writes up to this time */
  uint32_t *known_epoch;     /* the epoch in which known_until was computed */
  const Instruction **exits; /* for each agent: where its last threads exited; NULL: not yet */
  /* For each agent, a bit mask of the warps of its block that had exited, without arriving, when a
   * barrier completed that this agent has waited for. */
  uint32_t *exited_before;
  uint32_t *last_read, *last_write; /* for each agent, in whole pieces: its last access; 0: none */
  /* The same: the clock of its last release and of the one before; its first write since then;
   * UINT32_MAX: none. */
  uint32_t *released[2], *first_write[2];
  TimeSlot *times;           /* TIME_SLOTS of each agent */
  uint64_t *places;          /* for the last PLACES times: the instruction */
  Clock cluster_arriving[2]; /* barrier.cluster, by the parity of its round */
  uint32_t cluster_round[2];
  /* The same without regard to release and acquire, and what each block has learnt from it. This is
   * only used to decide whether a peer is done. */
  Clock cluster_leaving[2], leaving_seen[MAX_CLUSTER_CTAS];
  MbarrierCheck *barriers[BARRIER_PLACES * 4];
  uint32_t barrier_count;
  uint64_t *states; /* all states, one after the other */
  size_t states_used, states_capacity;
  uint32_t *state_places; /* for each number, its position in `states` */
  uint32_t state_count, state_capacity;
  uint32_t state_limit; /* from this count on, states_collect drops the states that no word is in */
  StateSlot *table;     /* hash table */
  uint32_t table_size;
  CachedTransition *memos;
  AsyncCheck *operations; /* all of them */
  AsyncCheck *spare_operations;
  AsyncCheck **of_warp; /* for each agent: operations not yet waited for, newest first */
  uint32_t
      cluster_waited[MAX_CLUSTER_CTAS * LANES]; /* for each agent: 1 + the last round it has seen */
  uint64_t *wgmma_group;                        /* of each agent: the open group's number */
  struct Locations *locations;                  /* through_shared.c; NULL: none yet */
  struct AcquiredMap *acquired_maps;
  struct Origin *origins; /* origins.c: reads of uninitialised bytes */
  uint32_t origin_count, origin_capacity;
  uint32_t origin_chains[ORIGIN_CHAINS]; /* 1 + the newest origin with this hash; 0: none */
  ConfirmedRead confirmed[CONFIRMED_READS];
  /* words that two tiles share, once that has been reported */
  uint32_t overlap_first, overlap_end;
  bool any_undefined;             /* some block has undefined bits */
  bool any_swaps;                 /* a compare-and-swap of a word has been made (byte_atomics.c) */
  bool crossed;                   /* a thread has accessed the memory of another block */
  bool any_narrow;                /* some block has a narrow_arrival */
  bool any_fenced[FENCED_SPACES]; /* a proxy fence for this space has been executed */
  uint32_t begun;                 /* the time at which the cluster began */
  struct CheckedMemory ctas[MAX_CLUSTER_CTAS];
  uint32_t cta_count;
  struct ClusterGlobal *global;   /* global.h; NULL: not used so far */
  bool layouts_asked;             /* layouts.c checks plain reads */
  bool lanes_checked;             /* lanes.c: the order among lanes is known */
  uint32_t lanes_start;           /* the first stamp of this cluster */
  struct LaneOrder *lanes;        /* of each agent */
  struct LaneOrders *lane_orders; /* lanes.c; NULL: none yet */
  struct LaneFences *lane_fences; /* lane_fences.c, of each agent; NULL: none yet */
  bool lanes_unfenced; /* some fence may not cover what other lanes of its warp have written */
  /* For each agent: up to which time other agents have seen its writes before a proxy fence of theirs. */
  uint32_t *fenced_by_others;
  struct LaneLog *lane_logs;    /* lane_log.c, of each agent; NULL: none yet */
  struct LaneRaces *lane_races; /* lane_reports.c; NULL: none yet */
};

/* A piece of a vector that fits into one register of the host. Loops over whole pieces need no
 * tail. Every vector starts at a multiple of the piece size. */
#if defined(__AVX512F__)
enum { AT_ONCE = 16 };
#elif defined(__AVX__)
enum { AT_ONCE = 8 };
#else
enum { AT_ONCE = 4 };
#endif
typedef uint32_t Piece __attribute__((vector_size(AT_ONCE * sizeof(uint32_t))));
static inline Piece *piece_at(uint32_t *vector, uint32_t place) {
  return (Piece *)(void *)(vector + place);
}
static inline const Piece *const_piece_at(const uint32_t *vector, uint32_t place) {
  return (const Piece *)(const void *)(vector + place);
}
static inline uint32_t whole_pieces(uint32_t places) {
  return (places + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
}
static inline bool is_generic(const AsyncCheck *operation) { /* its proxy */
  return async_by_threads(operation->kind);
}
static inline bool by_group(const AsyncCheck *operation) { return operation->barrier == 0; }
static inline ClusterCheck *check_of(const Warp *warp) { return warp->cta->cluster->check; }
static inline uint32_t agent_of(const Warp *warp) {
  return warp->cta->rank * warp->cta->warp_count + warp->index;
}
static inline uint32_t time_of_plain(uint32_t state) { return state & TIME_MOST; }
static inline uint32_t clock_of(const ClusterCheck *check, uint32_t agent) {
  return check->current_clock[agent];
}
static inline bool has_seen(const ClusterCheck *check, uint32_t agent, uint32_t other,
                            uint32_t clock) {
  return check->clocks[agent].seen[other] >= clock;
}

/* Do releases on the way to the agent publish more to some agents than to others? */
static inline bool some_unpublished(const ClusterCheck *check) {
  return __builtin_expect(check->crossed && check->any_narrow, 0);
}
/* The vector that says which writes the agent may use, or one that is below it. */
static inline const uint32_t *known_writes(const ClusterCheck *check, uint32_t agent) {
  const Clock *clock = &check->clocks[agent];
  return some_unpublished(check) ? clock->published : clock->seen;
}
/* Given that the agent has seen this write of another one, has it been published to it? */
static inline bool is_published(const ClusterCheck *check, uint32_t agent, uint32_t other,
                                uint32_t clock) {
  return !some_unpublished(check) || agent / check->warps_per_cta == other / check->warps_per_cta ||
         check->clocks[agent].published[other] >= clock;
}

/* Is this barrier's init ordered before what the agent does now? Besides the usual ways there is a
 * dedicated one: fence.mbarrier_init and then a barrier.cluster, whose arrival may be relaxed. */
static inline bool knows_init(const ClusterCheck *check, uint32_t agent,
                              const MbarrierCheck *barrier) {
  return has_seen(check, agent, barrier->init_agent, barrier->init_clock) ||
         (barrier->init_round && check->cluster_waited[agent] >= barrier->init_round);
}

/* vector_clocks.c */
void order_begin(ClusterCheck *check);
static inline TimeSlot *time_slot(const ClusterCheck *check, uint32_t agent,
                                  const Instruction *in) {
  return &check->times[agent * TIME_SLOTS + (uintptr_t)in / sizeof(Instruction) % TIME_SLOTS];
}
uint32_t order_new_time(ClusterCheck *check, uint32_t agent, const Instruction *in, bool strong);
/* The time of an access that the agent makes now. */
static inline uint32_t order_time(ClusterCheck *check, uint32_t agent, const Instruction *in,
                                  bool strong) {
  const TimeSlot *slot = time_slot(check, agent, in);
  return slot->in == in && slot->time > check->epoch[agent]
             ? slot->time
             : order_new_time(check, agent, in, strong);
}
/* The access at that time. If it was long ago, its line is no longer known. */
AccessSite order_site(const ClusterCheck *check, uint32_t time);
/* Starts a new epoch: later accesses of the agent are distinguished from earlier ones. */
static inline void order_begin_epoch(const ClusterCheck *check, uint32_t agent) {
  check->epoch[agent] = check->now;
}
/* The agent issues a copy that will complete on this barrier. */
void order_note_issue(ClusterCheck *check, uint32_t agent, uint32_t barrier);
MbarrierCheck *order_find_barrier(const ClusterCheck *check, uint32_t address);
/* In a cluster, `issuer` fills a buffer of the block `rank` again, and nothing orders that after its readers. Has
 * one of them released it to the wrong rank? Writes why into `text`. reader: one of them, and when it has
 * read; UINT32_MAX: unknown. */
bool order_stray_arrival(const ClusterCheck *check, uint32_t issuer, uint32_t rank, uint32_t reader,
                         uint32_t time, char *text, size_t capacity);
/* The wait of this lane that returned "not yet", if none has returned true since. */
const Instruction *order_answered_not_yet(const MbarrierCheck *barrier, uint32_t agent, int lane);
/* Was this agent's last wait for the barrier satisfied by an earlier phase that it already knew to
 * be complete? *next is the phase after that. */
bool order_answered_stale(const MbarrierCheck *barrier, uint32_t agent, uint32_t phase,
                          uint32_t *next);

/* Did all threads of `other` exit before a barrier of the block that the agent has waited for? Then
 * that barrier did not wait for them. */
static inline bool order_exited_before(const ClusterCheck *check, uint32_t agent, uint32_t other) {
  uint32_t warps = check->warps_per_cta;
  return agent / warps == other / warps && (check->exited_before[agent] >> other % warps & 1);
}

/* through_shared.c */
void locations_begin(ClusterCheck *check);
/* A strong access to these addresses in shared memory. */
void order_locations(ClusterCheck *check, uint32_t agent, LaneMask mask, const uint32_t *addresses,
                     bool releases, bool acquires);

/* order_begin_epoch after a release. */
void order_begin_released_epoch(ClusterCheck *check, uint32_t agent);

/* through_global.c */
void global_known_merge(ClusterCheck *check, GlobalKnowledge *into, const GlobalKnowledge *from);
static inline void global_known_add(ClusterCheck *check, GlobalKnowledge *into,
                                    const GlobalKnowledge *from) {
  bool news = false;
  for (int kind = 0; kind < KNOWN_KINDS_COUNT; kind++)
    news |= from->tree[kind] && from->tree[kind] != into->tree[kind];
  if (__builtin_expect(news, 0)) global_known_merge(check, into, from);
}
/* A fence, and a barrier of the block. */
void global_fence(Warp *warp, Reach reach, bool sc);
void global_barrier(Warp *warp);
/* What the warp's last fences of this scope or a wider one have released. */
void global_release_fenced(Warp *warp, Reach reach, Clock *into);
/* A proxy fence for global memory. */
void global_fence_proxy_async(Warp *warp);
/* global_races.c */
void global_cluster_begin(const Cluster *cluster);
/* Times begin again. */
void global_forget_times(const ClusterCheck *check);
/* global_copies.c */
void global_async_landed(const ClusterCheck *check, const AsyncCheck *operation);
void global_async_waited(const AsyncCheck *operation, uint32_t clock);

/* cta_exit.c */
/* Has no warp of the block waited for the last load that counted at this barrier? */
bool exit_load_unknown(const ClusterCheck *check, const MbarrierCheck *barrier);
void exit_note_remote_arrive(ClusterCheck *check, MbarrierCheck *barrier, uint32_t agent, int lane,
                             const Instruction *in);
void exit_check(Cta *cta);

/* readers.c */
void reads_forget_all(ClusterCheck *check);

/* word_states.c */
static inline WordState *state_at(const ClusterCheck *check, uint32_t number) {
  return (WordState *)(void *)(check->states + check->state_places[number]);
}
/* The number of the state with these entries. Invalidates pointers returned by state_at. */
uint32_t states_find(ClusterCheck *check, const AccessRecord *entries, unsigned count,
                     uint8_t written);
/* The bytes of a word in this state that have been written. */
static inline uint32_t states_written(const ClusterCheck *check, uint32_t number) {
  if (number == STATE_NEVER_WRITTEN) return 0;
  return number >= FIRST_STATE && number < PLAIN ? state_at(check, number)->written : FULL_WORD;
}
/* Must be called now and then, while the caller holds no state number. */
void states_collect(ClusterCheck *check);
static inline void states_reserve(ClusterCheck *check) {
  if (check->state_count > check->state_limit) states_collect(check);
}
void states_fill(struct CheckedMemory *memory, uint32_t word, uint32_t count, uint32_t state);
/* Moves the words from `word` on that are in `state` to `next`; returns the first that is not. */
uint32_t states_move_run(struct CheckedMemory *memory, uint32_t word, uint32_t end, uint32_t state,
                         uint32_t next);
void states_split(struct CheckedMemory *memory, uint32_t line);
static inline uint32_t states_of(const struct CheckedMemory *memory, uint32_t word) {
  uint32_t state = memory->lines[word / LINE_WORDS];
  return state == STATE_SPLIT ? memory->states[word] : state;
}
static inline void states_set(struct CheckedMemory *memory, uint32_t word, uint32_t state) {
  if (memory->lines[word / LINE_WORDS] != STATE_SPLIT) states_split(memory, word / LINE_WORDS);
  memory->states[word] = state;
}
/* The same as states_move_run for two chunks of 16 bytes, the unit in which a swizzle keeps the
 * rows that a wgmma reads. False: they are not all in that state, or their line is not split.
 */
enum { TWO_CHUNKS = 8 };
static inline bool states_move_two_chunks(struct CheckedMemory *memory, uint32_t word,
                                          uint32_t state, uint32_t next) {
  if (word % TWO_CHUNKS != 0 || memory->lines[word / LINE_WORDS] != STATE_SPLIT) return false;
  uint32_t *states = memory->states + word, differing = 0;
  for (int i = 0; i < TWO_CHUNKS; i++) differing |= states[i] ^ state;
  if (differing != 0) return false;
  for (int i = 0; i < TWO_CHUNKS; i++) states[i] = next;
  return true;
}
/* The next word that may be in another state. */
static inline uint32_t states_next(const struct CheckedMemory *memory, uint32_t word) {
  if (memory->lines[word / LINE_WORDS] == STATE_SPLIT) return word + 1;
  return (word / LINE_WORDS + 1) * LINE_WORDS;
}

/* may_follow.c */
/* The copy's barrier in this block; NULL: none. */
const MbarrierCheck *past_barrier_of(const ClusterCheck *check, const AsyncCheck *operation,
                                     uint32_t rank);
void past_confirm_unwritten(Cta *cta);

/* history.c */
/* An operation reads or writes these pieces. True: it reads bytes that nothing has written. */
bool shadow_touch(Warp *warp, AsyncCheck *operation, bool writes, const SharedPiece *pieces,
                  int count);
/* cp.async: one piece for each of its lanes. */
void shadow_touch_copies(Warp *warp, AsyncCheck *operation, const SharedPiece *pieces, int count);
void shadow_set_barrier(Cluster *cluster, uint32_t address, MbarrierCheck *barrier);

/* async_operations.c */
/* cp.async.mbarrier.arrive: from here on, this lane's copies are known to be complete. */
void check_copies_arrive(Warp *warp, int lane);
void async_free(ClusterCheck *check, AsyncCheck *operation);

/* wgmma_registers.c */
void registers_begin(Warp *warp);
void registers_fence(Warp *warp);
void registers_issue(Warp *warp, const Instruction *in, const uint16_t *slots, int count,
                     uint64_t group);
void registers_wait(Warp *warp, uint64_t open, uint64_t pending);

/* propagate.c */
void undefined_forget(Warp *warp);

/* undefined_memory.c. A plain load of this lane has read the uninitialised bytes in `mask` of
 * this word. */
void undefined_read(ClusterCheck *check, Warp *warp, const Instruction *in, int lane, uint32_t rank,
                    uint32_t word, uint32_t mask);
/* An access of these lanes. Called only while some shared memory of the cluster has undefined
 * bits. */
void undefined_access(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                      uint32_t bytes, bool writes);
void undefined_written(ClusterCheck *check, uint32_t address, uint32_t bytes);
void undefined_updated(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                       uint32_t bytes);
void undefined_forget_shared(ClusterCheck *check);

/* origins.c */
/* That read came before every write, so it is neither a race nor a missing wait. */
void undefined_confirm(ClusterCheck *check, const Warp *reader, const Instruction *in);
void undefined_forget_origins(ClusterCheck *check, bool failed);

/* changed_maps.c */
void maps_begin(const Cluster *cluster);
void maps_end(ClusterCheck *check);

/* Plain reads by these lanes, when EMULATOR_CHECK=layout (layouts.c). */
void check_plain_layout(Warp *warp, const Instruction *in, LaneMask mask,
                        const uint32_t *addresses);

#endif
