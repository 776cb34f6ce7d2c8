/* lanes.h: the order among the lanes of one warp, and races between them in shared memory.
 *
 * Since Volta the lanes of a warp run independently. What one lane has done is ordered before what
 * another one does only by bar.warp.sync and what orders threads in general: barriers, mbarriers,
 * strong accesses.
 *
 * Every warp has a stamp, which changes whenever its lanes learn or publish something. Stamps are
 * unique within a cluster, so a stamp also identifies its warp. Accesses before `first` are ordered
 * before everything that any lane of the warp does now. lanes.c knows what lanes know; lane_shadow.c keeps which lane
 * has accessed each word last, for which lane_log.c gathers the reads; lane_fences.c knows which writes the warp's
 * fences cover, lane_releases.c which its releases do, and lane_inits.c who may use an mbarrier; lane_reports.c keeps what is found until a block ends.
 *
 * The state of a cluster is LanesState. Of it other folders see what lanes know, and may only note an access.
 *
 * Holds always: stamps only grow, over clusters too, so records need not be cleared; when they run out, nothing more is
 * checked, and no thread is accused. A race of lanes is reported only where no two warps race at the same two lines. */
#pragma once

#include "checker/shared/shared.h"

typedef struct {
  uint32_t stamp[LANES]; /* of each lane: all its accesses up to this stamp */
} LaneClock;

typedef struct LaneOrder {
  uint32_t first, stamp;
  uint32_t accessed; /* the stamp at the last access */
  bool some_released, some_known, apart;
  bool all_learnt;       /* all lanes know all that is in `released` */
  LaneClock known;       /* what all lanes know; valid if some_known */
  LaneClock released;    /* what lanes have published since `first`; valid if some_released */
  LaneClock seen[LANES]; /* what each lane knows besides; valid if apart */
  const Instruction *release_in; /* the last release, and the stamps before and after it */
  uint32_t release_before, release_after;
  /* When each lane last met others at an instruction that orders no memory (a shuffle, a vote). */
  uint32_t met[LANES];
  const Instruction *met_at;
  /* The lanes that executed each lane's last volatile store together with it, and its stamp. */
  LaneMask volatile_with[LANES];
  uint32_t volatile_stamp[LANES];
} LaneOrder;

/* Of a cluster. */
struct LanesState {
  LaneOrder *orders;             /* of each agent */
  uint32_t start;                /* the first stamp of this cluster */
  struct LaneStamps *stamps;     /* lanes.c */
  struct LaneShadow *shadows;    /* lane_shadow.c, of each block */
  struct LaneLog *logs;          /* lane_log.c, of each agent; NULL: none yet */
  struct LaneRaces *races;       /* lane_reports.c; NULL: none yet */
  struct LaneFences *fences;     /* lane_fences.c, of each agent; NULL: none yet */
  struct LaneReleases *releases; /* lane_releases.c, of each agent; NULL: none yet */
  uint64_t
      withheld; /* lines of shared memory (lane_access.h) of which some release has left out writes */
  bool unfenced; /* some fence may not cover what other lanes of its warp have written */
  uint32_t
      *inits; /* lane_inits.c, of each mbarrier: the stamp of its init; 0: known to all lanes */
  uint32_t
      *open_inits; /* of each agent: at most so many of its inits are not known to all its lanes */
};

/* What the lanes of a warp know, while lanes_checked. */
static inline const LaneOrder *lanes_order(const ClusterCheck *check, uint32_t agent) {
  return &check->lanes->orders[agent];
}
/* Is what lane `other` did at this stamp of the same warp ordered before what `lane` does now? */
static inline bool lanes_ordered(const LaneOrder *order, int lane, int other, uint32_t stamp) {
  return stamp < order->first || (order->some_known && stamp <= order->known.stamp[other]) ||
         (order->apart && stamp <= order->seen[lane].stamp[other]);
}

/* Up to which stamp does one of these lanes know what the other one has done? */
static inline uint32_t lanes_known_until(const LaneOrder *order, LaneMask lanes, int other) {
  uint32_t until = order->first - 1;
  if (lanes >> other & 1) return order->stamp;
  if (order->some_known && order->known.stamp[other] > until) until = order->known.stamp[other];
  FOR_LANES(lane, order->apart ? lanes : 0) {
    const uint32_t seen = order->seen[lane].stamp[other];
    until = seen > until ? seen : until;
  }
  return until;
}
/* The warp's lanes make an access that is not compared here. */
static inline void lanes_note_access(const ClusterCheck *check, uint32_t agent) {
  LaneOrder *order = &check->lanes->orders[agent];
  order->accessed = order->stamp;
}
/* The warp's stamp, counted from the beginning of the cluster; 0: none. */
static inline uint32_t lanes_stamp(const ClusterCheck *check, uint32_t agent) {
  return check->lanes_checked ? check->lanes->orders[agent].stamp - check->lanes->start + 1 : 0;
}

/* May a lane of these use what another warp's release has left out, or what only other lanes have acquired? */
static inline bool lanes_hand_over(const ClusterCheck *check, uint32_t agent, LaneMask lanes) {
  const LaneKnowledge *own = &order_of(check, agent)->lanes;
  return check->lanes->withheld || (own->apart && lanes & ~own->learnt);
}
/* The same of these bytes; and looks at each word of a plain access. */
bool lanes_may_be_handed(const Warp *warp, uint32_t address, uint32_t bytes);
void lanes_check_handed(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                        uint32_t bytes, bool writes);
/* An access through the generic proxy, before its effect. */
void lanes_touch(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                 uint32_t bytes, const AccessKind *kind);
void lanes_touch_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                     const AccessKind *kind);
/* All lanes read one address. False, and nothing is noted: look at each lane. */
bool lanes_read_one(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes);
/* A lane issues a copy of these pieces, or into them. */
void lanes_touch_pieces(Warp *warp, const Instruction *in, int lane, const SharedPiece *pieces,
                        int count, bool writes);
/* cp.async: one piece for each of these lanes. */
void lanes_touch_copies(Warp *warp, const Instruction *in, LaneMask lanes,
                        const SharedPiece *pieces, int count);
/* A copy or wgmma of this lane reads or writes these pieces: is what other lanes of its warp have written there
 * fenced? */
void lanes_check_fenced(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                        const SharedPiece *pieces, int count, bool writes);
/* These lanes release, at this time of their warp: what they know is handed on, and not what else the warp has written.
 * Has what this lane had done up to that stamp been handed on? */
void lanes_note_release(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t time);
bool lanes_handed_on(const ClusterCheck *check, uint32_t agent, int lane, uint32_t stamp);
/* Strong accesses of these lanes to global memory. */
void check_strong_global(Warp *warp, const Instruction *in, LaneMask lanes);
/* These lanes use the mbarrier: do they know its init by a lane of their warp? True: they do, but other lanes of the
 * warp may not. */
bool lanes_check_init(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address);
/* A cluster begins; a block ends, or the cluster. */
void lanes_begin(ClusterCheck *check);
void lanes_report(Cta *cta);
