/* global_whole_warps.c: plain accesses to global memory by all lanes of a warp, side by side, or by some at one place.
 *
 * Nearly all accesses are of this kind, and touch bytes that nobody else has touched since the launch began,
 * or that have only been read. They get here what check_global would do, without what only other accesses
 * need. Whatever is not answered here is left to check_global, which may then look at the same bytes again:
 * what has already been noted changes nothing the second time. */
#include "base/written.h"
#include "checker/global/global_state.h"

/* One plain access of this warp. */
static bool is_own(const GlobalQuick *quick, uint32_t value) {
  if (value & GLOBAL_LIST) return false;
  const GlobalAccess *past = global_access(value), *own = quick->access;
  return past->operation == own->operation && past->cluster == own->cluster &&
         past->issuer == own->issuer && past->reach == REACH_PLAIN && !(past->flags & GLOBAL_ASYNC);
}

static bool is_remembered(const GlobalQuick *quick, GlobalCell cell, GlobalCell *after) {
  const CellMemo *memo = global_memo(quick->own, cell, quick->number);
  *after = (GlobalCell){memo->next_writes, memo->next_reads};
  return memo->writes == cell.writes && memo->reads == cell.reads &&
         memo->number == quick->number &&
         memo->kind == (quick->writes ? ACCESS_WRITE : ACCESS_READ);
}

static bool next_of_write(const GlobalQuick *quick, GlobalCell cell, GlobalCell *after) {
  bool own =
      (!cell.writes || is_own(quick, cell.writes)) && (!cell.reads || is_own(quick, cell.reads));
  *after = (GlobalCell){quick->number, 0};
  if (!own && !is_remembered(quick, cell, after)) return false;
  return true;
}

static bool next_of_read(GlobalQuick *quick, uint64_t address, GlobalCell cell, GlobalCell *after) {
  const GlobalAccess *own = quick->access;
  SeenCell *seen = global_seen_cell(quick->own, own->agent, address);
  *after = cell;
  if (!cell.reads || seen->address != address || seen->writes != cell.writes ||
      global_is_settled(quick->own->launch, seen->number) ||
      !global_stands_for(quick->check, own, global_access(seen->number))) {
    bool own_writes = !cell.writes || (!own->flags && is_own(quick, cell.writes));
    if (own_writes && global_readers_have_room(cell.reads))
      after->reads = global_add_reader(quick, cell.reads);
    else if (!is_remembered(quick, cell, after))
      return false;
  }
  /* A warp that is the only reader finds itself at once. */
  if (after->reads & GLOBAL_LIST) *seen = (SeenCell){address, after->writes, quick->number};
  return true;
}

bool global_quick_next(GlobalQuick *quick, uint64_t address, GlobalCell *cell) {
  const GlobalLaunch *launch = quick->own->launch;
  GlobalCell before = *cell, past = before, after;
  if (before.writes == quick->before.writes && before.reads == quick->before.reads) {
    *cell = quick->after;
    return true;
  }
  if (before.writes == GLOBAL_SPLIT) return false;
  if (past.writes && global_is_settled(launch, past.writes)) past.writes = 0;
  if (past.reads && global_is_settled(launch, past.reads)) past.reads = 0;
  bool known = quick->writes ? next_of_write(quick, past, &after)
                             : next_of_read(quick, address, past, &after);
  if (!known) return false;
  quick->before = before;
  *cell = quick->after = after;
  return true;
}

/* It is noted like any other. */
__attribute__((noinline)) static bool check_and_note(Warp *warp, const Instruction *in,
                                                     LaneMask mask, uint64_t first, uint32_t step,
                                                     uint32_t bytes, const GlobalKind *kind) {
  ClusterCheck *check = check_of(warp);
  struct GlobalState *own = check->global;
  uint32_t agent = agent_of(warp);
  uint64_t all = step ? (uint64_t)LANES * bytes : bytes;
  bool writes = kind->access == ACCESS_WRITE;
  GlobalAccess access = {.operation = own->launch->operation,
                         .cluster = own->cluster,
                         .agent = (uint16_t)agent,
                         .issuer = (uint16_t)agent,
                         .reach = REACH_PLAIN,
                         .flags = kind->flags,
                         .size = kind->size,
                         .kept = kind->kept,
                         .in = in};
  GlobalQuick quick = {.check = check,
                       .own = own,
                       .access = &access,
                       .number = global_number(check, &access),
                       .writes = writes,
                       .before = {GLOBAL_SPLIT, GLOBAL_SPLIT}};
  if (!quick.number || !global_shadow_quickly(&quick, first, all) ||
      !global_lanes_step(&quick, mask, first, step, bytes))
    return false;
  if (writes && written_map.bytes) written_set(first, all);
  return true;
}

bool check_global_quickly(Warp *warp, const Instruction *in, LaneMask mask, uint64_t first,
                          uint32_t step, uint32_t bytes, const GlobalKind *kind) {
  const ClusterCheck *check = check_of(warp);
  struct GlobalState *own = check->global;
  uint32_t agent = agent_of(warp);
  uint64_t all = step ? (uint64_t)LANES * bytes : bytes;
  if (!own || !own->launch || __atomic_load_n(own->launch->ignored, __ATOMIC_RELAXED) ||
      order_of(check, agent)->global.lock)
    return false;
  if (kind->access == ACCESS_READ) {
    bool written = step ? written_all(first, all) : written_here(first, bytes);
    if (written_map.bytes && !written) return false;
    if (own->launch->apart && global_shadow_many_have_read(own, first, all)) {
      global_lanes_pass(check, agent);
      return true;
    }
  }
  return check_and_note(warp, in, mask, first, step, bytes, kind);
}
