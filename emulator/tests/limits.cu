// limits: cudaDeviceSetLimit and cudaDeviceGetLimit, every limit and many values.
// recorded/limits.txt is what an H200 answered.
#include <stdio.h>

#include "check.h"

static const size_t VALUES[] = {0,       1,       16,       17,       100,     128,
                                1000,    1025,    4097,     65536,    523712,  523728,
                                1048577, 5242880, 11796481, 33558528, 1u << 31};
enum { LIMITS = 12, FEW = 3, SOME = 13 };

// How many of the values: few where all are refused, and not what takes gigabytes.
static size_t values_of(int limit) {
  if (limit > cudaLimitPersistingL2CacheSize || limit == cudaLimitDevRuntimeSyncDepth) return FEW;
  if (limit == cudaLimitDevRuntimePendingLaunchCount) return SOME;
  return sizeof VALUES / sizeof *VALUES;
}

int main(void) {
  CUDA_CHECK(cudaFree(NULL));
  for (int limit = 0; limit < LIMITS; limit++) {
    size_t value = 77;
    int error = cudaDeviceGetLimit(&value, (enum cudaLimit)limit);
    printf("limit %d at first: %d %zu\n", limit, error, value);
    for (size_t i = 0; i < values_of(limit); i++) {
      cudaGetLastError();
      int set = cudaDeviceSetLimit((enum cudaLimit)limit, VALUES[i]), last = cudaGetLastError();
      value = 77;
      error = cudaDeviceGetLimit(&value, (enum cudaLimit)limit);
      printf("limit %d set %zu: %d last %d, get %d %zu\n", limit, VALUES[i], set, last, error,
             value);
    }
  }
  return 0;
}
