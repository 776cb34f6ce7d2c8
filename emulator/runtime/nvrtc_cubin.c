/* nvrtc_cubin.c: NVRTC's calls that return a cubin. The emulator runs PTX, so these return the PTX,
 * which NVRTC keeps along with the cubin, after a line that says so. They replace NVRTC's functions when the emulator's
 * library is loaded first (emulate ensures that). */
#include "runtime/cubin.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int NvrtcCall(void *program, void *answer);
enum { NVRTC_ERROR_INTERNAL = 11 };

/* A comment of PTX. */
static const char MARK[] = "// The emulator runs this PTX in place of NVRTC's cubin.\n";
enum { MARK_BYTES = sizeof MARK - 1 };

static void *nvrtc_call(const char *name) {
  void *library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_NOLOAD);
  return dlsym(library ? library : RTLD_NEXT, name);
}
static int call_nvrtc(const char *name, void *program, void *result) {
  NvrtcCall *call = (NvrtcCall *)nvrtc_call(name);
  return call ? call(program, result) : NVRTC_ERROR_INTERNAL;
}

int nvrtcGetCUBINSize(void *program, size_t *bytes);
int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  int error = call_nvrtc("nvrtcGetCUBINSize", program, bytes);
  if (error || !bytes || *bytes == 0) return error; /* compiled for compute_...: no cubin */
  error = call_nvrtc("nvrtcGetPTXSize", program, bytes);
  if (!error) *bytes += MARK_BYTES;
  return error;
}
int nvrtcGetCUBIN(void *program, char *cubin);
int nvrtcGetCUBIN(void *program, char *cubin) {
  int error = call_nvrtc("nvrtcGetPTX", program, cubin ? cubin + MARK_BYTES : NULL);
  if (error) return error;
  memcpy(cubin, MARK, MARK_BYTES);
  return error;
}

/* ---- Which texts the device can run ---- */

/* A cubin runs on devices with the same major number and this minor number or a higher one, as NVIDIA's compatibility
 * guides say; PTX on this device and all later ones. What else is wrong with a text is said with a reason when it is
 * parsed. */
CUresult nvrtc_text_runs_here(const char *text) {
  enum { DEVICE = 90, NEWEST_MAJOR = 9 };
  static const char VERSION[] = ".version", TARGET[] = ".target";
  const char *version = strstr(text, VERSION), *target = strstr(text, TARGET);
  if (!version || (target && target < version)) return CUDA_ERROR_INVALID_IMAGE;
  if (strtoul(version + strlen(VERSION), NULL, 10) > NEWEST_MAJOR)
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  unsigned number;
  if (!target || sscanf(target + strlen(TARGET), " sm_%u", &number) != 1)
    return CUDA_ERROR_INVALID_PTX;
  if (strncmp(text, MARK, MARK_BYTES) == 0)
    return number / 10 == DEVICE / 10 && number <= DEVICE ? CUDA_SUCCESS
                                                          : CUDA_ERROR_NO_BINARY_FOR_GPU;
  return number <= DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}
