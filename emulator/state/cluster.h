/* cluster.h: the state of a running cluster: its turn, random numbers, clock and printed text. */
#pragma once

#include "base/warp.h"

struct ClusterFlow {
  uint64_t steps;       /* warp instructions executed: the cluster's clock */
  uint64_t extra_time;  /* of nanosleep and expired waits, in clocks */
  uint64_t quiet_steps; /* steps since `changes` last increased */
  uint64_t seen_changes;
  uint64_t
      next_progress_check;  /* at this many steps, check whether the warps still make progress */
  uint32_t idle_rounds;     /* rounds in which all warps only waited or polled */
  uint32_t next_idle_check; /* the same check, after this many idle rounds */
  uint64_t hurry;        /* how far the clock was last advanced, for waits that end by the clock */
  uint64_t launch_time;  /* how much of the launch-wide clock advance this cluster has received */
  bool all_waits_expire; /* every unfinished wait may return "not yet" at any time */
  /* Spinning: result of the last progress check, if other clusters may still end it */
  uint8_t spinning;
  struct Polling *polling; /* polling.c */
  bool has_turn, wants_turn;
  uint32_t barrier_arrived, barrier_generation; /* barrier.cluster: threads */
  uint32_t live_threads;
  uint32_t running_warps;
  uint32_t expirations; /* waits that expired because nothing in flight could end them */
  char *output;         /* of printf */
  size_t output_used, output_size;
  uint64_t output_lost;      /* bytes that were dropped, the oldest */
  uint64_t noticed_steps;    /* machine.c: steps when it last looked at the time, */
  uint32_t rounds_unnoticed; /* and rounds since */
};

/* Random numbers of the schedule. The same seed gives the same numbers, whatever the host threads
 * do. */
void cluster_seed(Cluster *cluster);
uint64_t cluster_random(Cluster *cluster);
/* Order-sensitive effects on global memory (atomics that return a value, float adds, volatile and
 * acquire accesses, asynchronous reduces of floats) happen in an order that does not depend on host
 * threads: returns false when the warp must wait for its turn (return STEP_BLOCKED). */
bool cluster_has_turn(Warp *warp);
uint64_t cluster_clock(const Cluster *cluster); /* of the emulated chip */
/* Text of the device's printf, kept until all clusters before this one have ended. As on a GPU, the
 * buffer is a ring of cudaLimitPrintfFifoSize bytes: the oldest lines make room for the newest. */
void cluster_print(Cluster *cluster, const char *text, size_t bytes);
/* The cluster has ended: drops what the ring would not hold. */
void cluster_print_end(Cluster *cluster);
void cluster_printed_size(size_t bytes); /* cudaLimitPrintfFifoSize */
