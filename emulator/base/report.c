/* report.c: prints faults and findings on stderr.
 *
 *   emulator: missing-proxy-fence: error in kernel tile_copy, block (3,0,0), thread 0
 *     at tma_store.cu:57
 *     PTX line 112: cp.async.bulk.tensor.2d...
 *     <the message of the folder that found it>
 *
 * Host threads report at the same time, so a report is assembled first and written in one piece. */
#include "base/fault.h"
#include "base/holds.h"
#include "base/report.h"
#include "base/rules.h"
#include "base/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PTX_TEXT_SHOWN = 160, LINE_COLUMNS = 96 };

/* So that a report is written in one piece. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t thread_of(const Warp *warp, int lane) { return warp->index * LANES + (uint32_t)lane; }

void report_add(Report *report, const char *format, ...) {
  char *end = report->text + report->used;
  PRINT_ARGUMENTS(end, sizeof report->text - report->used, format);
  report->used += strlen(end);
}

Phrase rank_phrase(uint32_t cta_count, uint32_t rank) {
  return cta_count > 1 ? phrase(" of rank %u", rank) : NO_PHRASE;
}

Phrase threads_name(const Warp *warp, LaneMask lanes) {
  Phrase name = phrase(lanes & (lanes - 1) ? "threads" : "thread");
  const char *separator = " ";
  for (int lane = 0; lane < LANES; lane++) {
    if (!(lanes >> lane & 1)) continue;
    int last = lane;
    while (last + 1 < LANES && (lanes >> (last + 1) & 1)) last++;
    name = phrase("%s%s%u", name.text, separator, thread_of(warp, lane));
    if (last > lane) name = phrase("%s-%u", name.text, thread_of(warp, last));
    separator = ", ";
    lane = last;
  }
  return name;
}

const char *report_file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

Phrase phrase(const char *format, ...) {
  Phrase made;
  PRINT_ARGUMENTS(made.text, sizeof made.text, format);
  return made;
}

Phrase line_of(const Instruction *in) {
  if (in && in->source.line && in->source.file)
    return phrase("%s:%u", report_file_name(in->source.file), in->source.line);
  return phrase("PTX line %u", in ? in->line : 0);
}

Phrase place_of(const Instruction *in) {
  if (!in) return NO_PHRASE;
  const bool known = in->line || (in->source.line && in->source.file);
  return known ? phrase("at %s", line_of(in).text) : phrase("long before");
}

bool is_one_line(const Instruction *a, const Instruction *b) {
  if (!a || !b || !a->source.line || !b->source.line) return a == b;
  return a->source.line == b->source.line &&
         (a->source.file == b->source.file || !strcmp(a->source.file, b->source.file));
}

bool are_two_lines(const Instruction *a, const Instruction *b, const Instruction *c,
                   const Instruction *d) {
  return (is_one_line(a, c) && is_one_line(b, d)) || (is_one_line(a, d) && is_one_line(b, c));
}

static void add_place(Report *report, Warp *warp, const Instruction *in, LaneMask lanes) {
  const Cta *cta = warp->cta;
  report_add(report, "kernel %s", kernel_name(cta->cluster->launch->traits->name).text);
  report_add(report, ", block (%u,%u,%u)%s", cta->index.x, cta->index.y, cta->index.z,
             lanes ? ", " : "");
  if (lanes) report_add(report, "%s", threads_name(warp, lanes).text);
  if (cta->cluster->cta_count > 1) report_add(report, ", rank %u of its cluster", cta->rank);
  report_add(report, "\n");
  if (!in) return;
  if (in->source.line && in->source.file) {
    report_add(report, "  at %s:%u", report_file_name(in->source.file), in->source.line);
    if (in->source.inner_line && in->source.inner_file) {
      report_add(report, " (in %s:%u)", report_file_name(in->source.inner_file),
                 in->source.inner_line);
    }
    report_add(report, "\n");
  } else {
    report_add(report, "  (build with -lineinfo to see the source line)\n");
  }
  const char *text = in->text ? in->text : "";
  size_t length = strcspn(text, "\n");
  bool cut = length > PTX_TEXT_SHOWN;
  report_add(report, "  PTX line %u: %.*s%s\n", in->line, cut ? PTX_TEXT_SHOWN : (int)length, text,
             cut ? " ..." : "");
}

/* The message, indented under the heading, with lines broken between words. */
static void add_message(Report *report, const char *message) {
  const char *at = message;
  while (*at) {
    size_t length = strcspn(at, "\n");
    if (length > LINE_COLUMNS) {
      length = LINE_COLUMNS;
      while (length > 0 && at[length] != ' ') length--;
      if (length == 0) length = LINE_COLUMNS; /* a single word that fills the line */
    }
    report_add(report, "  %.*s\n", (int)length, at);
    at += length;
    if (*at == '\n' || *at == ' ') at++;
  }
}

void report_write(const Report *report) {
  fflush(stdout);
  for (size_t at = 0; at < report->used;) {
    ssize_t written = write(STDERR_FILENO, report->text + at, report->used - at);
    if (written <= 0) return;
    at += (size_t)written;
  }
}

ReportHooks report_hooks;

StepResult fault(Warp *warp, const Instruction *in, LaneMask lanes, int error, const Rule *rule,
                 const char *format, ...) {
  Launch *launch = warp->cta->cluster->launch;
  pthread_mutex_lock(&lock);
  bool first = launch->error == 0;
  if (first) launch->error = error;
  pthread_mutex_unlock(&lock);
  if (!first) return STEP_FAULT;
  char message[REPORT_TEXT];
  PRINT_ARGUMENTS(message, sizeof message, format);
  const ReportNote note = {warp, in, lanes, true, &(const Finding){.rule = rule}, message};
  if (report_hooks.listen) report_hooks.listen(&note);
  if (report_hooks.keep) report_hooks.keep(&note);
  Report report = {.used = 0};
  report_add(&report, "emulator: %s: ", rule->name);
  add_place(&report, warp, in, lanes);
  add_message(&report, message);
  report_write(&report);
  page_command_note_fault(warp);
  return STEP_FAULT;
}

static _Thread_local struct {
  FindingPutAside *place;
  const Rule *const *rules;
} aside;

void finding_put_aside(FindingPutAside *place, const Rule *const *some) {
  aside.place = place;
  aside.rules = some;
}

static bool put_aside(LaneMask lanes, const Finding *what, const char *message) {
  const Rule *const *each = aside.rules;
  while (*each && *each != what->rule) each++;
  if (!*each) return false;
  if (aside.place->text) return true;
  aside.place->what = *what;
  aside.place->lanes = lanes;
  aside.place->text = need_memory(strdup(message));
  return true;
}

void finding_of(Warp *warp, const Instruction *in, LaneMask lanes, const Finding *what,
                const char *format, ...) {
  if (!settings()->checks) return;
  bool strict = rule_is_strict(what->rule);
  if (strict && settings()->check_errors_only) return;
  char message[REPORT_TEXT];
  PRINT_ARGUMENTS(message, sizeof message, format);
  if (aside.place && put_aside(lanes, what, message)) return;
  const ReportNote note = {warp, in, lanes, false, what, message};
  if (report_hooks.listen) report_hooks.listen(&note);
  if (!finding_is_new(&note)) return;
  Report report = {.used = 0};
  report_add(&report, "emulator: %s: %s in ", what->rule->name,
             strict ? "strict finding" : "error");
  add_place(&report, warp, in, lanes);
  add_message(&report, message);
  report_write(&report);
}

bool finding_repeats(const Warp *warp, const Instruction *in, const Rule *rule, uint32_t offset) {
  return !aside.place && !report_hooks.listen && finding_counts_again(warp, in, rule, offset);
}

void finding_of_host(const Rule *rule, const char *about, const char *format, ...) {
  bool strict = rule_is_strict(rule);
  if (strict && settings()->check_errors_only) return;
  char message[REPORT_TEXT];
  PRINT_ARGUMENTS(message, sizeof message, format);
  if (!finding_of_host_is_new(rule, about, message)) return;
  Report report = {.used = 0};
  report_add(&report, "emulator: %s: %s in the host's calls\n", rule->name,
             strict ? "strict finding" : "error");
  add_message(&report, message);
  report_write(&report);
}

_Noreturn void does_not_hold(const char *file, int line, const char *condition) {
  fflush(stdout);
  fprintf(
      stderr,
      "emulator: this is a mistake of the emulator, not of the program: at %s:%d, \"%s\" does not "
      "hold. Please report it, with the program.\n",
      file, line, condition);
  abort();
}

void *new_zeros(size_t count, size_t bytes) {
  return need_memory(calloc(count ? count : 1, bytes ? bytes : 1));
}

void *grown_list(void *list, uint32_t count, uint32_t *capacity, size_t item_bytes) {
  if (count < *capacity) return list;
  *capacity = *capacity * 2 + 16;
  HOLDS(count < *capacity); /* lists grow by one item at a time */
  return need_memory(realloc(list, *capacity * item_bytes));
}

_Noreturn void out_of_memory(void) {
  static const char text[] =
      "emulator: the host is out of memory. Run the program with fewer or smaller blocks in flight "
      "(EMULATOR_THREADS=1), or on a host with more memory.\n";
  fflush(stdout);
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
  _exit(1);
}
