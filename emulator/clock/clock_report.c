/* clock_report.c: what the clock found out about each kernel, printed when the program ends. */
#include "clock/chip_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/settings.h"

enum { LAUNCHES_SHOWN = 32 };
typedef struct KernelTime KernelTime;
struct KernelTime {
  char *kernel;
  uint32_t launches;
  LaunchTime sum;
  double microseconds[LAUNCHES_SHOWN];
  KernelTime *next;
};
static struct {
  pthread_mutex_t lock; /* of all of it */
  KernelTime *first, **last;
} kernels = {PTHREAD_MUTEX_INITIALIZER, NULL, &kernels.first};

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

static void print_waits(const ChipUse *use) {
  static const char *const causes[] = {
      [WAIT_COPIES] = "copies into shared memory", [WAIT_THREADS] = "other warps",
      [WAIT_STORES] = "copies out of it",          [WAIT_TENSOR] = "the tensor cores",
      [WAIT_LOADS] = "loads and cp.async",         [WAIT_DRAIN] = "their last stores"};
  double all = 0;
  for (int i = 0; i < WAIT_CAUSES; i++) all += use->waited[i];
  if (percent(all, use->warp_time) < 0.5) return;
  fprintf(stderr, "  warps waited %.0f %% of their time:", percent(all, use->warp_time));
  const char *comma = "";
  for (int i = 0; i < WAIT_CAUSES; i++) {
    if (percent(use->waited[i], use->warp_time) < 0.5) continue;
    fprintf(stderr, "%s %.0f %% for %s", comma, percent(use->waited[i], use->warp_time), causes[i]);
    comma = ",";
  }
  fputs("\n", stderr);
}

static void print_kernel(const KernelTime *kernel) {
  const LaunchTime *sum = &kernel->sum;
  const ChipUse *use = &sum->use;
  const double sms = sum->clocks * CHIP_MULTIPROCESSORS;
  const ChipParameters *p = &chip_parameters;
  fprintf(stderr, "emulator: clock h200, kernel %s: %.0f clocks, %.1f us", kernel->kernel,
          sum->clocks / kernel->launches, sum->microseconds / kernel->launches);
  if (kernel->launches > 1) fprintf(stderr, " (mean of %u launches)", kernel->launches);
  fprintf(stderr,
          "\n  busy: tensor cores %.1f %%, copy engines %.1f %% in and %.1f %% out, L2 %.1f %%, "
          "device memory %.1f %%\n",
          percent(use->tensor_busy, sms * CHIP_PARTITIONS), percent(use->copy_busy, sms),
          percent(use->store_busy, sms), percent(use->l2_busy, sum->clocks),
          percent(use->dram_bytes / p->dram_rate, sum->clocks));
  print_waits(use);
  if (sum->failed)
    fprintf(stderr, "  %u of its launches failed: what is counted of them ends there\n",
            sum->failed);
  if (kernel->launches == 1) return;
  fprintf(stderr, "  launches:");
  for (uint32_t i = 0; i < kernel->launches && i < LAUNCHES_SHOWN; i++)
    fprintf(stderr, " %.1f", kernel->microseconds[i]);
  fprintf(stderr, "%s us\n", kernel->launches > LAUNCHES_SHOWN ? " ..." : "");
}

static void print_estimates(void) {
  fflush(stdout);
  for (const KernelTime *kernel = kernels.first; kernel; kernel = kernel->next)
    print_kernel(kernel);
}

static KernelTime *find_kernel(const char *name) {
  for (KernelTime *kernel = kernels.first; kernel; kernel = kernel->next)
    if (!strcmp(kernel->kernel, name)) return kernel;
  KernelTime *kernel = new_zeros(1, sizeof *kernel);
  kernel->kernel = need_memory(strdup(name));
  if (!kernels.first && !settings()->clock_recorded) atexit(print_estimates);
  *kernels.last = kernel;
  kernels.last = &kernel->next;
  return kernel;
}

void clock_add_launch(const char *name, const LaunchTime *time) {
  HOLD_LOCK(&kernels.lock);
  KernelTime *kernel = find_kernel(name);
  if (kernel->launches < LAUNCHES_SHOWN)
    kernel->microseconds[kernel->launches] = time->microseconds;
  kernel->launches++;
  LaunchTime *sum = &kernel->sum;
  sum->clocks += time->clocks;
  sum->failed += time->failed;
  sum->microseconds += time->microseconds;
  sum->use.l2_read_bytes += time->use.l2_read_bytes;
  sum->use.l2_busy += time->use.l2_busy;
  sum->use.dram_bytes += time->use.dram_bytes;
  sum->use.copy_busy += time->use.copy_busy;
  sum->use.store_busy += time->use.store_busy;
  sum->use.tensor_busy += time->use.tensor_busy;
  sum->use.warp_time += time->use.warp_time;
  for (int i = 0; i < WAIT_CAUSES; i++) sum->use.waited[i] += time->use.waited[i];
}
