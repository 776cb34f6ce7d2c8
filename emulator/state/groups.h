/* groups.h: groups of lanes, and their call stacks.
 *
 * A warp is divided into groups of lanes. The lanes of a group are at the same instruction with the
 * same call stack, and one group runs at a time. The group with the deepest stack runs first, then
 * the one at the lowest instruction, because compilers place the point where paths reconverge after
 * all of them. Groups that meet at a leader merge. */
#pragma once

#include "base/holds.h"
#include "base/warp.h"
#include "ptx/program.h"

/* One call: where its caller continues. Groups that split inside the callee share it. */
typedef struct Frame Frame;
struct Frame {
  Frame *parent;
  const Function *caller;
  const CallSite *call;
  uint32_t return_place;
  uint32_t references;
  uint32_t depth;
  uint32_t frame_bytes; /* by how much the .local frame moved */
  const Function *callee;
  uint8_t *saved; /* a recursive call: the caller's registers, NULL otherwise */
  uint32_t *saved_predicates;
};

typedef enum {
  GROUP_READY,
  GROUP_YIELDED, /* others first */
  GROUP_BLOCKED  /* until cluster->changes, or mbarrier_changes if it sleeps, differs from `seen` */
} GroupState;

typedef struct {
  LaneMask mask;
  uint32_t place;
  uint32_t jumped_from; /* its last jump, which led to `place` if it has not moved since */
  const Function *function;
  Frame *frame;
  uint64_t seen;
  LaneMask retries;    /* for polling_step(): lanes that try again what has blocked them before */
  uint32_t generation; /* round of the barrier at which it has arrived */
  uint8_t state;
  bool sleeps;  /* at an mbarrier: nothing but a change of one can wake it */
  bool arrived; /* has arrived at the barrier it is at, and only waits now */
  bool met;     /* its whole warp has come to the .aligned instruction it is at */
} Group;

/* A branch at which lanes parted that have not come together since. */
typedef struct {
  const Function *function;
  const Frame *frame;
  LaneMask jumped, stayed;
  uint32_t from, target;
} Split;
enum { SPLITS_KEPT = LANES, JUDGED_KEPT = 8 };

struct WarpFlow {
  Group groups[LANES];
  uint32_t count, current;
  uint32_t backward_jumps;  /* backward jumps of the running group while others waited */
  uint32_t cluster_arrived; /* lanes that have arrived at the cluster barrier and not waited */
  uint32_t cluster_generation[LANES]; /* which round of it each lane arrived in */
  LaneMask cluster_relaxed;           /* lanes whose last arrival was .relaxed */
  uint32_t register_changes;          /* number of setmaxnreg instructions executed */
  const Instruction *register_change; /* the last */
  int16_t register_limits[8];         /* the limits of the last ones; negative: .dec */
  Split splits[SPLITS_KEPT];          /* the newest last */
  uint32_t split_count;
  const Instruction *exited_at[LANES]; /* of lanes that have exited before others */
  /* flow_aligned.c: what was looked at already */
  struct {
    const Instruction *in;
    LaneMask missing;
  } judged[JUDGED_KEPT];
};

static inline Group *current_group(Warp *warp) { return &warp->flow->groups[warp->flow->current]; }
static inline LaneMask live_lanes(const Warp *warp) { return warp->lanes & ~warp->exited; }

/* Where lanes of the warp ask an mbarrier or memory that have not yet come to what others of it have done by this
 * instruction; NULL: there are none. */
const Instruction *lanes_behind(const Warp *warp, const Instruction *in);
/* Takes lanes out of the running group; they form a new group. */
Group *split_group(struct WarpFlow *flow, LaneMask mask);
/* the same for any group */
Group *split_group_at(struct WarpFlow *flow, uint32_t index, LaneMask mask);
/* The group takes a branch with some of its lanes. */
void note_split(struct WarpFlow *flow, const Group *group, LaneMask jumping, uint32_t from,
                uint32_t target);
/* These lanes are together again. */
void forget_splits(struct WarpFlow *flow, LaneMask together);
/* Moves lanes of the running group to another instruction of the same function. The others
 * continue. jump_among_groups is for a warp that has several groups, or gets them by the jump. */
void jump_among_groups(Warp *warp, Group *group, LaneMask mask, uint32_t from, uint32_t target);
static inline void jump_lanes(Warp *warp, LaneMask mask, uint32_t from, uint32_t target) {
  Group *group = current_group(warp);
  if (warp->flow->count > 1 || mask != group->mask) {
    jump_among_groups(warp, group, mask, from, target);
    return;
  }
  group->place = target;
  group->jumped_from = from;
}
void frame_release(Frame *frame);
static inline void drop_group(struct WarpFlow *flow, uint32_t index) {
  HOLDS(index < flow->count);
  if (flow->groups[index].frame) frame_release(flow->groups[index].frame);
  flow->groups[index] = flow->groups[--flow->count];
}
