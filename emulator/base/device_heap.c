/* device_heap.c: device-side malloc and free, inside one allocation of global memory.
 *
 * Kernels reach every byte of that memory, so the emulator keeps no data of its own in it. The
 * block tables are in host memory, with one entry for each GRAIN_BYTES of the heap. A gap follows
 * every block, and freed blocks are reused as late as possible, so that an overrun or a use after
 * free does not hit another block. */
#define _DEFAULT_SOURCE
#include "base/device_heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/written.h"

enum { CHUNK_SIZES = 40, SMALLEST_CLASS = 5, GRAIN_BYTES = 16, GAP_BYTES = 16 };
/* The size that an H200 uses when more is asked for. Grain numbers fit into 32 bits. */
static const size_t MOST_BYTES = 17681179680;

typedef enum { NO_BLOCK, BLOCK_USED, BLOCK_FREE } BlockState;
typedef struct {
  Allocation place;
  uint64_t chunk_bytes; /* the block and the gap after it: a power of two */
  uint64_t next;        /* next freed chunk of this size, oldest first; 0: none */
  uint8_t state;
} HeapBlock;

typedef struct {
  uint64_t first, end;
} FreeRegion;

static struct {
  pthread_mutex_t lock; /* of all of it */
  size_t bytes;
  uint64_t first, end;
  HeapBlock *blocks;      /* indexed by the grain in which a block begins */
  uint32_t *block_begins; /* for each grain: 1 + the first grain of its block; 0: in none */
  uint64_t oldest[CHUNK_SIZES], newest[CHUNK_SIZES]; /* freed chunks */
  FreeRegion *regions;                               /* memory that belongs to no chunk */
  size_t region_count;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER, .bytes = (size_t)8 << 20};

static size_t grain_of(uint64_t address) { return (size_t)(address - heap.first) / GRAIN_BYTES; }

bool device_heap_resize(size_t bytes) {
  if (heap.first) return false;
  heap.bytes = bytes < MOST_BYTES ? bytes : MOST_BYTES;
  return true;
}
size_t device_heap_size(void) { return heap.bytes; }

/* The host provides pages of a table only when they are first written. */
static void *large_table(size_t bytes) {
  void *table =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return table == MAP_FAILED ? NULL : table;
}

bool device_heap_prepare(void) {
  HOLD_LOCK(&heap.lock);
  if (!heap.first) {
    /* Twice the promised size, because rounding up to powers of two uses up to half of it. */
    size_t bytes = 2 * heap.bytes + 2 * GAP_BYTES, grains = bytes / GRAIN_BYTES + 1;
    uint64_t first = memory_allocate(bytes);
    heap.regions = malloc(sizeof *heap.regions);
    heap.blocks = large_table(grains * sizeof *heap.blocks);
    heap.block_begins = large_table(grains * sizeof *heap.block_begins);
    if (first && heap.regions && heap.blocks && heap.block_begins) {
      memory_set_kind(first, MEMORY_OF_HEAP, false);
      heap.regions[0] = (FreeRegion){first + GAP_BYTES, first + bytes};
      heap.region_count = 1;
      heap.end = first + bytes;
      heap.first = first;
    }
  }
  return heap.first != 0;
}

static uint64_t take_from_regions(uint64_t bytes) {
  for (size_t i = 0; i < heap.region_count; i++) {
    if (heap.regions[i].end - heap.regions[i].first < bytes) continue;
    uint64_t found = heap.regions[i].first;
    heap.regions[i].first += bytes;
    return found;
  }
  return 0;
}

static uint64_t take_oldest(int class) {
  uint64_t chunk = heap.oldest[class];
  HOLDS(!chunk || heap.blocks[grain_of(chunk)].state == BLOCK_FREE);
  if (chunk) heap.oldest[class] = heap.blocks[grain_of(chunk)].next;
  return chunk;
}

static int block_by_address(const void *a, const void *b) {
  const FreeRegion *left = a, *right = b;
  return left->first < right->first ? -1 : left->first > right->first;
}

/* Joins neighbouring freed chunks. This is the last resort, because use after free is no longer
 * detected in joined chunks. */
static void join_freed(void) {
  size_t count = heap.region_count;
  for (int class = 0; class < CHUNK_SIZES; class ++)
    for (uint64_t chunk = heap.oldest[class]; chunk; chunk = heap.blocks[grain_of(chunk)].next)
      count++;
  FreeRegion *all = new_zeros(count + 1, sizeof *all);
  memcpy(all, heap.regions, heap.region_count * sizeof *all);
  count = heap.region_count;
  for (int class = 0; class < CHUNK_SIZES; class ++)
    for (uint64_t chunk; (chunk = take_oldest(class)) != 0;) {
      HeapBlock *block = &heap.blocks[grain_of(chunk)];
      all[count++] = (FreeRegion){chunk, chunk + block->chunk_bytes};
      block->state = NO_BLOCK;
    }
  qsort(all, count, sizeof *all, block_by_address);
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (all[i].first == all[i].end) continue;
    HOLDS(!kept || all[kept - 1].end <= all[i].first);
    if (kept && all[kept - 1].end == all[i].first)
      all[kept - 1].end = all[i].end;
    else
      all[kept++] = all[i];
  }
  free(heap.regions);
  heap.regions = all;
  heap.region_count = kept;
}

static uint64_t allocate_block(uint64_t bytes) {
  int class = SMALLEST_CLASS;
  if (bytes == 0 || bytes > heap.bytes) return 0;
  while ((uint64_t)1 << class < bytes + GAP_BYTES) class ++;
  uint64_t chunk_bytes = (uint64_t)1 << class;
  uint64_t chunk = take_from_regions(chunk_bytes);
  if (!chunk) chunk = take_oldest(class);
  if (!chunk) {
    join_freed();
    chunk = take_from_regions(chunk_bytes);
  }
  if (!chunk) return 0;
  size_t first = grain_of(chunk), grains = chunk_bytes / GRAIN_BYTES;
  HOLDS(heap.blocks[first].state != BLOCK_USED && chunk + chunk_bytes <= heap.end);
  heap.blocks[first] =
      (HeapBlock){.place = {.first = chunk, .end = chunk + bytes, .kind = MEMORY_OF_HEAP},
                  .chunk_bytes = chunk_bytes};
  memset((void *)(uintptr_t)chunk, 0xff, chunk_bytes);
  written_clear(chunk, chunk_bytes);
  for (size_t i = 0; i < grains; i++)
    __atomic_store_n(&heap.block_begins[first + i], (uint32_t)first + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&heap.blocks[first].state, BLOCK_USED, __ATOMIC_RELEASE);
  return chunk;
}

static HeapFree release_block(uint64_t address) {
  if (!device_heap_holds(address) || (address - heap.first) % GRAIN_BYTES) return HEAP_NO_BLOCK;
  HeapBlock *block = &heap.blocks[grain_of(address)];
  if (block->state == NO_BLOCK || block->place.first != address) return HEAP_NO_BLOCK;
  if (block->state == BLOCK_FREE) return HEAP_FREED_BEFORE;
  __atomic_store_n(&block->state, BLOCK_FREE, __ATOMIC_RELEASE);
  memory_generation++;
  int class = __builtin_ctzll(block->chunk_bytes);
  block->next = 0;
  HOLDS(!heap.oldest[class] || !heap.blocks[grain_of(heap.newest[class])].next); /* its end */
  if (heap.oldest[class])
    heap.blocks[grain_of(heap.newest[class])].next = address;
  else
    heap.oldest[class] = address;
  heap.newest[class] = address;
  return HEAP_FREED;
}

uint64_t device_heap_allocate(uint64_t bytes) {
  HOLD_LOCK(&heap.lock);
  return allocate_block(bytes);
}
HeapFree device_heap_free(uint64_t address) {
  HOLD_LOCK(&heap.lock);
  return address == 0 ? HEAP_FREED : release_block(address);
}

bool device_heap_holds(uint64_t address) { return address >= heap.first && address < heap.end; }

/* Relaxed: the address comes from the one who allocated it, and with it what was written until
 * then. */
static const HeapBlock *block_at(uint64_t address) {
  if (!device_heap_holds(address)) return NULL;
  uint32_t begin = __atomic_load_n(&heap.block_begins[grain_of(address)], __ATOMIC_RELAXED);
  return begin ? &heap.blocks[begin - 1] : NULL;
}

const Allocation *device_heap_find(uint64_t address) {
  const HeapBlock *block = block_at(address);
  if (!block || __atomic_load_n(&block->state, __ATOMIC_ACQUIRE) != BLOCK_USED) return NULL;
  return address < block->place.end ? &block->place : NULL;
}

const Rule *device_heap_describe(uint64_t address, char *text, size_t text_bytes) {
  const HeapBlock *block = block_at(address);
  if (!block || block->state == NO_BLOCK) {
    snprintf(
        text, text_bytes, "address 0x%" PRIx64 " is in the heap of the kernels' malloc, %s",
        address,
        address < heap.first + GAP_BYTES ? "in front of its first block" : "in no block of it");
    return RULE(GLOBAL_OUT_OF_BOUNDS);
  }
  uint64_t bytes = block->place.end - block->place.first, at = address - block->place.first;
  if (block->state == BLOCK_FREE) {
    snprintf(text, text_bytes,
             "address 0x%" PRIx64 " is byte %" PRIu64 " of a block of %" PRIu64
             " bytes of the kernels' malloc that was freed: use it before the free, and set the "
             "pointer to NULL after it",
             address, at, bytes);
    return RULE(USE_AFTER_FREE);
  }
  if (at < bytes)
    snprintf(text, text_bytes,
             "address 0x%" PRIx64 " is byte %" PRIu64 " of a block of %" PRIu64
             " bytes of the kernels' malloc: the access goes past its end",
             address, at, bytes);
  else
    snprintf(text, text_bytes,
             "address 0x%" PRIx64 " is %" PRIu64 " bytes past the end of a block of %" PRIu64
             " bytes of the kernels' malloc",
             address, at - bytes, bytes);
  return RULE(GLOBAL_OUT_OF_BOUNDS);
}
