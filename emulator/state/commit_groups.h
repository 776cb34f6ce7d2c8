/* commit_groups.h: groups of asynchronous operations, as cp.async, bulk copies and wgmma have them. commit_group closes
 * the open group, wait_group N waits for all closed groups but the last N. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/holds.h"

typedef struct {
  uint64_t closed; /* how many; also the number of the open one */
} CommitGroups;

static inline void close_group(CommitGroups *groups) { groups->closed++; }

/* Does wait_group `pending` wait for an operation that was issued in this group? */
static inline bool wait_covers_group(const CommitGroups *groups, uint64_t group, uint32_t pending) {
  HOLDS(group <= groups->closed);
  return group + pending < groups->closed;
}
