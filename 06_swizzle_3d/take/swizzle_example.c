// Finds the elements of a tile that TMA loaded under the 128-byte swizzle: 8 rows of 64 two-byte
// elements. In a kernel, `base` is the tile's shared-memory address,
// __cvta_generic_to_shared(tile).
//   cc swizzle_example.c && ./a.out
#include <stdio.h>

#include "swizzle.h"

enum { ROWS = 8, COLUMNS = 64, ELEMENT_BYTES = 2, ROW_BYTES = COLUMNS * ELEMENT_BYTES };

int main(void) {
  uint32_t base = 3 * tma_swizzle_alignment(TMA_SWIZZLE_128B);  // tiles are aligned to 1024 bytes
  unsigned char taken[ROWS * ROW_BYTES] = {0};
  int wrong = 0;
  for (uint32_t row = 0; row < ROWS; row++) {
    printf("row %u: its chunks of 16 bytes lie at", (unsigned)row);
    for (uint32_t column = 0; column < COLUMNS; column++) {
      uint32_t place =
          tma_swizzle_tile_address(TMA_SWIZZLE_128B, base, row, column * ELEMENT_BYTES, ROW_BYTES) -
          base;
      if (column % 8 == 0) printf(" %4u", (unsigned)place);
      if (place / ROW_BYTES != row || taken[place]++ != 0) wrong++;
    }
    printf("\n");
  }
  printf("%d elements, %d wrong\n", (int)(ROWS * COLUMNS), wrong);
  return wrong != 0;
}
