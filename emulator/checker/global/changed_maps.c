/* changed_maps.c: checks tensor maps that a kernel changes.
 *
 * A map is read through a separate proxy, which may keep an old copy. Before using a map that
 * was changed while the kernel ran, a thread must acquire it
 * (fence.proxy.tensormap::generic.acquire), even if the same thread changed it. The CUDA Programming
 * Guide asks for that also where the host wrote a map to global memory before the launch. That is not
 * looked for: an H200 was right without it. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/lock.h"
#include "base/settings.h"
#include "checker/global/global_state.h"
#include "checker/lanes/lanes.h"

typedef struct ChangedMap ChangedMap;
struct ChangedMap {
  ChangedMap *next;
  uint64_t address;
  const Instruction *in;
  uint32_t change; /* incremented with every change */
};

enum { MAP_BYTES = 128, MAPS_KNOWN = 256 };
/* All clusters of the launch share the maps in global memory. */
static struct {
  pthread_mutex_t lock; /* of all of it */
  ChangedMap *changed;
  bool any_changed; /* read without the lock: most programs never change a map */
  /* Maps in global memory that this program has used or made. Programs execute millions of ordinary
   * stores, so the range is checked before the list, without the lock. */
  uint64_t known[MAPS_KNOWN];
  int known_count;
  uint64_t known_first, known_end;
} maps = {.lock = PTHREAD_MUTEX_INITIALIZER, .known_first = UINT64_MAX};

typedef struct AcquiredMap AcquiredMap;
/* By lanes of a warp, the first of which has acquired it at this time and stamp. */
struct AcquiredMap {
  AcquiredMap *next;
  uint64_t address;
  uint32_t change, agent, time, stamp;
  LaneMask lanes;
  int lane;
};

static ChangedMap *find_changed(uint64_t address) {
  ChangedMap *map = maps.changed;
  while (map && map->address != address) map = map->next;
  return map;
}

/* May these bytes hold a part of a tensor map that the program has used? Relaxed: who is ordered
 * after a use sees it. */
static bool maps_may_be_in(uint64_t first, uint64_t bytes) {
  return first + bytes > __atomic_load_n(&maps.known_first, __ATOMIC_RELAXED) &&
         first < __atomic_load_n(&maps.known_end, __ATOMIC_RELAXED);
}

static void know_map(uint64_t address) {
  if (address & GENERIC_TAG_MASK) return; /* a parameter: stores cannot change it */
  HOLD_LOCK(&maps.lock);
  bool known = maps.known_count == MAPS_KNOWN;
  for (int i = 0; i < maps.known_count && !known; i++) known = maps.known[i] == address;
  HOLDS(!maps.known_count || maps.known_first < maps.known_end);
  if (!known) {
    maps.known[maps.known_count++] = address;
    if (address < maps.known_first) __atomic_store_n(&maps.known_first, address, __ATOMIC_RELAXED);
    if (address + MAP_BYTES > maps.known_end) {
      __atomic_store_n(&maps.known_end, address + MAP_BYTES, __ATOMIC_RELAXED);
    }
  }
}

/* The first cluster of a launch: what earlier launches changed is visible to this one. */
void maps_begin(const Cluster *cluster) {
  if (cluster->number != 0 || !__atomic_load_n(&maps.any_changed, __ATOMIC_ACQUIRE)) return;
  HOLD_LOCK(&maps.lock);
  while (maps.changed) {
    ChangedMap *next = maps.changed->next;
    free(maps.changed);
    maps.changed = next;
  }
  __atomic_store_n(&maps.any_changed, false, __ATOMIC_RELEASE);
}

void maps_end(ClusterCheck *check) {
  while (check->global->acquired_maps) {
    AcquiredMap *next = check->global->acquired_maps->next;
    free(check->global->acquired_maps);
    check->global->acquired_maps = next;
  }
}

static void note_change(const Instruction *in, uint64_t address) {
  ChangedMap *map = find_changed(address);
  if (!map) {
    map = new_zeros(1, sizeof *map);
    map->address = address;
    map->next = maps.changed;
    maps.changed = map;
  }
  map->in = in;
  map->change++;
  __atomic_store_n(&maps.any_changed, true, __ATOMIC_RELEASE);
}

void check_tensor_map_written(const Instruction *in, uint64_t address, uint32_t bytes) {
  if (in->traits & TENSOR_MAP) {
    know_map(address);
  } else if (!maps_may_be_in(address, bytes)) {
    return;
  }
  HOLD_LOCK(&maps.lock);
  for (int i = 0; i < maps.known_count; i++) {
    if (address + bytes > maps.known[i] && address < maps.known[i] + MAP_BYTES) {
      note_change(in, maps.known[i]);
    }
  }
}

static void map_fenced(Warp *warp, const Instruction *in, bool acquire, uint64_t address,
                       LaneMask mask) {
  (void)in;
  if (!acquire || !__atomic_load_n(&maps.any_changed, __ATOMIC_ACQUIRE)) return;
  ClusterCheck *check = check_of(warp);
  const uint32_t agent = agent_of(warp);
  pthread_mutex_lock(&maps.lock);
  const ChangedMap *changed = find_changed(address);
  uint32_t change = changed ? changed->change : 0;
  pthread_mutex_unlock(&maps.lock);
  if (!change) return;
  AcquiredMap *map = check->global->acquired_maps;
  while (map && (map->address != address || map->agent != agent)) map = map->next;
  if (map && map->change == change) {
    map->lanes |= mask;
    return;
  }
  if (!map) {
    map = new_zeros(1, sizeof *map);
    map->next = check->global->acquired_maps;
    check->global->acquired_maps = map;
  }
  *map = (AcquiredMap){.next = map->next,
                       .address = address,
                       .change = change,
                       .agent = agent,
                       .time = clock_of(check, agent),
                       .stamp = check->lanes_checked ? lanes_order(check, agent)->stamp : 0,
                       .lanes = mask,
                       .lane = first_lane(mask)};
}

/* Is that ordered before what the lane does now? Lanes that have met at a shuffle or the like count as ordered. */
static bool is_before(const ClusterCheck *check, const AcquiredMap *map, uint32_t agent, int lane) {
  if (map->agent != agent) return has_seen(check, agent, map->agent, map->time);
  if (!check->lanes_checked || map->lanes >> lane & 1) return true;
  const LaneOrder *order = lanes_order(check, agent);
  return map->stamp <= order->met[lane] || lanes_ordered(order, lane, map->lane, map->stamp);
}

static void map_used(Warp *warp, const Instruction *in, int lane, uint64_t address) {
  if (!maps_may_be_in(address, MAP_BYTES)) know_map(address);
  if (!__atomic_load_n(&maps.any_changed, __ATOMIC_ACQUIRE)) return;
  pthread_mutex_lock(&maps.lock);
  const ChangedMap *changed = find_changed(address);
  uint32_t change = changed ? changed->change : 0;
  uint32_t line = changed && changed->in ? changed->in->source.line : 0;
  pthread_mutex_unlock(&maps.lock);
  if (!change) return;
  const ClusterCheck *check = check_of(warp);
  const AcquiredMap *unordered = NULL;
  for (const AcquiredMap *map = check->global->acquired_maps; map; map = map->next) {
    if (map->address != address || map->change < change) continue;
    if (is_before(check, map, agent_of(warp), lane)) return;
    unordered = map;
  }
  if (unordered) {
    finding(warp, in, 1u << lane, RULE(TENSORMAP_NOT_FENCED),
            "the tensor map was changed by this kernel (line %u of the source). Another thread of "
            "this %s has acquired it since, but nothing orders that before this use.\n"
            "Let the thread that issues the copy execute fence.proxy.tensormap::generic.acquire "
            "itself, or put %s between that fence and this use.",
            line, unordered->agent == agent_of(warp) ? "warp" : "cluster",
            unordered->agent == agent_of(warp) ? "__syncwarp()" : "__syncthreads()");
    return;
  }
  finding(
      warp, in, 1u << lane, RULE(TENSORMAP_NOT_FENCED),
      "the tensor map was changed by this kernel (line %u of the source), and this block has not "
      "acquired it since: the copy engine may still use the old one.\n"
      "Release it where it is written (tensormap.cp_fenceproxy, or "
      "fence.proxy.tensormap::generic.release) and put "
      "fence.proxy.tensormap::generic.acquire.gpu [map], 128 before this use.",
      line);
}

/* The warp stores the map, a word by each lane. */
static void map_changes(Warp *warp, const Instruction *in, uint64_t address) {
  static const GlobalKind STORE = {.access = ACCESS_WRITE};
  if (!warp->cta->cluster->launch->global) return;
  uint64_t addresses[LANES];
  for (int lane = 0; lane < LANES; lane++) addresses[lane] = address + (uint64_t)lane * WORD_BYTES;
  check_global(warp, in, UINT32_MAX, addresses, true, WORD_BYTES, &STORE, NULL);
}

static void map_written(const Instruction *in, uint64_t address, uint32_t bytes) {
  if (settings()->checks) check_tensor_map_written(in, address, bytes);
}

static const Subscriber MAPS = {.map_used = map_used,
                                .map_changes = map_changes,
                                .map_written = map_written,
                                .map_fenced = map_fenced};
SUBSCRIBE(MAP_EVENTS, MAPS)
