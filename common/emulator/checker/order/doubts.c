/* doubts.c: findings that matter only if something depends on a value: what the checker tells the room of
 * trials. Times count from the beginning of the
 * cluster there, because its run in the trial begins anew. */
#include "checker/order/order.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/fault.h"
#include "base/fill.h"
#include "trial/trial.h"

enum { TEXT = 2048 };

static void tell(const Doubt *doubt) { trial_finding(doubt); }

void doubt_report(bool doubtful, Warp *warp, const Instruction *in, LaneMask lanes,
                  const Finding *what, const char *format, ...) {
  char text[TEXT];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (doubtful)
    tell(&(Doubt){warp, in, lanes, what, text, 0, true});
  else
    finding_of(warp, in, lanes, what, "%s", text);
}

void doubt_about_left(bool doubtful, Warp *warp, const Instruction *in, LaneMask lanes,
                      uint32_t left) {
  tell(&(Doubt){warp, in, lanes, &(const Finding){.rule = NULL}, NULL, left, doubtful});
}

uint32_t doubt_reads_unwritten(const Warp *warp, uint64_t first, uint64_t bytes, bool only_left) {
  return trial_reads_unwritten(warp->cta->cluster->launch, first, bytes, only_left);
}

bool race_of_read(const Warp *warp, uint32_t rank, uint32_t word, uint32_t agent, LaneMask lanes,
                  uint32_t stamp, uint32_t time, const Instruction *in) {
  const Cluster *cluster = warp->cta->cluster;
  if (!time || !in) return is_tried_again();
  const RacingRead read = {.cluster = cluster->number,
                           .rank = rank,
                           .word = word,
                           .agent = agent,
                           .lanes = lanes,
                           .stamp = stamp,
                           .time = time - cluster->check->order.begun,
                           .in = in};
  return trial_gives_others(cluster->launch, &read);
}

bool race_of_stores(const Warp *warp, uint32_t rank, uint32_t offset, uint32_t bytes) {
  return trial_changes_stored(warp->cta->cluster, rank, offset, bytes);
}

static uint32_t time_since_begin(const Warp *warp, const Instruction *in) {
  ClusterCheck *check = check_of(warp);
  return order_time(check, agent_of(warp), in, false) - check->order.begun;
}

void race_try(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
              uint32_t bytes, uint32_t stamp, bool reads) {
  const uint32_t agent = agent_of(warp);
  trial_access(&(TriedAccess){.warp = warp,
                              .in = in,
                              .mask = mask,
                              .addresses = addresses,
                              .bytes = bytes,
                              .agent = agent,
                              .stamp = stamp,
                              .reads = reads,
                              .time_of = time_since_begin});
}
