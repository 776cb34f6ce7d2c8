/* undefined_memory.c: tracks uninitialised values through memory: where they are loaded and
 * stored.
 *
 * Each block's shared memory has a shadow with one bit per bit, allocated when the first undefined
 * byte is read: 1 means undefined. A plain read of uninitialised bytes sets the bits, each write
 * clears them, and a store of undefined bits sets them again. */
#include "checker/undefined/marks.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/written.h"

/* ---- Shared memory ---- */

static void make_shadow(ClusterCheck *check, uint32_t rank) {
  struct UndefinedState *state = check->undefined;
  if (state->of_cta[rank].bits) return;
  state->of_cta[rank].bits = calloc((size_t)check->words * WORD_BYTES + WORD_BYTES, 1);
  state->of_cta[rank].origins = calloc(check->words + 1u, sizeof(OriginNumber));
  if (!state->of_cta[rank].bits || !state->of_cta[rank].origins) out_of_memory();
}

void undefined_forget_shared(ClusterCheck *check) {
  struct UndefinedState *state = check->undefined;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    free(state->of_cta[rank].bits);
    free(state->of_cta[rank].origins);
    state->of_cta[rank].bits = NULL;
    state->of_cta[rank].origins = NULL;
  }
  check->any_undefined = false;
}

OriginNumber undefined_bits(const ClusterCheck *check, uint32_t address, uint32_t bytes,
                            uint8_t *bits) {
  uint32_t rank = SHARED_RANK(address), offset = SHARED_OFFSET(address);
  const bool watched = watches(check, address, bytes);
  const uint8_t *marks = watched ? check->undefined->of_cta[rank].bits : NULL;
  uint8_t any = 0;
  if (bits) memset(bits, 0, bytes);
  if (!marks) return 0;
  if (bits) memcpy(bits, marks + offset, bytes);
  for (uint32_t i = 0; i < bytes; i++) any |= marks[offset + i];
  for (uint32_t i = 0; any && i < bytes; i++) {
    OriginNumber origin = check->undefined->of_cta[rank].origins[(offset + i) / WORD_BYTES];
    if (marks[offset + i] && origin) return origin;
  }
  return 0;
}

static void clear_bits(ClusterCheck *check, uint32_t address, uint32_t bytes) {
  uint32_t rank = SHARED_RANK(address), offset = SHARED_OFFSET(address);
  if (rank >= check->cta_count || !check->undefined->of_cta[rank].bits) return;
  uint32_t end = check->words * WORD_BYTES;
  if (offset >= end) return;
  memset(check->undefined->of_cta[rank].bits + offset, 0,
         bytes < end - offset ? bytes : end - offset);
}

void undefined_put(ClusterCheck *check, uint32_t address, uint32_t bytes, const uint8_t *bits,
                   OriginNumber origin) {
  uint32_t rank = SHARED_RANK(address), offset = SHARED_OFFSET(address);
  if (!bits) clear_bits(check, address, bytes);
  if (!bits || !watches(check, address, bytes)) return;
  for (uint32_t i = 0; i < bytes; i++) {
    if (!bits[i] && !check->undefined->of_cta[rank].bits) continue;
    make_shadow(check, rank);
    check->undefined->of_cta[rank].bits[offset + i] = bits[i];
    if (!bits[i]) continue;
    check->undefined->of_cta[rank].origins[(offset + i) / WORD_BYTES] = origin;
    check->any_undefined = true;
  }
}

/* ---- Loads and stores ---- */

/* The marks of the byte at a host address; NULL: this memory has no marks, or there is no such
 * byte. make: it gets some. */
typedef struct {
  uint8_t *bits;
  OriginNumber *origin;
  bool local; /* each byte has an origin of its own, and not each word */
} UndefinedBits;

static bool find_marks(Warp *warp, const uint8_t *at, bool make, UndefinedBits *marks) {
  Cluster *cluster = warp->cta->cluster;
  struct WarpUndefined *table = warp->undefined;
  size_t local_bytes = (size_t)warp->local_bytes * LANES;
  *marks = (UndefinedBits){NULL, NULL, false};
  if (warp->local && at >= warp->local && at < warp->local + local_bytes) {
    if (table && table->local) {
      size_t place = (size_t)(at - warp->local);
      *marks = (UndefinedBits){table->local + place, table->local_origins + place, true};
    }
    return true;
  }
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    const Cta *cta = &cluster->ctas[rank];
    if (at < cta->shared || at >= cta->shared + cta->shared_bytes) continue;
    size_t place = (size_t)(at - cta->shared);
    if (make) {
      make_shadow(cluster->check, rank);
      cluster->check->any_undefined = true;
    }
    const struct UndefinedState *state = cluster->check->undefined;
    if (state->of_cta[rank].bits && place / WORD_BYTES < cluster->check->words)
      *marks = (UndefinedBits){state->of_cta[rank].bits + place,
                               state->of_cta[rank].origins + place / WORD_BYTES, false};
    return true;
  }
  return false; /* global memory, constants, parameters */
}

static OriginNumber from_parameters(Warp *warp, const Instruction *in, int lane, const uint8_t *at,
                                    uint32_t bytes, uint8_t *bits) {
  const Launch *launch = warp->cta->cluster->launch;
  uint32_t gaps = parameter_gaps(launch, at, bytes);
  if (!gaps) return 0;
  const uint8_t *first = at + __builtin_ctz(gaps);
  const OriginPlace place = {.part = PART_PARAMETER,
                             .offset = (uint32_t)(first - launch->parameters)};
  for (uint32_t i = 0; i < bytes; i++) bits[i] = gaps >> i & 1 ? 0xff : 0;
  return undefined_origin(warp, in, lane, &place);
}

/* Local memory keeps an origin for each byte, shared memory for each word. */
static OriginNumber *origin_of_byte(const UndefinedBits *marks, int byte) {
  return &marks->origin[marks->local ? byte : byte / (int)WORD_BYTES];
}

static void load_marks(Warp *warp, const Instruction *in, const uint8_t *at,
                       const MovedRegister *to, int lane) {
  uint8_t bits[16] = {0};
  UndefinedBits marks;
  OriginNumber origin = 0;
  if (!find_marks(warp, at, false, &marks)) {
    origin = from_parameters(warp, in, lane, at, to->memory_bytes, bits);
    if (!origin)
      origin =
          undefined_from_global(warp, in, lane, (uint64_t)(uintptr_t)at, to->memory_bytes, bits);
  }
  if (marks.bits) memcpy(bits, marks.bits, to->memory_bytes);
  if (to->sign && to->memory_bytes < to->column_bytes && (bits[to->memory_bytes - 1] & 0x80))
    memset(bits + to->memory_bytes, 0xff, to->column_bytes - to->memory_bytes);
  for (int i = 0; i < to->memory_bytes && marks.bits; i += WORD_BYTES)
    if (bits[i] && !origin) origin = *origin_of_byte(&marks, i);
  for (int i = 0; i < to->memory_bytes && marks.bits && !origin; i++)
    if (bits[i]) origin = marks.origin[0];
  undefined_set(warp->undefined, to->slot, to->column_bytes, lane, bits, origin);
}

/* Does any lane read undefined bits? */
static bool any_marks(Warp *warp, LaneMask mask, uint8_t *const *at, const MovedRegister *registers,
                      int count) {
  FOR_LANES(lane, mask)
    for (int i = 0; i < count; i++) {
      UndefinedBits marks;
      const uint8_t *place = at[lane] + registers[i].offset;
      uint64_t address = (uint64_t)(uintptr_t)place;
      if (!find_marks(warp, place, false, &marks) &&
          (!written_here(address, registers[i].memory_bytes) ||
           parameter_gaps(warp->cta->cluster->launch, place, registers[i].memory_bytes)))
        return true;
      for (int k = 0; k < registers[i].memory_bytes && marks.bits; k++)
        if (marks.bits[k]) return true;
    }
  return false;
}

static bool all_undefined(const uint8_t *bits, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++)
    if (bits[i] != 0xff) return false;
  return true;
}

/* Code that moves bytes never leaves a byte half undefined. */
static bool any_half_undefined(const uint8_t *bits, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++)
    if (bits[i] != 0 && bits[i] != 0xff) return true;
  return false;
}

static const uint8_t *bits_at(const Warp *warp, const MovedRegister *from, int lane) {
  return warp->undefined->bits + (size_t)from->slot * SLOT_BYTES +
         (size_t)lane * from->column_bytes;
}

/* An unmodified value that is stored to global memory may be padding between the members of a
 * struct, which is never used. Padding is never a whole register that is stored alone, nor in two
 * neighbouring lanes, nor twice 16 bytes that a lane stores one behind the other. */
static bool is_padding(const Warp *warp, LaneMask mask, uint8_t *const *at,
                       const MovedRegister *registers, int count, int lane) {
  uint32_t bytes = 0;
  for (int i = 0; i < count; i++) {
    bytes += registers[i].memory_bytes;
    if (!all_undefined(bits_at(warp, &registers[i], lane), registers[i].memory_bytes)) return true;
  }
  if (count == 1 && bytes > 1) return false;
  const uint8_t **stored_until = &warp->undefined->stored_until[lane];
  const bool goes_on = bytes == 16 && *stored_until == at[lane];
  if (bytes == 16) *stored_until = at[lane] + bytes;
  if (goes_on) return false;
  int next = lane + 1;
  if (next == LANES || !(mask >> next & 1) || at[next] != at[lane] + bytes) return true;
  for (int i = 0; i < count; i++)
    if (!all_undefined(bits_at(warp, &registers[i], next), registers[i].memory_bytes)) return true;
  return false;
}

static void store_marks(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                        const MovedRegister *registers, int count, int lane, Access access) {
  struct WarpUndefined *table = warp->undefined;
  for (int i = 0; i < count; i++) {
    const MovedRegister *from = &registers[i];
    const uint8_t *host = at[lane] + from->offset, *bits = bits_at(warp, from, lane);
    uint8_t any = 0;
    bool marked = table->lanes[from->slot] >> lane & 1;
    for (int k = 0; marked && k < from->memory_bytes; k++) any |= bits[k];
    OriginNumber origin = any ? table->origins[from->slot * LANES + (uint32_t)lane] : 0;
    bool local = warp->local && host >= warp->local &&
                 host < warp->local + (size_t)warp->local_bytes * LANES;
    if (local && any) undefined_make_local(warp);
    UndefinedBits marks;
    if (!find_marks(warp, host, any, &marks)) {
      bool computed = (origin & ORIGIN_COMPUTED) || access == ACCESS_ATOMIC ||
                      (any && any_half_undefined(bits, from->memory_bytes));
      bool reported = any && (computed || undefined_is_pending(warp, origin) ||
                              !is_padding(warp, mask, at, registers, count, lane));
      OriginNumber kind = computed ? origin | ORIGIN_COMPUTED : origin;
      if (reported) reported = undefined_matters(warp, in, lane, kind, USED_STORED);
      if (any && !reported)
        undefined_to_global(warp, (uint64_t)(uintptr_t)host, bits, from->memory_bytes);
    } else if (marks.bits &&
               (any || access != ACCESS_ATOMIC)) { /* an atomic changes what is there */
      for (int k = 0; k < from->memory_bytes; k++) {
        marks.bits[k] = access == ACCESS_ATOMIC && any ? 0xff : marked ? bits[k] : 0;
        if (any && (marks.local || k % WORD_BYTES == 0)) *origin_of_byte(&marks, k) = origin;
      }
    }
  }
}

/* ---- Lanes that move nothing undefined, as most do ---- */

static bool overlaps(const uint8_t *first, const uint8_t *end, const uint8_t *memory,
                     size_t bytes) {
  return memory && first < memory + bytes && end > memory;
}

/* The lanes with undefined bytes in the block's shared memory, which starts at `start`. */
static LaneMask undefined_in_shared(const uint8_t *marks, const uint8_t *start, LaneMask mask,
                                    uint8_t *const *at, uint32_t bytes) {
  LaneMask undefined = 0;
  if (bytes == WORD_BYTES && mask == UINT32_MAX && marks) { /* often */
    for (int lane = 0; lane < LANES; lane++) {
      uint32_t bits;
      memcpy(&bits, marks + (at[lane] - start), sizeof bits);
      undefined |= (LaneMask)(bits != 0) << lane;
    }
    return undefined;
  }
  for (LaneMask left = mask; left && marks; left &= left - 1) {
    const uint8_t *bits = marks + (at[first_lane(left)] - start);
    uint8_t any = 0;
    for (uint32_t i = 0; i < bytes; i++) any |= bits[i];
    if (any) undefined |= left & -left;
  }
  return undefined;
}

typedef struct {
  const uint8_t *first, *end; /* of all bytes that the lanes access */
  uint32_t bytes;             /* of each lane */
  LaneMask marked;            /* lanes whose registers have marks */
} MovedRange;

static MovedRange moved_range(const Warp *warp, LaneMask mask, uint8_t *const *at,
                              const MovedRegister *registers, int count) {
  MovedRange range = {.first = at[first_lane(mask)], .end = at[first_lane(mask)]};
  for (int i = 0; i < count; i++) {
    uint32_t end = registers[i].offset + registers[i].memory_bytes;
    if (end > range.bytes) range.bytes = end;
    range.marked |= warp->undefined->lanes[registers[i].slot] & mask;
  }
  FOR_LANES(lane, mask) {
    const uint8_t *place = at[lane];
    if (place < range.first) range.first = place;
    if (place > range.end) range.end = place;
  }
  range.end += range.bytes;
  return range;
}

/* The lanes that access bytes of global memory which nothing has written. */
static LaneMask lanes_not_written(LaneMask mask, uint8_t *const *at, uint32_t bytes) {
  LaneMask lanes = 0;
  FOR_LANES(lane, mask)
    if (!written_all((uint64_t)(uintptr_t)at[lane], bytes)) lanes |= 1u << lane;
  return lanes;
}

/* The lanes for which marks must be looked at one by one, in a load or store. A store of other
 * lanes has cleared the marks in shared memory: undefined_access. */
static LaneMask lanes_with_marks(const Warp *warp, LaneMask mask, uint8_t *const *at,
                                 const MovedRegister *registers, int count, Access access) {
  enum { NEAR = 8192 };
  const Cluster *cluster = warp->cta->cluster;
  MovedRange range = moved_range(warp, mask, at, registers, count);
  size_t bytes = (size_t)(range.end - range.first);
  if (access == ACCESS_ATOMIC ||
      overlaps(range.first, range.end, warp->local, (size_t)warp->local_bytes * LANES))
    return mask;
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    const Cta *cta = &cluster->ctas[rank];
    const uint8_t *marks = cluster->check->undefined->of_cta[rank].bits;
    if (!overlaps(range.first, range.end, cta->shared, cta->shared_bytes)) continue;
    size_t watched = (size_t)cluster->check->words * WORD_BYTES;
    if (range.first < cta->shared || range.end > cta->shared + watched) return mask;
    if (access == ACCESS_WRITE) return range.marked;
    return range.marked | undefined_in_shared(marks, cta->shared, mask, at, range.bytes);
  }
  if (access == ACCESS_WRITE) return range.marked;
  const Launch *launch = cluster->launch;
  if (overlaps(range.first, range.end, launch->parameters, launch->parameter_bytes)) return mask;
  bool written = bytes <= NEAR && written_all((uint64_t)(uintptr_t)range.first, bytes);
  return range.marked | (written ? 0 : lanes_not_written(mask, at, range.bytes));
}

void check_undefined_moved(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                           const MovedRegister *registers, int count, Access access) {
  if (!warp->undefined && (access != ACCESS_READ || !any_marks(warp, mask, at, registers, count)))
    return;
  undefined_table(warp);
  LaneMask marked = lanes_with_marks(warp, mask, at, registers, count, access);
  FOR_LANES(lane, marked) {
    if (access != ACCESS_READ) {
      store_marks(warp, in, mask, at, registers, count, lane, access);
      continue;
    }
    for (int i = 0; i < count; i++)
      load_marks(warp, in, at[lane] + registers[i].offset, &registers[i], lane);
  }
}
