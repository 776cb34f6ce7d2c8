/* tried_races.c: does it matter what a racing read finds, or which of two unordered stores comes last?
 *
 * Marlin's last round also reads the fragments of a next step that does not come, while other warps
 * store their sums there. CUB stores all items that nobody wants in one place. Such races are held back
 * until the launch ends. In the trial the read finds other bytes, which are taken
 * back after it, and the place of the two stores holds others from the next access on. There, one host
 * thread runs everything. */
#include <string.h>

#include "base/address.h"
#include "base/fill.h"
#include "trial/launch_trial.h"

enum { CHANGES_MOST = 4096, WORD_BYTES = 4 };

/* A change of shared memory that is due at the cluster's next access. */
typedef struct {
  const Cluster *cluster;
  uint32_t number; /* of the cluster */
  uint8_t *at;
  uint8_t from, to; /* a byte that has changed meanwhile stays */
  bool if_same;
  LaneMask lanes; /* which find `from` there, while the others find `to` */
} DueChange;
/* In the process of a trial, which has one thread. */
static struct {
  DueChange changes[CHANGES_MOST];
  uint32_t count;
  uint8_t bytes[LANES][16]; /* what lanes load that find what is there, and not the changes */
} due;

bool trial_gives_others(const Cluster *cluster, RacingRead read) {
  LaunchTrial *trial = cluster->launch->trial;
  if (!trial || !read.time || !read.in || is_tried_again()) return is_tried_again();
  read.cluster = cluster->number;
  return trial_note_read(trial, &read);
}

static uint8_t other_byte(uint32_t offset) {
  uint8_t byte;
  fill_unwritten(&byte, 1, offset);
  return byte;
}

static void add_change(const DueChange *change) {
  if (due.count == CHANGES_MOST) {
    trial_fail();
    return;
  }
  due.changes[due.count++] = *change;
}

bool trial_changes_stored(const Cluster *cluster, uint32_t rank, uint32_t offset, uint32_t bytes) {
  uint8_t *memory = cluster->ctas[rank].shared + offset;
  for (uint32_t i = 0; i < bytes && is_tried_again(); i++)
    add_change(&(DueChange){
        .cluster = cluster,
        .number = cluster->number,
        .at = memory + i,
        .to = other_byte(offset + i),
        .lanes = UINT32_MAX,
    });
  return cluster->launch->trial && !trial_is_ruled_out(cluster->launch->trial);
}

static void make_changes(const Cluster *cluster) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < due.count; i++) {
    const DueChange *change = &due.changes[i];
    if (change->cluster != cluster)
      due.changes[kept++] = *change;
    else if (change->number == cluster->number && (!change->if_same || *change->at == change->from))
      *change->at = change->to;
  }
  due.count = kept;
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

void trial_lanes(const Warp *warp, LaneMask mask, uint8_t **at, uint32_t bytes) {
  if (bytes > sizeof *due.bytes) return;
  FOR_LANES(lane, mask) {
    const uint8_t *memory = at[lane];
    for (uint32_t i = 0; i < due.count; i++) {
      const DueChange *change = &due.changes[i];
      bool others = change->cluster == warp->cta->cluster && !(change->lanes >> lane & 1);
      if (!others || change->at < memory || change->at >= memory + bytes) continue;
      if (at[lane] == memory) at[lane] = memcpy(due.bytes[lane], memory, bytes);
      at[lane][change->at - memory] = change->to;
    }
  }
}

/* The lanes that read this word. */
static LaneMask touching(const RacingRead *read, LaneMask mask, const uint32_t *addresses,
                         uint32_t bytes) {
  LaneMask lanes = 0;
  FOR_LANES(lane, mask) {
    uint32_t address = addresses[lane], first = SHARED_OFFSET(address) / WORD_BYTES;
    uint32_t last = (SHARED_OFFSET(address) + bytes - 1) / WORD_BYTES;
    if (SHARED_RANK(address) == read->rank && first <= read->word && read->word <= last)
      lanes |= 1u << lane;
  }
  return lanes;
}

void trial_access(const TriedAccess *access) {
  const Cluster *cluster = access->warp->cta->cluster;
  if (due.count) make_changes(cluster);
  const RacingRead *read = NULL;
  while (access->reads && (read = trial_next_read(cluster->launch->trial, read, cluster->number,
                                                  access->agent, access->in))) {
    uint32_t time = access->time_of(access->warp, access->in);
    if (read->stamp && read->stamp != access->stamp) continue;
    LaneMask lanes =
        time == read->time ? touching(read, access->mask, access->addresses, access->bytes) : 0;
    if (lanes) change_word(cluster, read, lanes & read->lanes ? read->lanes : UINT32_MAX);
  }
}
