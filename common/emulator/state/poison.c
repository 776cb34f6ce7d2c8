/* poison.c: registers that a function may read before it writes them. */
#include "state/poison.h"

#include <string.h>

#include "ptx/program.h"

void poison_unwritten(Warp *warp, const Function *function, LaneMask lanes) {
  for (uint32_t i = 0; i < function->unwritten_count; i++) {
    const UnwrittenRegister *one = &function->unwritten[i];
    if (!one->bytes) {
      warp->predicates[one->slot] |= lanes;
      continue;
    }
    uint8_t *column = warp->registers + (size_t)one->slot * SLOT_BYTES;
    if (lanes == ~0u) {
      memset(column, POISON, (size_t)LANES * one->bytes);
      continue;
    }
    for (LaneMask left = lanes; left; left &= left - 1)
      memset(column + (size_t)first_lane(left) * one->bytes, POISON, one->bytes);
  }
}
