/* banks.h: the 32 banks of shared memory. */
#pragma once

#include "base/warp.h"

/* Whether each of these lanes has the address of the lane whose number differs in bit 0, or each that
 * of the lane whose number differs in bit 1. Then the hardware takes twice as many lanes in a pass. */
static inline bool lanes_share_words(LaneMask mask, const uint32_t *addresses) {
  bool by_ones = true, by_twos = true;
  for (LaneMask left = mask; left; left &= left - 1) {
    const uint32_t lane = (uint32_t)__builtin_ctz(left);
    if (mask >> (lane ^ 1) & 1u && addresses[lane] != addresses[lane ^ 1]) by_ones = false;
    if (mask >> (lane ^ 2) & 1u && addresses[lane] != addresses[lane ^ 2]) by_twos = false;
  }
  return by_ones || by_twos;
}

/* The passes of lanes that the hardware takes together: the most different words of one bank. */
static inline uint32_t passes_together(LaneMask mask, const uint32_t *addresses,
                                       uint32_t words_each) {
  uint32_t words[LANES * 4], used[LANES] = {0}, most = 0, count = 0;
  for (LaneMask left = mask; left; left &= left - 1) {
    for (uint32_t k = 0; k < words_each && count < LANES * 4; k++) {
      uint32_t word = addresses[__builtin_ctz(left)] / 4 + k, i = 0;
      while (i < count && words[i] != word) i++;
      if (i < count) continue;
      words[count++] = word;
      uint32_t wanted = ++used[word % LANES];
      if (wanted > most) most = wanted;
    }
  }
  return most;
}

/* How many passes over the banks one access takes. A pass reads one word of each bank, and lanes
 * that want the same word share it. The hardware splits 8-byte accesses into half warps and 16-byte
 * accesses into quarter warps, so that one part never asks for more than 128 bytes, or into parts
 * twice as large where the lanes share words. emulator/tests/bank_cases.cu has what ncu counted. */
static inline uint32_t bank_passes(LaneMask mask, const uint32_t *addresses, uint32_t bytes) {
  const uint32_t words_each = bytes <= 4 ? 1 : bytes / 4;
  const uint32_t most_lanes = bytes <= 8 ? LANES : LANES / 2;
  uint32_t passes = 0;
  for (uint32_t first = 0; first < LANES; first += most_lanes) {
    const LaneMask part = most_lanes == LANES ? mask : mask & 0xFFFFu << first;
    if (bytes <= 4 || lanes_share_words(part, addresses)) {
      passes += passes_together(part, addresses, words_each);
      continue;
    }
    const LaneMask lower = most_lanes == LANES ? 0xFFFFu : 0xFFu << first;
    passes += passes_together(part & lower, addresses, words_each) +
              passes_together(part & ~lower, addresses, words_each);
  }
  return passes;
}
