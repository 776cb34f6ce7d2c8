/* count.c: the counters of each kernel, summed over its launches and printed at the program's end, on
 * stderr. */
#include "record/count.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void count_access(AccessCount *count, LaneMask mask, uint32_t bytes, uint32_t steps) {
  count->accesses++;
  count->bytes += (uint64_t)__builtin_popcount(mask) * bytes;
  count->steps += steps;
}

void count_copy(Counters *counters, const char *kind, uint64_t bytes, uint32_t receivers) {
  int i = 0;
  while (i < COPY_KINDS - 1 && counters->copies[i].kind && strcmp(counters->copies[i].kind, kind))
    i++;
  counters->copies[i].kind = kind;
  counters->copies[i].copies++;
  counters->copies[i].bytes += bytes;
  counters->copies[i].ranks_bytes += bytes * (receivers ? receivers : 1);
}

uint32_t count_sectors(LaneMask mask, const uint64_t *addresses, uint32_t bytes) {
  enum { SECTOR = 32, MOST = LANES * 3 };
  uint64_t sectors[MOST];
  uint32_t count = 0;
  for (LaneMask left = mask; left; left &= left - 1) {
    uint64_t first = addresses[first_lane(left)] / SECTOR;
    uint64_t last = (addresses[first_lane(left)] + bytes - 1) / SECTOR;
    for (uint64_t sector = first; sector <= last && count < MOST; sector++) {
      uint32_t i = count;
      /* neighbouring lanes usually come one after the other */
      while (i > 0 && sectors[i - 1] != sector) i--;
      if (i == 0) sectors[count++] = sector;
    }
  }
  return count;
}

/* ---- All kernels ---- */
typedef struct KernelCount KernelCount;
struct KernelCount {
  char *kernel;
  Counters counters;
  KernelCount *next;
};
static KernelCount *first_kernel, **last_kernel = &first_kernel;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add_accesses(AccessCount *to, const AccessCount *from) {
  for (int i = 0; i < 3; i++) {
    to[i].accesses += from[i].accesses;
    to[i].bytes += from[i].bytes;
    to[i].steps += from[i].steps;
  }
}

static void add_copies(Counters *to, const Counters *from) {
  for (int i = 0; i < COPY_KINDS && from->copies[i].kind; i++) {
    int k = 0;
    while (k < COPY_KINDS - 1 && to->copies[k].kind &&
           strcmp(to->copies[k].kind, from->copies[i].kind))
      k++;
    to->copies[k].kind = from->copies[i].kind;
    to->copies[k].copies += from->copies[i].copies;
    to->copies[k].bytes += from->copies[i].bytes;
    to->copies[k].ranks_bytes += from->copies[i].ranks_bytes;
  }
}

/* "  name                 123,456" with thousands separated. */
static void print_number(uint64_t number) {
  char digits[32], grouped[48];
  int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number), at = 0;
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0) grouped[at++] = ',';
    grouped[at++] = digits[i];
  }
  grouped[at] = '\0';
  fputs(grouped, stderr);
}

static void print_part(const char *before, uint64_t number, const char *after) {
  fputs(before, stderr);
  print_number(number);
  fputs(after, stderr);
}

static void print_accesses(const char *memory, const AccessCount *counts, const char *steps) {
  static const char *const names[] = {
      [ACCESS_READ] = "reads", [ACCESS_WRITE] = "writes", [ACCESS_ATOMIC] = "atomics"};
  for (int i = 0; i < 3; i++) {
    if (!counts[i].accesses) continue;
    fprintf(stderr, "  %s %-8s", memory, names[i]);
    print_part(" ", counts[i].accesses, " by warps, ");
    print_part("", counts[i].bytes, " bytes, ");
    print_part("", counts[i].steps, steps);
  }
}

static void print_counters(const KernelCount *kernel) {
  static const char *const kinds[INSTRUCTION_KINDS] = {"arithmetic", "memory", "control",
                                                       "barriers",   "async",  "tensor cores"};
  const Counters *counters = &kernel->counters;
  uint64_t all = 0;
  for (int i = 0; i < INSTRUCTION_KINDS; i++) all += counters->instructions[i];
  fprintf(stderr, "emulator: counted in kernel %s", kernel->kernel);
  print_part(", launches ", counters->launches, "");
  print_part(", clusters ", counters->clusters, "\n");
  print_part("  instructions of threads ", all, "");
  print_part(", at most ", counters->most_by_thread, " by one\n");
  for (int i = 0; i < INSTRUCTION_KINDS; i++) {
    if (!counters->instructions[i]) continue;
    fprintf(stderr, "    %-13s", kinds[i]);
    print_part(" ", counters->instructions[i], "\n");
  }
  print_accesses("global", counters->global, " sectors\n");
  print_accesses("shared", counters->shared, " passes over the banks\n");
  for (int i = 0; i < COPY_KINDS && counters->copies[i].kind; i++) {
    fprintf(stderr, "  %-17s", counters->copies[i].kind);
    print_part(" ", counters->copies[i].copies, " copies, ");
    print_part("", counters->copies[i].bytes, " bytes");
    uint64_t saved = counters->copies[i].ranks_bytes - counters->copies[i].bytes;
    if (saved) print_part(", multicast saved ", saved, " bytes");
    fputs("\n", stderr);
  }
  if (counters->mbarrier_changes)
    print_part("  mbarrier changes  ", counters->mbarrier_changes, "\n");
  if (counters->barrier_arrivals)
    print_part("  bar arrivals      ", counters->barrier_arrivals, " of warps\n");
  if (counters->cluster_arrivals)
    print_part("  cluster arrivals  ", counters->cluster_arrivals, " of warps\n");
  if (counters->multiply_adds)
    print_part("  multiply-adds     ", counters->multiply_adds, " by tensor cores\n");
}

static void print_all(void) {
  fflush(stdout);
  for (const KernelCount *kernel = first_kernel; kernel; kernel = kernel->next)
    print_counters(kernel);
}

/* Under the lock. */
static KernelCount *find_kernel(const char *name) {
  for (KernelCount *kernel = first_kernel; kernel; kernel = kernel->next)
    if (!strcmp(kernel->kernel, name)) return kernel;
  KernelCount *kernel = calloc(1, sizeof *kernel);
  if (!kernel || !(kernel->kernel = strdup(name))) {
    fprintf(stderr, "emulator: out of host memory for the counters\n");
    exit(2);
  }
  if (!first_kernel) atexit(print_all);
  *last_kernel = kernel;
  last_kernel = &kernel->next;
  return kernel;
}

void count_launch(const char *name) {
  pthread_mutex_lock(&lock);
  find_kernel(name)->counters.launches++;
  pthread_mutex_unlock(&lock);
}

void count_keep(const char *name, const Counters *from) {
  pthread_mutex_lock(&lock);
  Counters *to = &find_kernel(name)->counters;
  for (int i = 0; i < INSTRUCTION_KINDS; i++) to->instructions[i] += from->instructions[i];
  if (from->most_by_thread > to->most_by_thread) to->most_by_thread = from->most_by_thread;
  add_accesses(to->shared, from->shared);
  add_accesses(to->global, from->global);
  add_copies(to, from);
  to->mbarrier_changes += from->mbarrier_changes;
  to->barrier_arrivals += from->barrier_arrivals;
  to->cluster_arrivals += from->cluster_arrivals;
  to->multiply_adds += from->multiply_adds;
  to->clusters++;
  pthread_mutex_unlock(&lock);
}
