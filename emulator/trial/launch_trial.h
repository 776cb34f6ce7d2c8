/* launch_trial.h: what is kept while a launch runs, so that it can be run again as a trial (trial.h). Inside this room. */
#pragma once

#include "base/kept_finding.h"
#include "trial/trial.h"

enum { TRIAL_PAGE_SHIFT = 16, TRIAL_PAGE = 1 << TRIAL_PAGE_SHIFT };

/* Memory before the launch first changed it. In a trial: what the launch had left there. */
typedef struct {
  uint64_t first;
  uint32_t bytes;
  uint8_t *held;     /* NULL: nothing here had been written */
  uint64_t *defined; /* in a trial: which bytes count, from the word of `first` on; NULL: all */
  bool may_wait;     /* only kernels and copies look here: see trial_keep_pending */
} TrialPiece;

/* Of one launch. NULL in its place: no trial is possible, and findings are reported at once. */
typedef struct LaunchTrial LaunchTrial; /* its lock is held for whatever a host thread adds to it */

LaunchTrial *trial_new(void);
void trial_free(LaunchTrial *trial);
/* Has the launch done something that a trial cannot repeat or undo? */
bool trial_is_ruled_out(const LaunchTrial *trial);
/* Different for each launch, never 0. */
uint32_t trial_number(const LaunchTrial *trial);
/* Before the launch first changes anything in these TRIAL_PAGE bytes around the address. */
void trial_save(LaunchTrial *trial, uint64_t address);
/* The launch reads these bytes of global memory; the bits of `missing` that are set have never been
 * written. At most 32 bytes. */
void trial_note_unwritten(LaunchTrial *trial, uint64_t address, uint32_t missing);
/* It has stored values without a meaning in these, so a trial finds there what it stores itself. */
void trial_note_stored(LaunchTrial *trial, uint64_t address, uint32_t mask);
/* In a trial this read finds other values. False: there are too many. */
bool trial_note_read(LaunchTrial *trial, const RacingRead *read);
/* The trial decides about this finding, which is taken over. False: no trial is possible. */
bool trial_hold(LaunchTrial *trial, KeptFinding *kept);

/* For the trial itself: what is held back. */
const KeptFinding *trial_findings(const LaunchTrial *trial, size_t *count);
void trial_report(LaunchTrial *trial, Launch *launch);
/* They have changed nothing. */
void trial_hold_back(LaunchTrial *trial, Launch *launch);
/* The bytes that differed in trials, in memory that the forked processes share. masks: one for each
 * PENDING_CHUNK bytes that the launch itself has changed. others: where only a trial has stored. */
enum { TRIAL_OTHERS_MOST = 4096 };
typedef struct {
  uint64_t chunk;
  uint32_t mask;
} TrialChunk;
typedef struct {
  uint32_t other_count;
  TrialChunk others[TRIAL_OTHERS_MOST];
  uint32_t masks[];
} TrialDifferences;
size_t trial_differences_bytes(const LaunchTrial *trial);
/* What is held back waits until somebody looks at these bytes (pending.h). False: it cannot. */
bool trial_keep_pending(LaunchTrial *trial, const Launch *launch,
                        const TrialDifferences *differences);

/* ---- In the process of a trial ---- */

/* The first racing read of this instruction, or the one after `last`; NULL: there is none. */
const RacingRead *trial_next_read(const LaunchTrial *trial, const RacingRead *last,
                                  uint32_t cluster, uint32_t agent, const Instruction *in);

/* Puts back the memory that the launch began with, with other values (settings()->fill) in what was not
 * written. */
void trial_begin(LaunchTrial *trial);
typedef enum {
  TRIAL_ALIKE,  /* the memory is as the launch had left it, and the findings are the same */
  TRIAL_WAITS,  /* what differs is in bytes that only kernels and copies can see */
  TRIAL_DIFFERS /* the host may see it */
} TrialResult;
/* Adds the bytes that differ. */
TrialResult trial_result(const LaunchTrial *trial, TrialDifferences *differences);
/* It cannot go on as it should. */
void trial_fail(void);
