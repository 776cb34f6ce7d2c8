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
  uint8_t kind;   /* MemoryKind: for the program's questions, all of it works alike */
} Allocation;
typedef enum { MEMORY_OF_DEVICE, MEMORY_OF_HOST, MEMORY_MANAGED, MEMORY_OF_HEAP } MemoryKind;

/* 0: out of memory. Fresh memory is poison (no zeros by luck). Addresses are 256-byte aligned. */
uint64_t memory_allocate(size_t bytes);
bool memory_free(uint64_t address); /* false: not the start of an allocation, or the heap's */
/* Host memory that the device may use at its own address (pinned, managed, registered, variables).
 */
bool memory_register(void *host, size_t bytes, bool read_only);
bool memory_unregister(void *host);
void memory_set_kind(uint64_t address, MemoryKind kind);
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
