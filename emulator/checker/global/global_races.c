/* global_races.c: do two accesses to global memory race? By the PTX memory model they do if they
 * overlap, at least one writes, they are not ordered by causality, and they are not morally strong:
 * strong both, with scopes that include each other's thread.
 *
 * Two plain stores of the same value are not reported. Two strong accesses whose scopes are too
 * narrow for each other need an order too, but there an atomic that reads a flag counts as an
 * acquire (KNOWN_ACQUIRED): without a plain access there is nothing that could be stale. */
#include "base/address.h"
#include "base/summary.h"
#include "checker/global/global_state.h"
#include "checker/lanes/lanes.h"

/* Longer lists forget: a race may be missed, none is invented. */
enum { LIST_LONG = 12, LIST_MOST = 48 };

/* ---- Are they ordered? ---- */

/* Set by the issuing cluster when a copy has ended. Another host thread may ask meanwhile:
 * relaxed, because whoever is ordered after the end sees it, and for all others the copy is not
 * over. */
static uint32_t time_of(const GlobalAccess *access) {
  return __atomic_load_n(&access->time, __ATOMIC_RELAXED);
}

static uint32_t rank_of(const GlobalNow *now, uint32_t agent) {
  return agent / now->launch->warps_per_cta;
}

/* The operations of two launches or copies. */
static bool operations_ordered(const GlobalNow *now, const GlobalAccess *past) {
  const GlobalLaunch *launch = now->launch;
  if (past->operation == launch->dependency && now->own) {
    const GlobalKnowledge *known = &order_of(now->check, now->access.issuer)->clock.known;
    return order_leaf(launch->order, known->tree[KNOWN], launch->clusters) != NULL;
  }
  const OperationOrder *order = global_operation_order();
  return !order || order->ordered(past->operation, launch->operation);
}

bool global_ordered(const GlobalNow *now, const GlobalAccess *past, KnownKind kind) {
  if (past->operation != now->launch->operation) return operations_ordered(now, past);
  if (!now->own) return true;
  uint32_t agent = now->access.issuer, time = time_of(past);
  if (time == NOT_FINISHED) return false;
  const Clock *clock = &order_of(now->check, agent)->clock;
  if (past->cluster == now->access.cluster) {
    const uint32_t *seen = kind == KNOWN_FENCED ? clock->fenced[FENCED_GLOBAL] : clock->seen;
    if (seen[past->agent] >= time) return true;
    if (kind == KNOWN || kind == KNOWN_FENCED) return false;
  }
  const KnownLeaf *leaf = order_leaf(now->launch->order, clock->known.tree[kind], past->cluster);
  return leaf && past->agent < leaf->count && leaf->clocks[past->agent] >= time;
}

/* Does the access reach the other one's thread? */
static bool reaches(const GlobalNow *now, uint8_t reach, const GlobalAccess *past) {
  if (reach >= REACH_GPU) return true;
  if (past->operation != now->launch->operation || past->cluster != now->access.cluster)
    return false;
  return reach == REACH_CLUSTER ||
         (reach == REACH_CTA && rank_of(now, past->issuer) == rank_of(now, now->access.issuer));
}

static bool morally_strong(const GlobalNow *now, const GlobalAccess *past) {
  return reaches(now, past->reach, past) && reaches(now, now->access.reach, past);
}

/* What a warp's own accesses before this one mean for it. Reads of what its bulk stores have not
 * written yet are the business of own_stores.c. */
static bool own_is_ordered(const GlobalNow *now, const GlobalAccess *past) {
  if (!(past->flags & GLOBAL_ASYNC) || time_of(past) != NOT_FINISHED) return true;
  bool async = now->access.flags & GLOBAL_ASYNC;
  return now->kind == ACCESS_READ ? !async : async;
}

/* Two kernels of different streams that no event orders, and one of them waits for the other one's
 * flag: from then on they count as ordered. */
static bool kernels_talk(const GlobalNow *now, const GlobalAccess *past) {
  const GlobalAccess *own = &now->access;
  const OperationOrder *order = global_operation_order();
  if (!order || past->operation == own->operation || past->operation == now->launch->dependency ||
      operations_ordered(now, past))
    return false;
  bool strong = own->reach != REACH_PLAIN, past_strong = past->reach != REACH_PLAIN;
  bool waits = (strong && past_strong) || ((own->flags | past->flags) & GLOBAL_VOLATILE) ||
               (strong && now->kind == ACCESS_READ);
  if (waits) order->talk(past->operation, own->operation);
  return waits;
}

static bool is_race(const GlobalNow *now, const GlobalAccess *past) {
  const GlobalAccess *own = &now->access;
  if (kernels_talk(now, past)) return false;
  if (past->operation == own->operation && past->cluster == own->cluster &&
      past->issuer == own->issuer && own_is_ordered(now, past))
    return false;
  bool both_strong = past->reach != REACH_PLAIN && own->reach != REACH_PLAIN;
  if (both_strong && morally_strong(now, past) && !global_sizes_differ(past, own)) {
    if ((own->flags | past->flags) & GLOBAL_VOLATILE && !global_ordered(now, past, KNOWN_ACQUIRED))
      summary_note(NOTE_volatile_global);
    return false;
  }
  return !global_ordered(now, past, both_strong ? KNOWN_ACQUIRED : KNOWN);
}

/* ---- What is known afterwards ---- */

/* Will everything that races with the past access also race with this one? Then only this one must
 * be kept. A third access of a narrow scope may include the one's thread and not the other's, so
 * both must be in one block. In a long list that is ignored: a race may be missed then. */
static bool replaces(const GlobalNow *now, const GlobalAccess *past, bool is_long) {
  const GlobalAccess *own = &now->access;
  if (!global_ordered(now, past, KNOWN)) return false;
  if (own->reach == REACH_PLAIN) return true;
  if (past->reach < own->reach || past->size != own->size) return false;
  if (is_long && own->reach >= REACH_GPU) return true;
  return past->cluster == own->cluster && past->operation == own->operation &&
         rank_of(now, past->issuer) == rank_of(now, own->issuer);
}

static int lane_at(const GlobalNow *now, uint64_t address) {
  if (!now->lanes) return now->lane;
  uint64_t behind = (address - now->first) / now->lane_bytes;
  return now->lanes[behind < LANES ? behind : 0];
}

static void note_conflict(GlobalNow *now, const GlobalAccess *past, bool reads) {
  if (now->conflict) return;
  now->conflict = true;
  now->conflict_reads = reads;
  now->past = (GlobalAccess){.operation = past->operation,
                             .cluster = past->cluster,
                             .time = time_of(past),
                             .agent = past->agent,
                             .issuer = past->issuer,
                             .reach = past->reach,
                             .flags = past->flags,
                             .size = past->size,
                             .lock = past->lock,
                             .in = past->in};
  now->conflict_address = now->address;
  now->conflict_lane = lane_at(now, now->address);
}

/* Does the store leave these bytes as they are? */
bool global_same_value(const GlobalNow *now) {
  if (!now->stored) return false;
  uint64_t address = now->address, end = address + now->bytes;
  while (address < end) {
    uint32_t offset = (uint32_t)((address - now->first) % now->lane_bytes);
    uint32_t bytes = now->lane_bytes - offset;
    if (bytes > end - address) bytes = (uint32_t)(end - address);
    if (!now->stored->same(now->stored, lane_at(now, address), offset, bytes)) return false;
    address += bytes;
  }
  return true;
}

/* Both are in critical sections of one lock, which one of the warps took without a fence, or with one
 * whose scope is too narrow for the other. In the other order of the two they would not be ordered. */
static GlobalMistake lock_mistake(const GlobalNow *now, const GlobalAccess *past) {
  const GlobalAccess *own = &now->access;
  uint16_t flags = past->flags | own->flags;
  if (!own->lock || past->lock != own->lock || past->operation != own->operation)
    return MISTAKE_RACE;
  if (own->lock == lock_tag(now->address)) return MISTAKE_RACE; /* the lock itself */
  if (past->cluster == own->cluster && past->issuer == own->issuer) return MISTAKE_RACE;
  if (!order_of(now->check, own->issuer)->global.lock_handed) return MISTAKE_RACE;
  if (flags & GLOBAL_UNFENCED) return MISTAKE_LOCK;
  bool narrow = (flags & GLOBAL_CTA_FENCED && !reaches(now, REACH_CTA, past)) ||
                (flags & GLOBAL_CLUSTER_FENCED && !reaches(now, REACH_CLUSTER, past));
  return narrow ? MISTAKE_NARROW_LOCK : MISTAKE_RACE;
}

/* Something wrong with two accesses that are ordered; MISTAKE_RACE: nothing. */
static GlobalMistake mistake_of(const GlobalNow *now, const GlobalAccess *past, bool past_reads) {
  GlobalMistake of_lock = lock_mistake(now, past);
  if (of_lock != MISTAKE_RACE) return of_lock;
  if (past->operation != now->access.operation || past_reads) return MISTAKE_RACE;
  if (now->access.flags & GLOBAL_NON_COHERENT) return MISTAKE_NON_COHERENT;
  bool engine = (now->access.flags & (GLOBAL_ASYNC | GLOBAL_CP_ASYNC)) == GLOBAL_ASYNC;
  if (!engine || (past->flags & GLOBAL_ASYNC)) return MISTAKE_RACE;
  if (past->reach != REACH_PLAIN && now->access.reach != REACH_PLAIN) return MISTAKE_RACE;
  return global_ordered(now, past, KNOWN_FENCED) ? MISTAKE_RACE : MISTAKE_PROXY;
}

/* An atomic of this warp has seen what older ones of others have written here. So they come before
 * all that the warp does later (observation order). This does not count if the program throws away
 * what the atomic returns: it cannot know then that the others were first, and in another order of
 * the blocks they are not. */
static bool is_observed(const GlobalNow *now, const GlobalAccess *own, const GlobalAccess *past) {
  return own && past->reach != REACH_PLAIN && reaches(now, past->reach, past) &&
         reaches(now, own->reach, past);
}

static bool is_own_update(const GlobalNow *now, const GlobalAccess *past) {
  return (past->flags & (GLOBAL_UPDATES | GLOBAL_UNREAD)) == GLOBAL_UPDATES &&
         past->operation == now->access.operation && past->cluster == now->access.cluster &&
         past->issuer == now->access.issuer;
}

SeenCell *global_seen_cell(const struct GlobalState *own, uint32_t agent, uint64_t address) {
  uint64_t slot = (address >> 2) + (address & 3) * (SEEN_CELLS / 4);
  return &own->seen[agent * SEEN_CELLS + slot % SEEN_CELLS];
}
static SeenCell *seen_cell(const GlobalNow *now) {
  return global_seen_cell(now->own, now->access.issuer, now->address);
}

/* The same by a load that acquires: this warp has seen the present value, so the strong writes that
 * made it come before what the warp does. Marlin's last block waits for its turn at a counter that
 * the others have increased after a fence, and then sets it to zero by a plain store. */
static bool is_acquired(const GlobalNow *now, uint32_t writes, const GlobalAccess *past) {
  if (!now->own || past->reach == REACH_PLAIN || !reaches(now, past->reach, past)) return false;
  const SeenCell *seen = seen_cell(now);
  if (seen->address != now->address || seen->writes != writes) return false;
  if (!seen->number || global_settled(now, seen->number)) return false;
  const GlobalAccess *load = global_access(seen->number);
  return load->flags & GLOBAL_ACQUIRES && reaches(now, load->reach, past);
}

/* A store over what another block has read, which may depend on a flag that this block has stored
 * since: CUB's algorithms in place (thrust::unique) publish a tile's state by a relaxed store once
 * the tile has been read. The state depends on what was read, and the store on the state, so the
 * store cannot come first. */
static bool depends_on_flag(const GlobalNow *now, const GlobalAccess *past) {
  const GlobalAccess *own = &now->access;
  return now->own && past->operation == own->operation && past->cluster != own->cluster &&
         past->reach == REACH_PLAIN && own->reach == REACH_PLAIN && now->kind == ACCESS_WRITE &&
         !((past->flags | own->flags) & GLOBAL_ASYNC) && global_ordered(now, past, KNOWN_DEPENDS);
}

/* A plain store beside an atomic of 8 or 16 bits: libcu++ makes these of a compare-and-swap of the word around
 * them. It leaves the other bytes as they are, and is tried again if they have changed. */
static bool swap_keeps(const GlobalNow *now, const GlobalAccess *past) {
  const GlobalAccess *own = &now->access;
  const GlobalAccess *swap = own->kept ? own : past, *other = own->kept ? past : own;
  uint32_t bytes = ((1u << (now->bytes & 3)) - 1u) << (now->address & 3);
  return now->bytes < WORD_BYTES && swap->kept && other->reach == REACH_PLAIN &&
         !(other->flags & (GLOBAL_ASYNC | GLOBAL_UPDATES)) && !(bytes & ~(uint32_t)swap->kept);
}

/* Does the access race with one of these? Reports the first. The newest is the first one of a
 * list. any_spared: one of them races and is not reported now. */
static bool check_all(GlobalNow *now, uint32_t value, bool reads, bool *any_spared) {
  bool clean = true;
  const GlobalAccess *own = NULL;
  FOR_GLOBAL_NUMBERS(number, value) {
    if (global_settled(now, number)) continue;
    const GlobalAccess *past = global_access(number);
    if (!reads && is_own_update(now, past)) own = past;
    if (is_observed(now, own, past) || (reads && depends_on_flag(now, past))) continue;
    if (!reads && is_acquired(now, value, past)) {
      *any_spared = true; /* the next place may not have been read */
      continue;
    }
    if (!is_race(now, past)) {
      GlobalMistake mistake = mistake_of(now, past, reads);
      if (global_lanes_hand_over(now)) {
        *any_spared = true; /* the next place may be another lane's */
        if (mistake == MISTAKE_RACE)
          mistake = global_lanes_mistake(now, past, lane_at(now, now->address));
      }
      if (mistake == MISTAKE_RACE) continue;
      if (!now->conflict) now->mistake = mistake;
      note_conflict(now, past, reads);
      clean = false;
      continue;
    }
    if (swap_keeps(now, past)) {
      *any_spared = true;
      continue;
    }
    const GlobalAccess *guesser = global_guesser(now, past, reads);
    if (guesser) {
      GlobalNow guess = *now;
      note_conflict(&guess, past, reads);
      global_guess(&guess, guesser);
      *any_spared = true;
      continue;
    }
    bool plain = past->reach == REACH_PLAIN && now->access.reach == REACH_PLAIN;
    bool same = !reads && plain && global_same_value(now);
    *any_spared |= same;
    if (same) continue;
    note_conflict(now, past, reads);
    clean = false;
  }
  return clean;
}

/* A warp's plain loads, before a compare-and-swap that checks what they have read. */
static bool is_checked_guess(const GlobalNow *now, const GlobalAccess *past) {
  return now->swaps && past->reach == REACH_PLAIN && past->operation == now->access.operation &&
         past->cluster == now->access.cluster && past->issuer == now->access.issuer;
}

/* ---- Plain reads ----
 *
 * Most memory is only read, by many warps and often by each, so these are quick. A warp adds itself
 * to a cell's readers once in an epoch, and replaced readers stay in the list until it is long. That
 * reports nothing else: a write that races with a replaced reader also races with a newer one. */

static bool reads_plainly(const GlobalNow *now) {
  return now->own && now->kind == ACCESS_READ && now->access.reach == REACH_PLAIN &&
         !now->access.lock && !(now->access.flags & (GLOBAL_ASYNC | GLOBAL_VOLATILE)) &&
         !now->swaps;
}

bool global_stands_for(const ClusterCheck *check, const GlobalAccess *own,
                       const GlobalAccess *past) {
  return past->operation == own->operation && past->cluster == own->cluster &&
         past->agent == own->agent && past->issuer == own->issuer && past->reach == own->reach &&
         past->flags == own->flags && past->lock == own->lock &&
         time_of(past) > order_of(check, own->agent)->epoch;
}
static bool stands_for(const GlobalNow *now, const GlobalAccess *past) {
  return global_stands_for(now->check, &now->access, past);
}

/* Is the warp among these readers, and nothing has been written since? */
static bool has_read(const GlobalNow *now, GlobalCell cell) {
  const SeenCell *seen = seen_cell(now);
  return cell.reads && seen->address == now->address && seen->writes == cell.writes &&
         !global_settled(now, seen->number) && stands_for(now, global_access(seen->number));
}

static void note_read(const GlobalNow *now, GlobalCell cell) {
  *seen_cell(now) = (SeenCell){now->address, cell.writes, now->number};
}

uint32_t global_add_reader(GlobalQuick *quick, uint32_t readers) {
  enum { NEWEST = 2 };
  const GlobalAccess *own = quick->access;
  uint32_t rest = readers, next;
  for (uint32_t looked_at = 0; looked_at < NEWEST; looked_at++, rest = next) {
    if (!rest || global_is_settled(quick->own->launch, rest)) break;
    const GlobalList *list = rest & GLOBAL_LIST ? global_list(rest) : NULL;
    next = list ? list->next : 0;
    if (list && (list->cluster != own->cluster || list->operation != own->operation)) continue;
    if (global_stands_for(quick->check, own, global_access(list ? list->number : rest)))
      return readers;
  }
  return readers ? global_list_new(quick->own, quick->number, readers) : quick->number;
}

bool global_readers_have_room(uint32_t readers) {
  return !(readers & GLOBAL_LIST) || global_list(readers)->count < LIST_MOST;
}

/* ---- Lists ---- */

/* The first of the list is of a cluster of which this warp knows nothing. Lists are long where many clusters
 * read one place: then the access itself need not be looked up. */
static bool is_unknown(const GlobalNow *now, const GlobalList *list) {
  return now->own && list->operation == now->launch->operation &&
         list->cluster != now->access.cluster &&
         !order_of(now->check, now->access.issuer)->clock.known.tree[KNOWN];
}

static bool is_dropped(const GlobalNow *now, const GlobalAccess *past, bool are_reads,
                       bool is_long) {
  return replaces(now, past, is_long) || (are_reads && is_checked_guess(now, past));
}

/* These accesses (reads or writes) without the ones that the new one replaces, and, if it is of their
 * kind (add), with it. */
static uint32_t updated_accesses(GlobalNow *now, uint32_t value, bool are_reads, bool add) {
  uint32_t kept[LIST_MOST], count = 0, total = 0;
  uint32_t kept_before = 0, tail = value; /* tail: what follows the last one that goes */
  bool is_long = value & GLOBAL_LIST && global_list(value)->count > LIST_LONG;
  for (uint32_t rest = value, next; rest && !global_settled(now, rest); rest = next) {
    const GlobalList *list = rest & GLOBAL_LIST ? global_list(rest) : NULL;
    uint32_t number = list ? list->number : rest;
    next = list ? list->next : 0;
    if (global_settled(now, number)) continue;
    if (number == now->number && add) return value;
    total++;
    if (!(list && is_unknown(now, list)) &&
        is_dropped(now, global_access(number), are_reads, is_long)) {
      kept_before = count;
      tail = next;
    } else if (count < LIST_MOST) {
      kept[count++] = number;
    }
  }
  if (count == total) {
    if (!add) return value;
    return value ? global_list_new(now->own, now->number, value) : now->number;
  }
  bool forgets = count == LIST_MOST; /* the oldest */
  if (forgets) summary_note(NOTE_global_readers);
  uint32_t result = forgets ? 0 : tail;
  for (uint32_t i = forgets ? LIST_LONG : kept_before; i-- > 0;)
    result = result ? global_list_new(now->own, kept[i], result) : kept[i];
  if (!add) return result;
  return result ? global_list_new(now->own, now->number, result) : now->number;
}

/* Counters that many warps change by atomics of .gpu scope: these do not race with each other. Some
 * of them are enough for all. */
static bool join_wide(const GlobalNow *now, GlobalCell cell, GlobalCell *after) {
  const GlobalAccess *own = &now->access;
  bool wide = now->kind != ACCESS_READ && own->reach >= REACH_GPU && !own->lock &&
              !(own->flags & (GLOBAL_VOLATILE | GLOBAL_ASYNC)) && cell.reads == 0;
  if (!wide || !(cell.writes & GLOBAL_LIST)) return false;
  const GlobalList *list = global_list(cell.writes);
  if (!list->wide || list->count < LIST_LONG ||
      global_sizes_differ(own, global_access(list->number)))
    return false;
  uint32_t number = list->number == now->number
                        ? cell.writes
                        : global_list_new(now->own, now->number, list->next);
  *after = (GlobalCell){number, 0};
  return true;
}

static GlobalCell next_cell(GlobalNow *now, GlobalCell cell, bool *lasting) {
  bool reads = now->kind == ACCESS_READ, any_spared = false;
  bool clean = check_all(now, cell.writes, false, &any_spared);
  if (!reads && !check_all(now, cell.reads, true, &any_spared)) clean = false;
  bool past_reads = false;
  const GlobalAccess *past = clean ? global_volatile_mistake(now, cell, &past_reads) : NULL;
  if (past) {
    if (!now->conflict) now->mistake = MISTAKE_VOLATILE;
    note_conflict(now, past, past_reads);
    clean = false;
  }
  *lasting = clean && !any_spared && !(now->access.flags & GLOBAL_VOLATILE);
  if (reads) {
    GlobalQuick plain = {
        .check = now->check, .own = now->own, .access = &now->access, .number = now->number};
    bool quick = reads_plainly(now) && global_readers_have_room(cell.reads);
    return (GlobalCell){cell.writes, quick ? global_add_reader(&plain, cell.reads)
                                           : updated_accesses(now, cell.reads, true, true)};
  }
  if (!clean) return (GlobalCell){now->number, 0};
  if (now->access.reach == REACH_PLAIN && !any_spared) return (GlobalCell){now->number, 0};
  return (GlobalCell){updated_accesses(now, cell.writes, false, true),
                      updated_accesses(now, cell.reads, true, false)};
}

CellMemo *global_memo(const struct GlobalState *own, GlobalCell cell, uint32_t number) {
  uint32_t hash = (cell.writes * 0x9e3779b1u ^ cell.reads * 0x85ebca6bu) + number * 0xc2b2ae35u;
  return &own->memos[(hash ^ hash >> 15) % CELL_MEMOS];
}

/* next_cell, unless the same has been asked lately. */
static GlobalCell next_or_known(GlobalNow *now, GlobalCell cell, bool *lasting) {
  CellMemo *memo = now->own ? global_memo(now->own, cell, now->number) : NULL;
  GlobalCell after;
  if (memo && memo->writes == cell.writes && memo->reads == cell.reads &&
      memo->number == now->number && memo->kind == (uint32_t)now->kind)
    return (GlobalCell){memo->next_writes, memo->next_reads};
  if (!join_wide(now, cell, &after)) after = next_cell(now, cell, lasting);
  if (memo && *lasting)
    *memo = (CellMemo){cell.writes,         cell.reads,   now->number,
                       (uint32_t)now->kind, after.writes, after.reads};
  return after;
}

GlobalCell global_next(GlobalNow *now, GlobalCell cell) {
  GlobalCell before = cell;
  if (cell.writes && global_settled(now, cell.writes)) cell.writes = 0;
  if (cell.reads && global_settled(now, cell.reads)) cell.reads = 0;
  bool lasting = true, plain_read = reads_plainly(now);
  GlobalCell after;
  if (plain_read && has_read(now, cell)) {
    after = cell;
  } else if (cell.writes == 0 && (cell.reads == 0 || cell.reads == now->number)) {
    after = now->kind == ACCESS_READ ? (GlobalCell){0, now->number} : (GlobalCell){now->number, 0};
    if (now->kind != ACCESS_READ && now->access.reach != REACH_PLAIN && cell.reads)
      after = next_cell(now, cell, &lasting);
  } else {
    after = next_or_known(now, cell, &lasting);
  }
  if ((plain_read && lasting) || now->access.flags & GLOBAL_ACQUIRES) note_read(now, after);
  bool one_for_all = lasting || now->conflict;
  now->before = one_for_all ? before : (GlobalCell){GLOBAL_SPLIT, GLOBAL_SPLIT};
  now->after = after;
  return after;
}

/* ---- Accesses of threads ---- */

uint32_t global_number(ClusterCheck *check, GlobalAccess *made) {
  struct GlobalState *own = check->global;
  uint32_t agent = made->agent, number;
  made->time = order_time(check, agent, made->in, made->reach != REACH_PLAIN);
  NumberSlot *slot =
      &own->slots[agent * NUMBER_SLOTS + (uintptr_t)made->in / sizeof(Instruction) % NUMBER_SLOTS];
  if (slot->in == made->in && slot->time == made->time) return slot->number;
  GlobalAccess *kept = global_access_new(own, &number);
  if (kept) *kept = *made;
  *slot = (NumberSlot){made->in, made->time, number};
  return number;
}

static uint16_t flag_of_lock(const GlobalWarp *warp) {
  static const uint16_t flags[] = {[REACH_PLAIN] = GLOBAL_UNFENCED,
                                   [REACH_CTA] = GLOBAL_CTA_FENCED,
                                   [REACH_CLUSTER] = GLOBAL_CLUSTER_FENCED,
                                   [REACH_GPU] = 0,
                                   [REACH_SYSTEM] = 0};
  return flags[warp->lock_fence];
}

bool global_begin(GlobalNow *now, Warp *warp, const Instruction *in, const GlobalKind *kind) {
  ClusterCheck *check = check_of(warp);
  now->own = check->global;
  now->launch = now->own ? now->own->launch : NULL;
  /* Relaxed: some accesses more or less are checked. */
  if (!now->launch || __atomic_load_n(now->launch->ignored, __ATOMIC_RELAXED)) return false;
  now->check = check;
  now->warp = warp;
  now->in = in;
  now->kind = kind->access;
  now->before = (GlobalCell){GLOBAL_SPLIT, GLOBAL_SPLIT};
  now->conflict = false;
  now->kept = NULL;
  now->swaps = kind->swaps;
  now->mistake = MISTAKE_RACE;
  now->stored = NULL;
  now->access = (GlobalAccess){.operation = now->launch->operation,
                               .cluster = now->own->cluster,
                               .agent = (uint16_t)agent_of(warp),
                               .issuer = (uint16_t)agent_of(warp),
                               .reach = kind->reach,
                               .flags = kind->flags,
                               .size = kind->size,
                               .in = in};
  /* one number stands for an instruction's swaps that succeed and those that fail */
  if (kind->access == ACCESS_ATOMIC || kind->swaps) now->access.flags |= GLOBAL_UPDATES;
  if (kind->unread) now->access.flags |= GLOBAL_UNREAD;
  if (kind->acquire && kind->access == ACCESS_READ) now->access.flags |= GLOBAL_ACQUIRES;
  const GlobalWarp *state = &order_of(now->check, now->access.issuer)->global;
  if (state->lock) {
    now->access.lock = lock_tag(state->lock);
    now->access.flags |= flag_of_lock(state);
  }
  now->access.kept = kind->kept;
  now->number = global_number(check, &now->access);
  if (kind->swaps && now->number) global_swap_keeps(now->number, kind->kept);
  return now->number != 0;
}

/* Lanes of the mask whose bytes follow each other; returns the others. */
static LaneMask next_run(GlobalNow *now, LaneMask left, const uint64_t *addresses, uint8_t *lanes) {
  uint32_t count = 0;
  now->first = addresses[first_lane(left)];
  now->lanes = lanes;
  do {
    lanes[count++] = (uint8_t)first_lane(left);
    left &= left - 1;
  } while (left && addresses[first_lane(left)] == now->first + count * now->lane_bytes);
  now->bytes = count * now->lane_bytes;
  return left;
}

/* When several lanes read one place, the first of them stands for all. */
static LaneMask without_copies(const GlobalNow *now, LaneMask mask, const uint64_t *addresses) {
  uint64_t first = addresses[first_lane(mask)], differing = 0;
  int last = LANES - 1 - __builtin_clz(mask);
  if (!reads_plainly(now) || addresses[last] != first) return mask;
  for (int lane = 0; lane < LANES; lane++)
    differing |= (addresses[lane] ^ first) & -(uint64_t)(mask >> lane & 1);
  return differing ? mask : mask & -mask;
}

void global_touch_lanes(GlobalNow *now, LaneMask mask, const uint64_t *addresses) {
  uint8_t lanes[LANES];
  GlobalHeldPage held = {NULL, 0};
  bool may_be_noted = now->kind == ACCESS_READ && now->launch->apart;
  for (LaneMask left = mask; left;) {
    left = next_run(now, left, addresses, lanes);
    if (now->first & GENERIC_TAG_MASK ||
        (may_be_noted && global_shadow_is_noted(now->own, now->first, now->bytes)))
      continue;
    global_shadow_touch_more(now, &held, now->first, now->bytes);
  }
  global_shadow_release(&held);
}

static void look_for_races(Warp *warp, const Instruction *in, LaneMask mask,
                           const uint64_t *addresses, bool run, uint32_t bytes,
                           const GlobalKind *kind, const GlobalStored *stored) {
  static const uint8_t ALL[LANES] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                     11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                     22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  GlobalNow now;
  if (!global_begin(&now, warp, in, kind)) return;
  now.stored = stored;
  now.lane_bytes = bytes;
  /* Relaxed: what it points to is read with the lock. */
  if (now.swaps && __atomic_load_n(&now.launch->guesses, __ATOMIC_RELAXED))
    global_guess_checked(&now, mask, addresses);
  if (mask & (mask - 1) || now.own->lanes) global_lanes_touch(&now, mask, addresses, run, bytes);
  if (kind->release && kind->access != ACCESS_READ) {
    lanes_note_release(warp, in, mask, clock_of(now.check, now.access.issuer));
    global_lanes_release(warp, in, clock_of(now.check, now.access.issuer));
  }
  if (run) {
    now.first = addresses[0];
    now.lanes = ALL;
    global_shadow_touch(&now, now.first, (uint64_t)LANES * bytes);
  } else {
    global_touch_lanes(&now, without_copies(&now, mask, addresses), addresses);
  }
  if (now.conflict) global_report(&now);
}

void check_global(Warp *warp, const Instruction *in, LaneMask mask, const uint64_t *addresses,
                  bool run, uint32_t bytes, const GlobalKind *kind, const GlobalStored *stored) {
  bool plain = kind->reach == REACH_PLAIN;
  if (kind->access == ACCESS_READ)
    unwritten_accessed(warp, mask, addresses, run, bytes, ACCESS_READ);
  look_for_races(warp, in, mask, addresses, plain && run, bytes, kind, stored);
  /* Only now: memory that nothing has written before this need not be kept for a trial. */
  if (kind->access == ACCESS_WRITE)
    unwritten_accessed(warp, mask, addresses, run, bytes, ACCESS_WRITE);
}
