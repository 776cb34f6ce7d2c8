/* trial.h: what is kept while a launch runs, so that it can be run again as a trial.
 *
 * A kernel may read memory that nothing has written, and drop the value. Whether a value matters
 * cannot always be seen from the way it takes: a scan may add it and subtract it again. So a
 * finding of that kind is held back until the launch ends. Then the launch runs again, in a forked
 * process, from the memory it began with, and finds other values where nothing has been written
 * (machine/trial.c). If all that it leaves is the same, the finding is dropped. */
#ifndef EMULATOR_TRIAL_H
#define EMULATOR_TRIAL_H

#include "base/kept_finding.h"

enum { TRIAL_PAGE_SHIFT = 16, TRIAL_PAGE = 1 << TRIAL_PAGE_SHIFT };

/* Memory before the launch first changed it. In a trial: what the launch had left there. */
typedef struct {
  uint64_t first;
  uint32_t bytes;
  uint8_t *held;     /* NULL: nothing here had been written */
  uint64_t *defined; /* in a trial: which bytes count, from the word of `first` on; NULL: all */
  bool may_wait;     /* only kernels and copies look here: see trial_keep_pending */
} TrialPiece;

/* A read of shared memory that races with a write: this word, by this instruction of this warp at this
 * time of the checker's clock since the cluster began. For the other lanes it is in order. */
typedef struct {
  uint32_t cluster, rank, word, agent, time;
  uint32_t lanes;
  uint32_t stamp; /* of the order of the warp's lanes, since the cluster began; 0: any */
  const Instruction *in;
  uint32_t next; /* 1 + the next one in the hash table; 0: none */
} RacingRead;

/* Of one launch. NULL in its place: no trial is possible, and findings are reported at once. */
typedef struct LaunchTrial LaunchTrial;

LaunchTrial *trial_new(void);
void trial_free(LaunchTrial *trial);
/* Different for each launch, never 0. */
uint32_t trial_number(const LaunchTrial *trial);
/* The launch does something that a trial cannot repeat or undo. */
void trial_rule_out(LaunchTrial *trial);
bool trial_is_ruled_out(const LaunchTrial *trial);
/* Before the launch first changes anything in these TRIAL_PAGE bytes around the address. The caller
 * sees to it that nobody else writes there meanwhile. */
void trial_save(LaunchTrial *trial, uint64_t address);
/* The launch reads these bytes of global memory; the bits of `missing` that are set have never been
 * written. At most 32 bytes. */
void trial_note_unwritten(LaunchTrial *trial, uint64_t address, uint32_t missing);
/* It has stored values without a meaning in these, so a trial finds there what it stores itself. */
void trial_note_stored(LaunchTrial *trial, uint64_t address, uint32_t mask);
/* In a trial this read finds other values. False: there are too many. */
bool trial_note_read(LaunchTrial *trial, const RacingRead *read);
/* As `finding`, but the trial decides whether it is reported. */
void finding_to_try(Warp *warp, const Instruction *in, LaneMask lanes, const char *rule,
                    const char *text);

/* The trial decides about this finding, which is taken over. False: no trial is possible. */
bool trial_hold(LaunchTrial *trial, KeptFinding *kept);

/* For the trial itself: what is held back. */
const KeptFinding *trial_findings(const LaunchTrial *trial, size_t *count);
void trial_report(LaunchTrial *trial, Launch *launch);
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

bool trial_is_running(void);
/* The first racing read of this instruction, or the one after `last`; NULL: there is none. */
const RacingRead *trial_next_read(const LaunchTrial *trial, const RacingRead *last,
                                  uint32_t cluster, uint32_t agent, const Instruction *in);

/* What memory and registers hold before a kernel writes them. Poison is the usual one. */
typedef enum {
  FILL_POISON,
  FILL_RANDOM,
  FILL_ZEROS,
  FILL_OTHER_RANDOM,
  FILL_ONES,
  FILL_LARGE,         /* positive in every format */
  FILL_LARGE_NEGATIVE /* in every signed one */
} TrialFill;
/* `place` says where the bytes are: the same in each process and on each host thread. */
void trial_fill_bytes(void *to, size_t bytes, uint64_t place);
/* Puts back the memory that the launch began with, with other values in what was not written. */
void trial_begin(LaunchTrial *trial, TrialFill fill);
typedef enum {
  TRIAL_ALIKE,  /* the memory is as the launch had left it, and the findings are the same */
  TRIAL_WAITS,  /* what differs is in bytes that only kernels and copies can see */
  TRIAL_DIFFERS /* the host may see it */
} TrialResult;
/* Adds the bytes that differ. */
TrialResult trial_result(const LaunchTrial *trial, TrialDifferences *differences);
/* A finding that the launch did not have. */
void trial_note_finding(void);

#endif
