/* loadstore.c: ld ldu st, and the instructions about addresses: cvta isspacep mapa getctarank,
 * prefetch discard applypriority createpolicy.
 *
 * A warp's access goes in two steps: find the host bytes of every lane (one check for the whole
 * warp where possible), then move them. */
#include "arithmetic/loadstore.h"

#include "base/access.h"
#include "base/memory.h"
#include "state/notes.h"
#include "state/polling.h"
#include "state/cluster.h"

/* ---- Where the bytes are ---- */

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

/* One lane after the other. The first lane with an invalid address ends the launch. */
static bool places_lane_by_lane(Warp *warp, const Instruction *in, LaneMask mask,
                                const Transfer *transfer, Access access, Places *places,
                                LaneMask *shared_lanes, uint32_t *shared) {
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint64_t address = places->address[lane];
    Space space = transfer->space;
    if (space == SPACE_GENERIC) {
      uint64_t own;
      places->at[lane] =
          generic_bytes_at(warp, in, lane, address, bytes, bytes, access, &space, &own);
      if (space == SPACE_SHARED) *shared_lanes |= 1u << lane, shared[lane] = (uint32_t)own;
    } else {
      places->at[lane] = space_bytes_at(warp, in, lane, space, address, bytes, bytes, access);
      if (space == SPACE_SHARED) *shared_lanes |= 1u << lane, shared[lane] = (uint32_t)address;
    }
    if (!places->at[lane]) return false;
    if (space == SPACE_GLOBAL) places->in_order = true;
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

static AccessKind access_kind(const Transfer *transfer, Access access) {
  return (AccessKind){.access = access,
                      .strong = transfer->strong,
                      .acquire = transfer->acquire,
                      .release = transfer->release,
                      .is_volatile = transfer->kind.flags & GLOBAL_VOLATILE,
                      .lane_bytes = access == ACCESS_WRITE ? lane_bytes : NULL};
}

/* Addresses of shared memory are short: the host's vector instructions check them. False: some lane
 * is misaligned or outside one CTA's memory, or the address is in a 64-bit register. */
static bool find_shared(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                        Access access, Places *places) {
  if (transfer->space != SPACE_SHARED || transfer->address->bytes != 4) return false;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  uint32_t offset = (uint32_t)transfer->address->offset;
  const uint32_t *base = column_u32(warp, transfer->address->slot);
  uint32_t first = base[first_lane(mask)] + offset, least = first, most = first, low_bits = 0;
  LANE_ARRAY uint32_t address[LANES];
  uint32_t different = ~mask;
  for (uint32_t lane = 0; lane < LANES; lane++)
    different |= (base[lane] + offset) ^ (first + lane * bytes);
  bool run = different == 0;
  if (run) {
    most = first + (LANES - 1) * bytes;
    low_bits = first;
    if (most < first) return false;
  } else {
    for (int lane = 0; lane < LANES; lane++) {
      uint32_t here = base[lane] + offset;
      address[lane] = ((mask >> lane) & 1u) ? here : first;
      least = address[lane] < least ? address[lane] : least;
      most = address[lane] > most ? address[lane] : most;
      low_bits |= address[lane];
    }
  }
  const Cta *cta = shared_address_cta(warp, least);
  if ((low_bits & (bytes - 1)) || !cta || SHARED_RANK(least) != SHARED_RANK(most) ||
      SHARED_OFFSET(most) >= cta->shared_bytes || cta->shared_bytes - SHARED_OFFSET(most) < bytes)
    return false;
  places->run = run;
  places->in_order = false;
  AccessKind kind = access_kind(transfer, access);
  if (run) {
    places->at[0] = cta->shared + SHARED_OFFSET(first);
    if (__builtin_expect(warp->watched & WATCH_STEPS, 0))
      record_shared_run(warp, in, first, bytes, access);
    if (cta->cluster->check) check_shared_run(warp, in, first, bytes, kind);
    return true;
  }
  uint8_t *start = cta->shared + SHARED_OFFSET(least);
  for (int lane = 0; lane < LANES; lane++) places->at[lane] = start + (address[lane] - least);
  if (__builtin_expect(warp->watched & WATCH_STEPS, 0))
    record_shared(warp, in, mask, address, bytes, access);
  if (cta->cluster->check) check_shared(warp, in, mask, address, bytes, kind);
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
  places->in_order = true;
  return true;
}

static bool look_for_places(Warp *warp, const Instruction *in, LaneMask mask,
                            const Transfer *transfer, Access access, Places *places) {
  if (find_shared(warp, in, mask, transfer, access, places) ||
      find_global_run(warp, mask, transfer, access, places))
    return true;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  LANE_ARRAY uint32_t shared[LANES];
  LaneMask shared_lanes = 0;
  compute_addresses(warp, transfer->address, places->address);
  Range range = range_of(places->address, mask, bytes, bytes);
  Space space = transfer->space;
  uint64_t base = 0;
  places->run = range.run;
  places->in_order = false;
  if (space == SPACE_GENERIC &&
      (range.least & GENERIC_TAG_MASK) == (range.most & GENERIC_TAG_MASK)) {
    uint64_t tag = range.least & GENERIC_TAG_MASK;
    if (tag == GENERIC_SHARED && !((range.most & ~tag) >> 32))
      space = SPACE_SHARED, base = tag;
    else if (tag == GENERIC_LOCAL)
      space = SPACE_LOCAL, base = tag;
    else if (tag == GENERIC_PARAM)
      space = SPACE_PARAM, base = tag;
    else
      space = SPACE_GLOBAL;
  }
  bool good = range.aligned;
  uint8_t *host = NULL;
  size_t stride = 0; /* .local: each lane has its own memory */
  uint64_t subtract = base;
  switch (good ? space : SPACE_GENERIC) {
    case SPACE_SHARED: {
      uint32_t least = (uint32_t)(range.least - base), most = (uint32_t)(range.most - base);
      Cta *cta = shared_address_cta(warp, least);
      good = cta && (range.most - base) >> 32 == 0 && SHARED_RANK(least) == SHARED_RANK(most) &&
             SHARED_OFFSET(most) < cta->shared_bytes &&
             cta->shared_bytes - SHARED_OFFSET(most) >= bytes;
      if (!good) break;
      host = cta->shared;
      subtract += (uint64_t)SHARED_RANK(least) << 24;
      if (cta->cluster->check || cta->cluster->recorder) {
        for (int lane = 0; lane < LANES; lane++) shared[lane] = (uint32_t)places->address[lane];
        shared_lanes = mask;
      }
      break;
    }
    case SPACE_GLOBAL:
    case SPACE_CONST:
      good = all_in_global(&range, bytes, access);
      places->in_order = space == SPACE_GLOBAL;
      if (good && space == SPACE_GLOBAL && warp->cta->cluster->recorder)
        record_global(warp, mask, places->address, bytes, access);
      if (good && warp->async && access == ACCESS_READ && warp->cta->cluster->check)
        check_reads_written(warp, in, mask, places->address, bytes);
      break;
    case SPACE_LOCAL:
      good =
          range.most - base < warp->local_bytes && warp->local_bytes - (range.most - base) >= bytes;
      host = warp->local;
      stride = warp->local_bytes;
      places->run = false;
      break;
    case SPACE_PARAM: {
      const Launch *launch = warp->cta->cluster->launch;
      good = access == ACCESS_READ && range.most - base < launch->parameter_bytes &&
             launch->parameter_bytes - (range.most - base) >= bytes;
      host = (uint8_t *)(uintptr_t)launch->parameters;
      break;
    }
    default:
      good = false;
  }
  if (good) {
    uint64_t zero = (uint64_t)(uintptr_t)host - subtract;
    for (int lane = 0; lane < LANES; lane++)
      places->at[lane] =
          (uint8_t *)(uintptr_t)(places->address[lane] + zero + (uint64_t)(uint32_t)lane * stride);
  } else {
    places->run = false;
    if (!places_lane_by_lane(warp, in, mask, transfer, access, places, &shared_lanes, shared))
      return false;
  }
  if (shared_lanes && warp->cta->cluster->recorder)
    record_shared(warp, in, shared_lanes, shared, bytes, access);
  if (shared_lanes && warp->cta->cluster->check) {
    AccessKind kind = access_kind(transfer, access);
    check_shared(warp, in, shared_lanes, shared, bytes, kind);
  }
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
  if (!look_for_places(warp, in, mask, transfer, access, places)) return false;
  if (__builtin_expect(notes_wanted, 0)) note_places(mask, transfer, access, places);
  return true;
}

void spread_run(Places *places, const Transfer *transfer) {
  if (!places->run) return;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  for (uint32_t lane = 1; lane < LANES; lane++) places->at[lane] = places->at[0] + lane * bytes;
}

/* ---- Moving them ---- */

#define FOR_LANES(mask) for (LaneMask left = (mask); left; left &= left - 1)

/* Moves every lane's words from memory into registers, or back. */
__attribute__((always_inline)) static inline void move_words(const Warp *warp,
                                                             const Transfer *transfer, int count,
                                                             uint8_t *const *at, bool loads) {
  uint32_t *column[4];
  for (int i = 0; i < count; i++) column[i] = column_u32(warp, transfer->element[i].slot);
#pragma GCC unroll 4
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < count; i++) {
      if (loads)
        memcpy(&column[i][lane], at[lane] + 4 * i, 4);
      else
        memcpy(at[lane] + 4 * i, &column[i][lane], 4);
    }
}
static void load_words(const Warp *warp, const Transfer *transfer, uint8_t *const *at) {
  if (transfer->element_count == 1)
    move_words(warp, transfer, 1, at, true);
  else if (transfer->element_count == 2)
    move_words(warp, transfer, 2, at, true);
  else
    move_words(warp, transfer, 4, at, true);
}
static void store_words(const Warp *warp, const Transfer *transfer, uint8_t *const *at) {
  if (transfer->element_count == 1)
    move_words(warp, transfer, 1, at, false);
  else if (transfer->element_count == 2)
    move_words(warp, transfer, 2, at, false);
  else
    move_words(warp, transfer, 4, at, false);
}

/* Loads one element of every lane into its register. Short values are extended. */
static void load_element(Warp *warp, LaneMask mask, const Transfer *transfer, int index,
                         uint8_t *const *at) {
  uint32_t offset = (uint32_t)index * transfer->element_bytes;
  unsigned slot = transfer->element[index].slot;
  bool sign = type_signed(transfer->type);
  if (transfer->element[index].column_bytes == 16) {
    uint8_t *column = (uint8_t *)column_u32(warp, slot);
    FOR_LANES(mask) memcpy(column + first_lane(left) * 16, at[first_lane(left)] + offset, 16);
    return;
  }
  if (transfer->element_bytes == 4 && transfer->element[index].column_bytes == 4) {
    uint32_t *column = column_u32(warp, slot);
    FOR_LANES(mask) memcpy(&column[first_lane(left)], at[first_lane(left)] + offset, 4);
    return;
  }
  if (transfer->element_bytes == 8) {
    uint64_t *column = column_u64(warp, slot);
    FOR_LANES(mask) memcpy(&column[first_lane(left)], at[first_lane(left)] + offset, 8);
    return;
  }
  uint32_t shift = 64 - 8u * transfer->element_bytes;
  uint64_t cut = transfer->element[index].register_bytes == 2 ? 0xffffu : 0xffffffffu;
  FOR_LANES(mask) {
    int lane = first_lane(left);
    uint64_t value = 0;
    memcpy(&value, at[lane] + offset, transfer->element_bytes);
    if (sign) value = (uint64_t)((int64_t)(value << shift) >> shift);
    if (transfer->element[index].column_bytes == 8)
      column_u64(warp, slot)[lane] = value;
    else
      column_u32(warp, slot)[lane] = (uint32_t)(value & cut);
  }
}

typedef struct {
  GlobalStored values;
  const Warp *warp;
  const Transfer *transfer;
  const Places *places;
} StoredValues;

/* Whether a store would leave `bytes` bytes of a lane as they are. */
static bool stores_same(const GlobalStored *values, int lane, uint32_t offset, uint32_t bytes) {
  const StoredValues *stored = (const StoredValues *)(const void *)values;
  const Transfer *transfer = stored->transfer;
  uint32_t size = transfer->element_bytes, all = size * transfer->element_count;
  const uint8_t *at =
      stored->places->run ? stored->places->at[0] + (uint32_t)lane * all : stored->places->at[lane];
  uint8_t value[64];
  for (int i = 0; i < transfer->element_count; i++)
    memcpy(value + (uint32_t)i * size,
           (const uint8_t *)column_u32(stored->warp, transfer->element[i].slot) +
               (size_t)lane * transfer->element[i].column_bytes,
           size);
  return memcmp(at + offset, value + offset, bytes) == 0;
}

/* Most lanes' addresses of a run are not filled in. */
static const uint64_t *addresses_of(const Transfer *transfer, const Places *places,
                                    uint64_t *spread) {
  if (!places->run) return places->address;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  for (uint32_t lane = 0; lane < LANES; lane++) spread[lane] = places->address[0] + lane * bytes;
  return spread;
}

void tell_global(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                 const Places *places) {
  if (!warp->cta->cluster->launch->global) return;
  const GlobalKind *kind = &transfer->kind;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  if (kind->reach == REACH_PLAIN) {
    StoredValues stored = {{stores_same}, warp, transfer, places};
    check_global(warp, in, mask, places->address, places->run, bytes, kind,
                 kind->access == ACCESS_WRITE ? &stored.values : NULL);
    return;
  }
  uint64_t spread[LANES];
  const uint64_t *addresses = addresses_of(transfer, places, spread);
  if (kind->access != ACCESS_WRITE) check_global_acquire(warp, mask, addresses, kind);
  StoredValues stored = {{stores_same}, warp, transfer, places};
  check_global(warp, in, mask, addresses, false, bytes, kind,
               kind->access == ACCESS_WRITE ? &stored.values : NULL);
  check_global_release(warp, mask, addresses, kind);
}

void tell_global_read(Warp *warp, LaneMask mask, const Transfer *transfer, const Places *places) {
  if (!warp->cta->cluster->launch->global || transfer->kind.reach == REACH_PLAIN) return;
  uint64_t spread[LANES];
  check_global_acquire(warp, mask, addresses_of(transfer, places, spread), &transfer->kind);
}

/* For reports: what a warp that spins without progress reads. */
void tell_read(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
               const Places *places) {
  int lane = first_lane(mask);
  uint64_t address = lane_address(warp, transfer->address, lane);
  if (transfer->space == SPACE_CONST || transfer->space == SPACE_LOCAL ||
      transfer->space == SPACE_PARAM || (address & GENERIC_TAG_MASK) == GENERIC_LOCAL)
    return;
  polling_read(warp, in, address, places->in_order);
}

void tell_moved(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                Places *places, Access access) {
  MovedRegister registers[16];
  int count = 0;
  for (int i = 0; i < transfer->element_count; i++)
    if (transfer->element[i].wanted || access != ACCESS_READ)
      registers[count++] = (MovedRegister){.slot = transfer->element[i].slot,
                                           .column_bytes = transfer->element[i].column_bytes,
                                           .memory_bytes = transfer->element_bytes,
                                           .offset = (uint8_t)(i * transfer->element_bytes),
                                           .sign = type_signed(transfer->type)};
  spread_run(places, transfer);
  check_undefined_moved(warp, in, mask, places->at, registers, count, access);
}

/* Reports the load to whoever watches the warp. */
__attribute__((noinline, cold)) static void show_load(Warp *warp, const Instruction *in,
                                                      LaneMask mask, const Transfer *transfer,
                                                      Places *places) {
  if (polling_watches(warp)) tell_read(warp, in, mask, transfer, places);
  if (warp->watched & WATCH_UNDEFINED) tell_moved(warp, in, mask, transfer, places, ACCESS_READ);
}

static void load_values(Warp *warp, LaneMask mask, const Transfer *transfer, Places *places) {
  if (places->run && transfer->element_count == 1) {
    if (transfer->element_bytes == 4 && transfer->element[0].column_bytes == 4) {
      memcpy(column_u32(warp, transfer->element[0].slot), places->at[0], LANES * 4);
      return;
    }
    if (transfer->element_bytes == 8) {
      memcpy(column_u64(warp, transfer->element[0].slot), places->at[0], LANES * 8);
      return;
    }
  }
  spread_run(places, transfer);
  if (transfer->words && mask == ~0u)
    load_words(warp, transfer, places->at);
  else
    for (int i = 0; i < transfer->element_count; i++)
      if (transfer->element[i].wanted) load_element(warp, mask, transfer, i, places->at);
}

static StepResult load_lanes(Warp *warp, const Instruction *in, LaneMask mask) {
  const Transfer *transfer = in->decoded;
  Places places;
  if (!find_places(warp, in, mask, transfer, ACCESS_READ, &places)) return STEP_FAULT;
  if (transfer->strong && places.in_order && !cluster_has_turn(warp)) return STEP_BLOCKED;
  bool checks = places.in_order && warp->cta->cluster->check;
  if (checks) tell_global(warp, in, mask, transfer, &places);
  if (checks && transfer->strong) check_strong_global(warp, in, mask);
  if (__builtin_expect(warp->watched, 0)) show_load(warp, in, mask, transfer, &places);
  load_values(warp, mask, transfer, &places);
  if (!transfer->strong) return STEP_NEXT;
  if (checks) tell_global_read(warp, mask, transfer, &places);
  return STEP_YIELD;
}

static void store_element(Warp *warp, LaneMask mask, const Transfer *transfer, int index,
                          uint8_t *const *at) {
  uint32_t offset = (uint32_t)index * transfer->element_bytes;
  uint32_t bytes = transfer->element_bytes, width = transfer->element[index].column_bytes;
  const uint8_t *column = (const uint8_t *)column_u32(warp, transfer->element[index].slot);
  if (bytes == 4 && width == 4) {
    FOR_LANES(mask) memcpy(at[first_lane(left)] + offset, column + first_lane(left) * 4, 4);
  } else if (bytes == 8) {
    FOR_LANES(mask) memcpy(at[first_lane(left)] + offset, column + first_lane(left) * 8, 8);
  } else {
    FOR_LANES(mask)
    memcpy(at[first_lane(left)] + offset, column + (size_t)first_lane(left) * width, bytes);
  }
}

/* The checker must know when a tensor map is overwritten. */
static void tell_tensor_maps(Warp *warp, const Instruction *in, LaneMask mask,
                             const Transfer *transfer, const Places *places) {
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  if (places->run) {
    check_tensor_map_written(warp, in, 0, places->address[0], bytes * LANES);
    return;
  }
  FOR_LANES(mask) {
    int lane = first_lane(left);
    if ((places->address[lane] & GENERIC_TAG_MASK) == 0)
      check_tensor_map_written(warp, in, lane, places->address[lane], bytes);
  }
}

void tell_change(const Warp *warp, const uint8_t *at, size_t bytes) {
  uint64_t halves[2] = {0};
  memcpy(halves, at, bytes);
  polling_changed(warp->cta->cluster, (uint64_t)(uintptr_t)at, halves[0] + 31 * halves[1]);
}

/* Each lane's bytes before a store. Whether a store changes them matters to warps that wait for
 * changes, and to the search for polls that never end. */
typedef struct {
  uint8_t bytes[LANES][16];
} Before;
static void keep_before(Before *before, LaneMask mask, size_t bytes, const Places *places) {
  FOR_LANES(mask) memcpy(before->bytes[first_lane(left)], places->at[first_lane(left)], bytes);
}
static bool tell_changes(const Warp *warp, const Before *before, LaneMask mask, size_t bytes,
                         const Places *places) {
  bool changed = false;
  FOR_LANES(mask) {
    const uint8_t *at = places->at[first_lane(left)];
    if (memcmp(before->bytes[first_lane(left)], at, bytes) == 0) continue;
    changed = true;
    if (polling_watches(warp)) tell_change(warp, at, bytes);
  }
  return changed;
}

static inline void write_places(Warp *warp, LaneMask mask, const Transfer *transfer,
                                Places *places) {
  if (places->run && transfer->element_count == 1 && transfer->element_bytes >= 4 &&
      transfer->element_bytes == transfer->element[0].column_bytes) {
    memcpy(places->at[0], column_u32(warp, transfer->element[0].slot),
           (size_t)LANES * transfer->element_bytes);
    return;
  }
  spread_run(places, transfer);
  if (transfer->words && mask == ~0u)
    store_words(warp, transfer, places->at);
  else
    for (int i = 0; i < transfer->element_count; i++)
      store_element(warp, mask, transfer, i, places->at);
}

/* The same, and reports what the store changes. */
__attribute__((noinline)) static void write_and_tell(Warp *warp, const Instruction *in,
                                                     LaneMask mask, const Transfer *transfer,
                                                     Places *places) {
  Before before;
  size_t bytes = (size_t)transfer->element_bytes * transfer->element_count;
  bool compares = transfer->strong || polling_watches(warp);
  if (compares) {
    spread_run(places, transfer);
    keep_before(&before, mask, bytes, places);
  }
  if (warp->watched & WATCH_UNDEFINED) tell_moved(warp, in, mask, transfer, places, ACCESS_WRITE);
  write_places(warp, mask, transfer, places);
  if (compares && tell_changes(warp, &before, mask, bytes, places) && transfer->strong)
    cluster_changed(warp->cta->cluster);
}

static StepResult store_lanes(Warp *warp, const Instruction *in, LaneMask mask) {
  const Transfer *transfer = in->decoded;
  Places places;
  if (!find_places(warp, in, mask, transfer, ACCESS_WRITE, &places)) return STEP_FAULT;
  if (transfer->strong && places.in_order && !cluster_has_turn(warp)) return STEP_BLOCKED;
  if (places.in_order && warp->cta->cluster->check) {
    tell_global(warp, in, mask, transfer, &places);
    if (transfer->strong) check_strong_global(warp, in, mask);
  }
  if (__builtin_expect(transfer->strong || warp->watched, 0))
    write_and_tell(warp, in, mask, transfer, &places);
  else
    write_places(warp, mask, transfer, &places);
  if (places.in_order && warp->cta->cluster->check)
    tell_tensor_maps(warp, in, mask, transfer, &places);
  return STEP_NEXT;
}

/* ---- Decoding ---- */
Space form_space(Form *form) {
  static const struct {
    const char *name;
    Space space;
  } spaces[] = {
      {"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},
      {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED},
      {"const", SPACE_CONST},        {"local", SPACE_LOCAL},
      {"param", SPACE_PARAM},        {"param::entry", SPACE_PARAM},
      {"param::func", SPACE_LOCAL},
  };
  for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
    if (form_take(form, spaces[i].name)) return spaces[i].space;
  return SPACE_GENERIC;
}

void form_cache_hints(Form *form, int first_extra_operand) {
  static const char *const known[] = {"ca",
                                      "cg",
                                      "cs",
                                      "lu",
                                      "cv",
                                      "wb",
                                      "wt",
                                      "L1::evict_normal",
                                      "L1::evict_unchanged",
                                      "L1::evict_first",
                                      "L1::evict_last",
                                      "L1::no_allocate",
                                      "L2::evict_normal",
                                      "L2::evict_first",
                                      "L2::evict_last",
                                      "L2::64B",
                                      "L2::128B",
                                      "L2::256B",
                                      NULL};
  while (form_choose(form, known) >= 0) continue;
  int extra = form_take(form, "L2::cache_hint") ? 1 : 0;
  if (!form_operands(form, first_extra_operand, first_extra_operand + extra)) return;
  if (extra) form_source(form, first_extra_operand, TYPE_B64);
}

void form_order(Form *form, Transfer *transfer) {
  static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
  if (form_take(form, "weak")) return; /* never of atomics */
  transfer->acquire = form_take(form, "acquire");
  transfer->release = form_take(form, "release");
  if (form_take(form, "acq_rel")) transfer->acquire = transfer->release = true;
  bool relaxed = form_take(form, "mmio"); /* written as .mmio.relaxed.sys */
  relaxed |= form_take(form, "relaxed");
  bool is_volatile = form_take(form, "volatile");
  transfer->strong = transfer->acquire || transfer->release || relaxed || is_volatile;
  int scope = form_choose(form, scopes);
  GlobalKind *kind = &transfer->kind;
  kind->reach = (uint8_t)(is_volatile ? REACH_SYSTEM : scope < 0 ? REACH_GPU : REACH_CTA + scope);
  kind->flags = is_volatile ? GLOBAL_VOLATILE : 0;
  kind->acquire = transfer->acquire;
  kind->release = transfer->release;
}

static bool memory_type(Type type) {
  return (type >= TYPE_B8 && type <= TYPE_S64) || type == TYPE_F32 || type == TYPE_F64;
}

void form_elements(Form *form, Transfer *transfer, int index, bool destination) {
  const Operand *operand = form_operand(form, index);
  bool vector = operand->kind == OPERAND_VECTOR;
  uint32_t count = vector ? operand->count : 1;
  if (count != transfer->element_count) {
    form_fail(form, "the vector has another number of elements than the instruction says");
    return;
  }
  for (uint32_t i = 0; i < count && !form->failed; i++) {
    const Operand *element = vector ? &operand->elements[i] : operand;
    transfer->element[i].wanted = element->kind != OPERAND_SINK;
    if (element->kind == OPERAND_SINK) {
      if (!destination) form_fail(form, "\"_\" has no value to store");
      continue;
    }
    if (element->kind != OPERAND_REGISTER || (destination && element->constant)) {
      form_fail(form,
                destination ? "a destination must be a register" : "a source must be a register");
      return;
    }
    if (element->constant) {
      transfer->element[i].slot = form_value(form, element, transfer->type);
      uint32_t width = transfer->element_bytes < 4 ? 4 : transfer->element_bytes;
      transfer->element[i].column_bytes = transfer->element[i].register_bytes = (uint8_t)width;
      continue;
    }
    /* Loads and stores may name a wider register than their type. */
    if (element->bytes < transfer->element_bytes ||
        (transfer->element_bytes >= 8 && element->bytes != transfer->element_bytes) ||
        (element->bytes == 16) != (transfer->element_bytes == 16)) {
      form_fail(form, "a register's width does not fit the type");
      return;
    }
    transfer->element[i].slot = element->slot;
    transfer->element[i].register_bytes = element->bytes;
    transfer->element[i].column_bytes = element->bytes <= 4 ? 4 : element->bytes;
  }
}

static const Operand *address_operand(Form *form, int index) {
  const Operand *operand = form_operand(form, index);
  if (!form->failed && operand->kind != OPERAND_ADDRESS)
    form_fail(form, "an operand should be an address in brackets");
  return operand;
}

static bool decode_transfer(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                            bool is_load) {
  static const char *const vectors[] = {"v2", "v4", NULL};
  Form form = form_begin(decoder, statement, out, 1);
  Transfer *transfer = decoder_allocate(decoder, sizeof *transfer);
  out->decoded = transfer;
  form_order(&form, transfer);
  transfer->kind.access = is_load ? ACCESS_READ : ACCESS_WRITE;
  if (!transfer->strong) transfer->kind.reach = REACH_PLAIN;
  transfer->space = form_space(&form);
  bool constant_path = is_load && form_take(&form, "nc");
  if (strcmp(statement->modifiers[0], "ldu") == 0) constant_path = true;
  if (constant_path && transfer->space != SPACE_GLOBAL && transfer->space != SPACE_GENERIC)
    return form_fail(&form, ".nc and ldu are for global memory");
  if (constant_path) transfer->kind.flags |= GLOBAL_NON_COHERENT;
  int vector = form_choose(&form, vectors);
  transfer->element_count = vector < 0 ? 1 : vector == 0 ? 2 : 4;
  transfer->type = form_type(&form);
  transfer->element_bytes = (uint8_t)type_bytes(transfer->type);
  if (!memory_type(transfer->type)) return form_fail(&form, "no such type for loads and stores");
  if (transfer->element_bytes * transfer->element_count > 16)
    return form_fail(&form, "a thread moves at most 16 bytes on sm_90");
  if (is_load && transfer->release) return form_fail(&form, "a load cannot release");
  if (!is_load && transfer->acquire) return form_fail(&form, "a store cannot acquire");
  if (!is_load && (transfer->space == SPACE_CONST || transfer->space == SPACE_PARAM))
    return form_fail(&form, "this space cannot be stored to");
  form_cache_hints(&form, 2);
  if (form.failed) return false;
  form_elements(&form, transfer, is_load ? 0 : 1, is_load);
  transfer->words = transfer->element_bytes == 4;
  for (int i = 0; i < transfer->element_count; i++)
    transfer->words &= transfer->element[i].wanted && transfer->element[i].column_bytes == 4;
  transfer->address = address_operand(&form, is_load ? 1 : 0);
  return form_end(&form, is_load ? load_lanes : store_lanes);
}
bool decode_ld(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_transfer(decoder, statement, out, true);
}
bool decode_st(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_transfer(decoder, statement, out, false);
}

/* ---- Addresses: cvta isspacep mapa getctarank ---- */
HANDLER1(cvta_same, 64, 64, a)
HANDLER1(cvta_shared, 64, 64, GENERIC_SHARED | (uint32_t)a)
/* The address of a function's .local symbol: the frame's address plus the symbol's offset. */
HANDLER1(cvta_local, 64, 64, GENERIC_LOCAL | (a + (uint64_t)in->operand[1].offset))
HANDLER1(cvta_param, 64, 64, GENERIC_PARAM | a)
HANDLER1(cvta_to_shared, 64, 64, (uint32_t)a)
HANDLER1(cvta_to_tagged, 64, 64, a & ~GENERIC_TAG_MASK)

bool decode_cvta(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 1);
  bool to = form_take(&form, "to");
  Space space = form_space(&form);
  Type type = form_type(&form);
  if (type != TYPE_U64) return form_fail(&form, "addresses have 64 bits: cvta is .u64");
  if (!form_columns(&form, type, type, TYPE_NONE, TYPE_NONE)) return false;
  switch (space) {
    case SPACE_GLOBAL:
    case SPACE_CONST:
      return form_end(&form, cvta_same);
    case SPACE_SHARED:
      return form_end(&form, to ? cvta_to_shared : cvta_shared);
    case SPACE_LOCAL:
      return form_end(&form, to ? cvta_to_tagged : cvta_local);
    case SPACE_PARAM:
      return form_end(&form, to ? cvta_to_tagged : cvta_param);
    default:
      return form_fail(&form, "cvta names a space");
  }
}

typedef enum {
  IN_GLOBAL,
  IN_CONST,
  IN_SHARED_CTA,
  IN_SHARED_CLUSTER,
  IN_LOCAL,
  IN_PARAM
} SpaceQuery;
static bool address_is_in(const Warp *warp, uint64_t address, SpaceQuery query) {
  uint64_t tag = address & GENERIC_TAG_MASK;
  const Allocation *found = NULL;
  switch (query) {
    case IN_SHARED_CTA:
      return tag == GENERIC_SHARED && (address & ~tag) >> 24 == warp->cta->rank;
    case IN_SHARED_CLUSTER:
      return tag == GENERIC_SHARED && (address & ~tag) >> 24 < warp->cta->cluster->cta_count;
    case IN_LOCAL:
      return tag == GENERIC_LOCAL;
    case IN_PARAM:
      return tag == GENERIC_PARAM;
    default:
      break;
  }
  if (tag != 0) return false;
  found = memory_find(address);
  return (found && found->read_only) == (query == IN_CONST);
}
static StepResult isspacep(Warp *warp, const Instruction *in, LaneMask mask) {
  const uint64_t *address = column_u64(warp, in->a);
  LaneMask lanes = 0;
  FOR_LANES(mask) {
    int lane = first_lane(left);
    if (address_is_in(warp, address[lane], (SpaceQuery)in->b)) lanes |= 1u << lane;
  }
  store_predicate(warp, &in->operand[0], mask, lanes);
  return STEP_NEXT;
}
bool decode_isspacep(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const struct {
    const char *name;
    SpaceQuery query;
  } spaces[] = {{"global", IN_GLOBAL},
                {"const", IN_CONST},
                {"shared", IN_SHARED_CTA},
                {"shared::cta", IN_SHARED_CTA},
                {"shared::cluster", IN_SHARED_CLUSTER},
                {"local", IN_LOCAL},
                {"param", IN_PARAM},
                {"param::entry", IN_PARAM}};
  Form form = form_begin(decoder, statement, out, 1);
  if (!form_operands(&form, 2, 2)) return false;
  form_predicate_destination(&form, 0);
  out->a = form_source(&form, 1, TYPE_U64);
  for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
    if (!form_take(&form, spaces[i].name)) continue;
    out->b = spaces[i].query;
    return form_end(&form, isspacep);
  }
  return form_fail(&form, "isspacep names a space");
}

/* The same offset in another CTA of the cluster. The rank is the top byte of the 32 bits. */
HANDLER2(mapa_shared_u32, 32, 32, 32, (a & 0xffffffu) | b << 24)
HANDLER2(mapa_shared_u64, 64, 64, 32, (uint32_t)((a & 0xffffffu) | b << 24))
HANDLER2(mapa_generic_u64, 64, 64, 32, (a & ~0xff000000ull) | (uint64_t)(b & 0xffu) << 24)
HANDLER1(getctarank_u32, 32, 32, SHARED_RANK(a))
HANDLER1(getctarank_u64, 32, 64, SHARED_RANK(a))

bool decode_mapa(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 1);
  bool rank = strcmp(statement->modifiers[0], "getctarank") == 0;
  bool shared = form_take(&form, "shared::cluster");
  Type type = form_type(&form);
  if (type != TYPE_U32 && type != TYPE_U64) return form_fail(&form, "the type is u32 or u64");
  if (type == TYPE_U32 && !shared) return form_fail(&form, "a generic address has 64 bits");
  if (rank) {
    if (!form_columns(&form, TYPE_U32, type, TYPE_NONE, TYPE_NONE)) return false;
    return form_end(&form, type == TYPE_U64 ? getctarank_u64 : getctarank_u32);
  }
  if (!form_columns(&form, type, type, TYPE_U32, TYPE_NONE)) return false;
  if (type == TYPE_U32) return form_end(&form, mapa_shared_u32);
  return form_end(&form, shared ? mapa_shared_u64 : mapa_generic_u64);
}

/* ---- Hints ---- */
static StepResult no_effect(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)warp, (void)in, (void)mask;
  return STEP_NEXT;
}

bool decode_prefetch(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const char *const levels[] = {"L1",        "L2", "L2::evict_last", "L2::evict_normal",
                                       "tensormap", NULL};
  Form form = form_begin(decoder, statement, out, 1);
  form_space(&form);
  if (form_choose(&form, levels) < 0) return form_fail(&form, "prefetch names a cache level");
  if (!form_operands(&form, 1, 1)) return false;
  address_operand(&form, 0);
  return form_end(&form, no_effect);
}

/* discard leaves the 128 bytes undefined: here they become poison. */
static StepResult discard(Warp *warp, const Instruction *in, LaneMask mask) {
  FOR_LANES(mask) {
    int lane = first_lane(left);
    uint64_t address = lane_address(warp, &in->operand[0], lane);
    uint8_t *bytes = generic_bytes_at(warp, in, lane, address, 128, 128, ACCESS_WRITE, NULL, NULL);
    if (!bytes) return STEP_FAULT;
    note(NOTE_WRITE, bytes, 128);
    memset(bytes, 0xff, 128);
  }
  return STEP_NEXT;
}

bool decode_line_hint(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 1);
  bool is_discard = strcmp(statement->modifiers[0], "discard") == 0;
  form_take(&form, "global");
  if (!form_take(&form, is_discard ? "L2" : "L2::evict_normal"))
    return form_fail(&form, "discard is .L2, applypriority is .L2::evict_normal");
  if (!form_operands(&form, 2, 2)) return false;
  address_operand(&form, 0);
  if (!out->operand[1].constant || out->operand[1].constant_value != 128)
    return form_fail(&form, "the size is 128");
  return form_end(&form, is_discard ? discard : no_effect);
}

/* A cache policy is opaque to programs and nothing here reads it. The bits of the fractional form
 * are the GPU's: primary priority, secondary priority, and the fraction in sixteenths, less one. */
static uint64_t policy_bits(int primary, int secondary, const Operand *fraction) {
  double share = 1.0;
  uint32_t narrow_bits = fraction ? (uint32_t)fraction->constant_value : 0;
  float narrow;
  memcpy(&narrow, &narrow_bits, 4);
  if (fraction && fraction->constant && fraction->floating)
    share = fraction->bytes == 4 ? (double)narrow : double_of(fraction->constant_value);
  uint64_t sixteenths = share > 1.0 / 16 && share <= 1.0 ? (uint64_t)(share * 16) : 1;
  return 1ull << 60 | (uint64_t)(uint32_t)primary << 57 | (uint64_t)(uint32_t)secondary << 56 |
         (sixteenths - 1) << 52;
}
bool decode_createpolicy(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const char *const priorities[] = {"L2::evict_unchanged", "L2::evict_first",
                                           "L2::evict_last", "L2::evict_normal", NULL};
  Form form = form_begin(decoder, statement, out, 1);
  bool fractional = form_take(&form, "fractional"), range = form_take(&form, "range");
  bool convert = form_take(&form, "cvt");
  if (convert) form_take(&form, "L2");
  if (range) form_take(&form, "global");
  int primary = form_choose(&form, priorities);
  if (!convert && primary < 0) return form_fail(&form, "createpolicy names an eviction priority");
  int secondary = form_choose(&form, priorities); /* evict_unchanged, or evict_first */
  for (int i = 0; secondary >= 0 && i < statement->modifier_count; i++) {
    if (strcmp(statement->modifiers[i], priorities[primary]) == 0) break;
    if (strcmp(statement->modifiers[i], priorities[secondary]) != 0) continue;
    int written_first = secondary; /* form_choose follows the order of the list, not of the text */
    secondary = primary;
    primary = written_first;
    break;
  }
  if (secondary > 1) return form_fail(&form, "the second priority is unchanged or first");
  if (form_type(&form) != TYPE_B64) return form_fail(&form, "a cache policy is .b64");
  if (fractional + range + convert != 1)
    return form_fail(&form, "createpolicy is .fractional, .range or .cvt");
  if (!form_operands(&form, fractional ? 1 : convert ? 2 : 4, fractional ? 2 : convert ? 2 : 4))
    return false;
  out->d = form_destination(&form, 0, TYPE_B64);
  uint64_t value = policy_bits(primary < 0 ? 0 : primary, secondary < 0 ? 0 : secondary,
                               fractional && out->operand_count > 1 ? &out->operand[1] : NULL);
  out->a = convert ? form_source(&form, 1, TYPE_B64) : decoder_constant(decoder, value, 8);
  return form_end(&form, cvta_same);
}
