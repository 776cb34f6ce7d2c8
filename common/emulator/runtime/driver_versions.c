/* driver_versions.c: how a program gets the driver's calls by name and version (cuGetProcAddress and
 * its relatives). A call whose parameters have changed has one function for each form. A program
 * that was written for CUDA 12.0 asks for version 12000 and gets the form of that time, whatever
 * the newest one is. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/driver_context.h"
#include "runtime/runtime.h"

enum { MAX_VERSIONS = 4, MAX_NAME = 128, NEWEST = 13000 };

typedef struct {
  const char *name;
  int versions[MAX_VERSIONS]; /* rising; 0: no more */
} DriverCall;

static const DriverCall DRIVER_CALLS[] = {
#define VERSIONS(call, ...) {#call, {__VA_ARGS__}},
#include "runtime/driver_versions.def"
};

static int compare_names(const void *name, const void *call) {
  return strcmp(name, ((const DriverCall *)call)->name);
}

static void *find_symbol(const char *name) {
  static void *self; /* whichever thread asks first: all find the same */
  Dl_info here;
  if (!self && dladdr((void *)&cuInit, &here)) self = dlopen(here.dli_fname, RTLD_NOW);
  return self ? dlsym(self, name) : NULL;
}

static bool is_name_of_driver(const char *name) {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* The function that the version has under this name, or NULL. With per_thread it is the one whose
 * stream 0 is the per-thread default stream, if there are two. */
static void *find_entry(const char *name, int version, bool per_thread,
                        CUdriverProcAddressQueryResult *found) {
  const DriverCall *call = bsearch(name, DRIVER_CALLS, sizeof DRIVER_CALLS / sizeof *DRIVER_CALLS,
                                   sizeof *DRIVER_CALLS, compare_names);
  bool newest = version < 0;
  int form = call ? 0 : 1;
  while (call && form < MAX_VERSIONS && call->versions[form] &&
         (newest || call->versions[form] <= version))
    form++;
  *found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  if (form == 0) return NULL;
  char symbol[MAX_NAME];
  int length = snprintf(symbol, sizeof symbol, form == 1 ? "%s" : "%s_v%d", name, form);
  void *entry = NULL;
  static const char *const ENDS[] = {"_ptsz", "_ptds"};
  for (int i = 0; per_thread && !entry && i < 2; i++) {
    snprintf(symbol + length, sizeof symbol - (size_t)length, "%s", ENDS[i]);
    entry = find_symbol(symbol);
  }
  symbol[length] = 0;
  if (!entry && is_name_of_driver(symbol)) entry = find_symbol(symbol);
  *found = entry ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return entry;
}

/* What the driver answers to a program that asks for something newer than itself. */
static bool answerable(const char *name, void **entry, int version, cuuint64_t flags) {
  return name && entry && version <= NEWEST &&
         flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *found) {
  if (!answerable(name, entry, version, flags)) return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult result;
  *entry =
      find_entry(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &result);
  if (found) *found = result;
  return CUDA_SUCCESS;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found) {
  driver_initialise();
  CUdriverProcAddressQueryResult result;
  if (cuGetProcAddress_v2(name, entry, (int)version, flags, &result) != CUDA_SUCCESS)
    return runtime_answer(cudaErrorInvalidValue);
  if (found) *found = (enum cudaDriverEntryPointQueryResult)result; /* the same numbers */
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPoint(const char *name, void **entry, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found) {
  return cudaGetDriverEntryPointByVersion(name, entry, NEWEST, flags, found);
}
