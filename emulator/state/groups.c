/* groups.c: splits, drops and moves the groups of a warp's lanes (groups.h). */
#include "base/holds.h"
#include "state/groups.h"

#include <stdlib.h>
#include <string.h>

/* Limit of backward jumps of a group while others of its warp wait. */
enum { PATIENCE = 20000, PATIENCE_WHEN_WATCHED = 32 };

void frame_release(Frame *frame) {
  while (frame) {
    HOLDS(frame->references > 0);
    if (--frame->references) return;
    Frame *parent = frame->parent;
    free(frame->saved);
    free(frame->saved_predicates);
    free(frame);
    frame = parent;
  }
}

const Instruction *lanes_behind(const Warp *warp, const Instruction *in) {
  for (uint32_t i = 0; i < warp->flow->count; i++) {
    const Group *group = &warp->flow->groups[i];
    const Instruction *code = group->function->code, *at = code + group->place;
    const bool asks =
        at->traits & ASKS_MBARRIER || ((at->traits & FLOW) == FLOW_MEMORY && at->results);
    if (asks && at < in && in < code + group->function->count) return at;
  }
  return NULL;
}

Group *split_group_at(struct WarpFlow *flow, uint32_t index, LaneMask mask) {
  Group *from = &flow->groups[index];
  /* each group has at least one lane, so there are at most 32 */
  HOLDS(mask != 0 && (mask & ~from->mask) == 0 && mask != from->mask && flow->count < LANES);
  Group *to = &flow->groups[flow->count++];
  *to = *from;
  to->mask = mask;
  from->mask &= ~mask;
  if (to->frame) to->frame->references++;
  return to;
}

Group *split_group(struct WarpFlow *flow, LaneMask mask) {
  return split_group_at(flow, flow->current, mask);
}

void note_split(struct WarpFlow *flow, const Group *group, LaneMask jumping, uint32_t from,
                uint32_t target) {
  HOLDS(!(jumping & ~group->mask) && flow->split_count <= SPLITS_KEPT);
  if (flow->split_count == SPLITS_KEPT)
    memmove(flow->splits, flow->splits + 1, --flow->split_count * sizeof *flow->splits);
  flow->splits[flow->split_count++] =
      (Split){group->function, group->frame, jumping, group->mask & ~jumping, from, target};
}

void forget_splits(struct WarpFlow *flow, LaneMask together) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < flow->split_count; i++)
    if ((flow->splits[i].jumped | flow->splits[i].stayed) & ~together)
      flow->splits[kept++] = flow->splits[i];
  flow->split_count = kept;
}

/* Spinning lanes may wait for other lanes of their warp, so after a while the others run. */
static void be_fair(const Warp *warp, Group *group, bool backward) {
  struct WarpFlow *flow = warp->flow;
  if (!backward) return;
  uint32_t patience = warp->watched & WATCH_POLLING ? PATIENCE_WHEN_WATCHED : PATIENCE;
  if (++flow->backward_jumps < patience) return;
  flow->backward_jumps = 0;
  group->state = GROUP_YIELDED;
}

void jump_among_groups(Warp *warp, Group *group, LaneMask mask, uint32_t from, uint32_t target) {
  if (mask != group->mask) {
    note_split(warp->flow, group, mask, from, target);
    Group *jumping = split_group(warp->flow, mask);
    jumping->place = target;
    jumping->jumped_from = from;
    group->place = from + 1;
    return;
  }
  group->place = target;
  group->jumped_from = from;
  be_fair(warp, group, target <= from);
}
