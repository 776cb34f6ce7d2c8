/* findings.c: groups similar findings, and prints the summary at the end of the
 * program.
 *
 * One mistake often shows up in many places: in every copy of an unrolled loop, in every thread and
 * block, in every instance of a template. The first finding is printed in full when it happens. The
 * others are counted, and the summary says how many there were and where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/events.h"
#include "base/holds.h"
#include "base/lock.h"
#include "base/report.h"
#include "base/rules.h"
#include "base/settings.h"
#include "base/summary.h"

enum {
  FINDINGS_KEPT = 256,
  INSTRUCTIONS_KEPT = 64, /* of each finding */
  PLACE_TEXT = 256,
  EXIT_FINDINGS = 3
};

typedef struct {
  const Rule *rule;
  char place[PLACE_TEXT];     /* "saxpy.cu:12", or the kernel's name when the line is not known */
  bool line_known, unordered; /* unordered: `place` and `other` are known, and may be exchanged */
  char other[PLACE_TEXT];     /* the line of the other access, for findings about two accesses */
  const Instruction *instructions[INSTRUCTIONS_KEPT]; /* their module may have been unloaded */
  uint32_t ptx_lines[INSTRUCTIONS_KEPT];
  int instruction_count;
  bool more_instructions, several_blocks, in_kernel;
  ReportedBlock block; /* the first of them, in the order of the launch */
  long count;
  uint32_t least, most; /* range of their offsets in shared memory; most 0: none */
  uint64_t kept_at;     /* what report_hooks.keep returned */
} KnownFinding;

static struct {
  pthread_mutex_t lock; /* of all of it */
  KnownFinding findings[FINDINGS_KEPT];
  int count;
} reported = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Which are alike ---- */

static void note_offset(KnownFinding *finding, uint32_t offset) {
  if (finding->most == 0 || offset < finding->least) finding->least = offset;
  if (offset > finding->most) finding->most = offset;
}

static void note_memory(KnownFinding *finding, const Finding *what) {
  if (what->memory == ABOUT_SHARED) note_offset(finding, (uint32_t)what->address);
}

static bool has_instruction(const KnownFinding *finding, const Instruction *in) {
  for (int i = 0; i < finding->instruction_count; i++)
    if (finding->instructions[i] == in && finding->ptx_lines[i] == in->line) return true;
  return false;
}

static KnownFinding *find_like(const KnownFinding *wanted, const Instruction *in) {
  for (int i = 0; i < reported.count; i++) {
    KnownFinding *each = &reported.findings[i];
    if (each->rule != wanted->rule) continue;
    if (has_instruction(each, in)) return each;
    /* Two colliding accesses may be reported in either order. */
    if (each->unordered && wanted->unordered && !strcmp(each->place, wanted->other) &&
        !strcmp(each->other, wanted->place))
      return each;
    if (each->line_known == wanted->line_known && !strcmp(each->place, wanted->place) &&
        !strcmp(each->other, wanted->other))
      return each;
  }
  return NULL;
}

/* ---- The end ---- */

static void describe_repetitions(Report *report, const KnownFinding *finding) {
  report_add(report, "  %s %s %s: %ld times", finding->rule->name,
             finding->line_known ? "at" : "in", finding->place, finding->count);
  if (finding->several_blocks) report_add(report, ", in several blocks");
  int instructions = finding->instruction_count;
  if (instructions > 1) {
    uint32_t first = UINT32_MAX, last = 0;
    for (int i = 0; i < instructions; i++) {
      uint32_t line = finding->ptx_lines[i];
      first = line < first ? line : first;
      last = line > last ? line : last;
    }
    report_add(report, ", by %s%d instructions (PTX ",
               finding->more_instructions ? "more than " : "", instructions);
    if (first < last)
      report_add(report, "lines %u to %u)", first, last);
    else /* inline assembly may hold several instructions in a line */
      report_add(report, "line %u)", first);
  }
  if (finding->most > finding->least)
    report_add(report, ", at offsets 0x%x to 0x%x of shared memory", finding->least, finding->most);
  report_add(report, "\n");
}

/* A program with an error that the checker found must not exit with code 0: a PASS despite a
 * missing fence is exactly the kind of bug that shows up later. */
static void end_with_findings(int status, void *unused) {
  (void)unused;
  emit_program_ends();
  int errors = 0;
  Report report = {.used = 0};
  for (int i = 0; report_hooks.keep_count && i < reported.count; i++)
    report_hooks.keep_count(reported.findings[i].kept_at, reported.findings[i].count);
  for (int i = 0; i < reported.count; i++) {
    HOLDS(reported.findings[i].count > 0);
    errors += !rule_is_strict(reported.findings[i].rule);
  }
  int strict = reported.count - errors;
  report_add(&report, "emulator: %d finding%s (", reported.count, reported.count == 1 ? "" : "s");
  if (errors) report_add(&report, "%d error%s", errors, errors == 1 ? "" : "s");
  if (strict) report_add(&report, "%s%d strict", errors ? ", " : "", strict);
  report_add(&report, ")\n");
  for (int i = 0; i < reported.count; i++)
    if (reported.findings[i].count > 1) describe_repetitions(&report, &reported.findings[i]);
  report_write(&report);
  summary_end();
  if (report_hooks.last_words) report_hooks.last_words();
  const KnownFinding *in_kernel = reported.findings;
  while (in_kernel < reported.findings + reported.count && !in_kernel->in_kernel) in_kernel++;
  page_command_print(in_kernel < reported.findings + reported.count ? &in_kernel->block : NULL);
  if (status == 0 && (errors || settings()->check_strict)) _exit(EXIT_FINDINGS);
}

static KnownFinding *new_finding(const KnownFinding *wanted, const Warp *warp) {
  if (reported.count == FINDINGS_KEPT) {
    summary_note(NOTE_findings);
    return NULL;
  }
  if (reported.count == 0) on_exit(end_with_findings, NULL);
  KnownFinding *made = &reported.findings[reported.count++];
  *made = *wanted;
  made->in_kernel = warp != NULL;
  if (warp) made->block = reported_block(warp);
  return made;
}

/* The finding that this instruction has made before by this rule. A mistake in a loop comes a million times,
 * and need not be compared with all others each time. */
static KnownFinding *find_again(const Instruction *in, const Rule *rule) {
  for (int i = 0; i < reported.count; i++)
    if (has_instruction(&reported.findings[i], in) && reported.findings[i].rule == rule)
      return &reported.findings[i];
  return NULL;
}

static void count_again(KnownFinding *finding, const Warp *warp) {
  finding->count++;
  const ReportedBlock block = reported_block(warp);
  finding->several_blocks |= finding->block.block != block.block;
  if (block.cluster < finding->block.cluster) finding->block = block;
}

static bool has_line(const Instruction *in) { return in->source.line && in->source.file; }

static void write_place(const Instruction *in, char *place) {
  snprintf(place, PLACE_TEXT, "%s:%u", report_file_name(in->source.file), in->source.line);
}

static KnownFinding describe(const char *kernel, const Instruction *in, const Finding *what) {
  KnownFinding wanted = {.rule = what->rule, .line_known = has_line(in)};
  if (wanted.line_known)
    write_place(in, wanted.place);
  else
    report_kernel_name(kernel, wanted.place, PLACE_TEXT);
  if (what->other && has_line(what->other)) write_place(what->other, wanted.other);
  wanted.unordered = what->unordered && wanted.line_known && *wanted.other;
  return wanted;
}

bool finding_is_unknown(const char *kernel, const Instruction *in, const Finding *what) {
  KnownFinding wanted = describe(kernel, in, what);
  HOLD_LOCK(&reported.lock);
  return !find_like(&wanted, in);
}

static void keep_record(KnownFinding *finding, const ReportNote *note) {
  if (report_hooks.keep) finding->kept_at = report_hooks.keep(note);
}

static bool note_finding(const ReportNote *report) {
  const Warp *warp = report->warp;
  const Instruction *in = report->in;
  const Finding *what = report->what;
  KnownFinding *again = find_again(in, what->rule);
  if (again) {
    count_again(again, warp);
    note_memory(again, what);
    return false;
  }
  KnownFinding wanted = describe(warp->cta->cluster->launch->traits->name, in, what);
  KnownFinding *known = find_like(&wanted, in);
  bool fresh = !known;
  if (fresh) known = new_finding(&wanted, warp);
  if (!known) return false;
  if (fresh) keep_record(known, report);
  count_again(known, warp);
  note_memory(known, what);
  if (has_instruction(known, in)) return fresh;
  known->more_instructions |= known->instruction_count == INSTRUCTIONS_KEPT;
  if (known->more_instructions) return fresh;
  HOLDS(known->instruction_count < INSTRUCTIONS_KEPT);
  known->ptx_lines[known->instruction_count] = in->line;
  known->instructions[known->instruction_count++] = in;
  return fresh;
}

bool finding_is_new(const ReportNote *report) {
  HOLD_LOCK(&reported.lock);
  return note_finding(report);
}

bool finding_counts_again(const Warp *warp, const Instruction *in, const Rule *rule,
                          uint32_t offset) {
  HOLD_LOCK(&reported.lock);
  KnownFinding *again = find_again(in, rule);
  if (again) {
    count_again(again, warp);
    note_offset(again, offset);
  }
  return again;
}

bool finding_of_host_is_new(const Rule *rule, const char *about, const char *message) {
  KnownFinding wanted = {.rule = rule, .place = "the host's calls"};
  snprintf(wanted.other, PLACE_TEXT, "%s", about);
  HOLD_LOCK(&reported.lock);
  KnownFinding *known = find_like(&wanted, NULL);
  bool fresh = !known;
  if (fresh) known = new_finding(&wanted, NULL);
  if (known) known->count++;
  fresh = fresh && known;
  if (fresh)
    keep_record(known,
                &(const ReportNote){.what = &(const Finding){.rule = rule}, .text = message});
  return fresh;
}

int findings_distinct(void) {
  HOLD_LOCK(&reported.lock);
  return reported.count;
}
