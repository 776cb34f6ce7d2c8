/* clock_report.h: sums the replayed launches of each kernel and prints them when the program ends. */
#ifndef EMULATOR_CLOCK_REPORT_H
#define EMULATOR_CLOCK_REPORT_H

#include "clock/chip_parts.h"

typedef struct {
  double clocks, microseconds; /* microseconds: with the gap between launches */
  uint32_t failed;             /* launches that a fault or a hang ended */
  ChipUse use;
} LaunchTime;
void clock_add_launch(const char *kernel, const LaunchTime *time);

#endif
