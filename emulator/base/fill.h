/* fill.h: what memory and registers hold before anything has written them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"

/* `place` says where the bytes are: the same in each process and on each host thread. */
void fill_unwritten(void *to, size_t bytes, uint64_t place);

/* A launch runs again, with other values in what nothing has written (trial/trial.h). */
static inline bool is_tried_again(void) { return settings()->fill != FILL_POISON; }
