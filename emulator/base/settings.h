/* settings.h: the settings, from the environment, read once (settings.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of blocks in a grid, x first; the last range of a list has UINT64_MAX for both. */
typedef struct {
  uint64_t first, last;
} BlockRange;
/* SCHEDULE_EXPLORE: explore/explore.h chooses every step, for exploration and for replay. */
typedef enum { SCHEDULE_LATE, SCHEDULE_EARLY, SCHEDULE_RANDOM, SCHEDULE_EXPLORE } Schedule;
/* What memory and registers hold before a kernel writes them: poison, or, when a launch is tried again
 * (trial/trial.h), something else. */
typedef enum {
  FILL_POISON,
  FILL_RANDOM,
  FILL_ZEROS,
  FILL_OTHER_RANDOM,
  FILL_ONES,
  FILL_LARGE,         /* positive in every format */
  FILL_LARGE_NEGATIVE /* in every signed one */
} Fill;
typedef struct {
  Schedule schedule; /* EMULATOR_SCHEDULE=late|early|random:SEED|replay:FILE */
  uint64_t seed;
  const char *replay_file;                  /* of replay:FILE; NULL: another schedule */
  bool explore;                             /* EMULATOR_EXPLORE=orders:N,seconds:N,save:FILE,all */
  bool explore_all;                         /* go on after a failure */
  uint64_t explore_orders, explore_seconds; /* limits: orders of one launch; seconds in all */
  const char *explore_file;                 /* receives the schedule of a failure */
  bool checks;       /* EMULATOR_CHECK=on|off|errors|strict|layout|shared: false for off alone */
  bool check_global; /* false for shared: accesses to global memory are not checked */
  bool check_lanes;  /* false for shared: nor is the order among the lanes of one warp */
  bool check_errors_only;  /* errors: strict findings are left out */
  bool check_strict;       /* strict: exit code 3 for strict findings too */
  bool check_layout;       /* layout: strict, and layouts.c too */
  bool skip_math;          /* EMULATOR_MATH=skip: wgmma computes nothing; for the clock alone */
  uint64_t steps;          /* EMULATOR_STEPS: warp instructions of one cluster without progress */
  uint64_t patience;       /* EMULATOR_PATIENCE: after how many seconds a kernel runs long */
  int threads;             /* EMULATOR_THREADS: host threads, default all cores */
  const char *record_file; /* EMULATOR_RECORD; NULL: nothing is recorded */
  const char *record_blocks_text;  /* EMULATOR_RECORD_BLOCKS as written; "first" */
  const BlockRange *record_blocks; /* the same; NULL: the first cluster of each launch */
  bool count;                      /* EMULATOR_COUNT=1 */
  bool clock;                      /* EMULATOR_CLOCK=h200 or recorded */
  bool clock_recorded;             /* recorded: in the recording alone, and nothing is printed */
  uint64_t record_limit;           /* EMULATOR_RECORD_LIMIT, in bytes */
  const char *findings_file;       /* EMULATOR_FINDINGS; NULL: they are printed alone */
  const char *
      page_command; /* EMULATOR_PAGE_COMMAND, which emulate sets: how a page is written, up to the last
                                      option, a line break, and the program; NULL: nothing is offered */
  bool summary;     /* EMULATOR_SUMMARY=1 */
  Fill fill;        /* no setting: FILL_POISON, but in the process of a trial */
} Settings;
extern const Settings *settings_known
    __attribute__((visibility("hidden"))); /* NULL: not read yet */
/* an invalid value prints a message with the value and the choices, exit code 2 */
const Settings *settings_read(void);
/* "late", "random:7" */
const char *settings_schedule_name(void);
/* Called by nearly every instruction. */
static inline const Settings *settings(void) {
  const Settings *known = __atomic_load_n(&settings_known, __ATOMIC_ACQUIRE);
  return __builtin_expect(known != NULL, 1) ? known : settings_read();
}
