/* half.h: floating-point numbers and their bits; the 16-bit types converted to float and back in plain C, so that
 * loops over lanes vectorise with every compiler. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
static inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
static inline double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}
static inline uint64_t bits_of_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

static inline float float_of_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  uint32_t rest = half & 0x7fffu;
  /* After the shift the exponent is 112 too small. Multiplying by 2^112 corrects it, for subnormals
   * too. */
  uint32_t scaled = bits_of_float(float_of(rest << 13) * 0x1p112f);
  uint32_t value = rest >= 0x7c00u ? 0x7f800000u | (rest << 13) : scaled;
  return float_of(sign | value);
}

/* Rounds to nearest even. NaN becomes 0x7fff, as on the GPU. */
static inline uint16_t half_of_float(float value) {
  uint32_t bits = bits_of_float(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t rest = bits & 0x7fffffffu;
  /* Normal results: rebias and round by hand. Subnormal: let an addition of 0.5 do the rounding. */
  uint32_t normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  uint32_t small = bits_of_float(float_of(rest) + 0.5f) - 0x3f000000u;
  uint32_t result = rest < 0x38800000u ? small : normal;
  result = rest >= 0x47800000u ? 0x7c00u : result;
  result |= sign;
  result = rest > 0x7f800000u ? 0x7fffu : result;
  return (uint16_t)result;
}

static inline float float_of_bfloat(uint16_t bfloat) { return float_of((uint32_t)bfloat << 16); }

static inline uint16_t bfloat_of_float(float value) {
  uint32_t bits = bits_of_float(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}
