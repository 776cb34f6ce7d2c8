/* replay.c: discrete events: each warp takes its steps, each copy goes through the engine of its SM,
 * and whoever waits goes on when the last one has come (CLOCK.md). */

#include <stdlib.h>

#include "base/holds.h"
#include "clock/chip_parts.h"
#include "base/fault.h"
#include "clock/clock.h"

#define P chip_parameters

typedef enum { EVENT_WARP, EVENT_COPY_STARTS, EVENT_COPY_LANDS } EventKind;
typedef struct {
  double time;
  uint64_t order; /* events of one time happen in the order in which they were made */
  ClockTrace *trace;
  uint32_t number; /* warp or copy */
  uint32_t kind;
} Event;

typedef struct {
  Chip *chip;
  const Launch *launch;
  ClockTrace **traces;
  uint32_t trace_count, next_trace, most_ctas; /* most_ctas: on an SM */
  Event *heap;
  uint32_t count, capacity;
  uint64_t order;
  double now, end, launcher; /* launcher: when it can start another block */
} Replay;

/* ---- The events to come, the earliest first ---- */
static bool earlier(const Event *a, const Event *b) {
  return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void push_event(Replay *replay, double time, EventKind kind, ClockTrace *trace,
                       uint32_t number) {
  replay->heap = grown_list(replay->heap, replay->count, &replay->capacity, sizeof *replay->heap);
  Event event = {time, replay->order++, trace, number, kind};
  uint32_t at = replay->count++;
  for (; at > 0 && earlier(&event, &replay->heap[(at - 1) / 2]); at = (at - 1) / 2)
    replay->heap[at] = replay->heap[(at - 1) / 2];
  replay->heap[at] = event;
}

static Event pop_event(Replay *replay) {
  Event *heap = replay->heap, first = heap[0], last = heap[--replay->count];
  uint32_t at = 0;
  for (uint32_t child; (child = at * 2 + 1) < replay->count; at = child) {
    if (child + 1 < replay->count && earlier(&heap[child + 1], &heap[child])) child++;
    if (!earlier(&heap[child], &last)) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return first;
}

/* ---- Small helpers ---- */
static double later(double a, double b) { return a > b ? a : b; }

/* Takes a resource for `clocks` from `from` on, or from when it is free; returns when it is done. */
static double take_resource(double *resource, double from, double clocks) {
  *resource = later(*resource, from) + clocks;
  return *resource;
}

static Sm *sm_of(Replay *replay, const ClockTrace *trace, uint32_t warp) {
  return &replay->chip->sm[trace->sm[warp / trace->warps_per_cta]];
}

/* The part of the SM that runs the warp: its block's warps follow those of the block before. */
static uint32_t partition_of(const ClockTrace *trace, uint32_t warp) {
  const uint32_t each = trace->warps_per_cta;
  return (trace->first_partition[warp / each] + warp % each) % CHIP_PARTITIONS;
}

static double instruction_clocks(void) {
  return P.sass_per_ptx * (P.issue_slot + (P.dependent_instruction - P.issue_slot) / 4);
}

/* ---- Meetings ---- */
static double wait_latency(WaitKind kind, WaitCause cause, bool by_copy) {
  switch (kind) {
    case AT_MBARRIER: /* a copy's latency includes the waiting warp's */
      return by_copy ? 0 : P.mbarrier_latency;
    case AT_BARRIER:
      return P.barrier_latency;
    case AT_CLUSTER_BARRIER:
      return P.cluster_barrier_latency;
    case AT_CLUSTER_START:
      return P.cluster_start;
    case AT_GROUP:
      return cause == WAIT_TENSOR ? P.wgmma_latency : 0;
  }
  return 0;
}

static double end_of_wait(const ClockStep *step, const Meeting *meeting) {
  return meeting->time + wait_latency((WaitKind)step->b, (WaitCause)step->detail, meeting->by_copy);
}

/* A warp or copy that the meeting waited for comes at `time`. */
static void come_to_meeting(Replay *replay, ClockTrace *trace, uint32_t number, double time,
                            bool copy) {
  if (number == NO_MEETING) return;
  Meeting *meeting = &trace->meetings[number];
  if (time >= meeting->time) {
    meeting->time = time;
    meeting->by_copy = copy;
  }
  HOLDS(meeting->missing > 0);
  if (--meeting->missing) return;
  for (uint32_t waiting = meeting->first_waiting; waiting;) {
    WarpTrace *warp = &trace->warp[waiting - 1];
    const double end = end_of_wait(&warp->steps[warp->next], meeting);
    push_event(replay, later(end, warp->time), EVENT_WARP, trace, waiting - 1);
    waiting = warp->next_waiting;
  }
  meeting->first_waiting = 0;
}

/* ---- Blocks ---- */
/* The first of the SMs that take this cluster now, one block each; -1: none is free. */
static int find_sms(const Replay *replay, uint32_t ctas) {
  int best = -1;
  uint32_t least = replay->most_ctas;
  for (uint32_t first = 0; first + ctas <= CHIP_MULTIPROCESSORS; first += ctas) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < ctas; i++)
      if (replay->chip->sm[first + i].ctas > most) most = replay->chip->sm[first + i].ctas;
    if (most >= least) continue;
    least = most;
    best = (int)first;
  }
  return best;
}

static void start_clusters(Replay *replay, double now) {
  while (replay->next_trace < replay->trace_count) {
    ClockTrace *trace = replay->traces[replay->next_trace];
    const int first = find_sms(replay, trace->ctas);
    if (first < 0) return;
    replay->next_trace++;
    const double start =
        take_resource(&replay->launcher, now, P.block_time * P.clock_light / 1e3 * trace->ctas);
    trace->running_ctas = trace->ctas;
    for (uint32_t i = 0; i < trace->ctas; i++) {
      trace->sm[i] = (uint16_t)((uint32_t)first + i);
      Sm *sm = &replay->chip->sm[trace->sm[i]];
      sm->ctas++;
      trace->first_partition[i] = sm->next_partition;
      sm->next_partition = (sm->next_partition + trace->warps_per_cta) % CHIP_PARTITIONS;
      trace->running[i] = trace->warps_per_cta;
    }
    for (uint32_t i = 0; i < trace->warps; i++) {
      trace->warp[i].start = trace->warp[i].time = start;
      push_event(replay, start, EVENT_WARP, trace, i);
    }
  }
}

static void end_warp(Replay *replay, ClockTrace *trace, uint32_t number) {
  WarpTrace *warp = &trace->warp[number];
  replay->end = later(replay->end, warp->time);
  replay->chip->use.warp_time += warp->time - warp->start;
  for (int i = 0; i < WAIT_CAUSES; i++) replay->chip->use.waited[i] += warp->waited[i];
  if (--trace->running[number / trace->warps_per_cta] || --trace->running_ctas) return;
  for (uint32_t i = 0; i < trace->ctas; i++) replay->chip->sm[trace->sm[i]].ctas--;
  start_clusters(replay, warp->time + P.block_turn * P.clock_light / 1e3 +
                             (trace->ctas > 1 ? P.cluster_turn : 0));
}

/* ---- Copies ---- */
/* An SM fetches the tensor map for its first copy in a launch. */
static double map_latency(const ClockCopy *copy, Sm *sm) {
  if (!copy->by_map || sm->has_map) return 0;
  sm->has_map = true;
  return P.map_latency;
}

/* A load starts in its engine: the lines come from L2 or device memory, through the SM's port. */
static void copy_starts(Replay *replay, ClockTrace *trace, uint32_t number) {
  ClockCopy *copy = &trace->copies[number];
  const uint32_t rank = copy->warp / trace->warps_per_cta, sm = trace->sm[rank];
  const ClockRun *runs = trace->runs + copy->first_run;
  const double now = replay->now;
  if (copy->follows) { /* the warp's earlier copies have started, so it is known when they land */
    copy->landed_time = later(now, trace->warp[copy->warp].copies_ready);
    push_event(replay, copy->landed_time, EVENT_COPY_LANDS, trace, number);
    return;
  }
  double ready = chip_rows(replay->chip, now, sm, runs, copy->runs, !copy->loads);
  if (!copy->loads) {
    copy->landed_time = later(copy->source_time + P.store_latency, ready);
    push_event(replay, copy->landed_time, EVENT_COPY_LANDS, trace, number);
    return;
  }
  const RowCount rows = chip_count(runs, copy->runs);
  const double clocks =
      later(copy->by_threads ? 0 : P.copy_row * rows.lines, copy->bytes / P.copy_rate);
  for (uint32_t left = copy->ranks ? copy->ranks : 1u << rank; left; left &= left - 1) {
    const uint32_t receiver = (uint32_t)__builtin_ctz(left);
    if (receiver >= trace->ctas) break;
    const double end =
        take_resource(&replay->chip->sm[trace->sm[receiver]].port, now, copy->bytes / P.copy_rate);
    ready = later(ready, end);
  }
  copy->landed_time = later(ready, now + clocks) + map_latency(copy, &replay->chip->sm[sm]) +
                      (copy->by_threads ? P.l2_load_latency : P.copy_latency);
  if (copy->by_threads)
    trace->warp[copy->warp].copies_ready =
        later(trace->warp[copy->warp].copies_ready, copy->landed_time);
  push_event(replay, copy->landed_time, EVENT_COPY_LANDS, trace, number);
}

static void copy_lands(Replay *replay, ClockTrace *trace, uint32_t number) {
  const ClockCopy *copy = &trace->copies[number];
  replay->end = later(replay->end, replay->now);
  come_to_meeting(replay, trace, copy->landed_meeting, replay->now, true);
  for (uint32_t i = 0; i < trace->ctas; i++)
    come_to_meeting(replay, trace, copy->barrier_meeting[i], replay->now, true);
}

/* A thread issues a copy: returns how long that takes the warp. */
static void issue_copy(Replay *replay, ClockTrace *trace, WarpTrace *warp, uint32_t number) {
  ClockCopy *copy = &trace->copies[number];
  Sm *sm = sm_of(replay, trace, copy->warp);
  const double now = warp->time;
  if (copy->follows) {
    copy->source_time = later(now, warp->copies_start);
    push_event(replay, copy->source_time, EVENT_COPY_STARTS, trace, number);
    return;
  }
  if (copy->by_threads && copy->runs) {
    const RowCount rows = chip_count(trace->runs + copy->first_run, copy->runs);
    copy->source_time = warp->copies_start = take_resource(&sm->threads_pipe, now, rows.lines);
    push_event(replay, copy->source_time, EVENT_COPY_STARTS, trace, number);
    return;
  }
  if (copy->loads) {
    const RowCount rows = chip_count(trace->runs + copy->first_run, copy->runs);
    double start = later(sm->copy_engine, now);
    const double moves = later(P.copy_row * rows.lines, copy->bytes / P.copy_rate);
    const double clocks = later(P.copy_issue, moves);
    replay->chip->use.copy_busy += clocks;
    sm->copy_engine = start + clocks;
    copy->source_time = start;
    push_event(replay, start, EVENT_COPY_STARTS, trace, number);
    return;
  }
  const RowCount rows = chip_count(trace->runs + copy->first_run, copy->runs);
  const double asked = P.store_row * rows.lines, clocks = later(asked, copy->bytes / P.store_rate);
  replay->chip->use.store_busy += clocks;
  const double start = later(take_resource(&sm->copy_engine, now, asked) - asked, sm->store_engine);
  sm->store_engine = start + clocks;
  copy->source_time = sm->store_engine + P.store_read_latency;
  if (copy->runs) {
    push_event(replay, copy->source_time, EVENT_COPY_STARTS, trace, number);
  } else { /* from shared memory to shared memory */
    copy->landed_time = copy->source_time + P.remote_arrive_latency;
    push_event(replay, copy->landed_time, EVENT_COPY_LANDS, trace, number);
  }
  come_to_meeting(replay, trace, copy->read_meeting, copy->source_time, true);
}

/* ---- Warps ---- */
static void step_division(Replay *replay, ClockTrace *trace, WarpTrace *warp, uint32_t number,
                          const ClockStep *step) {
  Sm *sm = sm_of(replay, trace, number);
  const bool is_long = step->a > 4;
  const double issued = take_resource(&sm->issue[partition_of(trace, number)], warp->time,
                                      is_long ? P.long_division_issue : P.division_issue);
  warp->time = later(issued, warp->time + (is_long ? P.long_division : P.division));
}

static void step_global(Replay *replay, ClockTrace *trace, WarpTrace *warp, uint32_t number,
                        const ClockStep *step) {
  const ClockRun *runs = trace->runs + step->b;
  Sm *sm = sm_of(replay, trace, number);
  const RowCount rows = chip_count(runs, step->a);
  const bool write = step->detail != ACCESS_READ;
  const double sent = take_resource(&sm->threads_pipe, warp->time,
                                    write ? P.store_sector * rows.sectors : rows.lines);
  const double ready = chip_rows(replay->chip, warp->time, trace->sm[number / trace->warps_per_cta],
                                 runs, step->a, write);
  if (write) { /* the warp goes on as soon as there is a slot for its next store */
    sm->stores[sm->store_count++ % MOST_STORES] = later(sent, ready);
    if (sm->store_count >= sm->store_slots)
      warp->time = later(warp->time, sm->stores[(sm->store_count - sm->store_slots) % MOST_STORES]);
    warp->stores_done = later(warp->stores_done, later(sent, ready));
    return;
  }
  warp->loads_under_way++;
  const double came = take_resource(&sm->port, warp->time, rows.sectors * 32 / P.copy_rate);
  warp->loads_ready = later(warp->loads_ready, later(sent, later(ready, came)) + P.l2_load_latency);
}

static void step_shared(Replay *replay, ClockTrace *trace, WarpTrace *warp, uint32_t number,
                        const ClockStep *step) {
  Sm *sm = sm_of(replay, trace, number);
  const double end = take_resource(&sm->shared_pipe, warp->time, step->a * P.shared_pass);
  if (step->detail != ACCESS_WRITE)
    warp->loads_ready = later(warp->loads_ready, end + P.shared_latency);
  else
    warp->time = later(warp->time, end - P.shared_latency);
}

static void step_wgmma(Replay *replay, ClockTrace *trace, WarpTrace *warp, uint32_t number,
                       const ClockStep *step) {
  Sm *sm = sm_of(replay, trace, number);
  const double clocks = (double)(step->b >> 32) / (P.wgmma_rate / CHIP_PARTITIONS);
  const double end = take_resource(&sm->tensor[partition_of(trace, number)], warp->time, clocks);
  replay->chip->use.tensor_busy += clocks;
  if (step->kind == STEP_MMA) {
    warp->time = end;
    return;
  }
  trace->wgmma_ends[(uint32_t)step->b] = end;
  come_to_meeting(replay, trace, step->a, end, false);
}

/* The lanes of one instruction arrive one after the other, and fence once. */
static void step_arrive(Replay *replay, ClockTrace *trace, WarpTrace *warp, const ClockStep *step) {
  const double remote = P.remote_arrive_latency - P.mbarrier_latency;
  const ClockStep *before = warp->next ? step - 1 : NULL;
  const bool same = before && !step->work && before->kind == STEP_ARRIVE;
  if (step->detail == ARRIVE_SCOPED && !same)
    warp->time += P.scoped_arrive_latency - P.remote_arrive_latency;
  come_to_meeting(replay, trace, step->a, warp->time + (step->detail == ARRIVE_HERE ? 0 : remote),
                  false);
}

/* False: it must wait. */
static bool step_wait(ClockTrace *trace, WarpTrace *warp, uint32_t number, const ClockStep *step) {
  Meeting *meeting = &trace->meetings[step->a];
  if (meeting->missing) {
    warp->next_waiting = meeting->first_waiting;
    meeting->first_waiting = number + 1;
    return false;
  }
  const double end = end_of_wait(step, meeting);
  if (end > warp->time) {
    const WaitCause cause =
        step->b == AT_MBARRIER && meeting->by_copy ? WAIT_COPIES : (WaitCause)step->detail;
    warp->waited[cause] += end - warp->time;
    warp->time = end;
  } else if (step->b == AT_MBARRIER) {
    warp->time += P.mbarrier_ready;
  }
  return true;
}

/* The warp's accesses before this step must have brought their values. */
static bool needs_loads(const Replay *replay, const WarpTrace *warp, const ClockStep *step) {
  const uint32_t most = replay->launch->traits->loads_at_once;
  switch ((StepKind)step->kind) {
    case STEP_GLOBAL:
      if (step->detail == ACCESS_READ) return most > 0 && warp->loads_under_way >= most;
      return step->detail == ACCESS_ATOMIC;
    case STEP_SHARED:
      return step->detail == ACCESS_ATOMIC;
    case STEP_WORK:
      return step->detail == WORK_NEEDS_LOADS;
    case STEP_WAIT:
    case STEP_DIVISION:
      return false;
    default:
      return true;
  }
}

static void do_work(Replay *replay, ClockTrace *trace, WarpTrace *warp, uint32_t number,
                    const ClockStep *step) {
  if (step->work) {
    Sm *sm = sm_of(replay, trace, number);
    const double issued = take_resource(&sm->issue[partition_of(trace, number)], warp->time,
                                        step->work * P.sass_per_ptx * P.issue_slot);
    warp->time = later(issued, warp->time + step->work * instruction_clocks());
  }
  if (!needs_loads(replay, warp, step)) return;
  warp->loads_under_way = 0;
  if (warp->loads_ready <= warp->time) return;
  warp->waited[WAIT_LOADS] += warp->loads_ready - warp->time;
  warp->time = warp->loads_ready;
}

/* One step; false: the warp waits. */
static bool take_step(Replay *replay, ClockTrace *trace, uint32_t number) {
  WarpTrace *warp = &trace->warp[number];
  const ClockStep *step = &warp->steps[warp->next];
  switch ((StepKind)step->kind) {
    case STEP_DIVISION:
      step_division(replay, trace, warp, number, step);
      break;
    case STEP_SHARED:
      step_shared(replay, trace, warp, number, step);
      break;
    case STEP_GLOBAL:
      step_global(replay, trace, warp, number, step);
      break;
    case STEP_COPY:
      issue_copy(replay, trace, warp, step->a);
      break;
    case STEP_INIT:
      warp->time += P.mbarrier_init + (step->a ? P.init_fence : 0);
      break;
    case STEP_ARRIVE:
      step_arrive(replay, trace, warp, step);
      break;
    case STEP_WAIT:
      if (!step_wait(trace, warp, number, step)) return false;
      break;
    case STEP_WGMMA:
    case STEP_MMA:
      step_wgmma(replay, trace, warp, number, step);
      break;
    case STEP_WORK:
    case STEP_EXIT:
      break;
  }
  if (trace->kept) warp->ends[warp->next] = warp->time;
  warp->next++;
  return true;
}

/* What comes earlier goes first, so that resources are taken in the order of time. */
static bool is_behind_others(Replay *replay, ClockTrace *trace, uint32_t number) {
  const double time = trace->warp[number].time;
  if (!replay->count || time <= replay->heap[0].time) return false;
  push_event(replay, time, EVENT_WARP, trace, number);
  return true;
}

/* The warp goes on: the instructions before its next step first, then the step itself, at its time. */
static void run_warp(Replay *replay, ClockTrace *trace, uint32_t number) {
  WarpTrace *warp = &trace->warp[number];
  while (warp->next < warp->count) {
    if (!warp->worked) {
      do_work(replay, trace, warp, number, &warp->steps[warp->next]);
      warp->worked = true;
      if (is_behind_others(replay, trace, number)) return;
    }
    if (!take_step(replay, trace, number)) return;
    warp->worked = false;
    if (is_behind_others(replay, trace, number)) return;
  }
  if (warp->stores_done > warp->time) { /* its SM has no place for another block before */
    warp->waited[WAIT_DRAIN] += warp->stores_done - warp->time;
    warp->time = warp->stores_done;
    push_event(replay, warp->time, EVENT_WARP, trace, number);
    return;
  }
  end_warp(replay, trace, number);
}

static void replay_events(Replay *replay) {
  while (replay->count) {
    const Event event = pop_event(replay);
    HOLDS(event.time >= replay->now);
    replay->now = event.time;
    switch ((EventKind)event.kind) {
      case EVENT_WARP:
        run_warp(replay, event.trace, event.number);
        break;
      case EVENT_COPY_STARTS:
        copy_starts(replay, event.trace, event.number);
        break;
      case EVENT_COPY_LANDS:
        copy_lands(replay, event.trace, event.number);
        break;
    }
  }
}

/* ---- A launch ---- */
static void prepare_trace(ClockTrace *trace) {
  for (uint32_t i = 0; trace->kept && i < trace->warps; i++) {
    WarpTrace *warp = &trace->warp[i];
    warp->ends = new_zeros(warp->count ? warp->count : 1, sizeof *warp->ends);
  }
}

static uint32_t most_ctas_of(const Launch *launch) {
  const FunctionTraits *traits = launch->traits;
  const uint32_t most =
      chip_resident_ctas(launch->block.x * launch->block.y * launch->block.z, traits->registers,
                         traits->static_shared_bytes + launch->dynamic_shared_bytes);
  return most ? most : 1;
}

void clock_replay(const Launch *launch, const char *kernel, ClockTrace **traces, uint32_t count) {
  Replay replay = {.chip = chip_begin(),
                   .launch = launch,
                   .traces = traces,
                   .trace_count = count,
                   .most_ctas = most_ctas_of(launch)};
  for (uint32_t i = 0; i < count; i++) prepare_trace(traces[i]);
  start_clusters(&replay, 0);
  replay_events(&replay);
  free(replay.heap);
  LaunchTime time = {.clocks = replay.end, .failed = launch->error != 0, .use = replay.chip->use};
  /* At its power limit the chip slows down, the more the tensor cores and L2 have to do. */
  const double busy =
      replay.end > 0 ? time.use.tensor_busy / (replay.end * CHIP_MULTIPROCESSORS * CHIP_PARTITIONS)
                     : 0;
  const double l2_rate = replay.end > 0 ? time.use.l2_read_bytes / replay.end : 0;
  double megahertz = P.clock_top - P.clock_tensor * busy - P.clock_l2 * l2_rate;
  if (megahertz > P.clock_light) megahertz = P.clock_light;
  time.microseconds = replay.end / megahertz + P.launch_gap;
  clock_add_launch(kernel, &time);
}

double clock_of_moment(const ClockTrace *trace, uint32_t number, ClockMoment moment) {
  const WarpTrace *warp = &trace->warp[number];
  const double last = moment.step && warp->ends ? warp->ends[moment.step - 1] : 0;
  return last + moment.work * instruction_clocks();
}
