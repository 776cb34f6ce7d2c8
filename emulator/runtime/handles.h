/* handles.h: the handles that programs hold: streams, events, graphs and the rest. A handle that
 * was never returned, was destroyed, or is of another kind is rejected before it is
 * dereferenced. */
#pragma once

#include <stdbool.h>

typedef enum {
  HANDLE_STREAM = 1,
  HANDLE_EVENT,
  HANDLE_GRAPH,
  HANDLE_EXEC,
  HANDLE_IMAGE, /* a module or a library */
  HANDLE_CONTEXT,
  HANDLE_DESTROYED_CONTEXT
} HandleKind;

void handle_add(const void *handle, HandleKind kind);
void handle_remove(const void *handle);
bool handle_is(const void *handle, HandleKind kind); /* false for NULL */
