/* report.c: faults and findings in words, on stderr.
 *
 *   emulator: misaligned-destination: kernel tile_copy, block (3,0,0), thread 0
 *     at tma_load.cu:57 (PTX line 112: cp.async.bulk.tensor.2d...)
 *     <the room's message>
 *
 * Host threads report at the same time, so a report is put together first and written at once. */
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/emulator.h"

enum {
  REPORT_TEXT = 16384,
  PTX_TEXT_SHOWN = 160,
  LINE_COLUMNS = 96,
  FINDINGS_KEPT = 256,
  EXIT_FINDINGS = 3
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct {
  const char *rule;
  const Instruction *in;
} Reported;
static Reported reported[FINDINGS_KEPT];
static int reported_count;
static long finding_count;

uint32_t thread_of(const Warp *warp, int lane) { return warp->index * LANES + (uint32_t)lane; }

typedef struct {
  char text[REPORT_TEXT];
  size_t used;
} Report;

__attribute__((format(printf, 2, 0))) static void add_list(Report *report, const char *format,
                                                           va_list arguments) {
  size_t room = sizeof report->text - report->used;
  int wanted = vsnprintf(report->text + report->used, room, format, arguments);
  if (wanted < 0) return;
  report->used += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

__attribute__((format(printf, 2, 3))) static void add(Report *report, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add_list(report, format, arguments);
  va_end(arguments);
}

/* "thread 5", "threads 0-31", "threads 3, 7, 9-12" */
static void add_threads(Report *report, const Warp *warp, LaneMask lanes) {
  add(report, lanes & (lanes - 1) ? "threads" : "thread");
  const char *separator = " ";
  for (int lane = 0; lane < LANES; lane++) {
    if (!(lanes >> lane & 1)) continue;
    int last = lane;
    while (last + 1 < LANES && (lanes >> (last + 1) & 1)) last++;
    add(report, "%s%u", separator, thread_of(warp, lane));
    if (last > lane) add(report, "-%u", thread_of(warp, last));
    separator = ", ";
    lane = last;
  }
}

/* The file's name is enough to find it; its folder differs from machine to machine. */
static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* A kernel as its author wrote it: _Z4fill14CUtensorMap_st is fill. Of a name in namespaces its
 * path, of a template its name, for what it was made with would fill the screen: _ZN1a1fILi3EEEvi
 * is a::f<...>. Anything else stays as it is. */
static void add_kernel_name(Report *report, const char *name) {
  const char *at = name + 2;
  bool nested = !strncmp(name, "_ZN", 3);
  if (strncmp(name, "_Z", 2)) at = "";
  if (nested) at++;
  const char *separator = "";
  do {
    char *rest;
    size_t length = *at >= '0' && *at <= '9' ? strtoul(at, &rest, 10) : 0;
    if (length == 0 || length > strlen(rest)) {
      add(report, "%s%s", separator, *separator ? "..." : name);
      return;
    }
    bool unnamed = !strncmp(rest, "_GLOBAL__N_", 11) || !strncmp(rest, "_INTERNAL_", 10);
    add(report, "%s%.*s", separator, unnamed ? 11 : (int)length, unnamed ? "(anonymous)" : rest);
    separator = "::";
    at = rest + length;
  } while (nested && *at != 'I' && *at != 'E');
  if (*at == 'I') add(report, "<...>");
}

static void add_place(Report *report, Warp *warp, const Instruction *in, LaneMask lanes) {
  const Cta *cta = warp->cta;
  add(report, "kernel ");
  add_kernel_name(report, cta->cluster->launch->traits->name);
  add(report, ", block (%u,%u,%u)%s", cta->index.x, cta->index.y, cta->index.z, lanes ? ", " : "");
  if (lanes) add_threads(report, warp, lanes);
  if (cta->cluster->cta_count > 1) add(report, ", rank %u of its cluster", cta->rank);
  add(report, "\n");
  if (!in) return;
  if (in->source_line && in->source_file) {
    add(report, "  at %s:%u", file_name(in->source_file), in->source_line);
    if (in->inner_line && in->inner_file) {
      add(report, " (in %s:%u)", file_name(in->inner_file), in->inner_line);
    }
    add(report, "\n");
  } else {
    add(report, "  (build with -lineinfo to see the source line)\n");
  }
  const char *text = in->text ? in->text : "";
  size_t length = strcspn(text, "\n");
  bool cut = length > PTX_TEXT_SHOWN;
  add(report, "  PTX line %u: %.*s%s\n", in->line, cut ? PTX_TEXT_SHOWN : (int)length, text,
      cut ? " ..." : "");
}

/* The message, every line of it indented under the heading and broken between words. */
static void add_message(Report *report, const char *format, va_list arguments) {
  Report message = {.used = 0};
  add_list(&message, format, arguments);
  const char *at = message.text;
  while (*at) {
    size_t length = strcspn(at, "\n");
    if (length > LINE_COLUMNS) {
      length = LINE_COLUMNS;
      while (length > 0 && at[length] != ' ') length--;
      if (length == 0) length = LINE_COLUMNS; /* one word that fills the line */
    }
    add(report, "  %.*s\n", (int)length, at);
    at += length;
    if (*at == '\n' || *at == ' ') at++;
  }
}

static void write_report(const Report *report) {
  fflush(stdout);
  for (size_t at = 0; at < report->used;) {
    ssize_t written = write(STDERR_FILENO, report->text + at, report->used - at);
    if (written <= 0) return;
    at += (size_t)written;
  }
}

void (*report_listener)(const ReportNote *note);

/* The words of a report without its heading, to whoever listens. */
__attribute__((format(printf, 6, 0))) static void tell_listener(Warp *warp, const Instruction *in,
                                                                LaneMask lanes, bool ends_launch,
                                                                const char *rule,
                                                                const char *format,
                                                                va_list arguments) {
  if (!report_listener) return;
  Report message = {.used = 0};
  add_list(&message, format, arguments);
  const ReportNote note = {warp, in, lanes, ends_launch, rule, message.text};
  report_listener(&note);
}

StepResult fault(Warp *warp, const Instruction *in, LaneMask lanes, int error, const char *rule,
                 const char *format, ...) {
  Launch *launch = warp->cta->cluster->launch;
  pthread_mutex_lock(&lock);
  bool first = launch->error == 0;
  if (first) launch->error = error;
  pthread_mutex_unlock(&lock);
  if (!first) return STEP_FAULT;
  Report report = {.used = 0};
  add(&report, "emulator: %s: ", rule);
  add_place(&report, warp, in, lanes);
  va_list arguments;
  va_start(arguments, format);
  add_message(&report, format, arguments);
  va_end(arguments);
  va_start(arguments, format);
  tell_listener(warp, in, lanes, true, rule, format, arguments);
  va_end(arguments);
  write_report(&report);
  return STEP_FAULT;
}

/* A program that the checker has found fault with must not look right to whoever reads its exit
 * code: PASS with a missing fence is the very bug that waits for another day. */
static void end_with_findings(int status, void *unused) {
  (void)unused;
  fflush(stdout);
  fprintf(stderr, "emulator: %ld finding%s\n", finding_count, finding_count == 1 ? "" : "s");
  if (status == 0) _exit(EXIT_FINDINGS);
}

void finding(Warp *warp, const Instruction *in, LaneMask lanes, const char *rule,
             const char *format, ...) {
  va_list words;
  va_start(words, format);
  tell_listener(warp, in, lanes, false, rule, format, words);
  va_end(words);
  pthread_mutex_lock(&lock);
  bool known = false;
  for (int i = 0; i < reported_count; i++) {
    known |= !strcmp(reported[i].rule, rule) && reported[i].in == in;
  }
  if (known || reported_count == FINDINGS_KEPT) {
    pthread_mutex_unlock(&lock);
    return;
  }
  reported[reported_count++] = (Reported){rule, in};
  if (finding_count++ == 0) on_exit(end_with_findings, NULL);
  pthread_mutex_unlock(&lock);
  Report report = {.used = 0};
  add(&report, "emulator: %s: ", rule);
  add_place(&report, warp, in, lanes);
  va_list arguments;
  va_start(arguments, format);
  add_message(&report, format, arguments);
  va_end(arguments);
  write_report(&report);
}
