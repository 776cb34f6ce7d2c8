/* settings.c: reads the EMULATOR_... environment variables, once. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"

#include "base/settings.h"

/* Written once, and then only read. */
static struct {
  Settings values;
  pthread_once_t once; /* writes the values, which are only read then */
} chosen = {.once = PTHREAD_ONCE_INIT};

__attribute__((noreturn)) static void refuse_setting(const char *name, const char *value,
                                                     const char *choices) {
  fprintf(stderr, "emulator: %s is '%s', but must be %s\n", name, value, choices);
  _exit(2); /* without exit handlers: a half-started program must not print a verdict */
}

static uint64_t setting_number(const char *name, const char *text, const char *choices) {
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  const bool zero_in_front = *text == '0' && text[1]; /* C's readers take 010 for eight */
  if (*text < '0' || *text > '9' || zero_in_front || *end || errno)
    refuse_setting(name, getenv(name), choices);
  return number;
}

static void read_schedule(const char *text) {
  static const char CHOICES[] =
      "late, early, random:SEED with a whole number as SEED, or replay:FILE with a file that "
      "emulate --explore has saved";
  if (!strcmp(text, "late")) {
    chosen.values.schedule = SCHEDULE_LATE;
  } else if (!strcmp(text, "early")) {
    chosen.values.schedule = SCHEDULE_EARLY;
  } else if (!strncmp(text, "random:", 7)) {
    chosen.values.schedule = SCHEDULE_RANDOM;
    chosen.values.seed = setting_number("EMULATOR_SCHEDULE", text + 7, CHOICES);
  } else if (!strncmp(text, "replay:", 7) && text[7]) {
    chosen.values.schedule = SCHEDULE_EXPLORE;
    chosen.values.replay_file = text + 7;
  } else {
    refuse_setting("EMULATOR_SCHEDULE", text, CHOICES);
  }
}

static const char STEPS[] = "a whole number of instructions from 1 on";
static const char EXPLORE[] = "EMULATOR_EXPLORE";
static const char EXPLORE_CHOICES[] =
    "orders:N, seconds:N, save:FILE and all, each at most once, separated by commas (N is a whole "
    "number from 1 on)";

static uint64_t read_explore_limit(const char *text) {
  const uint64_t limit = setting_number(EXPLORE, text, EXPLORE_CHOICES);
  if (limit == 0) refuse_setting(EXPLORE, getenv(EXPLORE), EXPLORE_CHOICES);
  return limit;
}

/* The variable is set, perhaps to nothing, if orders are to be explored. */
static void read_explore(const char *text) {
  chosen.values.explore = true;
  chosen.values.explore_orders = 10000;
  chosen.values.explore_seconds = 60;
  chosen.values.explore_file = "explore.schedule";
  if (chosen.values.schedule != SCHEDULE_LATE || getenv("EMULATOR_SCHEDULE"))
    refuse_setting("EMULATOR_SCHEDULE", getenv("EMULATOR_SCHEDULE"),
                   "left out while orders are explored (EMULATOR_EXPLORE): these are all orders");
  chosen.values.schedule = SCHEDULE_EXPLORE;
  char *copy = strdup(text), *rest = NULL;
  if (!copy) refuse_setting(EXPLORE, text, "shorter: out of memory");
  for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    if (!strncmp(word, "orders:", 7))
      chosen.values.explore_orders = read_explore_limit(word + 7);
    else if (!strncmp(word, "seconds:", 8))
      chosen.values.explore_seconds = read_explore_limit(word + 8);
    else if (!strncmp(word, "save:", 5) && word[5])
      chosen.values.explore_file = word + 5; /* the copy is kept */
    else if (!strcmp(word, "all"))
      chosen.values.explore_all = true;
    else
      refuse_setting(EXPLORE, text, EXPLORE_CHOICES);
  }
}

static bool read_flag(const char *name) {
  const char *text = getenv(name);
  if (!text || !strcmp(text, "0")) return false;
  if (strcmp(text, "1") != 0) refuse_setting(name, text, "0 or 1");
  return true;
}

static void read_clock(const char *text) {
  chosen.values.clock_recorded = !strcmp(text, "recorded");
  chosen.values.clock = chosen.values.clock_recorded || !strcmp(text, "h200");
  if (!chosen.values.clock && strcmp(text, "off") != 0)
    refuse_setting(
        "EMULATOR_CLOCK", text,
        "h200 (the only chip that was measured), recorded (the same for the recording alone: "
        "nothing is printed) or off");
}

static const char BLOCKS[] = "--blocks (EMULATOR_RECORD_BLOCKS)";
static const char BLOCK_CHOICES[] = "first, all, or numbers and ranges of blocks such as 0,5,8-11";

/* One number or range; returns a pointer to what follows it, a comma or the end. */
static const char *read_block_range(const char *at, const char *text, BlockRange *range) {
  char *end;
  errno = 0;
  if (*at < '0' || *at > '9') refuse_setting(BLOCKS, text, BLOCK_CHOICES);
  range->first = range->last = strtoull(at, &end, 10);
  if (*end == '-' && end[1] >= '0' && end[1] <= '9') range->last = strtoull(end + 1, &end, 10);
  if (errno || range->last < range->first || (*end && *end != ','))
    refuse_setting(BLOCKS, text, BLOCK_CHOICES);
  return end;
}

/* "first", "all", or numbers of blocks and ranges of them: "0,5,8-11". */
static const BlockRange *read_blocks(const char *text) {
  if (!strcmp(text, "first")) return NULL;
  BlockRange *ranges = new_zeros(strlen(text) + 2, sizeof *ranges);
  size_t count = 0;
  if (!strcmp(text, "all")) {
    ranges[count++] = (BlockRange){0, UINT64_MAX - 1};
  } else {
    const char *at = text;
    do at = read_block_range(at, text, &ranges[count++]);
    while (*at++ == ',');
  }
  ranges[count] = (BlockRange){UINT64_MAX, UINT64_MAX};
  return ranges;
}

static void read_recording(void) {
  chosen.values.record_file = getenv("EMULATOR_RECORD");
  if (chosen.values.record_file && !*chosen.values.record_file)
    refuse_setting("EMULATOR_RECORD", "", "the name of a file to write");
  const char *blocks = getenv("EMULATOR_RECORD_BLOCKS");
  chosen.values.record_blocks_text = blocks ? blocks : "first";
  chosen.values.record_blocks = read_blocks(chosen.values.record_blocks_text);
  const char *limit = getenv("EMULATOR_RECORD_LIMIT");
  chosen.values.record_limit = 256;
  if (limit)
    chosen.values.record_limit = setting_number("EMULATOR_RECORD_LIMIT", limit, "a number of MB");
  if (chosen.values.record_limit < 1 || chosen.values.record_limit > 1000000)
    refuse_setting("EMULATOR_RECORD_LIMIT", limit, "1 to 1000000 (MB)");
  chosen.values.record_limit *= 1000000;
}

static void read_findings(void) {
  const char *command = getenv("EMULATOR_PAGE_COMMAND");
  chosen.values.page_command = command && *command ? command : NULL;
  const char *text = chosen.values.findings_file = getenv("EMULATOR_FINDINGS");
  if (text && !*text) refuse_setting("EMULATOR_FINDINGS", "", "the name of a file to write");
  if (text && chosen.values.explore)
    refuse_setting(
        "EMULATOR_FINDINGS", text,
        "left out while orders are explored (EMULATOR_EXPLORE): set it when you replay the "
        "schedule that was saved");
}

static void read_check(const char *text) {
  static const char *const choices[] = {"on", "off", "errors", "strict", "layout", "shared"};
  size_t choice = 0, count = sizeof choices / sizeof *choices;
  while (choice < count && strcmp(text, choices[choice]) != 0) choice++;
  if (choice == count)
    refuse_setting("EMULATOR_CHECK", text, "on, off, errors, strict, layout or shared");
  chosen.values.checks = strcmp(text, "off") != 0;
  chosen.values.check_global = chosen.values.check_lanes = strcmp(text, "shared") != 0;
  chosen.values.check_errors_only = !strcmp(text, "errors");
  chosen.values.check_layout = !strcmp(text, "layout");
  chosen.values.check_strict = chosen.values.check_layout || !strcmp(text, "strict");
}

static void read_math(const char *text) {
  chosen.values.skip_math = !strcmp(text, "skip");
  if (!chosen.values.skip_math && strcmp(text, "exact") != 0)
    refuse_setting(
        "EMULATOR_MATH", text,
        "exact, or skip (wgmma leaves its results as they are: for EMULATOR_CLOCK alone)");
}

static const char *const KNOWN[] = {
    "EMULATOR_SCHEDULE", "EMULATOR_CHECK",        "EMULATOR_MATH",          "EMULATOR_STEPS",
    "EMULATOR_THREADS",  "EMULATOR_RECORD",       "EMULATOR_RECORD_BLOCKS", "EMULATOR_RECORD_LIMIT",
    "EMULATOR_COUNT",    "EMULATOR_EXPLORE",      "EMULATOR_CLOCK",         "EMULATOR_PATIENCE",
    "EMULATOR_FINDINGS", "EMULATOR_PAGE_COMMAND", "EMULATOR_SUMMARY",       "EMULATOR_PTX"};
enum { KNOWN_COUNT = sizeof KNOWN / sizeof *KNOWN, LONGEST_NAME = 64 };

static int smaller(int a, int b) { return a < b ? a : b; }

/* The edit distance: how many letters must be inserted, deleted or changed to turn a into b. */
static int letters_apart(const char *a, const char *b) {
  int row[LONGEST_NAME + 1], length = (int)strlen(b);
  for (int j = 0; j <= length; j++) row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= length; j++) {
      int changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = smaller(changed, 1 + smaller(row[j], row[j - 1]));
    }
  }
  return row[length];
}

/* A misspelled variable would have no effect, and no one would notice. */
static void refuse_unknown_names(void) {
  for (char **variable = environ; *variable; variable++) {
    int length = (int)strcspn(*variable, "=");
    if (strncmp(*variable, "EMULATOR_", 9)) continue;
    char name[LONGEST_NAME];
    snprintf(name, sizeof name, "%.*s", length, *variable);
    const char *nearest = KNOWN[0];
    for (int i = 0; i < KNOWN_COUNT; i++)
      if (letters_apart(name, KNOWN[i]) < letters_apart(name, nearest)) nearest = KNOWN[i];
    if (!strcmp(name, nearest)) continue;
    fprintf(stderr, "emulator: unknown setting %s; did you mean %s?\n", name, nearest);
    _exit(2);
  }
}

static void read_all(void) {
  refuse_unknown_names();
  chosen.values.schedule = SCHEDULE_LATE;
  chosen.values.checks = chosen.values.check_global = chosen.values.check_lanes = true;
  const char *text = getenv("EMULATOR_SCHEDULE");
  if (text) read_schedule(text);
  text = getenv(EXPLORE);
  if (text) read_explore(text);
  text = getenv("EMULATOR_CHECK");
  if (text) read_check(text);
  text = getenv("EMULATOR_MATH");
  if (text) read_math(text);
  /* About one minute for a cluster that only spins. */
  chosen.values.steps = 2000ull * 1000 * 1000;
  text = getenv("EMULATOR_STEPS");
  if (text) chosen.values.steps = setting_number("EMULATOR_STEPS", text, STEPS);
  if (text && chosen.values.steps == 0) refuse_setting("EMULATOR_STEPS", text, STEPS);
  chosen.values.patience = 10;
  text = getenv("EMULATOR_PATIENCE");
  if (text)
    chosen.values.patience =
        setting_number("EMULATOR_PATIENCE", text, "a number of seconds; 0: never");
  read_recording();
  read_findings();
  chosen.values.summary = read_flag("EMULATOR_SUMMARY");
  if (chosen.values.summary && chosen.values.explore)
    refuse_setting(
        "EMULATOR_SUMMARY", "1",
        "left out while orders are explored (EMULATOR_EXPLORE): set it when you replay the "
        "schedule that was saved");
  chosen.values.count = read_flag("EMULATOR_COUNT");
  text = getenv("EMULATOR_CLOCK");
  if (text) read_clock(text);
  if (chosen.values.skip_math && !chosen.values.clock)
    refuse_setting("EMULATOR_MATH", "skip", "exact without EMULATOR_CLOCK: skip computes nothing");
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  chosen.values.threads = cores > 0 && cores <= 1024 ? (int)cores : 1;
  text = getenv("EMULATOR_THREADS");
  if (text) {
    uint64_t threads = setting_number("EMULATOR_THREADS", text, "1 to 1024");
    if (threads < 1 || threads > 1024) refuse_setting("EMULATOR_THREADS", text, "1 to 1024");
    chosen.values.threads = (int)threads;
  }
}

const char *settings_schedule_name(void) {
  const char *text = getenv("EMULATOR_SCHEDULE");
  return text ? text : "late";
}

/* Atomic: set once all are read; in the process of a trial, which has one thread, changed by that. */
const Settings *settings_known;
const Settings *settings_read(void) {
  pthread_once(&chosen.once, read_all);
  __atomic_store_n(&settings_known, &chosen.values, __ATOMIC_RELEASE);
  return &chosen.values;
}
