/* banks.h: the 32 banks of shared memory. */
#ifndef EMULATOR_BANKS_H
#define EMULATOR_BANKS_H

#include "base/warp.h"

/* How many passes over the banks one access takes. A pass reads one word of each bank, and lanes
 * that want the same word share it. The hardware splits 8-byte accesses into half warps and 16-byte
 * accesses into quarter warps, so that one part never asks for more than 128 bytes. */
static inline uint32_t bank_passes(LaneMask mask, const uint32_t *addresses, uint32_t bytes) {
  uint32_t lanes_together = bytes <= 4 ? LANES : bytes == 8 ? LANES / 2 : LANES / 4;
  uint32_t words_each = bytes <= 4 ? 1 : bytes / 4, passes = 0;
  for (uint32_t first = 0; first < LANES; first += lanes_together) {
    uint32_t words[LANES * 4], used[LANES] = {0}, most = 0, count = 0;
    for (uint32_t lane = first; lane < first + lanes_together; lane++) {
      if (!(mask >> lane & 1u)) continue;
      for (uint32_t k = 0; k < words_each && count < LANES * 4; k++) {
        uint32_t word = addresses[lane] / 4 + k, i = 0;
        while (i < count && words[i] != word) i++;
        if (i < count) continue;
        words[count++] = word;
        uint32_t wanted = ++used[word % LANES];
        if (wanted > most) most = wanted;
      }
    }
    passes += most;
  }
  return passes;
}

#endif
