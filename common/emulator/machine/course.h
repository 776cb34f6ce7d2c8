/* course.h: kernels whose threads go the same way and access the same places whatever memory holds.
 *
 * Two launches of such a kernel with the same arguments differ only in the values that they load, compute and
 * store. What the checker says about one of them it would also say about the other. */
#ifndef EMULATOR_COURSE_H
#define EMULATOR_COURSE_H

#include "base/warp.h"

bool course_is_fixed(const Function *kernel);

#endif
