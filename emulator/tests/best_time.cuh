/* best_time.cuh: how long a launch takes. */
#pragma once

#include <time.h>

#include "check.h"

/* Seconds, the fastest of so many times. */
template <typename Launch>
static double best_time(int times, Launch launch) {
  double best = 1e30;
  for (int i = 0; i < times; i++) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    launch();
    CUDA_CHECK(cudaDeviceSynchronize());
    clock_gettime(CLOCK_MONOTONIC, &end);
    double taken =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
    if (taken < best) best = taken;
  }
  return best;
}
