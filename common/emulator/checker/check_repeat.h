/* check_repeat.h: which global memory a launch has touched, and that another one touches the same
 * (global_repeat.c). */
#ifndef EMULATOR_CHECK_REPEAT_H
#define EMULATOR_CHECK_REPEAT_H

#include "base/warp.h"

/* Bytes of one allocation, which the launch has touched or which lie between such bytes. */
typedef struct {
  uint64_t first, end;
  uint64_t place, place_end; /* the allocation */
} TouchedSpan;

typedef struct {
  TouchedSpan *spans;
  size_t count, capacity;
} TouchedSpans;

typedef struct {
  bool updates; /* it may have written what it had read before, so all that it touches is input */
  TouchedSpans all, inputs;
  uint64_t output_bytes;       /* how much it has written */
  struct TouchedRange *ranges; /* exactly what it has touched, by address */
  size_t range_count, range_capacity;
  struct LinePattern *patterns;  /* those of the ranges */
  struct GlobalAccess *accesses; /* those of the ranges and patterns */
  uint32_t pattern_count, access_count;
} TouchedMemory;

/* Before check_launch_end. NULL: it is not known exactly, or the launch has touched memory that the
 * host can touch itself. The caller releases it. */
TouchedMemory *check_touched(const Launch *launch);
void check_touched_free(TouchedMemory *touched);
bool check_touched_writes(const TouchedMemory *touched, uint64_t first, uint64_t end);
/* What the launch has left in the memory that it has written. NULL: there is no memory for a copy, or some
 * of these bytes count as unwritten. The caller frees it. */
uint8_t *check_outputs_copy(const TouchedMemory *touched);
void check_outputs_restore(const TouchedMemory *touched, const uint8_t *copy);
/* This launch touches the same memory without running. False, and nothing is noted: something that is
 * not ordered before it has touched that memory, so that there may be something to report. */
bool check_touch_again(const Launch *launch, const TouchedMemory *touched);
/* The same for a launch that runs without being checked: nothing but the values in memory is other than when
 * these accesses were found to be right. */
bool check_same_again(const Launch *launch, TouchedMemory *touched);
/* The accesses of check_touch_again may wait for the next operation. This is to be called before it. */
void check_touch_now(void);

#endif
