/* table.h: hash tables whose entries all begin with their key, 64 bits that are not 0. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

typedef struct {
  void *entries; /* those without a key are free */
  uint32_t used, size;
} Table;

/* The entry of this key, or the free one where it belongs. */
static inline void *table_place(const Table *table, size_t entry_bytes, uint64_t key) {
  for (uint64_t at = key * 0x9e3779b97f4a7c15ull >> 32;; at++) {
    void *entry = (uint8_t *)table->entries + (at & (table->size - 1)) * entry_bytes;
    const uint64_t there = *(const uint64_t *)entry;
    if (there == key || there == 0) return entry;
  }
}

/* The entry of this key, until another one is made. If it is new, there are zeros behind its key. */
static inline void *table_entry(Table *table, size_t entry_bytes, uint64_t key) {
  if (table->used * 2 >= table->size) {
    const Table old = *table;
    table->size = old.size ? old.size * 2 : 256; /* a power of two */
    table->entries = new_zeros(table->size, entry_bytes);
    for (uint32_t i = 0; i < old.size; i++) {
      const uint64_t *entry = (const void *)((const uint8_t *)old.entries + i * entry_bytes);
      if (*entry) memcpy(table_place(table, entry_bytes, *entry), entry, entry_bytes);
    }
    free(old.entries);
  }
  uint64_t *entry = table_place(table, entry_bytes, key);
  table->used += *entry == 0;
  *entry = key;
  return entry;
}
