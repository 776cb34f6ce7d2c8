/* lane_log.c: the last reads of each warp, before they become records (lane_shadow.c).
 *
 * A read matters only if another lane of the warp writes there before the lanes are ordered, and most
 * reads are followed by a barrier first. So reads are only written down here, with the lines of shared
 * memory in which they are. They become records when the warp writes in one of these lines, when a copy
 * does, or when the log is full. For a read of lines in which the warp has written nothing since its
 * lanes were last ordered, no record has to be looked at either. */
#include <string.h>

#include "base/holds.h"
#include "checker/lanes/lane_access.h"

enum { LANE_LINE_BYTES = 128, LINE_BITS = 64 };

void lanes_begin_logs(ClusterCheck *check) {
  if (!check->lanes->logs)
    check->lanes->logs = new_zeros(check->agents, sizeof *check->lanes->logs);
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    struct LaneLog *log = &check->lanes->logs[agent];
    log->logged = log->read = log->written = (AccessedLines){0, 0};
    log->count = 0;
  }
}

uint64_t lane_lines(uint32_t address, uint32_t bytes) {
  uint64_t lines = 0;
  uint32_t offset = SHARED_OFFSET(address);
  if (bytes == 0) return 0;
  if (bytes > LANE_LINE_BYTES * LINE_BITS) return UINT64_MAX;
  for (uint32_t at = offset & ~(LANE_LINE_BYTES - 1u); at < offset + bytes; at += LANE_LINE_BYTES)
    lines |= lane_line(at);
  return lines;
}

uint64_t lane_lines_of(LaneMask mask, const uint32_t *addresses) {
  uint64_t lines = 0;
  uint32_t first = addresses[first_lane(mask)];
  for (int lane = 0; lane < LANES; lane++)
    lines |= lane_line(mask >> lane & 1 ? addresses[lane] : first);
  return lines;
}

bool lanes_meet_writes(const ClusterCheck *check, uint32_t agent, LaneMask mask,
                       const uint32_t *addresses) {
  uint64_t written =
      lane_lines_since(&check->lanes->logs[agent].written, &check->lanes->orders[agent]);
  return written && (written & lane_lines_of(mask, addresses));
}

static LoggedRead *next_read(const LaneAccess *now, uint64_t lines) {
  struct LaneLog *log = lane_log(now);
  if (log->logged.newest < now->order->first) log->count = 0;
  if (log->count == LOGGED_READS) lane_log_flush(now->check, now->agent);
  lane_lines_add(&log->logged, now->order, now->order->stamp, lines);
  HOLDS(log->count < LOGGED_READS &&
        (log->count == 0 || log->reads[log->count - 1].stamp <= now->order->stamp));
  LoggedRead *read = &log->reads[log->count++];
  read->lines = lines;
  read->stamp = now->order->stamp;
  read->bytes = now->bytes;
  read->mask = now->mask;
  return read;
}

void lane_log_read(const LaneAccess *now, uint64_t lines) {
  LoggedRead *read = next_read(now, lines);
  read->kind = LOGGED_ADDRESSES;
  memcpy(read->addresses, now->addresses, sizeof read->addresses);
}

void lane_log_steps(const LaneAccess *now, uint64_t lines, uint32_t address, uint32_t step) {
  LoggedRead *read = next_read(now, lines);
  read->kind = LOGGED_STEPS;
  read->step = step;
  read->addresses[0] = address;
}

static void make_records(ClusterCheck *check, uint32_t agent, const LoggedRead *read) {
  uint32_t addresses[LANES];
  LaneAccess now = {.check = check,
                    .order = &check->lanes->orders[agent],
                    .agent = agent,
                    .mask = read->mask,
                    .addresses = addresses,
                    .bytes = read->bytes};
  for (uint32_t lane = 0; lane < LANES; lane++)
    addresses[lane] =
        read->kind == LOGGED_STEPS ? read->addresses[0] + lane * read->step : read->addresses[lane];
  lane_note_reads(&now);
}

void lane_log_flush(ClusterCheck *check, uint32_t agent) {
  struct LaneLog *log = &check->lanes->logs[agent];
  LaneOrder *order = &check->lanes->orders[agent];
  uint32_t stamp = order->stamp;
  for (uint32_t i = 0; i < log->count; i++) {
    const LoggedRead *read = &log->reads[i];
    if (read->stamp < order->first) continue;
    order->stamp = read->stamp;
    make_records(check, agent, read);
    lane_lines_add(&log->read, order, read->stamp, read->lines);
  }
  order->stamp = stamp;
  log->logged.lines = 0;
  log->count = 0;
}

/* Has every lane of the warp published since the last read in its log? Then a copy by another warp
 * has nothing to look for there. */
static bool all_published(const struct LaneLog *log, const LaneOrder *order) {
  uint32_t silent = 0;
  if (!order->some_released) return false;
  for (int lane = 0; lane < LANES; lane++)
    silent |= (uint32_t)(order->released.stamp[lane] < log->logged.newest);
  return !silent;
}

void lane_logs_flush(ClusterCheck *check, uint32_t issuer, uint64_t lines) {
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const struct LaneLog *log = &check->lanes->logs[agent];
    const LaneOrder *order = &check->lanes->orders[agent];
    if (!(lane_lines_since(&log->logged, order) & lines)) continue;
    if (agent == issuer || !all_published(log, order)) lane_log_flush(check, agent);
  }
}
