/* async_operations.c: asynchronous operations in the checker: issued, source read, landed, waited for.
 * Also checks for unfinished operations when their block ends, and the layout of the tiles that they
 * write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "checker/lanes/lanes.h"
#include "checker/check_state.h"
#include "checker/undefined/marks.h"

/* ---- Asynchronous operations ---- */

static AsyncCheck *allocate(ClusterCheck *check) {
  AsyncCheck *operation = check->spare_operations;
  if (operation)
    check->spare_operations = operation->next_allocated;
  else
    operation = malloc(sizeof *operation);
  if (!operation) out_of_memory();
  memset(operation, 0, sizeof *operation);
  return operation;
}

static AsyncCheck *new_operation(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                                 uint32_t barrier) {
  ClusterCheck *check = check_of(warp);
  states_reserve(check);
  AsyncCheck *operation = allocate(check);
  operation->in = in;
  operation->kind = kind;
  operation->agent = (uint16_t)agent_of(warp);
  operation->lane = (uint8_t)lane;
  operation->barrier = barrier;
  operation->issue_clock = clock_of(check, operation->agent);
  operation->issue_time = check->now;
  for (uint32_t rank = 0; rank < check->cta_count && barrier; rank++) {
    const MbarrierCheck *counting = past_barrier_of(check, operation, rank);
    operation->issue_phase[rank] = counting ? counting->phase : 0;
  }
  operation->next_allocated = check->operations;
  check->operations = operation;
  operation->link = &check->of_warp[operation->agent];
  operation->next_of_warp = *operation->link;
  if (operation->next_of_warp) operation->next_of_warp->link = &operation->next_of_warp;
  *operation->link = operation;
  return operation;
}

void async_free(ClusterCheck *check, AsyncCheck *operation) {
  free(operation->lane_waited_clock);
  operation->next_allocated = check->spare_operations;
  check->spare_operations = operation;
}

static void leave_list(AsyncCheck *operation) {
  if (!operation->link) return;
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

AsyncCheck *check_async_issue(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                              const SharedPiece *reads, int read_count, const SharedPiece *writes,
                              int write_count, uint32_t barrier) {
  AsyncCheck *operation = new_operation(warp, in, lane, kind, barrier);
  for (int i = 0; i < write_count; i++)
    operation->into_issuer |= SHARED_RANK(writes[i].address) == warp->cta->rank;
  note_tile(operation, writes, write_count);
  if (barrier) order_note_issue(check_of(warp), agent_of(warp), barrier);
  lanes_touch_pieces(warp, in, lane, reads, read_count, false);
  lanes_touch_pieces(warp, in, lane, writes, write_count, true);
  lanes_check_fenced(warp, operation, reads, read_count, false);
  lanes_check_fenced(warp, operation, writes, write_count, true);
  shadow_touch(warp, operation, false, reads, read_count);
  shadow_touch(warp, operation, true, writes, write_count);
  return operation;
}

AsyncCheck *check_copies_issue(Warp *warp, const Instruction *in, LaneMask lanes,
                               const SharedPiece *writes, int write_count) {
  AsyncCheck *operation = new_operation(warp, in, first_lane(lanes), ASYNC_CP_ASYNC, 0);
  operation->lanes = lanes;
  lanes_touch_copies(warp, in, lanes, writes, write_count);
  shadow_touch_copies(warp, operation, writes, write_count);
  return operation;
}

void check_copies_waited(Warp *warp, LaneMask lanes, AsyncCheck *operation) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), clock = clock_of(check, agent);
  lanes &= operation->lanes & ~operation->lanes_waited;
  if (lanes != operation->lanes && !operation->lane_waited_clock) {
    operation->lane_waited_clock = calloc(LANES, sizeof *operation->lane_waited_clock);
    if (!operation->lane_waited_clock) out_of_memory();
  }
  for (LaneMask left = lanes; operation->lane_waited_clock && left; left &= left - 1)
    operation->lane_waited_clock[first_lane(left)] = clock;
  if (!operation->lanes_waited && lanes) global_async_waited(operation, clock);
  operation->lanes_waited |= lanes;
  order_begin_epoch(check, agent);
  if (operation->lanes_waited != operation->lanes) return;
  operation->waited_clock = clock;
  leave_list(operation);
}

void check_copies_arrive(Warp *warp, int lane) {
  ClusterCheck *check = check_of(warp);
  AsyncCheck *next;
  for (AsyncCheck *each = check->of_warp[agent_of(warp)]; each; each = next) {
    next = each->next_of_warp;
    if (each->landed && each->lanes >> lane & 1) check_copies_waited(warp, 1u << lane, each);
  }
}

void check_async_source_read(AsyncCheck *operation) {
  if (operation) operation->source_read = true;
}

void check_async_landed(Cluster *cluster, AsyncCheck *operation) {
  if (!operation) return;
  ClusterCheck *check = cluster->check;
  operation->source_read = operation->landed = true;
  if (by_group(operation)) return;
  global_async_landed(check, operation);
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    uint32_t address = operation->barrier;
    if (operation->kind != ASYNC_CTA_TO_CTA) address = rank << 24 | SHARED_OFFSET(address);
    MbarrierCheck *barrier = order_find_barrier(check, address);
    if (!barrier) continue;
    operation->landing_phase[rank] = barrier->phase;
    bool load = operation->kind == ASYNC_TENSOR_LOAD || operation->kind == ASYNC_BULK_LOAD;
    if (load && operation->into_issuer && rank == operation->agent / check->warps_per_cta)
      barrier->landed = (LandedLoad){operation->in, operation->kind, operation->agent,
                                     barrier->phase, operation->lane};
  }
  leave_list(operation); /* it is waited for through its barrier */
}

void check_async_waited(Warp *warp, AsyncCheck *operation, bool reads_only) {
  if (!operation) return;
  ClusterCheck *check = check_of(warp);
  uint32_t clock = clock_of(check, agent_of(warp));
  if (!operation->read_waited_clock) operation->read_waited_clock = clock;
  if (!reads_only && !operation->waited_clock) {
    operation->waited_clock = clock;
    global_async_waited(operation, clock);
  }
  order_begin_epoch(check, agent_of(warp));
  leave_list(operation);
}

/* A loop may begin with a wait for the stores of its last round: in the first round there are none.
 * Such a wait comes before the commit, in the same thread or in one that this one has met since. */
static void forget_earlier_idle_wait(Warp *warp) {
  ClusterCheck *check = check_of(warp);
  struct CheckedMemory *memory = &check->ctas[warp->cta->rank];
  uint32_t waiter = warp->cta->rank * check->warps_per_cta + memory->idle_thread / LANES;
  if (!memory->idle_wait) return;
  if (has_seen(check, agent_of(warp), waiter, memory->idle_clock)) memory->idle_wait = NULL;
}

void check_async_committed(Warp *warp, int lane) {
  ClusterCheck *check = check_of(warp);
  forget_earlier_idle_wait(warp);
  for (AsyncCheck *each = check->of_warp[agent_of(warp)]; each; each = each->next_of_warp) {
    if (each->lane != lane || is_generic(each) || each->kind == ASYNC_WGMMA) continue;
    if (each->committed) break; /* and all older ones */
    each->committed = true;
  }
}

void check_async_waits_idly(Warp *warp, const Instruction *in, int lane) {
  struct CheckedMemory *memory = &check_of(warp)->ctas[warp->cta->rank];
  if (memory->idle_wait) return;
  memory->idle_wait = in;
  memory->idle_thread = thread_of(warp, lane);
  memory->idle_clock = clock_of(check_of(warp), agent_of(warp));
}

void check_async_waits_for_own(Warp *warp, const Instruction *in) {
  check_of(warp)->ctas[warp->cta->rank].own_wait = in;
}

void check_async_release(AsyncCheck *operation) {
  if (operation) operation->released = true;
}

/* A store that was never waited for until the end of its block. */
static void report_unread_store(Warp *warp, const AsyncCheck *store) {
  const struct CheckedMemory *memory = &check_of(warp)->ctas[warp->cta->rank];
  LaneMask who = 1u << store->lane;
  const char *name = async_kind_name(store->kind);
  const char *luck = store->source_read ? " (it was read in time by luck)" : "";
  if (!store->committed) {
    finding(
        warp, store->in, who, "store-never-committed",
        "the block has ended, and this %s was never committed: no wait can have waited for it to "
        "have read its source in shared memory%s.\n"
        "Put cp.async.bulk.commit_group after it, in the same thread, and then "
        "cp.async.bulk.wait_group.read 0.",
        name, luck);
  } else if (memory->idle_wait && memory->idle_wait != memory->own_wait &&
             memory->idle_thread != thread_of(warp, store->lane)) {
    char where[128];
    place_text(memory->idle_wait, where, sizeof where);
    finding(
        warp, store->in, who, "wait-in-another-thread",
        "the block has ended, and no thread has waited for this %s to have read its source in "
        "shared "
        "memory%s: thread %u waited %s, but it had committed nothing, so there was nothing to "
        "wait for.\n"
        "Bulk groups belong to the thread that committed them: wait there, then __syncthreads().",
        name, luck, memory->idle_thread, where);
  } else {
    finding(warp, store->in, who, "exit-before-store-read",
            "the block has ended, and no thread has waited for this %s to have read its source in "
            "shared memory%s.\n"
            "The thread that issued it must commit it and wait before the kernel ends: "
            "cp.async.bulk.commit_group, cp.async.bulk.wait_group.read 0.",
            name, luck);
  }
}

static void report_unknown_load(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                                const char *luck) {
  finding(
      warp, in, 1u << lane, "exit-with-copy-in-flight",
      "the block has ended while this %s was still in flight into shared memory%s.\n"
      "Before the kernel ends, wait for every copy that it has issued, or do not issue those whose "
      "data nobody needs.",
      async_kind_name(kind), luck);
}

/* The block's memory is gone: no operation may still read or write it. */
void check_cta_exit(Cta *cta) {
  ClusterCheck *check = cta->cluster->check;
  if (cta->cluster->launch->error) return;
  check->ctas[cta->rank].exited = true;
  past_confirm_unwritten(cta);
  lanes_report(cta);
  exit_check(cta);
  for (uint32_t w = 0; w < cta->warp_count; w++) {
    uint32_t agent = cta->rank * check->warps_per_cta + w;
    for (AsyncCheck *each = check->of_warp[agent]; each; each = each->next_of_warp) {
      Warp *warp = &cta->warps[w];
      bool takes = each->kind == ASYNC_TENSOR_STORE || each->kind == ASYNC_BULK_STORE ||
                   each->kind == ASYNC_TENSOR_REDUCE || each->kind == ASYNC_BULK_REDUCE;
      if (takes && !each->read_waited_clock) {
        report_unread_store(warp, each);
      } else if (!each->landed && each->barrier) {
        report_unknown_load(warp, each->in, each->lane, each->kind, "");
      }
    }
  }
  for (uint32_t i = 0; i < check->barrier_count; i++) {
    const MbarrierCheck *barrier = check->barriers[i];
    const LandedLoad *load = &barrier->landed;
    if (SHARED_RANK(barrier->address) != cta->rank || !exit_load_unknown(check, barrier)) continue;
    report_unknown_load(&cta->warps[load->agent % check->warps_per_cta], load->in, load->lane,
                        load->kind, " (it has landed in time by luck)");
  }
}

/* ---- wgmma ---- */

void check_wgmma_fence(Warp *warp) { registers_fence(warp); }

AsyncCheck *check_wgmma_issue(Warp *warp, const Instruction *in, const uint16_t *slots,
                              int slot_count) {
  AsyncCheck *operation = new_operation(warp, in, 0, ASYNC_WGMMA, 0);
  operation->group = check_of(warp)->wgmma_group[operation->agent];
  operation->released = true;
  registers_issue(warp, in, slots, slot_count, operation->group);
  return operation;
}

void check_wgmma_operand(AsyncCheck *operation, uint32_t address) { operation->begins = address; }

bool check_wgmma_reads(Warp *warp, AsyncCheck *operation, const SharedPiece *pieces, int count) {
  lanes_check_fenced(warp, operation, pieces, count, false);
  const bool undefined =
      shadow_touch(warp, operation, false, pieces, count) || check_of(warp)->any_undefined;
  operation->begins = 0; /* what is found later may be about the other operand */
  return undefined;
}

bool check_wgmma_rows(Warp *warp, AsyncCheck *operation, const SharedPiece *pieces, int count,
                      uint16_t *unordered) {
  static const char *const rules[] = {"read-without-wait",      "waited-for-wrong-phase",
                                      "wait-not-repeated",      "too-few-bytes-expected",
                                      "stage-reused-too-early", NULL};
  FindingKept kept = {0};
  finding_put_aside(&kept, rules);
  const bool undefined = check_wgmma_reads(warp, operation, pieces, count);
  finding_put_aside(NULL, NULL);
  *unordered = kept.text ? undefined_origin_of_rows(warp, operation->in, kept) : 0;
  return undefined;
}

void check_wgmma_commit(Warp *warp) { check_of(warp)->wgmma_group[agent_of(warp)]++; }

/* All groups except the last `pending` have completed, for all four warps of the warpgroup. */
void check_wgmma_wait(Warp *warp, int pending) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), clock = clock_of(check, agent);
  uint64_t open = check->wgmma_group[agent];
  registers_wait(warp, open, (uint64_t)pending);
  uint32_t member = warp->index % WARPS_OF_GROUP;
  for (uint32_t i = 0; i < WARPS_OF_GROUP; i++) {
    uint32_t index = warp->index - member + i;
    if (index >= check->warps_per_cta) break;
    AsyncCheck *next;
    for (AsyncCheck *each = check->of_warp[agent - member + i]; each; each = next) {
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

/* ---- Layouts: a tile must be read with the swizzle it was written with ---- */

void check_tile_layout(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                       int swizzle_span, bool written, Proxy proxy) {
  ClusterCheck *check = check_of(warp);
  uint32_t rank = SHARED_RANK(address), first = SHARED_OFFSET(address) / 128;
  if (rank >= check->cta_count || bytes == 0) return;
  struct CheckedMemory *memory = &check->ctas[rank];
  uint32_t last = (SHARED_OFFSET(address) + bytes - 1) / 128;
  uint8_t layout = (uint8_t)(swizzle_span < 32 ? 1 : swizzle_span / 16 + 1);
  if (last > memory->words / LINE_WORDS) last = memory->words / LINE_WORDS;
  if (first > last) return;
  if (written) {
    memory->any_layout = true;
    memset(memory->layouts + first, layout, last - first + 1);
    return;
  }
  uint8_t differing = 0;
  /* Threads have put a part of the tile there. If they are not done, that is another mistake. */
  bool partly_written = false;
  for (uint32_t block = first; block <= last; block++) {
    uint8_t found = memory->layouts[block];
    differing |= found ? found ^ layout : 0;
    partly_written |= found == 0;
  }
  if (!differing || (partly_written && proxy == PROXY_ASYNC)) return;
  for (uint32_t block = first; block <= last; block++) {
    uint8_t found = memory->layouts[block];
    if (!found || found == layout) continue;
    char was[32];
    if (found == 1)
      snprintf(was, sizeof was, "no swizzle");
    else
      snprintf(was, sizeof was, "a %u-byte swizzle", (found - 1) * 16u);
    char is[32];
    if (layout == 1)
      snprintf(is, sizeof is, "no swizzle");
    else
      snprintf(is, sizeof is, "a %u-byte swizzle", (layout - 1) * 16u);
    const Finding what = {.rule = "swizzle-mismatch",
                          .memory = ABOUT_SHARED,
                          .rank = (uint8_t)warp->cta->rank,
                          .bytes = 128,
                          .address = block * 128};
    finding_of(
        warp, in, 0, &what,
        "%s shared memory at offset 0x%x with %s, but the copy that put the tile there used %s.\n"
        "The tensor map's swizzle and %s must be the same.",
        proxy == PROXY_TENSOR_CORE ? "multiplies from" : "reads", block * 128, is, was,
        proxy == PROXY_TENSOR_CORE ? "the layout bits of the matrix descriptor"
                                   : "the layout of the one that reads");
    return;
  }
}

void check_tile_loaded(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                       uint32_t row_bytes) {
  ClusterCheck *check = check_of(warp);
  if (SHARED_RANK(address) >= check->cta_count) return;
  struct CheckedMemory *memory = &check->ctas[SHARED_RANK(address)];
  uint32_t first = SHARED_OFFSET(address);
  memory->tiles[memory->tile_count++ % LOADED_TILES] =
      (LoadedTile){first, first + bytes, row_bytes, in};
}

bool check_tile_at(const Warp *warp, uint32_t address, TileNote *tile) {
  const struct CheckedMemory *memory = &check_of(warp)->ctas[SHARED_RANK(address)];
  uint32_t offset = SHARED_OFFSET(address);
  for (uint32_t i = memory->tile_count; i-- > 0 && memory->tile_count - i <= LOADED_TILES;) {
    const LoadedTile *loaded = &memory->tiles[i % LOADED_TILES];
    if (offset < loaded->first || offset >= loaded->end) continue;
    *tile = (TileNote){.first = loaded->first, .end = loaded->end, .row_bytes = loaded->row_bytes};
    place_text(loaded->in, tile->where, sizeof tile->where);
    return true;
  }
  return false;
}
