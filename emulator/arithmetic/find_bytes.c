/* find_bytes.c: the shape of a warp's access and the host bytes behind its addresses (warp_access.h). */
#include "arithmetic/alu.h"
#include "arithmetic/warp_access.h"
#include "base/access.h"
#include "base/memory.h"
#include "base/written.h"

/* ---- The shape ---- */

/* Most scattered accesses already differ in the span from the first lane to the last one. */
static inline AccessShape shape_of_narrow(const uint32_t *base, LaneMask mask, uint32_t bytes) {
  uint32_t first = base[first_lane(mask)], span = base[LANES - 1 - __builtin_clz(mask)] - first;
  if (span == 0 && !narrow_lanes_differ(base, mask, first)) return SHAPE_ONE;
  if (mask == ~0u && span == (LANES - 1) * bytes && narrow_lanes_in_steps(base, first, bytes))
    return SHAPE_RUN;
  return SHAPE_SCATTERED;
}

static inline AccessShape shape_of_wide(const uint64_t *base, LaneMask mask, uint32_t bytes) {
  uint64_t first = base[first_lane(mask)], span = base[LANES - 1 - __builtin_clz(mask)] - first;
  if (span == 0 && !lanes_that_differ(base, mask, first)) return SHAPE_ONE;
  if (mask == ~0u && span == (uint64_t)(LANES - 1) * bytes && lanes_in_steps(base, first, bytes))
    return SHAPE_RUN;
  return SHAPE_SCATTERED;
}

/* ---- All bytes at once ---- */

__attribute__((noinline)) static const KnownPlace *find_again(KnownPlace *known, uint64_t address) {
  const Allocation *found = memory_find(address);
  if (!found) return NULL;
  *known = (KnownPlace){found->first, found->end, memory_generation, found->read_only};
  return known;
}

/* Where an instruction has found its bytes is usually where it finds the next ones. NULL: in no allocation. */
static inline const KnownPlace *known_place(const WarpAccess *access, uint64_t address) {
  KnownPlace *known = &access->warp->cta->cluster->places[access->transfer->known_place];
  if (known->generation == memory_generation && address >= known->first && address < known->end)
    return known;
  return find_again(known, address);
}

/* The space of addresses that are all in one space, and the tag of generic ones. */
static inline Space space_of(Space space, uint64_t least, uint64_t most, uint64_t *tag) {
  if (space != SPACE_GENERIC) return space;
  uint64_t found = least & GENERIC_TAG_MASK;
  if (found != (most & GENERIC_TAG_MASK)) return SPACE_GENERIC;
  if (!found) return SPACE_GLOBAL;
  if (found == GENERIC_SHARED && !((most & ~found) >> 32)) return *tag = found, SPACE_SHARED;
  if (found == GENERIC_LOCAL) return *tag = found, SPACE_LOCAL;
  if (found == GENERIC_PARAM) return *tag = found, SPACE_PARAM;
  return SPACE_GLOBAL;
}

/* Each of these: are the bytes from the first to the last address in one place? zero: where address 0 would be, if
 * that place reached so far. */
static inline bool find_shared(const WarpAccess *access, uint64_t least, uint64_t most,
                               uint64_t *zero) {
  const Cta *cta = shared_address_cta(access->warp, (uint32_t)least);
  if (!cta || most >> 32 || SHARED_RANK(least) != SHARED_RANK(most) ||
      SHARED_OFFSET(most) >= cta->shared_bytes ||
      cta->shared_bytes - SHARED_OFFSET(most) < access->bytes)
    return false;
  *zero = (uint64_t)(uintptr_t)cta->shared - ((uint64_t)SHARED_RANK(least) << 24);
  return true;
}

static inline bool find_global(const WarpAccess *access, uint64_t least, uint64_t most,
                               uint64_t *zero) {
  const KnownPlace *known = known_place(access, least);
  *zero = 0;
  return known && most < known->end && known->end - most >= access->bytes &&
         !(known->read_only && access->transfer->kind.access != ACCESS_READ);
}

/* Of .local memory zero is the first lane's. */
__attribute__((noinline)) static bool find_own(const WarpAccess *access, uint64_t most,
                                               uint64_t *zero) {
  const Warp *warp = access->warp;
  const Launch *launch = warp->cta->cluster->launch;
  bool local = access->space == SPACE_LOCAL;
  uint64_t end = local ? warp->local_bytes : launch->parameter_bytes;
  *zero = (uint64_t)(uintptr_t)(local ? warp->local : launch->parameters);
  return most < end && end - most >= access->bytes &&
         (local || access->transfer->kind.access == ACCESS_READ);
}

static inline bool find_known_place(WarpAccess *access, uint64_t least, uint64_t most,
                                    uint64_t *zero) {
  uint64_t tag = 0;
  bool found;
  Space space = access->space = space_of(access->transfer->space, least, most, &tag);
  if (most < least) return false;
  if (space == SPACE_SHARED)
    found = find_shared(access, least - tag, most - tag, zero);
  else if (space == SPACE_GLOBAL || space == SPACE_CONST)
    found = find_global(access, least, most, zero);
  else
    found = space != SPACE_GENERIC && find_own(access, most - tag, zero);
  *zero -= tag;
  return found;
}

/* ---- The lanes' addresses ---- */

/* Those of lanes that take no part are the first active one's. */
void access_spread(WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  const uint64_t *wide = column_u64(access->warp, transfer->base);
  const uint32_t *narrow = column_u32(access->warp, transfer->base);
  uint64_t first = access->first, step = access->shape == SHAPE_RUN ? access->bytes : 0;
  if (access->spread) return;
  access->spread = true;
  if (access->shape != SHAPE_SCATTERED) {
    for (uint64_t lane = 0; lane < LANES; lane++) access->address[lane] = first + lane * step;
  } else if (transfer->wide) {
    uint64_t offset = (uint64_t)transfer->offset;
    for (int lane = 0; lane < LANES; lane++)
      access->address[lane] = access->mask >> lane & 1 ? wide[lane] + offset : first;
  } else {
    uint32_t offset = (uint32_t)transfer->offset;
    for (int lane = 0; lane < LANES; lane++)
      access->address[lane] = access->mask >> lane & 1 ? narrow[lane] + offset : first;
  }
}

void access_narrow(WarpAccess *access) {
  uint32_t first = (uint32_t)access->first, step = access->shape == SHAPE_RUN ? access->bytes : 0;
  if (access->narrowed) return;
  access->narrowed = true;
  if (access->shape != SHAPE_SCATTERED) {
    for (uint32_t lane = 0; lane < LANES; lane++) access->narrow[lane] = first + lane * step;
    return;
  }
  access_spread(access);
  for (int lane = 0; lane < LANES; lane++) access->narrow[lane] = (uint32_t)access->address[lane];
}

/* ---- Each lane ---- */

/* libcu++ makes atomics of 8 and 16 bits from those of the aligned word around them. The end of that
 * word may lie behind the allocation, where a GPU has memory, too. */
static bool is_word_at_end(const WarpAccess *access, uint64_t address) {
  const Transfer *transfer = access->transfer;
  if (!transfer->strong || transfer->kind.access == ACCESS_WRITE || access->bytes != 4 ||
      address % 4)
    return false;
  const Allocation *found = memory_find(address);
  if (!found || found->read_only || found->end - address >= 4) return false;
  written_set(found->end, address + 4 - found->end); /* they are put back as they were */
  return true;
}

static bool find_lane(WarpAccess *access, int lane) {
  uint64_t address = access->address[lane];
  uint32_t bytes = access->bytes;
  Space space = access->transfer->space;
  Access how = (Access)access->transfer->kind.access;
  if ((space == SPACE_GENERIC || space == SPACE_GLOBAL) && is_word_at_end(access, address)) {
    space = SPACE_GLOBAL;
    access->at[lane] = (uint8_t *)(uintptr_t)address;
  } else if (space == SPACE_GENERIC) {
    access->at[lane] =
        generic_bytes_at(access->warp, access->in, lane, address, bytes, bytes, how, &space, NULL);
  } else {
    access->at[lane] =
        space_bytes_at(access->warp, access->in, lane, space, address, bytes, bytes, how);
  }
  if (space == SPACE_SHARED) access->shared_lanes |= 1u << lane;
  if (space == SPACE_GLOBAL) access->global_lanes |= 1u << lane;
  return access->at[lane] != NULL;
}

/* The first lane with an invalid address ends the launch. */
__attribute__((noinline)) static bool find_each_lane(WarpAccess *access) {
  access->shape = SHAPE_SCATTERED;
  access->space = access->transfer->space;
  access->shared_lanes = access->global_lanes = 0;
  access->spread = false;
  access_spread(access);
  FOR_LANES(lane, access->mask)
    if (!find_lane(access, lane)) return false;
  if (access->shared_lanes == access->mask) access->space = SPACE_SHARED;
  if (access->global_lanes == access->mask) access->space = SPACE_GLOBAL;
  return true;
}

/* ---- All bytes at once, and scattered ---- */

/* Each lane's .local memory is by itself. */
__attribute__((noinline)) static bool scatter_local(WarpAccess *access) {
  access_point(access);
  access->shape = SHAPE_SCATTERED;
  for (size_t lane = 0; lane < LANES; lane++) access->at[lane] += lane * access->warp->local_bytes;
  return true;
}

/* The host's vector instructions look at addresses of 32 bits twice as fast. */
__attribute__((noinline)) static bool find_scattered_narrow(WarpAccess *access) {
  const uint32_t *base = column_u32(access->warp, access->transfer->base);
  uint32_t first = (uint32_t)access->first, offset = (uint32_t)access->transfer->offset;
  uint32_t least = first, most = first, low_bits = 0;
  uint32_t *restrict address = access->narrow;
  const LaneMask mask = access->mask;
  uint64_t zero;
  access->narrowed = true;
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t here = mask >> lane & 1 ? base[lane] + offset : first;
    address[lane] = here;
    least = here < least ? here : least;
    most = here > most ? here : most;
    low_bits |= here;
  }
  if ((low_bits & (access->bytes - 1)) || !find_known_place(access, least, most, &zero))
    return find_each_lane(access);
  for (int lane = 0; lane < LANES; lane++)
    access->at[lane] = (uint8_t *)(uintptr_t)(zero + address[lane]);
  return access->space != SPACE_LOCAL || scatter_local(access);
}

__attribute__((noinline)) static bool find_scattered_wide(WarpAccess *access) {
  uint64_t least = access->first, most = access->first, low_bits = 0, zero;
  access_spread(access);
  for (int lane = 0; lane < LANES; lane++) {
    uint64_t here = access->address[lane];
    least = here < least ? here : least;
    most = here > most ? here : most;
    low_bits |= here;
  }
  if ((low_bits & (access->bytes - 1)) || !find_known_place(access, least, most, &zero))
    return find_each_lane(access);
  for (int lane = 0; lane < LANES; lane++)
    access->at[lane] = (uint8_t *)(uintptr_t)(zero + access->address[lane]);
  return access->space != SPACE_LOCAL || scatter_local(access);
}

void access_point(WarpAccess *access) {
  uint64_t step = access->shape == SHAPE_RUN ? access->bytes : 0;
  if (access->shape == SHAPE_SCATTERED) return;
  for (uint64_t lane = 0; lane < LANES; lane++) access->at[lane] = access->host + lane * step;
}

/* ---- All of them ---- */

__attribute__((always_inline)) static inline bool find_all(WarpAccess *access, Warp *warp,
                                                           const Instruction *in, LaneMask mask,
                                                           const Transfer *transfer, bool is_wide) {
  const uint64_t *wide = column_u64(warp, transfer->base);
  const uint32_t *narrow = column_u32(warp, transfer->base);
  uint32_t bytes = transfer->bytes;
  int lane = first_lane(mask);
  AccessShape shape = SHAPE_ONE;
  access->warp = warp;
  access->in = in;
  access->transfer = transfer;
  access->mask = mask;
  access->bytes = bytes;
  if (!transfer->constant)
    shape = is_wide ? shape_of_wide(wide, mask, bytes) : shape_of_narrow(narrow, mask, bytes);
  access->shape = shape;
  access->spread = access->narrowed = false;
  uint64_t first =
      is_wide ? wide[lane] + (uint64_t)transfer->offset : narrow[lane] + (uint32_t)transfer->offset;
  access->first = first;
  if (shape == SHAPE_SCATTERED)
    return is_wide ? find_scattered_wide(access) : find_scattered_narrow(access);
  uint64_t last = first + (shape == SHAPE_RUN ? (LANES - 1) * bytes : 0), zero;
  if ((first & (bytes - 1)) ||
      !find_known_place(access, first, is_wide ? last : (uint32_t)last, &zero))
    return find_each_lane(access);
  access->host = (uint8_t *)(uintptr_t)(zero + first);
  return access->space != SPACE_LOCAL || scatter_local(access);
}

/* For the compiler to make one of each width. */
bool access_find(WarpAccess *access, Warp *warp, const Instruction *in, LaneMask mask,
                 const Transfer *transfer) {
  return transfer->wide ? find_all(access, warp, in, mask, transfer, true)
                        : find_all(access, warp, in, mask, transfer, false);
}
