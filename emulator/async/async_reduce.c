/* async_reduce.c: the element operations of cp.reduce.async.bulk and its tensor form. */
#include <string.h>

#include "async/async.h"
#include "base/half.h"
#include "base/settings.h"

const char *const reduce_names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", NULL};

bool reduce_supported(ReduceOp op, TensorType type) {
  bool integer = type == TENSOR_U32 || type == TENSOR_S32 || type == TENSOR_U64;
  bool half = type == TENSOR_F16 || type == TENSOR_BF16;
  switch (op) {
    case REDUCE_ADD:
      return integer || half || type == TENSOR_F32 || type == TENSOR_F32_FTZ || type == TENSOR_F64;
    case REDUCE_MIN:
    case REDUCE_MAX:
      return integer || half || type == TENSOR_S64;
    case REDUCE_INC:
    case REDUCE_DEC:
      return type == TENSOR_U32;
    case REDUCE_AND:
    case REDUCE_OR:
    case REDUCE_XOR:
      return integer;
    case REDUCE_NONE:
      break;
  }
  return false;
}

/* Sums of floats depend on their order, and so does which NaN a minimum keeps. */
bool reduce_needs_turn(ReduceOp op, TensorType type) {
  return type >= TENSOR_F16 || op == REDUCE_INC || op == REDUCE_DEC;
}

static float flush_half(float value) {
  return bits_of_float(value) & 0x7f800000u ? value : float_of(bits_of_float(value) & 0x80000000u);
}

static float sum_f32(float a, float b, bool flushes) {
  float sum = flushes ? flush_half(flush_half(a) + flush_half(b)) : a + b;
  return sum != sum ? float_of(0x7fffffffu) : sum;
}

/* A NaN is kept unchanged; of two, the source's. */
static double sum_f64(double old, double value) {
  if (value != value) return value;
  if (old != old) return old;
  double sum = old + value;
  return sum != sum ? double_of(0xfff8000000000000ull) : sum;
}

/* The minimum of a number and a NaN is the number. -0 is less than +0. */
static float choose_float(float a, float b, bool larger) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) {
    bool a_negative = bits_of_float(a) >> 31;
    return a_negative == larger ? b : a;
  }
  return (a < b) == larger ? b : a;
}

static uint16_t reduce_16(ReduceOp op, bool bfloat, uint16_t old, uint16_t value) {
  float a = bfloat ? float_of_bfloat(old) : float_of_half(old);
  float b = bfloat ? float_of_bfloat(value) : float_of_half(value);
  float result = op == REDUCE_ADD ? a + b : choose_float(a, b, op == REDUCE_MAX);
  return bfloat ? bfloat_of_float(result) : half_of_float(result);
}

#define REDUCE_INTEGERS(name, unsigned_type, signed_type)                                          \
  static unsigned_type name(ReduceOp op, bool is_signed, unsigned_type old, unsigned_type value) { \
    bool less = is_signed ? (signed_type)value < (signed_type)old : value < old;                   \
    switch (op) {                                                                                  \
      case REDUCE_ADD:                                                                             \
        return old + value;                                                                        \
      case REDUCE_MIN:                                                                             \
        return less ? value : old;                                                                 \
      case REDUCE_MAX:                                                                             \
        return less ? old : value;                                                                 \
      case REDUCE_INC:                                                                             \
        return old >= value ? 0 : old + 1;                                                         \
      case REDUCE_DEC:                                                                             \
        return old == 0 || old > value ? value : old - 1;                                          \
      case REDUCE_AND:                                                                             \
        return old & value;                                                                        \
      case REDUCE_OR:                                                                              \
        return old | value;                                                                        \
      case REDUCE_XOR:                                                                             \
        return old ^ value;                                                                        \
      case REDUCE_NONE:                                                                            \
        break;                                                                                     \
    }                                                                                              \
    return old;                                                                                    \
  }
REDUCE_INTEGERS(reduce_u32, uint32_t, int32_t)
REDUCE_INTEGERS(reduce_u64, uint64_t, int64_t)

/* Other clusters may reduce into the same words at the same time, on other host threads.
 * Relaxed: the thread that waits for the end of the copy orders it, by what it does then. */
#define EXCHANGE(type, expression)                                                   \
  for (size_t i = 0; i < count; i++) {                                               \
    type *place = (type *)(void *)destination + i;                                   \
    type value, old = __atomic_load_n(place, __ATOMIC_RELAXED), result;              \
    memcpy(&value, source + i * sizeof value, sizeof value);                         \
    do result = (expression);                                                        \
    while (!__atomic_compare_exchange_n(place, &old, result, true, __ATOMIC_RELAXED, \
                                        __ATOMIC_RELAXED));                          \
  }
#define PLAINLY(type, expression)                                    \
  for (size_t i = 0; i < count; i++) {                               \
    type value, old, result;                                         \
    memcpy(&value, source + i * sizeof value, sizeof value);         \
    memcpy(&old, destination + i * sizeof old, sizeof old);          \
    result = (expression);                                           \
    memcpy(destination + i * sizeof result, &result, sizeof result); \
  }

void reduce_elements(ReduceOp op, TensorType type, uint8_t *destination, const uint8_t *source,
                     size_t bytes) {
  size_t count = bytes / tensor_type_bytes(type);
  bool is_signed = type == TENSOR_S32 || type == TENSOR_S64;
  bool shared_by_threads = settings()->threads != 1;
  switch (type) {
    case TENSOR_U32:
    case TENSOR_S32:
      if (op == REDUCE_ADD && !shared_by_threads)
        PLAINLY(uint32_t, old + value)
      else if (op == REDUCE_ADD)
        EXCHANGE(uint32_t, old + value)
      else
        EXCHANGE(uint32_t, reduce_u32(op, is_signed, old, value))
      break;
    case TENSOR_U64:
    case TENSOR_S64:
      EXCHANGE(uint64_t, reduce_u64(op, is_signed, old, value)) break;
    /* Float reduces wait for their turn (reduce_needs_turn), so no other thread writes at the same
     * time. */
    case TENSOR_F16:
      PLAINLY(uint16_t, reduce_16(op, false, old, value)) break;
    case TENSOR_BF16:
      PLAINLY(uint16_t, reduce_16(op, true, old, value)) break;
    case TENSOR_F32:
      PLAINLY(float, sum_f32(old, value, false)) break;
    case TENSOR_F32_FTZ:
      PLAINLY(float, sum_f32(old, value, true)) break;
    case TENSOR_F64:
      PLAINLY(double, sum_f64(old, value)) break;
    default:
      break;
  }
}
