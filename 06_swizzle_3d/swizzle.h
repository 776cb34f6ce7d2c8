/* swizzle.h: where TMA puts a byte in shared memory under a swizzle. Plain C, host and device.
 *
 * Shared memory has 32 banks of 4 bytes, so bits 6:2 of an address name the bank and bits 6:4 one
 * of eight 16-byte columns. Rows of 128 bytes have the same bits 6:4 in every row: reading down a
 * column hits one bank group over and over. The swizzle avoids that by XORing the column (from bit
 * 4 up) with the number of the 128-byte line (from bit 7 up):
 *
 *   bit      9   8   7   6   5   4   3   2   1   0
 *            line        column      byte in chunk     128B:  column ^= line     (3 bits)
 *                line        column                     64B:  column ^= line     (2 bits)
 *                    line        column                 32B:  column ^= line     (1 bit)
 *
 * The XOR leaves the line's number unchanged, so it is its own inverse: the same function finds the
 * source of a place in memory. 16-byte chunks move as a whole; bytes within a chunk keep their
 * order. The function takes the shared-memory *address*, not an offset in the tile. The two agree
 * only when the tile starts at a multiple of the pattern's length: 1024, 512 or 256 bytes. */
#ifndef SWIZZLE_3D_SWIZZLE_H
#define SWIZZLE_3D_SWIZZLE_H

#include <stdint.h>

#ifdef __CUDACC__
#define SWIZZLE_FUNCTION static inline __host__ __device__
#else
#define SWIZZLE_FUNCTION static inline
#endif

/* The same numbers as in CUtensorMapSwizzle. */
typedef enum {
  SWIZZLE_NONE = 0,
  SWIZZLE_32B = 1,
  SWIZZLE_64B = 2,
  SWIZZLE_128B = 3,
} SwizzleMode;

SWIZZLE_FUNCTION uint32_t swizzle_32b(uint32_t address) { return address ^ (address >> 3 & 0x10); }
SWIZZLE_FUNCTION uint32_t swizzle_64b(uint32_t address) { return address ^ (address >> 3 & 0x30); }
SWIZZLE_FUNCTION uint32_t swizzle_128b(uint32_t address) { return address ^ (address >> 3 & 0x70); }

SWIZZLE_FUNCTION uint32_t swizzle_address(SwizzleMode mode, uint32_t address) {
  switch (mode) {
    case SWIZZLE_32B:
      return swizzle_32b(address);
    case SWIZZLE_64B:
      return swizzle_64b(address);
    case SWIZZLE_128B:
      return swizzle_128b(address);
    default:
      return address;
  }
}

/* The distance between rows in shared memory, in bytes, which is also the widest row that a box may
 * have. Rows of a narrower box still lie this far apart. 0: no limit, and the distance is the width
 * of the box. */
SWIZZLE_FUNCTION uint32_t swizzle_span(SwizzleMode mode) {
  return mode == SWIZZLE_NONE ? 0 : 16u << mode;
}

/* The alignment that a tile needs so that its pattern begins with its first row. The pattern
 * repeats after as many bytes. */
SWIZZLE_FUNCTION uint32_t swizzle_alignment(SwizzleMode mode) {
  return mode == SWIZZLE_NONE ? 128 : 128u << mode;
}

/* The address of byte `column_byte` of row `row`, once TMA has written a box whose rows are
 * `box_row_bytes` wide to the shared-memory address `base`. In a 3D box (group, row, column), row
 * is group * rows_in_group + row_in_group. */
SWIZZLE_FUNCTION uint32_t swizzle_tile_address(SwizzleMode mode, uint32_t base, uint32_t row,
                                               uint32_t column_byte, uint32_t box_row_bytes) {
  uint32_t pitch = mode == SWIZZLE_NONE ? box_row_bytes : swizzle_span(mode);
  return swizzle_address(mode, base + row * pitch + column_byte);
}

/* The largest swizzle for a tile: the one with the widest span that divides the tile's row. A row
 * of several spans is split into groups of one span each; a 3D box copies all groups at once. */
SWIZZLE_FUNCTION SwizzleMode swizzle_largest(uint32_t tile_row_bytes) {
  if (tile_row_bytes == 0) return SWIZZLE_NONE;
  if (tile_row_bytes % 128 == 0) return SWIZZLE_128B;
  if (tile_row_bytes % 64 == 0) return SWIZZLE_64B;
  if (tile_row_bytes % 32 == 0) return SWIZZLE_32B;
  return SWIZZLE_NONE;
}

#undef SWIZZLE_FUNCTION
#endif
