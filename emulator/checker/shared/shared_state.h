/* shared_state.h: the state of shared memory, mbarriers and operations in flight, shared by the files here (shared.h). */
#pragma once

#include "checker/shared/shared.h"
#include "checker/undefined/undefined.h"

typedef struct WaitAnswer {
  uint32_t next; /* 0 before the first; then 1 + the number of complete phases */
  uint32_t
      missed; /* phases that were complete before its waits, besides those that it waited for */
  /* the answer was about a phase that the agent already knew to be complete */
  bool stale;
  const Instruction *not_yet; /* the last wait that returned "not yet" */
  uint32_t asked;             /* the phase that was running then */
  const Instruction *relaxed; /* the last wait, if it was .relaxed; NULL: it was not */
  LaneMask not_yet_lanes;     /* the lanes that got this answer, and none since that was true */
  const Instruction *in;
  uint32_t time, order; /* of the checker, when the last wait ended; and its number */
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
  uint32_t number; /* its index in `barriers` */
  uint32_t place;  /* its index in the vectors; NO_PLACE: none was left */
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
  uint32_t armed, armed_agent, armed_clock,
      armed_before; /* armed_before: the clock of that before */
  const Instruction *armed_in;
  bool armed_again; /* in this phase, and by an agent that knew of the time before */
  bool announced;   /* some thread has expected bytes here, in whatever way */
  uint32_t copied;  /* 1 + the last phase in which bytes of a copy counted; 0: none */
  uint64_t armed_knowing;
  int armed_lane;
  /* Who last arrived, and who ended each of the last two phases; a copy that names the barrier; and which phases
   * expected bytes: a bit for each, the current one at the right. */
  const Instruction *arrive_in, *finished_by[2], *copy_in, *expect_in;
  uint64_t expecting;
  uint32_t copy_phase;        /* the phase in which copy_in was issued */
  struct WaitAnswer *answers; /* for each agent, the answer to its last wait */
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

enum { WARPS_OF_GROUP = 4 };
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
  /* Waits for groups by its thread that did not wait for it: the first that came before the commit, and the last. */
  const Instruction *passed_uncommitted, *passed;
  uint32_t passed_pending; /* the last one's number */
  /* What the open group held already when the thread issued this, after a fence: one group, perhaps for want of a commit. */
  const Instruction *joined;
  const Instruction
      *behind; /* issued later and not committed at the last wait, which took this for the newest */
  uint32_t fences;         /* of its warp, before its issue */
  uint32_t into, into_end; /* a load: the offsets that its tile takes in shared memory */
  uint32_t from, from_end; /* a copy out of shared memory: those of its source */
  uint32_t begins;         /* a wgmma: where the operand begins that it reads now; 0: none */
  uint64_t map;            /* a copy by a tensor map in global memory: its address; 0: none */
  bool adds;               /* red.async and reduces: several to the same bytes do not race */
  uint32_t ranks;          /* a bit for each block whose shared memory it writes */
  uint32_t issue_clock, issue_time;
  OrderPast *past; /* what its issuer knew, for the barrier's phase; NULL: it is handed on */
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
  uint32_t *end_time; /* where the time of its end is kept, for global/; NULL: nowhere */
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
enum { MANY_READERS = UINT16_MAX };

/* When an agent last read each word: time << 1 | again. */
typedef struct {
  uint32_t *lines; /* for each line: the agent's clock when it last read near it */
  uint32_t *bytes; /* like `words`, for reads of less than a word; NULL: none yet */
  uint32_t words[];
} ReadClocks;

/* Shared memory of a block. */
enum { LOADED_TILES = 32 /* whose shape is kept */ };
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
  bool exited;
  bool unwritten_reads; /* some entry is unwritten */
  /* a thread waited for its bulk groups without having committed any, and not before a commit */
  const Instruction *idle_wait;
  uint32_t idle_thread, idle_clock;
  const Instruction *own_wait; /* where a thread has waited that had committed some */
  uint8_t *swaps;              /* byte_atomics.c, of each word; NULL: none so far */
};

typedef struct {
  uint32_t number, hash;
} StateSlot;
typedef struct {
  uint32_t state, next, agent, time;
  const void *what;
  uint32_t how;
} CachedTransition;
enum { MEMOS = 4096, RACES_KEPT = 32 };

/* Of a cluster. */
struct SharedState {
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
  AsyncCheck **of_warp;  /* for each agent: operations not yet waited for, newest first */
  uint64_t used_map;     /* in global memory, by the copy that is being issued; 0: none */
  uint64_t *wgmma_group; /* of each agent: the open group's number */
  uint32_t *fences;      /* of each agent: how many it has executed */
  MbarrierCheck *barriers[MBARRIERS_MOST];
  uint32_t barrier_count, waits; /* waits: how many have ended */
  /* words that two tiles share, once that has been reported */
  uint32_t overlap_first, overlap_end;
  const Instruction *races[RACES_KEPT][2]; /* between warps */
  uint32_t race_count;
  struct CheckedMemory memory[MAX_CLUSTER_CTAS];
};

static inline bool is_generic(const AsyncCheck *operation) { /* its proxy */
  return async_by_threads(operation->kind);
}
static inline bool by_group(const AsyncCheck *operation) { return operation->barrier == 0; }
/* last_waits.c: the barrier of its own block for which the agent has waited last; NULL: none. */
const MbarrierCheck *mbarrier_awaited_last(const ClusterCheck *check, uint32_t agent);
/* What is wrong with the agent's last wait there, or its last wait of all if that came since this time, if anything is.
 * whose: "this warp". */
Phrase wait_mistake(const MbarrierCheck *barrier, uint32_t agent, const char *whose);
Phrase last_wait_mistake(const ClusterCheck *check, uint32_t agent, uint32_t since);
/* Has the phase ended without any bytes, although copies name the barrier? */
bool ended_without_bytes(const MbarrierCheck *barrier, uint32_t phase);
/* The place of the arrival that ended it. */
Phrase place_of_end(const MbarrierCheck *barrier, uint32_t phase);
/* "phase 3" */
Phrase phase_name(const MbarrierCheck *barrier, uint32_t phase);
/* async_operations.c: what is wrong with the wait that has not waited for it, if there was one. */
Phrase async_passed(const AsyncCheck *operation);
/* Is it in a group that its thread has committed? */
bool async_committed(const ClusterCheck *check, const AsyncCheck *operation);
static inline uint32_t time_of_plain(uint32_t state) { return state & TIME_MOST; }
/* Is this barrier's init ordered before what the agent does now? Besides the usual ways there is a
 * dedicated one: fence.mbarrier_init and then a barrier.cluster, whose arrival may be relaxed. */
static inline bool knows_init(const ClusterCheck *check, uint32_t agent,
                              const MbarrierCheck *barrier) {
  return has_seen(check, agent, barrier->init_agent, barrier->init_clock) ||
         (barrier->init_round && order_of(check, agent)->cluster_waited >= barrier->init_round);
}

/* mbarriers.c */
MbarrierCheck *mbarrier_at(const ClusterCheck *check, uint32_t address);
/* In a cluster, `issuer` fills a buffer of the block `rank` again, and nothing orders that after its readers. Has
 * one of them released it to the wrong rank? Returns why, or nothing. reader: one of them, and when it has
 * read; UINT32_MAX: unknown. */
Phrase mbarrier_stray_arrival(const ClusterCheck *check, uint32_t issuer, uint32_t rank,
                              uint32_t reader, uint32_t time);
/* The wait of this lane that returned "not yet", if none has returned true since. */
const Instruction *mbarrier_answered_not_yet(const MbarrierCheck *barrier, uint32_t agent,
                                             int lane);
/* Was this agent's last wait for the barrier satisfied by an earlier phase that it already knew to
 * be complete? *next is the phase after that. */
bool mbarrier_answered_stale(const MbarrierCheck *barrier, uint32_t agent, uint32_t phase,
                             uint32_t *next);
void mbarriers_forget(ClusterCheck *check);

/* cta_exit.c */
void exit_note_remote_arrive(ClusterCheck *check, MbarrierCheck *barrier, uint32_t agent, int lane,
                             const Instruction *in);

/* readers.c */
void reads_forget_all(ClusterCheck *check);

/* word_states.c */
static inline WordState *state_at(const ClusterCheck *check, uint32_t number) {
  return (WordState *)(void *)(check->shared->states + check->shared->state_places[number]);
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
  if (check->shared->state_count > check->shared->state_limit) states_collect(check);
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

/* As the program counts them, from 0 since the last init; those before it from the first init. */
static inline uint32_t phase_named(const MbarrierCheck *barrier, uint32_t phase) {
  return phase >= barrier->first_phase ? phase - barrier->first_phase : phase;
}

/* past_accesses.c */
/* The copy's barrier in this block; NULL: none. */
MbarrierCheck *past_barrier_of(const ClusterCheck *check, const AsyncCheck *operation,
                               uint32_t rank);
/* Two accesses by different warps race: those of lanes may race for the same reason. */
void past_note_race(ClusterCheck *check, const Instruction *in, const Instruction *other);
/* The block's memory is gone: reads of bytes there that nothing had written were no race. */
void past_confirm_exited(Cta *cta);

/* history.c */
void shadow_set_barrier(Cluster *cluster, uint32_t address, MbarrierCheck *barrier);
/* This lane has invalidated it: it has written bytes that mean nothing. */
void shadow_end_barrier(Warp *warp, const Instruction *in, int lane, uint32_t address);

/* async_operations.c */
/* cp.async.mbarrier.arrive: from here on, this lane's copies are known to be complete. */
void copies_arrive(Warp *warp, int lane);
void async_free(ClusterCheck *check, AsyncCheck *operation);
void operations_forget(ClusterCheck *check);

/* unwritten_shared.c: a lane has loaded or updated bytes of a word that nothing has written; and an atomic's access to bytes that nothing has written leaves them undefined. */
void unwritten_read(Warp *warp, const Instruction *in, int lane, uint32_t rank, uint32_t word,
                    uint32_t mask, OriginPart part);
void unwritten_update(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                      uint32_t bytes);

/* layouts.c: plain reads by these lanes; and those of a tile by a wgmma (multiplied), or by a copy. */
void layouts_read(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses);
void layouts_read_by(Warp *warp, const Instruction *in, const SharedOperand *tile, bool multiplied);

/* layouts.c: a tile that begins a little behind this address or ends a little before it; NULL: none. */
const LoadedTile *tile_beside(const ClusterCheck *check, uint32_t address);

/* byte_atomics.c: a strong access to words of shared memory is about to be made. */
void swaps_note(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                uint32_t bytes, const AccessKind *kind);
void swaps_forget(struct CheckedMemory *memory);
