/* device_heap.h: device-side malloc and free. The heap is created when the first kernel that uses
 * it is loaded. Its size can be set until then. */
#pragma once

#include "base/memory.h"

typedef enum {
  HEAP_FREED,
  HEAP_FREED_BEFORE, /* the block at this address is already free */
  HEAP_NO_BLOCK      /* no heap block begins at this address */
} HeapFree;

/* A size above the most there can be becomes that. false: the heap is already in use */
bool device_heap_resize(size_t bytes);
size_t device_heap_size(void);
bool device_heap_prepare(void);
uint64_t device_heap_allocate(uint64_t bytes); /* 0: the heap is full */
HeapFree device_heap_free(uint64_t address);

/* Is this address in the heap's memory, in a block or not? */
bool device_heap_holds(uint64_t address);
/* The block that holds this address, or NULL. May run concurrently with device_heap_allocate and
 * _free. */
const Allocation *device_heap_find(uint64_t address);
/* Describes what is at an address of the heap. Returns the rule that an access to it
 * breaks. */
const Rule *device_heap_describe(uint64_t address, char *text, size_t text_bytes);
