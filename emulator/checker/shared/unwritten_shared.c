/* unwritten_shared.c: which bytes of shared memory nothing has written. What reads them is undefined (undefined.h),
 * and matters where it decides something or goes to global memory. */
#include "base/tma_map.h"
#include "checker/shared/shared_state.h"

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
        undefined_bits(check, pieces[i].address, pieces[i].bytes, NULL))
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
  found.origin = undefined_bits(check, address, bytes, bits);
  for (uint32_t i = 0; i < bytes; i++) {
    uint32_t at = offset + i, word = at / WORD_BYTES;
    bool written = states_written(check, states_of(memory, word)) >> at % WORD_BYTES & 1;
    if (!written) found.unwritten |= 1u << i;
    if (bits[i]) found.undefined |= 1u << i;
  }
  return found;
}

/* The reader's last wait for an mbarrier, if that has shown it nothing new. */
static void note_wait(const Warp *warp, OriginPlace *place) {
  const MbarrierCheck *last = mbarrier_awaited_last(check_of(warp), agent_of(warp));
  const WaitAnswer *answer = last ? &last->answers[agent_of(warp)] : NULL;
  if (!answer || !answer->stale) return;
  place->wait = answer->in;
  place->wait_offset = SHARED_OFFSET(last->address);
  place->wait_asked = answer->next & 1;
}

void unwritten_read(Warp *warp, const Instruction *in, int lane, uint32_t rank, uint32_t word,
                    uint32_t mask, OriginPart part) {
  ClusterCheck *check = check_of(warp);
  OriginPlace place = {.part = part, .rank = rank, .offset = word * WORD_BYTES};
  note_wait(warp, &place);
  const uint32_t address = rank << 24 | place.offset;
  const LoadedTile *beside = part == PART_LOADED ? tile_beside(check, address) : NULL;
  if (beside) {
    place.beside = beside->in;
    place.beside_first = beside->first;
    place.beside_end = beside->end;
  }
  if (place.offset < SHARED_RESERVED_BYTES) return;
  uint8_t bits[WORD_BYTES];
  undefined_bits(check, address, WORD_BYTES, bits);
  for (uint32_t i = 0; i < WORD_BYTES; i++)
    if (mask >> i & 1) bits[i] = 0xff;
  undefined_put(check, address, WORD_BYTES, bits, undefined_origin(warp, in, lane, &place));
  warp->watched |= WATCH_UNDEFINED;
}

__attribute__((noinline)) static void update_word(Warp *warp, const Instruction *in, int lane,
                                                  uint32_t address, uint32_t bytes) {
  const ClusterCheck *check = check_of(warp);
  const uint32_t rank = SHARED_RANK(address), word = SHARED_OFFSET(address) / WORD_BYTES;
  uint32_t touched = bytes < WORD_BYTES ? ((1u << bytes) - 1) << address % WORD_BYTES : FULL_WORD;
  touched &= ~states_written(check, states_of(&check->shared->memory[rank], word));
  if (touched) unwritten_read(warp, in, lane, rank, word, touched, PART_UPDATED);
}

void unwritten_update(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                      uint32_t bytes) {
  const ClusterCheck *check = check_of(warp);
  const struct CheckedMemory *memory = check->shared->memory;
  const uint32_t each = bytes < WORD_BYTES ? bytes : WORD_BYTES;
  for (uint32_t done = 0; done < bytes; done += each)
    FOR_LANES(lane, mask) {
      const uint32_t address = addresses[lane] + done;
      if (!watches(check, address, each)) continue;
      uint32_t number =
          states_of(&memory[SHARED_RANK(address)], SHARED_OFFSET(address) / WORD_BYTES);
      if (number < PLAIN && number != STATE_UNKNOWN) /* hardly ever */
        update_word(warp, in, lane, address, each);
    }
}

/* ---- Copies ---- */

/* Adds bytes of a copy, at most 32. whole_only: unwritten bytes beside written ones may be the padding of a
 * struct. origin: of a written byte with undefined bits. */
static void add_copied(const Warp *warp, uint32_t address, uint32_t bytes, bool whole_only,
                       uint32_t row, OriginPlace *copied, OriginNumber *origin) {
  UndefinedBytes found = check_undefined_bytes(warp, address, bytes);
  uint32_t all = bytes == 32 ? UINT32_MAX : (1u << bytes) - 1u;
  uint32_t unwritten = found.unwritten;
  if (found.undefined & ~unwritten && !*origin) *origin = found.origin;
  if (!unwritten || (whole_only && unwritten != all)) return;
  uint32_t first = SHARED_OFFSET(address) + (uint32_t)__builtin_ctz(unwritten);
  uint32_t last = SHARED_OFFSET(address) + 31u - (uint32_t)__builtin_clz(unwritten);
  if (!copied->stored.bytes) {
    copied->stored.first_row = row;
    copied->stored.first_offset = first;
    copied->stored.last_offset = last;
  }
  if (first < copied->stored.first_offset) copied->stored.first_offset = first;
  if (last > copied->stored.last_offset) copied->stored.last_offset = last;
  copied->stored.last_row = row;
  copied->stored.bytes += (uint32_t)__builtin_popcount(unwritten);
}

static void goes_out(const AsyncOperation *operation, OriginPlace *copied, OriginNumber origin) {
  Warp *warp = operation->warp;
  const Instruction *in = operation->in;
  const int lane = operation->lane;
  if (origin) undefined_matters(warp, in, lane, origin, USED_STORED);
  if (!copied->stored.bytes) return;
  copied->index = thread_of(warp, lane);
  copied->offset = copied->stored.first_offset;
  undefined_matters(warp, in, lane, undefined_origin(warp, in, lane, copied), USED_STORED);
}

/* Bytes that nothing has written: they matter in global memory; in shared memory, if they are
 * read. */
static void look_at_bulk_source(Warp *warp, const AsyncOperation *operation,
                                const SharedPiece *source, int count) {
  enum { CHUNK = 16 };
  if (!may_be_undefined(warp, source, count)) return;
  OriginPlace copied = {.part = PART_STORE,
                        .rank = warp->cta->rank,
                        .stored = {.from = SHARED_OFFSET(source->address),
                                   .from_end = SHARED_OFFSET(source->address) + source->bytes}};
  OriginNumber origin = 0;
  for (uint32_t i = 0; i < source->bytes; i += CHUNK)
    add_copied(warp, source->address + i, CHUNK, true, 0, &copied, &origin);
  goes_out(operation, &copied, origin);
}

/* The bytes of the box that arrive in global memory: are there some that nothing has written? */
static void look_at_tensor_source(Warp *warp, const AsyncOperation *operation,
                                  const SharedPiece *pieces, int count) {
  enum { CHUNK = 16 };
  if (!may_be_undefined(warp, pieces, count)) return;
  const TmaMap *map = &operation->tensor.map;
  const uint32_t start = SHARED_OFFSET(operation->shared), rank = warp->cta->rank << 24;
  TmaRows rows;
  TmaWalk walk = tma_walk(map, &operation->tensor.place);
  OriginPlace copied = {.part = PART_STORE,
                        .rank = warp->cta->rank,
                        .stored = {.row_bytes = walk.row_bytes, .from = start, .from_end = start}};
  for (int i = 0; i < count; i++) {
    const uint32_t end = SHARED_OFFSET(pieces[i].address) + pieces[i].bytes;
    if (end > copied.stored.from_end) copied.stored.from_end = end;
  }
  OriginNumber origin = 0;
  uint32_t row = 0;
  while (tma_walk_next(&walk, &rows))
    for (uint32_t i = 0; i < rows.count; i++, row++) {
      const uint32_t first = start + rows.offset + i * walk.pitch + rows.left;
      for (uint32_t j = 0; j < rows.bytes; j += CHUNK) {
        const uint32_t bytes = rows.bytes - j < CHUNK ? rows.bytes - j : CHUNK;
        add_copied(warp, rank | tma_swizzle(map->swizzle_span, first + j), bytes,
                   map->element_bytes == 1, row, &copied, &origin);
      }
    }
  goes_out(operation, &copied, origin);
}

/* Those that matter at once are reported. */
static void operation_issues(Warp *warp, AsyncOperation *operation, const CopiedPieces *pieces) {
  const AsyncKind kind = (AsyncKind)operation->kind;
  if (kind == ASYNC_TENSOR_STORE || kind == ASYNC_TENSOR_REDUCE)
    look_at_tensor_source(warp, operation, pieces->reads, pieces->read_count);
  else if (kind == ASYNC_BULK_STORE || kind == ASYNC_BULK_REDUCE)
    look_at_bulk_source(warp, operation, pieces->reads, pieces->read_count);
  else if (kind == ASYNC_RED_ASYNC) {
    uint32_t addresses[LANES];
    addresses[operation->lane] = operation->shared;
    unwritten_update(warp, operation->in, 1u << operation->lane, addresses, operation->bytes);
  }
}

static void operation_issued(Warp *warp, AsyncOperation *operation, const CopiedPieces *pieces) {
  (void)pieces;
  enum { CHUNK = 16 };
  if (operation->kind != ASYNC_CTA_TO_CTA) return;
  const SharedPiece source = {operation->shared_source, operation->bytes};
  if (!may_be_undefined(warp, &source, 1)) return;
  for (uint32_t i = 0; i < source.bytes; i += CHUNK) {
    UndefinedBytes found = check_undefined_bytes(warp, source.address + i, CHUNK);
    if (!(found.unwritten | found.undefined)) continue;
    uint8_t bits[CHUNK];
    undefined_bits(check_of(warp), source.address + i, CHUNK, bits);
    for (uint32_t k = 0; k < CHUNK; k++)
      if (found.unwritten >> k & 1) bits[k] = 0xff;
    const OriginPlace place = {.part = PART_COPY,
                               .rank = SHARED_RANK(source.address),
                               .offset = SHARED_OFFSET(source.address + i)};
    OriginNumber origin = found.origin;
    if (found.unwritten) origin = undefined_origin(warp, operation->in, operation->lane, &place);
    undefined_put(check_of(warp), operation->shared + i, CHUNK, bits, origin);
  }
}

static const Subscriber SOURCES = {.operation_issues = operation_issues,
                                   .operation_issued = operation_issued};
SUBSCRIBE(SOURCE_EVENTS, SOURCES)
