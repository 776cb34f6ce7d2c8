/* trial.c: runs a launch again, in forked processes, with other values in what nothing has written.
 *
 * A process of its own keeps the trial apart: it may end with a fault, hang or run into its limits, and
 * leaves the program's memory as it is. There the memory that the launch has changed is as it was
 * before, and shared and local memory, registers and unwritten global memory begin with other
 * values. The order of threads is the same. If the launch then leaves something else in a byte that
 * has been written with a defined value, or there is a fault or another finding, the values
 * matter. */
#include "machine/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/report.h"
#include "base/settings.h"
#include "machine/launch.h"
#include "machine/machine.h"

enum {
  STEPS_FACTOR = 4, /* how much longer than the launch itself a trial may take */
  STEPS_MORE = 1 << 16,
  LAST_RESORT_SECONDS = 120, /* of processor time: STEPS_FACTOR ends a trial long before */
  KNOWN_MOST = 1024
};
static const uint64_t STEPS_MOST = 200000000; /* of a launch: more would take too long again */

/* How often trials have shown that what this instruction reads does not matter. */
typedef struct {
  const Instruction *in;
  uint32_t times;
} KnownHarmless;
static KnownHarmless known[KNOWN_MOST]; /* launches end under the runtime's lock */

void trial_prepare(Launch *launch) {
  const Settings *all = settings();
  bool apart = all->explore || all->schedule == SCHEDULE_EXPLORE || launch->recording >= 0 ||
               all->count || all->clock || launch->overlaps || launch->overlaps_begun;
  launch->trial = all->check && all->check_global && !apart ? trial_new() : NULL;
}

/* ---- One trial ---- */

_Noreturn static void run_trial(Launch *launch, TrialFill fill, uint64_t most_steps) {
  const struct rlimit limit = {LAST_RESORT_SECONDS, LAST_RESORT_SECONDS};
  static Settings own;
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0 || dup2(nowhere, STDOUT_FILENO) < 0) _exit(1);
  setrlimit(RLIMIT_CPU, &limit);
  machine_steps_most = most_steps * STEPS_FACTOR + STEPS_MORE;
  own = *settings();
  if (own.steps > machine_steps_most) own.steps = machine_steps_most;
  own.threads = 1; /* for check_trial.c; results do not depend on it */
  settings_known = &own;
  trial_begin(launch->trial, fill);
  _exit(launch_run_again(launch) && trial_is_alike(launch->trial) ? 0 : 1);
}

/* Does the launch leave the same with these values? */
static bool is_same_with(Launch *launch, TrialFill fill, uint64_t most_steps) {
  int status = 0;
  fflush(NULL); /* the forked process must not write what waits */
  const pid_t made = fork();
  if (made < 0) return false;
  if (made == 0) run_trial(launch, fill, most_steps);
  while (waitpid(made, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_same_with_all(Launch *launch, uint64_t most_steps) {
  static const TrialFill FILLS[] = {FILL_RANDOM, FILL_ZEROS, FILL_OTHER_RANDOM, FILL_ONES};
  const struct sigaction usual = {.sa_handler = SIG_DFL};
  struct sigaction before;
  bool same = true;
  sigaction(SIGCHLD, &usual, &before); /* the program knows nothing of these processes */
  for (size_t i = 0; i < sizeof FILLS / sizeof *FILLS && same; i++)
    same = is_same_with(launch, FILLS[i], most_steps);
  sigaction(SIGCHLD, &before, NULL);
  return same;
}

/* ---- All of them ---- */

static KnownHarmless *known_of(const Instruction *in) {
  KnownHarmless *place = &known[(uintptr_t)in / sizeof *in % KNOWN_MOST];
  if (place->in != in) *place = (KnownHarmless){in, 0};
  return place;
}

/* A launch that comes again and again is tried less and less often. */
static bool is_worth_trying(const TrialFinding *findings, size_t count) {
  bool worth = false;
  const Instruction *last = NULL;
  for (size_t i = 0; i < count; i++) {
    if (findings[i].in == last) continue;
    last = findings[i].in;
    uint32_t times = known_of(last)->times;
    worth |= (times & (times - 1)) == 0;
  }
  return worth;
}

static void note_harmless(const TrialFinding *findings, size_t count) {
  const Instruction *last = NULL;
  for (size_t i = 0; i < count; i++) {
    if (findings[i].in == last) continue;
    last = findings[i].in;
    known_of(last)->times++;
  }
}

/* There may be something to report that was not reported before. */
static bool any_news(LaunchTrial *trial, Launch *launch) {
  size_t count;
  const TrialFinding *findings = trial_findings(trial, &count);
  for (size_t i = 0; i < count; i++)
    if (finding_is_unknown(launch->traits->name, findings[i].in, findings[i].rule,
                           findings[i].text))
      return true;
  return false;
}

void trial_settle(Launch *launch, bool failed, uint64_t steps, uint64_t most_steps) {
  LaunchTrial *trial = launch->trial;
  size_t count;
  if (!trial) return;
  const TrialFinding *findings = trial_findings(trial, &count);
  if (count == 0) return;
  bool possible = !failed && !launch->unique && !trial_is_ruled_out(trial) && steps <= STEPS_MOST &&
                  launch_host_is_alone() && any_news(trial, launch);
  bool harmless =
      possible && (!is_worth_trying(findings, count) || is_same_with_all(launch, most_steps));
  if (harmless)
    note_harmless(findings, count);
  else
    trial_report(trial, launch);
}
