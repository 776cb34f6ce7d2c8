/* whole_warps.c: plain loads and stores of global memory, the usual kinds: the words of all lanes follow each
 * other, or the lanes access one place. One look at the addresses, one at the bounds and one of the checker
 * are enough for them. Parameters, too, are one place. loadstore.c does the same for every other access. */
#include "arithmetic/loadstore.h"
#include "base/gather.h"
#include "base/memory.h"
#include "state/notes.h"

/* step: from lane to lane, the bytes of a lane or 0. */
typedef struct {
  uint8_t *at;
  uint32_t step, bytes;
} WholeWarp;

/* Where an instruction has found its bytes is usually where it finds the next ones. */
static bool is_in_one_place(Warp *warp, const Transfer *transfer, uint64_t first, uint64_t bytes,
                            bool writes) {
  KnownPlace *known =
      &warp->cta->cluster->places[(uintptr_t)transfer / sizeof *transfer % KNOWN_PLACES];
  if (known->generation != memory_generation || first < known->first || first >= known->end) {
    const Allocation *found = memory_find(first);
    if (!found) return false;
    *known = (KnownPlace){found->first, found->end, memory_generation, found->read_only};
  }
  return known->end - first >= bytes && !(known->read_only && writes);
}

/* Do the lanes' words follow each other (step: their bytes), or are they one place (step 0)? */
static bool are_in_steps(const uint64_t *base, LaneMask mask, uint32_t bytes, uint32_t *step) {
  uint64_t first = base[first_lane(mask)];
  uint64_t span = base[LANES - 1 - __builtin_clz(mask)] - first;
  *step = span ? bytes : 0;
  if (mask != ~0u) return !span && !lanes_that_differ(base, mask, first);
  if (span && span != (uint64_t)(LANES - 1) * bytes) return false;
  return lanes_in_steps(base, first, *step);
}

/* False: any other kind. */
static bool find_whole_warp(Warp *warp, LaneMask mask, const Transfer *transfer, bool writes,
                            WholeWarp *found) {
  if (warp->watched || warp->async || notes.wanted) return false;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  const uint64_t *base = column_u64(warp, transfer->base_slot);
  uint64_t first = base[first_lane(mask)] + (uint64_t)transfer->offset;
  found->at = (uint8_t *)(uintptr_t)first;
  found->bytes = bytes;
  if ((first & (bytes - 1)) || (first & GENERIC_TAG_MASK) ||
      !are_in_steps(base, mask, bytes, &found->step))
    return false;
  bool several = mask & (mask - 1);
  if (writes && several && !found->step) return false;
  return is_in_one_place(warp, transfer, first,
                         found->step ? (uint64_t)LANES * bytes : (uint64_t)bytes, writes);
}

static bool is_checked(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                       const WholeWarp *found) {
  const Cluster *cluster = warp->cta->cluster;
  return !cluster->check || !cluster->launch->global || transfer->space == SPACE_CONST ||
         check_global_quickly(warp, in, mask, (uint64_t)(uintptr_t)found->at, found->step,
                              found->bytes, &transfer->kind);
}

/* All these lanes get what is at one place. */
static void load_one(const Warp *warp, LaneMask mask, const Transfer *transfer, const uint8_t *at) {
  if (transfer->element_bytes == 8) {
    uint64_t value, *column = column_u64(warp, transfer->element[0].slot);
    memcpy(&value, at, sizeof value);
    LANE_ARRAY uint64_t values[LANES];
    for (int lane = 0; lane < LANES; lane++) values[lane] = value;
    blend_u64(column, mask, values);
    return;
  }
  for (uint32_t i = 0; i < transfer->element_count; i++) {
    uint32_t value, *column = column_u32(warp, transfer->element[i].slot);
    memcpy(&value, at + 4 * i, sizeof value);
    LANE_ARRAY uint32_t values[LANES];
    for (int lane = 0; lane < LANES; lane++) values[lane] = value;
    blend_u32(column, mask, values);
  }
}

static void store_one(const Warp *warp, int lane, const Transfer *transfer, uint8_t *at) {
  if (transfer->element_bytes == 8)
    memcpy(at, &column_u64(warp, transfer->element[0].slot)[lane], 8);
  for (uint32_t i = 0; transfer->element_bytes == 4 && i < transfer->element_count; i++)
    memcpy(at + 4 * i, &column_u32(warp, transfer->element[i].slot)[lane], 4);
}

/* The words of vectors change between rows of lanes in memory and columns. */
__attribute__((always_inline)) static inline void move_vectors(const Warp *warp,
                                                               const Transfer *transfer,
                                                               uint8_t *at, size_t count,
                                                               bool loads) {
  for (size_t i = 0; i < count; i++) {
    uint32_t *column = column_u32(warp, transfer->element[i].slot);
    for (size_t lane = 0; lane < LANES; lane++) {
      uint8_t *word = at + 4 * (lane * count + i);
      memcpy(loads ? (void *)&column[lane] : word, loads ? word : (void *)&column[lane], 4);
    }
  }
}

bool load_whole_warp(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer) {
  WholeWarp found;
  if (!find_whole_warp(warp, mask, transfer, false, &found) ||
      !is_checked(warp, in, mask, transfer, &found))
    return false;
  uint8_t *column = (uint8_t *)column_u32(warp, transfer->element[0].slot);
  if (!found.step)
    load_one(warp, mask, transfer, found.at);
  else if (transfer->element_count == 1)
    memcpy(column, found.at, (size_t)LANES * found.bytes);
  else if (transfer->element_count == 2)
    move_vectors(warp, transfer, found.at, 2, true);
  else
    move_vectors(warp, transfer, found.at, 4, true);
  return true;
}

bool store_whole_warp(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer) {
  WholeWarp found;
  if (!find_whole_warp(warp, mask, transfer, true, &found) ||
      !is_checked(warp, in, mask, transfer, &found))
    return false;
  const uint8_t *column = (const uint8_t *)column_u32(warp, transfer->element[0].slot);
  if (!found.step)
    store_one(warp, first_lane(mask), transfer, found.at);
  else if (transfer->element_count == 1)
    memcpy(found.at, column, (size_t)LANES * found.bytes);
  else if (transfer->element_count == 2)
    move_vectors(warp, transfer, found.at, 2, false);
  else
    move_vectors(warp, transfer, found.at, 4, false);
  if (warp->cta->cluster->check)
    check_tensor_map_written(in, (uint64_t)(uintptr_t)found.at,
                             found.step ? LANES * found.bytes : found.bytes);
  return true;
}

bool load_parameter(Warp *warp, LaneMask mask, const Transfer *transfer) {
  const Cluster *cluster = warp->cta->cluster;
  const Launch *launch = cluster->launch;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  uint64_t at = lane_address(warp, transfer->address, 0);
  if (warp->watched || at % bytes || at >= launch->parameter_bytes ||
      launch->parameter_bytes - at < bytes)
    return false;
  if (cluster->check) check_parameters(warp, at, at + bytes - 1);
  if (warp->watched) return false;
  load_one(warp, mask, transfer, launch->parameters + at);
  return true;
}
