/* repeats.h: counts the launches of a kernel, for a note to those who repeat one a thousand times to measure it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint64_t launches, nanoseconds;
} Repeats;

/* Adds a launch. True: this kernel alone has now taken `patience` seconds (0: say nothing), in launches that are short
 * each. One that is long has a note of its own (machine/scheduler.c). */
static inline bool repeats_add(Repeats *repeats, uint64_t nanoseconds, uint64_t patience) {
  enum { LAUNCHES_LEAST = 10 };
  const uint64_t second = 1000000000;
  repeats->launches++;
  repeats->nanoseconds += nanoseconds;
  return patience && repeats->launches >= LAUNCHES_LEAST &&
         repeats->nanoseconds / second >= patience;
}
