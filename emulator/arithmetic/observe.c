/* observe.c: an access of a warp, before it takes effect (warp_access.h): exploration notes it, a search for polls that
 * never end looks at it. Others subscribe to it (base/events.def). */
#include "arithmetic/observe.h"

#include <string.h>

#include "arithmetic/warp_access.h"

/* ---- Exploration ---- */

static const NoteKind note_kinds[] = {
    [ACCESS_READ] = NOTE_READ, [ACCESS_WRITE] = NOTE_WRITE, [ACCESS_ATOMIC] = NOTE_KEEP};

/* An atomic operation notes what it did later, when it is known. */
static void note_bytes(const WarpAccess *access) {
  const NoteKind kind = note_kinds[access->transfer->kind.access];
  if (access->transfer->space == SPACE_LOCAL || access->transfer->space == SPACE_PARAM) return;
  if (access->shape == SHAPE_RUN)
    note(kind, access->host, (size_t)access->bytes * LANES);
  else
    FOR_LANES(lane, access->mask) note(kind, access->at[lane], access->bytes);
}

/* ---- Polls that never end ---- */

/* For reports: what a warp that spins without progress reads. */
static void watch_read(const WarpAccess *access) {
  Space space = access->transfer->space;
  if (space == SPACE_CONST || space == SPACE_LOCAL || space == SPACE_PARAM ||
      (access->first & GENERIC_TAG_MASK) == GENERIC_LOCAL)
    return;
  polling_read(access->warp, access->in, access->first, access_global(access) != 0);
}

void access_changed(const WarpAccess *access, const uint8_t *at, size_t bytes) {
  uint64_t halves[2] = {0};
  memcpy(halves, at, bytes);
  polling_changed(access->warp->cta->cluster, (uint64_t)(uintptr_t)at, halves[0] + 31 * halves[1]);
}

/* ---- Both ---- */

__attribute__((noinline, cold)) void access_note(WarpAccess *access) {
  const bool moves = access->transfer->element_count;
  if (notes.wanted) {
    access_point(access);
    note_bytes(access);
  }
  if (moves && polling_watches(access->warp) && access->transfer->kind.access != ACCESS_WRITE)
    watch_read(access);
}

void observe_shared(Warp *warp, const Instruction *in, LaneMask lanes, const uint32_t *addresses,
                    uint8_t *const *at, uint32_t bytes, Access access) {
  const Transfer transfer = {.space = SPACE_SHARED,
                             .bytes = (uint8_t)bytes,
                             .kind = {.access = (uint8_t)access},
                             .shared_kind = {.access = access}};
  WarpAccess seen = {.warp = warp,
                     .in = in,
                     .transfer = &transfer,
                     .mask = lanes,
                     .bytes = bytes,
                     .shape = SHAPE_SCATTERED,
                     .space = SPACE_SHARED,
                     .spread = true,
                     .narrowed = true};
  if (!lanes) return;
  FOR_LANES(lane, lanes) {
    seen.narrow[lane] = addresses[lane];
    seen.at[lane] = at[lane];
  }
  access_observe(&seen);
}

void observe_shared_place(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                          uint8_t *at, uint32_t bytes, Access access) {
  uint32_t addresses[LANES];
  uint8_t *all_at[LANES];
  FOR_LANES(lane, lanes) {
    addresses[lane] = address;
    all_at[lane] = at;
  }
  observe_shared(warp, in, lanes, addresses, all_at, bytes, access);
}
