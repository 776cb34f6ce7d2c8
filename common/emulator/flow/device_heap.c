/* device_heap.c: malloc and free of the device: one allocation of global memory, cut into blocks of
 * powers of two. In front of each block stands its size, so that a wrong free is noticed. */
#include <pthread.h>
#include <string.h>

#include "flow/device_heap.h"
#include "base/memory.h"

enum { CLASSES = 40, SMALLEST_CLASS = 5, HEADER_BYTES = 16 };
#define BLOCK_USED 0x7573656420626c6bull /* any two numbers that data seldom holds */
#define BLOCK_FREE 0x6672656520626c6bull

typedef struct {
  uint64_t state;
  uint32_t class;
  uint32_t unused;
} BlockHeader;
_Static_assert(sizeof(BlockHeader) == HEADER_BYTES, "blocks stay aligned to 16 bytes");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t heap_bytes = (size_t)8 << 20;
static uint64_t heap_first, heap_next, heap_end;
static uint64_t spare[CLASSES]; /* freed blocks of a size; each holds the address of the next */

bool device_heap_resize(size_t bytes) {
  if (heap_first) return false; /* a kernel that uses it is loaded already */
  heap_bytes = bytes;
  return true;
}
size_t device_heap_size(void) { return heap_bytes; }

bool device_heap_prepare(void) {
  pthread_mutex_lock(&lock);
  if (!heap_first) {
    /* Twice the size: rounding up to powers of two must not use up what was promised. */
    heap_first = heap_next = memory_allocate(2 * heap_bytes);
    heap_end = heap_first + 2 * heap_bytes;
  }
  pthread_mutex_unlock(&lock);
  return heap_first != 0;
}

static uint64_t allocate(uint64_t bytes) {
  uint32_t class = SMALLEST_CLASS;
  while (class < CLASSES && (uint64_t)1 << class < bytes + HEADER_BYTES) class ++;
  if (bytes == 0 || class >= CLASSES) return 0;
  uint64_t block = spare[class];
  if (block) {
    memcpy(&spare[class], (void *)(uintptr_t)(block + HEADER_BYTES), sizeof spare[class]);
  } else {
    if (heap_end - heap_next < (uint64_t)1 << class) return 0;
    block = heap_next;
    heap_next += (uint64_t)1 << class;
  }
  BlockHeader header = {BLOCK_USED, class, 0};
  memcpy((void *)(uintptr_t)block, &header, sizeof header);
  memset((void *)(uintptr_t)(block + HEADER_BYTES), 0xff, ((size_t)1 << class) - HEADER_BYTES);
  return block + HEADER_BYTES;
}

static bool release(uint64_t address) {
  BlockHeader header;
  if (address < heap_first + HEADER_BYTES || address >= heap_end || address % HEADER_BYTES)
    return false;
  uint64_t block = address - HEADER_BYTES;
  memcpy(&header, (void *)(uintptr_t)block, sizeof header);
  if (header.state != BLOCK_USED || header.class >= CLASSES) return false;
  header.state = BLOCK_FREE;
  memcpy((void *)(uintptr_t)block, &header, sizeof header);
  memcpy((void *)(uintptr_t)address, &spare[header.class], sizeof spare[header.class]);
  spare[header.class] = block;
  return true;
}

uint64_t device_heap_allocate(uint64_t bytes) {
  pthread_mutex_lock(&lock);
  uint64_t address = allocate(bytes);
  pthread_mutex_unlock(&lock);
  return address;
}
bool device_heap_free(uint64_t address) {
  pthread_mutex_lock(&lock);
  bool freed = address == 0 || release(address);
  pthread_mutex_unlock(&lock);
  return freed;
}
