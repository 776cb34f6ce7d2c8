/* trial.h: does a finding matter? The launch is run again, to see (all that others call of this room; it also
 * hears of the events that trial.c lists).
 *
 * A kernel may read memory that nothing has written, or that another thread is just writing, and drop the value.
 * Whether a value matters cannot always be seen from the way it takes: a scan may add it and subtract it again. So
 * a finding of that kind is held back until the launch ends. Then the launch runs again, in a forked process, from
 * the memory it began with, and finds other values there (trial.c). If all that it leaves is the same, the finding
 * is dropped. If what differs is in global memory that only kernels and copies see, it waits until somebody looks
 * there (pending.h).
 *
 *   launch_trial.c  what is kept of a launch: memory before it changes, findings, racing reads
 *   trial.c    runs it again, and decides
 *   tried_races.c    there, other values for accesses to shared memory that race
 *   pending.c  findings whose only trace is bytes of global memory */
#pragma once

#include "base/fault.h"

/* Findings of earlier launches that have left something in global memory; 0: none. */
typedef uint32_t PendingNumber;

/* A finding that matters only if something depends on a value. */
typedef struct {
  Warp *warp;
  const Instruction *in;
  LaneMask lanes;
  const Finding *what;
  const char *text; /* of `left`: NULL */
  PendingNumber
      left; /* what these say is meant, because the launch has read what they left; 0: itself */
  bool may_wait; /* false: it is already known that the value matters */
} Doubt;
void trial_finding(const Doubt *doubt);
/* As `finding_of`. doubtful: the trial decides whether it is reported. */
__attribute__((format(printf, 6, 7))) void trial_doubt(bool doubtful, Warp *warp,
                                                       const Instruction *in, LaneMask lanes,
                                                       const Finding *what, const char *format,
                                                       ...);

/* A read of shared memory that races with a write: this word, by this instruction of this warp at this
 * time of the checker's clock since the cluster began. For the other lanes it is in order. */
typedef struct {
  uint32_t cluster, rank, word, agent, time; /* time 0: not known */
  uint32_t lanes;
  uint32_t stamp; /* of the order of the warp's lanes, since the cluster began; 0: any */
  const Instruction *in;
  uint32_t next; /* in launch_trial.c */
} RacingRead;
/* True: a trial will give it other values, so the finding may be held back. */
bool trial_gives_others(const Cluster *cluster, RacingRead read);
/* Two unordered stores to these bytes, the second of them by the present instruction. True: as above. */
bool trial_changes_stored(const Cluster *cluster, uint32_t rank, uint32_t offset, uint32_t bytes);

/* In a trial: an access of these lanes to shared memory is about to be made. */
typedef struct {
  Warp *warp;
  const Instruction *in;
  LaneMask mask;
  const uint32_t *addresses;
  uint32_t bytes, agent, stamp;
  bool reads;
  uint32_t (*time_of)(const Warp *warp, const Instruction *in); /* since the cluster began */
} TriedAccess;
void trial_access(const TriedAccess *access);
/* And the lanes whose load does not race find the bytes that are there, and not those of the trial. Their places
 * are moved to a copy. */
void trial_lanes(const Warp *warp, LaneMask mask, uint8_t **at, uint32_t bytes);

/* The launch reads bytes of global memory, some of which count as not written: what has left them. only_left: a
 * trial need not give them other values if nothing has. */
PendingNumber trial_reads_unwritten(const Launch *launch, uint64_t first, uint64_t bytes,
                                    bool only_left);

/* Before the launch changes bytes of a page of the checker's shadow for the first time, at this address. Nobody else
 * writes there meanwhile. */
void trial_page_changes(const Launch *launch, uint64_t address);
/* The launch has stored values without a meaning in the bytes of this mask, which count as not written. */
void trial_undefined_stored(const Launch *launch, uint64_t address, uint32_t mask);
