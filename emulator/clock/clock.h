/* clock.h: EMULATOR_CLOCK: how long a launch would take. CLOCK.md describes the model.
 *
 * The kernel itself runs as always, in the schedule that finds mistakes. Meanwhile each cluster's
 * trace notes what takes time; when the launch has ended, the traces of all its clusters are
 * replayed as discrete events on a model of the chip. Nothing here decides what a program computes
 * or what is reported. */
#pragma once

#include "base/events.h"
#include "base/tma_map.h"

typedef struct ClockTrace ClockTrace;

/* ---- While a cluster runs; warps are numbered in the cluster ---- */
/* kept: the ends of all steps will be asked for. */
ClockTrace *clock_trace_begin(const Cluster *cluster, bool kept);
/* Hands the trace over to its launch. */
void clock_trace_end(ClockTrace *trace);

static inline uint32_t clock_warp(const Warp *warp) {
  return warp->cta->rank * warp->cta->warp_count + warp->index;
}
/* labelled: a basic block begins. */
void clock_instruction(ClockTrace *trace, uint32_t warp, bool labelled);
/* The instruction was a division of integers of this many bytes. */
void clock_division(ClockTrace *trace, uint32_t warp, uint32_t bytes);
void clock_not_done(ClockTrace *trace, uint32_t warp); /* it was blocked: it comes again */
void clock_shared(ClockTrace *trace, uint32_t warp, uint32_t passes, Access access);
void clock_global(ClockTrace *trace, uint32_t warp, LaneMask mask, const uint64_t *addresses,
                  uint32_t bytes, Access access);
void clock_exit(ClockTrace *trace, uint32_t warp);

typedef struct {
  bool loads;      /* from global memory; else out of shared memory */
  bool by_threads; /* cp.async and st.async, not the copy engine */
  bool arrives;    /* cp.async.mbarrier.arrive */
  bool group;      /* belongs to a group of its thread, not to an mbarrier */
  uint32_t bytes, ranks;
  const TmaMap *map; /* NULL: no tensor copy */
  const TmaPlace *at;
  uint64_t global; /* bulk copies */
  LaneMask lanes;  /* cp.async */
  const uint8_t *const *sources;
} ClockCopyNote;
uint32_t clock_copy(ClockTrace *trace, uint32_t warp, const ClockCopyNote *note);

typedef enum { CLOCK_BULK, CLOCK_CP_ASYNC, CLOCK_WGMMA } ClockGroup;
void clock_commit(ClockTrace *trace, uint32_t warp, ClockGroup group);
void clock_awaited(ClockTrace *trace, uint32_t warp, ClockGroup group, uint32_t pending,
                   bool reads_only);
/* The mbarrier has changed and has now completed `phase` phases. scoped: by an arrival that fences
 * with .release.cluster first. copy: who did it, or -1: a thread. */
void clock_mbarrier(ClockTrace *trace, uint32_t warp, uint32_t address, uint32_t phase, bool init,
                    bool scoped, int64_t copy);
/* A wait for the mbarrier's last phase has ended. */
void clock_mbarrier_passed(ClockTrace *trace, uint32_t warp, uint32_t address);
void clock_barrier_arrived(ClockTrace *trace, uint32_t warp, uint32_t number, bool complete);
void clock_barrier_passed(ClockTrace *trace, uint32_t warp, uint32_t number);
/* A warp's share of a wgmma: this many multiply-adds of operands of this many bits. */
void clock_wgmma(ClockTrace *trace, uint32_t warp, uint64_t multiply_adds, uint32_t bits);
void clock_mma(ClockTrace *trace, uint32_t warp, uint64_t multiply_adds, uint32_t bits);

/* ---- When the launch has ended ---- */
void clock_launch_end(const Launch *launch, const char *kernel);
/* Frees the launch's traces. */
void clock_launch_free(const Launch *launch);

/* ---- For the recording: where an event is on the clock ---- */
/* The moment of a warp: its steps so far, and instructions since. */
typedef struct {
  uint32_t step, work;
} ClockMoment;
ClockMoment clock_moment(const ClockTrace *trace, uint32_t warp);
const ClockTrace *clock_find(const Launch *launch, uint32_t cluster);
double clock_of_moment(const ClockTrace *trace, uint32_t warp, ClockMoment moment);
double clock_of_source(const ClockTrace *trace, uint32_t copy);
double clock_of_landing(const ClockTrace *trace, uint32_t copy);
double clock_of_wgmma(const ClockTrace *trace, uint32_t number);
