/* flow.h: shared by the control flow files: barriers, calls, exits. */
#pragma once

#include <stdio.h>

#include "base/events.h"
#include "state/groups.h"

/* Named barriers of a block. */
typedef struct {
  uint32_t generation;   /* completed rounds */
  uint32_t expected;     /* expected threads; 0: all that have not exited */
  uint32_t arrived;      /* threads, warps with missing lanes counted whole when `expected` */
  uint32_t live_arrived; /* threads that really arrived */
  /* bar.red: counts of the current round and of the last one */
  uint32_t count_of_true, result_count;
  uint32_t contributed, result_contributed; /* threads that took part in bar.red */
  LaneMask warp_arrived[32];                /* lanes that arrived in the current round, by warp */
} NamedBarrier;
struct CtaBarriers {
  NamedBarrier barriers[NAMED_BARRIERS];
  uint32_t busy; /* bit n: a thread has arrived at barrier n */
  uint32_t live_threads;
};

/* flow_call.c */
void frame_release(Frame *frame);
StepResult return_lanes(Warp *warp, uint32_t place, LaneMask mask);
/* flow_aligned.c: has the whole warp come to this .aligned instruction? If so, groups that wait at it go on. */
bool whole_warp_is_here(Warp *warp, const Instruction *in, LaneMask mask);
/* It executes: reports threads of the warp that will not. */
void aligned_check(Warp *warp, const Instruction *in, LaneMask mask);
/* flow_barrier.c: does the group wait there for the rest of its warp? */
bool barrier_waits_for_warp(const Group *group, const Instruction *in);
/* The barrier of the block at which it has arrived, and now waits; NULL: it waits for something else. */
const NamedBarrier *barrier_awaited(const Warp *warp, const Group *group, const Instruction *in);
/* flow_inserted.c: does it wait for the rest of its warp? */
bool converge_waits_for_warp(const Instruction *in);
/* flow_barrier.c: threads have left; barriers that waited for them may be complete */
void barriers_thread_exit(Warp *warp, LaneMask exiting);
/* flow_inserted.c: instructions that the decoder inserts */
StepResult flow_converge(Warp *warp, const Instruction *in, LaneMask mask);
StepResult flow_read_clock(Warp *warp, const Instruction *in, LaneMask mask);
StepResult flow_land(Warp *warp, const Instruction *in, LaneMask mask);

/* flow_registers.c: the warp has ended; describes what a setmaxnreg waits for (false: `in` is
 * another instruction). */
void registers_warp_exit(Warp *warp);
bool registers_describe_wait(const Warp *warp, const Instruction *in, FILE *out);
