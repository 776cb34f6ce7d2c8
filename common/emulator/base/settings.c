/* settings.c: what the EMULATOR_... environment variables say, read once. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/emulator.h"

static Settings values;
static pthread_once_t once = PTHREAD_ONCE_INIT;

__attribute__((noreturn)) static void refuse(const char *name, const char *value,
                                             const char *choices) {
  fprintf(stderr, "emulator: %s is '%s', but must be %s\n", name, value, choices);
  _exit(2); /* no exit handlers: a half-started program must not print a verdict */
}

static uint64_t read_number(const char *name, const char *text, const char *choices) {
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno) refuse(name, getenv(name), choices);
  return number;
}

static void read_schedule(const char *text) {
  static const char CHOICES[] = "late, early or random:SEED with a whole number as SEED";
  if (!strcmp(text, "late")) {
    values.schedule = SCHEDULE_LATE;
  } else if (!strcmp(text, "early")) {
    values.schedule = SCHEDULE_EARLY;
  } else if (!strncmp(text, "random:", 7)) {
    values.schedule = SCHEDULE_RANDOM;
    values.seed = read_number("EMULATOR_SCHEDULE", text + 7, CHOICES);
  } else {
    refuse("EMULATOR_SCHEDULE", text, CHOICES);
  }
}

static bool read_choice(const char *name, const char *yes, const char *no, bool otherwise,
                        const char *choices) {
  const char *text = getenv(name);
  if (!text) return otherwise;
  if (!strcmp(text, yes)) return true;
  if (!strcmp(text, no)) return false;
  refuse(name, text, choices);
}

static void read_all(void) {
  values.schedule = SCHEDULE_LATE;
  const char *text = getenv("EMULATOR_SCHEDULE");
  if (text) read_schedule(text);
  text = getenv("EMULATOR_CHECK");
  values.check_layout = text && !strcmp(text, "layout");
  values.check =
      values.check_layout || read_choice("EMULATOR_CHECK", "on", "off", true, "on, off or layout");
  values.fast_math = read_choice("EMULATOR_MATH", "fast", "exact", false, "exact or fast");
  /* About a minute of a cluster that only spins. */
  values.steps = 2000ull * 1000 * 1000;
  text = getenv("EMULATOR_STEPS");
  if (text) values.steps = read_number("EMULATOR_STEPS", text, "a whole number of instructions");
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  values.threads = cores > 0 && cores <= 1024 ? (int)cores : 1;
  text = getenv("EMULATOR_THREADS");
  if (text) {
    uint64_t threads = read_number("EMULATOR_THREADS", text, "1 to 1024");
    if (threads < 1 || threads > 1024) refuse("EMULATOR_THREADS", text, "1 to 1024");
    values.threads = (int)threads;
  }
}

/* Asked for at every turn: once they are read, without the call. */
const Settings *settings(void) {
  static bool known;
  if (__atomic_load_n(&known, __ATOMIC_ACQUIRE)) return &values;
  pthread_once(&once, read_all);
  __atomic_store_n(&known, true, __ATOMIC_RELEASE);
  return &values;
}
