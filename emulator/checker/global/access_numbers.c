/* access_numbers.c: the accesses to global memory and the lists of them, by number.
 *
 * Both are kept in chunks that are allocated when a number in them is first used. When no launch can ask
 * for them any more, some are kept for later numbers, and the others are freed. */
#include <stdlib.h>

#include "base/holds.h"
#include "base/fault.h"
#include "base/summary.h"
#include "checker/global/global_state.h"

enum { CHUNK = 1 << 16, CHUNKS = 1 << 15, SPARE_CHUNKS = 64 };

typedef struct {
  size_t item_bytes;
  uint32_t next, freed; /* the next number; chunks below `freed` are gone */
  uint8_t *chunks[CHUNKS];
  uint8_t *spare[SPARE_CHUNKS]; /* nobody reads a number's item before it is filled in */
  uint32_t spare_count;
} Numbered;

static struct {
  pthread_mutex_t lock; /* for taking numbers; what a number stands for is read without it */
  Numbered accesses, lists;
} numbers = {PTHREAD_MUTEX_INITIALIZER,
             {.item_bytes = sizeof(GlobalAccess), .next = 1},
             {.item_bytes = sizeof(GlobalList), .next = 1}};

static void *item_at(const Numbered *table, uint32_t number) {
  const uint8_t *chunk = __atomic_load_n(&table->chunks[number / CHUNK], __ATOMIC_ACQUIRE);
  HOLDS_DEARLY(number > 0 && chunk); /* what is settled, nobody asks for */
  return (void *)(uintptr_t)(chunk + number % CHUNK * table->item_bytes);
}

/* Takes `count` numbers. 0: there are none left. */
static uint32_t take_numbers(Numbered *table, uint32_t count) {
  pthread_mutex_lock(&numbers.lock);
  uint32_t first = table->next;
  HOLDS(first / CHUNK >= table->freed); /* numbers only grow */
  if (first > (uint32_t)CHUNK * (CHUNKS - 1) - count) {
    pthread_mutex_unlock(&numbers.lock);
    summary_note(NOTE_global_accesses);
    return 0;
  }
  for (uint32_t chunk = first / CHUNK; chunk <= (first + count - 1) / CHUNK; chunk++) {
    if (table->chunks[chunk]) continue;
    uint8_t *made = table->spare_count ? table->spare[--table->spare_count]
                                       : malloc((size_t)CHUNK * table->item_bytes);
    if (!made) out_of_memory();
    __atomic_store_n(&table->chunks[chunk], made, __ATOMIC_RELEASE);
  }
  table->next += count;
  pthread_mutex_unlock(&numbers.lock);
  return first;
}

static void free_below(Numbered *table, uint32_t number) {
  for (; table->freed < number / CHUNK; table->freed++) {
    uint8_t *chunk = table->chunks[table->freed];
    table->chunks[table->freed] = NULL;
    if (chunk && table->spare_count < SPARE_CHUNKS)
      table->spare[table->spare_count++] = chunk;
    else
      free(chunk);
  }
}

void global_numbers_settle(uint32_t *settled_accesses, uint32_t *settled_lists, bool all) {
  pthread_mutex_lock(&numbers.lock);
  if (all) {
    *settled_accesses = numbers.accesses.next;
    *settled_lists = numbers.lists.next;
    free_below(&numbers.accesses, numbers.accesses.next);
    free_below(&numbers.lists, numbers.lists.next);
  }
  pthread_mutex_unlock(&numbers.lock);
}

const GlobalAccess *global_access(uint32_t number) { return item_at(&numbers.accesses, number); }
void global_left_lock(uint32_t number, uint32_t lock_left) {
  GlobalAccess *access = item_at(&numbers.accesses, number);
  access->lock = lock_left;
  access->flags |= GLOBAL_LEFT_LOCK;
}
void global_swap_keeps(uint32_t number, uint8_t kept) {
  GlobalAccess *access = item_at(&numbers.accesses, number);
  access->kept &= kept;
}
const GlobalList *global_list(uint32_t number) {
  return item_at(&numbers.lists, number & ~GLOBAL_LIST);
}

static uint32_t next_number(Numbered *table, uint32_t *next, uint32_t *end) {
  if (*next == *end) {
    *next = take_numbers(table, NUMBERS_AT_ONCE);
    *end = *next ? *next + NUMBERS_AT_ONCE : 0;
    if (*next == 0) return 0;
  }
  return (*next)++;
}

GlobalAccess *global_access_new(struct GlobalState *own, uint32_t *number) {
  *number = own ? next_number(&numbers.accesses, &own->next_number, &own->end_number)
                : take_numbers(&numbers.accesses, 1);
  return *number ? item_at(&numbers.accesses, *number) : NULL;
}

static bool global_is_wide(uint32_t value) {
  return value & GLOBAL_LIST ? global_list(value)->wide : global_access(value)->reach >= REACH_GPU;
}

/* Two of these and the new one are of different clusters of one launch. */
static bool has_several(const GlobalAccess *made, uint32_t next) {
  if (!(next & GLOBAL_LIST)) {
    const GlobalAccess *other = global_access(next);
    return other->operation == made->operation && other->cluster != made->cluster;
  }
  const GlobalList *others = global_list(next);
  return others->operation == made->operation &&
         (others->several || others->cluster != made->cluster);
}

uint32_t global_list_new(struct GlobalState *own, uint32_t access, uint32_t next) {
  uint32_t number = own ? next_number(&numbers.lists, &own->next_list, &own->end_list)
                        : take_numbers(&numbers.lists, 1);
  if (number == 0) return next;
  GlobalList *list = item_at(&numbers.lists, number);
  const GlobalAccess *made = global_access(access);
  list->number = access;
  list->next = next;
  list->operation = made->operation;
  list->cluster = made->cluster;
  list->count = next & GLOBAL_LIST ? global_list(next)->count + 1 : 2;
  list->several = has_several(made, next);
  list->wide = global_is_wide(access) && global_is_wide(next) &&
               !global_sizes_differ(global_access(access), global_access(global_first_of(next)));
  return number | GLOBAL_LIST;
}
