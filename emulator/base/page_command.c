/* page_command.c: the last line that is printed about a program with reports: the command that shows them in a page.
 * emulate says how it was started, and what has to be recorded is added. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "base/settings.h"

static struct {
  pthread_mutex_t lock;
  bool failed;
  ReportedBlock block;
} first_fault = {.lock = PTHREAD_MUTEX_INITIALIZER};

ReportedBlock reported_block(const Warp *warp) {
  const Cluster *cluster = warp->cta->cluster;
  const Index3 block = warp->cta->index, grid = cluster->launch->grid;
  return (ReportedBlock){cluster->number,
                         ((uint64_t)block.z * grid.y + block.y) * grid.x + block.x};
}

void page_command_print(const ReportedBlock *finding) {
  const Settings *known = settings();
  const char *command = known->page_command;
  const bool failed = first_fault.failed;
  const ReportedBlock *block = failed ? &first_fault.block : finding;
  if (!block || !command || known->record_file || known->explore) return;
  const int options = (int)strcspn(command, "\n"); /* then the program and its arguments */
  Report report = {.used = 0};
  report_add(&report, "See it: ");
  /* Of blocks that run at the same time another one might fail first, and end the launch. One after the other it is
   * the first of those up to this one. */
  if (failed) report_add(&report, "EMULATOR_THREADS=1 ");
  report_add(&report, "%.*s", options, command);
  if (block->cluster > 0) /* without --blocks the first cluster is recorded */
    report_add(&report, " --blocks %s%" PRIu64, failed ? "0-" : "", block->block);
  report_add(&report, " %s\n", command[options] ? command + options + 1 : "");
  report_write(&report);
}

static void print_at_exit(int status, void *unused) {
  (void)status, (void)unused;
  if (findings_distinct() == 0) page_command_print(NULL); /* else after the summary */
}

void page_command_note_fault(const Warp *warp) {
  HOLD_LOCK(&first_fault.lock);
  if (!first_fault.failed) {
    first_fault.failed = true;
    first_fault.block = reported_block(warp);
    on_exit(print_at_exit, NULL);
  }
}
