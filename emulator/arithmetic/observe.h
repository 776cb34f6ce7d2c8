/* observe.h: for instructions that access shared memory as a thread does and are no load, store or atomic, such as ldmatrix:
 * their accesses are observed as those are (warp_access.h), before their effect. */
#pragma once

#include "base/warp.h"

/* Of each of these lanes: its shared address, and the bytes there. */
void observe_shared(Warp *warp, const Instruction *in, LaneMask lanes, const uint32_t *addresses,
                    uint8_t *const *at, uint32_t bytes, Access access);
/* All of them access one address. */
void observe_shared_place(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address,
                          uint8_t *at, uint32_t bytes, Access access);
