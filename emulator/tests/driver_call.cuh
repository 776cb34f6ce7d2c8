/* driver_call.cuh: the driver's calls come through the runtime, so that nothing links libcuda. */
#ifndef TESTS_DRIVER_CALL_CUH
#define TESTS_DRIVER_CALL_CUH

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A function of the driver, by its name. */
static inline void *driver_call(const char *name) {
  void *entry = NULL;
  enum cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found) ==
          cudaSuccess &&
      entry != NULL)
    return entry;
  fprintf(stderr, "%s: the driver has no %s\n", program_invocation_short_name, name);
  exit(2);
}
#define DRIVER(name) ((decltype(&name))driver_call(#name))

#endif
