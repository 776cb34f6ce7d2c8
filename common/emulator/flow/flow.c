/* flow.c: branches, exits and the other control flow instructions. */
#include <string.h>

#include "base/events.h"
#include "base/fault.h"
#include "base/settings.h"
#include "flow/flow.h"
#include "ptx/form.h"
#include "state/cluster.h"

static unsigned frame_slot(Warp *warp) {
  const Module *module = current_group(warp)->function->module;
  return module->columns[module->frame_column].slot;
}

static uint32_t place_of(Warp *warp, const Instruction *in) {
  return (uint32_t)(in - current_group(warp)->function->code);
}

/* ---- Branches ---- */
static StepResult run_branch(Warp *warp, const Instruction *in, LaneMask mask) {
  jump_lanes(warp, mask, place_of(warp, in), in->operand[0].target);
  return STEP_JUMPED;
}

bool decode_branch(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  if (statement->modifier_count > 2 ||
      (statement->modifier_count == 2 && !has_modifier(statement, "uni")))
    return decoder_error(decoder, statement, "bra takes no modifier but .uni");
  if (out->operand_count != 1 || out->operand[0].kind != OPERAND_LABEL)
    return decoder_error(decoder, statement, "bra needs one label");
  out->execute = run_branch;
  return true;
}

/* brx.idx: lane by lane; lanes with one target go together. */
static StepResult run_indexed_branch(Warp *warp, const Instruction *in, LaneMask mask) {
  const Symbol *targets = in->decoded;
  uint32_t from = place_of(warp, in);
  while (mask) {
    int first = first_lane(mask);
    uint64_t index = (uint32_t)lane_value(warp, &in->operand[0], first);
    LaneMask together = 0;
    for (int lane = first; lane < LANES; lane++)
      if ((mask >> lane & 1) && (uint32_t)lane_value(warp, &in->operand[0], lane) == index)
        together |= 1u << lane;
    if (index >= targets->label_count)
      return fault(warp, in, together, 719, "branch-index",
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

bool decode_indexed_branch(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  for (int i = 1; i < statement->modifier_count; i++)
    if (strcmp(statement->modifiers[i], "idx") != 0 && strcmp(statement->modifiers[i], "uni") != 0)
      return decoder_error(decoder, statement, "unknown modifier .%s", statement->modifiers[i]);
  if (!out->decoded || out->operand_count != 1 || out->operand[0].kind != OPERAND_REGISTER)
    return decoder_error(decoder, statement, "brx.idx needs a register and a .branchtargets list");
  out->execute = run_indexed_branch;
  return true;
}

/* ---- Ends ---- */
/* Compilers put all returns of a kernel in one place: the branch to it counts as the return. */
static const Instruction *where_returned(Warp *warp, const Instruction *in) {
  const Group *group = current_group(warp);
  return group->place == place_of(warp, in) ? &group->function->code[group->jumped_from] : in;
}

static StepResult run_exit(Warp *warp, const Instruction *in, LaneMask mask) {
  struct WarpFlow *flow = warp->flow;
  Group *group = current_group(warp);
  emit_lanes_exit(warp, where_returned(warp, in), mask);
  emit_lanes_exited(warp, in, mask);
  if (live_lanes(warp) != mask)
    for (LaneMask left = mask; left; left &= left - 1)
      flow->exited_at[first_lane(left)] = where_returned(warp, in);
  warp->exited |= mask;
  if (mask == group->mask) {
    drop_group(flow, flow->current);
    flow->current = 0;
  } else {
    group->mask &= ~mask;
    group->place = place_of(warp, in) + 1;
  }
  /* others may be waiting for lanes of this warp, or for its registers */
  cluster_changed(warp->cta->cluster);
  if (flow->count == 0) registers_warp_exit(warp);
  barriers_thread_exit(warp, mask);
  return STEP_JUMPED;
}

static StepResult run_trap(Warp *warp, const Instruction *in, LaneMask mask) {
  return fault(warp, in, mask, 719, "trap", "the kernel ended itself with a trap instruction");
}

static bool decode_plain(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                         Execute execute) {
  for (int i = 1; i < statement->modifier_count; i++)
    if (strcmp(statement->modifiers[i], "uni") != 0)
      return decoder_error(decoder, statement, "unknown modifier .%s", statement->modifiers[i]);
  if (out->operand_count)
    return decoder_error(decoder, statement, "%s takes no operands", statement->opcode);
  out->execute = execute;
  return true;
}
bool decode_exit(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_plain(decoder, statement, out, run_exit);
}
bool decode_trap(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_plain(decoder, statement, out, run_trap);
}

/* In an entry, ret is exit. */
static StepResult run_return(Warp *warp, const Instruction *in, LaneMask mask) {
  return current_group(warp)->frame ? return_lanes(warp, place_of(warp, in), mask)
                                    : run_exit(warp, in, mask);
}
bool decode_return(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_plain(decoder, statement, out, run_return);
}

/* ---- alloca: from the top of .local memory down, released when the function returns ----
 */
static StepResult run_alloca(Warp *warp, const Instruction *in, LaneMask mask) {
  uint32_t alignment = in->operand_count > 2 ? (uint32_t)in->operand[2].constant_value : 8;
  for (int lane = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    uint32_t *top = &warp->flow->stack_top[lane];
    uint64_t bytes = lane_value(warp, &in->operand[1], lane);
    uint64_t used =
        current_group(warp)->function->frame_bytes + column_u64(warp, frame_slot(warp))[lane];
    if (used > *top || bytes > *top - used)
      return fault(warp, in, 1u << lane, 719, "stack-overflow",
                   "alloca of %llu bytes, but %llu are left for this thread",
                   (unsigned long long)bytes, (unsigned long long)(used < *top ? *top - used : 0));
    *top = (uint32_t)(*top - bytes) & ~(alignment - 1);
    set_lane_value(warp, &in->operand[0], lane, *top);
  }
  return STEP_NEXT;
}
static StepResult run_stacksave(Warp *warp, const Instruction *in, LaneMask mask) {
  for (int lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) set_lane_value(warp, &in->operand[0], lane, warp->flow->stack_top[lane]);
  return STEP_NEXT;
}
static StepResult run_stackrestore(Warp *warp, const Instruction *in, LaneMask mask) {
  for (int lane = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    uint64_t top = lane_value(warp, &in->operand[0], lane);
    if (top < warp->flow->stack_top[lane] || top > warp->local_bytes)
      return fault(warp, in, 1u << lane, 719, "stack-overflow",
                   "stackrestore to 0x%llx, which no stacksave has given", (unsigned long long)top);
    warp->flow->stack_top[lane] = (uint32_t)top;
  }
  return STEP_NEXT;
}
bool decode_stack(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  bool allocates = strcmp(statement->modifiers[0], "alloca") == 0;
  uint32_t count = out->operand_count;
  bool fine = statement->modifier_count == 2 &&
              (has_modifier(statement, "u32") || has_modifier(statement, "u64")) &&
              (allocates ? count == 2 || count == 3 : count == 1);
  for (uint32_t i = 0; fine && i < count; i++) fine = out->operand[i].kind == OPERAND_REGISTER;
  if (fine && count == 1) fine = !out->operand[0].constant && !out->operand[0].variable;
  if (fine && count == 3) {
    uint64_t alignment = out->operand[2].constant_value;
    fine = out->operand[2].constant && alignment && alignment <= 4096 &&
           !(alignment & (alignment - 1));
  }
  if (!fine)
    return decoder_error(decoder, statement,
                         "expected alloca.u64 with an address, a size and an alignment, or "
                         "stacksave.u64 or stackrestore.u64 with a register");
  Form form = form_begin(decoder, statement, out, 1);
  Type type = has_modifier(statement, "u64") ? TYPE_U64 : TYPE_U32;
  bool restores = strcmp(statement->modifiers[0], "stackrestore") == 0;
  if (!restores) form_destination(&form, 0, type);
  if (!form_numbers(&form, restores ? 0 : 1, restores ? 1 : allocates, type)) return false;
  out->execute = allocates                                           ? run_alloca
                 : strcmp(statement->modifiers[0], "stacksave") == 0 ? run_stacksave
                                                                     : run_stackrestore;
  return true;
}

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
bool decode_nanosleep(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  if (statement->modifier_count != 2 || !has_modifier(statement, "u32") ||
      out->operand_count != 1 || out->operand[0].kind != OPERAND_REGISTER)
    return decoder_error(decoder, statement, "expected nanosleep.u32 with one operand");
  Form form = form_begin(decoder, statement, out, 1);
  if (!form_numbers(&form, 0, 1, TYPE_U32)) return false;
  out->execute = run_nanosleep;
  return true;
}

/* Grids run one after the other, so the effects of earlier ones are already visible. Only the
 * checker needs to know. */
static StepResult run_dependency(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)mask;
  emit_dependency(warp, in->decoded != NULL);
  return STEP_NEXT;
}
bool decode_dependency(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  if (statement->modifier_count != 2 ||
      !(has_modifier(statement, "wait") || has_modifier(statement, "launch_dependents")))
    return decoder_error(decoder, statement,
                         "expected griddepcontrol.wait or griddepcontrol.launch_dependents");
  out->execute = run_dependency;
  static const bool WAITS = true;
  out->decoded = has_modifier(statement, "wait") ? &WAITS : NULL;
  return out->operand_count == 0 ||
         decoder_error(decoder, statement, "griddepcontrol takes no operands");
}
bool decode_texture(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  (void)out;
  return decoder_error(decoder, statement,
                       "textures and surfaces are not emulated: read plain memory instead");
}
bool decode_multimem(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  (void)out;
  return decoder_error(decoder, statement,
                       "multicast addresses of several GPUs are not emulated: there is one device");
}
