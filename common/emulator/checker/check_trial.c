/* check_trial.c: does it matter what a racing read finds, or which of two unordered stores comes last?
 *
 * Marlin's last round also reads the fragments of a next step that does not come, while other warps
 * store their sums there. CUB stores all items that nobody wants in one place. Such races are held back
 * until the launch ends (base/trial.h). In the trial the read finds other bytes, which are taken
 * back after it, and the place of the two stores holds others from the next access on. There, one host
 * thread runs everything. */
#include "checker/check_trial.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/fault.h"
#include "base/trial.h"
#include "checker/check_lanes.h"

enum { TEXT = 2048, CHANGES_MOST = 4096 };

/* A change of shared memory that is due at the cluster's next access. */
typedef struct {
  const Cluster *cluster;
  uint32_t number; /* of the cluster */
  uint8_t *at;
  uint8_t from, to; /* a byte that has changed meanwhile stays */
  bool if_same;
  LaneMask lanes; /* which find `from` there, while the others find `to` */
} DueChange;
static DueChange due[CHANGES_MOST];
static uint32_t due_count;

bool race_of_read(const Warp *warp, uint32_t rank, uint32_t word, uint32_t agent, LaneMask lanes,
                  uint32_t stamp, uint32_t time, const Instruction *in) {
  const Cluster *cluster = warp->cta->cluster;
  LaunchTrial *trial = cluster->launch->trial;
  if (!trial || !time || !in || trial_is_running()) return trial_is_running();
  time -= cluster->check->begun; /* the clock goes on from one cluster to the next */
  const RacingRead read = {.cluster = cluster->number,
                           .rank = rank,
                           .word = word,
                           .agent = agent,
                           .lanes = lanes,
                           .stamp = stamp ? stamp - cluster->check->lanes_start + 1 : 0,
                           .time = time,
                           .in = in};
  return trial_note_read(trial, &read);
}

static uint8_t other_byte(uint32_t offset) {
  uint8_t byte;
  trial_fill_bytes(&byte, 1, offset);
  return byte;
}

static void add_change(const DueChange *change) {
  if (due_count == CHANGES_MOST) {
    trial_note_finding(); /* too many: the trial fails */
    return;
  }
  due[due_count++] = *change;
}

bool race_of_stores(const Warp *warp, uint32_t rank, uint32_t offset, uint32_t bytes) {
  const Cluster *cluster = warp->cta->cluster;
  uint8_t *memory = cluster->ctas[rank].shared + offset;
  for (uint32_t i = 0; i < bytes && trial_is_running(); i++)
    add_change(&(DueChange){
        .cluster = cluster,
        .number = cluster->number,
        .at = memory + i,
        .to = other_byte(offset + i),
        .lanes = UINT32_MAX,
    });
  return cluster->launch->trial && !trial_is_ruled_out(cluster->launch->trial);
}

void race_report(bool tried, Warp *warp, const Instruction *in, LaneMask lanes, const char *rule,
                 const char *format, ...) {
  char text[TEXT];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (tried)
    finding_to_try(warp, in, lanes, rule, text);
  else
    finding(warp, in, lanes, rule, "%s", text);
}

static void make_changes(const Cluster *cluster) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < due_count; i++) {
    const DueChange *change = &due[i];
    if (change->cluster != cluster)
      due[kept++] = *change;
    else if (change->number == cluster->number && (!change->if_same || *change->at == change->from))
      *change->at = change->to;
  }
  due_count = kept;
}

static void change_word(const Cluster *cluster, const RacingRead *read, LaneMask lanes) {
  for (uint32_t i = 0; i < WORD_BYTES; i++) {
    uint32_t offset = read->word * WORD_BYTES + i;
    uint8_t *at = cluster->ctas[read->rank].shared + offset, before = *at;
    if (offset >= cluster->ctas[read->rank].shared_bytes) return;
    *at = other_byte(offset);
    add_change(&(DueChange){cluster, cluster->number, at, *at, before, true, lanes});
  }
}

void check_trial_lanes(const Warp *warp, LaneMask mask, uint8_t **at, uint32_t bytes) {
  static uint8_t kept[LANES][16];
  if (bytes > sizeof *kept) return;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    const uint8_t *memory = at[lane];
    for (uint32_t i = 0; i < due_count; i++) {
      const DueChange *change = &due[i];
      bool others = change->cluster == warp->cta->cluster && !(change->lanes >> lane & 1);
      if (!others || change->at < memory || change->at >= memory + bytes) continue;
      if (at[lane] == memory) at[lane] = memcpy(kept[lane], memory, bytes);
      at[lane][change->at - memory] = change->to;
    }
  }
}

/* The lanes that read this word. */
static LaneMask touching(const RacingRead *read, LaneMask mask, const uint32_t *addresses,
                         uint32_t bytes) {
  LaneMask lanes = 0;
  for (LaneMask left = mask; left; left &= left - 1) {
    uint32_t address = addresses[first_lane(left)], first = SHARED_OFFSET(address) / WORD_BYTES;
    uint32_t last = (SHARED_OFFSET(address) + bytes - 1) / WORD_BYTES;
    if (SHARED_RANK(address) == read->rank && first <= read->word && read->word <= last)
      lanes |= left & -left;
  }
  return lanes;
}

void race_try(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
              uint32_t bytes, bool reads) {
  const Cluster *cluster = warp->cta->cluster;
  ClusterCheck *check = check_of(warp);
  if (!trial_is_running()) return;
  if (due_count) make_changes(cluster);
  uint32_t agent = agent_of(warp);
  uint32_t stamp = check->lanes_checked ? check->lanes[agent].stamp - check->lanes_start + 1 : 0;
  const RacingRead *read = NULL;
  while (reads &&
         (read = trial_next_read(cluster->launch->trial, read, cluster->number, agent, in))) {
    uint32_t time = order_time(check, agent, in, false) - check->begun;
    if (read->stamp && read->stamp != stamp) continue;
    LaneMask lanes = time == read->time ? touching(read, mask, addresses, bytes) : 0;
    if (lanes) change_word(cluster, read, lanes & read->lanes ? read->lanes : UINT32_MAX);
  }
}
