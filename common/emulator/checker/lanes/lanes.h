/* lanes.h: the order among the lanes of one warp, as shared by the files that check it.
 *
 * Since Volta the lanes of a warp run independently. What one lane has done is ordered before what
 * another one does only by bar.warp.sync and what orders threads in general: barriers, mbarriers,
 * strong accesses.
 *
 * Every warp has a stamp, which changes whenever its lanes learn or publish something. Stamps are
 * unique within a cluster, so a stamp also identifies its warp. Accesses before `first` are ordered
 * before everything that any lane of the warp does now. */
#ifndef EMULATOR_CHECK_LANES_H
#define EMULATOR_CHECK_LANES_H

#include "checker/check_state.h"

enum {
  STAMP_BITS = 25,
  LANE_BITS = 5,
  STAMPS_MOST = (1 << STAMP_BITS) - 1,
  STAMP_OWNERS = 1 << 16 /* number of recent stamps whose warp is known */
};

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

/* lanes.c */
void lanes_begin(ClusterCheck *check);
/* The agent to which a stamp belongs; UINT32_MAX: it is too old to be known. */
uint32_t lanes_owner(const ClusterCheck *check, uint32_t stamp);
void lanes_note_release(ClusterCheck *check, uint32_t agent, const Instruction *in, LaneMask lanes);
void lanes_note_acquire(ClusterCheck *check, uint32_t agent, LaneMask lanes, LaneMask live);
static inline void lanes_release(ClusterCheck *check, uint32_t agent, const Instruction *in,
                                 LaneMask lanes) {
  if (check->lanes_checked) lanes_note_release(check, agent, in, lanes);
}
static inline void lanes_acquire(ClusterCheck *check, uint32_t agent, LaneMask lanes,
                                 LaneMask live) {
  if (check->lanes_checked) lanes_note_acquire(check, agent, lanes, live);
}
/* Strong accesses to these locations of shared memory. */
void lanes_strong(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  bool releases, bool acquires);
/* Is what lane `other` did at this stamp of the same warp ordered before what `lane` does now? */
static inline bool lanes_ordered(const LaneOrder *order, int lane, int other, uint32_t stamp) {
  return stamp < order->first || (order->some_known && stamp <= order->known.stamp[other]) ||
         (order->apart && stamp <= order->seen[lane].stamp[other]);
}

/* Later accesses have another stamp. */
void lanes_begin_stamp(ClusterCheck *check, uint32_t agent);

/* lane_fences.c: a cluster begins; lanes execute fence.proxy.async; a copy or wgmma reads or
 * writes these pieces. */
void lanes_begin_fences(ClusterCheck *check, bool stamps_begin_again);
void lanes_note_fence(ClusterCheck *check, uint32_t agent, LaneMask fencing, LaneMask live);
void lanes_check_fenced(Warp *warp, const AsyncCheck *operation, const SharedPiece *pieces,
                        int count, bool writes);

/* lane_log.c: a cluster begins. */
void lanes_begin_logs(ClusterCheck *check);
/* May one of these lanes access what a lane of the warp has written, and that is not ordered before all
 * that the warp does? */
bool lanes_meet_writes(const ClusterCheck *check, uint32_t agent, LaneMask mask,
                       const uint32_t *addresses);

/* lane_shadow.c: an access through the generic proxy, before its effect. */
void lanes_touch(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                 uint32_t bytes, const AccessKind *kind);
/* All lanes read one address. False, and nothing is noted: look at each lane. */
bool lanes_read_one(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes);
/* The same for the words of a matrix. */
bool lanes_read_matrix(Warp *warp, const Instruction *in, const SharedMatrix *matrix);
void lanes_touch_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                     const AccessKind *kind);
/* A lane issues a copy of these pieces, or into them. */
void lanes_touch_pieces(Warp *warp, const Instruction *in, int lane, const SharedPiece *pieces,
                        int count, bool writes);
/* cp.async: one piece for each of these lanes. */
void lanes_touch_copies(Warp *warp, const Instruction *in, LaneMask lanes,
                        const SharedPiece *pieces, int count);
/* Two accesses by different warps race: the lanes race for the same reason. */
void lanes_note_race(ClusterCheck *check, const Instruction *in, const Instruction *other);
/* Reports the races among lanes of this block that have no such reason. */
void lanes_report(Cta *cta);
/* Forgets the past of a cluster, or of all clusters that have had these records. */
void lanes_drop_vectors(ClusterCheck *check);
void lanes_forget(ClusterCheck *check);

/* The lane that has read the word last, if the warp's lanes have not been ordered since; -1: not known. */
int lanes_last_reader(ClusterCheck *check, uint32_t agent, uint32_t rank, uint32_t word);

#endif
