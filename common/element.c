/* element.c: values and text of tile elements. */
#include "element.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
  bool is_float;
} TYPES[] = {
    [ELEMENT_U8] = {"u8", 1, false},   [ELEMENT_S8] = {"s8", 1, false},
    [ELEMENT_U16] = {"u16", 2, false}, [ELEMENT_S16] = {"s16", 2, false},
    [ELEMENT_U32] = {"u32", 4, false}, [ELEMENT_S32] = {"s32", 4, false},
    [ELEMENT_U64] = {"u64", 8, false}, [ELEMENT_S64] = {"s64", 8, false},
    [ELEMENT_F16] = {"f16", 2, true},  [ELEMENT_BF16] = {"bf16", 2, true},
    [ELEMENT_F32] = {"f32", 4, true},  [ELEMENT_F64] = {"f64", 8, true},
};

size_t element_bytes(ElementType type) { return TYPES[type].bytes; }
const char *element_name(ElementType type) { return TYPES[type].name; }
bool element_is_float(ElementType type) { return TYPES[type].is_float; }

static uint64_t unsigned_bits(ElementType type, const void *array, size_t index) {
  const unsigned char *at = (const unsigned char *)array + index * TYPES[type].bytes;
  uint64_t bits = 0;
  memcpy(&bits, at, TYPES[type].bytes); /* little-endian hosts only, as CUDA's are */
  return bits;
}

static int64_t signed_bits(ElementType type, const void *array, size_t index) {
  unsigned unused_bits = 64 - 8 * (unsigned)TYPES[type].bytes;
  return (int64_t)(unsigned_bits(type, array, index) << unused_bits) >> unused_bits;
}

double element_value(ElementType type, const void *array, size_t index) {
  uint64_t bits = unsigned_bits(type, array, index);
  switch (type) {
    case ELEMENT_S8:
    case ELEMENT_S16:
    case ELEMENT_S32:
    case ELEMENT_S64:
      return (double)signed_bits(type, array, index);
    case ELEMENT_F16:
      return half_to_float((uint16_t)bits);
    case ELEMENT_BF16:
      return bfloat16_to_float((uint16_t)bits);
    case ELEMENT_F32: {
      float value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    case ELEMENT_F64: {
      double value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    default:
      return (double)bits;
  }
}

void element_format(ElementType type, const void *array, size_t index, char *text,
                    size_t text_bytes) {
  switch (type) {
    case ELEMENT_S8:
    case ELEMENT_S16:
    case ELEMENT_S32:
    case ELEMENT_S64:
      snprintf(text, text_bytes, "%" PRId64, signed_bits(type, array, index));
      return;
    case ELEMENT_F16:
    case ELEMENT_BF16:
    case ELEMENT_F32:
    case ELEMENT_F64: {
      double value = element_value(type, array, index);
      if (isnan(value)) /* printf would show the sign of a NaN, which has no meaning */
        snprintf(text, text_bytes, "nan");
      else
        snprintf(text, text_bytes, "%.6g", value);
      return;
    }
    default:
      snprintf(text, text_bytes, "%" PRIu64, unsigned_bits(type, array, index));
  }
}

/* Both 16-bit formats are the top of a wider one, so conversion is rounding plus rebiasing. */
uint16_t bfloat16_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return 0x7fff;
  uint32_t nearest_even = 0x7fff + ((bits >> 16) & 1);
  return (uint16_t)((bits + nearest_even) >> 16);
}

float bfloat16_to_float(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t half_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)((bits >> 16) & 0x8000);
  if (isnan(value)) return 0x7fff;
  float magnitude = fabsf(value);
  if (magnitude >= 65520.0f) return sign | 0x7c00; /* rounds to infinity */
  if (magnitude < 0x1p-14f) {                      /* subnormal: a multiple of 2^-24 */
    return sign | (uint16_t)lrintf(magnitude * 0x1p24f);
  }
  uint32_t rebiased = (bits & 0x7fffffff) - ((uint32_t)(127 - 15) << 23);
  uint32_t nearest_even = 0xfff + ((rebiased >> 13) & 1);
  return sign | (uint16_t)((rebiased + nearest_even) >> 13);
}

float half_to_float(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  int fraction = bits & 0x3ff;
  float magnitude;
  if (exponent == 31)
    magnitude = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    magnitude = ldexpf((float)fraction, -24);
  else
    magnitude = ldexpf((float)(fraction | 0x400), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}
