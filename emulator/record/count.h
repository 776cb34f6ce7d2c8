/* count.h: counts a kernel's operations, for EMULATOR_COUNT=1. */
#pragma once

#include "clock/clock.h"

typedef struct {
  uint64_t accesses, bytes; /* accesses of warps; bytes that their lanes requested */
  /* shared memory: passes over the banks; global memory: sectors of 32 bytes */
  uint64_t steps;
} AccessCount;

enum { COPY_KINDS = 16 };
typedef struct {
  const char *kind;
  /* ranks_bytes: bytes that arrived, in all blocks of the masks; moved_bytes: what crossed between
   * L2 and the SMs for them, in sectors */
  uint64_t copies, bytes, ranks_bytes, moved_bytes;
} CopyCount;

typedef struct {
  uint64_t instructions[INSTRUCTION_KINDS]; /* of threads */
  uint64_t most_by_thread;
  AccessCount shared[3], dsmem[3], global[3]; /* by Access; dsmem: shared memory of other blocks */
  CopyCount copies[COPY_KINDS];
  uint64_t mbarrier_changes, barrier_arrivals, cluster_arrivals;
  uint64_t multiply_adds; /* of tensor cores */
  uint64_t clusters, launches;
} Counters;

void count_access(AccessCount *count, LaneMask mask, uint32_t bytes, uint32_t steps);
void count_copy(Counters *counters, const char *kind, const ClockCopyNote *copy);
/* Sectors of 32 bytes that these lanes touch together. */
uint32_t count_sectors(LaneMask mask, const uint64_t *addresses, uint32_t bytes);

/* Adds a cluster's counters to those of its kernel; printed when the program ends. */
void count_keep(const char *kernel, const Counters *counters);
void count_launch(const char *kernel);
