/* handles.c: the table of valid handles (handles.h): a hash table with open addressing. */
#include "runtime/handles.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/lock.h"

typedef struct {
  const void *handle; /* NULL: never used */
  HandleKind kind;    /* 0: removed */
} HandleSlot;

static struct {
  pthread_mutex_t lock; /* of all of it */
  HandleSlot *slots;
  size_t slot_count, used; /* slot_count is a power of two; removed handles count as used */
} handles = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t first_slot(const void *handle) {
  return (size_t)(((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15ull) >> 20) &
         (handles.slot_count - 1);
}

/* The handle's slot, or the empty slot where it belongs. */
static HandleSlot *handle_slot(const void *handle) {
  size_t i = first_slot(handle);
  while (handles.slots[i].handle && handles.slots[i].handle != handle)
    i = (i + 1) & (handles.slot_count - 1);
  return &handles.slots[i];
}

static void grow_table(void) {
  HandleSlot *old = handles.slots;
  size_t old_count = handles.slot_count;
  handles.slot_count = old_count ? old_count * 2 : 256;
  handles.slots = new_zeros(handles.slot_count, sizeof *handles.slots);
  handles.used = 0;
  for (size_t i = 0; i < old_count; i++) {
    if (!old[i].kind) continue;
    *handle_slot(old[i].handle) = old[i];
    handles.used++;
  }
  free(old);
}

void handle_add(const void *handle, HandleKind kind) {
  HOLD_LOCK(&handles.lock);
  if (2 * handles.used >= handles.slot_count) grow_table();
  HandleSlot *slot = handle_slot(handle);
  if (!slot->handle) handles.used++;
  HOLDS(handles.used < handles.slot_count); /* so a search ends */
  *slot = (HandleSlot){handle, kind};
}

void handle_remove(const void *handle) {
  HOLD_LOCK(&handles.lock);
  if (handles.slot_count) handle_slot(handle)->kind = 0;
}

bool handle_is(const void *handle, HandleKind kind) {
  HOLD_LOCK(&handles.lock);
  return handle && handles.slot_count && handle_slot(handle)->kind == kind;
}
