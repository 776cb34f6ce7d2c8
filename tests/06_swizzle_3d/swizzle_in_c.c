/* swizzle_in_c: swizzle.h is plain C, its own inverse, gives one place to each byte and repeats
 * with the stated period. */
#include <stdio.h>

#include "../../06_swizzle_3d/swizzle.h"

int main(void) {
  for (int mode = SWIZZLE_NONE; mode <= SWIZZLE_128B; mode++) {
    static unsigned char taken[8192];
    for (int i = 0; i < 8192; i++) taken[i] = 0;
    uint32_t period = swizzle_alignment((SwizzleMode)mode);
    for (uint32_t address = 0; address < 8192; address++) {
      uint32_t place = swizzle_address((SwizzleMode)mode, address);
      if (place >= 8192 || taken[place]++) return printf("mode %d: %u twice\n", mode, place), 1;
      if (swizzle_address((SwizzleMode)mode, place) != address) return printf("no inverse\n"), 1;
      if (place / 128 != address / 128 || place % 16 != address % 16) return printf("moved\n"), 1;
      if (swizzle_address((SwizzleMode)mode, address + period) != place + period)
        return printf("mode %d: period\n", mode), 1;
    }
  }
  return swizzle_tile_address(SWIZZLE_128B, 1024, 3, 34, 128) == 1024 + 402 ? 0 : 1;
}
