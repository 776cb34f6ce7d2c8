/* cluster.c: turn, random numbers, clock and output of a running cluster (cluster.h). */
#include "base/holds.h"
#include "base/fault.h"
#include "base/mix.h"
#include "base/settings.h"
#include "state/cluster.h"

#include <stdlib.h>
#include <string.h>

#define RANDOM_STEP 0x9e3779b97f4a7c15ull

bool cluster_has_turn(Warp *warp) {
  struct ClusterFlow *flow = warp->cta->cluster->flow;
  if (!flow->has_turn) flow->wants_turn = true;
  return flow->has_turn;
}

void cluster_seed(Cluster *cluster) {
  cluster->random = mix(settings()->seed + RANDOM_STEP * (cluster->number + 1ull));
}

uint64_t cluster_random(Cluster *cluster) {
  cluster->random += RANDOM_STEP;
  return mix(cluster->random);
}

/* Each instruction takes four clocks, and every read advances the clock. */
uint64_t cluster_clock(const Cluster *cluster) {
  return 1000000 + cluster->flow->steps * 4 + cluster->flow->extra_time;
}

static _Atomic size_t ring_bytes = 8650752; /* as an H100 and an H200 begin */

void cluster_printed_size(size_t bytes) { ring_bytes = bytes; }

/* Whole lines, unless there are none. */
static void drop_oldest(struct ClusterFlow *flow, size_t kept) {
  if (flow->output_used <= kept) return;
  char *from = flow->output + flow->output_used - kept;
  const char *line = from[-1] == '\n' ? from : memchr(from, '\n', kept);
  if (line && line != from && line + 1 < flow->output + flow->output_used) from += line + 1 - from;
  size_t dropped = (size_t)(from - flow->output);
  HOLDS(dropped > 0 && dropped <= flow->output_used);
  memmove(flow->output, from, flow->output_used - dropped);
  flow->output_used -= dropped;
  flow->output_lost += dropped;
}

void cluster_print(Cluster *cluster, const char *text, size_t bytes) {
  struct ClusterFlow *flow = cluster->flow;
  if (bytes == 0) return;
  if (flow->output_used + bytes > flow->output_size) {
    size_t ring = ring_bytes;
    if (flow->output_used > 2 * ring) drop_oldest(flow, ring); /* twice, so that it is rare */
    size_t size = (flow->output_used + bytes) * 2 + 256;
    if (size > flow->output_size) {
      flow->output = need_memory(realloc(flow->output, size));
      flow->output_size = size;
    }
  }
  HOLDS(flow->output_used + bytes <= flow->output_size);
  memcpy(flow->output + flow->output_used, text, bytes);
  flow->output_used += bytes;
}

void cluster_print_end(Cluster *cluster) { drop_oldest(cluster->flow, ring_bytes); }
