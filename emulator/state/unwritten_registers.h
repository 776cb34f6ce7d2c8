/* unwritten_registers.h: what memory and registers hold before a kernel writes them. */
#pragma once

#include "base/warp.h"

enum { POISON = 0xff /* a NaN in every floating format */ };

/* The registers that this function may read before it writes them, in these lanes: the same values
 * on every run, and none that the host left there. */
void fill_unwritten_registers(Warp *warp, const Function *function, LaneMask lanes);
