/* count.c: the counters of each kernel, summed over its launches and printed at the program's end, on
 * stderr. */
#include "record/count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/lock.h"

void count_access(AccessCount *count, LaneMask mask, uint32_t bytes, uint32_t steps) {
  count->accesses++;
  count->bytes += (uint64_t)__builtin_popcount(mask) * bytes;
  count->steps += steps;
}

/* ---- What the copy engine moves, as ncu counts it on an H200 (RECORDING.md) ---- */
enum { SECTOR = 32, CHUNK = 16, PIECE = 128 };

static uint64_t sectors_between(uint64_t address, uint64_t bytes) {
  return bytes ? (address + bytes - 1) / SECTOR - address / SECTOR + 1 : 0;
}

/* A row of a box: fill, then bytes from or for `address`, then fill again. */
typedef struct {
  uint64_t address;
  uint32_t left, bytes, length;
} BoxRow;

/* A load moves 128 bytes of a row at a time: the sectors that hold them, and 16-byte chunks that lie
 * outside the tensor in sectors of their own. What several blocks receive comes in pairs of sectors. */
static uint64_t loaded_sectors(const BoxRow *row, uint32_t receivers) {
  const uint32_t end = row->left + row->bytes;
  uint64_t all = 0;
  for (uint32_t piece = 0; piece < row->length; piece += PIECE) {
    const uint32_t stop = row->length - piece < PIECE ? row->length : piece + PIECE;
    const uint32_t first = row->left > piece ? row->left : piece, last = end < stop ? end : stop;
    uint64_t sectors = 0, before = 0, after = 0;
    if (first < last) sectors = sectors_between(row->address + (first - row->left), last - first);
    for (uint32_t chunk = piece; chunk < stop; chunk += CHUNK) {
      if (chunk + CHUNK <= row->left) before += CHUNK;
      if (chunk >= row->left && chunk >= end) after += CHUNK;
    }
    sectors += sectors_between(0, before) + sectors_between(0, after);
    all += receivers > 1 ? sectors + sectors % 2 : sectors;
  }
  return all * receivers;
}

/* Blocks that a load of the copy engine writes to; 0: it is no such load. */
static uint32_t receivers_of(const ClockCopyNote *copy) {
  return copy->loads ? (uint32_t)__builtin_popcount(copy->ranks) : 0;
}

static uint64_t row_sectors(const ClockCopyNote *copy, const BoxRow *row) {
  const uint32_t receivers = receivers_of(copy);
  return receivers ? loaded_sectors(row, receivers) : sectors_between(row->address, row->bytes);
}

/* With a strided dimension 0 the walk gives a row slice by slice. */
static uint64_t slices_sectors(const ClockCopyNote *copy, TmaWalk *walk) {
  uint64_t sectors = 0;
  TmaRows piece;
  do {
    BoxRow row = {.length = 0};
    for (uint32_t i = 0; i < walk->count[0] && tma_walk_next(walk, &piece); i++) {
      if (piece.bytes && !row.bytes) row.address = piece.global, row.left = row.length;
      row.bytes += piece.bytes;
      row.length += walk->row_bytes;
    }
    if (!row.length) return sectors;
    sectors += row_sectors(copy, &row);
  } while (true);
}

static uint64_t moved_sectors(const ClockCopyNote *copy, uint32_t bytes) {
  if (!copy->map) return row_sectors(copy, &(BoxRow){copy->global, 0, bytes, bytes});
  uint64_t sectors = 0;
  TmaRows rows;
  TmaWalk walk = tma_walk(copy->map, copy->at);
  if (walk.first_counted == 0) return slices_sectors(copy, &walk);
  while (tma_walk_next(&walk, &rows))
    for (uint32_t i = 0; i < rows.count; i++)
      sectors += row_sectors(
          copy, &(BoxRow){rows.global + i * rows.step, rows.left, rows.bytes, walk.row_bytes});
  return sectors;
}

static CopyCount *copies_of_kind(Counters *counters, const char *kind) {
  CopyCount *copies = counters->copies;
  while (copies < &counters->copies[COPY_KINDS - 1] && copies->kind && strcmp(copies->kind, kind))
    copies++;
  copies->kind = kind;
  return copies;
}

void count_copy(Counters *counters, const char *kind, const ClockCopyNote *copy) {
  CopyCount *copies = copies_of_kind(counters, kind);
  const uint64_t bytes = (uint64_t)copy->bytes * (uint32_t)__builtin_popcount(copy->lanes);
  copies->copies++;
  copies->bytes += bytes;
  copies->ranks_bytes += bytes * (receivers_of(copy) ? receivers_of(copy) : 1);
  copies->moved_bytes += moved_sectors(copy, (uint32_t)bytes) * SECTOR;
  if (!copy->sources) return;
  uint64_t addresses[LANES]; /* cp.async reads global memory as a load does */
  FOR_LANES(lane, copy->lanes) addresses[lane] = (uint64_t)(uintptr_t)copy->sources[lane];
  count_access(&counters->global[ACCESS_READ], copy->lanes, copy->bytes,
               count_sectors(copy->lanes, addresses, copy->bytes));
}

uint32_t count_sectors(LaneMask mask, const uint64_t *addresses, uint32_t bytes) {
  enum { MOST = LANES * 3 };
  uint64_t sectors[MOST];
  uint32_t count = 0;
  FOR_LANES(lane, mask) {
    uint64_t first = addresses[lane] / SECTOR;
    uint64_t last = (addresses[lane] + bytes - 1) / SECTOR;
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
static struct {
  pthread_mutex_t lock; /* of all of it */
  KernelCount *first, **last;
} kernels = {PTHREAD_MUTEX_INITIALIZER, NULL, &kernels.first};

static void add_accesses(AccessCount *to, const AccessCount *from) {
  for (int i = 0; i < 3; i++) {
    to[i].accesses += from[i].accesses;
    to[i].bytes += from[i].bytes;
    to[i].steps += from[i].steps;
  }
}

static void add_copies(Counters *to, const Counters *from) {
  for (int i = 0; i < COPY_KINDS && from->copies[i].kind; i++) {
    CopyCount *copies = copies_of_kind(to, from->copies[i].kind);
    copies->copies += from->copies[i].copies;
    copies->bytes += from->copies[i].bytes;
    copies->ranks_bytes += from->copies[i].ranks_bytes;
    copies->moved_bytes += from->copies[i].moved_bytes;
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
  print_accesses("dsmem", counters->dsmem, " passes over the banks\n");
  for (int i = 0; i < COPY_KINDS && counters->copies[i].kind; i++) {
    fprintf(stderr, "  %-17s", counters->copies[i].kind);
    print_part(" ", counters->copies[i].copies, " copies, ");
    print_part("", counters->copies[i].bytes, " bytes");
    uint64_t saved = counters->copies[i].ranks_bytes - counters->copies[i].bytes;
    if (saved) print_part(", multicast saved ", saved, " bytes");
    if (counters->copies[i].moved_bytes != counters->copies[i].ranks_bytes)
      print_part(", moved ", counters->copies[i].moved_bytes, " bytes in whole sectors");
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

static void print_counts(void) {
  fflush(stdout);
  for (const KernelCount *kernel = kernels.first; kernel; kernel = kernel->next)
    print_counters(kernel);
}

/* Under the lock. */
static KernelCount *find_kernel(const char *name) {
  for (KernelCount *kernel = kernels.first; kernel; kernel = kernel->next)
    if (!strcmp(kernel->kernel, name)) return kernel;
  KernelCount *kernel = new_zeros(1, sizeof *kernel);
  kernel->kernel = need_memory(strdup(name));
  if (!kernels.first) atexit(print_counts);
  *kernels.last = kernel;
  kernels.last = &kernel->next;
  return kernel;
}

void count_launch(const char *name) {
  HOLD_LOCK(&kernels.lock);
  find_kernel(name)->counters.launches++;
}

void count_keep(const char *name, const Counters *from) {
  HOLD_LOCK(&kernels.lock);
  Counters *to = &find_kernel(name)->counters;
  for (int i = 0; i < INSTRUCTION_KINDS; i++) to->instructions[i] += from->instructions[i];
  if (from->most_by_thread > to->most_by_thread) to->most_by_thread = from->most_by_thread;
  add_accesses(to->shared, from->shared);
  add_accesses(to->dsmem, from->dsmem);
  add_accesses(to->global, from->global);
  add_copies(to, from);
  to->mbarrier_changes += from->mbarrier_changes;
  to->barrier_arrivals += from->barrier_arrivals;
  to->cluster_arrivals += from->cluster_arrivals;
  to->multiply_adds += from->multiply_adds;
  to->clusters++;
}
