/* global_state.h: shared by the files that check accesses to global memory (global.h). */
#pragma once

#include "base/kept_finding.h"
#include "base/lock.h"
#include "checker/global/global.h"

/* ---- Accesses ---- */

/* Flags of an access, besides those of GlobalKind. */
enum {
  GLOBAL_ASYNC = 4,             /* a copy: over when `time` is known, which is set later */
  GLOBAL_CP_ASYNC = 128,        /* the same by cp.async, through the generic proxy */
  GLOBAL_UNFENCED = 16,         /* in a critical section whose lock was taken without a fence */
  GLOBAL_CTA_FENCED = 1024,     /* with a fence of .cta scope */
  GLOBAL_CLUSTER_FENCED = 2048, /* of .cluster scope */
  GLOBAL_LEFT_LOCK = 64, /* a store without the lock under which its warp has read the place */
  GLOBAL_UPDATES = 32,   /* an atomic, which reads what it changes */
  GLOBAL_UNREAD = 256,   /* an atomic whose result nobody reads */
  GLOBAL_ACQUIRES = 512, /* a load that acquires */
  GLOBAL_OPERATION = 8   /* by the host or a stream's copy, not by a kernel: `in` is NULL */
};
enum { NOT_FINISHED = UINT32_MAX };

typedef struct GlobalAccess {
  uint32_t operation; /* the launch, copy or host access that it belongs to */
  uint32_t cluster;   /* number of the cluster in its grid */
  uint32_t time;      /* the warp's clock in that cluster's check */
  uint16_t agent;     /* warp of the cluster, or the place of the mbarrier that reports its end */
  uint16_t issuer;    /* warp of the cluster */
  uint8_t reach;
  uint8_t size; /* bytes of each element of a strong access; 0: plain, or it does not matter */
  uint16_t flags;
  uint8_t kept;  /* as in GlobalKind */
  uint32_t lock; /* the lock that the warp held (lock_tag); 0: none */
  const Instruction *in;
} GlobalAccess;

static inline uint32_t lock_tag(uint64_t address) { return (uint32_t)(address >> 2) | 1u << 31; }

/* ---- What is known ---- */

/* One launch. */
typedef struct GlobalLaunch {
  uint32_t operation, settled, settled_lists;
  uint32_t dependency; /* operation that this launch may overlap until griddepcontrol.wait; 0 */
  uint32_t clusters, agents, warps_per_cta;
  struct OrderLaunch *order;
  const bool *ignored;                /* of the order: nothing is reported any more */
  struct GlobalLaneRaces *lane_races; /* global_lanes.c; NULL: none */
  struct GlobalLeftOut *left_out;     /* global_lanes.c; NULL: none */
  struct GlobalGuesses *guesses;      /* global_guesses.c; NULL: none */
  bool apart; /* its clusters never learn of each other: no access of the kernel is strong */
  const Launch *of;
  pthread_mutex_t lock; /* of lane_races, left_out and guesses */
} GlobalLaunch;

typedef struct {
  const Instruction *in;
  uint32_t time, number;
} NumberSlot;
typedef struct {
  uint32_t writes, reads, number, kind;
  uint32_t next_writes, next_reads;
} CellMemo;
/* A cell that a warp has read, when it had these writes. */
typedef struct {
  uint64_t address;
  uint32_t writes, number;
} SeenCell;
enum { NUMBER_SLOTS = 256, CELL_MEMOS = 1024, SEEN_CELLS = 1024, NUMBERS_AT_ONCE = 64 };

/* Of one cluster. */
struct GlobalState {
  GlobalLaunch *launch;
  uint32_t cluster;
  uint32_t next_number, end_number, next_list, end_list;
  uint32_t operation; /* of the memos and numbers */
  NumberSlot
      *slots; /* NUMBER_SLOTS for each agent; times go on, so none of an earlier cluster is found */
  CellMemo *memos;
  SeenCell *seen;            /* SEEN_CELLS for each agent */
  struct GlobalLanes *lanes; /* global_lanes.c, for each agent; NULL: not used so far */
  struct GlobalPage *page; /* of the shadow, that this cluster has last used quickly; NULL: none */
  uint64_t page_number;
  struct AcquiredMap *acquired_maps; /* changed_maps.c */
};

/* ---- The shadow ---- */

enum { GLOBAL_LIST = 1u << 31, GLOBAL_SPLIT = UINT32_MAX };
typedef struct {
  uint32_t writes, reads; /* number of an access, or of a list with GLOBAL_LIST; 0: none */
} GlobalCell;

typedef struct {
  uint32_t number, next;       /* next: another list, or the last number */
  uint32_t operation, cluster; /* of the access with this number */
  uint32_t count : 30;
  uint32_t wide : 1;    /* all of them are strong and reach .gpu or more */
  uint32_t several : 1; /* two of them are of different clusters of this operation */
} GlobalList;

typedef enum {
  MISTAKE_RACE,
  MISTAKE_LOCK,         /* only a lock orders them, and one side took it without a fence */
  MISTAKE_NARROW_LOCK,  /* the same, with a fence whose scope does not include the other thread */
  MISTAKE_VOLATILE,     /* volatile accesses that nothing orders */
  MISTAKE_PROXY,        /* ordered, but without fence.proxy.async */
  MISTAKE_NON_COHERENT, /* ordered, but the load may see an older value */
  MISTAKE_LANE_TOLD,    /* ordered by another lane of the warp that wrote */
  MISTAKE_LANE_WAITED   /* by another lane of this warp */
} GlobalMistake;

/* An access on its way through the shadow. */
typedef struct GlobalNow {
  GlobalLaunch *launch;
  struct GlobalState *own; /* NULL: no thread */
  ClusterCheck *check;
  GlobalAccess access;
  uint32_t number;
  Access kind;
  Warp *warp;
  const Instruction *in;
  uint64_t address; /* of the cell */
  uint32_t bytes;
  bool swaps;               /* a compare-and-swap */
  GlobalCell before, after; /* the last cell, and what became of it */
  /* the lanes whose bytes are touched: each has `lane_bytes`, in this order from `first` on;
   * NULL: all are touched by `lane` */
  const uint8_t *lanes;
  uint64_t first;
  uint32_t lane_bytes;
  int lane;
  const GlobalStored *stored; /* a plain store's values; NULL: unknown */
  /* the first conflict */
  bool conflict, conflict_reads;
  KeptFinding *kept; /* where the report goes; NULL: it is printed */
  GlobalMistake mistake;
  const Instruction *told_by; /* of MISTAKE_LANE_TOLD: how */
  GlobalAccess past;
  uint64_t conflict_address;
  int conflict_lane;
} GlobalNow;

/* access_numbers.c */
const GlobalAccess *global_access(uint32_t number);
/* This store is outside the lock under which its warp has read the place. */
void global_left_lock(uint32_t number, uint32_t lock_left);
/* One number stands for several swaps: they all leave only these bytes of the word. */
void global_swap_keeps(uint32_t number, uint8_t kept);
/* NULL and number 0: there are too many. */
GlobalAccess *global_access_new(struct GlobalState *own, uint32_t *number);
const GlobalList *global_list(uint32_t number);
/* The list of this access and those in `next`. */
uint32_t global_list_new(struct GlobalState *own, uint32_t access, uint32_t next);
/* all: everything so far is ordered before what follows. Sets the limits. */
void global_numbers_settle(uint32_t *settled_accesses, uint32_t *settled_lists, bool all);

/* Is that access or list ordered before all that the launch does? */
static inline bool global_is_settled(const GlobalLaunch *launch, uint32_t number) {
  if (!(number & GLOBAL_LIST)) return number < launch->settled;
  return (number & ~GLOBAL_LIST) < launch->settled_lists;
}
static inline bool global_settled(const GlobalNow *now, uint32_t number) {
  return global_is_settled(now->launch, number);
}

/* Goes through a list, newest first. */
#define FOR_GLOBAL_NUMBERS(number, value)           \
  for (uint32_t rest_ = (value), number;            \
       rest_ != 0 && !global_settled(now, rest_) && \
       (number = global_first_of(rest_), rest_ = global_rest_of(rest_), true);)
static inline uint32_t global_first_of(uint32_t value) {
  return value & GLOBAL_LIST ? global_list(value)->number : value;
}
static inline uint32_t global_rest_of(uint32_t value) {
  return value & GLOBAL_LIST ? global_list(value)->next : 0;
}

/* global_shadow.c. Applies global_next to all bytes from `first` on. */
void global_shadow_touch(GlobalNow *now, uint64_t first, uint64_t bytes);
void global_shadow_touch_rows(GlobalNow *now, uint64_t first, uint64_t bytes, uint32_t rows,
                              uint64_t step);
/* Frees what is known about the memory of an allocation that has been freed: no other one is near enough to share a
 * page with it. No launch may be in progress. */
void global_shadow_forget(uint64_t first, uint64_t bytes);
/* Touches several ranges. The page of the last one stays locked until it is released, so that
 * rows of a tile or lanes of a warp that are in one page lock it once. Begin with {NULL, 0}. */
typedef struct {
  struct GlobalPage *page; /* NULL: none */
  uint64_t number;
} GlobalHeldPage;
void global_shadow_touch_more(GlobalNow *now, GlobalHeldPage *held, uint64_t first, uint64_t bytes);
void global_shadow_release(GlobalHeldPage *held);
/* global_whole_warps.c: a plain access of a whole warp, without what only unusual ones need. */
typedef struct {
  const ClusterCheck *check;
  struct GlobalState *own;
  const GlobalAccess *access;
  uint32_t number;
  bool writes;
  GlobalCell before, after; /* as in GlobalNow */
} GlobalQuick;
/* What global_next does with a cell. False, and nothing has changed: ask global_next. */
bool global_quick_next(GlobalQuick *quick, uint64_t address, GlobalCell *cell);
/* The same for all cells of these whole words. False: ask for all of them again by global_shadow_touch. */
bool global_shadow_quickly(GlobalQuick *quick, uint64_t first, uint64_t bytes);
/* Has every one of these words been read by warps of several clusters of this launch, and not been written since it
 * began? If the clusters never learn of each other, then no warp may write there any more, whoever else reads it: one
 * more reader need not be noted. */
bool global_shadow_many_have_read(struct GlobalState *own, uint64_t first, uint64_t bytes);
/* The same, if it has been asked or found before: for accesses that note themselves otherwise. */
bool global_shadow_is_noted(struct GlobalState *own, uint64_t first, uint64_t bytes);

/* global_races.c: checks the access against what is known about these bytes, and returns what is
 * known afterwards. */
GlobalCell global_next(GlobalNow *now, GlobalCell cell);

/* The number of the accesses that this warp makes by this instruction between two synchronisations; made:
 * what is kept of them, but for the time. 0: there are too many. */
uint32_t global_number(ClusterCheck *check, GlobalAccess *made);
/* Whoever is ordered after one plain read of this warp is also ordered after the next one, until the
 * warp's epoch ends. So the first one is enough for all. */
bool global_stands_for(const ClusterCheck *check, const GlobalAccess *own,
                       const GlobalAccess *past);
/* This warp, among these readers: the list with it, and whether there is room for it. */
bool global_readers_have_room(uint32_t readers);
uint32_t global_add_reader(GlobalQuick *quick, uint32_t readers);
SeenCell *global_seen_cell(const struct GlobalState *own, uint32_t agent, uint64_t address);
CellMemo *global_memo(const struct GlobalState *own, GlobalCell cell, uint32_t number);

/* Fills in all but the lanes and what is stored. False: nothing is to be checked. */
bool global_begin(GlobalNow *now, Warp *warp, const Instruction *in, const GlobalKind *kind);
/* What these lanes access, `lane_bytes` bytes each. */
void global_touch_lanes(GlobalNow *now, LaneMask mask, const uint64_t *addresses);
/* Is that access ordered before this one? */
bool global_ordered(const GlobalNow *now, const GlobalAccess *past, KnownKind kind);

/* global_launch.c. The order among operations; NULL: as they begin. */
const OperationOrder *global_operation_order(void);
Phrase global_operation_name(uint32_t operation);

/* Does the store leave the bytes of the cell as they are? */
bool global_same_value(const GlobalNow *now);

/* Strong accesses of different sizes do not overlap completely, so they are not morally strong.
 * libcu++ makes atomics of less than four bytes from those of four. */
static inline bool global_sizes_differ(const GlobalAccess *one, const GlobalAccess *other) {
  return one->size >= 4 && other->size >= 4 && one->size != other->size;
}

/* global_volatile.c. What is wrong with a volatile access although it does not race; NULL:
 * nothing. */
const GlobalAccess *global_volatile_mistake(const GlobalNow *now, GlobalCell cell,
                                            bool *past_reads);

/* global_guesses.c. The one of two racing accesses that may be a guess; NULL: neither. */
const GlobalAccess *global_guesser(const GlobalNow *now, const GlobalAccess *past, bool past_reads);
void global_guess(const GlobalNow *now, const GlobalAccess *guesser);
/* A compare-and-swap checks what its warp has guessed about these words. */
void global_guess_checked(const GlobalNow *now, LaneMask mask, const uint64_t *addresses);
void global_guesses_report(GlobalLaunch *launch);

/* global_lanes.c: an access of these lanes, before global_shadow_touch; a race between warps; and
 * the reports when the launch ends. */
void global_lanes_begin(struct GlobalState *own, uint32_t agents);
void global_lanes_touch(const GlobalNow *now, LaneMask mask, const uint64_t *addresses, bool run,
                        uint32_t bytes);
/* The same for a plain access of these lanes, all in one place (step 0) or all 32 side by side (step: their
 * bytes). False, and nothing has been noted: it may meet another one. */
bool global_lanes_step(const GlobalQuick *quick, LaneMask mask, uint64_t first, uint32_t step,
                       uint32_t bytes);
/* The warp's lanes make an access that cannot race among them. */
void global_lanes_pass(const ClusterCheck *check, uint32_t agent);
/* Lanes release, at this time of their warp. May a release have left out what other lanes have stored? Has the access that
 * this lane is about to make been ordered after the past one by other lanes only? */
void global_lanes_release(Warp *warp, const Instruction *in, uint32_t time);
bool global_lanes_hand_over(const GlobalNow *now);
GlobalMistake global_lanes_mistake(GlobalNow *now, const GlobalAccess *past, int lane);
void global_lanes_note_race(GlobalLaunch *launch, const Instruction *in, const Instruction *other);
void global_lanes_report(GlobalLaunch *launch);

/* unwritten.c: before a load and after a store, in one place or another; a copy or reduction writes there. */
void unwritten_accessed(Warp *warp, LaneMask mask, const uint64_t *addresses, bool run,
                        uint32_t bytes, Access access);
void unwritten_overwritten(const AsyncOperation *operation, uint64_t first, uint64_t bytes,
                           bool reduces);

/* own_stores.c: the thread's operation will write global memory. */
void will_write(BulkThread *thread, const AsyncOperation *operation);

/* changed_maps.c: a cluster begins, and ends. */
void maps_begin(const Cluster *cluster);
void maps_end(ClusterCheck *check);

/* global_report.c */
void global_report(const GlobalNow *now);
void global_report_later(const GlobalNow *now, KeptFinding *kept);
