/* record_warp.c: the events of warps: steps, waits, fences, groups, barriers, accesses to memory. */
#include "base/banks.h"
#include "record/record_line.h"

/* Lanes that waited and are now at another instruction have continued. */
static void end_waits(Warp *warp, WarpRecord *record, const Instruction *in, LaneMask mask) {
  LaneMask over = record->waiting & mask;
  while (over) {
    const Instruction *place = record->waits_at[first_lane(over)];
    LaneMask together = 0;
    FOR_LANES(lane, over)
      if (record->waits_at[lane] == place) together |= 1u << lane;
    over &= ~together;
    if (place == in) continue; /* tries again */
    record->waiting &= ~together;
    warp_event("woke", warp, place, together);
  }
}

static bool same_line(const Instruction *a, const Instruction *b) {
  return a->source.line && a->source.line == b->source.line &&
         a->source.inner_line == b->source.inner_line && a->source.file == b->source.file &&
         a->source.inner_file == b->source.inner_file;
}

static void count_instruction(Counters *counters, WarpRecord *record, const Instruction *in,
                              LaneMask mask) {
  counters->instructions[in->kind] += (uint64_t)__builtin_popcount(mask);
  for (int lane = 0; lane < LANES; lane++) record->instructions[lane] += mask >> lane & 1u;
}

static void time_instruction(ClockTrace *clock, const Warp *warp, const Instruction *in) {
  clock_instruction(clock, clock_warp(warp), in->leader);
  /* A compiler turns a division by a constant into a multiplication. */
  if (in->traits & DIVIDES && !in->mixes_bits && !in->operand[2].constant)
    clock_division(clock, clock_warp(warp), in->operand[0].bytes);
}

void record_step(Warp *warp, const Instruction *in, LaneMask mask) {
  Recorder *recorder = warp->cta->cluster->recorder;
  WarpRecord *record = warp_record(warp);
  if (recorder->counters) count_instruction(recorder->counters, record, in, mask);
  if (recorder->clock) time_instruction(recorder->clock, warp, in);
  if (!recorder->writes_events) return;
  record_settle(warp->cta->cluster);
  recorder->time++;
  record->on_mbarrier = false;
  if (record->waiting & mask) end_waits(warp, record, in, mask);
  const Instruction *last = record->last;
  bool same = last && last < in && same_line(last, in) && record->last_mask == mask;
  bool tries_again = (record->waiting & mask) != 0;
  record->last = in;
  record->last_mask = mask;
  if (!same && !tries_again) warp_event("step", warp, in, mask);
}

void record_blocked_on_mbarrier(Warp *warp, uint32_t address, uint32_t parity) {
  WarpRecord *record = warp_record(warp);
  record->on_mbarrier = true;
  record->address = address;
  record->parity = parity;
}

void record_blocked(Warp *warp, const Instruction *in, LaneMask mask) {
  WarpRecord *record = warp_record(warp);
  LaneMask fresh = mask & ~record->waiting;
  Counters *counters = warp->cta->cluster->recorder->counters;
  if (counters) { /* nothing was done, so it is counted later */
    counters->instructions[in->kind] -= (uint64_t)__builtin_popcount(mask);
    for (int lane = 0; lane < LANES; lane++) record->instructions[lane] -= mask >> lane & 1u;
  }
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_not_done(clock, clock_warp(warp));
  if (!fresh || !warp->cta->cluster->recorder->writes_events) return;
  Recorder *recorder = begin_warp_event("wait", warp, in, fresh);
  record->waiting |= fresh;
  FOR_LANES(lane, fresh) record->waits_at[lane] = in;
  if (!recorder) return;
  text_add(&recorder->text, ",[");
  if (record->on_mbarrier) {
    text_add(&recorder->text, "\"mbarrier\"");
    add_number(recorder, record->address);
    add_number(recorder, record->parity);
  }
  text_add(&recorder->text, "]");
  end_event(recorder);
}

void record_exit(Warp *warp, const Instruction *in, const Instruction *from, LaneMask mask) {
  (void)from;
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_exit(clock, clock_warp(warp));
  warp_event("exit", warp, in, mask);
}

void record_fence(Warp *warp, const Instruction *in, LaneMask mask, Fence fence) {
  (void)fence;
  warp_event("fence", warp, in, mask);
}

static const char *const group_kinds[] = {"bulk", "cp.async", "wgmma"};

void record_commit(Warp *warp, const Instruction *in, LaneMask mask, GroupKind kind) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_commit(clock, clock_warp(warp), (ClockGroup)kind);
  Recorder *recorder = begin_warp_event("commit", warp, in, mask);
  if (!recorder) return;
  add_string(recorder, group_kinds[kind]);
  end_event(recorder);
}

void record_awaited(Warp *warp, const Instruction *in, LaneMask mask, const GroupWait *wait) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock)
    clock_awaited(clock, clock_warp(warp), (ClockGroup)wait->kind, wait->pending, wait->reads_only);
  Recorder *recorder = begin_warp_event("awaited", warp, in, mask);
  if (!recorder) return;
  add_string(recorder, group_kinds[wait->kind]);
  add_number(recorder, wait->pending);
  add_number(recorder, wait->reads_only);
  end_event(recorder);
}

void record_barrier_arrived(Warp *warp, const Instruction *in, const BarrierUse *use,
                            uint32_t arrived, bool complete) {
  const bool of_cluster = use->number == BARRIER_OF_CLUSTER;
  Counters *counters = warp->cta->cluster->recorder->counters;
  if (counters) ++*(of_cluster ? &counters->cluster_arrivals : &counters->barrier_arrivals);
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_barrier_arrived(clock, clock_warp(warp), use->number, complete);
  Recorder *recorder =
      begin_warp_event(of_cluster ? "cluster_barrier" : "bar", warp, in, use->mask);
  if (!recorder) return;
  if (!of_cluster) {
    add_number(recorder, warp->cta->rank);
    add_number(recorder, use->number);
  }
  add_number(recorder, arrived);
  add_number(recorder, complete);
  end_event(recorder);
}

void record_observed(Warp *warp, const Instruction *in, LaneMask mask, uint32_t address,
                     uint32_t phase, bool acquires) {
  (void)acquires;
  Recorder *recorder = begin_warp_event("observed", warp, in, mask);
  if (!recorder) return;
  add_number(recorder, address);
  add_number(recorder, (int32_t)phase);
  end_event(recorder);
}

void record_mbarrier_passed(Warp *warp, uint32_t address) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_mbarrier_passed(clock, clock_warp(warp), address);
}

void record_barrier_passed(Warp *warp, const BarrierUse *use) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_barrier_passed(clock, clock_warp(warp), use->number);
}

/* Addresses of the lanes as runs [address, stride, count]. */
static void add_runs(Recorder *recorder, LaneMask mask, const uint32_t *addresses) {
  text_add(&recorder->text, ",[");
  for (LaneMask left = mask; left;) {
    uint32_t first = addresses[first_lane(left)];
    left &= left - 1;
    int64_t stride = 0, count = 1;
    for (; left; left &= left - 1, count++) {
      int64_t step = (int64_t)addresses[first_lane(left)] - first - stride * (count - 1);
      if (count == 1) stride = step;
      if (step != stride) break;
    }
    text_add(&recorder->text, "[");
    text_number(&recorder->text, first);
    add_number(recorder, stride);
    add_number(recorder, count);
    text_add(&recorder->text, left ? "]," : "]");
  }
  text_add(&recorder->text, "]");
}

/* Accesses to the shared memory of other blocks of the cluster are counted apart. */
static void count_shared(Counters *counters, const Warp *warp, LaneMask mask,
                         const uint32_t *addresses, uint32_t bytes, Access access) {
  LaneMask own = 0;
  FOR_LANES(lane, mask)
    if (SHARED_RANK(addresses[lane]) == warp->cta->rank) own |= 1u << lane;
  const LaneMask other = mask & ~own;
  if (own) count_access(&counters->shared[access], own, bytes, bank_passes(own, addresses, bytes));
  if (other)
    count_access(&counters->dsmem[access], other, bytes, bank_passes(other, addresses, bytes));
}

void record_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                   uint32_t bytes, Access access) {
  static const char *const names[] = {
      [ACCESS_READ] = "read", [ACCESS_WRITE] = "write", [ACCESS_ATOMIC] = "atomic"};
  const uint32_t passes = bank_passes(mask, addresses, bytes);
  Recorder *recorder = warp->cta->cluster->recorder;
  if (recorder->counters) count_shared(recorder->counters, warp, mask, addresses, bytes, access);
  if (recorder->clock) clock_shared(recorder->clock, clock_warp(warp), passes, access);
  if (!recorder->writes_events) return;
  recorder = begin_warp_event("shared", warp, in, mask);
  if (recorder) {
    add_string(recorder, names[access]);
    add_number(recorder, bytes);
    add_number(recorder, passes);
    add_runs(recorder, mask, addresses);
    end_event(recorder);
  }
  if (access == ACCESS_READ) return;
  recorder = warp->cta->cluster->recorder;
  recorder->writer = warp;
  FOR_LANES(lane, mask) piece_append(&recorder->unsettled, (SharedPiece){addresses[lane], bytes});
}

void record_global(Warp *warp, LaneMask mask, const uint64_t *addresses, uint32_t bytes,
                   Access access) {
  Counters *counters = warp->cta->cluster->recorder->counters;
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_global(clock, clock_warp(warp), mask, addresses, bytes, access);
  if (!counters) return;
  count_access(&counters->global[access], mask, bytes, count_sectors(mask, addresses, bytes));
}
