/* loadstore.c: ld, ldu and st. A warp's access goes in two steps: find the host bytes of every lane
 * (places.c), then move them. */
#include "arithmetic/loadstore.h"

#include "base/fill.h"
#include "base/memory.h"
#include "state/cluster.h"
#include "state/polling.h"
#include "trial/trial.h"

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

/* Whether a store would leave `bytes` bytes of a lane as they are. Another block of the kernel may be writing them on
 * another host thread: that race is the kernel's, and it is what the checker asks about here. */
__attribute__((no_sanitize("thread"))) static bool stores_same(const GlobalStored *values, int lane,
                                                               uint32_t offset, uint32_t bytes) {
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
  for (uint32_t i = offset; i < offset + bytes; i++)
    if (at[i] != value[i]) return false;
  return true;
}

static bool store_alike(const GlobalStored *values, int lane, int other) {
  const StoredValues *stored = (const StoredValues *)(const void *)values;
  const Transfer *transfer = stored->transfer;
  for (int i = 0; i < transfer->element_count; i++) {
    const uint8_t *column = (const uint8_t *)column_u32(stored->warp, transfer->element[i].slot);
    size_t width = transfer->element[i].column_bytes;
    if (memcmp(column + (size_t)lane * width, column + (size_t)other * width,
               transfer->element_bytes))
      return false;
  }
  return true;
}

/* Most lanes' addresses of a run are not filled in. */
static const uint64_t *addresses_of(const Transfer *transfer, const Places *places,
                                    uint64_t *spread) {
  if (!places->run) return places->address;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  for (uint32_t lane = 0; lane < LANES; lane++) spread[lane] = places->address[0] + lane * bytes;
  return spread;
}

static void notify_races(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                         const Places *places, uint32_t bytes) {
  const GlobalKind *kind = &transfer->kind;
  if (kind->reach == REACH_PLAIN) {
    StoredValues stored = {{stores_same, store_alike}, warp, transfer, places};
    check_global(warp, in, mask, places->address, places->run, bytes, kind,
                 kind->access == ACCESS_WRITE ? &stored.values : NULL);
    return;
  }
  uint64_t spread[LANES];
  const uint64_t *addresses = addresses_of(transfer, places, spread);
  if (kind->access != ACCESS_WRITE) check_global_acquire(warp, mask, addresses, kind);
  StoredValues stored = {{stores_same, store_alike}, warp, transfer, places};
  check_global(warp, in, mask, addresses, false, bytes, kind,
               kind->access == ACCESS_WRITE ? &stored.values : NULL);
  check_global_release(warp, mask, addresses, kind);
}

void notify_global(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                   const Places *places) {
  if (!warp->cta->cluster->launch->global) return;
  Access access = (Access)transfer->kind.access;
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  LaneMask looked_at = places->one ? mask & -mask : mask;
  if (access == ACCESS_READ)
    check_unwritten(warp, looked_at, places->address, places->run, bytes, access);
  notify_races(warp, in, mask, transfer, places, bytes);
  /* Only now: memory that nothing has written before this need not be kept for a trial. */
  if (access == ACCESS_WRITE)
    check_unwritten(warp, looked_at, places->address, places->run, bytes, access);
}

void notify_global_read(Warp *warp, LaneMask mask, const Transfer *transfer, const Places *places) {
  if (!warp->cta->cluster->launch->global || transfer->kind.reach == REACH_PLAIN) return;
  uint64_t spread[LANES];
  check_global_acquire(warp, mask, addresses_of(transfer, places, spread), &transfer->kind);
}

/* For reports: what a warp that spins without progress reads. */
void notify_read(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                 const Places *places) {
  int lane = first_lane(mask);
  uint64_t address = lane_address(warp, transfer->address, lane);
  if (transfer->space == SPACE_CONST || transfer->space == SPACE_LOCAL ||
      transfer->space == SPACE_PARAM || (address & GENERIC_TAG_MASK) == GENERIC_LOCAL)
    return;
  polling_read(warp, in, address, places->any_global);
}

void notify_moved(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
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
  if (access == ACCESS_READ && is_tried_again()) {
    places->run = places->one = false;
    trial_lanes(warp, mask, places->at,
                (uint32_t)transfer->element_bytes * transfer->element_count);
  }
  check_undefined_moved(warp, in, mask, places->at, registers, count, access);
}

/* Reports the load to whoever watches the warp. */
__attribute__((noinline, cold)) static void show_load(Warp *warp, const Instruction *in,
                                                      LaneMask mask, const Transfer *transfer,
                                                      Places *places) {
  if (polling_watches(warp)) notify_read(warp, in, mask, transfer, places);
  if (warp->watched & WATCH_UNDEFINED) notify_moved(warp, in, mask, transfer, places, ACCESS_READ);
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
  if (places->one && transfer->words) {
    for (int i = 0; i < transfer->element_count; i++) {
      uint32_t value, *column = column_u32(warp, transfer->element[i].slot);
      memcpy(&value, places->at[0] + 4 * i, sizeof value);
      for (int lane = 0; lane < LANES; lane++) column[lane] = value;
    }
    return;
  }
  spread_run(places, transfer);
  if (transfer->words && mask == ~0u)
    load_words(warp, transfer, places->at);
  else
    for (int i = 0; i < transfer->element_count; i++)
      if (transfer->element[i].wanted) load_element(warp, mask, transfer, i, places->at);
}

/* The program's host threads may write the same memory meanwhile. */
static void load_atomically(void *to, const uint8_t *at, uint32_t bytes) {
  switch (bytes) {
    case 1:
      __atomic_load((const uint8_t *)at, (uint8_t *)to, __ATOMIC_RELAXED);
      break;
    case 2:
      __atomic_load((const uint16_t *)(const void *)at, (uint16_t *)to, __ATOMIC_RELAXED);
      break;
    case 4:
      __atomic_load((const uint32_t *)(const void *)at, (uint32_t *)to, __ATOMIC_RELAXED);
      break;
    case 8:
      __atomic_load((const uint64_t *)(const void *)at, (uint64_t *)to, __ATOMIC_RELAXED);
      break;
    default:
      memcpy(to, at, bytes);
  }
}

typedef struct {
  _Alignas(16) uint8_t bytes[LANES][16];
} LoadedBytes;

/* Replaces the places by copies of what is there. */
static void load_strong(LaneMask mask, const Transfer *transfer, Places *places,
                        LoadedBytes *loaded) {
  spread_run(places, transfer);
  places->run = places->one = false;
  FOR_LANES(mask) {
    uint8_t *to = loaded->bytes[first_lane(left)];
    for (uint32_t i = 0; i < transfer->element_count; i++)
      load_atomically(to + i * transfer->element_bytes,
                      places->at[first_lane(left)] + i * transfer->element_bytes,
                      transfer->element_bytes);
    places->at[first_lane(left)] = to;
  }
}

/* A strong load: of shared memory, or of memory that others may change meanwhile. */
static StepResult load_strong_lanes(Warp *warp, const Instruction *in, LaneMask mask) {
  const Transfer *transfer = in->decoded;
  Places places;
  if (!find_places(warp, in, mask, transfer, ACCESS_READ, &places)) return STEP_FAULT;
  if (places.any_global && !cluster_has_turn(warp)) return STEP_BLOCKED;
  bool checks = places.any_global && warp->cta->cluster->check;
  if (checks) notify_global(warp, in, mask, transfer, &places);
  if (checks) check_strong_global(warp, in, mask);
  if (__builtin_expect(warp->watched, 0)) show_load(warp, in, mask, transfer, &places);
  LoadedBytes loaded;
  if (places.any_global) load_strong(mask, transfer, &places, &loaded);
  load_values(warp, mask, transfer, &places);
  if (checks) notify_global_read(warp, mask, transfer, &places);
  return STEP_YIELD;
}

static StepResult load_lanes(Warp *warp, const Instruction *in, LaneMask mask) {
  const Transfer *transfer = in->decoded;
  if (transfer->whole_words && load_whole_warp(warp, in, mask, transfer)) return STEP_NEXT;
  Places places;
  if (!find_places(warp, in, mask, transfer, ACCESS_READ, &places)) return STEP_FAULT;
  if (places.any_global && warp->cta->cluster->check)
    notify_global(warp, in, mask, transfer, &places);
  if (__builtin_expect(warp->watched, 0)) show_load(warp, in, mask, transfer, &places);
  load_values(warp, mask, transfer, &places);
  return STEP_NEXT;
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
static void notify_map_writes(const Instruction *in, LaneMask mask, const Transfer *transfer,
                              const Places *places) {
  uint32_t bytes = (uint32_t)transfer->element_bytes * transfer->element_count;
  if (places->run) {
    check_tensor_map_written(in, places->address[0], bytes * LANES);
    return;
  }
  FOR_LANES(mask) {
    int lane = first_lane(left);
    if ((places->address[lane] & GENERIC_TAG_MASK) == 0)
      check_tensor_map_written(in, places->address[lane], bytes);
  }
}

void notify_change(const Warp *warp, const uint8_t *at, size_t bytes) {
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
static bool notify_changes(const Warp *warp, const Before *before, LaneMask mask, size_t bytes,
                           const Places *places) {
  bool changed = false;
  FOR_LANES(mask) {
    const uint8_t *at = places->at[first_lane(left)];
    if (memcmp(before->bytes[first_lane(left)], at, bytes) == 0) continue;
    changed = true;
    if (polling_watches(warp)) notify_change(warp, at, bytes);
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

/* The same for a strong store, and whether it changed any bytes. */
static bool write_and_compare(Warp *warp, LaneMask mask, const Transfer *transfer, Places *places) {
  Before before;
  size_t bytes = (size_t)transfer->element_bytes * transfer->element_count;
  spread_run(places, transfer);
  keep_before(&before, mask, bytes, places);
  write_places(warp, mask, transfer, places);
  return notify_changes(warp, &before, mask, bytes, places);
}

static uint32_t word_at(const uint8_t *at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

/* The usual strong store: a word of each lane. Several lanes may name one place, so only the bytes
 * afterwards say whether it has changed. */
static bool write_words_and_compare(Warp *warp, LaneMask mask, const Transfer *transfer,
                                    Places *places) {
  const uint32_t *column = column_u32(warp, transfer->element[0].slot);
  uint32_t before[LANES];
  LaneMask differing = 0;
  if (places->run) {
    uint32_t different = 0;
    memcpy(before, places->at[0], sizeof before);
    for (int lane = 0; lane < LANES; lane++) different |= before[lane] ^ column[lane];
    write_places(warp, mask, transfer, places);
    return different != 0;
  }
  int highest = 31 - __builtin_clz(mask); /* no other lane overwrites what this one stores */
  if (word_at(places->at[highest]) != column[highest]) {
    write_places(warp, mask, transfer, places);
    return true;
  }
  FOR_LANES(mask) {
    int lane = first_lane(left);
    before[lane] = word_at(places->at[lane]);
    differing |= before[lane] != column[lane] ? left & -left : 0;
  }
  write_places(warp, mask, transfer, places);
  FOR_LANES(differing)
  if (word_at(places->at[first_lane(left)]) != before[first_lane(left)]) return true;
  return false;
}

/* The same, and reports what the store changes. */
__attribute__((noinline)) static void write_and_notify(Warp *warp, const Instruction *in,
                                                       LaneMask mask, const Transfer *transfer,
                                                       Places *places) {
  bool words = transfer->words && transfer->element_count == 1, changed = false;
  if (warp->watched & WATCH_UNDEFINED) notify_moved(warp, in, mask, transfer, places, ACCESS_WRITE);
  if (polling_watches(warp) || (transfer->strong && !words))
    changed = write_and_compare(warp, mask, transfer, places);
  else if (transfer->strong)
    changed = write_words_and_compare(warp, mask, transfer, places);
  else
    write_places(warp, mask, transfer, places);
  if (changed && transfer->strong) cluster_changed(warp->cta->cluster);
}

static StepResult store_lanes(Warp *warp, const Instruction *in, LaneMask mask) {
  const Transfer *transfer = in->decoded;
  if (transfer->whole_words && store_whole_warp(warp, in, mask, transfer)) return STEP_NEXT;
  Places places;
  if (!find_places(warp, in, mask, transfer, ACCESS_WRITE, &places)) return STEP_FAULT;
  if (transfer->strong && places.any_global && !cluster_has_turn(warp)) return STEP_BLOCKED;
  if (places.any_global && warp->cta->cluster->check) {
    notify_global(warp, in, mask, transfer, &places);
    if (transfer->strong) check_strong_global(warp, in, mask);
  }
  if (__builtin_expect(transfer->strong || warp->watched, 0))
    write_and_notify(warp, in, mask, transfer, &places);
  else
    write_places(warp, mask, transfer, &places);
  if (places.any_global && warp->cta->cluster->check)
    notify_map_writes(in, mask, transfer, &places);
  return STEP_NEXT;
}

/* ---- Decoding ---- */

Space form_space(Form *form) {
  const PtxStatement *statement = form->statement;
  for (int i = 1; i < statement->modifier_count; i++) {
    Space space = space_named(statement->modifiers[i]);
    if (space != SPACE_GENERIC && form_take(form, statement->modifiers[i])) return space;
  }
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
  if (extra) form_source(form, first_extra_operand, TYPE_U64);
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
    if (!form_fits(form, element, transfer->type)) return;
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

const Operand *form_address(Form *form, int index) {
  const Operand *operand = form_operand(form, index);
  if (!form->failed && operand->kind != OPERAND_ADDRESS)
    form_fail(form, "an operand should be an address in brackets");
  return operand;
}

static bool has_any(const PtxStatement *statement, const char *const *modifiers) {
  for (int i = 0; modifiers[i]; i++)
    if (has_modifier(statement, modifiers[i])) return true;
  return false;
}

/* Modifiers that ptxas does not take together, or not in this space. */
static const char *modifiers_clash(const PtxStatement *statement, Space space) {
  static const char *const orders[] = {"relaxed", "acquire", "release", NULL};
  static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
  static const char *const operators[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", NULL};
  static const char *const priorities[] = {"L1::evict_normal", "L1::evict_unchanged",
                                           "L1::evict_first",  "L1::evict_last",
                                           "L1::no_allocate",  NULL};
  static const char *const hints[] = {"L2::cache_hint", "L2::64B", "L2::128B", "L2::256B", NULL};
  static const char *const others[] = {"weak", "volatile", "mmio", "nc", NULL};
  static const char *const vectors[] = {"v2", "v4", NULL};
  bool ordered = has_any(statement, orders), global = space == SPACE_GLOBAL;
  bool cached = has_any(statement, operators), priority = has_any(statement, priorities);
  global |= space == SPACE_GENERIC;
  if (ordered != has_any(statement, scopes))
    return ".relaxed, .acquire and .release need a scope, and a scope needs one of them";
  bool mmio = has_modifier(statement, "mmio"), is_volatile = has_modifier(statement, "volatile");
  bool hint = has_any(statement, hints);
  if (strcmp(statement->modifiers[0], "ldu") == 0 &&
      (ordered || cached || priority || hint || has_any(statement, others)))
    return "ldu takes a state space, a vector and a type, and no other modifier";
  if (strcmp(statement->modifiers[0], "st") == 0 && has_any(statement, hints + 1))
    return ".L2::64B, .L2::128B and .L2::256B are for loads";
  if (cached && (ordered || priority || is_volatile))
    return "a cache operator such as .cg excludes an order, .volatile and an eviction priority";
  bool fetches = has_any(statement, hints + 1); /* .L2::64B and longer ones */
  if (is_volatile && (priority || (hint && !fetches)))
    return ".volatile excludes what is said about caches";
  if (mmio && (priority || hint || has_any(statement, vectors)))
    return ".mmio excludes vectors and what is said about caches";
  if ((ordered || is_volatile) && !global && space != SPACE_SHARED)
    return "an order and .volatile are for global and shared memory";
  if (!global && (priority || hint || mmio))
    return ".mmio, eviction priorities and hints for the L2 cache are for global memory";
  if (mmio && !has_modifier(statement, "sys")) return ".mmio has the scope .sys";
  return NULL;
}

static StepResult load_parameter_lanes(Warp *warp, const Instruction *in, LaneMask mask) {
  return load_parameter(warp, mask, in->decoded) ? STEP_NEXT : load_lanes(warp, in, mask);
}

/* Words, or one register of 64 bits. */
static bool moves_words(const Transfer *transfer) {
  bool doubles = transfer->element_bytes == 8 && transfer->element_count == 1 &&
                 transfer->element[0].wanted && transfer->element[0].column_bytes == 8;
  return transfer->words || doubles;
}

static void find_whole_words(Transfer *transfer) {
  bool global = transfer->space == SPACE_GLOBAL || transfer->space == SPACE_GENERIC ||
                transfer->space == SPACE_CONST;
  transfer->base_slot = transfer->address->slot;
  transfer->offset = transfer->address->offset;
  transfer->whole_words =
      global && !transfer->strong && transfer->address->bytes == 8 && moves_words(transfer);
}

static Execute load_function(const Transfer *transfer) {
  if (transfer->strong) return load_strong_lanes;
  bool parameter = transfer->space == SPACE_PARAM && transfer->address->constant;
  return parameter && moves_words(transfer) ? load_parameter_lanes : load_lanes;
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
  out->own_memory = transfer->space == SPACE_LOCAL || transfer->space == SPACE_PARAM ||
                    transfer->space == SPACE_CONST;
  const char *clash = modifiers_clash(statement, transfer->space);
  if (clash) return form_fail(&form, clash);
  bool constant_path = is_load && form_take(&form, "nc");
  if (strcmp(statement->modifiers[0], "ldu") == 0) constant_path = true;
  if (constant_path && transfer->space != SPACE_GLOBAL && transfer->space != SPACE_GENERIC)
    return form_fail(&form, ".nc and ldu are for global memory");
  if (has_modifier(statement, "nc")) {
    static const char *const others[] = {"weak", "relaxed", "acquire", "volatile",
                                         "mmio", "lu",      "cv",      NULL};
    if (transfer->space != SPACE_GLOBAL) return form_fail(&form, ".nc needs .global");
    if (has_any(statement, others))
      return form_fail(&form, ".nc excludes an order, .weak, .volatile, .lu and .cv");
  }
  if (constant_path) transfer->kind.flags |= GLOBAL_NON_COHERENT;
  int vector = form_choose(&form, vectors);
  transfer->element_count = vector < 0 ? 1 : vector == 0 ? 2 : 4;
  transfer->type = form_type(&form);
  transfer->element_bytes = (uint8_t)type_bytes(transfer->type);
  transfer->kind.size = transfer->strong ? transfer->element_bytes : 0;
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
  transfer->address = form_address(&form, is_load ? 1 : 0);
  if (form.failed) return false;
  find_whole_words(transfer);
  transfer_kinds(transfer, out);
  if (!is_load) return form_end(&form, store_lanes);
  return form_end(&form, load_function(transfer));
}
bool decode_ld(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_transfer(decoder, statement, out, true);
}
bool decode_st(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_transfer(decoder, statement, out, false);
}
