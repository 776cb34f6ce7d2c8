/* clocks.h: shared by the files that hand on what warps have seen (order.h). */
#pragma once

#include "base/lock.h"
#include "checker/order/order.h"

/* vector_clocks.c */
void order_make_clock(ClusterCheck *check, Clock *clock); /* if it has no vectors yet */
void order_release(ClusterCheck *check, uint32_t agent, Clock *into);
void order_acquire(ClusterCheck *check, uint32_t agent, const Clock *from);
/* Later accesses are not covered by what came before: a fence, or a release. */
void order_begin_new_epoch(ClusterCheck *check, uint32_t agent);
void order_begin_released_epoch(ClusterCheck *check, uint32_t agent);

/* These lanes are about to acquire something by this instruction; and they know what one of them knows. */
void order_lanes_acquire(Warp *warp, const Instruction *in, LaneMask lanes);
void order_lanes_meet(Warp *warp, LaneMask lanes);

/* barriers.c, through_shared.c: a cluster begins. */
void order_begin_barriers(ClusterCheck *check);
void locations_begin(ClusterCheck *check);

/* ---- Through global memory ---- */

/* Of a launch. */
typedef struct OrderLaunch {
  uint32_t clusters, depth;
  bool ignored;         /* out of memory for the order: nothing is reported any more */
  bool releases;        /* some warp has released something */
  bool triggers;        /* some warp has executed griddepcontrol.launch_dependents */
  pthread_mutex_t lock; /* of all that follows */
  struct KnownBlock *blocks;
  size_t block_used, bytes;
  struct GlobalLocation **locations; /* hash table */
  uint32_t location_count, location_capacity;
} OrderLaunch;

/* clock_trees.c; the launch's lock must be held, except for order_leaf */
void known_begin(OrderLaunch *launch);
void known_end(OrderLaunch *launch);
const void *known_join(OrderLaunch *launch, const void *one, const void *other);
/* A tree of one cluster. */
const void *known_single(OrderLaunch *launch, uint32_t cluster, const uint32_t *clocks,
                         uint32_t count);

/* through_global.c */
void known_merge(ClusterCheck *check, GlobalKnowledge *into, const GlobalKnowledge *from);
static inline void known_add(ClusterCheck *check, GlobalKnowledge *into,
                             const GlobalKnowledge *from) {
  bool news = false;
  for (int kind = 0; kind < KNOWN_KINDS_COUNT; kind++)
    news |= from->tree[kind] && from->tree[kind] != into->tree[kind];
  if (__builtin_expect(news, 0)) known_merge(check, into, from);
}
/* A fence, and a barrier of the block. */
void global_fence(Warp *warp, Reach reach, bool sc);
void global_barrier(Warp *warp);
/* What the warp's last fences of this scope or a wider one have released. */
void global_release_fenced(Warp *warp, Reach reach, Clock *into);
/* A proxy fence for global memory. */
void global_fence_proxy_async(Warp *warp);
/* griddepcontrol.wait, or .launch_dependents */
void global_dependency(Warp *warp, bool waits);
