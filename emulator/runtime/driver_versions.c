/* driver_versions.c: how a program gets the driver's calls by name and version (cuGetProcAddress and
 * its relatives). A call whose parameters have changed has one function for each form. A program
 * that was written for CUDA 12.0 asks for version 12000 and gets the form of that time, whatever
 * the newest one is. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/driver_context.h"
#include "runtime/runtime.h"

enum { MAX_VERSIONS = 4, MAX_NAME = 128, NEWEST = 13000 };

/* The calls that have a form newer than CUDA 12.0, and which version of CUDA had each form first: name, name_v2 and so
 * on, as in the toolkit's cudaTypedefs.h. Of other calls everybody gets the newest form. */
static const struct {
  const char *name;
  int versions[MAX_VERSIONS]; /* rising; 0: no more */
} DRIVER_CALLS[] = {
    {"cuCtxCreate", {2000, 3020, 11040, 12050}}, {"cuCtxGetDevice", {2000, 13000}},
    {"cuCtxSynchronize", {2000, 13000}},         {"cuEventElapsedTime", {2000, 12080}},
    {"cuGetProcAddress", {11030, 12000}},        {"cuStreamGetCaptureInfo", {10010, 11030, 12030}},
    {"cuStreamGetCtx", {9020, 12050}},
};

static void *find_symbol(const char *name) {
  static void *self; /* whichever thread asks first: all find the same */
  Dl_info here;
  if (!self && dladdr((void *)&cuInit, &here)) self = dlopen(here.dli_fname, RTLD_NOW);
  return self ? dlsym(self, name) : NULL;
}

static bool is_name_of_driver(const char *name) {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Which form of a call the version has; 0: none yet. Any number beyond the newest form stands for that. */
static int form_of(const char *name, int version) {
  for (size_t i = 0; i < sizeof DRIVER_CALLS / sizeof *DRIVER_CALLS; i++) {
    if (strcmp(DRIVER_CALLS[i].name, name) != 0) continue;
    const int *versions = DRIVER_CALLS[i].versions;
    int form = 0;
    while (form < MAX_VERSIONS && versions[form] && (version < 0 || versions[form] <= version))
      form++;
    return form;
  }
  return MAX_VERSIONS + 1;
}

/* The function that the version has under this name, or NULL. With per_thread it is the one whose
 * stream 0 is the per-thread default stream, if there are two. */
static void *find_entry(const char *name, int version, bool per_thread,
                        CUdriverProcAddressQueryResult *found) {
  static const char *const ENDS[] = {"_ptsz", "_ptds", ""};
  const int newest = form_of(name, version);
  const bool one_form = newest <= MAX_VERSIONS;
  *found =
      newest ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  void *entry = NULL;
  for (int form = newest; form > 0 && !entry && is_name_of_driver(name); form--) {
    for (int end = per_thread ? 0 : 2; !entry && end < 3; end++) {
      char symbol[MAX_NAME];
      if (form == 1)
        snprintf(symbol, sizeof symbol, "%s%s", name, ENDS[end]);
      else
        snprintf(symbol, sizeof symbol, "%s_v%d%s", name, form, ENDS[end]);
      entry = find_symbol(symbol);
    }
    if (one_form) break;
  }
  if (entry) *found = CU_GET_PROC_ADDRESS_SUCCESS;
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
