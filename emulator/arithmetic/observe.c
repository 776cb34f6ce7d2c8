/* observe.c: whoever wants to know of a warp's access hears of it, before it takes effect (warp_access.h). */
#include <string.h>

#include "arithmetic/observe.h"
#include "arithmetic/warp_access.h"
#include "base/fill.h"
#include "base/settings.h"
#include "record/record.h"
#include "state/polling.h"
#include "trial/trial.h"

/* ---- Exploration ---- */

static const NoteKind note_kinds[] = {
    [ACCESS_READ] = NOTE_READ, [ACCESS_WRITE] = NOTE_WRITE, [ACCESS_ATOMIC] = NOTE_KEEP};

/* An atomic operation notes what it did later, when it is known. */
__attribute__((noinline, cold)) static void note_bytes(const WarpAccess *access) {
  const NoteKind kind = note_kinds[access->transfer->kind.access];
  if (access->transfer->space == SPACE_LOCAL || access->transfer->space == SPACE_PARAM) return;
  if (access->shape == SHAPE_RUN)
    note(kind, access->host, (size_t)access->bytes * LANES);
  else
    FOR_LANES(access->mask) note(kind, access->at[first_lane(left)], access->bytes);
}

/* ---- The recorder ---- */

__attribute__((noinline, cold)) static void record_access(WarpAccess *access) {
  Access how = (Access)access->transfer->kind.access;
  access_spread(access);
  access_narrow(access);
  if (access_global(access))
    record_global(access->warp, access_global(access), access->address, access->bytes, how);
  if (access_shared(access))
    record_shared(access->warp, access->in, access_shared(access), access->narrow, access->bytes,
                  how);
}

/* ---- The checker, for all but global memory ---- */

static inline void check_shared_lanes(WarpAccess *access) {
  const AccessKind *kind = &access->transfer->shared_kind;
  uint32_t first = (uint32_t)access->first;
  bool of_all = access->mask == ~0u && access->space == SPACE_SHARED;
  if (access->shape == SHAPE_RUN) {
    check_shared_run(access->warp, access->in, first, access->bytes, kind);
  } else if (access->shape == SHAPE_ONE && of_all && kind->access == ACCESS_READ) {
    check_shared_one(access->warp, access->in, first, access->bytes, kind);
  } else {
    access_narrow(access);
    check_shared(access->warp, access->in, access_shared(access), access->narrow, access->bytes,
                 kind);
  }
}

static void check_copies(WarpAccess *access) {
  access_spread(access);
  check_reads_written(access->warp, access->in, access_global(access), access->address,
                      access->bytes);
}

static void check_local_lanes(const WarpAccess *access, LaneMask mask) {
  check_local(access->warp, access->in, mask, access->at, access->bytes,
              (Access)access->transfer->kind.access, USED_FOR_NOTHING);
}

/* Nearly always each byte of the kernel's parameters belongs to one of them. */
static void check_parameter_reads(WarpAccess *access) {
  const Launch *launch = access->warp->cta->cluster->launch;
  if (!launch->traits->parameter_gaps && !launch->parameters_missing) return;
  access_point(access);
  check_local_lanes(access,
                    access->shape == SHAPE_ONE ? access->mask & -access->mask : access->mask);
}

static inline void check_places(WarpAccess *access) {
  bool copies = access->warp->async && access->transfer->kind.access == ACCESS_READ;
  switch (access->space) {
    case SPACE_SHARED:
      check_shared_lanes(access);
      break;
    case SPACE_GLOBAL:
      if (copies) check_copies(access);
      break;
    case SPACE_LOCAL:
      check_local_lanes(access, access->mask);
      break;
    case SPACE_PARAM:
      check_parameter_reads(access);
      break;
    case SPACE_CONST:
      break;
    case SPACE_GENERIC:
      if (access->shared_lanes) check_shared_lanes(access);
      if (access->global_lanes && copies) check_copies(access);
      check_local_lanes(access, access->mask);
  }
}

/* ---- The checker, for global memory ---- */

typedef struct {
  GlobalStored values;
  const WarpAccess *access;
} StoredValues;

static const uint8_t *stored_element(const WarpAccess *access, int index, int lane) {
  const Transfer *transfer = access->transfer;
  const uint8_t *column = (const uint8_t *)column_u32(access->warp, transfer->element[index].slot);
  return column + (size_t)lane * transfer->element[index].column_bytes;
}

/* Whether a store would leave `bytes` bytes of a lane as they are. Another block of the kernel may be writing them on
 * another host thread: that race is the kernel's, and it is what the checker asks about here. */
__attribute__((no_sanitize("thread"))) static bool stores_same(const GlobalStored *values, int lane,
                                                               uint32_t offset, uint32_t bytes) {
  const WarpAccess *access = ((const StoredValues *)(const void *)values)->access;
  uint32_t size = access->transfer->element_bytes;
  uint8_t value[16];
  for (int i = 0; i < access->transfer->element_count; i++)
    memcpy(value + (uint32_t)i * size, stored_element(access, i, lane), size);
  for (uint32_t i = offset; i < offset + bytes; i++)
    if (access->at[lane][i] != value[i]) return false;
  return true;
}

static bool store_alike(const GlobalStored *values, int lane, int other) {
  const WarpAccess *access = ((const StoredValues *)(const void *)values)->access;
  for (int i = 0; i < access->transfer->element_count; i++)
    if (memcmp(stored_element(access, i, lane), stored_element(access, i, other),
               access->transfer->element_bytes))
      return false;
  return true;
}

/* Recorded warps are watched, too. */
static inline bool only_checked(const WarpAccess *access) {
  return !access->warp->watched && !notes.wanted;
}

/* The usual access is plain, in whole words, a run or at one place, and only the checker looks at it. */
static inline bool check_usual(const WarpAccess *access) {
  const Warp *warp = access->warp;
  const Transfer *transfer = access->transfer;
  const Cluster *cluster = warp->cta->cluster;
  bool run = access->shape == SHAPE_RUN, several = access->mask & (access->mask - 1);
  return transfer->whole && !transfer->strong && access->shape != SHAPE_SCATTERED &&
         only_checked(access) && !warp->async && cluster->launch->global &&
         (run || !several || transfer->kind.access == ACCESS_READ) &&
         check_global_quickly(access->warp, access->in, access->mask, access->first,
                              run ? access->bytes : 0, access->bytes, &transfer->kind);
}

void access_check_global(WarpAccess *access, LaneMask mask, const GlobalKind *kind) {
  Warp *warp = access->warp;
  bool strong = kind->reach != REACH_PLAIN;
  if (!warp->cta->cluster->launch->global) return;
  access_spread(access);
  access_point(access);
  StoredValues stored = {{stores_same, store_alike}, access};
  if (strong && kind->access != ACCESS_WRITE)
    check_global_acquire(warp, mask, access->address, kind);
  check_global(warp, access->in, mask, access->address, access->shape == SHAPE_RUN, access->bytes,
               kind, kind->access == ACCESS_WRITE ? &stored.values : NULL);
  if (strong) check_global_release(warp, mask, access->address, kind);
}

void access_read_global(WarpAccess *access) {
  if (!access->warp->cta->cluster->launch->global) return;
  access_spread(access);
  check_global_acquire(access->warp, access->mask, access->address, &access->transfer->kind);
}

/* A tensor map may be overwritten. */
static void check_map_writes(WarpAccess *access) {
  if (access->shape != SHAPE_SCATTERED) {
    uint32_t bytes = access->shape == SHAPE_RUN ? LANES * access->bytes : access->bytes;
    check_tensor_map_written(access->in, access->first, bytes);
    return;
  }
  access_spread(access);
  FOR_LANES(access_global(access))
  check_tensor_map_written(access->in, access->address[first_lane(left)], access->bytes);
}

/* ---- Who watches the warp ---- */

/* For reports: what a warp that spins without progress reads. */
static void watch_read(const WarpAccess *access) {
  Space space = access->transfer->space;
  if (space == SPACE_CONST || space == SPACE_LOCAL || space == SPACE_PARAM ||
      (access->first & GENERIC_TAG_MASK) == GENERIC_LOCAL)
    return;
  polling_read(access->warp, access->in, access->first, access_global(access) != 0);
}

static void watch_undefined(WarpAccess *access, const Transfer *moved, Access how) {
  MovedRegister registers[16];
  int count = 0;
  for (int i = 0; i < moved->element_count; i++)
    if (moved->element[i].wanted || how != ACCESS_READ)
      registers[count++] = (MovedRegister){.slot = moved->element[i].slot,
                                           .column_bytes = moved->element[i].column_bytes,
                                           .memory_bytes = moved->element_bytes,
                                           .offset = (uint8_t)(i * moved->element_bytes),
                                           .sign = type_signed(moved->type)};
  access_point(access);
  if (how == ACCESS_READ && is_tried_again()) {
    access->shape = SHAPE_SCATTERED;
    trial_lanes(access->warp, access->mask, access->at, access->bytes);
  }
  check_undefined_moved(access->warp, access->in, access->mask, access->at, registers, count, how);
}

__attribute__((noinline, cold)) void access_watch(WarpAccess *access, const Transfer *moved) {
  Access how = (Access)access->transfer->kind.access;
  if (polling_watches(access->warp) && how != ACCESS_WRITE) watch_read(access);
  if (access->warp->watched & WATCH_UNDEFINED) watch_undefined(access, moved, how);
}

void access_changed(const WarpAccess *access, const uint8_t *at, size_t bytes) {
  uint64_t halves[2] = {0};
  memcpy(halves, at, bytes);
  polling_changed(access->warp->cta->cluster, (uint64_t)(uintptr_t)at, halves[0] + 31 * halves[1]);
}

/* ---- All of them ---- */

static inline void observe_places(WarpAccess *access) {
  const Cluster *cluster = access->warp->cta->cluster;
  if (__builtin_expect(notes.wanted, 0)) {
    access_point(access);
    note_bytes(access);
  }
  if (__builtin_expect(cluster->recorder != NULL, 0)) record_access(access);
  if (cluster->check) check_places(access);
}

/* Apart, because it needs more registers. */
__attribute__((noinline)) static void observe_others(WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  bool checks = access_global(access) && access->warp->cta->cluster->check;
  if (checks && transfer->kind.access == ACCESS_WRITE) check_map_writes(access);
  if (checks && check_usual(access)) return;
  observe_places(access);
  if (checks) access_check_global(access, access->mask, &transfer->kind);
  if (checks && transfer->strong) check_strong_global(access->warp, access->in, access->mask);
  if (__builtin_expect(access->warp->watched, 0)) access_watch(access, transfer);
}

void access_observe(WarpAccess *access) {
  if (access->space != SPACE_SHARED || !only_checked(access)) {
    observe_others(access);
    return;
  }
  check_shared_lanes(access);
  if (__builtin_expect(access->warp->watched, 0)) access_watch(access, access->transfer);
}

void access_observe_places(WarpAccess *access) { observe_places(access); }

void observe_shared(Warp *warp, const Instruction *in, LaneMask lanes, const uint32_t *addresses,
                    uint8_t *const *at, uint32_t bytes, Access access) {
  if (!lanes) return;
  FOR_LANES(lanes) note(note_kinds[access], at[first_lane(left)], bytes);
  if (warp->cta->cluster->recorder) record_shared(warp, in, lanes, addresses, bytes, access);
  if (settings()->checks)
    check_shared(warp, in, lanes, addresses, bytes, &(AccessKind){.access = access});
}

void observe_shared_place(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                          uint8_t *at, uint32_t bytes, Access access) {
  uint32_t addresses[LANES];
  uint8_t *all_at[LANES];
  FOR_LANES(lanes) {
    addresses[first_lane(left)] = address;
    all_at[first_lane(left)] = at;
  }
  observe_shared(warp, in, lanes, addresses, all_at, bytes, access);
}
