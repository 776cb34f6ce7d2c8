/* mix.h: a number in which every bit depends on every bit of another: for hashes, and numbers as if by chance. */
#pragma once

#include <stdint.h>

/* As in SplitMix64. */
static inline uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ value >> 27) * 0x94d049bb133111ebull;
  return value ^ value >> 31;
}
