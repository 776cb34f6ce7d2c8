/* written.h: which bytes of the device's memory something has written since they were allocated.
 *
 * Only memory of memory_allocate is looked at (cudaMalloc, pools, graphs, the device's heap). All
 * other memory and managed memory count as written: the host may write them without the emulator.
 * A bit is set for each byte that a kernel, a copy or a fill writes. A copy from device to device
 * copies the bits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint64_t first, bytes; /* the addresses that are looked at; 0 bytes: none */
  uint64_t *bits;        /* of each byte from `first` on */
} WrittenMap;
extern WrittenMap written_map;

/* memory.c: all allocations will be in this range. Does nothing if the settings ask for no check of
 * global memory. */
void written_begin(uint64_t first, uint64_t bytes);
void written_set(uint64_t first, uint64_t bytes);
void written_clear(uint64_t first, uint64_t bytes);
/* The same for a whole allocation, which is about to be freed. */
void written_release(uint64_t first, uint64_t bytes);
/* Have all these bytes been written? */
bool written_all(uint64_t first, uint64_t bytes);
/* The same for memory that the host may have written: it is asked only when written_all or
 * written_here says no. */
bool written_by_host(uint64_t first, uint64_t bytes);
static inline bool written_or_by_host(uint64_t first, uint64_t bytes) {
  return written_all(first, bytes) || written_by_host(first, bytes);
}
/* One bit for each of at most 32 bytes. */
uint32_t written_bits(uint64_t first, uint32_t bytes);
/* A copy between any two places, host memory included. */
void written_copy(uint64_t to, uint64_t from, uint64_t bytes);

static inline bool written_is_watched(uint64_t address) {
  return address - written_map.first < written_map.bytes;
}

/* The same as written_all, quickly: an aligned access of at most 32 bytes. */
static inline bool written_here(uint64_t address, uint32_t bytes) {
  uint64_t at = address - written_map.first;
  if (at >= written_map.bytes) return true;
  uint64_t wanted = ((1ull << bytes) - 1) << (at & 63);
  return (__atomic_load_n(&written_map.bits[at >> 6], __ATOMIC_RELAXED) & wanted) == wanted;
}
