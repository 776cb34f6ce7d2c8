/* own_stores.c: finds threads that read data which their own bulk stores and reduces may not
 * have written yet.
 *
 * wait_group.read guarantees only that their source has been read. wait_group without .read
 * guarantees that the destination is written, and only for the waiting thread. The operations that
 * a thread has not waited for in this way are compared with its reads of global memory. Reads by
 * other threads are not checked, because their synchronisation (a flag or the end of the kernel) is
 * not tracked.
 */

#include "base/fault.h"
#include "checker/global/global_state.h"

static bool range_of_operation(const AsyncOperation *operation, uint64_t *first, uint64_t *end) {
  if (operation->kind == ASYNC_TENSOR_STORE || operation->kind == ASYNC_TENSOR_REDUCE)
    return tma_range(&operation->tensor.map, &operation->tensor.place, first, end);
  if (operation->kind != ASYNC_BULK_STORE && operation->kind != ASYNC_BULK_REDUCE) return false;
  *first = (uint64_t)(uintptr_t)operation->global;
  *end = *first + operation->bytes;
  return true;
}

void will_write(BulkThread *thread, const AsyncOperation *operation) {
  uint64_t first, end;
  if (!range_of_operation(operation, &first, &end)) return;
  if (thread->written_end == 0 || first < thread->written_first) thread->written_first = first;
  if (end > thread->written_end) thread->written_end = end;
}

static bool operation_writes(const AsyncOperation *operation, uint64_t address, uint32_t bytes) {
  uint64_t first, end;
  if (!range_of_operation(operation, &first, &end) || address >= end || address + bytes <= first)
    return false;
  if (operation->kind == ASYNC_BULK_STORE || operation->kind == ASYNC_BULK_REDUCE) return true;
  TmaRows rows;
  TmaWalk walk = tma_walk(&operation->tensor.map, &operation->tensor.place);
  while (tma_walk_next(&walk, &rows)) {
    for (uint32_t row = 0; row < rows.count && rows.bytes > 0; row++) {
      uint64_t global = rows.global + row * rows.step;
      if (address < global + rows.bytes && global < address + bytes) return true;
    }
  }
  return false;
}

void check_reads_written(Warp *warp, const Instruction *in, LaneMask mask,
                         const uint64_t *addresses, uint32_t bytes) {
  FOR_LANES(lane, mask) {
    BulkThread *thread = &warp->async->bulk[lane];
    uint64_t address = addresses[lane];
    if (!thread->first || address >= thread->written_end ||
        address + bytes <= thread->written_first)
      continue;
    for (const AsyncOperation *each = thread->first; each; each = each->next_of_thread) {
      if (!operation_writes(each, address, bytes)) continue;
      finding(warp, in, 1u << lane, RULE(READ_BEFORE_WRITTEN),
              "reads global memory, where the %s issued by this thread %s may not have written "
              "yet.\n"
              "%s",
              async_kind_name(each->kind), place_of(each->in).text,
              each->group == thread->groups.closed
                  ? "No cp.async.bulk.commit_group has followed it in this thread, and a wait is "
                    "for committed groups only: commit it, then wait (cp.async.bulk.wait_group)."
                  : "Wait for it without .read (cp.async.bulk.wait_group): .read says only that "
                    "its tile may be overwritten.");
      thread->written_end = 0; /* once is enough */
      return;
    }
  }
}
