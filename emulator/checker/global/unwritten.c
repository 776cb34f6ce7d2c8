/* unwritten.c: which bytes of global memory something has written (base/written.h).
 *
 * A load of others is no mistake: undefined/ marks what it has read, and follows it. What must not meet such bytes is
 * an atomic operation or a reduction, for it computes with them, but for an exchange. */
#include "base/fault.h"
#include "base/memory.h"
#include "base/written.h"
#include "checker/global/global_state.h"
#include "trial/trial.h"

void unwritten_accessed(Warp *warp, LaneMask mask, const uint64_t *addresses, bool run,
                        uint32_t bytes, Access access) {
  if (!written_map.bytes) return;
  if (run && access == ACCESS_WRITE) {
    written_set(addresses[0], (uint64_t)LANES * bytes);
  } else if (run) {
    if (!written_or_by_host(addresses[0], (uint64_t)LANES * bytes))
      warp->watched |= WATCH_UNDEFINED;
  } else {
    FOR_LANES(lane, mask) {
      uint64_t address = addresses[lane];
      if (written_here(address, bytes)) continue;
      if (access == ACCESS_WRITE)
        written_set(address, bytes);
      else if (!written_by_host(address, bytes))
        warp->watched |= WATCH_UNDEFINED;
    }
  }
}

/* An atomic or a reduction reads what it changes. Have an earlier launch's findings left something there?
 * In the trial it finds other values. */
static bool changes_pending(Warp *warp, const Instruction *in, int lane, uint64_t first,
                            uint64_t bytes) {
  const PendingNumber left = trial_reads_unwritten(warp->cta->cluster->launch, first, bytes, true);
  if (left)
    trial_finding(&(Doubt){.warp = warp,
                           .in = in,
                           .lanes = 1u << lane,
                           .what = &(const Finding){0},
                           .left = left,
                           .may_wait = true});
  return left != 0;
}

void check_unwritten_atomic(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                            uint32_t bytes, bool exchanges) {
  if (!written_map.bytes) return;
  FOR_LANES(lane, mask) {
    uint64_t address = (uint64_t)(uintptr_t)at[lane];
    if (written_here(address, bytes)) continue;
    bool by_host = written_by_host(address, bytes);
    bool waits = !by_host && changes_pending(warp, in, lane, address, bytes);
    written_set(address, bytes);
    if (exchanges || by_host || waits) continue;
    finding(warp, in, 1u << lane, RULE(UNWRITTEN_MEMORY_READ),
            "atomically changes %s, which nothing has written.\n"
            "Fresh memory is not zeroed: set it before the kernel (cudaMemset), or in a kernel "
            "before.",
            memory_place(address).text);
  }
}

void unwritten_overwritten(const AsyncOperation *operation, uint64_t first, uint64_t bytes,
                           bool reduces) {
  if (written_or_by_host(first, bytes)) return;
  if (reduces && !changes_pending(operation->warp, operation->in, operation->lane, first, bytes)) {
    uint64_t at = first;
    while (written_here(at, 1)) at++;
    finding(operation->warp, operation->in, 1u << operation->lane, RULE(UNWRITTEN_MEMORY_READ),
            "reduces into %s, which nothing has written.\n"
            "Fresh memory is not zeroed: set it before the kernel (cudaMemset), or store the "
            "first tile instead of reducing it.",
            memory_place(at).text);
  }
  written_set(first, bytes);
}
