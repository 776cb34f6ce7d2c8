/* through_shared.c: strong accesses to shared memory order the accesses around them. We treat every
 * strong write as a release and every strong read as an acquire. This misses a missing fence next
 * to a flag, but never accuses a correct program.
 *
 * What a strong write releases is what its warp knows at that moment: its vectors. Code that keeps
 * its data in volatile shared memory releases at every store, and its warps rarely learn anything in
 * between. So a snapshot of the vectors is taken only when they have changed since the warp's last
 * one; a location holds the number of a snapshot and the time of the store. Usually a warp accesses words side by
 * side that one warp has stored at once: their locations are equal, and looked at together. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/gather.h"
#include "base/holds.h"
#include "checker/order/clocks.h"
#include "checker/order/pieces.h"

enum { MANY_AGENTS = UINT32_MAX, FIRST_SNAPSHOTS = 64, VECTORS = 1 + FENCED_SPACES };

typedef struct {
  uint32_t agent; /* whose vectors, or MANY_AGENTS: of several warps, merged */
  uint32_t uses;  /* number of locations; 1 more if it is its agent's last */
  uint32_t next_free;
  uint32_t *seen,
      *fenced[FENCED_SPACES]; /* seen[agent] is 0: the location's time takes its place */
} Snapshot;

/* In one number, so that many are compared at once: time, snapshot, generation from the lowest bits upward.
 * Snapshots in use are fewer than the words of a cluster and its warps. */
typedef uint64_t Location;
enum { TIME_BITS = 32, SNAPSHOT_BITS = 20, GENERATIONS = 1 << (64 - TIME_BITS - SNAPSHOT_BITS) };

static inline Location location(uint32_t generation, uint32_t snapshot, uint32_t time) {
  return (uint64_t)generation << (TIME_BITS + SNAPSHOT_BITS) | (uint64_t)snapshot << TIME_BITS |
         time;
}
/* Of another cluster: nothing has been released here. */
static inline uint32_t generation_of(Location here) {
  return (uint32_t)(here >> (TIME_BITS + SNAPSHOT_BITS));
}
static inline uint32_t snapshot_of(Location here) {
  return (uint32_t)(here >> TIME_BITS) & ((1u << SNAPSHOT_BITS) - 1);
}
/* Of the store; 0 if the snapshot is of several warps. */
static inline uint32_t stored_at(Location here) { return (uint32_t)here; }

struct Locations {
  uint32_t generation;
  Snapshot *snapshots; /* number 0 is not used */
  uint32_t count, capacity, first_free;
  uint32_t *last;                     /* of each agent: its newest snapshot; 0: none */
  Location *of_cta[MAX_CLUSTER_CTAS]; /* of each word; NULL: no strong write so far */
};

void locations_begin(ClusterCheck *check) {
  struct Locations *all = check->order.locations;
  if (!all) return;
  if (++all->generation == GENERATIONS) {
    all->generation = 1;
    for (uint32_t rank = 0; rank < check->cta_count; rank++)
      if (all->of_cta[rank]) memset(all->of_cta[rank], 0, check->words * sizeof(Location));
  }
  all->count = 1;
  all->first_free = 0;
  memset(all->last, 0, check->agents * sizeof *all->last);
}

static struct Locations *make_locations(ClusterCheck *check) {
  struct Locations *all = calloc(1, sizeof *all);
  if (!all || !(all->last = calloc(check->agents, sizeof *all->last))) out_of_memory();
  check->order.locations = all;
  locations_begin(check);
  return all;
}

static Location *locations_of_cta(const ClusterCheck *check, struct Locations *all, uint32_t rank) {
  if (!all->of_cta[rank]) all->of_cta[rank] = new_zeros(check->words + 1u, sizeof(Location));
  return all->of_cta[rank];
}

/* Where the location of an address is looked up: the block of the last one. */
typedef struct {
  const ClusterCheck *check;
  struct Locations *all;
  uint32_t rank, words;
  Location *locations;
} Lookup;

static Lookup lookup_begin(const ClusterCheck *check, struct Locations *all) {
  return (Lookup){.check = check, .all = all, .rank = UINT32_MAX};
}

/* The location of this address. NULL: it is outside what the checker watches. */
static inline Location *location_at(Lookup *at, uint32_t address) {
  uint32_t rank = SHARED_RANK(address), word = SHARED_OFFSET(address) / WORD_BYTES;
  if (rank != at->rank) {
    if (rank >= at->check->cta_count) return NULL;
    at->locations = locations_of_cta(at->check, at->all, rank);
    at->words = at->check->words;
    at->rank = rank;
  }
  return word < at->words ? &at->locations[word] : NULL;
}

/* ---- Snapshots ---- */

static uint32_t new_snapshot(const ClusterCheck *check, struct Locations *all, uint32_t agent) {
  uint32_t number = all->first_free;
  if (number) {
    all->first_free = all->snapshots[number].next_free;
  } else {
    number = all->count++;
    if (all->count > all->capacity) {
      uint32_t capacity = all->capacity ? 2 * all->capacity : FIRST_SNAPSHOTS;
      all->snapshots = realloc(all->snapshots, capacity * sizeof *all->snapshots);
      if (!all->snapshots) out_of_memory();
      memset(all->snapshots + all->capacity, 0,
             (capacity - all->capacity) * sizeof *all->snapshots);
      all->capacity = capacity;
    }
  }
  HOLDS(number < 1u << SNAPSHOT_BITS);
  Snapshot *one = &all->snapshots[number];
  size_t bytes = check->order.capacity * sizeof(uint32_t);
  if (!one->seen) {
    one->seen = aligned_alloc(AT_ONCE * sizeof(uint32_t), VECTORS * bytes);
    if (!one->seen) out_of_memory();
    for (uint32_t space = 0; space < FENCED_SPACES; space++)
      one->fenced[space] = one->seen + (space + 1) * check->order.capacity;
  }
  memset(one->seen, 0, VECTORS * bytes);
  one->agent = agent;
  one->uses = 0;
  return number;
}

static void drop_uses(struct Locations *all, uint32_t number, uint32_t count) {
  Snapshot *one = &all->snapshots[number];
  HOLDS(one->uses >= count);
  one->uses -= count;
  if (one->uses) return;
  one->next_free = all->first_free;
  all->first_free = number;
}

static bool same_vector(const uint32_t *a, const uint32_t *b, uint32_t width) {
  return memcmp(a, b, width * sizeof *a) == 0;
}

static bool same_fenced(const Snapshot *one, const Clock *clock, uint32_t width) {
  for (int space = 0; space < FENCED_SPACES; space++)
    if (clock->fenced[space] && !same_vector(one->fenced[space], clock->fenced[space], width))
      return false;
  return true;
}

static void copy_fenced(Snapshot *one, const Clock *clock, uint32_t width) {
  for (int space = 0; space < FENCED_SPACES; space++)
    if (clock->fenced[space])
      memcpy(one->fenced[space], clock->fenced[space], width * sizeof(uint32_t));
}

/* The agent's vectors as they are; clock->seen[agent] must be 0 meanwhile. */
static uint32_t take_snapshot(const ClusterCheck *check, struct Locations *all, uint32_t agent) {
  const Clock *clock = &check->order.agents[agent].clock;
  uint32_t last = all->last[agent], width = check->order.width;
  HOLDS(clock->seen[agent] == 0);
  if (last && same_vector(all->snapshots[last].seen, clock->seen, width) &&
      same_fenced(&all->snapshots[last], clock, width))
    return last;
  uint32_t fresh = new_snapshot(check, all, agent);
  memcpy(all->snapshots[fresh].seen, clock->seen, width * sizeof(uint32_t));
  copy_fenced(&all->snapshots[fresh], clock, width);
  all->snapshots[fresh].uses = 1;
  all->last[agent] = fresh;
  if (last) drop_uses(all, last, 1);
  return fresh;
}

/* ---- Acquire ---- */

/* Adds to *news what has changed. */
static void join_all(uint32_t *into, const uint32_t *from, uint32_t width, Piece *news) {
  for (uint32_t at = 0; at < width; at += AT_ONCE) {
    Piece before = *piece_at(into, at), after = larger(before, *const_piece_at(from, at));
    *news |= before ^ after;
    *piece_at(into, at) = after;
  }
}

static bool any_piece(Piece news) {
  uint32_t any = 0;
  for (int i = 0; i < AT_ONCE; i++) any |= news[i];
  return any != 0;
}

static void learn_location(const ClusterCheck *check, const struct Locations *all, uint32_t agent,
                           Location from, Piece *news) {
  const Clock *clock = &check->order.agents[agent].clock;
  const Snapshot *one = &all->snapshots[snapshot_of(from)];
  HOLDS(generation_of(from) == all->generation && one->uses > 0);
  join_all(clock->seen, one->seen, check->order.width, news);
  for (int space = 0; space < FENCED_SPACES; space++)
    if (clock->fenced[space])
      join_all(clock->fenced[space], one->fenced[space], check->order.width, news);
  if (clock->published) join_all(clock->published, one->seen, check->order.width, news);
  if (one->agent == MANY_AGENTS) return;
  if (clock->published && clock->published[one->agent] < stored_at(from))
    clock->published[one->agent] = stored_at(from);
  if (clock->seen[one->agent] >= stored_at(from)) return;
  clock->seen[one->agent] = stored_at(from);
  (*news)[0] |= 1;
}

/* Words of all lanes side by side: the location of the first; NULL: any other access. */
static Location *words_side_by_side(Lookup *at, LaneMask mask, const uint32_t *addresses) {
  uint32_t first = addresses[0], differing = 0;
  if (mask != UINT32_MAX || addresses[1] != first + WORD_BYTES) return NULL;
  for (uint32_t lane = 0; lane < LANES; lane++)
    differing |= addresses[lane] ^ (first + lane * WORD_BYTES);
  Location *run = differing ? NULL : location_at(at, first);
  bool inside = run && SHARED_OFFSET(first) / WORD_BYTES + LANES <= at->words;
  return inside ? run : NULL;
}

static void acquire(ClusterCheck *check, struct Locations *all, uint32_t agent, LaneMask mask,
                    const uint32_t *addresses) {
  Location last = 0;
  Piece news = {0};
  Lookup at = lookup_begin(check, all);
  const Location *run = words_side_by_side(&at, mask, addresses);
  FOR_LANES(lane, run ? lanes_that_change(run) : mask) {
    const Location *here = run ? &run[lane] : location_at(&at, addresses[lane]);
    if (!here || generation_of(*here) != all->generation) continue;
    if (snapshot_of(*here) == snapshot_of(last) && stored_at(*here) <= stored_at(last)) continue;
    if (all->snapshots[snapshot_of(*here)].agent == agent) continue;
    last = *here;
    learn_location(check, all, agent, *here, &news);
  }
  if (any_piece(news)) order_begin_epoch(check, agent);
}

/* ---- Release ---- */

static bool vector_covers_other(const uint32_t *clock, const uint32_t *other, uint32_t width) {
  for (uint32_t at = 0; at < width; at++)
    if (other[at] > clock[at]) return false;
  return true;
}

/* Does the agent know all that has been released there? Its own vectors replace it then. */
static bool is_covered(const ClusterCheck *check, const struct Locations *all, uint32_t agent,
                       Location here) {
  const Clock *clock = &check->order.agents[agent].clock;
  const Snapshot *one = &all->snapshots[snapshot_of(here)];
  if (one->agent == agent) return true;
  if (one->agent != MANY_AGENTS && clock->seen[one->agent] < stored_at(here)) return false;
  uint32_t held = clock->seen[agent];
  clock->seen[agent] = UINT32_MAX;
  bool all_known = vector_covers_other(clock->seen, one->seen, check->order.width);
  for (int space = 0; space < FENCED_SPACES && all_known; space++)
    if (clock->fenced[space])
      all_known = vector_covers_other(clock->fenced[space], one->fenced[space], check->order.width);
  clock->seen[agent] = held;
  return all_known;
}

static uint32_t merge_location(const ClusterCheck *check, struct Locations *all, uint32_t agent,
                               uint32_t time, Location here) {
  const Clock *clock = &check->order.agents[agent].clock;
  uint32_t number = new_snapshot(check, all, MANY_AGENTS);
  Snapshot *merged = &all->snapshots[number];
  const Snapshot *before = &all->snapshots[snapshot_of(here)];
  memcpy(merged->seen, clock->seen, check->order.width * sizeof(uint32_t));
  copy_fenced(merged, clock, check->order.width);
  merged->seen[agent] = time;
  Piece news = {0};
  join_all(merged->seen, before->seen, check->order.width, &news);
  for (int space = 0; space < FENCED_SPACES; space++)
    join_all(merged->fenced[space], before->fenced[space], check->order.width, &news);
  if (before->agent != MANY_AGENTS && merged->seen[before->agent] < stored_at(here))
    merged->seen[before->agent] = stored_at(here);
  return number;
}

/* The next `count` locations are equal; they become this one. */
static inline void set_locations(struct Locations *all, Location *here, uint32_t count,
                                 uint32_t snapshot, uint32_t time) {
  bool had_one = generation_of(*here) == all->generation;
  if (!had_one || snapshot_of(*here) != snapshot) {
    all->snapshots[snapshot].uses += count;
    if (had_one) drop_uses(all, snapshot_of(*here), count);
  }
  Location made = location(all->generation, snapshot, time);
  for (uint32_t i = 0; i < count; i++) here[i] = made;
}

/* A store that is merged with what others have released at the same places. */
typedef struct {
  uint32_t own, time;
  Location before; /* what was last merged, and what came of it; 0: nothing */
  uint32_t merged;
} Release;

static void release_at(const ClusterCheck *check, struct Locations *all, uint32_t agent,
                       Release *now, Location *here, uint32_t count, bool acquired) {
  if (acquired || generation_of(*here) != all->generation || is_covered(check, all, agent, *here)) {
    set_locations(all, here, count, now->own, now->time);
    return;
  }
  if (now->merged && snapshot_of(*here) == now->merged) return; /* of an earlier lane */
  if (!now->merged || *here != now->before) {
    now->before = *here;
    if (now->merged) drop_uses(all, now->merged, 1);
    now->merged = merge_location(check, all, agent, now->time, *here);
    all->snapshots[now->merged].uses++;
  }
  set_locations(all, here, count, now->merged, 0);
}

/* acquired: the agent has just acquired all that has been released at these addresses. */
static void release_words(ClusterCheck *check, struct Locations *all, uint32_t agent, LaneMask mask,
                          const uint32_t *addresses, bool acquired) {
  const Clock *clock = &check->order.agents[agent].clock;
  Release now = {.time = check->order.agents[agent].now};
  clock->seen[agent] = 0;
  now.own = take_snapshot(check, all, agent);
  Lookup at = lookup_begin(check, all);
  Location *run = words_side_by_side(&at, mask, addresses);
  for (LaneMask left = run ? lanes_that_change(run) : mask; left;) {
    int lane = first_lane(left);
    left &= left - 1;
    uint32_t equal = !run ? 1 : (uint32_t)((left ? first_lane(left) : LANES) - lane);
    Location *here = run ? run + lane : location_at(&at, addresses[lane]);
    if (here) release_at(check, all, agent, &now, here, equal, acquired);
  }
  if (now.merged) drop_uses(all, now.merged, 1);
  clock->seen[agent] = UINT32_MAX;
  order_begin_released_epoch(check, agent);
}

void order_locations(ClusterCheck *check, uint32_t agent, LaneMask mask, const uint32_t *addresses,
                     bool releases, bool acquires) {
  struct Locations *all = check->order.locations;
  LaneKnowledge *lanes = &check->order.agents[agent].lanes;
  if (acquires) lanes->learnt |= mask; /* if it is valid */
  if (!all && !releases) return;
  if (!all) all = make_locations(check);
  if (acquires) acquire(check, all, agent, mask, addresses);
  if (releases) release_words(check, all, agent, mask, addresses, acquires);
}
