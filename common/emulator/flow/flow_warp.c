/* flow_warp.c: instructions in which the lanes of a warp work together: votes, shuffles, matches,
 * reductions, elections, and the warp's own barrier. Each names its lanes in a mask; it happens
 * when all of those that have not exited stand at it. */
#include <string.h>

#include "checker/checker.h"
#include "ptx/form.h"
#include "flow/flow.h"

#define FOR_EACH_LANE(mask, lane)                                                  \
  for (LaneMask left_##lane = (mask); left_##lane; left_##lane &= left_##lane - 1) \
    for (int lane = first_lane(left_##lane), once_##lane = 1; once_##lane; once_##lane = 0)

typedef struct {
  const Operand *d, *p; /* results; NULL or a sink: not wanted */
  const Operand *a, *b, *c;
  const Operand *members;
  void (*act)(Warp *warp, const Instruction *in, LaneMask lanes);
  uint8_t kind;
  bool is_signed, wide;
} Together;

static uint32_t value_u32(const Warp *warp, const Operand *operand, int lane) {
  return (uint32_t)lane_value(warp, operand, lane);
}

/* Lanes of the mask that name the same members, and whether all of them are here. */
static StepResult run_together(Warp *warp, const Instruction *in, LaneMask mask) {
  const Together *together = in->decoded;
  LaneMask live = live_lanes(warp);
  int first = first_lane(mask);
  LaneMask members = value_u32(warp, together->members, first);
  if (together->members->constant && (members & live) == mask) {
    together->act(warp, in, mask);
    return STEP_NEXT;
  }
  LaneMask done = 0;
  for (LaneMask left = mask; left;) {
    first = first_lane(left);
    members = value_u32(warp, together->members, first);
    LaneMask same = 0;
    FOR_EACH_LANE(left, lane)
    if (value_u32(warp, together->members, lane) == members) same |= 1u << lane;
    left &= ~same;
    if (same & ~members) {
      finding(
          warp, in, same & ~members, "membermask",
          "a thread executes this with the member mask 0x%08x, which does not name it: name all "
          "threads that execute it together, and no others",
          members);
      members |= same;
    }
    if ((members & live) != same) continue;
    together->act(warp, in, same);
    done |= same;
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

static Together *new_together(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                              void (*act)(Warp *, const Instruction *, LaneMask)) {
  Together *together = decoder_allocate(decoder, sizeof *together);
  together->act = act;
  out->decoded = together;
  out->execute = run_together;
  if (out->operand_count == 0) {
    decoder_error(decoder, statement, "operands are missing");
    return NULL;
  }
  together->members = &out->operand[out->operand_count - 1];
  if (together->members->kind != OPERAND_REGISTER) {
    decoder_error(decoder, statement, "the last operand must be the member mask");
    return NULL;
  }
  return together;
}

static bool wants(Decoder *decoder, const PtxStatement *statement, bool fine, const char *form) {
  return fine || decoder_error(decoder, statement, "expected %s", form);
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

static LaneMask predicate_of(const Warp *warp, const Operand *operand) {
  if (operand->kind != OPERAND_PREDICATE) return operand->constant_value ? ~0u : 0u;
  LaneMask value = warp->predicates[operand->slot];
  return operand->negated ? ~value : value;
}

static void set_predicates(Warp *warp, const Operand *operand, LaneMask lanes, LaneMask value) {
  if (!operand || operand->kind != OPERAND_PREDICATE) return;
  LaneMask *predicate = &warp->predicates[operand->slot];
  *predicate = (*predicate & ~lanes) | (value & lanes);
}

static void set_values(Warp *warp, const Operand *operand, LaneMask lanes, uint64_t value) {
  if (!operand || operand->kind != OPERAND_REGISTER) return;
  FOR_EACH_LANE(lanes, lane) set_lane_value(warp, operand, lane, value);
}

/* ---- vote.sync ---- */
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };

static void act_vote(Warp *warp, const Instruction *in, LaneMask lanes) {
  const Together *vote = in->decoded;
  LaneMask yes = predicate_of(warp, vote->a) & lanes;
  switch (vote->kind) {
    case VOTE_ALL:
      set_predicates(warp, vote->d, lanes, yes == lanes ? ~0u : 0u);
      break;
    case VOTE_ANY:
      set_predicates(warp, vote->d, lanes, yes ? ~0u : 0u);
      break;
    case VOTE_UNI:
      set_predicates(warp, vote->d, lanes, yes == lanes || !yes ? ~0u : 0u);
      break;
    default:
      set_values(warp, vote->d, lanes, yes);
      break;
  }
}

bool decode_vote(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const char *const kinds[] = {"all", "any", "uni", "ballot"};
  Together *vote = new_together(decoder, statement, out, act_vote);
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
  vote->d = &out->operand[0];
  vote->a = &out->operand[1];
  return wants(decoder, statement, fine,
               "vote.sync.all, any or uni.pred p, a, mask or vote.sync.ballot.b32 d, a, mask");
}

/* ---- shfl.sync ---- */
enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };

static void act_shuffle(Warp *warp, const Instruction *in, LaneMask lanes) {
  const Together *shuffle = in->decoded;
  uint32_t source[LANES], result[LANES];
  LaneMask valid = 0;
  memcpy(source, column_u32(warp, shuffle->a->slot), sizeof source);
  if (shuffle->a->bytes == 8) /* a literal */
    for (int lane = 0; lane < LANES; lane++) source[lane] = (uint32_t)shuffle->a->constant_value;
  for (int lane = 0; lane < LANES; lane++) {
    int b = (int)(value_u32(warp, shuffle->b, lane) & 31u);
    uint32_t c = value_u32(warp, shuffle->c, lane);
    int limit = (int)(c & 31u), segment = (int)(c >> 8 & 31u);
    int last = (lane & segment) | (limit & ~segment), first = lane & segment;
    int from;
    bool inside;
    switch (shuffle->kind) {
      case SHUFFLE_UP:
        from = lane - b, inside = from >= last;
        break;
      case SHUFFLE_DOWN:
        from = lane + b, inside = from <= last;
        break;
      case SHUFFLE_BUTTERFLY:
        from = lane ^ b, inside = from <= last;
        break;
      default:
        from = first | (b & ~segment), inside = from <= last;
        break;
    }
    if (!inside) from = lane;
    if (inside) valid |= 1u << lane;
    /* a lane that takes no part has no defined value; an H200 gives 0 */
    result[lane] = lanes >> (from & 31) & 1 ? source[from & 31] : 0;
  }
  if (shuffle->d->kind == OPERAND_REGISTER) {
    uint32_t *column = column_u32(warp, shuffle->d->slot);
    for (int lane = 0; lane < LANES; lane++)
      column[lane] = lanes >> lane & 1 ? result[lane] : column[lane];
  }
  set_predicates(warp, shuffle->p, lanes, valid);
}

bool decode_shuffle(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const char *const kinds[] = {"up", "down", "bfly", "idx"};
  Together *shuffle = new_together(decoder, statement, out, act_shuffle);
  if (!shuffle) return false;
  int kind = -1;
  for (int i = 0; i < 4; i++)
    if (has_modifier(statement, kinds[i])) kind = i;
  int pair = out->operand_count == 6;
  bool fine = statement->modifier_count == 4 && has_modifier(statement, "sync") && kind >= 0 &&
              has_modifier(statement, "b32") && (out->operand_count == 5 || pair);
  if (fine) {
    const Operand *operand = out->operand;
    fine = is_result(&operand[0]) && (!pair || is_predicate_result(&operand[1])) &&
           is_value(&operand[1 + pair]) && is_value(&operand[2 + pair]) &&
           is_value(&operand[3 + pair]);
    fine = fine && (operand[0].bytes == 4 || operand[0].kind == OPERAND_SINK) &&
           (operand[1 + pair].bytes == 4 || operand[1 + pair].constant);
    shuffle->kind = (uint8_t)kind;
    shuffle->d = &operand[0];
    shuffle->p = pair ? &operand[1] : NULL;
    shuffle->a = &operand[1 + pair];
    shuffle->b = &operand[2 + pair];
    shuffle->c = &operand[3 + pair];
  }
  return wants(decoder, statement, fine,
               "shfl.sync.up, down, bfly or idx.b32 d[|p], a, b, c, mask with 32-bit registers");
}

/* ---- match.sync ---- */
static void act_match(Warp *warp, const Instruction *in, LaneMask lanes) {
  const Together *match = in->decoded;
  uint64_t cut = match->wide ? UINT64_MAX : UINT32_MAX;
  if (match->kind) { /* all */
    uint64_t value = lane_value(warp, match->a, first_lane(lanes)) & cut;
    bool equal = true;
    FOR_EACH_LANE(lanes, lane) equal &= (lane_value(warp, match->a, lane) & cut) == value;
    set_values(warp, match->d, lanes, equal ? lanes : 0);
    set_predicates(warp, match->p, lanes, equal ? ~0u : 0u);
    return;
  }
  LaneMask result[LANES] = {0};
  for (LaneMask left = lanes; left;) {
    uint64_t value = lane_value(warp, match->a, first_lane(left)) & cut;
    LaneMask same = 0;
    FOR_EACH_LANE(left, lane)
    if ((lane_value(warp, match->a, lane) & cut) == value) same |= 1u << lane;
    FOR_EACH_LANE(same, lane) result[lane] = same;
    left &= ~same;
  }
  if (match->d->kind == OPERAND_REGISTER)
    FOR_EACH_LANE(lanes, lane) set_lane_value(warp, match->d, lane, result[lane]);
}

bool decode_match(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Together *match = new_together(decoder, statement, out, act_match);
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
           (!pair || is_predicate_result(&operand[1]));
    match->kind = all;
    match->d = &operand[0];
    match->p = pair ? &operand[1] : NULL;
    match->a = &operand[1 + pair];
  }
  return wants(decoder, statement, fine,
               "match.any.sync.b32 or b64 d, a, mask or match.all.sync.b32 or b64 d[|p], a, mask");
}

/* ---- redux.sync ---- */
enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };

static void act_redux(Warp *warp, const Instruction *in, LaneMask lanes) {
  const Together *redux = in->decoded;
  uint32_t sum = value_u32(warp, redux->a, first_lane(lanes));
  FOR_EACH_LANE(lanes & (lanes - 1), lane) {
    uint32_t value = value_u32(warp, redux->a, lane);
    bool less = redux->is_signed ? (int32_t)value < (int32_t)sum : value < sum;
    switch (redux->kind) {
      case REDUX_ADD:
        sum += value;
        break;
      case REDUX_MIN:
        sum = less ? value : sum;
        break;
      case REDUX_MAX:
        sum = less ? sum : value;
        break;
      case REDUX_AND:
        sum &= value;
        break;
      case REDUX_OR:
        sum |= value;
        break;
      default:
        sum ^= value;
        break;
    }
  }
  set_values(warp, redux->d, lanes, sum);
}

bool decode_redux(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const char *const kinds[] = {"add", "min", "max", "and", "or", "xor"};
  Together *redux = new_together(decoder, statement, out, act_redux);
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
  return wants(decoder, statement, fine,
               "redux.sync.add, min or max.u32 or s32, or and, or, xor.b32 d, a, mask");
}

/* ---- elect.sync: the lowest lane ---- */
static void act_elect(Warp *warp, const Instruction *in, LaneMask lanes) {
  const Together *elect = in->decoded;
  int chosen = first_lane(lanes);
  set_values(warp, elect->d, lanes, (uint32_t)chosen);
  set_predicates(warp, elect->p, lanes, 1u << chosen);
}

bool decode_elect(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Together *elect = new_together(decoder, statement, out, act_elect);
  if (!elect) return false;
  bool fine = statement->modifier_count == 2 && has_modifier(statement, "sync") &&
              out->operand_count == 3 && is_result(&out->operand[0]) &&
              is_predicate_result(&out->operand[1]);
  elect->d = &out->operand[0];
  elect->p = &out->operand[1];
  return wants(decoder, statement, fine, "elect.sync d|p, mask");
}

/* ---- activemask: who runs here at this moment ---- */
static StepResult run_activemask(Warp *warp, const Instruction *in, LaneMask mask) {
  set_values(warp, &in->operand[0], mask, mask);
  return STEP_NEXT;
}

bool decode_activemask(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  out->execute = run_activemask;
  return wants(decoder, statement,
               statement->modifier_count == 2 && has_modifier(statement, "b32") &&
                   out->operand_count == 1 && is_result(&out->operand[0]),
               "activemask.b32 d");
}

/* ---- bar.warp.sync: the only one whose lanes may wait at different places ---- */
static StepResult run_warp_barrier(Warp *warp, const Instruction *in, LaneMask mask) {
  LaneMask live = live_lanes(warp);
  LaneMask members = value_u32(warp, &in->operand[0], first_lane(mask));
  LaneMask missing = members & live & ~mask;
  if (mask & ~members)
    finding(
        warp, in, mask & ~members, "membermask",
        "a thread executes bar.warp.sync (__syncwarp) with the mask 0x%08x, which does not name "
        "it",
        members);
  if (missing) { /* they may wait at another bar.warp.sync */
    struct WarpFlow *flow = warp->flow;
    LaneMask found = 0;
    for (uint32_t i = 0; i < flow->count; i++) {
      const Group *group = &flow->groups[i];
      if (i != flow->current && group->state == GROUP_BLOCKED && !(group->mask & ~members) &&
          group->function->code[group->place].execute == run_warp_barrier)
        found |= group->mask;
    }
    if (missing & ~found) return STEP_BLOCKED;
    for (uint32_t i = 0; i < flow->count; i++) {
      Group *group = &flow->groups[i];
      if (i == flow->current || !(group->mask & missing)) continue;
      if (settings()->check)
        check_warp_sync(warp, &group->function->code[group->place], group->mask);
      group->place++;
      group->state = GROUP_READY;
    }
  }
  if (settings()->check) check_warp_sync(warp, in, mask);
  return STEP_NEXT;
}

bool decode_warp_barrier(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  out->execute = run_warp_barrier;
  return wants(
      decoder, statement,
      statement->modifier_count == 3 && out->operand_count == 1 && is_value(&out->operand[0]),
      "bar.warp.sync mask");
}
