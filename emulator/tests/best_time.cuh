/* best_time.cuh: how long a launch takes. */
#ifndef TESTS_BEST_TIME_CUH
#define TESTS_BEST_TIME_CUH

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

#endif
