/* runtime_work.c: work for the device: launches, copies, fills, host calls and others. A stream
 * runs it at once. A graph stores it in its nodes and runs it at each launch. */
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

cudaError_t work_run(const Work *work) {
  switch (work->type) {
    case cudaGraphNodeTypeMemcpy:
      return copy_run(&work->copy);
    case cudaGraphNodeTypeMemset:
      fill_run(&work->fill);
      break;
    case cudaGraphNodeTypeHost:
      runtime_call_back(work->host.fn, work->host.userData);
      break;
    case cudaGraphNodeTypeEventRecord:
      event_record_now(work->event);
      break;
    case cudaGraphNodeTypeMemAlloc:
      memory_make_present((uint64_t)(uintptr_t)work->allocation.dptr, true);
      break;
    case cudaGraphNodeTypeMemFree:
      memory_free((uint64_t)(uintptr_t)work->freed);
      break;
    default: /* waits and empty nodes do nothing */
      break;
  }
  return cudaSuccess;
}

cudaError_t work_copy(const Work *work, Work *copy) {
  *copy = *work;
  if (work->type == cudaGraphNodeTypeGraph) return graph_clone(work->child, &copy->child);
  if (work->type != cudaGraphNodeTypeKernel) return cudaSuccess;
  copy->launch.pointers = NULL;
  copy->launch.parameters = runtime_gather_arguments(runtime_entry(work->launch.kernel), NULL,
                                                     work->launch.parameters, SIZE_MAX);
  return copy->launch.parameters ? cudaSuccess : cudaErrorMemoryAllocation;
}

void work_free(Work *work) {
  if (work->type == cudaGraphNodeTypeGraph && work->child) cudaGraphDestroy(work->child);
  if (work->type == cudaGraphNodeTypeKernel) {
    free(work->launch.parameters);
    free(work->launch.pointers);
  }
  work->type = cudaGraphNodeTypeEmpty;
}
