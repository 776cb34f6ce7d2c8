/* atomics.c: atom and red.
 *
 * Shared memory belongs to one host thread at a time, so its atomics are plain. Global memory is
 * shared between host threads: words change by compare-and-swap, and an operation whose result
 * depends on the order (a returned value, a sum of floats) waits for its turn
 * (cluster_has_turn). */
#include "arithmetic/alu_float.h"
#include "arithmetic/warp_access.h"
#include "state/notes.h"
#include "state/polling.h"
#include "state/cluster.h"

/* The GPU's L2 flushes f32 subnormals in additions. Shared memory keeps them. */
static uint32_t add_float(uint32_t a, uint32_t b, bool global) {
  if (!global) return float_result(float_of(a) + float_of(b));
  uint32_t sum = float_result(flushed(a) + flushed(b));
  return (sum & 0x7f800000u) == 0 ? sum & 0x80000000u : sum;
}

static bool half_is_nan(uint32_t bits, bool bfloat) {
  return (bits & 0x7fffu) > (bfloat ? 0x7f80u : 0x7c00u);
}
static uint32_t extreme_half(uint32_t a, uint32_t b, bool bfloat, bool larger) {
  if (half_is_nan(a, bfloat)) return half_is_nan(b, bfloat) ? 0x7fffu : b;
  if (half_is_nan(b, bfloat)) return a;
  /* As sign and magnitude: -0 below +0. */
  int32_t order_a = (a & 0x8000u) ? -(int32_t)(a & 0x7fffu) - 1 : (int32_t)a;
  int32_t order_b = (b & 0x8000u) ? -(int32_t)(b & 0x7fffu) - 1 : (int32_t)b;
  return (order_a > order_b) == larger ? a : b;
}
static uint32_t combine_half(AtomicOperation operation, uint32_t a, uint32_t b, bool bfloat) {
  if (operation != ATOMIC_ADD) return extreme_half(a, b, bfloat, operation == ATOMIC_MAX);
  if (bfloat) return bfloat_of_float(float_of_bfloat((uint16_t)a) + float_of_bfloat((uint16_t)b));
  return half_of_float(float_of_half((uint16_t)a) + float_of_half((uint16_t)b));
}

/* The new value in memory. */
static uint64_t combine(const Atomic *atomic, uint64_t old, uint64_t b, uint64_t c, bool global) {
  Type type = atomic->transfer.type;
  bool wide = atomic->transfer.element_bytes == 8;
  switch (atomic->operation) {
    case ATOMIC_AND:
      return old & b;
    case ATOMIC_OR:
      return old | b;
    case ATOMIC_XOR:
      return old ^ b;
    case ATOMIC_EXCH:
      return b;
    case ATOMIC_CAS:
      return old == b ? c : old;
    case ATOMIC_INC:
      return old >= b ? 0 : old + 1;
    case ATOMIC_DEC:
      return old == 0 || old > b ? b : old - 1;
    default:
      break;
  }
  switch (type) {
    case TYPE_F32:
      return add_float((uint32_t)old, (uint32_t)b, global);
    case TYPE_F64: {
      double sum = double_of(old) + double_of(b);
      if (!global) return double_result2(sum, b, old);
      if (nan_f64(b)) return b; /* the L2 returns a NaN unchanged */
      if (nan_f64(old)) return old;
      return sum != sum ? 0x7ff8000000000000ull : bits_of_double(sum);
    }
    case TYPE_F16:
      return combine_half(atomic->operation, (uint32_t)old, (uint32_t)b, false);
    case TYPE_BF16:
      return combine_half(atomic->operation, (uint32_t)old, (uint32_t)b, true);
    case TYPE_F16X2:
    case TYPE_BF16X2: {
      bool bfloat = type == TYPE_BF16X2;
      uint32_t low =
          combine_half(atomic->operation, (uint32_t)old & 0xffffu, (uint32_t)b & 0xffffu, bfloat);
      uint32_t high =
          combine_half(atomic->operation, (uint32_t)old >> 16, (uint32_t)b >> 16, bfloat);
      return low | high << 16;
    }
    default:
      break;
  }
  if (atomic->operation == ATOMIC_ADD) return wide ? old + b : (uint32_t)(old + b);
  bool less = wide ? (type_signed(type) ? (int64_t)old < (int64_t)b : old < b)
                   : (type_signed(type) ? (int32_t)old < (int32_t)b : (uint32_t)old < (uint32_t)b);
  return less == (atomic->operation == ATOMIC_MIN) ? old : b;
}

/* Clusters on other host threads may change the same word. Sequentially consistent, because an
 * atomic without a result does not wait for the turn: a strong load that sees its value must see
 * what came before it. */
#define SWAP_LOOP(width)                                                                           \
  {                                                                                                \
    uint##width##_t *word = (uint##width##_t *)(void *)at;                                         \
    uint##width##_t old = __atomic_load_n(word, __ATOMIC_RELAXED), next;                           \
    do {                                                                                           \
      next = (uint##width##_t)combine(atomic, old, b, c, global);                                  \
    } while (                                                                                      \
        !__atomic_compare_exchange_n(word, &old, next, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
    *changed = next != old;                                                                        \
    return old;                                                                                    \
  }
#define PLAIN_SWAP(width)                                      \
  {                                                            \
    uint##width##_t old, next;                                 \
    memcpy(&old, at, sizeof old);                              \
    next = (uint##width##_t)combine(atomic, old, b, c, false); \
    memcpy(at, &next, sizeof next);                            \
    *changed = next != old;                                    \
    return old;                                                \
  }
static uint64_t perform(const Atomic *atomic, uint8_t *at, uint64_t b, uint64_t c, bool global,
                        bool *changed) {
  uint32_t bytes = atomic->transfer.element_bytes;
  if (!global && bytes == 2) PLAIN_SWAP(16)
  if (!global && bytes == 4) PLAIN_SWAP(32)
  if (!global) PLAIN_SWAP(64)
  if (bytes == 2) SWAP_LOOP(16)
  if (bytes == 4) SWAP_LOOP(32)
  SWAP_LOOP(64)
}

static uint64_t register_value(const Warp *warp, const Transfer *transfer, int element, int lane) {
  unsigned slot = transfer->element[element].slot;
  uint64_t value = transfer->element[element].column_bytes == 8 ? column_u64(warp, slot)[lane]
                                                                : column_u32(warp, slot)[lane];
  return transfer->element_bytes == 2 ? value & 0xffffu : value;
}

/* 16 bytes at once: this cluster has its turn, so no other thread accesses them. */
__attribute__((noinline)) static bool perform_128(Warp *warp, const Atomic *atomic, int lane,
                                                  uint8_t *at) {
  uint8_t old[16];
  const uint8_t *b = (const uint8_t *)column_u32(warp, atomic->value.element[0].slot) + lane * 16;
  const uint8_t *c = (const uint8_t *)column_u32(warp, atomic->swap) + lane * 16;
  memcpy(old, at, 16);
  if (atomic->operation == ATOMIC_EXCH)
    memcpy(at, b, 16);
  else if (memcmp(old, b, 16) == 0)
    memcpy(at, c, 16);
  if (atomic->returns && atomic->transfer.element[0].wanted)
    memcpy((uint8_t *)column_u32(warp, atomic->transfer.element[0].slot) + lane * 16, old, 16);
  return memcmp(old, at, 16) != 0;
}

/* A compare-and-swap that fails only reads. Of several lanes that find what they compare with at
 * one address, the first one writes. */
LaneMask atomic_swapping_lanes(const WarpAccess *access) {
  LaneMask swapping = 0;
  const Warp *warp = access->warp;
  const Atomic *atomic = access->in->decoded;
  uint8_t *const *at = access->at;
  uint32_t bytes = atomic->transfer.element_bytes;
  FOR_LANES(lane, access->mask) {
    const uint8_t *compared = (const uint8_t *)column_u32(warp, atomic->value.element[0].slot) +
                              (size_t)lane * atomic->value.element[0].column_bytes;
    bool first = true;
    FOR_LANES(each, swapping) first &= at[each] != at[lane];
    if (first && memcmp(compared, at[lane], bytes) == 0) swapping |= 1u << lane;
  }
  return swapping;
}

/* The bytes of a word that a lane's swap would leave as they are: there the new value is the old one. */
static uint8_t bytes_kept_by(const Warp *warp, const Instruction *in, int lane) {
  const Atomic *atomic = in->decoded;
  uint64_t compared = register_value(warp, &atomic->value, 0, lane);
  uint32_t changes = (uint32_t)compared ^ column_u32(warp, atomic->swap)[lane];
  uint8_t kept = 0;
  for (int i = 0; i < 4; i++)
    if (!(changes >> 8 * i & 0xff)) kept |= (uint8_t)(1u << i);
  return kept;
}

uint8_t atomic_bytes_kept(const WarpAccess *access) {
  uint8_t kept = 0xf;
  if (!access->transfer->shared_kind.kept) return 0;
  FOR_LANES(lane, access->mask) kept &= bytes_kept_by(access->warp, access->in, lane);
  return kept == 0xf ? 0 : kept;
}

/* An operation that changes nothing, such as a failed compare-and-swap, counts as a read. */
static void note_atomic(const Atomic *atomic, const uint8_t *at, bool changed) {
  if (!notes.wanted) return;
  const bool commutes =
      !atomic->in_order && atomic->operation != ATOMIC_INC && atomic->operation != ATOMIC_DEC;
  const uint32_t bytes = atomic->transfer.element_bytes;
  if (commutes)
    note_place(NOTE_UPDATE, at, bytes,
               NOTE_ATOMIC + atomic->operation * 16u + (atomic->transfer.type & 15u));
  else
    note_place(changed ? NOTE_WRITE : NOTE_READ, at, bytes, 0);
}

/* One element of a lane. Has it changed? */
static bool perform_element(Warp *warp, const Atomic *atomic, int lane, int index, uint8_t *at,
                            bool global) {
  const Transfer *transfer = &atomic->transfer;
  uint64_t b = register_value(warp, &atomic->value, index, lane), c = 0;
  if (atomic->operation == ATOMIC_CAS) {
    c = transfer->element_bytes == 8 ? column_u64(warp, atomic->swap)[lane]
                                     : column_u32(warp, atomic->swap)[lane];
    if (transfer->element_bytes == 2) c &= 0xffffu;
  }
  bool changes;
  uint64_t old = perform(atomic, at, b, c, global, &changes);
  unsigned slot = transfer->element[index].slot;
  if (!atomic->returns || !transfer->element[index].wanted) return changes;
  if (transfer->element[index].column_bytes == 8)
    column_u64(warp, slot)[lane] = old;
  else
    column_u32(warp, slot)[lane] = (uint32_t)old;
  return changes;
}

static bool perform_lane(const WarpAccess *access, const Atomic *atomic, int lane, bool global) {
  uint32_t bytes = atomic->transfer.element_bytes;
  Warp *warp = access->warp;
  uint8_t *at = access->at[lane];
  bool changed = false;
  for (int i = 0; i < atomic->transfer.element_count; i++, at += bytes) {
    bool changes = bytes == 16 ? perform_128(warp, atomic, lane, at)
                               : perform_element(warp, atomic, lane, i, at, global);
    note_atomic(atomic, at, changes);
    if (changes && __builtin_expect(polling_watches(warp), 0)) access_changed(access, at, bytes);
    changed |= changes;
  }
  return changed;
}

static StepResult atomic_any(Warp *warp, const Instruction *in, LaneMask mask) {
  const Atomic *atomic = in->decoded;
  WarpAccess access;
  if (!access_find(&access, warp, in, mask, &atomic->transfer)) return STEP_FAULT;
  if (access_global(&access) && atomic->in_order && !cluster_has_turn(warp)) return STEP_BLOCKED;
  access_point(&access);
  const LaneMask global = access_global(&access);
  bool changed = false;
  access_observe(&access);
  FOR_LANES(lane, mask) changed |= perform_lane(&access, atomic, lane, global & 1u << lane);
  if (global && atomic->returns) emit_access_done(warp, &access);
  if (changed) cluster_changed(warp->cta->cluster);
  return atomic->returns ? STEP_YIELD : STEP_NEXT;
}

/* ---- Decoding ---- */
static bool half_type(Type type) { return type >= TYPE_F16 && type <= TYPE_BF16X2; }

static bool operation_has_type(AtomicOperation operation, Type type, bool vector, bool returns) {
  switch (operation) {
    case ATOMIC_AND:
    case ATOMIC_OR:
    case ATOMIC_XOR:
      return type == TYPE_B32 || type == TYPE_B64;
    case ATOMIC_EXCH:
      return returns && (type == TYPE_B32 || type == TYPE_B64 || type == TYPE_B128);
    case ATOMIC_CAS:
      return returns &&
             (type == TYPE_B16 || type == TYPE_B32 || type == TYPE_B64 || type == TYPE_B128);
    case ATOMIC_INC:
    case ATOMIC_DEC:
      return type == TYPE_U32;
    case ATOMIC_ADD:
      if (vector) return type == TYPE_F32 || half_type(type);
      return type == TYPE_U32 || type == TYPE_S32 || type == TYPE_U64 || type == TYPE_F32 ||
             type == TYPE_F64 || half_type(type);
    default:
      if (vector) return half_type(type);
      return type == TYPE_U32 || type == TYPE_S32 || type == TYPE_U64 || type == TYPE_S64;
  }
}

/* Is the old value, in a register or a vector of them, never read? */
static bool is_unread(const Operand *result) {
  if (result->kind != OPERAND_VECTOR) return result->kind == OPERAND_SINK || result->unread;
  for (uint32_t i = 0; i < result->count; i++)
    if (!is_unread(&result->elements[i])) return false;
  return true;
}

/* Sums, minima and bits of integers are the same in any order. */
static bool integer_type(Type type) {
  return type == TYPE_U32 || type == TYPE_S32 || type == TYPE_U64 || type == TYPE_S64 ||
         type == TYPE_B32 || type == TYPE_B64;
}

static const char *atomic_misplaced(const PtxStatement *statement, const Transfer *transfer,
                                    bool returns) {
  if (!returns && transfer->acquire) return "red cannot acquire: use atom";
  if (transfer->space != SPACE_GENERIC && transfer->space != SPACE_GLOBAL &&
      transfer->space != SPACE_SHARED)
    return "atomics work on global and shared memory";
  if (transfer->space == SPACE_SHARED && has_modifier(statement, "L2::cache_hint"))
    return "shared memory is not cached";
  return NULL;
}

FORM_DECODER(decode_atom, 1) {
  static const char *const operations[] = {"and", "or",  "xor", "exch", "cas", "add",
                                           "inc", "dec", "min", "max",  NULL};
  static const char *const vectors[] = {"v2", "v4", "v8", NULL};
  bool returns = strcmp(statement->modifiers[0], "atom") == 0;
  Atomic *atomic = decoder_allocate(decoder, sizeof *atomic);
  Transfer *transfer = &atomic->transfer;
  out->decoded = atomic;
  form_order(&form, transfer);
  transfer->strong = true;
  transfer->kind.access = ACCESS_ATOMIC;
  transfer->space = form_space(&form);
  const char *misplaced = atomic_misplaced(statement, transfer, returns);
  if (misplaced) return form_fail(&form, "%s", misplaced);
  int operation = form_choose(&form, operations);
  if (operation < 0) return form_fail(&form, "no such atomic operation");
  atomic->operation = (AtomicOperation)operation;
  int vector = form_choose(&form, vectors);
  bool noftz = form_take(&form, "noftz");
  Type type = transfer->type = form_type(&form);
  transfer->element_bytes = transfer->kind.size = (uint8_t)type_bytes(type);
  transfer->element_count = (uint8_t)(vector < 0 ? 1 : 2 << vector);
  if (vector >= 0 && (type_bits(type) || operation == ATOMIC_EXCH))
    return form_fail(&form, "vectors are added, and of 16-bit numbers also minima and maxima");
  if (!operation_has_type(atomic->operation, type, vector >= 0, returns))
    return form_fail(&form, "this operation does not exist for this type");
  if (noftz != half_type(type) || (vector >= 0 && transfer->space == SPACE_SHARED) ||
      transfer->element_bytes * transfer->element_count > 16)
    return form_fail(&form,
                     ".noftz belongs to the 16-bit types; vectors are global, 16 bytes long "
                     "at most");
  int swap = atomic->operation == ATOMIC_CAS;
  form_cache_hints(&form, 2 + returns + swap);
  if (form.failed) return false;
  atomic->value = *transfer;
  transfer->kind.unread = !returns || is_unread(&out->operand[0]);
  if (returns) {
    if (out->operand[0].kind == OPERAND_SINK)
      returns = false; /* "_": the old value is discarded */
    else
      form_elements(&form, transfer, 0, true);
    form_elements(&form, &atomic->value, 2, false);
    transfer->address = form_address(&form, 1);
    if (swap) atomic->swap = form_source(&form, 3, type);
  } else {
    form_elements(&form, &atomic->value, 1, false);
    transfer->address = form_address(&form, 0);
  }
  atomic->returns = returns;
  transfer->kind.blind = !returns;
  transfer->kind.swaps = swap;
  transfer->kind.updates = operation != ATOMIC_EXCH;
  atomic->in_order = returns || !integer_type(type) || operation == ATOMIC_EXCH || swap;
  transfer_end(transfer, out);
  if (swap && transfer->element_bytes == 4) transfer->shared_kind.kept = bytes_kept_by;
  return form_end(&form, atomic_any);
}
