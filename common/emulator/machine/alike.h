/* alike.h: launches whose blocks all do the same, so that one is enough.
 *
 * Some kernels only pass time: they compute and read the clock, but neither memory nor the block's
 * number. Each block of them starts with the same registers and the same clock. */
#ifndef EMULATOR_ALIKE_H
#define EMULATOR_ALIKE_H

#include "base/warp.h"

bool blocks_are_alike(const Launch *launch);

#endif
