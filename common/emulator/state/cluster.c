/* cluster.c: turn, random numbers, clock and output of a running cluster (cluster.h). */
#include "base/fault.h"
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

static uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ value >> 27) * 0x94d049bb133111ebull;
  return value ^ value >> 31;
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

bool cluster_print(Cluster *cluster, const char *text, size_t bytes) {
  struct ClusterFlow *flow = cluster->flow;
  if (bytes == 0) return true;
  if (bytes > CLUSTER_MOST_OUTPUT - flow->output_used) return false;
  if (flow->output_used + bytes > flow->output_size) {
    size_t size = (flow->output_used + bytes) * 2 + 256;
    char *output = realloc(flow->output, size);
    if (!output) out_of_memory();
    flow->output = output;
    flow->output_size = size;
  }
  memcpy(flow->output + flow->output_used, text, bytes);
  flow->output_used += bytes;
  return true;
}
