/* schedule.c: schedules as text, to be saved and run again.
 *
 *   emulator schedule 1
 *   launch 1 grid 1 1 1 block 64 1 1 kernel tile_copy
 *   lanes 0 1 0 12       cluster 0, warp 1, the group of lane 0: 12 steps
 *   copy 0 0 5 2 1       cluster 0, warp 0, the second copy that lane 5 issued: one step
 *   expired 0 1 0 1      as lanes, when nothing else could run: a limited wait gives up
 *   end
 *
 * After the last line the default order continues. Other launches run in the default order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/overwrite.h"
#include "base/settings.h"
#include "explore/explore.h"

enum { LINE_MOST = 1024 };
static const char HEADING[] = "emulator schedule 1\n";

void schedule_add(ScheduleList *list, ProcessName process, uint32_t steps) {
  if (list->count && list->runs[list->count - 1].process == process) {
    list->runs[list->count - 1].steps += steps;
    return;
  }
  list->runs = grown_list(list->runs, list->count, &list->capacity, sizeof *list->runs);
  list->runs[list->count++] = (ScheduleRun){process, steps};
}

/* ---- Writing ---- */
static void write_launch(FILE *out, const Launch *launch, uint32_t number) {
  fprintf(out, "launch %u grid %u %u %u block %u %u %u kernel %s\n", number, launch->grid.x,
          launch->grid.y, launch->grid.z, launch->block.x, launch->block.y, launch->block.z,
          launch->traits->name);
}

bool schedule_save(const char *file, const Launch *launch, uint32_t number,
                   const ScheduleList *list) {
  if (would_overwrite(file, HEADING)) {
    errno = EEXIST;
    return false;
  }
  FILE *out = fopen(file, "w");
  if (!out) return false;
  fputs(HEADING, out);
  write_launch(out, launch, number);
  for (uint32_t i = 0; i < list->count; i++) {
    const ScheduleRun *run = &list->runs[i];
    const NameParts parts = name_parts(run->process);
    if (parts.copy)
      fprintf(out, "copy %u %u %u %u %u\n", parts.cluster, parts.warp, parts.lane, parts.copy,
              run->steps);
    else
      fprintf(out, "%s %u %u %u %u\n", run->process & NAME_EXPIRED ? "expired" : "lanes",
              parts.cluster, parts.warp, parts.lane, run->steps);
  }
  fputs("end\n", out);
  const bool good = !ferror(out);
  return fclose(out) == 0 && good;
}

/* ---- Reading ---- */
_Noreturn static void refuse_line(uint32_t line, const char *what) {
  fprintf(stderr, "emulator: EMULATOR_SCHEDULE is 'replay:%s', but ", settings()->replay_file);
  if (line) fprintf(stderr, "line %u of the file ", line);
  fprintf(stderr, "%s\n", what);
  _exit(2);
}

static bool read_numbers(const char *text, uint32_t *numbers, int count) {
  for (int i = 0; i < count; i++) {
    char *end;
    errno = 0;
    while (*text == ' ') text++;
    if (*text < '0' || *text > '9') return false;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno || value > INT32_MAX) return false;
    numbers[i] = (uint32_t)value;
    text = end;
  }
  return *text == '\n';
}

static bool read_run(const char *text, ScheduleList *list) {
  uint32_t numbers[5];
  NameParts parts = {0};
  const bool copy = strncmp(text, "copy ", 5) == 0;
  const bool expired = strncmp(text, "expired ", 8) == 0;
  if (!copy && !expired && strncmp(text, "lanes ", 6) != 0) return false;
  if (!read_numbers(strchr(text, ' '), numbers, copy ? 5 : 4)) return false;
  parts = (NameParts){numbers[0], numbers[1], numbers[2], copy ? numbers[3] : 0};
  const uint32_t steps = numbers[copy ? 4 : 3];
  if (parts.warp >> NAME_WARP_BITS || parts.lane >= LANES || parts.copy >> NAME_COPY_BITS ||
      parts.cluster >> 20 || steps == 0 || (copy && parts.copy == 0))
    return false;
  schedule_add(list, process_name(parts) | (expired ? NAME_EXPIRED : 0), steps);
  return true;
}

static struct {
  bool read;
  uint32_t launch;
  char line[LINE_MOST]; /* of the launch */
  ScheduleList list;
} replay; /* of the program's one thread that launches */

static void read_file(void) {
  FILE *in = fopen(settings()->replay_file, "r");
  if (!in)
    refuse_line(0, "this file cannot be read: name the file that emulate --explore has saved");
  char text[LINE_MOST];
  uint32_t line = 1;
  bool ended = false;
  if (!fgets(text, sizeof text, in) || strcmp(text, HEADING) != 0)
    refuse_line(1, "is not 'emulator schedule 1': name a file that emulate --explore has saved");
  line++;
  if (!fgets(replay.line, sizeof replay.line, in) ||
      sscanf(replay.line, "launch %u ", &replay.launch) != 1 || replay.launch == 0)
    refuse_line(2, "does not name the launch: the file is damaged, so explore again");
  while (!ended && fgets(text, sizeof text, in)) {
    line++;
    ended = strcmp(text, "end\n") == 0;
    if (!ended && !read_run(text, &replay.list))
      refuse_line(
          line,
          "is not a step of a schedule (lanes, expired or copy, and whole numbers): the file "
          "is damaged, so explore again");
  }
  if (!ended)
    refuse_line(line, "is the last, and it is not 'end': the file is cut off, so explore again");
  fclose(in);
  replay.read = true;
}

const ScheduleList *schedule_of_replay(const Launch *launch, uint32_t number) {
  if (!replay.read) read_file();
  if (number != replay.launch) return NULL;
  char *own = NULL;
  size_t bytes = 0;
  FILE *out = need_memory(open_memstream(&own, &bytes));
  write_launch(out, launch, number);
  fclose(out);
  if (strcmp(own, replay.line) != 0) {
    fprintf(stderr, "emulator: the schedule was made for %s  but here it is     %s", replay.line,
            own);
    refuse_line(2,
                "names another launch: replay it with the program and the arguments that it was "
                "made for");
  }
  free(own);
  return &replay.list;
}
