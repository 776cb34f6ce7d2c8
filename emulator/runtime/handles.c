/* handles.c: the table of valid handles (handles.h): a hash table with open addressing. */
#include "runtime/handles.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/fault.h"

typedef struct {
  const void *handle; /* NULL: never used */
  HandleKind kind;    /* 0: removed */
} HandleSlot;

static struct {
  pthread_mutex_t lock; /* of all of it */
  HandleSlot *slots;
  size_t slot_count, used; /* slot_count is a power of two; removed handles count as used */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t first_slot(const void *handle) {
  return (size_t)(((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15ull) >> 20) &
         (all.slot_count - 1);
}

/* The handle's slot, or the empty slot where it belongs. */
static HandleSlot *slot_of(const void *handle) {
  size_t i = first_slot(handle);
  while (all.slots[i].handle && all.slots[i].handle != handle) i = (i + 1) & (all.slot_count - 1);
  return &all.slots[i];
}

static void grow(void) {
  HandleSlot *old = all.slots;
  size_t old_count = all.slot_count;
  all.slot_count = old_count ? old_count * 2 : 256;
  all.slots = calloc(all.slot_count, sizeof *all.slots);
  if (!all.slots) out_of_memory();
  all.used = 0;
  for (size_t i = 0; i < old_count; i++) {
    if (!old[i].kind) continue;
    *slot_of(old[i].handle) = old[i];
    all.used++;
  }
  free(old);
}

void handle_add(const void *handle, HandleKind kind) {
  pthread_mutex_lock(&all.lock);
  if (2 * all.used >= all.slot_count) grow();
  HandleSlot *slot = slot_of(handle);
  if (!slot->handle) all.used++;
  *slot = (HandleSlot){handle, kind};
  pthread_mutex_unlock(&all.lock);
}

void handle_remove(const void *handle) {
  pthread_mutex_lock(&all.lock);
  if (all.slot_count) slot_of(handle)->kind = 0;
  pthread_mutex_unlock(&all.lock);
}

bool handle_is(const void *handle, HandleKind kind) {
  pthread_mutex_lock(&all.lock);
  bool found = handle && all.slot_count && slot_of(handle)->kind == kind;
  pthread_mutex_unlock(&all.lock);
  return found;
}
