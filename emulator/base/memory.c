/* memory.c: the device's global memory (memory.h).
 *
 * One range of addresses is reserved at the start. Allocations are cut from it in order, each
 * followed by a gap that is never used, so an overrun never hits a neighbour. When the range is
 * used up, freed addresses are reused, and not before, so that a stale pointer faults. Tables are sorted arrays: a lookup is a binary search.
 *
 * Poison is 0xff: NaN in every floating type, -1 in every integer. Filling memory costs time, so
 * only the first POISON_BYTES of an allocation get it. The rest reads as zeros, as fresh host pages
 * do. */
#define _DEFAULT_SOURCE
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/device_heap.h"
#include "base/events.h"
#include "base/holds.h"
#include "base/lock.h"
#include "base/written.h"

enum { ALIGNMENT = 256, GAP_BYTES = 1 << 20, FREED_KEPT = 256 };
static const size_t PAGE_BYTES = 4096, POISON_BYTES = 64u << 20;
static const size_t LARGE_PAGE_BYTES = 2u << 20;
static const size_t CAPACITY_BYTES = (size_t)141 << 30; /* as much as an H200 holds */
static const size_t RESERVED_BYTES = (size_t)1 << 40, LEAST_RESERVED_BYTES = (size_t)1 << 28;

typedef struct {
  Allocation place;
  bool ours; /* made by memory_allocate, not memory_register */
  bool of_graph;
} MemoryEntry;

static struct {
  pthread_mutex_t
      lock; /* of all but `launches`; kernels look up entries without it, see memory.h */
  MemoryEntry *entries; /* by address */
  size_t entry_count, entry_capacity;
  Allocation freed[FREED_KEPT]; /* a ring of recently freed allocations, for explanations */
  size_t freed_count;
  size_t in_use;
  uint64_t reserve_first, reserve_end, reserve_next;
  int launches; /* in progress; atomic */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};
_Atomic uint32_t memory_generation; /* see memory.h; changed under memory.lock */

/* The first entry that starts past the address. */
static size_t upper_bound(uint64_t address) {
  size_t low = 0, high = memory.entry_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (memory.entries[middle].place.first <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool entries_hold(void) {
  bool hold = true;
  for (size_t i = 0; i < memory.entry_count; i++)
    hold &= memory.entries[i].place.first < memory.entries[i].place.end &&
            (i == 0 || memory.entries[i - 1].place.end <= memory.entries[i].place.first);
  return hold;
}

static bool insert_entry(Allocation place, bool ours) {
  if (memory.entry_count == memory.entry_capacity) {
    size_t capacity = memory.entry_capacity ? memory.entry_capacity * 2 : 64;
    MemoryEntry *grown = realloc(memory.entries, capacity * sizeof *grown);
    if (!grown) return false;
    memory.entries = grown;
    memory.entry_capacity = capacity;
  }
  size_t at = upper_bound(place.first);
  if (at > 0 && memory.entries[at - 1].place.end > place.first)
    return false; /* they would overlap */
  if (at < memory.entry_count && memory.entries[at].place.first < place.end) return false;
  memmove(&memory.entries[at + 1], &memory.entries[at],
          (memory.entry_count - at) * sizeof *memory.entries);
  memory.entries[at] = (MemoryEntry){place, ours, false};
  memory.entries[at].place.number = ++memory_generation;
  memory.entry_count++;
  HOLDS_DEARLY(entries_hold());
  return true;
}

static bool delete_entry(uint64_t first, bool ours, Allocation *place) {
  size_t at = upper_bound(first);
  if (at == 0 || memory.entries[at - 1].place.first != first || memory.entries[at - 1].ours != ours)
    return false;
  if (memory.entries[at - 1].place.kind == MEMORY_OF_HEAP) return false;
  *place = memory.entries[at - 1].place;
  memmove(&memory.entries[at - 1], &memory.entries[at],
          (memory.entry_count - at) * sizeof *memory.entries);
  memory.entry_count--;
  memory_generation++;
  memory.freed[memory.freed_count++ % FREED_KEPT] = *place;
  HOLDS_DEARLY(entries_hold());
  return true;
}

/* ulimit -v: the program and the emulator need addresses, too. */
static size_t most_to_reserve(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return RESERVED_BYTES;
  return limit.rlim_cur / 2;
}

static bool reserve(void) {
  if (memory.reserve_first) return true;
  size_t most = most_to_reserve();
  for (size_t bytes = RESERVED_BYTES; bytes >= LEAST_RESERVED_BYTES; bytes /= 2) {
    if (bytes > most) continue;
    void *found = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) continue;
    memory.reserve_first = memory.reserve_next = (uint64_t)(uintptr_t)found;
    memory.reserve_end = memory.reserve_first + bytes;
    written_begin(memory.reserve_first, bytes);
    return true;
  }
  return false;
}

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/* A free range after the last allocation or, when there is none left, between two others. */
static uint64_t find_free_pages(size_t bytes) {
  uint64_t found = bytes < LARGE_PAGE_BYTES ? memory.reserve_next
                                            : round_up(memory.reserve_next, LARGE_PAGE_BYTES);
  if (found < memory.reserve_end && memory.reserve_end - found >= bytes + GAP_BYTES) {
    memory.reserve_next = found + bytes + GAP_BYTES;
    return found;
  }
  uint64_t start = memory.reserve_first;
  for (size_t i = 0; i <= memory.entry_count; i++) {
    if (i < memory.entry_count && !memory.entries[i].ours) continue;
    uint64_t end = i < memory.entry_count ? memory.entries[i].place.first : memory.reserve_end;
    if (end - start >= bytes + 2 * GAP_BYTES) return start + GAP_BYTES;
    if (i < memory.entry_count) start = round_up(memory.entries[i].place.end, PAGE_BYTES);
  }
  return 0;
}

/* The bytes that are filled may as well be in the host's large pages: nothing more is touched for
 * it, and the host translates the addresses of rows that are far apart in a fraction of the time. */
static void fill_with_poison(uint64_t first, size_t bytes) {
  void *host = (void *)(uintptr_t)first;
  size_t filled = bytes < POISON_BYTES ? bytes : POISON_BYTES;
  madvise(host, filled / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES, MADV_HUGEPAGE);
  memset(host, 0xff, filled);
}

uint64_t memory_allocate(size_t bytes) {
  _Static_assert(ALIGNMENT <= 4096, "pages are aligned enough");
  if (bytes == 0 || bytes > CAPACITY_BYTES) return 0;
  size_t pages = round_up(bytes, PAGE_BYTES);
  uint64_t first = 0;
  pthread_mutex_lock(&memory.lock);
  if (memory.in_use + bytes <= CAPACITY_BYTES && reserve()) first = find_free_pages(pages);
  if (first) {
    HOLDS(first >= memory.reserve_first && first + pages <= memory.reserve_end);
    void *host = (void *)(uintptr_t)first;
    if (mprotect(host, pages, PROT_READ | PROT_WRITE) != 0 ||
        !insert_entry((Allocation){.first = first, .end = first + bytes}, true))
      first = 0;
    else
      memory.in_use += bytes;
  }
  pthread_mutex_unlock(&memory.lock);
  if (first) fill_with_poison(first, bytes);
  return first;
}

static MemoryEntry *entry_at(uint64_t first) {
  size_t at = upper_bound(first);
  return at > 0 && memory.entries[at - 1].place.first == first ? &memory.entries[at - 1] : NULL;
}

void memory_give_to_graph(uint64_t address) {
  HOLD_LOCK(&memory.lock);
  MemoryEntry *entry = entry_at(address);
  if (entry) entry->of_graph = entry->place.absent = true;
  memory_generation++;
}

bool memory_make_present(uint64_t address, bool present) {
  HOLD_LOCK(&memory.lock);
  MemoryEntry *entry = entry_at(address);
  bool changes = entry && entry->of_graph && entry->place.absent == present;
  if (changes) {
    size_t bytes = entry->place.end - entry->place.first;
    if (present) {
      memset((void *)(uintptr_t)address, 0xff, bytes < POISON_BYTES ? bytes : POISON_BYTES);
      written_clear(address, bytes);
    }
    entry->place.absent = !present;
    entry->place.number = ++memory_generation;
  }
  return changes;
}

void memory_forget_unmapped(bool (*is_mapped)(const void *address, size_t bytes)) {
  HOLD_LOCK(&memory.lock);
  for (size_t i = memory.entry_count; i-- > 0;) {
    Allocation place = memory.entries[i].place;
    if (memory.entries[i].ours || place.kind != MEMORY_OF_HOST ||
        is_mapped((const void *)(uintptr_t)place.first, place.end - place.first))
      continue;
    delete_entry(place.first, false, &place);
  }
}

void memory_launch_begins(void) { __atomic_add_fetch(&memory.launches, 1, __ATOMIC_SEQ_CST); }
void memory_launch_ends(void) {
  int left = __atomic_sub_fetch(&memory.launches, 1, __ATOMIC_SEQ_CST);
  HOLDS(left >= 0);
}

/* Gives the pages back to the host, as they were reserved: what fill_with_poison() has advised would keep them apart from their
 * neighbours, and a process may have only so many ranges. */
static void give_back(uint64_t first, size_t pages) {
  bool in_use = __atomic_load_n(&memory.launches, __ATOMIC_SEQ_CST);
  mmap((void *)(uintptr_t)first, pages, in_use ? PROT_READ | PROT_WRITE : PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool memory_free(uint64_t address) {
  Allocation place;
  pthread_mutex_lock(&memory.lock);
  MemoryEntry *entry = entry_at(address);
  if (entry && entry->of_graph) {
    pthread_mutex_unlock(&memory.lock);
    return memory_make_present(address, false);
  }
  bool found = delete_entry(address, true, &place);
  if (found) {
    HOLDS(memory.in_use >= place.end - place.first);
    memory.in_use -= place.end - place.first;
    emit_memory_forgotten(place.first, place.end - place.first, true);
    written_release(place.first, place.end - place.first);
    give_back(address, round_up(place.end - place.first, PAGE_BYTES));
  }
  pthread_mutex_unlock(&memory.lock);
  return found;
}

bool memory_register(void *host, size_t bytes, bool read_only) {
  uint64_t first = (uint64_t)(uintptr_t)host;
  if (!host || bytes == 0 || first + bytes < first) return false;
  HOLD_LOCK(&memory.lock);
  return insert_entry((Allocation){.first = first, .end = first + bytes, .read_only = read_only},
                      false);
}

bool memory_unregister(void *host) {
  Allocation place;
  HOLD_LOCK(&memory.lock);
  return delete_entry((uint64_t)(uintptr_t)host, false, &place);
}

void memory_set_kind(uint64_t address, MemoryKind kind, bool own_pages) {
  if (kind == MEMORY_OF_HOST || kind == MEMORY_MANAGED) emit_memory_is_visible();
  HOLD_LOCK(&memory.lock);
  size_t at = upper_bound(address);
  if (at > 0 && address < memory.entries[at - 1].place.end) {
    memory.entries[at - 1].place.kind = (uint8_t)kind;
    memory.entries[at - 1].place.own_pages = own_pages;
  }
}

void memory_each(void (*visit)(const Allocation *place, void *context), void *context) {
  HOLD_LOCK(&memory.lock);
  for (size_t i = 0; i < memory.entry_count; i++) visit(&memory.entries[i].place, context);
}

size_t memory_in_use(void) {
  HOLD_LOCK(&memory.lock);
  return memory.in_use;
}

/* Like memory_find, but finds absent memory too. */
static const Allocation *memory_find_planned(uint64_t address) {
  size_t at = upper_bound(address);
  if (at == 0 || address >= memory.entries[at - 1].place.end) return NULL;
  const Allocation *found = &memory.entries[at - 1].place;
  return found->kind == MEMORY_OF_HEAP ? device_heap_find(address) : found;
}
const Allocation *memory_find(uint64_t address) {
  const Allocation *found = memory_find_planned(address);
  return found && found->absent ? NULL : found;
}

bool memory_look_up(uint64_t address, Allocation *place) {
  pthread_mutex_lock(&memory.lock);
  size_t at = upper_bound(address);
  bool found = at > 0 && address < memory.entries[at - 1].place.end;
  if (found) *place = memory.entries[at - 1].place;
  pthread_mutex_unlock(&memory.lock);
  if (!found || place->kind != MEMORY_OF_HEAP) return found;
  const Allocation *block = device_heap_find(address);
  if (block) *place = *block;
  return block != NULL;
}

/* How far outside an allocation an address is called past its end or before its start. What the host
 * has pinned, and variables of the device, lie among the host's own data: there an address that is far
 * from them is a pointer of the host. */
static uint64_t neighbourhood_of(const Allocation *place, uint64_t address) {
  if (address >= memory.reserve_first && address < memory.reserve_end) return (uint64_t)1 << 32;
  return place->end - place->first;
}

/* An address between two allocations, of which one or both may be missing. */
static void describe_outside(uint64_t address, const Allocation *before, const Allocation *after,
                             char *text, size_t text_bytes) {
  uint64_t past = before ? address - before->end : UINT64_MAX;
  uint64_t ahead = after ? after->first - address : UINT64_MAX;
  const Allocation *nearest = past <= ahead ? before : after;
  uint64_t distance = past <= ahead ? past : ahead;
  if (!nearest || distance >= neighbourhood_of(nearest, address))
    snprintf(text, text_bytes,
             "address 0x%llx is not device memory: it is a host pointer or damaged",
             (unsigned long long)address);
  else
    snprintf(text, text_bytes, "address 0x%llx is %llu bytes %s of an allocation of %llu bytes",
             (unsigned long long)address, (unsigned long long)distance,
             nearest == before ? "past the end" : "before the start",
             (unsigned long long)(nearest->end - nearest->first));
}

const Rule *memory_describe(uint64_t address, char *text, size_t text_bytes) {
  size_t at = upper_bound(address);
  if (device_heap_holds(address)) return device_heap_describe(address, text, text_bytes);
  const Allocation *before = at > 0 ? &memory.entries[at - 1].place : NULL;
  const Allocation *after = at < memory.entry_count ? &memory.entries[at].place : NULL;
  size_t kept = memory.freed_count < FREED_KEPT ? memory.freed_count : FREED_KEPT;
  if (address < 4096) {
    snprintf(text, text_bytes, "address 0x%llx: a null pointer", (unsigned long long)address);
    return RULE(GLOBAL_OUT_OF_BOUNDS);
  }
  for (size_t i = 1; i <= kept && !(before && address < before->end); i++) {
    const Allocation *gone = &memory.freed[(memory.freed_count - i) % FREED_KEPT];
    if (address < gone->first || address >= gone->end) continue;
    snprintf(text, text_bytes, "address 0x%llx is in memory that was freed: byte %llu of %llu",
             (unsigned long long)address, (unsigned long long)(address - gone->first),
             (unsigned long long)(gone->end - gone->first));
    return RULE(USE_AFTER_FREE);
  }
  if (before && address < before->end && before->absent) {
    snprintf(text, text_bytes,
             "address 0x%llx is in memory that a graph allocates and that does not exist now: "
             "the graph has not run, or the memory was freed since",
             (unsigned long long)address);
    return RULE(USE_AFTER_FREE);
  }
  if (before && address < before->end) {
    snprintf(text, text_bytes, "address 0x%llx is byte %llu of an allocation of %llu bytes%s",
             (unsigned long long)address, (unsigned long long)(address - before->first),
             (unsigned long long)(before->end - before->first),
             before->read_only ? " that the device may only read" : "");
    return before->read_only ? RULE(WRITE_TO_CONSTANT_MEMORY) : RULE(GLOBAL_OUT_OF_BOUNDS);
  }
  describe_outside(address, before, after, text, text_bytes);
  return RULE(GLOBAL_OUT_OF_BOUNDS);
}

Phrase memory_place(uint64_t address) {
  const Allocation *found = memory_find(address);
  if (!found) return phrase("global memory at 0x%llx", (unsigned long long)address);
  return phrase("global memory at byte %llu of an allocation of %llu bytes",
                (unsigned long long)(address - found->first),
                (unsigned long long)(found->end - found->first));
}
