/* loadstore.c: ld, ldu and st (warp_access.h): here the values move between memory and registers. */
#include "arithmetic/alu.h"
#include "arithmetic/warp_access.h"
#include "state/cluster.h"
#include "state/polling.h"

/* ---- Moving values ---- */

/* Words between each lane's place and its registers. */
__attribute__((always_inline)) static inline void move_words(const WarpAccess *access, int count,
                                                             bool loads) {
  uint32_t *column[4];
  for (int i = 0; i < count; i++)
    column[i] = column_u32(access->warp, access->transfer->element[i].slot);
#pragma GCC unroll 4
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < count; i++) {
      uint8_t *word = access->at[lane] + 4 * i;
      memcpy(loads ? (void *)&column[i][lane] : word, loads ? word : (void *)&column[i][lane], 4);
    }
}
/* The same of a run: vectors change between rows of lanes in memory and columns. */
__attribute__((always_inline)) static inline void move_vectors(const WarpAccess *access,
                                                               size_t count, bool loads) {
  uint8_t *at = access->host;
  for (size_t i = 0; i < count; i++) {
    uint32_t *column = column_u32(access->warp, access->transfer->element[i].slot);
    for (size_t lane = 0; lane < LANES; lane++) {
      uint8_t *word = at + 4 * (lane * count + i);
      memcpy(loads ? (void *)&column[lane] : word, loads ? word : (void *)&column[lane], 4);
    }
  }
}
/* For the compiler to make one of each number of words. */
__attribute__((always_inline)) static inline void move_counted(const WarpAccess *access, bool run,
                                                               bool loads) {
  int count = access->transfer->element_count;
  if (run)
    count == 2 ? move_vectors(access, 2, loads) : move_vectors(access, 4, loads);
  else if (count == 1)
    move_words(access, 1, loads);
  else
    count == 2 ? move_words(access, 2, loads) : move_words(access, 4, loads);
}

/* For the compiler, too: the usual numbers are copied without a call. */
static inline void copy_lanes(void *to, const void *from, uint32_t bytes) {
  if (bytes == 4)
    memcpy(to, from, LANES * 4);
  else
    memcpy(to, from, (size_t)LANES * bytes);
}

/* ---- Loads ---- */

/* One element of each lane into its register. Short values are extended. */
static void load_element(const WarpAccess *access, int index) {
  const Transfer *transfer = access->transfer;
  uint32_t offset = (uint32_t)index * transfer->element_bytes;
  uint32_t bytes = transfer->element_bytes, width = transfer->element[index].column_bytes;
  uint8_t *column = (uint8_t *)column_u32(access->warp, transfer->element[index].slot);
  uint8_t *const *at = access->at;
  if (width == 16) {
    FOR_LANES(lane, access->mask) memcpy(column + lane * 16, at[lane] + offset, 16);
    return;
  }
  if (bytes == 4 && width == 4) {
    FOR_LANES(lane, access->mask) memcpy(column + lane * 4, at[lane] + offset, 4);
    return;
  }
  if (bytes == 8) {
    FOR_LANES(lane, access->mask) memcpy(column + lane * 8, at[lane] + offset, 8);
    return;
  }
  uint32_t shift = 64 - 8u * bytes;
  bool sign = type_signed(transfer->type);
  uint64_t cut = transfer->element[index].register_bytes == 2 ? 0xffffu : 0xffffffffu;
  FOR_LANES(lane, access->mask) {
    uint64_t value = 0;
    memcpy(&value, at[lane] + offset, bytes);
    if (sign) value = (uint64_t)((int64_t)(value << shift) >> shift);
    if (width == 8)
      ((uint64_t *)(void *)column)[lane] = value;
    else
      ((uint32_t *)(void *)column)[lane] = (uint32_t)(value & cut);
  }
}

/* All these lanes get what is at one place. */
static void load_one(const WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  if (!transfer->words) {
    uint64_t value;
    memcpy(&value, access->host, sizeof value);
    LANE_ARRAY uint64_t values[LANES];
    for (int lane = 0; lane < LANES; lane++) values[lane] = value;
    store_u64(access->warp, transfer->element[0].slot, access->mask, values);
    return;
  }
  for (uint32_t i = 0; i < transfer->element_count; i++) {
    uint32_t value;
    memcpy(&value, access->host + 4 * i, sizeof value);
    LANE_ARRAY uint32_t values[LANES];
    for (int lane = 0; lane < LANES; lane++) values[lane] = value;
    store_u32(access->warp, transfer->element[i].slot, access->mask, values);
  }
}

__attribute__((noinline)) static void load_others(WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  if (access->shape == SHAPE_RUN && transfer->words) {
    move_counted(access, true, true);
    return;
  }
  access_point(access);
  if (transfer->words && access->mask == ~0u)
    move_counted(access, false, true);
  else
    for (int i = 0; i < transfer->element_count; i++)
      if (transfer->element[i].wanted) load_element(access, i);
}

static inline void load_values(WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  if (access->shape == SHAPE_RUN && transfer->single)
    copy_lanes(column_u32(access->warp, transfer->element[0].slot), access->host, access->bytes);
  else if (access->shape == SHAPE_ONE && transfer->whole)
    load_one(access);
  else
    load_others(access);
}

/* The program's host threads may write the same memory meanwhile. What the loads are ordered
 * with is up to the fence that follows them. */
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
static void copy_atomically(WarpAccess *access, LoadedBytes *loaded) {
  uint32_t each = access->transfer->element_bytes;
  access_point(access);
  access->shape = SHAPE_SCATTERED;
  FOR_LANES(lane, access->mask) {
    for (uint32_t i = 0; i < access->bytes; i += each)
      load_atomically(loaded->bytes[lane] + i, access->at[lane] + i, each);
    access->at[lane] = loaded->bytes[lane];
  }
}

StepResult execute_load(Warp *warp, const Instruction *in, LaneMask mask) {
  WarpAccess access;
  if (!access_find(&access, warp, in, mask, in->decoded)) return STEP_FAULT;
  access_observe(&access);
  load_values(&access);
  return STEP_NEXT;
}

/* Of shared memory, or of memory that others may change meanwhile. */
StepResult execute_load_strong(Warp *warp, const Instruction *in, LaneMask mask) {
  WarpAccess access;
  LoadedBytes loaded;
  if (!access_find(&access, warp, in, mask, in->decoded)) return STEP_FAULT;
  const bool global = access_global(&access);
  if (global && !cluster_has_turn(warp)) return STEP_BLOCKED;
  access_observe(&access);
  if (global) {
    copy_atomically(&access, &loaded);
    /* The lock of the turn orders what clusters do, but neither the host's threads nor atomics
     * without a result wait for the turn. No instruction on x86, and none there for the other
     * two fences (below, and in fence.c). */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
  }
  load_values(&access);
  if (global) emit_access_done(warp, &access);
  return STEP_YIELD;
}

/* ---- Stores ---- */

static void store_element(const WarpAccess *access, LaneMask mask, int index) {
  const Transfer *transfer = access->transfer;
  uint32_t offset = (uint32_t)index * transfer->element_bytes;
  uint32_t bytes = transfer->element_bytes, width = transfer->element[index].column_bytes;
  const uint8_t *column = (const uint8_t *)column_u32(access->warp, transfer->element[index].slot);
  uint8_t *const *at = access->at;
  if (bytes == 4 && width == 4) {
    FOR_LANES(lane, mask) memcpy(at[lane] + offset, column + lane * 4, 4);
  } else if (bytes == 8) {
    FOR_LANES(lane, mask) memcpy(at[lane] + offset, column + lane * 8, 8);
  } else {
    FOR_LANES(lane, mask) memcpy(at[lane] + offset, column + (size_t)lane * width, bytes);
  }
}

/* Of several lanes that name one place the last one's value stays. */
static void store_one(const WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  int lane = LANES - 1 - __builtin_clz(access->mask);
  if (!transfer->words) {
    memcpy(access->host, &column_u64(access->warp, transfer->element[0].slot)[lane], 8);
    return;
  }
  for (uint32_t i = 0; i < transfer->element_count; i++)
    memcpy(access->host + 4 * i, &column_u32(access->warp, transfer->element[i].slot)[lane], 4);
}

__attribute__((noinline)) static void store_others(WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  if (access->shape == SHAPE_RUN && transfer->words) {
    move_counted(access, true, false);
    return;
  }
  access_point(access);
  if (transfer->words && access->mask == ~0u)
    move_counted(access, false, false);
  else
    for (int i = 0; i < transfer->element_count; i++) store_element(access, access->mask, i);
}

static inline void store_values(WarpAccess *access) {
  const Transfer *transfer = access->transfer;
  if (access->shape == SHAPE_RUN && transfer->single)
    copy_lanes(access->host, column_u32(access->warp, transfer->element[0].slot), access->bytes);
  else if (access->shape == SHAPE_ONE && transfer->whole)
    store_one(access);
  else
    store_others(access);
}

/* Whether a strong store changes bytes matters to warps that wait for changes, and any store to the search for
 * polls that never end. Several lanes may name one place, so only the bytes afterwards say it. */
static bool store_and_compare(WarpAccess *access) {
  uint8_t before[LANES][16];
  bool changed = false;
  access_point(access);
  FOR_LANES(lane, access->mask) memcpy(before[lane], access->at[lane], access->bytes);
  store_values(access);
  FOR_LANES(lane, access->mask) {
    const uint8_t *at = access->at[lane];
    if (memcmp(before[lane], at, access->bytes) == 0) continue;
    changed = true;
    if (polling_watches(access->warp)) access_changed(access, at, access->bytes);
  }
  return changed;
}

static uint32_t word_at(const uint8_t *at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

/* The usual strong store: a word of each lane. */
static bool store_and_compare_words(WarpAccess *access) {
  uint32_t before[LANES], different = 0;
  if (access->shape == SHAPE_RUN) {
    memcpy(before, access->host, sizeof before);
    store_values(access);
    for (uint32_t lane = 0; lane < LANES; lane++)
      different |= before[lane] ^ word_at(access->host + 4 * lane);
    return different;
  }
  access_point(access);
  int last = LANES - 1 - __builtin_clz(access->mask); /* what this lane stores stays */
  if (word_at(access->at[last]) !=
      column_u32(access->warp, access->transfer->element[0].slot)[last]) {
    store_values(access);
    return true;
  }
  FOR_LANES(lane, access->mask) before[lane] = word_at(access->at[lane]);
  store_values(access);
  FOR_LANES(lane, access->mask) different |= before[lane] ^ word_at(access->at[lane]);
  return different;
}

StepResult execute_store(Warp *warp, const Instruction *in, LaneMask mask) {
  WarpAccess access;
  if (!access_find(&access, warp, in, mask, in->decoded)) return STEP_FAULT;
  access_observe(&access);
  if (__builtin_expect(polling_watches(warp), 0))
    store_and_compare(&access);
  else
    store_values(&access);
  return STEP_NEXT;
}

StepResult execute_store_strong(Warp *warp, const Instruction *in, LaneMask mask) {
  WarpAccess access;
  if (!access_find(&access, warp, in, mask, in->decoded)) return STEP_FAULT;
  const bool global = access_global(&access);
  if (global && !cluster_has_turn(warp)) return STEP_BLOCKED;
  access_observe(&access);
  bool word = access.transfer->words && access.transfer->single && !polling_watches(warp);
  if (global) __atomic_thread_fence(__ATOMIC_RELEASE); /* the host may see it */
  if (word ? store_and_compare_words(&access) : store_and_compare(&access))
    cluster_changed(warp->cta->cluster);
  return STEP_NEXT;
}
