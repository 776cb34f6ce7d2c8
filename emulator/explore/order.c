/* order.c: runs one order of a launch's steps (explore.h).
 *
 * It follows the tree or a schedule as far as that goes. After that a process continues until it
 * must wait, the next is the first that can, and copies land last. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/settings.h"
#include "explore/explore.h"

enum {
  MOST_QUIET_INSTRUCTIONS = 1 << 26, /* of one warp without a visible one */
  SAME_STALLS = 40,                  /* rounds in which nothing happened but waits that gave up */
  MOST_STALLS = 20000,
  NO_PROCESS = UINT32_MAX
};

typedef enum { STEP_MADE, STEP_WAITS, STEP_FAILED } StepEnd;

/* ---- Which instructions are visible to others? ---- */
static bool is_visible(const Function *function, uint32_t place) {
  const Instruction *in = &function->code[place];
  const Draft *draft = &function->drafts[place];
  if (draft->inserted || (in->traits & HINTS)) return false;
  if (in->traits &
      (CTA_BARRIER | CLUSTER_BARRIER | MBARRIER | COPY_ENGINE | TENSOR_MAP | SEEN_BY_OTHERS))
    return true;
  if (in->traits & CALLS)
    return draft->call && draft->call->callee && !draft->call->callee->defined &&
           strcmp(draft->call->callee->name, "vprintf") != 0;
  if (in->traits & RETURNS) return function->entry;
  return in->has_address && !in->own_memory;
}

/* The device's heap is one place, whatever part of it is used. */
static void note_call(const Instruction *in) {
  static const char heap;
  if (in->traits & CALLS) note(NOTE_WRITE, &heap, 1);
}

static bool guard_passes(const Warp *warp, const Group *group, const Instruction *in) {
  if (in->guard < 0) return true;
  const LaneMask guard = warp->predicates[in->guard];
  return (group->mask & (in->guard_negated ? ~guard : guard)) != 0;
}

/* Can the group go on without a visible step? */
static bool goes_on(const Warp *warp, uint32_t index) {
  const Group *group = &warp->flow->groups[index];
  const Instruction *in = &group->function->code[group->place];
  if (group->state == GROUP_BLOCKED && group->seen == warp->cta->cluster->changes) return false;
  return !guard_passes(warp, group, in) || !is_visible(group->function, group->place);
}

/* ---- Steps ---- */
static Process *process_of_group(Order *order, Context *context, Warp *warp, uint32_t index) {
  const uint32_t lane = (uint32_t)first_lane(warp->flow->groups[index].mask);
  return process_named(order, name_of_lanes(context, warp, lane));
}

/* Groups that stand at the same visible instruction continue together. */
static void merge_standing(Warp *warp) {
  LaneMask active;
  for (uint32_t i = 0; i < warp->flow->count; i++) {
    const uint32_t before = warp->flow->count;
    if (before > 1) warp_next_instruction(warp, i, &active);
    if (warp->flow->count != before) i = UINT32_MAX; /* from the start */
  }
}

/* Everything up to the next visible instructions. false: a fault, or it never ends. */
static bool run_quietly(Order *order, Context *context, Warp *warp) {
  LaneMask active;
  for (uint32_t i = 0; i < MOST_QUIET_INSTRUCTIONS; i++) {
    const int picked = warp_pick_group(warp, goes_on);
    if (picked < 0) {
      merge_standing(warp);
      return true;
    }
    const Instruction *in = warp_next_instruction(warp, (uint32_t)picked, &active);
    Process *process = process_of_group(order, context, warp, warp->flow->current);
    if (process) poll_instruction(process, in, active);
    if (warp_one_instruction(warp) == STEP_FAULT || order->launch->error) return false;
  }
  Group *group = current_group(warp);
  fault(warp, &group->function->code[group->place], group->mask, 702, RULE(HANG),
        "the warp has run %d instructions without touching memory or a barrier: it never ends",
        MOST_QUIET_INSTRUCTIONS);
  return false;
}

static void end_warp(Context *context, Warp *warp) {
  context->flow.running_warps--;
  if (--warp->cta->running_warps == 0) emit_block_exited(warp->cta);
}

/* The clock advances more each time that a wait gives up. */
static uint64_t hurry_of(const Order *order) {
  uint64_t hurry = FIRST_HURRY;
  for (uint32_t i = 0; i < order->expirations && hurry < LAST_HURRY; i++) hurry *= 2;
  return hurry;
}

static StepEnd step_of_lanes(Order *order, uint32_t number, bool expired, const Instruction **in) {
  Process *process = &order->processes[number];
  Context *context = process->context;
  Warp *warp = process->warp;
  Cluster *cluster = &context->cluster;
  const int index = number_of_group(warp, process->lane);
  if (index < 0) return STEP_WAITS;
  LaneMask active;
  *in = warp_next_instruction(warp, (uint32_t)index, &active);
  Group *group = current_group(warp);
  if (!is_visible(group->function, group->place) || !active) { /* it waits for other lanes */
    process->blocked = true;
    process->seen_changes = cluster->changes;
    return STEP_WAITS;
  }
  poll_before_step(process, *in, order->depth);
  poll_instruction(process, *in, active);
  cluster->waits_expire = expired;
  if (expired) context->flow.extra_time += hurry_of(order);
  note_call(*in);
  StepResult result = warp_one_instruction(warp);
  cluster->waits_expire = false;
  if (result == STEP_FAULT || order->launch->error) return STEP_FAILED;
  if (result == STEP_BLOCKED) {
    process->blocked = true;
    process->seen_changes = cluster->changes;
    context->flow.steps--; /* as if it had not been tried */
    if (expired) context->flow.extra_time -= hurry_of(order);
  } else if (expired) {
    order->expirations++;
  }
  if (!run_quietly(order, context, warp)) return STEP_FAILED;
  if (warp->flow->count == 0) end_warp(context, warp);
  return result == STEP_BLOCKED && notes.count == 0 ? STEP_WAITS : STEP_MADE;
}

static StepEnd step_of_copy(Order *order, uint32_t number, const Instruction **in) {
  Process *process = &order->processes[number];
  AsyncOperation *operation = process->operation;
  *in = operation->in;
  const bool reads = operation->read_source && !operation->source_read;
  async_land(operation);
  if (order->launch->error) return STEP_FAILED;
  if (!reads) process->gone = true;
  return STEP_MADE;
}

/* Something has been written that a process waits for in a loop. */
static void wake_pollers(Order *order, uint32_t number) {
  for (uint32_t i = 0; i < order->count; i++) {
    Process *process = &order->processes[i];
    if (!process->polls || process->gone || i == number) continue;
    if (!poll_sees(process, notes.items, notes.count)) continue;
    process->polls = false;
    process->woken_by = order->depth + 1;
  }
}

/* Were these steps made by the process alone, in place of another that has been tried there? */
static bool is_idle_alternative(const Order *order, uint32_t first, ProcessName name) {
  const Tree *tree = order->tree;
  bool others = false;
  for (uint32_t i = tree->nodes[first].alternatives; i; i = tree->alternatives[i].next)
    others |= tree->alternatives[i].state == ALTERNATIVE_DONE;
  for (uint32_t i = first; i < order->depth; i++) others &= tree->nodes[i].chosen == name;
  return others;
}

/* Has the process come back to where it was? True: the order is redundant, because the round has
 * changed nothing and other choices have been explored where it began. */
static bool look_at_polls(Order *order, uint32_t number) {
  Process *process = &order->processes[number];
  uint32_t first = 0;
  const PriorSteps *clock = NULL;
  const PollAnswer answer = poll_after_step(process, &first, &clock);
  if (answer == POLL_NONE) return false;
  process->polls = true;
  if (!order->races) return false;
  races_forget_reads(order, number, first);
  process->clock = clock;
  return answer == POLL_SAME && is_idle_alternative(order, first, process->name);
}

/* After a step: clocks, races, processes that have come and gone. false: the tree is full. */
static bool account(Order *order, uint32_t number, ProcessName chosen, const Instruction *in) {
  const bool copy = order->processes[number].operation != NULL;
  if (order->races) races_step(order, number);
  const PriorSteps *after = order->races ? races_clock_after(order, number) : NULL;
  for (uint32_t i = 0; i < notes.count; i++)
    if (notes.items[i].kind == NOTE_ISSUE)
      add_copy_process(order, (AsyncOperation *)(uintptr_t)notes.items[i].at, after);
  if (order->tree && !tree_node(order->tree, order->depth, chosen, in, &notes)) return false;
  if (order->races) sleep_step(order);
  wake_pollers(order, number);
  order->depth++;
  order->last = number;
  Process *process = &order->processes[number];
  if (!copy) {
    update_processes(order, process->context, process->warp, after);
  } else if (process->read_steps == 0) {
    process->read_clock = process->clock;
    process->read_steps = process->steps;
  }
  return true;
}

/* ---- What comes next? ---- */
static bool process_may_run(const Process *process) {
  if (process->gone || process->polls) return false;
  if (process->operation) return async_may_land(process->operation);
  return !process->blocked || process->seen_changes != process->context->cluster.changes;
}

static bool may_choose(const Order *order, uint32_t number) {
  const Process *process = &order->processes[number];
  return process_may_run(process) && !(order->races && sleep_holds(order, process->name));
}

static uint32_t default_choice(const Order *order) {
  if (order->last != NO_PROCESS && !order->processes[order->last].operation &&
      may_choose(order, order->last))
    return order->last;
  uint32_t best = NO_PROCESS;
  for (uint32_t i = 0; i < order->count; i++) {
    const Process *process = &order->processes[i];
    if (!may_choose(order, i)) continue;
    if (best == NO_PROCESS) {
      best = i;
      continue;
    }
    const Process *other = &order->processes[best];
    if (!process->operation != !other->operation) {
      if (!process->operation) best = i;
    } else if (!process->operation && process->name < other->name) {
      best = i; /* copies: the oldest, which has the lowest number */
    }
  }
  return best;
}

/* The choice that the tree or the schedule makes; 0: none is left. */
static ProcessName forced_choice(Order *order) {
  if (order->tree && order->depth < order->tree->prefix)
    return order->tree->nodes[order->depth].chosen;
  const ScheduleList *list = order->schedule;
  if (!list || order->run == list->count) return UINT64_MAX;
  return list->runs[order->run].process;
}

static void advance_schedule(Order *order) {
  if (!order->schedule || order->run == order->schedule->count) return;
  if (++order->run_steps < order->schedule->runs[order->run].steps) return;
  order->run++;
  order->run_steps = 0;
}

/* It cannot run there: whatever can must be tried instead. */
static void try_all_others(Order *order, uint32_t node, ProcessName impossible) {
  Alternative *found = tree_alternative(order->tree, node, impossible);
  if (found) found->state = ALTERNATIVE_IMPOSSIBLE;
  for (uint32_t i = 0; i < order->count; i++)
    if (may_choose(order, i)) tree_add(order->tree, node, order->processes[i].name);
}

static bool all_gone(const Order *order) {
  for (uint32_t i = 0; i < order->count; i++)
    if (!order->processes[i].gone) return false;
  return true;
}

/* Is it only sleeping processes that can run? Then other orders cover what follows. */
static bool somebody_sleeps(const Order *order) {
  if (!order->races || sleep_empty(order)) return false;
  for (uint32_t i = 0; i < order->count; i++)
    if (process_may_run(&order->processes[i]) && sleep_holds(order, order->processes[i].name))
      return true;
  return false;
}

typedef enum { GO_ON, STOP } OrderNext;

/* Without reduction, for tests: whatever could run instead is tried as well. */
static void add_everything(Order *order, uint32_t number) {
  Tree *tree = order->tree;
  const uint32_t node = order->depth;
  for (uint32_t i = 0; i < order->count; i++)
    if (i != number && process_may_run(&order->processes[i])) {
      if (node >= tree->node_count)
        tree_node(tree, node, order->processes[number].name, NULL, &notes);
      tree_add(tree, node, order->processes[i].name);
    }
}

/* A fault ends the order, so it depends on every other step: each is tried before it. */
static void end_with_fault(Order *order, uint32_t number, ProcessName name, const Instruction *in) {
  if (order->races) races_step(order, number);
  if (!order->tree || !tree_node(order->tree, order->depth, name, in, &notes) || !order->races)
    return;
  for (uint32_t i = 0; i < order->count; i++)
    if (i != number && may_choose(order, i))
      tree_add(order->tree, order->depth, order->processes[i].name);
}

static OrderNext make_step(Order *order, uint32_t number, bool expired, OrderEnd *end,
                           bool *moved) {
  const ProcessName name = order->processes[number].name | (expired ? NAME_EXPIRED : 0);
  const Instruction *in = NULL;
  notes.count = 0;
  *moved = false;
  if (order->races && explore_test.without_reduction && !expired &&
      order->depth >= order->tree->prefix)
    add_everything(order, number);
  StepEnd step = order->processes[number].operation ? step_of_copy(order, number, &in)
                                                    : step_of_lanes(order, number, expired, &in);
  if (step == STEP_FAILED) {
    end_with_fault(order, number, name, in);
    *end = END_FAULT;
    return STOP;
  }
  if (step == STEP_WAITS) {
    Process *process = &order->processes[number];
    update_processes(order, process->context, process->warp, process->clock);
    return GO_ON;
  }
  if (!account(order, number, name, in)) {
    *end = END_FULL;
    return STOP;
  }
  *moved = true;
  Process *process = &order->processes[number];
  if (process->context->flow.steps > settings()->steps) {
    *end = END_HANG;
    return STOP;
  }
  if (process->operation || !look_at_polls(order, number) || expired) return GO_ON;
  *end = END_REDUNDANT;
  return STOP;
}

/* Nothing can run: waits give up, one of each process, and the clock advances. */
static OrderNext let_waits_give_up(Order *order, OrderEnd *end, uint32_t *quiet) {
  bool progress = false;
  const uint32_t count = order->count;
  order->stalls++;
  for (uint32_t i = 0; i < count; i++) {
    Process *process = &order->processes[i];
    if (process->gone || process->operation) continue;
    bool moved;
    process->polls = false;
    if (make_step(order, i, true, end, &moved) == STOP) return STOP;
    progress |= moved && !order->processes[i].polls;
    if (order->launch->error) break;
  }
  *quiet = progress ? 0 : *quiet + 1;
  if (*quiet < SAME_STALLS && order->stalls < MOST_STALLS) return GO_ON;
  *end = END_HANG;
  return STOP;
}

static void report_order(Order *order) {
  notes.wanted = false;
  for (uint32_t i = 0; i < order->context_count; i++)
    if (order->contexts[i]->flow.running_warps) {
      check_progress(order->contexts[i]); /* finds out what polling warps read */
      stand_still(order->contexts[i]);
    }
  const char *why = default_choice(order) == NO_PROCESS && order->stalls < MOST_STALLS
                        ? "no thread can continue and nothing is in flight"
                        : "its threads have run for very long without an end (EMULATOR_STEPS)";
  Context **contexts = new_zeros(order->context_count, sizeof *contexts);
  uint32_t count = 0;
  for (uint32_t i = 0; i < order->context_count; i++)
    if (order->contexts[i]->flow.running_warps) contexts[count++] = order->contexts[i];
  report_hang(contexts, count, why);
  free(contexts);
}

static void begin_order(Order *order) {
  order->last = NO_PROCESS;
  uint32_t warps = 0;
  for (uint32_t i = 0; i < order->context_count; i++) warps += order->contexts[i]->warp_count;
  order->issued = new_zeros((size_t)warps * LANES, sizeof *order->issued);
  order->table_size = 256;
  order->table = new_zeros(order->table_size, sizeof *order->table);
  notes.wanted = true;
  notes.count = 0;
  for (uint32_t i = 0; i < order->context_count; i++) {
    Context *context = order->contexts[i];
    context_begin(context, i);
    context->flow.has_turn = true;
    for (uint32_t w = 0; w < context->warp_count && !order->launch->error; w++) {
      run_quietly(order, context, &context->warps[w]);
      update_processes(order, context, &context->warps[w], NULL);
    }
  }
}

static OrderNext make_forced_step(Order *order, ProcessName forced, OrderEnd *end) {
  const uint32_t node = order->depth;
  Process *process = process_named(order, forced);
  if (order->races && !explore_test.without_reduction) sleep_at_node(order, node);
  *end = END_IMPOSSIBLE;
  if (!process || process->gone) return STOP;
  *end = END_REDUNDANT;
  if (order->races && sleep_holds(order, process->name)) {
    tree_alternative(order->tree, node, process->name)->state = ALTERNATIVE_ASLEEP;
    return STOP;
  }
  *end = END_IMPOSSIBLE;
  const bool may_land = !process->operation || async_may_land(process->operation);
  process->polls = false;
  bool moved = false;
  if (may_land && make_step(order, index_of_process(order, process), (forced & NAME_EXPIRED) != 0,
                            end, &moved) == STOP)
    return STOP;
  if (order->depth > node) {
    advance_schedule(order);
    return GO_ON;
  }
  if (order->tree && order->races) try_all_others(order, node, forced & ~NAME_EXPIRED);
  return STOP;
}

static OrderEnd run_steps(Order *order) {
  OrderEnd end = END_FAULT;
  uint32_t quiet = 0;
  begin_order(order);
  while (!order->launch->error) {
    const ProcessName forced = forced_choice(order);
    if (forced != UINT64_MAX) {
      if (make_forced_step(order, forced, &end) == STOP) return end;
      continue;
    }
    const uint32_t next = default_choice(order);
    bool moved;
    if (next != NO_PROCESS) {
      if (make_step(order, next, false, &end, &moved) == STOP) return end;
      if (moved) quiet = 0;
    } else if (all_gone(order)) {
      return END_RESULT;
    } else if (somebody_sleeps(order)) {
      return END_REDUNDANT;
    } else if (let_waits_give_up(order, &end, &quiet) == STOP) {
      return end;
    }
  }
  return END_FAULT;
}

OrderEnd run_order(Order *order) {
  const OrderEnd end = run_steps(order);
  if (end == END_HANG) report_order(order);
  return end;
}

void free_order(Order *order) {
  notes.wanted = false;
  for (uint32_t i = 0; i < order->count; i++) poll_free(&order->processes[i]);
  free(order->processes);
  free(order->table);
  free(order->issued);
}
