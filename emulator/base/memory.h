/* memory.h: the device's global memory: allocations, whose device address is their host address. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

typedef struct {
  uint64_t first;  /* address of the first byte */
  uint64_t end;    /* one past the last byte that was asked for */
  bool read_only;  /* constant memory */
  bool absent;     /* owned by a graph, before its allocation node runs or after its free node */
  uint8_t kind;    /* MemoryKind */
  bool own_pages;  /* nothing else is in its pages */
  uint32_t number; /* a later allocation at this address has another one */
} Allocation;
typedef enum { MEMORY_OF_DEVICE, MEMORY_OF_HOST, MEMORY_MANAGED, MEMORY_OF_HEAP } MemoryKind;

/* 0: out of memory. Fresh memory is filled with poison, so that no program finds zeros by luck.
 * Addresses are 256-byte aligned. */
uint64_t memory_allocate(size_t bytes);
/* Memory that is freed between these two calls stays mapped: a launch that has been set aside may
 * have copies in flight to it. */
void memory_launch_begins(void);
void memory_launch_ends(void);
/* false: not the start of an allocation, or part of the device heap */
bool memory_free(uint64_t address);
/* Host memory that the device may use at its own address (pinned, managed, registered, variables).
 */
bool memory_register(void *host, size_t bytes, bool read_only);
bool memory_unregister(void *host);
void memory_set_kind(uint64_t address, MemoryKind kind, bool own_pages);
/* Calls `visit` for each allocation but those of the device heap. */
void memory_each(void (*visit)(const Allocation *place, void *context), void *context);
/* An allocation of a graph keeps its address from launch to launch: freeing it makes it absent, and
 * the graph's allocation node makes it present again. Before that it is absent. */
void memory_give_to_graph(uint64_t address);
/* false: not owned by a graph, or already in this state */
bool memory_make_present(uint64_t address, bool present);
/* Removes registered host memory that the program has unmapped. */
void memory_forget_unmapped(bool (*is_mapped)(const void *address, size_t bytes));
size_t memory_in_use(void);

/* The allocation that holds this address, or the block of the device's heap, or NULL. Lookups are
 * lock-free: a launch never races with allocation, which the runtime refuses to do while a kernel
 * runs. */
const Allocation *memory_find(uint64_t address);
/* The same for calls that hold no lock, while other host threads allocate: a copy of the entry, which
 * may be absent. */
bool memory_look_up(uint64_t address, Allocation *place);
/* Incremented whenever the list changes. Code that caches the result of a lookup must discard it
 * then. */
extern _Atomic uint32_t memory_generation;
/* For explanations: the allocation that ends before or starts after the address, "freed" ones too.
 * Returns the rule that an access to it breaks. */
const Rule *memory_describe(uint64_t address, char *text, size_t text_bytes);
/* "global memory at byte 4 of an allocation of 64 bytes" */
Phrase memory_place(uint64_t address);
