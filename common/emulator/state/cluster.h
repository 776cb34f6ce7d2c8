/* cluster.h: what a running cluster has of its own: its turn, its random numbers, its clock, and
 * what it has printed. */
#ifndef EMULATOR_CLUSTER_H
#define EMULATOR_CLUSTER_H

#include "base/emulator.h"

struct ClusterFlow {
  uint64_t steps;       /* warp instructions executed: the cluster's clock */
  uint64_t extra_time;  /* of nanosleep and expired waits, in clocks */
  uint64_t quiet_steps; /* since changes last moved */
  uint64_t seen_changes;
  uint64_t
      next_progress_check; /* at so many steps it is looked whether the warps go round in circles */
  uint32_t idle_rounds;    /* in which nobody could do anything but wait or poll */
  uint32_t next_idle_check; /* the same, in idle rounds */
  uint64_t hurry;        /* by how much time was last pushed on, for waits that end by the clock */
  uint64_t launch_time;  /* how far the launch's time is that all clusters were pushed on by */
  bool all_waits_expire; /* each wait that is not over answers "not yet", at any time */
  uint8_t circles;       /* Circle: what the last look found, when others may still end it */
  struct Polling *polling; /* polling.c */
  bool has_turn, wants_turn;
  uint32_t barrier_arrived, barrier_generation; /* barrier.cluster: threads */
  uint32_t live_threads;
  uint32_t running_warps;
  uint32_t expirations; /* of waits that nothing in flight could end */
  char *output;         /* of printf */
  size_t output_used, output_size;
};

/* The seeded schedule's numbers: equal for equal seeds whatever the host threads do. */
void cluster_seed(Cluster *cluster);
uint64_t cluster_random(Cluster *cluster);
/* Order-sensitive effects on global memory (atomics that return a value, float adds, volatile and
 * acquire accesses, asynchronous reduces of floats) happen in an order that does not depend on host
 * threads: returns false when the warp must wait for its turn (return STEP_BLOCKED). */
bool cluster_has_turn(Warp *warp);
uint64_t cluster_clock(const Cluster *cluster); /* of the emulated chip */
/* Text of the device's printf, kept until all clusters before this one have ended. false: it is
 * more than a cluster may print, or than the host can hold. */
enum { CLUSTER_MOST_OUTPUT = 256 << 20 };
bool cluster_print(Cluster *cluster, const char *text, size_t bytes);

#endif
