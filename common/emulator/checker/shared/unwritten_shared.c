/* unwritten_shared.c: which bytes of shared memory nothing has written. What reads them is undefined (undefined.h),
 * and matters where it decides something or goes to global memory. */
#include <stdio.h>

#include "base/tma_map.h"
#include "checker/shared/shared_state.h"
#include "checker/undefined/undefined.h"

/* Bytes past the end of what the checker watches count as written, and so do the reserved ones
 * (history.c reports accesses to them). */
static bool watches(const ClusterCheck *check, uint32_t address, uint32_t bytes) {
  return SHARED_RANK(address) < check->cta_count &&
         SHARED_OFFSET(address) >= SHARED_RESERVED_BYTES &&
         SHARED_OFFSET(address) + bytes <= check->words * WORD_BYTES;
}

/* Nearly always a copy reads what one copy has written: all its lines are in one state. */
static bool in_one_state(const struct CheckedMemory *memory, uint32_t word, uint32_t end_word) {
  const uint32_t *lines = memory->lines + word / LINE_WORDS;
  uint32_t count = (end_word - 1) / LINE_WORDS - word / LINE_WORDS + 1, differing = 0;
  for (uint32_t i = 0; i < count; i++) differing |= lines[i] ^ lines[0];
  return differing == 0 && lines[0] != STATE_SPLIT;
}

static bool any_unwritten(const ClusterCheck *check, const struct CheckedMemory *memory,
                          uint32_t offset, uint32_t end) {
  uint32_t first = offset / WORD_BYTES, end_word = (end + WORD_BYTES - 1) / WORD_BYTES;
  if (first < end_word && in_one_state(memory, first, end_word)) end_word = first + 1;
  for (uint32_t word = first; word < end_word; word = states_next(memory, word)) {
    uint32_t number = states_of(memory, word);
    if (number < PLAIN && states_written(check, number) != FULL_WORD) return true;
  }
  return false;
}

/* Quickly: may any of these bytes be undefined? */
static bool may_be_undefined(const Warp *warp, const SharedPiece *pieces, int count) {
  const ClusterCheck *check = check_of(warp);
  for (int i = 0; i < count; i++) {
    if (!watches(check, pieces[i].address, pieces[i].bytes)) continue;
    uint32_t rank = SHARED_RANK(pieces[i].address), offset = SHARED_OFFSET(pieces[i].address);
    if (any_unwritten(check, &check->shared->memory[rank], offset, offset + pieces[i].bytes) ||
        undefined_any(check, rank, offset, pieces[i].bytes))
      return true;
  }
  return false;
}

UndefinedBytes check_undefined_bytes(const Warp *warp, uint32_t address, uint32_t bytes) {
  enum { MOST = 32 };
  const ClusterCheck *check = check_of(warp);
  UndefinedBytes found = {0, 0, 0};
  uint8_t bits[MOST];
  if (!watches(check, address, bytes)) return found;
  const struct CheckedMemory *memory = &check->shared->memory[SHARED_RANK(address)];
  uint32_t offset = SHARED_OFFSET(address);
  found.origin = check_undefined_bits(warp, address, bytes, bits);
  for (uint32_t i = 0; i < bytes; i++) {
    uint32_t at = offset + i, word = at / WORD_BYTES;
    bool written = states_written(check, states_of(memory, word)) >> at % WORD_BYTES & 1;
    if (!written) found.unwritten |= 1u << i;
    if (bits[i]) found.undefined |= 1u << i;
  }
  return found;
}

void unwritten_update(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                      uint32_t bytes) {
  const ClusterCheck *check = check_of(warp);
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint32_t rank = SHARED_RANK(addresses[lane]), offset = SHARED_OFFSET(addresses[lane]);
    if (rank >= check->cta_count || offset < SHARED_RESERVED_BYTES ||
        offset + bytes > check->words * WORD_BYTES)
      continue;
    const struct CheckedMemory *memory = &check->shared->memory[rank];
    for (uint32_t word = offset / WORD_BYTES; word * WORD_BYTES < offset + bytes; word++) {
      uint32_t number = states_of(memory, word), touched = FULL_WORD;
      if (number >= PLAIN || number == STATE_UNKNOWN) continue; /* nearly always */
      if (bytes < WORD_BYTES) touched = ((1u << bytes) - 1) << offset % WORD_BYTES;
      uint32_t unwritten = touched & ~states_written(check, number);
      if (unwritten) undefined_read(warp, in, lane, rank, word, unwritten, true);
    }
  }
}

/* ---- Copies ---- */

/* Adds bytes of a copy, at most 32. whole_only: unwritten bytes beside written ones may be the padding of a
 * struct. */
static void add_copied(const Warp *warp, uint32_t address, uint32_t bytes, bool whole_only,
                       uint32_t row, CopiedBytes *copied) {
  UndefinedBytes found = check_undefined_bytes(warp, address, bytes);
  uint32_t all = bytes == 32 ? UINT32_MAX : (1u << bytes) - 1u;
  uint32_t unwritten = found.unwritten;
  if (found.undefined & ~unwritten && !copied->origin) copied->origin = found.origin;
  if (!unwritten || (whole_only && unwritten != all)) return;
  uint32_t first = SHARED_OFFSET(address) + (uint32_t)__builtin_ctz(unwritten);
  uint32_t last = SHARED_OFFSET(address) + 31u - (uint32_t)__builtin_clz(unwritten);
  if (!copied->bytes) {
    copied->first_row = row;
    copied->first_offset = first;
    copied->last_offset = last;
  }
  if (first < copied->first_offset) copied->first_offset = first;
  if (last > copied->last_offset) copied->last_offset = last;
  copied->last_row = row;
  copied->bytes += (uint32_t)__builtin_popcount(unwritten);
}

/* Bytes that nothing has written: they matter in global memory; in shared memory, if they are
 * read. */
static void look_at_bulk_source(const AsyncOperation *operation, const SharedPiece *source) {
  enum { CHUNK = 16 };
  Warp *warp = operation->warp;
  CopiedBytes copied = {.row_bytes = 0};
  for (uint32_t i = 0; i < source->bytes; i += CHUNK)
    add_copied(warp, source->address + i, CHUNK, true, 0, &copied);
  undefined_goes_out(warp, operation->in, operation->lane, &copied);
}

/* The bytes of the box that arrive in global memory: are there some that nothing has written? */
static void look_at_tensor_source(const AsyncOperation *operation) {
  enum { CHUNK = 16 };
  Warp *warp = operation->warp;
  const TmaMap *map = &operation->tensor.map;
  const uint32_t start = SHARED_OFFSET(operation->shared), rank = warp->cta->rank << 24;
  TmaWalk walk;
  TmaRows rows;
  tma_walk_begin(&walk, map, &operation->tensor.place);
  CopiedBytes copied = {.row_bytes = walk.row_bytes};
  uint32_t row = 0;
  while (tma_walk_next(&walk, &rows))
    for (uint32_t i = 0; i < rows.count; i++, row++) {
      const uint32_t first = start + rows.offset + i * walk.pitch + rows.left;
      for (uint32_t j = 0; j < rows.bytes; j += CHUNK) {
        const uint32_t bytes = rows.bytes - j < CHUNK ? rows.bytes - j : CHUNK;
        add_copied(warp, rank | tma_swizzle(map->swizzle_span, first + j), bytes,
                   map->element_bytes == 1, row, &copied);
      }
    }
  undefined_goes_out(warp, operation->in, operation->lane, &copied);
}

/* Those that matter at once are reported. */
static void operation_issues(AsyncOperation *operation, const SharedPiece *pieces, int count,
                             const SharedPiece *writes, int write_count) {
  (void)writes, (void)write_count;
  const AsyncKind kind = (AsyncKind)operation->kind;
  const bool tensor = kind == ASYNC_TENSOR_STORE || kind == ASYNC_TENSOR_REDUCE;
  const bool bulk = kind == ASYNC_BULK_STORE || kind == ASYNC_BULK_REDUCE;
  if (!is_watched(operation->warp) || !(tensor || bulk) ||
      !may_be_undefined(operation->warp, pieces, count))
    return;
  if (tensor)
    look_at_tensor_source(operation);
  else
    look_at_bulk_source(operation, pieces);
}

static void operation_issued(AsyncOperation *operation, const SharedPiece *reads, int read_count,
                             const SharedPiece *writes, int write_count) {
  (void)reads, (void)read_count, (void)writes, (void)write_count;
  enum { CHUNK = 16 };
  if (operation->kind != ASYNC_CTA_TO_CTA || !is_watched(operation->warp)) return;
  Warp *warp = operation->warp;
  const SharedPiece source = {operation->shared_source, operation->bytes};
  if (!may_be_undefined(warp, &source, 1)) return;
  for (uint32_t i = 0; i < source.bytes; i += CHUNK) {
    UndefinedBytes found = check_undefined_bytes(warp, source.address + i, CHUNK);
    if (!(found.unwritten | found.undefined)) continue;
    uint8_t bits[CHUNK];
    check_undefined_bits(warp, source.address + i, CHUNK, bits);
    for (uint32_t k = 0; k < CHUNK; k++)
      if (found.unwritten >> k & 1) bits[k] = 0xff;
    uint16_t origin =
        found.unwritten ? undefined_copied(warp, operation->in, operation->lane, source.address + i)
                        : found.origin;
    check_undefined_put(warp, operation->shared + i, CHUNK, bits, origin);
  }
}

static void map_read(Warp *warp, const Instruction *in, int lane, Space space, uint64_t generic,
                     const char *how) {
  enum { MAP_BYTES = 128, CHUNK = 32 };
  const uint32_t address = (uint32_t)generic;
  if (space != SPACE_SHARED || !is_watched(warp)) return;
  uint32_t unwritten = 0, first = 0;
  for (uint32_t i = 0; i < MAP_BYTES; i += CHUNK) {
    UndefinedBytes found = check_undefined_bytes(warp, address + i, CHUNK);
    if (found.unwritten && !unwritten) first = i + (uint32_t)__builtin_ctz(found.unwritten);
    unwritten += (uint32_t)__builtin_popcount(found.unwritten);
    if (found.undefined & ~found.unwritten)
      undefined_matters(warp, in, lane, found.origin, "is part of a tensor map");
  }
  const Finding what = {.rule = "uninitialised-read",
                        .memory = ABOUT_SHARED,
                        .rank = (uint8_t)SHARED_RANK(address),
                        .bytes = MAP_BYTES,
                        .address = SHARED_OFFSET(address)};
  char memory[64];
  snprintf(memory, sizeof memory, "shared memory at offset 0x%x", SHARED_OFFSET(address));
  if (unwritten) unwritten_in_map(warp, in, lane, &what, how, memory, unwritten, first);
}

static const Subscriber SOURCES = {.operation_issues = operation_issues,
                                   .operation_issued = operation_issued,
                                   .map_read = map_read};
SUBSCRIBE(SOURCE_EVENTS, SOURCES)
