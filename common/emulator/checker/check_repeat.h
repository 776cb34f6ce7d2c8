/* check_repeat.h: which global memory a launch has touched, and that another one touches the same
 * (global_repeat.c). */
#ifndef EMULATOR_CHECK_REPEAT_H
#define EMULATOR_CHECK_REPEAT_H

#include "base/warp.h"

/* Bytes of one allocation, which the launch has touched or which lie between such bytes. */
typedef struct {
  uint64_t first, end;
  uint32_t allocation; /* Allocation.number */
} TouchedSpan;

typedef struct {
  bool updates; /* it may have written what it had read before */
  TouchedSpan *spans;
  size_t span_count, span_capacity;
  struct TouchedRange *ranges; /* exactly what it has touched, by address */
  size_t range_count, range_capacity;
  struct GlobalAccess *accesses; /* those of the ranges */
  uint32_t access_count;
} TouchedMemory;

/* Before check_launch_end. NULL: it is not known exactly, or the launch has touched memory that the
 * host can touch itself. The caller releases it. */
TouchedMemory *check_touched(const Launch *launch);
void check_touched_free(TouchedMemory *touched);
bool check_touched_writes(const TouchedMemory *touched, uint64_t first, uint64_t end);
/* This launch touches the same memory without running. False, and nothing is noted: something that is
 * not ordered before it has touched that memory, so that there may be something to report. */
bool check_touch_again(const Launch *launch, const TouchedMemory *touched);
/* The accesses of check_touch_again may wait for the next operation. This is to be called before it. */
void check_touch_now(void);

#endif
