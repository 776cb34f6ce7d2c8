/* unwritten_registers.c: registers that a function may read before it writes them. */
#include "state/unwritten_registers.h"

#include "base/fill.h"
#include "ptx/program.h"

void fill_unwritten_registers(Warp *warp, const Function *function, LaneMask lanes) {
  for (uint32_t i = 0; i < function->unwritten_count; i++) {
    const UnwrittenRegister *one = &function->unwritten[i];
    if (!one->bytes) {
      LaneMask values;
      fill_unwritten(&values, sizeof values, one->slot * sizeof values);
      warp->predicates[one->slot] = (warp->predicates[one->slot] & ~lanes) | (values & lanes);
      continue;
    }
    uint8_t *column = warp->registers + (size_t)one->slot * SLOT_BYTES;
    uint64_t place = (uint64_t)one->slot * SLOT_BYTES;
    if (lanes == ~0u) {
      fill_unwritten(column, (size_t)LANES * one->bytes, place);
      continue;
    }
    FOR_LANES(lane, lanes) {
      size_t at = (size_t)lane * one->bytes;
      fill_unwritten(column + at, one->bytes, place + at);
    }
  }
}
