/* flow_registers.c: setmaxnreg, which moves registers between the warps of a block.
 *
 * A block gets as many registers for each thread as its kernel was compiled for, and warps give
 * some back (.dec) or ask for more (.inc), which waits until there are enough. Only ptxas knows the
 * number that the kernel was compiled for. We assume the maximum that its bounds (.maxnreg,
 * .maxntid) allow, and do not limit kernels without bounds. */
#include <stdio.h>

#include "base/fault.h"
#include "flow/flow.h"
#include "ptx/form.h"
#include "state/groups.h"
#include "state/notes.h"

enum { KEPT = sizeof((struct WarpFlow *)0)->register_limits / sizeof(int16_t) };

static uint32_t registers_of_a_thread(const Launch *launch) {
  const Function *kernel = launch->kernel;
  uint32_t most = 0;
  if (kernel->declared_threads) {
    uint32_t ctas = kernel->minimum_ctas ? kernel->minimum_ctas : 1;
    most = CHIP_REGISTERS / ctas / kernel->declared_threads & ~7u;
  }
  if (kernel->most_registers && (!most || kernel->most_registers < most))
    most = (kernel->most_registers + 7) & ~7u;
  return most;
}

/* The registers of each thread of a warp. */
static uint32_t limit_of(const Warp *warp, uint32_t at_start) {
  const struct WarpFlow *flow = warp->flow;
  if (flow->register_changes == 0) return at_start;
  int limit = flow->register_limits[(flow->register_changes - 1) % KEPT];
  return (uint32_t)(limit < 0 ? -limit : limit);
}

typedef struct {
  uint32_t in_all, of_ended; /* of_ended: by warps that have ended, without what they gave back */
} Held;

/* The registers that the other warps of the block hold. A warp that ends keeps its own, and what
 * one warp gives back counts when its whole warpgroup has: both hang on an H100. */
static Held held_by_others(const Warp *warp, uint32_t at_start) {
  const Cta *cta = warp->cta;
  Held held = {0, 0};
  for (uint32_t i = 0; i < cta->warp_count; i++) {
    if (i == warp->index) continue;
    uint32_t most = 0;
    for (uint32_t k = i & ~3u; k < cta->warp_count && k <= (i | 3u); k++) {
      uint32_t limit = k == warp->index ? 0 : limit_of(&cta->warps[k], at_start);
      most = limit > most ? limit : most;
    }
    held.in_all += most * LANES;
    if (cta->warps[i].flow->count == 0) held.of_ended += most * LANES;
  }
  return held;
}

static bool must_wait(const Warp *warp, uint32_t count) {
  uint32_t at_start = registers_of_a_thread(warp->cta->cluster->launch);
  if (at_start == 0) return false;
  return held_by_others(warp, at_start).in_all + count * LANES >
         at_start * warp->cta->warp_count * LANES;
}

/* The four warps of a warpgroup must execute the same ones in the same order: each warp remembers
 * its last few and compares them with those of the other warps. */
static void compare_with_others(Warp *warp, const Instruction *in, LaneMask mask) {
  const Cta *cta = warp->cta;
  const uint32_t number = warp->flow->register_changes - 1;
  const int limit = warp->flow->register_limits[number % KEPT];
  for (uint32_t i = warp->index & ~3u; i < cta->warp_count && i <= (warp->index | 3u); i++) {
    const struct WarpFlow *other = cta->warps[i].flow;
    if (other->register_changes <= number || other->register_changes - number > KEPT) continue;
    const int other_changes = other->register_limits[number % KEPT];
    if (other_changes == limit) continue;
    finding(warp, in, mask, RULE(SETMAXNREG_DISAGREES),
            "warp %u executes setmaxnreg.%s %d where warp %u of the same warpgroup executed "
            "setmaxnreg.%s %d; all four warps (%u to %u) must execute the same one: branch on the "
            "warpgroup, threadIdx.x / 128, and not on the warp",
            warp->index, limit < 0 ? "dec" : "inc", limit < 0 ? -limit : limit, i,
            other_changes < 0 ? "dec" : "inc", other_changes < 0 ? -other_changes : other_changes,
            warp->index & ~3u, warp->index | 3u);
    return;
  }
}

void registers_warp_exit(Warp *warp) {
  const Cta *cta = warp->cta;
  for (uint32_t i = warp->index & ~3u; i < cta->warp_count && i <= (warp->index | 3u); i++) {
    Warp *other = &cta->warps[i];
    uint32_t own_changes = warp->flow->register_changes,
             other_changes = other->flow->register_changes;
    if (other->flow->count || own_changes == other_changes) continue;
    Warp *more = own_changes > other_changes ? warp : other;
    finding(more, more->flow->register_change, more->lanes, RULE(SETMAXNREG_DISAGREES),
            "warp %u had executed %u setmaxnreg when it ended, and warp %u of the same warpgroup "
            "%u; all four warps (%u to %u) must execute the same ones: branch on the warpgroup, "
            "threadIdx.x / 128, and not on the warp or thread",
            warp->index, own_changes, i, other_changes, warp->index & ~3u, warp->index | 3u);
    return;
  }
}

static StepResult run_setmaxnreg(Warp *warp, const Instruction *in, LaneMask mask) {
  struct WarpFlow *flow = warp->flow;
  const int count = (int)in->operand[0].constant_value;
  const bool down = in->decoded != NULL;
  if (!down && must_wait(warp, (uint32_t)count)) return STEP_BLOCKED;
  flow->register_limits[flow->register_changes++ % KEPT] = (int16_t)(down ? -count : count);
  flow->register_change = in;
  note(down ? NOTE_RELEASE : NOTE_ACQUIRE, &warp->cta->warps, 0);
  if (down) cluster_changed(warp->cta->cluster);
  compare_with_others(warp, in, mask);
  return STEP_NEXT;
}

/* It holds what it began with, and does not ask for more. */
static bool gives_nothing(const Warp *warp) {
  const struct WarpFlow *flow = warp->flow;
  if (flow->register_changes) return false;
  for (uint32_t i = 0; i < flow->count; i++)
    if (flow->groups[i].function->code[flow->groups[i].place].execute == run_setmaxnreg)
      return false;
  return true;
}

static void describe_givers(const Cta *cta, FILE *out) {
  const char *before = "      no setmaxnreg yet by warps ";
  for (uint32_t i = 0, last; i < cta->warp_count; i = last + 1) {
    last = i;
    if (!gives_nothing(&cta->warps[i])) continue;
    while (last + 1 < cta->warp_count && gives_nothing(&cta->warps[last + 1])) last++;
    fprintf(out, last > i ? "%s%u-%u" : "%s%u", before, i, last);
    before = ", ";
  }
  if (before[0] == ',') fprintf(out, "\n");
}

bool registers_describe_wait(const Warp *warp, const Instruction *in, FILE *out) {
  if (in->execute != run_setmaxnreg) return false;
  uint32_t at_start = registers_of_a_thread(warp->cta->cluster->launch);
  uint32_t warps = warp->cta->warp_count, count = (uint32_t)in->operand[0].constant_value;
  if (!out) return true;
  const Held held = held_by_others(warp, at_start);
  fprintf(out,
          "      waits for registers: %u for each of its threads, and the block has %u for each of "
          "its %u, %u in all, of which the other warps hold %u\n",
          count, at_start, warps * LANES, at_start * warps * LANES, held.in_all);
  if (held.of_ended)
    fprintf(
        out,
        "      %u of these belong to warps that have ended: only setmaxnreg.dec gives registers "
        "back, by all four warps of a warpgroup, and an exit does not\n",
        held.of_ended);
  describe_givers(warp->cta, out);
  fprintf(out,
          "      likely cause: the limits of all warps together exceed what the block has, or a "
          "setmaxnreg.dec is missing, before the warps that need few registers go their way\n");
  return true;
}

FORM_DECODER(decode_setmaxnreg, 1) {
  bool up = form_take(&form, "inc"), down = !up && form_take(&form, "dec");
  if (!(up || down) || !form_take(&form, "sync") || !form_take(&form, "aligned") ||
      !form_take(&form, "u32"))
    return form_fail(&form, "setmaxnreg is .inc or .dec, .sync.aligned.u32");
  if (out->operand_count != 1 || !out->operand[0].constant)
    return form_fail(&form, "setmaxnreg needs a number as its operand");
  uint64_t count = out->operand[0].constant_value;
  if (count < 24 || count > 256 || count % 8)
    return form_fail(&form,
                     "setmaxnreg with %llu registers: must be a multiple of 8 from 24 to 256",
                     (unsigned long long)count);
  static const bool is_down = true;
  out->decoded = down ? &is_down : NULL;
  return form_end(&form, run_setmaxnreg);
}
