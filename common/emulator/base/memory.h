/* memory.h: the device's global memory: allocations, whose device address is their host address. */
#ifndef EMULATOR_MEMORY_H
#define EMULATOR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t first; /* address of the first byte */
  uint64_t end;   /* one past the last byte that was asked for */
  bool read_only; /* constant memory */
  bool absent;    /* of a graph, before its allocation node runs or behind its free */
  uint8_t kind;   /* MemoryKind: for the program's questions, all of it works alike */
} Allocation;
typedef enum { MEMORY_OF_DEVICE, MEMORY_OF_HOST, MEMORY_MANAGED, MEMORY_OF_HEAP } MemoryKind;

/* 0: out of memory. Fresh memory is poison (no zeros by luck). Addresses are 256-byte aligned. */
uint64_t memory_allocate(size_t bytes);
/* Between these two what is freed stays mapped: a launch that has been set aside may have copies in
 * flight to it. */
void memory_launch_begins(void);
void memory_launch_ends(void);
bool memory_free(uint64_t address); /* false: not the start of an allocation, or the heap's */
/* Host memory that the device may use at its own address (pinned, managed, registered, variables).
 */
bool memory_register(void *host, size_t bytes, bool read_only);
bool memory_unregister(void *host);
void memory_set_kind(uint64_t address, MemoryKind kind);
/* An allocation of a graph keeps its address from launch to launch: freeing it makes it absent, and
 * the graph's allocation node makes it present again. Before that it is absent. */
void memory_give_to_graph(uint64_t address);
bool memory_make_present(uint64_t address, bool present); /* false: not a graph's, or as it is */
/* As memory_find, but absent memory too: for calls about what a graph will do. */
const Allocation *memory_find_planned(uint64_t address);
/* Forgets memory of the host that the program has unmapped although it is registered. */
void memory_forget_unmapped(bool (*is_mapped)(const void *address, size_t bytes));
size_t memory_in_use(void);

/* The allocation that holds this address, or the block of the device's heap, or NULL. Lookups are
 * lock-free: a launch never races with allocation, which the runtime refuses to do while a kernel
 * runs. */
const Allocation *memory_find(uint64_t address);
/* Goes up whenever the list changes: who keeps the answer of a lookup forgets it then. */
extern uint32_t memory_generation;
/* For explanations: the allocation that ends before or starts after the address, "freed" ones too.
 * Returns the name of the rule that an access to it breaks. */
const char *memory_describe(uint64_t address, char *text, size_t text_bytes);

#endif
