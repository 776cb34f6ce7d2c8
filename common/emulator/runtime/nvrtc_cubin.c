/* nvrtc_cubin.c: NVRTC's calls that return a cubin. The emulator runs PTX, so these return the PTX,
 * which NVRTC keeps along with the cubin, after a line that says so. They replace NVRTC's functions when the emulator's
 * library is loaded first (emulate ensures that). */
#include "runtime/nvrtc_cubin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef int NvrtcCall(void *program, void *result);
enum { NVRTC_ERROR_INTERNAL = 11 };

/* A comment of PTX. */
static const char MARK[] = "// The emulator runs this PTX in place of NVRTC's cubin.\n";
enum { MARK_BYTES = sizeof MARK - 1 };

static int call_nvrtc(const char *name, void *program, void *result) {
  void *library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_NOLOAD);
  NvrtcCall *call = library ? (NvrtcCall *)dlsym(library, name) : NULL;
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
  if (!error) memcpy(cubin, MARK, MARK_BYTES);
  return error;
}

/* The number in the directive .target sm_...; 0: there is none. */
static unsigned target_of(const char *text) {
  for (const char *line = text; line; line = strchr(line, '\n')) {
    line += strspn(line, " \t\r\n");
    if (strncmp(line, ".target", 7) != 0) continue;
    const char *name = line + 7 + strspn(line + 7, " \t");
    return strncmp(name, "sm_", 3) == 0 ? (unsigned)strtoul(name + 3, NULL, 10) : 0;
  }
  return 0;
}

/* A cubin runs on devices with the same major number and this minor number or a higher one, as NVIDIA's compatibility
 * guides say; PTX on this device and all later ones. */
CUresult nvrtc_text_runs_here(const char *text) {
  enum { DEVICE = 90 };
  unsigned target = target_of(text);
  if (!target) return CUDA_SUCCESS; /* refused with a reason when it is parsed */
  if (strncmp(text, MARK, MARK_BYTES) == 0)
    return target / 10 == DEVICE / 10 && target <= DEVICE ? CUDA_SUCCESS
                                                          : CUDA_ERROR_NO_BINARY_FOR_GPU;
  return target <= DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}
