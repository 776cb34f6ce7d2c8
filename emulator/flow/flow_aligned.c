/* flow_aligned.c: .aligned instructions, which all threads of a warp must execute together.
 *
 * ptxas makes a warp wait before them until all of its threads that have not exited are there. So
 * threads at two different ones wait for each other for ever, and threads that go around one and
 * exit let the others pass: an H100 did both (emulator/tests/recorded/divided_warps.txt). Which of
 * the two a mistake becomes is for the compiler to decide: an unrolled loop is enough. A thread that
 * returns before the others come to a barrier is no mistake: on chips since Volta a barrier waits
 * for the threads that have not exited. What distinguishes it is that its way and the others' do not
 * join any more. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/settings.h"
#include "flow/flow.h"
#include "state/groups.h"

bool whole_warp_is_here(Warp *warp, const Instruction *in, LaneMask mask) {
  struct WarpFlow *flow = warp->flow;
  Group *own = current_group(warp);
  LaneMask live = live_lanes(warp), here = own->mask;
  if (here == live || own->met || mask != here) { /* a guard keeps the rest: they do not come */
    own->met = false;
    return true;
  }
  /* Lanes with another call stack do not merge, but they are here. */
  for (uint32_t i = 0; i < flow->count; i++) {
    const Group *other = &flow->groups[i];
    if (other->state == GROUP_BLOCKED && !other->arrived &&
        &other->function->code[other->place] == in)
      here |= other->mask;
  }
  if (here != live) return false;
  for (uint32_t i = 0; i < flow->count; i++) {
    Group *other = &flow->groups[i];
    if (other == own || &other->function->code[other->place] != in || other->arrived) continue;
    other->met = true;
    other->state = GROUP_READY;
  }
  return true;
}

/* ---- Ways through a function ---- */
enum { BY_THE_OTHERS = 1, BY_THOSE_WHO_STAY = 2 };

typedef struct {
  const Function *function;
  uint8_t *seen;   /* of each instruction, who can come to it */
  uint32_t *queue; /* instructions whose successors are to be looked at */
  uint32_t count;
} Ways;

static void come_to(Ways *ways, uint32_t place, uint8_t who) {
  if (place >= ways->function->count || ways->seen[place] & who) return;
  ways->seen[place] |= who;
  ways->queue[ways->count++] = place;
}

/* All places that can be reached from this one; at `stop` the way ends. */
static void follow_ways(Ways *ways, uint32_t from, uint32_t stop, uint8_t who) {
  ways->count = 0;
  come_to(ways, from, who);
  while (ways->count) {
    uint32_t place = ways->queue[--ways->count];
    const Instruction *in = &ways->function->code[place];
    if (place == stop) continue;
    if (in->traits & JUMPS) come_to(ways, in->operand[0].target, who);
    if (in->traits & JUMPS_BY_LIST) {
      const Symbol *targets = in->decoded;
      for (uint32_t i = 0; i < targets->label_count; i++) come_to(ways, targets->labels[i], who);
    }
    if (!(in->traits & ENDS_BLOCK) || in->guard >= 0) come_to(ways, place + 1, who);
  }
}

/* Lanes part at a branch. Some come to `place`. Do the others go around it, to something that those
 * come to after it? The end of the function does not count. */
static bool ways_join(const Function *function, uint32_t branch, uint32_t others_at,
                      uint32_t place) {
  Ways ways = {function, new_zeros(function->count + 1u, 1),
               need_memory(malloc((function->count + 1u) * sizeof(uint32_t))), 0};
  bool join = false;
  follow_ways(&ways, others_at, branch, BY_THE_OTHERS);
  if (!(ways.seen[place] & BY_THE_OTHERS)) {
    follow_ways(&ways, place, UINT32_MAX, BY_THOSE_WHO_STAY);
    for (uint32_t i = 0; i < function->count && !join; i++)
      join = ways.seen[i] == (BY_THE_OTHERS | BY_THOSE_WHO_STAY) &&
             !(function->code[i].traits & ENDS_BLOCK && function->code[i].guard < 0);
  }
  free(ways.seen);
  free(ways.queue);
  return join;
}

/* Where a group is in the function and call in which lanes have parted. False: it has left it. */
static bool place_in_call(const Group *group, const Instruction *in, const Split *split,
                          uint32_t *place) {
  if (group->function == split->function && group->frame == split->frame) {
    *place = (uint32_t)(in - group->function->code);
    return true;
  }
  for (const Frame *frame = group->frame; frame; frame = frame->parent)
    if (frame->caller == split->function && frame->parent == split->frame) {
      *place = frame->return_place - 1;
      return true;
    }
  return false;
}

/* ---- Reports ---- */
static const char FIX[] =
    "All threads of a warp must execute an .aligned instruction together (__syncthreads() is one). "
    "Move it out of the branch or loop, or let whole warps take the same way.";

static void report_missing(Warp *warp, const Instruction *in, LaneMask mask, LaneMask missing,
                           const Split *split) {
  const int first = first_lane(missing);
  const Phrase end = line_of(warp->flow->exited_at[first]);
  const int count = __builtin_popcount(missing);
  const char *plural = count == 1 ? "" : "s";
  if (split) {
    finding(warp, in, mask, RULE(ALIGNED_DIVERGENCE),
            "%d thread%s of this warp, thread %u first, went around this instruction: they parted "
            "at %s and exited at %s. Here an H100 lets the others pass; arranged otherwise by the "
            "compiler, as by unrolling a loop, the same mistake hangs.\n%s",
            count, plural, thread_of(warp, first),
            line_of(&split->function->code[split->from]).text, end.text, FIX);
  } else {
    finding(warp, in, mask, RULE(ALIGNED_DIVERGENCE),
            "%d thread%s of this warp, thread %u first, exited at %s: the matrices of this "
            "instruction lie in the registers of all 32 threads, and an H100 gives wrong "
            "results.\n%s",
            count, plural, thread_of(warp, first), end.text, FIX);
  }
}

static bool moves_matrices(const Instruction *in) {
  return (in->traits & FLOW) == FLOW_MATRIX && !(in->traits & SEEN_BY_OTHERS);
}

/* The branch at which the lanes of the mask have parted from some that are missing, and these have
 * gone around the place where the others are now. They are put into *gone. */
static const Split *find_way_around(const Warp *warp, const Instruction *in, LaneMask mask,
                                    LaneMask missing, LaneMask *gone) {
  const struct WarpFlow *flow = warp->flow;
  for (uint32_t i = flow->split_count; i-- > 0 && missing;) {
    const Split *split = &flow->splits[i];
    bool others_jumped = split->stayed & mask && split->jumped & missing;
    if (!others_jumped && !(split->jumped & mask && split->stayed & missing)) continue;
    uint32_t place, others_at = others_jumped ? split->target : split->from + 1;
    *gone = missing & (others_jumped ? split->jumped : split->stayed);
    missing &= ~*gone;
    if (place_in_call(&flow->groups[flow->current], in, split, &place) &&
        ways_join(split->function, split->from, others_at, place))
      return split;
  }
  return NULL;
}

void aligned_check(Warp *warp, const Instruction *in, LaneMask mask) {
  if (!settings()->checks) return;
  LaneMask guarded = current_group(warp)->mask & ~mask, missing = warp->lanes & warp->exited;
  if (guarded) {
    finding(warp, in, mask, RULE(ALIGNED_DIVERGENCE),
            "the guard of this instruction keeps %d of the warp's threads from it, thread %u "
            "first.\n%s",
            __builtin_popcount(guarded), thread_of(warp, first_lane(guarded)), FIX);
    return;
  }
  if (!missing) return;
  uint32_t slot = in->line % JUDGED_KEPT;
  if (warp->flow->judged[slot].in == in && warp->flow->judged[slot].missing == missing) return;
  warp->flow->judged[slot].in = in;
  warp->flow->judged[slot].missing = missing;
  LaneMask gone;
  const Split *split = find_way_around(warp, in, mask, missing, &gone);
  if (split)
    report_missing(warp, in, mask, gone, split);
  else if (moves_matrices(in))
    report_missing(warp, in, mask, missing, NULL);
}
