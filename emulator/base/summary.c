/* summary.c: what was checked, in one line (summary.h). */
#include "base/summary.h"

#include <stdlib.h>

#include "base/events.h"
#include "base/report.h"
#include "base/settings.h"

uint64_t summary_notes[NOTE_COUNT];

static const struct {
  SummaryKind kind;
  const char *text;
} NOTES[] = {
#define NOTE(name, kind, text) {kind, text},
#include "base/summary.def"
#undef NOTE
};

const char *summary_next(SummaryKind kind, int *note) {
  while (*note < NOTE_COUNT) {
    const int at = (*note)++;
    if (NOTES[at].kind == kind && __atomic_load_n(&summary_notes[at], __ATOMIC_RELAXED))
      return NOTES[at].text;
  }
  return NULL;
}

/* The number-th check that the settings leave on, or that they leave out. */
static const char *nth_check(bool is_on, int number) {
  const Settings *all = settings();
  const bool on = all->checks;
  const struct {
    const char *name;
    bool is_on;
  } checks[] = {{"shared memory", on},
                {"global memory", on && all->check_global},
                {"lanes of a warp", on && all->check_lanes},
                {"uninitialised values", on},
                {"copies and mbarriers", on},
                {"registers of wgmma", on},
                {"streams", on && all->check_global},
                {"what only strict findings say", on && !all->check_errors_only},
                {"swizzled tiles in loads and stores", on && all->check_layout}};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    if (checks[i].is_on == is_on && number-- == 0) return checks[i].name;
  return NULL;
}

const char *summary_checked(int number) { return nth_check(true, number); }
const char *summary_left_out(int number) { return nth_check(false, number); }

/* ---- The line ---- */

static void add_checks(Report *report, const char *title, const char *name_of(int number)) {
  const char *name = name_of(0);
  report_add(report, "; %s: %s", title, name ? name : "nothing");
  for (int i = 1; name && (name = name_of(i)) != NULL; i++) report_add(report, ", %s", name);
}

static void add_notes(Report *report, const char *title, SummaryKind kind) {
  int at = 0;
  const char *text = summary_next(kind, &at);
  report_add(report, "; %s: %s", title, text ? text : "nothing");
  while (text && (text = summary_next(kind, &at)) != NULL) report_add(report, ", %s", text);
}

static void print_line(void) {
  Report report = {.used = 0};
  const uint64_t launches = summary_notes[NOTE_launches], held = summary_notes[NOTE_held_back];
  report_add(&report, "emulator: summary: %llu launch%s in %s order", (unsigned long long)launches,
             launches == 1 ? "" : "es", settings_schedule_name());
  add_checks(&report, "checked", summary_checked);
  add_checks(&report, "left out by EMULATOR_CHECK", summary_left_out);
  add_notes(&report, "not looked at beyond a limit", GAP);
  add_notes(&report, "let pass", LENIENT);
  report_add(&report, "; held back because the results stayed the same: %llu finding%s\n",
             (unsigned long long)held, held == 1 ? "" : "s");
  report_write(&report);
}

void summary_end(void) {
  if (summary_notes[NOTE_ended]) return; /* handlers of exit() run one after the other */
  summary_note(NOTE_ended);
  if (settings()->summary) print_line();
  if (report_hooks.keep_run) report_hooks.keep_run();
}

static void end_without_findings(int status, void *unused) {
  (void)status, (void)unused;
  summary_end();
}

__attribute__((constructor)) static void begin_summary(void) {
  if (!getenv("EMULATOR_SUMMARY") && !getenv("EMULATOR_FINDINGS")) return;
  settings(); /* a value that is refused is refused before the program prints anything */
  on_exit(end_without_findings, NULL);
}

static void launch_begins(Launch *launch) {
  (void)launch;
  summary_add(NOTE_launches, 1);
}

static const Subscriber SUMMARY = {.launch_begins = launch_begins};
SUBSCRIBE(SUMMARY_EVENTS, SUMMARY)
