/* flow_barrier.c: the named barriers of a block (bar, barrier) and the barrier of a cluster.
 *
 * Threads are counted, not warps: since Volta a barrier waits for every thread that has not exited.
 * A barrier with a thread count takes whole warps: lanes that do not exist or have exited count as
 * arrived when the other lanes of their warp arrive. */
#include <string.h>

#include "base/events.h"
#include "base/fault.h"
#include "base/holds.h"
#include "base/settings.h"
#include "flow/flow.h"
#include "ptx/form.h"
#include "state/cluster.h"
#include "state/notes.h"

enum { ARRIVE, SYNC, REDUCE_POPC, REDUCE_AND, REDUCE_OR };

typedef struct {
  const Operand *result, *barrier, *threads, *predicate;
  uint8_t kind;
  bool aligned;  /* for all threads of a warp together */
  bool constant; /* the operands, as nearly always: then these are their values */
  uint32_t number, expected;
} BarrierForm;

static uint32_t count_lanes(LaneMask mask) { return (uint32_t)__builtin_popcount(mask); }

static bool complete_if_full(Cta *cta, uint32_t number) {
  struct CtaBarriers *barriers = cta->barriers;
  NamedBarrier *barrier = &barriers->barriers[number];
  bool full = barrier->expected ? barrier->arrived >= barrier->expected
                                : barrier->live_arrived >= barriers->live_threads;
  if (!full || barrier->arrived == 0) return false;
  HOLDS(barriers->busy >> number & 1 && barrier->live_arrived <= barrier->arrived);
  bool of_all = barrier->expected == 0;
  barrier->generation++;
  barrier->result_count = barrier->count_of_true;
  barrier->result_contributed = barrier->contributed;
  barrier->expected = barrier->arrived = barrier->live_arrived = 0;
  barrier->count_of_true = barrier->contributed = 0;
  memset(barrier->warp_arrived, 0, sizeof barrier->warp_arrived);
  barriers->busy &= ~(1u << number);
  cluster_changed(cta->cluster);
  note(NOTE_ACQUIRE, cta->barriers, 0); /* threads that have exited */
  note(NOTE_COMPLETE, barrier, 0);
  emit_barrier_completed(cta, number, of_all);
  return true;
}

static void arrive_at_barrier(Warp *warp, uint32_t number, uint32_t expected, LaneMask mask) {
  struct CtaBarriers *barriers = warp->cta->barriers;
  NamedBarrier *barrier = &barriers->barriers[number];
  LaneMask *known = &barrier->warp_arrived[warp->index];
  LaneMask live = live_lanes(warp);
  barrier->live_arrived += count_lanes(mask);
  barrier->arrived += count_lanes(mask);
  bool first = *known == 0 || (*known & mask & live & -live);
  if (first) barrier->arrived += LANES - count_lanes(live);
  *known |= mask;
  note(NOTE_ARRIVE, barrier, 0);
  if (expected) barrier->expected = expected;
  barriers->busy |= 1u << number;
}

static void give_result(Warp *warp, const Instruction *in, LaneMask mask, uint32_t number) {
  const BarrierForm *form = in->decoded;
  const NamedBarrier *barrier = &warp->cta->barriers->barriers[number];
  if (form->kind == SYNC || form->result->kind == OPERAND_SINK) return;
  if (form->kind == REDUCE_POPC) {
    for (int lane = 0; lane < LANES; lane++)
      if (mask >> lane & 1) set_lane_value(warp, form->result, lane, barrier->result_count);
    return;
  }
  bool yes = form->kind == REDUCE_AND ? barrier->result_count == barrier->result_contributed
                                      : barrier->result_count > 0;
  LaneMask *predicate = &warp->predicates[form->result->slot];
  *predicate = yes ? *predicate | mask : *predicate & ~mask;
}

/* Lanes that name the same barrier and the same number of threads. */
static StepResult take_part_alike(Warp *warp, const Instruction *in, LaneMask mask) {
  const BarrierForm *form = in->decoded;
  Group *group = current_group(warp);
  Cta *cta = warp->cta;
  uint32_t number = form->number, expected = form->expected;
  if (!form->constant) {
    int first = first_lane(mask);
    number = (uint32_t)lane_value(warp, form->barrier, first);
    if (form->threads) expected = (uint32_t)lane_value(warp, form->threads, first);
  }
  if (number >= NAMED_BARRIERS)
    return fault(warp, in, mask, 715, RULE(BARRIER_NUMBER),
                 "barrier %u; there are barriers 0 to 15", number);
  NamedBarrier *barrier = &cta->barriers->barriers[number];
  const BarrierUse use = {.number = number, .mask = mask};
  if (group->arrived) {
    if (barrier->generation == group->generation) return STEP_BLOCKED;
    group->arrived = false;
  } else {
    if (form->threads && (expected == 0 || expected % LANES))
      return fault(warp, in, mask, 715, RULE(BARRIER_THREADS),
                   "barrier %u with %u threads: must be a multiple of 32 above 0", number,
                   expected);
    if (form->threads && barrier->expected && barrier->expected != expected && settings()->checks)
      finding(warp, in, mask, RULE(BARRIER_COUNTS_DIFFER),
              "takes part in barrier %u with %u threads; others have come to the same round of it "
              "with %u.\n"
              "Let every bar.sync and bar.arrive of one round name the same number of threads: "
              "those that wait and those that only arrive together.",
              number, expected, barrier->expected);
    emit_barrier_arrival(warp, in, &use);
    if (form->predicate) {
      LaneMask yes = form->predicate->kind == OPERAND_PREDICATE
                         ? warp->predicates[form->predicate->slot]
                         : (form->predicate->constant_value ? ~0u : 0u);
      if (form->predicate->negated) yes = ~yes;
      barrier->count_of_true += count_lanes(yes & mask);
      barrier->contributed += count_lanes(mask);
    }
    group->generation = barrier->generation;
    arrive_at_barrier(warp, number, expected, mask);
    const uint32_t arrived = barrier->live_arrived;
    bool full = complete_if_full(cta, number);
    emit_barrier_arrived(warp, in, &use, arrived, full);
    if (form->kind == ARRIVE) return STEP_NEXT;
    if (!full) {
      group->arrived = true;
      return STEP_BLOCKED;
    }
  }
  note(NOTE_PASS, barrier, 0);
  emit_barrier_passed(warp, &use);
  give_result(warp, in, mask, number);
  return STEP_NEXT;
}

const NamedBarrier *barrier_awaited(const Warp *warp, const Group *group, const Instruction *in) {
  if (group->state != GROUP_BLOCKED || !(in->traits & CTA_BARRIER) || !group->arrived) return NULL;
  const BarrierForm *form = in->decoded;
  const int lane = first_lane(group->mask);
  return &warp->cta->barriers
              ->barriers[form->constant ? form->number : lane_value(warp, form->barrier, lane)];
}

/* On a GPU, too, threads of an .aligned barrier wait for the rest of their warp before they arrive. */
static bool comes_together(Warp *warp, const Instruction *in, LaneMask mask) {
  const BarrierForm *form = in->decoded;
  if (!form->aligned || current_group(warp)->arrived) return true;
  if (!whole_warp_is_here(warp, in, mask)) return false;
  if (mask != warp->lanes) aligned_check(warp, in, mask);
  return true;
}

static StepResult take_part(Warp *warp, const Instruction *in, LaneMask mask) {
  return comes_together(warp, in, mask) ? take_part_alike(warp, in, mask) : STEP_BLOCKED;
}

static LaneMask lanes_that_agree(const Warp *warp, const Operand *operand, LaneMask mask) {
  if (!operand || operand->constant) return mask;
  uint32_t first = (uint32_t)lane_value(warp, operand, first_lane(mask));
  LaneMask same = 0;
  FOR_LANES(lane, mask)
    if ((uint32_t)lane_value(warp, operand, lane) == first) same |= 1u << lane;
  return same;
}

/* Lanes may give different numbers of threads: those that agree form a group. */
static StepResult run_named_barrier(Warp *warp, const Instruction *in, LaneMask mask) {
  const BarrierForm *form = in->decoded;
  if (!comes_together(warp, in, mask)) return STEP_BLOCKED;
  LaneMask others = mask & ~lanes_that_agree(warp, form->barrier, mask);
  if (others)
    return fault(warp, in, others, 715, RULE(BARRIER_NUMBER),
                 "lanes of one warp name different barriers in one instruction: thread %u barrier "
                 "%u, thread %u barrier %u. Branch on the number, and name it in each branch",
                 thread_of(warp, first_lane(mask)),
                 (uint32_t)lane_value(warp, form->barrier, first_lane(mask)),
                 thread_of(warp, first_lane(others)),
                 (uint32_t)lane_value(warp, form->barrier, first_lane(others)));
  LaneMask same = lanes_that_agree(warp, form->threads, mask);
  if (same == mask) return take_part_alike(warp, in, mask);
  uint32_t place = (uint32_t)(in - current_group(warp)->function->code);
  Group *rest = split_group(warp->flow, current_group(warp)->mask & ~same);
  rest->place = place;
  rest->state = GROUP_READY;
  rest->met = true;
  StepResult result = take_part_alike(warp, in, same);
  if (result == STEP_FAULT) return result;
  Group *group = current_group(warp);
  group->place = result == STEP_NEXT ? place + 1 : place;
  group->state = result == STEP_NEXT ? GROUP_READY : GROUP_BLOCKED;
  group->seen = warp->cta->cluster->changes;
  return STEP_JUMPED;
}

static bool is_number(const Operand *operand) { return operand->kind == OPERAND_REGISTER; }

/* If the barrier and the number of threads are constants, they are read only once. False: ptxas
 * refuses such a constant. */
static bool read_constants(BarrierForm *form) {
  if (form->barrier->constant && form->barrier->constant_value >= 16) return false;
  if (form->threads && form->threads->constant && form->threads->constant_value % LANES != 0)
    return false;
  form->constant = form->barrier->constant && (!form->threads || form->threads->constant);
  if (!form->constant) return true;
  form->number = (uint32_t)form->barrier->constant_value;
  if (form->threads) form->expected = (uint32_t)form->threads->constant_value;
  return true;
}

/* "d, a[, threads], p" */
static bool take_reduction(BarrierForm *form, const Operand *operand, uint32_t count, bool popc) {
  if (count != 3 && count != 4) return false;
  for (uint32_t i = 1; i + 1 < count; i++)
    if (!is_number(&operand[i])) return false;
  form->result = &operand[0];
  form->barrier = &operand[1];
  form->threads = count == 4 ? &operand[2] : NULL;
  form->predicate = &operand[count - 1];
  if (form->predicate->kind != OPERAND_PREDICATE && !form->predicate->constant) return false;
  return operand[0].kind == OPERAND_SINK ||
         (!operand[0].constant && operand[0].kind == (popc ? OPERAND_REGISTER : OPERAND_PREDICATE));
}

/* Barriers and counts of threads, and what .red.popc returns, are integers of 32 bits. */
static bool integers_in(Form *form, bool reduces) {
  const Instruction *out = form->out;
  if (reduces && out->operand[0].kind == OPERAND_REGISTER) form_destination(form, 0, TYPE_U32);
  return form_numbers(form, reduces, out->operand_count - 2 * reduces, TYPE_U32);
}

FORM_DECODER(decode_named_barrier, 1) {
  static const char *const kinds[] = {"sync", "arrive", "red", NULL};
  static const char *const operations[] = {"popc", "and", "or", NULL};
  BarrierForm *made = decoder_allocate(decoder, sizeof *made);
  made->aligned = strcmp(statement->modifiers[0], "bar") == 0; /* it always is */
  if (!made->aligned) made->aligned = form_take(&form, "aligned");
  form_take(&form, "cta");
  int kind = form_choose(&form, kinds);
  const bool arrives = kind == 1, reduces = kind == 2;
  const int operation = reduces ? form_choose(&form, operations) : 0;
  const bool popc = operation == 0;
  if (kind < 0 || operation < 0 || (reduces && !form_take(&form, popc ? "u32" : "pred")))
    return form_fail(&form,
                     "expected bar or barrier, .cta, .sync, .arrive or .red with an operation "
                     "and a type, .aligned");
  const Operand *operand = out->operand;
  uint32_t count = out->operand_count;
  bool fine;
  if (reduces) {
    fine = take_reduction(made, operand, count, popc);
    made->kind = (uint8_t)(REDUCE_POPC + operation);
  } else {
    fine = arrives ? count == 2 : count == 1 || count == 2;
    for (uint32_t i = 0; fine && i < count; i++) fine = is_number(&operand[i]);
    made->barrier = operand;
    made->threads = count == 2 ? &operand[1] : NULL;
    made->kind = arrives ? ARRIVE : SYNC;
  }
  if (!fine || !read_constants(made))
    return form_fail(&form,
                     "the operands do not fit: barriers are 0 to 15, and the number of threads "
                     "is a multiple of 32");
  out->decoded = made;
  return integers_in(&form, reduces) &&
         form_end(&form, made->constant ? take_part : run_named_barrier);
}

/* ---- barrier.cluster ---- */
typedef struct {
  bool relaxed, aligned;
} ClusterForm;

static bool cluster_complete_if_full(Cluster *cluster) {
  struct ClusterFlow *flow = cluster->flow;
  HOLDS(flow->barrier_arrived <= flow->live_threads); /* each thread arrives once a round */
  if (flow->barrier_arrived == 0 || flow->barrier_arrived < flow->live_threads) return false;
  flow->barrier_arrived = 0;
  flow->barrier_generation++;
  cluster_changed(cluster);
  note(NOTE_ACQUIRE, flow, 0); /* threads that have exited */
  note(NOTE_COMPLETE, &flow->barrier_generation, 0);
  return true;
}

/* Lanes of this warp that have arrived in the current round with the other kind of instruction. */
static LaneMask arrived_otherwise(const Warp *warp, LaneMask mask, bool relaxed) {
  const struct WarpFlow *flow = warp->flow;
  LaneMask others = flow->cluster_arrived & ~mask;
  others &= relaxed ? ~flow->cluster_relaxed : flow->cluster_relaxed;
  FOR_LANES(lane, others)
    if (flow->cluster_generation[lane] != warp->cta->cluster->flow->barrier_generation)
      others &= ~(1u << lane);
  return others;
}

/* Lanes that have arrived in this round. */
static LaneMask arrived_now(const struct WarpFlow *flow, LaneMask mask, uint32_t generation) {
  LaneMask now = 0;
  FOR_LANES(lane, mask & flow->cluster_arrived) {
    if (flow->cluster_generation[lane] == generation) now |= 1u << lane;
  }
  return now;
}

/* Whoever arrives again without a wait between waits here on an H200, until the round of the first
 * arrival is complete, and counts in the next one. */
static StepResult run_cluster_arrive(Warp *warp, const Instruction *in, LaneMask mask) {
  Cluster *cluster = warp->cta->cluster;
  struct WarpFlow *flow = warp->flow;
  const ClusterForm *form = in->decoded;
  if (arrived_now(flow, mask, cluster->flow->barrier_generation)) return STEP_BLOCKED;
  if (form->aligned && !whole_warp_is_here(warp, in, mask)) return STEP_BLOCKED;
  if (form->aligned && mask != warp->lanes) aligned_check(warp, in, mask);
  LaneMask again = mask & flow->cluster_arrived;
  if (again && settings()->checks)
    finding(warp, in, again, RULE(CLUSTER_BARRIER),
            "a second barrier.cluster.arrive without a barrier.cluster.wait since the first one. "
            "An H200 waits here for the first one's phase to complete, but this thread may not see "
            "what the others wrote before it.\nPut barrier.cluster.wait between the two.");
  bool relaxed = form->relaxed;
  LaneMask others = arrived_otherwise(warp, mask, relaxed);
  if (others)
    return fault(warp, in, mask, 702, RULE(CLUSTER_ARRIVE_SPLIT),
                 "lanes of this warp arrive here by barrier.cluster.arrive.%s, and thread %u has "
                 "arrived by .%s: each thread arrives once, and yet an H200 hangs here. Let all "
                 "lanes of a warp arrive by one instruction, after the branch",
                 relaxed ? "relaxed" : "release", thread_of(warp, first_lane(others)),
                 relaxed ? "release" : "relaxed");
  flow->cluster_relaxed = relaxed ? flow->cluster_relaxed | mask : flow->cluster_relaxed & ~mask;
  const uint32_t generation = cluster->flow->barrier_generation;
  const BarrierUse use = {BARRIER_OF_CLUSTER, mask, generation, relaxed};
  emit_barrier_arrival(warp, in, &use);
  flow->cluster_arrived |= mask;
  for (uint32_t lane = 0; lane < LANES; lane++)
    flow->cluster_generation[lane] = mask >> lane & 1 ? generation : flow->cluster_generation[lane];
  cluster->flow->barrier_arrived += count_lanes(mask);
  note(NOTE_ARRIVE, &cluster->flow->barrier_generation, 0);
  const uint32_t arrived = cluster->flow->barrier_arrived;
  const bool full = cluster_complete_if_full(cluster);
  emit_barrier_arrived(warp, in, &use, arrived, full);
  return STEP_NEXT;
}

static StepResult run_cluster_wait(Warp *warp, const Instruction *in, LaneMask mask) {
  Cluster *cluster = warp->cta->cluster;
  struct WarpFlow *flow = warp->flow;
  const ClusterForm *form = in->decoded;
  if (form->aligned && !whole_warp_is_here(warp, in, mask)) return STEP_BLOCKED;
  LaneMask early = mask & ~flow->cluster_arrived;
  /* lanes may have arrived in different rounds */
  LaneMask passing = mask & ~arrived_now(flow, mask, cluster->flow->barrier_generation);
  if (!passing) return STEP_BLOCKED;
  if (early && settings()->checks)
    finding(warp, in, early, RULE(CLUSTER_BARRIER),
            "barrier.cluster.wait without a barrier.cluster.arrive before it: it does not wait.\n"
            "Put barrier.cluster.arrive before it, in every thread of the cluster.");
  LaneMask arrived = passing & flow->cluster_arrived;
  flow->cluster_arrived &= ~passing;
  note(NOTE_PASS, &cluster->flow->barrier_generation, 0);
  emit_barrier_passed(
      warp, &(BarrierUse){.number = BARRIER_OF_CLUSTER,
                          .mask = arrived,
                          .round = arrived ? flow->cluster_generation[first_lane(arrived)] : 0});
  if (passing == mask) return STEP_NEXT;
  Group *group = current_group(warp);
  uint32_t place = (uint32_t)(in - group->function->code);
  Group *waiting = split_group(flow, mask & ~passing);
  waiting->place = place;
  waiting->state = GROUP_BLOCKED;
  waiting->seen = cluster->changes;
  current_group(warp)->place = place + 1;
  return STEP_JUMPED;
}

FORM_DECODER(decode_cluster_barrier, 2) {
  ClusterForm *made = decoder_allocate(decoder, sizeof *made);
  bool arrives = form_take(&form, "arrive");
  if (!arrives && !form_take(&form, "wait"))
    return form_fail(&form,
                     "barrier.cluster is .arrive, .release or .relaxed, or .wait, .acquire; "
                     ".aligned");
  made->aligned = form_take(&form, "aligned");
  made->relaxed = arrives && form_take(&form, "relaxed");
  if (!made->relaxed) form_take(&form, arrives ? "release" : "acquire");
  out->decoded = made;
  return form_operands(&form, 0, 0) &&
         form_end(&form, arrives ? run_cluster_arrive : run_cluster_wait);
}

bool barrier_waits_for_warp(const Group *group, const Instruction *in) {
  if (in->execute == take_part || in->execute == run_named_barrier)
    return ((const BarrierForm *)in->decoded)->aligned && !group->arrived;
  if (in->execute == run_cluster_arrive || in->execute == run_cluster_wait)
    return ((const ClusterForm *)in->decoded)->aligned;
  return false;
}

/* ---- Exits ---- */
void barriers_thread_exit(Warp *warp, LaneMask exiting) {
  Cta *cta = warp->cta;
  Cluster *cluster = cta->cluster;
  struct ClusterFlow *flow = cluster->flow;
  note(NOTE_RELEASE, cta->barriers, 0);
  note(NOTE_RELEASE, flow, 0);
  HOLDS(cta->barriers->live_threads >= count_lanes(exiting) &&
        flow->live_threads >= cta->barriers->live_threads);
  cta->barriers->live_threads -= count_lanes(exiting);
  flow->live_threads -= count_lanes(exiting);
  FOR_LANES(lane, exiting & warp->flow->cluster_arrived)
    if (warp->flow->cluster_generation[lane] == flow->barrier_generation) {
      HOLDS(flow->barrier_arrived > 0);
      flow->barrier_arrived--;
    }
  warp->flow->cluster_arrived &= ~exiting;
  for (uint32_t busy = cta->barriers->busy; busy; busy &= busy - 1) {
    NamedBarrier *barrier = &cta->barriers->barriers[__builtin_ctz(busy)];
    LaneMask known = barrier->warp_arrived[warp->index];
    if (known)
      barrier->arrived += count_lanes(exiting & ~known); /* their warp has arrived without them */
    complete_if_full(cta, (uint32_t)__builtin_ctz(busy));
  }
  cluster_complete_if_full(cluster);
}
