/* global_copies.c: what the copy engine reads and writes in global memory.
 *
 * Such an access lasts from its issue to its end, and only what shows its end orders it before
 * anything: wait_group without .read in the thread that issued it, or the phase of the mbarrier in
 * which its bytes count. Until then its time is NOT_FINISHED, which no warp has seen. */
#include "base/tma_map.h"
#include "checker/global/global_state.h"
#include "checker/shared/shared.h"

static bool is_reduce(const AsyncOperation *operation) {
  return operation->kind == ASYNC_TENSOR_REDUCE || operation->kind == ASYNC_BULK_REDUCE;
}

static bool is_load(const AsyncOperation *operation) {
  return operation->kind == ASYNC_TENSOR_LOAD || operation->kind == ASYNC_BULK_LOAD;
}

/* One row that many blocks have read? */
static bool is_noted(const GlobalNow *now, const AsyncOperation *operation, uint64_t first,
                     uint64_t bytes, uint32_t rows) {
  return rows == 1 && is_load(operation) && now->launch->apart && bytes &&
         global_shadow_is_noted(now->own, first, bytes);
}

/* Rows of bytes of global memory, `step` bytes from each to the next. */
static void touch_rows(GlobalNow *now, const AsyncOperation *operation, uint64_t first,
                       uint64_t bytes, uint32_t rows, uint64_t step) {
  if (!is_noted(now, operation, first, bytes, rows))
    global_shadow_touch_rows(now, first, bytes, rows, step);
  for (uint32_t row = 0; row < rows && !is_load(operation); row++)
    unwritten_overwritten(operation, first + row * step, bytes, is_reduce(operation));
}

static void touch_tensor(GlobalNow *now, const AsyncOperation *operation) {
  TmaRows rows;
  TmaWalk walk = tma_walk(&operation->tensor.map, &operation->tensor.place);
  while (tma_walk_next(&walk, &rows)) {
    if (!rows.bytes) continue;
    if (rows.step == rows.bytes)
      touch_rows(now, operation, rows.global, (uint64_t)rows.count * rows.bytes, 1, 0);
    else
      touch_rows(now, operation, rows.global, rows.bytes, rows.count, rows.step);
  }
}

void global_copy_issues(const AsyncOperation *operation) {
  if (!operation->warp->cta->cluster->launch->global) return;
  bool tensor = operation->kind == ASYNC_TENSOR_LOAD || operation->kind == ASYNC_TENSOR_STORE ||
                operation->kind == ASYNC_TENSOR_REDUCE;
  bool bulk = operation->kind == ASYNC_BULK_LOAD || operation->kind == ASYNC_BULK_STORE ||
              operation->kind == ASYNC_BULK_REDUCE;
  if (!tensor && !bulk) return;
  GlobalKind kind = {.access = is_load(operation)     ? ACCESS_READ
                               : is_reduce(operation) ? ACCESS_ATOMIC
                                                      : ACCESS_WRITE,
                     .reach = is_reduce(operation) ? REACH_GPU : REACH_PLAIN,
                     .flags = GLOBAL_ASYNC};
  GlobalNow now;
  if (!global_begin(&now, operation->warp, operation->in, &kind)) return;
  /* A copy to several blocks can be awaited in each of them: count it as over when it lands. */
  now.access.time = NOT_FINISHED;
  GlobalAccess *made = global_access_new(now.own, &now.number);
  if (!made) return;
  const uint32_t place = shared_tell_end(now.check, operation->checked, &made->time);
  if (place != NO_PLACE) now.access.agent = (uint16_t)place;
  *made = now.access;
  now.lanes = NULL;
  now.lane = operation->lane;
  if (tensor)
    touch_tensor(&now, operation);
  else
    touch_rows(&now, operation, (uint64_t)(uintptr_t)operation->global, operation->bytes, 1, 0);
  if (now.conflict) global_report(&now);
}

static void touch_copied(GlobalNow *now, LaneMask lanes, const uint64_t *addresses,
                         uint32_t bytes) {
  if (!bytes) return;
  now->lane_bytes = bytes;
  if (now->own->lanes) global_lanes_touch(now, lanes, addresses, false, bytes);
  global_touch_lanes(now, lanes, addresses);
}

/* cp.async of these lanes: what each reads. */
static void touch_copies(const AsyncOperation *operation) {
  static const GlobalKind KIND = {.access = ACCESS_READ, .flags = GLOBAL_ASYNC | GLOBAL_CP_ASYNC};
  const LaneMask mask = operation->copy.lanes;
  const uint32_t *bytes = operation->copy.source_bytes;
  GlobalNow now;
  if (!global_begin(&now, operation->warp, operation->in, &KIND)) return;
  now.access.time = NOT_FINISHED;
  GlobalAccess *made = global_access_new(now.own, &now.number);
  if (!made) return;
  *made = now.access;
  shared_tell_end(now.check, operation->checked, &made->time);
  uint64_t addresses[LANES] = {0};
  LaneMask whole =
      0; /* lanes that read as much as the first one; the others read less, or nothing */
  FOR_LANES(lane, mask) {
    addresses[lane] = (uint64_t)(uintptr_t)operation->copy.source[lane];
    whole |= bytes[lane] == bytes[first_lane(mask)] ? 1u << lane : 0;
  }
  touch_copied(&now, whole, addresses, bytes[first_lane(mask)]);
  FOR_LANES(lane, mask & ~whole) touch_copied(&now, 1u << lane, addresses, bytes[lane]);
  if (now.conflict) global_report(&now);
}

void global_copy_issued(AsyncOperation *operation) {
  if (operation->kind != ASYNC_CP_ASYNC && !operation->barrier)
    will_write(&operation->warp->async->bulk[operation->lane], operation);
  if (operation->kind == ASYNC_CP_ASYNC && operation->checked &&
      operation->warp->cta->cluster->launch->global)
    touch_copies(operation);
}
