/* replay.h: the traces of a launch on the model of the chip. */
#ifndef EMULATOR_CLOCK_REPLAY_H
#define EMULATOR_CLOCK_REPLAY_H

#include "clock/trace.h"

/* Fills in the times of the traces, and adds the launch to its kernel's sums (clock_report.c). */
void clock_replay(const Launch *launch, const char *kernel, ClockTrace **traces, uint32_t count);

#endif
