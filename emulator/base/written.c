/* written.c: which bytes of the device's memory have been written (written.h).
 *
 * A table with a bit for each byte of the whole range of addresses. The host provides a page of it
 * when it is first used. Several host threads set bits of one word. Relaxed: a bit is set with the
 * bytes that it stands for, and whoever is ordered after those sees it. */
#define _DEFAULT_SOURCE
#include "base/written.h"

#include <sys/mman.h>

#include "base/events.h"
#include "base/memory.h"
#include "base/settings.h"

enum { WORD_BITS = 64, PAGE_BYTES = 4096, PIECE = 32 };

WrittenMap written_map;

void written_begin(uint64_t first, uint64_t bytes) {
  if (!settings()->checks || !settings()->check_global) return;
  void *table = mmap(NULL, bytes / 8, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return; /* everything counts as written */
  written_map = (WrittenMap){first, bytes, table};
}

/* The bits from `at` on in its word, at most `count`; and how many these are. */
static uint64_t bits_in_word(uint64_t at, uint64_t count, uint64_t *taken) {
  uint64_t shift = at % WORD_BITS, most = WORD_BITS - shift;
  *taken = count < most ? count : most;
  return (*taken == WORD_BITS ? UINT64_MAX : (1ull << *taken) - 1) << shift;
}

static bool clip_to_watched(uint64_t first, uint64_t bytes, uint64_t *at, uint64_t *count) {
  if (!written_is_watched(first)) return false;
  *at = first - written_map.first;
  *count = bytes < written_map.bytes - *at ? bytes : written_map.bytes - *at;
  return true;
}

void written_set(uint64_t first, uint64_t bytes) {
  uint64_t at, count, taken;
  if (!clip_to_watched(first, bytes, &at, &count)) return;
  for (; count; at += taken, count -= taken) {
    uint64_t *word = &written_map.bits[at / WORD_BITS], bits = bits_in_word(at, count, &taken);
    uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
    if ((now & bits) == bits) continue;
    if (taken == WORD_BITS)
      __atomic_store_n(word, bits, __ATOMIC_RELAXED);
    else
      __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
  }
}

static void clear_bits(uint64_t at, uint64_t count) {
  uint64_t taken;
  for (; count; at += taken, count -= taken) {
    uint64_t *word = &written_map.bits[at / WORD_BITS], bits = bits_in_word(at, count, &taken);
    if (__atomic_load_n(word, __ATOMIC_RELAXED) & bits)
      __atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
  }
}

/* Whole pages of the table go back to the host. */
void written_clear(uint64_t first, uint64_t bytes) {
  const uint64_t page_bits = (uint64_t)PAGE_BYTES * 8;
  uint64_t at, count;
  if (!clip_to_watched(first, bytes, &at, &count)) return;
  emit_memory_forgotten(first, count, false);
  uint64_t end = at + count, inner = (at + page_bits - 1) / page_bits * page_bits;
  uint64_t inner_end = end / page_bits * page_bits;
  if (inner >= inner_end) {
    clear_bits(at, count);
    return;
  }
  clear_bits(at, inner - at);
  madvise((uint8_t *)written_map.bits + inner / 8, (inner_end - inner) / 8, MADV_DONTNEED);
  clear_bits(inner_end, end - inner_end);
}

/* The table's pages at both ends, too: no other allocation is near enough to share them. */
void written_release(uint64_t first, uint64_t bytes) {
  uint64_t at, count;
  if (!clip_to_watched(first, bytes, &at, &count)) return;
  emit_memory_forgotten(first, count, false);
  uint64_t begin = at / 8 / PAGE_BYTES * PAGE_BYTES;
  uint64_t end = ((at + count - 1) / 8 / PAGE_BYTES + 1) * PAGE_BYTES;
  madvise((uint8_t *)written_map.bits + begin, end - begin, MADV_DONTNEED);
}

bool written_all(uint64_t first, uint64_t bytes) {
  uint64_t at, count, taken;
  if (!clip_to_watched(first, bytes, &at, &count)) return true;
  for (; count; at += taken, count -= taken) {
    uint64_t bits = bits_in_word(at, count, &taken);
    if ((__atomic_load_n(&written_map.bits[at / WORD_BITS], __ATOMIC_RELAXED) & bits) != bits)
      return false;
  }
  return true;
}

bool written_by_host(uint64_t first, uint64_t bytes) {
  const Allocation *found = memory_find(first);
  if (found && found->kind != MEMORY_MANAGED && found->kind != MEMORY_OF_HOST) return false;
  written_set(first, bytes); /* so that it is not asked again */
  return true;
}

uint32_t written_bits(uint64_t first, uint32_t bytes) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < bytes; i++) found |= (uint32_t)written_here(first + i, 1) << i;
  return found;
}

static void copy_bits(uint64_t to, uint64_t from, uint64_t bytes) {
  if (written_or_by_host(from, bytes)) {
    written_set(to, bytes);
    return;
  }
  bool backwards = to > from && to < from + bytes; /* the two may overlap */
  for (uint64_t done = 0; done < bytes;) {
    uint32_t part = bytes - done < PIECE ? (uint32_t)(bytes - done) : PIECE;
    uint64_t offset = backwards ? bytes - done - part : done;
    uint32_t bits = written_bits(from + offset, part);
    written_clear(to + offset, part);
    for (uint32_t i = 0; i < part; i++)
      if (bits >> i & 1) written_set(to + offset + i, 1);
    done += part;
  }
}

void written_copy(uint64_t to, uint64_t from, uint64_t bytes) {
  if (!written_map.bytes) return;
  if (written_is_watched(to)) copy_bits(to, from, bytes);
  emit_memory_copied(to, from, bytes);
}
