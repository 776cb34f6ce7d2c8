/* doubts.h: findings that matter only if something depends on a value. The checker's door to the room of
 * trials (trial/trial.h), which decides about them. */
#ifndef EMULATOR_DOUBTS_H
#define EMULATOR_DOUBTS_H

#include "base/fault.h"
#include "checker/check_state.h"

/* As `finding`. doubtful: the trial decides whether it is reported. */
__attribute__((format(printf, 6, 7))) void doubt_report(bool doubtful, Warp *warp,
                                                        const Instruction *in, LaneMask lanes,
                                                        const Finding *what, const char *format,
                                                        ...);
/* The same for what the launches have found that have left bytes which this one reads. */
void doubt_about_left(bool doubtful, Warp *warp, const Instruction *in, LaneMask lanes,
                      uint32_t left);
/* What has left these bytes of global memory, of which some count as not written; 0: nothing. only_left: as in
 * trial.h. */
uint32_t doubt_reads_unwritten(const Warp *warp, uint64_t first, uint64_t bytes, bool only_left);

/* A read of this word by lanes of a warp, at this time of its clock and this stamp of its lanes (0: not
 * known), races. True: a trial will give it
 * other values, so the finding may be held back. */
bool race_of_read(const Warp *warp, uint32_t rank, uint32_t word, uint32_t agent, LaneMask lanes,
                  uint32_t stamp, uint32_t time, const Instruction *in);
/* Two unordered stores to these bytes, the second of them by the present instruction. True: as above. */
bool race_of_stores(const Warp *warp, uint32_t rank, uint32_t offset, uint32_t bytes);
/* In a trial: an access of these lanes to shared memory is about to be made. */
void race_try(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
              uint32_t bytes, bool reads);

#endif
