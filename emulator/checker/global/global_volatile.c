/* global_volatile.c: volatile accesses to global memory that do not race, and are mistakes.
 *
 * Volatile accesses are strong, so they do not race with each other, and nothing is wrong with a
 * flag that one warp sets and another one polls. Three things are hardly ever intended: a store over
 * what another warp has changed by an atomic or under a lock, and which this warp has not read and
 * does not know of (without an atomic or a lock it may be a variable of Peterson's or Dekker's); a
 * store outside the lock under which both warps read the place; and a store over a place that another warp has read, once,
 * although the two have synchronised before that read. */
#include "checker/global/global_state.h"
#include "ptx/program.h"

static bool is_own(const GlobalNow *now, const GlobalAccess *past) {
  return past->cluster == now->access.cluster && past->issuer == now->access.issuer;
}

/* A place that is read in a loop may be polled. Device functions count as loops. */
static bool is_in_loop(const GlobalNow *now, const Instruction *in) {
  const Function *kernel = now->warp->cta->cluster->launch->kernel;
  const Instruction *code = kernel->code, *end = code + kernel->count;
  if (in < code || in >= end) return true;
  for (const Instruction *jump = in; jump < end; jump++)
    if (jump->traits & JUMPS_BY_LIST ||
        (jump->traits & JUMPS && code + jump->operand[0].target <= in))
      return true;
  return false;
}

/* Has this warp acquired anything from the other one's? */
static bool has_acquired(const GlobalNow *now, const GlobalAccess *past) {
  const Clock *clock = &order_of(now->check, now->access.issuer)->clock;
  const KnownLeaf *leaf =
      order_leaf(now->launch->order, clock->known.tree[KNOWN_ACQUIRED], past->cluster);
  return leaf && past->issuer < leaf->count && leaf->clocks[past->issuer] > 0;
}

static bool lost_value(const GlobalNow *now, GlobalCell cell, const GlobalAccess *past) {
  if (now->kind == ACCESS_READ) return global_ordered(now, past, KNOWN_ANY_SCOPE);
  if (!(past->flags & GLOBAL_UPDATES) && !past->lock && !now->access.lock) return false;
  FOR_GLOBAL_NUMBERS(number, cell.reads) {
    if (!global_settled(now, number) && is_own(now, global_access(number))) return false;
  }
  return !global_same_value(now);
}

/* The lock under which this warp has read the place, and which it does not hold now; 0: none. */
static uint32_t left_lock(const GlobalNow *now, GlobalCell cell) {
  if (now->access.lock) return 0;
  FOR_GLOBAL_NUMBERS(number, cell.reads) {
    const GlobalAccess *read = global_access(number);
    if (!global_settled(now, number) && is_own(now, read) && read->lock) return read->lock;
  }
  return 0;
}

/* A volatile read by another warp over which this store should not go. */
static const GlobalAccess *overwritten_read(const GlobalNow *now, GlobalCell cell) {
  uint32_t lock = left_lock(now, cell);
  FOR_GLOBAL_NUMBERS(number, cell.reads) {
    const GlobalAccess *read = global_access(number);
    if (global_settled(now, number) || is_own(now, read) || !(read->flags & GLOBAL_VOLATILE) ||
        read->operation != now->access.operation || global_ordered(now, read, KNOWN_ACQUIRED))
      continue;
    if (lock && read->lock == lock) return read;
    if (!read->lock && has_acquired(now, read) && !is_in_loop(now, read->in)) return read;
  }
  if (lock) global_left_lock(now->number, lock);
  return NULL;
}

const GlobalAccess *global_volatile_mistake(const GlobalNow *now, GlobalCell cell,
                                            bool *past_reads) {
  const GlobalAccess *own = &now->access;
  if (!(own->flags & GLOBAL_VOLATILE) || !now->own) return NULL;
  *past_reads = true;
  if (now->kind != ACCESS_READ && cell.reads) {
    const GlobalAccess *read = overwritten_read(now, cell);
    if (read) return read;
  }
  *past_reads = false;
  if (!cell.writes || global_settled(now, cell.writes)) return NULL;
  const GlobalAccess *past = global_access(global_first_of(cell.writes));
  if (past->reach == REACH_PLAIN || past->operation != own->operation || is_own(now, past) ||
      global_ordered(now, past, KNOWN_ACQUIRED))
    return NULL;
  bool unlocked = past->flags & GLOBAL_LEFT_LOCK && past->lock == own->lock;
  return unlocked || lost_value(now, cell, past) ? past : NULL;
}
