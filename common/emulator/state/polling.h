/* polling.h: does a cluster only poll?
 *
 * A warp that comes back to a place with the same registers, while no memory, barrier or copy has
 * changed since, will come back again for ever. While the machine looks for that, it runs a cluster
 * with every instruction reported to polling_step, and with every change of memory and of mbarriers
 * reported to polling_changed.
 *
 * Only registers that matter are compared: those from which a branch, an address, a store or a
 * barrier gets its operands on the way round. A counter that nobody compares, or how long a backoff
 * sleeps, is no progress; a counter that bounds the loop is. A clock that decides about the way
 * (CIRCLE_BY_CLOCK) may end the circle later: the machine lets time pass quickly and looks again.
 */
#ifndef EMULATOR_POLLING_H
#define EMULATOR_POLLING_H

#include "state/groups.h"

typedef enum { CIRCLE_NONE, CIRCLE_BY_CLOCK, CIRCLE } Circle;

/* Starts to look (or starts anew) at all warps of the cluster; false: out of memory. */
bool polling_begin(Cluster *cluster);
void polling_end(Cluster *cluster);
void polling_free(Cluster *cluster);

/* Before each instruction of a watched warp; `mask`: the lanes of its group, whatever the guard. */
void polling_step(Warp *warp, const Instruction *in, LaneMask mask);
/* The memory or barrier at `place` now holds `value`, which is not what it held before. */
void polling_changed(Cluster *cluster, uint64_t place, uint64_t value);
/* Something has happened that cannot be taken back: everything is looked at anew. */
void polling_event(Cluster *cluster);
/* A load or atomic has read here. */
void polling_read(Warp *warp, const Instruction *in, uint64_t address, bool global);

/* What holds of all live warps since the last event. */
Circle polling_circle(const Cluster *cluster);
uint32_t polling_events(const Cluster *cluster);
bool polling_reads_global(const Cluster *cluster);
/* Does a group of the warp go through more places than the one where it stands? */
bool polling_spins(const Warp *warp, const Group *group);
bool polling_waits(const Warp *warp); /* it has come by waits at mbarriers */
/* What the warp read last on its way round; false: nothing. */
bool polling_last_read(const Warp *warp, const Instruction **in, uint64_t *address, bool *global);

static inline bool polling_watches(const Warp *warp) { return warp->watched & WATCH_POLLING; }
static inline bool polling_is_on(const Cluster *cluster) {
  return cluster->ctas[0].warps[0].watched & WATCH_POLLING;
}

#endif
