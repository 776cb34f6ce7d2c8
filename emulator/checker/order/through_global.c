/* through_global.c: order between warps through global memory: fences, releases and acquires.
 *
 * A release pattern is a release operation, or a fence and a later strong write. An acquire pattern
 * is an acquire operation, or a strong read and a later fence. They synchronise if the read sees
 * the write, or one that follows it in a chain of atomics, and if all of these are morally strong
 * with each other: each scope includes the other side's thread. Each location through which
 * anything was released remembers the releases that its present value carries. */
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/fault.h"
#include "base/holds.h"
#include "checker/order/clocks.h"

enum { FIRST_LOCATIONS = 256, HEADS_MOST = 64 };

/* What one block has released through the present value. */
typedef struct {
  uint32_t cluster, rank;
  uint8_t reach; /* of the release or its fence */
  GlobalKnowledge known;
} Head;

typedef struct GlobalLocation {
  struct GlobalLocation *next;
  uint64_t address;
  uint32_t cluster, rank; /* who wrote the present value */
  uint8_t reach;
  bool unlocked; /* the present value was written by the warp that held this lock */
  bool forgot;   /* there were too many heads */
  uint32_t head_count, head_room;
  Head *heads;
  GlobalKnowledge wide; /* all heads of scope .gpu and .sys together */
  const void *any;      /* all heads, whatever their scope */
  const void *depends;  /* what the present value may depend on */
  const void *sc;       /* the writer's KNOWN_SC */
} GlobalLocation;

static int scope_index(Reach reach) {
  return reach >= REACH_GPU ? 2 : reach == REACH_CLUSTER ? 1 : 0;
}

/* The side that a scope must include. */
typedef struct {
  uint32_t cluster, rank;
} BlockPlace;

static bool includes(uint8_t reach, const BlockPlace *own, uint32_t cluster, uint32_t rank) {
  if (reach >= REACH_GPU) return true;
  if (reach == REACH_PLAIN || own->cluster != cluster) return false;
  return reach == REACH_CLUSTER || own->rank == rank;
}

/* ---- Knowledge ---- */

OrderLaunch *order_launch_begin(uint32_t clusters, const bool **gave_up) {
  OrderLaunch *launch = new_zeros(1, sizeof *launch);
  launch->clusters = clusters;
  pthread_mutex_init(&launch->lock, NULL);
  known_begin(launch);
  *gave_up = &launch->ignored;
  return launch;
}

bool order_launch_end(OrderLaunch *launch) {
  const bool triggers = launch->triggers;
  for (uint32_t i = 0; i < launch->location_capacity; i++) {
    for (GlobalLocation *each = launch->locations[i], *next; each; each = next) {
      next = each->next;
      free(each->heads);
      free(each);
    }
  }
  free(launch->locations);
  known_end(launch);
  pthread_mutex_destroy(&launch->lock);
  free(launch);
  return triggers;
}

static void add_tree(OrderLaunch *launch, const void **into, const void *tree) {
  *into = known_join(launch, *into, tree);
}

static void add_knowledge(OrderLaunch *launch, GlobalKnowledge *into, const GlobalKnowledge *more) {
  for (int kind = 0; kind < KNOWN_KINDS_COUNT; kind++)
    add_tree(launch, &into->tree[kind], more->tree[kind]);
}

void known_merge(ClusterCheck *check, GlobalKnowledge *into, const GlobalKnowledge *from) {
  if (!check->order.launch) return;
  OrderLaunch *launch = check->order.launch;
  HOLD_LOCK(&launch->lock);
  add_knowledge(launch, into, from);
}

static void add_fenced(const ClusterCheck *check, const void **into, const Clock *clock,
                       int space) {
  const OrderState *own = &check->order;
  if (!check->order.any_fenced[space]) return;
  add_tree(own->launch, into,
           known_single(own->launch, own->cluster, clock->fenced[space], check->order.width));
}

/* All that the warp knows now, with what it and its cluster have done. Starts a new epoch. */
static GlobalKnowledge snapshot(ClusterCheck *check, uint32_t agent) {
  OrderState *own = &check->order;
  OrderLaunch *launch = own->launch;
  Clock *clock = &check->order.agents[agent].clock;
  GlobalKnowledge all = clock->known;
  clock->seen[agent] = check->order.agents[agent].now;
  const void *here = known_single(launch, own->cluster, clock->seen, check->order.width);
  clock->seen[agent] = UINT32_MAX;
  for (int kind = 0; kind < KNOWN_KINDS_COUNT; kind++) {
    if (kind != KNOWN_FENCED && kind != KNOWN_FENCED_SHARED)
      add_tree(launch, &all.tree[kind], here);
    else
      add_fenced(check, &all.tree[kind], clock,
                 kind == KNOWN_FENCED ? FENCED_GLOBAL : FENCED_SHARED);
  }
  all.tree[KNOWN_SC] = all.tree[KNOWN_SC_READ] = NULL; /* barriers hand that on, not releases */
  order_begin_released_epoch(check, agent);
  /* Read without the lock, after a value that was written after this: the host's order of those
   * two is enough. */
  __atomic_store_n(&launch->releases, true, __ATOMIC_RELAXED);
  return all;
}

static void learn_own(uint32_t *seen, const KnownLeaf *leaf) {
  for (uint32_t i = 0; leaf && i < leaf->count; i++)
    if (seen[i] < leaf->clocks[i]) seen[i] = leaf->clocks[i];
}

static void learn_fenced(Clock *clock, const KnownLeaf *leaf) {
  learn_own(clock->fenced[FENCED_SHARED], leaf);
  if (clock->fenced[FENCED_PEERS]) learn_own(clock->fenced[FENCED_PEERS], leaf);
}

/* The warp now knows what is in these trees. Knowledge about its own cluster goes to its clock. */
static void learn_trees(ClusterCheck *check, uint32_t agent, KnownKind kind, const void *tree) {
  OrderState *own = &check->order;
  Clock *clock = &check->order.agents[agent].clock;
  const void *before = clock->known.tree[kind];
  add_tree(own->launch, &clock->known.tree[kind], tree);
  if (clock->known.tree[kind] == before) return;
  const KnownLeaf *leaf = order_leaf(own->launch, tree, own->cluster);
  if (kind == KNOWN) learn_own(clock->seen, leaf);
  if (kind == KNOWN && clock->published) learn_own(clock->published, leaf);
  if (kind == KNOWN_FENCED) learn_own(clock->fenced[FENCED_GLOBAL], leaf);
  if (kind == KNOWN_FENCED_SHARED) learn_fenced(clock, leaf);
  if (kind == KNOWN) order_begin_epoch(check, agent);
}
/* The same for an acquire. */
static void learn_all(ClusterCheck *check, uint32_t agent, const GlobalKnowledge *known) {
  learn_trees(check, agent, KNOWN, known->tree[KNOWN]);
  for (int kind = KNOWN_ACQUIRED; kind < KNOWN_SC; kind++)
    learn_trees(check, agent, (KnownKind)kind, known->tree[kind]);
}

/* ---- Locations ---- */

static GlobalLocation **location_link(const OrderLaunch *launch, uint64_t address) {
  uint64_t hash = (address >> 2) * 0x9e3779b97f4a7c15ull;
  return &launch->locations[(hash >> 32) & (launch->location_capacity - 1)];
}

static GlobalLocation *find_location(const OrderLaunch *launch, uint64_t address) {
  if (!launch->location_capacity) return NULL;
  GlobalLocation *found = *location_link(launch, address);
  while (found && found->address != address) found = found->next;
  return found;
}

static void grow_locations(OrderLaunch *launch) {
  GlobalLocation **old = launch->locations;
  uint32_t capacity = launch->location_capacity;
  launch->location_capacity = capacity ? capacity * 4 : FIRST_LOCATIONS;
  launch->locations = new_zeros(launch->location_capacity, sizeof(GlobalLocation *));
  for (uint32_t i = 0; i < capacity; i++) {
    for (GlobalLocation *each = old[i], *next; each; each = next) {
      next = each->next;
      GlobalLocation **place = location_link(launch, each->address);
      each->next = *place;
      *place = each;
    }
  }
  free(old);
}

static GlobalLocation *make_location(OrderLaunch *launch, uint64_t address) {
  if (launch->location_count >= launch->location_capacity) grow_locations(launch);
  HOLDS_DEARLY(!find_location(launch, address));
  GlobalLocation *made = new_zeros(1, sizeof *made), **place = location_link(launch, address);
  made->address = address;
  made->next = *place;
  *place = made;
  launch->location_count++;
  return made;
}

static void add_head(OrderLaunch *launch, GlobalLocation *location, const BlockPlace *own,
                     uint8_t reach, const GlobalKnowledge *known) {
  if (reach >= REACH_GPU) add_knowledge(launch, &location->wide, known);
  add_tree(launch, &location->any, known->tree[KNOWN_ANY_SCOPE]);
  for (uint32_t i = 0; i < location->head_count; i++) {
    Head *head = &location->heads[i];
    if (head->cluster != own->cluster || head->rank != own->rank || head->reach != reach) continue;
    add_knowledge(launch, &head->known, known);
    return;
  }
  if (location->head_count == HEADS_MOST) {
    location->forgot = true;
    add_knowledge(launch, &location->wide, known);
    return;
  }
  if (location->head_count == location->head_room) {
    location->head_room = location->head_room ? location->head_room * 2 : 1;
    location->heads = realloc(location->heads, location->head_room * sizeof(Head));
    if (!location->heads) out_of_memory();
  }
  location->heads[location->head_count++] = (Head){own->cluster, own->rank, reach, *known};
}

/* The heads with which an acquire of this scope by a thread there synchronises. */
static void heads_for(OrderLaunch *launch, const GlobalLocation *location, const BlockPlace *own,
                      uint8_t reach, GlobalKnowledge *into) {
  if (reach >= REACH_GPU || location->forgot) add_knowledge(launch, into, &location->wide);
  for (uint32_t i = 0; i < location->head_count; i++) {
    const Head *head = &location->heads[i];
    BlockPlace there = {head->cluster, head->rank};
    if (reach >= REACH_GPU && head->reach >= REACH_GPU) continue; /* in `wide` */
    if (includes(reach, own, head->cluster, head->rank) &&
        includes(head->reach, &there, own->cluster, own->rank))
      add_knowledge(launch, into, &head->known);
  }
}

/* ---- Strong accesses ---- */

static void read_location(ClusterCheck *check, uint32_t agent, GlobalLocation *location,
                          const BlockPlace *own, const GlobalKind *kind) {
  static const uint8_t reach_of[SCOPES] = {REACH_CTA, REACH_CLUSTER, REACH_GPU};
  OrderLaunch *launch = check->order.launch;
  GlobalWarp *warp = &check->order.agents[agent].global;
  learn_trees(check, agent, KNOWN_ANY_SCOPE, location->any);
  BlockPlace writer = {location->cluster, location->rank};
  if (!includes(location->reach, &writer, own->cluster, own->rank) ||
      !includes(kind->reach, own, writer.cluster, writer.rank))
    return;
  GlobalKnowledge heads[SCOPES];
  memset(heads, 0, sizeof heads);
  for (int i = 0; i < SCOPES; i++) {
    heads_for(launch, location, own, reach_of[i], &heads[i]);
    add_knowledge(launch, &warp->read[i], &heads[i]);
  }
  add_tree(launch, &check->order.agents[agent].clock.known.tree[KNOWN_SC_READ], location->sc);
  const GlobalKnowledge *now = &heads[scope_index((Reach)kind->reach)];
  learn_trees(check, agent, KNOWN_ACQUIRED, now->tree[KNOWN_ACQUIRED]);
  learn_trees(check, agent, KNOWN_ANY_SCOPE, now->tree[KNOWN_ANY_SCOPE]);
  if (kind->access == ACCESS_READ) learn_trees(check, agent, KNOWN_DEPENDS, location->depends);
  if (kind->acquire) learn_all(check, agent, now);
  if (kind->access == ACCESS_ATOMIC) add_knowledge(launch, &warp->updated, now);
}

/* Fences.sc have an order of their own, in which a reader's fence.sc comes later than one that a
 * barrier has ordered before the write: all threads may execute __threadfence() and then meet at
 * __syncthreads(), before one of them sets the flag. The other way round it is the same
 * (learn_of_fences). */
static void add_fences_before_barrier(OrderLaunch *launch, GlobalLocation *location,
                                      const void *fences) {
  GlobalKnowledge known = {{NULL}};
  known.tree[KNOWN] = known.tree[KNOWN_ACQUIRED] = known.tree[KNOWN_ANY_SCOPE] = fences;
  add_knowledge(launch, &location->wide, &known);
  add_tree(launch, &location->any, fences);
}

static void write_location(ClusterCheck *check, uint32_t agent, GlobalLocation *location,
                           const BlockPlace *own, const GlobalKind *kind,
                           const GlobalKnowledge *released) {
  static const uint8_t reach_of[SCOPES] = {REACH_CTA, REACH_CLUSTER, REACH_GPU};
  OrderLaunch *launch = check->order.launch;
  const GlobalWarp *warp = &check->order.agents[agent].global;
  BlockPlace writer = {location->cluster, location->rank};
  bool continues = kind->access == ACCESS_ATOMIC &&
                   includes(location->reach, &writer, own->cluster, own->rank) &&
                   includes(kind->reach, own, writer.cluster, writer.rank);
  if (!continues) {
    location->head_count = 0;
    location->forgot = false;
    memset(&location->wide, 0, sizeof location->wide);
    location->sc = NULL;
    if (kind->access != ACCESS_ATOMIC) location->any = NULL;
  }
  if (kind->access != ACCESS_ATOMIC) location->depends = NULL;
  location->cluster = own->cluster;
  location->rank = own->rank;
  location->reach = kind->reach;
  if (released) add_head(launch, location, own, kind->reach, released);
  for (int i = 0; i < SCOPES; i++)
    if (warp->fence[i].tree[KNOWN]) add_head(launch, location, own, reach_of[i], &warp->fence[i]);
  const void *fences = check->order.agents[agent].clock.known.tree[KNOWN_SC];
  if (fences && fences != warp->fence[SCOPES - 1].tree[KNOWN])
    add_fences_before_barrier(launch, location, fences);
  add_tree(launch, &location->sc, fences);
}

static uint32_t distinct(LaneMask mask, const uint64_t *addresses, uint64_t *found) {
  uint32_t count = 0;
  FOR_LANES(lane, mask) {
    uint64_t address = addresses[lane];
    if (address & GENERIC_TAG_MASK) continue;
    if (count == 0 || found[count - 1] != address) found[count++] = address;
  }
  return count;
}

/* A compare-and-swap may take a lock. The warp's next write to the same place that is not a
 * compare-and-swap releases the lock. */
static void note_lock(ClusterCheck *check, uint32_t agent, const GlobalKind *kind, uint64_t address,
                      bool single) {
  GlobalWarp *state = &check->order.agents[agent].global;
  const OrderLaunch *launch = check->order.launch;
  bool takes = kind->swaps && single;
  if (!takes && (kind->swaps || state->lock != address)) return;
  const GlobalLocation *location = takes ? find_location(launch, address) : NULL;
  state->lock = takes ? address : 0;
  state->lock_fence = takes && kind->acquire ? REACH_SYSTEM : REACH_PLAIN;
  state->lock_handed = location && location->unlocked;
  order_begin_epoch(check, agent); /* accesses after this one differ from those before */
}

void check_global_release(Warp *warp, LaneMask mask, const uint64_t *addresses,
                          const GlobalKind *kind, bool repeats) {
  ClusterCheck *check = check_of(warp);
  OrderState *own = &check->order;
  if (!own->launch || kind->access == ACCESS_READ) return;
  OrderLaunch *launch = own->launch;
  uint32_t agent = agent_of(warp);
  GlobalWarp *state = &own->agents[agent].global;
  state->strong_write = true;
  bool publishes = kind->release || state->any_fence ||
                   check->order.agents[agent].clock.known.tree[KNOWN_SC] != NULL;
  bool locks = kind->swaps || state->lock;
  bool stores = kind->access == ACCESS_WRITE;
  if (!publishes && !locks && !stores && !__atomic_load_n(&launch->releases, __ATOMIC_RELAXED))
    return;
  uint64_t found[LANES];
  uint32_t count = distinct(mask, addresses, found);
  if (count == 0) return;
  bool flag = stores && count == 1; /* otherwise it is data */
  BlockPlace place = {own->cluster, warp->cta->rank};
  HOLD_LOCK(&launch->lock);
  uint64_t held = state->lock;
  if (locks) note_lock(check, agent, kind, found[0], count == 1);
  GlobalKnowledge released;
  if (kind->release || flag) released = snapshot(check, agent);
  for (uint32_t i = 0; i < count; i++) {
    GlobalLocation *location = find_location(launch, found[i]);
    if (!location && !publishes && !flag) continue;
    if (!location) location = make_location(launch, found[i]);
    /* A flag that is raised twice: who sees it may have seen the first time, and knows of no more. */
    if (flag && repeats && location->head_count && location->cluster == place.cluster &&
        location->rank == place.rank)
      continue;
    write_location(check, agent, location, &place, kind, kind->release ? &released : NULL);
    location->unlocked = held == found[i] && !kind->swaps;
    if (flag)
      location->depends = known_join(launch, released.tree[KNOWN_DEPENDS], released.tree[KNOWN]);
  }
}

void check_global_acquire(Warp *warp, LaneMask mask, const uint64_t *addresses,
                          const GlobalKind *kind) {
  ClusterCheck *check = check_of(warp);
  OrderState *own = &check->order;
  if (!own->launch || kind->access == ACCESS_WRITE || kind->blind) return;
  OrderLaunch *launch = own->launch;
  uint32_t agent = agent_of(warp);
  own->agents[agent].global.strong_read = true;
  if (!__atomic_load_n(&launch->releases, __ATOMIC_RELAXED)) return;
  uint64_t found[LANES];
  uint32_t count = distinct(mask, addresses, found);
  BlockPlace place = {own->cluster, warp->cta->rank};
  order_lanes_acquire(warp, NULL, mask);
  HOLD_LOCK(&launch->lock);
  for (uint32_t i = 0; i < count; i++) {
    GlobalLocation *location = find_location(launch, found[i]);
    if (location) read_location(check, agent, location, &place, kind);
  }
}

/* ---- Fences and barriers ---- */

/* One thread has seen a flag, then all meet at a barrier, and each executes fence.sc. If one of these came
 * before a fence.sc before the flag, it would come before the flag was set, and so would the read that
 * has seen it. */
static void learn_of_fences(ClusterCheck *check, uint32_t agent, bool wide) {
  const void *fences = check->order.agents[agent].clock.known.tree[KNOWN_SC_READ];
  if (!fences) return;
  learn_trees(check, agent, KNOWN_ANY_FENCE, fences);
  for (int kind = KNOWN; kind <= KNOWN_ANY_SCOPE && wide; kind++)
    learn_trees(check, agent, (KnownKind)kind, fences);
}

void global_fence(Warp *warp, Reach reach, bool sc) {
  ClusterCheck *check = check_of(warp);
  OrderState *own = &check->order;
  if (!own->launch) return;
  uint32_t agent = agent_of(warp);
  GlobalWarp *state = &own->agents[agent].global;
  HOLD_LOCK(&own->launch->lock);
  int scope = scope_index(reach);
  learn_all(check, agent, &state->read[scope]);
  learn_trees(check, agent, KNOWN_ANY_FENCE, state->read[SCOPES - 1].tree[KNOWN]);
  if (sc) learn_of_fences(check, agent, scope == SCOPES - 1);
  if (state->lock_fence < reach) state->lock_fence = (uint8_t)reach;
  GlobalKnowledge all = snapshot(check, agent);
  /* a wider fence is a narrower one as well */
  for (int i = 0; i < scope; i++) memset(&state->fence[i], 0, sizeof state->fence[i]);
  state->fence[scope] = all;
  state->any_fence = true;
  if (sc && scope == SCOPES - 1)
    check->order.agents[agent].clock.known.tree[KNOWN_SC] = all.tree[KNOWN];
}

void global_release_fenced(Warp *warp, Reach reach, Clock *into) {
  ClusterCheck *check = check_of(warp);
  OrderState *own = &check->order;
  if (!own->launch || !own->agents[agent_of(warp)].global.any_fence) return;
  HOLD_LOCK(&own->launch->lock);
  for (int i = scope_index(reach); i < SCOPES; i++) {
    const GlobalKnowledge *fence = &own->agents[agent_of(warp)].global.fence[i];
    const KnownLeaf *leaf = order_leaf(own->launch, fence->tree[KNOWN], own->cluster);
    learn_own(into->seen, leaf);
    if (into->published) learn_own(into->published, leaf);
    learn_own(into->fenced[FENCED_GLOBAL],
              order_leaf(own->launch, fence->tree[KNOWN_FENCED], own->cluster));
    learn_fenced(into, order_leaf(own->launch, fence->tree[KNOWN_FENCED_SHARED], own->cluster));
    add_knowledge(own->launch, &into->known, fence);
  }
}

/* The CUDA guide and its samples let the last block read what the others have written, after an
 * atomic that counts the blocks and a __syncthreads(), without a fence in the reader. So an atomic
 * and a barrier count as an acquire. */
void global_barrier(Warp *warp) {
  ClusterCheck *check = check_of(warp);
  OrderState *own = &check->order;
  if (!own->launch) return;
  uint32_t agent = agent_of(warp);
  const GlobalKnowledge *updated = &own->agents[agent].global.updated;
  own->agents[agent].global.lock_fence = REACH_SYSTEM;
  if (!updated->tree[KNOWN]) return;
  HOLD_LOCK(&own->launch->lock);
  learn_all(check, agent, updated);
}

void global_fence_proxy_async(Warp *warp) {
  ClusterCheck *check = check_of(warp);
  OrderState *own = &check->order;
  if (!own->launch) return;
  Clock *clock = &check->order.agents[agent_of(warp)].clock;
  if (!clock->known.tree[KNOWN]) return;
  HOLD_LOCK(&own->launch->lock);
  add_tree(own->launch, &clock->known.tree[KNOWN_FENCED], clock->known.tree[KNOWN]);
}

void global_dependency(Warp *warp, bool waits) {
  ClusterCheck *check = check_of(warp);
  OrderLaunch *launch = check->order.launch;
  if (!launch) return;
  if (!waits) {
    __atomic_store_n(&launch->triggers, true, __ATOMIC_RELAXED);
    return;
  }
  static const uint32_t waited = 1;
  HOLD_LOCK(&launch->lock);
  learn_trees(check, agent_of(warp), KNOWN, known_single(launch, launch->clusters, &waited, 1));
}
