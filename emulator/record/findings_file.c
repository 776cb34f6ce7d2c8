/* findings_file.c: writes findings, faults and hangs into the file of EMULATOR_FINDINGS, one object of JSON for each
 * (FINDINGS.md).
 *
 * The file is whole at any time, for a program may crash: a record goes over the end of the list and brings a new
 * end. It is opened and locked for each record, so that several processes can add to one file, and nothing is lost if
 * the program closes descriptors that it does not know. The list of runs (summary.h) comes behind that of the findings,
 * whose places in the file must not change. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/report.h"
#include "base/rules.h"
#include "base/settings.h"
#include "base/summary.h"
#include "record/record_text.h"

enum { PATH_TEXT = 4096, TIMES_DIGITS = 20 };
static const char BEGINNING[] = "{\"version\": 1, \"findings\": [";
static const char RUNS[] = "\n], \"runs\": ["; /* in strings of JSON there are no line breaks */
static const char END[] = "\n]}\n";
static const off_t BEGINNING_BYTES = sizeof BEGINNING - 1, RUNS_BYTES = sizeof RUNS - 1,
                   END_BYTES = sizeof END - 1;

static struct {
  /* written when the library is loaded: the program may go to another folder */
  char folder[PATH_TEXT], program[PATH_TEXT], path[PATH_TEXT];
  pthread_mutex_t lock; /* of the file */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Noreturn void refuse_file(const char *why) {
  fprintf(stderr, "emulator: EMULATOR_FINDINGS is '%s', but %s\n", settings()->findings_file, why);
  _exit(2);
}

static _Noreturn void cannot_write(void) {
  char why[128];
  snprintf(why, sizeof why, "that file cannot be written: %s", strerror(errno));
  refuse_file(why);
}

static void write_at(int file, const char *text, size_t bytes, off_t at) {
  while (bytes) {
    ssize_t written = pwrite(file, text, bytes, at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) cannot_write();
    text += written, bytes -= (size_t)written, at += written;
  }
}

/* Until it is closed, no other process writes. */
static int open_file(off_t *bytes) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  struct stat state;
  int file = open(list.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0 || fstat(file, &state) != 0) cannot_write();
  if (!S_ISREG(state.st_mode)) refuse_file("must be the name of a file, not of a device or pipe");
  while (fcntl(file, F_SETLKW, &whole) != 0)
    if (errno != EINTR) cannot_write();
  if (fstat(file, &state) != 0) cannot_write();
  *bytes = state.st_size;
  return file;
}

static bool file_has(int file, const char *text, off_t length, off_t at) {
  char read[sizeof BEGINNING];
  return at >= 0 && pread(file, read, (size_t)length, at) == length &&
         !memcmp(read, text, (size_t)length);
}

/* What follows the findings, up to the end of the file, and where that begins. To be freed. */
static char *read_runs(int file, off_t bytes, off_t *place) {
  for (off_t length = 4096;; length *= 2) {
    if (length > bytes) length = bytes;
    char *read = need_memory(malloc((size_t)length + 1));
    if (pread(file, read, (size_t)length, bytes - length) != length) cannot_write();
    read[length] = '\0';
    const char *begin = memmem(read, (size_t)length, RUNS, (size_t)RUNS_BYTES);
    if (begin) {
      *place = bytes - length + (begin - read);
      memmove(read, begin, (size_t)(bytes - *place) + 1);
      return read;
    }
    free(read);
    if (length == bytes) refuse_file("the program or another one has changed that file");
  }
}

/* ---- One record ---- */

/* Relative to the folder in which the program was started, if it lies below it. */
static void add_path(RecordText *text, const char *name, const char *file) {
  char *resolved = *file == '/' ? realpath(file, NULL) : NULL;
  const char *shown = resolved ? resolved : file;
  size_t length = strlen(list.folder);
  if (length && !strncmp(shown, list.folder, length) && shown[length] == '/') shown += length + 1;
  text_named_string(text, name, shown);
  free(resolved);
}

static void add_site(RecordText *text, const char *name, const Instruction *in) {
  text_name(text, name);
  if (!in) {
    text_add(text, "null");
    return;
  }
  text_add(text, "{\"ptx_line\": ");
  text_number(text, in->line);
  if (in->source.line && in->source.file) {
    add_path(text, "file", in->source.file);
    text_named_number(text, "line", in->source.line);
  }
  if (in->source.inner_line && in->source.inner_file) {
    add_path(text, "inner_file", in->source.inner_file);
    text_named_number(text, "inner_line", in->source.inner_line);
  }
  text_name(text, "ptx");
  const char *statement = in->text ? in->text : "";
  text_string_part(text, statement, strcspn(statement, "\n"));
  text_add(text, "}");
}

static void add_who(RecordText *text, const Warp *warp, LaneMask lanes) {
  const Cta *cta = warp->cta;
  text_named_string(text, "kernel", kernel_name(cta->cluster->launch->traits->name).text);
  const uint32_t index[] = {cta->index.x, cta->index.y, cta->index.z};
  text_name(text, "block");
  for (int i = 0; i < 3; i++) {
    text_add(text, i ? ", " : "[");
    text_number(text, index[i]);
  }
  text_add(text, "]");
  if (cta->cluster->cta_count > 1) text_named_number(text, "rank", cta->rank);
  text_name(text, "threads");
  const char *separator = "[";
  for (LaneMask left = lanes; left; left &= left - 1, separator = ", ") {
    text_add(text, separator);
    text_number(text, thread_of(warp, first_lane(left)));
  }
  text_add(text, lanes ? "]" : "[]");
}

static void add_record(RecordText *text, const ReportNote *note) {
  static const char *const GRADES[] = {"error", "strict", "strict", "hang", "fault", "host"};
  static const char *const MEMORIES[] = {NULL, "shared", "global", "barrier"};
  const Finding *what = note->what;
  const Rule *rule = what->rule;
  text_add(text, "\n{\"rule\": ");
  text_string(text, rule->name);
  text_named_string(text, "grade", GRADES[rule->grade]);
  text_named_string(text, "heading", rule->heading);
  text_named_string(text, "means", rule->means);
  text_named_string(text, "fix", rule->fix);
  text_named_string(text, "documented_in", rule->where);
  add_path(text, "program", list.program);
  if (note->warp) add_who(text, note->warp, note->lanes);
  add_site(text, "site", note->in);
  add_site(text, "other", what->other);
  if (what->memory) {
    text_named_string(text, "memory", MEMORIES[what->memory]);
    if (what->memory != ABOUT_GLOBAL) text_named_number(text, "memory_rank", what->rank);
    text_name(text, "address");
    text_hex(text, what->address);
  }
  if (what->bytes) text_named_number(text, "bytes", what->bytes);
  if (what->memory == ABOUT_BARRIER) text_named_number(text, "phase", what->phase);
  text_named_string(text, "message", note->text);
  text_name(text, "times");
}

/* Where the record's number of times stands in the file. */
static uint64_t append_record(const ReportNote *note) {
  if (settings()->fill != FILL_POISON) return 0; /* a trial: nothing is reported */
  RecordText text = {0};
  off_t bytes;
  pthread_mutex_lock(&list.lock);
  off_t place;
  int file = open_file(&bytes);
  char *runs = read_runs(file, bytes, &place);
  if (place > BEGINNING_BYTES) text_add(&text, ",");
  add_record(&text, note);
  size_t before = text.used;
  char times[TIMES_DIGITS + 1];
  snprintf(times, sizeof times, "%-*d", TIMES_DIGITS, 1); /* room for more of them */
  text_add(&text, times);
  text_add(&text, "}");
  text_add(&text, runs);
  write_at(file, text.text, text.used, place);
  close(file);
  pthread_mutex_unlock(&list.lock);
  text_free(&text);
  free(runs);
  return (uint64_t)place + before;
}

static void write_times(uint64_t place, long times) {
  char digits[TIMES_DIGITS + 1];
  off_t bytes;
  int length = snprintf(digits, sizeof digits, "%ld", times);
  int file = open_file(&bytes);
  if ((off_t)place + TIMES_DIGITS < bytes) write_at(file, digits, (size_t)length, (off_t)place);
  close(file);
}

/* ---- The run ---- */

static void add_checks(RecordText *text, const char *title, const char *name_of(int number)) {
  text_name(text, title);
  const char *name = name_of(0);
  text_add(text, "[");
  for (int i = 0; name; name = name_of(++i)) {
    if (i) text_add(text, ", ");
    text_string(text, name);
  }
  text_add(text, "]");
}

static void add_notes(RecordText *text, const char *title, SummaryKind kind) {
  int at = 0;
  text_name(text, title);
  text_add(text, "[");
  const char *note = summary_next(kind, &at);
  for (bool first = true; note; note = summary_next(kind, &at), first = false) {
    if (!first) text_add(text, ", ");
    text_string(text, note);
  }
  text_add(text, "]");
}

static void add_run(RecordText *text) {
  text_add(text, "\n{\"order\": ");
  text_string(text, settings_schedule_name());
  add_path(text, "program", list.program);
  text_named_number(text, "launches", (int64_t)summary_notes[NOTE_launches]);
  add_checks(text, "checked", summary_checked);
  add_checks(text, "left_out", summary_left_out);
  add_notes(text, "beyond_limits", GAP);
  add_notes(text, "let_pass", LENIENT);
  text_named_number(text, "held_back", (int64_t)summary_notes[NOTE_held_back]);
  text_add(text, "}");
}

static void keep_run(void) {
  RecordText text = {0};
  off_t bytes;
  int file = open_file(&bytes);
  if (!file_has(file, END, END_BYTES, bytes - END_BYTES))
    refuse_file("the program or another one has changed that file");
  if (!file_has(file, RUNS, RUNS_BYTES, bytes - END_BYTES - RUNS_BYTES)) text_add(&text, ",");
  add_run(&text);
  text_add(&text, END);
  write_at(file, text.text, text.used, bytes - END_BYTES);
  close(file);
  text_free(&text);
}

__attribute__((constructor)) static void begin_run(void) {
  if (!getenv("EMULATOR_FINDINGS")) return;
  const char *name = settings()->findings_file;
  if (!getcwd(list.folder, sizeof list.folder)) list.folder[0] = '\0';
  ssize_t length = readlink("/proc/self/exe", list.program, sizeof list.program - 1);
  list.program[length > 0 ? length : 0] = '\0';
  int wanted = *name == '/' ? snprintf(list.path, sizeof list.path, "%s", name)
                            : snprintf(list.path, sizeof list.path, "%s/%s", list.folder, name);
  if (wanted >= (int)sizeof list.path) refuse_file("must be shorter");
  off_t bytes;
  int file = open_file(&bytes);
  if (bytes == 0) {
    write_at(file, BEGINNING, (size_t)BEGINNING_BYTES, 0);
    write_at(file, RUNS, (size_t)RUNS_BYTES, BEGINNING_BYTES);
    write_at(file, END, (size_t)END_BYTES, BEGINNING_BYTES + RUNS_BYTES);
  } else if (!file_has(file, BEGINNING, BEGINNING_BYTES, 0)) {
    refuse_file("that file exists and holds something else: remove it or name another file");
  }
  close(file);
  report_hooks.keep = append_record;
  report_hooks.keep_count = write_times;
  report_hooks.keep_run = keep_run;
}
