/* trial.c: runs a launch again, in forked processes, with other values in what nothing has written.
 *
 * A process of its own keeps the trial apart: it may end with a fault, hang or run into its limits, and
 * leaves the program's memory as it is. There the memory that the launch has changed is as it was
 * before, and shared and local memory, registers and unwritten global memory begin with other
 * values. The order of threads is the same. If the launch then leaves something else in a byte that
 * has been written with a defined value, or there is a fault or another finding, the values
 * matter. If these bytes are where only kernels and copies can see them, it is not known yet
 * whether they do (pending.h). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/events.h"
#include "base/fault.h"
#include "base/fill.h"
#include "base/holds.h"
#include "base/report.h"
#include "base/summary.h"
#include "base/written.h"
#include "trial/launch_trial.h"
#include "trial/pending.h"

enum {
  STEPS_FACTOR = 4, /* how much longer than the launch itself a trial may take */
  STEPS_MORE = 1 << 16,
  LAST_RESORT_SECONDS = 120, /* of processor time: STEPS_FACTOR ends a trial long before */
  KNOWN_MOST = 1024
};
static const uint64_t STEPS_MOST = 200000000; /* of a launch: more would take too long again */

/* How often trials have shown that what this instruction reads does not matter, or may matter later. */
typedef struct {
  const Instruction *in;
  uint32_t harmless, pending;
} KnownRead;
static struct {
  KnownRead known[KNOWN_MOST]; /* launches end under the runtime's lock */
  Settings settings;           /* in the process of a trial, which has one thread */
} process;

/* The trials of one launch. */
typedef struct {
  Launch *launch;
  const LaunchEnd *end;
  TrialDifferences *differences; /* the forked processes write them */
  size_t bytes;                  /* that these take */
} Trials;

static void prepare_trial(Launch *launch) {
  if (is_tried_again()) return;
  const Settings *all = settings();
  bool apart = all->explore || all->schedule == SCHEDULE_EXPLORE || launch->recording >= 0 ||
               all->count || all->clock || launch->overlaps;
  launch->trial = all->checks && all->check_global && !apart ? trial_new() : NULL;
  launch->tried = launch->trial ? trial_number(launch->trial) : 0;
}

/* ---- One trial ---- */

_Noreturn static void run_trial(const Trials *all, Fill fill) {
  const struct rlimit limit = {LAST_RESORT_SECONDS, LAST_RESORT_SECONDS};
  LaunchTrial *trial = all->launch->trial;
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
    _exit(TRIAL_DIFFERS);
  setrlimit(RLIMIT_CPU, &limit);
  const uint64_t most = all->end->most_steps * STEPS_FACTOR + STEPS_MORE;
  process.settings = *settings();
  if (process.settings.steps > most) process.settings.steps = most;
  process.settings.threads = 1; /* for tried_races.c; results do not depend on it */
  process.settings.fill = fill;
  settings_known = &process.settings;
  trial_begin(trial);
  bool ran = all->end->run_again(all->launch, most);
  _exit(ran ? (int)trial_result(trial, all->differences) : TRIAL_DIFFERS);
}

/* Does the launch leave the same with these values? */
static TrialResult result_with(const Trials *all, Fill fill) {
  int status = 0;
  fflush(NULL); /* the forked process must not write what waits */
  const pid_t made = fork();
  if (made < 0) return TRIAL_DIFFERS;
  if (made == 0) run_trial(all, fill);
  while (waitpid(made, &status, 0) < 0)
    if (errno != EINTR) return TRIAL_DIFFERS;
  /* What does not hold there says nothing, because its stderr leads nowhere, and is no difference. */
  HOLDS(!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT);
  bool told = WIFEXITED(status) && WEXITSTATUS(status) < TRIAL_DIFFERS;
  return told ? (TrialResult)WEXITSTATUS(status) : TRIAL_DIFFERS;
}

/* first_only: which bytes differ is all that is to be known. */
static TrialResult result_with_all(const Trials *all, bool first_only) {
  static const Fill FILLS[] = {FILL_RANDOM, FILL_ZEROS, FILL_OTHER_RANDOM,
                               FILL_ONES,   FILL_LARGE, FILL_LARGE_NEGATIVE};
  const size_t count = first_only ? 1 : sizeof FILLS / sizeof *FILLS;
  const struct sigaction usual = {.sa_handler = SIG_DFL};
  struct sigaction before;
  TrialResult result = TRIAL_ALIKE;
  sigaction(SIGCHLD, &usual, &before); /* the program knows nothing of these processes */
  for (size_t i = 0; i < count && result != TRIAL_DIFFERS; i++) {
    TrialResult own = result_with(all, FILLS[i]);
    if (own > result) result = own;
  }
  sigaction(SIGCHLD, &before, NULL);
  return result;
}

static bool begin_trials(Trials *all, Launch *launch, const LaunchEnd *end) {
  const size_t bytes = trial_differences_bytes(launch->trial);
  void *shared =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *all = (Trials){launch, end, shared, bytes};
  return shared != MAP_FAILED;
}

/* ---- All of them ---- */

static KnownRead *known_of(const Instruction *in) {
  KnownRead *place = &process.known[(uintptr_t)in / sizeof *in % KNOWN_MOST];
  if (place->in != in) *place = (KnownRead){in, 0, 0};
  return place;
}

static bool is_due(uint32_t times) { return (times & (times - 1)) == 0; }

/* A launch that comes again and again is tried less and less often, or with one value only if the bytes
 * that differ have to be known each time. */
typedef struct {
  bool worth, first_only;
} TrialNeed;

static TrialNeed need_of(const KeptFinding *findings, size_t count) {
  TrialNeed need = {false, true};
  const Instruction *last = NULL;
  for (size_t i = 0; i < count; i++) {
    if (findings[i].in == last) continue;
    last = findings[i].in;
    const KnownRead *read = known_of(last);
    need.worth |= is_due(read->harmless) || read->pending;
    need.first_only &= !is_due(read->harmless + read->pending);
  }
  return need;
}

static void note_result(const KeptFinding *findings, size_t count, TrialResult result) {
  const Instruction *last = NULL;
  for (size_t i = 0; i < count; i++) {
    if (findings[i].in == last) continue;
    last = findings[i].in;
    KnownRead *read = known_of(last);
    if (result == TRIAL_WAITS)
      read->pending++;
    else
      read->harmless++;
  }
}

/* There may be something to report that was not reported before. */
static bool any_news(LaunchTrial *trial, Launch *launch) {
  size_t count;
  const KeptFinding *findings = trial_findings(trial, &count);
  for (size_t i = 0; i < count; i++)
    if (findings[i].pending
            ? !pending_was_reported(findings[i].pending)
            : finding_is_unknown(launch->traits->name, findings[i].in, &findings[i].what))
      return true;
  return false;
}

/* False: the findings have to be reported. */
static bool try_launch(Launch *launch, const LaunchEnd *end) {
  size_t count;
  Trials all;
  const KeptFinding *findings = trial_findings(launch->trial, &count);
  const TrialNeed need = need_of(findings, count);
  if (!need.worth) {
    summary_add(NOTE_held_back, count);
    return true;
  }
  if (!begin_trials(&all, launch, end)) return false;
  TrialResult result = result_with_all(&all, need.first_only);
  if (result != TRIAL_DIFFERS) note_result(findings, count, result);
  if (result == TRIAL_ALIKE) summary_add(NOTE_held_back, count);
  bool settled =
      result == TRIAL_ALIKE ||
      (result == TRIAL_WAITS && trial_keep_pending(launch->trial, launch, all.differences));
  munmap(all.differences, all.bytes);
  if (result == TRIAL_ALIKE) trial_hold_back(launch->trial, launch);
  return settled;
}

/* Findings that were held back are reported, or dropped after a trial. */
static void settle_findings(Launch *launch, const LaunchEnd *end) {
  LaunchTrial *trial = launch->trial;
  size_t count = 0;
  if (trial) trial_findings(trial, &count);
  if (count == 0) return;
  bool possible = !end->failed && !end->stalled && !launch->unique && !trial_is_ruled_out(trial) &&
                  end->steps <= STEPS_MOST && end->host_is_alone() && any_news(trial, launch);
  if (!possible || !try_launch(launch, end)) trial_report(trial, launch);
}

void trial_finding(const Doubt *doubt) {
  LaunchTrial *trial = doubt->warp->cta->cluster->launch->trial;
  if (doubt->left && !doubt->may_wait) {
    pending_report(doubt->left);
    return;
  }
  if (is_tried_again()) return;
  KeptFinding kept = kept_finding(doubt->warp, doubt->in, doubt->lanes, doubt->what, doubt->text);
  kept.pending = doubt->left;
  if (trial && trial_hold(trial, &kept)) return;
  if (doubt->left) {
    pending_report(doubt->left);
    return;
  }
  kept.cluster.recorder = doubt->warp->cta->cluster->recorder;
  kept_finding_report(&kept);
  kept_finding_free(&kept);
}

void trial_doubt(bool doubtful, Warp *warp, const Instruction *in, LaneMask lanes,
                 const Finding *what, const char *format, ...) {
  enum { TEXT = 2048 };
  char text[TEXT];
  PRINT_ARGUMENTS(text, sizeof text, format);
  if (doubtful)
    trial_finding(&(Doubt){warp, in, lanes, what, text, 0, true});
  else
    finding_of(warp, in, lanes, what, "%s", text);
}

PendingNumber trial_reads_unwritten(const Launch *launch, uint64_t first, uint64_t bytes,
                                    bool only_left) {
  enum { PART = 32 };
  const PendingNumber left = pending_in(first, bytes);
  if (!launch->trial || (only_left && !left)) return left;
  for (uint64_t at = first, end = first + bytes; at < end; at += PART) {
    const uint32_t part = end - at < PART ? (uint32_t)(end - at) : PART;
    const uint32_t all = (uint32_t)((1ull << part) - 1);
    trial_note_unwritten(launch->trial, at, ~written_bits(at, part) & all);
  }
  return left;
}

void trial_page_changes(const Launch *launch, uint64_t address) {
  if (launch->trial) trial_save(launch->trial, address);
}

void trial_undefined_stored(const Launch *launch, uint64_t address, uint32_t mask) {
  if (launch->trial) trial_note_stored(launch->trial, address, mask);
}

/* ---- Events ---- */

static void end_trial(Launch *launch, const LaunchEnd *end) {
  if (is_tried_again()) return;
  settle_findings(launch, end);
  trial_free(launch->trial);
  launch->trial = NULL;
}

static const Subscriber TRIALS = {.launch_begins = prepare_trial,
                                  .launch_ends = end_trial,
                                  .memory_forgotten = pending_forget,
                                  .memory_copied = pending_copied,
                                  .memory_is_visible = pending_host_can_see,
                                  .module_ends = pending_detach,
                                  .program_ends = pending_end};
SUBSCRIBE(TRIAL_EVENTS, TRIALS)
