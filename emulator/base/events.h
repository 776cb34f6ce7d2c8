/* events.h: tells whoever has subscribed that something has happened (events.def). */
#pragma once

#include "base/address.h"
#include "base/fault.h"
#include "base/warp.h"

/* How far a strong access or a fence reaches: its scope. Plain accesses do not synchronise at all. */
typedef enum { REACH_PLAIN, REACH_CTA, REACH_CLUSTER, REACH_GPU, REACH_SYSTEM } Reach;
/* The memory that a proxy fence is for. */
typedef enum {
  PROXY_OF_OWN_SHARED = 1, /* .shared::cta */
  PROXY_OF_SHARED = 3,     /* .shared::cluster */
  PROXY_OF_GLOBAL = 4,
  PROXY_OF_ALL = 7
} ProxySpace;
typedef enum {
  FENCE_OF_MEMORY, /* fence, membar: the only one with a scope */
  FENCE_PROXY_ASYNC,
  FENCE_MBARRIER_INIT,
  FENCE_TENSORMAP_RELEASE,
  FENCE_TENSORMAP_ACQUIRE,
  FENCE_WGMMA
} FenceKind;
typedef struct {
  FenceKind kind;
  Reach reach;
  bool sc;        /* sequentially consistent */
  uint8_t spaces; /* ProxySpace, of FENCE_PROXY_ASYNC */
} Fence;

/* A strong access to global memory. */
enum { GLOBAL_VOLATILE = 1, GLOBAL_NON_COHERENT = 2 };
typedef struct {
  uint8_t access; /* Access */
  uint8_t reach;  /* Reach */
  uint8_t flags;  /* GLOBAL_... */
  uint8_t size;   /* bytes of each element of a strong access */
  bool acquire, release;
  bool swaps;   /* a compare-and-swap */
  bool updates; /* an atomic whose result depends on what was there */
  bool blind;   /* an atomic without a result: it cannot acquire */
  bool unread;  /* an atomic whose result nobody reads, or that has none */
  uint8_t kept; /* a compare-and-swap of a word: the bytes that it would leave as they are */
} GlobalKind;

/* An access to shared memory through the generic proxy: addresses[lane] are shared addresses
 * (rank << 24 | offset) of `bytes` bytes each. volatile, relaxed, acquire and release accesses and
 * atomics are `strong`: they do not race with each other and may order others. */
typedef struct {
  Access access;
  bool strong;
  bool is_volatile;
  bool updates; /* an atomic whose result depends on what was there */
  /* The bytes that a lane is about to store, at most 16; NULL: not known. */
  void (*lane_bytes)(const Warp *warp, const Instruction *in, int lane, uint8_t *bytes);
  /* A lane's compare-and-swap of a word: the bytes that it would leave as they are; NULL: it is none. */
  uint8_t (*kept)(const Warp *warp, const Instruction *in, int lane);
} AccessKind;
/* One of the registers that a load, store or atomic operation moves to or from memory. */
typedef struct {
  uint16_t slot;
  uint8_t column_bytes, memory_bytes, offset;
  bool sign; /* a short value is sign-extended */
} MovedRegister;

/* What a value is used for (origins.c has a text for each). */
typedef enum {
  USED_FOR_NOTHING, /* it is only read */
  USED_STORED,      /* it goes to global memory */
  USED_AS_ADDRESS,
  USED_BY_BRANCH,
  USED_BY_GUARD,
  USED_BY_INSTRUCTION, /* it decides what this does, but no correct program leaves that to chance */
  USED_IN_VOTE,        /* the same, and a program may drop the answer */
  USED_AS_LANE_MASK,
  USED_IN_MAP,
  USED_BY_PRINTF,
  USED_BY_MALLOC,
  USED_BY_FREE
} UndefinedUse;

typedef enum { GROUPS_BULK, GROUPS_CP_ASYNC, GROUPS_WGMMA } GroupKind;
typedef struct {
  GroupKind kind;
  uint32_t pending;
  bool reads_only;
  LaneMask idle; /* of GROUPS_BULK: lanes that have never issued or committed anything */
} GroupWait;

/* What an operation reads and writes of shared memory. */
typedef struct {
  const SharedPiece *reads;
  int read_count;
  const SharedPiece *writes;
  int write_count;
} CopiedPieces;

/* A barrier of a block is named by its number. */
enum { NAMED_BARRIERS = 16, BARRIER_OF_CLUSTER = NAMED_BARRIERS };
typedef struct {
  uint32_t number;
  LaneMask mask;  /* of who passes barrier.cluster: the lanes that had arrived, in this round */
  uint32_t round; /* of barrier.cluster: counts its uses */
  bool relaxed;
} BarrierUse;

/* ---- What whoever has subscribed answers ---- */

/* Who has initialised a barrier. number: of the barrier, below MBARRIERS_MOST. */
typedef struct {
  uint32_t number, agent;
  int lane;
  const Instruction *in;
  uint32_t line;    /* line %u of the %s: where that was */
  const char *text; /* "source" or "PTX" */
} MbarrierInit;
/* What is known of the barrier, and what the warp has seen of it. parity: of the wait that this is about; INIT_ONLY:
 * of what does not depend on it: `valid`, `known_over`, `over_by_luck` and `init`. */
enum { INIT_ONLY = UINT32_MAX };
typedef struct {
  bool valid; /* it is initialised, and its block has not exited */
  /* It knows that the last phase is over; nothing that it knows says so, nor has it been answered "not yet" since. */
  bool known_over, over_by_luck;
  MbarrierInit init;
  /* The phase that it should wait for next, given the answers so far. If these do not lead to this
   * parity, what it has learnt of the barrier from others may. */
  uint32_t next_phase;
  uint32_t missed_phases; /* that went by without a wait of this warp for them */
  bool
      lost; /* it has been initialised again since this warp used it, without an order between the two */
  /* the thread that announced bytes last knew that another one had done so in the same phase */
  bool announced_again;
  /* This warp has waited for a barrier of its block, at this offset, at which only threads of another rank have
   * arrived. */
  bool freed_by_others;
  uint32_t freed_offset, freed_by;
  const Instruction *not_yet; /* the wait at another barrier that it has not repeated; NULL: none */
  /* What is wrong with its last wait of all, if that came since bytes were last announced here; empty: nothing. */
  Phrase wait;
} MbarrierPast;

/* What the operation's bytes were last used for by an operation that is not ordered before it. */
typedef struct {
  uint32_t operation;
  bool wrote;            /* else it read */
  const Instruction *in; /* by a kernel; NULL: by no kernel */
  uint64_t address;      /* of the first such byte */
} OperationConflict;
/* How operations are ordered among each other. Until this is called, each is ordered before all
 * later ones. */
typedef struct {
  bool (*ordered)(uint32_t earlier, uint32_t later);
  /* Are all operations before this one ordered before it, and before all that will come? Then they
   * are forgotten, so this should be true as often as possible: with one stream it always is. */
  bool (*settled)(uint32_t operation);
  /* "the copy in stream 2", for reports by kernels */
  Phrase (*describe)(uint32_t operation);
  /* One of them has waited for what the other one wrote. */
  void (*talk)(uint32_t one, uint32_t other);
} OperationOrder;

struct AsyncOperation; /* state/operation.h */
struct PendingWgmma;   /* tensor_core/wgmma.h */
struct Rendezvous;     /* flow/exchange.h */
struct Exchange;
typedef struct WarpAccess WarpAccess; /* arithmetic/warp_access.h */

/* How a launch has ended. */
typedef struct {
  bool failed, stalled;       /* stalled: it was set aside, because it waits for another stream */
  uint64_t steps, most_steps; /* of all its clusters, and the most of one */
  /* Runs it once more, in a forked process, and at most so many steps of each cluster. False: it has failed, or
   * printed something else. */
  bool (*run_again)(Launch *launch, uint64_t most_steps);
  bool (*host_is_alone)(void); /* the program has no other host threads */
} LaunchEnd;

/* A member for each event; NULL: it is not wanted. */
typedef struct {
#define EVENT(name, parameters, arguments) void(*name) parameters;
#include "base/events.def"
#undef EVENT
} Subscriber;

/* Who is told, in this order. Those from ORDER on are the checker's folders. */
typedef enum {
  RECORDER_EVENTS,
  TRIAL_EVENTS,
  ORDER_EVENTS,
  UNDEFINED_EVENTS,
  MBARRIER_EVENTS,
  OPERATION_EVENTS,
  SOURCE_EVENTS,
  TILE_EVENTS,
  GONE_EVENTS,
  LANES_EVENTS,
  EXIT_EVENTS,
  MAP_BYTES_EVENTS,
  MAP_EVENTS,
  LAUNCH_EVENTS,
  CHECKER_EVENTS,
  REGISTER_EVENTS,
  SUMMARY_EVENTS,
  SUBSCRIBERS
} SubscriberPlace;
/* Of whom: a cluster that is neither recorded nor checked tells nobody of its warps. */
enum { TOLD_TO_RECORDER = 1, TOLD_TO_CHECKER = 2, TOLD_TO_ALL = 3 };
/* Who wants each event, without gaps, up to NULL. Written when the library is loaded, by the constructors of those
 * rooms, and only read later. */
typedef struct EventHandlers {
#define EVENT(name, parameters, arguments) void(*name[SUBSCRIBERS + 1]) parameters;
#include "base/events.def"
#undef EVENT
  const Subscriber *subscribers[SUBSCRIBERS];
} EventHandlers;
extern EventHandlers event_handlers[TOLD_TO_ALL + 1] __attribute__((visibility("hidden")));
void events_subscribe(SubscriberPlace place, const Subscriber *subscriber);

#define EMIT(name, parameters, arguments, handlers)                    \
  static inline void emit_##name parameters {                          \
    const EventHandlers *told_ = (handlers);                           \
    for (int i_ = 0; told_->name[i_]; i_++) told_->name[i_] arguments; \
  }
#define WARP_EVENT(name, parameters, arguments) \
  EMIT(name, parameters, arguments, warp->cta->cluster->handlers)
#define EVENT(name, parameters, arguments) \
  EMIT(name, parameters, arguments, &event_handlers[TOLD_TO_ALL])
#include "base/events.def"
#undef EVENT
#undef EMIT

/* Does anybody listen for this event of a warp? */
#define is_wanted(warp, name) ((warp)->cta->cluster->handlers->name[0] != NULL)

/* In the room's own file: it subscribes when the library is loaded. */
#define SUBSCRIBE(place, subscriber)                                 \
  __attribute__((constructor)) static void subscribe_##place(void) { \
    events_subscribe(place, &(subscriber));                          \
  }
