/* runtime_work.c: work for the device: launches, copies, fills, host calls and others. A stream
 * runs it at once. A graph stores it in its nodes and runs it at each launch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/handles.h"
#include "runtime/runtime.h"

Work work_of_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  Work work = {.type = cudaGraphNodeTypeMemcpy};
  work.copy.dstPtr = (struct cudaPitchedPtr){to, bytes, bytes, 1};
  work.copy.srcPtr = (struct cudaPitchedPtr){(void *)(uintptr_t)from, bytes, bytes, 1};
  work.copy.extent = (struct cudaExtent){bytes, 1, 1};
  work.copy.kind = kind;
  return work;
}

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
  if (found) order_freed(found->first, found->end - found->first);
}

static void touch_fill(const struct cudaMemsetParams *fill) {
  char what[64];
  size_t row = fill->width * fill->elementSize;
  if (!row || !fill->height) return;
  snprintf(what, sizeof what, "the fill of %zu bytes", row * fill->height);
  StreamTouch touch = {(uint64_t)(uintptr_t)fill->dst, row, true};
  if (fill->height > 1) touch.bytes += (fill->height - 1) * fill->pitch;
  order_touch(what, &touch, 1);
}

/* Host memory that is not pinned is copied before the call returns, as far as it matters here. */
static bool is_pinned(const Allocation *there) { return there && there->kind == MEMORY_OF_HOST; }

static uint64_t row_at(const struct cudaPitchedPtr *base, struct cudaPos at, size_t row,
                       size_t slice) {
  return (uint64_t)(uintptr_t)base->ptr + at.x +
         ((at.z + slice) * base->ysize + at.y + row) * base->pitch;
}

/* Rows with gaps between them, which do not count. Copies of very many rows are not looked at. */
static void touch_rows(const struct cudaMemcpy3DParms *copy) {
  enum { ROWS_MOST = 8192 };
  size_t rows = copy->extent.height * copy->extent.depth, bytes = copy->extent.width;
  if (!bytes || rows == 0 || rows > ROWS_MOST || copy->extent.height > ROWS_MOST) return;
  const bool reads = memory_find(row_at(&copy->srcPtr, copy->srcPos, 0, 0));
  const bool writes = memory_find(row_at(&copy->dstPtr, copy->dstPos, 0, 0));
  StreamTouch *touches = malloc(2 * rows * sizeof *touches);
  if (!touches) return;
  int count = 0;
  for (size_t i = 0; i < rows; i++) {
    size_t row = i % copy->extent.height, slice = i / copy->extent.height;
    uint64_t from = row_at(&copy->srcPtr, copy->srcPos, row, slice);
    uint64_t to = row_at(&copy->dstPtr, copy->dstPos, row, slice);
    if (reads) touches[count++] = (StreamTouch){from, bytes, false};
    if (writes) touches[count++] = (StreamTouch){to, bytes, true};
  }
  char what[64];
  snprintf(what, sizeof what, "the copy of %zu rows of %zu bytes", rows, bytes);
  order_touch(what, touches, count);
  free(touches);
}

static cudaError_t run_copy(const struct cudaMemcpy3DParms *copy) {
  size_t bytes = copy->extent.width;
  bool looked_at = !copy->srcArray && !copy->dstArray && bytes && order_wanted();
  bool plain = looked_at && copy->extent.height == 1 && copy->extent.depth == 1;
  if (looked_at && !plain) touch_rows(copy);
  if (!plain) return copy_run(copy);
  const uint8_t *from = (const uint8_t *)copy->srcPtr.ptr + copy->srcPos.x;
  uint8_t *to = (uint8_t *)copy->dstPtr.ptr + copy->dstPos.x;
  const Allocation *source = memory_find((uint64_t)(uintptr_t)from);
  const Allocation *target = memory_find((uint64_t)(uintptr_t)to);
  StreamTouch touches[2];
  int count = 0;
  char what[64];
  snprintf(what, sizeof what, "the copy of %zu bytes", bytes);
  if (source) touches[count++] = (StreamTouch){(uint64_t)(uintptr_t)from, bytes, false};
  if (target) touches[count++] = (StreamTouch){(uint64_t)(uintptr_t)to, bytes, true};
  order_touch(what, touches, count);
  cudaError_t error = copy_run(copy);
  if (!target) order_host_learns_executed();
  if (error == cudaSuccess && is_pinned(target)) order_watch_host(to, bytes, true);
  if (error == cudaSuccess && is_pinned(source)) order_watch_host(from, bytes, false);
  return error;
}

static cudaError_t run(const Work *work) {
  switch (work->type) {
    case cudaGraphNodeTypeMemcpy:
      return run_copy(&work->copy);
    case cudaGraphNodeTypeMemset:
      touch_fill(&work->fill);
      fill_run(&work->fill);
      break;
    case cudaGraphNodeTypeHost:
      order_host_learns_executed(); /* what came before is over */
      runtime_call_back(work->host.fn, work->host.userData);
      order_host_learns_executed(); /* it may tell the host's other threads */
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
  order_execute(work->stamp);
  cudaError_t error = run(work);
  order_execute(NULL);
  return error;
}

cudaError_t work_copy(const Work *work, Work *copy) {
  *copy = *work;
  copy->stamp = NULL;
  if (work->type == cudaGraphNodeTypeGraph) return graph_clone(work->child, &copy->child);
  if (work->type != cudaGraphNodeTypeKernel) return cudaSuccess;
  copy->launch.pointers = NULL;
  const Function *entry = runtime_entry(work->launch.kernel);
  copy->launch.parameters = runtime_copy_parameters(entry, work->launch.parameters);
  return copy->launch.parameters ? cudaSuccess : cudaErrorMemoryAllocation;
}

void work_free(Work *work) {
  free(work->stamp);
  work->stamp = NULL;
  if (work->type == cudaGraphNodeTypeGraph && work->child) cudaGraphDestroy(work->child);
  if (work->type == cudaGraphNodeTypeKernel) {
    free(work->launch.parameters);
    free(work->launch.pointers);
  }
  work->type = cudaGraphNodeTypeEmpty;
}
