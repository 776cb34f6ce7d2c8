/* trace.h: what the warps of one cluster did, as far as it takes time.
 *
 * A warp is a list of steps in the order in which it finished them. Who waits for what is kept as
 * meetings: one phase of an mbarrier, one round of a barrier, one group of copies or of wgmmas. A
 * meeting is over when everything that belongs to it has come. What belongs to it is known from the
 * run itself, so the replay needs no barrier's counters and no program's data. */
#pragma once

#include "base/warp.h"

typedef enum {
  STEP_WORK,     /* only the instructions before it; detail = WorkKind */
  STEP_DIVISION, /* a = bytes of the integers */
  STEP_SHARED,   /* threads access shared memory: a = passes over the banks */
  STEP_GLOBAL,   /* threads access global memory: b = first run, a = runs; detail = Access */
  STEP_COPY,     /* a = number of the copy */
  STEP_INIT,     /* mbarrier.init; a = 1: the warp's first one, for which it fences */
  STEP_ARRIVE,   /* a = meeting, detail = ArriveKind */
  STEP_WAIT,     /* a = meeting, detail = WaitCause, b = WaitKind */
  STEP_WGMMA,    /* a = meeting, b = multiply-adds << 32 | number */
  STEP_MMA,      /* b = multiply-adds << 32 */
  STEP_EXIT
} StepKind;

/* A compiler issues the loads of a basic block first, so that their latencies overlap; at the block's end
 * they have been used. */
typedef enum { WORK_ONLY, WORK_NEEDS_LOADS } WorkKind;
typedef enum { ARRIVE_HERE, ARRIVE_AT_PEER, ARRIVE_SCOPED } ArriveKind;
typedef enum {
  AT_GROUP,
  AT_MBARRIER,
  AT_BARRIER,
  AT_CLUSTER_BARRIER,
  AT_CLUSTER_START /* the first one of a cluster */
} WaitKind;
typedef enum {
  WAIT_COPIES,  /* for an mbarrier whose last arrival was a copy's */
  WAIT_THREADS, /* for arrivals of other threads */
  WAIT_STORES,  /* for groups of bulk copies */
  WAIT_TENSOR,  /* for the tensor cores */
  WAIT_LOADS,   /* for loads by threads, and cp.async */
  WAIT_DRAIN,   /* at the warp's end, for its stores to reach L2 */
  WAIT_CAUSES
} WaitCause;

typedef struct {
  uint8_t kind, detail;
  uint16_t work; /* instructions of the warp before it */
  uint32_t a;
  uint64_t b;
} ClockStep;

/* Rows in global memory. */
typedef struct {
  uint64_t address, step;
  uint32_t count, bytes;
} ClockRun;

typedef struct {
  uint32_t first_run, runs;
  uint32_t bytes; /* into each receiver, or out of the SM */
  uint32_t rows;
  uint32_t warp;                         /* of the cluster */
  uint16_t ranks;                        /* the blocks that receive it */
  bool loads, by_threads, follows;       /* follows: arrives after the warp's earlier cp.async */
  bool by_map;                           /* a tensor copy */
  uint32_t read_meeting, landed_meeting; /* of its group; NO_MEETING: it reports to an mbarrier */
  uint32_t barrier_meeting[MAX_CLUSTER_CTAS];
  double source_time, landed_time;
} ClockCopy;
#define NO_MEETING UINT32_MAX

typedef struct {
  uint32_t missing;
  uint32_t first_waiting; /* warp + 1; 0: nobody */
  bool by_copy;           /* the last to come was a copy */
  double time;
} Meeting;

typedef struct {
  ClockStep *steps;
  double *ends; /* when each step ended; NULL unless the cluster is recorded */
  uint32_t count, capacity;
  uint32_t work;                                          /* instructions since the last step */
  bool loaded;                                            /* in this basic block */
  bool inits;                                             /* it has initialised an mbarrier */
  uint32_t bulk_read, bulk_landed, copies_landed, wgmmas; /* the open groups' meetings */
  uint32_t *groups[3];                                    /* of each kind: closed, not awaited */
  uint32_t group_count[3], group_capacity[3];
  uint32_t landed_first[3],
      read_first;       /* groups that have been awaited, by kind; for reads alone */
  uint32_t barrier[17]; /* the last meeting at each barrier; 16: the cluster's */
  /* replay */
  uint32_t next, next_waiting;
  bool worked;              /* the instructions before step `next` are done */
  uint32_t loads_under_way; /* from global memory, since it last waited for its loads */
  double start, time, loads_ready, stores_done;
  double copies_start, copies_ready; /* the last of its cp.async; when all that have started land */
  double waited[WAIT_CAUSES];
} WarpTrace;

typedef struct {
  uint32_t address, phase, current, previous;
} BarrierTrace;

typedef struct ClockTrace ClockTrace;
struct ClockTrace {
  ClockTrace *next;
  const Launch *launch;
  uint32_t number, ctas, warps_per_cta, warps;
  bool kept; /* ends are wanted */
  WarpTrace *warp;
  ClockRun *runs;
  uint32_t run_count, run_capacity;
  ClockCopy *copies;
  uint32_t copy_count, copy_capacity;
  Meeting *meetings;
  uint32_t meeting_count, meeting_capacity;
  BarrierTrace *barriers;
  uint32_t barrier_count, barrier_capacity;
  /* meetings of bar and barrier.cluster; cluster_start: its first one */
  uint32_t round[MAX_CLUSTER_CTAS][16], cluster_round, cluster_start;
  double *wgmma_ends;
  uint32_t wgmma_count, wgmma_capacity;
  /* replay */
  uint16_t sm[MAX_CLUSTER_CTAS];
  uint32_t running[MAX_CLUSTER_CTAS], running_ctas;
  uint32_t first_partition[MAX_CLUSTER_CTAS];
};

/* Fills in the times of the traces, and adds the launch to its kernel's sums (replay.c, clock_report.c). */
void clock_replay(const Launch *launch, const char *kernel, ClockTrace **traces, uint32_t count);
