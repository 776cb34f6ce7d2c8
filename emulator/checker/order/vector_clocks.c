/* vector_clocks.c: the order of accesses: barriers, mbarriers and fences as vector clocks. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/summary.h"
#include "checker/order/clocks.h"
#include "checker/order/pieces.h"
#include "state/groups.h"

/* ---- Vectors ---- */

uint32_t *order_new_vector(ClusterCheck *check) {
  _Static_assert(AT_ONCE * sizeof(uint32_t) >= sizeof(void *), "the first piece holds a pointer");
  if (check->order.vectors_used + check->order.capacity > check->order.vector_capacity) {
    /* Vectors in use must not move: the first piece of the new block points to the old block. */
    size_t capacity = (check->order.vector_capacity ? check->order.vector_capacity
                                                    : 64 * (size_t)check->order.capacity) *
                      2;
    uint32_t *block = aligned_alloc(AT_ONCE * sizeof *block, capacity * sizeof *block);
    if (!block) out_of_memory();
    memcpy(block, &check->order.vectors, sizeof(void *));
    check->order.vectors = block;
    check->order.vector_capacity = capacity;
    check->order.vectors_used = AT_ONCE;
  }
  uint32_t *vector = check->order.vectors + check->order.vectors_used;
  check->order.vectors_used += check->order.capacity;
  memset(vector, 0, check->order.capacity * sizeof *vector);
  return vector;
}

static Clock new_clock(ClusterCheck *check) {
  Clock clock = {.seen = NULL};
  clock.seen = order_new_vector(check);
  for (int space = 0; space < FENCED_SPACES; space++)
    if (space != FENCED_PEERS || check->cta_count > 1)
      clock.fenced[space] = order_new_vector(check);
  if (check->cta_count > 1) clock.published = order_new_vector(check);
  return clock;
}

void order_make_clock(ClusterCheck *check, Clock *clock) {
  if (!clock->seen) *clock = new_clock(check);
}

/* After this many accesses the clock saturates: later races are missed, but no correct program is
 * accused. */
static uint32_t next_time(ClusterCheck *check) {
  if (check->now < TIME_MOST)
    check->now++;
  else
    summary_note(NOTE_shared_order);
  return check->now;
}

void order_begin_new_epoch(ClusterCheck *check, uint32_t agent) {
  check->order.agents[agent].now = check->order.agents[agent].epoch = next_time(check);
}

void order_begin_released_epoch(ClusterCheck *check, uint32_t agent) {
  check->order.released[1][agent] = check->order.released[0][agent];
  check->order.first_write[1][agent] = check->order.first_write[0][agent];
  check->order.released[0][agent] = check->order.agents[agent].now;
  check->order.agents[agent].last_release = check->order.agents[agent].now;
  check->order.first_write[0][agent] = UINT32_MAX;
  order_begin_new_epoch(check, agent);
}

/* Many sites are stored and few are looked up, so a site fits into 64 bits: the instruction's
 * address, whether it was strong, and the part of the time that the index does not give. */
enum {
  TAG_BITS = 16,
  PLACES = 1 << 14 /* number of recent times for which the instruction is kept */
};

uint32_t order_new_time(ClusterCheck *check, uint32_t agent, const Instruction *in, bool strong) {
  _Static_assert(TIME_MOST / PLACES < 1u << TAG_BITS, "the tag is different for all times");
  _Static_assert(_Alignof(Instruction) > 1, "the lowest bit of an address is free");
  uint32_t time = next_time(check);
  HOLDS(time >= check->order.agents[agent].now);
  check->order.agents[agent].now = time;
  *time_slot(check, agent, in) = (TimeSlot){in, time};
  check->order.places[time % PLACES] =
      ((uint64_t)(uintptr_t)in | strong) << TAG_BITS | time / PLACES;
  return time;
}

AccessSite order_site(const ClusterCheck *check, uint32_t time) {
  static const Instruction FORGOTTEN = {.text = ""};
  uint64_t place = check->order.places[time % PLACES], address = place >> TAG_BITS;
  if ((place & ((1u << TAG_BITS) - 1)) != time / PLACES || address == 0)
    return (AccessSite){&FORGOTTEN, .strong = true}; /* better than a false accusation */
  return (AccessSite){(const Instruction *)(uintptr_t)(address & ~1ull), address & 1};
}

__attribute__((noinline)) static void join_known(ClusterCheck *check, Clock *into,
                                                 const Clock *from) {
  known_add(check, &into->known, &from->known);
}

static inline void learn_fenced(const ClusterCheck *check, Clock *into, const Clock *from) {
  for (int space = 0; space < FENCED_SPACES; space++)
    if (from->fenced[space]) join(into->fenced[space], from->fenced[space], check->order.width);
}

/* What was known stays known. */
static inline bool vector_covers(const ClusterCheck *check, const uint32_t *more,
                                 const uint32_t *less) {
  for (uint32_t i = 0; i < check->order.width; i++)
    if (more[i] < less[i]) return false;
  return true;
}

static inline void learn_clock(ClusterCheck *check, Clock *into, const Clock *from) {
  if (!from->seen) return;
  join(into->seen, from->seen, check->order.width);
  HOLDS_DEARLY(vector_covers(check, into->seen, from->seen));
  learn_fenced(check, into, from);
  if (from->published) join(into->published, from->published, check->order.width);
  if (check->order.launch) join_known(check, into, from);
}

void order_release(ClusterCheck *check, uint32_t agent, Clock *into) {
  order_make_clock(check, into);
  learn_clock(check, into, &check->order.agents[agent].clock);
  into->seen[agent] = check->order.agents[agent].now;
  if (into->published) into->published[agent] = check->order.agents[agent].now;
  order_begin_released_epoch(check, agent);
}

/* A release whose scope does not include who will wait. What earlier fences of a wider scope have
 * released is published. */
static void release_narrowly(ClusterCheck *check, Warp *warp, Clock *into) {
  uint32_t agent = agent_of(warp);
  order_make_clock(check, into);
  join(into->seen, check->order.agents[agent].clock.seen, check->order.width);
  learn_fenced(check, into, &check->order.agents[agent].clock);
  if (check->order.launch) join_known(check, into, &check->order.agents[agent].clock);
  into->seen[agent] = check->order.agents[agent].now;
  global_release_fenced(warp, REACH_CLUSTER, into);
  order_begin_released_epoch(check, agent);
}

void order_acquire(ClusterCheck *check, uint32_t agent, const Clock *from) {
  if (!from->seen) return;
  learn_clock(check, &check->order.agents[agent].clock, from);
  order_begin_epoch(check, agent);
}

void order_release_to_barrier(Warp *warp, const Instruction *in, bool of_peer, Reach reach,
                              Clock *into) {
  ClusterCheck *check = check_of(warp);
  const bool narrow = of_peer && reach == REACH_CTA;
  /* without the checks of global memory, fences are not known, so they may be missing */
  if (!(reach == REACH_PLAIN || narrow) || !check->order.launch) {
    order_release(check, agent_of(warp), into);
  } else if (narrow) {
    check->order.any_narrow = true;
    check->order.blocks[warp->cta->rank].narrow_arrival = in;
    release_narrowly(check, warp, into);
  } else {
    AgentOrder *own = &check->order.agents[agent_of(warp)];
    own->relaxed_arrival = in;
    own->relaxed_time = check->now;
    order_make_clock(check, into);
    global_release_fenced(warp, of_peer ? REACH_CLUSTER : REACH_CTA, into);
  }
}

void order_acquire_phase(ClusterCheck *check, uint32_t agent, bool acquires, const Clock *from,
                         uint32_t place, uint32_t phases) {
  Clock *learnt =
      acquires ? &check->order.agents[agent].clock : &check->order.agents[agent].observed;
  order_make_clock(check, learnt);
  if (from) {
    if (acquires)
      order_acquire(check, agent, from);
    else
      learn_clock(check, learnt, from);
  }
  if (place != NO_PLACE && learnt->seen[place] < phases) learnt->seen[place] = phases;
}

/* ---- What only some lanes of a warp know ---- */

static void lanes_learn(const Warp *warp, LaneKnowledge *own, LaneMask lanes) {
  own->learnt |= lanes;
  own->apart = live_lanes(warp) & ~own->learnt;
}

void order_lanes_acquire(Warp *warp, const Instruction *in, LaneMask lanes) {
  ClusterCheck *check = check_of(warp);
  AgentOrder *agent = &check->order.agents[agent_of(warp)];
  LaneKnowledge *own = &agent->lanes;
  if (!own->apart && !(live_lanes(warp) & ~lanes)) return;
  if (!own->apart) {
    if (!own->before) own->before = order_new_vector(check);
    memcpy(own->before, agent->clock.seen, check->order.width * sizeof *own->before);
    own->known_before = agent->clock.known.tree[KNOWN];
    own->learnt = 0;
    check->lanes_differ = true;
    own->in = in;
    own->since = agent->now;
  }
  lanes_learn(warp, own, lanes);
}

void order_lanes_meet(Warp *warp, LaneMask lanes) {
  LaneKnowledge *own = &check_of(warp)->order.agents[agent_of(warp)].lanes;
  if (own->apart && own->learnt & lanes) lanes_learn(warp, own, lanes);
}

void order_forget(const ClusterCheck *check, Clock *clock) {
  const uint32_t width = check->order.width;
  if (!clock->seen) return;
  memset(clock->seen, 0, width * sizeof *clock->seen);
  for (int space = 0; space < FENCED_SPACES; space++)
    if (clock->fenced[space]) memset(clock->fenced[space], 0, width * sizeof(uint32_t));
  if (clock->published) memset(clock->published, 0, width * sizeof *clock->published);
  clock->known = (GlobalKnowledge){{NULL}};
}

/* ---- The past of copies ---- */

struct OrderPast {
  OrderPast *next;
  uint32_t uses, agent;
  uint32_t time; /* of the agent, when it had been kept */
  const Instruction *in;
  Clock clock;
};

/* As if they had been freed: their vectors are gone. */
static void forget_pasts(OrderState *order) {
  for (OrderPast **list = &order->pasts;; list = &order->spare_pasts) {
    while (*list) {
      OrderPast *next = (*list)->next;
      free(*list);
      *list = next;
    }
    if (list == &order->spare_pasts) return;
  }
}

static void copy_vector(const ClusterCheck *check, uint32_t *to, const uint32_t *from) {
  memcpy(to, from, check->order.width * sizeof *to);
}

/* The lanes of one instruction issue one by one, and know the same. */
static bool is_still(const ClusterCheck *check, const OrderPast *past, uint32_t agent,
                     const Instruction *in) {
  const Clock *clock = &order_of(check, agent)->clock;
  const uint32_t width = check->order.width;
  if (!past || past->in != in || past->agent != agent || past->time != clock_of(check, agent))
    return false;
  const uint32_t own = past->clock.seen[agent];
  past->clock.seen[agent] = clock->seen[agent];
  bool same = memcmp(past->clock.seen, clock->seen, width * sizeof *clock->seen) == 0;
  past->clock.seen[agent] = own;
  for (int space = 0; same && space < FENCED_SPACES; space++)
    same = !clock->fenced[space] || memcmp(past->clock.fenced[space], clock->fenced[space],
                                           width * sizeof *clock->seen) == 0;
  return same;
}

OrderPast *order_keep_past(ClusterCheck *check, uint32_t agent, const Instruction *in) {
  OrderState *order = &check->order;
  const Clock *clock = &order_of(check, agent)->clock;
  OrderPast *past = order->pasts;
  if (is_still(check, past, agent, in)) {
    past->uses++;
    return past;
  }
  past = order->spare_pasts;
  if (past) {
    order->spare_pasts = past->next;
  } else {
    past = new_zeros(1, sizeof *past);
    past->clock = new_clock(check);
  }
  past->next = order->pasts;
  order->pasts = past;
  past->uses = 1;
  past->agent = agent;
  past->in = in;
  copy_vector(check, past->clock.seen, clock->seen);
  past->clock.seen[agent] = clock_of(check, agent);
  for (int space = 0; space < FENCED_SPACES; space++)
    if (clock->fenced[space]) copy_vector(check, past->clock.fenced[space], clock->fenced[space]);
  if (clock->published) {
    copy_vector(check, past->clock.published, clock->published);
    past->clock.published[agent] = clock_of(check, agent);
  }
  past->clock.known = clock->known;
  order_begin_new_epoch(check, agent);
  past->time = clock_of(check, agent);
  return past;
}

void order_hand_on(ClusterCheck *check, OrderPast *past, Clock *into) {
  if (into) {
    order_make_clock(check, into);
    learn_clock(check, into, &past->clock);
    return;
  }
  if (--past->uses) return;
  OrderPast **link = &check->order.pasts;
  while (*link != past) link = &(*link)->next;
  *link = past->next;
  past->next = check->order.spare_pasts;
  check->order.spare_pasts = past;
}

/* ---- What each access asks ---- */

/* Up to which time does a warp know all writes of these agents? If it knows an agent's last
 * release, or the one before, then up to that agent's first write after the release. */
static Piece known_until(const OrderState *order, const uint32_t *seen, uint32_t at) {
  Piece known = *const_piece_at(seen, at), until = known, first = {0};
  Piece to_first = ~first; /* the first write since */
  for (int i = 0; i < 2; i++) {
    Piece up_to_date = (Piece)(known >= *const_piece_at(order->released[i], at));
    to_first = ~larger(~to_first, ~*const_piece_at(order->first_write[i], at));
    until = larger(until, (to_first - 1) & up_to_date);
  }
  Piece all = (Piece)(known >= *const_piece_at(order->last_write, at));
  return until | all;
}

uint32_t order_find_known_until(const ClusterCheck *check, uint32_t agent) {
  const OrderState *order = &check->order;
  const uint32_t *seen = known_writes(check, agent);
  Piece longest = {0}; /* to the end of time */
  uint32_t rest = ~check->now;
  for (uint32_t at = 0; at < check->agents; at += AT_ONCE)
    longest = larger(longest, ~known_until(order, seen, at));
  for (int i = 0; i < AT_ONCE; i++) rest = longest[i] > rest ? longest[i] : rest;
  order->agents[agent].known_until = ~rest;
  order->agents[agent].known_epoch = order->agents[agent].epoch;
  return ~rest;
}

bool order_all_reads_seen(const ClusterCheck *check, uint32_t agent) {
  const uint32_t *seen = order_of(check, agent)->clock.seen, *last = check->order.last_read;
  Piece unseen = {0};
  uint32_t any = 0;
  for (uint32_t at = 0; at < check->agents; at += AT_ONCE)
    unseen |= (Piece)(*const_piece_at(seen, at) < *const_piece_at(last, at));
  for (int i = 0; i < AT_ONCE; i++) any |= unseen[i];
  return !any;
}

/* ---- Begin ---- */

static uint32_t *new_pieces(uint32_t places) {
  size_t bytes = whole_pieces(places) * sizeof(uint32_t);
  uint32_t *made = aligned_alloc(sizeof(Piece), bytes);
  if (!made) out_of_memory();
  memset(made, 0, bytes);
  return made;
}

static ClusterCheck *new_check(uint32_t cta_count, uint32_t warps_per_cta, uint32_t words) {
  ClusterCheck *check = new_zeros(1, sizeof *check);
  OrderState *order = &check->order;
  const uint32_t agents = cta_count * warps_per_cta;
  check->agents = agents;
  check->warps_per_cta = warps_per_cta;
  check->cta_count = cta_count;
  check->words = words;
  order->capacity = whole_pieces(agents + BARRIER_PLACES);
  order->agents = new_zeros(agents, sizeof *order->agents);
  order->last_read = new_pieces(agents);
  order->last_write = new_pieces(agents);
  for (int i = 0; i < 2; i++) {
    order->released[i] = new_pieces(agents);
    order->first_write[i] = new_pieces(agents);
  }
  order->times = new_zeros(agents * TIME_SLOTS, sizeof *order->times);
  order->places = new_zeros(PLACES, sizeof *order->places);
  return check;
}

/* Everything that stores a time must be reset, here and by the caller of order_begin. */
static void begin_time(ClusterCheck *check, OrderState *order) {
  check->now = 0;
  memset(order->times, 0, check->agents * TIME_SLOTS * sizeof *order->times);
  memset(order->places, 0, PLACES * sizeof *order->places);
}

/* Frees all blocks except the newest, which is large enough for a cluster like the last one. */
static void free_older_vectors(OrderState *order) {
  void *older = NULL;
  if (order->vectors) memcpy(&older, order->vectors, sizeof older);
  while (older) {
    void *next;
    memcpy(&next, older, sizeof next);
    free(older);
    older = next;
  }
  if (order->vectors) memset(order->vectors, 0, sizeof(void *));
  order->vectors_used = order->vectors ? AT_ONCE : 0;
}

static void begin_agents(ClusterCheck *check) {
  OrderState *order = &check->order;
  const uint32_t agents = check->agents;
  memset(order->last_read, 0, agents * sizeof *order->last_read);
  memset(order->last_write, 0, agents * sizeof *order->last_write);
  memset(order->agents, 0, agents * sizeof *order->agents);
  order->fenced_by_others = order_new_vector(check);
  for (uint32_t agent = 0; agent < agents; agent++) {
    Clock *clock = &order->agents[agent].clock;
    *clock = new_clock(check);
    for (uint32_t other = 0; other < agents; other++) clock->seen[other] = check->start;
    clock->seen[agent] = UINT32_MAX;
    if (clock->published) memcpy(clock->published, clock->seen, agents * sizeof *clock->published);
  }
  for (uint32_t agent = 0; agent < agents; agent++) {
    order->agents[agent].now = check->start;
    order_begin_released_epoch(check, agent);
    order_begin_released_epoch(check, agent);
  }
}

ClusterCheck *order_begin(ClusterCheck *used, const Cluster *cluster, uint32_t words,
                          struct OrderLaunch *launch, bool *times_begin_again) {
  ClusterCheck *check =
      used ? used : new_check(cluster->cta_count, cluster->ctas[0].warp_count, words);
  OrderState *order = &check->order;
  order->launch = launch;
  order->cluster = cluster->number;
  order->width = check->agents;
  free_older_vectors(order);
  forget_pasts(order);
  *times_begin_again = check->now > TIME_MOST / 2;
  if (*times_begin_again) begin_time(check, order);
  check->start = next_time(check);
  begin_agents(check);
  order_begin_barriers(check);
  locations_begin(check);
  check->crossed = check->lanes_differ = order->any_narrow = false;
  memset(order->any_fenced, 0, sizeof order->any_fenced);
  order->begun = check->now;
  return check;
}
