/* repeat.h: a launch whose results are known need not run.
 *
 * Benchmarks launch a kernel hundreds of times with the same arguments on the same data. If a launch
 * comes again, and nothing has changed what it reads, it would write the same bytes once more. Its
 * results are still in memory, or a copy of them is put in place. */
#ifndef EMULATOR_REPEAT_H
#define EMULATOR_REPEAT_H

#include "checker/check_repeat.h"

/* About one launch, from its begin to its end. */
typedef struct {
  bool watched;      /* it can be learned from it */
  bool before_known; /* the fingerprint of what an earlier launch like it has touched */
  uint64_t before, begun, findings;
} Repetition;

/* May anything be left out? Not if somebody looks at each launch, or all do not run in one order. */
bool repeat_is_wanted(void);
/* When the launch begins to run. True: it need not, and counts as having touched its memory. */
bool repeat_skips(Launch *launch, Repetition *own);
/* It has been set aside, or it prints: the next one may do something else. */
void repeat_forget(Repetition *own);
/* When it has run: before check_launch_end, and after it. */
TouchedMemory *repeat_touched(const Launch *launch, const Repetition *own);
void repeat_learn(const Launch *launch, const Repetition *own, TouchedMemory *touched);

#endif
