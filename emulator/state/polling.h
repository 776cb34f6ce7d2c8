/* polling.h: does a cluster only poll?
 *
 * A warp that returns to an instruction with the same registers, with no change to memory, barriers
 * or copies in between, will repeat this forever. While the machine checks for this, every
 * instruction of the cluster is reported to polling_step, and every change of memory and mbarriers
 * to polling_changed.
 *
 * Only registers that matter are compared: those that affect the operands of a branch, an address,
 * a store or a barrier in the loop. A counter that is never compared, or the length of a backoff
 * sleep, is not progress. A counter that limits the loop is. If a clock value decides a branch
 * (SPINNING_BY_CLOCK), the loop may end later, so the machine advances the clock and checks again.
 */
#pragma once

#include "state/groups.h"

typedef enum { NOT_SPINNING, SPINNING_BY_CLOCK, SPINNING_FOR_EVER } Spinning;

/* Starts (or restarts) watching all warps of the cluster; false: out of memory. */
void polling_begin(Cluster *cluster);
void polling_end(Cluster *cluster);
void polling_free(Cluster *cluster);

/* Before each instruction of a watched warp; `mask`: the lanes of its group, whatever the guard. */
void polling_step(Warp *warp, const Instruction *in, LaneMask mask);
/* The memory or barrier at `place` now holds `value`, which is not what it held before. */
void polling_changed(Cluster *cluster, uint64_t place, uint64_t value);
/* Something irreversible has happened: all traces start again. */
void polling_event(Cluster *cluster);
/* A load or atomic has read this location. */
void polling_read(Warp *warp, const Instruction *in, uint64_t address, bool global);

/* The state of all live warps since the last event. */
Spinning polling_spinning(const Cluster *cluster);
uint32_t polling_events(const Cluster *cluster);
bool polling_reads_global(const Cluster *cluster);
/* Does a group of the warp execute more than one instruction? */
bool polling_spins(const Warp *warp, const Group *group);
bool polling_waits(const Warp *warp); /* its loop contains waits at mbarriers */
/* What the warp last read in its loop; false: nothing. */
bool polling_last_read(const Warp *warp, const Instruction **in, uint64_t *address, bool *global);

static inline bool polling_watches(const Warp *warp) { return warp->watched & WATCH_POLLING; }
static inline bool polling_is_on(const Cluster *cluster) {
  return cluster->ctas[0].warps[0].watched & WATCH_POLLING;
}
