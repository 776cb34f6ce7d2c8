/* trace.c: notes what the warps of a cluster do (trace.h). */
#include "clock/trace.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/lock.h"
#include "clock/clock.h"

static struct {
  pthread_mutex_t lock;
  ClockTrace *traces; /* of all launches that have not ended */
} ended = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Life ---- */
static uint32_t new_meeting(ClockTrace *trace) {
  trace->meetings =
      grown_list(trace->meetings, trace->meeting_count, &trace->meeting_capacity, sizeof(Meeting));
  trace->meetings[trace->meeting_count] = (Meeting){.missing = 0};
  return trace->meeting_count++;
}

ClockTrace *clock_trace_begin(const Cluster *cluster, bool kept) {
  ClockTrace *trace = new_zeros(1, sizeof *trace);
  trace->launch = cluster->launch;
  trace->number = cluster->number;
  trace->ctas = cluster->cta_count;
  trace->warps_per_cta = cluster->ctas[0].warp_count;
  trace->warps = trace->ctas * trace->warps_per_cta;
  trace->kept = kept;
  trace->warp = new_zeros(trace->warps, sizeof *trace->warp);
  for (uint32_t i = 0; i < trace->warps; i++) {
    WarpTrace *warp = &trace->warp[i];
    warp->bulk_read = warp->bulk_landed = warp->copies_landed = warp->wgmmas = NO_MEETING;
    for (int j = 0; j <= BARRIER_OF_CLUSTER; j++) warp->barrier[j] = NO_MEETING;
  }
  for (int i = 0; i < MAX_CLUSTER_CTAS; i++)
    for (int j = 0; j < 16; j++) trace->round[i][j] = NO_MEETING;
  trace->cluster_round = trace->cluster_start = NO_MEETING;
  return trace;
}

void clock_trace_end(ClockTrace *trace) {
  HOLD_LOCK(&ended.lock);
  trace->next = ended.traces;
  ended.traces = trace;
}

static void free_trace(ClockTrace *trace) {
  for (uint32_t i = 0; i < trace->warps; i++) {
    free(trace->warp[i].steps);
    free(trace->warp[i].ends);
    for (int kind = 0; kind < 3; kind++) free(trace->warp[i].groups[kind]);
  }
  free(trace->warp);
  free(trace->runs);
  free(trace->copies);
  free(trace->meetings);
  free(trace->barriers);
  free(trace->wgmma_ends);
  free(trace);
}

static int trace_by_number(const void *a, const void *b) {
  const ClockTrace *const *first = a, *const *second = b;
  return ((*first)->number > (*second)->number) - ((*first)->number < (*second)->number);
}

void clock_launch_end(const Launch *launch, const char *kernel) {
  HOLD_LOCK(&ended.lock);
  uint32_t count = 0;
  for (ClockTrace *trace = ended.traces; trace; trace = trace->next)
    count += trace->launch == launch;
  ClockTrace **traces = new_zeros(count, sizeof *traces);
  count = 0;
  for (ClockTrace *trace = ended.traces; trace; trace = trace->next)
    if (trace->launch == launch) traces[count++] = trace;
  if (count) {
    qsort(traces, count, sizeof *traces, trace_by_number);
    clock_replay(launch, kernel, traces, count);
  }
  free(traces);
}

void clock_launch_free(const Launch *launch) {
  HOLD_LOCK(&ended.lock);
  for (ClockTrace **link = &ended.traces; *link;) {
    ClockTrace *trace = *link;
    if (trace->launch != launch) {
      link = &trace->next;
      continue;
    }
    *link = trace->next;
    free_trace(trace);
  }
}

/* ---- Steps ---- */
static void add_step(ClockTrace *trace, uint32_t number, StepKind kind, uint8_t detail, uint32_t a,
                     uint64_t b) {
  WarpTrace *warp = &trace->warp[number];
  do {
    warp->steps = grown_list(warp->steps, warp->count, &warp->capacity, sizeof(ClockStep));
    const bool more = warp->work > UINT16_MAX;
    ClockStep *step = &warp->steps[warp->count++];
    *step = (ClockStep){.kind = (uint8_t)kind, .detail = detail, .a = a, .b = b};
    step->work = more ? UINT16_MAX : (uint16_t)warp->work;
    warp->work -= step->work;
    if (!more) return;
    step->kind = STEP_WORK;
  } while (true);
}

void clock_instruction(ClockTrace *trace, uint32_t warp, bool labelled) {
  WarpTrace *at = &trace->warp[warp];
  if (labelled && at->loaded) {
    add_step(trace, warp, STEP_WORK, WORK_NEEDS_LOADS, 0, 0);
    at->loaded = false;
  }
  at->work++;
}

void clock_division(ClockTrace *trace, uint32_t warp, uint32_t bytes) {
  trace->warp[warp].work--;
  add_step(trace, warp, STEP_DIVISION, 0, bytes, 0);
}

void clock_not_done(ClockTrace *trace, uint32_t warp) {
  WarpTrace *at = &trace->warp[warp];
  if (at->work) at->work--;
}

void clock_shared(ClockTrace *trace, uint32_t warp, uint32_t passes, Access access) {
  add_step(trace, warp, STEP_SHARED, (uint8_t)access, passes, 0);
  if (access == ACCESS_READ) trace->warp[warp].loaded = true;
}

static void add_run(ClockTrace *trace, ClockRun run) {
  trace->runs = grown_list(trace->runs, trace->run_count, &trace->run_capacity, sizeof(ClockRun));
  trace->runs[trace->run_count++] = run;
}

/* Appends bytes to the last run since `first` if they continue it. */
static void extend_run(ClockTrace *trace, uint32_t first, uint64_t address, uint32_t bytes) {
  ClockRun *last = trace->run_count > first ? &trace->runs[trace->run_count - 1] : NULL;
  if (last && last->count == 1 && last->address + last->bytes == address) {
    last->bytes += bytes;
    return;
  }
  if (last && last->bytes == bytes &&
      (last->count == 1 || last->address + last->step * last->count == address)) {
    last->step = last->count == 1 ? address - last->address : last->step;
    last->count++;
    return;
  }
  add_run(trace, (ClockRun){address, 0, 1, bytes});
}

void clock_global(ClockTrace *trace, uint32_t warp, LaneMask mask, const uint64_t *addresses,
                  uint32_t bytes, Access access) {
  const uint32_t first = trace->run_count;
  FOR_LANES(lane, mask) extend_run(trace, first, addresses[lane], bytes);
  add_step(trace, warp, STEP_GLOBAL, (uint8_t)access, trace->run_count - first, first);
  if (access == ACCESS_READ) trace->warp[warp].loaded = true;
}

void clock_exit(ClockTrace *trace, uint32_t warp) { add_step(trace, warp, STEP_EXIT, 0, 0, 0); }

/* ---- Copies ---- */
static uint32_t add_tensor_runs(ClockTrace *trace, const TmaMap *map, const TmaPlace *at) {
  TmaWalk walk = tma_walk(map, at);
  TmaRows rows;
  uint32_t count = 0;
  while (tma_walk_next(&walk, &rows)) {
    count += rows.count;
    if (rows.bytes) add_run(trace, (ClockRun){rows.global, rows.step, rows.count, rows.bytes});
  }
  return count;
}

/* A member of the open group whose meeting is *open. */
static uint32_t join_meeting(ClockTrace *trace, uint32_t *open) {
  if (*open == NO_MEETING) *open = new_meeting(trace);
  trace->meetings[*open].missing++;
  return *open;
}

uint32_t clock_copy(ClockTrace *trace, uint32_t number, const ClockCopyNote *note) {
  WarpTrace *warp = &trace->warp[number];
  trace->copies =
      grown_list(trace->copies, trace->copy_count, &trace->copy_capacity, sizeof(ClockCopy));
  ClockCopy *copy = &trace->copies[trace->copy_count];
  *copy = (ClockCopy){.first_run = trace->run_count,
                      .bytes = note->bytes,
                      .rows = 1,
                      .warp = number,
                      .ranks = (uint16_t)note->ranks,
                      .loads = note->loads,
                      .by_map = note->map != NULL,
                      .by_threads = note->by_threads,
                      .follows = note->arrives};
  copy->read_meeting = copy->landed_meeting = NO_MEETING;
  for (int i = 0; i < MAX_CLUSTER_CTAS; i++) copy->barrier_meeting[i] = NO_MEETING;
  if (note->map)
    copy->rows = add_tensor_runs(trace, note->map, note->at);
  else if (note->sources)
    FOR_LANES(lane, note->lanes)
      extend_run(trace, copy->first_run, (uint64_t)(uintptr_t)note->sources[lane], note->bytes);
  else if (note->global)
    add_run(trace, (ClockRun){note->global, 0, 1, note->bytes});
  if (note->sources) copy->bytes *= (uint32_t)__builtin_popcount(note->lanes);
  copy->runs = trace->run_count - copy->first_run;
  if (note->group && note->by_threads)
    copy->landed_meeting = join_meeting(trace, &warp->copies_landed);
  if (note->group && !note->by_threads) {
    copy->read_meeting = join_meeting(trace, &warp->bulk_read);
    copy->landed_meeting = join_meeting(trace, &warp->bulk_landed);
  }
  add_step(trace, number, STEP_COPY, 0, trace->copy_count, 0);
  return trace->copy_count++;
}

/* ---- Groups ---- */
static void close_group(WarpTrace *warp, int kind, uint32_t meeting) {
  warp->groups[kind] = grown_list(warp->groups[kind], warp->group_count[kind],
                                  &warp->group_capacity[kind], sizeof(uint32_t));
  warp->groups[kind][warp->group_count[kind]++] = meeting;
}

/* Bulk groups have two meetings, so they have two entries each. */
void clock_commit(ClockTrace *trace, uint32_t number, ClockGroup group) {
  WarpTrace *warp = &trace->warp[number];
  if (group == CLOCK_BULK) {
    close_group(warp, group, warp->bulk_read);
    close_group(warp, group, warp->bulk_landed);
    warp->bulk_read = warp->bulk_landed = NO_MEETING;
    return;
  }
  uint32_t *open = group == CLOCK_WGMMA ? &warp->wgmmas : &warp->copies_landed;
  close_group(warp, group, *open);
  *open = NO_MEETING;
}

void clock_awaited(ClockTrace *trace, uint32_t number, ClockGroup group, uint32_t pending,
                   bool reads_only) {
  static const WaitCause causes[] = {
      [CLOCK_BULK] = WAIT_STORES, [CLOCK_CP_ASYNC] = WAIT_LOADS, [CLOCK_WGMMA] = WAIT_TENSOR};
  WarpTrace *warp = &trace->warp[number];
  const uint32_t each = group == CLOCK_BULK ? 2 : 1, groups = warp->group_count[group] / each;
  const uint32_t end = groups > pending ? groups - pending : 0;
  uint32_t *first = reads_only ? &warp->read_first : &warp->landed_first[group];
  for (; *first < end; ++*first) {
    const uint32_t meeting = warp->groups[group][*first * each + (each == 2 && !reads_only)];
    if (meeting != NO_MEETING)
      add_step(trace, number, STEP_WAIT, (uint8_t)causes[group], meeting, AT_GROUP);
  }
}

/* ---- Barriers ---- */
static BarrierTrace *barrier_of(ClockTrace *trace, uint32_t address) {
  for (uint32_t i = 0; i < trace->barrier_count; i++)
    if (trace->barriers[i].address == address) return &trace->barriers[i];
  trace->barriers = grown_list(trace->barriers, trace->barrier_count, &trace->barrier_capacity,
                               sizeof(BarrierTrace));
  BarrierTrace *barrier = &trace->barriers[trace->barrier_count++];
  *barrier = (BarrierTrace){address, 0, new_meeting(trace), NO_MEETING};
  return barrier;
}

void clock_mbarrier(ClockTrace *trace, uint32_t warp, uint32_t address, uint32_t phase, bool init,
                    bool scoped, int64_t copy) {
  BarrierTrace *barrier = barrier_of(trace, address);
  if (init) {
    barrier->phase = phase;
    barrier->current = new_meeting(trace);
    barrier->previous = NO_MEETING;
    add_step(trace, warp, STEP_INIT, 0, !trace->warp[warp].inits, 0);
    trace->warp[warp].inits = true;
    return;
  }
  const uint32_t meeting = barrier->current;
  trace->meetings[meeting].missing++;
  if (copy >= 0)
    trace->copies[copy].barrier_meeting[SHARED_RANK(address) % MAX_CLUSTER_CTAS] = meeting;
  else
    add_step(trace, warp, STEP_ARRIVE,
             scoped                                                ? ARRIVE_SCOPED
             : SHARED_RANK(address) != warp / trace->warps_per_cta ? ARRIVE_AT_PEER
                                                                   : ARRIVE_HERE,
             meeting, 0);
  if (phase == barrier->phase) return;
  barrier->phase = phase;
  barrier->previous = meeting;
  barrier->current = new_meeting(trace);
}

void clock_mbarrier_passed(ClockTrace *trace, uint32_t warp, uint32_t address) {
  const BarrierTrace *barrier = barrier_of(trace, address);
  if (barrier->previous != NO_MEETING)
    add_step(trace, warp, STEP_WAIT, WAIT_THREADS, barrier->previous, AT_MBARRIER);
}

void clock_barrier_arrived(ClockTrace *trace, uint32_t warp, uint32_t number, bool complete) {
  uint32_t *round = number == BARRIER_OF_CLUSTER
                        ? &trace->cluster_round
                        : &trace->round[warp / trace->warps_per_cta][number];
  if (*round == NO_MEETING) *round = new_meeting(trace);
  if (number == BARRIER_OF_CLUSTER && trace->cluster_start == NO_MEETING)
    trace->cluster_start = *round;
  trace->meetings[*round].missing++;
  trace->warp[warp].barrier[number] = *round;
  add_step(trace, warp, STEP_ARRIVE, ARRIVE_HERE, *round, 0);
  if (complete) *round = NO_MEETING;
}

void clock_barrier_passed(ClockTrace *trace, uint32_t warp, uint32_t number) {
  const uint32_t meeting = trace->warp[warp].barrier[number];
  if (meeting != NO_MEETING)
    add_step(trace, warp, STEP_WAIT, WAIT_THREADS, meeting,
             number != BARRIER_OF_CLUSTER      ? AT_BARRIER
             : meeting == trace->cluster_start ? AT_CLUSTER_START
                                               : AT_CLUSTER_BARRIER);
}

/* ---- Tensor cores ---- */
/* The wider the operands, the longer it takes; 1 for 16 bits. */
static uint64_t weight_of(uint64_t multiply_adds, uint32_t bits) {
  return multiply_adds * bits / 16;
}

void clock_wgmma(ClockTrace *trace, uint32_t warp, uint64_t multiply_adds, uint32_t bits) {
  const uint32_t meeting = join_meeting(trace, &trace->warp[warp].wgmmas);
  trace->wgmma_ends =
      grown_list(trace->wgmma_ends, trace->wgmma_count, &trace->wgmma_capacity, sizeof(double));
  trace->wgmma_ends[trace->wgmma_count] = 0;
  add_step(trace, warp, STEP_WGMMA, 0, meeting,
           weight_of(multiply_adds, bits) << 32 | trace->wgmma_count);
  trace->wgmma_count++;
}

void clock_mma(ClockTrace *trace, uint32_t warp, uint64_t multiply_adds, uint32_t bits) {
  add_step(trace, warp, STEP_MMA, 0, 0, weight_of(multiply_adds, bits) << 32);
}

/* ---- For the recording ---- */
ClockMoment clock_moment(const ClockTrace *trace, uint32_t warp) {
  return (ClockMoment){trace->warp[warp].count, trace->warp[warp].work};
}

const ClockTrace *clock_find(const Launch *launch, uint32_t cluster) {
  HOLD_LOCK(&ended.lock);
  const ClockTrace *trace = ended.traces;
  while (trace && (trace->launch != launch || trace->number != cluster)) trace = trace->next;
  return trace;
}

double clock_of_source(const ClockTrace *trace, uint32_t copy) {
  return trace->copies[copy].source_time;
}
double clock_of_landing(const ClockTrace *trace, uint32_t copy) {
  return trace->copies[copy].landed_time;
}
double clock_of_wgmma(const ClockTrace *trace, uint32_t number) {
  return trace->wgmma_ends[number];
}
