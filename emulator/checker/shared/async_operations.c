/* async_operations.c: asynchronous operations in the checker: issued, source read, landed, waited for. */
#include <stdlib.h>
#include <string.h>

#include "base/holds.h"
#include "base/fault.h"
#include "checker/shared/shared_state.h"

/* ---- Asynchronous operations ---- */

static AsyncCheck *new_check(ClusterCheck *check) {
  AsyncCheck *operation = check->shared->spare_operations;
  if (operation)
    check->shared->spare_operations = operation->next_allocated;
  else
    operation = malloc(sizeof *operation);
  if (!operation) out_of_memory();
  memset(operation, 0, sizeof *operation);
  return operation;
}

bool async_committed(const ClusterCheck *check, const AsyncCheck *operation) {
  return operation->kind == ASYNC_WGMMA
             ? operation->group < check->shared->wgmma_group[operation->agent]
             : operation->committed;
}

/* The operations that this one joins in the thread's open group, although a fence stands between. */
static void note_joined(const ClusterCheck *check, const AsyncCheck *operation) {
  for (AsyncCheck *each = operation->next_of_warp; each; each = each->next_of_warp) {
    if (!by_group(each) || each->kind != operation->kind || each->lane != operation->lane) continue;
    if (each->joined || async_committed(check, each)) return;
    if (each->fences != operation->fences) each->joined = operation->in;
  }
}

static AsyncCheck *new_operation(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                                 uint32_t barrier) {
  ClusterCheck *check = check_of(warp);
  states_reserve(check);
  AsyncCheck *operation = new_check(check);
  operation->in = in;
  operation->kind = kind;
  operation->agent = (uint16_t)agent_of(warp);
  operation->lane = (uint8_t)lane;
  operation->barrier = barrier;
  operation->issue_clock = clock_of(check, operation->agent);
  operation->issue_time = check->now;
  operation->fences = check->shared->fences[operation->agent];
  for (uint32_t rank = 0; rank < check->cta_count && barrier; rank++) {
    MbarrierCheck *counting = past_barrier_of(check, operation, rank);
    operation->issue_phase[rank] = counting ? counting->phase : 0;
    if (!counting) continue;
    counting->copy_in = in;
    counting->copy_phase = counting->phase;
  }
  operation->next_allocated = check->shared->operations;
  check->shared->operations = operation;
  operation->link = &check->shared->of_warp[operation->agent];
  operation->next_of_warp = *operation->link;
  if (operation->next_of_warp) operation->next_of_warp->link = &operation->next_of_warp;
  *operation->link = operation;
  return operation;
}

void async_free(ClusterCheck *check, AsyncCheck *operation) {
  free(operation->lane_waited_clock);
  operation->next_allocated = check->shared->spare_operations;
  check->shared->spare_operations = operation;
}

void operations_forget(ClusterCheck *check) {
  struct SharedState *shared = check->shared;
  while (shared->operations) {
    AsyncCheck *next = shared->operations->next_allocated;
    async_free(check, shared->operations);
    shared->operations = next;
  }
  memset(shared->of_warp, 0, check->agents * sizeof(AsyncCheck *));
}

static void leave_list(AsyncCheck *operation) {
  if (!operation->link) return;
  HOLDS(*operation->link == operation);
  *operation->link = operation->next_of_warp;
  if (operation->next_of_warp) operation->next_of_warp->link = operation->link;
  operation->link = NULL;
}

static void note_tile(AsyncCheck *operation, const SharedPiece *pieces, int count) {
  if (operation->kind != ASYNC_TENSOR_LOAD && operation->kind != ASYNC_BULK_LOAD) return;
  for (int i = 0; i < count; i++) {
    uint32_t first = SHARED_OFFSET(pieces[i].address), end = first + pieces[i].bytes;
    if (i == 0 || first < operation->into) operation->into = first;
    if (end > operation->into_end) operation->into_end = end;
  }
}

AsyncCheck *shared_issue(Warp *warp, const Instruction *in, int lane, AsyncKind kind, bool adds,
                         LaneMask lanes, const SharedPiece *writes, int count, uint32_t barrier) {
  AsyncCheck *operation = new_operation(warp, in, lane, kind, barrier);
  operation->lanes = lanes;
  operation->adds = adds;
  for (int i = 0; i < count; i++) operation->ranks |= 1u << SHARED_RANK(writes[i].address);
  note_tile(operation, writes, count);
  if (kind == ASYNC_WGMMA) {
    operation->group = check_of(warp)->shared->wgmma_group[operation->agent];
    operation->released = true;
  }
  if (kind == ASYNC_TENSOR_LOAD || kind == ASYNC_TENSOR_STORE || kind == ASYNC_TENSOR_REDUCE)
    operation->map = check_of(warp)->shared->used_map;
  if (barrier)
    operation->past = order_keep_past(check_of(warp), agent_of(warp), in);
  else
    note_joined(check_of(warp), operation);
  return operation;
}

/* ---- Tensor maps in global memory ---- */

static void map_used(Warp *warp, const Instruction *in, int lane, uint64_t address) {
  (void)in, (void)lane;
  check_of(warp)->shared->used_map = address & GENERIC_TAG_MASK ? 0 : address;
}

/* The map in global memory changes. A copy's issue does not read its map: the engine does, later. Who has waited
 * for a copy, even for its reads alone, knows that the engine has its map. */
static void map_fenced(Warp *warp, const Instruction *in, bool acquires, uint64_t address,
                       LaneMask mask) {
  ClusterCheck *check = check_of(warp);
  const AsyncCheck *user = NULL;
  for (uint32_t i = 0; i < check->agents && !acquires && address && !user; i++) {
    user = check->shared->of_warp[i];
    while (user && user->map != address) user = user->next_of_warp;
  }
  if (!user) return;
  const Phrase passed = async_passed(user);
  finding_of(warp, in, mask,
             &(const Finding){.rule = RULE(TENSORMAP_IN_USE), .other = user->in, .unordered = true},
             "changes the tensor map that the copy %s was issued with, and no thread has waited "
             "for that copy: "
             "the engine may read the map when it holds the next copy's address already.\n%s",
             place_of(user->in).text,
             passed.text[0] ? passed.text
             : user->barrier
                 ? "Wait at the copy's mbarrier first, or change a map in another place."
             : user->committed ? "Wait for its group first (cp.async.bulk.wait_group.read 0, in "
                                 "the thread that issued it, "
                                 "then __syncwarp()), or change a map in another place."
                               : "First commit it and wait for its group "
                                 "(cp.async.bulk.commit_group, wait_group.read 0), "
                                 "or change a map in another place.");
}

/* The mbarrier that a warp of the issuing block can wait for; NULL: none. */
static const MbarrierCheck *end_barrier(const ClusterCheck *check, const AsyncCheck *operation) {
  if (!operation->barrier) return NULL;
  return past_barrier_of(check, operation, operation->agent / check->warps_per_cta);
}

uint32_t shared_tell_end(const ClusterCheck *check, AsyncCheck *operation, uint32_t *time) {
  const MbarrierCheck *barrier = end_barrier(check, operation);
  operation->end_time = time;
  return barrier ? barrier->place : NO_PLACE;
}

static void keep_end(const AsyncCheck *operation, uint32_t time) {
  if (operation->end_time) __atomic_store_n(operation->end_time, time, __ATOMIC_RELAXED);
}

/* A copy to several blocks can be awaited in each of them: it counts as over when it lands. */
static void keep_landing(const ClusterCheck *check, const AsyncCheck *operation) {
  const MbarrierCheck *barrier = end_barrier(check, operation);
  bool alone = true;
  for (uint32_t rank = 0; rank < check->cta_count; rank++)
    alone &=
        rank == operation->agent / check->warps_per_cta || !past_barrier_of(check, operation, rank);
  uint32_t time = 0; /* ordered before everything */
  if (barrier && barrier->place != NO_PLACE && alone) time = barrier->phase + 1;
  keep_end(operation, time);
}

static void wait_for_copies(Warp *warp, LaneMask lanes, AsyncCheck *operation) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), clock = clock_of(check, agent);
  lanes &= operation->lanes & ~operation->lanes_waited;
  if (lanes != operation->lanes && !operation->lane_waited_clock)
    operation->lane_waited_clock = new_zeros(LANES, sizeof *operation->lane_waited_clock);
  for (LaneMask left = lanes; operation->lane_waited_clock && left; left &= left - 1)
    operation->lane_waited_clock[first_lane(left)] = clock;
  if (!operation->lanes_waited && lanes) keep_end(operation, clock);
  operation->lanes_waited |= lanes;
  order_begin_epoch(check, agent);
  if (operation->lanes_waited != operation->lanes) return;
  HOLDS(!operation->waited_clock); /* each is waited for once by all its lanes */
  operation->waited_clock = clock;
  leave_list(operation);
}

void copies_arrive(Warp *warp, int lane) {
  ClusterCheck *check = check_of(warp);
  AsyncCheck *next;
  for (AsyncCheck *each = check->shared->of_warp[agent_of(warp)]; each; each = next) {
    next = each->next_of_warp;
    if (each->landed && each->lanes >> lane & 1) wait_for_copies(warp, 1u << lane, each);
  }
}

static void source_read(Cluster *cluster, AsyncOperation *operation) {
  if (cluster->check && operation->checked) operation->checked->source_read = true;
}

static void operation_landed(Cluster *cluster, AsyncOperation *landed) {
  ClusterCheck *check = cluster->check;
  AsyncCheck *operation = landed->checked;
  if (!check || landed->arrives || !operation) return;
  HOLDS(!operation->landed); /* each lands once */
  operation->source_read = operation->landed = true;
  if (by_group(operation)) return;
  if (operation->end_time) keep_landing(check, operation);
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    uint32_t address = operation->barrier;
    if (operation->kind != ASYNC_CTA_TO_CTA) address = rank << 24 | SHARED_OFFSET(address);
    MbarrierCheck *barrier = mbarrier_at(check, address);
    if (!barrier) continue;
    operation->landing_phase[rank] = barrier->phase;
    if (landed->cta_mask >> rank & 1) {
      barrier->copied = barrier->phase + 1;
      order_hand_on(check, operation->past, &barrier->arriving);
    }
    bool load = operation->kind == ASYNC_TENSOR_LOAD || operation->kind == ASYNC_BULK_LOAD;
    if (load && operation->ranks >> rank & 1 && rank == operation->agent / check->warps_per_cta)
      barrier->landed = (LandedLoad){operation->in, operation->kind, operation->agent,
                                     barrier->phase, operation->lane};
  }
  order_hand_on(check, operation->past, NULL);
  operation->past = NULL;
  leave_list(operation); /* it is waited for through its barrier */
}

static void operation_awaited(Warp *warp, LaneMask lanes, AsyncOperation *awaited,
                              bool reads_only) {
  AsyncCheck *operation = awaited->checked;
  if (!operation) return;
  if (operation->kind == ASYNC_CP_ASYNC) {
    wait_for_copies(warp, lanes, operation);
    return;
  }
  ClusterCheck *check = check_of(warp);
  uint32_t clock = clock_of(check, agent_of(warp));
  if (!operation->read_waited_clock) operation->read_waited_clock = clock;
  if (!reads_only && !operation->waited_clock) {
    operation->waited_clock = clock;
    keep_end(operation, clock);
  }
  order_begin_epoch(check, agent_of(warp));
  leave_list(operation);
}

/* A loop may begin with a wait for the stores of its last round: in the first round there are none.
 * Such a wait comes before the commit, in the same thread or in one that this one has met since. */
static void forget_earlier_idle_wait(Warp *warp) {
  ClusterCheck *check = check_of(warp);
  struct CheckedMemory *memory = &check->shared->memory[warp->cta->rank];
  uint32_t waiter = warp->cta->rank * check->warps_per_cta + memory->idle_thread / LANES;
  if (!memory->idle_wait) return;
  if (has_seen(check, agent_of(warp), waiter, memory->idle_clock)) memory->idle_wait = NULL;
}

static void commit_bulk_group(Warp *warp, int lane) {
  ClusterCheck *check = check_of(warp);
  forget_earlier_idle_wait(warp);
  for (AsyncCheck *each = check->shared->of_warp[agent_of(warp)]; each; each = each->next_of_warp) {
    if (each->lane != lane || is_generic(each) || each->kind == ASYNC_WGMMA) continue;
    if (each->committed) break; /* and all older ones */
    each->committed = true;
  }
}

static void wait_for_bulk(Warp *warp, const Instruction *in, LaneMask mask, LaneMask idle) {
  ClusterCheck *check = check_of(warp);
  struct CheckedMemory *memory = &check->shared->memory[warp->cta->rank];
  if (mask & ~idle) memory->own_wait = in;
  if (!idle || memory->idle_wait) return;
  memory->idle_wait = in;
  memory->idle_thread = thread_of(warp, first_lane(idle));
  memory->idle_clock = clock_of(check, agent_of(warp));
}

/* ---- wgmma ---- */

/* All groups except the last `pending` have completed, for all four warps of the warpgroup. */
static void wait_for_wgmmas(Warp *warp, uint32_t pending) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), clock = clock_of(check, agent);
  uint64_t open = check->shared->wgmma_group[agent];
  uint32_t member = warp->index % WARPS_OF_GROUP;
  for (uint32_t i = 0; i < WARPS_OF_GROUP; i++) {
    uint32_t index = warp->index - member + i;
    if (index >= check->warps_per_cta) break;
    AsyncCheck *next;
    for (AsyncCheck *each = check->shared->of_warp[agent - member + i]; each; each = next) {
      next = each->next_of_warp;
      if (each->kind != ASYNC_WGMMA || each->group + (uint64_t)pending >= open) continue;
      each->source_read = each->landed = true;
      if (!each->group_waited[member]) each->group_waited[member] = clock;
      bool by_all = true;
      for (uint32_t k = 0; k < WARPS_OF_GROUP; k++) by_all &= each->group_waited[k] != 0;
      if (by_all) leave_list(each);
    }
  }
}

/* ---- Events ---- */

static void fence(Warp *warp, const Instruction *in, LaneMask mask, Fence kind) {
  (void)in, (void)mask;
  if (kind.kind == FENCE_WGMMA || kind.kind == FENCE_PROXY_ASYNC)
    check_of(warp)->shared->fences[agent_of(warp)]++;
}

static void operation_released(AsyncOperation *operation) {
  if (operation->checked) operation->checked->released = true;
  operation->checked = NULL;
}

static void group_committed(Warp *warp, const Instruction *in, LaneMask mask, GroupKind kind) {
  (void)in;
  if (kind == GROUPS_WGMMA) check_of(warp)->shared->wgmma_group[agent_of(warp)]++;
  AsyncCheck *first = check_of(warp)->shared->of_warp[agent_of(warp)];
  for (AsyncCheck *each = kind == GROUPS_CP_ASYNC ? first : NULL; each; each = each->next_of_warp)
    if (each->lanes & mask) each->committed = true;
  FOR_LANES(lane, kind == GROUPS_BULK ? mask : 0) commit_bulk_group(warp, lane);
}

static void group_awaited(Warp *warp, const Instruction *in, LaneMask mask, const GroupWait *wait) {
  const GroupKind kind = wait->kind;
  const uint32_t pending = wait->pending;
  if (kind == GROUPS_WGMMA) wait_for_wgmmas(warp, pending);
  if (kind == GROUPS_BULK) wait_for_bulk(warp, in, mask, wait->idle);
  const Instruction *uncommitted[LANES] = {NULL}; /* the newest of each lane */
  AsyncCheck *first = check_of(warp)->shared->of_warp[agent_of(warp)];
  for (AsyncCheck *each = first; each; each = each->next_of_warp) {
    const bool is_wgmma = each->kind == ASYNC_WGMMA, is_cp_async = each->kind == ASYNC_CP_ASYNC;
    const bool of_kind = is_wgmma      ? kind == GROUPS_WGMMA
                         : is_cp_async ? kind == GROUPS_CP_ASYNC && each->lanes & mask
                                       : kind == GROUPS_BULK && mask >> each->lane & 1;
    const bool committed = async_committed(check_of(warp), each);
    if (!of_kind || !by_group(each) || (committed && pending == 0)) continue;
    each->passed = in;
    each->passed_pending = pending;
    each->behind = committed ? uncommitted[each->lane] : NULL;
    if (committed) continue;
    if (!each->passed_uncommitted) each->passed_uncommitted = in;
    if (!uncommitted[each->lane]) uncommitted[each->lane] = each->in;
  }
}

Phrase async_passed(const AsyncCheck *operation) {
  const Instruction *early = operation->passed_uncommitted;
  const char *commit = operation->kind == ASYNC_WGMMA      ? "wgmma.commit_group"
                       : operation->kind == ASYNC_CP_ASYNC ? "cp.async.commit_group"
                                                           : "cp.async.bulk.commit_group";
  const Instruction *next = operation->joined ? operation->joined : operation->behind;
  if (!operation->passed) return NO_PHRASE;
  const Phrase where = place_of(early ? early : operation->passed), later = place_of(next);
  if (early)
    return phrase(
        "No %s stands between it and the wait for groups %s, and a wait is for committed "
        "groups only: put one before that wait, in the thread that issued it.",
        commit, where.text);
  if (operation->joined)
    return phrase(
        "No %s stands between it and the %s issued next, %s, so both are in one group, and "
        "the wait for groups %s lets the newest %u go on: put one between them, or wait for "
        "more groups.",
        commit, async_kind_name(operation->kind), later.text, where.text,
        operation->passed_pending);
  if (operation->behind)
    return phrase(
        "No %s stands between the %s issued later, %s, and the wait for groups %s, which lets "
        "the newest %u go on: so this one is still among them. Put a commit before that wait.",
        commit, async_kind_name(operation->kind), later.text, where.text,
        operation->passed_pending);
  return phrase(
      "The wait for groups %s lets the newest %u go on, and this one is among them: a smaller "
      "number there, or another wait later, waits for it as well.",
      where.text, operation->passed_pending);
}

static const Subscriber OPERATIONS = {.fence = fence,
                                      .map_used = map_used,
                                      .map_fenced = map_fenced,
                                      .source_read = source_read,
                                      .operation_landed = operation_landed,
                                      .operation_awaited = operation_awaited,
                                      .operation_released = operation_released,
                                      .group_committed = group_committed,
                                      .group_awaited = group_awaited};
SUBSCRIBE(OPERATION_EVENTS, OPERATIONS)
