/* check_undefined_memory.c: tracks uninitialised values through memory: where they come from, where
 * they are stored, and the reports.
 *
 * Each CTA's shared memory has a shadow with one bit per bit, allocated when the first undefined
 * byte is read: 1 means undefined. A plain read of uninitialised bytes sets the bits, each write
 * clears them, and a store of undefined bits sets them again. */
#include "checker/check_undefined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/traits.h"

enum { FIRST_ORIGINS = 64, TEXT = 160 };

struct Origin {
  Warp *warp;
  const Instruction *in, *user; /* user: where the value matters; NULL: nowhere yet */
  const char *how;
  uint32_t rank, offset;
  LaneMask lanes;
  uint32_t using_thread;
  bool confirmed; /* no unordered write there, so it is neither a race nor a missing wait */
  bool reported;
};

/* ---- Origins ---- */

static OriginNumber find_origin(ClusterCheck *check, Warp *warp, const Instruction *in,
                                uint32_t rank, uint32_t offset, int lane) {
  for (uint32_t i = check->origin_count; i-- > 0;) {
    struct Origin *origin = &check->origins[i];
    if (origin->in != in || origin->warp != warp) continue;
    origin->lanes |= 1u << lane;
    return (OriginNumber)(i + 1);
  }
  if (check->origin_count == ORIGIN_MOST) return 0;
  if (check->origin_count == check->origin_capacity) {
    check->origin_capacity = check->origin_capacity ? 2 * check->origin_capacity : FIRST_ORIGINS;
    check->origins = realloc(check->origins, check->origin_capacity * sizeof *check->origins);
    if (!check->origins) abort();
  }
  check->origins[check->origin_count++] =
      (struct Origin){.warp = warp, .in = in, .rank = rank, .offset = offset, .lanes = 1u << lane};
  return (OriginNumber)check->origin_count;
}

static void report_if_due(const ClusterCheck *check, struct Origin *origin) {
  if (!origin->confirmed || !origin->user || origin->reported) return;
  origin->reported = true;
  char where[TEXT], whose[32] = "";
  past_describe_place(origin->user, where, sizeof where);
  if (check->cta_count > 1) snprintf(whose, sizeof whose, " of CTA %u", origin->rank);
  finding(
      origin->warp, origin->in, origin->lanes, "uninitialised-read",
      "reads shared memory at offset 0x%x%s, which nothing has written, and the value matters: "
      "%s it %s (thread %u).\n"
      "Shared memory holds no zeros at the start: write it, or wait for the copy that fills it.",
      origin->offset, whose, where, origin->how, origin->using_thread);
}

void undefined_matters(Warp *warp, const Instruction *in, int lane, OriginNumber number,
                       const char *how) {
  ClusterCheck *check = check_of(warp);
  uint32_t place = number & ORIGIN_MOST;
  if (place == 0 || place > check->origin_count) return;
  struct Origin *origin = &check->origins[place - 1];
  if (!origin->user) {
    origin->user = in;
    origin->how = how;
    origin->using_thread = thread_of(warp, lane);
  }
  report_if_due(check, origin);
}

void undefined_confirm(ClusterCheck *check, const Warp *reader, const Instruction *in) {
  for (uint32_t i = 0; i < check->origin_count; i++) {
    struct Origin *origin = &check->origins[i];
    if (origin->in != in || origin->warp != reader) continue;
    origin->confirmed = true;
    report_if_due(check, origin);
  }
}

/* ---- Shared memory ---- */

static void make_shadow(struct CtaCheck *notes) {
  if (notes->undefined) return;
  size_t bytes = (size_t)notes->words * WORD_BYTES;
  notes->undefined = calloc(bytes + WORD_BYTES, 1);
  notes->undefined_origins = calloc(notes->words + 1u, sizeof *notes->undefined_origins);
  if (!notes->undefined || !notes->undefined_origins) abort();
}

void undefined_read(ClusterCheck *check, Warp *warp, const Instruction *in, int lane, uint32_t rank,
                    uint32_t word, uint32_t mask) {
  struct CtaCheck *notes = &check->ctas[rank];
  make_shadow(notes);
  check->any_undefined = true;
  warp->watched |= WATCH_UNDEFINED;
  for (uint32_t i = 0; i < WORD_BYTES; i++)
    if (mask >> i & 1) notes->undefined[word * WORD_BYTES + i] = 0xff;
  notes->undefined_origins[word] = find_origin(check, warp, in, rank, word * WORD_BYTES, lane);
}

void undefined_written(ClusterCheck *check, uint32_t address, uint32_t bytes) {
  uint32_t rank = SHARED_RANK(address), offset = SHARED_OFFSET(address);
  if (rank >= check->cta_count || !check->ctas[rank].undefined) return;
  uint32_t end = check->ctas[rank].words * WORD_BYTES;
  if (offset >= end) return;
  memset(check->ctas[rank].undefined + offset, 0, bytes < end - offset ? bytes : end - offset);
}

void undefined_access(Warp *warp, LaneMask mask, const uint32_t *addresses, uint32_t bytes,
                      bool writes) {
  ClusterCheck *check = check_of(warp);
  warp->watched |= WATCH_UNDEFINED; /* it may read undefined bits: check_undefined_moved */
  for (LaneMask left = writes ? mask : 0; left; left &= left - 1)
    undefined_written(check, addresses[first_lane(left)], bytes);
}

void undefined_forget_shared(ClusterCheck *check) {
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    free(check->ctas[rank].undefined);
    free(check->ctas[rank].undefined_origins);
    check->ctas[rank].undefined = NULL;
    check->ctas[rank].undefined_origins = NULL;
  }
  check->any_undefined = false;
  check->origin_count = 0;
}

/* ---- Loads and stores ---- */

/* The marks of the byte at a host address; NULL: this memory has no marks, or there is no such
 * byte. */
typedef struct {
  uint8_t *bits;
  OriginNumber *origin;
} UndefinedBits;

static bool find_marks(Warp *warp, const uint8_t *at, UndefinedBits *marks) {
  Cluster *cluster = warp->cta->cluster;
  struct WarpUndefined *notes = warp->undefined;
  size_t local_bytes = (size_t)warp->local_bytes * LANES;
  *marks = (UndefinedBits){NULL, NULL};
  if (warp->local && at >= warp->local && at < warp->local + local_bytes) {
    if (notes && notes->local) {
      size_t place = (size_t)(at - warp->local);
      *marks = (UndefinedBits){notes->local + place, notes->local_origins + place};
    }
    return true;
  }
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    const Cta *cta = &cluster->ctas[rank];
    if (at < cta->shared || at >= cta->shared + cta->shared_bytes) continue;
    struct CtaCheck *shared = &cluster->check->ctas[rank];
    size_t place = (size_t)(at - cta->shared);
    if (shared->undefined && place / WORD_BYTES < shared->words)
      *marks = (UndefinedBits){shared->undefined + place,
                               shared->undefined_origins + place / WORD_BYTES};
    return true;
  }
  return false; /* global memory, constants, parameters */
}

static void load_marks(Warp *warp, const uint8_t *at, const MovedRegister *to, int lane) {
  uint8_t bits[16] = {0};
  UndefinedBits marks;
  find_marks(warp, at, &marks);
  if (marks.bits) memcpy(bits, marks.bits, to->memory_bytes);
  if (to->sign && to->memory_bytes < to->column_bytes && (bits[to->memory_bytes - 1] & 0x80))
    memset(bits + to->memory_bytes, 0xff, to->column_bytes - to->memory_bytes);
  OriginNumber origin = 0;
  for (int i = 0; i < to->memory_bytes && marks.bits; i += WORD_BYTES) {
    bool local =
        at >= warp->local && marks.origin == warp->undefined->local_origins + (at - warp->local);
    if (bits[i] && !origin) origin = marks.origin[local ? i : i / WORD_BYTES];
  }
  for (int i = 0; i < to->memory_bytes && marks.bits && !origin; i++)
    if (bits[i]) origin = marks.origin[0];
  undefined_set(warp->undefined, to->slot, to->column_bytes, lane, bits, origin);
}

/* Does any lane read undefined bits? */
static bool any_marks(Warp *warp, LaneMask mask, uint8_t *const *at, const MovedRegister *registers,
                      int count) {
  for (LaneMask left = mask; left; left &= left - 1)
    for (int i = 0; i < count; i++) {
      UndefinedBits marks;
      find_marks(warp, at[first_lane(left)] + registers[i].offset, &marks);
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

static void make_local(Warp *warp) {
  struct WarpUndefined *notes = warp->undefined;
  size_t bytes = (size_t)warp->local_bytes * LANES;
  if (notes->local || !warp->local) return;
  notes->local = calloc(bytes + 16, 1);
  notes->local_origins = calloc(bytes + 16, sizeof *notes->local_origins);
  if (!notes->local || !notes->local_origins) abort();
}

/* An unmodified value that is stored to global memory may be padding between the members of a
 * struct, which is never used. Padding is never a whole register that is stored alone, nor in two
 * neighbouring lanes. */
static bool is_padding(const Warp *warp, LaneMask mask, uint8_t *const *at,
                       const MovedRegister *registers, int count, int lane) {
  uint32_t bytes = 0;
  for (int i = 0; i < count; i++) {
    bytes += registers[i].memory_bytes;
    if (!all_undefined(bits_at(warp, &registers[i], lane), registers[i].memory_bytes)) return true;
  }
  if (count == 1 && bytes > 1) return false;
  int next = lane + 1;
  if (next == LANES || !(mask >> next & 1) || at[next] != at[lane] + bytes) return true;
  for (int i = 0; i < count; i++)
    if (!all_undefined(bits_at(warp, &registers[i], next), registers[i].memory_bytes)) return true;
  return false;
}

static void store_marks(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                        const MovedRegister *registers, int count, int lane, Access access) {
  struct WarpUndefined *notes = warp->undefined;
  for (int i = 0; i < count; i++) {
    const MovedRegister *from = &registers[i];
    const uint8_t *host = at[lane] + from->offset, *bits = bits_at(warp, from, lane);
    uint8_t any = 0;
    bool marked = notes->lanes[from->slot] >> lane & 1;
    for (int k = 0; marked && k < from->memory_bytes; k++) any |= bits[k];
    OriginNumber origin = any ? notes->origins[from->slot * LANES + (uint32_t)lane] : 0;
    bool local = warp->local && host >= warp->local &&
                 host < warp->local + (size_t)warp->local_bytes * LANES;
    if (local && any) make_local(warp);
    UndefinedBits marks;
    if (!find_marks(warp, host, &marks)) {
      bool computed = (origin & ORIGIN_COMPUTED) || access == ACCESS_ATOMIC ||
                      (any && any_half_undefined(bits, from->memory_bytes));
      if (any && (computed || !is_padding(warp, mask, at, registers, count, lane)))
        undefined_matters(warp, in, lane, origin, "goes to global memory");
    } else if (marks.bits) {
      for (int k = 0; k < from->memory_bytes; k++) {
        marks.bits[k] = access == ACCESS_ATOMIC && any ? 0xff : marked ? bits[k] : 0;
        if (any && (local || k % WORD_BYTES == 0))
          marks.origin[local ? k : k / WORD_BYTES] = origin;
      }
    }
  }
}

void check_undefined_moved(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                           const MovedRegister *registers, int count, Access access) {
  if (warp->tensor) return;
  if (!warp->undefined && (access != ACCESS_READ || !any_marks(warp, mask, at, registers, count)))
    return;
  undefined_notes(warp);
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    if (access != ACCESS_READ) {
      store_marks(warp, in, mask, at, registers, count, lane, access);
      continue;
    }
    for (int i = 0; i < count; i++)
      load_marks(warp, at[lane] + registers[i].offset, &registers[i], lane);
  }
}
