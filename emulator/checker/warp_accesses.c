/* warp_accesses.c: what a warp's access asks of the checker, before it takes effect (arithmetic/warp_access.h). */
#include <string.h>

#include "arithmetic/warp_access.h"
#include "base/fill.h"
#include "checker/checker.h"
#include "trial/trial.h"

/* ---- All but global memory ---- */

/* Apart, so that the usual access needs no room of its own. */
__attribute__((noinline)) static void check_shared_scattered(WarpAccess *access) {
  access_narrow(access);
  check_shared(access->warp, access->in, access_shared(access), access->narrow, access->bytes,
               &access->transfer->shared_kind);
}

static inline void check_shared_lanes(WarpAccess *access) {
  const AccessKind *kind = &access->transfer->shared_kind;
  uint32_t first = (uint32_t)access->first;
  bool of_all = access->mask == ~0u && access->space == SPACE_SHARED;
  if (access->shape == SHAPE_RUN)
    check_shared_run(access->warp, access->in, first, access->bytes, kind);
  else if (access->shape == SHAPE_ONE && of_all && kind->access == ACCESS_READ)
    check_shared_one(access->warp, access->in, first, access->bytes, kind);
  else
    check_shared_scattered(access);
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

static void check_places(WarpAccess *access) {
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

/* ---- Global memory ---- */

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

static void check_global_lanes(WarpAccess *access, LaneMask mask, const GlobalKind *kind) {
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
  if (!strong) return;
  bool repeats = kind->access == ACCESS_WRITE &&
                 stores_same(&stored.values, first_lane(mask), 0, access->bytes);
  check_global_release(warp, mask, access->address, kind, repeats);
}

/* A tensor map may be overwritten. */
static void check_map_writes(WarpAccess *access) {
  if (access->shape != SHAPE_SCATTERED) {
    uint32_t bytes = access->shape == SHAPE_RUN ? LANES * access->bytes : access->bytes;
    check_tensor_map_written(access->in, access->first, bytes);
    return;
  }
  access_spread(access);
  FOR_LANES(lane, access_global(access))
    check_tensor_map_written(access->in, access->address[lane], access->bytes);
}

static void check_atomic(WarpAccess *access) {
  const Atomic *atomic = access->in->decoded;
  Warp *warp = access->warp;
  LaneMask mask = access->mask, writing = mask;
  GlobalKind kind = access->transfer->kind;
  check_unwritten_atomic(warp, access->in, mask, access->at, access->bytes,
                         atomic->operation == ATOMIC_EXCH);
  if (atomic->operation == ATOMIC_CAS && warp->cta->cluster->launch->global)
    writing = atomic_swapping_lanes(access);
  kind.kept = atomic_bytes_kept(access);
  if (writing) check_global_lanes(access, writing, &kind);
  if (writing == mask) return;
  kind.access = ACCESS_READ;
  check_global_lanes(access, mask & ~writing, &kind);
}

/* ---- Registers ---- */

void check_access_moves(Warp *warp, WarpAccess *access) {
  (void)warp;
  const Access how = (Access)access->transfer->kind.access;
  const Atomic *atomic = how == ACCESS_ATOMIC ? access->in->decoded : NULL;
  const Transfer *moved = atomic ? &atomic->value : access->transfer;
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

/* ---- All of them ---- */

/* Apart, because it needs more registers. */
__attribute__((noinline)) static void check_others(WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  const bool global = access_global(access);
  if (global && transfer->kind.access == ACCESS_WRITE) check_map_writes(access);
  if (global && check_usual(access)) return;
  check_places(access);
  if (global && transfer->kind.access == ACCESS_ATOMIC)
    check_atomic(access);
  else if (global)
    check_global_lanes(access, access->mask, &transfer->kind);
  if (global && transfer->strong) check_strong_global(access->warp, access->in, access->mask);
}

void check_access(Warp *warp, WarpAccess *access) {
  (void)warp;
  if (access->space == SPACE_SHARED)
    check_shared_lanes(access);
  else
    check_others(access);
}

void check_access_done(Warp *warp, WarpAccess *access) {
  if (!warp->cta->cluster->launch->global) return;
  access_spread(access);
  check_global_acquire(warp, access->mask, access->address, &access->transfer->kind);
}
