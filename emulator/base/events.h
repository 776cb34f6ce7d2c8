/* events.h: tells whoever has subscribed that something has happened (events.def). */
#ifndef EMULATOR_EVENTS_H
#define EMULATOR_EVENTS_H

#include "base/address.h"
#include "base/warp.h"

typedef enum { FENCE_CTA, FENCE_CLUSTER, FENCE_GPU, FENCE_SYSTEM } FenceScope;
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
  FenceScope scope;
  bool sc;        /* sequentially consistent */
  uint8_t spaces; /* ProxySpace, of FENCE_PROXY_ASYNC */
} Fence;

/* How far a strong access reaches: its scope. Plain ones do not synchronise at all. */
typedef enum { REACH_PLAIN, REACH_CTA, REACH_CLUSTER, REACH_GPU, REACH_SYSTEM } Reach;

typedef enum { GROUPS_BULK, GROUPS_CP_ASYNC, GROUPS_WGMMA } GroupKind;

struct AsyncOperation; /* state/operation.h */

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
  EMIT(name, parameters, arguments, warp->cta->cluster->told)
#define EVENT(name, parameters, arguments) \
  EMIT(name, parameters, arguments, &event_handlers[TOLD_TO_ALL])
#include "base/events.def"
#undef EVENT
#undef EMIT

/* In the room's own file: it subscribes when the library is loaded. */
#define SUBSCRIBE(place, subscriber)                                 \
  __attribute__((constructor)) static void subscribe_##place(void) { \
    events_subscribe(place, &(subscriber));                          \
  }

#endif
