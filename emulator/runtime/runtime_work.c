/* runtime_work.c: work for the device: launches, copies, fills, host calls and others. A stream
 * runs it at once. A graph stores it in its nodes and runs it at each launch. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "runtime/handles.h"
#include "runtime/runtime.h"

Work work_of_fill(void *address, size_t pitch, unsigned value, unsigned element_bytes, size_t width,
                  size_t height) {
  Work work = {.type = cudaGraphNodeTypeMemset};
  work.fill = (struct cudaMemsetParams){address, pitch, value, element_bytes, width, height};
  return work;
}

cudaError_t work_check(Work *work) {
  switch (work->type) {
    case cudaGraphNodeTypeMemcpy:
      return copy_check(&work->copy);
    case cudaGraphNodeTypeMemset:
      return fill_check(&work->fill);
    case cudaGraphNodeTypeHost:
      return work->host.fn ? cudaSuccess : cudaErrorInvalidValue;
    case cudaGraphNodeTypeGraph:
      return work->child ? cudaSuccess : cudaErrorInvalidValue;
    case cudaGraphNodeTypeEventRecord:
    case cudaGraphNodeTypeWaitEvent:
      return handle_is(work->event, HANDLE_EVENT) ? cudaSuccess : cudaErrorInvalidValue;
    default:
      return cudaSuccess;
  }
}

/* ---- What it touches, for the order of streams ---- */

static void touch_freed(uint64_t address) {
  const Allocation *found = memory_find(address);
  if (found) stream_order_freed(found->first, found->end - found->first);
}

static void touch_fill(const struct cudaMemsetParams *fill) {
  char amount[64];
  size_t row = fill->width * fill->elementSize;
  if (!row || !fill->height) return;
  snprintf(amount, sizeof amount, " of %zu bytes", row * fill->height);
  StreamTouch touch = {(uint64_t)(uintptr_t)fill->dst, row, true};
  if (fill->height > 1) touch.bytes += (fill->height - 1) * fill->pitch;
  stream_order_touch("the fill", amount, &touch, 1);
}

/* Host memory that is not pinned is copied before the call returns, as far as it matters here. */
static bool is_pinned(const Allocation *there) { return there && there->kind == MEMORY_OF_HOST; }

/* Rows with gaps between them, which do not count. Copies of very many rows are not looked at. */
static void touch_rows(const RowCopy *copy, bool reads, bool writes) {
  enum { ROWS_MOST = 8192 };
  if (copy->height == 0 || copy->height > ROWS_MOST) return;
  StreamTouch *touches = new_zeros(2 * copy->height, sizeof *touches);
  int count = 0;
  for (size_t row = 0; row < copy->height; row++) {
    uint64_t from = (uint64_t)(uintptr_t)copy->from + row * copy->from_pitch;
    uint64_t to = (uint64_t)(uintptr_t)copy->to + row * copy->to_pitch;
    if (reads) touches[count++] = (StreamTouch){from, copy->width, false};
    if (writes) touches[count++] = (StreamTouch){to, copy->width, true};
  }
  char amount[64];
  if (copy->height == 1)
    snprintf(amount, sizeof amount, " of %zu bytes", copy->width);
  else
    snprintf(amount, sizeof amount, " of %zu rows of %zu bytes", copy->height, copy->width);
  stream_order_touch("the copy", amount, touches, count);
  free(touches);
}

static cudaError_t run_copy(const RowCopy *copy) {
  if (!copy->width || !stream_order_wanted()) return copy_run(copy);
  const Allocation *source = memory_find((uint64_t)(uintptr_t)copy->from);
  const Allocation *target = memory_find((uint64_t)(uintptr_t)copy->to);
  touch_rows(copy, source, target);
  cudaError_t error = copy_run(copy);
  if (copy->height != 1) return error;
  if (!target) stream_order_host_learns_executed();
  if (error == cudaSuccess && is_pinned(target))
    stream_order_watch_host(copy->to, copy->width, true);
  if (error == cudaSuccess && is_pinned(source))
    stream_order_watch_host(copy->from, copy->width, false);
  return error;
}

static cudaError_t run_work(const Work *work) {
  switch (work->type) {
    case cudaGraphNodeTypeMemcpy:
      return run_copy(&work->copy);
    case cudaGraphNodeTypeMemset:
      touch_fill(&work->fill);
      fill_run(&work->fill);
      break;
    case cudaGraphNodeTypeHost:
      stream_order_host_learns_executed(); /* what came before is over */
      runtime_call_back(work->host.fn, work->host.userData);
      stream_order_host_learns_executed(); /* it may tell the host's other threads */
      break;
    case cudaGraphNodeTypeEventRecord:
      event_record_now(work->event);
      break;
    case cudaGraphNodeTypeMemAlloc:
      memory_make_present((uint64_t)(uintptr_t)work->allocation.dptr, true);
      break;
    case cudaGraphNodeTypeMemFree:
      touch_freed((uint64_t)(uintptr_t)work->freed);
      memory_free((uint64_t)(uintptr_t)work->freed);
      break;
    default: /* waits and empty nodes do nothing */
      break;
  }
  return cudaSuccess;
}

cudaError_t work_run(const Work *work) {
  stream_order_execute(work->stamp);
  cudaError_t error = run_work(work);
  stream_order_execute(NULL);
  return error;
}

Work work_copy(const Work *work) {
  Work copy = *work;
  copy.stamp = NULL;
  if (work->type == cudaGraphNodeTypeGraph) copy.child = graph_clone(work->child);
  if (work->type == cudaGraphNodeTypeKernel)
    copy.launch.parameters =
        runtime_copy_parameters(runtime_entry(work->launch.kernel), work->launch.parameters);
  return copy;
}

void work_free(Work *work) {
  free(work->stamp);
  work->stamp = NULL;
  if (work->type == cudaGraphNodeTypeGraph && work->child) cudaGraphDestroy(work->child);
  if (work->type == cudaGraphNodeTypeKernel) free(work->launch.parameters);
  work->type = cudaGraphNodeTypeEmpty;
}
