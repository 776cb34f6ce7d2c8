/* flow_warp.c: instructions in which the lanes of a warp work together: votes, shuffles, matches,
 * reductions, elections, and the warp's own barrier. Each names its lanes in a mask, and executes
 * when all of them that have not exited have arrived at it. */

#include "base/fault.h"
#include "base/events.h"
#include "ptx/form.h"
#include "flow/exchange.h"
#include "flow/flow.h"

static uint32_t value_u32(const Warp *warp, const Operand *operand, int lane) {
  return (uint32_t)lane_value(warp, operand, lane);
}

static LaneMask predicate_of(const Warp *warp, const Operand *operand) {
  if (operand->kind != OPERAND_PREDICATE) return operand->constant_value ? ~0u : 0u;
  LaneMask value = warp->predicates[operand->slot];
  return operand->negated ? ~value : value;
}

static void gather_values(const Warp *warp, const Operand *operand, LaneMask lanes,
                          uint64_t *values) {
  if (operand->bytes == 8) {
    const uint64_t *column = column_u64(warp, operand->slot);
    for (int lane = 0; lane < LANES; lane++)
      values[lane] = lanes >> lane & 1 ? column[lane] : values[lane];
  } else {
    const uint32_t *column = column_u32(warp, operand->slot);
    for (int lane = 0; lane < LANES; lane++)
      values[lane] = lanes >> lane & 1 ? column[lane] : values[lane];
  }
}

static void gather_u32(const Warp *warp, const Operand *operand, LaneMask lanes, uint32_t *values) {
  const uint32_t *words = column_u32(warp, operand->slot);
  uint32_t step = operand->bytes == 8 ? 2 : 1; /* of a wide value, the low half */
  for (uint32_t lane = 0; lane < LANES; lane++)
    values[lane] = lanes >> lane & 1 ? words[lane * step] : values[lane];
}

static void gather_operands(const Warp *warp, const WarpWideForm *form, LaneMask lanes,
                            Exchange *exchange) {
  if (form->a && form->a->kind == OPERAND_PREDICATE)
    exchange->yes |= predicate_of(warp, form->a) & lanes;
  else if (form->a)
    gather_values(warp, form->a, lanes, exchange->a);
  if (form->a && !form->wide) /* a literal has 64 bits, whatever width the instruction takes */
    for (int lane = 0; lane < LANES; lane++) exchange->a[lane] = (uint32_t)exchange->a[lane];
  if (form->b) gather_u32(warp, form->b, lanes, exchange->b);
  if (form->c) gather_u32(warp, form->c, lanes, exchange->c);
}

static void hand_out(Warp *warp, const WarpWideForm *form, LaneMask lanes,
                     const Exchange *exchange) {
  const Operand *d = form->d;
  if (d && d->kind == OPERAND_REGISTER) {
    if (d->bytes == 8) {
      FOR_LANES(lane, lanes) set_lane_value(warp, d, lane, exchange->value[lane]);
    } else {
      uint32_t *column = column_u32(warp, d->slot);
      for (int lane = 0; lane < LANES; lane++)
        column[lane] = lanes >> lane & 1 ? exchange->value[lane] : column[lane];
    }
  }
  if (form->p && form->p->kind == OPERAND_PREDICATE) {
    LaneMask *predicate = &warp->predicates[form->p->slot];
    *predicate = (*predicate & ~lanes) | (exchange->predicates & lanes);
  }
}

static void tell_lanes_met(Warp *warp, const Instruction *in, LaneMask lanes) {
  const WarpWideForm *form = in->decoded;
  emit_lanes_met(warp, in, lanes, !form->act);
}

static void act_together(Warp *warp, const Rendezvous *rendezvous) {
  const Instruction *in = rendezvous->parts[0].in;
  const WarpWideForm *first = in->decoded;
  tell_lanes_met(warp, in, rendezvous->lanes);
  if (!first->act) return;
  Exchange exchange = {.lanes = rendezvous->lanes};
  for (uint32_t i = 0; i < rendezvous->count; i++)
    gather_operands(warp, rendezvous->parts[i].in->decoded, rendezvous->parts[i].lanes, &exchange);
  first->act(&exchange, first->kind, first->is_signed);
  emit_exchanged(warp, rendezvous, &exchange);
  for (uint32_t i = 0; i < rendezvous->count; i++)
    hand_out(warp, rendezvous->parts[i].in->decoded, rendezvous->parts[i].lanes, &exchange);
}

static StepResult run_together(Warp *warp, const Instruction *in, LaneMask mask);

/* Groups that wait for these members at an instruction of the same kind join the rendezvous. */
static void find_others(Warp *warp, const WarpWideForm *form, LaneMask members,
                        Rendezvous *rendezvous) {
  const struct WarpFlow *flow = warp->flow;
  for (uint32_t i = 0; i < flow->count; i++) {
    const Group *group = &flow->groups[i];
    if (i == flow->current || group->state != GROUP_BLOCKED) continue;
    const Instruction *in = &group->function->code[group->place];
    if (in->execute != run_together) continue;
    const WarpWideForm *other = in->decoded;
    if (other->act != form->act || other->kind != form->kind ||
        other->is_signed != form->is_signed || other->wide != form->wide)
      continue;
    LaneMask lanes = 0;
    FOR_LANES(lane, group->mask)
      if (value_u32(warp, other->members, lane) == members) lanes |= 1u << lane;
    if (!lanes) continue;
    rendezvous->parts[rendezvous->count++] = (WaitingLanes){in, lanes, i};
    rendezvous->lanes |= lanes;
  }
}

/* The lanes that waited elsewhere continue after their own instruction. */
static void release_others(struct WarpFlow *flow, const Rendezvous *rendezvous) {
  for (uint32_t i = 1; i < rendezvous->count; i++) {
    Group *group = &flow->groups[rendezvous->parts[i].group];
    if (group->mask != rendezvous->parts[i].lanes)
      group = split_group_at(flow, rendezvous->parts[i].group, rendezvous->parts[i].lanes);
    group->place++;
    group->state = GROUP_READY;
  }
}

/* Lanes of the mask that name the same members, and whether all of those are here. */
static bool meet_members(Warp *warp, const Instruction *in, LaneMask same, LaneMask members) {
  LaneMask live = live_lanes(warp);
  if (same & ~members)
    finding(warp, in, same & ~members, RULE(MEMBERMASK),
            "a thread executes this with the member mask 0x%08x, which does not name it: name all "
            "threads that execute it together, and no others",
            members);
  Rendezvous rendezvous;
  rendezvous.count = 1;
  rendezvous.lanes = same;
  rendezvous.parts[0] = (WaitingLanes){in, same, warp->flow->current};
  LaneMask wanted = (members | same) & live;
  if (wanted != same) {
    find_others(warp, in->decoded, members, &rendezvous);
    if (wanted & ~rendezvous.lanes) return false;
  }
  act_together(warp, &rendezvous);
  release_others(warp->flow, &rendezvous);
  return true;
}

/* The usual case: a constant member mask, and all of its lanes are here. */
static bool all_are_here(const Warp *warp, const Operand *members, LaneMask mask) {
  return members->constant && ((LaneMask)members->constant_value & live_lanes(warp)) == mask;
}

static bool others_wait(const struct WarpFlow *flow) {
  for (uint32_t i = 0; i < flow->count; i++)
    if (i != flow->current && flow->groups[i].state == GROUP_BLOCKED) return true;
  return false;
}

static StepResult run_together(Warp *warp, const Instruction *in, LaneMask mask) {
  const WarpWideForm *form = in->decoded;
  LaneMask done = 0;
  if (all_are_here(warp, form->members, mask)) {
    if (form->act)
      meet_members(warp, in, mask, (LaneMask)form->members->constant_value);
    else
      tell_lanes_met(warp, in, mask); /* bar.warp.sync does no more */
    return STEP_NEXT;
  }
  if (form->members->constant && !(mask & ~(LaneMask)form->members->constant_value) &&
      !others_wait(warp->flow))
    return STEP_BLOCKED; /* some are missing, and the others of its warp are on their way */
  for (LaneMask left = mask; left;) {
    LaneMask members = value_u32(warp, form->members, first_lane(left)), same = left;
    if (!form->members->constant)
      FOR_LANES(lane, left)
        if (value_u32(warp, form->members, lane) != members) same &= ~(1u << lane);
    left &= ~same;
    if (meet_members(warp, in, same, members)) done |= same;
  }
  if (done == mask) return STEP_NEXT;
  if (done == 0) return STEP_BLOCKED;
  Group *group = current_group(warp);
  uint32_t place = (uint32_t)(in - group->function->code);
  Group *waiting = split_group(warp->flow, mask & ~done);
  waiting->place = place;
  waiting->state = GROUP_BLOCKED;
  waiting->seen = warp->cta->cluster->changes;
  group = current_group(warp);
  group->place = place + 1;
  return STEP_JUMPED;
}

/* may_drop: it may be _, as d|p may. */
static const Operand *result_of(Form *form, Type type, bool may_drop) {
  const Operand *operand = form_operand(form, 0);
  if (!may_drop || operand->kind != OPERAND_SINK) form_destination(form, 0, type);
  return operand;
}

static const Operand *source_of(Form *form, int index, Type type) {
  form_source(form, index, type);
  return form_operand(form, index);
}

/* Takes .sync, and as many operands; the last is the member mask. */
static WarpWideForm *begin_together(Form *form, void (*act)(Exchange *, uint8_t, bool), int least,
                                    int most) {
  Instruction *out = form->out;
  WarpWideForm *made = decoder_allocate(form->decoder, sizeof *made);
  out->decoded = made;
  made->act = act;
  if (!form_take(form, "sync")) form_fail(form, ".sync is missing");
  int last = form_operands(form, least, most) ? out->operand_count - 1 : 0;
  made->members = source_of(form, last, TYPE_U32);
  return made;
}

/* ---- vote.sync ---- */
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };

static void act_vote(Exchange *exchange, uint8_t kind, bool is_signed) {
  (void)is_signed;
  LaneMask yes = exchange->yes, lanes = exchange->lanes;
  bool answer = kind == VOTE_ALL   ? yes == lanes
                : kind == VOTE_ANY ? yes != 0
                                   : yes == lanes || !yes; /* VOTE_UNI */
  exchange->predicates = answer ? ~0u : 0u;
  for (int lane = 0; lane < LANES; lane++) exchange->value[lane] = yes;
}

FORM_DECODER(decode_vote, 1) {
  static const char *const kinds[] = {"all", "any", "uni", "ballot", NULL};
  WarpWideForm *vote = begin_together(&form, act_vote, 3, 3);
  int kind = form_choose(&form, kinds);
  bool ballot = kind == VOTE_BALLOT;
  if (kind < 0 || !form_take(&form, ballot ? "b32" : "pred"))
    return form_fail(&form, "vote.sync is .all.pred, .any.pred, .uni.pred or .ballot.b32");
  vote->kind = (uint8_t)kind;
  if (ballot)
    vote->d = result_of(&form, TYPE_B32, false);
  else
    vote->p = form_predicate_destination(&form, 0);
  vote->a = form_predicate(&form, 1);
  return form_end(&form, run_together);
}

/* ---- shfl.sync ---- */
/* Whose value each lane takes; returns the lanes whose source is inside their segment. */
static inline LaneMask shuffle_sources(const Exchange *exchange, uint8_t kind, int *source) {
  LaneMask valid = 0;
  for (int lane = 0; lane < LANES; lane++) {
    int b = (int)(exchange->b[lane] & 31u), limit = (int)(exchange->c[lane] & 31u);
    int segment = (int)(exchange->c[lane] >> 8 & 31u), first = lane & segment;
    int last = first | (limit & ~segment);
    int from = kind == SHUFFLE_UP          ? lane - b
               : kind == SHUFFLE_DOWN      ? lane + b
               : kind == SHUFFLE_BUTTERFLY ? lane ^ b
                                           : first | (b & ~segment);
    bool inside = kind == SHUFFLE_UP ? from >= last : from <= last;
    source[lane] = (inside ? from : lane) & 31;
    valid |= (LaneMask)inside << lane;
  }
  return valid;
}

static void act_shuffle(Exchange *exchange, uint8_t kind, bool is_signed) {
  (void)is_signed;
  LANE_ARRAY int source[LANES];
  switch (kind) { /* a loop for each, which the host's vector instructions can do */
    case SHUFFLE_UP:
      exchange->predicates = shuffle_sources(exchange, SHUFFLE_UP, source);
      break;
    case SHUFFLE_DOWN:
      exchange->predicates = shuffle_sources(exchange, SHUFFLE_DOWN, source);
      break;
    case SHUFFLE_BUTTERFLY:
      exchange->predicates = shuffle_sources(exchange, SHUFFLE_BUTTERFLY, source);
      break;
    default:
      exchange->predicates = shuffle_sources(exchange, SHUFFLE_INDEX, source);
      break;
  }
  /* a lane that takes no part has no defined value; an H200 gives 0 */
  for (int lane = 0; lane < LANES; lane++)
    exchange->value[lane] =
        exchange->lanes >> source[lane] & 1 ? (uint32_t)exchange->a[source[lane]] : 0;
}

FORM_DECODER(decode_shuffle, 1) {
  static const char *const kinds[] = {"up", "down", "bfly", "idx", NULL};
  WarpWideForm *shuffle = begin_together(&form, act_shuffle, 5, 6);
  int kind = form_choose(&form, kinds), pair = out->operand_count == 6;
  if (kind < 0 || !form_take(&form, "b32"))
    return form_fail(&form, "shfl.sync is .up, .down, .bfly or .idx, and .b32");
  out->shuffle = (uint8_t)(kind + SHUFFLE_UP);
  shuffle->kind = out->shuffle;
  shuffle->d = result_of(&form, TYPE_B32, false);
  shuffle->p = pair ? form_predicate_destination(&form, 1) : NULL;
  shuffle->a = source_of(&form, 1 + pair, TYPE_B32);
  shuffle->b = source_of(&form, 2 + pair, TYPE_B32);
  shuffle->c = source_of(&form, 3 + pair, TYPE_B32);
  return form_end(&form, run_together);
}

/* ---- match.sync ---- */
void act_match(Exchange *exchange, uint8_t all, bool is_signed) {
  (void)is_signed;
  const uint64_t *a = exchange->a;
  bool equal = true;
  for (LaneMask left = exchange->lanes; left;) {
    uint64_t value = a[first_lane(left)];
    LaneMask same = 0;
    FOR_LANES(lane, left)
      if (a[lane] == value) same |= 1u << lane;
    FOR_LANES(lane, same) exchange->value[lane] = same;
    equal = equal && same == exchange->lanes;
    left &= ~same;
  }
  if (!all) return;
  exchange->predicates = equal ? ~0u : 0u;
  for (int lane = 0; lane < LANES; lane++) exchange->value[lane] = equal ? exchange->lanes : 0;
}

FORM_DECODER(decode_match, 1) {
  WarpWideForm *match = begin_together(&form, act_match, 3, 4);
  bool all = form_take(&form, "all"), any = !all && form_take(&form, "any");
  int pair = out->operand_count == 4;
  Type type = form_type(&form);
  if (!(all || any) || (type != TYPE_B32 && type != TYPE_B64) || (pair && !all))
    return form_fail(&form,
                     "match.sync is .any or, with a predicate if you like, .all; .b32 or .b64");
  match->kind = all;
  match->wide = type == TYPE_B64;
  match->d = result_of(&form, TYPE_U32, pair);
  match->p = pair ? form_predicate_destination(&form, 1) : NULL;
  match->a = source_of(&form, 1 + pair, type);
  return form_end(&form, run_together);
}

/* ---- redux.sync ---- */

static uint32_t reduced(uint8_t kind, bool is_signed, uint32_t sum, uint32_t value) {
  bool less = is_signed ? (int32_t)value < (int32_t)sum : value < sum;
  switch (kind) {
    case REDUX_ADD:
      return sum + value;
    case REDUX_MIN:
      return less ? value : sum;
    case REDUX_MAX:
      return less ? sum : value;
    case REDUX_AND:
      return sum & value;
    case REDUX_OR:
      return sum | value;
    default:
      return sum ^ value;
  }
}

void act_redux(Exchange *exchange, uint8_t kind, bool is_signed) {
  LaneMask lanes = exchange->lanes;
  uint32_t sum = (uint32_t)exchange->a[first_lane(lanes)];
  FOR_LANES(lane, lanes & (lanes - 1))
    sum = reduced(kind, is_signed, sum, (uint32_t)exchange->a[lane]);
  for (int lane = 0; lane < LANES; lane++) exchange->value[lane] = sum;
}

FORM_DECODER(decode_redux, 1) {
  static const char *const kinds[] = {"add", "min", "max", "and", "or", "xor", NULL};
  WarpWideForm *redux = begin_together(&form, act_redux, 3, 3);
  int kind = form_choose(&form, kinds);
  Type type = form_type(&form);
  redux->kind = (uint8_t)kind;
  redux->is_signed = type == TYPE_S32;
  if (kind < 0 || (kind >= REDUX_AND ? type != TYPE_B32 : type != TYPE_U32 && type != TYPE_S32))
    return form_fail(&form,
                     "redux.sync is .add, .min or .max of u32 or s32, or .and, .or or .xor of b32");
  redux->d = result_of(&form, TYPE_U32, false);
  redux->a = source_of(&form, 1, TYPE_U32);
  return form_end(&form, run_together);
}

/* ---- elect.sync: the lowest lane ---- */
static void act_elect(Exchange *exchange, uint8_t kind, bool is_signed) {
  (void)kind, (void)is_signed;
  uint32_t chosen = (uint32_t)first_lane(exchange->lanes);
  for (int lane = 0; lane < LANES; lane++) exchange->value[lane] = chosen;
  exchange->predicates = 1u << chosen;
}

FORM_DECODER(decode_elect, 1) {
  WarpWideForm *elect = begin_together(&form, act_elect, 3, 3);
  elect->d = result_of(&form, TYPE_U32, true);
  elect->p = form_predicate_destination(&form, 1);
  return form_end(&form, run_together);
}

/* ---- activemask: who runs here at this moment ---- */
static StepResult run_activemask(Warp *warp, const Instruction *in, LaneMask mask) {
  const Operand *d = &in->operand[0];
  if (d->kind == OPERAND_REGISTER)
    FOR_LANES(lane, mask) set_lane_value(warp, d, lane, mask);
  return STEP_NEXT;
}

FORM_DECODER(decode_activemask, 1) {
  if (form_type(&form) != TYPE_B32) return form_fail(&form, "activemask is .b32");
  if (form_operands(&form, 1, 1)) form_destination(&form, 0, TYPE_B32);
  return form_end(&form, run_activemask);
}

/* ---- bar.warp.sync: a meeting at which nothing is exchanged ---- */
FORM_DECODER(decode_warp_barrier, 2) {
  begin_together(&form, NULL, 1, 1);
  return form_end(&form, run_together);
}
