/* driver_call.cuh: the driver's calls come through the runtime, so that nothing links libcuda. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A function of the driver, by its name and the version of CUDA in whose form it is wanted. */
static inline void *driver_call(const char *name, int version = 12000) {
  void *entry = NULL;
  enum cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion(name, &entry, (unsigned)version, cudaEnableDefault,
                                       &found) == cudaSuccess &&
      entry != NULL)
    return entry;
  fprintf(stderr, "%s: the driver has no %s of version %d\n", program_invocation_short_name, name,
          version);
  exit(2);
}
#define DRIVER(name) ((decltype(&name))driver_call(#name))
#define DRIVER_OF(name, version) ((PFN_##name##_v##version)driver_call(#name, version))
