/* places.c: the host bytes behind the addresses of a warp's access, with one check for all lanes
 * where possible. */
#include "arithmetic/loadstore.h"
#include "base/access.h"
#include "base/memory.h"
#include "base/written.h"
#include "state/cluster.h"
#include "state/notes.h"

static void compute_addresses(const Warp *warp, const Operand *operand, uint64_t *address) {
  uint64_t offset = (uint64_t)operand->offset;
  if (operand->bytes == 8) {
    const uint64_t *base = column_u64(warp, operand->slot);
    for (int lane = 0; lane < LANES; lane++) address[lane] = base[lane] + offset;
  } else {
    const uint32_t *base = column_u32(warp, operand->slot);
    for (int lane = 0; lane < LANES; lane++) address[lane] = base[lane] + (uint32_t)offset;
  }
}

/* The range of the mask's addresses, and whether they are aligned and consecutive. */
typedef struct {
  uint64_t least, most;
  bool aligned, run;
} Range;

static Range range_of(const uint64_t *address, LaneMask mask, uint32_t bytes, uint32_t alignment) {
  Range range = {.least = ~0ull};
  uint64_t first = address[first_lane(mask)], low_bits = 0, different = 0;
  if (mask == ~0u) {
    for (int lane = 0; lane < LANES; lane++) {
      different |= address[lane] ^ (first + (uint64_t)(uint32_t)lane * bytes);
      low_bits |= address[lane];
    }
    range.run = different == 0;
  } else {
    for (int lane = 0; lane < LANES; lane++)
      low_bits |= address[lane] & -(uint64_t)(mask >> lane & 1u);
  }
  range.aligned = (low_bits & (alignment - 1)) == 0;
  if (range.run) {
    range.least = first;
    range.most = first + (uint64_t)(LANES - 1) * bytes;
    if (range.most < first) range.run = false;
  }
  if (!range.run) {
    uint64_t least = ~0ull, most = 0;
    for (int lane = 0; lane < LANES; lane++) {
      uint64_t away = (uint64_t)(mask >> lane & 1u) - 1;
      uint64_t low = address[lane] | away, high = address[lane] & ~away;
      least = low < least ? low : least;
      most = high > most ? high : most;
    }
    range.least = least;
    range.most = most;
  }
  return range;
}

static bool all_in_global(const Range *range, uint32_t bytes, Access access) {
  static _Thread_local struct {
    uint64_t first, end;
    uint32_t generation;
    bool read_only;
  } last;
  if (last.generation != memory_generation || range->least < last.first ||
      range->least >= last.end) {
    const Allocation *found = memory_find(range->least);
    if (!found) return false;
    last.first = found->first;
    last.end = found->end;
    last.read_only = found->read_only;
    last.generation = memory_generation;
  }
  return range->most < last.end && last.end - range->most >= bytes &&
         !(last.read_only && access != ACCESS_READ);
}

/* libcu++ makes atomics of 8 and 16 bits from those of the aligned word around them. The end of that
 * word may lie behind the allocation, where a GPU has memory, too. */
static bool is_word_at_end(const Transfer *transfer, uint64_t address, uint32_t bytes,
                           Access access) {
  if (!transfer->strong || access == ACCESS_WRITE || bytes != 4 || address % 4 != 0) return false;
  const Allocation *found = memory_find(address);
  if (!found || found->read_only || found->end - address >= 4) return false;
  written_set(found->end, address + 4 - found->end); /* they are put back as they were */
  return true;
}

/* One lane after the other. The first lane with an invalid address ends the launch. */
static bool places_lane_by_lane(Warp *warp, const Instruction *in, LaneMask mask,
                                const Transfer *transfer, Access access, Places *places,
                                LaneMask *shared_lanes, uint32_t *shared) {
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint64_t address = places->address[lane];
    Space space = transfer->space;
    if ((space == SPACE_GENERIC || space == SPACE_GLOBAL) &&
        is_word_at_end(transfer, address, bytes, access)) {
      space = SPACE_GLOBAL;
      places->at[lane] = (uint8_t *)(uintptr_t)address;
    } else if (space == SPACE_GENERIC) {
      uint64_t offset;
      places->at[lane] =
          generic_bytes_at(warp, in, lane, address, bytes, bytes, access, &space, &offset);
      if (space == SPACE_SHARED) *shared_lanes |= 1u << lane, shared[lane] = (uint32_t)offset;
    } else {
      places->at[lane] = space_bytes_at(warp, in, lane, space, address, bytes, bytes, access);
      if (space == SPACE_SHARED) *shared_lanes |= 1u << lane, shared[lane] = (uint32_t)address;
    }
    if (!places->at[lane]) return false;
    if (space == SPACE_GLOBAL) places->any_global = true;
  }
  return true;
}

/* What a lane stores. */
static void lane_bytes(const Warp *warp, const Instruction *in, int lane, uint8_t *bytes) {
  const Transfer *transfer = in->decoded;
  for (int i = 0; i < transfer->element_count; i++) {
    const uint8_t *column = (const uint8_t *)column_u32(warp, transfer->element[i].slot);
    memcpy(bytes + i * transfer->element_bytes,
           column + (size_t)lane * transfer->element[i].column_bytes, transfer->element_bytes);
  }
}

void transfer_kinds(Transfer *transfer, Instruction *out) {
  Access access = (Access)transfer->kind.access;
  out->meets_blocks =
      transfer->strong && (transfer->space == SPACE_GLOBAL || transfer->space == SPACE_GENERIC);
  transfer->shared_kind = (AccessKind){.access = access,
                                       .strong = transfer->strong,
                                       .is_volatile = transfer->kind.flags & GLOBAL_VOLATILE,
                                       .updates = transfer->kind.updates,
                                       .lane_bytes = access == ACCESS_WRITE ? lane_bytes : NULL};
}

/* The most usual access: all 32 lanes, consecutive in one block's shared memory. Its addresses are in
 * 32-bit registers: the host's vector instructions check them. False: any other access. */
static inline bool find_shared_run(Warp *warp, const Instruction *in, LaneMask mask,
                                   const Transfer *transfer, Access access, Places *places) {
  if (mask != ~0u) return false;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  const uint32_t *base = column_u32(warp, transfer->address->slot);
  uint32_t first = base[0] + (uint32_t)transfer->address->offset, different = 0;
  uint32_t most = first + (LANES - 1) * bytes;
  if (base[1] != base[0] + bytes) return false; /* most of the others already differ here */
  for (uint32_t lane = 0; lane < LANES; lane++) different |= base[lane] ^ (base[0] + lane * bytes);
  const Cta *cta = shared_address_cta(warp, first);
  if ((different | (first & (bytes - 1))) || !cta || SHARED_RANK(first) != SHARED_RANK(most) ||
      SHARED_OFFSET(most) >= cta->shared_bytes || cta->shared_bytes - SHARED_OFFSET(most) < bytes)
    return false;
  places->run = true;
  places->any_global = false;
  places->at[0] = cta->shared + SHARED_OFFSET(first);
  if (__builtin_expect(warp->watched & WATCH_STEPS, 0))
    record_shared_run(warp, in, first, bytes, access);
  if (cta->cluster->check) check_shared_run(warp, in, first, bytes, &transfer->shared_kind);
  return true;
}

/* The next most usual one: all 32 lanes read one place. False: any other access. */
static inline bool find_shared_one(Warp *warp, const Instruction *in, LaneMask mask,
                                   const Transfer *transfer, Access access, Places *places) {
  if (mask != ~0u || access != ACCESS_READ || (warp->watched & WATCH_STEPS)) return false;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  const uint32_t *base = column_u32(warp, transfer->address->slot);
  uint32_t address = base[0] + (uint32_t)transfer->address->offset, different = 0;
  if (base[LANES - 1] != base[0]) return false; /* most of the others already differ here */
  for (uint32_t lane = 0; lane < LANES; lane++) different |= base[lane] ^ base[0];
  const Cta *cta = shared_address_cta(warp, address);
  if ((different | (address & (bytes - 1))) || !cta ||
      SHARED_OFFSET(address) >= cta->shared_bytes ||
      cta->shared_bytes - SHARED_OFFSET(address) < bytes)
    return false;
  uint8_t *at = cta->shared + SHARED_OFFSET(address);
  for (int lane = 0; lane < LANES; lane++) places->at[lane] = at;
  places->run = false;
  places->one = true;
  places->any_global = false;
  if (cta->cluster->check) check_shared_one(warp, in, address, bytes, &transfer->shared_kind);
  return true;
}

/* One lane alone. False: any other access. */
__attribute__((noinline)) static bool find_shared_lane(Warp *warp, const Instruction *in,
                                                       LaneMask mask, const Transfer *transfer,
                                                       Places *places) {
  if (warp->watched & WATCH_STEPS) return false;
  int lane = first_lane(mask);
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  uint32_t address =
      column_u32(warp, transfer->address->slot)[lane] + (uint32_t)transfer->address->offset;
  const Cta *cta = shared_address_cta(warp, address);
  if ((address & (bytes - 1)) || !cta || SHARED_OFFSET(address) >= cta->shared_bytes ||
      cta->shared_bytes - SHARED_OFFSET(address) < bytes)
    return false;
  places->run = false;
  places->any_global = false;
  places->at[lane] = cta->shared + SHARED_OFFSET(address);
  if (!cta->cluster->check) return true;
  uint32_t addresses[LANES];
  for (int i = 0; i < LANES; i++) addresses[i] = address;
  check_shared(warp, in, mask, addresses, bytes, &transfer->shared_kind);
  return true;
}

/* Shared memory by addresses in 32-bit registers. False: some lane is misaligned or outside one block's
 * memory. */
__attribute__((noinline)) static bool find_shared(Warp *warp, const Instruction *in, LaneMask mask,
                                                  const Transfer *transfer, Access access,
                                                  Places *places) {
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  uint32_t offset = (uint32_t)transfer->address->offset;
  const uint32_t *base = column_u32(warp, transfer->address->slot);
  uint32_t first = base[first_lane(mask)] + offset, least = first, most = first, low_bits = 0;
  LANE_ARRAY uint32_t address[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t here = base[lane] + offset;
    address[lane] = ((mask >> lane) & 1u) ? here : first;
    least = address[lane] < least ? address[lane] : least;
    most = address[lane] > most ? address[lane] : most;
    low_bits |= address[lane];
  }
  const Cta *cta = shared_address_cta(warp, least);
  if ((low_bits & (bytes - 1)) || !cta || SHARED_RANK(least) != SHARED_RANK(most) ||
      SHARED_OFFSET(most) >= cta->shared_bytes || cta->shared_bytes - SHARED_OFFSET(most) < bytes)
    return false;
  places->run = false;
  places->any_global = false;
  uint8_t *start = cta->shared + SHARED_OFFSET(least);
  for (int lane = 0; lane < LANES; lane++) places->at[lane] = start + (address[lane] - least);
  if (__builtin_expect(warp->watched & WATCH_STEPS, 0))
    record_shared(warp, in, mask, address, bytes, access);
  if (cta->cluster->check) check_shared(warp, in, mask, address, bytes, &transfer->shared_kind);
  return true;
}

/* The most usual access to global memory: all 32 lanes, consecutive. Returns false for any other
 * access, and when each lane's address is needed. */
static bool find_global_run(const Warp *warp, LaneMask mask, const Transfer *transfer,
                            Access access, Places *places) {
  bool global = transfer->space == SPACE_GLOBAL || transfer->space == SPACE_GENERIC;
  if (mask != ~0u || !global || transfer->address->bytes != 8) return false;
  uint64_t bytes = (uint64_t)transfer->element_bytes * transfer->element_count;
  const uint64_t *base = column_u64(warp, transfer->address->slot);
  uint64_t first = base[0] + (uint64_t)transfer->address->offset, different = 0;
  for (uint32_t lane = 0; lane < LANES; lane++) different |= base[lane] ^ (base[0] + lane * bytes);
  if (different | (first & (bytes - 1)) | (first & GENERIC_TAG_MASK)) return false;
  if (warp->async || (warp->watched & WATCH_STEPS)) return false;
  Range range = {.least = first, .most = first + (LANES - 1) * bytes};
  if (!all_in_global(&range, (uint32_t)bytes, access)) return false;
  places->at[0] = (uint8_t *)(uintptr_t)first;
  places->address[0] = first;
  places->run = true;
  places->any_global = true;
  return true;
}

/* The next most usual one: all 32 lanes read one place. */
static bool find_global_one(const Warp *warp, LaneMask mask, const Transfer *transfer,
                            Access access, Places *places) {
  bool global = transfer->space == SPACE_GLOBAL || transfer->space == SPACE_GENERIC;
  if (mask != ~0u || access != ACCESS_READ || !global || transfer->address->bytes != 8)
    return false;
  uint64_t bytes = (uint64_t)transfer->element_bytes * transfer->element_count;
  const uint64_t *base = column_u64(warp, transfer->address->slot);
  uint64_t address = base[0] + (uint64_t)transfer->address->offset, different = 0;
  if (base[LANES - 1] != base[0]) return false; /* most of the others already differ here */
  for (int lane = 0; lane < LANES; lane++) different |= base[lane] ^ base[0];
  if (different | (address & (bytes - 1)) | (address & GENERIC_TAG_MASK)) return false;
  if (warp->async || (warp->watched & WATCH_STEPS)) return false;
  Range range = {.least = address, .most = address};
  if (!all_in_global(&range, (uint32_t)bytes, access)) return false;
  for (int lane = 0; lane < LANES; lane++) places->at[lane] = (uint8_t *)(uintptr_t)address;
  for (int lane = 0; lane < LANES; lane++) places->address[lane] = address;
  places->run = false;
  places->one = true;
  places->any_global = true;
  return true;
}

/* Addresses of one space that are all valid: lane i's bytes are at (address - subtract) + host +
 * i * stride. */
typedef struct {
  uint8_t *host;
  uint64_t subtract;
  size_t stride; /* .local: each lane has its own memory */
} Window;

/* The space of generic addresses that are all in one space, and the address at which it begins.
 * SPACE_GENERIC: they are in several. */
static Space space_of_range(Space space, const Range *range, uint64_t *base) {
  uint64_t tag = range->least & GENERIC_TAG_MASK;
  *base = 0;
  if (space != SPACE_GENERIC || tag != (range->most & GENERIC_TAG_MASK)) return space;
  if (tag == GENERIC_SHARED && !((range->most & ~tag) >> 32)) return *base = tag, SPACE_SHARED;
  if (tag == GENERIC_LOCAL) return *base = tag, SPACE_LOCAL;
  if (tag == GENERIC_PARAM) return *base = tag, SPACE_PARAM;
  return SPACE_GLOBAL;
}

static bool shared_window(const Warp *warp, const Range *range, uint32_t bytes, Window *window) {
  uint64_t base = window->subtract;
  uint32_t least = (uint32_t)(range->least - base), most = (uint32_t)(range->most - base);
  Cta *cta = shared_address_cta(warp, least);
  if (!cta || (range->most - base) >> 32 || SHARED_RANK(least) != SHARED_RANK(most) ||
      SHARED_OFFSET(most) >= cta->shared_bytes || cta->shared_bytes - SHARED_OFFSET(most) < bytes)
    return false;
  window->host = cta->shared;
  window->subtract += (uint64_t)SHARED_RANK(least) << 24;
  return true;
}

/* Are all lanes' bytes in memory of this space? */
static bool find_window(const Warp *warp, Space space, const Range *range, uint32_t bytes,
                        Access access, Window *window) {
  const Launch *launch = warp->cta->cluster->launch;
  uint64_t most = range->most - window->subtract;
  switch (space) {
    case SPACE_SHARED:
      return shared_window(warp, range, bytes, window);
    case SPACE_GLOBAL:
    case SPACE_CONST:
      return all_in_global(range, bytes, access);
    case SPACE_LOCAL:
      window->host = warp->local;
      window->stride = warp->local_bytes;
      return most < warp->local_bytes && warp->local_bytes - most >= bytes;
    case SPACE_PARAM:
      window->host = (uint8_t *)(uintptr_t)launch->parameters;
      return access == ACCESS_READ && most < launch->parameter_bytes &&
             launch->parameter_bytes - most >= bytes;
    default:
      return false;
  }
}

/* For the recorder and the checker. */
static void note_global(Warp *warp, const Instruction *in, LaneMask mask, const Places *places,
                        uint32_t bytes, Access access) {
  if (places->any_global && warp->cta->cluster->recorder)
    record_global(warp, mask, places->address, bytes, access);
  if (warp->async && access == ACCESS_READ && warp->cta->cluster->check)
    check_reads_written(warp, in, mask, places->address, bytes);
}

__attribute__((noinline)) static bool find_any_places(Warp *warp, const Instruction *in,
                                                      LaneMask mask, const Transfer *transfer,
                                                      Access access, Places *places) {
  if (find_global_run(warp, mask, transfer, access, places) ||
      find_global_one(warp, mask, transfer, access, places))
    return true;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  LANE_ARRAY uint32_t shared[LANES];
  LaneMask shared_lanes = 0;
  compute_addresses(warp, transfer->address, places->address);
  Range range = range_of(places->address, mask, bytes, bytes);
  Window window = {0};
  Space space = space_of_range(transfer->space, &range, &window.subtract);
  places->run = range.run && space != SPACE_LOCAL;
  places->any_global = range.aligned && space == SPACE_GLOBAL;
  if (range.aligned && find_window(warp, space, &range, bytes, access, &window)) {
    uint64_t zero = (uint64_t)(uintptr_t)window.host - window.subtract;
    for (int lane = 0; lane < LANES; lane++)
      places->at[lane] = (uint8_t *)(uintptr_t)(places->address[lane] + zero +
                                                (uint64_t)(uint32_t)lane * window.stride);
    if (space == SPACE_GLOBAL || space == SPACE_CONST)
      note_global(warp, in, mask, places, bytes, access);
    if (space == SPACE_PARAM && warp->cta->cluster->check)
      check_parameters(warp, range.least - window.subtract,
                       range.most - window.subtract + bytes - 1);
    if (space == SPACE_LOCAL && warp->cta->cluster->check)
      check_local(warp, in, mask, places->at, bytes, access);
    if (space == SPACE_SHARED && (warp->cta->cluster->check || warp->cta->cluster->recorder)) {
      for (int lane = 0; lane < LANES; lane++) shared[lane] = (uint32_t)places->address[lane];
      shared_lanes = mask;
    }
  } else {
    places->run = false;
    if (!places_lane_by_lane(warp, in, mask, transfer, access, places, &shared_lanes, shared))
      return false;
    if (warp->cta->cluster->check) check_local(warp, in, mask, places->at, bytes, access);
  }
  if (shared_lanes && warp->cta->cluster->recorder)
    record_shared(warp, in, shared_lanes, shared, bytes, access);
  if (shared_lanes && warp->cta->cluster->check)
    check_shared(warp, in, shared_lanes, shared, bytes, &transfer->shared_kind);
  return true;
}

/* An atomic operation notes what it did later, when it is known. */
__attribute__((noinline, cold)) static void note_places(LaneMask mask, const Transfer *transfer,
                                                        Access access, const Places *places) {
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  NoteKind kind = access == ACCESS_READ    ? NOTE_READ
                  : access == ACCESS_WRITE ? NOTE_WRITE
                                           : NOTE_KEEP;
  if (transfer->space == SPACE_LOCAL || transfer->space == SPACE_PARAM) return;
  if (places->run)
    note(kind, places->at[0], (size_t)bytes * LANES);
  else
    for (LaneMask left = mask; left; left &= left - 1)
      note(kind, places->at[first_lane(left)], bytes);
}

bool find_places(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                 Access access, Places *places) {
  bool shared = transfer->space == SPACE_SHARED && transfer->address->bytes == 4;
  places->one = false;
  if (!(shared &&
        (find_shared_run(warp, in, mask, transfer, access, places) ||
         find_shared_one(warp, in, mask, transfer, access, places) ||
         ((mask & (mask - 1)) == 0 && find_shared_lane(warp, in, mask, transfer, places)) ||
         find_shared(warp, in, mask, transfer, access, places))) &&
      !find_any_places(warp, in, mask, transfer, access, places))
    return false;
  if (__builtin_expect(notes.wanted, 0)) note_places(mask, transfer, access, places);
  return true;
}

void spread_run(Places *places, const Transfer *transfer) {
  if (!places->run) return;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  for (uint32_t lane = 1; lane < LANES; lane++) places->at[lane] = places->at[0] + lane * bytes;
}
