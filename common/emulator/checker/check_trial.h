/* check_trial.h: races on shared memory that a trial decides (check_trial.c). */
#ifndef EMULATOR_CHECK_TRIAL_H
#define EMULATOR_CHECK_TRIAL_H

#include "checker/check_state.h"

/* A read of this word by lanes of a warp, at this time of its clock and this stamp of its lanes (0: not
 * known), races. True: a trial will give it
 * other values, so the finding may be held back. */
bool race_of_read(const Warp *warp, uint32_t rank, uint32_t word, uint32_t agent, LaneMask lanes,
                  uint32_t stamp, uint32_t time, const Instruction *in);
/* Two unordered stores to these bytes, the second of them by the present instruction. True: as above. */
bool race_of_stores(const Warp *warp, uint32_t rank, uint32_t offset, uint32_t bytes);
/* A race. tried: it is held back for the trial. */
__attribute__((format(printf, 6, 7))) void race_report(bool tried, Warp *warp,
                                                       const Instruction *in, LaneMask lanes,
                                                       const char *rule, const char *format, ...);
/* In a trial: an access of these lanes to shared memory is about to be made. */
void race_try(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
              uint32_t bytes, bool reads);

#endif
