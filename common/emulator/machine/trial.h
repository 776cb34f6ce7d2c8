/* trial.h: runs a launch again, to see whether values that nothing has written matter
 * (base/trial.h). */
#ifndef EMULATOR_MACHINE_TRIAL_H
#define EMULATOR_MACHINE_TRIAL_H

#include "base/trial.h"

/* When the launch begins: launch->trial, if a trial of it is possible. */
void trial_prepare(Launch *launch);
/* When it has run: findings that were held back are reported, or dropped after a trial. steps: of
 * all its clusters, and the most of one. */
void trial_settle(Launch *launch, bool failed, uint64_t steps, uint64_t most_steps);

#endif
