/* polling.c: finds warps that spin without making progress (polling.h).
 *
 * For each warp it keeps a copy of the registers at one instruction (the anchor), and the steps
 * since. When the warp reaches the anchor again, it follows the steps backwards to find which
 * registers mattered. If these have the same values as in the copy, the next round will be the same
 * as this one. */
#include "state/polling.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/mix.h"
#include "state/cluster.h"

enum {
  FIRST_BUDGET = 256,   /* steps before it tries another anchor; doubled each time */
  MOST_STEPS = 1 << 16, /* steps in a warp's trace */
  PAIRS = 1 << 10,      /* slots for values seen in memory */
  /* first visits of the anchor, each of which is checked; later ones only sometimes */
  EAGER_VISITS = 16,
  MOST_PASSES = 64 /* over a trace, to find what matters */
};

typedef enum {
  STEP_PURE,    /* matters if its result does */
  STEP_ACROSS,  /* the same, with operands exchanged between lanes */
  STEP_ROOT,    /* matters */
  STEP_IGNORED, /* never matters: sleep, fences */
  STEP_CLOCK
} StepRole;

typedef struct {
  const Function *function;
  uint32_t place;
  LaneMask lanes;
  uint8_t kind;
} TraceStep;

typedef struct {
  TraceStep *steps;
  uint32_t count, capacity, budget;
  bool saved;
  uint8_t *registers; /* at the anchor */
  uint32_t *predicates;
  const Instruction *anchor, *last;
  uint32_t anchor_depth, visits;
  uint64_t shape;  /* hash of the groups at the anchor */
  LaneMask moved;  /* lanes that have executed something since */
  uint32_t events; /* polling->events when the trace began */
  Spinning spinning;
  bool waits;                /* the trace contains a wait at an mbarrier */
  const Instruction *reader; /* the last instruction that read memory */
  uint64_t read_address;
  bool read_global;
} Trace;

struct Polling {
  Trace *traces; /* of each warp */
  uint32_t warp_count;
  uint32_t events;
  bool reads_global;
  uint32_t pair_count;
  uint64_t pairs[PAIRS];
  /* scratch: for which lanes a column or predicate matters, and the column's width */
  LaneMask *need, *need_at_end;
  LaneMask *need_predicate, *need_predicate_at_end;
  uint8_t *width;
  bool by_clock;
};

static struct Polling *polling_of(const Cluster *cluster) { return cluster->flow->polling; }

static Trace *trace_of(const Warp *warp) {
  const Cluster *cluster = warp->cta->cluster;
  return &polling_of(cluster)->traces[agent_of(warp)];
}

/* ---- Begin and end ---- */
void polling_free(Cluster *cluster) {
  struct Polling *polling = polling_of(cluster);
  if (!polling) return;
  for (uint32_t i = 0; polling->traces && i < polling->warp_count; i++) {
    free(polling->traces[i].steps);
    free(polling->traces[i].registers);
    free(polling->traces[i].predicates);
  }
  free(polling->traces);
  free(polling->need);
  free(polling->need_at_end);
  free(polling->need_predicate);
  free(polling->need_predicate_at_end);
  free(polling->width);
  free(polling);
  cluster->flow->polling = NULL;
}

static struct Polling *polling_new(const Cluster *cluster) {
  const Module *module = module_of(cluster);
  struct Polling *polling = new_zeros(1, sizeof *polling);
  cluster->flow->polling = polling;
  polling->warp_count = warp_count_of(cluster);
  polling->traces = new_zeros(polling->warp_count, sizeof *polling->traces);
  polling->need = new_zeros(module->slots + 1u, sizeof(LaneMask));
  polling->need_at_end = new_zeros(module->slots + 1u, sizeof(LaneMask));
  polling->need_predicate = new_zeros(module->predicates + 1u, sizeof(LaneMask));
  polling->need_predicate_at_end = new_zeros(module->predicates + 1u, sizeof(LaneMask));
  polling->width = new_zeros(module->slots + 1u, 1);
  return polling;
}

static void forget_rounds(Trace *trace) {
  trace->count = 0;
  trace->saved = false;
  trace->spinning = NOT_SPINNING;
  trace->last = NULL;
  trace->waits = false;
}

void polling_begin(Cluster *cluster) {
  struct Polling *polling = polling_of(cluster);
  if (!polling) polling = polling_new(cluster);
  polling->reads_global = false;
  polling->pair_count = 0;
  memset(polling->pairs, 0, sizeof polling->pairs);
  for (uint32_t i = 0; i < polling->warp_count; i++) {
    polling->traces[i].budget = FIRST_BUDGET;
    polling->traces[i].reader = NULL;
    polling->traces[i].events = polling->events;
    forget_rounds(&polling->traces[i]);
    cluster->ctas[0].warps[i].watched |= WATCH_POLLING;
  }
}

void polling_end(Cluster *cluster) {
  FOR_WARPS(warp, cluster) warp->watched &= (uint8_t)~WATCH_POLLING;
}

/* ---- What has happened ---- */
void polling_event(Cluster *cluster) { polling_of(cluster)->events++; }

/* Memory that alternates between a few values (a lock taken and released) is not progress. Only a
 * value that the location has never held is an event. */
void polling_changed(Cluster *cluster, uint64_t place, uint64_t value) {
  struct Polling *polling = polling_of(cluster);
  uint64_t pair = mix(mix(place) + value) | 1;
  for (uint32_t at = (uint32_t)(pair >> 40);; at++) {
    uint64_t *slot = &polling->pairs[at & (PAIRS - 1)];
    if (*slot == pair) return;
    if (*slot) continue;
    *slot = pair;
    break;
  }
  polling->events++;
  if (++polling->pair_count < PAIRS / 2) return;
  polling->pair_count = 0;
  memset(polling->pairs, 0, sizeof polling->pairs);
}

void polling_read(Warp *warp, const Instruction *in, uint64_t address, bool global) {
  Trace *trace = trace_of(warp);
  if (global) polling_of(warp->cta->cluster)->reads_global = true;
  trace->reader = in;
  trace->read_address = address;
  trace->read_global = global;
}

bool polling_last_read(const Warp *warp, const Instruction **in, uint64_t *address, bool *global) {
  if (!polling_of(warp->cta->cluster)) return false;
  const Trace *trace = trace_of(warp);
  *in = trace->reader;
  *address = trace->read_address;
  *global = trace->read_global;
  return trace->reader != NULL;
}

bool polling_waits(const Warp *warp) {
  return polling_of(warp->cta->cluster) && trace_of(warp)->waits;
}

bool polling_spins(const Warp *warp, const Group *group) {
  if (!polling_of(warp->cta->cluster)) return false;
  const Trace *trace = trace_of(warp);
  for (uint32_t i = 0; i < trace->count; i++)
    if ((trace->steps[i].lanes & group->mask) && trace->steps[i].place != group->place) return true;
  return false;
}

Spinning polling_spinning(const Cluster *cluster) {
  const struct Polling *polling = polling_of(cluster);
  Spinning least = SPINNING_FOR_EVER;
  for (uint32_t i = 0; i < polling->warp_count; i++) {
    const Trace *trace = &polling->traces[i];
    if (cluster->ctas[0].warps[i].flow->count == 0) continue;
    if (trace->events != polling->events) return NOT_SPINNING;
    if (trace->spinning < least) least = trace->spinning;
  }
  return least;
}

uint32_t polling_events(const Cluster *cluster) { return polling_of(cluster)->events; }

bool polling_reads_global(const Cluster *cluster) { return polling_of(cluster)->reads_global; }

/* ---- What instructions do with registers ---- */
/* Does it change memory without calling polling_changed, or print? */
static bool is_event(const Draft *draft) {
  if (draft->call) return draft->call->callee && !draft->call->callee->defined;
  return has_trait(&draft->statement, ASYNC) && draft->results == 0;
}

/* again: this was tried before and could not go on, so it is no event of its own. */
static StepRole kind_of(const Draft *draft, Cluster *cluster, bool again) {
  if (draft->inserted) return draft->inserted == INSERTED_READ_CLOCK ? STEP_CLOCK : STEP_IGNORED;
  if (has_trait(&draft->statement, HINTS)) return STEP_IGNORED;
  if (is_event(draft) && !again) polling_event(cluster);
  if (has_trait(&draft->statement, ACTS) || draft->results == 0) return STEP_ROOT;
  return has_trait(&draft->statement, WARP_WIDE) ? STEP_ACROSS : STEP_PURE;
}

/* ---- What matters ---- */
static LaneMask lanes_needing(const struct Polling *polling, const Operand *operand) {
  LaneMask lanes = 0;
  if (operand->kind == OPERAND_VECTOR)
    for (uint32_t i = 0; i < operand->count; i++)
      lanes |= lanes_needing(polling, &operand->elements[i]);
  else if (operand->kind == OPERAND_REGISTER)
    lanes = polling->need[operand->slot];
  else if (operand->kind == OPERAND_PREDICATE)
    lanes = polling->need_predicate[operand->slot];
  return lanes;
}

static void set_need(struct Polling *polling, const Operand *operand, LaneMask lanes, bool on) {
  if (operand->kind == OPERAND_VECTOR) {
    for (uint32_t i = 0; i < operand->count; i++)
      set_need(polling, &operand->elements[i], lanes, on);
    return;
  }
  LaneMask *need = NULL;
  if (operand->kind == OPERAND_PREDICATE) need = &polling->need_predicate[operand->slot];
  if (operand->kind == OPERAND_REGISTER || operand->kind == OPERAND_ADDRESS) {
    need = &polling->need[operand->slot];
    polling->width[operand->slot] = operand->bytes;
  }
  if (!need) return;
  *need = on ? *need | lanes : *need & ~lanes;
}

/* Computes what matters before the step from what matters after it. */
static void step_back(struct Polling *polling, const TraceStep *step) {
  const Draft *draft = &step->function->drafts[step->place];
  if (step->kind == STEP_IGNORED) return;
  if (step->kind == STEP_CLOCK) {
    if (lanes_needing(polling, &draft->operand[0]) & step->lanes) polling->by_clock = true;
    set_need(polling, &draft->operand[0], step->lanes, false);
    return;
  }
  LaneMask matters = step->kind == STEP_ROOT ? step->lanes : 0;
  for (uint32_t i = 0; i < draft->results; i++)
    matters |= lanes_needing(polling, &draft->operand[i]) & step->lanes;
  if (step->kind == STEP_ACROSS && matters) matters = step->lanes;
  for (uint32_t i = 0; i < draft->results && draft->guard == NO_REGISTER; i++)
    set_need(polling, &draft->operand[i], step->lanes, false);
  if (!matters) return;
  for (uint32_t i = draft->results; i < draft->operand_count; i++)
    set_need(polling, &draft->operand[i], matters, true);
  const Instruction *in = &step->function->code[step->place];
  if (in->guard >= 0) polling->need_predicate[in->guard] |= matters;
}

static bool add_lanes(LaneMask *whole, const LaneMask *part, uint32_t count) {
  bool grew = false;
  for (uint32_t i = 0; i < count; i++) {
    grew |= (part[i] & ~whole[i]) != 0;
    whole[i] |= part[i];
  }
  return grew;
}

/* What matters at the anchor if the warp repeats this round again and again. */
static bool find_needs(struct Polling *polling, const Module *module, const Trace *trace) {
  uint32_t slots = module->slots, predicates = module->predicates;
  memset(polling->need_at_end, 0, slots * sizeof(LaneMask));
  memset(polling->need_predicate_at_end, 0, predicates * sizeof(LaneMask));
  for (int pass = 0; pass < MOST_PASSES; pass++) {
    memcpy(polling->need, polling->need_at_end, slots * sizeof(LaneMask));
    memcpy(polling->need_predicate, polling->need_predicate_at_end, predicates * sizeof(LaneMask));
    polling->by_clock = false;
    for (uint32_t i = trace->count; i-- > 0;) step_back(polling, &trace->steps[i]);
    bool grew = add_lanes(polling->need_at_end, polling->need, slots);
    grew |= add_lanes(polling->need_predicate_at_end, polling->need_predicate, predicates);
    if (!grew) return true;
  }
  return false;
}

static bool same_value(const Warp *warp, const Trace *trace, uint32_t slot, uint32_t width,
                       LaneMask lanes) {
  uint32_t bytes = width < 4 ? 4 : width;
  const uint8_t *now = warp->registers + (size_t)slot * SLOT_BYTES;
  const uint8_t *before = trace->registers + (size_t)slot * SLOT_BYTES;
  FOR_LANES(lane, lanes) {
    size_t at = (size_t)lane * bytes;
    if (memcmp(now + at, before + at, bytes) != 0) return false;
  }
  return true;
}

static bool same_state(const struct Polling *polling, const Module *module, const Warp *warp,
                       const Trace *trace) {
  for (uint32_t i = 0; i < module->predicates; i++)
    if ((warp->predicates[i] ^ trace->predicates[i]) & polling->need_predicate[i]) return false;
  for (uint32_t i = 0; i < module->slots; i++)
    if (polling->need[i] && !same_value(warp, trace, i, polling->width[i], polling->need[i]))
      return false;
  return true;
}

/* ---- The trace ---- */
static uint32_t depth_of(const Group *group) { return group->frame ? group->frame->depth : 0; }

/* A hash of the groups' positions, in any order. The running group is at `in`. */
static uint64_t shape_of(const Warp *warp, const Instruction *in) {
  const struct WarpFlow *flow = warp->flow;
  uint64_t shape = 0;
  for (uint32_t i = 0; i < flow->count; i++) {
    const Group *group = &flow->groups[i];
    const Instruction *place = i == flow->current ? in : &group->function->code[group->place];
    uint64_t own = mix((uint64_t)(uintptr_t)place + group->mask * 2654435761ull + group->arrived);
    for (const Frame *frame = group->frame; frame; frame = frame->parent)
      own = mix(own + frame->return_place + (uint64_t)(uintptr_t)frame->caller);
    shape += own;
  }
  return shape;
}

static void save_state(const Warp *warp, Trace *trace, const Instruction *in) {
  const Module *module = module_of(warp->cta->cluster);
  size_t bytes = (size_t)module->slots * SLOT_BYTES;
  if (!trace->registers) trace->registers = new_zeros(bytes, 1);
  if (!trace->predicates) trace->predicates = new_zeros(module->predicates, sizeof(uint32_t));
  forget_rounds(trace);
  trace->last = in;
  memcpy(trace->registers, warp->registers, bytes);
  memcpy(trace->predicates, warp->predicates, module->predicates * sizeof(uint32_t));
  trace->saved = true;
  trace->anchor = in;
  trace->anchor_depth = depth_of(current_group((Warp *)(uintptr_t)warp));
  trace->shape = shape_of(warp, in);
  trace->visits = 0;
  trace->moved = 0;
}

static bool worth_a_look(uint32_t visits) {
  if (visits <= EAGER_VISITS) return true;
  while (visits % 2 == 0) visits /= 2;
  return visits == 1 || visits == 3;
}

/* Back at the anchor: has the warp completed a round without progress? */
static void compare_round(Warp *warp, Trace *trace) {
  Cluster *cluster = warp->cta->cluster;
  struct Polling *polling = polling_of(cluster);
  if (live_lanes(warp) & ~trace->moved) return; /* some lanes have not run yet */
  if (!worth_a_look(++trace->visits)) return;
  if (!find_needs(polling, module_of(cluster), trace)) return;
  if (!same_state(polling, module_of(cluster), warp, trace)) return;
  trace->spinning = polling->by_clock ? SPINNING_BY_CLOCK : SPINNING_FOR_EVER;
}

static void append_step(Trace *trace, TraceStep step) {
  if (trace->count == MOST_STEPS) forget_rounds(trace);
  trace->steps = grown_list(trace->steps, trace->count, &trace->capacity, sizeof *trace->steps);
  trace->steps[trace->count++] = step;
}

void polling_step(Warp *warp, const Instruction *in, LaneMask mask) {
  Cluster *cluster = warp->cta->cluster;
  const struct Polling *polling = polling_of(cluster);
  Trace *trace = trace_of(warp);
  Group *group = current_group(warp);
  bool again = !(mask & ~group->retries);
  group->retries = 0;
  if (trace->events != polling->events) {
    trace->events = polling->events;
    forget_rounds(trace);
  }
  if (trace->spinning != NOT_SPINNING) return;
  bool back = in <= trace->last;
  trace->last = in;
  uint32_t depth = depth_of(group);
  if (back && trace->saved && in == trace->anchor && shape_of(warp, in) == trace->shape) {
    compare_round(warp, trace);
    if (trace->spinning != NOT_SPINNING) return;
  }
  if (back) {
    bool outer = trace->saved && (depth < trace->anchor_depth ||
                                  (depth == trace->anchor_depth && in < trace->anchor));
    bool spent = trace->count >= trace->budget;
    if (spent && trace->budget < MOST_STEPS / 2) trace->budget *= 2;
    if (!trace->saved || outer || spent) save_state(warp, trace, in);
  }
  const Draft *draft = &group->function->drafts[in - group->function->code];
  trace->moved |= mask;
  trace->waits |= (in->traits & ASKS_MBARRIER) != 0;
  append_step(trace, (TraceStep){group->function, (uint32_t)(in - group->function->code), mask,
                                 (uint8_t)kind_of(draft, cluster, again)});
}
