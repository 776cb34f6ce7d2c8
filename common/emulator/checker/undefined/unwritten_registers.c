/* unwritten_registers.c: registers that a function may read before it writes them.
 *
 * registers.c lists them for each function: on some path through it, nothing writes them first. They
 * begin as undefined, and propagate.c follows them like other undefined values: compilers
 * leave such registers in correct code, where no thread takes that path, and a wgmma may find
 * anything in accumulators that it overwrites. */
#include <string.h>

#include "checker/undefined/marks.h"
#include "ptx/program.h"

static void mark(Warp *warp, const Function *function, const UnwrittenRegister *one,
                 LaneMask lanes) {
  static const uint8_t ALL[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                                  255, 255, 255, 255, 255, 255, 255, 255};
  struct WarpUndefined *table = undefined_table(warp);
  OriginPlace place = {.part = PART_REGISTER, .index = one->slot + (one->bytes ? 0u : 1u << 16)};
  OriginNumber origin =
      undefined_origin(check_of(warp), warp, function->code, first_lane(lanes), place);
  if (one->bytes && lanes == UINT32_MAX) {
    undefined_set_column(table, one->slot, one->bytes, true, origin);
    return;
  }
  for (LaneMask left = lanes; left; left &= left - 1) {
    if (one->bytes)
      undefined_set(table, one->slot, one->bytes, first_lane(left), ALL, origin);
    else
      undefined_set_predicate(table, one->slot, first_lane(left), true, origin);
  }
}

void check_unwritten_registers(Warp *warp, const Function *function, LaneMask lanes) {
  if (!lanes) return;
  for (uint32_t i = 0; i < function->unwritten_count; i++)
    mark(warp, function, &function->unwritten[i], lanes);
  if (function->unwritten_count) warp->watched |= WATCH_UNDEFINED;
}
