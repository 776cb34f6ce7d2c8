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
      FOR_EACH_LANE(lanes, lane) set_lane_value(warp, d, lane, exchange->value[lane]);
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
    FOR_EACH_LANE(group->mask, lane)
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
    if (!form->members->constant) FOR_EACH_LANE(left, lane)
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

static WarpWideForm *new_together(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                                  void (*act)(Exchange *, uint8_t, bool)) {
  WarpWideForm *form = decoder_allocate(decoder, sizeof *form);
  form->act = act;
  out->decoded = form;
  out->execute = run_together;
  if (out->operand_count == 0) {
    decoder_error(decoder, statement, "operands are missing");
    return NULL;
  }
  form->members = &out->operand[out->operand_count - 1];
  if (form->members->kind != OPERAND_REGISTER) {
    decoder_error(decoder, statement, "the last operand must be the member mask");
    return NULL;
  }
  return form;
}

static bool expect_form(Decoder *decoder, const PtxStatement *statement, bool fine,
                        const char *form) {
  return fine || decoder_error(decoder, statement, "expected %s", form);
}

static bool mask_fits(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, 1);
  return form_numbers(&form, out->operand_count - 1, 1, TYPE_U32);
}

/* The result, if it is a register, the value at `source` (0: there is none) and the member mask. */
static bool are_of_types(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                         Type result, int source, Type value) {
  Form form = form_begin(decoder, statement, out, 1);
  if (out->operand[0].kind == OPERAND_REGISTER) form_destination(&form, 0, result);
  if (source) form_source(&form, source, value);
  return !form.failed && mask_fits(decoder, statement, out);
}

static bool is_value(const Operand *operand) { return operand->kind == OPERAND_REGISTER; }
static bool is_result(const Operand *operand) {
  return (operand->kind == OPERAND_REGISTER && !operand->constant) || operand->kind == OPERAND_SINK;
}
static bool is_predicate(const Operand *operand) {
  return operand->kind == OPERAND_PREDICATE || (is_value(operand) && operand->constant);
}
static bool is_predicate_result(const Operand *operand) {
  return (operand->kind == OPERAND_PREDICATE && !operand->negated) || operand->kind == OPERAND_SINK;
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

DECODER(decode_vote) {
  static const char *const kinds[] = {"all", "any", "uni", "ballot"};
  WarpWideForm *vote = new_together(decoder, statement, out, act_vote);
  if (!vote) return false;
  int kind = -1;
  for (int i = 0; i < 4; i++)
    if (has_modifier(statement, kinds[i])) kind = i;
  const char *type = kind == VOTE_BALLOT ? "b32" : "pred";
  bool fine = statement->modifier_count == 4 && has_modifier(statement, "sync") && kind >= 0 &&
              has_modifier(statement, type) && out->operand_count == 3;
  fine =
      fine && is_predicate(&out->operand[1]) &&
      (kind == VOTE_BALLOT ? is_result(&out->operand[0]) : is_predicate_result(&out->operand[0]));
  vote->kind = (uint8_t)kind;
  if (kind == VOTE_BALLOT)
    vote->d = &out->operand[0];
  else
    vote->p = &out->operand[0];
  vote->a = &out->operand[1];
  return expect_form(
             decoder, statement, fine,
             "vote.sync.all, any or uni.pred p, a, mask or vote.sync.ballot.b32 d, a, mask") &&
         are_of_types(decoder, statement, out, TYPE_B32, 0, TYPE_NONE);
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

DECODER(decode_shuffle) {
  static const char *const kinds[] = {"up", "down", "bfly", "idx"};
  WarpWideForm *shuffle = new_together(decoder, statement, out, act_shuffle);
  if (!shuffle) return false;
  int kind = -1;
  for (int i = 0; i < 4; i++)
    if (has_modifier(statement, kinds[i])) kind = i;
  out->shuffle = (uint8_t)(kind + SHUFFLE_UP);
  int pair = out->operand_count == 6;
  bool fine = statement->modifier_count == 4 && has_modifier(statement, "sync") && kind >= 0 &&
              has_modifier(statement, "b32") && (out->operand_count == 5 || pair);
  if (fine) {
    const Operand *operand = out->operand;
    fine = is_result(&operand[0]) && (!pair || is_predicate_result(&operand[1])) &&
           is_value(&operand[1 + pair]) && is_value(&operand[2 + pair]) &&
           is_value(&operand[3 + pair]);
    fine = fine && operand[0].bytes == 4 &&
           (operand[1 + pair].bytes == 4 || operand[1 + pair].constant);
    shuffle->kind = out->shuffle;
    shuffle->d = &operand[0];
    shuffle->p = pair ? &operand[1] : NULL;
    shuffle->a = &operand[1 + pair];
    shuffle->b = &operand[2 + pair];
    shuffle->c = &operand[3 + pair];
  }
  return expect_form(
             decoder, statement, fine,
             "shfl.sync.up, down, bfly or idx.b32 d[|p], a, b, c, mask with 32-bit registers") &&
         are_of_types(decoder, statement, out, TYPE_B32, 1 + pair, TYPE_B32);
}

/* ---- match.sync ---- */
void act_match(Exchange *exchange, uint8_t all, bool is_signed) {
  (void)is_signed;
  const uint64_t *a = exchange->a;
  bool equal = true;
  for (LaneMask left = exchange->lanes; left;) {
    uint64_t value = a[first_lane(left)];
    LaneMask same = 0;
    FOR_EACH_LANE(left, lane)
    if (a[lane] == value) same |= 1u << lane;
    FOR_EACH_LANE(same, lane) exchange->value[lane] = same;
    equal = equal && same == exchange->lanes;
    left &= ~same;
  }
  if (!all) return;
  exchange->predicates = equal ? ~0u : 0u;
  for (int lane = 0; lane < LANES; lane++) exchange->value[lane] = equal ? exchange->lanes : 0;
}

DECODER(decode_match) {
  WarpWideForm *match = new_together(decoder, statement, out, act_match);
  if (!match) return false;
  bool all = has_modifier(statement, "all"), any = has_modifier(statement, "any");
  match->wide = has_modifier(statement, "b64");
  int pair = out->operand_count == 4;
  bool fine = statement->modifier_count == 4 && has_modifier(statement, "sync") && all != any &&
              (match->wide || has_modifier(statement, "b32")) &&
              (out->operand_count == 3 || (pair && all));
  if (fine) {
    const Operand *operand = out->operand;
    fine = is_result(&operand[0]) && is_value(&operand[1 + pair]) &&
           (!pair || is_predicate_result(&operand[1])) &&
           (operand[1 + pair].constant || operand[1 + pair].bytes == (match->wide ? 8 : 4));
    match->kind = all;
    match->d = &operand[0];
    match->p = pair ? &operand[1] : NULL;
    match->a = &operand[1 + pair];
  }
  return expect_form(decoder, statement, fine,
                     "match.any.sync.b32 or b64 d, a, mask or match.all.sync.b32 or b64 d[|p], a, "
                     "mask") &&
         are_of_types(decoder, statement, out, TYPE_U32, 1 + pair,
                      match->wide ? TYPE_B64 : TYPE_B32);
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
  FOR_EACH_LANE(lanes & (lanes - 1), lane)
  sum = reduced(kind, is_signed, sum, (uint32_t)exchange->a[lane]);
  for (int lane = 0; lane < LANES; lane++) exchange->value[lane] = sum;
}

DECODER(decode_redux) {
  static const char *const kinds[] = {"add", "min", "max", "and", "or", "xor"};
  WarpWideForm *redux = new_together(decoder, statement, out, act_redux);
  if (!redux) return false;
  int kind = -1;
  for (int i = 0; i < 6; i++)
    if (has_modifier(statement, kinds[i])) kind = i;
  redux->kind = (uint8_t)kind;
  redux->is_signed = has_modifier(statement, "s32");
  bool typed = kind >= REDUX_AND ? has_modifier(statement, "b32")
                                 : redux->is_signed || has_modifier(statement, "u32");
  bool fine = statement->modifier_count == 4 && has_modifier(statement, "sync") && kind >= 0 &&
              typed && out->operand_count == 3 && is_result(&out->operand[0]) &&
              is_value(&out->operand[1]);
  redux->d = &out->operand[0];
  redux->a = &out->operand[1];
  return expect_form(decoder, statement, fine,
                     "redux.sync.add, min or max.u32 or s32, or and, or, xor.b32 d, a, mask") &&
         are_of_types(decoder, statement, out, TYPE_U32, 1, TYPE_U32);
}

/* ---- elect.sync: the lowest lane ---- */
static void act_elect(Exchange *exchange, uint8_t kind, bool is_signed) {
  (void)kind, (void)is_signed;
  uint32_t chosen = (uint32_t)first_lane(exchange->lanes);
  for (int lane = 0; lane < LANES; lane++) exchange->value[lane] = chosen;
  exchange->predicates = 1u << chosen;
}

DECODER(decode_elect) {
  WarpWideForm *elect = new_together(decoder, statement, out, act_elect);
  if (!elect) return false;
  bool fine = statement->modifier_count == 2 && has_modifier(statement, "sync") &&
              out->operand_count == 3 && is_result(&out->operand[0]) &&
              is_predicate_result(&out->operand[1]);
  elect->d = &out->operand[0];
  elect->p = &out->operand[1];
  return expect_form(decoder, statement, fine, "elect.sync d|p, mask") &&
         are_of_types(decoder, statement, out, TYPE_U32, 0, TYPE_NONE);
}

/* ---- activemask: who runs here at this moment ---- */
static StepResult run_activemask(Warp *warp, const Instruction *in, LaneMask mask) {
  const Operand *d = &in->operand[0];
  if (d->kind == OPERAND_REGISTER) FOR_EACH_LANE(mask, lane) set_lane_value(warp, d, lane, mask);
  return STEP_NEXT;
}

DECODER(decode_activemask) {
  out->execute = run_activemask;
  return expect_form(decoder, statement,
                     statement->modifier_count == 2 && has_modifier(statement, "b32") &&
                         out->operand_count == 1 && is_result(&out->operand[0]) &&
                         out->operand[0].bytes == 4,
                     "activemask.b32 d, a 32-bit register");
}

/* ---- bar.warp.sync: a meeting at which nothing is exchanged ---- */
DECODER(decode_warp_barrier) {
  if (!new_together(decoder, statement, out, NULL)) return false;
  return expect_form(decoder, statement, statement->modifier_count == 3 && out->operand_count == 1,
                     "bar.warp.sync mask") &&
         mask_fits(decoder, statement, out);
}
