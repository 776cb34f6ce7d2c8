/* layouts.c: finds plain loads of a swizzled tile that do not undo the swizzle.
 *
 * Only the author knows which element a thread should read: a tile may be read in any order, for
 * example to copy it byte by byte or to sum it. So this check is optional (EMULATOR_CHECK=layout)
 * and goes by the order of addresses. Code that undoes the swizzle reads a row's elements in
 * ascending order across the lanes, by rows and by columns. In code that does not, or that starts
 * from the wrong base, the addresses jump back and forth within the row. */
#include <stdio.h>

#include "base/fault.h"
#include "checker/check_state.h"

enum { CHUNK_BYTES = 16, ROW_CHUNKS = 8 };

/* Where the bytes at this address would lie without the swizzle. */
static uint32_t unswizzled(uint32_t offset, uint32_t span) {
  return offset ^ (offset >> 3 & (span - CHUNK_BYTES));
}

void check_plain_layout(Warp *warp, const Instruction *in, LaneMask mask,
                        const uint32_t *addresses) {
  ClusterCheck *check = check_of(warp);
  uint32_t row = UINT32_MAX, column = 0, steps_back = 0, span_found = 0, first = 0;
  char order[ROW_CHUNKS * 8] = "";
  size_t used = 0;
  for (LaneMask left = mask; left; left &= left - 1) {
    uint32_t address = addresses[first_lane(left)];
    uint32_t rank = SHARED_RANK(address), offset = SHARED_OFFSET(address);
    if (rank >= check->cta_count || offset / 4 >= check->ctas[rank].words) return;
    uint8_t layout = check->ctas[rank].layouts[offset / (LINE_WORDS * 4)];
    if (layout <= 1) return;
    uint32_t span = (layout - 1) * 16u, place = unswizzled(offset, span);
    uint32_t chunk = place % span / CHUNK_BYTES;
    if (place / span != row) {
      if (steps_back > 1) break;
      row = place / span;
      steps_back = 0;
      used = 0;
      first = address;
      span_found = span;
    } else if (chunk == column) {
      continue;
    } else if (chunk < column) {
      steps_back++;
    }
    column = chunk;
    if (used + 4 < sizeof order)
      used += (size_t)snprintf(order + used, sizeof order - used, " %u", chunk);
  }
  if (steps_back <= 1) return; /* a rotated row has one */
  const Finding what = {.rule = "swizzle-ignored",
                        .memory = ABOUT_SHARED,
                        .rank = (uint8_t)SHARED_RANK(first),
                        .address = SHARED_OFFSET(first)};
  finding_of(
      warp, in, 0, &what,
      "reads a row of a tile, from shared memory at offset 0x%x on, in the order%s of its 16-byte "
      "chunks: the copy put them there with a %u-byte swizzle.\n"
      "Byte b of the tile lies at b ^ (b >> 3 & 0x%x), b counted from a multiple of %u bytes. "
      "If the order does not matter here, nothing is wrong.",
      SHARED_OFFSET(first), order, span_found, span_found - CHUNK_BYTES, span_found * 8);
}
