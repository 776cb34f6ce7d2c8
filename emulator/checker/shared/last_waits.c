/* last_waits.c: what a warp's last wait for an mbarrier has shown it, where that is less than it takes: for advice that
 * names the wait. A wait that shows nothing new is right in the first round of a ring, so it is no mistake by itself. */

#include "checker/shared/shared_state.h"

enum { PHASES_KEPT = 64 };

const MbarrierCheck *mbarrier_awaited_last(const ClusterCheck *check, uint32_t agent) {
  const MbarrierCheck *last = NULL;
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const MbarrierCheck *each = check->shared->barriers[i];
    if (SHARED_RANK(each->address) == agent / check->warps_per_cta && each->answers[agent].next &&
        (!last || each->answers[agent].order > last->answers[agent].order))
      last = each;
  }
  return last;
}

bool ended_without_bytes(const MbarrierCheck *barrier, uint32_t phase) {
  if (!barrier->copy_in || phase < barrier->first_phase || phase >= barrier->phase) return false;
  const uint32_t back = barrier->phase - phase;
  return back < PHASES_KEPT && !(barrier->expecting >> back & 1);
}

Phrase place_of_end(const MbarrierCheck *barrier, uint32_t phase) {
  const Instruction *in = barrier->phase - phase <= 2 ? barrier->finished_by[phase & 1] : NULL;
  if (!in) in = barrier->arrive_in;
  return in ? place_of(in) : phrase("before");
}

Phrase phase_name(const MbarrierCheck *barrier, uint32_t phase) {
  return phase + 1 > barrier->first_phase ? phrase("phase %u", phase_named(barrier, phase))
                                          : phrase("the phase before the first");
}

Phrase wait_mistake(const MbarrierCheck *barrier, uint32_t agent, const char *whose) {
  const WaitAnswer *answer = &barrier->answers[agent];
  const uint32_t phase = answer->next - 2, asked = answer->next & 1;
  if (!answer->next) return NO_PHRASE;
  if (answer->stale)
    return phrase(
        "The last wait of %s, %s, asked for parity %u of the mbarrier at shared-memory offset "
        "0x%x and succeeded because %s is over, which shows nothing new: ask for parity %u. "
        "The first phase has parity 0, and it flips with every phase.%s",
        whose, place_of(answer->in).text, asked, SHARED_OFFSET(barrier->address),
        phase_name(barrier, phase).text, asked ^ 1u,
        barrier->arrive_in ? "" : " No thread has arrived there so far: is it the right barrier?");
  if (!ended_without_bytes(barrier, phase)) return NO_PHRASE;
  return phrase(
      "The last wait of %s, %s, was for %s of the mbarrier at shared-memory offset 0x%x, which "
      "ended with the arrival %s before any bytes were expected: expect the copies' bytes in "
      "that arrival (mbarrier.arrive.expect_tx), or before it.",
      whose, place_of(answer->in).text, phase_name(barrier, phase).text,
      SHARED_OFFSET(barrier->address), place_of_end(barrier, phase).text);
}

Phrase last_wait_mistake(const ClusterCheck *check, uint32_t agent, uint32_t since) {
  const MbarrierCheck *barrier = mbarrier_awaited_last(check, agent);
  if (!barrier || barrier->answers[agent].time < since) return NO_PHRASE;
  return wait_mistake(barrier, agent, "this warp");
}
