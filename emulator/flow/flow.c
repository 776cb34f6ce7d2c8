/* flow.c: branches, exits and the other control flow instructions. */

#include "base/events.h"
#include "base/fault.h"
#include "flow/flow.h"
#include "ptx/form.h"
#include "state/cluster.h"

static uint32_t place_in_function(Warp *warp, const Instruction *in) {
  return (uint32_t)(in - current_group(warp)->function->code);
}

/* ---- Branches ---- */
static StepResult run_branch(Warp *warp, const Instruction *in, LaneMask mask) {
  jump_lanes(warp, mask, place_in_function(warp, in), in->operand[0].target);
  return STEP_JUMPED;
}

FORM_DECODER(decode_branch, 1) {
  form_take(&form, "uni");
  if (out->operand_count != 1 || out->operand[0].kind != OPERAND_LABEL)
    return form_fail(&form, "bra needs one label");
  return form_end(&form, run_branch);
}

/* brx.idx: lane by lane; lanes with one target go together. */
static StepResult run_indexed_branch(Warp *warp, const Instruction *in, LaneMask mask) {
  const Symbol *targets = in->decoded;
  uint32_t from = place_in_function(warp, in);
  while (mask) {
    int first = first_lane(mask);
    uint64_t index = (uint32_t)lane_value(warp, &in->operand[0], first);
    LaneMask together = 0;
    for (int lane = first; lane < LANES; lane++)
      if ((mask >> lane & 1) && (uint32_t)lane_value(warp, &in->operand[0], lane) == index)
        together |= 1u << lane;
    if (index >= targets->label_count)
      return fault(warp, in, together, 719, RULE(BRANCH_INDEX),
                   "brx.idx with index %llu, but its list has %u targets",
                   (unsigned long long)index, targets->label_count);
    LaneMask rest = current_group(warp)->mask & ~together;
    if (rest && mask != together) { /* the remaining lanes stay at this instruction */
      note_split(warp->flow, current_group(warp), together, from, targets->labels[index]);
      Group *jumping = split_group(warp->flow, together);
      jumping->place = targets->labels[index];
    } else {
      jump_lanes(warp, together, from, targets->labels[index]);
    }
    mask &= ~together;
  }
  return STEP_JUMPED;
}

FORM_DECODER(decode_indexed_branch, 1) {
  form_take(&form, "idx");
  form_take(&form, "uni");
  if (!out->decoded || out->operand_count != 1 || out->operand[0].kind != OPERAND_REGISTER)
    return form_fail(&form, "brx.idx needs a register and a .branchtargets list");
  return form_end(&form, run_indexed_branch);
}

/* ---- Ends ---- */
/* Compilers put all returns of a kernel in one place: the branch to it counts as the return. */
static const Instruction *where_returned(Warp *warp, const Instruction *in) {
  const Group *group = current_group(warp);
  return group->place == place_in_function(warp, in) ? &group->function->code[group->jumped_from]
                                                     : in;
}

static StepResult run_exit(Warp *warp, const Instruction *in, LaneMask mask) {
  struct WarpFlow *flow = warp->flow;
  Group *group = current_group(warp);
  emit_lanes_exit(warp, in, where_returned(warp, in), mask);
  if (live_lanes(warp) != mask)
    FOR_LANES(lane, mask) flow->exited_at[lane] = where_returned(warp, in);
  warp->exited |= mask;
  if (mask == group->mask) {
    drop_group(flow, flow->current);
    flow->current = 0;
  } else {
    group->mask &= ~mask;
    group->place = place_in_function(warp, in) + 1;
  }
  /* others may be waiting for lanes of this warp, or for its registers */
  cluster_changed(warp->cta->cluster);
  if (flow->count == 0) registers_warp_exit(warp);
  barriers_thread_exit(warp, mask);
  return STEP_JUMPED;
}

static StepResult run_trap(Warp *warp, const Instruction *in, LaneMask mask) {
  return fault(warp, in, mask, 719, RULE(TRAP), "the kernel ended itself with a trap instruction");
}

static bool decode_plain(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                         Execute execute) {
  Form form = form_begin(decoder, statement, out, 1);
  form_take(&form, "uni");
  return form_operands(&form, 0, 0) && form_end(&form, execute);
}
DECODER(decode_exit) { return decode_plain(decoder, statement, out, run_exit); }
DECODER(decode_trap) { return decode_plain(decoder, statement, out, run_trap); }

/* In an entry, ret is exit. */
static StepResult run_return(Warp *warp, const Instruction *in, LaneMask mask) {
  return current_group(warp)->frame ? return_lanes(warp, place_in_function(warp, in), mask)
                                    : run_exit(warp, in, mask);
}
DECODER(decode_return) { return decode_plain(decoder, statement, out, run_return); }

/* ---- Time and registers ---- */
static StepResult run_nanosleep(Warp *warp, const Instruction *in, LaneMask mask) {
  uint64_t longest = 0;
  for (int lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) {
      uint64_t time = (uint32_t)lane_value(warp, &in->operand[0], lane);
      if (time > longest) longest = time;
    }
  warp->cta->cluster->flow->extra_time += longest * 2 / warp->cta->warp_count;
  return STEP_YIELD;
}
FORM_DECODER(decode_nanosleep, 1) {
  if (form_type(&form) != TYPE_U32) return form_fail(&form, "nanosleep is .u32");
  return form_operands(&form, 1, 1) && form_numbers(&form, 0, 1, TYPE_U32) &&
         form_end(&form, run_nanosleep);
}

/* Grids run one after the other, so the effects of earlier ones are already visible. Only the
 * checker needs to know. */
static StepResult run_dependency(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)mask;
  emit_dependency(warp, in->decoded != NULL);
  return STEP_NEXT;
}
FORM_DECODER(decode_dependency, 1) {
  static const bool WAITS = true;
  if (form_take(&form, "wait"))
    out->decoded = &WAITS;
  else if (!form_take(&form, "launch_dependents"))
    return form_fail(&form, "griddepcontrol is .wait or .launch_dependents");
  return form_operands(&form, 0, 0) && form_end(&form, run_dependency);
}
