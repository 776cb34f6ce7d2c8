/* launch.h: runs a grid. */
#pragma once

#include "base/warp.h"

/* Runs a whole grid until it ends. Returns 0 or the cudaError_t of the fault. Arguments are already
 * validated by the runtime. */
int launch_run(Launch *launch);
/* The same in steps, for grids that wait for another stream or the host: begin, continue until it
 * returns true, end. launch_continue(launch, true) returns false when the rest of the grid only
 * polls global memory. With false it reports a hang in that case. begin and end return the error.
 * After an error of begin, do not call end. */
int launch_begin(Launch *launch);
bool launch_continue(Launch *launch, bool may_stall);
uint32_t launch_finished_clusters(const Launch *launch);
int launch_end(Launch *launch);
/* Of all launches. */
typedef struct {
  /* Runs the launch in the place of launch_continue; false: it does not want to. Set once, when the library is
   * loaded, by the room above that wants to (explore/). */
  bool (*take_over)(Launch *launch);
  uint64_t steps_most; /* of one cluster: set in the process of a trial, which may take no longer */
} LaunchChoices;
extern LaunchChoices launches;
