/* device_heap.h: malloc and free of the device. The heap is made when the first kernel that uses it
 * is loaded; its size can be set before. */
#ifndef EMULATOR_DEVICE_HEAP_H
#define EMULATOR_DEVICE_HEAP_H

#include "base/memory.h"

typedef enum {
  HEAP_FREED,
  HEAP_FREED_BEFORE, /* the block that begins there is free already */
  HEAP_NO_BLOCK      /* no block of the heap begins there */
} HeapFree;

bool device_heap_resize(size_t bytes); /* false: it is in use already, or too large */
size_t device_heap_size(void);
bool device_heap_prepare(void);
uint64_t device_heap_allocate(uint64_t bytes); /* 0: no space is left */
HeapFree device_heap_free(uint64_t address);

/* Is this address in the heap's memory, in a block or not? */
bool device_heap_holds(uint64_t address);
/* The block that holds this address, or NULL. Safe beside device_heap_allocate and _free. */
const Allocation *device_heap_find(uint64_t address);
/* What there is at an address of the heap; returns the rule that an access to it breaks. */
const char *device_heap_describe(uint64_t address, char *text, size_t text_bytes);

#endif
