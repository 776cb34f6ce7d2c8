/* launch.h: runs a grid. */
#ifndef EMULATOR_LAUNCH_H
#define EMULATOR_LAUNCH_H

#include "base/emulator.h"

/* Runs a whole grid to its end. Returns 0 or the cudaError_t of the fault. Arguments are already
 * validated by the runtime. */
int launch_run(Launch *launch);
/* The same in parts, for grids that wait for what another stream or the host does: begin; continue
 * until it is true; end. launch_continue(launch, true) returns false when all that is left of the
 * grid only polls global memory; with false it then ends it as a hang. begin and end return the
 * error; after an error of begin nothing is to be ended. */
int launch_begin(Launch *launch);
bool launch_continue(Launch *launch, bool may_stall);
uint32_t launch_finished_clusters(const Launch *launch);
int launch_end(Launch *launch);

#endif
