/* recorded_cases.cuh: what the programs share whose answers an H200 has recorded (recorded/). They check nothing
 * themselves, and end with exit code 2 if a call fails that is not what is tried. */
#pragma once

#include <cuda.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../../05_multicast/cluster.cuh"
#include "../base/mix.h"
#include "driver_call.cuh"
#include "launch_clusters.cuh"
#include "ptx.cuh"

static inline void need(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, cudaGetErrorString(error));
  exit(2);
}

/* Runs a case in a process of its own, because a fault makes the device unusable. */
static inline void run_in_child(void (*run)(int number), int number) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run(number);
    fflush(stdout);
    _exit(0);
  }
  int state;
  waitpid(child, &state, 0);
}
