/* tensor_inputs.h: the random operands of the tensor-core tests, the same on every machine.
 *
 * An operand is a function of (case, iteration, position) alone, so the program that runs on the
 * GPU, the same program on the emulator and the C test that calls the emulator's arithmetic all
 * see the same bits, and only digests of the results need to be kept.
 *
 * The iterations walk through MODES: each is chosen so that a wrong rule (one alignment bit too
 * many, another rounding, a zero that takes part in the alignment, ...) gives other bits. */
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define INPUTS static __host__ __device__ inline
#else
#define INPUTS static inline
#endif

typedef enum {
  INPUT_F16,
  INPUT_BF16,
  INPUT_TF32,
  INPUT_E4M3,
  INPUT_E5M2,
  INPUT_F32,
  INPUT_BITS, /* integers of 8 bits */
  INPUT_SMALL /* 32-bit integers near the limits, for saturation and wrap-around */
} InputType;

enum {
  MODE_NARROW,  /* exponents close together */
  MODE_WIDE,    /* exponents 24 apart */
  MODE_ZEROS,   /* a quarter zeros among wide exponents: do zeros take part in the alignment? */
  MODE_LOW,     /* subnormals, zeros and a few numbers of middle size */
  MODE_SPECIAL, /* infinities and NaNs now and then, negative zeros */
  MODE_POWERS,  /* few mantissa bits: ties and cancellation */
  MODE_ALL,     /* every finite bit pattern */
  MODE_HIGH,    /* the largest exponents: overflow */
  MODES
};

INPUTS uint32_t mixed(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

INPUTS uint32_t input_hash(uint32_t test, uint32_t iteration, uint32_t position) {
  return mixed(mixed(test * 0x9e3779b9u + iteration) + position * 0x85ebca6bu + 0x1234567u);
}

/* One number of a format with this many exponent and mantissa bits. */
INPUTS uint32_t input_float(uint32_t hash, int exponent_bits, int mantissa_bits, int mode,
                            int centre) {
  const uint32_t top = (1u << exponent_bits) - 1u;
  const uint32_t bias = top >> 1;
  uint32_t mantissa = hash & ((1u << mantissa_bits) - 1u);
  const uint32_t choice = mixed(hash + 0x51ed27u);
  const uint32_t sign = choice & 1u;
  const uint32_t dice = (choice >> 1) & 0xffu;
  const uint32_t spread = choice >> 9;
  int exponent = (int)bias + centre;
  switch (mode) {
    case MODE_NARROW:
    case MODE_SPECIAL:
      exponent += (int)(spread % 4u) - 2;
      break;
    case MODE_WIDE:
    case MODE_ZEROS:
      exponent += (int)(spread % 24u) - 12;
      break;
    case MODE_LOW:
      exponent = dice < 32u ? (int)bias + (int)(spread % 9u) - 4 : (int)(spread % 4u);
      if (centre != 0) exponent = (int)bias + centre + (int)(spread % 24u) - 12;
      break;
    case MODE_POWERS:
      exponent += (int)(spread % 14u) - 7;
      mantissa &= dice < 128u ? 0u : 3u << (mantissa_bits > 2 ? mantissa_bits - 2 : 0);
      if (dice >= 240u) mantissa = (1u << mantissa_bits) - 1u;
      break;
    case MODE_ALL:
      exponent = (int)(spread % top);
      break;
    default:
      exponent = (int)top - 1 - (int)(spread % 6u);
      break;
  }
  if (exponent < 0) exponent = 0;
  if (exponent > (int)top - 1) exponent = (int)top - 1;
  mantissa &= (1u << mantissa_bits) - 1u;
  if ((mode == MODE_ZEROS || mode == MODE_LOW) && dice >= 192u) exponent = 0, mantissa = 0;
  if (mode == MODE_SPECIAL && dice < 2u) exponent = (int)top, mantissa &= spread & 8u ? ~0u : 0u;
  if (mode == MODE_SPECIAL && dice >= 240u) exponent = 0, mantissa = 0;
  /* e4m3 has numbers at the top exponent, too */
  if (mantissa_bits == 3 && (mode == MODE_HIGH || mode == MODE_ALL) && dice < 32u) {
    exponent = (int)top;
    if (mantissa == 7u) mantissa = 6u;
  }
  return (sign << (exponent_bits + mantissa_bits)) | ((uint32_t)exponent << mantissa_bits) |
         (mantissa & ((1u << mantissa_bits) - 1u));
}

/* 32 bits of an operand: one, two or four numbers. */
INPUTS uint32_t input_register(InputType type, uint32_t hash, int mode) {
  uint32_t value = 0;
  switch (type) {
    case INPUT_F16:
      return input_float(hash, 5, 10, mode, 0) |
             (input_float(mixed(hash + 1u), 5, 10, mode, 0) << 16);
    case INPUT_BF16:
      return input_float(hash, 8, 7, mode, 0) |
             (input_float(mixed(hash + 1u), 8, 7, mode, 0) << 16);
    case INPUT_E4M3:
      for (int i = 0; i < 4; i++)
        value |= input_float(mixed(hash + (uint32_t)i), 4, 3, mode, 0) << (8 * i);
      return value;
    case INPUT_E5M2:
      for (int i = 0; i < 4; i++)
        value |= input_float(mixed(hash + (uint32_t)i), 5, 2, mode, 0) << (8 * i);
      return value;
    case INPUT_TF32:
      return input_float(hash, 8, 23, mode, 0);
    case INPUT_F32:
      return input_float(hash, 8, 23, mode, 2);
    case INPUT_SMALL:
      if (mode == MODE_HIGH) return 0x7fffffffu - (hash & 0xffffu);
      if (mode == MODE_LOW) return 0x80000000u + (hash & 0xffffu);
      return hash;
    default:
      return hash;
  }
}

/* Makes the random numbers of different cases differ. */
static inline uint32_t name_hash(const char *name) {
  uint32_t hash = 2166136261u;
  for (; *name != 0; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
  return hash;
}

/* A digest is the sum of the marks of all results: the order of adding does not matter. */
INPUTS uint64_t result_mark(uint64_t bits, uint32_t iteration, uint32_t position) {
  uint64_t x = bits + 0x9e3779b97f4a7c15ull * (((uint64_t)iteration << 32) + position + 1u);
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
