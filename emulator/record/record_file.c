/* record_file.c: writes the file: definitions of launches, source files and places, and the
 * clusters of a launch in the order of their numbers.
 *
 * Host threads run clusters at the same time, so each cluster's events are kept in memory until the
 * launch has ended. A place gets its number when the first event mentions it. */
#include "record/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/overwrite.h"
#include "base/report.h"
#include "base/settings.h"
#include "base/table.h"
#include "clock/clock.h"
#include "record/count.h"
#include "record/record.h"

enum { LARGEST_SOURCE = 4 << 20 };

typedef struct {
  uint64_t instruction; /* its address */
  uint32_t number;
} InstructionNumber;

typedef struct {
  int launch;
  uint32_t cluster;
  RecordText text;
  ClockPlaces places;
} FinishedCluster;

static struct {
  pthread_mutex_t lock;
  FILE *file;
  pid_t process; /* the process that opened the file: a forked child does not write */
  bool refused;  /* another process has the file, and the user has been told */
  int launches;
  Table places; /* of InstructionNumber */
  char **files;
  uint32_t file_count, file_capacity;
  RecordText definitions; /* of files and places, not yet written */
  FinishedCluster *kept;
  uint32_t kept_count, kept_capacity;
  uint64_t bytes_taken;
  bool full;
  int last_launch; /* where it became full */
  off_t whole;     /* bytes of the file up to the end of a launch */
  bool any;        /* a cluster has been recorded */
} recording = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Limits ---------------------------------------------------------------------------------- */
bool record_take(size_t bytes) {
  pthread_mutex_lock(&recording.lock);
  recording.bytes_taken += bytes;
  bool fits = recording.bytes_taken <= settings()->record_limit;
  bool first = !fits && !recording.full;
  recording.full |= !fits;
  if (first) recording.last_launch = recording.launches - 1;
  pthread_mutex_unlock(&recording.lock);
  if (first)
    fprintf(stderr,
            "emulator: the recording has reached %llu MB and stops here; record fewer blocks "
            "(--blocks), or raise EMULATOR_RECORD_LIMIT (in MB)\n",
            (unsigned long long)(settings()->record_limit / 1000000));
  return fits;
}

/* ---- Source files and places ----------------------------------------------------------------- */
static void define_text(RecordText *out, const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = need_memory(malloc(LARGEST_SOURCE));
  size_t bytes = file ? fread(text, 1, LARGEST_SOURCE, file) : 0;
  if (bytes && bytes < LARGEST_SOURCE)
    text_string_part(out, text, bytes);
  else
    text_add(out, "null");
  free(text);
  if (file) fclose(file);
}

static int file_number(const char *path) {
  if (!path) return -1;
  for (uint32_t i = 0; i < recording.file_count; i++)
    if (!strcmp(recording.files[i], path)) return (int)i;
  recording.files = grown_list(recording.files, recording.file_count, &recording.file_capacity,
                               sizeof *recording.files);
  recording.files[recording.file_count] = need_memory(strdup(path));
  RecordText *out = &recording.definitions;
  text_add(out, "{\"file\": ");
  text_number(out, recording.file_count);
  text_named_string(out, "path", path);
  text_add(out, ", \"text\": ");
  define_text(out, path);
  text_add(out, "}\n");
  return (int)recording.file_count++;
}

static void define_place(const Instruction *in, uint32_t number) {
  int file = in->source.line ? file_number(in->source.file) : -1;
  int inner = in->source.inner_line ? file_number(in->source.inner_file) : -1;
  char readable[2048];
  const char *words = in->text ? in->text : "";
  if (strstr(words, "_Z")) {
    report_readable(words, readable, sizeof readable);
    words = readable;
  }
  RecordText *out = &recording.definitions;
  text_add(out, "{\"place\": ");
  text_number(out, number);
  text_named_number(out, "file", file);
  text_named_number(out, "line", file < 0 ? 0 : in->source.line);
  text_named_number(out, "inner_file", inner);
  text_named_number(out, "inner_line", inner < 0 ? 0 : in->source.inner_line);
  text_named_number(out, "ptx_line", in->line);
  text_add(out, ", \"text\": ");
  text_string_part(out, words, strcspn(words, "\n"));
  text_add(out, "}\n");
}

uint32_t record_place(const Instruction *in) {
  HOLD_LOCK(&recording.lock);
  const uint32_t known = recording.places.used;
  InstructionNumber *place = table_entry(&recording.places, sizeof *place, (uint64_t)(uintptr_t)in);
  if (recording.places.used != known) {
    place->number = known;
    define_place(in, known);
  }
  return place->number;
}

/* ---- Which blocks ---------------------------------------------------------------------------- */
bool record_wants(const Cluster *cluster) {
  const BlockRange *range = settings()->record_blocks;
  if (!range) return cluster->number == 0;
  const Index3 grid = cluster->launch->grid;
  for (; range->last != UINT64_MAX || range->first != UINT64_MAX; range++)
    for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
      const Index3 block = cluster->ctas[rank].index;
      uint64_t number = ((uint64_t)block.z * grid.y + block.y) * grid.x + block.x;
      if (number >= range->first && number <= range->last) return true;
    }
  return false;
}

/* ---- The file -------------------------------------------------------------------------------- */
static const char *schedule_name(void) {
  static const char *const names[] = {[SCHEDULE_LATE] = "late",
                                      [SCHEDULE_EARLY] = "early",
                                      [SCHEDULE_RANDOM] = "random",
                                      [SCHEDULE_EXPLORE] = "replay"};
  return names[settings()->schedule];
}

static void cannot_write(void) {
  fprintf(stderr, "emulator: the recording %s cannot be written: %s\n", settings()->record_file,
          strerror(errno));
  /* Half a line would make all of it useless. A device cannot be cut. */
  if (recording.file && ftruncate(fileno(recording.file), recording.whole) != 0) errno = 0;
  _exit(2);
}

static void write_text(RecordText *text) {
  if (text->used && fwrite(text->text, 1, text->used, recording.file) != text->used) cannot_write();
  text->used = 0;
}

static void close_file(void) {
  if (!recording.file || recording.process != getpid()) return;
  if (recording.full)
    fprintf(
        recording.file,
        "{\"stopped\": \"the recording reached its limit of %llu MB in launch %d: the rest of it "
        "and all later launches are missing\"}\n",
        (unsigned long long)(settings()->record_limit / 1000000), recording.last_launch);
  if (!recording.any)
    fprintf(stderr, "emulator: no launch has a block of --blocks %s: nothing is recorded\n",
            settings()->record_blocks_text);
  if (fclose(recording.file) != 0) {
    recording.file = NULL;
    cannot_write();
  }
}

/* One process writes a file: a child that it starts, and which runs kernels too, would write over it. */
static bool not_written_here(const char *why) {
  if (!recording.refused) fprintf(stderr, "emulator: %s\n", why);
  recording.refused = true;
  return false;
}

static void refuse_other_files(const char *path) {
  if (!would_overwrite(path, "{\"recording\":")) return;
  fprintf(
      stderr,
      "emulator: EMULATOR_RECORD is '%s', but that file exists and is not a recording: remove it "
      "or name another file\n",
      path);
  _exit(2);
}

static FILE *open_alone(const char *path, bool *taken) {
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return NULL;
  *taken = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  /* A pipe or a device has no length. */
  if (!*taken && ftruncate(descriptor, 0) != 0 && errno != EINVAL) cannot_write();
  FILE *file = *taken ? NULL : fdopen(descriptor, "w");
  if (!file) close(descriptor);
  return file;
}

static bool open_file(void) {
  const char *path = settings()->record_file;
  if (!path) return false;
  if (recording.refused) return false;
  if (recording.file)
    return recording.process == getpid() ||
           not_written_here("kernels of a forked process are not recorded");
  refuse_other_files(path);
  bool taken = false;
  recording.file = open_alone(path, &taken);
  if (taken)
    return not_written_here(
        "another process is writing the recording; kernels of this one are not recorded");
  if (!recording.file) cannot_write();
  recording.process = getpid();
  atexit(close_file);
  fprintf(recording.file, "{\"recording\": 1, \"schedule\": \"%s\", \"blocks\": \"%s\"%s}\n",
          schedule_name(), settings()->record_blocks_text,
          settings()->clock ? ", \"clock\": \"h200\"" : "");
  return true;
}

static void define_index(RecordText *out, const char *name, Index3 index) {
  text_name(out, name);
  text_add(out, "[");
  text_number(out, index.x);
  text_add(out, ",");
  text_number(out, index.y);
  text_add(out, ",");
  text_number(out, index.z);
  text_add(out, "]");
}

int record_launch_begin(const Launch *launch, const char *symbol, uint32_t static_shared_bytes) {
  const Phrase kernel = kernel_name(symbol);
  HOLD_LOCK(&recording.lock);
  int number = -1;
  if (settings()->count) count_launch(kernel.text);
  if (open_file() && !recording.full) {
    number = recording.launches++;
    RecordText *out = &recording.definitions;
    text_add(out, "{\"launch\": ");
    text_number(out, number);
    text_named_string(out, "kernel", kernel.text);
    text_named_string(out, "symbol", symbol);
    define_index(out, "grid", launch->grid);
    define_index(out, "block", launch->block);
    define_index(out, "cluster", launch->cluster);
    text_named_number(out, "static_shared", static_shared_bytes);
    text_named_number(out, "dynamic_shared", launch->dynamic_shared_bytes);
    text_add(out, "}\n");
  }
  return number;
}

void record_keep(int launch_number, uint32_t cluster_number, RecordText *text,
                 ClockPlaces *places) {
  HOLD_LOCK(&recording.lock);
  recording.kept = grown_list(recording.kept, recording.kept_count, &recording.kept_capacity,
                              sizeof *recording.kept);
  recording.any = true;
  recording.kept[recording.kept_count++] =
      (FinishedCluster){launch_number, cluster_number, *text, *places};
  *text = (RecordText){.text = NULL};
  *places = (ClockPlaces){.count = 0};
}

static int by_cluster(const void *a, const void *b) {
  const FinishedCluster *first = a, *second = b;
  return (first->cluster > second->cluster) - (first->cluster < second->cluster);
}

static void write_clusters(const Launch *launch) {
  const int launch_number = launch->recording;
  HOLD_LOCK(&recording.lock);
  write_text(&recording.definitions);
  if (recording.kept_count)
    qsort(recording.kept, recording.kept_count, sizeof *recording.kept, by_cluster);
  uint32_t left = 0;
  for (uint32_t i = 0; i < recording.kept_count; i++) {
    if (recording.kept[i].launch != launch_number) { /* of another stream's launch */
      recording.kept[left++] = recording.kept[i];
      continue;
    }
    if (settings()->clock)
      record_in_clock_order(clock_find(launch, recording.kept[i].cluster),
                            &recording.kept[i].places, &recording.kept[i].text);
    free(recording.kept[i].places.places);
    write_text(&recording.kept[i].text);
    text_free(&recording.kept[i].text);
  }
  recording.kept_count = left;
  if (fflush(recording.file) != 0) cannot_write();
  recording.whole = ftello(recording.file);
}

void record_launch_end(Launch *launch) {
  if (settings()->clock) clock_launch_end(launch, kernel_name(launch->traits->name).text);
  if (launch->recording >= 0) write_clusters(launch);
  if (settings()->clock) clock_launch_free(launch);
}
